"""`kernel amdahl`: a CPU against chips and with them, for work of which a part is serial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from chipwise.api.kernel import chips_of
from chipwise.api.loaded import find_chip
from chipwise.cost import cpu
from chipwise.cost.device import Device
from chipwise.errors import UsageError
from chipwise.report.kernel import AmdahlRecord, AmdahlReport

# Launch, and wait for the answer.
GPU_START_S = 10e-6


def amdahl(
    chips: Sequence[str],
    serial_fraction: float,
    work: float,
    *,
    cpu_name: str = "epyc-9654",
    changes: Mapping[str, str] | None = None,
) -> AmdahlReport:
    """Work of which `serial_fraction` cannot be spread over threads: a CPU, each of `chips`, and both together.

    Raises `UsageError` for values out of range and for a `cpu_name` that is no CPU.
    """
    if not 0.0 <= serial_fraction <= 1.0:
        raise UsageError(f"--serial {serial_fraction:g} is no fraction", "0 to 1, or 0 % to 100 %")
    if not 1.0 <= work <= 1e30:
        raise UsageError(f"--work {work:g} is out of range", "1 to 1e30 operations")
    socket = find_chip(cpu_name)
    if socket.family != "cpu":
        raise UsageError(f"{socket.id} is no CPU", "chipwise chips list names them")
    cores = cpu.Cores.of(socket)
    left = cpu.cpu_worker(Device.of(socket), cores, cpu.PRIORS)
    records = []
    for chip in chips_of(chips, changes):
        clock = chip.matrix_unit.boost_clock_hz or chip.matrix_unit.peak_clock_hz or 1.7e9
        right = cpu.gpu_worker(Device.of(chip), clock, GPU_START_S)
        found = cpu.crossover(serial_fraction, work, left, right)
        least = float(found.least_work)
        names = socket.id, chip.id, f"{chip.id}+{socket.id}"
        seconds = float(found.cpu_s), float(found.gpu_s), float(found.together_s)
        records.append(
            AmdahlRecord(
                chip.id,
                *seconds,
                faster=names[seconds.index(min(seconds))],
                crossover_fraction=float(found.serial_fraction),
                least_work=least if np.isfinite(least) else None,
                serial_ratio=float(right.serial_per_s / left.serial_per_s),
                parallel_ratio=float(right.parallel_per_s / left.parallel_per_s),
            )
        )
    assumed = (
        f"one thread: {cpu.CORE_OPS_PER_CLOCK:g} operations per clock on a core, {cpu.LANE_OPS_PER_CLOCK:g} on a lane",
        "parallel part: fp32 on the vector units, half of their peak",
        "5 us to wake the threads of a CPU, 10 us to launch on a GPU and wait for the answer; no copies",
        "together: the serial part on one core of the CPU, the rest on the chip, handed over once",
    )
    return AmdahlReport(socket.id, serial_fraction, work, tuple(records), assumed)
