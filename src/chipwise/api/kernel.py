"""`kernel`: one operator on one or several chips, with everything that leads to its time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from chipwise.api.kernel_price import Priced, price_collective, price_operator
from chipwise.api.loaded import find_chip
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.catalog.chip import Chip
from chipwise.cost.device import Device
from chipwise.cost.systolic import im2col
from chipwise.errors import InfeasibleError, UnknownNameError, UsageError
from chipwise.parallel.collective import wire_bytes
from chipwise.report.kernel_records import KernelRecord, KernelReport, LevelRecord
from chipwise.report.records import RefusalRecord
from chipwise.units import format_bytes
from chipwise.workload import op as ops
from chipwise.workload.formats import FORMATS, Format
from chipwise.workload.op import Op

__all__ = ["COLLECTIVES", "DTYPES", "attention", "chips_of", "collective", "conv", "gemm"]

DTYPES = ("bf16", "fp16", "fp32", "fp8", "fp8_block", "int8", "nvfp4", "int4", "mxfp4")
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "p2p")
WEIGHT_ONLY = ("int4", "mxfp4")
LARGEST = 1_000_000_000

ASSUMED = (
    "weights and caches come from main memory, activations are on chip as far as they fit and the chip keeps them",
    "GPUs: kernels of vLLM, replayed from a graph; dataflow chips: weights in SRAM as far as they fit",
)


def gemm(
    chips: Sequence[str],
    m: int,
    n: int,
    k: int,
    *,
    dtype: str = "bf16",
    batch: int = 1,
    changes: Mapping[str, str] | None = None,
    numbers: Parameters | None = None,
) -> KernelReport:
    """`batch` products C[m, n] = A[m, k] x W[k, n] on each of `chips`.

    Raises `UsageError` for a size that is none, `UnknownNameError` for an unknown type or chip,
    `InfeasibleError` where no chip can be priced.
    """
    dims = {"m": m, "n": n, "k": k, "batch": batch}
    sizes = _sizes(dims)
    weight, activation = _formats(dtype)
    op = ops.gemm(sizes["m"], sizes["n"], sizes["k"], weight, activation, batch=sizes["batch"])
    times = f"{batch:,} x " if batch > 1 else ""
    return _report(
        f"{times}C[{m:,}, {n:,}] = A[{m:,}, {k:,}] x W[{k:,}, {n:,}]",
        op,
        sizes,
        dtype,
        chips,
        changes,
        numbers,
    )


def conv(
    chips: Sequence[str],
    size: int,
    channels: int,
    filters: int,
    *,
    kernel: int = 3,
    stride: int = 1,
    pad: int = 1,
    images: int = 1,
    dtype: str = "bf16",
    changes: Mapping[str, str] | None = None,
    numbers: Parameters | None = None,
) -> KernelReport:
    """A square convolution as the product that it unfolds to (im2col): rows are output pixels, columns filters.

    Raises as `gemm`.
    """
    given = {
        "size": size,
        "channels": channels,
        "filters": filters,
        "kernel": kernel,
        "stride": stride,
        "images": images,
    }
    d = _sizes(given)
    if not 0 <= pad <= LARGEST or kernel > size + 2 * pad:
        raise UsageError(f"a kernel of {kernel} does not fit an image of {size} padded by {pad}")
    product = im2col(
        d["size"], d["size"], d["kernel"], d["kernel"], d["channels"], d["filters"], d["stride"], d["stride"],
        pad_h=float(pad), pad_w=float(pad), images=d["images"],
    )  # fmt: skip
    weight, activation = _formats(dtype)
    op = ops.gemm(product.m, product.n, product.k, weight, activation, name="conv")
    what = f"{images:,} x {channels:,} x {size:,} x {size:,}, {filters:,} filters of {kernel} x {kernel}"
    what = f"{what}, stride {stride}, pad {pad}"
    unfolded = {"m": float(product.m), "n": float(product.n), "k": float(product.k)}
    return _report(
        f"convolution of {what}", op, d | {"pad": float(pad)} | unfolded, dtype, chips, changes, numbers
    )


def attention(
    chips: Sequence[str],
    *,
    batch: int = 1,
    q: int = 1,
    kv: int,
    heads: int,
    kv_heads: int,
    head_dim: int = 128,
    window: int = 0,
    dtype: str = "bf16",
    changes: Mapping[str, str] | None = None,
    numbers: Parameters | None = None,
) -> KernelReport:
    """Causal attention of `q` new tokens of each of `batch` sequences over `kv` tokens; `dtype` is the cache's.

    Raises as `gemm`, and where tokens or heads do not go together.
    """
    d = _sizes({"batch": batch, "q": q, "kv": kv, "heads": heads, "kv-heads": kv_heads, "head-dim": head_dim})
    if q > kv:
        raise UsageError(
            f"--q {q}: more new tokens than the {kv} that are visible", "--kv counts the new ones too"
        )
    if heads % kv_heads:
        raise UsageError(f"--kv-heads {kv_heads} does not divide --heads {heads}")
    if not 0 <= window <= LARGEST:
        raise UsageError(f"--window {window}: not a count of tokens", "0 for none")
    weight, _ = _formats(dtype)
    op = ops.attention(
        d["batch"], d["q"], d["kv"], d["heads"], d["kv-heads"], d["head-dim"], weight, window=float(window)
    )
    phase = "new token" if q == 1 else f"{q:,} new tokens"
    what = f"attention: {batch:,} sequences, {phase} over {kv:,}, {heads} heads on {kv_heads} of {head_dim}"
    return _report(what, op, d | {"window": float(window)}, dtype, chips, changes, numbers)


def collective(
    chips: Sequence[str],
    kind: str,
    num_bytes: float,
    ranks: int,
    *,
    changes: Mapping[str, str] | None = None,
    numbers: Parameters | None = None,
) -> KernelReport:
    """One exchange between `ranks` devices of one scale-up domain. Raises as `gemm`."""
    if kind not in COLLECTIVES:
        raise UnknownNameError("collective", kind, COLLECTIVES, f"one of {', '.join(COLLECTIVES)}")
    if not 2 <= ranks <= 100_000:
        raise UsageError(f"--ranks {ranks}: not a count of ranks", "at least 2")
    if kind == "p2p" and ranks != 2:
        raise UsageError("--kind p2p is between 2 ranks")
    known = numbers or shipped_parameters()
    kernels, refused = [], []
    for chip in chips_of(chips, changes):
        device = Device.of(chip)
        if not np.isfinite(device.link_bytes_per_s):
            refused.append(RefusalRecord(chip.id, "NO_LINK", "no link between chips is published"))
        elif ranks > device.domain:
            what = f"{ranks} ranks are more than the {device.domain:g} devices of one domain"
            refused.append(RefusalRecord(chip.id, "DOMAIN", what))
        else:
            found = price_collective(kind, num_bytes, float(ranks), chip, device, known)
            kernels.append(_exchange(found, chip, kind, num_bytes, float(ranks), device))
    name = kind.replace("_", "-")
    return _whole(
        f"{name} of {format_bytes(num_bytes)} between {ranks} ranks",
        {"bytes": num_bytes, "ranks": float(ranks)},
        "",
        kernels,
        refused,
        (),
        ("inside one scale-up domain", "the library's usual algorithm"),
    )


def _report(
    what: str,
    op: Op,
    dims: Mapping[str, float],
    dtype: str,
    chips: Sequence[str],
    changes: Mapping[str, str] | None,
    numbers: Parameters | None,
) -> KernelReport:
    known = numbers or shipped_parameters()
    kernels, refused = [], []
    for chip in chips_of(chips, changes):
        device = Device.of(chip)
        if not (np.isfinite(device.memory_bytes_per_s) and np.isfinite(device.matrix[op.compute])):
            missing = (
                "memory bandwidth" if not np.isfinite(device.memory_bytes_per_s) else f"{op.compute} peak"
            )
            refused.append(RefusalRecord(chip.id, "NO_FIGURE", f"no {missing} is published"))
            continue
        kernels.append(_record(price_operator(op, dtype, chip, device, known), op, chip, device))
    return _whole(what, dims, dtype, kernels, refused, _lessons(kernels, op), ASSUMED)


def _whole(
    what: str,
    dims: Mapping[str, float],
    dtype: str,
    kernels: Sequence[KernelRecord],
    refused: Sequence[RefusalRecord],
    lessons: tuple[str, ...],
    assumed: tuple[str, ...],
) -> KernelReport:
    if not kernels:
        first = refused[0]
        raise InfeasibleError(f"{first.chip}: {first.detail}", "chipwise chips list names others")
    return KernelReport(what, dict(dims), dtype, tuple(kernels), tuple(refused), lessons, assumed)


def _record(p: Priced, op: Op, chip: Chip, device: Device) -> KernelRecord:
    peak, rate = float(device.matrix[op.compute]), float(device.memory_bytes_per_s)
    flops, moved, seconds = _number(op.flops), _number(op.bytes), p.time_s.mid
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
        share_of_peak=flops / seconds / peak,
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


def _exchange(
    p: Priced, chip: Chip, kind: str, num_bytes: float, ranks: float, device: Device
) -> KernelRecord:
    wire = _number(wire_bytes(kind, num_bytes, ranks))  # type: ignore[arg-type]
    link = p.link_bytes_per_s
    seconds = p.time_s.mid
    level = LevelRecord("link", wire, 0.0, wire / link, "through the port of each chip, one direction")
    return KernelRecord(
        chip=chip.id, family=chip.family, time_s=p.time_s, bound=p.bound, exposed_s=p.exposed_s, hidden_s={},
        flops=0.0, bytes=wire, intensity=0.0, ridge=0.0, roofline_s=wire / link, peak_flops_per_s=0.0,
        flops_per_s=0.0, share_of_peak=wire / seconds / link, bytes_per_s=wire / seconds,
        mapping_text=p.anatomy.text, mapping=dict(p.anatomy.figures), levels=(level,), notes=p.notes,
    )  # fmt: skip


def _lessons(kernels: Sequence[KernelRecord], op: Op) -> tuple[str, ...]:
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


def _formats(dtype: str) -> tuple[Format, Format]:
    if dtype not in DTYPES:
        raise UnknownNameError("data type", dtype, DTYPES, f"one of {', '.join(DTYPES)}")
    return FORMATS[dtype], FORMATS["bf16" if dtype in WEIGHT_ONLY else dtype]


def chips_of(names: Sequence[str], changes: Mapping[str, str] | None) -> list[Chip]:
    """The chips of that name, each once. Raises `UsageError` for none, `UnknownNameError` for an unknown one."""
    if not names:
        raise UsageError("--chip: no chip", "name one or several, separated by commas")
    return [find_chip(name, changes) for name in dict.fromkeys(names)]


def _sizes(given: Mapping[str, int]) -> dict[str, float]:
    for name, value in given.items():
        if not 1 <= value <= LARGEST:
            raise UsageError(f"--{name} {value}: not a size", f"1 to {LARGEST:,}")
    return {name: float(value) for name, value in given.items()}


def _number(value: object) -> float:
    return float(np.asarray(value, dtype=float).reshape(-1)[0])
