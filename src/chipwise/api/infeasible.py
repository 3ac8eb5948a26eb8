"""Why there is no plan: what stands in the way, the best that can be had, and the next step."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

import numpy as np

from chipwise.errors import Command, InfeasibleError, Said
from chipwise.parallel.layout import Reason
from chipwise.report.plans import PlanRecord
from chipwise.report.records import RefusalRecord
from chipwise.search.choose import Refusal
from chipwise.search.reach import NOWHERE
from chipwise.units import duration_words, format_number, format_seconds
from chipwise.workload.workload import Workload


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
) -> InfeasibleError:
    """The error for a search without a plan: `refusals` of chips that were tried, `never` of those that could
    not be; `dearer` is the cheapest plan above the limit of cost."""
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
        return InfeasibleError(what, hint, reasons=reasons, reachable=best)
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
        return InfeasibleError(what + _targets(near, workload), hint, reasons=reasons, reachable=best)
    if rejected.get(Reason.MEMORY):
        what = f"{name} does not fit on what was asked"
        return InfeasibleError(
            what, Said(Command(f"fit {shlex.quote(name)}", "shows what would")), reasons=reasons, see="fit"
        )
    detail = never[0].detail if never else refusals[0].reason.value if refusals else "no chips were given"
    return InfeasibleError(f"{name}: no plan", detail, reasons=reasons)


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
