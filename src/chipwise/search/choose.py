"""From priced candidates to those that may be plans: each at its best batch and as large as the load needs, the few of
a chip and a runtime that can come first, and why not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog.preferences import preferences
from chipwise.catalog.price import OwnCosts, Rent, paid_for
from chipwise.parallel.layout import REASONS, Reason
from chipwise.predict.rounds import by_deadline, kept_up, rounds, workers_for
from chipwise.predict.service import ONE
from chipwise.search.evaluate import Evaluated
from chipwise.search.prefer import Contenders, cheapest, first, kept
from chipwise.search.reach import Reach, reach_of
from chipwise.search.space import Deployment, Group, Limits, affordable
from chipwise.search.targets import Caution, chances, highest, job_chances, longer_by, meets, powers, taken
from chipwise.units import Array
from chipwise.values import dataclass
from chipwise.workload.workload import Workload

CLOSER = (Reason.NO_MEMORY_FIGURE, Reason.MEMORY, Reason.SLO, Reason.BUDGET, Reason.NO_PRICE)
"""Reasons of candidates that came ever closer to being a plan; before them come layouts that are not legal."""
BETWEEN = 0.03
"""probability: about how far one may be off that was worked out between two points of the grid of loads. Chosen: so
that no plan that may hold is left out before it is worked out anew; moves how many are worked out anew, and an answer
only where one was off by more."""
LAYOUTS = 6  # of chips that one has that are shown beside each other
_CLOSENESS = np.array([CLOSER.index(r) + 1 if r in CLOSER else 0 for r in REASONS])


@dataclass(frozen=True, slots=True)
class Choice:
    """One candidate at its best batch. `index` and `point` locate it in its `Evaluated`; the figures are of
    one replica, except `chips` and `usd_per_h`, which are of all. NaN price = unknown. `carrying` replicas serve
    the whole load, `spare` ones are there beside them; `prompt_workers` run prefill for all (0: replicas do
    so themselves). `sure`: the targets hold with the probability asked for, not only in the middle. `as_one` is what it
    is compared by, a table of one row (`prefer`), `caution` that of all deployments that it was chosen from."""

    deployment: Deployment
    evaluated: Evaluated
    index: int
    point: int
    carrying: int
    spare: int
    prompt_workers: int
    chips: int
    usd_per_h: float
    tokens_per_s: float
    tpot_s: float
    ttft_s: float
    largest_per_s: float
    sure: bool
    as_one: Contenders
    caution: Caution

    @property
    def replicas(self) -> int:
        """All replicas, spare ones included."""
        return self.carrying + self.spare


@dataclass(frozen=True, slots=True)
class Refusal:
    """A chip, or a machine of several parts, without a plan: the reason of the candidate that came closest to being
    one, and what is in reach."""

    chip: str
    reason: Reason
    reach: Reach

    def closer(self, other: Refusal) -> Refusal:
        """Of two refusals of a chip the one that came closer to a plan, with the better reach of both."""
        near = max(self, other, key=lambda r: _CLOSENESS[REASONS.index(r.reason)])
        return replace(near, reach=self.reach.better(other.reach))


def choose(
    evaluated: Evaluated,
    workload: Workload,
    prices: Mapping[str, Rent | OwnCosts | None],
    limits: Limits,
    caution: Caution,
) -> Chosen:
    """The candidates of every deployment of a group that can come first (`prefer.first`): that one and the cheapest, of
    chips that one has the `LAYOUTS` cheapest; a refusal for each deployment without one, and how many candidates fell
    to which reason. `prices` say how each chip is paid, None where no price is known.

    A replica takes no more than `utilisation` of the rate at which its middle times miss a target, and no more than the
    rate up to which targets hold as surely as asked, where they do at all.
    """
    kept_in = np.flatnonzero(evaluated.reason == 0)
    e = evaluated.take(kept_in)
    sized = _sized(e, workload, prices, limits, caution)
    if limits.nearest:
        sized = _nearest(e, workload, prices, limits, sized)
    of_live, usd_per_h, sustained = _held(e, workload, prices, limits, sized)
    live, point, reason = of_live == 0, sized.point, evaluated.reason.copy()
    reason[kept_in] = of_live
    columns = _contenders(e, workload, sized, usd_per_h, caution, owned=bool(limits.have))
    choices: list[Choice] = []
    refusals: list[Refusal] = []
    p = e.prediction
    for i, deployment in enumerate(e.group.deployments):
        of_it = e.group.which == i
        mine = np.flatnonzero(of_it & live)
        if not len(mine):
            reach = reach_of(e, workload, of_it, sustained)
            closest = _closest(reason[evaluated.group.which == i])
            refusals.append(Refusal(deployment.chip.id, closest, reach))
            continue
        for best in _shortlist(columns.take(mine), mine, workload.confidence, every=limits.every):
            at = best, int(point[best])
            choices.append(
                Choice(
                    deployment,
                    evaluated,
                    int(kept_in[best]),
                    at[1],
                    carrying=int(sized.replicas[best]),
                    spare=limits.spare,
                    prompt_workers=int(sized.prompts[best]),
                    chips=int(sized.chips[best]),
                    usd_per_h=float(usd_per_h[best]),
                    tokens_per_s=float(p.tokens_per_s[at]),
                    tpot_s=float(p.tpot_s[at]),
                    ttft_s=float(p.ttft_s[at]),
                    largest_per_s=float(sized.largest[best]),
                    sure=bool(sized.sure[best]),
                    as_one=columns.take(np.array([best])),
                    caution=caution,
                )
            )
    counts = Counter({REASONS[code]: int(n) for code, n in zip(*np.unique(reason, return_counts=True), strict=True)})
    hopeless = partial(_hopeless, evaluated, workload, prices, limits, sized, live, columns)
    return Chosen(choices, refusals, counts, hopeless)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The `choices` of a group, a refusal for each deployment without one, how many candidates fell to which reason,
    and, worked out where it is asked, by chip the layouts that no other software makes the best."""

    choices: list[Choice]
    refusals: list[Refusal]
    counts: Counter[Reason]
    hopeless: Callable[[], dict[str, frozenset[tuple[int, ...]]]]


