"""What a training plan may claim: the interval that the chip's own rows have earned."""

from __future__ import annotations

from pathlib import Path

import pytest

from chipwise.calibrate.parameters import shipped_parameters
from chipwise.evidence.training_answers import TIERS
from chipwise.evidence.training_tiers import SEEN, TWINS, plan_tier

ACCURACY = Path(__file__).resolve().parents[2] / "docs" / "accuracy.md"


def test_what_was_seen_is_what_validation_reports() -> None:
    part = ACCURACY.read_text(encoding="utf-8").split("<!-- training: begin -->")[1]
    part = part.split("**by chip**")[1].split("**vTrain")[0]
    found = {}
    for line in part.splitlines():
        cells = [c.strip().removesuffix(" %") for c in line.split("|")[1:-1]]
        if len(cells) == 8 and cells[1] == "step_time_s" and not cells[0].startswith("near-"):
            found[cells[0]] = (int(cells[2]), float(cells[4]), float(cells[7]))
    assert found == {
        name: (s.rows, pytest.approx(100 * s.median, abs=0.06), pytest.approx(100 * s.covered, abs=0.06))
        for name, s in SEEN.items()
    }


def test_only_chips_with_rows_of_their_own_are_calibrated() -> None:
    numbers = shipped_parameters()
    own = plan_tier(numbers, "nemo", "h100-sxm5-80gb", "hopper", routed=False)
    twin = plan_tier(numbers, "nemo", "h200-sxm-141gb", "hopper", routed=False)
    other = plan_tier(numbers, "rocm", "mi300x", "cdna3", routed=False)
    strange = plan_tier(numbers, "other", "h100-sxm5-80gb", "hopper", routed=False)
    assert (own.low, own.high) == TIERS["dense, stated"]
    assert (own.basis, other.basis, strange.basis) == ("calibrated", "modelled", "modelled")
    assert twin == own
    assert (other.low, other.high) == TIERS["dense, unseen"]


@pytest.mark.parametrize("routed", [False, True])
@pytest.mark.parametrize("chip", [*SEEN, *TWINS, "mi300x"])
def test_who_was_missed_more_often_may_be_further_off(chip: str, routed: bool) -> None:
    stack, generation = {
        "tpu-v5p": ("xla", "tpu-v5p"),
        "tpu-v7x": ("xla", "tpu-v7x"),
        "gaudi2": ("habana", "gaudi2"),
        "v100-sxm2-32gb": ("nemo", "volta"),
    }.get(chip, ("nemo", "hopper"))
    tier = plan_tier(shipped_parameters(), stack, chip, generation, routed=routed)
    low, high = TIERS["experts, stated" if routed else "dense, stated"]
    assert tier.low <= low
    assert tier.high >= high
    seen = SEEN.get(TWINS.get(chip, chip))
    if seen is None or seen.covered < 0.75:
        assert tier.high / tier.low > high / low
