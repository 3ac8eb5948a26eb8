"""Precision by tensor class: how weights are stored and what the products run in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import Literal, get_args

from chipwise.values import dataclass
from chipwise.workload.formats import CACHES, FORMATS, Format, get_cache, get_format, unscaled

TensorClass = Literal["attention", "ffn", "expert", "router", "embedding", "head", "norm"]

# Products that runtimes leave in 16 bit whatever the checkpoint: routing decisions, logits, norms.
KEPT_WIDE: frozenset[TensorClass] = frozenset(("router", "embedding", "head", "norm"))

LARGE: tuple[TensorClass, ...] = tuple(c for c in get_args(TensorClass) if c not in KEPT_WIDE)
"""Classes that quantisation is about: the matrices inside layers."""


@dataclass(frozen=True)
class Precision:
    """Weight and activation format of each tensor class, and the format of the cache.

    A class whose activations stay 16 bit multiplies in 16 bit whatever its weights are stored in: W4A16 is
    not fp4 compute. `name` is the short label of tables. Where layers differ, a layer carries its own.
    """

    name: str
    base: Format
    weights: Mapping[TensorClass, Format] = field(default_factory=dict)
    activations: Mapping[TensorClass, Format] = field(default_factory=dict)
    kv: Format = FORMATS["bf16"]

    def __hash__(self) -> int:
        """Equal precisions hash alike: a layer that carries one keys the table of blocks."""
        weights, activations = frozenset(self.weights.items()), frozenset(self.activations.items())
        return hash((self.name, self.base, weights, activations, self.kv))

    @property
    def is_plain(self) -> bool:
        """Whether nothing is quantised: every class has the base format, of 16 bits or more."""
        return self.base.bits >= 16 and not self.weights

    def weight(self, cls: TensorClass) -> Format:
        """Storage format of the weights of a class."""
        return self.weights.get(cls, self.base)

    def activation(self, cls: TensorClass) -> Format:
        """Format of the activations that meet those weights."""
        return self.activations.get(cls, self.base)

    def with_kv(self, name: str) -> Precision:
        """The same with another cache format. Raises `UnknownNameError`."""
        stored = get_cache(name)
        return replace(self, kv=stored if name in CACHES else unscaled(stored))

    def without(self, classes: Iterable[TensorClass]) -> Precision:
        """The same with some classes left in the base format."""
        out = frozenset(classes)
        weights = {c: f for c, f in self.weights.items() if c not in out}
        return replace(self, weights=weights, activations={c: f for c, f in self.activations.items() if c not in out})


def uniform(name: str, *, weights_only: bool = False, base: str = "bf16") -> Precision:
    """All large matrices in one format; router, embedding, head and norms stay in `base`.

    `weights_only` keeps activations in `base`. Raises `UnknownNameError`.
    """
    stored = get_format(name)
    wide = get_format(base)
    if stored.bits >= 16:
        return Precision(stored.name, stored)
    weights = dict.fromkeys(LARGE, stored)
    # 4-bit integers and table lookups have no activation type of their own: W4A16
    alone = weights_only or stored.compute in ("int4", "bf16")
    return Precision(stored.name, wide, weights, {} if alone else dict.fromkeys(LARGE, stored))
