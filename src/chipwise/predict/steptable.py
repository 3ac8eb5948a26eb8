"""The seconds of any one pass of a deployment, from three small tables: what a simulation asks a million times.

A pass is four numbers: B sequences decode and hold S tokens together, q tokens of prompts are computed, and these
attend to W pairs of a token and one before it (a chunk of c tokens after h known ones has c (h + c / 2)). Then

    t = decode[B, S / B] + added(B, q) + seen[q, W / q]
    added = rows[B + q] - rows[B] + rest[B, q]

where the runtime computes prompts beside decoding sequences; where prompts have passes of their own, or nothing
decodes, `added` is `rows[q]`: a pass of that many tokens of one prompt. Products work on all tokens of a pass together,
in tiles, so that what a prompt adds has its steps where B + q crosses one; what is left besides, `rest`, is smooth.
`decode` is linear between contexts, as attention is. `seen` is what it adds to a prompt in one piece that tokens before
it are known, or takes off where it is many short prompts.

Legend: B batches, C contexts, Q chunk sizes, R sizes of a pass.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from functools import cached_property
from math import inf
from typing import NamedTuple

import numpy as np

from chipwise.predict.passes import BATCHES
from chipwise.units import Array, Real
from chipwise.values import dataclass
from chipwise.workload.step import Step, abreast, decode, prefill

TILE = 128.0
"""rows: of the tiles that matrix units of all vendors work on at most, beyond each of which a pass takes longer by a
step. Chosen: the largest of the usual tiles; moves at which sizes of a prompt a pass is priced."""
_STEPS: Array = TILE * np.arange(1.0, 9.0)
"""tokens: the first eight multiples of a tile. Exact: where a step of a pass is told from what lies between."""
CONTEXTS: Array = np.array(
    [1.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0, 32768.0, 65536.0, 131072.0, 1048576.0]
)
"""tokens: of context at which decoding is priced. Chosen: octaves, wider where times are straight lines; moves
interpolated passes between them."""
BESIDE: Array = np.array([1.0, 8.0, 64.0, 256.0, 1024.0, 4096.0])
"""sequences: decoding ones beside which prompts are priced. Chosen: what a prompt adds besides its rows changes slowly
with them; moves interpolated passes between them."""
CHUNKS: Array = np.union1d(
    8.0 * np.exp2(np.arange(0.0, 14.5, 0.5)[np.r_[0:9:2, 9:29]]).round(0), np.concatenate([_STEPS, _STEPS + 1.0])
)
"""tokens: of prompts in a pass, half octaves and both sides of the first tiles. Chosen: fine where a tile more or
less tells; moves interpolated passes between them."""
ROWS: Array = np.union1d(np.arange(1.0, CHUNKS[0]), CHUNKS)
"""tokens: of a pass of one prompt that is priced. Exact: the sizes of chunks, and each below the least of them."""
SHORT: Array = np.array([1 / 64, 1 / 16, 1 / 4, 1.0])
"""ratio: length of one prompt over all prompt tokens of a pass, where they are several prompts. Chosen: attention
alone depends on it; moves interpolated passes between them."""
KNOWN: Array = np.array([0.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0])
"""tokens: known before a chunk. Chosen: times of attention are straight lines between; moves interpolated passes
between them."""
_USUAL = 1024.0
"""tokens: of context beside which prompts are priced. Chosen: what they add hardly depends on it; moves passes of
prompts beside long contexts a little."""
_SEEN: Array = np.concatenate([SHORT - 1.0, KNOWN[1:]])
"""one axis: of short prompts (below 0) and of what is known before. Exact: both grids, one behind the other."""
_LEAST = 1e-9
"""seconds: no prompt is free. Exact: guards ratios, below any time."""


class Line(NamedTuple):
    """A decode pass: its `seconds`, what each token more of context adds to them (`slope_s`), and the context at which
    that changes (`until`)."""

    seconds: float
    slope_s: float
    until: float


@dataclass(frozen=True, eq=False)
class StepTable:
    """Seconds of passes of one engine of a deployment: `decode` [B, C], `rows` [R], `rest` [6, Q], `seen` [Q, 9].

    `alone`: the runtime computes prompts in passes of their own. Equal questions get equal answers, one by one or as
    arrays.
    """

    decode: Array
    rows: Array
    rest: Array
    seen: Array
    alone: bool

    @classmethod
    def of(cls, seconds: Callable[[Step], Real], *, alone: bool) -> StepTable:
        """The tables of a deployment whose passes `seconds` prices, columns [1, n] at a time."""
        shape = (len(BATCHES), len(CONTEXTS))
        batch, context = (np.ravel(np.broadcast_to(v, shape))[None] for v in (BATCHES[:, None], CONTEXTS[None]))
        side, chunk = (
            np.ravel(np.broadcast_to(v, (len(BESIDE), len(CHUNKS))))[None] for v in (BESIDE[:, None], CHUNKS[None])
        )
        size, part = (
            np.ravel(np.broadcast_to(v, (len(CHUNKS), len(SHORT))))[None] for v in (CHUNKS[:, None], SHORT[None])
        )
        long, known = (
            np.ravel(np.broadcast_to(v, (len(CHUNKS), len(KNOWN) - 1)))[None]
            for v in (CHUNKS[:, None], KNOWN[None, 1:])
        )
        each = np.maximum(size * part, 1.0)
        steps = [
            decode(batch, context),
            prefill(size / each, each),
            prefill(1.0 + 0.0 * long, long, known),
            prefill(1.0, ROWS[None]),
        ]
        if not alone:
            steps += [
                decode(side, _USUAL) + prefill(1.0, chunk),
                decode(BESIDE[None], _USUAL),
                prefill(1.0, side + chunk),
            ]
        found = np.broadcast_to(np.asarray(seconds(abreast(steps))), (1, sum(_width(s) for s in steps)))[0]
        ends = np.cumsum([_width(s) for s in steps])
        plain, short, after, rows, *mixed = np.split(found, ends[:-1])
        table = _ordered(plain.reshape(shape))
        pieces = np.minimum.accumulate(short.reshape(len(CHUNKS), -1)[::-1], axis=0)[::-1]
        # a pass may be padded
        rows = np.minimum.accumulate(rows[::-1])[::-1]
        one = pieces[:, -1]
        further = np.maximum.accumulate(after.reshape(len(CHUNKS), -1), axis=1)
        seen = np.concatenate([pieces - one[:, None], np.maximum(further - one[:, None], 0.0)], axis=1)
        rest = np.zeros((len(BESIDE), len(CHUNKS)))
        if not alone:
            together, without, whole = mixed
            riding = together.reshape(rest.shape) - without[:, None]
            # a larger chunk beside the same sequences takes no less, and none more than in a pass of its own
            riding = np.minimum(np.maximum.accumulate(np.maximum(riding, _LEAST), axis=1), one)
            rest = riding - (whole.reshape(rest.shape) - rows[np.searchsorted(ROWS, BESIDE)][:, None])
        return cls(table, rows, rest, seen, alone)

    def scaled(self, factor: float) -> StepTable:
        """The same where every pass takes `factor` times as long."""
        decode, rows, rest, seen = (table * factor for table in (self.decode, self.rows, self.rest, self.seen))
        return StepTable(decode, rows, rest, seen, self.alone)

    def seconds(self, decode: Real, context: Real = 0.0, prompt: Real = 0.0, pairs: Real | None = None) -> Real:
        """Seconds of passes: `decode` sequences that hold `context` tokens each, and `prompt` tokens of prompts with
        `pairs` of tokens that see each other (None: one prompt, of which nothing is known before). Where prompts have
        passes of their own, that of the prompt and that of the sequences, one after the other. Numbers or arrays that
        broadcast; 0 for no work. Raises `ValueError` for numbers below 0."""
        if not {type(decode), type(context), type(prompt)} - _PLAIN and not isinstance(pairs, np.ndarray):
            return self._one(float(decode), float(context), float(prompt), None if pairs is None else float(pairs))
        batch, held, tokens = np.broadcast_arrays(*(np.asarray(v, dtype=float) for v in (decode, context, prompt)))
        work = tokens * tokens / 2.0 if pairs is None else np.asarray(pairs, dtype=float)
        if min(v.min(initial=0.0) for v in (batch, held, tokens, work)) < 0:
            raise ValueError("sequences, tokens and pairs of a pass are not below 0")
        total = np.where(batch > 0, _bilinear(self.decode, BATCHES, CONTEXTS, np.maximum(batch, 1.0), held), 0.0)
        if not tokens.any():
            return total
        added = self._added(np.zeros_like(batch) if self.alone else batch, tokens)
        many = np.maximum(tokens, 1.0)
        known = work / many - many / 2.0
        place = np.where(known < 0, 2.0 * known / many, known)
        seen = _bilinear(self.seen, CHUNKS, _SEEN, np.maximum(tokens, CHUNKS[0]), np.maximum(place, _SEEN[0]))
        return np.where(tokens > 0, total + np.maximum(added + seen, _LEAST), total)

    def _one(self, batch: float, context: float, prompt: float, pairs: float | None) -> float:
        if min(batch, context, prompt, pairs or 0.0) < 0:
            raise ValueError("sequences, tokens and pairs of a pass are not below 0")
        total = self.line(batch, context).seconds if batch > 0 else 0.0
        if prompt > 0:
            work = prompt * prompt / 2.0 if pairs is None else pairs
            total += self.prompts(0.0 if self.alone else batch, prompt, work)
        return total

    def line(self, batch: float, context: float) -> Line:
        """A decode pass of `batch` sequences that hold `context` tokens each."""
        row = self._rows.get(batch)
        if row is None:
            row = self._rows[batch] = self._row(batch)
        i = bisect_right(_CONTEXTS, context) - 1
        i = 0 if i < 0 else i if i < _LAST else _LAST
        left, right = _CONTEXTS[i], _CONTEXTS[i + 1]
        slope = (row[i + 1] - row[i]) / (right - left)
        return Line(row[i] + slope * (context - left), slope, right if i < _LAST else inf)

    def prompts(self, batch: float, tokens: float, pairs: float) -> float:
        """What `tokens` of prompts with so many pairs add to a pass of `batch` sequences."""
        added = self._chunks.get((batch, tokens))
        if added is None:
            added = self._added_one(float(batch), float(tokens))
            if len(self._chunks) < _KEPT:
                self._chunks[batch, tokens] = added
        known = pairs / tokens - tokens / 2.0
        if -0.5 < known < 0.5:
            return added
        return max(added + self._known(tokens, known), _LEAST)

    def _added(self, batch: Array, tokens: Array) -> Array:
        """What `tokens` of one prompt add to passes of `batch` sequences; arrays of one shape."""
        size, beside = np.maximum(tokens, CHUNKS[0]), np.maximum(batch, BESIDE[0])
        more = _linear(self.rows, ROWS, beside + size) - _linear(self.rows, ROWS, beside)
        riding = np.maximum(more + _bilinear(self.rest, BESIDE, CHUNKS, beside, size), _LEAST)
        return np.where(batch > 0, riding, _linear(self.rows, ROWS, size))

    def _added_one(self, batch: float, tokens: float) -> float:
        """`_added` of one pass, by the same sums: most of a simulation's time, were it asked as arrays."""
        rows, rest = self._lists
        size = max(tokens, _CHUNKS[0])
        if batch <= 0:
            return _on(rows, _ROWS, size)
        beside = max(batch, _BESIDE[0])
        i, j = _place(_BESIDE, beside), _place(_CHUNKS, size)
        share = (beside - _BESIDE[i]) / (_BESIDE[i + 1] - _BESIDE[i])
        part = (size - _CHUNKS[j]) / (_CHUNKS[j + 1] - _CHUNKS[j])
        low, high = rest[i], rest[i + 1]
        below = low[j] * (1.0 - part) + low[j + 1] * part
        above = high[j] * (1.0 - part) + high[j + 1] * part
        more = _on(rows, _ROWS, beside + size) - _on(rows, _ROWS, beside)
        return max(more + (below + (above - below) * share), _LEAST)

    @cached_property
    def _lists(self) -> tuple[list[float], list[list[float]]]:
        return self.rows.tolist(), self.rest.tolist()

    def _known(self, tokens: float, known: float) -> float:
        """`seen` of a chunk, as `_bilinear` reads it."""
        place = max(2.0 * known / tokens, _PLACES[0]) if known < 0 else known
        size = max(tokens, _CHUNKS[0])
        i, j = _place(_CHUNKS, size), _place(_PLACES, place)
        share = (size - _CHUNKS[i]) / (_CHUNKS[i + 1] - _CHUNKS[i])
        part = (place - _PLACES[j]) / (_PLACES[j + 1] - _PLACES[j])
        low, high = self._seen[i], self._seen[i + 1]
        below = low[j] + (low[j + 1] - low[j]) * part
        above = high[j] + (high[j + 1] - high[j]) * part
        return below + (above - below) * share

    @cached_property
    def _seen(self) -> list[list[float]]:
        found: list[list[float]] = self.seen.tolist()
        return found

    @cached_property
    def _rows(self) -> dict[float, list[float]]:
        return {}

    @cached_property
    def _chunks(self) -> dict[tuple[float, float], float]:
        return {}

    def _row(self, batch: float) -> list[float]:
        """The decode passes of a batch, by context."""
        where = max(float(batch), 1.0)
        i = min(int(np.searchsorted(BATCHES, where, side="right")), len(BATCHES) - 1) - 1
        share = (where - BATCHES[i]) / (BATCHES[i + 1] - BATCHES[i])
        row: list[float] = (self.decode[i] * (1.0 - share) + self.decode[i + 1] * share).tolist()
        return row


