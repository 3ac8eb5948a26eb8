"""How many experts a rank reads and how many rows it computes, from how tokens are spread over experts.

T tokens of all ranks together, E experts, k experts per token, ep ranks.
"""

from __future__ import annotations

import numpy as np

from chipwise.units import Real
from chipwise.values import dataclass


@dataclass(frozen=True, slots=True)
class Routing:
    """On the busiest rank: `distinct` experts that get any row, `rows` = (token, expert) pairs."""

    distinct: Real
    rows: Real


def balanced(tokens: Real, experts: Real, top_k: Real, ranks: Real = 1.0) -> Routing:
    """Every expert gets the same: min(E, T k) experts, spread evenly."""
    pairs = tokens * top_k
    distinct: Real = np.maximum(np.minimum(experts, pairs) / ranks, 1.0)
    return Routing(distinct, pairs / ranks)


def uniform(tokens: Real, experts: Real, top_k: Real, ranks: Real = 1.0) -> Routing:
    """Each token draws k experts at random: E (1 - (1 - k / E)^T) experts are hit."""
    hit = experts * (1.0 - (1.0 - np.minimum(top_k / experts, 1.0)) ** tokens)
    distinct: Real = np.maximum(hit / ranks, 1.0)
    return Routing(distinct, tokens * top_k / ranks)


def power_law(
    tokens: Real, experts: Real, top_k: Real, ranks: Real = 1.0, *, exponent: Real = 1.1, crowding: Real = 0.7
) -> Routing:
    """Loads of experts are drawn from x^-exponent on [1, 0.8 T] and scaled to T k pairs.

    An expert is hit when its scaled load reaches half a pair. Loads have mean mu and coefficient of variation
    c in closed form; the busiest of ep ranks holds 1 + crowding sqrt(2 ln ep) c / sqrt(E / ep) times the
    mean, `crowding` being fitted (1 = normal sums). At most every token may choose a rank's experts.
    """
    a = exponent
    top = np.maximum(0.8 * tokens, 1.5)
    span = top ** (1.0 - a) - 1.0
    mean = (1.0 - a) / (2.0 - a) * (top ** (2.0 - a) - 1.0) / span
    square = (1.0 - a) / (3.0 - a) * (top ** (3.0 - a) - 1.0) / span
    variation = np.sqrt(np.maximum(square / mean**2 - 1.0, 0.0))
    pairs = tokens * top_k
    half_pair = np.minimum(np.maximum(0.5 * experts * mean / pairs, 1.0), top)
    hit = experts * (1.0 - (half_pair ** (1.0 - a) - 1.0) / span)
    hit = np.minimum(np.minimum(np.maximum(hit, top_k), pairs), experts)
    local = experts / ranks
    factor = 1.0 + crowding * np.sqrt(2.0 * np.log(np.maximum(ranks, 1.0))) * variation / np.sqrt(local)
    factor = np.minimum(factor, np.maximum(1.0, ranks * np.minimum(local, top_k) / top_k))
    distinct: Real = np.minimum(np.maximum(hit / ranks * np.sqrt(factor), 1.0), local)
    return Routing(distinct, pairs / ranks * factor)


def spread(tokens: Real, experts: Real, top_k: Real, ranks: Real, *, exponent: Real, crowding: Real) -> Routing:
    """Tokens over experts by one number: `exponent` 0 gives each the same, NaN draws at random, else a power law."""
    where = (tokens, experts, top_k, ranks)
    law = np.where(np.nan_to_num(np.asarray(exponent)) > 0, exponent, 1.1)
    options = (balanced(*where), uniform(*where), power_law(*where, exponent=law, crowding=crowding))
    choice = np.where(np.isnan(exponent), 1, np.where(np.asarray(exponent) > 0, 2, 0))

    def chosen(name: str) -> Real:
        columns = np.broadcast_arrays(choice, *(getattr(o, name) for o in options))
        return np.choose(columns[0], columns[1:])

    return Routing(chosen("distinct"), chosen("rows"))