APART = 3.0
"""ratio: how many times as fast as another a software may be on one layout. Chosen: those of one chip differ by up to
2 in published serving; moves how many layouts are tried with other software, and an answer only where two differ by
more."""


def _hopeless(
    evaluated: Evaluated,
    w: Workload,
    prices: Mapping[str, Rent | OwnCosts | None],
    limits: Limits,
    sized: _Sized,
    live: NDArray[np.bool_],
    c: Contenders,
) -> dict[str, frozenset[tuple[int, ...]]]:
    """Layouts by chip that miss a target where they were `APART` times as fast, or are then still dearer than its
    cheapest plan that is kept by more than better evidence may cost; and those in more stages than are tried."""
    e = evaluated.take(np.flatnonzero(evaluated.reason == 0))
    good = e.allowed & meets(e.held[0] / APART, e.held[1] / APART, w)
    slow = ~good.any(axis=1)
    deep = evaluated.group.take(evaluated.reason == REASONS.index(Reason.STAGES))
    least = np.where(c.cost > 0.0, c.cost / APART, c.cost * APART)  # below 0 it counts what is done
    if w.driven and w.rate_per_s is not None:
        most = np.max(np.where(good, np.nan_to_num(e.prediction.requests_per_s), 0.0), axis=1)
        with np.errstate(divide="ignore"):
            replicas = np.ceil(w.rate_per_s / (APART * w.utilisation * most) * (1 - 1e-9)) + limits.spare
        alone = sized.chips / np.maximum(sized.replicas + limits.spare, 1.0)
        chips = np.where(live & (most > 0.0), alone * replicas, np.inf)
        usd = _hour(e, prices, chips, sized.together)[0]
        least = np.where(np.isfinite(usd), usd, chips)

    def rows(group: Group, some: NDArray[np.bool_]) -> list[tuple[int, ...]]:
        columns = (np.asarray(group.layout.part(x))[some].astype(int).tolist() for x in ("tp", "pp", "dp", "ep"))
        return list(zip(*columns, strict=True))

    found = {}
    for i, deployment in enumerate(e.group.deployments):
        mine = e.group.which == i
        known = c.cost[mine & live & kept(c.chance, w.confidence)]
        enough = np.min(known, initial=np.inf)
        lost = mine & (slow | (live & (least > enough + preferences().evidence * abs(enough))))
        found[deployment.chip.id] = frozenset([*rows(e.group, lost), *rows(deep, deep.which == i)])
    return found


