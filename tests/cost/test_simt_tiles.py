"""Tiles, waves, and residency by hand-worked numbers."""

from __future__ import annotations

import numpy as np
import pytest

from chipwise.catalog.chips import load_chips
from chipwise.cost.simt.gemm import GemmParameters, Operands, gemm
from chipwise.cost.simt.rates import Rates
from chipwise.cost.simt.residency import missed
from chipwise.cost.simt.tiles import tiled, waves


def test_waves_round_as_much_as_told() -> None:
    assert waves(2.5, 0.0) == 2.5
    assert waves(2.5, 0.5) == 2.75
    assert waves(2.5, 1.0) == 3.0
    assert waves(0.01, 0.0) == 1.0


def test_one_full_wave_of_the_largest_tile() -> None:
    # 100 units, each 1 Tflop/s: 10 x 10 tiles of 256 x 128, loading free, no prologue
    time = tiled(2560.0, 1280.0, 4096.0, 1.0, 100.0, 1e12, 1e18, 2.0, 2.0, 0.0, 1.0, 1.0)
    assert float(time.seconds) == pytest.approx(2 * 2560 * 1280 * 4096 / 100e12)
    assert not time.load_bound


def test_loading_binds_when_the_cache_is_slow() -> None:
    time = tiled(2560.0, 1280.0, 4096.0, 1.0, 100.0, 1e12, 1e9, 2.0, 2.0, 0.0, 1.0, 1.0)
    assert time.load_bound
    assert float(time.seconds) > 2 * 2560 * 1280 * 4096 / 100e12


def test_splitting_k_fills_idle_units() -> None:
    arguments = (128.0, 128.0, 65536.0, 1.0, 132.0, 6e12, 90e9, 2.0, 2.0, 200.0, 0.5)
    whole = tiled(*arguments, 1.0)
    split = tiled(*arguments, 16.0)
    assert 4 < float(whole.seconds) / float(split.seconds) < 17


@pytest.mark.parametrize(("working_set", "part"), [(0.0, 0.0), (50.0, 0.0), (100.0, 0.5), (150.0, 1.0)])
def test_cache_misses_grow_linearly(working_set: float, part: float) -> None:
    assert missed(working_set, 100.0, 0.5, 1.5) == pytest.approx(part)


def test_an_endless_working_set_always_misses() -> None:
    assert missed(np.inf, 50e6, 0.1, 0.6) == 1.0


def test_the_power_limit_binds_small_boards_at_work() -> None:
    """A full product of a board of 72 W waits for its energy; one tile on one of 58 units does not."""
    p = GemmParameters(0.8, 0.8, 64.0, 100.0, 0.0, 0.8e-12, 0.0, 0.5, 0.6, 8.0)

    def seconds(size: float, power_w: float) -> float:
        board = Rates(121e12, 300e9, 48e6, 58.0, 2e9, power_w)
        return float(np.asarray(gemm(size, size, 8192.0, Operands(split_limit=1.0), board, p).total_s))

    assert seconds(8192.0, 72.0) > 1.2 * seconds(8192.0, 700.0)
    assert seconds(64.0, 72.0) == pytest.approx(seconds(64.0, 700.0), rel=1e-3)


def test_rates_are_those_of_one_device() -> None:
    chips = load_chips()
    whole = chips["h100-sxm5-80gb"]
    rates = Rates.of(whole, "bf16")
    assert rates.flops_per_s == pytest.approx(989.4e12, rel=1e-3)
    assert rates.units == 132
    pair = chips["mi250x"]
    assert pair.devices_per_package == 2
    assert Rates.of(pair, "bf16").units == pair.matrix_unit.units / 2


def test_a_type_without_a_unit_is_widened() -> None:
    a100 = load_chips()["a100-sxm4-80gb"]
    assert Rates.of(a100, "fp4").flops_per_s == Rates.of(a100, "bf16").flops_per_s


def test_rows_that_fill_a_tile_up_are_not_loaded() -> None:
    # one row of 2 bytes beside 64 columns of half a byte; 8 rows in the tile, which are multiplied
    loads = tiled(1.0, 64.0, 4096.0, 1.0, 1.0, 1e18, 1e9, 2.0, 0.5, 0.0, 1.0, 1.0)
    assert float(loads.seconds) == pytest.approx(4096 * (1 * 2.0 + 64 * 0.5) / 1e9)
    multiplies = tiled(1.0, 64.0, 4096.0, 1.0, 1.0, 1e12, 1e18, 2.0, 0.5, 0.0, 1.0, 1.0)
    assert float(multiplies.seconds) == pytest.approx(2 * 8 * 64 * 4096 / 1e12)
