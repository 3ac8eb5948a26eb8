"""`sensitivity`: the cost of a plan with each of its inputs changed alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from chipwise.api.alternatives import CACHED
from chipwise.api.estimating import estimate
from chipwise.api.placing import Given, Terms
from chipwise.catalog.quality import UNKNOWN, quality_of, quality_words
from chipwise.errors import ChipwiseError
from chipwise.report.plans import PlanRecord
from chipwise.report.sensitivity import InputRecord, SensitivityReport
from chipwise.workload.lengths import PrefixCache
from chipwise.workload.workload import Workload

BY = 2.0
"""Lengths and load are halved and doubled."""
REQUESTS = 1000.0
HOUR_S = 3600.0


def sensitivity(model: str, workload: Workload, given: Given, terms: Terms | None = None) -> SensitivityReport:
    """The cost of a thousand requests on a deployment at a fixed number of requests in flight, with lengths and
    load halved and doubled, other number formats, a prefix cache, the ends of the price and of the prediction's
    interval. The chips stay the same, and so do other inputs: each is changed alone. Where the requests in flight no
    longer fit beside each other, as many as do are taken.

    The arguments are those of `estimate`, and so are its errors.
    """
    terms = terms or Terms()
    asked = estimate(model, workload, given, terms).plans[0]
    held = replace(given, rate_per_s=None, concurrency=asked.concurrency)
    answer = estimate(model, workload, held, terms)
    plan = answer.plans[0]
    priced = plan.price is not None

    def cost(w: Workload = workload, g: Given = held, t: Terms = terms) -> float | None:
        # where so many requests do not fit any more, as many as do
        for tried in (g, replace(g, concurrency=None)) if g is held else (g,):
            try:
                return _cost(estimate(model, w, tried, t).plans[0], priced=priced)
            except ChipwiseError:
                continue
        return None  # what does not fit or cannot run has no cost

    base = _cost(plan, priced=priced)
    found = (
        *_lengths(workload, cost),
        *_load(plan, held, workload, cost),
        *_formats(plan, answer.model.name, terms, cost),
    )
    kept = [i for i in (*found, *_ends(plan, base)) if i.at_lesser is not None or i.at_greater is not None]
    return SensitivityReport(
        model=answer.model,
        workload=answer.workload,
        plan=plan,
        unit="$ per 1,000 requests" if priced else "chip-hours per 1,000 requests",
        base=base,
        inputs=tuple(sorted(kept, key=lambda i: -i.swing(base))),
        assumptions=answer.assumptions,
    )


def _lengths(workload: Workload, cost: Callable[..., float | None]) -> Iterator[InputRecord]:
    """Shorter and longer prompts and answers."""
    for name, words in (("prompt_tokens", "prompt tokens"), ("output_tokens", "output tokens")):
        value = getattr(workload, name)
        if value > BY:
            low, high = (cost(replace(workload, lengths=None, **{name: x})) for x in (value / BY, value * BY))
            yield InputRecord(words, f"{value / BY:,.0f}", f"{value * BY:,.0f}", low, high)


def _load(
    plan: PlanRecord, held: Given, workload: Workload, cost: Callable[..., float | None]
) -> Iterator[InputRecord]:
    """Fewer and more requests in flight, and prompts that a cache knows."""
    if workload.task != "local":
        few, many = max(plan.concurrency / BY, 1.0), plan.concurrency * BY
        low, high = (cost(g=replace(held, concurrency=x)) for x in (few, many))
        yield InputRecord("requests in flight", f"{few:,.0f}", f"{many:,.0f}", low, high)
    if workload.prefix is None and workload.prompt_tokens > 1:
        cached = cost(replace(workload, prefix=PrefixCache(CACHED)))
        yield InputRecord("prompts in a prefix cache", "", f"{CACHED:.0%}", None, cached)


def _ends(plan: PlanRecord, base: float) -> Iterator[InputRecord]:
    """The ends of the price and of the interval of the prediction."""
    if (p := plan.price) is not None:
        ends = base * p.low / p.mid, base * p.high / p.mid
        yield InputRecord("price", f"${p.low:,.2f}/h", f"${p.high:,.2f}/h", *ends)
    t = plan.tokens_per_s
    ends = base * t.mid / t.high, base * t.mid / t.low
    yield InputRecord("error of the prediction (80 %)", f"{t.high:,.0f} tok/s", f"{t.low:,.0f} tok/s", *ends)


def _formats(plan: PlanRecord, model: str, terms: Terms, cost: Callable[..., float | None]) -> Iterator[InputRecord]:
    """Fewer bits for weights and for the cache, where they are 16."""
    wide = ("bf16", "fp16")
    if plan.precision in wide:
        for name in ("fp8", "int4"):
            found = cost(t=replace(terms, precision=name))
            yield InputRecord(f"weights in {name} ({quality_words(quality_of(model, name))})", name, "", found, None)
    if plan.kv in wide:
        found = cost(t=replace(terms, kv="fp8"))
        yield InputRecord(f"cache in fp8 ({UNKNOWN})", "fp8", "", found, None)


def _cost(plan: PlanRecord, *, priced: bool) -> float:
    """Dollars of a thousand requests, else chip-hours."""
    hours = REQUESTS / plan.requests_per_s / HOUR_S
    return hours * plan.price.mid if priced and plan.price is not None else hours * plan.chips