def _shortlist(c: Contenders, rows: NDArray[np.intp], confidence: float, *, every: bool) -> Sequence[int]:
    """The rows of a deployment that can come first; `every`: those of its best layouts besides."""
    found = [first(c, confidence), cheapest(c, confidence)]
    if not kept(c.chance, confidence).any():
        found.append(int(np.argmin(c.cost)))
    hoped = np.flatnonzero(kept(c.chance, confidence - BETWEEN))
    if len(hoped):
        found.append(int(hoped[np.argmin(c.cost[hoped])]))
    if every:
        found += np.argsort(c.cost, kind="stable")[:LAYOUTS].tolist()
    return [int(rows[i]) for i in dict.fromkeys(found)]


@dataclass(frozen=True, slots=True)
class _Sized:
    """Candidates at their best batch, [N]: what one replica does, and the fleet that carries the work.

    `rate` is what a replica takes (requests/s), of a job on average until its last round is done (`predict.rounds`),
    `slow` the rate at the end of its interval, both NaN where `reason` says that a candidate is no plan; `steady` is
    the rate of a replica that always has `at_once` requests open, `largest` that at which a replica misses a target, or
    does what it does. `each` are the chips of one replica with its part
    of the workers for prompts, `chips` those of all `replicas`, spare ones and `prompts` workers; `together` of them
    share a machine, `most` are allowed.
    """

    point: NDArray[np.int64]
    sure: NDArray[np.bool_]
    reason: NDArray[np.int64]
    rate: Array
    slow: Array
    replicas: Array
    prompts: Array
    each: Array
    chips: Array
    together: Array
    most: Array
    steady: Array
    at_once: Array
    largest: Array


