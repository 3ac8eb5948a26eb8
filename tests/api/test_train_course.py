"""Phases, spare hosts, storage, evaluation and the best precision, as they are asked for."""

from __future__ import annotations

import pytest

from chipwise.api.requests.training import TrainRequest
from chipwise.api.train_course import failures_of, phases_of, store_of
from chipwise.errors import UnknownNameError, UsageError
from chipwise.report.training import RunRecord, TrainPlanRecord

MODEL = "meta-llama/Llama-3.1-8B"


def first(**asked: object) -> TrainPlanRecord:
    given = {"model": MODEL, "chips": "h100", "counts": "64", "tokens": "1T"} | asked
    return TrainRequest(**given).run().plans[0]  # type: ignore[arg-type]


def ran(**asked: object) -> tuple[TrainPlanRecord, RunRecord]:
    plan = first(**asked)
    assert plan.run is not None
    return plan, plan.run


def test_phases_add_up_and_take_their_own_time() -> None:
    """A ramp keeps the layout and is no faster than the rest; long sequences take one of their own; days add up."""
    plan, run = ran(phases="ramp=50B:64,context=50B:65536")
    ramp, main, longer = run.phases
    assert [p.name for p in run.phases] == ["ramp", "main", "context"]
    assert sum(p.tokens for p in run.phases) == pytest.approx(1e12)
    assert ramp.label == main.label
    assert ramp.tokens_per_s < main.tokens_per_s > longer.tokens_per_s
    assert longer.seq * longer.global_batch == main.seq * main.global_batch
    spent = sum(p.days for p in run.phases) + run.start_s / 86400.0
    assert plan.days.mid == pytest.approx(spent)


def test_spares_are_paid_and_help() -> None:
    (alone, without), (helped, with_one) = ran(failures="repair=48h"), ran(failures="repair=48h,spares=1")
    assert with_one.steady > without.steady
    assert alone.price is not None
    assert helped.price is not None
    assert helped.price.mid == pytest.approx(alone.price.mid * 72 / 64, rel=0.02)


def test_hosts_on_the_spot_are_taken_away() -> None:
    rented, spot = first(), first(price="spot")
    assert spot.goodput < rented.goodput
    assert first(price="spot", failures="preempt=100000h").goodput == pytest.approx(rented.goodput, abs=0.001)


def test_checkpoints_of_adapters_are_small_and_large_models_write_longer() -> None:
    (_, full), (_, light), (_, slow) = ran(), ran(method="lora"), ran(storage="write=200MB/s,keep=10")
    assert full.checkpoint_bytes == pytest.approx(8.03e9 * 14.0, rel=0.01)
    assert light.checkpoint_bytes < 0.01 * full.checkpoint_bytes
    assert slow.save_s == pytest.approx(10.0 * full.save_s)
    assert slow.storage_bytes == pytest.approx(10.0 * full.checkpoint_bytes)


def test_the_best_precision_leaves_16_bit_in_sight() -> None:
    report = TrainRequest(model=MODEL, chips="h100", counts="64", tokens="1T", precision="best").run()
    assert {p.precision for p in report.plans} == {"bf16", "fp8"}
    narrow, wide = (next(p for p in report.plans if p.precision == name) for name in ("fp8", "bf16"))
    assert narrow.days.mid < wide.days.mid
    assert any("quality is not assessed" in line for line in report.assumptions)


def test_what_cannot_be_read_says_what_can() -> None:
    with pytest.raises(UnknownNameError, match="ramp, context"):
        phases_of({"warmup": "1B:2"})
    with pytest.raises(UsageError, match="ramp=50B:256"):
        phases_of({"ramp": "1B"})
    with pytest.raises(UsageError, match="spares=2,repair=24h"):
        failures_of({"spares": "2"})
    with pytest.raises(UsageError, match=r"mtbf=50000 has no unit \(mtbf=50000h or mtbf=50000s\)"):
        failures_of({"mtbf": "50000"})
    assert failures_of({"wait": "0", "mtbf": "2h"}).chip_mtbf_h == 2.0
    with pytest.raises(UnknownNameError, match="keep"):
        store_of({"copies": "2"})
    with pytest.raises(UsageError, match="more tokens than the run"):
        first(phases="ramp=2T:64")


@pytest.mark.parametrize(
    ("phases", "said"),
    [
        ("ramp=10B:4096", r"from 4,096 sequences a step does not grow to the 1,024 .*ramp=1e\+10:256"),
        ("context=10B:2048", r"2,048 tokens are not longer than the 4,096 .*context=1e\+10:16384"),
    ],
)
def test_a_ramp_that_falls_is_refused(phases: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        first(phases=phases)
