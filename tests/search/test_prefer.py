"""Which plan comes first: dominance, noise, evidence, probability; and that looser targets cost no more."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.catalog.preferences import preferences
from chipwise.search.prefer import Contenders, cheapest, first, kept, order, pareto, tied, unled

SURE = 0.9


def test_within_the_noise_the_better_founded_then_the_smaller() -> None:
    cost, faster = [100.0, 104.0, 106.0], [[3.0, 2.0, 1.0]]
    assert first(Contenders.of(cost, times=faster, size=[[2, 1, 1]]), SURE) == 1
    assert first(Contenders.of(cost, times=faster, size=[[2, 1, 0]]), SURE) == 1, "6 % more is not the same cost"
    assert first(Contenders.of(cost, size=[[2, 1, 1]]), SURE) == 0, "smaller alone does not stand above what is cheaper"
    assert first(Contenders.of(cost, doubts=[1, 1, 0]), SURE) == 2, "evidence may cost 10 %"
    assert first(Contenders.of([100.0, 112.0], doubts=[1, 0]), SURE) == 0, "and no more"
    assert first(Contenders.of([100.0, 112.0], doubts=[2, 0]), SURE) == 1, "but for each doubt"


def test_times_that_nobody_tells_apart_do_not_hold_back_a_much_shorter_one() -> None:
    times = [[100.1e-3, 100.7e-3], [19.3e-3, 12.5e-3]]
    assert first(Contenders.of([96.0, 96.0], times=times), SURE) == 1
    assert first(Contenders.of([96.0, 96.0], times=[[0.10, 0.11], times[1]]), SURE) == 0, "10 % is noticed"


def test_of_costs_that_are_the_same_the_faster_throughout_comes_first() -> None:
    cost, times, size = [237.0, 240.0], [[0.474, 0.385], [36.3e-3, 26.7e-3]], [[4, 5]]
    assert first(Contenders.of(cost, times=times, chance=[0.93, 0.98], size=size), SURE) == 1
    assert first(Contenders.of(cost, times=times, chance=[0.98, 0.93], size=size), SURE) == 0, "less sure"
    assert first(Contenders.of([237.0, 250.0], times=times, size=size), SURE) == 0, "5 % are not the same cost"
    assert first(Contenders.of(cost, times=[[0.474, 0.475], times[1]], size=size), SURE) == 0, "one is longer"
    assert first(Contenders.of(cost, times=[[0.4, 0.385]], size=size), SURE) == 0, "that is no lead"


def test_what_is_beaten_in_everything_does_not_come_first() -> None:
    # fewer machines would stand for the dearer one, but it is slower and no likelier
    cost, times = [24.0, 24.5], [[0.2, 0.3], [14.2e-3, 17.2e-3]]
    assert first(Contenders.of(cost, times=times, chance=[0.99, 0.95], size=[[2, 1]]), SURE) == 0
    assert first(Contenders.of(cost, times=[[0.3, 0.2]], chance=[0.99, 0.95], size=[[2, 1]]), SURE) == 1


def test_at_the_same_cost_the_likelier_comes_before_the_sooner() -> None:
    cost, times = [336.0, 336.0], [[0.153, 0.162], [42.3e-3, 38.9e-3]]
    assert first(Contenders.of(cost, times=times, chance=[0.67, 0.89]), 0.5) == 1
    assert first(Contenders.of(cost, times=times, chance=[0.93, 0.94]), 0.5) == 0, "within what chances are worth"


def test_targets_that_hold_come_before_those_that_may_not() -> None:
    c = Contenders.of([1.0, 2.0, 40.0], chance=[0.73, 0.97, 0.99])
    assert order(c, SURE).tolist() == [1, 2, 0]
    assert order(c, 0.999).tolist() == [2, 1, 0], "none holds: the likeliest first"
    assert order(c, 0.5).tolist() == [0, 1, 2]


def test_known_prices_come_first_and_unknown_ones_by_size() -> None:
    c = Contenders.of([np.nan, 3.0, np.nan], group=[1, 0, 1], size=[[8, 9, 4]])
    assert order(c, SURE).tolist() == [1, 2, 0]


def test_more_of_what_is_free_is_cheaper() -> None:
    """Of chips that one has, cost is throughput with its sign turned."""
    assert first(Contenders.of([-100.0, -97.0, -90.0], times=[[3, 2, 1]], size=[[2, 1, 0]]), SURE) == 1


def test_ties() -> None:
    c = Contenders.of([100.0, 104.0, 106.0, 100.0], chance=[0.95, 0.95, 0.95, 0.5])
    assert tied(c, 0, SURE).tolist() == [False, True, False, False]


def test_nothing_to_choose_from() -> None:
    with pytest.raises(ValueError, match="nothing"):
        first(Contenders.of([]), SURE)
    assert len(order(Contenders.of([]), SURE)) == 0


def contenders() -> st.SearchStrategy[Contenders]:
    few = st.sampled_from([1.0, 1.02, 1.04, 1.07, 1.2, 2.0])
    row = st.tuples(few, few, st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99]), st.integers(0, 3), st.integers(1, 3))

    def made(rows: list[tuple[float, float, float, int, int]]) -> Contenders:
        cost, time, chance, doubts, size = zip(*rows, strict=True)
        return Contenders.of(cost, times=[time], chance=chance, doubts=doubts, size=[size])

    return st.lists(row, min_size=1, max_size=9).map(made)


@given(contenders())
def test_the_order_holds_what_it_says(c: Contenders) -> None:
    places, p = order(c, SURE), preferences()
    assert sorted(places.tolist()) == list(range(len(c)))
    assert places[0] == first(c, SURE)
    sure = kept(c.chance, SURE)
    assert not (np.diff(sure[places].astype(int)) > 0).any(), "what holds comes before what may not"
    figures = np.stack([c.cost, c.times[0], -c.chance, c.doubts])
    for i, high in enumerate(places):
        for low in places[i + 1 :]:
            better = figures[:, low] <= figures[:, high]
            assert not (better.all() and (figures[:, low] < figures[:, high]).any()), (high, low)
    if sure.any():
        least = c.cost[sure].min()
        assert c.cost[cheapest(c, SURE)] == least
        assert c.cost[places[0]] <= least * (1.0 + max(p.equal, p.evidence)) + 1e-12


@given(contenders(), st.floats(0.5, 0.99), st.floats(0.5, 0.99))
def test_less_confidence_never_costs_more_but_by_what_evidence_may(c: Contenders, a: float, b: float) -> None:
    low, high = sorted((a, b))
    if not kept(c.chance, high).any():
        return
    assert c.cost[cheapest(c, low)] <= c.cost[cheapest(c, high)]
    assert c.cost[first(c, low)] <= c.cost[first(c, high)] * (1.0 + preferences().evidence) + 1e-12


def test_front() -> None:
    assert pareto(np.array([1.0, 2.0, 3.0, np.nan]), np.array([3.0, 2.0, 2.0, 1.0])).tolist() == [
        True,
        True,
        False,
        False,
    ]


def test_in_a_list_nothing_stands_above_what_leads_it() -> None:
    """Evidence may cost dollars, but not dollars and time: networks list a measured chip below one that is clearly
    faster, or clearly cheaper, and no worse in anything else that was asked."""
    cost, times = [26.1, 24.0, 25.0], [[13.9, 2.4, 14.0]]
    c = Contenders.of(cost, times=times, doubts=[0, 1, 0])
    assert unled(c, [2, 0, 1], SURE) == [1, 2, 0]
    less_sure = Contenders.of(cost, times=times, doubts=[0, 1, 0], chance=[0.99, 0.95, 0.99])
    assert unled(less_sure, [2, 0, 1], SURE) == [2, 0, 1]
    noise = Contenders.of([11.8, 11.4], times=[[6.0, 5.5]], doubts=[0, 1])
    assert unled(noise, [0, 1], SURE) == [0, 1], "within the noise of both evidence decides"
    assert unled(Contenders.of([12.0, 11.0], times=[[6.0, 5.5]], doubts=[0, 1]), [0, 1], SURE) == [1, 0]
    assert unled(Contenders.of([12.0, 8.0], times=[[6.0, 5.5]], group=[0, 1]), [0, 1], SURE) == [0, 1]
