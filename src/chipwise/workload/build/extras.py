"""Parts beside the main stack: prediction modules and vision towers. Counted apart; not priced."""

from __future__ import annotations

from chipwise.workload.axes import ONE
from chipwise.workload.build.blocks import layer_block
from chipwise.workload.build.letters import M
from chipwise.workload.graph import Block, Extra
from chipwise.workload.model import MTP, Table, Tower, runs_of
from chipwise.workload.nodes import Held, Linear, Pointwise, norm_tensor
from chipwise.workload.precision import Precision, uniform
from chipwise.workload.tensor import Tensor

__all__ = ["mtp_part", "tower_part"]


def mtp_part(mtp: MTP, hidden: int, p: Precision) -> Extra:
    """One module: norms of the embedding and of the hidden state, a projection of both, layers, a norm."""
    # runtimes and checkpoints leave the projection in 16 bit
    projection = Tensor("mtp_projection", "head", M, 2 * M, p.base)
    enter = Block(
        "mtp_enter",
        {"M": hidden},
        (
            Pointwise(
                "mtp_norms",
                2 * M,
                2.0,
                (norm_tensor("mtp_embedding_norm", M), norm_tensor("mtp_hidden_norm", M)),
            ),
            Linear("mtp_projection", (projection,), p.base),
        ),
    )
    leave = Block("mtp_leave", {"M": hidden}, (Pointwise("mtp_norm", M, 2.0, (norm_tensor("mtp_norm", M),)),))
    layers = tuple(
        (repeat, layer_block(layer, hidden, p, f"mtp_layer{i}"))
        for i, (repeat, layer) in enumerate(runs_of(mtp.layers))
    )
    return Extra("mtp", mtp.modules, ((1, enter), *layers, (1, leave)))


def tower_part(tower: Tower, p: Precision, own: Precision | None = None) -> Extra:
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
        (Held("tables", tuple(_table(t, wide) for t in tower.tables)),),
    )
    return Extra(tower.name, 1, ((1, held), *layers))


def _table(t: Table, p: Precision) -> Tensor:
    return Tensor(
        t.name, "ffn", ONE * t.rows, ONE * t.cols, p.base, ONE * t.copies, bias=t.bias, buffer=t.buffer
    )
