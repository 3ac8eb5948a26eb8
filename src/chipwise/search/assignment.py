"""Which demand runs on which supply, hour by hour: a mixed-integer programme over plain arrays, solved by HiGHS.

Numbers of units are chosen, a unit being what one candidate adds: a replica on machines that one has, the machines that
are billed for one, tokens of an API, a run of training. Demands of higher priority are placed first, as many as can be;
of all ways to place these the cheapest is taken. Demands that are steps of one chain are placed together or not at all,
by candidates that keep its target together.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.errors import MissingExtraError
from chipwise.units import Array
from chipwise.values import dataclass

HOUR_S = 3600.0
"""seconds: of an hour. Exact: by definition."""
TIDY = 1e-4
"""$ per chip and hour: what is counted for a chip that costs nothing. Chosen: far below the price of any chip, so that
of ways that cost the same the one with fewer chips is taken; moves nothing else."""
APART = 1.5
"""chips: what a candidate on a shared card counts as for that. Chosen: above the chip that a demand alone takes, so
that demands share a card only where it saves; moves nothing else."""
NEARLY = 1e-6
"""ratio: of a need that may be missed by rounding. Chosen: the tolerance of the solver; moves whether a unit more is
taken for the last millionth."""
MANY = 3000
"""Columns from which on slices are solved one by one before all of them at once."""
PROMISING = 0.12
"""ratio: of the candidates of a slice, those that are cheapest under the prices of the relaxed programme and are tried
there. Chosen: of 5 to 30 % the cheapest days at the end of the time on made-up fleets; moves how large fleets are
placed, never a bound."""


@dataclass(frozen=True)
class AssignmentProblem:
    """Demands [D] in slices of a day [S] over supplies [P], and the candidates [K].

    `hours` of each slice; `need` per second of each demand in each slice [D, S]; of a demand with an `amount` a day (0:
    none) slices in which it may run have a need above 0, whatever it is. Demands of a higher `priority` go first.
    `room` in chips of a supply (infinite: no limit), whose machines have `machine` chips; where they are not `mixed`,
    a machine holds one demand at a time. A candidate places its `demand` on a `supply`: a
    unit adds `rate` per second, takes `chips`, `usd_per_h` and `watts`. `whole`: units are whole numbers; `held`: the
    same number in every slice. Candidates of the same `card` (-1: of none) share it: there are as many units of each,
    in slices in which all of their demands have a need, and each takes its part of the card. Demands of the same
    `chain` (none: each is one of its own) are placed together, and count as one; of the candidates of each of the
    `clashes` not all may have units in a day: they are of different demands, whose times together would miss a target.
    """

    hours: Array
    need: Array
    amount: Array
    priority: Array
    room: Array
    machine: Array
    demand: NDArray[np.int64]
    supply: NDArray[np.int64]
    rate: Array
    chips: Array
    usd_per_h: Array
    watts: Array
    whole: NDArray[np.bool_]
    held: NDArray[np.bool_]
    card: NDArray[np.int64]
    chain: NDArray[np.int64] | None = None
    clashes: tuple[tuple[int, ...], ...] = ()
    mixed: bool = True
    max_usd_per_h: float = np.inf
    max_watts: float = np.inf

    @property
    def able(self) -> NDArray[np.bool_]:
        """Whether a demand, and all others of its chain, have a candidate at all [D]."""
        alone = np.isin(np.arange(len(self.amount)), self.demand)
        return np.asarray(np.logical_and.reduceat(alone[self._order], self._starts)[self._place])

    @property
    def first(self) -> NDArray[np.bool_]:
        """Whether it is the first demand of its chain [D]: those stand for chains where they are counted."""
        found = np.zeros(len(self.amount), dtype=bool)
        found[self._order[self._starts]] = True
        return found

    @property
    def leader(self) -> NDArray[np.int64]:
        """The first demand of the chain of each [D]."""
        return np.asarray(self._order[self._starts][self._place])

    @property
    def _chains(self) -> NDArray[np.int64]:
        return np.arange(len(self.amount)) if self.chain is None else self.chain

    @property
    def _order(self) -> NDArray[np.int64]:
        """Demands chain by chain."""
        return np.argsort(self._chains, kind="stable")

    @property
    def _starts(self) -> NDArray[np.int64]:
        """Where chains begin in that order."""
        return np.unique(self._chains[self._order], return_index=True)[1]

    @property
    def _place(self) -> NDArray[np.int64]:
        """The chain of each demand, counted from 0."""
        return np.unique(self._chains, return_inverse=True)[1]

    def usd_per_day(self, units: Array) -> float:
        """Dollars of a day with these units [K, S]."""
        return float(self.usd_per_h @ units @ self.hours)


@dataclass(frozen=True)
class Effort:
    """How long a search may take, and how far from the best it may stop: seconds, and a share of the cost."""

    seconds: float
    gap: float = 0.0


@dataclass(frozen=True)
class Assigned:
    """Units of every candidate in every slice [K, S], which demands are `placed` [D], what a day costs, the least that
    any assignment of these demands could cost, and how far apart the two are as a share (`gap`). `more`: what had to
    be added to what was asked to grow."""

    units: Array
    placed: NDArray[np.bool_]
    usd_per_day: float
    bound_usd_per_day: float
    gap: float
    more: float = 0.0


GROWS_USD, GROWS_WATTS = -1, -2
"""What may grow besides a supply: the budget by a dollar per hour, the power by a watt."""


def assign(p: AssignmentProblem, effort: Effort) -> Assigned | None:
    """The best assignment, None where the time was too short for any. By priority as many demands are placed as can be
    together with those before; then the day is as cheap as it can be. Raises `MissingExtraError` without SciPy."""
    able = p.able
    together = _cheapest(p, able, effort)
    if together is not None:
        return _even(p, together)
    programme = _Programme(p)
    counts: list[tuple[NDArray[np.bool_], float]] = []
    reached = np.zeros(len(able))
    for level in np.unique(p.priority[able])[::-1]:
        mine = able & (p.priority == level)
        reached[mine] = 1.0
        counted = mine & p.first
        most = programme.solved(effort, at_most=reached, counts=counts, placing=counted)
        if not isinstance(most, Assigned):
            return None
        counts.append((counted, float(np.sum(most.placed & counted))))
    found = programme.solved(effort, at_most=reached, counts=counts)
    return _even(p, found) if isinstance(found, Assigned) else None


def _even(p: AssignmentProblem, found: Assigned) -> Assigned:
    """The same with jobs spread evenly over the slices in which they may run, on supplies without a limit: a day costs
    the same with fewer chips at once."""
    units = found.units.copy()
    limited = np.isfinite(p.room[p.supply]) | np.isfinite(p.max_usd_per_h) | p.held
    for k in np.flatnonzero((p.amount[p.demand] > 0) & ~limited & (len(set(p.hours)) == 1)):
        able = np.flatnonzero(p.need[p.demand[k]] > 0)
        total = units[k].sum()
        units[k, able] = total / len(able)
        if p.whole[k]:
            each, rest = divmod(round(total), len(able))
            units[k, able] = each + (np.arange(len(able)) < rest)
    return replace(found, units=units)


def _cheapest(p: AssignmentProblem, placed: NDArray[np.bool_], effort: Effort) -> Assigned | None:
    """The cheapest assignment of exactly these demands. A small one is solved at once; slices of a large one, which
    only jobs connect, one by one first. What is left of the time goes into the other way."""
    start, wanted = time.monotonic(), placed.astype(float)
    programme = _Programme(p)
    best: Assigned | None = None
    large = programme.units > MANY
    for slices in (large, not large):
        left = effort.seconds - (time.monotonic() - start)
        part = replace(effort, seconds=left if best else 0.6 * left)
        found = (
            _by_slice(programme, wanted, part) if slices else programme.solved(part, at_least=wanted, at_most=wanted)
        )
        if found is False:
            return best
        best = _better(best, found) if isinstance(found, Assigned) else best
        if best is not None and best.gap <= effort.gap:
            break
    return best


def _better(one: Assigned | None, other: Assigned) -> Assigned:
    """The cheaper of two, with the higher of their bounds."""
    if one is None:
        return other
    bound = max(one.bound_usd_per_day, other.bound_usd_per_day)
    best = min(one, other, key=lambda a: a.usd_per_day)
    gap = max(0.0, 1.0 - bound / best.usd_per_day) if best.usd_per_day > 0 else 0.0
    return replace(best, bound_usd_per_day=bound, gap=gap)


def _by_slice(programme: _Programme, wanted: Array, effort: Effort) -> Assigned | bool:
    """An assignment whose slices are solved one by one among promising candidates; jobs do in each slice what the
    relaxed programme does there, whose cost is the bound. True where there is none to be had so, False where there is
    none at all."""
    p, start = programme.p, time.monotonic()
    if len(p.hours) == 1 or p.held.any() or p.clashes:
        return True
    relaxed = programme.relaxed(wanted)
    if relaxed is None:
        return False
    x, reduced, least = relaxed
    taken = np.where(programme.at >= 0, x[programme.at], 0.0)
    priced = np.where(programme.at >= 0, reduced[programme.at], np.inf)
    work = taken * (p.rate * HOUR_S)[:, None] * p.hours
    units = np.zeros_like(taken)
    for s in range(len(p.hours)):
        left = effort.seconds - (time.monotonic() - start)
        mine = (priced[:, s] <= np.quantile(priced[np.isfinite(priced[:, s]), s], PROMISING)) | (taken[:, s] > NEARLY)
        done = np.array([work[p.demand == d, s].sum() for d in range(len(p.amount))])
        job = p.amount > 0
        idle = job & (done <= NEARLY * p.amount)
        alone = replace(
            p,
            hours=p.hours[[s]],
            need=np.where(idle | (wanted == 0.0), 0.0, p.need[:, s])[:, None],
            amount=np.where(job & ~idle, done, 0.0),
            **{name: getattr(p, name)[mine] for name in OF_CANDIDATES},
        )
        part = Effort(max(left, 0.1) / (len(p.hours) - s), effort.gap / 4.0)
        found = _Programme(alone).solved(part, at_least=wanted, at_most=wanted)
        if not isinstance(found, Assigned):
            return True
        units[mine, s] = found.units[:, 0]
    usd = p.usd_per_day(units)
    bound = min(max(least, 0.0), usd)
    return Assigned(units, wanted > 0.0, usd, bound, 1.0 - bound / usd if usd > 0 else 0.0)


OF_CANDIDATES = ("demand", "supply", "rate", "chips", "usd_per_h", "watts", "whole", "held", "card")
"""Fields of a problem with an entry for each candidate."""


def least_more(p: AssignmentProblem, placed: NDArray[np.bool_], grows: int, effort: Effort) -> Assigned | None:
    """The least that must be added so that all of these demands are placed: whole machines of the supply `grows`, or
    dollars per hour (`GROWS_USD`), or watts (`GROWS_WATTS`). None where nothing of it would do."""
    wanted = (placed & p.able).astype(float)
    if not np.array_equal(wanted.astype(bool), placed):
        return None
    found = _Programme(p, grows).solved(effort, at_least=wanted, at_most=wanted)
    return found if isinstance(found, Assigned) else None


class _Programme:
    """The programme of a problem: columns are units, then whether each demand is placed, then whether candidates that
    clash with others are used at all, then machines by demand where they are not mixed, then what grows."""

    def __init__(self, p: AssignmentProblem, grows: int | None = None) -> None:
        self.p, self.grows = p, grows
        self.at, self.units = _numbered(p)
        self.placed = self.units + np.arange(len(p.amount))
        self.columns = self.units + len(p.amount)
        self.entries: list[tuple[NDArray[np.int64], Array]] = []
        self.low: list[float] = []
        self.high: list[float] = []
        self.used: dict[int, int] = {}
        self.most = self._units()[1]
        self._needs()
        for d in np.flatnonzero(~p.first):
            self._row([self.placed[d], self.placed[p.leader[d]]], [1.0, -1.0], 0.0, 0.0)
        for clash in p.clashes:
            self._row([self._used(k) for k in clash], np.ones(len(clash)), -np.inf, len(clash) - 1.0)
        for supply in np.flatnonzero(np.isfinite(p.room)):
            self._room(int(supply))
        self._limit(p.usd_per_h, p.max_usd_per_h, GROWS_USD)
        self._limit(p.watts, p.max_watts, GROWS_WATTS)

    def _row(self, columns: Any, values: Any, low: float, high: float) -> None:
        self.entries.append((np.asarray(columns, dtype=np.int64), np.asarray(values, dtype=float)))
        self.low.append(low)
        self.high.append(high)

    def _needs(self) -> None:
        """A demand that is placed gets what it needs: in every slice, or over the day."""
        p = self.p
        for d in range(len(p.amount)):
            mine = np.flatnonzero(p.demand == d)
            at = self.at[mine]
            if p.amount[d] > 0:
                k, s = np.nonzero(at >= 0)
                values = p.rate[mine[k]] * HOUR_S * p.hours[s] / p.amount[d]
                self._row([*at[k, s], self.placed[d]], [*values, -1.0], 0.0, np.inf)
                continue
            for i in np.flatnonzero(p.need[d] > 0):
                values = p.rate[mine] / p.need[d, i]
                self._row([*at[:, i], self.placed[d]], [*values, -1.0], 0.0, np.inf)

    def _room(self, supply: int) -> None:
        """The chips of a supply hold what runs on it in every slice; machines that are not mixed are dealt out."""
        p, grown = self.p, self.grows == supply
        mine = np.flatnonzero(p.supply == supply)
        for s in range(len(p.hours)):
            here = mine[self.at[mine, s] >= 0]
            columns, values = list(self.at[here, s]), list(p.chips[here])
            if not p.mixed:
                columns, values = [], []
                for d in np.unique(p.demand[here]):
                    its = here[p.demand[here] == d]
                    dealt = self._column()
                    self._row([*self.at[its, s], dealt], [*p.chips[its], -p.machine[supply]], -np.inf, 0.0)
                    columns.append(dealt)
                    values.append(p.machine[supply])
            if columns:
                more = ([GREW], [-p.machine[supply]]) if grown else ([], [])
                self._row([*columns, *more[0]], [*values, *more[1]], -np.inf, p.room[supply])

    def _column(self) -> int:
        self.columns += 1
        return self.columns - 1

    def _used(self, k: int) -> int:
        """The column of whether a candidate has units in any slice."""
        if k not in self.used:
            self.used[k] = self._column()
            for at in np.unique(self.at[k][self.at[k] >= 0]):
                self._row([at, self.used[k]], [1.0, -self.most[at]], -np.inf, 0.0)
        return self.used[k]

    def _limit(self, each: Array, most: float, grows: int) -> None:
        """What all units together take in a slice stays within a limit."""
        if not np.isfinite(most):
            return
        for s in range(len(self.p.hours)):
            here = np.flatnonzero((self.at[:, s] >= 0) & (each > 0))
            more = ([GREW], [-1.0]) if self.grows == grows else ([], [])
            self._row([*self.at[here, s], *more[0]], [*each[here], *more[1]], -np.inf, most)

    def solved(
        self,
        effort: Effort,
        *,
        at_most: Array,
        at_least: Array | None = None,
        counts: list[tuple[NDArray[np.bool_], float]] | tuple[()] = (),
        placing: NDArray[np.bool_] | None = None,
    ) -> Assigned | bool:
        """The cheapest assignment in which demands between `at_least` and `at_most` are placed, of the groups in
        `counts` so many; with `placing` the one that places most of these; what grows, where something does, grows
        least. False where there is none, True where the time was too short to find one."""
        p, grown = self.p, self.grows is not None
        width = self.columns + grown
        cost, high, whole = self._columns(width)
        low = np.zeros(width)
        low[self.placed] = 0.0 if at_least is None else at_least
        high[self.placed] = at_most
        if placing is not None or grown:
            cost = np.zeros(width)
        if placing is not None:
            cost[self.placed[placing]] = -1.0
        if grown:
            cost[-1] = 1.0
            whole[-1] = float(self.grows is not None and self.grows >= 0)
        rows = [*self.entries, *((self.placed[mine], np.ones(int(mine.sum()))) for mine, _ in counts)]
        ends = [(a, b) for a, b in zip(self.low, self.high, strict=True)] + [(n, n) for _, n in counts]
        found = _highs(rows, ends, (cost, low, high, whole), effort)
        if found.x is None:
            return bool(found.status != 2)
        x = np.where(whole > 0, np.round(found.x), found.x)
        held = self.at >= 0
        units = np.where(held, x[np.where(held, self.at, 0)], 0.0)
        usd = p.usd_per_day(units)
        best, least = float(found.fun), float(found.mip_dual_bound)
        gap = max(0.0, best - least) / best if usd > 0 and best > 0 else 0.0
        more = float(x[-1]) if grown else 0.0
        return Assigned(units, x[self.placed] > 0.5, usd, usd * (1.0 - gap), gap, more)

    def relaxed(self, wanted: Array) -> tuple[Array, Array, float] | None:
        """The programme in parts of units, of these demands: units, what one more of each would cost at the prices of
        what is scarce, and dollars of a day. None where there is none."""
        optimize, sparse = _scipy()
        cost, high, _ = self._columns(self.columns)
        low = np.zeros(self.columns)
        low[self.placed] = high[self.placed] = wanted
        matrix, ends = _matrix(self.entries, self.columns), np.array([self.low, self.high])
        least = np.isfinite(ends[0])
        above = sparse.vstack([-matrix[least], matrix[~least]])
        most = np.append(-ends[0][least], ends[1][~least])
        found = optimize.linprog(cost, A_ub=above, b_ub=most, bounds=np.stack([low, high], axis=1), method="highs")
        if found.x is None:
            return None
        return found.x, cost - above.T @ found.ineqlin.marginals, float(found.fun)

    def _columns(self, width: int) -> tuple[Array, Array, Array]:
        """Dollars of a day, the most and whether they are whole, of all columns."""
        cost, high, whole = self._units()
        more = width - self.units
        high, used = np.append(high, np.full(more, np.inf)), list(self.used.values())
        high[used] = 1.0
        return np.append(cost, np.zeros(more)), high, np.append(whole, np.ones(more))

    def _units(self) -> tuple[Array, Array, Array]:
        """Dollars of a day, the most that can be of use, and whether they are whole, of the columns of units."""
        p = self.p
        k, s = np.nonzero(self.at >= 0)
        columns = self.at[k, s]
        cost, high, whole = np.zeros(self.units), np.zeros(self.units), np.zeros(self.units)
        counted = np.where(p.card >= 0, APART, p.chips)
        np.add.at(cost, columns, (p.usd_per_h + TIDY * counted)[k] * p.hours[s])
        job = p.amount[p.demand[k]] > 0
        of_job = p.amount[p.demand[k]] / (p.rate[k] * HOUR_S * p.hours[s])
        useful = np.where(job, of_job, p.need[p.demand[k], s] / p.rate[k])
        useful = np.where(p.whole[k], np.ceil(useful * (1.0 - NEARLY)), useful)
        np.maximum.at(high, columns, useful)
        whole[columns] = p.whole[k]
        return cost, high, whole


GREW = -1
"""In a row, the column of what grows, which is the last."""


def _numbered(p: AssignmentProblem) -> tuple[NDArray[np.int64], int]:
    """The column of each candidate in each slice [K, S], -1 where it cannot run; held ones have one column, and so have
    in each slice those that share a card."""
    at = np.full((len(p.demand), len(p.hours)), -1, dtype=np.int64)
    free = (p.need[p.demand] > 0) & ~p.held[:, None]
    first = np.arange(len(p.demand))
    for card in np.unique(p.card[p.card >= 0]):
        mine = np.flatnonzero(p.card == card)
        first[mine] = mine[0]
        free[mine] = free[mine].all(axis=0)
    alone = free & (first == np.arange(len(first)))[:, None]
    count = int(alone.sum())
    at[alone] = np.arange(count)
    at = at[first]
    held = int(p.held.sum())
    at[p.held] = count + np.arange(held)[:, None]
    return at, count + held


def _highs(
    rows: list[tuple[NDArray[np.int64], Array]],
    ends: list[tuple[float, float]],
    columns: tuple[Array, Array, Array, Array],
    effort: Effort,
) -> Any:
    """What HiGHS finds. Raises `MissingExtraError` without SciPy."""
    optimize, _ = _scipy()
    cost, low, high, whole = columns
    within = optimize.LinearConstraint(_matrix(rows, len(cost)), *np.array(ends).T)
    options = {"mip_rel_gap": effort.gap, "time_limit": effort.seconds}
    return optimize.milp(
        cost, integrality=whole, bounds=optimize.Bounds(low, high), constraints=within, options=options
    )


def _matrix(rows: list[tuple[NDArray[np.int64], Array]], width: int) -> Any:
    """Rows of columns and values as a sparse matrix; the last column may be named from behind."""
    _, sparse = _scipy()
    starts = np.cumsum([0, *(len(at) for at, _ in rows)])
    at = np.concatenate([at for at, _ in rows]) % width
    matrix = sparse.csr_array((np.concatenate([v for _, v in rows]), at, starts), shape=(len(rows), width))
    matrix.sum_duplicates()  # a column that is held stands in every slice of a job
    return matrix


def _scipy() -> tuple[Any, Any]:
    """The solvers and sparse matrices of SciPy. Raises `MissingExtraError` where it is not installed."""
    try:
        from scipy import optimize, sparse
    except ImportError:
        raise MissingExtraError("assigning demands to supplies", "fleet") from None
    return optimize, sparse
