"""The physical schedules: what they may never do, and worked examples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.cost.systolic import (
    DATAFLOWS,
    Dataflow,
    Schedule,
    SystolicArray,
    counters,
    im2col,
    output_stationary,
    serial,
    weight_stationary,
)

MXU = SystolicArray(128.0, 128.0)
sizes = st.integers(1, 3000)
edges = st.integers(1, 256)
units_of = st.integers(1, 8)


def useful(s: Schedule) -> float:
    """Useful share of the cells while streaming: 1 where every tile is full."""
    return float(s.macs / s.padded_macs)


def total_of_parts(s: Schedule) -> float:
    return float(s.load_cycles + s.stream_cycles + s.stall_cycles + s.fill_cycles + s.drain_cycles)


@given(sizes, sizes, sizes, edges, edges, st.sampled_from(DATAFLOWS))
def test_serial_is_scalesim_without_its_artefacts(
    m: int, n: int, k: int, rows: int, cols: int, dataflow: Dataflow
) -> None:
    array = SystolicArray(rows, cols)
    clean, counted = serial(m, n, k, array, dataflow), counters(m, n, k, array, dataflow)
    assert clean.cycles == counted.cycles == total_of_parts(clean)
    assert clean.utilization <= 1.0
    assert useful(clean) == pytest.approx(counted.mapping_efficiency_pct / 100.0, rel=1e-12)
    assert clean.activation_reads == counted.sram_ifmap_reads
    assert clean.weight_reads == counted.sram_filter_reads
    assert clean.result_writes <= counted.sram_ofmap_writes
    # every sum but the last of each output is read again
    assert clean.result_writes - clean.partial_reads == m * n
    if counted.cycles > 1:
        assert clean.utilization < counted.utilization_pct / 100.0


@given(sizes, sizes, sizes, edges, edges, units_of, st.integers(1, 5))
def test_double_buffering_lies_between_the_ideal_and_scalesim(
    m: int, n: int, k: int, rows: int, cols: int, units: int, batch: int
) -> None:
    array = SystolicArray(rows, cols)
    for got, dataflow in (
        (weight_stationary(m, n, k, array, units, batch=batch), "ws"),
        (output_stationary(m, n, k, array, units, batch=batch), "os"),
    ):
        assert got.cycles == pytest.approx(total_of_parts(got), rel=1e-12)
        assert got.cycles >= batch * m * n * k / (rows * cols * units)
        assert 0.0 < got.utilization <= useful(got) <= 1.0
        assert got.cycles <= batch * counters(m, n, k, array, dataflow).cycles  # type: ignore[arg-type]


@given(sizes, sizes, sizes, edges, edges)
def test_one_fold_costs_what_scalesim_says(m: int, n: int, k: int, rows: int, cols: int) -> None:
    array = SystolicArray(rows, cols)
    n, k = min(n, cols), min(k, rows)
    assert weight_stationary(m, n, k, array).cycles == counters(m, n, k, array, "ws").cycles
    m = min(m, rows)
    assert output_stationary(m, n, k, array).cycles == counters(m, n, k, array, "os").cycles


@given(sizes, sizes, sizes, units_of, st.sampled_from([64.0, 2048.0, np.inf]), st.sampled_from("mnk"))
def test_more_work_is_never_faster(m: int, n: int, k: int, units: int, accumulators: float, grown: str) -> None:
    array = SystolicArray(32.0, 64.0, accumulator_rows=accumulators)
    more = {"m": m, "n": n, "k": k} | {grown: {"m": m, "n": n, "k": k}[grown] + 37}
    assert weight_stationary(m, n, k, array, units).cycles <= weight_stationary(array=array, units=units, **more).cycles
    assert output_stationary(m, n, k, array, units).cycles <= output_stationary(array=array, units=units, **more).cycles


@given(sizes, sizes, sizes, st.floats(1.0, 128.0), st.floats(1.0, 4.0))
def test_a_faster_weight_memory_is_never_slower(m: int, n: int, k: int, words: float, factor: float) -> None:
    slow = weight_stationary(m, n, k, SystolicArray(128.0, 128.0, load_words_per_cycle=words))
    fast = weight_stationary(m, n, k, SystolicArray(128.0, 128.0, load_words_per_cycle=words * factor))
    assert fast.cycles <= slow.cycles
    assert fast.cycles >= weight_stationary(m, n, k, MXU).cycles


def test_large_aligned_product_reaches_the_peak() -> None:
    got = weight_stationary(8192.0, 8192.0, 8192.0, MXU, 4.0)
    assert got.utilization > 0.999
    assert useful(got) == 1.0
    assert got.stall_cycles == 0.0
    words = got.activation_reads + got.weight_reads + got.partial_reads + got.result_writes
    assert words / got.macs == pytest.approx(1 / 128 + 2 / 128 + 1 / 8192, rel=0.01)


def test_few_rows_wait_for_the_weights() -> None:
    # a decode step: 8 rows stream past each of 64 x 64 tiles, which take 128 cycles to load
    got = weight_stationary(8.0, 8192.0, 8192.0, MXU)
    assert got.passes == 64 * 64
    assert got.cycles == 128 + (64 * 64 - 1) * 128 + 8 + 127 + 127
    assert got.stall_cycles == (64 * 64 - 1) * 120


def test_one_row_beyond_a_tile_costs_a_tile() -> None:
    got = weight_stationary(1024.0, 129.0, 128.0, MXU)
    assert got.folds.count == 2
    assert useful(got) == pytest.approx(129 / 256)


def test_split_deals_columns_then_rows_or_rows_where_faster() -> None:
    dealt = weight_stationary(1000.0, 4 * 128.0, 256.0, MXU, 4.0)
    assert dealt.passes == 2  # one column tile each
    assert dealt.stream_cycles == 2 * 1000
    assert dealt.weight_reads == 4 * 128 * 256
    shared = weight_stationary(1000.0, 128.0, 256.0, MXU, 4.0)
    assert shared.stream_cycles == 2 * 250  # one column tile: a quarter of the rows each
    assert shared.weight_reads == 4 * 128 * 256
    uneven = weight_stationary(1000.0, 5 * 128.0, 256.0, MXU, 4.0)
    assert uneven.stream_cycles == 5 * 2 * 250  # rather than two column tiles on one array: 4 x 1000
    few = weight_stationary(16.0, 5 * 128.0, 256.0, MXU, 4.0)
    assert few.passes == 2 * 2  # too few rows to share: loads would dominate


def test_batched_products_fill_the_arrays() -> None:
    together = weight_stationary(512.0, 64.0, 128.0, MXU, 2.0, batch=8.0)
    assert together.passes == 4
    assert together.macs == 8 * 512 * 64 * 128
    assert useful(together) == 0.5


def test_accumulators_bound_the_rows_of_a_pass() -> None:
    array = SystolicArray(256.0, 256.0, accumulator_rows=2048.0)
    got = weight_stationary(2888.0, 256.0, 2304.0, array)
    assert got.passes == 2 * 9
    assert got.stream_cycles == 2888 * 9
    assert got.weight_reads == 2 * 256 * 2304
    # sums of a single k tile need not stay
    assert weight_stationary(2888.0, 256.0, 256.0, array).passes == 1


def test_no_work_takes_no_time() -> None:
    m = np.array([0.0, 1.0])
    for got in (
        weight_stationary(m, 64.0, 64.0, MXU, 2.0),
        output_stationary(m, 64.0, 64.0, MXU, 2.0),
        serial(m, 64.0, 64.0, MXU, "ws"),
    ):
        assert got.cycles[0] == 0.0  # type: ignore[index]
        assert got.utilization[0] == 0.0  # type: ignore[index]
        assert got.cycles[1] > 0.0  # type: ignore[index]


def test_arrays_equal_numbers() -> None:
    rng = np.random.default_rng(0)
    m, n, k = (np.floor(np.exp(rng.uniform(0, 8, 50))) for _ in range(3))
    units = np.array([1.0, 2.0, 4.0])[:, None]
    many = weight_stationary(m, n, k, MXU, units)
    assert np.shape(many.cycles) == (3, 50)
    for i in range(50):
        one = weight_stationary(float(m[i]), float(n[i]), float(k[i]), MXU, 2.0)
        assert isinstance(one.cycles, float)
        assert many.cycles[1, i] == one.cycles  # type: ignore[index]
        assert one.time_s(1e9) == pytest.approx(one.cycles * 1e-9)


def test_im2col_follows_frameworks() -> None:
    # ResNet-50 conv1: 224 x 224 x 3, 7 x 7 / 2, pad 3, 64 filters
    assert im2col(224, 224, 7, 7, 3, 64, 2, 2, pad_h=3, pad_w=3, images=8) == (8 * 112 * 112, 64, 147)
    # a last window that does not fit: frameworks drop it, SCALE-Sim keeps it
    assert im2col(10, 10, 3, 3, 1, 1, 4, 4).m == 2 * 2
    assert im2col(10, 10, 3, 3, 1, 1, 4, 4, partial_windows="keep").m == 3 * 3


def test_idle_rows_take_parts_of_the_sum() -> None:
    # one row of 128: a quarter of k at a time, four parts side by side; 100 rows leave no room for a second part
    one = output_stationary(1, 4096, 4096, MXU, most_parts=4.0)
    assert one.stream_cycles == 4096 / 128 * 4096 / 4
    assert output_stationary(1, 4096, 4096, MXU).stream_cycles == 4 * one.stream_cycles
    full = output_stationary(100, 4096, 4096, MXU)
    assert output_stationary(100, 4096, 4096, MXU, most_parts=4.0).cycles == full.cycles
