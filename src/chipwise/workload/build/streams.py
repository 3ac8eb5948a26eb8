"""Residual paths other than a sum: several streams (hyper-connections, DeepSeek V4), or a mixture over depth
(attention residuals, Kimi K3).

Source: huggingface/transformers, models/deepseek_v4 (DeepseekV4HyperConnection, DeepseekV4HyperHead).
"""

from __future__ import annotations

from chipwise.workload.axes import ONE
from chipwise.workload.build.letters import M
from chipwise.workload.formats import FORMATS
from chipwise.workload.nodes import Linear, Node, Pointwise, norm_tensor
from chipwise.workload.tensor import Tensor

__all__ = ["collapse", "mix", "mix_depth"]

WIDE = FORMATS["fp32"]


def mix(name: str, streams: int) -> tuple[Node, ...]:
    """Weights that collapse n streams to one, spread the result, and mix the streams: n (n + 2) per token
    from all streams. The streams are read and written once. Nothing with a single stream."""
    if streams == 1:
        return ()
    outputs = ONE * (streams * (streams + 2))
    weight = Tensor(f"{name}_streams", "router", outputs, M * streams, WIDE)
    small = Tensor(f"{name}_streams_base", "norm", outputs + ONE * 3, ONE, WIDE)
    return (
        Linear(f"{name}_streams", (weight,), FORMATS["bf16"]),
        Pointwise(f"{name}_streams_mix", M * streams, 2.0, (small,)),
    )


def collapse(streams: int) -> tuple[Node, ...]:
    """One weight per stream at the end of the network."""
    if streams == 1:
        return ()
    weight = Tensor("last_streams", "router", ONE * streams, M * streams, WIDE)
    small = Tensor("last_streams_base", "norm", ONE * (streams + 1), ONE, WIDE)
    return (
        Linear("last_streams", (weight,), FORMATS["bf16"]),
        Pointwise("last_streams_mix", M * streams, 1.0, (small,)),
    )


def mix_depth(name: str) -> Node:
    """A softmax over one score per earlier block of layers, from a norm and one row of weights; the outputs
    of the blocks are read. Passes are those of a stack of eight blocks: a guess within a few percent of a
    layer's traffic."""
    row = Tensor(f"{name}_depth", "norm", ONE, M, FORMATS["bf16"])
    return Pointwise(f"{name}_depth", M, 9.0, (norm_tensor(f"{name}_depth_norm", M), row))
