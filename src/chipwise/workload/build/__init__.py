"""Model -> Graph: which operators a layer consists of, one file per kind of mixer.

Fused as runtimes fuse: one product for query, key and value, one for gate and up. Passes of element-wise
kernels count 16-bit reads and writes per value.
"""

from __future__ import annotations

from chipwise.workload.build.blocks import layer_block
from chipwise.workload.build.ends import embed_block, head_block, mtp_part, tower_part
from chipwise.workload.graph import Graph
from chipwise.workload.model import Layer, Model
from chipwise.workload.program import Block

__all__ = ["build"]


def build(model: Model) -> Graph:
    """The graph of a model. Equal layers share one block."""
    blocks: dict[Layer, Block] = {}
    for _, layer in model.runs:
        if layer not in blocks:
            name = f"layer{len(blocks)}" if blocks else "layer"
            blocks[layer] = layer_block(layer, model.hidden, model.precision, name)
    p = model.precision
    extras = (mtp_part(model.mtp, model.hidden, p),) if model.mtp else ()
    encoder = (tower_part(model.encoder, p, p),) if model.encoder else ()
    return Graph.of(
        model,
        embed_block(model),
        tuple((repeat, blocks[layer]) for repeat, layer in model.runs),
        head_block(model),
        extras + encoder + tuple(tower_part(tower, p) for tower in model.towers),
    )
