"""What groups that do the same at once leave each other of shared links."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chipwise.catalog.chips import get_chip
from chipwise.catalog.system import get_system
from chipwise.parallel.network import Network, Wiring, all_to_all, group_rate
from chipwise.parallel.topology import Latency, exchange_time, system_topology, wiring
from chipwise.predict.training.cluster import on_system

DGX = Network(450e9, 8.0, 50e9)
BOX = Network(31.5e9, 8.0, 6.25e9, wiring=Wiring(trunk=4.0, trunk_bytes_per_s=60e9))
BRIDGED = replace(
    BOX, wiring=replace(BOX.wiring, near=2.0, near_bytes_per_s=300e9, near_pair_bytes_per_s=300e9)
)


def tree(ratio: float) -> Network:
    return replace(DGX, wiring=Wiring(leaf=32.0, oversubscription=ratio))


@pytest.mark.parametrize("stride", [1.0, 2.0, 8.0, 64.0])
@pytest.mark.parametrize("ranks", [2.0, 8.0, 64.0, 1024.0])
def test_even_wiring_changes_nothing(ranks: float, stride: float) -> None:
    usual = group_rate(DGX, ranks, stride, 0.7, 0.8)
    same = group_rate(tree(1.0), ranks, stride, 0.7, 0.8)
    assert (usual.inside, usual.across) == (same.inside, same.across)
    args = (1e6, 8.0, ranks)
    assert all_to_all(*args, DGX, stride, 0.6, 0.9, 0.0) == all_to_all(
        *args, tree(1.0), stride, 0.6, 0.9, 0.0
    )


def test_strided_groups_share_the_way_between_sockets() -> None:
    """Four pairs across the sockets get a quarter of 60 GB/s each; pairs on one socket keep their links."""
    assert float(group_rate(BOX, 2.0, 4.0, 1.0, 1.0).inside) == 15e9
    assert float(group_rate(BOX, 4.0, 2.0, 1.0, 1.0).inside) == 30e9
    assert float(group_rate(BOX, 8.0, 1.0, 1.0, 1.0).inside) == 31.5e9
    assert float(group_rate(BOX, 2.0, 1.0, 1.0, 1.0).inside) == 31.5e9


def test_bridged_cards_are_faster_than_the_bus_that_joins_them() -> None:
    ranks = np.array([2.0, 4.0, 8.0])
    assert group_rate(BRIDGED, ranks, 1.0, 1.0, 1.0).inside.tolist() == [300e9, 31.5e9, 31.5e9]  # type: ignore[union-attr]
    assert float(group_rate(BRIDGED, 2.0, 2.0, 1.0, 1.0).inside) == 31.5e9


def test_an_all_to_all_sends_half_of_its_bytes_to_the_other_socket() -> None:
    """Eight ranks, 7 MB each, 4/7 of it from each of four chips over 60 GB/s: slower than 7 MB over 31.5 GB/s."""
    took = float(np.asarray(all_to_all(1e6, 8.0, 8.0, BOX, 1.0, 1.0, 1.0, 0.0)))
    assert took == pytest.approx(4.0 * (4.0 / 7.0) * 7e6 / 60e9)
    assert took > 7e6 / 31.5e9


def test_an_oversubscribed_tree_slows_groups_that_interleave() -> None:
    """Neighbouring nodes cross each leaf once and keep their links; ranks 16 nodes apart share 8 links up in 16."""
    near = group_rate(tree(4.0), 1024.0, 8.0, 1.0, 1.0)
    assert float(np.asarray(near.across)) == 50e9
    far = group_rate(tree(4.0), 64.0, 128.0, 1.0, 1.0)
    assert float(np.asarray(far.across)) == pytest.approx(50e9 * 32.0 / (4.0 * 16.0))
    inside_a_leaf = group_rate(tree(4.0), 2.0, 128.0, 1.0, 1.0)
    assert float(np.asarray(inside_a_leaf.across)) == 50e9


def test_an_oversubscribed_tree_slows_an_all_to_all_by_what_leaves_the_leaf() -> None:
    """128 nodes on four leaves: three quarters leave, so that a ratio of 4 leaves a third of each NIC."""
    args = (1e6, 500.0, 1024.0)
    even = all_to_all(*args, DGX, 1.0, 1e9, 1.0, 0.0)
    uneven = all_to_all(*args, tree(4.0), 1.0, 1e9, 1.0, 0.0)
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
    assert float(np.asarray(group_rate(machine.network, 2.0, 1.0, 1.0, 1.0).inside)) == 300e9
    assert float(np.asarray(group_rate(machine.network, 8.0, 1.0, 1.0, 1.0).inside)) == 60e9


def test_ranks_that_lie_apart_use_one_nic_each() -> None:
    t = system_topology(get_system("dgx-h100"), 64)
    together = float(exchange_time("all_gather", 1e9, 64, t, Latency()).seconds)
    apart = float(exchange_time("all_gather", 1e9, 8, t, Latency(), stride=8).seconds)
    assert apart > 5.0 * together
