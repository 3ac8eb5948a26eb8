"""The smallest count that holds a model and its cache, against trying every layout."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from toys import DENSE, DEPLOYMENTS, LARGE, MIXTURE, deployment

from chipwise.parallel.layout import Layout, Reason, check_layout
from chipwise.search.memory import account_of, fit_on, largest_context, pooled_chips
from chipwise.search.space import Deployment, Limits, layouts_for
from chipwise.workload.graph import Graph

L4 = deployment("l4")


def holds(graph: Graph, d: Deployment, layout: Layout, context: float, sequences: float) -> bool:
    each = np.ceil(sequences / layout.dp)
    return check_layout(graph, layout) is Reason.OK and bool(account_of(graph, d, layout, context).fits(each))


@pytest.mark.parametrize("graph", [DENSE, LARGE, MIXTURE], ids=["dense", "large", "mixture"])
@pytest.mark.parametrize(("context", "sequences"), [(1000, 1), (8000, 16), (100_000, 4)])
def test_nothing_smaller_would_do(graph: Graph, context: float, sequences: float) -> None:
    for d in DEPLOYMENTS:
        found = fit_on(graph, d, context, sequences, limits=Limits(max_devices=16))
        assert found is not None
        layouts = [Layout(*(float(x) for x in row)) for row in layouts_for(graph, d, Limits(max_devices=16))]
        good = [layout for layout in layouts if holds(graph, d, layout, context, sequences)]
        assert found.fits == bool(good)
        if good:
            assert found.layout in good
            assert found.layout.devices == min(layout.devices for layout in good)
            assert found.memory.short_bytes() == 0


def test_a_fixed_count_takes_the_roomiest_layout() -> None:
    found = fit_on(DENSE, L4, 8000, 8, devices=4)
    assert found is not None
    rooms = {
        row: float(account_of(DENSE, L4, Layout(*(float(x) for x in row)), 8000).cache_bytes)
        for row in layouts_for(DENSE, L4, Limits(max_devices=4))
        if row[0] * row[1] * row[2] == 4
    }
    assert found.fits
    assert found.layout.devices == 4
    assert float(found.memory.cache_bytes) == max(rooms.values())


def test_replicas_hold_whole_sequences() -> None:
    h100 = DEPLOYMENTS[0]
    apart = replace(h100, runtime=replace(h100.runtime, features=frozenset({"attention_dp", "ep"})))
    held = account_of(MIXTURE, apart, Layout(dp=2.0, ep=2.0), 1600)
    # each of two replicas has room for 1.7 sequences: two fit, three do not
    context = float(held.tokens) / 1.7
    two, three = (fit_on(MIXTURE, apart, context, n, devices=2) for n in (2, 3))
    assert two is not None
    assert three is not None
    assert (two.fits, three.fits) == (True, False)


def test_what_does_not_fit_says_by_how_much() -> None:
    found = fit_on(LARGE, L4, 1000, 1, devices=1)
    assert found is not None
    assert not found.fits
    short = float(found.memory.sequence_bytes) - float(found.memory.cache_bytes)
    assert found.memory.short_bytes() == pytest.approx(short)
    assert short > 50e9, "74 GB on a card of 24"


def test_a_count_without_a_layout() -> None:
    assert fit_on(DENSE, L4, 1000, 1, devices=37) is None


def test_the_longest_context_fits_and_one_more_does_not() -> None:
    longest = largest_context(DENSE, L4, Layout(), 10_000_000)
    assert account_of(DENSE, L4, Layout(), longest).fits()
    assert not account_of(DENSE, L4, Layout(), longest + 1).fits()
    assert largest_context(DENSE, L4, Layout(), 1000) == 1000, "no longer than the model"
    assert largest_context(LARGE, L4, Layout(), 1000) == 0


def test_pooled_memories() -> None:
    assert pooled_chips(100e9, 0, 44e9) == 3
    assert pooled_chips(88e9, 0, 44e9) == 2
    assert pooled_chips(88e9, 1, 44e9) == 3
