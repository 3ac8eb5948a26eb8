"""What stands before, after and beside the layers: tables, norms, the head, prediction modules, towers (not priced)."""

from __future__ import annotations

from chipwise.workload.axes import ONE, Tensor
from chipwise.workload.build.blocks import collapse, layer_block, mix_depth, norm_weights
from chipwise.workload.build.part import M, V
from chipwise.workload.model import MTP, EmbeddingTable, Model, Tower, runs_of
from chipwise.workload.nodes import Held, Linear, Lookup, Node, Pointwise, norm_tensor
from chipwise.workload.precision import Precision, uniform
from chipwise.workload.program import Block, Stage


def mtp_part(mtp: MTP, hidden: int, p: Precision) -> Stage:
    """One module: norms of the embedding and of the hidden state, a projection of both, layers, a norm."""
    # runtimes and checkpoints leave the projection in 16 bit
    projection = Tensor("mtp_projection", "head", M, 2 * M, p.base)
    enter = Block(
        "mtp_enter",
        {"M": hidden},
        (
            Pointwise(
                "mtp_norms", 2 * M, 2.0, (norm_tensor("mtp_embedding_norm", M), norm_tensor("mtp_hidden_norm", M))
            ),
            Linear("mtp_projection", (projection,), p.base),
        ),
    )
    leave = Block("mtp_leave", {"M": hidden}, (Pointwise("mtp_norm", M, 2.0, (norm_tensor("mtp_norm", M),)),))
    layers = tuple(
        (repeat, layer_block(layer, hidden, p, f"mtp_layer{i}"))
        for i, (repeat, layer) in enumerate(runs_of(mtp.layers))
    )
    return Stage.of("mtp", ((1, enter), *layers, (1, leave)), calls=float(mtp.modules), beside=True)


def tower_part(tower: Tower, p: Precision, own: Precision | None = None) -> Stage:
    """The layers of a tower on its own width, and its tables. Towers are not quantised, unless they are
    given a precision of their `own` (the encoder of an encoder-decoder)."""
    wide = own or uniform(p.base.name)
    layers = tuple(
        (repeat, layer_block(layer, tower.hidden, wide, f"{tower.name}{i}"))
        for i, (repeat, layer) in enumerate(tower.runs)
    )
    held = Block(
        f"{tower.name}_tables",
        {"M": tower.hidden},
        (Held("tables", tuple(_tower_table(t, wide) for t in tower.tables)),),
    )
    return Stage.of(tower.name, ((1, held), *layers), beside=own is None)


def _tower_table(t: EmbeddingTable, p: Precision) -> Tensor:
    return Tensor(t.name, "ffn", ONE * t.rows, ONE * t.cols, p.base, ONE * t.copies, bias=t.bias, buffer=t.buffer)


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


def _beside(t: EmbeddingTable, p: Precision) -> Tensor:
    return Tensor(t.name, "embedding", ONE * t.rows, ONE * t.cols, p.base, ONE * t.copies, bias=t.bias, buffer=t.buffer)
