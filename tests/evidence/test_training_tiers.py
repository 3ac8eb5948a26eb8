"""What a training plan may claim: the words that its trainer and its chip have earned, and its interval."""

from __future__ import annotations

from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.chips import get_chip
from chipwise.evidence.axes import trained_axes
from chipwise.evidence.tiers import ALONE, Tier, tier_name, trained_tier
from command_line import Run

HOPPER = {"stack": "nemo", "generation": "hopper", "vendor": "nvidia", "moe": "dense", "kind": "fused"}


def tier(chip: str = "h100-sxm5-80gb", method: str = "full", what: str = "time", **labels: str) -> Tier:
    known = HOPPER | labels
    levels = trained_axes(
        get_chip(chip), known["stack"], experts=known["moe"] == "moe", method=method, precision="bf16"
    )
    return trained_tier(shipped_parameters(), known, levels, what, packed=method == "qlora")


def test_only_pairs_with_rows_of_their_own_count_as_seen() -> None:
    assert tier().seen
    assert tier().basis == "calibrated"
    for other in ({"stack": "primus", "generation": "cdna3", "vendor": "amd"}, {"stack": "pytorch-fsdp"}):
        found = tier(**other)
        assert not found.seen
        assert found.basis == "modelled"
    assert not tier(method="qlora").seen
    assert tier(moe="moe").basis == "modelled", "experts are never calibrated"
    # dense runs of a trainer say nothing of its experts, step times nothing of its memory
    assert tier(stack="llm-foundry").seen
    assert not tier(stack="llm-foundry", moe="moe").seen
    assert not tier(stack="llm-foundry", what="memory").seen


def test_what_nobody_measured_is_less_sure() -> None:
    near, far = tier(), tier("gaudi3", stack="a-trainer-of-tomorrow")
    assert far.high > near.high
    assert far.provisional
    assert not near.provisional
    assert near.low < near.mid < near.high
    assert tier(what="memory").high != near.high, "bytes have an interval of their own"


def test_no_interval_begins_before_the_kernels_alone(run: Run) -> None:
    found = tier("tpu-v5p", stack="maxtext", generation="tpu-v5p", vendor="google", kind="xla")
    assert found.above(0.5) == found
    assert found.above(0.95).low == ALONE * 0.95 > found.low
    assert found.above(2.0).low == found.mid, "the middle stays inside"
    asked = ("plan", "meta-llama/Llama-3.1-70B", "--task", "train", "--counts", "64", "--format", "json")
    (plan,) = run(*asked, "--chips", "tpu-v5p").json["plans"]
    assert plan["hfu"] * plan["days"]["mid"] / plan["days"]["low"] < 1.0


def test_a_plan_has_an_interval_of_its_memory(run: Run) -> None:
    asked = ("plan", "mistralai/Mixtral-8x7B-v0.1", "--task", "train", "--counts", "64", "--format", "json")
    (plan,) = run(*asked, "--chips", "mi300x").json["plans"]
    held = plan["memory_range"]
    assert held["low"] < held["mid"] == plan["memory_bytes"] < held["high"]
    assert 0.5 < plan["memory_chance"] <= 1.0, "a plan that is printed as fitting is likely to fit"


def test_tiers_in_words() -> None:
    labels = {"stack": "a", "generation": "b", "moe": "moe"}
    assert tier_name("time", labels, seen=True) == "experts, seen"
    assert tier_name("time", labels | {"moe": "dense"}, seen=False) == "dense, not seen"
    assert tier_name("memory", labels, seen=True) == "memory, seen"
