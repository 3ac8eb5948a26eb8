"""Nodes of recurrent mixers: a scan over tokens with a state per sequence, and the short convolution before it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from chipwise.units import Real
from chipwise.workload import op as ops
from chipwise.workload.axes import Size, Sizes
from chipwise.workload.formats import FORMATS, Format
from chipwise.workload.op import Op
from chipwise.workload.step import Step, is_decoding
from chipwise.workload.tensor import Tensor

__all__ = ["Convolve", "Scan"]

WIDE = FORMATS["bf16"]


@dataclass(frozen=True)
class Scan:
    """A recurrence with a state of `state` elements per sequence.

    `one` FLOPs per token when decoded, `chunked` when prompts are worked through in chunks (more FLOPs, as
    products inside a chunk). The state is read and written once per pass; `values` go in and out per token.
    """

    heads: Size
    one: Size
    chunked: Size
    state: Size
    state_format: Format
    values: Size
    out: Size
    name: str = "scan"
    tensors: tuple[Tensor, ...] = ()
    contracts: frozenset[str] = frozenset()

    @property
    def width(self) -> Size:
        """Outputs of all heads."""
        return self.out

    def rows(self, step: Step) -> Real:
        """One per token."""
        return step.tokens

    def ops(self, sizes: Sizes, step: Step) -> tuple[Op, ...]:
        """One operator per segment."""
        state_bytes = self.state_format.bytes(1.0, sizes.local(self.state))
        return tuple(
            ops.scan(
                s.batch,
                s.q,
                sizes.local(self.heads),
                sizes.local(self.one if is_decoding(s) else self.chunked),
                state_bytes,
                sizes.local(self.values),
                name=self.name,
            )
            for s in step.segments
        )


@dataclass(frozen=True)
class Convolve:
    """A causal depthwise convolution over tokens: `kernel` [channels, width]; the last width - 1 inputs of
    every sequence are kept and read and written once per pass."""

    kernel: Tensor
    name: str = "convolution"
    contracts: frozenset[str] = frozenset()

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The kernel."""
        return (self.kernel,)

    @property
    def width(self) -> Size:
        """Channels."""
        return self.kernel.rows

    def rows(self, step: Step) -> Real:
        """One per token."""
        return step.tokens

    def ops(self, sizes: Sizes, step: Step) -> tuple[Op, ...]:
        """One element-wise kernel."""
        channels, width = sizes.local(self.kernel.rows), sizes.local(self.kernel.cols)
        body = ops.pointwise(step.tokens * channels, 2.0, name=self.name, flops_each=2.0)
        state_bytes = 2.0 * step.sequences * channels * (width - 1.0) * WIDE.bits / 8.0
        return (replace(body, flops=body.flops * width, kv_bytes=state_bytes),)
