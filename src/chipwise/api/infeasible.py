"""Why there is no plan: what stands in the way, the best that can be had, and the next step."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce

import numpy as np

from chipwise.api.alternatives import HALF_BYTE
from chipwise.api.candidates import CandidateFormat, Market, Space
from chipwise.api.loaded import load_generating
from chipwise.api.remedies import Again, L, Unmet, answered, down, missed, working, works
from chipwise.errors import CommandText, InfeasibleError, Sentence
from chipwise.parallel.layout import Reason
from chipwise.report import figures
from chipwise.report.plans import PlanRecord
from chipwise.report.records import RefusalRecord
from chipwise.search.choose import Refusal
from chipwise.search.reach import NOWHERE, Reach
from chipwise.units import duration_words, format_number, format_seconds
from chipwise.workload.workload import Workload

NARROW = "--precision int4"
"""The narrowest weights that all servers read."""

WIDE = "--precision bf16"
"""Weights that software for every chip reads."""


def unmet(
    market: Market,
    tried: Sequence[CandidateFormat],
    refusals: Sequence[Refusal],
    beyond: PlanRecord | None = None,
    *,
    timed: bool = False,
) -> Unmet[Workload]:
    """A question without a plan, asked again of the chips that came nearest to it (`refusals`), each in the formats
    that were `tried`, so that it costs little; `beyond` is the cheapest plan above the limits of dollars."""
    known = {chip.id for chip in market.chips}
    near = [r for r in refusals if r.chip in known]
    usd = np.inf if beyond is None else beyond.usd()
    fewest = partial(_fewest, market, tried)
    return Unmet(tried[0].context.workload, market.limits, near, fewest, beyond, usd, timed)


def ways_out(question: Unmet[Workload], market: Market, tried: Sequence[CandidateFormat]) -> list[str]:
    """Single changes with which a question without a plan has one that keeps it: a lower rate, less of a reserve,
    weights of 4 bits, more chips, higher limits, a later target or deadline."""
    less, most = question.less(), question.most
    narrow = None if most is None else _narrower(tried)
    if most is not None and narrow is not None:
        asked = Again(most.chip, question.limits, question.load)
        less += [NARROW] if answered(partial(_fewest, market, [narrow]), asked) else []
    return [*less, *question.more(), *question.later()]


def _narrower(tried: Sequence[CandidateFormat]) -> CandidateFormat | None:
    """The model with weights of 4 bits; None where it has them, or nobody knows them so."""
    context = tried[0].context
    graph = context.found.graph
    if context.workload.task == "local" or 8.0 * graph.weight_bytes / graph.parameters <= HALF_BYTE:
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
    first, further = float(likeliest.ttft_s), float(likeliest.tpot_s or 0.0)
    near = Refusal(likeliest.chip, Reason.SLO, Reach(first, further, further, likeliest.requests_per_s))
    question = unmet(market, tried, [near])
    return working(question.fewest, question.targets())


def _fewest(market: Market, tried: Sequence[CandidateFormat], asked: Again[Workload]) -> int | None:
    """The fewest chips of a plan that keeps what is asked, None where none does."""
    chips = [chip for chip in market.chips if chip.id == asked.chip]
    formats = [replace(one, context=replace(one.context, workload=asked.load)) for one in tried]
    plans = Space.over(replace(market, chips=chips, limits=asked.limits), formats).plans()
    return min((p.chips for p in plans if p.keeps_targets(asked.load.confidence)), default=None)


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
    question: Unmet[Workload],
    rejected: Mapping[Reason, int],
    refusals: Sequence[Refusal],
    never: Sequence[RefusalRecord],
    ways: Sequence[str] = (),
) -> InfeasibleError:
    """The error for a search without a plan: `refusals` of chips that were tried, `never` of those that could not be;
    `ways` are changes that work (`ways_out`)."""
    reasons = {reason.value: n for reason, n in rejected.items() if reason is not Reason.OK}
    workload = question.load
    best = _finite(reduce(Reach.better, (r.reach for r in refusals), NOWHERE))
    over, unpriced, slow = (
        [r for r in refusals if r.reason is why] for why in (Reason.BUDGET, Reason.NO_PRICE, Reason.SLO)
    )
    if rejected.get(Reason.BUDGET) or over:
        (what, hint), best = over_limits(question, "request"), best | _paid(question)
    elif unpriced:
        (what, hint), ways = _unpriced([r.chip for r in unpriced]), ()
    elif rejected.get(Reason.SLO):
        what, hint = _slower(slow, workload), "relax the target, or shorten --in"
    else:
        why = _in_the_way(refusals, never, ways)
        return _nowhere(name, reasons, why, short=bool(rejected.get(Reason.MEMORY)))
    return InfeasibleError(f"{name}: {what}", works(ways) if ways else hint, reasons=reasons, reachable=best)


def _paid(question: Unmet[Workload]) -> dict[str, float]:
    """The dollars of the plan that is least beyond the limits."""
    if question.beyond is None or question.beyond.price is None:
        return {}
    hour = {"usd_per_h": question.beyond.price.mid}
    return hour if question.load.job is None else hour | {"usd": question.usd}


def _slower(slow: Sequence[Refusal], w: Workload) -> str:
    """That no chip meets the targets, and which comes nearest."""
    near = min(slow, key=lambda r: missed(r, w))
    return f"no plan meets the targets at any batch; nearest is {near.chip}: {_targets(near, w)}"


def _in_the_way(refusals: Sequence[Refusal], never: Sequence[RefusalRecord], ways: Sequence[str]) -> str:
    """What was in the way of the first chip, and what works all the same."""
    why = [*(r.detail for r in never), *(r.reason.value for r in refusals), "no chips were given"][0]
    return f"{why}; {works(ways)}" if ways else why


def _nowhere(name: str, reasons: Mapping[str, int], why: str, *, short: bool) -> InfeasibleError:
    """The error where nothing is in reach: all are `short` of memory, or what was in the way of the first."""
    if short:
        seen = Sentence(CommandText(f"fit {shlex.quote(name)}", "shows what would"))
        return InfeasibleError(f"{name} does not fit on what was asked", seen, reasons=reasons, see="fit")
    return InfeasibleError(f"{name}: no plan", why, reasons=reasons)


def _unpriced(chips: Sequence[str]) -> tuple[str, str]:
    """That no limit of cost can be kept, and how one could."""
    more = f" and {len(chips) - 4} more" if len(chips) > 4 else ""
    what = f"no price known for {', '.join(chips[:4])}{more}: no limit of cost can be kept"
    return what, "leave out --max-usd-per-h, or say what you pay: --price own --owning capex_usd=USD"


def _finite(reach: Reach) -> dict[str, float]:
    """The figures that are in reach."""
    names = ("ttft_s", "tpot_s", "requests_per_s")
    return {name: s for name in names if np.isfinite(s := getattr(reach, name)) and s > 0}


def over_limits(question: Unmet[L], unit: str) -> tuple[str, str]:
    """What the limits of chips, cost or power leave of a load of requests for a `unit` each, with the plan that is
    least beyond them, and which of them to raise."""
    load, first = question.load, question.most
    carried, rate, job = 0.0 if first is None else first.reach.requests_per_s, load.rate_per_s, load.job
    raised = "raise --max-chips, --max-usd-per-h or --max-watts, or add chips to --have"
    if first is not None and rate is not None:
        by, time = figures.per(rate)
        what = f"{format_number(by * rate)} {unit}s/{time} are out of reach within the limits: at most "
        what += f"{down(by * carried)} on {first.chip}, at {load.utilisation:.0%} of its limit and with "
        what, hint = f"{what}{load.confidence:.0%} probability", f"lower --rate, {raised}"
    elif first is not None and job and job.deadline_s and load.due_per_s and carried < load.due_per_s:
        soonest = duration_words(load.due_per_s * job.deadline_s / carried)
        what = f"within the limits the job takes {soonest} at best, on {first.chip}"
        hint = "allow a later --deadline, raise --max-chips, or add chips to --have"
    elif job is not None:
        what = "no plan does the job within the limits of chips or cost"
        hint = "raise --max-usd or --max-chips, or allow a later --deadline"
    else:
        what, hint = "no plan within the limits of chips, cost or power", raised
    return what + _beyond(question), hint


def _beyond(question: Unmet[L]) -> str:
    """What the plan is that is least beyond the limits, with its dollars."""
    p = question.beyond
    if p is None:
        return ""
    hour = "" if p.price is None else f" at ${format_number(p.price.mid)}/h"
    total = f", ${format_number(question.usd)} in total" if np.isfinite(question.usd) and question.load.job else ""
    return f"; the cheapest plan beyond them is {p.machines}{hour}{total}"


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
