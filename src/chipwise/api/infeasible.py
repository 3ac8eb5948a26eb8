"""Why there is no plan: what stands in the way, the best that can be had, and the next step."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce

import numpy as np

from chipwise.api.alternatives import HALF_BYTE
from chipwise.api.candidates import CandidateFormat, Market, Space
from chipwise.api.loaded import load_generating
from chipwise.api.remedies import answered, down, either, steps, working
from chipwise.catalog.preferences import preferences
from chipwise.errors import CommandText, InfeasibleError, Sentence
from chipwise.parallel.layout import Reason
from chipwise.report.plans import PlanRecord
from chipwise.report.records import RefusalRecord
from chipwise.search.choose import Refusal
from chipwise.search.reach import NOWHERE, Reach
from chipwise.search.space import Limits
from chipwise.units import duration_above, duration_words, format_number, format_seconds, typed_s
from chipwise.workload.workload import Workload

ASKS = 6  # times a change is made larger before it is given up
LATER = 1.25  # times a target that is not kept yet, that is asked next
TARGETS = ("ttft_s", "tpot_s")  # of the targets those that bound a load
LOWER = 0.9  # times a rate that is not carried yet
MORE = (2, 3, 4, 6, 8)  # times the chips that one has
FULLER = 2.0  # times the rate that is carried: no less of a reserve makes more of it

NARROW = "--precision int4"
"""The narrowest weights that all servers read."""

WIDE = "--precision bf16"
"""Weights that software for every chip reads."""

Asked = tuple[str, Limits, Workload]
"""A question asked again: of one chip, within limits, for a workload."""


def ways_out(
    market: Market, tried: Sequence[CandidateFormat], refusals: Sequence[Refusal], *, timed: bool = False
) -> list[str]:
    """Single changes with which a question without a plan has one that keeps it: a lower rate, less of a reserve, more
    of the chips that one has, more chips, a later target or deadline.

    Each is asked of the chip that came nearest to it (`refusals`), in the formats that were `tried`, so that it costs
    little, and weights of 4 bits of it too. `timed`: the rate is the peak of a day, which no option of its own lowers.
    """
    w, limits, known = tried[0].context.workload, market.limits, {chip.id for chip in market.chips}
    near, fewest = [r for r in refusals if r.chip in known], partial(_fewest, market, tried)
    most = max(near, key=lambda r: r.reach.requests_per_s, default=None)
    carrying = most is not None and most.reach.requests_per_s > 0.0
    less: list[str] = []
    later: list[str] = []
    if most is not None and carrying:
        less = [*working(fewest, () if timed else _less_load(w, limits, most), _fuller(w, limits, most))]
        later = working(fewest, _later_job(w, limits, most), *(_looser(w, limits, most, n) for n in TARGETS))
        narrow = _narrower(tried)
        less += [NARROW] if narrow and answered(partial(_fewest, market, [narrow]), (most.chip, limits, w)) else []
    more = (*_more_of_mine(w, limits, near, fewest), *_more_chips(w, limits, near, fewest))
    return [*less, *more, *working(fewest, _later(w, limits, near)), *later]


def _narrower(tried: Sequence[CandidateFormat]) -> CandidateFormat | None:
    """The model with weights of 4 bits; None where it has them, or nobody knows them so."""
    context = tried[0].context
    graph = context.found.graph
    if context.workload.task == "local" or 8.0 * graph.weight_bytes() / graph.params() <= HALF_BYTE:
        return None
    found = answered(lambda name: load_generating(graph.model.name, name, None), NARROW.split()[-1])
    return None if found is None else CandidateFormat(replace(context, found=found), stored=False)


def wider(market: Market, tried: Sequence[CandidateFormat]) -> list[str]:
    """Wide weights, where software reads those alone, and a plan with them keeps what is asked."""
    context = tried[0].context
    found = answered(lambda name: load_generating(context.found.graph.model.name, name, None), WIDE.split()[-1])
    if found is None:
        return []
    one = CandidateFormat(replace(context, found=found), stored=False)
    plans = answered(lambda asked: Space.over(asked, [one]).plans(), market) or []
    return [WIDE] if any(p.keeps_targets(context.workload.confidence) for p in plans) else []


def kept_with(market: Market, tried: Sequence[CandidateFormat], likeliest: PlanRecord) -> list[str]:
    """The later targets that are kept, where no plan keeps those that were asked as surely, found by asking on the chip
    of the `likeliest`."""
    if not any(chip.id == likeliest.chip for chip in market.chips):
        return []
    first, further = float(likeliest.ttft_s), float(likeliest.tpot_s or 0.0)
    near = Refusal(likeliest.chip, Reason.SLO, Reach(first, further, further, likeliest.requests_per_s))
    later = _later(tried[0].context.workload, market.limits, [near])
    return working(partial(_fewest, market, tried), later)


def _fewest(market: Market, tried: Sequence[CandidateFormat], asked: Asked) -> int | None:
    """The fewest chips of a plan that keeps what is asked, None where none does."""
    name, limits, w = asked
    chips = [chip for chip in market.chips if chip.id == name]
    formats = [replace(one, context=replace(one.context, workload=w)) for one in tried]
    plans = Space.over(replace(market, chips=chips, limits=limits), formats).plans()
    return min((p.chips for p in plans if p.keeps_targets(w.confidence)), default=None)


def _less_load(w: Workload, limits: Limits, best: Refusal) -> Iterator[tuple[str, Asked]]:
    """Rates from the highest that is carried."""
    if w.rate_per_s is not None:
        for rate in map(down, steps(min(best.reach.requests_per_s, w.rate_per_s), LOWER, ASKS)):
            yield f"--rate {rate}/s", (best.chip, limits, replace(w, rate_per_s=float(rate)))


def _fuller(w: Workload, limits: Limits, best: Refusal) -> Iterator[tuple[str, Asked]]:
    """Less of the reserve for bursts, where the load needs no more than `fullest`."""
    if w.rate_per_s is None or w.rate_per_s > FULLER * best.reach.requests_per_s:
        return
    needed = math.ceil(100.0 * w.utilisation * w.rate_per_s / best.reach.requests_per_s + 1.0) / 100.0
    if w.utilisation < needed <= preferences().fullest:
        yield f"--utilisation {needed:.0%}", (best.chip, limits, replace(w, utilisation=needed))


def _more_of_mine(
    w: Workload, limits: Limits, near: Sequence[Refusal], fewest: Callable[[Asked], int | None]
) -> Iterator[str]:
    """So many of the chips that one has as carry what is asked."""
    if limits.have and len(limits.have) == 1 and any(r.reason is Reason.BUDGET for r in near):
        ((chip, count),) = limits.have.items()
        asked = ((chip, replace(limits, have={chip: times * count}), w) for times in MORE)
        found = next(filter(None, (answered(fewest, one) for one in asked)), None)
        if found:
            yield f"--have {found}x{chip}"


def _more_chips(
    w: Workload, limits: Limits, near: Sequence[Refusal], fewest: Callable[[Asked], int | None]
) -> Iterator[str]:
    """So many chips in all as carry what is asked."""
    if limits.max_chips is None or len(limits.have or ()) == 1:
        return
    short = sorted((r for r in near if r.reason is Reason.BUDGET), key=lambda r: -r.reach.requests_per_s)
    more = replace(limits, max_chips=None)
    found = [n for r in short[:ASKS] if (n := answered(fewest, (r.chip, more, w)))]
    if found:
        yield f"--max-chips {min(found)}"


def _later(w: Workload, limits: Limits, near: Sequence[Refusal]) -> Iterator[tuple[str, Asked]]:
    """The targets that are missed, as late as the nearest chip needs them, together where one does not do."""
    best = min((r for r in near if r.reason is Reason.SLO), key=lambda r: _miss(r, w), default=None)
    if best is None:
        return
    first, further = best.reach.ttft_s, best.reach.tpot_with_ttft_s
    further = further if np.isfinite(further) else best.reach.tpot_s
    reached = {"ttft_s": first, "tpot_s": further, "e2e_s": first + (w.output_tokens - 1.0) * further}
    asked = {name: target for name in reached if (target := getattr(w, name)) is not None}
    for factor in steps(LATER, LATER, ASKS):
        later = {n: reached[n] * factor for n in asked if asked[n] < reached[n] * factor < np.inf}
        if later:
            words = " ".join(f"--{name.removesuffix('_s')} {duration_above(s)}" for name, s in later.items())
            changed = replace(w, **{name: typed_s(s) for name, s in later.items()})  # type: ignore[arg-type]
            yield words, (best.chip, limits, changed)


def _looser(w: Workload, limits: Limits, best: Refusal, name: str) -> Iterator[tuple[str, Asked]]:
    """One target later and later, where it is the targets that leave little of the load that is asked for."""
    target = getattr(w, name)
    if target is None or w.rate_per_s is None or FULLER * best.reach.requests_per_s > w.rate_per_s:
        return
    for later in steps(LATER * target, LATER, ASKS):
        words = f"--{name.removesuffix('_s')} {duration_above(later)}"
        yield words, (best.chip, limits, replace(w, **{name: typed_s(later)}))  # type: ignore[arg-type]


def _later_job(w: Workload, limits: Limits, best: Refusal) -> Iterator[tuple[str, Asked]]:
    """Deadlines from the one by which a job may be done."""
    if w.job is not None and w.job.deadline_s is not None and w.due_per_s is not None:
        late = max(1.0, w.due_per_s / best.reach.requests_per_s) * w.job.deadline_s
        for hours in (math.ceil(s / 3600.0) for s in steps(late, LATER, ASKS)):
            job = replace(w.job, deadline_s=3600.0 * hours)
            yield f"--deadline {hours}h", (best.chip, limits, replace(w, job=job))


def refusal_record(refusal: Refusal, workload: Workload) -> RefusalRecord:
    """A chip without a plan: the limit that binds and the best in reach."""
    reach, why = refusal.reach, refusal.reason
    detail = why.value
    if why is Reason.SLO:
        detail = f"slower than asked at any batch: {_targets(refusal, workload)}"
    elif why is Reason.BUDGET and reach.requests_per_s > 0 and workload.rate_per_s is not None:
        detail = f"at most {down(reach.requests_per_s)} requests/s within the limits"
    return RefusalRecord(refusal.chip, why.name, detail, _finite(reach))


def no_plan(
    name: str,
    workload: Workload,
    rejected: Mapping[Reason, int],
    refusals: Sequence[Refusal],
    never: Sequence[RefusalRecord],
    dearer: PlanRecord | None = None,
    ways: Sequence[str] = (),
) -> InfeasibleError:
    """The error for a search without a plan: `refusals` of chips that were tried, `never` of those that could
    not be; `dearer` is the cheapest plan above the limit of cost, `ways` are changes that work (`ways_out`)."""
    reasons = {reason.value: n for reason, n in rejected.items() if reason is not Reason.OK}
    reach = reduce(Reach.better, (r.reach for r in refusals), NOWHERE)
    best = _finite(reach)
    over, unpriced, slow = (
        [r for r in refusals if r.reason is why] for why in (Reason.BUDGET, Reason.NO_PRICE, Reason.SLO)
    )
    if rejected.get(Reason.BUDGET) or over:
        what, hint = _beyond(workload, reach, refusals)
        if dearer is not None and dearer.price is not None:
            words, usd = _costs(dearer, dearer.price.mid)
            what, best = what + words, best | usd
    elif unpriced:
        (what, hint), ways = _unpriced([r.chip for r in unpriced]), ()
    elif rejected.get(Reason.SLO):
        what, hint = _slower(slow, workload), "relax the target, or shorten --in"
    else:
        why = _in_the_way(refusals, never, ways)
        return _nowhere(name, reasons, why, short=bool(rejected.get(Reason.MEMORY)))
    works = f"what works: {either(ways)}" if ways else hint
    return InfeasibleError(f"{name}: {what}", works, reasons=reasons, reachable=best)


def _slower(slow: Sequence[Refusal], w: Workload) -> str:
    """That no chip meets the targets, and which comes nearest."""
    near = min(slow, key=lambda r: _miss(r, w))
    return f"no plan meets the targets at any batch; nearest is {near.chip}: {_targets(near, w)}"


def _in_the_way(refusals: Sequence[Refusal], never: Sequence[RefusalRecord], ways: Sequence[str]) -> str:
    """What was in the way of the first chip, and what works all the same."""
    why = [*(r.detail for r in never), *(r.reason.value for r in refusals), "no chips were given"][0]
    return f"{why}; what works: {either(ways)}" if ways else why


def _nowhere(name: str, reasons: Mapping[str, int], why: str, *, short: bool) -> InfeasibleError:
    """The error where nothing is in reach: all are `short` of memory, or what was in the way of the first."""
    if short:
        seen = Sentence(CommandText(f"fit {shlex.quote(name)}", "shows what would"))
        return InfeasibleError(f"{name} does not fit on what was asked", seen, reasons=reasons, see="fit")
    return InfeasibleError(f"{name}: no plan", why, reasons=reasons)


def _costs(dearer: PlanRecord, usd_per_h: float) -> tuple[str, dict[str, float]]:
    """What the cheapest plan above the limit of cost is, and its dollars."""
    words = f"; the cheapest plan without a limit of cost is {dearer.chips}x {dearer.chip} at "
    words += f"${format_number(usd_per_h)}/h"
    if dearer.job is None:
        return words, {"usd_per_h": usd_per_h}
    usd = dearer.usd()
    return f"{words}, ${format_number(usd)} in total", {"usd_per_h": usd_per_h, "usd": usd}


def _unpriced(chips: Sequence[str]) -> tuple[str, str]:
    """That no limit of cost can be kept, and how one could."""
    more = f" and {len(chips) - 4} more" if len(chips) > 4 else ""
    what = f"no price known for {', '.join(chips[:4])}{more}: no limit of cost can be kept"
    return what, "leave out --max-usd-per-h, or say what you pay: --price own --owning capex_usd=USD"


def _finite(reach: Reach) -> dict[str, float]:
    """The figures that are in reach."""
    names = ("ttft_s", "tpot_s", "requests_per_s")
    return {name: s for name in names if np.isfinite(s := getattr(reach, name)) and s > 0}


def _beyond(w: Workload, reach: Reach, refusals: Sequence[Refusal]) -> tuple[str, str]:
    """What the limits of chips, cost or power leave, and which of them to raise."""
    first, carried = max(refusals, key=lambda r: r.reach.requests_per_s, default=None), reach.requests_per_s
    if first is not None and w.rate_per_s is not None and carried > 0:
        what = f"{format_number(w.rate_per_s)} requests/s are out of reach within the limits: at most {down(carried)} "
        what += f"on {first.chip}, at {w.utilisation:.0%} of its limit and with {w.confidence:.0%} probability"
        return what, "lower --rate, raise --max-chips, --max-usd-per-h or --max-watts, or add chips to --have"
    if first is not None and w.job and w.job.deadline_s and w.due_per_s and 0 < carried < w.due_per_s:
        soonest = duration_words(w.due_per_s * w.job.deadline_s / carried)
        what = f"within the limits the job takes {soonest} at best, on {first.chip}"
        return what, "allow a later --deadline, raise --max-chips, or add chips to --have"
    if w.job is not None:
        what = "no plan does the job within the limits of chips or cost"
        return what, "raise --max-usd or --max-chips, or allow a later --deadline"
    what = "no plan within the limits of chips, cost or power"
    return what, "raise --max-chips, --max-usd-per-h or --max-watts, or add chips to --have"


def _miss(refusal: Refusal, w: Workload) -> float:
    """By what factor the worst target is missed for itself."""
    reach = refusal.reach
    whole = reach.ttft_s + (w.output_tokens - 1.0) * reach.tpot_s
    return max(reach.ttft_s / (w.ttft_s or np.inf), reach.tpot_s / (w.tpot_s or np.inf), whole / (w.e2e_s or np.inf))


def _targets(refusal: Refusal, w: Workload) -> str:
    """Which target binds, and the best values."""
    reach = refusal.reach
    of = "" if w.percentile is None else f"p{w.percentile * 100:g} "
    if not (np.isfinite(reach.ttft_s) and np.isfinite(reach.tpot_s)):
        return f"no load is light enough to know a {of}time"
    best = f"best {of}TTFT {format_seconds(reach.ttft_s)}, best {of}TPOT {format_seconds(reach.tpot_s)}"
    binds = reach.binds(w)
    if binds:
        return f"{binds} out of reach ({best})"
    if np.isfinite(reach.tpot_with_ttft_s):
        best = f"best TPOT where TTFT is met {format_seconds(reach.tpot_with_ttft_s)}"
    return f"TTFT and TPOT are each in reach, but not together on one deployment ({best})"
