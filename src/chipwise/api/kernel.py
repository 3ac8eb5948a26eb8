"""`kernel`: one operator on one or several chips, with everything that leads to its time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from chipwise.api.kernel_network import joined
from chipwise.api.kernel_price import UNHELD, held, price_exchange, price_operator
from chipwise.api.kernel_record import exchange_record, lessons, record_of, whole_report
from chipwise.api.loaded import find_chip
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.catalog.chip import Chip
from chipwise.cost.device import Device
from chipwise.cost.systolic import im2col
from chipwise.errors import UnknownNameError, UsageError
from chipwise.parallel.collective import KINDS
from chipwise.parallel.overlap import behind, stolen_share
from chipwise.report.kernel_records import KernelReport
from chipwise.report.records import RefusalRecord
from chipwise.units import format_bytes, format_seconds, scalar
from chipwise.workload import op as ops
from chipwise.workload.formats import FORMATS, Format
from chipwise.workload.op import Op

__all__ = [
    "ASSUMED", "COLLECTIVES", "DTYPES", "attention", "chips_of", "collective", "conv", "formats_of", "gemm",
    "sizes_of",
]  # fmt: skip

DTYPES = ("bf16", "fp16", "fp32", "fp8", "fp8_block", "int8", "nvfp4", "int4", "mxfp4")
COLLECTIVES = KINDS
SPELLINGS = {name.replace("_", ""): name for name in COLLECTIVES}
WEIGHT_ONLY = ("int4", "mxfp4")
LARGEST = 1_000_000_000

ASSUMED = (
    "weights and caches come from main memory, activations are on chip as far as they fit and the chip keeps them",
    "GPUs: kernels of vLLM, replayed from a graph; dataflow chips: weights in SRAM as far as they fit",
)


def _bare(kind: str) -> str:
    """A collective's name however it is written: allreduce, All-Reduce, AllReduce."""
    return kind.lower().replace("-", "").replace("_", "").replace(" ", "")


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
    sizes = sizes_of(dims)
    weight, activation = formats_of(dtype)
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
    d = sizes_of(given)
    if not 0 <= pad <= LARGEST or kernel > size + 2 * pad:
        raise UsageError(f"a kernel of {kernel} does not fit an image of {size} padded by {pad}")
    product = im2col(
        d["size"], d["size"], d["kernel"], d["kernel"], d["channels"], d["filters"], d["stride"], d["stride"],
        pad_h=float(pad), pad_w=float(pad), images=d["images"],
    )  # fmt: skip
    weight, activation = formats_of(dtype)
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
    d = sizes_of(
        {"batch": batch, "q": q, "kv": kv, "heads": heads, "kv-heads": kv_heads, "head-dim": head_dim}
    )
    if q > kv:
        raise UsageError(
            f"--q {q}: more new tokens than the {kv} that are visible", "--kv counts the new ones too"
        )
    if heads % kv_heads:
        raise UsageError(f"--kv-heads {kv_heads} does not divide --heads {heads}")
    if not 0 <= window <= LARGEST:
        raise UsageError(f"--window {window}: not a count of tokens", "0 for none")
    weight, _ = formats_of(dtype)
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
    apart: int = 1,
    oversubscription: float = 1.0,
    changes: Mapping[str, str] | None = None,
    numbers: Parameters | None = None,
) -> KernelReport:
    """One exchange between `ranks` chips, `apart` from one to the next (the groups in between do the same at once), by
    `parallel.collective` over the fabric and the network of a catalogued system; `oversubscription`: links down over
    links up of a leaf switch. Raises as `gemm`.
    """
    kind = SPELLINGS.get(_bare(kind), kind)
    if kind not in COLLECTIVES:
        raise UnknownNameError("collective", kind, COLLECTIVES, f"one of {', '.join(COLLECTIVES)}")
    if not 2 <= ranks <= 100_000:
        raise UsageError(f"--ranks {ranks}: not a count of ranks", "2 to 100,000")
    if not 1 <= apart <= 100_000:
        raise UsageError(f"--apart {apart}: not a distance in chips", "1 to 100,000, where 1 is neighbours")
    if not 1.0 <= oversubscription <= 100.0:
        raise UsageError(f"--oversubscription {oversubscription:g} is out of range", "1 to 100")
    if kind == "p2p" and ranks != 2:
        raise UsageError("--kind p2p is between 2 ranks")
    known = numbers or shipped_parameters()
    kernels, refused = [], []
    for chip in chips_of(chips, changes):
        device, span = Device.of(chip), ranks * apart
        if not np.isfinite(device.link_bytes_per_s):
            refused.append(RefusalRecord(chip.id, "NO_LINK", "no link between chips is published"))
            continue
        at = joined(chip, span, oversubscription)
        if at is None:
            beyond = (
                f"{span:,} chips are more than the {device.domain:g} of one domain, and no network is known"
            )
            unknown = f"how its chips are joined is not known: no system of the catalogue has {chip.id}"
            what = beyond if span > device.domain else unknown
            refused.append(RefusalRecord(chip.id, "DOMAIN", what))
            continue
        found = price_exchange(kind, num_bytes, ranks, chip, at, known, apart=apart)
        found = replace(found, notes=(_behind(chip.family, found.time_s.mid),))
        kernels.append(exchange_record(found, chip, kind, num_bytes, float(ranks)))
    name = kind.replace("_", "-")
    where = "neighbours, alone on their links"
    if apart > 1:
        where = f"ranks {apart:,} chips apart; the {apart:,} groups between them do the same at once"
    blocking = (
        (f"leaf switches with {oversubscription:g} links down for one up",) if oversubscription > 1.0 else ()
    )
    return whole_report(
        f"{name} of {format_bytes(num_bytes)} between {ranks} ranks",
        {"bytes": num_bytes, "ranks": float(ranks), "apart": float(apart)},
        "",
        kernels,
        refused,
        (),
        (where, "the usual library, tier by tier from the inside", *blocking),
    )


