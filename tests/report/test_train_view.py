"""What is said of training plans: tables, lines below them, and the figures that they name."""

from __future__ import annotations

import math
from dataclasses import asdict

import pytest

from chipwise.api.train_course import Wanted
from chipwise.predict.training.course import CheckpointStore, Course, CourseSite, Failures, course_of
from chipwise.report.diff import leaves
from chipwise.report.training import OVERHEADS, duration, kept, layout_views, overhead, scaling_view, taking, train_view
from trained import train_plan

ROW = "meta-llama/Llama-3.1-8B"


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


@pytest.mark.parametrize(
    ("days", "says"),
    [(0.0101, "14.5 min"), (3.2 / 24, "3.2 h"), (640.0, "640 d"), (1340.0, "1,340 d"), (1e-4, "8.64 s")],
)
def test_durations_are_for_people(days: float, says: str) -> None:
    assert duration(days) == says


def test_what_tensor_parallelism_costs_is_its_share_of_the_step() -> None:
    """Told for what is used, and for what half and twice of it would take."""
    ask = {"chips": ("h100",), "counts": (512,)}
    row = "meta-llama/Llama-3.1-70B"
    plan = train_plan(row, **ask, layout={"recompute": "none"}).plans[0]  # type: ignore[arg-type]
    tp = plan.layout.tp
    assert tp > 1
    line = next(w for w in plan.why if f"tp{tp} costs" in w)
    cost = int(line.split("costs ")[1].split("%")[0])
    assert 0 < cost <= round(100 * plan.shares["fabric"])
    assert f"tp{tp // 2} instead of tp{tp} takes" in line
    alone = train_plan(ROW, chips=("h100",), counts=(8,), layout={"tp": 1}).plans[0]
    assert not any("tp1 costs" in line for line in alone.why)
    assert any("tp2 instead of tp1 takes" in line and "exposed traffic" in line for line in alone.why)


@pytest.mark.parametrize("chip", ["m4-max", "tpu-v5e", "h100"])
def test_one_device_is_told_nothing_of_traffic(chip: str) -> None:
    """No line on FSDP, tensor parallelism or links, and no figure that is not a number."""
    report = train_plan("Qwen/Qwen3-0.6B", task="finetune", chips=(chip,), counts=(1,))
    told = " ".join(report.plans[0].why)
    assert not any(word in told for word in ("FSDP", "tp2", "fabric", "network", "nan"))
    figures = [value for _, value in leaves(asdict(report)) if isinstance(value, float)]
    assert not any(math.isnan(v) for v in figures)


def test_fsdp_is_spoken_of_among_data_parallel_ranks() -> None:
    ask = {"chips": ("h100",), "counts": (8,)}
    for layout, spoken in (({"dp": 8}, True), ({"tp": 8}, False)):
        plan = train_plan(ROW, **ask, layout=layout).plans[0]  # type: ignore[arg-type]
        assert any(line.startswith("FSDP") for line in plan.why) is spoken


