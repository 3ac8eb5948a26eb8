"""What one pass through the network is asked to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from chipwise.units import Real
from chipwise.values import dataclass

Columns = slice | NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Segment:
    """`batch` sequences with `q` new tokens each, whose last one sees `kv` tokens in all. `guessed`: they are guesses
    to be verified, which decode together."""

    batch: Real
    q: Real
    kv: Real
    guessed: bool = False


@dataclass(frozen=True, slots=True)
class Rows:
    """What of a pass all operators see but those that work on sequences: its tokens, and its sequences."""

    tokens: Real
    sequences: Real
    segments: tuple[Segment, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One forward pass of one replica: decoding sequences and prompts may share it.

    Of several passes in columns (`abreast`) `columns` says in which of them each segment is, None: in all.
    """

    segments: tuple[Segment, ...]
    columns: tuple[Columns, ...] | None = None

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
    def rows(self) -> Step:
        """Tokens and sequences alone, for operators that ask for nothing else."""
        return cast("Step", Rows(self.tokens, self.sequences))

    @property
    def decodes(self) -> bool | NDArray[np.bool_]:
        """Whether all of its sequences decode, of several passes by column."""
        if self.columns is None:
            return all(is_decoding(s) for s in self.segments)
        prompts = sum((np.asarray(s.batch) for s in self.segments if not is_decoding(s)), np.zeros(()))
        return np.asarray(prompts <= 0.0)

    def by_segment(self) -> Iterator[tuple[Step, Columns | None]]:
        """Passes of one segment each, and the columns that they are of; None: of all."""
        for segment, columns in zip(self.segments, self.columns or (None,) * len(self.segments), strict=True):
            if columns is not None:
                batch, q, kv = (_at(getattr(segment, name), columns) for name in ("batch", "q", "kv"))
                segment = Segment(batch, q, kv, segment.guessed)
            yield Step((segment,)), columns

    def scaled(self, share: Real) -> Step:
        """A share of the sequences of every segment."""
        return replace(self, segments=tuple(replace(s, batch=s.batch * share) for s in self.segments))

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


def abreast(steps: Sequence[Step]) -> Step:
    """Passes side by side in the last axis, so that an operator is asked about once: segments of one kind are one, with
    no sequences (batch 0) in the columns of passes that lack it. Those may be several side by side themselves."""
    shapes = [
        np.broadcast_shapes((1, 1), *(np.shape(v) for s in step.segments for v in (s.batch, s.q, s.kv)))
        for step in steps
    ]
    rows, starts = max(shape[0] for shape in shapes), np.cumsum([0, *(shape[1] for shape in shapes)])
    kinds: dict[tuple[bool, bool, int], list[tuple[NDArray[np.intp], Segment]]] = {}
    for place, step in enumerate(steps):
        seen: Counter[tuple[bool, bool]] = Counter()
        for part, within in step.by_segment():
            (segment,) = part.segments
            kind = is_decoding(segment), segment.guessed
            mine = np.arange(starts[place], starts[place + 1])
            mine = mine if within is None else mine[within]
            kinds.setdefault((*kind, seen[kind]), []).append((mine, segment))
            seen[kind] += 1

    def joined(of_kind: Sequence[tuple[NDArray[np.intp], Segment]], name: str, rest: float) -> Real:
        values = [getattr(s, name) for _, s in of_kind]
        same = all(v is values[0] or (np.size(v) == 1 and np.all(v == values[0])) for v in values)
        if name != "batch" and same:
            one: Real = values[0]
            return one
        found = np.full((rows, starts[-1]), rest)
        for (mine, _), value in zip(of_kind, values, strict=True):
            found[:, mine] = value
        return found

    segments: list[Segment] = []
    columns: list[Columns] = []
    for (_, guessed, _), of_kind in kinds.items():
        batch, q, kv = (joined(of_kind, *each) for each in (("batch", 0.0), ("q", 1.0), ("kv", 1.0)))
        segments.append(Segment(batch, q, kv, guessed))
        places = np.concatenate([mine for mine, _ in of_kind])
        close = len(places) == places[-1] - places[0] + 1
        columns.append(slice(int(places[0]), int(places[-1]) + 1) if close else places)
    return Step(tuple(segments), tuple(columns))


def _at(value: Real, columns: Columns) -> Real:
    """Some columns of a number or array, all of it where it has one."""
    whole = np.asarray(value)
    return whole[..., columns] if whole.ndim and whole.shape[-1] > 1 else value
