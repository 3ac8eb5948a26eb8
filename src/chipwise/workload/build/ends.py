"""What stands before and after the layers: tables, norms, the head."""

from __future__ import annotations

from chipwise.workload.axes import ONE
from chipwise.workload.build.blocks import norm_weights
from chipwise.workload.build.letters import M, V
from chipwise.workload.build.streams import collapse, mix_depth
from chipwise.workload.graph import Block
from chipwise.workload.model import Model, Table
from chipwise.workload.nodes import Held, Linear, Lookup, Node, Pointwise
from chipwise.workload.precision import Precision
from chipwise.workload.tensor import Tensor

__all__ = ["embed_block", "head_block"]


def embed_block(model: Model) -> Block:
    """A row of the token table; rows of the other tables are a few bytes more and held only."""
    ends, p = model.ends, model.precision
    nodes: tuple[Node, ...] = (Lookup(_table(p)),)
    if ends.tables:
        nodes += (Held("tables", tuple(_beside(t, p) for t in ends.tables)),)
    if ends.embedding_norm:
        nodes += (Pointwise("embedding_norm", M, 2.0, norm_weights("embedding_norm", model.runs[-1][1])),)
    return Block("embedding", _axes(model), nodes)


def head_block(model: Model) -> Block:
    """The last norm and the logits; or a pooler, of one row per sequence as well."""
    ends, p = model.ends, model.precision
    last = model.runs[-1][1]
    nodes: tuple[Node, ...] = (mix_depth("last"),) if last.depth_mix else collapse(last.streams)
    if ends.final_norm:
        nodes += (Pointwise("final_norm", M, 2.0, norm_weights("final_norm", last)),)
    if ends.head:
        own = Tensor("head", "head", V, M, p.weight("head"), bias=ends.head_bias)
        matrix = _table(p) if model.tied else own
        nodes += (Linear("head", (matrix,), p.activation("head"), last=True, borrowed=model.tied),)
    if ends.pooler:
        pooler = Tensor("pooler", "head", M, M, p.weight("head"), bias=True)
        nodes += (Linear("pooler", (pooler,), p.activation("head"), last=True),)
    return Block("head", _axes(model), nodes)


def _axes(model: Model) -> dict[str, int]:
    return {"M": model.hidden, "V": model.vocab}


def _table(p: Precision) -> Tensor:
    return Tensor("embedding", "embedding", V, M, p.weight("embedding"))


def _beside(t: Table, p: Precision) -> Tensor:
    return Tensor(
        t.name, "embedding", ONE * t.rows, ONE * t.cols, p.base, ONE * t.copies, bias=t.bias, buffer=t.buffer
    )
