"""Passes of serving engines, tabulated over the decoding batch: what the service model interpolates.

An engine is one replica of a deployment under one mix of requests. Tabulated are passes that decode, what prompts
add to such a pass, and passes of prompts alone.

Legend: N engines, G batches, A coarse batches, P names (parts of a pass, or resources).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog.runtime_spec import Policies
from chipwise.cost.cost import RESOURCES, Cost
from chipwise.numeric import take
from chipwise.predict.alike import Alike, Repeated
from chipwise.predict.parts import PARTS, STARTS, quantity
from chipwise.predict.speculative import Speculation, decoding
from chipwise.units import Array, Real
from chipwise.values import dataclass
from chipwise.workload.step import Step, abreast, decode, prefill
from chipwise.workload.workload import Workload

PartsOf = Callable[[Step], Iterable[tuple[str, Cost | Repeated]]]


def _batches(largest: int) -> Array:
    """1, 2, 3 ... 8, 10, 12, 14, 16, 20 ... `largest`: whole numbers, four to an octave from 4 on."""
    grid, step = [1.0, 2.0, 3.0], 1
    while grid[-1] < largest:
        grid += [float(step * i) for i in (4, 5, 6, 7)]
        step *= 2
    return np.array([b for b in grid if b <= largest])


BATCHES: Array = _batches(4096)
"""Decoding sequences of one micro-batch of one rank: four to an octave, between which a pass is close to linear."""
_COARSE: Array = np.array([1.0, 8.0, 64.0, 512.0, 4096.0])
"""sequences: batches at which what prompts add is priced. Chosen: it changes slowly with the batch, so one in three
octaves will do; moves what prompts add at batches between."""
_STEEPEST = 1e-12
"""seconds: keeps ratios of passes that take no time finite. Exact: guards a division, below any time."""


@dataclass(frozen=True)
class Requests:
    """What one mean request asks of an engine; columns [N] or numbers.

    | field | unit | meaning |
    |---|---|---|
    | prompt, output | tokens | mean lengths |
    | new | tokens | of its prompt that are computed (not in the prefix cache) |
    | long, long_new | tokens | a prompt that attends like the mean square, and what of it is computed |
    | context | tokens | held on average while it decodes |
    | held, common | tokens | of cache that it takes up while it runs; and those that begin every prompt, kept once |
    | budget | tokens | that one pass takes |
    | spread | ratio | 1 + (coefficient of variation of prompts)^2 |
    | look | passes | that decode, from one look for new requests to the next |
    | gather | passes | that a first prompt waits for others to fill a pass |
    | static | 0 or 1 | whether a batch starts together and ends before the next |
    | sharers | sequences | that run together on one prompt, which is read for them once |
    """

    prompt: Real
    output: Real
    new: Real
    long: Real
    long_new: Real
    context: Real
    held: Real
    common: Real
    budget: Real
    spread: Real
    look: Real = 1.0
    gather: Real = 0.0
    static: Real = 0.0
    sharers: Real = 1.0

    @classmethod
    def of(cls, workload: Workload, policies: Policies) -> Requests:
        """The mean request of a workload under the budget of a runtime."""
        lengths, prefix = workload.served, workload.prefix
        long = lengths.attended_prompt
        new, long_new = lengths.prompt_tokens, long
        if prefix is not None:
            new, long_new = prefix.new_tokens(new), prefix.new_tokens(long)
        held = max(lengths.held(policies.kv_reserved_share), workload.room_tokens)
        own = held if prefix is None else prefix.own_tokens(held, lengths.prompt_tokens)
        return cls(
            lengths.prompt_tokens,
            lengths.output_tokens,
            new,
            long,
            long_new,
            lengths.decoding_context,
            own,
            0.0 if prefix is None else prefix.common(lengths.prompt_tokens),
            float(policies.max_batched_tokens),
            1.0 + lengths.prompt_cv**2,
            float(policies.look_passes),
            float(policies.gather_passes),
            float(policies.batch == "static"),
            1.0 if prefix is None else prefix.sharers,
        )

    @classmethod
    def stack(cls, many: Sequence[Requests]) -> Requests:
        """Columns of several."""
        return cls(*(np.array([getattr(r, f.name) for r in many], dtype=float) for f in fields(cls)))

    def take(self, some: NDArray[np.intp]) -> Requests:
        """Some of the columns; numbers stay."""
        return take(self, some)

    @property
    def decodes(self) -> Real:
        """Passes after the first token: n_o - 1."""
        return np.asarray(self.output) - 1.0

    @property
    def chunk(self) -> Real:
        """Tokens of a prompt that one pass takes."""
        return np.minimum(self.new, self.budget)


@dataclass(frozen=True)
class Passes:
    """Seconds of passes, and of what they ask. `decode_s` [N, G]; `added_s` [N, G, 2] by one chunk of a prompt, and
    by prompts that fill the budget; `prompt_s` [N, 3] of prompts alone: one chunk, a full budget, and one chunk
    while the other attention replicas have none. `starts_s` [N] is what the host takes to start the kernels of a pass
    with prompts: no such pass is shorter, and it is no part of the others.

    Monotone by what an engine can always do: pad a batch (a smaller one is no slower) or split it (twice the
    batch takes no more than twice the time). A full budget takes no less than a chunk, and no more than its
    chunks in passes of their own.
    """

    decode_s: Array
    added_s: Array
    prompt_s: Array
    starts_s: Array

    def at(self, batch: Array, row: NDArray[np.intp]) -> tuple[Array, Array, Array]:
        """Decode pass, and what a chunk and a full budget add to one, at `batch` of the engines `row`; linear between
        the grid's points, ends beyond it."""
        low, _, share = _between(batch)
        rest, place = 1.0 - share, row * len(BATCHES) + low
        decode_s, added_s = self.decode_s.reshape(-1), self.added_s.reshape(-1)

        def mixed(table: Array, place: NDArray[np.intp], step: int) -> Array:
            value: Array = table.take(place) * rest + table.take(place + step) * share
            return value

        both = 2 * place
        return mixed(decode_s, place, 1), mixed(added_s, both, 2), mixed(added_s, both + 1, 2)