_CONTEXTS: list[float] = CONTEXTS.tolist()
_LAST = len(_CONTEXTS) - 2
_CHUNKS: list[float] = CHUNKS.tolist()
_BESIDE: list[float] = BESIDE.tolist()
_ROWS: list[float] = ROWS.tolist()
_PLACES: list[float] = _SEEN.tolist()
_PLAIN = frozenset({int, float})
_KEPT = 200_000  # prices of chunks that are remembered


def _width(step: Step) -> int:
    return max(np.shape(v)[-1] if np.ndim(v) else 1 for s in step.segments for v in (s.batch, s.q, s.kv))


def _ordered(table: Array) -> Array:
    """Decode passes by what an engine can always do: split a batch, then pad it; more context takes no less."""
    column = BATCHES[:, None]
    table = np.minimum.accumulate(table / column, axis=0) * column
    table = np.minimum.accumulate(table[::-1], axis=0)[::-1]
    return np.maximum.accumulate(table, axis=1)


def _place(knots: list[float], where: float) -> int:
    """The knot below a place at or above the first, the last but one beyond the end."""
    return min(bisect_right(knots, where), len(knots) - 1) - 1


def _on(table: list[float], knots: list[float], where: float) -> float:
    """`_linear` of one place at or above the first knot."""
    i = _place(knots, where)
    share = (where - knots[i]) / (knots[i + 1] - knots[i])
    return table[i] * (1.0 - share) + table[i + 1] * share


def _linear(table: Array, knots: Array, where: Array) -> Array:
    """Values of a table between its knots, beyond them on the last line."""
    i = np.clip(np.searchsorted(knots, where, side="right") - 1, 0, len(knots) - 2)
    share = (where - knots[i]) / (knots[i + 1] - knots[i])
    return np.asarray(table.take(i) * (1.0 - share) + table.take(i + 1) * share)


def _bilinear(table: Array, rows: Array, columns: Array, row: Array, column: Array) -> Array:
    """Values of a table between its knots, linear in both, beyond them on the last line."""
    i = np.clip(np.searchsorted(rows, row, side="right") - 1, 0, len(rows) - 2)
    j = np.clip(np.searchsorted(columns, column, side="right") - 1, 0, len(columns) - 2)
    share = (row - rows[i]) / (rows[i + 1] - rows[i])
    part = (column - columns[j]) / (columns[j + 1] - columns[j])
    flat, width = table.reshape(-1), len(columns)
    at = i * width + j
    below = flat.take(at) * (1.0 - part) + flat.take(at + 1) * part
    above = flat.take(at + width) * (1.0 - part) + flat.take(at + width + 1) * part
    return np.asarray(below + (above - below) * share)
