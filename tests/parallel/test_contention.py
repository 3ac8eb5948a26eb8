"""What groups that do the same at once leave each other of shared links."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chipwise.catalog.chips import get_chip
from chipwise.catalog.system import get_system
from chipwise.parallel.collective import CollectiveParameters, dispatch, exchange
from chipwise.parallel.network import Network, Wiring, levels, system_network, wiring
from chipwise.predict.training.cluster import on_system

DGX = Network(450e9, 8.0, 50e9)
BOX = Network(31.5e9, 8.0, 6.25e9, wiring=Wiring(trunk=4.0, trunk_bytes_per_s=60e9))
BRIDGED = replace(BOX, wiring=replace(BOX.wiring, near=2.0, near_bytes_per_s=300e9, near_pair_bytes_per_s=300e9))


def tree(ratio: float) -> Network:
    return replace(DGX, wiring=Wiring(leaf=32.0, oversubscription=ratio))


FREE = CollectiveParameters(1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0)


def rate(n: Network, ranks: float, stride: float = 1.0) -> float:
    """Of the outermost tier that the group needs."""
    tiers = levels(n, ranks, stride)
    held, found = 1.0, 0.0
    for tier in tiers:
        if float(np.asarray(tier.ranks)) > held:
            held, found = float(np.asarray(tier.ranks)), float(np.asarray(tier.bytes_per_s))
    return found


@pytest.mark.parametrize("stride", [1.0, 2.0, 8.0, 64.0])
@pytest.mark.parametrize("ranks", [2.0, 8.0, 64.0, 1024.0])
def test_even_wiring_changes_nothing(ranks: float, stride: float) -> None:
    assert rate(DGX, ranks, stride) == rate(tree(1.0), ranks, stride)
    usual, same = (dispatch(1e6, 8.0, ranks, n, FREE, stride=stride).total_s for n in (DGX, tree(1.0)))
    assert usual == same


def test_strided_groups_share_the_way_between_sockets() -> None:
    """Four pairs across the sockets get a quarter of 60 GB/s each; pairs on one socket keep their links."""
    assert rate(BOX, 2.0, 4.0) == 15e9
    assert rate(BOX, 4.0, 2.0) == 30e9
    assert rate(BOX, 8.0) == 31.5e9
    assert rate(BOX, 2.0) == 31.5e9


def test_bridged_cards_are_faster_than_the_bus_that_joins_them() -> None:
    assert [rate(BRIDGED, ranks) for ranks in (2.0, 4.0, 8.0)] == [300e9, 31.5e9, 31.5e9]
    assert rate(BRIDGED, 2.0, 2.0) == 31.5e9
    # four cards in two pairs put half as much on the bus as four without bridges
    both = [float(np.asarray(exchange("all_gather", 1e9, 4.0, n, FREE).total_s)) for n in (BRIDGED, BOX)]
    assert both == pytest.approx([0.25e9 / 31.5e9, 0.75e9 / 31.5e9])


def test_an_all_to_all_sends_half_of_its_bytes_to_the_other_socket() -> None:
    """Eight ranks, 7 MB each, 4/7 of it from each of four chips over 60 GB/s: slower than 7 MB over 31.5 GB/s."""
    took = float(np.asarray(dispatch(1e6, 8.0, 8.0, BOX, FREE).total_s))
    assert took == pytest.approx(4.0 * (4.0 / 7.0) * 7e6 / 60e9)
    assert took > 7e6 / 31.5e9


def test_an_oversubscribed_tree_slows_groups_that_interleave() -> None:
    """Neighbouring nodes cross each leaf once and keep their links; ranks 16 nodes apart share 8 links up in 16."""
    assert rate(tree(4.0), 1024.0, 8.0) == 50e9
    assert rate(tree(4.0), 64.0, 128.0) == pytest.approx(50e9 * 32.0 / (4.0 * 16.0))
    # inside a leaf
    assert rate(tree(4.0), 2.0, 128.0) == 50e9


def test_an_oversubscribed_tree_slows_an_all_to_all_by_what_leaves_the_leaf() -> None:
    """128 nodes on four leaves: three quarters leave, so that a ratio of 4 leaves a third of each NIC."""
    even, uneven = (
        dispatch(1e6, 500.0, 1024.0, replace(n, link_bytes_per_s=1e15), FREE).total_s for n in (DGX, tree(4.0))
    )
    assert float(np.asarray(uneven / even)) == pytest.approx(3.0)


def test_the_catalogue_knows_bridges_and_sockets() -> None:
    found = wiring(get_system("h100-nvl-server"))
    assert (found.near, found.near_bytes_per_s, found.trunk) == (2.0, 300e9, 4.0)
    assert wiring(get_system("h200-nvl-server")).near_pair_bytes_per_s == 150e9
    assert wiring(get_system("dgx-h100")) == Wiring()
    assert wiring(get_system("desktop-rtx-4090")) == Wiring()


def test_training_on_bridged_cards_runs_over_the_bus_beyond_the_bridge() -> None:
    machine = on_system(get_chip("h100-nvl-94gb"), get_system("h100-nvl-server"))
    assert machine.link_bytes_per_s == 63e9
    assert rate(machine.network, 2.0) == 300e9
    assert rate(machine.network, 8.0) == 60e9


def test_ranks_that_lie_apart_use_one_nic_each() -> None:
    n = system_network(get_system("dgx-h100"), 64)
    together, apart = (
        float(np.asarray(exchange("all_gather", 1e9, ranks, n, FREE, stride=stride).total_s))
        for ranks, stride in ((64.0, 1.0), (8.0, 8.0))
    )
    assert apart > 5.0 * together