@dataclass(frozen=True)
class PassTable:
    """Passes by name: `decode` [N, G, P], `added` [N, A, 2, P], `prompt` [N, 3, P]; see `Passes` and `tabulate`.

    `starts` [N]: seconds that the host takes to start the kernels of a pass with prompts.

    `alone`: the runtime gives prompts passes of their own, so that they add just those to decode passes. Where tokens
    are guessed a pass stands for one token that comes out: `yields` of them share a forward pass, in which a sequence
    has `guesses` tokens, the one before them included; 1 and 1 without.
    """

    names: tuple[str, ...]
    decode: Array
    added: Array
    prompt: Array
    alone: NDArray[np.bool_]
    requests: Requests
    yields: float = 1.0
    guesses: float = 1.0
    starts: Real = 0.0

    def __len__(self) -> int:
        return len(self.prompt)

    def passes(self, factors: Array | None = None) -> Passes:
        """Seconds; with `factors` [N, P] on the names."""
        f = np.ones((len(self), len(self.names))) if factors is None else factors
        decode_s = np.einsum("ngp,np->ng", self.decode, f)
        added = np.einsum("nacp,np->nac", self.added, f)
        prompt_s = np.einsum("ncp,np->nc", self.prompt, f)
        # split, then pad
        decode_s = np.minimum.accumulate(decode_s / BATCHES, axis=1) * BATCHES
        decode_s = np.minimum.accumulate(decode_s[:, ::-1], axis=1)[:, ::-1]
        low, high, share = _within(_COARSE, BATCHES)
        added_s = added[:, low] * (1.0 - share)[:, None] + added[:, high] * share[:, None]
        one = np.maximum(prompt_s[:, 0], _STEEPEST)
        many = np.broadcast_to(np.asarray(self.requests.budget / self.requests.chunk), (len(self),))
        prompt_s = np.stack([one, np.clip(prompt_s[:, 1], one, one * many), np.minimum(prompt_s[:, 2], one)], axis=-1)
        added_s = np.where(self.alone[:, None, None], prompt_s[:, None, :2], np.maximum(added_s, _STEEPEST))
        # a budget in chunks, each in a pass: what rides for nothing behind one read of the weights does so once a pass
        split = added_s[..., 0] * many[:, None] + np.where(self.alone, 0.0, many - 1.0)[:, None] * decode_s
        added_s[..., 1] = np.clip(added_s[..., 1], added_s[..., 0], split)
        # a pass with prompts may be padded too
        whole = decode_s[..., None] + added_s
        whole = np.minimum.accumulate(whole[:, ::-1], axis=1)[:, ::-1]
        added_s = np.where(self.alone[:, None, None], added_s, np.maximum(whole - decode_s[..., None], _STEEPEST))
        # in one piece each, as `Passes.at` reads them
        starts_s = np.broadcast_to(np.asarray(self.starts, dtype=float), (len(self),))
        if (entry := quantity(STARTS, "host")) in self.names:
            starts_s = starts_s * f[:, self.names.index(entry)]
        return Passes(np.ascontiguousarray(decode_s), np.ascontiguousarray(added_s), prompt_s, starts_s)

    def shares(self, batch: Array, decoding: Array, chunks: Array, full: Array) -> dict[str, Array]:
        """Seconds by name [N, K] of `decoding` (0 to 1) passes at `batch` with `chunks` single chunks and `full`
        budgets in them (0: prompts alone), not ordered as `Passes` are: parts of a whole, to be scaled to it."""
        row = np.arange(len(self))[:, None]
        low, _, share = _between(batch)
        near, _, part = _within(_COARSE, np.clip(batch, 1.0, _COARSE[-1]))
        low, near = row * len(BATCHES) + low, row * len(_COARSE) + near
        alone, rest, without, other = self.alone[:, None], 1.0 - share, 1 - part, 1.0 - decoding

        def of_name(i: int) -> Array:
            decode = self.decode[..., i].reshape(-1)
            total: Array = (decode.take(low) * rest + decode.take(low + 1) * share) * decoding
            for column, count in ((0, chunks), (1, full)):
                added, own = self.added[:, :, column, i].reshape(-1), self.prompt[:, column, i, None]
                riding = added.take(near) * without + added.take(near + 1) * part
                total = total + count * np.where(alone, own, decoding * riding + other * own)
            return total

        return {name: of_name(i) for i, name in enumerate(self.names)}

    def take(self, index: NDArray[np.intp]) -> PassTable:
        """Some of the engines."""
        size = len(self)
        columns = (np.broadcast_to(getattr(self.requests, f.name), (size,))[index] for f in fields(Requests))
        return PassTable(
            self.names,
            self.decode[index],
            self.added[index],
            self.prompt[index],
            self.alone[index],
            Requests(*columns),
            self.yields,
            self.guesses,
            np.broadcast_to(np.asarray(self.starts, dtype=float), (size,))[index],
        )

    @classmethod
    def join(cls, tables: Iterable[PassTable]) -> PassTable:
        """Engines of several tables, one after the other, all with as many guesses."""
        found = list(tables)

        def column(name: str) -> Array:
            return np.concatenate(
                [np.broadcast_to(np.asarray(getattr(t.requests, name), dtype=float), (len(t),)) for t in found]
            )

        return cls(
            found[0].names,
            decode=np.concatenate([t.decode for t in found]),
            added=np.concatenate([t.added for t in found]),
            prompt=np.concatenate([t.prompt for t in found]),
            alone=np.concatenate([t.alone for t in found]),
            requests=Requests(*(column(f.name) for f in fields(Requests))),
            yields=found[0].yields,
            guesses=found[0].guesses,
            starts=np.concatenate([np.broadcast_to(np.asarray(t.starts, float), (len(t),)) for t in found]),
        )


