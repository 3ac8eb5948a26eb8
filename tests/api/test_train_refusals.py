"""Training plans that there are not: one line, and what is legal nearby."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest

from chipwise.api.train_course import Wanted
from chipwise.api.train_input import USUAL, asked, check_chip
from chipwise.catalog.chips import get_chip
from chipwise.errors import InfeasibleError, UnknownNameError, UsageError
from chipwise.predict.training.course import Failures
from command_line import Run
from trained import train_plan

ROW = "meta-llama/Llama-3.1-8B"


def test_hints_do_not_contradict_each_other() -> None:
    """Two RTX 4080 meet at most and do not hold the model: neither more nor fewer of them help."""
    with pytest.raises(InfeasibleError, match=r"not on 1 or 2: does not fit, and no more chips meet") as raised:
        train_plan("meta-llama/Llama-3.1-70B", chips=("rtx-4080",), counts=(1, 2, 8), tokens=1e9)
    assert "more chips, " not in str(raised.value)


def test_a_refusal_names_changes_with_which_the_run_fits() -> None:
    """Llama-3.1-70B in 4 bits on 48 GB, as Unsloth publishes it; Hugging Face's loss needs shorter sequences."""
    ask = {"task": "finetune", "method": "qlora", "chips": ("rtx-a6000",)}
    with pytest.raises(InfeasibleError, match="what works: --trainer unsloth, --seq 1024") as raised:
        train_plan("meta-llama/Llama-3.1-70B", counts=(1,), **ask, trainer="usual")
    assert "recomputation, or" not in str(raised.value)  # that was tried
    for change in ({"trainer": "unsloth"}, {"seq": 1024}):
        assert train_plan("meta-llama/Llama-3.1-70B", counts=(1,), **ask, **change).plans
    open_ = train_plan("meta-llama/Llama-3.1-70B", counts=(1,), **ask).plans[0]
    assert open_.instead_of == "hf-trainer"
    assert open_.stack == "unsloth"  # torchtune fits too, takes the same time within 1 %, and is developed no longer


def test_a_trainer_without_several_passes_to_a_step_takes_a_smaller_batch() -> None:
    """The usual one gives way, one that was asked for is refused."""
    asked = {"chips": ("h100-sxm5-80gb",), "counts": (64,), "trainer": "fms-fsdp"}
    report = train_plan(ROW, **asked)  # type: ignore[arg-type]
    assert any("512 sequences per step on 64 chips" in line for line in report.assumptions)
    assert any("all that one pass of every rank holds" in line for line in report.assumptions)
    with pytest.raises(InfeasibleError, match="--global-batch 512"):
        train_plan(ROW, **asked, global_batch=1024)  # type: ignore[arg-type]


def test_a_chip_alone_and_a_price_by_the_hour_are_told_as_such() -> None:
    with pytest.raises(InfeasibleError, match="joined to no other and no network is known: use at most 1"):
        train_plan(ROW, chips=("m3-max",), counts=(8,), task="finetune")
    with pytest.raises(InfeasibleError, match=r"cheapest: \$[\d,]+ at \$[\d.]+/h on"):
        train_plan(ROW, chips=("h100",), counts=(64,), max_usd_per_h=1.0)


def test_assumptions_are_those_of_the_plans_that_are_shown() -> None:
    """A batch moved for 3 chips is nothing to a plan of one; figures as given stand there."""
    own = {"changes": {"hbm": "4TB/s"}, "network_figures": {"nic": "200Gb/s"}}
    report = train_plan(ROW, chips=("h100",), counts=(1, 3), task="finetune", max_usd_per_h=8.0, **own)  # type: ignore[arg-type]
    assert {p.chips for p in report.plans} == {1}
    assert not any("on 3 chips" in line for line in report.assumptions)
    assert {"chips: hbm 4TB/s, as given", "network: nic 200Gb/s, as given"} <= set(report.assumptions)


def test_experts_are_cut_over_ranks_that_there_are() -> None:
    moe = "mistralai/Mixtral-8x7B-v0.1"
    with pytest.raises(UsageError, match="4 chips of a stage"):
        train_plan(moe, chips=("h100",), counts=(16,), tokens=1e9, layout={"pp": 4, "ep": 8})


