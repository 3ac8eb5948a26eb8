"""What happens inside a chip during one operator: how it is mapped, and the bytes through every memory level.

Nothing here sets a time: it shows what the formulas of a family work with. Bytes per multiply-accumulate (MAC)
tell why a systolic array needs so little: an operand is read once at the edge and passed from cell to cell,
where a GPU fetches it from shared memory again for every small tile of the product.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from chipwise.catalog.chip import Chip
from chipwise.cost.cpu import CACHE_BYTES_PER_CLOCK, CpuModel
from chipwise.cost.dataflow import DataflowModel
from chipwise.cost.device import Device
from chipwise.cost.products import products
from chipwise.cost.simt.gemm import GemmParameters
from chipwise.cost.simt.rates import Rates
from chipwise.cost.simt.tiles import TILES, tiled, waves
from chipwise.cost.systolic.family import WORD, SystolicModel, pace_hz, product
from chipwise.units import scalar
from chipwise.values import dataclass
from chipwise.workload.op import Op

SUM_BYTES = 4.0
"""bytes: of a partial sum in registers. Exact: sums are fp32 or int32."""
SHARED_BYTES_PER_CLOCK = 128.0
"""bytes per clock: what shared memory of one SM or CU gives. Source: CUDA C++ Programming Guide, shared memory: 32
banks of 4 bytes."""
STAGES = 4.0
"""count: slices of a tile in shared memory while one is multiplied. Chosen: deep enough to hide a fetch, as CUTLASS
configures its pipelines; moves the shared memory of a tile and so the blocks that fit, in what is shown of an
operator alone."""
STAGE_DEPTH = 64.0
"""elements: of k in a slice. Chosen: 128 bytes of 16-bit operands, one swizzled row of shared memory; moves as
STAGES."""
THREAD_REGISTERS = 48.0 * 4.0
"""bytes per thread: addresses and fragments beside the sums. Chosen: 48 registers of 4 bytes; moves the blocks that
registers leave room for, in what is shown alone."""
THREADS = 256.0
"""count: of a block. Chosen: eight warps, as of two warp groups; moves as THREAD_REGISTERS."""
BLOCKS = 32.0
"""count: resident blocks that a unit holds at most. Source: CUDA C++ Programming Guide, technical specifications by
compute capability: 32 for 8.0, 9.0 and 10.0."""
QUERIES = 128.0
"""rows: of a tile of prompt attention. Source: Dao, 2023 (FlashAttention-2, section 3.3: blocks of 64 or 128)."""

_INSTRUCTION: Mapping[str, tuple[float, float, bool, bool]] = {
    "wgmma": (64.0, 256.0, True, True),
    "tcgen05": (128.0, 256.0, True, False),
}
"""rows, columns: of one matrix instruction, whether operands come straight from shared memory, and whether sums stay
in registers. Source: PTX ISA: wgmma.m64n256k16 of Hopper, tcgen05 with tensor memory of Blackwell."""
_PLAIN = (16.0, 8.0, False, True)
"""rows, columns: the same of older units. Source: PTX ISA: mma.m16n8k16."""
_DEPTH = 16.0
"""elements: of k in one instruction of 16-bit operands. Source: PTX ISA: k16 in mma, wgmma and tcgen05."""
_WARP = 64.0
"""rows and columns: edge of the tile that one warp keeps in registers where operands pass through them. Chosen: four
such warps make a tile of 128 x 128; moves the shared-memory traffic that is shown of mma kernels, twice as much at
half the edge."""


@dataclass(frozen=True, slots=True)
class AnatomyLevel:
    """Bytes of one operator through one level; `bytes_per_s` is the level's rate where one is known."""

    name: str
    bytes: float
    bytes_per_s: float | None
    note: str


@dataclass(frozen=True, slots=True)
class Anatomy:
    """How an operator is laid out on a chip: `figures` by name, in words, and the levels from the inside out."""

    unit: str
    figures: Mapping[str, float]
    text: str
    levels: tuple[AnatomyLevel, ...]


