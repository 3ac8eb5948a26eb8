"""`--offload`: one option, of language models what lies on the host, of others which parts wait there."""

from __future__ import annotations

import pytest

from chipwise.api.requests.verbs import question
from chipwise.errors import UsageError

CARD = {"chip": "rtx-4090", "task": "local", "host_memory": "128GB", "runtime": "llama.cpp"}


def test_a_word_lets_parts_of_a_pipeline_wait() -> None:
    whole = question("estimate", {"model": "sdxl", "chip": "rtx-4090"}).run()
    waiting = question("estimate", {"model": "sdxl", "chip": "rtx-4090", "offload": "model"}).run()
    assert waiting.plans[0].memory_bytes < whole.plans[0].memory_bytes
    assert waiting.plans[0].latency_s.mid > whole.plans[0].latency_s.mid


def test_layers_and_experts_are_of_language_models() -> None:
    said = {"model": "openai/gpt-oss-120b", **CARD}
    least = question("estimate", said).run().plans[0]
    more = question("estimate", said | {"offload": "cpu-experts=36"}).run().plans[0]
    assert more.tpot_s.mid > least.tpot_s.mid


@pytest.mark.parametrize(
    ("verb", "given", "words"),
    [
        ("estimate", {"model": "sdxl", "chip": "h100", "offload": "gpu-layers=3"}, "of language models"),
        ("estimate", {"model": "Qwen/Qwen3-8B", **CARD, "offload": "model"}, "of models without tokens"),
        ("plan", {"model": "Qwen/Qwen3-8B", "offload": "cpu-experts=3"}, "which is a language model"),
        ("estimate", {"model": "sdxl", "chip": "h100", "offload": "layers=3"}, "no part is called 'layers'"),
    ],
)
def test_each_refuses_what_is_of_the_other(verb: str, given: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        question(verb, given).run()
