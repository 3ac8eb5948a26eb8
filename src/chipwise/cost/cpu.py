"""CPUs: cores with SIMD or AMX units, caches, sockets and memory channels; and where a GPU overtakes them.

A CPU spends its area on few fast cores: one thread runs serial code several times faster than one lane of a
GPU does, and starts at once. A GPU spends it on thousands of slow lanes, which parallel work fills.
`crossover` puts both into Amdahl's law.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from chipwise.catalog.chip import Chip
from chipwise.cost.cost import Cost, soft_maximum
from chipwise.cost.device import Device
from chipwise.cost.products import stretch
from chipwise.numeric import stack, take
from chipwise.units import Real
from chipwise.values import dataclass
from chipwise.workload.op import Op

TILE_ROWS = 16.0
"""rows: of an AMX tile, and about those that a SIMD kernel keeps in registers. Source: Intel Architecture Instruction
Set Extensions reference, AMX: tiles of 16 rows of 64 bytes."""
CACHE_BYTES_PER_CLOCK = 16.0
"""bytes per clock and core: from the shared cache. Chosen: a quarter of a line, what mesh fabrics give or less; moves
what is found in the cache of a processor in proportion."""


@dataclass(frozen=True, slots=True)
class Cores:
    """What the formulas read of one socket. Numbers or arrays.

    `rows` is how many rows one instruction multiplies at once: 16 with AMX, 1 with SIMD, where a vector holds
    columns. `cache_bytes` is the shared last level, `local_bytes` the private caches of all cores.
    """

    count: Real
    clock_hz: Real
    rows: Real
    cache_bytes: Real
    local_bytes: Real

    @classmethod
    def stack(cls, chips: Sequence[Chip]) -> Cores:
        """Several sockets, every number an array."""
        return stack([cls.of(chip) for chip in chips])

    @classmethod
    def of(cls, chip: Chip) -> Cores:
        """The socket of a chip; 2.5 GHz, 32 MB and 1 MiB per core are assumed where nothing is published."""
        unit = chip.matrix_unit
        cores = float(max(unit.units, 1))
        return cls(
            count=cores,
            clock_hz=unit.peak_clock_hz or unit.boost_clock_hz or 2.5e9,
            rows=TILE_ROWS if "AMX" in unit.name else 1.0,
            cache_bytes=chip.cache_bytes or 32e6,
            local_bytes=cores * (chip.sram_per_unit_bytes or 2.0**20),
        )


@dataclass(frozen=True, slots=True)
class CpuParameters:
    """What code reaches of a socket; each a number or an array.

    | field | unit | meaning |
    |---|---|---|
    | compute_share | of dense peak | products on full tiles; clocks sag under wide units |
    | narrow_share | of dense peak | the same for 8-bit products, whose inputs are written in 8 bits first |
    | vector_share | of vector peak | element-wise work |
    | memory_share | of channel bandwidth | streaming, as STREAM counts it |
    | cache_share | of 16 B per clock and core | streaming from the shared cache |
    | sockets | count | sockets that work on one operator |
    | remote_share | of traffic | bytes that lie on another socket: 0 with one socket or pinned memory |
    | remote_slowdown | ratio | how much longer a remote byte takes |
    | start_s | s | waking and joining all threads once per operator |
    | softness | exponent | of the soft maximum |
    """

    compute_share: Real
    vector_share: Real
    memory_share: Real
    cache_share: Real
    sockets: Real
    remote_share: Real
    remote_slowdown: Real
    start_s: Real
    softness: Real
    narrow_share: Real = 0.4


@dataclass(frozen=True, slots=True)
class CpuModel:
    """What `cpu_time` needs beside a device."""

    cores: Cores
    numbers: CpuParameters

    def take(self, index: np.ndarray) -> CpuModel:
        """Of several chips: those at `index`, any shape."""
        return CpuModel(take(self.cores, index), take(self.numbers, index))


PRIORS = CpuParameters(
    compute_share=0.5,
    vector_share=0.5,
    memory_share=0.75,
    cache_share=0.5,
    sockets=1.0,
    remote_share=0.0,
    remote_slowdown=2.0,
    start_s=5e-6,
    softness=3.0,
)
"""shares of peaks, seconds to start, exponent: what kernels of a processor reach. Chosen: none was measured; STREAM
at three quarters of the channels, oneDNN at half of AMX's peak, an OpenMP barrier at some microseconds are what is
usually seen; moves all times on processors, a factor of two either way."""
PRIOR_LOG_SPREAD = 0.6
"""logarithm of seconds: one standard deviation while these are priors. Chosen: an 80 % interval of about a factor of
two; moves that interval."""


def cpu_time(op: Op, device: Device, cores: Cores, p: CpuParameters, *, resident: Real = 0.0) -> Cost:
    """t = launches start_s + <units, shared cache, memory>_softness on `sockets` sockets.

    Rows of every product are padded to the tile of AMX (16): one token uses a sixteenth of it, and is bound by
    memory anyway. `resident` 1: a hot loop, whose bytes come from the shared cache while they fit. Remote bytes take
    remote_slowdown times as long: t_memory (1 + remote_share (remote_slowdown - 1)). Ignores hyper-threads,
    page sizes, and that few rows cannot be dealt to many cores.
    """
    share = p.narrow_share if op.compute == "int8" else p.compute_share
    if op.compute == "vector":
        compute_s = op.flops / (p.sockets * p.vector_share * device.vector_flops_per_s)
    else:
        compute_s = op.flops * stretch(op, cores.rows) / (p.sockets * share * device.matrix[op.compute])
    cached = resident * np.clip(2.0 - op.bytes / (p.sockets * cores.cache_bytes), 0.0, 1.0)
    far = 1.0 + p.remote_share * (p.remote_slowdown - 1.0)
    channels = p.sockets * p.memory_share * device.memory_bytes_per_s
    shared = p.sockets * p.cache_share * CACHE_BYTES_PER_CLOCK * cores.clock_hz * cores.count
    body = soft_maximum(
        {"compute": compute_s, "on-chip": op.bytes / shared, "memory": op.bytes * (1.0 - cached) * far / channels},
        cast(float, p.softness),
    )
    return body + Cost({"launch": op.launches * p.start_s})


@dataclass(frozen=True, slots=True)
class CpuWorker:
    """A processor as Amdahl's law sees it: rate of one thread on serial code, of all of it on parallel code
    (both in operations per second), and the seconds until work starts there (launch, copies)."""

    serial_per_s: Real
    parallel_per_s: Real
    start_s: Real = 0.0


@dataclass(frozen=True, slots=True)
class Amdahl:
    """Where a GPU stops winning over a CPU, and both at one work: `together_s`, serial parts on the CPU.

    `serial_fraction`: of the work, above which the CPU is faster; 0 = the GPU never wins, 1 = always.
    `least_work`: operations below which the GPU does not win even with nothing serial (its start costs more).
    """

    cpu_s: Real
    gpu_s: Real
    together_s: Real
    serial_fraction: Real
    least_work: Real


def crossover(serial_fraction: Real, work: Real, cpu: CpuWorker, gpu: CpuWorker) -> Amdahl:
    """`work` operations, of which `serial_fraction` s cannot be spread over threads.

    t(s) = start + work (s / serial + (1 - s) / parallel) for both; they meet at

        s* = (d_parallel - d_start / work) / (d_parallel + d_serial)

    with d_parallel = 1 / P_cpu - 1 / P_gpu (the GPU's gain per parallel operation), d_serial = 1 / S_gpu -
    1 / S_cpu (its loss per serial one) and d_start = start_gpu - start_cpu. A GPU with 500 times the parallel
    rate but a tenth of the serial one loses from s* = 0.9 % on when a socket has 96 cores. Together the CPU runs the
    serial part and the GPU the rest, at one start: start_gpu + work (s / S_cpu + (1 - s) / P_gpu), at best 1 / s times
    as fast as one thread. Ignores serial parts that overlap with parallel ones.
    """

    def seconds(worker: CpuWorker) -> Real:
        serial = serial_fraction / worker.serial_per_s
        return worker.start_s + work * (serial + (1.0 - serial_fraction) / worker.parallel_per_s)

    gain = 1.0 / cpu.parallel_per_s - 1.0 / gpu.parallel_per_s
    loss = 1.0 / gpu.serial_per_s - 1.0 / cpu.serial_per_s
    late = gpu.start_s - cpu.start_s
    slope = np.asarray(gain + loss, dtype=float)
    # the difference of the two times is linear in s: its zero, or its sign where it has none
    zero = (gain - late / work) / np.where(slope == 0.0, np.nan, slope)
    ahead = np.where(np.asarray(gain - late / work) > 0.0, 1.0, 0.0)
    meets = np.where(slope > 0.0, np.clip(zero, 0.0, 1.0), ahead)
    least = np.where(np.asarray(gain) > 0.0, np.maximum(late, 0.0) / np.where(gain > 0, gain, 1.0), np.inf)
    together = seconds(CpuWorker(cpu.serial_per_s, gpu.parallel_per_s, gpu.start_s))
    return Amdahl(seconds(cpu), seconds(gpu), together, _plain(meets), _plain(least))


CORE_OPS_PER_CLOCK = 3.0
"""operations per clock: of one thread of a processor on dependent scalar code. Chosen: an out-of-order core finds
about three that do not wait for each other; moves serial parts in proportion."""
LANE_OPS_PER_CLOCK = 0.2
"""operations per clock: of one lane of a GPU on the same code. Chosen: it issues one and waits about five clocks for
it; moves serial parts on GPUs in proportion."""


def cpu_worker(device: Device, cores: Cores, p: CpuParameters) -> CpuWorker:
    """A socket: one core's scalar rate, and all vector units."""
    return CpuWorker(
        serial_per_s=CORE_OPS_PER_CLOCK * cores.clock_hz,
        parallel_per_s=p.sockets * p.vector_share * device.vector_flops_per_s,
        start_s=p.start_s,
    )


def gpu_worker(device: Device, clock_hz: Real, start_s: Real, vector_share: Real = 0.5) -> CpuWorker:
    """A GPU: one lane's scalar rate, and all vector lanes; `start_s` a launch (and copies, if any)."""
    return CpuWorker(LANE_OPS_PER_CLOCK * clock_hz, vector_share * device.vector_flops_per_s, start_s)


def _plain(value: Real) -> Real:
    return value if np.ndim(value) else float(value)
