"""Copies: no faster than what they go through, and parts that add up."""

from __future__ import annotations

import numpy as np
import pytest

from chipwise.catalog.chips import get_chip
from chipwise.cost.copies import COPIES, host_copy, memory_copy
from chipwise.cost.device import Device

SIZES = np.array([1e3, 1e6, 1e9])


def test_no_faster_than_the_link() -> None:
    seconds = np.asarray(host_copy(SIZES, 63e9).total_s)
    assert np.all(seconds > SIZES / 63e9)
    assert seconds[-1] == pytest.approx(1e9 / (0.85 * 63e9), rel=0.01)
    assert seconds[0] == pytest.approx(COPIES.host_start_s, rel=0.01)


def test_twice_the_link_is_nearly_twice_as_fast() -> None:
    slow, fast = (float(np.asarray(host_copy(1e9, rate).total_s)) for rate in (32e9, 64e9))
    assert 1.9 < slow / fast <= 2.0


def test_inside_the_chip_every_byte_is_read_and_written() -> None:
    device = Device.of(get_chip("h100-sxm5-80gb"))
    cost = memory_copy(SIZES, device)
    assert np.all(np.asarray(cost.total_s) > 2.0 * SIZES / device.memory_bytes_per_s)
    assert np.allclose(np.asarray(cost.total_s), sum(np.asarray(v) for v in cost.exposed.values()))