def _sized(
    e: Evaluated, workload: Workload, prices: Mapping[str, Rent | OwnCosts | None], limits: Limits, caution: Caution
) -> _Sized:
    """The best batch of every candidate, and how many replicas do the work that is asked for, or fill the machines that
    are paid for it."""
    wary = caution.take(e.group.which)
    over, surely_over = taken(*e.held, workload), taken(*e.held, workload, wary)
    point, meets = _best_point(e, over)
    cautious, sure = _best_point(e, surely_over)
    reason = np.where((e.reason == 0) & ~meets, REASONS.index(Reason.SLO), e.reason)
    rows = np.arange(len(point))
    most = np.array([limits.chips(d.chip.id) for d in e.group.deployments])[e.group.which]
    layouts = e.group.layouts()
    per_package = np.array([d.chip.devices_per_package for d in e.group.deployments])[e.group.which]
    alone = np.asarray(layouts.devices) / per_package
    filled = bool(limits.have) and workload.task != "local" and not workload.driven
    pieces = workload.pieces
    served = workload.rate_per_s if workload.task == "serve" else None
    if pieces is not None:
        own = np.maximum(np.floor(most / alone), 1.0) if filled else np.ones(len(point))
        point = _whole_point(e, workload, pieces / own, None if filled else wary.slower)
    elif served is None:
        point = np.where(sure, cautious, point)
    rate = largest = np.where(reason == 0, e.prediction.requests_per_s[rows, point], np.nan)
    if served is not None:
        rates = e.prediction.requests_per_s
        largest = np.where(reason == 0, highest(rates, over, e.allowed), np.nan)
        surely = highest(rates, surely_over, e.allowed) / wary.longer
        rate = np.minimum(workload.utilisation * largest, np.where(sure, surely, np.inf))
    replicas = np.ones(len(point))
    if served is not None:
        with np.errstate(invalid="ignore", divide="ignore"):
            replicas = np.ceil(served / rate * (1 - 1e-9))
            least = np.ceil(served / (workload.utilisation * largest) * (1 - 1e-9))
        if workload.limited:
            replicas = _fewest(e, workload, wary, replicas, least, sure)
    at_once = np.where(reason == 0, e.prediction.concurrency[rows, point], np.nan)
    if workload.job is not None and workload.job.deadline_s is not None:
        # what is due is done even where a job takes as long as the end of its interval
        allowed = by_deadline(workload.job.deadline_s, at_once / rate * wary.slower)
        replicas = workers_for(workload.pieces or 1.0, at_once, allowed)
    # workers for prompts are shared by all decode workers of a fleet
    beside = np.nan_to_num(e.beside[rows, point])
    each = alone * (1.0 + beside)
    if filled:
        # what the user has is all put to work, of a job as many as find a request to answer
        replicas = np.maximum(np.floor(most / each), 1.0)
        if pieces is not None:
            replicas = np.minimum(replicas, rounds(pieces, at_once))
    # ranks that share a scale-up domain share a machine
    together = np.maximum(np.asarray(layouts.tp * layouts.dp) / per_package, 1.0)
    if not filled and (served is not None or workload.job is not None):
        lone = np.where(beside > 0.0, np.nan, alone)
        paid = partial(_hour, e, prices, together=together)
        more = paid_for(paid, replicas, lone, most=most, spare=limits.spare)
        replicas = more if pieces is None else np.maximum(np.minimum(more, rounds(pieces, at_once)), replicas)
    whole = rate
    if pieces is not None:
        whole = rate * kept_up(pieces, replicas * at_once)
    slow = whole / wary.slower
    prompts = np.ceil(np.nan_to_num(replicas * beside) * (1 - 1e-9))
    prompts += limits.spare * (prompts > 0)
    chips = alone * (replicas + limits.spare + prompts)
    if workload.due_per_s is not None:
        with np.errstate(invalid="ignore"):
            sure = sure & (replicas * slow >= workload.due_per_s * (1 - 1e-9))
    return _Sized(
        point, sure, reason, whole, slow, replicas, prompts, each, chips, together, most, rate, at_once, largest
    )


SIZES = 12
"""count: of fleets of a candidate whose chance is worked out. Chosen: few enough to cost little, all of them where
fewer than so many are in question; moves sizes of large fleets by some per cent."""
LARGER = 1.5
"""ratio: of replicas beyond those that targets with slower passes ask for, up to which fleets are tried. Chosen: beyond
it the chance grows little; moves candidates whose queue stretches more than their passes."""


def _fewest(e: Evaluated, w: Workload, wary: Caution, replicas: Array, least: Array, sure: NDArray[np.bool_]) -> Array:
    """The fewest replicas [N], of no fewer than carry the load (`least`), whose targets hold with the probability that
    was asked for, by the chance that is told of them; those that are given where none of the sizes tried is as sure,
    and where the load alone asks for as many."""
    found = replicas.copy()
    rows = np.flatnonzero(sure & np.isfinite(replicas) & (replicas > least))
    if len(rows):
        share = np.linspace(0.0, 1.0, SIZES)
        few, most = least[rows, None], np.maximum(np.ceil(LARGER * replicas[rows, None]), least[rows, None])
        sizes = np.where(
            most - few < SIZES, np.minimum(few + np.arange(SIZES), most), np.ceil(few * (most / few) ** share)
        )
        at, size = np.repeat(rows, SIZES), sizes.ravel()
        chance = _chance(e, w, wary, at, (w.rate_per_s or 0.0) / size)[1].reshape(sizes.shape)
        enough = kept(chance, w.confidence)
        best = np.argmax(enough, axis=1)
        found[rows] = np.where(enough.any(axis=1), sizes[np.arange(len(rows)), best], replicas[rows])
    return found