def gpu_anatomy(op: Op, chip: Chip, device: Device, p: GemmParameters | None) -> Anatomy:
    """Tiles of the product, waves of them over the units, blocks per unit; for attention, blocks of queries.

    `p` are the numbers of products (None: not a product). Occupancy counts sums of a tile and THREADS threads in
    registers, and STAGES slices of both operands in shared memory.
    """
    rates = Rates.of(chip, op.compute if op.compute != "int4" else "bf16")
    memory = AnatomyLevel(
        "HBM" if chip.memory.kind == "hbm" else "memory",
        scalar(op.bytes),
        scalar(device.memory_bytes_per_s),
        "each operand once",
    )
    if op.kind != "gemm" or p is None:
        return _gpu_blocks(op, scalar(rates.units), memory)
    m, n, k, batch = (scalar(op.dims[name]) for name in ("m", "n", "k", "batch"))
    a, w = scalar(op.activation_bytes) / (batch * m * (k + n)), scalar(op.weight_bytes) / (batch * n * k)
    bm, bn = _tile(m, n, k, batch, rates, p, a, w)
    tiles = np.ceil(m / bm) * np.ceil(n / bn) * batch
    units = scalar(rates.units)
    slices = max(1.0, min(np.floor(units / tiles), np.floor(k / 256.0), 16.0))
    shared = STAGES * STAGE_DEPTH * (bm * a + bn * w)
    registers = bm * bn * SUM_BYTES + THREADS * THREAD_REGISTERS
    by_registers = np.floor(((chip.matrix_unit and chip.registers_per_unit_bytes) or 262144.0) / registers)
    by_shared = np.floor((chip.sram_per_unit_bytes or 131072.0) / shared)
    blocks = max(1.0, min(by_registers, by_shared, BLOCKS))
    limit = "registers" if by_registers <= by_shared else "shared memory"
    rounds = tiles * slices / units
    full = waves(rounds, 1.0)
    filled = m * n * batch / (tiles * bm * bn)
    macs = batch * m * n * k
    im, in_, direct, sums = _INSTRUCTION.get(chip.instruction, _PLAIN)
    if direct:
        reads = a / min(in_, bn) + w / im
        operands = "" if sums else "sums stay in tensor memory; "
        inner = 2.0 * SUM_BYTES / _DEPTH if sums else 0.0
        note = f"{operands}operands go straight from shared memory to the {im:.0f} x {in_:.0f} instruction"
    else:
        reads = (a + w) / _WARP
        inner = a / in_ + w / im + 2.0 * SUM_BYTES / _DEPTH
        note = f"every {im:.0f} x {in_:.0f} x {_DEPTH:.0f} instruction reads both operands, reads and writes its sums"
    clock = scalar(rates.clock_hz)
    filling = tiles * k * (bm * a + bn * w)
    levels = (
        AnatomyLevel("registers", macs * inner, None, note),
        AnatomyLevel(
            "shared memory",
            macs * reads + filling,
            units * SHARED_BYTES_PER_CLOCK * clock,
            "written once per tile, read by every instruction",
        ),
        AnatomyLevel(
            "L2 to units",
            filling,
            units * scalar(p.load_bytes_per_clock) * clock,
            f"each {bm} x {bn} tile loads its own rows and columns",
        ),
        memory,
    )
    figures = {
        "tile_rows": float(bm), "tile_cols": float(bn), "tiles": float(tiles), "split_k": float(slices), "units": units,
        "waves": float(rounds), "rounds": float(full), "tile_fill": float(filled),
        "last_wave_fill": float(rounds / full), "blocks_per_unit": float(blocks),
    }  # fmt: skip
    split = f" x {slices:.0f} slices of k" if slices > 1 else ""
    text = (
        f"{tiles:,.0f} tiles of {bm} x {bn}{split} on {units:.0f} units: {rounds:.2f} waves in {full:.2f} rounds, "
        f"tiles {filled:.0%} full; {blocks:.0f} block{'s' if blocks > 1 else ''} per unit (limit: {limit})"
    )
    return Anatomy(chip.matrix_unit.unit or "unit", figures, text, levels)


def systolic_anatomy(op: Op, device: Device, model: SystolicModel) -> Anatomy:
    """Folds of a product over the arrays, cycles by what they are spent on, and words at the edge."""
    arrays, p = model.arrays, model.numbers
    memory = AnatomyLevel("HBM", scalar(op.bytes), scalar(device.memory_bytes_per_s), "each operand once")
    rows, cols, count = scalar(arrays.rows), scalar(arrays.cols), scalar(arrays.count)
    asked = products(op)
    if not asked:
        return Anatomy("vector unit", {}, "no product: vector unit", (memory,))
    width = WORD
    if op.kind == "gemm":
        (x,) = asked
        width = scalar(op.activation_bytes) / scalar(x.batch * x.m * (x.n + x.k))
    made = [product(scalar(x.m), scalar(x.n), scalar(x.k), arrays, p, batch=scalar(x.batch)) for x in asked]
    sums = {
        name: float(sum(scalar(getattr(s, name)) for s in made))
        for name in (
            "cycles",
            "load_cycles",
            "stream_cycles",
            "stall_cycles",
            "fill_cycles",
            "drain_cycles",
            "passes",
            "macs",
            "padded_macs",
        )
    }
    edge = sum(scalar(s.activation_reads) + scalar(s.weight_reads) for s in made)
    partial = sum(scalar(s.partial_reads) + scalar(s.result_writes) for s in made)
    clock = scalar(pace_hz(device, arrays, op.compute))
    useful = sums["macs"] / max(sums["cycles"] * rows * cols * count, 1.0)
    first = made[0].folds
    held = "outputs" if scalar(arrays.holds_outputs) else "weights"
    figures = {
        **sums, "array_rows": rows, "array_cols": cols, "arrays": count, "pace_hz": clock,
        "fold_rows": scalar(first.across_rows), "fold_cols": scalar(first.across_cols),
        "mapping_efficiency": sums["macs"] / max(sums["padded_macs"], 1.0), "utilization": useful,
    }  # fmt: skip
    text = (
        f"{scalar(first.across_rows):,.0f} x {scalar(first.across_cols):,.0f} folds on {count:.0f} arrays of "
        f"{rows:.0f} x {cols:.0f} that hold {held}: {sums['cycles']:,.0f} cycles = "
        f"load {sums['load_cycles']:,.0f} + stream {sums['stream_cycles']:,.0f} + stall {sums['stall_cycles']:,.0f} + "
        f"fill {sums['fill_cycles']:,.0f} + drain {sums['drain_cycles']:,.0f} at {clock / 1e9:.2f} G rows/s; "
        f"{useful:.0%} of the cells' work is useful"
    )
    levels = (
        AnatomyLevel(
            "cell to cell",
            sums["padded_macs"] * (width + SUM_BYTES),
            None,
            "operand to the right neighbour, sum to the one below: wires, no memory",
        ),
        AnatomyLevel("sum buffers", partial * SUM_BYTES, None, "sums of a fold, added to by the next"),
        AnatomyLevel(
            "VMEM to arrays",
            edge * width,
            scalar(arrays.onchip_bytes_per_s),
            f"an operand read once meets {cols:.0f} columns or all rows that pass",
        ),
        memory,
    )
    return Anatomy("array", figures, text, levels)


