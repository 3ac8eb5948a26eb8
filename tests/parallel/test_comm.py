"""Time of one exchange: nothing alone, bytes on the wire, monotone."""

from __future__ import annotations

import numpy as np
import pytest

from chipwise.parallel.comm import Comm, Fabric, Kind, comm_time

FABRIC = Fabric(bytes_per_s=100e9, efficiency=0.5, base_s=4e-6, hop_s=2e-6)
KINDS: tuple[Kind, ...] = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "p2p")

# bytes through a port, of a payload of 1, among 8 ranks
WIRE = {
    "all_reduce": 2 * 7 / 8,
    "all_gather": 7 / 8,
    "reduce_scatter": 7 / 8,
    "all_to_all": 7 / 8,
    "p2p": 1.0,
}


@pytest.mark.parametrize("kind", KINDS)
def test_alone_there_is_nothing_to_exchange(kind: Kind) -> None:
    latency, transfer = comm_time(Comm(kind, 1e9, 1.0, "tp"), FABRIC)
    assert (float(latency), float(transfer)) == (0, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_on_the_wire(kind: Kind) -> None:
    latency, transfer = comm_time(Comm(kind, 8e6, 8.0, "tp"), FABRIC)
    assert transfer == pytest.approx(WIRE[kind] * 8e6 / 50e9)
    assert latency == pytest.approx(4e-6 + 3 * 2e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_more_bytes_more_ranks_never_faster(kind: Kind) -> None:
    payload = np.array([0.0, 1.0, 1e3, 1e6, 1e9])[:, None]
    ranks = np.array([1.0, 2.0, 3.0, 4.0, 8.0, 72.0])
    seconds = sum(comm_time(Comm(kind, payload, ranks, "tp"), FABRIC))
    assert np.shape(seconds) == (5, 6)
    assert np.all(np.diff(seconds, axis=0) >= 0)
    assert np.all(np.diff(seconds, axis=1) >= 0)


def test_an_all_reduce_is_a_scatter_and_a_gather() -> None:
    def transfer(kind: Kind) -> float:
        return float(comm_time(Comm(kind, 1e6, 4.0, "tp"), FABRIC)[1])

    assert transfer("all_reduce") == pytest.approx(transfer("reduce_scatter") + transfer("all_gather"))


def test_twice_the_link_halves_the_transfer() -> None:
    comm = Comm("all_reduce", 1e6, 4.0, "tp")
    slow, fast = comm_time(comm, FABRIC), comm_time(comm, Fabric(200e9, 0.5, 4e-6, 2e-6))
    assert fast[1] == pytest.approx(slow[1] / 2)
    assert fast[0] == slow[0]