SHARED = ("experts", "imbalance")  # parts that all attention replicas of an engine work on together


_Kept = list[list[Array | None]]


class _Ledger:
    """Seconds of parts of passes by name, added up: [N, columns, P] of all, and [N, 1, P] of what attention replicas do
    by themselves in the first column. What is repeated is added up before it is."""

    def __init__(self, size: int, columns: int, names: Sequence[str], factors: Mapping[str, Real] | None) -> None:
        self._size, self._columns, self._names, self._factors = size, columns, names, factors
        # names apart until all is added: sums run through memory in one piece
        self._rows = self._blank()
        self._kinds: dict[tuple[int, int], tuple[Repeated, _Kept]] = {}

    def _blank(self) -> _Kept:
        return [[None] * len(self._names) for _ in range(2)]

    def add(self, part: str, cost: Cost | Repeated, *, own: bool) -> None:
        """One part more; `own`: each attention replica has it by itself."""
        alike = cost.alike if isinstance(cost, Repeated) else None
        if isinstance(cost, Repeated):
            key = id(cost.alike), id(cost.times)
            into = self._kinds.setdefault(key, (cost, self._blank()))[1]
            exposed, size = cost.once.exposed, len(cost.alike.first)
        else:
            into, exposed, size = self._rows, cost.exposed, self._size
        for resource, seconds in exposed.items():
            place, times = self._entry(part, resource, seconds, alike)
            for kept, width in zip(into, (self._columns, 1) if own else (self._columns,), strict=False):
                before = kept[place]
                if before is None:
                    before = kept[place] = np.zeros((size, width))
                before += np.asarray(times)[..., :width] if np.ndim(times) else times

    def _entry(self, part: str, resource: str, seconds: Real, alike: Alike | None) -> tuple[int, Real]:
        """Where seconds are added, and these times their factor."""
        entry = quantity(part, resource)
        if self._factors is None:
            return _PART[entry], seconds
        factor = self._factors.get(entry, 1.0)
        if alike is not None and np.ndim(factor) and len(np.asarray(factor)) > 1:
            factor = np.asarray(factor)[alike.first]
        return _RESOURCE["host" if part == "host" else resource], seconds * factor

    def sums(self) -> tuple[Array, Array]:
        """All of them, and those of single attention replicas."""
        total, own = ([np.zeros((self._size, width)) for _ in self._names] for width in (self._columns, 1))
        for repeated, kept in ((None, self._rows), *self._kinds.values()):
            for sums, of in zip((total, own), kept, strict=True):
                for place, seconds in enumerate(of):
                    if seconds is not None:
                        sums[place] += seconds if repeated is None else repeated.of(seconds)
        return np.stack(total, axis=-1), np.stack(own, axis=-1)