def _held(
    e: Evaluated, workload: Workload, prices: Mapping[str, Rent | OwnCosts | None], limits: Limits, sized: _Sized
) -> tuple[NDArray[np.int64], Array, Array]:
    """What limits of chips, time and dollars leave: the reason of every candidate (0: a plan), its dollars per hour,
    and the requests/s that the most replicas within the limits sustain."""
    s = sized
    usd_per_h = _hour(e, prices, s.chips, s.together)[0]
    with np.errstate(invalid="ignore", divide="ignore"):
        over, unknown = s.chips > s.most, np.zeros(len(s.most), dtype=bool)
        if workload.due_per_s is not None:
            over |= s.replicas * s.rate < workload.due_per_s * (1 - 1e-9)
        if limits.max_usd_per_h is not None:
            # an unknown price is no price below the limit
            unknown = ~over & np.isnan(usd_per_h) & np.isfinite(s.chips)
            over |= ~(usd_per_h <= limits.max_usd_per_h)
        if workload.job is not None and workload.job.max_usd is not None:
            hours = workload.job.tokens / workload.output_tokens / (s.replicas * s.slow) / 3600.0
            unknown |= ~over & np.isnan(usd_per_h) & np.isfinite(s.chips)
            over |= ~unknown & ~(usd_per_h * hours <= workload.job.max_usd)
        fleet = _most_replicas(e, prices, limits, s)
        sustained = fleet * s.steady
        if workload.pieces is not None:
            sustained = sustained * kept_up(workload.pieces, fleet * s.at_once)
        sustained = np.where((s.reason == 0) & (fleet > 0.0), sustained, 0.0)
    reason = np.where((s.reason == 0) & unknown, REASONS.index(Reason.NO_PRICE), s.reason)
    reason = np.where((reason == 0) & over, REASONS.index(Reason.BUDGET), reason)
    return reason, usd_per_h, sustained


def _most_replicas(e: Evaluated, prices: Mapping[str, Rent | OwnCosts | None], limits: Limits, sized: _Sized) -> Array:
    """The most replicas of each candidate that limits of chips and dollars per hour allow beside the spare ones."""
    most = sized.most
    if limits.max_usd_per_h is not None:
        most = np.minimum(most, _affordable(e, prices, sized.each, sized.together, limits.max_usd_per_h))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.maximum(np.floor(most / sized.each) - limits.spare, 0.0))


def _nearest(
    e: Evaluated, workload: Workload, prices: Mapping[str, Rent | OwnCosts | None], limits: Limits, sized: _Sized
) -> _Sized:
    """The same, with all replicas that the limits allow where more were needed to hold targets as surely as asked, and
    so many hold them in the middle, at no more than `utilisation` of what they carry."""
    s, fleet = sized, _most_replicas(e, prices, limits, sized)
    with np.errstate(invalid="ignore", divide="ignore"):
        short = (s.reason == 0) & (fleet >= 1.0) & (s.replicas > fleet)
        if workload.driven and workload.rate_per_s is not None:
            short &= workload.rate_per_s <= fleet * workload.utilisation * np.nan_to_num(s.largest)
        rate, slower = s.rate, s.rate / s.slow
        if workload.pieces is not None:
            rate = np.where(short, s.steady * kept_up(workload.pieces, fleet * s.at_once), rate)
        alone = s.chips / (s.replicas + limits.spare + s.prompts)
        prompts = np.ceil(fleet * (s.each / alone - 1.0) * (1 - 1e-9))
        prompts = np.where(short, prompts + limits.spare * (prompts > 0), s.prompts)
        replicas = np.where(short, fleet, s.replicas)
        chips = np.where(short, alone * (replicas + limits.spare + prompts), s.chips)
    return replace(
        s, sure=s.sure & ~short, rate=rate, slow=rate / slower, replicas=replicas, prompts=prompts, chips=chips
    )


def _hour(e: Evaluated, prices: Mapping[str, Rent | OwnCosts | None], chips: Array, together: Array) -> Array:
    """Middle price per hour and billed chips [2, N] of `chips` of each candidate, every `together` of them in one
    machine; NaN where unknown."""

    def paid(basis: Rent | OwnCosts, count: Array, group: Array) -> Array:
        return basis.paid(count, group)

    return _by_price(e, prices, chips, together, paid)


