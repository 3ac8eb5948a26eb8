"""Training software: what its stacks compute with, where that makes their steps differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, cast, get_args

from chipwise.catalog.parsed import parse
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.catalog.tables import known_keys
from chipwise.errors import UsageError

__all__ = ["Trainer", "load_trainers", "read_trainers"]

Attention = Literal["fa2", "native"]
Elementwise = Literal["joined", "single", "split", "usual"]
Waits = Literal["layer", "ahead"]


@dataclass(frozen=True, slots=True)
class Trainer:
    """A stack of training software.

    `attention`: whose fused kernels it calls, FlashAttention-2 ("fa2") or those made for the chip ("native").
    `elementwise`: norms, activations and dropout are "joined" by hand, "single" operations, "split" into more of
    them than the formula has, or "usual". `waits`: "layer" where it gathers the weights of a layer when it is
    reached, "ahead" where earlier.
    """

    id: str
    name: str
    attention: Attention
    elementwise: Elementwise
    waits: Waits
    source: str


@per_snapshot
def load_trainers() -> Mapping[str, Trainer]:
    """All trainers by id."""
    return read_trainers(shipped_text("catalog/data/trainers.toml"), "trainers.toml")


def read_trainers(text: str, origin: str) -> Mapping[str, Trainer]:
    """The trainers of a TOML text by id. Raises `UsageError`, naming origin and place, for a key that is unknown or
    missing and a value that is none of those allowed."""
    return MappingProxyType({k: _trainer(k, row, f"{origin}: {k}") for k, row in parse(text).items()})


def _trainer(name: str, row: object, where: str) -> Trainer:
    table = known_keys(row, ("name", "attention", "elementwise", "waits", "source"), where)
    for key in ("name", "source"):
        if not isinstance(table.get(key), str) or not table[key]:
            raise UsageError(f"{where}: no {key}", "write it as a text")

    def choice(key: str, allowed: Any, default: str = "") -> Any:
        value = table.get(key, default)
        if value not in get_args(allowed):
            raise UsageError(f"{where}: {key} must be one of {', '.join(get_args(allowed))}, not {value!r}")
        return value

    return Trainer(
        name,
        table["name"],
        cast(Attention, choice("attention", Attention)),
        cast(Elementwise, choice("elementwise", Elementwise, "usual")),
        cast(Waits, choice("waits", Waits, "ahead")),
        table["source"],
    )
