"""Program x Layout -> what one rank computes and what ranks exchange; operator x layout -> the part of one device.

Sharding is a change of axis sizes: every operator is written on named axes, and a layout says which axes are
cut into how many parts. A node that sums over a cut axis leaves partial sums, which the ranks must add: that
rule places all collectives of tensor and expert parallelism. Operators that are written out already are `cut` by the
same rule, dimension by dimension.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from math import prod
from typing import cast

import numpy as np

from chipwise.parallel.collective import Comm
from chipwise.parallel.layout import AXIS_SPLIT, Layout, Spread
from chipwise.units import Real
from chipwise.values import dataclass
from chipwise.workload.axes import Sizes
from chipwise.workload.backward import OPTIMIZER
from chipwise.workload.graph import Graph
from chipwise.workload.nodes import Experts, Linear, Node, Pointwise
from chipwise.workload.op import Op
from chipwise.workload.program import Block, Program
from chipwise.workload.step import Columns, Step

ACTIVATION_BYTES = 2.0
"""bytes: of an activation that collectives move. Exact: 16 bit."""

SUM_BYTES = 4.0
"""bytes: of a sum of squares that ranks add up for a norm over all heads, one exchange for those of queries and keys.
Exact: 32 bit. Source: vllm-project/vllm, MiniMaxText01RMSNormTP."""

FEW_TOKENS = 1024.0
"""tokens of a rank: below which exchanges of experts have kernels of low latency. Source: deepseek-ai/DeepEP
csrc/kernels/configs.cuh (FINISHED_SUM_TAG) and deep_ep/buffer.py, num_max_dispatch_tokens_per_rank; engines reserve
128 to 256 by default."""

ROWS, TENSORS, SAMPLES, RING, HEADS = (
    ("dp", "cfg", "ulysses", "cp"),
    ("tp",),
    ("dp", "cfg"),
    ("cp",),
    ("ulysses", "tp"),
)
"""Degrees that cut what: samples, guided passes and the sequence; columns; samples and passes; queries, whose keys go
round; heads, between the exchanges of Ulysses."""

Cutting = Mapping[str, tuple[tuple[str, ...], float]]
"""By dimension: the degrees that cut it, and what a device has of it at least."""
PRODUCT: Cutting = {"m": (ROWS, 1.0), "n": (TENSORS, 0.0), "images": (ROWS, 0.0)}
"""count: of a product or convolution a device has one row at least. Exact: rows are not cut."""
CUT: Mapping[str, Cutting] = {
    "gemm": PRODUCT,
    "conv": PRODUCT,
    "attention": {"batch": (SAMPLES, 1.0), "q": (RING, 0.0), "heads": (HEADS, 1.0), "kv_heads": (HEADS, 1.0)},
}
"""count, by kind of operator: of products and attention a device has one row, sequence and head at least. Exact: none
is cut. Of all other kinds `ON_ELEMENTS`."""
ON_ELEMENTS: Cutting = dict.fromkeys(("elements", "rows", "batch", "tokens"), (ROWS, 0.0))
"""count: what works on elements is cut at will. Exact: elements have no order."""


def cut(op: Op, s: Spread) -> Op:
    """The part of an operator that one device runs: rows of samples, of guided passes and of the sequence; columns of
    tensors; heads of attention between the exchanges of Ulysses. Numbers may be arrays."""
    rows = float(s.rows)
    if rows * s.tp == 1.0:
        return op
    if op.name == OPTIMIZER:
        rows = float(s.parts) / s.pp  # which deals out operators later
    d = dict(op.dims)
    for name, (degrees, least) in CUT.get(op.kind, ON_ELEMENTS).items():
        if name in d:
            parts = rows if degrees is ROWS else prod(float(s.part(degree)) for degree in degrees)
            d[name] = np.maximum(d[name] / parts, least)
    by_tensors = op.kind not in ("pointwise", "lookup")
    share = rows * (s.tp if by_tensors else 1.0)
    weights = {"gemm": s.tp, "conv": s.tp, "lookup": rows}.get(op.kind, 1.0)
    # every device sees all keys in turn
    seen = s.cp if op.kind == "attention" else 1.0
    return replace(
        op,
        flops=op.flops / share,
        weight_bytes=op.weight_bytes / weights,
        activation_bytes=op.activation_bytes / share,
        kv_bytes=op.kv_bytes * seen / share,
        dims=d,
    )


@dataclass(frozen=True)
class Sharded:
    """A program under a layout. Repeats count a whole forward pass: all stages, one after the other.

    Stages hold ceil(layers / pp) layers; the slowest sets the pace, so uneven cuts stretch the pass by
    `stretch` = pp ceil(layers / pp) / layers. Operators that are written out are those of one device.
    """

    program: Program
    layout: Layout
    sized: dict[int, tuple[Block, Sizes]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def graph(self) -> Graph:
        """The program, which is a language model's."""
        return cast("Graph", self.program)

    def sizes(self, block: Block) -> Sizes:
        """Axis sizes of a block on one rank."""
        if id(block) not in self.sized:
            shards = {axis: self.layout.part(part) for axis, part in AXIS_SPLIT.items() if axis in block.axes}
            self.sized[id(block)] = block, Sizes(block.axes, shards, self.layout.dp)
        return self.sized[id(block)][1]

    @property
    def stretch(self) -> Real:
        """Pace of the slowest stage over that of an even cut."""
        layers = self.graph.layers
        return self.layout.pp * np.ceil(layers / np.asarray(self.layout.pp)) / layers

    def blocks(self) -> tuple[tuple[Real, Block], ...]:
        """Distinct blocks with their repeats: embedding, layers, head; none of what is written out."""
        graph = self.program
        if not isinstance(graph, Graph):
            return ()
        layers = tuple((repeat * self.stretch, block) for repeat, block in graph.distinct())
        return ((1.0, graph.embed), *layers, (1.0, graph.head))

    def ops(self, step: Step, stages_of: Sharded | None = None) -> Iterator[tuple[Real, Op]]:
        """Operators of one rank with their repeats, these of another layout's stages if given."""
        for repeat, op, _ in self.placed(step, stages_of):
            yield repeat, op

    def placed(self, step: Step, stages_of: Sharded | None = None) -> Iterator[tuple[Real, Op, Columns | None]]:
        """The same of several passes in columns, each with the columns that it is in; None: in all."""
        of_tokens, of_sequences = step.rows, list(step.by_segment())
        for stage in self.program.stages:
            for n, op in stage.ops:
                yield stage.calls * n, op, None
        for (repeat, _), (_, block) in zip((stages_of or self).blocks(), self.blocks(), strict=True):
            sizes = self.sizes(block)
            for node in block.nodes:
                every = node.ops(sizes, of_tokens)
                for op in every:
                    yield repeat, op, None
                if every:
                    continue
                for segment, columns in of_sequences:
                    for op in node.ops(sizes, segment):
                        yield repeat, op, columns

    def comms(self, step: Step, stages_of: Sharded | None = None) -> Iterator[tuple[Real, Comm]]:
        """Exchanges of one rank with their repeats, these and those between stages of another layout if given. Zero
        bytes where a degree is one."""
        whole = stages_of or self
        if not isinstance(self.program, Graph):
            return
        for (repeat, _), (_, block) in zip(whole.blocks(), self.blocks(), strict=True):
            sizes = self.sizes(block)
            for comm in self._block_comms(block, sizes, step):
                yield repeat, comm
        hidden = float(self.program.model.hidden)
        layout = whole.layout
        hop = step.tokens * hidden * ACTIVATION_BYTES / layout.tp
        yield layout.pp - 1.0, Comm("p2p", hop, np.minimum(layout.pp, 2.0), "pp")

    def _block_comms(self, block: Block, sizes: Sizes, step: Step) -> Iterator[Comm]:
        pending: Node | None = None  # a partial sum that nobody has needed whole yet
        for node in block.nodes:
            if pending is not None and isinstance(node, Pointwise) and node.over == pending.width:
                yield self._all_reduce(pending, sizes, step)
                pending = None
            if isinstance(node, Pointwise) and node.sums:
                yield Comm("all_reduce", node.sums * node.rows(step) * SUM_BYTES, self.layout.tp, "tp")
            if isinstance(node, Experts):
                yield from self._expert_exchange(node, sizes, step)
            if any(AXIS_SPLIT.get(axis) in ("tp", "ep", "moe_tp") for axis in node.contracts):
                pending = node
            if isinstance(node, Linear) and node.last:
                payload = node.rows(step) * sizes.whole(node.width) * ACTIVATION_BYTES
                yield Comm("all_gather", payload, self.layout.tp, "tp")
        if pending is not None:
            yield self._all_reduce(pending, sizes, step)

    def _all_reduce(self, node: Node, sizes: Sizes, step: Step) -> Comm:
        payload = node.rows(step) * sizes.whole(node.width) * ACTIVATION_BYTES
        return Comm("all_reduce", payload, self.layout.tp, "tp")

    def _expert_exchange(self, node: Experts, sizes: Sizes, step: Step) -> Iterator[Comm]:
        # With replicated attention, tokens travel to their experts and back; every rank of a replica sends
        # its share. A token goes to at most as many groups as it has experts, and to all ranks of a group.
        group = np.where(np.asarray(self.layout.dp) > 1, self.layout.tp * self.layout.dp, 1.0)
        # They leave as the experts read them, narrowed where they multiply in few bits, and come back in 16 bit.
        copies = np.minimum(node.top_k, self.layout.ep) * self.layout.moe_tp
        values = step.tokens / self.layout.tp * sizes.whole(node.width)
        # kernels made for few tokens send every copy by itself; more than they have room for go as prompts do
        each = np.asarray(step.decodes) & np.asarray(step.tokens / self.layout.tp < FEW_TOKENS)
        sent = min(node.activation.bits / 8.0, ACTIVATION_BYTES)
        yield Comm("all_to_all", copies * values * sent, group, "ep", copies, each)
        yield Comm("all_to_all", copies * values * ACTIVATION_BYTES, group, "ep", copies, each)


def shard(program: Program, layout: Layout) -> Sharded:
    """A program under a layout, legal or not: illegal ones are masked by the caller."""
    return Sharded(program, layout)
