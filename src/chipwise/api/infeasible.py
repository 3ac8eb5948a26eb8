"""Why there is no plan: what stands in the way, the best that can be had, and the next step."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from chipwise.api.candidates import CandidateFormat, Market, Space
from chipwise.catalog.preferences import preferences
from chipwise.errors import ChipwiseError, CommandText, InfeasibleError, Sentence
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
LOWER = 0.9  # times a rate that is not carried yet
MORE = (2, 3, 4, 6, 8)  # times the chips that one has


def ways_out(
    market: Market, tried: Sequence[CandidateFormat], refusals: Sequence[Refusal], *, timed: bool = False
) -> list[str]:
    """Single changes with which a question without a plan has one that keeps it, each the smallest of its kind that
    works, found by asking: a lower rate, more of the chips that one has, more chips, a later target or deadline.

    Each is asked of the chip that came nearest to it (`refusals`), in the formats that were `tried`, so that it costs
    little. `timed`: the rate is the peak of a day, which no option of its own lowers.
    """
    w, known = tried[0].context.workload, {chip.id for chip in market.chips}
    near, works = [r for r in refusals if r.chip in known], _asker(market, tried)
    return [
        *_less_load(w, near, works, timed=timed),
        *_more_chips(market.limits, near, works),
        *_later(w, near, works),
        *_later_job(w, near, works),
    ]


def kept_with(market: Market, tried: Sequence[CandidateFormat], likeliest: PlanRecord) -> list[str]:
    """The changes with which targets are kept that no plan keeps as surely as asked: later ones, found by asking on the
    chip of the `likeliest`, or the confidence that it has."""
    w = tried[0].context.workload
    found: list[str] = []
    if any(chip.id == likeliest.chip for chip in market.chips):
        first, further = float(likeliest.ttft_s), float(likeliest.tpot_s or 0.0)
        reach = Reach(first, further, further, likeliest.requests_per_s)
        found += _later(w, [Refusal(likeliest.chip, Reason.SLO, reach)], _asker(market, tried))
    if likeliest.chance is not None and likeliest.chance >= preferences().even:
        found.append(f"--confidence {math.floor(100.0 * likeliest.chance + 0.2):.0f}%")
    return found


Works = Callable[..., PlanRecord | None]
"""The plan with the fewest chips on a chip, within limits and with some of the workload changed, None where none
keeps what is asked."""


def _asker(market: Market, tried: Sequence[CandidateFormat]) -> Works:
    w = tried[0].context.workload
    known = {chip.id: chip for chip in market.chips}

    def works(chip: str, limits: Limits = market.limits, **changed: object) -> PlanRecord | None:
        asked = replace(w, **changed)  # type: ignore[arg-type]
        formats = [replace(one, context=replace(one.context, workload=asked)) for one in tried]
        with suppress(ChipwiseError):
            plans = Space.over(replace(market, chips=[known[chip]], limits=limits), formats).plans()
            kept = [p for p in plans if p.keeps_targets(w.confidence)]
            return min(kept, key=lambda p: p.chips, default=None)
        return None

    return works


def _less_load(w: Workload, near: Sequence[Refusal], works: Works, *, timed: bool) -> Iterator[str]:
    """The highest rate that is carried, as far as a few questions tell."""
    best = max(near, key=lambda r: r.reach.requests_per_s, default=None)
    if best is None or w.rate_per_s is None or timed:
        return
    rate = min(best.reach.requests_per_s, w.rate_per_s)
    for _ in range(ASKS if rate > 0.0 else 0):
        if works(best.chip, rate_per_s=float(down(rate))):
            yield f"--rate {down(rate)}/s"
            return
        rate *= LOWER


def _more_chips(limits: Limits, near: Sequence[Refusal], works: Works) -> Iterator[str]:
    """So many of the chips that one has, or so many in all, as carry what is asked."""
    short = [r for r in near if r.reason is Reason.BUDGET]
    if limits.have and len(limits.have) == 1 and short:
        ((chip, count),) = limits.have.items()
        for times in MORE:
            if works(chip, replace(limits, have={chip: times * count})):
                yield f"--have {times * count}x{chip}"
                return
    elif limits.max_chips is not None:
        short = sorted(short, key=lambda r: -r.reach.requests_per_s)[:ASKS]
        found = [p for r in short if (p := works(r.chip, replace(limits, max_chips=None)))]
        if found:
            yield f"--max-chips {min(p.chips for p in found)}"


def _later(w: Workload, near: Sequence[Refusal], works: Works) -> Iterator[str]:
    """The targets that are missed, as late as the nearest chip needs them, together where one does not do."""
    best = min((r for r in near if r.reason is Reason.SLO), key=lambda r: _miss(r, w), default=None)
    if best is None:
        return
    first, further = best.reach.ttft_s, best.reach.tpot_with_ttft_s
    further = further if np.isfinite(further) else best.reach.tpot_s
    reached = {"ttft_s": first, "tpot_s": further, "e2e_s": first + (w.output_tokens - 1.0) * further}
    asked = {name: target for name in reached if (target := getattr(w, name)) is not None}
    for step in range(1, ASKS + 1):
        later = {name: reached[name] * LATER**step for name in asked}
        changed = {name: typed_s(s) for name, s in later.items() if np.isfinite(s) and s > asked[name]}
        if changed and works(best.chip, **changed):
            yield " ".join(f"--{name.removesuffix('_s')} {duration_above(later[name])}" for name in changed)
            return


def _later_job(w: Workload, near: Sequence[Refusal], works: Works) -> Iterator[str]:
    """The deadline by which a job is done, as far as a few questions tell."""
    best = max(near, key=lambda r: r.reach.requests_per_s, default=None)
    if w.job is None or w.job.deadline_s is None or w.due_per_s is None or best is None:
        return
    if not best.reach.requests_per_s > 0.0:
        return
    later = max(1.0, w.due_per_s / best.reach.requests_per_s) * w.job.deadline_s
    for _ in range(ASKS):
        hours = math.ceil(later / 3600.0)
        if works(best.chip, job=replace(w.job, deadline_s=3600.0 * hours)):
            yield f"--deadline {hours}h"
            return
        later *= LATER


def refusal_record(refusal: Refusal, workload: Workload) -> RefusalRecord:
    """A chip without a plan: the limit that binds and the best in reach."""
    reach, why = refusal.reach, refusal.reason
    detail = why.value
    if why is Reason.SLO:
        detail = f"slower than asked at any batch: {_targets(refusal, workload)}"
    elif why is Reason.BUDGET and reach.requests_per_s > 0 and workload.rate_per_s is not None:
        detail = f"saturated: at most {format_number(reach.requests_per_s)} requests/s within the limits"
    finite = {
        name: value
        for name in ("ttft_s", "tpot_s", "requests_per_s")
        if np.isfinite(value := getattr(reach, name)) and value > 0
    }
    return RefusalRecord(refusal.chip, why.name, detail, finite)


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
    reach = NOWHERE
    for refusal in refusals:
        reach = reach.better(refusal.reach)
    best = {
        key: value
        for key in ("ttft_s", "tpot_s", "requests_per_s")
        if np.isfinite(value := getattr(reach, key)) and value > 0
    }
    deadline_s = workload.job.deadline_s if workload.job else None
    if rejected.get(Reason.BUDGET) or any(r.reason is Reason.BUDGET for r in refusals):
        if workload.rate_per_s is not None and reach.requests_per_s > 0:
            first = max(refusals, key=lambda r: r.reach.requests_per_s)
            what = (
                f"{name}: saturated at {format_number(workload.rate_per_s)} requests/s: within the limits at most "
                f"{format_number(reach.requests_per_s)} requests/s are sustained, on {first.chip}"
            )
            hint = "lower --rate, raise --max-chips, --max-usd-per-h or --max-watts, or add chips to --have"
        elif deadline_s and workload.due_per_s and 0 < reach.requests_per_s < workload.due_per_s:
            first = max(refusals, key=lambda r: r.reach.requests_per_s)
            soonest = workload.due_per_s * deadline_s / reach.requests_per_s
            what = (
                f"{name}: within the limits the job takes {duration_words(soonest)} at best, on {first.chip}"
            )
            hint = "allow a later --deadline, raise --max-chips, or add chips to --have"
        elif workload.job is not None:
            what = f"{name}: no plan does the job within the limits of chips or cost"
            hint = "raise --max-usd or --max-chips, or allow a later --deadline"
        else:
            what = f"{name}: no plan within the limits of chips, cost or power"
            hint = "raise --max-chips, --max-usd-per-h or --max-watts, or add chips to --have"
        if dearer is not None and dearer.price is not None:
            usd = dearer.price.mid
            what += f"; the cheapest plan without a limit of cost is {dearer.chips}x {dearer.chip} at "
            what += f"{format_number(usd)} $/h"
            best |= {"usd_per_h": usd}
            if dearer.job is not None:
                what += f", ${format_number(dearer.usd())} in total"
                best |= {"usd": dearer.usd()}
        return InfeasibleError(what, _worked(ways, hint), reasons=reasons, reachable=best)
    unpriced = [r.chip for r in refusals if r.reason is Reason.NO_PRICE]
    if unpriced:
        more = f" and {len(unpriced) - 4} more" if len(unpriced) > 4 else ""
        what = f"{name}: no price known for {', '.join(unpriced[:4])}{more}: no limit of cost can be kept"
        hint = "leave out --max-usd-per-h, or say what you pay: --price own --owning capex_usd=USD"
        return InfeasibleError(what, hint, reasons=reasons, reachable=best)
    if rejected.get(Reason.SLO):
        slow = [r for r in refusals if r.reason is Reason.SLO]
        near = min(slow, key=lambda r: _miss(r, workload))
        what = f"{name}: no plan meets the targets at any batch; nearest is {near.chip}: "
        hint = "relax the target, or shorten --in"
        what += _targets(near, workload)
        return InfeasibleError(what, _worked(ways, hint), reasons=reasons, reachable=best)
    if rejected.get(Reason.MEMORY):
        what = f"{name} does not fit on what was asked"
        return InfeasibleError(
            what,
            Sentence(CommandText(f"fit {shlex.quote(name)}", "shows what would")),
            reasons=reasons,
            see="fit",
        )
    detail = never[0].detail if never else refusals[0].reason.value if refusals else "no chips were given"
    return InfeasibleError(f"{name}: no plan", detail, reasons=reasons)


def _worked(ways: Sequence[str], otherwise: str) -> str:
    """The changes that work, or what may where none was found."""
    return f"what works: {either(ways)}" if ways else otherwise


def _miss(refusal: Refusal, w: Workload) -> float:
    """By what factor the worst target is missed for itself."""
    reach = refusal.reach
    whole = reach.ttft_s + (w.output_tokens - 1.0) * reach.tpot_s
    return max(
        reach.ttft_s / (w.ttft_s or np.inf), reach.tpot_s / (w.tpot_s or np.inf), whole / (w.e2e_s or np.inf)
    )


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


def down(value: float) -> str:
    """A number with two digits, rounded down."""
    digit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return f"{math.floor(value / digit * (1.0 + 1e-9)) * digit:.6g}"


def up(usd: float | None) -> str:
    """Dollars with three digits, rounded up."""
    if usd is None or not math.isfinite(usd):
        return "(no price is known)"
    digit = 10.0 ** (math.floor(math.log10(usd)) - 2)
    return f"{math.ceil(usd / digit * (1.0 - 1e-9)) * digit:.6g}"


def either(ways: Sequence[str]) -> str:
    """Ways out as one sentence."""
    return ", or ".join(filter(None, (", ".join(ways[:-1]), *ways[-1:])))
