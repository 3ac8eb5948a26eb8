"""Exchanges behind compute."""

from __future__ import annotations

import numpy as np
import pytest

from chipwise.parallel.overlap import GPU_UNITS, behind, stolen_share


def test_an_exchange_that_ends_first_costs_the_units_it_holds() -> None:
    assert float(behind(10.0, 4.0, 0.25)) == pytest.approx(11.0)


def test_an_exchange_that_compute_cannot_cover_is_all_that_is_seen() -> None:
    assert float(behind(1.0, 4.0, 0.25)) == 4.0


def test_work_of_compute_is_done_by_then() -> None:
    """While the exchange lasts, at 1 - s; after it, at full rate."""
    compute, exchange, stolen = np.array([3.0, 5.0, 9.0]), 4.0, 0.2
    done = (1.0 - stolen) * exchange + (behind(compute, exchange, stolen) - exchange)
    assert np.all(done >= compute - 1e-12)


def test_only_gpus_give_units_away() -> None:
    assert stolen_share("simt") == GPU_UNITS == pytest.approx(0.1515, abs=1e-4)
    assert stolen_share("systolic") == stolen_share("dataflow") == 0.0
