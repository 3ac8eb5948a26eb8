"""Passes of serving engines by part, tabulated over the decoding batch: what the closed forms interpolate.

An engine is one replica of a deployment under one mix of lengths. Three kinds of pass are tabulated: decoding
alone, decoding with a chunk of a prompt, and a chunk alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chipwise.cost.cost import Cost
from chipwise.predict.parts import PARTS, quantity
from chipwise.predict.speculative import Speculation, verification
from chipwise.units import Array, Real
from chipwise.workload.step import Step, decode, prefill

__all__ = ["BATCHES", "PassTable", "Passes", "tabulate"]

BATCHES: Array = np.array([2.0**i for i in range(13)])
"""Decoding sequences of one rank: octaves, between which a pass is close to linear."""

_COLUMN = {name: i for i, name in enumerate(PARTS)}
_SHARED = np.array([name.startswith(("experts", "imbalance")) for name in PARTS])


@dataclass(frozen=True)
class Passes:
    """Seconds of passes of engines: `decode_s` and `mixed_s` [engine, batch], `alone_s` [engine].

    `chunks` is the number of passes that one prompt takes (fractions where several share one: never below the
    share of the budget that it fills). `lone_s` [engine] is a chunk alone while the other attention replicas
    have no prompt: they lend their experts (None: there are none, as long as `alone_s`).
    """

    batches: Array
    decode_s: Array
    mixed_s: Array
    alone_s: Array
    chunks: Array
    lone_s: Array | None = None

    def at(self, batch: Array, engine: NDArray[np.intp]) -> tuple[Array, Array]:
        """(`decode_s`, `mixed_s`) at a batch of each of the engines named, linear between grid points."""
        grid, size = self.batches, len(self.batches)
        where = np.minimum(np.maximum(batch, grid[0]), grid[-1])
        left = np.minimum(np.searchsorted(grid, where, side="right") - 1, size - 2)
        share = (where - grid[left]) / (grid[left + 1] - grid[left])
        cell = engine * size + left
        return self._between(self.decode_s, cell, share), self._between(self.mixed_s, cell, share)

    @staticmethod
    def _between(table: Array, cell: NDArray[np.intp], share: Array) -> Array:
        flat = table.reshape(-1)
        low = flat[cell]
        value: Array = low + share * (flat[cell + 1] - low)
        return value


@dataclass(frozen=True)
class PassTable:
    """The same by part: `decode` and `mixed` [engine, batch, part], `alone` and `lone` [engine, part]; see
    `PARTS`."""

    batches: Array
    decode: Array
    mixed: Array
    alone: Array
    chunks: Array
    lone: Array | None = None

    def passes(self, factors: Array) -> Passes:
        """Seconds under factors on the parts, [engine, part] or [part]."""
        f = np.broadcast_to(factors, (len(self.chunks), len(PARTS)))
        return Passes(
            self.batches,
            np.einsum("ebp,ep->eb", self.decode, f),
            np.einsum("ebp,ep->eb", self.mixed, f),
            np.einsum("ep,ep->e", self.alone, f),
            self.chunks,
            None if self.lone is None else np.einsum("ep,ep->e", self.lone, f),
        )

    def take(self, index: NDArray[np.intp]) -> PassTable:
        """Some of the engines."""
        lone = None if self.lone is None else self.lone[index]
        return PassTable(
            self.batches, self.decode[index], self.mixed[index], self.alone[index], self.chunks[index], lone
        )

    @classmethod
    def join(cls, tables: Iterable[PassTable]) -> PassTable:
        """Engines of several tables, one after the other."""
        found = list(tables)
        return cls(
            found[0].batches,
            decode=np.concatenate([t.decode for t in found]),
            mixed=np.concatenate([t.mixed for t in found]),
            alone=np.concatenate([t.alone for t in found]),
            chunks=np.concatenate([t.chunks for t in found]),
            lone=np.concatenate([t.alone if t.lone is None else t.lone for t in found]),
        )


def tabulate(
    parts_of: Callable[[Step], Iterable[tuple[str, Cost]]],
    prompt_tokens: Array,
    output_tokens: Array,
    budget_tokens: Array,
    cached_tokens: Real = 0.0,
    batches: Array = BATCHES,
    speculation: Speculation | None = None,
    draft_of: Callable[[Step], Iterable[tuple[str, Cost]]] | None = None,
    replicas: Real = 1.0,
) -> PassTable:
    """Tabulate engines that share a graph and every category; their numbers are columns [engine].

    `parts_of` prices a step whose numbers are [engine, 1] against its own columns. Prompts have
    `prompt_tokens` of which `cached_tokens` are found in the prefix cache; the others are worked off in chunks
    of at most `budget_tokens` a pass. Decoding sequences hold the prompt and half of the output on average.

    With `speculation` a decode pass verifies k guessed tokens after k passes of the draft (`draft_of`, free
    where there is none: lookup in the prompt), and the table holds its share of one token that comes out.
    """
    prompt, output, budget, cached = (
        np.broadcast_to(np.asarray(x, dtype=float), np.shape(prompt_tokens))[:, None]
        for x in (prompt_tokens, output_tokens, budget_tokens, cached_tokens)
    )
    new = np.maximum(prompt - cached, 1.0)
    chunk = np.minimum(new, budget)
    part = chunk / new
    context = prompt + output / 2.0
    b = batches[None, :]
    plain = verification(b, context, speculation.draft_tokens) if speculation else decode(b, context)
    riding = prefill(part, new, cached)
    shape = (len(prompt), len(batches))
    single = (len(prompt), 1)
    prompts = _columns(parts_of(riding), single)[:, 0]
    spread = np.broadcast_to(np.asarray(replicas, dtype=float), np.shape(prompt_tokens))[:, None]
    lone = prompts
    if np.any(spread > 1.0):
        shared = _columns(parts_of(prefill(part / spread, new, cached)), single)[:, 0]
        lone = np.where(_SHARED, shared, prompts)
    alone, together = _columns(parts_of(plain), shape), _columns(parts_of(plain + riding), shape)
    added = together - alone
    if speculation:
        if draft_of is not None:
            alone = alone + speculation.draft_tokens * _columns(draft_of(decode(b, context)), shape)
        alone = alone / speculation.tokens_per_pass
    return PassTable(
        batches,
        alone,
        alone + added,
        prompts,
        (1.0 / part)[:, 0],
        lone,
    )


def _columns(parts: Iterable[tuple[str, Cost]], shape: tuple[int, int]) -> Array:
    total = np.zeros((*shape, len(PARTS)))
    for part, cost in parts:
        for resource, seconds in cost.exposed.items():
            total[..., _COLUMN[quantity(part, resource)]] += np.broadcast_to(seconds, shape)
    return total
