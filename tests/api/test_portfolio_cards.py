"""Which demands fit together on one card."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from chipwise.api.portfolio_cards import MEMORIES, TIMES, CardPart, Sleeper, SmallDemand, apart, cards, conflict
from chipwise.catalog.override import Share, instances_of

QUESTION = cast(Any, SimpleNamespace(workload_of=lambda _: SimpleNamespace(output_tokens=1.0)))


def part(demand: int, share: Share, memory: float, active: float, seconds: float = 2.0) -> CardPart:
    alone = cast(Any, SimpleNamespace(chip="h100-sxm5-80gb", answer_s=lambda _: 1.0))
    plan = cast(Any, SimpleNamespace(answer_s=lambda _: seconds))
    return CardPart(SmallDemand(demand, f"d{demand}", QUESTION, alone, 1.0), share, plan, memory, active)


def drawn(seed: int) -> list[list[CardPart]]:
    """Up to three parts of each of five demands."""
    rng = np.random.default_rng(seed)
    cuts = instances_of("h100-sxm5-80gb")
    found = []
    for d in range(5):
        timed = [
            part(d, Share(gpu), float(rng.choice(MEMORIES)), float(rng.random()), float(rng.uniform(1, 3)))
            for gpu in TIMES
            if rng.random() < 0.8
        ]
        cut = cuts[int(rng.integers(0, len(cuts)))]
        found.append([*timed, part(d, Share(instance=cut.name), cut.memory, 1.0)])
    return found


def fits(card: tuple[CardPart, ...]) -> bool:
    """The same by its definition."""
    if len({p.how for p in card}) > 1:
        return False
    if card[0].share.instance:
        cuts = {cut.name: cut.parts for cut in instances_of("h100-sxm5-80gb")}
        units, memory = np.sum([cuts[p.share.instance] for p in card], axis=0)
        return bool(units <= 1.0 + 1e-9 and memory <= 1.0 + 1e-9)
    work = sum(p.active for p in card)
    return sum(p.memory for p in card) <= 1.0 and all(1.0 + work - p.active <= 1.0 / p.share.gpu + 1e-9 for p in card)


@pytest.mark.parametrize("seed", range(20))
def test_every_set_that_fits_on_a_card_has_one_that_slows_it_least(seed: int) -> None:
    parts = drawn(seed)
    found = {tuple(p.small.demand for p in card): card for card in cards(parts)}
    for count in (2, 3, 4):
        for names in combinations(range(5), count):
            every = [()]
            for d in names:
                every = [(*some, p) for some in every for p in parts[d]]  # type: ignore[misc]
            able = [card for card in every if fits(card)]
            assert (names in found) == bool(able)
            if able:
                least = min(sum(p.slower for p in card) for card in able)
                assert sum(p.slower for p in found[names]) == pytest.approx(least)
                assert fits(found[names])


def test_what_does_not_fit_is_said() -> None:
    half, most = part(0, Share(0.5), 0.5, 1.0), part(1, Share(0.5), 0.75, 1.0)
    assert conflict((half, half)) == ""
    assert conflict((half, most)) == "their weights and caches take 125% of its memory"
    quick = part(2, Share(0.75), 0.25, 0.1)
    said = "d0 has work 100% of the time, d2 keeps its targets where others have it at most 33%"
    assert conflict((half, quick)) == said
    why = list(apart("h100", [half.small, quick.small, most.small], [[half], [quick], []]))
    assert why == ["d1 keeps its targets on no part of a h100", f"d0 and d2 do not fit on one h100: {said}"]


def sleeper(demand: int, weights: float = 30e9, patience: float = 60.0, rate: float = 0.01) -> CardPart:
    found = part(demand, Share(memory=0.9), 0.9, 0.1)
    asleep = Sleeper(weights, 1.0, 100e9, 1e9, 8e9, patience, None, 0.0)
    return replace(found, small=replace(found.small, rate=rate), asleep=asleep)


def test_demands_sleep_by_turns_only_where_they_do_not_fit_awake() -> None:
    small, large = part(0, Share(0.5), 0.25, 0.1), part(1, Share(0.5), 0.75, 0.1)
    wide = part(2, Share(0.5), 0.75, 0.1)
    asked = [[small, sleeper(0)], [large, sleeper(1)], [wide, sleeper(2)]]
    found = {tuple(p.small.demand for p in card): {p.how for p in card} for card in cards(asked)}
    assert found == {(0, 1): {"time"}, (0, 2): {"time"}, (1, 2): {"sleep"}, (0, 1, 2): {"sleep"}}
    asked = [[sleeper(0)], [sleeper(1)], [sleeper(2, patience=0.1)]]
    assert {tuple(p.small.demand for p in card) for card in cards(asked)} == {(0, 1)}


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"weights": 80e9}, "their weights take 110 GB of the host's memory, a chip's part is 100 GB"),
        ({"patience": 0.1}, "d1 waits 1.0"),
        ({"rate": 2.0}, "of the time is left to d0, it keeps its targets with 50%"),
    ],
)
def test_why_demands_cannot_sleep_by_turns(other: dict[str, float], said: str) -> None:
    one, two = sleeper(0), sleeper(1, **other)
    (why,) = apart("h100", [one.small, two.small], [[one], [two]])
    assert said in why
    assert "do not fit on one h100: no part of it is enough for d0 and d1; asleep by turns, " in why