def test_a_deadline_asks_for_more_chips_than_the_usual_counts() -> None:
    ask = {"chips": ("h100",), "tokens": 15e12}
    with pytest.raises(InfeasibleError, match="global-batch than 1,024"):
        train_plan("meta-llama/Llama-3.1-405B", deadline_days=30.0, **ask)  # type: ignore[arg-type]
    plans = train_plan(ROW, deadline_days=10.0, **ask).plans  # type: ignore[arg-type]
    assert min(p.chips for p in plans) == 4096
    assert plans[0].days.mid <= 10.0


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"tokens": 0}, UsageError, "at least 1"),
        ({"seq": 0}, UsageError, "seq"),
        ({"global_batch": -1}, UsageError, "global_batch"),
        ({"counts": (0,)}, UsageError, "at least 1 chip"),
        ({"precision": "fp7"}, UnknownNameError, "fp8"),
        ({"chips": ("h100-sxm6",)}, UnknownNameError, "did you mean"),
        ({"deadline_days": 1e-6}, InfeasibleError, "no plan"),
        ({"chips": ("rtx-4080",), "counts": (64,)}, InfeasibleError, "network"),
        ({"chips": ("a100-sxm4-80gb",), "precision": "fp8"}, InfeasibleError, "no fp8 unit"),
        ({"chips": ("tpu-v5p",), "precision": "fp8"}, InfeasibleError, "no faster than 16 bit"),
        ({"chips": ("tpu-v6e",), "task": "finetune", "method": "qlora"}, InfeasibleError, "method lora"),
        ({"layout": {"tp": 3}}, UsageError, "nearest: 2 or 4"),
        ({"layout": {"pp": 64}}, UsageError, "at most 32"),
        ({"layout": {"tp": 16}}, UsageError, "does not divide 8 chips"),
        ({"layout": {"tp": "1.5"}}, UsageError, "for example 1"),
        ({"layout": {"tp": 16}, "counts": (16,)}, InfeasibleError, "at most 8"),
        ({"layout": {"recompute": "some"}}, UnknownNameError, "as in 30%"),
        ({"layout": {"recompute": "130%"}}, UnknownNameError, "as in 30%"),
        ({"layout": {"cp": 3}, "counts": (24,)}, UsageError, "nearest: 2 or 4"),
        ({"layout": {"ep": 2}}, UsageError, "no experts"),
        ({"layout": {"vp": 2}}, UsageError, "as in pp=4"),
        ({"layout": {"zero": 4}}, UsageError, "0 or 1 or 2 or 3"),
        ({"layout": {"shard": 3}}, UsageError, "nearest: 2 or 4"),
        ({"layout": {"zero": 0, "shard": 8}}, UsageError, "leave shard out"),
        ({"layout": {"zero": 2, "pp": 2}}, InfeasibleError, "choose zero 1 or 3"),
        ({"layout": {"zero": 2, "dp": 1, "tp": 8}}, InfeasibleError, "fix less"),
        ({"memory": {"optimizer": "adamw-8bit"}, "trainer": "nemo"}, InfeasibleError, "optimizer=adamw or adamw-bf16"),
        ({"counts": (10_000,), "global_batch": 1024}, InfeasibleError, "as on 9,728 or 10,240"),
        ({"max_chips": 4}, UsageError, "at most 4"),
        ({"network_figures": {"nics": "8"}}, UnknownNameError, "did you mean nic"),
        ({"network_figures": {"oversubscription": "0"}}, UsageError, "out of range"),
        ({"network_figures": {"nic": "1Gb/s", "host": "8Gb/s"}}, UsageError, "host of all chips"),
        ({"counts": (), "max_usd_per_h": 0.01}, InfeasibleError, "relax"),
        ({"wanted": Wanted(Failures(chip_mtbf_h=0.01))}, InfeasibleError, "failures come faster"),
        ({"layout": {"dp": 8, "micro_batch": 3}, "global_batch": 64}, UsageError, "nearest: 16 or 32"),
        ({"layout": {"sp": 2}}, UnknownNameError, "micro_batch"),
        ({"layout": {"offload": 2}}, UsageError, "0 or 1"),
        ({"layout": {"pp": 8, "vp": 8}}, UsageError, "vp at most 4"),
        ({"layout": {"pp": 4, "schedule": "zero"}}, UnknownNameError, "did you mean zero-bubble"),
        ({"layout": {"pp": 1, "schedule": "gpipe"}}, UsageError, "as in pp=4"),
        ({"layout": {"pp": 4, "schedule": "gpipe"}, "trainer": "nemo"}, UsageError, "knows 1f1b, interleaved"),
        ({"layout": {"stash": 1}, "trainer": "torchtitan"}, UsageError, "keeps activations on the device"),
        ({"layout": {"recompute": "30%"}, "trainer": "torchtitan"}, UsageError, "selective, full"),
        ({"layout": {"offload": 1}, "trainer": "torchtitan"}, UsageError, "keeps the optimiser on the"),
        ({"layout": {"pp": 4, "zero": 3}, "trainer": "nemo"}, UsageError, "FSDP in one stage"),
        ({"layout": {"zero": 3, "shard": 4}, "trainer": "deepspeed"}, UsageError, "over all ranks"),
        ({"method": "dora"}, UnknownNameError, "qlora"),
        ({"method": "qlora", "precision": "fp8"}, UsageError, "leave it out"),
        ({"max_usd": 0.01}, InfeasibleError, "cheapest"),
        ({"chips": ("rtx-4080",), "counts": (8,)}, InfeasibleError, "use at most 2"),
        ({"chips": ("rtx-5090",), "precision": "mxfp8"}, InfeasibleError, "data-centre Blackwell alone"),
        ({"chips": ("tpu-v7x",), "precision": "nvfp4"}, InfeasibleError, "no fp4 unit (plan in fp8 or bf16)"),
        ({"chips": ("mi355x",), "precision": "nvfp4"}, InfeasibleError, "plan in mxfp8 or fp8"),
        ({"chips": ("m4-max",), "counts": (1,), "layout": {"offload": 1}}, InfeasibleError, "offload 0"),
    ],
)
def test_bad_input_is_one_line(arguments: dict[str, object], error: type[Exception], says: str) -> None:
    asked: dict[str, object] = {"chips": ("h100-sxm5-80gb",), "counts": (8,), "tokens": 1e9, **arguments}
    with pytest.raises(error) as raised:
        train_plan(ROW, **asked)  # type: ignore[arg-type]
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("chip", ["h100-sxm5-80gb", "mi300x", "tpu-v7x", "trainium2"])
def test_units_of_8_bits_take_no_scales_per_block_before_those_of_4(chip: str) -> None:
    with pytest.raises(InfeasibleError, match=r"scales per block of 32.*plan in fp8 or bf16"):
        train_plan(ROW, chips=(chip,), counts=(8,), precision="mxfp8")


