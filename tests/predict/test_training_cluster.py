"""Devices of a chip on a system, as a training step sees them."""

from __future__ import annotations

import pytest

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
