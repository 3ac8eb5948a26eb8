"""kernel: one operator on one or several chips, with everything that leads to its time."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import App, Parameter

from chipwise.api import kernel as api
from chipwise.api import kernel_more as more
from chipwise.api.amdahl import amdahl as compare_by_amdahl
from chipwise.api.requests.kernel import KernelRequest, Op
from chipwise.cli.options import Output, pairs, split, whole
from chipwise.errors import UsageError
from chipwise.report.kernel_view import amdahl_view, kernel_view
from chipwise.report.table import render
from chipwise.units import parse_quantity

__all__ = [
    "Where",
    "amdahl",
    "attention",
    "collective",
    "conv",
    "copy",
    "elementwise",
    "experts",
    "gemm",
    "kernel",
    "norm",
    "softmax",
]

kernel = App(
    name="kernel",
    help="One operator on one or several chips: mapping, bytes per memory level, roofline, time.",
    help_format="plaintext",
)

Dtype = Annotated[str, Parameter(help=f"one of {', '.join(api.DTYPES)}")]


@Parameter(name="*")
@dataclass(frozen=True)
class Where:
    """The chips."""

    chip: Annotated[str, Parameter(name=("--chip", "--chips"), help="one or several, separated by commas")]
    set_: Annotated[
        str | None, Parameter(name="--set", help="figures of the chips, as in hbm=4TB/s,bf16=1.2PFLOPS")
    ] = None


@kernel.command(name="gemm")
def gemm(
    *,
    m: Annotated[int, whole("rows: tokens")],
    n: Annotated[int, whole("output features")],
    k: Annotated[int, whole("input features")],
    where: Where,
    dtype: Dtype = "bf16",
    batch: Annotated[int, whole("independent products")] = 1,
    output: Output = Output(),  # noqa: B008
) -> None:
    """C[m, n] = A[m, k] x W[k, n]: tiles and waves, or folds, fill and drain."""
    _ask("gemm", where, output, m=m, n=n, k=k, dtype=dtype, batch=batch)


@kernel.command(name="conv")
def conv(
    *,
    size: Annotated[int, whole("height and width of the image")],
    channels: Annotated[int, whole("input channels")],
    filters: Annotated[int, whole("output channels")],
    where: Where,
    kernel: Annotated[int, whole("height and width of a filter")] = 3,
    stride: Annotated[int, whole("step of the filter")] = 1,
    pad: Annotated[int, whole("rows and columns added on each side")] = 1,
    images: Annotated[int, whole("images at once")] = 1,
    dtype: Dtype = "bf16",
    output: Output = Output(),  # noqa: B008
) -> None:
    """A convolution, unfolded to a product (im2col)."""
    _ask(
        "conv",
        where,
        output,
        size=size,
        channels=channels,
        filters=filters,
        kernel=kernel,
        stride=stride,
        pad=pad,
        images=images,
        dtype=dtype,
    )


@kernel.command(name="attention")
def attention(
    *,
    kv: Annotated[int, whole("tokens that are visible, the new ones included")],
    heads: Annotated[int, whole("query heads of one device")],
    where: Where,
    kv_heads: Annotated[int | None, whole("key and value heads; default: as many as heads")] = None,
    head_dim: Annotated[int, whole("width of a head")] = 128,
    q: Annotated[int, whole("new tokens of each sequence: 1 decodes, more is a prompt")] = 1,
    batch: Annotated[int, whole("sequences")] = 1,
    window: Annotated[int, whole("sliding window in tokens, 0 for none")] = 0,
    dtype: Dtype = "bf16",
    output: Output = Output(),  # noqa: B008
) -> None:
    """Causal attention of new tokens over cached ones; --dtype is that of the cache."""
    _ask(
        "attention",
        where,
        output,
        batch=batch,
        q=q,
        kv=kv,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        window=window,
        dtype=dtype,
    )


@kernel.command(name="experts")
def experts(
    *,
    tokens: Annotated[int, whole("tokens of all ranks together")],
    hidden: Annotated[int, whole("width of the model")],
    inter: Annotated[int, whole("width of one expert on this rank")],
    experts: Annotated[int, whole("experts of the layer")],
    top_k: Annotated[int, whole("experts that a token takes")],
    where: Where,
    ranks: Annotated[int, whole("ranks that share the experts out")] = 1,
    routing: Annotated[str, Parameter(help=f"one of {', '.join(more.ROUTINGS)}")] = "random",
    dtype: Dtype = "bf16",
    output: Output = Output(),  # noqa: B008
) -> None:
    """Routed experts of the busiest rank: grouped products, experts that are hit, imbalance."""
    _ask(
        "experts",
        where,
        output,
        tokens=tokens,
        hidden=hidden,
        inter=inter,
        experts=experts,
        top_k=top_k,
        ranks=ranks,
        routing=routing,
        dtype=dtype,
    )


@kernel.command(name="norm")
def norm(
    *,
    m: Annotated[int, whole("rows: tokens")],
    n: Annotated[int, whole("values of a row")],
    where: Where,
    output: Output = Output(),  # noqa: B008
) -> None:
    """A layer norm or RMS norm over rows of 16-bit values."""
    _ask("norm", where, output, m=m, n=n)


@kernel.command(name="softmax")
def softmax(
    *,
    m: Annotated[int, whole("rows")],
    n: Annotated[int, whole("values of a row")],
    where: Where,
    output: Output = Output(),  # noqa: B008
) -> None:
    """A softmax over rows of 16-bit values, as a kernel of its own."""
    _ask("softmax", where, output, m=m, n=n)


@kernel.command(name="elementwise")
def elementwise(
    *,
    m: Annotated[int, whole("rows: tokens")],
    n: Annotated[int, whole("values of a row")],
    where: Where,
    kind: Annotated[str, Parameter(help=f"one of {', '.join(more.ELEMENTWISE)}")] = "add",
    output: Output = Output(),  # noqa: B008
) -> None:
    """Element-wise work: add, a gated or plain activation, conversion to fp8."""
    _ask("elementwise", where, output, m=m, n=n, kind=kind)


@kernel.command(name="copy")
def copy(
    *,
    bytes_: Annotated[str, Parameter(name="--bytes", help="how much, as in 1GB")],
    where: Where,
    way: Annotated[str, Parameter(help=f"one of {', '.join(more.WAYS)}")] = "to-chip",
    output: Output = Output(),  # noqa: B008
) -> None:
    """A copy between host and chip over PCIe or NVLink-C2C, or inside the chip's memory."""
    _ask("copy", where, output, bytes_=bytes_, way=way)


