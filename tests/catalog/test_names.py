"""Names as people type them."""

from __future__ import annotations

import pytest

from chipwise.catalog.configs import find_config, known_names
from chipwise.catalog.names import holding
from chipwise.catalog.snapshot import Snapshot, use
from chipwise.errors import UnknownNameError


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("llama3.1:8b", "meta-llama/Llama-3.1-8B-Instruct"),
        ("llama3.1:8b-instruct-q4_K_M", "meta-llama/Llama-3.1-8B-Instruct"),
        ("llama3.2", "meta-llama/Llama-3.2-3B-Instruct"),
        ("library/qwen3:30b", "Qwen/Qwen3-30B-A3B"),
        ("deepseek-r1:14b", "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B"),
        ("Qwen 3 30B A3B", "Qwen/Qwen3-30B-A3B"),
        ("30B Qwen3 A3B", "Qwen/Qwen3-30B-A3B"),
        ("qwen2.5-coder:7b", "Qwen/Qwen2.5-Coder-7B-Instruct"),
        ("mlx-community/Qwen3-14B-4bit", "Qwen/Qwen3-14B"),
        ("lmstudio-community/LFM2-1.2B-MLX-8bit", "LiquidAI/LFM2-1.2B"),
        ("hf.co/Qwen/Qwen3-32B", "Qwen/Qwen3-32B"),
        ("gemma-3-27b", "google/gemma-3-27b-it"),
        ("Jamba-1.5-Mini", "ai21labs/AI21-Jamba-Mini-1.5"),
        ("DeepSeek V3.2", "deepseek-ai/DeepSeek-V3.2"),
        ("DeepSeek-V3.2 671B", "deepseek-ai/DeepSeek-V3.2"),
    ],
)
def test_a_name_means_the_published_model(typed: str, name: str) -> None:
    assert find_config(typed).name == name


@pytest.mark.parametrize(
    "typed",
    [
        "Llama 4",  # two sizes
        "llama-70b",  # four versions
        "Gemma 3",
        "Qwen3-VL",
        "someone/Qwen3-8B",  # a copy of another organisation, perhaps changed
        "Qwen3-8B-medical",  # a tuned model, perhaps with other dimensions
        "Llama-7B",  # the first Llama is not bundled, the second is another model
        "qwen3:9b",
    ],
)
def test_a_name_that_means_several_or_another_is_refused_with_those_near(typed: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        find_config(typed)
    assert caught.value.nearest
    assert "did you mean" in str(caught.value)


def test_what_is_no_language_model_is_called_by_its_kind() -> None:
    with pytest.raises(UnknownNameError, match=r"an image generator.*chipwise evidence match FLUX\.1-dev"):
        find_config("FLUX.1-dev")


def test_how_a_name_was_read_is_said() -> None:
    assert find_config("Qwen/Qwen3-14B").notes == ()
    (note,) = find_config("mlx-community/Qwen3-14B-4bit").notes
    assert "is read as Qwen/Qwen3-14B" in note
    assert "'4bit' is left to --precision" in note


def test_sizes_are_searched_as_whole_words() -> None:
    found = holding("llama 8b", known_names())
    assert "meta-llama/Llama-3.1-8B" in found
    assert not any("18B" in name or "38B" in name for name in found)
    assert "deepseek-ai/DeepSeek-V3" in holding("deepseek 671b", known_names())
    assert all("fp8" in name.lower() for name in holding("qwen3 fp8", known_names()))


def test_an_answer_holds_the_line_of_its_model_alone() -> None:
    with use(Snapshot(read={})) as snapshot:
        first = find_config("LiquidAI/LFM2-1.2B")
    assert snapshot.read is not None
    held = {name: content for name, content in snapshot.read.items() if "more_models" in name}
    assert sum(map(len, held.values())) < 40_000
    with use(Snapshot(given=held)):
        assert find_config("LiquidAI/LFM2-1.2B") == first


def test_a_size_alone_is_a_decoder_of_that_size_and_says_so() -> None:
    config = find_config("14B")
    assert config.data["model_type"] == "transformer"
    assert "transformer:layers=39,hidden=4992" in config.notes[0]
