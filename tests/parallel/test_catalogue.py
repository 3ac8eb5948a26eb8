"""Exchanges over every system of the catalogue: what more links, bandwidth, bytes and ranks may and may not do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.chips import load_chips
from chipwise.catalog.system import load_systems, with_own_links
from chipwise.catalog.system_spec import System
from chipwise.cost.device import Device
from chipwise.parallel.collective import KINDS, CollectiveParameters, exchange, traffic, wire_bytes
from chipwise.parallel.network import Network, system_network
from chipwise.predict.exchange import device_network
from chipwise.units import Array

SIZES = np.logspace(3, 10, 15)


def joined() -> list[System]:
    return [s for s in load_systems().values() if s.tiers and s.tiers[-1].bytes_per_s and not s.mixed]


def counts(system: System) -> list[int]:
    """Two, the whole of each tier, and beyond it where there is a network."""
    inside = sorted({2, *(t.chips for t in system.tiers)})
    far = system.scaleout is not None and system.scaleout.bytes_per_s is not None
    last = inside[-1]
    return inside + ([last + 1, 2 * last, 16 * last] if far else [])


def numbers(system: System) -> dict[str, CollectiveParameters]:
    found = shipped_parameters().links(load_chips()[system.chip])
    return {str(kind): p for kind, p in found.items()}


def faster(n: Network, factor: float) -> Network:
    w = n.wiring
    paths = replace(
        w,
        near_bytes_per_s=factor * np.asarray(w.near_bytes_per_s),
        near_pair_bytes_per_s=factor * np.asarray(w.near_pair_bytes_per_s),
        trunk_bytes_per_s=factor * np.asarray(w.trunk_bytes_per_s),
    )
    return replace(
        n,
        link_bytes_per_s=factor * np.asarray(n.link_bytes_per_s),
        nic_bytes_per_s=factor * np.asarray(n.nic_bytes_per_s),
        wiring=paths,
    )


@pytest.mark.parametrize("system", joined(), ids=lambda s: s.id)
def test_more_bytes_more_bandwidth_and_the_wire(system: System) -> None:
    """Over kinds and groups: more bytes take longer, faster links are never slower, no answer beats its bytes on the
    slowest tier, and the tiers carry together what one would."""
    known = numbers(system)
    for ranks in counts(system):
        n = system_network(system, ranks)
        for kind in KINDS:
            took: Array = np.asarray(exchange(kind, SIZES, ranks, n, known[kind]).total_s)
            assert np.all(np.isfinite(took)), (kind, ranks)
            assert np.all(np.diff(took) > 0), (kind, ranks)
            tiers = traffic(kind, SIZES, ranks, n)
            assert np.all(took >= np.max([np.asarray(t.least_s) for t in tiers], axis=0) * (1.0 - 1e-9))
            better = np.asarray(exchange(kind, SIZES, ranks, faster(n, 2.0), known[kind]).total_s)
            assert np.all(better <= took), (kind, ranks)
            if kind not in ("p2p", "broadcast"):
                carried = sum(np.asarray(t.num_bytes) for t in tiers)
                assert carried == pytest.approx(wire_bytes(kind, SIZES, ranks)), (kind, ranks)


def edges(system: System) -> list[float]:
    """Sizes of groups at which they outgrow a tier."""
    groups = counts(system)
    n = system_network(system, groups[-1])
    domain = float(np.asarray(n.domain))
    near = float(np.asarray(n.wiring.near))
    return [near] * (0.0 < near < domain) + [domain] * (groups[-1] > domain)


@pytest.mark.parametrize("system", [s for s in joined() if edges(s)], ids=lambda s: s.id)
def test_a_group_that_outgrows_a_tier_neither_jumps_nor_gains(system: System) -> None:
    known, groups = numbers(system), counts(system)
    n = system_network(system, groups[-1])
    domain = float(np.asarray(n.domain))
    for kind in KINDS:
        p = known[kind]
        for edge in edges(system):
            at, beyond = (np.asarray(exchange(kind, SIZES, edge * f, n, p).total_s) for f in (1.0, 1.0 + 1e-9))
            assert beyond == pytest.approx(at, rel=1e-4), (kind, edge)
        if groups[-1] > domain and kind != "all_to_all":
            wider = [np.asarray(exchange(kind, SIZES, domain * f, n, p).total_s) for f in (1.0, 2.0, 4.0, 16.0)]
            assert np.all(np.diff(wider, axis=0) >= 0.0), kind


def plain(system: System) -> bool:
    """One tier that is no torus, one device per package, no way between sockets, and no figure of the chip's own before
    its system's."""
    one = len(system.tiers) == 1 and not system.tiers[0].torus and not system_network(system, 1).wiring.trunk
    chip = load_chips()[system.chip]
    return one and chip.devices_per_package == 1 and not {"link", "pairwise", "host"} & set(chip.own)


@pytest.mark.parametrize("system", [s for s in joined() if plain(s)], ids=lambda s: s.id)
def test_serving_and_kernels_meet_on_the_same_links(system: System) -> None:
    """A device's figures and its system's tiers say the same of neighbours inside a domain."""
    chip, count = load_chips()[system.chip], system.tiers[-1].chips
    device = device_network(Device.of(chip, system=system))
    for kind, p in numbers(system).items():
        one, other = (
            np.asarray(exchange(kind, SIZES, float(count), n, p).total_s)  # type: ignore[arg-type]
            for n in (device, system_network(with_own_links(system, chip), count))
        )
        assert one == pytest.approx(other), kind
