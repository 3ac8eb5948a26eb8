"""What a training plan may claim: the interval that its trainer and its chip have earned."""

from __future__ import annotations

import itertools
import math

from chipwise.calibrate.parameters import shipped_parameters
from chipwise.evidence.training_tiers import CALIBRATED, tier_name, tier_of, tiers, write_tiers
from command_line import Run

HOPPER = {"stack": "nemo", "generation": "hopper", "vendor": "nvidia", "moe": "dense", "kind": "fused"}
FAR = ", compiled"


def test_only_pairs_with_rows_of_their_own_count_as_seen() -> None:
    numbers = shipped_parameters()
    own = tier_of(numbers, HOPPER)
    assert own == tiers()["dense, seen"]
    for other in ({"stack": "primus", "generation": "cdna3", "vendor": "amd"}, {"stack": "pytorch-fsdp"}):
        found = tier_of(numbers, HOPPER | other)
        assert found == tiers()["dense, not seen"]
        assert found.basis == "modelled"
        assert found.high / found.low > own.high / own.low
    assert tier_of(numbers, HOPPER, packed=True) == tiers()["dense, not seen"]
    assert tier_of(numbers, HOPPER | {"moe": "moe"}) == tiers()["experts, seen"]
    # dense runs of a trainer say nothing of its experts, step times nothing of its memory
    llama = HOPPER | {"stack": "llm-foundry"}
    assert tier_of(numbers, llama) == tiers()["dense, seen"]
    assert tier_of(numbers, llama | {"moe": "moe"}) == tiers()["experts, not seen"]
    assert tier_of(numbers, llama, "memory") == tiers()["memory, not seen"]
    assert tier_of(numbers, {"stack": "torchtitan"}, "memory") == tiers()["memory, seen"]


def test_less_evidence_is_never_surer() -> None:
    known = tiers()
    for figure, *tail in (("experts", FAR), ("dense", FAR), ("memory",)):
        order = [f"{figure}, {far}" for far in ("seen", "not seen", *("not seen" + t for t in tail))]
        for near, far in itertools.pairwise(order):
            assert known[far].low <= known[near].low, (near, far)
            assert known[far].high >= known[near].high, (near, far)


def test_an_interval_that_nothing_tested_is_provisional() -> None:
    numbers = shipped_parameters()
    far = tier_of(numbers, {"stack": "s", "generation": "g", "moe": "moe", "kind": "xla"})
    assert far == tiers()["experts, not seen" + FAR]
    assert far.provisional
    for tier in tiers().values():
        assert tier.provisional is (tier.covered == 0.0)
    dense = {"stack": "s", "generation": "g", "moe": "dense", "kind": "fused"}
    assert not tier_of(numbers, dense).provisional


def test_a_plan_says_that_its_interval_is_provisional(run: Run) -> None:
    asked = ("plan", "mistralai/Mixtral-8x7B-v0.1", "--task", "train", "--counts", "64", "--format", "json")
    for chip, untested in (("gaudi3", True), ("mi300x", False)):
        (plan,) = run(*asked, "--chips", chip).json["plans"]
        for figure in ("days", "step_s", "tokens_per_s"):
            assert plan[figure]["provisional"] is untested, (chip, figure)


def test_calibrated_is_earned_where_publications_are_left_out() -> None:
    for tier in tiers().values():
        assert tier.low < 1.0 < tier.high
        assert tier.rows > 30
        assert tier.basis == "modelled" or tier.covered >= CALIBRATED


def test_the_table_is_what_is_written() -> None:
    lines = write_tiers(tiers()).splitlines()
    assert len(lines) == 1 + len(tiers())
    name, low, *_ = lines[1].replace('"', "").rsplit(",", 5)
    assert math.isclose(float(low), tiers()[name].low)
    labels = {"stack": "a", "generation": "b", "moe": "moe", "kind": "xla"}
    assert tier_name("time", labels, {"moe=a+b"}) == "experts, seen"
    assert tier_name("time", labels, {"dense=a+b", "memory=a"}) == "experts, not seen, compiled"
    assert tier_name("memory", labels, {"memory=a"}) == "memory, seen"
