"""The price of one operator or exchange on one chip, with what it is made of and how sure it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.api.kernel_network import Joined, limit
from chipwise.calibrate.kernels import NUMBERS, TEXT, price_all
from chipwise.calibrate.parameter import Z80
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.chip import Chip
from chipwise.catalog.runtime import get_runtime, kernel_library, runtimes_for
from chipwise.cost import dataflow
from chipwise.cost.anatomy import Anatomy, Level, cpu_anatomy, dataflow_anatomy, gpu_anatomy, systolic_anatomy
from chipwise.cost.cpu import PRIOR_LOG_SPREAD, CpuModel
from chipwise.cost.dataflow import DataflowModel, Fabric
from chipwise.cost.device import Device
from chipwise.cost.simt.family import SimtParameters, dtype_label
from chipwise.cost.simt.gemm import GemmParameters
from chipwise.cost.systolic import SystolicModel
from chipwise.cost.time import CostParameters, time
from chipwise.parallel.collective import Kind, exchange, traffic, wire_bytes
from chipwise.report.records import Figure
from chipwise.units import scalar
from chipwise.workload.op import Op

__all__ = [
    "RUNTIME",
    "UNHELD",
    "Priced",
    "figure_of",
    "held",
    "measured_row",
    "model_of",
    "price_exchange",
    "price_operator",
    "row_of",
]

RUNTIME = "vllm"
WIDE = 0.6  # one standard deviation of log(time) where nothing like it was measured
UNHELD = "the weights outgrow its SRAM, and it has no second memory"

# Names of the kernel table.
_DTYPE = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "int4": "int4_wo"}
_HEADS = ("batch", "heads", "kv_heads", "head_dim", "window")
_KERNEL = {"fa2": "flash_attn", "trtllm": "torch_flow"}
_KINDS = {
    "all_reduce": "allreduce",
    "all_gather": "allgather",
    "reduce_scatter": "reducescatter",
    "all_to_all": "alltoall",
    "p2p": "p2p",
}


@dataclass(frozen=True, slots=True)
class Priced:
    """A time with its parts; of exchanges the `link` that limits them, and its bytes/s."""

    time_s: Figure
    exposed_s: dict[str, float]
    hidden_s: dict[str, float]
    bound: str
    anatomy: Anatomy
    notes: tuple[str, ...] = ()
    link_bytes_per_s: float = 0.0
    link: str = "fabric"


def held(op: Op, chip: Chip) -> bool:
    """Whether a chip has a place for the weights: dataflow chips without a second tier keep them in SRAM."""
    if chip.family != "dataflow":
        return True
    fabric = Fabric.of(chip)
    return scalar(fabric.tier_bytes_per_s) > 0.0 or scalar(op.weight_bytes) <= scalar(fabric.sram_bytes)


def price_operator(op: Op, dtype: str, chip: Chip, device: Device, numbers: Parameters) -> Priced:
    """One operator by the formulas of the chip's family.

    The interval is that of the same operator in a table of measured kernels, where the family has one.
    """
    model, notes = model_of(op, chip, numbers), []
    cost = time(op, device, model)
    spread, basis = _spread(op, dtype, chip, numbers)
    wanted = "fp4" if op.compute == "fp4" else op.compute
    if chip.family == "simt" and _runtime(chip) != RUNTIME:
        notes.append(f"by the kernels of {get_runtime(_runtime(chip)).name}: {RUNTIME} does not run on it")
    if chip.family != "cpu" and wanted not in chip.matrix and wanted not in chip.vector:
        notes.append(f"no unit for {wanted}: priced at the rate of another type")
    exposed = {name: scalar(v) for name, v in cost.exposed.items() if scalar(v) > 0.0}
    seconds = sum(exposed.values())
    return Priced(
        time_s=figure_of(seconds, spread, basis),
        exposed_s=exposed,
        hidden_s={name: scalar(v) for name, v in cost.hidden.items() if scalar(v) > 0.0},
        bound=max(exposed, key=lambda name: exposed[name]),
        anatomy=_anatomy(op, chip, device, model),
        notes=tuple(notes),
    )


def price_exchange(
    kind: Kind, num_bytes: float, ranks: int, chip: Chip, at: Joined, numbers: Parameters, *, apart: int = 1
) -> Priced:
    """One exchange of ranks `apart` chips from one another by the usual library: latency under "launch", transfer under
    "network". The interval is that of measured ones inside a domain."""
    tiers = traffic(kind, num_bytes, ranks, at.network, apart)
    found = exchange(kind, num_bytes, ranks, at.network, numbers.links(chip)[kind], stride=apart)
    latency, transfer = scalar(found.latency_s), scalar(found.transfer_s)
    spread, basis = WIDE, "modelled"
    if chip.family == "simt" and kind in _KINDS and ranks * apart <= scalar(at.network.domain):
        row = row_of(chip, op=_KINDS[kind], dtype="bfloat16", kernel="NCCL", framework="nccl", timing="nccl-tests",
                   bytes=num_bytes, ranks=float(ranks))  # fmt: skip
        spread, basis = measured_row(row, chip, numbers)
    link, least_s = limit(tiers)
    steps = sum(scalar(t.steps) for t in tiers)
    return Priced(
        time_s=figure_of(latency + transfer, spread, basis),
        exposed_s={"launch": latency, "network": transfer},
        hidden_s={},
        bound="network" if transfer >= latency else "launch",
        anatomy=Anatomy("link", {"ranks": float(ranks), "steps": steps}, at.described(tiers), ()),
        link_bytes_per_s=scalar(wire_bytes(kind, num_bytes, ranks)) / least_s,
        link=link,
    )


def model_of(op: Op, chip: Chip, numbers: Parameters) -> CostParameters:
    """The numbers that price an operator on one chip."""
    model = numbers.cost(chip.family, _runtime(chip), [chip], alone=True).take(np.zeros((), dtype=np.intp))
    if isinstance(model, DataflowModel):
        return replace(
            model, resident=min(1.0, scalar(model.fabric.sram_bytes) / max(scalar(op.weight_bytes), 1.0))
        )
    return model


def _runtime(chip: Chip) -> str:
    """Whose kernels price an operator: vLLM's, or on GPUs where it does not run those of the chip's first runtime."""
    if chip.family != "simt":
        return "any"
    able = [r.id for r in runtimes_for(chip)]
    return RUNTIME if RUNTIME in able or not able else able[0]


def _anatomy(op: Op, chip: Chip, device: Device, model: CostParameters) -> Anatomy:
    if isinstance(model, SystolicModel):
        return systolic_anatomy(op, device, model)
    if isinstance(model, CpuModel):
        return cpu_anatomy(op, device, model)
    if isinstance(model, SimtParameters):
        tiled = op.kind == "gemm" and not (model.vector and scalar(op.dims["m"]) <= model.vector.rows)
        p = model.pick(GemmParameters, "simt.gemm", dtype=dtype_label(op)) if tiled else None
        return gpu_anatomy(op, chip, device, p)
    if isinstance(model, DataflowModel):
        return dataflow_anatomy(op, chip, model)
    level = Level(chip.memory.name, scalar(op.bytes), scalar(device.memory_bytes_per_s), "each operand once")
    return Anatomy("chip", {}, "a roofline with shares of peaks", (level,))


def _spread(op: Op, dtype: str, chip: Chip, numbers: Parameters) -> tuple[float, str]:
    """One standard deviation of log(time), and the basis, from the same operator in a table of kernels."""
    if chip.family == "cpu":
        return PRIOR_LOG_SPREAD, "modelled"
    if chip.family == "dataflow":
        return dataflow.PRIOR_LOG_SPREAD, "modelled"
    d = {name: scalar(value) for name, value in op.dims.items()}
    kind = _DTYPE.get(dtype, dtype)
    if op.kind == "gemm":
        name = "batched_gemm" if d["batch"] > 1 and chip.family == "simt" else "gemm"
        row = row_of(chip, op=name, dtype=kind, framework=RUNTIME, timing="cuda-graph replay", m=d["m"], n=d["n"],
                   k=d["k"], batch=d["batch"])  # fmt: skip
    else:
        name = "attention_decode" if d["q"] == 1 else "attention_prefill"
        library = kernel_library("attention", RUNTIME, chip.generation)
        sizes = {"q_len": d["q"], "kv_len": d["kv"]} | {n: d[n] for n in _HEADS}
        kernel = _KERNEL.get(library, library)
        row = row_of(chip, op=name, dtype="bfloat16", kv_dtype=kind, kernel=kernel, framework=RUNTIME,
                   timing="cuda-graph replay", **sizes)  # fmt: skip
    return measured_row(row, chip, numbers)


def measured_row(row: Mapping[str, NDArray[Any]], chip: Chip, numbers: Parameters) -> tuple[float, str]:
    """One standard deviation of log(time) of a row of a kernel table, and its basis."""
    times = price_all(row, {chip.id: chip}, numbers)
    if not np.isfinite(times.mid_s[0]):
        return WIDE, "modelled"
    spread = float(np.log(times.high_s[0] / times.low_s[0]) / (2.0 * Z80))
    return spread, "calibrated" if times.calibrated[0] else "modelled"


def row_of(chip: Chip, **given: str | float) -> dict[str, NDArray[Any]]:
    """One row of a kernel table."""
    texts = {name: np.array([str(given.get(name, ""))]) for name in TEXT}
    numbers = {name: np.array([float(given.get(name, np.nan))]) for name in NUMBERS}
    return {**texts, **numbers, "chip": np.array([chip.id])}


def figure_of(mid: float, spread: float, basis: str) -> Figure:
    """A time with its 80 % interval."""
    factor = float(np.exp(Z80 * spread))
    return Figure(mid, mid / factor, mid * factor, basis, provisional=basis != "calibrated")
