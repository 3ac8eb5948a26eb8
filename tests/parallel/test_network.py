"""Groups of ranks on tiers: who is together, at which bandwidth."""

from __future__ import annotations

import pytest

from chipwise.catalog.system import get_system
from chipwise.errors import UsageError
from chipwise.parallel.network import Network, levels, system_network

DGX = Network(link_bytes_per_s=450e9, domain=8.0, nic_bytes_per_s=50e9)
TORUS = Network(link_bytes_per_s=600e9, domain=4096.0, nic_bytes_per_s=6e9, axes=3.0)


def test_a_group_inside_the_domain_runs_at_the_fabric() -> None:
    fabric, network = levels(DGX, 8.0)
    assert (fabric.ranks, fabric.bytes_per_s, fabric.steps) == (8.0, 450e9, 7.0)
    assert network.network
    assert network.steps == 0.0


def test_a_group_that_leaves_it_meets_its_parts_over_the_network() -> None:
    fabric, network = levels(DGX, 24.0)
    assert (fabric.ranks, network.ranks) == (8.0, 24.0)
    assert (network.bytes_per_s, network.steps) == (50e9, 2.0)
    # with tp8 inside, one rank lies in each domain
    assert levels(DGX, 24.0, 8.0)[0].ranks == 1.0


def test_many_ranks_take_trees() -> None:
    wide = Network(900e9, 1024.0, 50e9)
    assert levels(wide, 8.0)[0].steps == 7.0
    assert levels(wide, 1024.0)[0].steps == pytest.approx(25.0)


def test_a_wide_torus_passes_pieces_along_its_axes() -> None:
    assert levels(TORUS, 16.0)[0].steps == 15.0
    assert levels(TORUS, 512.0)[0].steps == pytest.approx(3 * 7.0)


def test_a_slice_has_the_axes_that_the_catalogue_says() -> None:
    pod = system_network(get_system("tpu-v5e-pod"), 256)
    assert (pod.axes, pod.rings, pod.hops, pod.longest, pod.closed) == (2.0, 2.0, 30.0, 16.0, True)
    # a slice that is no cube is open at its ends: half of each axis
    part = system_network(get_system("tpu-v5e-pod"), 16)
    assert (part.rings, part.closed) == (1.0, False)
    assert levels(part, 16.0)[0].bytes_per_s == pytest.approx(levels(pod, 256.0)[0].bytes_per_s / 2.0)


def test_too_many_chips_are_refused() -> None:
    with pytest.raises(UsageError, match="use at most 2"):
        system_network(get_system("desktop-rtx-4090"), 64)