def _behind(family: str, seconds: float) -> str:
    """What an exchange costs where compute hides it."""
    stolen = stolen_share(family)
    if not stolen:
        return "behind compute it is free: engines of their own move it"
    # compute that lasts longer than the exchange, by twice
    lost = scalar(behind(2.0 * seconds, seconds, stolen)) - 2.0 * seconds
    return f"behind compute it holds {stolen:.0%} of the units: {format_seconds(lost)} of compute lost"


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
        if not held(op, chip):
            refused.append(RefusalRecord(chip.id, "CAPACITY", UNHELD))
            continue
        kernels.append(record_of(price_operator(op, dtype, chip, device, known), op, chip, device))
    return whole_report(what, dims, dtype, kernels, refused, lessons(kernels, op), ASSUMED)


def formats_of(dtype: str) -> tuple[Format, Format]:
    """Formats of weights and activations. Raises `UnknownNameError`."""
    if dtype not in DTYPES:
        raise UnknownNameError("data type", dtype, DTYPES, f"one of {', '.join(DTYPES)}")
    return FORMATS[dtype], FORMATS["bf16" if dtype in WEIGHT_ONLY else dtype]


def chips_of(names: Sequence[str], changes: Mapping[str, str] | None) -> list[Chip]:
    """The chips of that name, each once. Raises `UsageError` for none, `UnknownNameError` for an unknown one."""
    if not names:
        raise UsageError("--chip: no chip", "name one or several, separated by commas")
    return [find_chip(name, changes) for name in dict.fromkeys(names)]


def sizes_of(given: Mapping[str, int]) -> dict[str, float]:
    """Sizes as numbers. Raises `UsageError` for one that is none."""
    for name, value in given.items():
        if not 1 <= value <= LARGEST:
            raise UsageError(f"--{name} {value}: not a size", f"1 to {LARGEST:,}")
    return {name: float(value) for name, value in given.items()}