def _affordable(
    e: Evaluated, prices: Mapping[str, Rent | OwnCosts | None], each: Array, together: Array, limit: float
) -> Array:
    """Chips of the most whole replicas, of `each` chips, that cost no more than the limit: more never cost less."""

    def within(basis: Rent | OwnCosts, count: Array, group: Array) -> Array:
        return np.asarray(affordable(basis, count, group, limit) * count)[None]

    return np.asarray(np.nan_to_num(_by_price(e, prices, each, together, within)[0]))


def _by_price(
    e: Evaluated,
    prices: Mapping[str, Rent | OwnCosts | None],
    chips: Array,
    together: Array,
    figure: Callable[[Rent | OwnCosts, Array, Array], Array],
) -> Array:
    """Two figures, or one twice, [2, N] of each candidate that its price, its chips and those in one machine decide;
    NaN where unknown. Many candidates share these: each pair is worked out once."""
    found = np.full((2, len(chips)), np.nan)
    for i, deployment in enumerate(e.group.deployments):
        basis = prices.get(deployment.chip.id)
        mine = np.flatnonzero((e.group.which == i) & np.isfinite(chips))
        if basis is not None and len(mine):
            pairs = chips[mine] + 1j * together[mine]
            once, back = np.unique(pairs, return_inverse=True)
            found[:, mine] = figure(basis, once.real, once.imag)[:, back]
    return found


def _closest(reasons: NDArray[np.int64]) -> Reason:
    """The reason of the candidate that came closest to being a plan. None at all: the limit on devices left no
    layout."""
    return REASONS[int(reasons[np.argmax(_CLOSENESS[reasons])])] if len(reasons) else Reason.BUDGET


