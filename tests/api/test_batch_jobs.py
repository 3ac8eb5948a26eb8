"""Batch work with an end: how many chips finish it by the deadline, when, and for how much."""

from __future__ import annotations

import re

import pytest

import chipwise as cw
from chipwise.errors import InfeasibleError, UsageError

MODEL = "meta-llama/Llama-3.1-8B"


def job(**more):  # type: ignore[no-untyped-def]
    return cw.plan(MODEL, task="batch", tokens="1B", chips="h100-sxm5-80gb", evidence="none", **more)


def test_what_is_due_is_done_even_at_the_slow_end() -> None:
    plan = job(deadline="24h").plans[0]
    assert plan.job.hours.high <= 24.0 * (1 + 1e-6)
    assert plan.chance == pytest.approx(0.9, abs=0.1)
    assert plan.chance >= 0.898
    # with one replica less it would not be
    assert plan.job.hours.high * plan.replicas / (plan.replicas - 1) > 24.0


def test_hours_and_dollars_are_tokens_over_throughput() -> None:
    plan = job(deadline="24h").plans[0]
    # and up to a round of many more
    assert plan.job.hours.mid == pytest.approx(1e9 / plan.tokens_per_s.mid / 3600.0, rel=1e-3)
    assert plan.job.usd.mid == pytest.approx(plan.job.hours.mid * plan.price.mid)
    assert plan.job.usd.low == pytest.approx(plan.job.hours.low * plan.price.mid)


def test_half_the_time_takes_twice_the_replicas() -> None:
    day, half = job(deadline="48h").plans[0], job(deadline="24h").plans[0]
    assert half.layout == day.layout
    assert 2 * day.replicas - 1 <= half.replicas <= 2 * day.replicas


def test_without_a_deadline_one_replica_works_as_long_as_it_takes() -> None:
    plan = job().plans[0]
    assert plan.replicas == 1
    assert plan.chance is None
    # and up to a round of many more
    assert plan.job.hours.mid == pytest.approx(1e9 / plan.tokens_per_s.mid / 3600.0, rel=1e-3)


def test_chips_that_one_has_are_all_put_to_work() -> None:
    mine = cw.plan(MODEL, task="batch", tokens="100M", deadline="24h", have="4xh100", evidence="none").plans[0]
    assert mine.chips == 4
    assert mine.job.usd is None
    assert mine.chance > 0.9


def test_too_much_for_what_one_has_says_how_long_it_takes() -> None:
    with pytest.raises(InfeasibleError, match=r"the job takes [\d.,]+ days at best, on h100-sxm5-80gb"):
        cw.plan(MODEL, task="batch", tokens="100B", deadline="24h", have="1xh100")


def test_too_dear_says_what_it_costs_without_a_limit() -> None:
    free = job(deadline="24h").plans[0]
    with pytest.raises(InfeasibleError, match=r"\$[\d.,]+ in total") as error:
        job(deadline="24h", max_usd=free.job.usd.mid / 2)
    assert error.value.reachable["usd"] == pytest.approx(free.job.usd.mid, rel=1e-6)
    assert "max_usd" in error.value.hint


def test_a_limit_of_dollars_holds_at_the_slow_end() -> None:
    free = job(deadline="24h").plans[0]
    cautious = free.price.mid * free.job.hours.high
    assert job(deadline="24h", max_usd=cautious * 1.01).plans[0].chips == free.chips
    with pytest.raises(InfeasibleError):
        job(deadline="24h", max_usd=cautious * 0.8)


def test_the_verdict_says_when_and_for_how_much(capsys: pytest.CaptureFixture[str]) -> None:
    print(job(deadline="24h"))
    said = " ".join(capsys.readouterr().out.split())
    assert "It writes 1.00 B tokens in" in said
    assert "the deadline of 24 hours is met with" in said


def test_an_api_and_changes_are_told_by_the_dollars_of_the_job() -> None:
    report = job(deadline="24h")
    said = " ".join(line for table in report.tables(everything=True) for line in table.foot)
    api, first = report.apis[0], report.plans[0]
    (asked,) = re.findall(r"as an API: .*?, \$([\d,.]+) for the job", said)
    requests = 1e9 / report.workload.output_tokens
    assert float(asked.replace(",", "")) == pytest.approx(requests * api.usd_per_request, rel=5e-3)
    assert "requests/s (speed" not in said, "a job has no rate at which both cost the same"
    for lever in report.levers:
        (usd,) = re.findall(re.escape(f"with {lever.options} (") + r".*?, \$([\d,.]+) for the job", said)
        assert float(usd.replace(",", "")) == pytest.approx(first.job.usd.mid * (1.0 - lever.saves), rel=5e-3)


@pytest.mark.parametrize(
    ("given", "what", "field"),
    [
        ({"deadline": "24h"}, "deadline is the limit of a job", "deadline"),
        ({"max_usd": 100.0}, "max_usd is the limit of a job", "max_usd"),
        ({"tokens": "1B", "task": "serve"}, "tokens says nothing about task serve", "tokens"),
        ({"tokens": "1B", "deadline": "24"}, "24d or 24h", "deadline"),
        ({"tokens": "none"}, "tokens", "tokens"),
    ],
)
def test_limits_without_a_job_are_refused(given: dict[str, object], what: str, field: str) -> None:
    with pytest.raises(UsageError, match=what) as error:
        cw.plan(MODEL, **{"task": "batch", "chips": "h100", **given})  # type: ignore[arg-type]
    assert error.value.field == field


def small(tokens: str, **more):  # type: ignore[no-untyped-def]
    return cw.plan(MODEL, task="batch", tokens=tokens, chips="h100-sxm5-80gb", evidence="none", **more).plans[0]


def test_one_request_takes_as_long_as_one_request() -> None:
    plan = small("300")
    alone = plan.ttft_s.mid + 299 * plan.tpot_s.mid
    assert plan.concurrency == pytest.approx(1.0, rel=0.2)
    assert plan.job.hours.mid * 3600.0 == pytest.approx(alone, rel=0.2)
    # a part of an answer takes no less, and there is no more than one at work
    assert small("10").job.hours.mid == pytest.approx(plan.job.hours.mid)
    assert small("300", deadline="1h").replicas == 1


def test_no_more_requests_are_open_than_a_job_has() -> None:
    plan = small("30k")
    assert plan.concurrency * plan.replicas <= 100 * 1.001


def test_a_deadline_before_one_answer_is_done_is_not_kept() -> None:
    with pytest.raises(InfeasibleError, match=r"the job takes [\d.,]+ s at best"):
        small("3k", out=3000, deadline="1s", max_chips=1)


def test_more_tokens_never_take_less_time() -> None:
    took = [small(tokens).job.hours.mid for tokens in ("300", "3k", "30k", "300k", "3M")]
    assert took == sorted(took)
