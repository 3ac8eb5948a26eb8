"""The best of many plans equals the best that one finds by trying them all."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toys import CHIPS, DENSE, DEPLOYMENTS, LARGE, MIXTURE, RATES, loads

from chipwise.calibrate.parameter import Z80
from chipwise.catalog.preferences import preferences
from chipwise.catalog.price import OwnCosts, Rent, rent_basis
from chipwise.parallel.layout import Layout, Reason, check_layout
from chipwise.predict.passes import Requests
from chipwise.predict.service import LOADS as GRID
from chipwise.predict.service import ONE, Prediction
from chipwise.search.choose import Choice, Refusal
from chipwise.search.choose import choose as chosen_of
from chipwise.search.evaluate import ENDLESS, FEW_LOADS, Evaluated, evaluate
from chipwise.search.memory import memory_of
from chipwise.search.prefer import pareto
from chipwise.search.reach import Reach
from chipwise.search.space import Deployment, Group, Limits, candidates, layouts_for
from chipwise.search.targets import Caution
from chipwise.workload.graph import Graph
from chipwise.workload.workload import Workload

PRICES = {"h100-sxm5-80gb": 3.0, "a100-sxm4-80gb": 1.5, "l4": 0.7}


def per_chip(usd: float) -> OwnCosts:
    """A chip paid at so much an hour, one by one."""
    return OwnCosts(usd * 8760.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0)


PAID = {chip: per_chip(usd) for chip, usd in PRICES.items()}
LIMITS = Limits(max_devices=8)


def certain(deployments: int = len(DEPLOYMENTS), slower: float = 1.0) -> Caution:
    """Middles taken at their word, but for a TPOT that may be so many times as long, as surely as asked."""
    one = np.ones((2, deployments))
    ends = np.array([[1.0], [slower ** (Z80 / NormalDist().inv_cdf(0.9))]])
    return Caution.of(one, one * ends, one, 0.9)


def choose(
    e: Evaluated, w: Workload, prices: Mapping[str, OwnCosts | Rent | None], limits: Limits, caution: Caution
) -> tuple[list[Choice], list[Refusal], Counter[Reason]]:
    """The first of the choices of each deployment, the refusals, and the fates of all candidates."""
    found = chosen_of(e, w, prices, limits, caution)
    firsts: dict[str, Choice] = {}
    for choice in found.choices:
        firsts.setdefault(choice.deployment.chip.id, choice)
    return list(firsts.values()), found.refusals, found.counts


def choices(
    graph: Graph, workload: Workload, limits: Limits = LIMITS, caution: Caution | None = None
) -> tuple[list[Choice], list[Refusal], Counter[Reason]]:
    (group,) = candidates(graph, DEPLOYMENTS, limits)
    return choose(evaluate(graph, group, workload, *RATES), workload, PAID, limits, caution or certain())


@dataclass(frozen=True)
class Tried:
    """One layout at its best batch: what it is compared by, and what it is."""

    cost: float
    times: tuple[float, ...]
    chance: float
    staged: bool
    size: tuple[float, ...]
    layout: Layout
    batch: float
    chips: float

    def beats(self, other: Tried) -> bool:
        mine, its = ((t.cost, -t.chance, float(t.staged)) for t in (self, other))
        if not all(a <= b for a, b in zip(mine, its, strict=True)):
            return False
        ratios = [a / b for a, b in zip(self.times, other.times, strict=True)]
        if all(r <= 1.0 for r in ratios) and (mine, self.times) != (its, other.times):
            return True
        noticed = preferences().noticed
        return all(r <= 1.0 + noticed for r in ratios) and any(r < 1.0 - noticed for r in ratios)


def first_of(tried: list[Tried], confidence: float = 0.9) -> Tried:
    """The rules of `prefer`, read one after the other."""
    p = preferences()
    left = [t for t in tried if t.chance >= confidence - 0.002]
    if not left:
        likely = max(math.floor(t.chance / 0.01 + 0.2) for t in tried)
        left = [t for t in tried if math.floor(t.chance / 0.01 + 0.2) == likely]
    least = min(t.cost for t in left)
    near = [t for t in left if t.cost <= least + p.equal * abs(least)]
    if all(t.staged for t in near):
        near += [t for t in left if not t.staged and t.cost <= least + p.evidence * abs(least)]
    free = [t for t in near if not any(other.beats(t) for other in near)]
    return min(free or near, key=lambda t: (t.staged, *t.size, t.cost, *t.times))


def carried(p: Prediction, j: int, room: float, w: Workload, slower: float) -> float:
    """The rate up to which targets hold: between a load of the grid and the next, where that has room and misses one;
    logarithms of times over logarithms of rates."""
    rate, k = p.requests_per_s[0], j + 1
    targets = ((w.ttft_s, p.ttft_s[0]), (w.tpot_s, slower * p.tpot_s[0]))
    taken = [max((float(x[i]) / t for t, x in targets if t is not None), default=0.0) for i in (j, k) if i < len(rate)]
    if len(taken) < 2 or not p.resident[0, k] <= room or not taken[1] > 1.0:
        return float(rate[j])
    part = -math.log(taken[0]) / math.log(taken[1] / taken[0])
    return float(rate[j] * max(rate[k] / rate[j], 1.0) ** part)


def by_trying_all(
    graph: Graph, d: Deployment, w: Workload, limits: Limits, slower: float
) -> tuple[Layout, float, float] | None:
    """(layout, batch, chips) of the best plan of a chip, found with plain loops over single plans; `slower` is what a
    TPOT may turn out to be over its middle."""
    tried: list[Tried] = []
    for row in layouts_for(graph, d, limits):
        layout = Layout(*(float(x) for x in row))
        group = Group.single(d, layout)
        memory = memory_of(graph, group, Requests.of(w, d.policies))
        stages = 1.0 if w.task == "local" else layout.pp
        if check_layout(graph, layout) is not Reason.OK or layout.tp * layout.dp > d.device.domain:
            continue
        if not memory.fits(stages).all():
            continue
        engines = loads(graph, group, w)
        p = engines.closed(np.ones((1, 1))) if w.task == "local" else engines.over_batches()
        room = min(float(np.asarray(memory.running(stages)).item()), d.policies.max_sequences)
        loaded = int((p.resident[0, ONE:] <= room).sum())
        if w.task != "local" and loaded < FEW_LOADS:
            # the grid has few loads, or none, with room for those that wait beside it: shares of the load that has
            shares = np.arange(1, len(GRID) + 1) / len(GRID)
            if w.task == "serve":
                most = engines.open(np.full((1, 1), ENDLESS)).requests_per_s
                p, room = engines.open(most * shares), math.inf
            else:
                p = engines.full()
                p = engines.at(p.load * shares) if loaded else p
        best: dict[bool, int] = {}
        for j, wary in ((j, wary) for j in range(len(p.batch[0])) for wary in (False, True)):
            held = p.resident[0, j]
            if j and not held <= room:
                continue
            if w.tpot_s is not None and p.tpot_s[0, j] * (slower if wary else 1.0) > w.tpot_s:
                continue
            if w.ttft_s is not None and p.ttft_s[0, j] > w.ttft_s:
                continue
            if wary not in best or p.tokens_per_s[0, j] > p.tokens_per_s[0, best[wary]]:
                best[wary] = j
        if False not in best:
            continue
        each, replicas, point = float(layout.devices), 1, best.get(True, best[False])
        times, steep = (float(p.ttft_s[0, point]), float(p.tpot_s[0, point])), [1.0, 1.0]
        if w.task == "serve" and w.rate_per_s is not None:
            rate = w.utilisation * carried(p, best[False], room, w, 1.0)
            # passes as much longer take the rate of a load down as much
            rate = min(rate, carried(p, best[True], room, w, slower) / slower) if True in best else rate
            replicas, point = math.ceil(w.rate_per_s / rate * (1 - 1e-9)), best[False]
            upto = slice(point + 2)
            every = np.maximum.accumulate(p.requests_per_s[0])
            each_s, rates = w.rate_per_s / replicas, every[upto]
            times = tuple(float(np.interp(each_s, rates, x[0, upto])) for x in (p.ttft_s, p.tpot_s))  # type: ignore[assignment]
            if slower > 1.0:  # all passes s times as long: T becomes s T(s rate)
                steep = [
                    1.0 + math.log(max(np.interp(each_s * slower, every, x[0]) / t, 1.0)) / math.log(slower)
                    for t, x in zip(times, (p.ttft_s, p.tpot_s), strict=True)
                ]
        tokens = float(p.tokens_per_s[0, point])
        answer = times[0] + w.output_tokens * times[1]
        chips = replicas * each
        if chips > limits.chips(d.chip.id) or chips * PRICES[d.chip.id] > (limits.max_usd_per_h or math.inf):
            continue
        held, staged = float(d.system.chips_per_host if d.system else 1), layout.pp > 1
        hosts = math.ceil(replicas / (held // each)) if each <= held else replicas * math.ceil(each / held)
        size: tuple[float, ...] = (hosts, chips, -replicas, layout.pp, layout.dp)
        if w.task == "local":
            cost, size = each, (answer, layout.pp)
        elif w.rate_per_s is not None and w.task == "serve":
            cost = chips * PRICES[d.chip.id]
        else:
            cost = each / tokens
        chance, widths = 1.0, (math.sqrt(steep[0] ** 2 - 1.0), steep[1])
        targets = ((w.ttft_s, times[0]), (w.tpot_s if w.output_tokens > 1 else None, times[1]))
        for (target, time), width in zip(targets, widths, strict=True):
            if target is not None and slower > 1.0 and width > 0.0:
                z = NormalDist().inv_cdf(0.9) * math.log(target / time) / (width * math.log(slower))
                chance = min(chance, NormalDist().cdf(z))
            elif target is not None:
                chance = min(chance, float(time <= target))
        times = () if w.task == "batch" else times
        tried.append(Tried(cost, times, chance, staged, size, layout, float(p.batch[0, point]), chips))
    if not tried:
        return None
    one = first_of(tried)
    return one.layout, one.batch, one.chips


LOADS = {
    "as much as it takes": Workload(),
    "a rate": Workload(rate_per_s=20.0, ttft_s=2.0, tpot_s=0.05),
    "a low rate": Workload(rate_per_s=0.01),
    "tight": Workload(tpot_s=0.012),
    "batch": Workload(task="batch", prompt_tokens=500, output_tokens=1000),
    "local": Workload(task="local", prompt_tokens=500, output_tokens=200),
}


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("graph", [DENSE, LARGE, MIXTURE], ids=["dense", "large", "mixture"])
@pytest.mark.parametrize("limits", [LIMITS, Limits(8, 4, 7.0)], ids=["wide", "tight budget"])
@pytest.mark.parametrize("slower", [1.0, 1.3], ids=["certain", "cautious"])
def test_the_choice_is_the_best_of_all(graph: Graph, load: str, limits: Limits, slower: float) -> None:
    workload = LOADS[load]
    wary = certain(slower=slower)
    found, refusals, counts = choices(graph, workload, limits, wary)
    chosen = {c.deployment.chip.id: c for c in found}
    for d in DEPLOYMENTS:
        best = by_trying_all(graph, d, workload, limits, slower)
        if best is None:
            assert d.chip.id in {r.chip for r in refusals}
            continue
        c = chosen[d.chip.id]
        columns = c.evaluated.group.layout
        layout = Layout(*(float(np.asarray(columns.part(p))[c.index]) for p in ("tp", "pp", "dp", "ep")))
        batch = float(c.evaluated.prediction.batch[c.index, c.point])
        assert (layout, batch, c.chips) == (best[0], pytest.approx(best[1], rel=1e-9), best[2]), d.chip.id
    assert {*chosen, *(r.chip for r in refusals)} == set(CHIPS)
    rows = sum(1 for d in DEPLOYMENTS for _ in layouts_for(graph, d, limits))
    assert sum(counts.values()) == rows, "every candidate has one fate"


@pytest.mark.parametrize("seed", [*range(24), 96, 232])
def test_the_choice_is_the_best_of_all_for_questions_at_random(seed: int) -> None:
    check_at_random(seed)


def check_at_random(seed: int) -> None:
    """A question drawn at random, of one chip: the choice is what plain loops over all layouts find."""
    draw = random.Random(seed)
    graph, d = draw.choice((DENSE, LARGE, MIXTURE)), draw.choice(DEPLOYMENTS)
    task = draw.choice(("serve", "serve", "serve", "batch", "local"))
    w = Workload(
        task,  # type: ignore[arg-type]
        round(10 ** draw.uniform(1.5, 4.0)),
        round(10 ** draw.uniform(0.5, 3.2)),
        10 ** draw.uniform(-2, 2) if task == "serve" and draw.random() < 0.8 else None,
        draw.choice((None, 10 ** draw.uniform(-0.7, 1.0))) if task == "serve" else None,
        draw.choice((None, 10 ** draw.uniform(-2.2, -0.8))) if task == "serve" else None,
    )
    slower = draw.choice((1.0, 1.2, 1.6, 2.0))
    budget = draw.choice((None, 10 ** draw.uniform(0.5, 2.5)))
    limits = Limits(draw.choice((4, 8)), draw.choice((None, 64)), budget)
    (group,) = candidates(graph, (d,), limits)
    wary = certain(1, slower)
    found, refused, _ = choose(evaluate(graph, group, w, *RATES), w, PAID, limits, wary)
    best = by_trying_all(graph, d, w, limits, slower)
    if best is None:
        assert refused
        assert not found
        return
    (c,) = found
    columns = c.evaluated.group.layout
    layout = Layout(*(float(np.asarray(columns.part(p))[c.index]) for p in ("tp", "pp", "dp", "ep")))
    batch = float(c.evaluated.prediction.batch[c.index, c.point])
    assert (layout, batch, c.chips) == (best[0], pytest.approx(best[1], rel=1e-9), best[2])


def test_figures_of_a_choice() -> None:
    workload = LOADS["a rate"]
    found, _, _ = choices(DENSE, workload)
    for c in found:
        p = c.evaluated.prediction
        assert c.tpot_s == p.tpot_s[c.index, c.point] <= 0.05
        assert c.ttft_s == p.ttft_s[c.index, c.point] <= 2.0
        below, above = p.requests_per_s[c.index, c.point : c.point + 2]
        assert below * (1 - 1e-9) <= c.largest_per_s < above
        assert c.replicas * 0.7 * c.largest_per_s >= 20 * (1 - 1e-6)
        assert (c.replicas - 1) * 0.7 * c.largest_per_s < 20
        assert c.usd_per_h == pytest.approx(c.chips * PRICES[c.deployment.chip.id])


def test_three_times_the_rate_of_one_replica_takes_three() -> None:
    (one, *_), _, _ = choices(DENSE, Workload(rate_per_s=0.01))
    rate = 3 * 0.7 * one.largest_per_s
    for factor, replicas in ((1.0, 3), (1.0001, 4), (0.6, 2)):
        found, _, _ = choices(DENSE, Workload(rate_per_s=factor * rate), Limits(max_devices=1))
        assert next(c.replicas for c in found if c.deployment == one.deployment) == replicas


def reason_for(graph: Graph, workload: Workload, limits: Limits, chip: str) -> Reason | None:
    _, refusals, _ = choices(graph, workload, limits)
    return next((r.reason for r in refusals if r.chip == chip), None)


def test_why_not() -> None:
    slow = Workload(tpot_s=1e-6)
    assert reason_for(DENSE, slow, LIMITS, "l4") is Reason.SLO
    assert reason_for(DENSE, Workload(ttft_s=1e-6), LIMITS, "l4") is Reason.SLO
    assert reason_for(LARGE, Workload(), Limits(max_devices=1), "l4") is Reason.MEMORY
    assert reason_for(DENSE, Workload(rate_per_s=1e5), Limits(8, 10), "l4") is Reason.BUDGET
    assert reason_for(DENSE, Workload(rate_per_s=1e5), Limits(8, None, 1.0), "l4") is Reason.BUDGET
    assert reason_for(DENSE, Workload(), LIMITS, "l4") is None


def test_the_reason_is_that_of_the_closest_candidate() -> None:
    # most layouts of the large model do not fit on one L4, some do on eight, and those are too slow
    _, refusals, counts = choices(LARGE, Workload(tpot_s=1e-6))
    assert counts[Reason.MEMORY] > 0
    assert {r.reason for r in refusals} == {Reason.SLO}


def test_an_unknown_price_is_within_no_budget() -> None:
    (group,) = candidates(DENSE, DEPLOYMENTS, LIMITS)
    e = evaluate(DENSE, group, Workload(), *RATES)
    found, refusals, _ = choose(e, Workload(), {"l4": per_chip(0.7)}, replace(LIMITS, max_usd_per_h=100.0), certain())
    assert [c.deployment.chip.id for c in found] == ["l4"]
    assert {r.reason for r in refusals} == {Reason.NO_PRICE}
    unpriced, _, _ = choose(e, Workload(), {}, LIMITS, certain())
    assert len(unpriced) == 3
    assert all(math.isnan(c.usd_per_h) for c in unpriced)


def test_whole_machines_count_against_the_limit() -> None:
    (group,) = candidates(DENSE, DEPLOYMENTS, LIMITS)
    e = evaluate(DENSE, group, Workload(rate_per_s=0.01), *RATES)
    rented = {"h100-sxm5-80gb": rent_basis("h100-sxm5-80gb", dt.date(2026, 11, 21), providers=("coreweave",))}
    (machine,) = {o.usd_per_h for o in rented["h100-sxm5-80gb"].quotes}
    for limit, plans in ((machine + 0.01, 1), (machine - 0.01, 0)):
        limits = replace(LIMITS, max_usd_per_h=limit)
        found, refusals, _ = choose(e, Workload(rate_per_s=0.01), rented, limits, certain())
        assert [c.usd_per_h for c in found] == [machine] * plans
        assert ("h100-sxm5-80gb", Reason.BUDGET) in [(r.chip, r.reason) for r in refusals] or plans


def test_chips_that_the_user_has_are_all_put_to_work() -> None:
    limits = Limits(max_devices=4, have={"l4": 8})
    (c, *_), refusals, _ = choices(DENSE, Workload(), limits)
    assert c.deployment.chip.id == "l4"
    assert c.chips == 8
    assert c.replicas >= 2
    assert {r.reason for r in refusals} == {Reason.BUDGET}, "the chips that the user lacks"


# ------------------------------------------------------------------ the front


def front_by_comparing_all(cost: list[float], speed: list[float]) -> list[bool]:
    points = list(zip(cost, speed, strict=True))

    def beaten(i: int) -> bool:
        a, b = points[i]
        return any(x <= a and y <= b and (x < a or y < b) for x, y in points)

    return [math.isfinite(cost[i]) and not beaten(i) for i in range(len(points))]


coordinate = st.one_of(st.integers(0, 6).map(float), st.floats(0.1, 10))


@given(st.lists(st.tuples(coordinate, coordinate), max_size=30))
def test_the_front_is_what_nobody_beats(points: list[tuple[float, float]]) -> None:
    cost, speed = [p[0] for p in points], [p[1] for p in points]
    assert pareto(np.array(cost), np.array(speed)).tolist() == front_by_comparing_all(cost, speed)


def test_unknown_points_are_not_on_the_front() -> None:
    cost = np.array([np.nan, 1.0, np.inf, 2.0])
    speed = np.array([0.1, 5.0, 0.2, np.nan])
    assert pareto(cost, speed).tolist() == [False, True, False, False]


# ------------------------------------------------------------------ refusals


def test_a_refusal_says_what_is_in_reach() -> None:
    (group,) = candidates(DENSE, DEPLOYMENTS, LIMITS)
    asked = Workload(rate_per_s=1e6, ttft_s=2.0, tpot_s=0.05)
    e = evaluate(DENSE, group, asked, *RATES)
    found, refusals, _ = choose(e, asked, PAID, replace(LIMITS, max_chips=8), certain())
    assert not found
    for r in refusals:
        assert r.reason is Reason.BUDGET
        served = replace(asked, rate_per_s=r.reach.requests_per_s * 0.999)
        again, _, _ = choose(e, served, PAID, replace(LIMITS, max_chips=8), certain())
        assert r.chip in {c.deployment.chip.id for c in again}
        assert r.reach.binds(asked) == ""


def test_a_target_out_of_reach_is_named() -> None:
    asked = Workload(ttft_s=10.0, tpot_s=1e-6)
    _, refusals, _ = choices(DENSE, asked)
    for r in refusals:
        assert r.reach.binds(asked) == "TPOT"
        # what is in reach can be asked for
        mended, _, _ = choices(DENSE, replace(asked, tpot_s=r.reach.tpot_with_ttft_s * 1.001))
        assert r.chip in {c.deployment.chip.id for c in mended}


def test_the_closer_of_two_refusals_keeps_the_better_reach() -> None:
    def refusal(reason: Reason, ttft_s: float, rate: float) -> Refusal:
        return Refusal(DEPLOYMENTS[0], reason, Reach(ttft_s, 1.0, 1.0, rate))

    a, b = refusal(Reason.MEMORY, 1.0, 5.0), refusal(Reason.SLO, 2.0, 0.0)
    assert a.closer(b) == b.closer(a) == refusal(Reason.SLO, 1.0, 5.0)
    assert a.closer(refusal(Reason.TP_HEADS, 1.0, 5.0)).reason is Reason.MEMORY
