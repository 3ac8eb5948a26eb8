"""Speculative decoding: a cheap draft of k tokens, verified by one pass of the model over k + 1."""

from __future__ import annotations

import numpy as np

from chipwise.errors import UsageError
from chipwise.units import Real
from chipwise.values import dataclass
from chipwise.workload.graph import Graph
from chipwise.workload.step import Segment, Step, decode

LOOKED_UP = "looked up"
"""Instead of the words of an acceptance: it is not known before the model is."""


@dataclass(frozen=True, slots=True)
class Speculation:
    """`draft_tokens` guessed per pass, each right with probability `acceptance` given that all before it are.

    Acceptance depends on model, draft and text: the user's own, or as `published` of it in words. Raises `UsageError`
    for values that cannot be.
    """

    draft_tokens: int
    acceptance: float
    published: str = ""

    def __post_init__(self) -> None:
        if not 1 <= self.draft_tokens <= 64:
            raise UsageError(f"{self.draft_tokens} draft tokens", "1 to 64")
        if not 0 <= self.acceptance <= 1:
            raise UsageError(f"acceptance {self.acceptance:g} is no probability", "0 to 1")

    @property
    def tokens_per_pass(self) -> float:
        """Mean tokens that a verification yields, the model's own one included."""
        return float(expected_tokens(self.acceptance, self.draft_tokens))


def expected_tokens(acceptance: Real, draft_tokens: Real) -> Real:
    """(1 - a^(k + 1)) / (1 - a): the accepted prefix and one token of the model itself.

    Source: Leviathan et al., "Fast Inference from Transformers via Speculative Decoding", 2023, equation 1.
    """
    a, k = np.asarray(acceptance, dtype=float), np.asarray(draft_tokens, dtype=float)
    certain = a >= 1.0
    safe = np.where(certain, 0.0, a)
    tokens: Real = np.where(certain, k + 1.0, (1.0 - safe ** (k + 1.0)) / (1.0 - safe))
    return tokens


def decoding(batch: Real, context: Real, sharers: Real, draft_tokens: int = 0) -> Step:
    """A pass in which `batch` sequences decode. Those that share one prompt (beams, answers to one question) share a
    read of it like queries of one sequence: kernels work on them side by side, and the cache of the chip holds what
    the first has read. What they wrote themselves is taken to be short."""
    if draft_tokens or np.any(np.asarray(sharers) > 1.0):
        return verification(batch / sharers, context, sharers * (draft_tokens + 1.0) - 1.0)
    return decode(batch, context)


def verification(batch: Real, context: Real, draft_tokens: Real) -> Step:
    """The model's pass over the k guessed tokens and the one before them."""
    q = draft_tokens + 1.0
    return Step((Segment(batch, q, context + q, guessed=True),))


def draft_graph(graph: Graph) -> Graph:
    """The model's own multi-token-prediction module as a network: its layers between the shared embedding and
    head. Raises `UsageError` for a model without one."""
    module = graph.extra("mtp")
    if module is None:
        raise UsageError(f"{graph.model.name} has no module for multi-token prediction", "give a draft model")
    return graph.holding(module.blocks)
