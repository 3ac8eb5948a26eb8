"""The price of one operator or exchange on one chip, with what it is made of and how sure it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.kernel_rows import kernel_rows
from chipwise.calibrate.kernels import NUMBERS, TEXT, price_all
from chipwise.calibrate.parameters import Parameters
from chipwise.calibrate.simt_numbers import attention_library
from chipwise.calibrate.systolic_kernels import parameters_of, systolic_effects
from chipwise.catalog.chip import Chip
from chipwise.cost import dataflow
from chipwise.cost.anatomy import Anatomy, Level, cpu_anatomy, dataflow_anatomy, gpu_anatomy, systolic_anatomy
from chipwise.cost.cpu import PRIOR_LOG_SPREAD, PRIORS, Cores, CpuModel
from chipwise.cost.dataflow import DataflowModel, Fabric
from chipwise.cost.device import Device
from chipwise.cost.simt.family import SimtParameters, dtype_label
from chipwise.cost.simt.gemm import GemmParameters
from chipwise.cost.simt.rates import generation
from chipwise.cost.systolic import Arrays, SystolicModel
from chipwise.cost.time import CostParameters, time
from chipwise.parallel.collective import CollectiveParameters, Kind
from chipwise.parallel.collective import collective as exchange
from chipwise.parallel.comm import Comm, comm_time
from chipwise.parallel.comm import Fabric as Links
from chipwise.report.records import Figure
from chipwise.workload.op import Op

__all__ = ["Priced", "price_collective", "price_operator"]

RUNTIME = "vllm"
WIDE = 0.6  # one standard deviation of log(time) where nothing like it was measured
_Z80 = 1.2816

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
    """A time with its parts; `link_bytes_per_s` of exchanges."""

    time_s: Figure
    exposed_s: dict[str, float]
    hidden_s: dict[str, float]
    bound: str
    anatomy: Anatomy
    notes: tuple[str, ...] = ()
    link_bytes_per_s: float = 0.0


def price_operator(op: Op, dtype: str, chip: Chip, device: Device, numbers: Parameters) -> Priced:
    """One operator by the formulas of the chip's family.

    The interval is that of the same operator in a table of measured kernels, where the family has one.
    """
    model, notes = _model(op, chip, numbers), []
    cost = time(op, device, model)
    spread, basis = _spread(op, dtype, chip, numbers)
    wanted = "fp4" if op.compute == "fp4" else op.compute
    if chip.family != "cpu" and wanted not in chip.matrix and wanted not in chip.vector:
        notes.append(f"no unit for {wanted}: priced at the rate of another type")
    exposed = {name: _number(v) for name, v in cost.exposed.items() if _number(v) > 0.0}
    seconds = sum(exposed.values())
    return Priced(
        time_s=_figure(seconds, spread, basis),
        exposed_s=exposed,
        hidden_s={name: _number(v) for name, v in cost.hidden.items() if _number(v) > 0.0},
        bound=max(exposed, key=lambda name: exposed[name]),
        anatomy=_anatomy(op, chip, device, model),
        notes=tuple(notes),
    )


def price_collective(
    kind: str, num_bytes: float, ranks: float, chip: Chip, device: Device, numbers: Parameters
) -> Priced:
    """One exchange inside a scale-up domain: latency under "launch", transfer under "network"."""
    known: Kind = kind  # type: ignore[assignment]
    link = _number(device.link_bytes_per_s)
    spread, basis = WIDE, "modelled"
    if chip.family == "simt":
        row = _row(chip, op=_KINDS[kind], dtype="bfloat16", kernel="NCCL", framework="nccl", timing="nccl-tests",
                   bytes=num_bytes, ranks=ranks)  # fmt: skip
        labels = kernel_rows(row, {chip.id: chip}).labels
        values = numbers.kernels["collective"].values(labels)
        p = CollectiveParameters(**{f.name: values[f.name] for f in fields(CollectiveParameters)})
        found = exchange(known, num_bytes, ranks, link, p)
        latency, transfer = _number(found.latency_s), _number(found.transfer_s)
        spread, basis = _measured(row, chip, numbers)
    else:
        o = numbers.overheads(chip.family, "any")
        fabric = Links(link, o.link_share, o.link_base_s, o.link_hop_s)
        latency, transfer = (_number(v) for v in comm_time(Comm(known, num_bytes, ranks, "tp"), fabric))
    steps = {"all_reduce": 2 * (ranks - 1), "p2p": 1.0}.get(kind, ranks - 1)
    topology = (chip.scaleup.topology or chip.scaleup.name) if chip.scaleup else "host bus"
    text = f"ring of {ranks:.0f}: {steps:.0f} steps of {num_bytes / ranks / 1e6:,.3g} MB over {topology}"
    if kind == "p2p":
        text = f"one message over {topology}"
    return Priced(
        time_s=_figure(latency + transfer, spread, basis),
        exposed_s={"launch": latency, "network": transfer},
        hidden_s={},
        bound="network" if transfer >= latency else "launch",
        anatomy=Anatomy("link", {"steps": steps}, text, ()),
        link_bytes_per_s=link,
    )


def _model(op: Op, chip: Chip, numbers: Parameters) -> CostParameters:
    if chip.family == "systolic" and chip.matrix_unit.arrays:
        return SystolicModel(
            Arrays.of(chip), parameters_of(systolic_effects(numbers.table), chip.software_id)
        )
    if chip.family == "cpu":
        return CpuModel(Cores.of(chip), PRIORS)
    if chip.family == "dataflow":
        fabric = Fabric.of(chip)
        resident = min(1.0, fabric.sram_bytes / max(_number(op.weight_bytes), 1.0))
        return DataflowModel(fabric, dataflow.PRIORS, resident)
    if chip.family == "simt":
        return numbers.cost("simt", RUNTIME, [chip], alone=True)
    return numbers.efficiency(chip.family, "any")


def _anatomy(op: Op, chip: Chip, device: Device, model: CostParameters) -> Anatomy:
    if isinstance(model, SystolicModel):
        return systolic_anatomy(op, chip, device, model)
    if isinstance(model, CpuModel):
        return cpu_anatomy(op, chip, device, model)
    if isinstance(model, SimtParameters):
        p = model.pick(GemmParameters, "simt.gemm", dtype=dtype_label(op)) if op.kind == "gemm" else None
        return gpu_anatomy(op, chip, device, p)
    if isinstance(model, DataflowModel):
        return dataflow_anatomy(op, chip, model)
    level = Level(
        chip.memory.name, _number(op.bytes), _number(device.memory_bytes_per_s), "each operand once"
    )
    return Anatomy("chip", {}, "a roofline with shares of peaks", (level,))


def _spread(op: Op, dtype: str, chip: Chip, numbers: Parameters) -> tuple[float, str]:
    """One standard deviation of log(time), and the basis, from the same operator in a table of kernels."""
    if chip.family == "cpu":
        return PRIOR_LOG_SPREAD, "modelled"
    if chip.family == "dataflow":
        return dataflow.PRIOR_LOG_SPREAD, "modelled"
    d = {name: _number(value) for name, value in op.dims.items()}
    kind = _DTYPE.get(dtype, dtype)
    if op.kind == "gemm":
        name = "batched_gemm" if d["batch"] > 1 and chip.family == "simt" else "gemm"
        row = _row(chip, op=name, dtype=kind, framework=RUNTIME, timing="cuda-graph replay", m=d["m"], n=d["n"],
                   k=d["k"], batch=d["batch"])  # fmt: skip
    else:
        name = "attention_decode" if d["q"] == 1 else "attention_prefill"
        library = attention_library(RUNTIME, generation(chip.software_id))
        sizes = {"q_len": d["q"], "kv_len": d["kv"]} | {n: d[n] for n in _HEADS}
        kernel = _KERNEL.get(library, library)
        row = _row(chip, op=name, dtype="bfloat16", kv_dtype=kind, kernel=kernel, framework=RUNTIME,
                   timing="cuda-graph replay", **sizes)  # fmt: skip
    return _measured(row, chip, numbers)


def _measured(row: Mapping[str, NDArray[Any]], chip: Chip, numbers: Parameters) -> tuple[float, str]:
    times = price_all(row, {chip.id: chip}, numbers)
    if not np.isfinite(times.mid_s[0]):
        return WIDE, "modelled"
    spread = float(np.log(times.high_s[0] / times.low_s[0]) / (2.0 * _Z80))
    return spread, "calibrated" if times.calibrated[0] else "modelled"


def _row(chip: Chip, **given: str | float) -> dict[str, NDArray[Any]]:
    """One row of a kernel table."""
    texts = {name: np.array([str(given.get(name, ""))]) for name in TEXT}
    numbers = {name: np.array([float(given.get(name, np.nan))]) for name in NUMBERS}
    return {**texts, **numbers, "chip": np.array([chip.id])}


def _figure(mid: float, spread: float, basis: str) -> Figure:
    factor = float(np.exp(_Z80 * spread))
    return Figure(mid, mid / factor, mid * factor, basis, provisional=basis != "calibrated")


def _number(value: object) -> float:
    return float(np.asarray(value, dtype=float).reshape(-1)[0])
