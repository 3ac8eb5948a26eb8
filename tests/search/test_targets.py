"""Targets at a percentile hold at that percentile, and full load goes as far as they allow."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import exp, log

import numpy as np
import pytest

from chipwise.api.requests.planning import PlanRequest
from chipwise.errors import InfeasibleError, UsageError
from chipwise.search.targets import meets
from chipwise.workload.workload import Workload

ASKED = PlanRequest(
    model="meta-llama/Llama-3.1-8B-Instruct",
    have="1xh100-sxm5-80gb",
    in_="800",
    out="130",
    ttft="500ms",
    tpot="30ms",
    evidence="none",
    confidence="50%",
    precision="bf16",
)


def test_a_percentile_is_a_tighter_target_and_is_used_up() -> None:
    mean = ASKED.run().plans[0]
    tail = replace(ASKED, percentile="p99").run().plans[0]
    assert tail.tokens_per_s.mid < mean.tokens_per_s.mid
    p99 = tail.tails["p99"]
    assert p99.ttft_s is not None
    assert p99.tpot_s is not None
    assert p99.ttft_s <= 0.5 * (1 + 1e-9)
    assert p99.tpot_s <= 0.03 * (1 + 1e-9)
    assert tail.chance == pytest.approx(0.5, abs=0.01), "what is measured on average uses it up, not what is predicted"


def test_full_load_uses_up_a_mean_target() -> None:
    plan = ASKED.run().plans[0]
    assert plan.tpot_s is not None
    # nearly: beyond, a pass is full of prompts and more load gives no more tokens
    assert 0.85 < max(plan.tpot_s.mid / 0.03, plan.ttft_s.mid / 0.5) <= 1.0 + 1e-9


def test_the_default_leaves_room_for_the_error_of_the_prediction() -> None:
    """Targets hold at the upper end of the 80 % interval; with a confidence of 50 % in the middle."""
    plan = replace(ASKED, confidence=None).run().plans[0]
    assert plan.tpot_s is not None
    assert max(plan.tpot_s.high / 0.03, plan.ttft_s.high / 0.5) == pytest.approx(1.0, abs=0.01)
    assert plan.chance == pytest.approx(0.9, abs=0.02)
    assert 0.5 - 1e-9 <= ASKED.run().plans[0].chance < 0.75


def test_a_whole_answer_is_its_first_token_and_those_after_it() -> None:
    limit = Workload(output_tokens=3.0, e2e_s=0.13001)
    first, further = np.array([[0.1]]), np.array([[0.015]])
    assert meets(first, further, limit).all()
    assert not meets(first, further * 1.01, limit).any()


@pytest.mark.parametrize("utilisation", ["100%", "50%", None])
def test_a_fleet_keeps_headroom(utilisation: str | None) -> None:
    asked = replace(ASKED, have=None, chips="h100-sxm5-80gb", rate="40/s", utilisation=utilisation)
    plan = asked.run().plans[0]
    share = {"100%": 1.0, "50%": 0.5, None: 0.7}[utilisation]
    each = plan.largest_requests_per_s / plan.replicas
    assert plan.load <= share * (1 + 1e-6)
    assert (plan.replicas - 1) * each * share < 40, "one replica fewer is above it"


def test_throughput_moves_smoothly_with_a_target() -> None:
    rates = [
        replace(ASKED, percentile="p99", tpot=f"{t}ms").run().plans[0].tokens_per_s.mid
        for t in (20, 20.2, 20.4, 20.6, 20.8)
    ]
    assert rates == sorted(rates)
    assert all(b / a < 1.04 for a, b in pairwise(rates))


def test_a_whole_answer_is_a_target() -> None:
    whole = replace(ASKED, ttft=None, tpot=None, e2e="4s", percentile="p99")
    plan = whole.run().plans[0]
    p99 = plan.tails["p99"]
    assert p99.ttft_s is not None
    assert p99.tpot_s is not None
    assert p99.ttft_s + 129 * p99.tpot_s <= 4.0 * (1 + 1e-9)
    with pytest.raises(InfeasibleError, match="p99"):
        replace(whole, e2e="100ms").run()


@pytest.mark.parametrize("text", ["p20", "99.95", "soon"])
def test_percentiles_that_cannot_be(text: str) -> None:
    with pytest.raises(UsageError, match="percentile"):
        replace(ASKED, percentile=text).run()


def test_tuned_software_is_faster_and_old_software_slower() -> None:
    stock = ASKED.run().plans[0].tokens_per_s.mid
    tuned = replace(ASKED, level="tuned").run()
    old = replace(ASKED, software="v4.0").run().plans[0].tokens_per_s.mid
    assert tuned.plans[0].tokens_per_s.mid > stock > old
    assert any("tuned as for a benchmark" in note for note in tuned.assumptions)


def test_a_workload_out_of_range() -> None:
    with pytest.raises(UsageError, match="percentile"):
        Workload(percentile=0.2)


def test_a_percentile_holds_with_prompts_on_workers_of_their_own() -> None:
    """Each load of the grid has its own number of prompt workers, and so have its neighbours."""
    plan = replace(ASKED, percentile="p99", disaggregate=True, have="4xh100-sxm5-80gb").run().plans[0]
    assert plan.prompt_workers > 0
    tail = plan.tails["p99"]
    assert tail.ttft_s is not None
    assert tail.tpot_s is not None
    assert tail.ttft_s <= 0.5 * (1 + 1e-9)
    assert tail.tpot_s <= 0.03 * (1 + 1e-9)


@pytest.mark.parametrize(("tpot_ms", "percentile"), [(12.0, None), (18.0, None), (16.0, "p99"), (40.0, "p99")])
def test_a_rate_falls_with_passes_as_if_its_limits_were_tighter(tpot_ms: float, percentile: str | None) -> None:
    """Passes e^x longer are limits e^x tighter at a rate e^x lower: what the search finds for those is another way to
    the slope. 20 ms of HTTP do not stretch, which matters little beside 10 s."""
    asked = replace(ASKED, percentile=percentile)

    def rate(longer: float) -> float:
        tight = replace(asked, ttft=f"{1e4 * exp(-longer)}ms", tpot=f"{tpot_ms * exp(-longer)}ms")
        return log(tight.run().plans[0].tokens_per_s.mid) - longer

    found = replace(asked, ttft="10s", tpot=f"{tpot_ms}ms").run().plans[0].rate_slope
    assert found == pytest.approx((rate(-0.2) - rate(0.2)) / 0.4, rel=0.08)


def test_without_a_limit_that_binds_a_rate_is_as_sure_as_passes() -> None:
    free = replace(ASKED, ttft=None, tpot=None, task="batch").run().plans[0]
    loose = replace(ASKED, ttft="100s", tpot="1s").run().plans[0]
    tight = replace(ASKED, tpot="12ms").run().plans[0]
    assert free.rate_slope == pytest.approx(1.0)
    assert loose.rate_slope == pytest.approx(1.0)
    assert tight.rate_slope > 2.0, "near the time of a lone pass"
    ends = [(p.tokens_per_s.low / p.tokens_per_s.mid, p.tokens_per_s.high / p.tokens_per_s.mid) for p in (loose, tight)]
    assert ends[1][0] < ends[0][0]
    assert ends[1][1] / ends[1][0] > ends[0][1] / ends[0][0]


def test_what_a_fleet_could_carry_has_an_interval() -> None:
    plan = replace(ASKED, have=None, chips="h100-sxm5-80gb", rate="40/s", tpot="12ms").run().plans[0]
    assert plan.capacity is not None
    assert plan.capacity.mid == plan.largest_requests_per_s
    assert plan.capacity.low < plan.capacity.mid < plan.capacity.high
    # the rate that was asked for is not what a limit leaves
    assert plan.tokens_per_s.low / plan.tokens_per_s.mid > plan.capacity.low / plan.capacity.mid
    assert replace(ASKED).run().plans[0].capacity is None


def test_of_software_that_carries_a_load_on_the_same_chips_the_fastest_at_that_load_is_taken() -> None:
    # to the grid of batches at which layouts are compared
    asked = replace(ASKED, rate="3/s", have="h100-sxm5-80gb", model="meta-llama/Llama-3.1-8B")
    plan = asked.run().plans[0]
    first = plan.ttft_s.mid + plan.tpot_s.mid * 300
    for runtime in ("vllm", "sglang"):
        other = replace(asked, runtime=runtime).run().plans[0]
        if other.chips == plan.chips:
            assert first <= 1.05 * (other.ttft_s.mid + other.tpot_s.mid * 300)