def _best_point(e: Evaluated, over: Array) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The batch with the highest throughput that meets the targets, of which it takes as much (`over`), and whether
    there is one."""
    with np.errstate(invalid="ignore"):
        good: NDArray[np.bool_] = e.allowed & (over <= 1.0)
    rate = np.where(good, np.nan_to_num(e.prediction.tokens_per_s), -1.0)
    return np.argmax(rate, axis=1), np.asarray(good.any(axis=1))


def _whole_point(e: Evaluated, w: Workload, pieces: Array, slower: Array | None) -> NDArray[np.int64]:
    """The batch with which a replica is done soonest with a job of so many `pieces` [N], no more at once than there
    are; where rounds that take so many times longer (`slower` [N]; None: whenever it is done) are then not done by the
    deadline, that with which it has done most. Where no round is done by then the smallest."""
    p, job, n = e.prediction, w.job, pieces[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        fits = e.allowed & meets(*e.held, w)
        fits[:, :ONE] = False  # of a job no replica idles on purpose
        # up to the first batch that holds them all: between it and the one before lies that of exactly as many
        before = np.concatenate([np.zeros((len(pieces), 1)), p.batch[:, :-1]], axis=1)
        good = fits & ~(before >= n)
        done = p.requests_per_s * kept_up(n, p.concurrency)
        if job is not None and job.deadline_s is not None and slower is not None:
            one_s = p.concurrency / p.requests_per_s * slower[:, None]
            due = p.concurrency * by_deadline(job.deadline_s, one_s)
            enough = good & (due >= n)
            done = np.where(enough.any(axis=1, keepdims=True), np.where(enough, done, -1.0), due)
    return np.asarray(np.argmax(np.where(good, np.nan_to_num(done), -2.0), axis=1))


def _contenders(
    e: Evaluated, w: Workload, sized: _Sized, usd_per_h: Array, caution: Caution, *, owned: bool
) -> Contenders:
    """What candidates of a chip are compared by.

    Where the load is given, dollars per hour (machines are paid whole) or, where nothing is paid or no price is known,
    chips that carry it. Else of chips that the user has the seconds of an answer for one user or the most tokens in
    all, of chips to be paid the fewest chip-seconds per token, for one user the fewest chips. Stages count as a doubt:
    few have measured them. Of candidates alike in that come first those on fewer hosts, with fewer chips, in more
    replicas, whose failures cost less, cut into the fewest stages and sharing experts the least.
    """
    rows = np.arange(len(sized.point))
    p, each, layouts = e.prediction, sized.each, e.group.layouts()
    at = sized.point
    wary = caution.take(e.group.which)
    if w.driven and w.rate_per_s is not None:
        times, chance = _chance(e, w, wary, rows, w.rate_per_s / np.maximum(sized.replicas, 1.0))
    else:
        times, limited = np.stack([p.ttft_s, p.tpot_s])[:, rows, at], np.stack(e.held)[:, rows, at, None]
        if w.due_per_s is not None:
            chance = job_chances(sized.replicas * sized.rate, w.due_per_s, wary)
        else:
            chance = chances(limited[0], limited[1], w, wary)[:, 0]
    answer = times[0] + w.output_tokens * times[1]
    hosts, stages = _hosts(e, sized), np.asarray(layouts.pp)
    size = np.stack([hosts, sized.chips, -sized.replicas, stages, np.asarray(layouts.dp)])
    with np.errstate(invalid="ignore", divide="ignore"):
        if w.task == "local":
            cost = answer if owned else each
            size = np.stack([each if owned else answer, stages])
        elif w.driven:
            cost = np.where(np.isfinite(usd_per_h), usd_per_h, sized.chips)
        else:
            tokens = p.tokens_per_s[rows, at] if w.pieces is None else sized.rate * w.output_tokens
            cost = -sized.replicas * tokens if owned else each / tokens
    times = times[:0] if w.task == "batch" else times  # nobody waits for one request of a batch
    return Contenders(cost, times, chance, (stages > 1).astype(float), size, np.zeros(len(rows)))


def _chance(e: Evaluated, w: Workload, wary: Caution, rows: NDArray[np.intp], rate: Array) -> tuple[Array, Array]:
    """TTFT and TPOT [2, M] of candidates in `rows` at a rate each [M], between loads of the grid, and the probability
    [M] that targets hold and the rate is carried: passes may take longer, at the same rate."""
    p, caution = e.prediction, wary.take(rows)
    longer = longer_by(caution.passes[1])
    grid, seen = p.requests_per_s[rows], np.stack([p.ttft_s, p.tpot_s, *e.held])[:, rows]
    carried, slowed = _between(grid, rate, seen), _between(grid, rate * longer, seen[2:])
    with np.errstate(divide="ignore", invalid="ignore"):
        known = e.allowed[rows] & np.isfinite(seen[2:]).all(axis=0)  # beyond it no closed form of tails holds
        most = np.max(np.where(known, np.nan_to_num(grid), 0.0), axis=1)
        room = np.where(most < rate * longer * (1.0 - 1e-6), most / rate, np.inf)
    chance = chances(carried[2][:, None], carried[3][:, None], w, caution.at_rate(*powers(carried[2:], slowed, longer)))
    return carried[:2], np.minimum(chance[:, 0], caution.carried(room))


def _between(rates: Array, rate: Array, figures: Array) -> Array:
    """Figures [F, N, K] of the grid at a rate [N] of each candidate [F, N]: between the lightest load whose rate is as
    high, or the last, and the one before."""
    rows, carries = np.arange(len(rate)), rates >= rate[:, None]
    high = np.where(carries.any(axis=1), np.argmax(carries, axis=1), rates.shape[1] - 1)
    low = np.maximum(high - 1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = (rate - rates[rows, low]) / (rates[rows, high] - rates[rows, low])
        share = np.where(np.isfinite(share), np.clip(share, 0.0, 1.0), 1.0)
        below, above = figures[:, rows, low], figures[:, rows, high]
        return np.asarray(np.where(np.isfinite(below), below + share * (above - below), above))


def _hosts(e: Evaluated, sized: _Sized) -> Array:
    """Machines that hold all replicas of each candidate [N], whole ones in each where they fit."""
    held = np.array([d.system.chips_per_host if d.system else 1 for d in e.group.deployments])[e.group.which]
    per_package = np.array([d.chip.devices_per_package for d in e.group.deployments])[e.group.which]
    alone = np.maximum(np.asarray(e.group.layouts().devices) / per_package, 1.0)
    count = sized.chips / alone
    inside = np.ceil(count / np.maximum(np.floor(held / alone), 1.0))
    return np.asarray(np.where(alone <= held, inside, count * np.ceil(alone / held)))
