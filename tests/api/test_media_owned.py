from __future__ import annotations

import json

import pytest

import chipwise as cw
from chipwise.api.media_owned import load_within
from chipwise.errors import UsageError


def test_load_within_a_limit() -> None:
    assert load_within(1.0, 0.6, 8.0) == 0.0  # a request waits for one batch and is in the next
    loads = [load_within(limit, 0.1, 8.0) for limit in (0.25, 0.5, 1.0, 10.0)]
    assert loads == sorted(loads)
    assert 0.0 < loads[0] < loads[-1] < 1.0
    assert load_within(1.0, 0.1, 64.0) > load_within(1.0, 0.1, 8.0)
    assert load_within(1.0, 0.1, 8.0, 0.5) > load_within(1.0, 0.1, 8.0, 0.99)
    # p = 0.99, 8 samples, 8 batches to spare: (1 - r) / r = ln 100 / (2 x 8 x 8)
    r = load_within(1.0, 0.1, 8.0)
    assert (1.0 - r) / r == pytest.approx(4.60517 / 128.0, rel=1e-4)


def plan(**said: object):  # type: ignore[no-untyped-def]
    return cw.plan("resnet50", precision="int8-static", runtime="tensorrt", **said).plans[0]


def test_chips_that_one_has_are_all_used() -> None:
    one, eight = (plan(have=f"{n}xh100-sxm5-80gb", task="batch", level="tuned") for n in (1, 8))
    assert eight.replicas == 8 * one.replicas
    assert eight.samples_per_s.mid == pytest.approx(8 * one.samples_per_s.mid)
    assert eight.energy.joules_per_token.mid == pytest.approx(one.energy.joules_per_token.mid)


def test_a_limit_costs_throughput_and_one_at_a_time_is_soonest() -> None:
    have = "1xl4"
    free = plan(have=have, task="batch", level="tuned")
    tight, loose = (plan(have=have, e2e=e, percentile="p99", level="tuned") for e in ("5ms", "50ms"))
    assert tight.samples_per_s.mid < loose.samples_per_s.mid < free.samples_per_s.mid
    assert 2.0 * tight.latency_s.mid < 6e-3
    alone = plan(have=have, task="local", level="tuned")
    assert alone.batch == 1
    assert alone.latency_s.mid < tight.latency_s.mid


def test_tuned_software_is_faster_and_of_inference() -> None:
    stock, tuned = (plan(have="1xl4", task="batch", batch=64, level=level) for level in ("stock", "tuned"))
    assert tuned.samples_per_s.mid > stock.samples_per_s.mid
    with pytest.raises(UsageError, match="inference"):
        cw.estimate("resnet50", chip="l4", training=True, batch=8, level="tuned")


def test_a_rate_is_what_is_answered() -> None:
    with pytest.raises(UsageError, match="rate"):
        plan(have="1xl4", rate="10/s")


def test_a_match_carries_its_question(capsys: pytest.CaptureFixture[str]) -> None:
    from chipwise.cli import main

    with pytest.raises(SystemExit):
        main(["evidence", "match", "resnet50", "--chip", "l4", "--format", "json"])
    assert json.loads(capsys.readouterr().out)["question"]["verb"] == "match"
