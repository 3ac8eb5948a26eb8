"""Collectives over the tiers of catalogue systems."""

from __future__ import annotations

import numpy as np
import pytest

from chipwise.catalog.system import get_system
from chipwise.errors import UsageError
from chipwise.parallel.topology import Topology, exchange_time, system_topology

SIZES = np.logspace(3, 10, 29)
KINDS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "p2p")


def topology(system: str, chips: int) -> Topology:
    return system_topology(get_system(system), chips)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("system", "chips"), [("dgx-h100", 8), ("dgx-h100", 64), ("tpu-v5p-pod", 64), ("mi300x-platform", 8)]
)
def test_more_bytes_take_longer(kind: str, system: str, chips: int) -> None:
    times = exchange_time(kind, SIZES, chips, topology(system, chips)).seconds  # type: ignore[arg-type]
    assert np.all(np.diff(times) > 0)


def test_small_messages_go_in_one_shot_and_large_ones_through_the_switch() -> None:
    found = exchange_time("all_reduce", np.array([1e3, 1e9]), 8, topology("dgx-h100", 8))
    assert found.algorithm[0] in ("one-shot", "in-switch")
    assert found.algorithm[1] == "in-switch"


def test_without_summing_switches_large_messages_go_round_a_ring() -> None:
    found = exchange_time("all_reduce", 1e9, 8, topology("mi300x-platform", 8))
    assert str(found.algorithm) == "ring"
    assert "in-switch" not in found.by_algorithm


def test_large_all_reduce_approaches_the_bandwidth_bound() -> None:
    t = topology("mi300x-platform", 8)
    bound = 2.0 * 7.0 / 8.0 * 1e10 / (0.75 * 448e9)
    assert float(exchange_time("all_reduce", 1e10, 8, t).seconds) == pytest.approx(bound, rel=0.01)


def test_nics_bound_what_leaves_a_domain() -> None:
    near = float(exchange_time("all_gather", 1e9, 8, topology("dgx-h100", 8)).seconds)
    far = exchange_time("all_gather", 1e9, 64, topology("dgx-h100", 64))
    assert str(far.algorithm) == "hierarchical"
    assert float(far.seconds) > near


def test_a_torus_has_as_many_axes_as_the_catalogue_says() -> None:
    assert len(topology("tpu-v5p-pod", 512).shape) == 3
    assert len(topology("tpu-v5e-pod", 256).shape) == 2
    assert topology("tpu-v5e-pod", 256).wraps == (True, True)


def test_one_rank_is_free_and_too_many_chips_are_refused() -> None:
    assert float(exchange_time("all_reduce", 1e9, 1, topology("dgx-h100", 8)).seconds) == 0.0
    with pytest.raises(UsageError, match="use at most 2"):
        topology("desktop-rtx-4090", 64)
