"""The search over layouts, and the plans that come out of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from verdicts import verdict

from chipwise.api.loaded import find_chip, load
from chipwise.api.train import train_plan
from chipwise.api.train_counts import batch_for
from chipwise.api.train_input import USUAL, asked
from chipwise.api.train_job import job_of
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.errors import InfeasibleError, UnknownNameError, UsageError
from chipwise.predict.training.dims import plain, transformer
from chipwise.predict.training.memory import MemoryRates
from chipwise.predict.training.stages import fullest
from chipwise.predict.training.step import step_time
from chipwise.predict.training.values import Cluster, Rates, Recipe, Spread, take
from chipwise.report.train_assemble import Failures
from chipwise.report.train_notes import kept
from chipwise.report.train_shares import waiting
from chipwise.report.train_view import duration, layout_views, scaling_view, train_view
from chipwise.search.training import (
    FITS,
    RISKY,
    Job,
    TrainReason,
    best,
    evaluate,
    layouts,
    point,
    scaling,
)

H100 = Cluster(989e12, 989e12, 80e9, 3.35e12, 450e9, 8.0, 50e9, units=132.0)
SMALL = Job(plain(32, 4096, 32, 16384, 51200), H100, Recipe(), Rates(), MemoryRates(), 64, 4096)
ROW = "meta-llama/Llama-3.1-8B"


@pytest.mark.parametrize("devices", [1, 8, 16, 24])
def test_never_worse_than_one_by_one(devices: int) -> None:
    """Every layout priced alone, with numbers instead of arrays: the same winner."""
    spread = layouts(SMALL, devices)
    priced = evaluate(SMALL, spread)
    chosen = best(priced, 80e9)
    fastest = np.inf
    for i in range(0, len(priced), max(len(priced) // 300, 1)):
        s = take(spread, i)
        t = float(step_time(SMALL.network, s, H100, SMALL.recipe, SMALL.rates).total_s)
        m = float(fullest(SMALL.network, s, SMALL.recipe, SMALL.memory).total_bytes)
        assert t == pytest.approx(priced.seconds[i])
        assert m == pytest.approx(priced.memory_bytes[i])
        if priced.reason[i] == 0 and m <= FITS * 80e9:
            fastest = min(fastest, t)
    if len(chosen):
        assert priced.seconds[chosen[0]] <= fastest


def test_every_layout_uses_all_devices() -> None:
    spread = layouts(SMALL, 48)
    assert np.all(np.asarray(spread.devices) == 48)


def test_nothing_above_95_percent_of_memory_is_a_plan() -> None:
    priced = evaluate(SMALL, layouts(SMALL, 16))
    legal = priced.reason == 0
    assert legal.any()
    assert np.all(priced.memory_bytes[legal] <= RISKY * 80e9)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"tp": 3.0}, TrainReason.TP_HEADS),
        ({"tp": 16.0}, TrainReason.TP_DOMAIN),
        ({"pp": 64.0}, TrainReason.PP_LAYERS),
        ({"dp": 7.0}, TrainReason.BATCH),
        ({"micro_batch": 3.0}, TrainReason.BATCH),
        ({}, TrainReason.MEMORY),
        ({"tp": 8.0, "micro_batch": 1.0, "full": 1.0}, TrainReason.OK),
    ],
)
def test_illegal_layouts_say_what_is_legal(change: dict[str, float], reason: TrainReason) -> None:
    s = replace(Spread(global_batch=64.0, seq=4096.0, zero=0.0, micro_batch=64.0), **change)
    assert verdict(SMALL, s) is reason


def test_experts_are_cut_in_whole_ones() -> None:
    moe = replace(SMALL.network, experts=6.0, top_k=2.0, expert_ffn=4096.0, moe_share=1.0, dense_share=0.0)
    job = replace(SMALL, network=moe)
    assert verdict(job, Spread(ep=4.0, dp=4.0, global_batch=64.0)) is TrainReason.EXPERTS


def test_without_a_network_the_domain_is_the_limit() -> None:
    alone = replace(SMALL, cluster=replace(H100, nic_bytes_per_s=np.nan))
    priced = evaluate(alone, layouts(alone, 16))
    assert not (priced.reason == 0).any()


def test_more_devices_are_faster_and_weak_scaling_holds() -> None:
    strong = scaling(SMALL, (8, 32, 128))
    assert [p.seconds for p in strong] == sorted((p.seconds for p in strong), reverse=True)
    assert strong[-1].waiting_share > strong[0].waiting_share
    weak = scaling(SMALL, (8, 32, 128), weak=True)
    assert weak[-1].seconds < 1.5 * weak[0].seconds


def test_a_point_adds_up() -> None:
    priced = evaluate(SMALL, layouts(SMALL, 8))
    at = point(SMALL, priced, int(best(priced, 80e9)[0]))
    assert at.tokens_per_s == pytest.approx(64 * 4096 / at.seconds)
    assert 0.0 <= at.waiting_share < 1.0


def test_plans_are_ranked_and_rendered() -> None:
    report = train_plan(ROW, chips=("h100-sxm5-80gb", "tpu-v5p"), counts=(64,), tokens=1e11, curves=True)
    assert [p.rank for p in report.plans] == list(range(1, len(report.plans) + 1))
    first = report.plans[0]
    assert 0.2 < first.mfu < 0.75
    assert first.mfu <= first.hfu + 1e-9
    assert sum(first.shares.values()) == pytest.approx(1.0)
    assert sum(first.memory.values()) == pytest.approx(first.memory_bytes)
    assert first.days.low < first.days.mid < first.days.high
    assert any("behind compute" in line or "FSDP" in line for line in first.why)
    assert train_view(report).rows
    assert scaling_view(report).rows


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


@pytest.mark.parametrize(
    ("days", "says"),
    [(0.0101, "14.5 min"), (3.2 / 24, "3.2 h"), (640.0, "640 d"), (1340.0, "1,340 d"), (1e-4, "8.64 s")],
)
def test_durations_are_for_people(days: float, says: str) -> None:
    assert duration(days) == says


def test_hints_do_not_contradict_each_other() -> None:
    """Four RTX 4090 meet at most and do not hold the model: neither more nor fewer of them help."""
    with pytest.raises(
        InfeasibleError, match=r"not on 1 or 4: does not fit, and no more chips meet"
    ) as raised:
        train_plan("meta-llama/Llama-3.1-70B", chips=("rtx-4090",), counts=(1, 4, 8), tokens=1e9)
    assert "more chips, " not in str(raised.value)


def test_degrees_can_be_fixed() -> None:
    report = train_plan(ROW, counts=(64,), tokens=1e11, layout={"tp": 2, "pp": 4})
    assert (report.plans[0].layout.tp, report.plans[0].layout.pp) == (2, 4)
    free = train_plan(ROW, counts=(64,), tokens=1e11)
    assert free.plans[0].step_s.mid <= report.plans[0].step_s.mid


def test_experts_are_cut_over_ranks_that_there_are() -> None:
    moe = "mistralai/Mixtral-8x7B-v0.1"
    with pytest.raises(UsageError, match="4 chips of a stage"):
        train_plan(moe, chips=("h100",), counts=(16,), tokens=1e9, layout={"pp": 4, "ep": 8})


def test_layers_are_recomputed_by_share() -> None:
    """More of them take longer and less memory."""
    plans = [
        train_plan(ROW, chips=("h100",), counts=(8,), tokens=1e9, layout={**fixed, "recompute": share}).plans[
            0
        ]
        for fixed in ({"tp": 2, "zero": 1, "micro_batch": 1, "offload": 0},)
        for share in ("none", "30%", "0.6", "full")
    ]
    assert [p.layout.recompute for p in plans] == ["none", "30% of layers", "60% of layers", "full"]
    times, held = [p.step_s.mid for p in plans], [p.memory_bytes for p in plans]
    assert times == sorted(times)
    assert held == sorted(held, reverse=True)


def test_sharding_can_be_fixed() -> None:
    ask = {"counts": (64,), "tokens": 1e11, "chips": ("h100",)}
    kept = train_plan(ROW, layout={"zero": 3, "shard": 8}, **ask).plans[0].layout  # type: ignore[arg-type]
    assert (kept.sharding, kept.shard_ranks) == ("fsdp", 8)
    two = train_plan(ROW, layout={"zero": 2}, global_batch=64, **ask).plans[0].layout  # type: ignore[arg-type]
    assert (two.sharding, two.micro_batches) == ("zero-2", 1)


def test_a_deadline_asks_for_more_chips_than_the_usual_counts() -> None:
    ask = {"chips": ("h100",), "tokens": 15e12}
    with pytest.raises(InfeasibleError, match="global-batch than 1,024"):
        train_plan("meta-llama/Llama-3.1-405B", deadline_days=30.0, **ask)  # type: ignore[arg-type]
    plans = train_plan(ROW, deadline_days=10.0, **ask).plans  # type: ignore[arg-type]
    assert {p.chips for p in plans} == {4096}
    assert plans[0].days.mid <= 10.0


def test_own_chips_cost_nothing_and_are_the_most() -> None:
    report = train_plan(ROW, have={"h100": 12, "b200-sxm": 4}, tokens=1e11)
    assert all(p.usd is None for p in report.plans)
    most = {c: max(p.chips for p in report.plans if p.chip == c) for c in ("h100-sxm5-80gb", "b200-sxm")}
    assert most == {"h100-sxm5-80gb": 12, "b200-sxm": 4}


def test_failures_of_the_user_change_goodput_and_interval() -> None:
    """Young and Daly by hand: 1,024 chips of 10,000 h fail every 9.77 h; sqrt(2 x 300 s x 35,156 s) - 300 s."""
    plan = train_plan(
        ROW, chips=("h100",), counts=(1024,), failures=Failures(10_000.0, 300.0, 600.0, 300.0)
    ).plans[0]
    interval = (2.0 * 300.0 * 10_000.0 * 3600.0 / 1024.0) ** 0.5 - 300.0
    assert plan.checkpoint_s == pytest.approx(interval)
    lost = ((interval + 300.0) / 2.0 + 600.0) / (10_000.0 * 3600.0 / 1024.0)
    assert plan.goodput == pytest.approx((1.0 - lost) * interval / (interval + 300.0))


def test_a_network_of_ones_own() -> None:
    """A slower card slows; oversubscription slows what crosses leaves, not rings of neighbours; and a card joins chips
    that have none."""

    def step(model: str, layout: dict[str, int | str], figures: dict[str, str] | None) -> float:
        report = train_plan(
            model, chips=("h100",), counts=(1024,), tokens=1e12, layout=layout, network_figures=figures
        )
        return report.plans[0].step_s.mid

    dense, tree = ("meta-llama/Llama-3.1-70B", {"tp": 8, "pp": 8}), {"oversubscription": "8", "leaf": "16"}
    assert step(*dense, None) == step(*dense, tree) < step(*dense, {"nic": "12.5GB/s"})
    own = train_plan(
        dense[0],
        chips=("h100",),
        counts=(1024,),
        layout=dense[1],
        tokens=1e12,
        changes={"scaleout": "12.5GB/s"},
    )
    assert own.plans[0].step_s.mid == step(*dense, {"nic": "12.5GB/s"})
    routed = ("deepseek-ai/DeepSeek-V3", {"tp": 1, "pp": 4, "ep": 256, "recompute": "full"})
    assert step(*routed, None) < step(*routed, tree)
    joined = train_plan(
        ROW, chips=("rtx-4090",), counts=(16,), tokens=1e9, network_figures={"nic": "3GB/s"}, method="qlora"
    )
    assert joined.plans[0].chips == 16


def test_the_closed_form_of_tensor_parallelism_by_hand() -> None:
    """Llama-3.1-70B on H100: 16 h eP / (6 p B), h 8192, p 0.856 G, with the fitted e and the share of 450 GB/s."""
    found = load("meta-llama/Llama-3.1-70B")
    ask = asked(1e12, 4096, 0, "bf16", "train", None)
    job, *_ = job_of(find_chip("h100", None), transformer(found.graph), ask, shipped_parameters())
    r = job.rates
    each = 16.0 * 8192.0 * float(r.linear) * 989e12 / (6.0 * 0.856e9 * float(r.link) * 450e9)
    said = train_plan(
        "meta-llama/Llama-3.1-70B", chips=("h100",), counts=(512,), layout={"recompute": "none"}
    )
    line = next(w for w in said.plans[0].why if w.startswith("traffic of tensor"))
    assert f"takes {each:.1%} of the products" in line


def test_checkpoints_are_written_while_the_run_goes_on() -> None:
    """Llama 3 405B made progress for over 90 % of the time on 16,384 GPUs; a run that waits for 60 s loses more."""
    background, waiting_for = Failures(), Failures(block_s=60.0)
    assert background.goodput(16384) > 0.9 > waiting_for.goodput(16384) > 0.8
    assert Failures(block_s=1e3).goodput(1024) == waiting_for.goodput(1024)
    assert background.interval_s(16384) < waiting_for.interval_s(16384)
    assert Failures(save_s=3600.0).interval_s(16384) == 3600.0
    report = train_plan(ROW, chips=("h100",), counts=(64,), failures=waiting_for)
    assert any("in which the run stops" in line for line in report.assumptions)


def test_a_fine_tune_is_short_and_starts_at_one_chip() -> None:
    report = train_plan(ROW, task="finetune", chips=("h100", "tpu-v6e"))
    assert report.tokens == 1e8
    assert {p.chips for p in report.plans if p.chip == "h100-sxm5-80gb"} == {1, 2, 4, 8}
    assert train_plan("meta-llama/Llama-3.1-405B", task="finetune", chips=("h100",)).plans[0].chips == 16


def test_packed_weights_are_modelled_on_any_chip() -> None:
    ask = {"task": "finetune", "chips": ("h100",), "counts": (8,)}
    packed = train_plan(ROW, method="qlora", **ask).plans[0].step_s  # type: ignore[arg-type]
    plain_ones = train_plan(ROW, method="lora", **ask).plans[0].step_s  # type: ignore[arg-type]
    assert (packed.basis, plain_ones.basis) == ("modelled", "calibrated")
    assert packed.high / packed.mid > 1.3 > plain_ones.high / plain_ones.mid


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
    with pytest.raises(InfeasibleError, match="12 ranks cannot share a batch of 1,024"):
        train_plan(ROW, chips=("tpu-v5p",), counts=(12,), global_batch=1024)


def test_curves_keep_what_is_fixed_and_close_in_on_the_takeover() -> None:
    ask = {"counts": (64,), "global_batch": 128, "layout": {"tp": 8}, "curves": True}
    report = train_plan(ROW, chips=("h100",), **ask)  # type: ignore[arg-type]
    assert all(s.label.startswith("tp8") for s in report.scaling)
    over = report.takes_over["h100-sxm5-80gb"]
    strong = {s.chips: waiting(s.shares) for s in report.scaling if s.kind == "strong"}
    assert strong[over.chips] > 0.5 >= strong[over.chips // 2]
    assert over.shares[over.cause] == max(over.shares.values())
    told = next(line for line in train_view(report).foot if "takes over" in line)
    assert f"the {over.cause} takes over at {over.chips:,} chips" in told
    assert {"fabric", "network", "bubble", "stragglers"} <= set(scaling_view(report).columns)


@pytest.mark.parametrize(
    ("chip", "apart"), [("tpu-v6e", "fabric"), ("gaudi3", "fabric"), ("mi300x", "network")]
)
def test_shares_and_gains_name_one_resource(chip: str, apart: str) -> None:
    """10 % more of what takes a share s of the step, and of nothing else, gives about s x (1 - 1 / 1.1)."""
    kept = {"tp": 1, "pp": 1} if apart == "network" else {"tp": 8, "pp": 1}
    plan = train_plan("meta-llama/Llama-3.1-70B", chips=(chip,), counts=(512,), layout=kept).plans[0]
    told = plan.why[-1].split("tokens/s: ")[1]
    gains = {
        name: float(text.rstrip("%")) / 100 for name, text in (p.rsplit(" ", 1) for p in told.split(", "))
    }
    assert set(gains) <= set(plan.shares)
    assert sum(plan.shares.values()) == pytest.approx(1.0)
    for name in ("fabric", "network"):
        assert gains[name] == pytest.approx(plan.shares[name] / 11.0, abs=0.008)
    assert max(("fabric", "network"), key=lambda name: plan.shares[name]) == apart


def test_finetuning_freezes_the_weights() -> None:
    all_weights = train_plan(ROW, task="finetune", method="full", counts=(8,), tokens=1e8, global_batch=64)
    adapters = train_plan(ROW, task="finetune", counts=(8,), tokens=1e8, global_batch=64)
    assert adapters.plans[0].step_s.mid < all_weights.plans[0].step_s.mid
    assert adapters.plans[0].memory["optimiser"] < all_weights.plans[0].memory["optimiser"]


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
        ({"chips": ("rtx-4090",), "counts": (64,)}, InfeasibleError, "network"),
        ({"chips": ("a100-sxm4-80gb",), "precision": "fp8"}, InfeasibleError, "no fp8 unit"),
        ({"chips": ("tpu-v5p",), "precision": "fp8"}, InfeasibleError, "no faster than 16 bit"),
        ({"chips": ("tpu-v6e",), "task": "finetune", "method": "qlora"}, InfeasibleError, "method lora"),
        ({"layout": {"tp": 3}}, UsageError, "nearest: 2 or 4"),
        ({"layout": {"pp": 64}}, UsageError, "at most 32"),
        ({"layout": {"tp": 16}}, UsageError, "does not divide 8 chips"),
        ({"layout": {"tp": "1.5"}}, UsageError, "as in 1"),
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
        ({"layout": {"zero": 1, "dp": 1, "tp": 8}}, InfeasibleError, "fix less"),
        ({"counts": (10_000,), "global_batch": 1024}, InfeasibleError, "as on 9,728 or 10,240"),
        ({"max_chips": 4}, UsageError, "at most 4"),
        ({"network_figures": {"nics": "8"}}, UnknownNameError, "did you mean nic"),
        ({"network_figures": {"oversubscription": "0"}}, UsageError, "out of range"),
        ({"counts": (), "max_usd_per_h": 0.01}, InfeasibleError, "relax"),
        ({"failures": Failures(chip_mtbf_h=0.01)}, InfeasibleError, "failures come faster"),
        ({"layout": {"dp": 8, "micro_batch": 3}, "global_batch": 64}, UsageError, "nearest: 16 or 32"),
        ({"layout": {"sp": 2}}, UnknownNameError, "micro_batch"),
        ({"layout": {"offload": 2}}, UsageError, "0 or 1"),
        ({"layout": {"pp": 8, "vp": 8}}, UsageError, "vp at most 4"),
        ({"layout": {"pp": 4, "schedule": "zero"}}, UnknownNameError, "did you mean zero-bubble"),
        ({"layout": {"pp": 1, "schedule": "gpipe"}}, UsageError, "as in pp=4"),
        ({"layout": {"pp": 4, "schedule": "gpipe"}}, InfeasibleError, "choose 1f1b"),
        ({"method": "dora"}, UnknownNameError, "qlora"),
        ({"method": "qlora", "precision": "fp8"}, UsageError, "leave it out"),
        ({"max_usd": 0.01}, InfeasibleError, "cheapest"),
        ({"chips": ("rtx-4090",), "counts": (8,)}, InfeasibleError, "use at most 4"),
    ],
)
def test_bad_input_is_one_line(arguments: dict[str, object], error: type[Exception], says: str) -> None:
    asked: dict[str, object] = {"chips": ("h100-sxm5-80gb",), "counts": (8,), "tokens": 1e9, **arguments}
    with pytest.raises(error) as raised:
        train_plan(ROW, **asked)  # type: ignore[arg-type]
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


def test_the_foot_says_how_plans_are_read_ranked_and_limited() -> None:
    report = train_plan("meta-llama/Llama-3.1-70B", deadline_days=20.0, max_usd=9e5)
    foot = train_view(report, "chipwise plan ...").foot
    assert foot[0].startswith("read: ways to cut: ")
    assert any("middle time at most 20 d, middle $ at most 900 k" in line for line in foot)
    assert foot[-1] == "next: chipwise plan ..."
    assert all(p.days.mid <= 20.0 and p.usd is not None and p.usd.mid <= 9e5 for p in report.plans)


def test_chips_that_miss_the_limits_are_named_with_what_they_miss() -> None:
    report = train_plan("meta-llama/Llama-3.1-70B", deadline_days=20.0, max_usd=9e5)
    shown = {p.chip for p in report.plans}
    missed = {r.chip: r.detail for r in report.refused if r.reason == "LIMITS"}
    assert shown | set(missed) == set(USUAL)
    assert not shown & set(missed)
    assert "of 900 k $" in missed["tpu-v5p"]


def test_the_best_two_of_each_of_many_chips_are_shown() -> None:
    report = train_plan(ROW)
    shown = [row[1].split()[1] for row in train_view(report).rows]
    assert set(shown) == {p.chip for p in report.plans}
    assert max(shown.count(chip) for chip in set(shown)) == 2
    front = next(line for line in train_view(report).foot if line.startswith("front"))
    ranks = {row[0] for row in train_view(report).rows}
    assert {part for part in front.split(": ")[1].split(", ") if part.isdigit()} <= ranks
    assert len(train_view(report, everything=True).rows) == len(report.plans)


def test_plans_tie_across_chips_where_step_times_cannot_tell() -> None:
    report = train_plan(ROW)
    for p in report.plans:
        for rank in p.ties:
            q = report.plans[rank - 1]
            assert q.chip != p.chip
            assert p.rank == rank or q.usd is not None
            assert p.usd is not None
            assert q.usd is not None
            assert p.usd.mid * p.days.low / p.days.mid <= q.usd.mid <= p.usd.mid * p.days.high / p.days.mid


def test_one_layout_is_shown_in_full_and_typed_again() -> None:
    """Shares and bytes add up; the layout as `--layout` takes it gives the same plan."""
    report = train_plan("meta-llama/Llama-3.1-70B", chips=("h100",), counts=(256,), tokens=1e11)
    plan = report.plans[0]
    times, memory = layout_views(plan)
    assert sum(r["share"] for r in times.records or ()) == pytest.approx(1.0)
    assert len(memory.rows) == plan.layout.pp
    tops = [sum(v for k, v in r.items() if k != "stage") for r in memory.records or ()]
    assert max(tops) == pytest.approx(plan.memory_bytes)
    typed = dict(part.split("=") for part in kept(plan.layout).split(","))
    again = train_plan(
        "meta-llama/Llama-3.1-70B", chips=("h100",), counts=(256,), tokens=1e11, layout=typed
    ).plans[0]
    assert (again.layout, again.step_s) == (plan.layout, plan.step_s)


def test_a_run_unlike_what_the_model_is_made_for_says_so() -> None:
    said = train_plan("microsoft/phi-2", chips=("h100",), counts=(8,), seq=8192).assumptions
    assert any("more than the 2,048 tokens" in line for line in said)
    said = train_plan("deepseek-ai/DeepSeek-V3", chips=("h100",), counts=(1024,)).assumptions
    assert any("trained in bf16, though published in fp8_block" in line for line in said)
    assert any("over the dense peak of bf16" in line for line in said)


def test_what_a_short_run_and_full_memory_say() -> None:
    plan = train_plan(ROW, task="finetune", chips=("h100",), counts=(8,))
    assert any("without a checkpoint before its end" in line for line in train_view(plan).foot)
    whole = train_plan("meta-llama/Llama-3.1-70B", chips=("h100",), counts=(512,), layout={"tp": 4, "pp": 4})
    assert any("do not fit (95% of 85.0 GB at most)" in line for line in whole.plans[0].why)
