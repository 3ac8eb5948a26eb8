"""Hosts, stages and layouts are those of one function: what `estimate` takes `fit` never calls illegal."""

from __future__ import annotations

import contextlib
import random

import pytest

import chipwise as cw
from chipwise.api.statements import check_statement
from chipwise.catalog.chips import get_chip, load_chips
from chipwise.errors import ChipwiseError, InfeasibleError

MODELS = ("meta-llama/Llama-3.1-8B", "Qwen/Qwen3-30B-A3B", "google/gemma-3-27b-it")
COUNTS = (1, 2, 3, 4, 5, 6, 8, 12, 16)


def accepted(model: str, chip: str, tp: int, pp: int, dp: int) -> bool:
    """Whether `estimate` takes the layout, whether or not the model fits on it."""
    try:
        cw.estimate(model, chip=chip, tp=tp, pp=pp, dp=dp, concurrency=1, in_=1000, out=100, evidence="none")
    except InfeasibleError as error:
        return "short per device" in error.what or "in flight" in error.what
    except ChipwiseError:
        return False
    return True


def test_llama_70b_on_eight_cards_of_a_server() -> None:
    (record,) = cw.fit("meta-llama/Llama-3.1-70B", chips="rtx-4090", count=8).fits
    assert (record.layout.tp, record.chips, record.verdict) == (8, 8, "comfortable")
    assert cw.estimate("meta-llama/Llama-3.1-70B", chip="rtx-4090", tp=8).plans[0].chips == 8


@pytest.mark.parametrize("model", MODELS)
def test_what_estimate_takes_fit_calls_legal(model: str) -> None:
    rng = random.Random(model)
    chips = [c for c in load_chips().market() if get_chip(c).family != "dataflow"]
    asked = 0
    for chip in rng.sample(chips, 40):
        for count in rng.sample(COUNTS, 3):
            devices = count * get_chip(chip).devices_per_package
            ways = [(t, p, devices // t // p) for t in (1, 2, 3, 4, 8, devices) for p in (1, 2, 4, devices)]
            ways = [w for w in dict.fromkeys(ways) if w[0] * w[1] * w[2] == devices]
            if any(accepted(model, chip, *way) for way in ways):
                asked += 1
                report = cw.fit(model, chips=chip, count=count, context=1100)
                assert report.fits, (chip, count, [r.detail for r in report.refused])
                assert report.fits[0].chips == count, (chip, count)
    assert asked > 40


@pytest.mark.parametrize(
    ("chip", "spoken", "counts"),
    [("rtx-4090", "RTX 4090", (3, 6, 8)), ("h100-sxm5-80gb", "H100 SXM", (1, 2, 3, 8)), ("l4", "L4", (6, 8))],
)
def test_a_claim_and_a_plan_find_room_where_fit_does(chip: str, spoken: str, counts: tuple[int, ...]) -> None:
    """In one format, of a lone user and of a batch: what `fit` holds `plan` runs, and a sentence about it is judged."""
    model, lengths = "meta-llama/Llama-3.1-70B", {"in_": 2000, "out": 300, "precision": "bf16"}
    for count in counts:
        held = cw.fit(model, chips=chip, count=count, precision="bf16", context=2300).fits[0].verdict != "no"
        for task in ("local", "batch"):
            try:
                cw.plan(model, have=f"{count}x{chip}", task=task, evidence="none", **lengths)
                ran = True
            except InfeasibleError:
                ran = False
            assert ran == held, (count, chip, task)
        said = f"{count}x {spoken} run {model} at 1 tokens/s in bf16"
        judged = False
        with contextlib.suppress(ChipwiseError):
            (found,) = check_statement(said).statements
            judged = "does not fit" not in found.because
        assert judged == held, said
