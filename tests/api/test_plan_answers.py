"""`api.plan` and `api.estimate`: what must hold for any plan, whatever the numbers are."""

from __future__ import annotations

import datetime as dt

import pytest

import chipwise
from chipwise import api
from chipwise.api.placing import Given, Terms
from chipwise.api.requests.planning import PlanRequest
from chipwise.catalog.chips import load_chips
from chipwise.catalog.preferences import preferences
from chipwise.catalog.runtime import get_runtime
from chipwise.errors import InfeasibleError, UnknownNameError, UsageError
from chipwise.parallel.layout import Layout
from chipwise.report.assemble import doubts
from chipwise.report.plans import PlanRecord, PlanReport
from chipwise.search.space import Limits
from chipwise.workload.workload import Workload

MODEL = "meta-llama/Llama-3.1-70B"
SMALL = "meta-llama/Llama-3.1-8B"
MIXTURE = "mistralai/Mixtral-8x7B-v0.1"
TODAY = dt.date(2026, 8, 1)

ASKED = {
    "at a rate": (MODEL, Workload("serve", 2000, 300, 10.0, 1.0, 0.04)),
    "at full load": (SMALL, Workload("serve", 500, 200, None, 2.0, 0.05)),
    "mixture at a rate": (MIXTURE, Workload("serve", 1000, 250, 50.0, 1.0, 0.05)),
    "batch": (SMALL, Workload("batch", 4000, 500)),
    "local": (SMALL, Workload("local", 1000, 300)),
}


@pytest.fixture(scope="module")
def reports() -> dict[str, PlanReport]:
    return {name: api.plan(model, w, Terms(today=TODAY)) for name, (model, w) in ASKED.items()}


@pytest.fixture(params=ASKED)
def report(request: pytest.FixtureRequest, reports: dict[str, PlanReport]) -> PlanReport:
    return reports[request.param]


def test_ranks_count_from_one(report: PlanReport) -> None:
    assert [p.rank for p in report.plans] == list(range(1, len(report.plans) + 1))


def test_one_plan_a_chip(report: PlanReport) -> None:
    chips = [p.chip for p in report.plans]
    assert len(set(chips)) == len(chips)


def per_token(p: PlanRecord) -> float:
    """All that a request costs, over its output tokens: of an instance that others fill the share of the plan."""
    assert p.price is not None
    return p.price.mid * p.chips / p.price.billed / p.tokens_per_s.mid


def test_ranked_by_the_goal(report: PlanReport) -> None:
    """What has a price and keeps the targets first; nothing above what is no worse in anything; dearer only within the
    noise, or by what evidence may cost."""
    w, noise = report.workload, preferences()

    def cost(p: PlanRecord) -> float:
        if w.task == "local":
            return p.ttft_s.mid + (w.output_tokens - 1.0) * (p.tpot_s.mid if p.tpot_s else 0.0)
        if p.price is None:
            return float(p.chips)
        return p.price.mid if w.rate_per_s is not None else per_token(p)

    def sure(p: PlanRecord) -> bool:
        return p.chance is None or p.chance >= 0.9 - 0.002

    def figures(p: PlanRecord) -> tuple[float, ...]:
        times = () if w.task == "batch" else (p.ttft_s.mid, p.pace.mid)
        return (cost(p), *times, -(1.0 if p.chance is None else p.chance), float(doubts(p)))

    unpriced = [p.price is None and w.task != "local" for p in report.plans]
    kinds = [(none, not sure(p)) for none, p in zip(unpriced, report.plans, strict=True)]
    assert kinds == sorted(kinds)
    for i, before in enumerate(report.plans):
        for after, kind in zip(report.plans[i + 1 :], kinds[i + 1 :], strict=True):
            if kind != kinds[i] or kind[1]:
                continue
            pairs = list(zip(figures(before), figures(after), strict=True))
            beaten = all(b <= a * (1 + 1e-7) for a, b in pairs) and any(b < a * (1 - 1e-6) for a, b in pairs)
            assert not beaten, (before.chip, after.chip)
            fewer = doubts(after) - doubts(before)
            allowed = noise.evidence * fewer if fewer > 0 else noise.equal
            assert cost(before) <= cost(after) * (1.0 + allowed + 1e-7), (before.chip, after.chip)


