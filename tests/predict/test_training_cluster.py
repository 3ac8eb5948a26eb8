"""Devices of a chip on a system, as a training step sees them."""

from __future__ import annotations

import pytest

from chipwise.api.train_job import _on_network
from chipwise.catalog.chips import get_chip
from chipwise.catalog.system import systems_for
from chipwise.predict.training.cluster import cluster, on_system


def test_a_desktop_shares_its_memory_with_its_system() -> None:
    chip = get_chip("m4-max")
    system = next(s for s in systems_for("m4-max") if s.reserves)
    whole = float(cluster(chip).memory_bytes)
    kept = system.reserved_bytes(whole)
    assert kept > 0.1 * whole
    assert float(on_system(chip, system).memory_bytes) == pytest.approx(whole - kept)


def test_a_fabric_beyond_the_host_is_no_mesh() -> None:
    """Links between every pair of a host end there: of 16 that meet, two have the whole bandwidth of a card."""
    host = cluster(get_chip("v100-sxm2-32gb"), domain=8.0)
    assert float(host.mesh) == 1.0
    assert float(_on_network(host, {"domain": 4.0}, None).mesh) == 1.0
    assert float(_on_network(host, {"domain": 16.0}, None).mesh) == 0.0
