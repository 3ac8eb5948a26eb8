"""Residuals: nothing on both sides of a fold, errors by hand, intervals that hold what they say."""

from __future__ import annotations

import numpy as np
import pytest

from chipwise.errors import ChipwiseError
from chipwise.evidence.residuals import Residuals, leave_out, ranking
from chipwise.evidence.speed_rows import model_named, read_speed

KEYS = ["a", "b", "a", "c", "c", "c", "d"]


@pytest.mark.parametrize("folds", [0, 2, 3, 99])
def test_keys_stay_together(folds: int) -> None:
    seen: list[int] = []
    for kept, out in leave_out(KEYS, folds):
        assert not {KEYS[i] for i in kept} & {KEYS[i] for i in out}
        assert sorted([*kept, *out]) == list(range(len(KEYS)))
        seen += list(out)
    assert sorted(seen) == list(range(len(KEYS)))


def test_a_summary_by_hand() -> None:
    lines = Residuals.of(range(4), [1.1, 0.8, 2.0, np.nan], 1.0, low=0.0, high=[9.0, 0.9, 9.0, np.nan], metric="m")
    (found,) = lines.summaries()
    assert (found.rows, found.answered) == (4, 0.75)
    assert found.median == pytest.approx(0.2)
    assert found.bias == pytest.approx(0.1)
    assert found.coverage == pytest.approx(2 / 3)


def test_slices() -> None:
    lines = Residuals.of(range(4), [1.0, 2.0, 3.0, 1.0], 1.0, metric=["m", "m", "m", "k"], chip=["x", "y", "", "x"])
    assert [(s.metric, s.name) for s in lines.summaries("chip")] == [("k", "x"), ("m", "x"), ("m", "y")]
    assert lines.summaries("chip", least=2) == []
    assert [s.rows for s in lines.where(metric="m").summaries()] == [3]


def test_parts_are_joined_in_the_order_of_rows() -> None:
    late, early = Residuals.of([2, 3], 2.0, 1.0, tier="chip"), Residuals.of([0, 1], 1.0, 1.0, cell="a")
    found = Residuals.join([late, early])
    assert found.place.tolist() == [0, 1, 2, 3]
    assert found.label("tier").tolist() == ["", "", "chip", "chip"]
    assert found.label("cell").tolist() == ["a", "a", "", ""]
    assert len(Residuals.join([])) == 0


def test_ranking_counts_pairs_that_differ() -> None:
    assert ranking([[(1, 1.0), (2, 1.05), (3, 2.0)]]) == (2, 1.0)
    assert ranking([[(2, 1.0), (1, 2.0)], [(1, 1.0), (2, 3.0)]]) == (2, 0.5)


SPEED = {"row_id": "t", "chip": "groq-lpu1", "model_family": "Llama 3.1 8B", "speculative": "unknown"}


def test_speculation_is_recognised_and_refused() -> None:
    assert read_speed(SPEED).chip.id == "groq-lpu1"
    with pytest.raises(ChipwiseError, match="speculative"):
        read_speed({**SPEED, "speculative": "yes"})
    with pytest.raises(ChipwiseError, match="catalogue"):
        read_speed({**SPEED, "chip": "", "hardware_text": "NVIDIA GPU"})


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Llama 3.1 8B", "meta-llama/Llama-3.1-8B"),
        ("Llama 2 70B", "meta-llama/Llama-2-70b-hf"),
        ("gpt-oss-120b", "openai/gpt-oss-120b"),
        ("Mixtral 8x7B", "mistralai/Mixtral-8x7B-v0.1"),
        ("Qwen3 32B", "Qwen/Qwen3-32B"),
    ],
)
def test_models_by_their_marketing_names(text: str, name: str) -> None:
    assert model_named(text).name == name


def test_a_model_that_nobody_bundles() -> None:
    with pytest.raises(ChipwiseError):
        model_named("Grok 17 900T")