def test_checkpoints_are_written_while_the_run_goes_on() -> None:
    """Llama 3 405B made progress for over 90 % of the time on 16,384 GPUs; a run that waits for 60 s loses more."""

    def course(chips: int, **said: float) -> Course:
        fixed = {"save_s": 60.0, "block_s": 5.0} | said
        at = CourseSite(chips, chips // 8, 5.7e12, 5e9, 25e9)
        return course_of(Failures(**fixed), CheckpointStore(), at)  # type: ignore[arg-type]

    background, waiting_for = course(16384), course(16384, block_s=60.0)
    assert background.good > 0.9 > waiting_for.good > 0.8
    assert course(1024, block_s=1e3).good == course(1024, block_s=60.0).good
    assert background.interval_s < waiting_for.interval_s
    assert course(16384, save_s=3600.0).interval_s == 3600.0
    asked = Wanted(Failures(save_s=60.0, block_s=60.0))
    plan = train_plan(ROW, chips=("h100",), counts=(64,), wanted=asked).plans[0]
    assert plan.run is not None
    assert plan.run.save_s == plan.run.block_s == 60.0


def test_curves_keep_what_is_fixed_and_close_in_on_the_takeover() -> None:
    ask = {"counts": (64,), "global_batch": 128, "layout": {"tp": 8}, "curves": True}
    report = train_plan(ROW, chips=("h100",), **ask)  # type: ignore[arg-type]
    assert all(s.label.startswith("tp8") for s in report.scaling)
    over = report.takes_over["h100-sxm5-80gb"]
    strong = {s.chips: overhead(s.shares) for s in report.scaling if s.kind == "strong"}
    assert strong[over.chips] > 0.5 >= strong[over.chips // 2]
    assert over.shares[over.cause] == max(over.shares.values())
    told = next(line for line in train_view(report).foot if "takes over" in line)
    assert f"the {over.cause} takes over at {over.chips:,} chips" in told
    columns = scaling_view(report).columns
    parts = columns[columns.index("efficiency") + 1 :]
    assert parts == ("compute+memory", *OVERHEADS)
    for row in scaling_view(report).rows:
        assert sum(int(cell.rstrip("%")) for cell in row[-len(parts) :]) == pytest.approx(100, abs=3)


def test_what_takes_over_is_all_that_is_no_work() -> None:
    """Of small experts on thousands of chips the host takes half of a step long before a pipeline is used."""
    report = train_plan("Qwen/Qwen3-30B-A3B", chips=("b200",), counts=(64,), curves=True)
    over = report.takes_over["b200-sxm"]
    strong = {s.chips: s.shares for s in report.scaling if s.kind == "strong"}
    assert strong[4096]["host"] > 0.35 > strong[4096]["bubble"]
    assert over.chips < 4096
    assert over.cause == max(OVERHEADS, key=lambda name: strong[over.chips][name])
    assert all(parts["compute"] + parts["memory"] >= 0.5 for n, parts in strong.items() if n < over.chips)


def test_causes_and_verbs_agree() -> None:
    assert (taking("host"), taking("stragglers")) == ("host takes", "stragglers take")


def test_efficiency_above_one_says_against_what_and_why() -> None:
    """405B recomputes on 64 H100, which more of them need not."""
    report = train_plan("meta-llama/Llama-3.1-405B", chips=("h100",), counts=(512,), curves=True)
    assert any(s.efficiency > 1.05 for s in report.scaling)
    told = scaling_view(report).foot
    assert any(
        "efficiency against 64 chips; above 100%: 64 recompute and keep the optimiser in host memory" in line
        for line in told
    )


@pytest.mark.parametrize(("chip", "apart"), [("tpu-v6e", "fabric"), ("gaudi3", "fabric"), ("a100", "network")])
def test_shares_and_gains_name_one_resource(chip: str, apart: str) -> None:
    """10 % more of what takes a share s of the step, and of nothing else, gives about s x (1 - 1 / 1.1)."""
    pins = {"tp": 1, "pp": 1, "zero": 3, "shard": 512} if apart == "network" else {"tp": 8, "pp": 1}
    plan = train_plan("meta-llama/Llama-3.1-70B", chips=(chip,), counts=(512,), layout=pins).plans[0]
    told = plan.why[-1].split("tokens/s: ")[1]
    gains = {name: float(text.rstrip("%")) / 100 for name, text in (p.rsplit(" ", 1) for p in told.split(", "))}
    assert set(gains) <= set(plan.shares)
    assert sum(plan.shares.values()) == pytest.approx(1.0)
    for name in ("fabric", "network"):
        assert gains[name] == pytest.approx(plan.shares[name] / 11.0, abs=0.01)
    assert max(("fabric", "network"), key=lambda name: plan.shares[name]) == apart


def test_the_foot_says_how_plans_are_read_ranked_and_limited() -> None:
    report = train_plan("meta-llama/Llama-3.1-70B", deadline_days=20.0, max_usd=9e5)
    foot = train_view(report, "chipwise plan ...").foot
    assert foot[0].startswith("how to read: parallelism: ")
    assert not any(line.startswith("ranked: ") for line in foot)
    foot = train_view(report, "chipwise plan ...", everything=True).foot
    assert any("median time at most 20 d, median $ at most 900 k" in line for line in foot)
    assert foot[-1] == "next: chipwise plan ..."
    assert all(p.days.mid <= 20.0 and p.usd is not None and p.usd.mid <= 9e5 for p in report.plans)


def test_the_best_two_of_each_of_many_chips_are_shown() -> None:
    report = train_plan(ROW)
    shown = [row[1].split()[1] for row in train_view(report).rows]
    assert set(shown) == {p.chip for p in report.plans}
    assert max(shown.count(chip) for chip in set(shown)) == 2
    front = next(line for line in train_view(report, everything=True).foot if line.startswith("front"))
    ranks = {row[0] for row in train_view(report, everything=True).rows}
    assert {part for part in front.split(": ")[1].split(", ") if part.isdigit()} <= ranks
    assert len(train_view(report, everything=True).rows) == len(report.plans)


def test_plans_tie_across_chips_where_step_times_cannot_tell() -> None:
    report = train_plan(ROW)
    assert any(p.ties for p in report.plans)
    for p in report.plans:
        for rank in p.ties:
            q = report.plans[rank - 1]
            assert q.chip != p.chip
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
    again = train_plan("meta-llama/Llama-3.1-70B", chips=("h100",), counts=(256,), tokens=1e11, layout=typed).plans[0]
    assert (again.layout, again.step_s) == (plan.layout, plan.step_s)


def test_what_a_short_run_and_full_memory_say() -> None:
    plan = train_plan(ROW, task="finetune", chips=("h100",), counts=(8,))
    assert any("without a checkpoint before its end" in line for line in train_view(plan).foot)
    whole = train_plan("meta-llama/Llama-3.1-70B", chips=("h100",), counts=(512,), layout={"tp": 4, "pp": 4})
    assert any("of 85.0 GB, more than the limit of 95%" in line for line in whole.plans[0].why)


def test_plans_in_tight_memory_are_marked_where_both_limits_are_told() -> None:
    """88 % is aimed at, 95 % is the limit; between them a plan is tight, in the table as in the record."""
    layout = {"tp": 4, "pp": 4, "micro_batch": 9, "recompute": "none", "offload": 0, "stash": 0}
    report = train_plan(
        "meta-llama/Llama-3.1-70B", chips=("h100",), counts=(64,), layout=layout, memory={"optimizer": "adamw"}
    )
    plan, view = report.plans[0], train_view(report)
    assert plan.verdict == "tight"
    assert 0.88 < plan.memory_bytes / plan.capacity_bytes <= 0.95
    assert view.rows[0][view.columns.index("memory")].endswith(" of 85.0 GB, tight")
    assert "more memory than is aimed at: 88% is the aim, 95% is the limit" in view.foot[0]
    assert "88% is the aim, 95% is the limit" in layout_views(plan)[1].head[0]
