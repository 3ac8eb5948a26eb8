"""A policy that is set moves an answer, or is refused with the reason."""

from __future__ import annotations

import pytest

import chipwise as cw
from chipwise.catalog.chips import get_chip
from chipwise.catalog.runtime import get_runtime
from chipwise.catalog.runtime_spec import FIGURES as POLICY_NAMES
from chipwise.errors import UsageError

PLACE = {"model": "meta-llama/Llama-3.1-8B", "chip": "h100", "tp": 2, "in_": 3000, "out": 300, "evidence": "none"}
HYBRID = "Qwen/Qwen3.5-4B"
STATES = ("state_share", "state_copies")
"""Figures of models with recurrent layers."""


def numbers(runtime: str) -> dict[str, float]:
    policies = get_runtime(runtime).policies_on(get_chip("h100"))
    found = {name: getattr(policies, name) for name in POLICY_NAMES}
    return {name: value for name, value in found.items() if not isinstance(value, str)}


@pytest.mark.parametrize(
    ("runtime", "unread"),
    [
        ("vllm", {"reserved_bytes", "workspace_bytes", "micro_batch_tokens", *STATES}),
        ("sglang", {"workspace_bytes", "micro_batch_tokens", "sampler_bytes"}),
        ("trtllm", {"reserved_bytes", "workspace_bytes", "micro_batch_tokens", *STATES}),
    ],
)
def test_every_policy_moves_an_answer_or_is_refused(runtime: str, unread: set[str]) -> None:
    for name, value in numbers(runtime).items():
        place = {**PLACE, "model": HYBRID} if name in STATES else PLACE
        other = {
            "kv_block_tokens": 1024,
            "look_passes": 20,
            "gather_passes": 20,
            "reserved_bytes": 9e9,
            "sampler_bytes": 100,
            "max_sequences": 16,
        }.get(name, value / 2 or 9e9)
        said = str(int(other)) if isinstance(value, int) else f"{other:.10g}"
        if name in unread:
            with pytest.raises(UsageError, match="changes nothing here"):
                cw.estimate(**place, runtime=runtime, policy={name: said})
            continue
        before = cw.estimate(**place, runtime=runtime).plans
        after = cw.estimate(**place, runtime=runtime, policy={name: said}).plans
        assert after != before, f"{runtime}: {name} moves nothing"


def test_a_prompt_waits_half_the_passes_between_two_looks() -> None:
    plain, rare = (
        cw.estimate(**PLACE, runtime="sglang", concurrency=8, policy={"look_passes": n}).plans[0] for n in (1, 21)
    )
    waited = rare.ttft_s.mid - plain.ttft_s.mid
    # prompts that came meanwhile are worked off together
    assert 10 * plain.decode_s < waited < 14 * plain.tpot_s.mid
    assert rare.tpot_s.mid < plain.tpot_s.mid


def test_the_first_client_looks_for_no_others() -> None:
    plain, rare = (
        cw.estimate(**PLACE, runtime="sglang", concurrency=1, policy={"look_passes": n}).plans[0] for n in (1, 21)
    )
    assert rare.ttft_s.mid == pytest.approx(plain.ttft_s.mid)


def test_gathering_over_attention_replicas_trades_the_first_token_for_the_rest() -> None:
    place = {"model": "deepseek-ai/DeepSeek-V3", "chip": "h200", "dp": 8, "ep": 8, "evidence": "none"}
    plain, gathered = (
        cw.estimate(**place, in_=8000, out=1000, runtime="trtllm", concurrency=128, policy={"gather_passes": n}).plans[
            0
        ]
        for n in (0, 60)
    )
    assert gathered.ttft_s.mid > plain.ttft_s.mid
    assert gathered.tpot_s.mid < 0.8 * plain.tpot_s.mid
    assert gathered.tokens_per_s.mid > plain.tokens_per_s.mid
