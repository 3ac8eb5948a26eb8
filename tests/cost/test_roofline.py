"""The roofline against worked examples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chipwise.cost.device import DTYPES, Device
from chipwise.cost.roofline import Efficiency, roofline, time
from chipwise.workload.formats import FORMATS
from chipwise.workload.op import attention, gemm, pointwise

# A round chip: 1 PFLOP/s in 16 bit, 2 in 8 bit, 4 in 4 bit; 2 TB/s.
DEVICE = Device(
    family="simt",
    matrix=dict.fromkeys(DTYPES, 1e15) | {"fp8": 2e15, "int8": 2e15, "fp4": 4e15},
    vector_flops_per_s=1e14,
    memory_bytes=80e9,
    reserved_bytes=0.0,
    memory_bytes_per_s=2e12,
    link_bytes_per_s=4e11,
    domain=8.0,
    near_bytes_per_s=1e11,
    near_domain=8.0,
    pairwise_bytes_per_s=1e11,
    scaleout_bytes_per_s=5e10,
)
EFFICIENCY = Efficiency(
    compute=dict.fromkeys(DTYPES, 0.5) | {"fp8": 0.4},
    attention_compute=0.25,
    expert_compute=0.5,
    memory=0.8,
    expert_memory=0.6,
    cache_memory=0.5,
    pass_memory=0.7,
    launch_s=4e-6,
    softness=3.0,
)
HARD = replace(EFFICIENCY, softness=500.0)


def test_a_large_product_is_bound_by_compute() -> None:
    op = gemm(8192, 8192, 8192)
    assert roofline(op, DEVICE) == pytest.approx(2 * 8192**3 / 1e15)
    cost = time(op, DEVICE, HARD)
    assert cost.total_s == pytest.approx(2 * 8192**3 / 0.5e15 + 4e-6, rel=1e-3)
    assert cost.bound == "compute"


def test_a_single_row_is_bound_by_reading_the_matrix() -> None:
    op = gemm(1, 8192, 8192)
    assert roofline(op, DEVICE) == pytest.approx((2 * 8192**2 + 4 * 8192) / 2e12)
    assert time(op, DEVICE, HARD).total_s == pytest.approx(op.bytes / 1.6e12 + 4e-6, rel=1e-3)


def test_the_ridge_is_where_both_take_as_long() -> None:
    # 1 PFLOP/s over 2 TB/s is 500 FLOPs a byte: about 500 rows of a 16-bit matrix
    below, above = gemm(400, 65536, 65536), gemm(600, 65536, 65536)
    assert roofline(below, DEVICE) == pytest.approx(below.bytes / 2e12)
    assert roofline(above, DEVICE) == pytest.approx(above.flops / 1e15)


def test_eight_bit_runs_at_its_own_peak_and_share() -> None:
    op = gemm(8192, 8192, 8192, FORMATS["fp8"], FORMATS["fp8"])
    assert roofline(op, DEVICE) == pytest.approx(2 * 8192**3 / 2e15)
    assert time(op, DEVICE, HARD).exposed["compute"] == pytest.approx(2 * 8192**3 / 0.8e15, rel=1e-3)


def test_four_bit_weights_read_fast_and_multiply_in_sixteen_bit() -> None:
    op = gemm(8192, 8192, 8192, FORMATS["int4"], FORMATS["bf16"])
    assert roofline(op, DEVICE) == roofline(gemm(8192, 8192, 8192), DEVICE)
    one = gemm(1, 8192, 8192, FORMATS["int4"], FORMATS["bf16"])
    assert roofline(one, DEVICE) < 0.35 * roofline(gemm(1, 8192, 8192), DEVICE)


def test_attention_uses_its_own_shares() -> None:
    prompt, step = attention(1, 8192, 8192, 64, 8, 128), attention(64, 1, 8192, 64, 8, 128)
    assert time(prompt, DEVICE, HARD).exposed["compute"] == pytest.approx(prompt.flops / 0.25e15, rel=1e-3)
    assert time(step, DEVICE, HARD).exposed["memory"] == pytest.approx(step.bytes / 1e12, rel=1e-3)


def test_element_wise_work_runs_on_the_vector_lanes() -> None:
    op = pointwise(1e8, 4.0, flops_each=1000.0)
    assert roofline(op, DEVICE) == pytest.approx(1e11 / 1e14)
    assert time(pointwise(1e8, 4.0), DEVICE, HARD).exposed["memory"] == pytest.approx(8e8 / 1.4e12, rel=1e-3)


def test_every_kernel_is_launched() -> None:
    assert time(gemm(1, 8, 8), DEVICE, EFFICIENCY).exposed["launch"] == 4e-6
    assert time(replace(gemm(1, 8, 8), launches=4.0), DEVICE, EFFICIENCY).exposed["launch"] == 16e-6


def test_operators_and_devices_broadcast() -> None:
    two = Device.stack([DEVICE, replace(DEVICE, memory_bytes_per_s=4e12)])
    op = gemm(np.array([[1.0], [64.0], [4096.0]]), 4096, 4096)
    together = np.asarray(time(op, two, EFFICIENCY).total_s)
    assert together.shape == (3, 2)
    for i, m in enumerate((1.0, 64.0, 4096.0)):
        for j, device in enumerate((DEVICE, replace(DEVICE, memory_bytes_per_s=4e12))):
            alone = time(gemm(m, 4096, 4096), device, EFFICIENCY).total_s
            assert together[i, j] == pytest.approx(float(alone), rel=1e-12)
