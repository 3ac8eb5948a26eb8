"""What a block keeps per sequence while it generates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from chipwise.units import Real
from chipwise.values import dataclass
from chipwise.workload.axes import Size, Sizes
from chipwise.workload.formats import Format

Kind = Literal["full", "window", "latent", "index", "state", "cross"]
Scope = Literal["attention", "index", "state", "all"]

SCOPES: Mapping[Scope, frozenset[Kind]] = {
    "attention": frozenset(("full", "window", "latent", "cross")),
    "index": frozenset(("index",)),
    "state": frozenset(("state",)),
    "all": frozenset(("full", "window", "latent", "index", "state", "cross")),
}
"""Which kinds a sum is over. Published cache sizes mean "attention": keys, values and latents alone."""


@dataclass(frozen=True, slots=True)
class KVSpec:
    """A cache of one block: `per_token` elements for every entry kept.

    "full" and "latent" grow with the context, one entry per `every` tokens (compressed caches); a latent
    is shared by all heads, so that no rank holds less of it. "window" stops at `window` tokens. "index"
    holds the keys that choose what is attended to. "cross" holds `window` encoder tokens whatever the context,
    or without a window as many as the context has. "state" is one entry per sequence: recurrent or convolution state.
    """

    kind: Kind
    per_token: Size
    format: Format
    window: int = 0
    every: int = 1

    def tokens(self, context: Real, page: int = 1, *, mean: bool = False) -> Real:
        """Entries kept for one sequence, in whole pages; 1 for a state. `mean`: sequences of scattered lengths around
        `context`, whose last page is half empty on average."""
        given = np.asarray(context, dtype=float)
        if self.kind == "state":
            kept, page = np.ones_like(given), 1
        elif self.kind == "cross":
            kept = np.full_like(given, float(self.window)) if self.window else given
        elif self.window:
            kept = np.minimum(given, self.window)
        else:
            kept = given / self.every if mean or self.every == 1 else np.floor(given / self.every)
        paged: Real = kept + 0.5 * (page - 1) if mean else np.ceil(kept / page) * page
        return paged if np.ndim(paged) else float(paged)

    def token_bytes(self, sizes: Sizes) -> Real:
        """Bytes per kept entry on one rank."""
        return self.format.bytes(1.0, sizes.local(self.per_token))

    def growth_bytes(self, sizes: Sizes) -> Real:
        """Bytes that one more token of a long context adds on one rank."""
        if self.window or self.kind == "state":
            return 0.0
        return self.token_bytes(sizes) / self.every

    def bytes(self, sizes: Sizes, context: Real, page: int = 1, *, mean: bool = False) -> Real:
        """Bytes of one sequence of `context` tokens on one rank; `mean` as in `tokens`."""
        return self.tokens(context, page, mean=mean) * self.token_bytes(sizes)
