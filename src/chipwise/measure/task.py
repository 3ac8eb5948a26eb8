"""What is timed: one operator at one shape, with the FLOPs and bytes that every cost model reads.

A task is the same question to every backend. Its `op` is what `cost.price` prices; how a backend runs it is the
backend's own affair.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from chipwise.units import Real
from chipwise.values import dataclass
from chipwise.workload.formats import FORMATS
from chipwise.workload.op import Op, attention, convolution, gemm, pointwise

TaskKind = Literal["gemm", "attention", "conv", "rows", "copy"]
SIZES: Mapping[TaskKind, tuple[str, ...]] = {
    "gemm": ("m", "n", "k"),
    "attention": ("batch", "q", "kv", "heads", "head_dim", "causal"),
    "conv": ("images", "channels", "filters", "size", "kernel", "stride", "groups"),
    "rows": ("rows", "width", "work"),
    "copy": ("elements", "hot"),
}
"""What the sizes of a kind are called, in their order."""

WORKS = ("add", "norm", "gelu", "pool", "batchnorm")
"""Work on rows, by number."""
IMAGES = 8
"""Of a normalization over a batch, where it has so many rows."""


@dataclass(frozen=True, slots=True)
class Task:
    """One operator of `dtype` at some `sizes`, named by `SIZES`.

    | kind | what runs |
    |---|---|
    | gemm | C[m, n] = A[m, k] W, as a linear layer |
    | attention | `causal` 0 or 1; fused where the backend has a fused kernel |
    | conv | square, padded by kernel // 2 |
    | rows | `work` of `WORKS`; of pool (the largest of 3 x 3) and batchnorm (in training, over `images` of a batch)
    every row is a channel of a square image |
    | copy | read once, written once; `hot` 1: the same buffers again and again, which stay in a cache that holds them |
    """

    kind: TaskKind
    dtype: str
    sizes: tuple[int, ...]

    @property
    def dims(self) -> dict[str, int]:
        """Sizes by name."""
        return dict(zip(SIZES[self.kind], self.sizes, strict=True))

    @property
    def name(self) -> str:
        """Kind, type and sizes in one word, the same for the same task."""
        return "-".join((self.kind, self.dtype, *(f"{k}{v}" for k, v in self.dims.items())))

    @property
    def images(self) -> int:
        """Images of a batch among the rows of a batchnorm; the others are channels."""
        return min(IMAGES, self.dims["rows"])

    @property
    def hot(self) -> bool:
        """Whether its buffers do not take turns."""
        return self.kind == "copy" and bool(self.sizes[1])

    @property
    def op(self) -> Op:
        """The operator with its FLOPs and compulsory bytes, in the words of the workload."""
        d, form = self.dims, FORMATS[self.dtype]
        if self.kind == "gemm":
            return gemm(d["m"], d["n"], d["k"], form, form)
        if self.kind == "conv":
            out = (d["size"] + 2 * (d["kernel"] // 2) - d["kernel"]) // d["stride"] + 1
            return convolution(
                d["images"],
                d["channels"],
                d["filters"],
                d["size"] ** 2,
                out**2,
                d["kernel"] ** 2,
                form,
                form,
                groups=d["groups"],
            )
        if self.kind == "attention":
            heads, causal = d["heads"], bool(d["causal"])
            op = attention(d["batch"], d["q"], d["kv"], heads, heads, d["head_dim"], form, causal=causal)
            return replace(op, compute=self.dtype, activation_bytes=op.activation_bytes * form.bits / 16.0)
        if self.kind == "rows":
            work, elements = WORKS[d["work"]], d["rows"] * d["width"]
            # add reads x once for x + x; pool writes the places of the largest too, in 64 bits
            passes = {"pool": 1.75, "batchnorm": 3.0}.get(work, 2.0) * form.bits / 16.0
            return pointwise(elements, passes, name=work, flops_each=1.0)
        return pointwise(d["elements"], 2.0 * form.bits / 16.0, name="copy", flops_each=1.0)

    @property
    def bytes(self) -> float:
        """Compulsory traffic: each operand once."""
        found: Real = self.op.bytes
        return float(found)


def designed(kind: TaskKind, dtype: str, count: int, largest_flops: float, start: int = 1) -> Iterator[Task]:
    """`count` tasks of a kind spread evenly over the logarithms of their sizes (a Halton sequence from `start` on),
    none above `largest_flops` and 256 MB; a third of products and attentions are those of decoding, with one row.

    Copies go through 1 Ki to 16 Mi elements, hot and not; work on rows through 1 Ki to 16 Mi, each kind in turn.
    """
    if kind == "copy":
        for i in range(count):
            power = 10 + round(14 * (i // 2) / max((count - 1) // 2, 1))
            yield Task(kind, dtype, (2**power, i % 2))
        return
    if kind == "rows":
        last = max((count - 1) // len(WORKS), 1)
        for i in range(count):
            step = i // len(WORKS)
            power = 10 + round(14 * step / last)
            side = 2 ** min((power - 3) // 2, 4 + step % 3)  # images of 8 to 64 each way, eight of them at least
            yield Task(kind, dtype, (2**power // side**2, side**2, i % len(WORKS)))
        return
    found, i = 0, start
    while found < count:
        task = _drawn(kind, dtype, i)
        i += 1
        if float(task.op.flops) <= largest_flops and task.bytes <= 256e6:
            found += 1
            yield task


def _drawn(kind: TaskKind, dtype: str, i: int) -> Task:
    u = [_radical(i, base) for base in (2, 3, 5, 7, 11, 13)]

    def span(low: float, high: float, x: float, step: int = 1) -> int:
        return max(round(float(low * (high / low) ** x) / step), 1) * step

    def one(values: Sequence[int], x: float) -> int:
        return values[min(int(x * len(values)), len(values) - 1)]

    if kind == "gemm":
        rows = 1 if i % 4 == 0 else span(2, 4096, u[0])
        return Task(kind, dtype, (rows, span(64, 8192, u[1], 32), span(64, 8192, u[2], 32)))
    if kind == "attention":
        heads, head_dim = one((4, 8, 12, 16, 32), u[2]), one((64, 128), u[3])
        if i % 3 == 0:
            return Task(kind, dtype, (span(1, 16, u[0]), 1, span(64, 8192, u[1]), heads, head_dim, 0))
        length = span(16, 4096, u[1])
        return Task(kind, dtype, (span(1, 8, u[0]), length, length, heads, head_dim, one((0, 1), u[4])))
    kernel, size = one((1, 3, 3, 5, 7, 1), u[0]), one((7, 14, 28, 56, 112, 224), u[1])
    stride = one((1, 1, 2), u[4])
    if i % 6 == 0:
        wide = span(16, 1024, u[2], 16)
        return Task(kind, dtype, (span(1, 8, u[5]), wide, wide, size, one((3, 5), u[0]), stride, wide))
    channels, filters = span(16, 2048, u[2], 16), span(16, 2048, u[3], 16)
    if i % 12 == 1:
        channels = 3
    return Task(kind, dtype, (span(1, 8, u[5]), channels, filters, size, kernel, stride, 1))


def _radical(i: int, base: int) -> float:
    """The i-th number of van der Corput's sequence: the digits of i in a base, behind the point and turned around."""
    found, scale = 0.0, 1.0
    while i:
        scale /= base
        i, digit = divmod(i, base)
        found += scale * digit
    return found
