"""Validation: nothing on both sides of a fold, errors by hand, intervals that hold what they say."""

from __future__ import annotations

import numpy as np
import pytest

from chipwise.errors import ChipwiseError
from chipwise.evidence.judge import APART, Factors, conformal, judge, tier_factors
from chipwise.evidence.speed_rows import model_named, read_speed
from chipwise.evidence.validate import Judged, leave_out, ranking, summarise

KEYS = ["a", "b", "a", "c", "c", "c", "d"]


@pytest.mark.parametrize("folds", [0, 2, 3, 99])
def test_keys_stay_together(folds: int) -> None:
    seen: list[int] = []
    for kept, out in leave_out(KEYS, folds):
        assert not {KEYS[i] for i in kept} & {KEYS[i] for i in out}
        assert sorted([*kept, *out]) == list(range(len(KEYS)))
        seen += list(out)
    assert sorted(seen) == list(range(len(KEYS)))


def row(predicted: float, measured: float, low: float = 0.0, high: float = 9.0, **slices: str) -> Judged:
    return Judged("r", "m", predicted, low, high, measured, slices)


def test_a_summary_by_hand() -> None:
    nan = float("nan")
    found = summarise([row(1.1, 1.0), row(0.8, 1.0, high=0.9), row(2.0, 1.0), row(nan, 1.0)])[0]
    assert (found.rows, found.answered) == (4, 0.75)
    assert found.median == pytest.approx(0.2)
    assert found.bias == pytest.approx(0.1)
    assert found.coverage == pytest.approx(2 / 3)


def test_slices() -> None:
    found = summarise([row(1, 1, chip="x"), row(2, 1, chip="y"), row(3, 1)], "chip")
    assert [s.name for s in found] == ["x", "y"]


def test_ranking_counts_pairs_that_differ() -> None:
    assert ranking([[(1, 1.0), (2, 1.05), (3, 2.0)]]) == (2, 1.0)
    assert ranking([[(2, 1.0), (1, 2.0)], [(1, 1.0), (2, 3.0)]]) == (2, 0.5)


def test_conformal_intervals_hold_four_fifths() -> None:
    rng = np.random.default_rng(7)
    inside = []
    for _ in range(200):
        low, high = conformal(np.exp(rng.normal(0.1, 0.3, 60)))
        inside.append(np.mean((new := np.exp(rng.normal(0.1, 0.3, 500))) >= low) - np.mean(new > high))
    assert np.mean(inside) == pytest.approx(0.8, abs=0.02)


def test_no_residuals_no_interval() -> None:
    assert conformal(np.array([])) == (0.0, float("inf"))


def test_tiers_widen_with_distance() -> None:
    table = {("tpot_s", "own"): Factors(0.9, 1.1), ("tpot_s", "chip"): Factors(0.8, 1.3)}
    widths = [
        (f := tier_factors("tpot_s", near, table)).high / f.low for near in ("own", "chip", "vendor", "kind")
    ]
    assert widths == sorted(widths)
    assert widths[3] > widths[1]
    assert tier_factors("tpot_s" + APART, "chip", table) == Factors(0.8, 1.3)
    assert not tier_factors("tpot_s", "chip", table).tested


def test_the_shipped_tiers_are_the_residuals_of_many_cells() -> None:
    for figure in ("tpot_s", "ttft_s"):
        near = tier_factors(figure, "chip")
        assert near.tested
        assert near.low < 1 < near.high
        assert judge(figure, 1.0, "chip").basis == "calibrated"
        assert judge(figure, 1.0).basis == "modelled"


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
