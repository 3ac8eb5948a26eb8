"""The operators of a training step and what they take alone: every one through `cost.price`, as in serving.

x tokens per rank and micro-batch, h hidden, t tensor-parallel degree. A product forward is [x, k] x [k, n]; backward
it is two (`workload.backward`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.cost.device import Device
from chipwise.cost.price import CostParameters, price
from chipwise.cost.systolic.family import SystolicModel
from chipwise.numeric import take
from chipwise.predict.training.saved import touched_bytes
from chipwise.predict.training.values import Recipe, TrainSpread, Transformer
from chipwise.units import Array, Real
from chipwise.values import dataclass
from chipwise.workload.backward import AGAIN, GRADIENTS, gradients, orthogonal
from chipwise.workload.formats import FORMATS
from chipwise.workload.op import Op, attention, gemm, pointwise, stacked

BLOCK_KERNELS = 10.0
"""count: element-wise kernels of a layer that are started one by one. Chosen: two norms, two residuals, rotation,
activation, product, dropout and casts; moves eager software on small shapes."""
LARGE = 8192.0
"""rows, columns, depth: of a large product. Chosen: large enough that a chip reaches its best rate; moves the rate
that is taken of a large product."""
DEGREES = ("tp", "cp", "micro_batch", "ep")  # what the size of operators depends on
MISALIGNED = 11.0
"""ratio: of unfused cores whose head size is no multiple of 8 and which fall off the matrix unit. Chosen: no source
is known; the vector lanes are about so much slower than the matrix unit; moves eager software on such heads in
proportion."""


@dataclass(frozen=True)
class TrainKernels:
    """Where the operators of a layout's device run: on `parts` devices of a package (a rank that is a package of two
    has the rows of each halved; of two ranks on a device: 0.5), by these numbers. `narrow` is the format of products
    with weights, `wide` that of the head; the attention core runs in 16 bit. `known` are operators that were priced
    there: jobs on other counts, with another batch or that keep memory otherwise, have the same; `framed` are the last
    layouts that were searched with what their parts take, which jobs share that keep memory otherwise."""

    device: Device
    numbers: CostParameters
    narrow: str = "bf16"
    wide: str = "bf16"
    parts: float = 1.0
    known: dict[Hashable, TrainWork] = field(default_factory=dict, init=False, compare=False, repr=False)
    framed: dict[Hashable, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    def faster(self, compute: float = 1.0, memory: float = 1.0) -> TrainKernels:
        """The same on devices with a faster clock (matrix units, what feeds them, and the power that they draw) and
        memory, by these factors."""
        d = self.device
        return replace(
            self,
            device=replace(
                d,
                matrix={name: compute * rate for name, rate in d.matrix.items()},
                vector_flops_per_s=compute * d.vector_flops_per_s,
                clock_hz=compute * d.clock_hz,
                power_w=compute * d.power_w,
                memory_bytes_per_s=memory * d.memory_bytes_per_s,
            ),
        )

    @property
    def product_flops_per_s(self) -> float:
        """What a rank sustains of a large product with weights, alone."""
        form = FORMATS[self.narrow]
        op = gemm(LARGE / self.parts, LARGE, LARGE, form, form)
        return self.parts * float(op.flops) / float(np.asarray(price(op, self.device, self.numbers).total_s))


@dataclass(frozen=True, slots=True)
class TrainWork:
    """Seconds that operators of one mean layer and of the head take alone, per rank and micro-batch; numbers or
    arrays.

    | field | meaning |
    |---|---|
    | forward_s, input_s, weight_s | products with dense and shared weights: forward, gradients of inputs, of weights |
    | routed_s, routed_back_s | grouped products of routed experts: forward; both gradients |
    | core_s, core_back_s | attention core |
    | pass_s | one pass of element-wise kernels |
    | head_s, loss_s | the head's three products; one pass over logits and what they are made from |
    | last_s | the last product of a dense layer, forward |
    | update_s | the optimiser's products for all matrices of a layer, uncut, once a step |
    | narrow_in_s, narrow_back_s | kernels that write operands in the narrow type: inputs and weights; gradients |
    """

    forward_s: Real
    input_s: Real
    weight_s: Real
    routed_s: Real
    routed_back_s: Real
    core_s: Real
    core_back_s: Real
    pass_s: Real
    head_s: Real
    loss_s: Real
    last_s: Real = 0.0
    update_s: Real = 0.0
    narrow_in_s: Real = 0.0
    narrow_back_s: Real = 0.0


def work_of(t: Transformer, s: TrainSpread, recipe: Recipe, k: TrainKernels) -> TrainWork:
    """The operators of layouts `s` of one network, priced; degrees broadcast, everything else is one number. Frozen
    weights (adapters) need no gradient."""
    x, h, tp = s.tokens / k.parts, t.hidden, s.tp
    back = 0.0 if float(np.max(np.asarray(s.adapter))) else 1.0
    shapes: list[tuple[Real, Real, Real]] = [(1.0, t.mixer_in / tp, h), (1.0, h, t.mixer_out / tp)]
    last: Real = 0.0
    if float(t.dense_share) and float(t.ffn):
        down = (t.dense_share, h, t.ffn / tp)
        shapes += [(t.dense_share, t.gates * t.ffn / tp, h), down]
        last = _products(x, [down], k.narrow, k)[0]
    if float(t.moe_share) and float(t.shared_ffn):
        shapes += [(t.moe_share, t.expert_gates * t.shared_ffn / tp, h), (t.moe_share, h, t.shared_ffn / tp)]
    forward, input_, weight = _products(x, shapes, k.narrow, k)
    core, core_back = _core(t, s, recipe, k)
    routed, routed_back = _routed(t, s, k, back) if float(t.moe_share) else (0.0, 0.0)
    head = sum(_products(x, [(1.0, t.vocab / tp, h)], k.wide, k))
    passed = pass_s(touched_bytes(t, s, recipe), k) + (BLOCK_KERNELS - 1.0) * pass_s(0.0, k)
    loss = pass_s((8.0 * t.vocab / tp + 6.0 * h) * s.tokens, k)
    narrow = _narrowed(s.tokens, shapes, recipe, k) if FORMATS[k.narrow].bits < FORMATS[k.wide].bits else (0.0, 0.0)
    return TrainWork(
        forward,
        input_,
        back * weight,
        routed,
        routed_back,
        core,
        core_back,
        passed,
        head,
        loss,
        last,
        orthogonal_s(t, recipe, k),
        *narrow,
    )


def orthogonal_s(t: Transformer, recipe: Recipe, k: TrainKernels) -> Real:
    """Seconds in which one device makes the matrices of a mean layer orthogonal, in 16 bit."""
    if not np.any(recipe.products):
        return 0.0
    each, routed = float(np.max(recipe.products)), np.minimum(t.expert_width, t.expert_ffn)
    parts = [(t.layer_params, t.hidden), *([(t.expert_params, routed)] if float(t.moe_share) else [])]
    ops = (orthogonal(params / k.parts, side, each) for params, side in parts)
    return sum(np.asarray(price(op, k.device, k.numbers).total_s) for op in ops)


def _narrowed(x: Real, shapes: Sequence[tuple[Real, Real, Real]], recipe: Recipe, k: TrainKernels) -> tuple[Real, Real]:
    """Seconds in which operands of products are written in the narrow type by kernels of their own, none where they
    are fused into others: inputs and weights forward, gradients of outputs backward. Each is read in 16 bit and
    written, once along the rows and once along the columns, as the two products that take it need its scales.

    Source: github pytorch/ao, torchao/prototype/mx_formats and torchao/float8 (casts along dim0 and dim1).
    """
    each = 2.0 * (2.0 + FORMATS[k.narrow].bits / 8.0) * recipe.quantises
    inputs = sum(share * (x * depth + columns * depth) for share, columns, depth in shapes)
    gradients = sum(share * x * columns for share, columns, _ in shapes)
    return pass_s(each * inputs, k), pass_s(each * gradients, k)


def pass_s(moved_bytes: Real, k: TrainKernels) -> Real:
    """Seconds of an element-wise kernel that reads or writes so many bytes of a rank."""
    return price(pointwise(moved_bytes / 2.0 / k.parts, 1.0), k.device, k.numbers).total_s


def _products(
    x: Real, shapes: Sequence[tuple[Real, Real, Real]], name: str, k: TrainKernels
) -> tuple[Real, Real, Real]:
    """Seconds of (share of layers, columns, depth) products of x rows: forward, gradients of inputs, of weights.

    Products are stacked along a first axis, as are those of the three that read and write one type: what a price costs
    is the call. What writes operands in a narrow type is fused into the kernels that make them.
    """
    shares, n, depth = ([np.asarray(part, dtype=float) for part in column] for column in zip(*shapes, strict=True))
    columns = np.broadcast_arrays(np.asarray(x, dtype=float), *n, *depth, *shares)
    rows, rest = columns[0], columns[1:]
    each = len(shapes)
    wide, deep = np.stack(rest[:each]), np.stack(rest[each : 2 * each])
    share = np.stack(rest[2 * each :])
    many = np.broadcast_to(rows, wide.shape)
    form = FORMATS[name]
    forward = gemm(many, wide, deep, form, form)
    back = [op for _, op in gradients(forward)]
    apart = ((forward, *back),) if back[-1].weight == form.name else ((forward, back[0]), back[1:])
    took = (np.asarray(price(stacked(ops), k.device, k.numbers).total_s) * share for ops in apart)
    first, inputs, weights = (seconds.sum(axis=0) for each_op in took for seconds in each_op)
    return first, inputs, weights


def _core(t: Transformer, s: TrainSpread, recipe: Recipe, k: TrainKernels) -> tuple[Real, Real]:
    """Seconds of the attention core, forward and backward, of a mean layer.

    Fused: prompts of `micro_batch` sequences, or of the documents in them; backward five products of that size, where
    forward has two. Unfused: products of all pairs, batched over heads, and four of that size backward.
    """
    if not float(t.core_share):
        return 0.0, 0.0
    batch, heads = s.micro_batch / k.parts, t.heads / s.tp
    q = s.seq / s.cp
    d = float(t.core_width) / float(t.heads)
    if float(np.max(np.asarray(recipe.flash))):
        if isinstance(k.numbers, SystolicModel):
            return _on_arrays(t, s, k, batch, q, heads, d)
        groups = np.maximum(t.kv_width / (2.0 * d) / s.tp, 1.0)
        # a rank that has a c-th of a sequence sees the keys of all: as many pairs as a c-th of the sequences has
        found: Real = 0.0
        for window, share in ((0.0, 1.0 - float(t.window_share)), (float(t.window), float(t.window_share))):
            if share:
                op = attention(
                    batch * (s.seq / s.seen) / s.cp, s.seen, s.seen, heads, np.minimum(groups, heads), d,
                    window=window, causal=bool(float(t.causal)),
                )  # fmt: skip
                found = found + share * price(op, k.device, k.numbers).total_s
        found = t.core_share * found
        return found, AGAIN["attention"] * found
    form = FORMATS[k.wide]
    pairs = ((q, q), (s.seq, d), (d, s.seq))  # rows, columns and depth of scores and of weighted sums
    m, n, inner = (np.stack(np.broadcast_arrays(*pair, q)[:2]) for pair in pairs)
    both = gemm(m, n, inner, form, form, batch=batch * heads)
    odd = t.head_dim % 8 != 0 and t.head_dim % 1 == 0
    found = t.core_share * np.asarray(price(both, k.device, k.numbers).total_s).sum(axis=0)
    found = found * (MISALIGNED if odd else 1.0)
    return found, GRADIENTS * found


def _on_arrays(
    t: Transformer, s: TrainSpread, k: TrainKernels, batch: Real, q: Real, heads: Real, width: float
) -> tuple[Real, Real]:
    """Seconds of a fused core on matrix arrays, forward and backward: its two products, which read queries, keys and
    values and write outputs alone. Measured attention of such chips is that of serving, over pages of a cache."""
    seen = (1.0 - t.window_share) * s.seen + t.window_share * np.minimum(2.0 * t.window, s.seen)
    seen = seen * (1.0 - 0.5 * t.causal)
    form = FORMATS["bf16"]
    found: Real = 0.0
    for n, depth in ((seen, width), (width, seen)):
        op = gemm(q, n, depth, form, form, batch=batch * heads)
        ends = replace(op, weight_bytes=0.0, activation_bytes=4.0 * batch * heads * q * width)
        found = found + price(ends, k.device, k.numbers).total_s
    found = t.core_share * found
    return found, AGAIN["attention"] * found


def _routed(t: Transformer, s: TrainSpread, k: TrainKernels, back: float) -> tuple[Real, Real]:
    """Seconds of the routed experts of a mean layer: forward; gradients of inputs and weights, grouped products of the
    same size.

    A rank holds E / e experts. Of the tokens of e ranks those enter that chose any of them; each enters once, with as
    many rows as it has experts there. One expert alone is no group: its products are those of any feed-forward.
    """
    form = FORMATS[k.narrow]
    local = np.maximum(t.experts / s.ep, 1.0)
    tokens = s.tokens / s.tp / k.parts * s.ep
    pairs = tokens * t.top_k * local / t.experts
    entering = tokens * (1.0 - (1.0 - local / t.experts) ** t.top_k)
    matrices = t.expert_gates + 1.0
    each = matrices * t.expert_width * t.expert_ffn
    grouped = Op(
        kind="experts",
        name="experts",
        compute=form.compute,
        weight=form.name,
        flops=2.0 * pairs * each,
        weight_bytes=local * each * form.bits / 8.0,
        activation_bytes=pairs * 2.0 * (2.0 * t.expert_width + matrices * t.expert_ffn),
        launches=4.0,
        dims={
            "tokens": entering,
            "experts": local,
            "local_experts": local,
            "top_k": pairs / entering,
            "hidden": t.expert_width,
            "inner": t.expert_ffn,
            "matrices": matrices,
        },
    )
    forward = price(grouped, k.device, k.numbers).total_s
    if np.any(local <= 1.0):
        up = gemm(pairs, t.expert_gates * t.expert_ffn, t.expert_width, form, form)
        down = gemm(pairs, t.expert_width, t.expert_ffn, form, form)
        alone = price(up, k.device, k.numbers).total_s + price(down, k.device, k.numbers).total_s
        forward = np.where(local <= 1.0, alone, forward)
    return t.moe_share * forward, t.moe_share * (1.0 + back) * forward


@dataclass(frozen=True)
class OperatorTable:
    """What every (tp, cp, micro-batch, ep) that some layouts have takes: each is priced once, however many layouts
    share it. `parts` are values whose fields are columns, and `degrees` the columns that they are of; `places` leads
    from a degree to its place on its axis."""

    degrees: Mapping[str, Array]
    parts: tuple[Any, ...]
    places: tuple[NDArray[np.intp], ...]
    shape: tuple[int, ...]

    @classmethod
    def of(cls, s: TrainSpread, priced: Callable[[TrainSpread], tuple[Any, ...]]) -> OperatorTable:
        """The table of all layouts of `s`, columns or single numbers, of parts that nothing but those degrees moves."""
        values, places = [], []
        for name in DEGREES:
            column = np.asarray(getattr(s, name)).astype(np.intp)
            known = np.zeros(int(column.max(initial=1)) + 1, dtype=bool)
            known[column] = True
            values.append(np.flatnonzero(known).astype(float))
            places.append(np.cumsum(known) - 1)
        grid = dict(zip(DEGREES, np.meshgrid(*values, indexing="ij", sparse=True), strict=True))
        shape = tuple(len(v) for v in values)
        parts = (
            replace(p, **{f.name: np.broadcast_to(getattr(p, f.name), shape).ravel() for f in fields(p)})
            for p in priced(replace(s, **grid))
        )
        degrees = {name: np.broadcast_to(column, shape).ravel() for name, column in grid.items()}
        return cls(degrees, tuple(parts), tuple(places), shape)

    def index(self, s: TrainSpread) -> Array:
        """The places of layouts in the table."""
        index: Array = np.zeros((), dtype=np.intp)
        for name, places, size in zip(DEGREES, self.places, self.shape, strict=True):
            index = index * size + places[np.asarray(getattr(s, name)).astype(np.intp)]
        return index

    def at(self, s: TrainSpread) -> tuple[Any, ...]:
        """The parts of layouts of the table."""
        index = self.index(s)
        return tuple(take(p, index) for p in self.parts)