def test_nothing_beats_the_front_in_cost_and_speed(report: PlanReport) -> None:
    w = report.workload
    hourly = w.task == "local" or w.rate_per_s is not None
    points = {
        p.rank: ((p.price.mid if hourly else per_token(p)), p.tpot_s.mid)
        for p in report.plans
        if p.price and p.usd_per_million_out
    }
    beaten = {
        rank
        for rank, (cost, time) in points.items()
        if any(c <= cost and t <= time and (c, t) != (cost, time) for c, t in points.values())
    }
    front = {p.rank for p in report.plans if p.on_front}
    assert front
    assert front == points.keys() - beaten


def test_ties_are_mutual(report: PlanReport) -> None:
    ties = {p.rank: set(p.ties) for p in report.plans}
    assert all(a in ties[b] and a != b for a in ties for b in ties[a])


def test_no_announced_chip_is_offered(report: PlanReport) -> None:
    named = {p.chip for p in report.plans} | {r.chip for r in report.refused}
    assert all(load_chips()[chip].rentable for chip in named)


def test_every_refusal_has_a_reason_and_no_plan(report: PlanReport) -> None:
    assert all(r.reason and r.detail for r in report.refused)
    assert not {r.chip for r in report.refused} & {p.chip for p in report.plans}


def test_plans_meet_the_targets(report: PlanReport) -> None:
    w = report.workload
    for p in report.plans:
        assert w.ttft_s is None or p.ttft_s.mid <= w.ttft_s * (1 + 1e-5), p.chip
        assert w.tpot_s is None or p.tpot_s.mid <= w.tpot_s * (1 + 1e-5), p.chip


def test_plans_carry_the_rate(report: PlanReport) -> None:
    # batches are interpolated between points of a grid; kernels step where a tile is full
    rate = report.workload.rate_per_s
    for p in report.plans:
        assert rate is None or p.requests_per_s >= rate * (1 - 5e-3), p.chip


def test_plans_fit(report: PlanReport) -> None:
    for p in report.plans:
        m = p.memory
        assert m.verdict != "no", p.chip
        assert sum(m.items.values()) + m.cache_bytes + m.withheld_bytes == pytest.approx(m.capacity_bytes)
        share = get_runtime(p.runtime).policies.kv_reserved_share
        context = report.workload.prompt_tokens + share * report.workload.output_tokens
        # requests that pass the server count as open and hold no cache yet
        assert m.cache_tokens >= p.concurrency / p.replicas * context * (1 - 2e-2) or p.concurrency < 2, p.chip


def test_shares_add_to_one_and_the_bound_is_the_largest(report: PlanReport) -> None:
    for p in report.plans:
        assert sum(p.shares.values()) == pytest.approx(1.0)
        assert p.bound == max(p.shares, key=lambda name: p.shares[name])


def test_intervals_hold_their_middle(report: PlanReport) -> None:
    for p in report.plans:
        for f in (p.ttft_s, p.tpot_s, p.tokens_per_s, p.tokens_per_s_per_chip, p.usd_per_million_out):
            assert f is None or 0 < f.low <= f.mid <= f.high
        assert p.price is None or 0 < p.price.low <= p.price.mid <= p.price.high


def test_figures_agree_with_each_other(report: PlanReport) -> None:
    for p in report.plans:
        devices = p.layout.tp * p.layout.pp * p.layout.dp
        assert p.chips * load_chips()[p.chip].devices_per_package == p.replicas * devices
        assert p.tokens_per_s_per_chip.mid * p.chips == pytest.approx(p.tokens_per_s.mid)
        assert p.tokens_per_s.mid == pytest.approx(p.requests_per_s * report.workload.output_tokens)


