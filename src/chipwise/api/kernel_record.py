"""A priced operator or exchange as a record: what was done against what the chip could do, and what that teaches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chipwise.api.kernel_price import Priced
from chipwise.catalog.chip import Chip
from chipwise.cost.device import Device
from chipwise.errors import InfeasibleError
from chipwise.parallel.collective import wire_bytes
from chipwise.report.kernel_records import KernelRecord, KernelReport, LevelRecord
from chipwise.report.records import RefusalRecord
from chipwise.units import scalar
from chipwise.workload.op import Op

__all__ = ["exchange_record", "lessons", "record_of", "whole_report"]


def whole_report(
    what: str,
    dims: Mapping[str, float],
    dtype: str,
    kernels: Sequence[KernelRecord],
    refused: Sequence[RefusalRecord],
    lessons: tuple[str, ...],
    assumed: tuple[str, ...],
) -> KernelReport:
    """The answer. Raises `InfeasibleError` where no chip was priced."""
    if not kernels:
        first = refused[0]
        raise InfeasibleError(f"{first.chip}: {first.detail}", "chipwise chips list names others")
    return KernelReport(what, dict(dims), dtype, tuple(kernels), tuple(refused), lessons, assumed)


def record_of(p: Priced, op: Op, chip: Chip, device: Device, *, link: float | None = None) -> KernelRecord:
    """What a price says, beside the roofline; `link`: of a copy that does not go through the chip's memory."""
    peak = float(device.vector_flops_per_s if op.compute == "vector" else device.matrix[op.compute])
    rate = float(device.memory_bytes_per_s) if link is None else link
    flops, moved, seconds = scalar(op.flops), scalar(op.bytes), p.time_s.mid
    return KernelRecord(
        chip=chip.id,
        family=chip.family,
        time_s=p.time_s,
        bound=p.bound,
        exposed_s=p.exposed_s,
        hidden_s=p.hidden_s,
        flops=flops,
        bytes=moved,
        intensity=flops / moved,
        ridge=peak / rate,
        roofline_s=max(flops / peak, moved / rate),
        peak_flops_per_s=peak,
        flops_per_s=flops / seconds,
        share_of_peak=flops / seconds / peak if flops else moved / seconds / rate,
        bytes_per_s=moved / seconds,
        mapping_text=p.anatomy.text,
        mapping=dict(p.anatomy.figures),
        levels=tuple(
            LevelRecord(
                v.name,
                v.bytes,
                v.bytes / max(flops / 2.0, 1.0),
                v.bytes / v.bytes_per_s if v.bytes_per_s else None,
                v.note,
            )
            for v in p.anatomy.levels
        ),
        notes=p.notes,
    )


def exchange_record(p: Priced, chip: Chip, kind: str, num_bytes: float, ranks: float) -> KernelRecord:
    """What the price of a collective says, beside the time of its bytes on one port at full rate."""
    wire = scalar(wire_bytes(kind, num_bytes, ranks))  # type: ignore[arg-type]
    link = p.link_bytes_per_s
    seconds = p.time_s.mid
    level = LevelRecord(p.link, wire, 0.0, wire / link, "through the port of each chip, one direction")
    return KernelRecord(
        chip=chip.id, family=chip.family, time_s=p.time_s, bound=p.bound, exposed_s=p.exposed_s, hidden_s={},
        flops=0.0, bytes=wire, intensity=0.0, ridge=0.0, roofline_s=wire / link, peak_flops_per_s=0.0,
        flops_per_s=0.0, share_of_peak=wire / seconds / link, bytes_per_s=wire / seconds,
        mapping_text=p.anatomy.text, mapping=dict(p.anatomy.figures), levels=(level,), notes=p.notes,
    )  # fmt: skip


def lessons(kernels: Sequence[KernelRecord], op: Op) -> tuple[str, ...]:
    """Where a GPU and a systolic array stand side by side: what feeds a multiply-accumulate."""
    gpu = next((k for k in kernels if k.family == "simt" and len(k.levels) > 1), None)
    tpu = next((k for k in kernels if k.family == "systolic" and len(k.levels) > 1), None)
    if op.kind != "gemm" or gpu is None or tpu is None:
        return ()
    from_shared = {v.name: v.bytes_per_mac for v in gpu.levels}
    from_vmem = {v.name: v.bytes_per_mac for v in tpu.levels}
    shared, vmem = from_shared["shared memory"], from_vmem["VMEM to arrays"]
    return (
        f"per multiply-accumulate {gpu.chip} moves {from_shared['registers']:.3f} B through registers and "
        f"{shared:.4f} B through shared memory; {tpu.chip} moves {vmem:.4f} B through VMEM, {shared / vmem:.1f} times "
        "less than shared memory, and reads no register file: an operand enters the array once and is passed from "
        "cell to cell",
        "the price: an array works on whole tiles, so that few rows or odd dims leave cells idle, and waits for its "
        "first tile and last sums; a GPU's small tiles fit more shapes",
    )
