"""Layers of any network as numbers: what one call multiplies and moves, what it stores, what it must keep.

A `LayerBlock` is a value: blocks add up in order, a number times a block is that many of them with weights of their
own. A `Layers` makes blocks for a batch in a precision. Sizes are given per sample: tokens of a sequence or positions
of a grid (height x width, or frames x height x width); the batch multiplies inside.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field, replace

from chipwise.errors import check_known
from chipwise.values import dataclass
from chipwise.workload.formats import FORMATS, Format
from chipwise.workload.op import Op, attention, convolution, gemm, lookup, pointwise
from chipwise.workload.program import Stage

Grid = tuple[int, ...]
"""Positions along each axis: (height, width), (frames, height, width) or (length,)."""


@dataclass(frozen=True)
class LayerPrecision:
    """How a network is stored and multiplied.

    `stored`: its parameters in memory. `weight` and `activation`: the two sides of matrix products; attention,
    convolutions and all that is not a product run in `plain`. Under autocast ("amp-...") parameters stay in fp32 and
    products read 16-bit copies.
    """

    name: str
    stored: Format
    weight: Format
    activation: Format
    plain: Format

    @property
    def bytes(self) -> float:
        """Bytes of one activation."""
        return self.plain.bits / 8.0

    @property
    def softmax_passes(self) -> float:
        """16-bit reads and writes of a softmax of scores that lie in memory, for each of them: it reads and writes
        them. Autocast has it read 16 bit and write fp32, which is cast down for the product behind it.

        Source: PyTorch documentation of torch.amp, operators that autocast to float32; github pytorch/pytorch,
        autocast_mode.h: softmax is told its type of output (fp32_set_opt_dtype), so that nothing is cast up before."""
        cast = self.stored.bits >= 32 and self.plain.bits < 32
        return (2.0 + 4.0 + 4.0 + 2.0) / 2.0 if cast else self.bytes


def _precisions() -> dict[str, LayerPrecision]:
    plain = {name: FORMATS[name] for name in ("fp32", "bf16", "fp16")}
    plain["tf32"] = Format("tf32", 32, "tf32")
    found = {name: LayerPrecision(name, f, f, f, f) for name, f in plain.items()}
    for name in ("bf16", "fp16"):
        half = FORMATS[name]
        found[f"amp-{name}"] = LayerPrecision(f"amp-{name}", FORMATS["fp32"], half, half, half)
    half = FORMATS["bf16"]
    for name in ("fp8", "int8", "mxfp8", "mxfp4", "nvfp4"):
        found[name] = LayerPrecision(name, FORMATS[name], FORMATS[name], FORMATS[name], half)
    for name in ("fp8", "int8", "int4", "nf4"):
        full = f"{name}-weight-only"
        found[full] = LayerPrecision(full, FORMATS[name], FORMATS[name], half, half)
    for name in ("fp8", "int8"):
        narrow = FORMATS[name]
        found[f"{name}-static"] = LayerPrecision(f"{name}-static", narrow, narrow, narrow, narrow)
    return found


PRECISIONS: Mapping[str, LayerPrecision] = _precisions()
"""By name. "fp8", "int8" and the like quantise both sides of matrix products, "-weight-only" the weights; "-static" all
of a network, convolutions and what passes between layers too, as engines do whose scales were found beforehand."""


def get_precision(name: str) -> LayerPrecision:
    """The precision of that name. Raises `UnknownNameError`."""
    check_known("precision", (name,), PRECISIONS)
    return PRECISIONS[name]


@dataclass(frozen=True)
class LayerBlock:
    """Operators in order with what they store and need.

    | field | meaning |
    |---|---|
    | ops | (repeats, operator) for the whole batch |
    | parameters | trained entries, each once |
    | weight_bytes | their stored bytes |
    | peak | most bytes of activations alive at a time: what an operator reads and writes, and what is held beside it |
    | kept | bytes of activations that a backward pass needs |
    | entry | bytes of the stream that layers read and add to, 0 where there is none |
    | spared | what of `kept` is not needed where repeated layers keep their entry alone and are computed again |
    | again_kept | what the largest of those layers needs while it is computed again |
    """

    ops: tuple[tuple[float, Op], ...] = ()
    parameters: int = 0
    weight_bytes: float = 0.0
    peak: float = 0.0
    kept: float = 0.0
    entry: float = 0.0
    spared: float = 0.0
    again_kept: float = 0.0

    def __add__(self, other: LayerBlock) -> LayerBlock:
        return join(self, other)

    def __rmul__(self, count: int) -> LayerBlock:
        """`count` such blocks, one after the other, each with weights of its own."""
        spared = count * (self.kept - self.entry) if self.entry else count * self.spared
        return replace(
            self.again(count),
            parameters=count * self.parameters,
            weight_bytes=count * self.weight_bytes,
            spared=spared,
            again_kept=self.kept if self.entry else self.again_kept,
        )

    def again(self, count: float) -> LayerBlock:
        """The same weights applied `count` times, one after the other."""
        ops = tuple((count * n, op) for n, op in self.ops) if count else ()
        peak, kept = self.peak if count else 0.0, count * self.kept
        return replace(self, ops=ops, peak=peak, kept=kept, spared=count * self.spared)

    def beside(self, held: float) -> LayerBlock:
        """The same while `held` bytes of other activations are alive."""
        return replace(self, peak=self.peak + held, entry=max(self.entry, held)) if self.ops else self

    def branch(self, shared: float) -> LayerBlock:
        """The same beside another block that keeps the same input of `shared` bytes for the backward pass."""
        return replace(self, kept=self.kept - shared) if self.ops else self

    def frozen(self) -> LayerBlock:
        """The same without a backward pass: weights before which nothing is trained."""
        ops = tuple((n, replace(op, dims={**op.dims, "frozen": 1.0})) for n, op in self.ops)
        return replace(self, ops=ops, kept=0.0, spared=0.0, again_kept=0.0)

    def stage(self, name: str, calls: float = 1.0) -> Stage:
        """As a part that a request calls `calls` times; equal operators are joined where they first stand."""
        joined: dict[tuple[object, ...], tuple[float, Op]] = {}
        for n, op in self.ops:
            key = (op.kind, op.name, op.compute, op.weight, op.flops, op.bytes, op.launches, *sorted(op.dims.items()))
            joined[key] = (joined[key][0] + n if key in joined else n, op)
        sizes = self.parameters, self.weight_bytes, self.peak
        again = self.kept - self.spared + self.again_kept
        return Stage(name, tuple(joined.values()), calls, *sizes, kept_bytes=self.kept, again_bytes=again)


def join(*blocks: LayerBlock) -> LayerBlock:
    """Blocks one after the other."""
    return LayerBlock(
        tuple(op for block in blocks for op in block.ops),
        sum(block.parameters for block in blocks),
        sum(block.weight_bytes for block in blocks),
        max((block.peak for block in blocks), default=0.0),
        sum(block.kept for block in blocks),
        max((block.entry for block in blocks), default=0.0),
        sum(block.spared for block in blocks),
        max((block.again_kept for block in blocks), default=0.0),
    )


def size_of(grid: Grid) -> int:
    """Positions of a grid."""
    return math.prod(grid)


def shrunk(grid: Grid, stride: int | Grid) -> Grid:
    """What a convolution or pool with that stride leaves of a grid that is padded to whole strides."""
    strides = (stride,) * len(grid) if isinstance(stride, int) else stride
    return tuple(-(-side // step) for side, step in zip(grid, strides, strict=True))


@dataclass(frozen=True)
class Layers:
    """Makes blocks for `batch` samples.

    `scores`: attention writes its scores out ("plain") instead of fusing them. `training`: batch norms gather
    statistics and are not folded into the product before. Pointwise operators that a compiler folds into the product
    before them carry `dims["epilogue"] = 1`: biases never appear, activations, residuals and folded batch norms do.
    """

    batch: float = 1.0
    precision: LayerPrecision = field(default_factory=lambda: PRECISIONS["bf16"])
    scores: bool = False
    training: bool = False

    def bytes(self, positions: float, width: float) -> float:
        """Bytes of one activation tensor of the whole batch."""
        return self.batch * positions * width * self.precision.bytes

    def times(self, count: float) -> Layers:
        """The same for `count` times as many samples."""
        return replace(self, batch=self.batch * count)

    def linear(
        self, tokens: float, inputs: int, outputs: int, bias: bool = True, name: str = "linear", parts: int = 1
    ) -> LayerBlock:
        """A matrix of [inputs, outputs] applied to every token; software multiplies by its columns in `parts`."""
        p = self.precision
        op = gemm(self.batch * tokens, outputs, inputs, p.weight, p.activation, name=name)
        if p.plain.bits < 16 or p.activation.bits < 16:  # tensors between layers stay in the plain type
            op = replace(op, activation_bytes=self.bytes(tokens, inputs + outputs))
        if p.plain.bits < 16:
            op = replace(op, dims={**op.dims, "static": 1.0})
        if parts > 1:
            op = replace(op, launches=float(parts))
        stored = float(p.stored.bytes(outputs, inputs)) + bias * outputs * p.bytes
        live = self.bytes(tokens, inputs + outputs)
        return LayerBlock((_once(op),), inputs * outputs + bias * outputs, stored, live, self.bytes(tokens, inputs))

    def conv(
        self,
        grid: Grid,
        channels: int,
        filters: int,
        kernel: int | Grid = 3,
        stride: int | Grid = 1,
        groups: int = 1,
        bias: bool = True,
    ) -> LayerBlock:
        """A convolution that pads to whole strides; `shrunk(grid, stride)` is what comes out.

        Libraries bring both sides into the layout of the kernel: a copy of each is alive too. (FLUX.1-dev's decoder at
        1,024 pixels is measured so, at batches of 1, 4 and 8: sayakpaul/diffusers-torchao.)
        """
        window = kernel ** len(grid) if isinstance(kernel, int) else size_of(kernel)
        before, after = size_of(grid), size_of(shrunk(grid, stride))
        p = self.precision.plain
        op = convolution(self.batch, channels, filters, before, after, window, p, p, groups=groups, name="conv")
        count = window * channels * filters // groups + bias * filters
        read, written = self.bytes(before, channels), self.bytes(after, filters)
        if p.bits < 16:
            op = replace(op, activation_bytes=read + written)
        return LayerBlock((_once(op),), count, self._plain_bytes(count), 2 * (read + written), read)

    def conv_norm(
        self,
        grid: Grid,
        channels: tuple[int, int],
        kernel: int = 3,
        stride: int = 1,
        groups: int = 1,
        act: str = "relu",
    ) -> LayerBlock:
        """A convolution of (inputs, filters) without offset, a batch norm and an activation ("": none)."""
        inputs, filters = channels
        size = size_of(shrunk(grid, stride))
        return join(
            self.conv(grid, inputs, filters, kernel, stride, groups, False),
            self.norm(size, filters, "batch"),
            self.act(size, filters, act) if act else LayerBlock(),
        )

    def squeeze(self, grid: Grid, width: int, inner: int) -> LayerBlock:
        """A mean over positions, two matrices on it, and every channel scaled by the outcome."""
        size = size_of(grid)
        matrices = self.linear(1, width, inner) + self.linear(1, inner, width)
        pool, scale = self.pointwise(size, width, 1.0, "pool"), self.pointwise(size, width, 2.0, "scale")
        return join(pool, matrices, scale)

    def _plain_bytes(self, count: float) -> float:
        stored = self.precision.stored
        return count * (stored if stored.bits >= 16 else self.precision.plain).bits / 8.0

    def parameter(self, count: int) -> LayerBlock:
        """Weights that no operator of their own reads: a table of positions, a scale."""
        return LayerBlock((), count, self._plain_bytes(count))

    def pointwise(
        self, positions: float, width: float, passes: float, name: str, *, epilogue: bool = False, alive: bool = True
    ) -> LayerBlock:
        """Element-wise work or a reduction of rows that reads and writes `passes` tensors; keeps nothing. Not `alive`:
        what it reads is no tensor of that size."""
        elements = self.batch * positions * width
        op = pointwise(elements, passes * self.precision.bytes / 2.0, name=name)
        if epilogue:
            op = replace(op, dims={**op.dims, "epilogue": 1.0})
        return LayerBlock((_once(op),), peak=passes * elements * self.precision.bytes * alive)

    def product(self, rows: float, columns: float, inner: float, count: float, live: float, name: str) -> LayerBlock:
        """`count` products of [rows, inner] and [inner, columns] in each sample, none of them weights; `live` values of
        a sample are alive meanwhile and kept."""
        p, held = self.precision.plain, self.bytes(1.0, live)
        op = gemm(rows, columns, inner, p, p, batch=self.batch * count, name=name)
        return LayerBlock((_once(op),), peak=held, kept=held)

    def norm(
        self, positions: float, width: int, kind: str = "layer", affine: bool = True, parts: int = 1
    ) -> LayerBlock:
        """A norm: "layer" (scale and offset), "rms" (scale), "group" (both, statistics in a pass before), "batch". So
        many `parts` of what it norms are calls of their own."""
        folded = kind == "batch" and not self.training
        passes = 3.0 if kind == "group" or (kind == "batch" and self.training) else 2.0
        block = self.pointwise(positions, width, passes, f"{kind}_norm", epilogue=folded)
        if parts > 1:
            block = replace(block, ops=tuple((n, replace(op, launches=float(parts))) for n, op in block.ops))
        count = (1 if kind == "rms" else 2) * width if affine else 0
        # layer and group norms are fp32 under autocast: twice the bytes, and what comes out is narrowed again
        block = self._autocast(block, {"layer": 3.5, "group": 4.0}.get(kind, 1.0))
        tensor = self.bytes(positions, width)
        stored, kept = self._plain_bytes(count), 0.0 if folded else tensor
        return replace(block, parameters=count, weight_bytes=stored, peak=2 * tensor, kept=kept)

    def _autocast(self, block: LayerBlock, times: float) -> LayerBlock:
        """Element-wise work that autocast leaves in fp32: `times` the bytes where no compiler folds the casts."""
        if not self.precision.name.startswith("amp-") or times == 1.0:
            return block
        wide = tuple((n, replace(op, dims={**op.dims, "autocast": times})) for n, op in block.ops)
        return replace(block, ops=wide)

    def act(self, positions: float, width: float, name: str = "gelu") -> LayerBlock:
        """An activation function. A "relu" works in place; others keep what they read for the backward pass."""
        block = self.pointwise(positions, width, 2.0, name, epilogue=True)
        return block if name == "relu" else replace(block, kept=self.bytes(positions, width))

    def gate(self, positions: float, width: float, name: str = "gate") -> LayerBlock:
        """act(a) x b of two tensors of `width`."""
        block = self.pointwise(positions, width, 3.0, name)
        return replace(block, kept=2 * self.bytes(positions, width))

    def residual(self, positions: float, width: float) -> LayerBlock:
        """A sum of two tensors."""
        return self.pointwise(positions, width, 3.0, "add", epilogue=True)

    def modulate(self, positions: float, width: float) -> LayerBlock:
        """x (1 + scale) + offset, with one scale and offset per sample: fused into the norm before."""
        return replace(
            self.pointwise(positions, width, 2.0, "modulate", epilogue=True), kept=self.bytes(positions, width)
        )

    def rotate(self, tokens: float, width: int, wide: bool = False) -> LayerBlock:
        """Queries and keys of `width` rotated by their positions: fused into the norm before. `wide`: in 64 bits; alive
        meanwhile are the stream in fp32, the three of attention, the tensor twice in 64 bits and once in 32 (Wan-Video/
        Wan2.1, wan/modules/model.py rope_apply)."""
        turn = self.pointwise(tokens, 2 * width, 2.0, "rotate", epilogue=True)
        alive = 4.0 * self.bytes(tokens, width) + 24.0 * self.batch * tokens * width if wide else 0.0
        return replace(turn, peak=max(alive, turn.peak))

    def embed(self, tokens: float, rows: int, width: int) -> LayerBlock:
        """A table of `rows`, of which every token reads one."""
        p = self.precision
        table = p.stored if p.stored.bits >= 16 else p.plain
        op = lookup(self.batch * tokens, width, table, name="embedding")
        if table.bits > 16:
            op = replace(op, activation_bytes=self.batch * tokens * width * table.bits / 8.0)
        return LayerBlock((_once(op),), rows * width, self._plain_bytes(rows * width), self.bytes(tokens, width))

    def attention(
        self,
        queries: float,
        keys: float,
        heads: int,
        head_dim: int,
        *,
        windows: float = 1.0,
        kv_heads: int = 0,
        causal: bool = False,
    ) -> LayerBlock:
        """Every query sees every key, in each of `windows` separate windows of a sample."""
        p, batch, shared = self.precision, self.batch * windows, kv_heads or heads
        tensors = self.times(windows).bytes(1.0, queries * heads * head_dim)
        kept = tensors + 2 * self.times(windows).bytes(1.0, keys * shared * head_dim)
        if self.scores:
            scores = self.times(windows).bytes(1.0, queries * keys * heads)
            products = [
                gemm(queries, keys, head_dim, p.plain, p.plain, batch=batch * heads, name="scores"),
                pointwise(batch * heads * queries * keys, p.softmax_passes, name="softmax"),
                gemm(queries, head_dim, keys, p.plain, p.plain, batch=batch * heads, name="weighted_sum"),
            ]
            return LayerBlock(tuple(_once(op) for op in products), peak=kept + 2 * scores, kept=kept + 2 * scores)
        op = attention(batch, queries, keys, heads, shared, head_dim, p.plain, causal=causal)
        op = replace(op, compute=p.plain.compute, activation_bytes=op.activation_bytes * p.bytes / 2.0)
        return LayerBlock((_once(op),), peak=kept + tensors, kept=kept)

    def linear_attention(self, tokens: float, heads: int, head_dim: int) -> LayerBlock:
        """Keys times values summed over all tokens, then queries times the sum: no scores."""
        p, many = self.precision.plain, self.batch * heads
        products = (
            gemm(head_dim, head_dim + 1, tokens, p, p, batch=many, name="keys_values"),
            gemm(tokens, head_dim + 1, head_dim, p, p, batch=many, name="queries"),
        )
        kept = 3 * self.bytes(tokens, heads * head_dim)
        act = self.act(tokens, 2 * heads * head_dim, "relu")
        return act + LayerBlock(tuple(_once(op) for op in products), peak=kept * 4 / 3, kept=kept)

    def relative_positions(
        self, queries: float, keys: float, heads: int, head_dim: int, *, inside: bool = False
    ) -> LayerBlock:
        """Biases of relative positions along two axes: a product of queries with tables, added to the scores. Scores
        that are written are read again and written with the bias, beside which the first are still alive. Fused
        attention takes the bias as a tensor of all scores, which is written and read, and held while it works; a kernel
        that is made for it adds it `inside`."""
        p, side = self.precision.plain, math.sqrt(keys)
        op = gemm(self.batch * queries * heads, 2 * side, head_dim, p, p, name="positions")
        product = LayerBlock((_once(op),), peak=float(op.activation_bytes), kept=0.0)
        added = self.pointwise(queries, keys * heads, 2.0, "bias")
        if not self.scores:
            return product if inside else product + replace(added, peak=added.peak / 2.0)
        return product + replace(added, peak=1.5 * added.peak)

    def mlp(
        self, tokens: float, width: int, inner: int, *, gated: bool = False, bias: bool = True, act: str = "gelu"
    ) -> LayerBlock:
        """Two matrices with an activation between them; `gated`: three, the first two multiplied."""
        middle = self.gate(tokens, inner) if gated else self.act(tokens, inner, act)
        return join(
            self.linear(tokens, width, (2 if gated else 1) * inner, bias),
            middle,
            self.linear(tokens, inner, width, bias),
        )

    def encoder_layer(
        self, tokens: float, width: int, heads: int, inner: int, *, gated: bool = False, window: float = 0.0
    ) -> LayerBlock:
        """A transformer layer with biases and two layer norms; the width is cut into heads. `window`: tokens that see
        each other (0: all)."""
        held, seen = self.bytes(tokens, width), window or tokens
        return join(
            self.norm(tokens, width),
            join(
                self.linear(tokens, width, 3 * width, name="qkv", parts=3),
                self.attention(seen, seen, heads, width // heads, windows=tokens / seen),
                self.linear(tokens, width, width, name="out"),
            ).beside(held),
            self.residual(tokens, width),
            self.norm(tokens, width),
            self.mlp(tokens, width, inner, gated=gated).beside(held),
            self.residual(tokens, width),
        )


def _once(op: Op) -> tuple[float, Op]:
    return (1.0, op)