def test_what_was_considered_is_counted(report: PlanReport) -> None:
    assert report.considered > 50 * len(report.plans)
    assert all(n > 0 for n in report.rejected.values())


def test_the_same_question_has_the_same_answer(reports: dict[str, PlanReport]) -> None:
    model, workload = ASKED["at a rate"]
    assert api.plan(model, workload, Terms(today=TODAY)) == reports["at a rate"]


def test_assumptions_are_stated(report: PlanReport) -> None:
    said = " ".join(report.assumptions)
    assert "prefix cache" in said
    assert "provisional" in said


def test_chips_restrict_the_search() -> None:
    report = api.plan(SMALL, Workload("batch"), chips=["l4", "H100", "tpu-v6e"])
    answered = {p.chip for p in report.plans} | {r.chip for r in report.refused}
    assert answered == {"l4", "h100-sxm5-80gb", "tpu-v6e"}


def test_a_comparison_keeps_the_plan_of_each_chip(reports: dict[str, PlanReport]) -> None:
    model, workload = ASKED["at a rate"]
    both = api.plan(model, workload, Terms(today=TODAY), chips=["mi300x", "h100-sxm5-80gb"])
    alone = {p.chip: p for p in reports["at a rate"].plans}
    for p in both.plans:
        assert (p.chips, p.layout, p.tpot_s) == (alone[p.chip].chips, alone[p.chip].layout, alone[p.chip].tpot_s)


def test_limits_are_kept() -> None:
    workload = Workload("serve", 2000, 300, 10.0, 1.0, 0.04)
    few = api.plan(MODEL, workload, Terms(today=TODAY), limits=Limits(max_chips=12))
    assert max(p.chips for p in few.plans) <= 12
    cheap = api.plan(MODEL, workload, Terms(today=TODAY), limits=Limits(max_usd_per_h=50.0))
    assert max(p.price.mid for p in cheap.plans if p.price) <= 50.0
    assert all(p.price for p in cheap.plans)


def test_more_load_never_costs_less() -> None:
    costs = []
    for rate in (1.0, 10.0, 100.0):
        (p,) = api.plan(SMALL, Workload("serve", 2000, 300, rate, 1.0, 0.04), chips=["h100-sxm5-80gb"]).plans
        costs.append(p.chips)
    assert costs == sorted(costs)
    assert costs[0] < costs[-1]


def test_tighter_targets_never_need_fewer_chips() -> None:
    counts = []
    for tpot in (0.1, 0.05, 0.03, 0.02):
        (p,) = api.plan(MODEL, Workload("serve", 2000, 300, 20.0, 2.0, tpot), chips=["h100-sxm5-80gb"]).plans
        counts.append(p.chips)
    assert counts == sorted(counts)


def test_prices_grow_stale() -> None:
    def stale(day: dt.date) -> dict[str, bool]:
        report = api.plan(SMALL, Workload("batch"), Terms(today=day), chips=["h100-sxm5-80gb", "mi300x", "l4"])
        return {p.chip: p.price.stale for p in report.plans if p.price}

    assert not any(stale(dt.date(2026, 7, 21)).values())
    later = stale(dt.date(2030, 1, 1))
    assert later
    assert all(later.values())


