"""kernel: what one can ask of one operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from chipwise.api.requests.field import MISSING, Asked, ask, pairs, split
from chipwise.catalog.override import told
from chipwise.errors import UnknownNameError, UsageError
from chipwise.report.kernel_records import KernelReport
from chipwise.units import parse_quantity

__all__ = ["KernelRequest", "Op"]

Op = Literal["gemm", "attention", "conv", "experts", "norm", "softmax", "elementwise", "copy", "collective"]

DIMS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "gemm": (("m", "n", "k"), ("batch",)),
    "attention": (("kv", "heads"), ("q", "batch", "kv_heads", "head_dim", "window")),
    "conv": (("size", "channels", "filters"), ("kernel", "stride", "pad", "images")),
    "experts": (("tokens", "hidden", "inter", "experts", "top_k"), ("ranks", "routing")),
    "norm": (("m", "n"), ()),
    "softmax": (("m", "n"), ()),
    "elementwise": (("m", "n"), ("kind",)),
    "copy": (("bytes_",), ("way",)),
    "collective": (("kind", "bytes_", "ranks"), ("apart", "oversubscription")),
}
"""What each operator needs, and what it takes besides."""

TYPED = ("gemm", "attention", "conv", "experts")
"""Operators with a choice of data types."""


@dataclass(frozen=True, kw_only=True)
class KernelRequest(Asked):
    """One operator on one or several chips: mapping, bytes per memory level, roofline, time and what bounds it.

    gemm: m, n, k. attention (causal, over a cache): kv, heads. conv (square): size, channels, filters. experts (of
    the busiest rank): tokens, hidden, inter, experts, top_k. norm, softmax, elementwise (16 bit): m, n. copy: bytes.
    collective: kind, bytes, ranks.
    """

    op: Op = ask("gemm, attention, conv, experts, norm, softmax, elementwise, copy or collective", MISSING)
    chips: str = ask("one or several, separated by commas", MISSING, file=True)
    dtype: str | None = ask("bf16, fp16, fp32, fp8, fp8_block, int8, nvfp4, int4 or mxfp4; default bf16")
    m: int | None = ask("gemm and row by row: rows, that is tokens")
    n: int | None = ask("gemm: output features; row by row: values of a row")
    k: int | None = ask("gemm: input features")
    batch: int | None = ask("gemm: independent products; attention: sequences; default 1")
    kv: int | None = ask("attention: tokens that are visible, the new ones too")
    q: int | None = ask("attention: new tokens of each sequence; 1 decodes, more is a prompt; default 1")
    heads: int | None = ask("attention: heads")
    kv_heads: int | None = ask("attention: heads of keys and values; default: as many as heads")
    head_dim: int | None = ask("attention: width of a head; default 128")
    window: int | None = ask("attention: sliding window in tokens; default none")
    size: int | None = ask("conv: height and width of the image")
    channels: int | None = ask("conv: input channels")
    filters: int | None = ask("conv: output channels")
    kernel: int | None = ask("conv: height and width of a filter; default 3")
    stride: int | None = ask("conv: step of the filter; default 1")
    pad: int | None = ask("conv: rows and columns added on each side; default 1")
    images: int | None = ask("conv: images at once; default 1")
    tokens: int | None = ask("experts: tokens of all ranks together")
    hidden: int | None = ask("experts: width of the model")
    inter: int | None = ask("experts: width of one expert on this rank")
    experts: int | None = ask("experts: experts of the layer")
    top_k: int | None = ask("experts: experts that a token takes")
    routing: str | None = ask("experts: random or the other routings that an error lists; default random")
    kind: str | None = ask(
        "collective: all_reduce, all_gather, reduce_scatter, all_to_all, broadcast or p2p; elementwise: default add"
    )
    bytes_: str | None = ask("collective: buffer of each rank, as in 64MB; copy: how much", name="bytes")
    ranks: int | None = ask("collective: devices that take part; experts: ranks that share them out")
    apart: int | None = ask(
        "collective: chips from one rank to the next, whose groups share links; default 1"
    )
    oversubscription: float | None = ask("collective: links down over links up of leaf switches; default 1")
    way: str | None = ask("copy: default to-chip")
    set_: str | None = ask("figures of the chips, as in hbm=4TB/s,bf16=1.2PFLOPS", name="set")

    def run(self) -> KernelReport:
        """The operator on each chip.

        Raises `UsageError` for sizes that are missing, strange or none, `UnknownNameError`
        for an unknown chip or type, `InfeasibleError` where no chip can be priced.
        """
        from chipwise.api import kernel as api
        from chipwise.api import kernel_more as more

        chips, given = split(self.chips), self._dims()
        changes = pairs(self.set_, "--set")
        if "bytes_" in given:
            given["num_bytes"] = parse_quantity(given.pop("bytes_"), "B", "--bytes", low=1.0, high=1e15)
        if self.dtype is not None:
            given["dtype"] = self.dtype
        if self.op == "attention":
            given.setdefault("kv_heads", given["heads"])
        if self.op in ("norm", "softmax", "elementwise"):
            kind = given.pop("kind", "add") if self.op == "elementwise" else self.op
            if self.op == "elementwise" and kind not in more.ELEMENTWISE:
                known = more.ELEMENTWISE
                raise UnknownNameError("kind", kind, known, f"one of {', '.join(known)}")
            report = more.rows(chips, kind, **given, changes=changes)
            return replace(report, assumptions=(*report.assumptions, *told(changes)))
        answers: dict[str, Callable[..., KernelReport]] = {
            "gemm": api.gemm,
            "conv": api.conv,
            "attention": api.attention,
            "collective": api.collective,
            "experts": more.experts,
            "copy": more.copy,
        }
        report = answers[self.op](chips, **given, changes=changes)
        return replace(report, assumptions=(*report.assumptions, *told(changes)))

    def _dims(self) -> dict[str, Any]:
        """The sizes that were given. Raises `UsageError` for one that the operator lacks or does not have."""
        needed, besides = DIMS[self.op]
        every = {name for parts in DIMS.values() for part in parts for name in part}
        given = {name: v for name in sorted(every) if (v := getattr(self, name)) is not None}
        missing = [name for name in needed if name not in given]
        if missing:
            names = ", ".join(n.rstrip("_") for n in missing)
            raise UsageError(f"{self.op} needs {names}", f"it has {_listed((*needed, *besides))}")
        strange = [name for name in given if name not in (*needed, *besides)]
        if strange:
            raise UsageError(
                f"{self.op} has no {strange[0].rstrip('_')}", f"it has {_listed((*needed, *besides))}"
            )
        if self.dtype is not None and self.op not in TYPED:
            raise UsageError(f"{self.op} has no dtype", f"{', '.join(TYPED)} have one")
        return given


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(name.rstrip("_") for name in names)
