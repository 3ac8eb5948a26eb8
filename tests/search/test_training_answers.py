"""What plans for training say: shares, batches, checkpoints, limits, ties, and one layout in full."""

from __future__ import annotations

import pytest

from chipwise.api.train import train_plan
from chipwise.api.train_counts import batch_for
from chipwise.api.train_input import USUAL
from chipwise.errors import InfeasibleError
from chipwise.report.train_assemble import Failures
from chipwise.report.train_notes import kept
from chipwise.report.train_shares import waiting
from chipwise.report.train_view import layout_views, scaling_view, train_view

ROW = "meta-llama/Llama-3.1-8B"


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