def tabulate(
    parts_of: PartsOf,
    size: int,
    requests: Requests,
    *,
    alone: bool,
    factors: Mapping[str, Real] | None = None,
    ranks: Real = 1.0,
    speculation: Speculation | None = None,
    draft_of: PartsOf | None = None,
    experts_of: PartsOf | None = None,
) -> PassTable:
    """Tabulate `size` engines that share a graph and every category.

    `parts_of` prices a step whose numbers are [N, G] against its own columns [N, 1]. With `factors` on parts
    (numbers or [N, 1]) the table is by resource, for plans; without (None) by part, for fits. `ranks` attention
    replicas share their experts: a prompt on one of them alone is `lone`, which `experts_of` prices (None: `parts_of`).

    With `speculation` a decode pass verifies k guessed tokens after k passes of the draft (`draft_of`, free
    where there is none: lookup in the prompt), and the table holds its share of one token that comes out.
    """
    names = PARTS if factors is None else RESOURCES

    def fold(
        parts: Iterable[tuple[str, Cost | Repeated]], columns: int, *, experts: bool = False
    ) -> tuple[Array, Array]:
        """Seconds of all columns, with `experts` of what attention replicas share alone; and of what each does by
        itself in the first column, where there are several."""
        ledger = _Ledger(size, columns, names, factors)
        for part, cost in parts:
            if part == STARTS and columns > 1 and isinstance(cost, Cost):
                # of a prompt alone, in the first column
                first_s = np.broadcast_to(cost.hidden["host"], (size, columns))[:, 0]
                more = 1.0 if factors is None else factors.get(quantity(STARTS, "host"), 1.0)
                starts.append(first_s * np.reshape(more, -1))
            shared = part.startswith(SHARED)
            if not experts or shared:
                ledger.add(part, cost, own=several and not shared)
        return ledger.sums()

    def column(value: Real) -> Real:
        return np.asarray(value, dtype=float).reshape(-1, 1)

    starts: list[Array] = []
    r, b = requests, BATCHES[None, :]
    context, long_new, cached = column(r.context), column(r.long_new), column(np.subtract(r.long, r.long_new))
    chunk, budget = column(r.chunk), column(r.budget)

    def prompts(tokens: Real) -> Step:
        return prefill(tokens / long_new, long_new, cached)

    def decoded(batch: Real) -> Step:
        return decoding(batch, context, column(r.sharers), speculation.draft_tokens if speculation else 0)

    # both sizes of prompts side by side, and all passes: every operator is asked about once
    both = bool(np.any(budget > chunk * (1.0 + 1e-9)))
    tokens = np.concatenate(np.broadcast_arrays(chunk, budget), axis=1) if both else np.atleast_2d(chunk)
    kinds = tokens.shape[1]
    spread = column(ranks)
    several = bool(np.any(spread > 1.0))
    steps = [prompts(tokens)]
    if not alone:
        steps.append(decoded(np.tile(_COARSE, kinds)[None, :]) + prompts(np.repeat(tokens, len(_COARSE), axis=1)))
    last = kinds + (0 if alone else kinds * len(_COARSE))
    if several and not alone:  # next to no prompt
        steps.append(decoded(_COARSE[None, :]) + prompts(_STEEPEST * tokens[:, :1]))
    after = last + (len(_COARSE) if several and not alone else 0)
    table, apart = fold(parts_of(abreast([*steps, decoded(b)])), after + len(BATCHES))
    own, plain = table[:, :kinds], table[:, after:]
    lone = own[:, :1]
    if several:  # its size differs from engine to engine: apart from the others, which rows that are alike share
        lone = apart + fold((experts_of or parts_of)(prompts(chunk / spread)), 1, experts=True)[0]
    if alone:
        added = np.broadcast_to(own[:, :, None], (size, kinds, len(_COARSE), len(names)))
    else:
        mixed = table[:, kinds:last].reshape(size, kinds, len(_COARSE), len(names))
        without = plain[:, np.searchsorted(BATCHES, _COARSE)]
        if several:
            # decoding alone exchanges tokens of experts by kernels of its own, which are slower for many: a prompt
            # adds what it takes itself, not what the other kernels save
            beside = table[:, last:after]
            cheaper = beside.sum(axis=-1) < without.sum(axis=-1)
            without = np.where(cheaper[..., None], beside, without)
        added = mixed - without[:, None]
    if speculation:
        if draft_of is not None:
            plain = plain + speculation.draft_tokens * fold(draft_of(decode(b, context)), len(BATCHES))[0]
        plain = plain / speculation.tokens_per_pass
    return PassTable(
        tuple(names),
        plain,
        np.stack([added[:, 0], added[:, -1]], axis=2),
        np.concatenate([own[:, :1], own[:, -1:], lone], axis=1),
        np.full(size, alone),
        requests,
        speculation.tokens_per_pass if speculation else 1.0,
        speculation.draft_tokens + 1.0 if speculation else 1.0,
        np.sum(starts, axis=0) if starts else 0.0,
    )


_PART = {name: i for i, name in enumerate(PARTS)}
_RESOURCE: dict[str, int] = {name: i for i, name in enumerate(RESOURCES)}


def _within(grid: Array, where: Array) -> tuple[NDArray[np.intp], NDArray[np.intp], Array]:
    """Neighbours on a grid, and how far towards the upper one."""
    left = np.clip(np.searchsorted(grid, where, side="right") - 1, 0, len(grid) - 2)
    return left, left + 1, (where - grid[left]) / (grid[left + 1] - grid[left])


_LOWER = _within(BATCHES, np.arange(BATCHES[-1] + 1.0))[0]
"""index: the batch of the grid at or below every whole number. Exact: from the grid."""


def _between(batch: Array) -> tuple[NDArray[np.intp], NDArray[np.intp], Array]:
    inside = np.clip(batch, 1.0, BATCHES[-1])
    low = _LOWER[np.fmax(inside, 1.0).astype(np.intp)]  # one that is not a number has no place, but stays none
    high = low + 1
    return low, high, (inside - BATCHES[low]) / (BATCHES[high] - BATCHES[low])