def test_formats_are_planned_where_software_trains_in_them() -> None:
    for precision, chips in {
        "mxfp8": {"b200-sxm", "mi355x", "trainium3"},
        "nvfp4": {"b200-sxm", "gb300-nvl72"},
    }.items():
        report = train_plan(ROW, chips=tuple(chips), counts=(8,), tokens=1e9, precision=precision)
        assert {p.chip for p in report.plans} == chips


@pytest.mark.parametrize("chip", ["qaic100-std", "qaic100-ultra", "inferentia1", "inferentia2", "tpu-8i"])
@pytest.mark.parametrize("task", ["train", "finetune"])
def test_chips_made_for_inference_are_refused_by_name(chip: str, task: Literal["train", "finetune"]) -> None:
    with pytest.raises(InfeasibleError, match=f"{chip} is made for inference"):
        train_plan(ROW, task=task, chips=(chip,), counts=(8,))


def test_a_chip_of_ones_own_is_made_for_what_it_is_like() -> None:
    own = replace(get_chip("trainium1"), id="mine", like="inferentia2")
    with pytest.raises(UsageError, match="mine is made for inference"):
        check_chip(own, asked(1e9, 4096, 8, "bf16", "train", None))


def test_a_narrow_type_that_buys_nothing_is_no_plan_but_may_have_run() -> None:
    """Gaudi 3 multiplies 8 bit no faster than 16: the run takes as long as one in 16 bit."""
    fp8, bf16 = (asked(1e9, 512, 128, p, "finetune", "lora") for p in ("fp8", "bf16"))
    chip = get_chip("gaudi3")
    with pytest.raises(UsageError, match="fp8 no faster than 16 bit"):
        check_chip(chip, fp8)
    check_chip(chip, fp8, known_to_run=True)
    narrow, wide = (
        train_plan(ROW, chips=("gaudi3",), counts=(8,), tokens=1e9, precision=ask.precision, known_to_run=True)
        .plans[0]
        .step_s.mid
        for ask in (fp8, bf16)
    )
    assert narrow == pytest.approx(wide, rel=0.1)
    with pytest.raises(UsageError, match="no fp4 unit"):
        check_chip(get_chip("h100-sxm5-80gb"), replace(fp8, precision="nvfp4"), known_to_run=True)