@kernel.command(name="collective")
def collective(
    kind: Annotated[str, Parameter(help=f"one of {', '.join(api.COLLECTIVES)}")],
    *,
    bytes_: Annotated[str, Parameter(name="--bytes", help="buffer of each rank, as in 64MB")],
    ranks: Annotated[int, whole("devices that take part")],
    where: Where,
    apart: Annotated[int, whole("chips from one rank to the next, whose groups do the same at once")] = 1,
    oversubscription: Annotated[float, Parameter(help="links down over links up of leaf switches")] = 1.0,
    output: Output = Output(),  # noqa: B008
) -> None:
    """One exchange between the devices of a scale-up domain, or across domains over the network."""
    sizes = {"kind": kind, "bytes_": bytes_, "ranks": ranks}
    _ask("collective", where, output, **sizes, apart=apart, oversubscription=oversubscription)


@kernel.command(name="amdahl")
def amdahl(
    *,
    serial: Annotated[str, Parameter(help="part of the work that is serial, as in 0.01 or 1%")],
    where: Where,
    work: Annotated[str, Parameter(help="operations in all, as in 1e12")] = "1e12",
    cpu: Annotated[str, Parameter(help="the CPU to compare with")] = "epyc-9654",
    output: Output = Output(),  # noqa: B008
) -> None:
    """A CPU against chips: from which serial part on the CPU is faster (Amdahl's law)."""
    chips, changes = _where(where)
    text = serial.strip()
    percent = text.endswith("%")
    fraction = parse_quantity(text.removesuffix("%"), "", "--serial") * (0.01 if percent else 1.0)
    report = compare_by_amdahl(
        chips, fraction, parse_quantity(work, "", "--work"), cpu_name=cpu, changes=changes
    )
    render((amdahl_view(report),), report, output.format, sys.stdout)


def _where(where: Where) -> tuple[tuple[str, ...], dict[str, Any]]:
    chips = split(where.chip)
    if not chips:
        raise UsageError("--chip: no chip", "name one or several, separated by commas")
    return chips, pairs(where.set_, "--set")


def _ask(op: Op, where: Where, output: Output, **dims: Any) -> None:
    """One operator with its sizes, answered and printed."""
    report = KernelRequest(op=op, chips=where.chip, set_=where.set_, **dims).run()
    render(kernel_view(report), report, output.format, sys.stdout)