@pytest.mark.parametrize(
    ("workload", "asked", "words"),
    [
        (Workload("serve", tpot_s=1e-6), {}, "targets"),
        (Workload("serve", ttft_s=1e-6), {}, "targets"),
        (Workload("serve", rate_per_s=1e6), {"limits": Limits(max_chips=4)}, "max-chips"),
        (Workload("serve"), {"limits": Limits(max_usd_per_h=0.01)}, "max-usd-per-h"),
        (Workload("serve"), {"chips": ["sn30"]}, "not published"),
        (Workload("serve"), {"chips": ["l4"], "limits": Limits(max_devices=1)}, "fit"),
    ],
)
def test_what_cannot_be_met_says_why(workload: Workload, asked: dict[str, object], words: str) -> None:
    with pytest.raises(InfeasibleError) as caught:
        api.plan(MODEL, workload, **asked)  # type: ignore[arg-type]
    assert words in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("prompt_tokens", 0.0),
        ("prompt_tokens", -5.0),
        ("prompt_tokens", float("nan")),
        ("output_tokens", 1e12),
        ("rate_per_s", 0.0),
        ("rate_per_s", float("inf")),
        ("ttft_s", -1.0),
        ("tpot_s", float("nan")),
    ],
)
def test_a_workload_that_cannot_be(field: str, value: float) -> None:
    with pytest.raises(UsageError, match=field):
        Workload(**{field: value})  # type: ignore[arg-type]


ALONE = Layout()


def estimate(
    concurrency: float | None = None, terms: Terms | None = None, layout: Layout = ALONE, count: int | None = None
) -> PlanReport:
    given = Given("h100-sxm5-80gb", layout, count, concurrency)
    return api.estimate(SMALL, Workload("serve"), given, terms)


def test_an_estimate_is_the_plan_at_the_asked_load() -> None:
    for asked in (1.5, 10, 100):
        (p,) = estimate(asked).plans
        assert p.concurrency == pytest.approx(asked, rel=0.02)


def test_more_in_flight_is_more_throughput_and_slower_tokens() -> None:
    plans = [estimate(n).plans[0] for n in (2, 8, 32, 128)]
    tokens = [p.tokens_per_s.mid for p in plans]
    times = [p.tpot_s.mid for p in plans]
    assert tokens == sorted(tokens)
    assert times == sorted(times)


def test_an_estimate_checks_its_count() -> None:
    assert estimate(count=1).plans[0].chips == 1
    with pytest.raises(UsageError, match="takes 1 x"):
        estimate(count=2)


@pytest.mark.parametrize(
    ("layout", "words"),
    [(Layout(tp=3.0), "heads"), (Layout(pp=33.0), "layers"), (Layout(ep=2.0), "experts"), (Layout(tp=16.0), "domain")],
)
def test_an_illegal_layout_says_what_is_legal(layout: Layout, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        estimate(layout=layout)


def test_an_estimate_that_does_not_fit_says_by_how_much() -> None:
    with pytest.raises(InfeasibleError, match="GB short per device"):
        api.estimate(MODEL, Workload("serve"), Given("h100-sxm5-80gb"))


def test_twice_the_bandwidth_is_never_slower() -> None:
    (usual,) = estimate(16).plans
    (faster,) = estimate(16, Terms(changes={"hbm": "6.7TB/s"})).plans
    assert faster.tpot_s.mid < usual.tpot_s.mid


def test_unknown_names() -> None:
    for terms, chips in ((None, ["h100x"]), (Terms(runtime="vlm"), []), (Terms(precision="fp3"), [])):
        with pytest.raises(UnknownNameError):
            api.plan(SMALL, Workload("batch"), terms, chips=chips)


def test_chips_that_are_ranked_by_a_token_show_what_it_costs_and_what_each_serves() -> None:
    report = chipwise.compare("Qwen/Qwen3-32B", chips="h100-sxm5-80gb,mi300x,l40s,tpu-v6e")
    heads = next(line for line in str(report.tables()[0].text(100)).splitlines() if line.startswith("#"))
    assert "$/M out" in heads
    assert "requests/s" in heads
    asked = chipwise.plan("Qwen/Qwen3-32B", rate=2, chips="h100-sxm5-80gb").tables()[0]
    assert "$/h" in asked.columns
    assert "requests/s" not in asked.columns


def test_the_next_question_is_of_whole_clients() -> None:
    asked = PlanRequest(model="Qwen/Qwen3-32B", chips="h100-sxm5-80gb")
    clients = asked.explained(asked.run().plans[0]).concurrency
    assert clients == int(clients) > 1