@pytest.mark.parametrize("chip", ["m4-max", "gb10-dgx-spark", "jetson-thor-t5000", "igpu-radeon-8060s"])
def test_an_optimiser_has_no_host_memory_to_go_to_where_there_is_one_memory(chip: str) -> None:
    """What the usual trainer keeps fits nowhere there; a leaner policy does, and is named."""
    ask = {"task": "train", "method": "full", "chips": (chip,), "counts": (1,), "trainer": "usual"}
    kept = {"optimizer": "adamw"}
    with pytest.raises(InfeasibleError, match="not on 1: does not fit"):
        train_plan(ROW, **ask, memory=kept)  # type: ignore[arg-type]
    try:
        plan = train_plan(ROW, **ask).plans[0]  # type: ignore[arg-type]
    except InfeasibleError:
        return
    assert "adamw-" in plan.policy
    assert plan.own_policy_s is None
    assert plan.layout.offload == 0


def test_a_processor_on_a_link_has_a_memory_of_its_own() -> None:
    """What Megatron keeps fits there alone; a trainer that keeps less needs no host."""
    ask = {"task": "finetune", "method": "full", "chips": ("gh200-96gb",), "counts": (1,)}
    assert train_plan(ROW, **ask, trainer="nemo").plans[0].layout.offload == 1  # type: ignore[arg-type]
    report = train_plan(ROW, **ask, trainer="axolotl")  # type: ignore[arg-type]
    plan = report.plans[0]
    assert plan.layout.offload == 0
    assert "adamw-" in plan.policy
    assert plan.own_policy_s is not None  # its own policy needs the host, and longer
    assert plan.own_policy_s > plan.step_s.mid
    report = train_plan(ROW, **ask, trainer="torchtune")  # type: ignore[arg-type]
    assert any(f"{report.plans[0].stack} keeps adamw-" in line for line in report.assumptions)


def test_a_full_fine_tune_names_what_other_policies_of_memory_cost() -> None:
    ask = {"task": "finetune", "chips": ("a100-sxm4-80gb",), "counts": (8,), "trainer": "hf-trainer"}
    said = train_plan(ROW, **ask, method="full").plans[0].why[-1]  # type: ignore[arg-type]
    for way in ("optimizer=adamw-bf16,", "optimizer=adamw-8bit,", "the optimiser in host memory"):
        assert way in said
    adapted = train_plan(ROW, **ask, method="lora")  # type: ignore[arg-type]
    assert not any("kept otherwise" in line for line in adapted.plans[0].why)


def test_chips_that_miss_the_limits_are_named_with_what_they_miss() -> None:
    report = train_plan("meta-llama/Llama-3.1-70B", deadline_days=20.0, max_usd=9e5)
    shown = {p.chip for p in report.plans}
    missed = {r.chip: r.detail for r in report.refused if r.reason == "LIMITS"}
    assert shown | set(missed) == set(USUAL)
    assert not shown & set(missed)
    assert "of 900 k $" in missed["tpu-v5p"]


def test_what_a_named_trainer_sets_is_what_is_priced_and_launched(run: Run) -> None:
    asked = ("meta-llama/Llama-3.1-8B", "--task", "train", "--trainer", "maxtext-gpu", "--chips", "h100")
    (plan,) = run("plan", *asked, "--counts", "64", "--format", "json").json["plans"]
    assert plan["layout"]["recompute"] == "selective"
    refused = run("plan", *asked, "--counts", "64", "--layout", "recompute=none").refused(2)
    assert "recompute none: this trainer knows selective, full" in refused
