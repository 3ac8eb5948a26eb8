"""What one pass through the network is asked to do."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from chipwise.units import Real

__all__ = ["Segment", "Step", "decode", "is_decoding", "prefill"]


@dataclass(frozen=True, slots=True)
class Segment:
    """`batch` sequences with `q` new tokens each, whose last one sees `kv` tokens in all. `guessed`: they are guesses
    to be verified, which decode together."""

    batch: Real
    q: Real
    kv: Real
    guessed: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One forward pass of one replica: decoding sequences and prompts may share it."""

    segments: tuple[Segment, ...]

    @property
    def tokens(self) -> Real:
        """New tokens in all."""
        total: Real = 0.0
        for s in self.segments:
            total = total + s.batch * s.q
        return total

    @property
    def sequences(self) -> Real:
        """Sequences in all: rows that need logits."""
        total: Real = 0.0
        for s in self.segments:
            total = total + s.batch
        return total

    @property
    def halved(self) -> Step:
        """Half of the sequences of every segment."""
        return Step(tuple(replace(s, batch=s.batch / 2.0) for s in self.segments))

    def __add__(self, other: Step) -> Step:
        """Both in one pass."""
        return Step(self.segments + other.segments)


def decode(batch: Real, context: Real) -> Step:
    """One new token for each of `batch` sequences that hold `context` tokens already."""
    return Step((Segment(batch, 1.0, context + 1.0),))


def prefill(batch: Real, tokens: Real, cached: Real = 0.0) -> Step:
    """`tokens` new tokens for each of `batch` sequences, `cached` of them known before."""
    return Step((Segment(batch, tokens, tokens + cached),))


def is_decoding(segment: Segment) -> bool:
    """Whether every sequence of a segment brings one new token, or guesses of some: runtimes have other kernels for
    it than for prompts."""
    return segment.guessed or bool(np.all(np.asarray(segment.q) == 1.0))