def cpu_anatomy(op: Op, device: Device, model: CpuModel) -> Anatomy:
    """Cores and rows of an instruction; the shared cache and the channels."""
    cores = model.cores
    count, rows, clock = scalar(cores.count), scalar(cores.rows), scalar(cores.clock_hz)
    unit = "AMX tiles of 16 rows" if rows > 1 else "SIMD"
    text = f"{count:.0f} cores with {unit}, shared cache {scalar(cores.cache_bytes) / 1e6:,.0f} MB"
    levels = (
        AnatomyLevel("shared cache", scalar(op.bytes), CACHE_BYTES_PER_CLOCK * clock * count, "each operand once"),
        AnatomyLevel("memory", scalar(op.bytes), scalar(device.memory_bytes_per_s), "each operand once"),
    )
    return Anatomy("core", {"cores": count, "tile_rows": rows, "clock_hz": clock}, text, levels)


def dataflow_anatomy(op: Op, chip: Chip, model: DataflowModel) -> Anatomy:
    """Where the weights are, and the bytes of each tier."""
    fabric, resident = model.fabric, scalar(model.resident)
    planes, edge = scalar(fabric.planes), scalar(fabric.plane)
    units = f"{planes:.0f} planes of {edge:.0f} x {edge:.0f}" if planes else f"{chip.matrix_unit.units:,} units"
    sram = scalar(fabric.sram_bytes)
    text = f"laid out over {units} by the compiler; {resident:.0%} of the weights stay in {sram / 1e6:,.0f} MB of SRAM"
    streamed = scalar(op.weight_bytes) * (1.0 - resident)
    levels = [AnatomyLevel("SRAM", scalar(op.bytes), scalar(fabric.sram_bytes_per_s), "next to the units")]
    if scalar(fabric.tier_bytes_per_s) > 0.0:
        levels.append(AnatomyLevel("next tier", streamed, scalar(fabric.tier_bytes_per_s), "weights that do not fit"))
    return Anatomy("plane" if planes else "unit", {"resident": resident, "planes": planes}, text, tuple(levels))


def _gpu_blocks(op: Op, units: float, memory: AnatomyLevel) -> Anatomy:
    d = op.dims
    if op.kind != "attention":
        return Anatomy("unit", {"units": units}, f"streamed over {units:.0f} units", (memory,))
    q = scalar(d["q"])
    heads = scalar(d["kv_heads"]) if q == 1 else scalar(d["heads"])
    blocks = scalar(d["batch"]) * heads * float(np.ceil(q / QUERIES))
    what = "sequence and kv head" if q == 1 else f"head and {QUERIES:.0f} queries"
    slices = max(1.0, float(np.floor(2.0 * units / blocks))) if q == 1 else 1.0
    split = f", each cut into {slices:.0f} slices of its tokens" if slices > 1 else ""
    text = f"{blocks:,.0f} blocks (one per {what}){split} on {units:.0f} units: {blocks * slices / units:.2f} waves"
    figures = {"blocks": blocks, "slices": slices, "units": units, "waves": blocks * slices / units}
    return Anatomy("unit", figures, text, (memory,))


def _tile(
    m: float, n: float, k: float, batch: float, rates: Rates, p: GemmParameters, a: float, w: float
) -> tuple[int, int]:
    """The tile that `tiled` chooses."""

    def seconds(tile: tuple[int, int]) -> float:
        unit = tiled(
            m, n, k, batch, rates.units, rates.flops_per_s * p.compute_share / rates.units,
            p.load_bytes_per_clock * rates.clock_hz, a, w, p.prologue, p.quantisation, 16.0, sizes=(tile,),
        )  # fmt: skip
        return scalar(unit.seconds)

    return min(TILES, key=seconds)
