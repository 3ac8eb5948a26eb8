"""Operators on TPUs, Trainium and Gaudi: what bounds them, and where padding shows."""

from __future__ import annotations

import numpy as np
import pytest

from chipwise.catalog.chips import get_chip, load_chips
from chipwise.cost.device import Device
from chipwise.cost.systolic import Arrays, SystolicParameters, pace_hz, product, systolic_time
from chipwise.errors import UsageError
from chipwise.workload.op import attention, gemm, pointwise

IDEAL = SystolicParameters(
    compute_share=1.0,
    load_rows=1.0,
    memory_share=1.0,
    cache_share=1.0,
    block_s=0.0,
    prompt_block_s=0.0,
    pair_ops=1.0,
    passes=1.0,
    start_s=0.0,
    softness=50.0,
)


def seconds(chip: str, op: object, **options: float) -> float:
    found = get_chip(chip)
    cost = systolic_time(op, Device.of(found), Arrays.of(found), IDEAL, **options)  # type: ignore[arg-type]
    return float(np.asarray(cost.total_s))


def test_every_systolic_chip_has_arrays() -> None:
    chips = [c for c in load_chips().values() if c.family == "systolic"]
    assert len(chips) > 12
    for chip in chips:
        arrays, device = Arrays.of(chip), Device.of(chip)
        assert arrays.rows in (64, 128, 256)
        # 0.4 to 4.5 rows per nanosecond: a clock, or a small multiple of one
        assert 0.4e9 < pace_hz(device, arrays, "int8" if chip.id == "tpu-v1" else "bf16") < 4.5e9, chip.id


@pytest.mark.parametrize(("chip", "clock"), [("tpu-v2", 0.7), ("tpu-v3", 0.94), ("tpu-v4", 1.05), ("tpu-v5e", 1.5)])
def test_where_a_clock_is_published_arrays_take_a_row_per_cycle(chip: str, clock: float) -> None:
    found = get_chip(chip)
    assert pace_hz(Device.of(found), Arrays.of(found), "bf16") == pytest.approx(clock * 1e9, rel=0.01)


def test_a_gpu_has_no_arrays() -> None:
    with pytest.raises(UsageError, match="no systolic arrays"):
        Arrays.of(get_chip("h100-sxm5-80gb"))


def test_a_large_aligned_product_runs_at_the_peak() -> None:
    for chip in ("tpu-v4", "tpu-v5e", "tpu-v6e", "trainium2", "gaudi2"):
        peak = get_chip(chip).matrix["bf16"]
        assert 2 * 8192.0**3 / peak == pytest.approx(seconds(chip, gemm(8192.0, 8192.0, 8192.0)), rel=0.01), chip


def test_odd_columns_cost_a_whole_tile() -> None:
    # 257 columns on 256-wide arrays: as many as 512
    arrays, p = Arrays.of(get_chip("tpu-v6e")), IDEAL
    odd, whole = (product(8192.0, n, 8192.0, arrays, p).padded_macs for n in (257.0, 512.0))
    assert odd == whole


def test_small_heads_leave_half_of_a_large_array_idle() -> None:
    # 128 dims on 256 rows (TPU v6e); they fill the 128 rows of TPU v5e
    def idle(chip: str) -> float:
        s = product(4096.0, 4096.0, 128.0, Arrays.of(get_chip(chip)), IDEAL)
        return 1.0 - float(s.macs / s.padded_macs)

    assert idle("tpu-v6e") == pytest.approx(0.5)
    assert idle("tpu-v5e") == pytest.approx(0.0)


def test_few_rows_wait_for_weights_to_enter_and_many_do_not() -> None:
    arrays = Arrays.of(get_chip("tpu-v6e"))
    few, many = product(8.0, 4096.0, 4096.0, arrays, IDEAL), product(4096.0, 4096.0, 4096.0, arrays, IDEAL)
    assert few.stall_cycles > 20 * few.stream_cycles
    assert many.stall_cycles == 0


def test_activations_on_chip_and_weights_fetched_ahead() -> None:
    norm = pointwise(2048 * 4096.0, 2.0)
    assert seconds("tpu-v6e", norm, resident=1.0) < 0.6 * seconds("tpu-v6e", norm)
    small = gemm(128.0, 4096.0, 4096.0)
    assert seconds("tpu-v6e", small, fetched=1.0) < 0.6 * seconds("tpu-v6e", small)


def test_a_group_of_heads_shares_what_is_read() -> None:
    grouped = attention(16.0, 1.0, 4096.0, 32.0, 8.0, 128.0)
    each = attention(16.0, 1.0, 4096.0, 32.0, 32.0, 128.0)
    assert seconds("tpu-v5e", grouped) < 0.5 * seconds("tpu-v5e", each)


def test_one_row_waits_for_an_engine_of_one_shape() -> None:
    # the first Gaudi takes a row of 256 weights a clock: 256 x 2 B x 1.575 GHz = 806 of its 1,000 GB/s of memory; later
    # ones work on four parts of the sum at once and wait for memory
    op = gemm(1.0, 65536.0, 8192.0)
    for chip, rate in (("gaudi1", 806.4e9), ("gaudi2", 2460e9), ("gaudi3", 3670e9)):
        assert 65536 * 8192 * 2 / seconds(chip, op) == pytest.approx(rate, rel=0.03), chip
