"""CPUs: what bounds them, and Amdahl's crossover to a GPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.catalog.chips import get_chip
from chipwise.cost.cpu import PRIORS, Cores, CpuWorker, cpu_time, crossover
from chipwise.cost.device import Device
from chipwise.workload.op import gemm

SOCKET = get_chip("xeon-8480plus")
DEVICE, CORES = Device.of(SOCKET), Cores.of(SOCKET)


def seconds(m: float, **options: float) -> float:
    return float(np.asarray(cpu_time(gemm(m, 4096.0, 4096.0), DEVICE, CORES, PRIORS, **options).total_s))


def test_one_token_waits_for_the_channels_and_a_prompt_for_the_units() -> None:
    assert cpu_time(gemm(1.0, 8192.0, 8192.0), DEVICE, CORES, PRIORS).bound == "memory"
    assert cpu_time(gemm(2048.0, 8192.0, 8192.0), DEVICE, CORES, PRIORS).bound == "compute"


def test_a_tile_of_amx_has_sixteen_rows() -> None:
    assert CORES.rows == 16
    assert Cores.of(get_chip("epyc-9654")).rows == 1
    # in a hot loop the padding shows: 1 row costs what 16 do
    wide = replace(PRIORS, memory_share=100.0, cache_share=100.0)
    one, sixteen, more = (
        float(np.asarray(cpu_time(gemm(m, 4096.0, 4096.0), DEVICE, CORES, wide).exposed["compute"]))
        for m in (1.0, 16.0, 17.0)
    )
    assert one == pytest.approx(sixteen, rel=0.01)
    assert more == pytest.approx(2 * sixteen, rel=0.01)


def test_a_working_set_in_the_cache_is_faster() -> None:
    assert seconds(8.0, resident=1.0) < 0.6 * seconds(8.0)


def test_a_remote_socket_is_slower() -> None:
    far = replace(PRIORS, remote_share=1.0)
    near = cpu_time(gemm(1.0, 8192.0, 8192.0), DEVICE, CORES, PRIORS).total_s
    assert cpu_time(gemm(1.0, 8192.0, 8192.0), DEVICE, CORES, far).total_s > 1.5 * np.asarray(near)


def test_the_crossover_of_amdahl() -> None:
    # 10 times the parallel rate, a tenth of the serial one: they meet where s = (1/1 - 1/10) / (0.9 + (10 - 1) 100)
    cpu, gpu = (CpuWorker(serial_per_s=1e9, parallel_per_s=1e11), CpuWorker(serial_per_s=1e8, parallel_per_s=1e12))
    found = crossover(0.0, 1e12, cpu, gpu)
    assert found.serial_fraction == pytest.approx((1e-11 - 1e-12) / ((1e-11 - 1e-12) + (1e-8 - 1e-9)))
    at = crossover(found.serial_fraction, 1e12, cpu, gpu)
    # with the serial part on the CPU a tenth of the parallel time is left, and the serial one is the CPU's
    half = crossover(0.5, 1e12, cpu, gpu)
    assert half.together_s == pytest.approx(0.5e12 / 1e9 + 0.5e12 / 1e12)
    assert at.cpu_s == pytest.approx(at.gpu_s)
    assert crossover(0.0, 1e12, cpu, gpu).gpu_s < crossover(0.0, 1e12, cpu, gpu).cpu_s
    assert crossover(0.5, 1e12, cpu, gpu).gpu_s > crossover(0.5, 1e12, cpu, gpu).cpu_s


def test_little_work_is_done_before_a_gpu_has_started() -> None:
    cpu, gpu = CpuWorker(1e9, 1e11), CpuWorker(1e8, 1e12, start_s=1e-5)
    found = crossover(0.0, 1e5, cpu, gpu)
    assert found.serial_fraction == 0
    least = float(found.least_work)
    assert least == pytest.approx(1e-5 / (1e-11 - 1e-12))
    assert crossover(0.0, 0.5 * least, cpu, gpu).cpu_s < crossover(0.0, 0.5 * least, cpu, gpu).gpu_s
    assert crossover(0.0, 2.0 * least, cpu, gpu).cpu_s > crossover(0.0, 2.0 * least, cpu, gpu).gpu_s


def test_a_gpu_that_is_better_or_worse_at_everything() -> None:
    slow, fast = CpuWorker(1e8, 1e11), CpuWorker(1e9, 1e12)
    assert crossover(0.5, 1e12, slow, fast).serial_fraction == 1
    worse = crossover(0.5, 1e12, fast, slow)
    assert worse.serial_fraction == 0
    assert np.isinf(worse.least_work)
    same = crossover(0.5, 1e12, fast, fast)
    assert (same.serial_fraction, same.cpu_s) == (0, same.gpu_s)


rates = st.floats(1e6, 1e15)


@given(rates, rates, rates, rates, st.floats(0, 1e-3), st.floats(1, 1e15))
def test_the_gpu_wins_below_the_crossover_and_loses_above(
    a: float, b: float, c: float, d: float, start: float, work: float
) -> None:
    cpu, gpu = CpuWorker(a, b), CpuWorker(c, d, start)
    where = float(crossover(0.0, work, cpu, gpu).serial_fraction)
    assert 0 <= where <= 1
    # one zero of a linear difference: the sign changes there or nowhere
    if 0 < where < 1:
        below, above = crossover(where / 2, work, cpu, gpu), crossover((1 + where) / 2, work, cpu, gpu)
        assert below.gpu_s <= below.cpu_s * (1 + 1e-9)
        assert above.gpu_s >= above.cpu_s * (1 - 1e-9)
