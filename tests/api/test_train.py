"""Training plans: what is asked decides which chips, counts and layouts come out."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from chipwise.api.train_counts import batch_for
from chipwise.api.train_course import Wanted
from chipwise.api.train_input import USUAL
from chipwise.catalog.preferences import preferences
from chipwise.errors import ChipwiseError, InfeasibleError, UsageError
from chipwise.predict.training.course import Failures
from chipwise.report.records import Figure
from chipwise.report.train_assemble import Aim, rank_runs
from chipwise.report.training import TrainPlanRecord, train_view
from trained import train_plan

ROW = "meta-llama/Llama-3.1-8B"


def test_without_names_the_usual_chips_are_tried_and_named() -> None:
    report = train_plan(ROW, counts=(64,), tokens=1e11)
    assert {p.chip for p in report.plans} == set(USUAL)
    assert any(all(name in line for name in USUAL) for line in report.assumptions)
    table = train_view(report)
    at = table.columns.index("basis")
    bases = {p.chip: row[at] for p, row in zip(report.plans, table.rows, strict=True)}
    assert (bases["h100-sxm5-80gb"], bases["mi300x"]) == ("calibrated", "modelled")


def test_chips_without_bf16_train_in_fp16() -> None:
    report = train_plan(ROW, chips=("v100",), counts=(64,), tokens=1e11)
    assert report.plans[0].precision == "fp16"
    assert any("has no bf16" in line for line in report.assumptions)


def test_adapters_count_four_flops() -> None:
    said = [
        train_plan(ROW, task="finetune", method=m, counts=(8,), tokens=1e8, chips=("h100",)).assumptions[-1]
        for m in ("full", "lora")
    ]
    assert "6 FLOPs" in said[0]
    assert "4 FLOPs" in said[1]


def test_packed_documents_pay_for_their_own_pairs_alone() -> None:
    def days(**said: object) -> float:
        run = train_plan(ROW, chips=("h100",), counts=(64,), tokens=1e11, seq=32768, **said)
        return run.plans[0].days.mid

    whole, short, spread = (days(), days(documents={"mean": "1200"}), days(documents={"mean": "1200", "cv": "1.5"}))
    assert short < spread < 0.7 * whole
    assert days(documents={"mean": "100000"}) == whole
    for said, words in (
        ({"cv": "1"}, "mean length"),
        ({"men": "3"}, "did you mean mean"),
        ({"mean": "x"}, "cannot read"),
    ):
        with pytest.raises(ChipwiseError, match=words):
            days(documents=said)


def test_degrees_can_be_fixed() -> None:
    report = train_plan(ROW, chips=("h100",), counts=(64,), tokens=1e11, layout={"tp": 2, "pp": 4})
    assert (report.plans[0].layout.tp, report.plans[0].layout.pp) == (2, 4)
    free = train_plan(ROW, chips=("h100",), counts=(64,), tokens=1e11)
    assert free.plans[0].step_s.mid <= report.plans[0].step_s.mid


def test_layers_are_recomputed_by_share() -> None:
    """More of them take longer and less memory."""
    plans = [
        train_plan(ROW, chips=("h100",), counts=(8,), tokens=1e9, layout={**fixed, "recompute": share}).plans[0]
        for fixed in ({"tp": 2, "zero": 1, "micro_batch": 1, "offload": 0},)
        for share in ("none", "30%", "0.6", "full")
    ]
    assert [p.layout.recompute for p in plans] == ["none", "30% of layers", "60% of layers", "full"]
    times, held = [p.step_s.mid for p in plans], [p.memory_bytes for p in plans]
    assert times == sorted(times)
    assert held == sorted(held, reverse=True)


def test_sharding_can_be_fixed() -> None:
    ask = {"counts": (64,), "tokens": 1e11, "chips": ("h100",)}
    found = train_plan(ROW, layout={"zero": 3, "shard": 8}, **ask).plans[0].layout  # type: ignore[arg-type]
    assert (found.sharding, found.shard_ranks) == ("fsdp", 8)
    two = train_plan(ROW, layout={"zero": 2}, global_batch=64, **ask).plans[0].layout  # type: ignore[arg-type]
    assert (two.sharding, two.micro_batches) == ("zero-2", 1)


def test_own_chips_cost_nothing_and_are_the_most() -> None:
    report = train_plan(ROW, have={"h100": 12, "b200-sxm": 4}, tokens=1e11)
    assert all(p.usd is None for p in report.plans)
    most = {c: max(p.chips for p in report.plans if p.chip == c) for c in ("h100-sxm5-80gb", "b200-sxm")}
    assert most == {"h100-sxm5-80gb": 12, "b200-sxm": 4}


def test_failures_of_the_user_change_goodput_and_interval() -> None:
    """Young and Daly by hand: 1,024 chips of 10,000 h fail every 9.77 h; sqrt(2 x 300 s x 35,156 s) - 300 s."""
    stops = Wanted(Failures(10_000.0, 300.0, 600.0, 300.0))
    plan = train_plan(ROW, chips=("h100",), counts=(1024,), wanted=stops).plans[0]
    interval = (2.0 * 300.0 * 10_000.0 * 3600.0 / 1024.0) ** 0.5 - 300.0
    assert plan.checkpoint_s == pytest.approx(interval)
    lost = ((interval + 300.0) / 2.0 + 600.0) / (10_000.0 * 3600.0 / 1024.0)
    assert plan.goodput == pytest.approx((1.0 - lost) * interval / (interval + 300.0))


def test_a_network_of_ones_own() -> None:
    """A slower card slows; oversubscription slows what crosses leaves, not rings of neighbours; and a card joins chips
    that have none."""

    def step(model: str, layout: dict[str, int | str], figures: dict[str, str]) -> float:
        report = train_plan(model, chips=("h100",), counts=(1024,), tokens=1e12, layout=layout, network_figures=figures)
        return report.plans[0].step_s.mid

    dense, tree = ("meta-llama/Llama-3.1-70B", {"tp": 8, "pp": 8}), {"oversubscription": "8", "leaf": "16"}
    assert step(*dense, {}) == step(*dense, tree) < step(*dense, {"nic": "12.5GB/s"})
    own = train_plan(
        dense[0], chips=("h100",), counts=(1024,), layout=dense[1], tokens=1e12, changes={"scaleout": "12.5GB/s"}
    )
    assert own.plans[0].step_s.mid == step(*dense, {"nic": "12.5GB/s"})
    routed = ("deepseek-ai/DeepSeek-V3", {"tp": 1, "pp": 4, "ep": 256, "recompute": "full"})
    assert step(*routed, {}) < step(*routed, tree)
    joined = train_plan(
        ROW, chips=("rtx-4090",), counts=(16,), tokens=1e9, network_figures={"nic": "3GB/s"}, method="qlora"
    )
    assert joined.plans[0].chips == 16


def test_a_fine_tune_is_short_and_starts_at_one_chip() -> None:
    report = train_plan(ROW, task="finetune", chips=("h100", "tpu-v6e"))
    assert report.tokens == 1e8
    assert {p.chips for p in report.plans if p.chip == "h100-sxm5-80gb"} == {1, 2, 4, 8}
    assert train_plan("meta-llama/Llama-3.1-405B", task="finetune", chips=("h100",)).plans[0].chips == 8


def test_packed_weights_are_modelled_on_any_chip() -> None:
    ask = {"task": "finetune", "chips": ("h100",), "counts": (8,), "trainer": "nemo"}
    packed = train_plan(ROW, method="qlora", **ask).plans[0].step_s  # type: ignore[arg-type]
    plain_ones = train_plan(ROW, method="full", **ask).plans[0].step_s  # type: ignore[arg-type]
    assert (packed.basis, plain_ones.basis) == ("modelled", "calibrated")
    assert packed.high / packed.mid > plain_ones.high / plain_ones.mid


@pytest.mark.parametrize(("chips", "batch"), [(8, 1024), (12, 1008), (100, 1000), (3000, 1125)])
def test_odd_counts_move_the_batch_and_say_so(chips: int, batch: int) -> None:
    assert batch_for(1024, chips, {}) == batch
    report = train_plan(ROW, chips=("tpu-v5p",), counts=(chips,))
    assert report.plans[0].global_batch == batch
    said = any(f"{batch:,} sequences per step on {chips:,} chips" in line for line in report.assumptions)
    assert said == (batch != 1024)


def test_a_batch_that_is_given_stays() -> None:
    assert batch_for(1024, 24, {"tp": 3}) == 1024
    report = train_plan(ROW, chips=("h100",), counts=(12,), global_batch=1024)
    assert report.plans[0].global_batch == 1024
    with pytest.raises(InfeasibleError, match="3 ranks cannot share a batch of 1,024"):
        train_plan(ROW, chips=("tpu-v5e",), counts=(3,), global_batch=1024)


def test_finetuning_freezes_the_weights() -> None:
    adapters, all_weights = (
        train_plan(ROW, task="finetune", method=m, chips=("h100",), counts=(8,), global_batch=64, trainer="nemo").plans[
            0
        ]
        for m in ("lora", "full")
    )
    assert adapters.step_s.mid < all_weights.step_s.mid
    assert adapters.memory["optimiser"] < all_weights.memory["optimiser"]


def test_a_run_unlike_what_the_model_is_made_for_says_so() -> None:
    said = train_plan("microsoft/phi-2", chips=("h100",), counts=(8,), seq=8192).assumptions
    assert any("more than the 2,048 tokens" in line for line in said)
    said = train_plan("deepseek-ai/DeepSeek-V3", chips=("h100",), counts=(1024,)).assumptions
    assert any("trained in bf16, though published in fp8_block" in line for line in said)
    assert any("over the dense peak of bf16" in line for line in said)


@pytest.mark.parametrize(("model", "tokens"), [("microsoft/phi-2", 2048), (ROW, 4096)])
def test_sequences_are_as_long_as_usual_and_no_longer_than_the_model_reads(model: str, tokens: int) -> None:
    report = train_plan(model, chips=("h100",), counts=(8,), tokens=1e9)
    assert report.plans[0].seq == tokens
    assert not any("can read" in line for line in report.assumptions)
    longer = train_plan("microsoft/phi-2", chips=("h100",), counts=(8,), tokens=1e9, seq=4096)
    assert any("2,048 tokens that" in line for line in longer.assumptions)


def test_an_8b_is_tuned_on_one_card_of_24_gb() -> None:
    """torchtune reports 16.2 GiB for adapters of rank 8 at two sequences of 2,048."""
    published = train_plan(
        ROW, task="finetune", chips=("rtx-4090",), counts=(1,), seq=2048, trainer="torchtune",
        layout={"recompute": "full", "micro_batch": 2}, adapters={"rank": "8", "targets": "attention"},
    ).plans[0]  # fmt: skip
    assert published.memory_bytes == pytest.approx(16.2 * 2**30, rel=0.1)
    usual = train_plan(ROW, task="finetune", chips=("rtx-4090",), counts=(1,)).plans[0]
    assert usual.verdict == "fits"


def test_a_trainer_runs_the_layouts_that_it_has() -> None:
    with pytest.raises(UsageError, match="tp 2: this trainer cuts data alone"):
        train_plan(ROW, chips=("h100",), counts=(8,), trainer="hf-trainer", layout={"tp": 2})
    at = train_plan(ROW, chips=("h100",), counts=(8,), trainer="hf-trainer").plans[0].layout
    assert (at.tp, at.pp, at.cp) == (1, 1, 1)


def test_an_optimiser_in_host_memory_takes_its_time() -> None:
    """Llama-2-7B with ZeRO-2 on eight A800 takes 2.3 times as long (DeepSpeed 0.14, 64 sequences of 4,096)."""
    llama = "transformer:layers=32,hidden=4096,heads=32,ffn=11008,vocab=32000"
    here, away = (
        train_plan(
            llama, chips=("a100",), counts=(8,), seq=4096, global_batch=64, trainer="deepspeed",
            layout={"zero": 2, "micro_batch": 1, "recompute": "full", "offload": n},
        ).plans[0]
        for n in (0, 1)
    )  # fmt: skip
    assert away.step_s.mid / here.step_s.mid == pytest.approx(2.3, rel=0.2)
    assert away.memory["optimiser"] == 0.0
    assert away.host_bytes > 12.0 * 6.7e9 / 8


def test_deepseek_v3_as_deepseek_trained_it() -> None:
    """tp 1, pp 16, ep 64 in FP8 on 2,048 H800: 180 thousand GPU hours for a trillion tokens (arXiv 2412.19437)."""
    at = {"tp": 1, "pp": 16, "cp": 1, "ep": 64, "micro_batch": 1}
    p = train_plan(
        "deepseek-ai/DeepSeek-V3", chips=("h100",), counts=(2048,), precision="fp8", seq=4096, global_batch=15360,
        layout=at, trainer="hai-llm",
    ).plans[0]  # fmt: skip
    assert p.verdict in ("fits", "tight")
    hours = 1e12 / p.tokens_per_s.mid * 2048 / 3600
    assert hours == pytest.approx(180e3, rel=0.15)


@pytest.mark.parametrize(("chips", "tflops"), [(8192, 430.0), (16384, 400.0)])
def test_llama_405b_as_meta_trained_it(chips: int, tflops: float) -> None:
    """Table 4 of The Llama 3 Herd of Models: 16 M tokens a step, tp 8, pp 16, FSDP over 64 and 128."""
    p = train_plan(
        "meta-llama/Llama-3.1-405B", chips=("h100",), counts=(chips,), seq=8192, global_batch=2048, trainer="meta",
        layout={"tp": 8, "pp": 16, "cp": 1},
    ).plans[0]  # fmt: skip
    assert p.tflops_per_chip == pytest.approx(tflops, rel=0.06)
    assert p.verdict == "fits"


def test_a_stale_price_yields_to_a_fresh_one_that_it_ties_with() -> None:
    """A tenth cheaper at a price that is older than 90 days comes second, half as dear first."""
    plan = train_plan(ROW, counts=(64,), tokens=1e11, chips=("h100",)).plans[0]
    assert plan.price is not None
    assert plan.usd is not None

    def old(share: float) -> TrainPlanRecord:
        usd = Figure(*(share * x for x in (plan.usd.mid, plan.usd.low, plan.usd.high)), plan.usd.basis, False)
        return replace(plan, chip="other", usd=usd, price=replace(plan.price, stale=True))

    fresh = replace(plan, price=replace(plan.price, stale=False))
    assert [p.chip for p in rank_runs((old(0.9), fresh), Aim())] == [plan.chip, "other"]
    assert [p.chip for p in rank_runs((old(0.5), fresh), Aim())] == ["other", plan.chip]


def test_what_is_done_sooner_comes_first_among_equal_costs() -> None:
    plans = train_plan(ROW, chips=("h100",), tokens=1e12).plans
    within = [p for p in plans if p.usd and p.usd.mid <= plans[0].usd.mid * 1.05]
    assert plans[0].days.mid == min(p.days.mid for p in within)
    assert plans[0].days.mid < 90.0


def test_within_a_deadline_the_cheapest_is_first() -> None:
    """What keeps it at the upper end of its time comes before what may miss it, and of those the cheapest; without a
    deadline the sooner of equal costs is first."""
    ask = {"chips": ("h100",), "counts": (8, 16, 32, 64), "tokens": 2e11}
    free = train_plan("meta-llama/Llama-3.1-8B", **ask).plans  # type: ignore[arg-type]
    assert free[0].chips == 64
    most = 0.98 * next(p for p in free if p.chips == 16).days.high
    bound = train_plan("meta-llama/Llama-3.1-8B", deadline_days=most, **ask).plans  # type: ignore[arg-type]
    assert {p.chips for p in bound} == {16, 32, 64}  # 16 keep it at the middle of the time
    assert bound[-1].chips == 16
    sure = [p.usd.mid for p in bound[:-1] if p.usd]
    # costs within the noise of prices go to the sooner one
    assert all(usd <= (1.0 + preferences().equal) * more for usd, more in pairwise(sure))


def test_what_one_card_holds_with_ease_keeps_its_optimiser_in_fp32() -> None:
    """A third of a billion parameters on 80 GB, three billion as users of that trainer load them: in 16 bit."""
    names = "BAAI/bge-large-en-v1.5", "meta-llama/Llama-3.2-3B"
    asked = {"task": "finetune", "method": "full", "chips": ("h100",), "counts": (1,), "trainer": "hf-trainer"}
    small, large = (train_plan(name, **asked).plans[0].policy for name in names)
    assert small == ""
    assert "master=no" in large


def test_a_network_is_said_by_host_as_well_as_by_chip() -> None:
    """Eight A100 behind one card of 100 Gb/s."""
    one, other = (
        train_plan(ROW, chips=("a100-sxm4-80gb",), counts=(16,), tokens=1e10, network_figures=figures).plans[0]
        for figures in ({"host": "100GbE"}, {"nic": "12.5Gb/s"})
    )
    assert one.step_s == other.step_s
