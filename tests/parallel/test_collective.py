"""Collectives: bytes on the wire, bounds, and exact sums."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.parallel.collective import CollectiveParameters, Kind, collective, wire_bytes

NVLINK = 450e9
P = CollectiveParameters(0.65, 0.1, 4e-6, 1e-6, 4e-6, 0.7)
KINDS: tuple[Kind, ...] = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "p2p")

kinds = st.sampled_from(KINDS)
sizes = st.floats(256, 1e10)
rank_counts = st.sampled_from([2, 4, 8, 16, 72])


def test_wire_bytes() -> None:
    assert wire_bytes("all_reduce", 1e6, 4.0) == 1.5e6
    assert wire_bytes("all_gather", 1e6, 4.0) == 0.75e6
    assert wire_bytes("p2p", 1e6, 2.0) == 1e6


@given(kind=kinds, size=sizes, ranks=rank_counts)
def test_never_faster_than_the_link(kind: Kind, size: float, ranks: int) -> None:
    time = collective(kind, size, ranks, NVLINK, P)
    assert float(time.total_s) >= float(wire_bytes(kind, size, ranks)) / NVLINK


@given(kind=kinds, size=sizes, ranks=rank_counts)
def test_more_bytes_or_a_slower_link_take_longer(kind: Kind, size: float, ranks: int) -> None:
    base = float(collective(kind, size, ranks, NVLINK, P).total_s)
    assert float(collective(kind, 2 * size, ranks, NVLINK, P).total_s) > base
    assert float(collective(kind, size, ranks, NVLINK / 2, P).total_s) > base


@given(size=sizes, ranks=rank_counts)
def test_the_middle_costs_more_than_the_sum(size: float, ranks: int) -> None:
    q = CollectiveParameters(0.65, 0.1, 4e-6, 1e-6, 4e-6, 1.0)
    assert (
        collective("all_reduce", size, ranks, NVLINK, P).total_s
        >= collective("all_reduce", size, ranks, NVLINK, q).total_s
    )


def test_one_rank_costs_nothing() -> None:
    time = collective("all_reduce", 1e9, np.array([1.0, 2.0]), NVLINK, P)
    total = np.asarray(time.total_s)
    assert total[0] == 0
    assert total[1] > 0


def test_direct_takes_one_phase_for_small_and_two_for_large() -> None:
    small = collective("all_reduce", 1024.0, 8.0, NVLINK, P, algorithm="direct")
    large = collective("all_reduce", 1e9, 8.0, NVLINK, P, algorithm="direct")
    assert float(small.total_s) < float(collective("all_reduce", 1024.0, 8.0, NVLINK, P).total_s)
    assert float(large.transfer_s) >= 1.75e9 / (NVLINK * 0.65 * 2**0.1) * 0.99


def test_an_eight_rank_nccl_all_reduce_of_half_a_gigabyte() -> None:
    # nccl-tests on NVSwitch systems report around 420-450 GB/s of bus bandwidth for large sizes on 450 GB/s
    # ports with in-switch sums; the model must land near with a share of 0.9
    p = CollectiveParameters(0.9, 0.08, 5e-6, 1e-6, 4e-6, 0.7)
    time = collective("all_reduce", 2.0**29, 8.0, NVLINK, p)
    bus = 2.0**29 * 1.75 / float(time.total_s)
    assert bus == pytest.approx(400e9, rel=0.1)
