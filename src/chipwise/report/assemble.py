"""From values of the rooms below to the records that people and programs read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from chipwise.catalog.configs import ModelConfig
from chipwise.catalog.offer import PRICE_NOISE
from chipwise.catalog.price import Own, Rent
from chipwise.evidence.judge import Estimate
from chipwise.parallel.layout import Layout
from chipwise.parallel.memory import MemoryAccount
from chipwise.report.records import (
    Figure,
    LayoutRecord,
    MemoryRecord,
    ModelRecord,
    PlanRecord,
    PriceRecord,
    WorkloadRecord,
)
from chipwise.search.choose import pareto
from chipwise.workload.graph import Graph
from chipwise.workload.lengths import PrefixCache
from chipwise.workload.workload import Workload

__all__ = [
    "figure",
    "layout_record",
    "memory_record",
    "model_record",
    "price_record",
    "rank_plans",
    "whole",
    "workload_record",
]


def figure(estimate: Estimate) -> Figure:
    """An estimate as a record."""
    return Figure(estimate.mid, estimate.low, estimate.high, estimate.basis, estimate.provisional)


def model_record(graph: Graph, config: ModelConfig) -> ModelRecord:
    """A model in figures."""
    model = graph.model
    return ModelRecord(
        name=model.name,
        architecture=model.architecture,
        params=graph.params(),
        active_params=graph.active_params(),
        layers=graph.layers,
        precision=model.precision.name,
        weight_bytes=graph.weight_bytes(),
        kv_bytes_per_token=graph.kv_bytes_per_token(),
        kv_bytes_in_window=float(graph.kv_bytes(2.0)) - float(graph.kv_bytes(1.0)),
        beside_bytes={e.name: e.modules * e.weight_bytes for e in graph.extras if e.modules},
        max_context=model.max_context,
        origin=config.origin,
        assumptions=model.assumptions,
    )


def workload_record(w: Workload) -> WorkloadRecord:
    """What was asked."""
    prefix = w.prefix or PrefixCache()
    return WorkloadRecord(
        w.task,
        w.prompt_tokens,
        w.output_tokens,
        w.rate_per_s,
        w.ttft_s,
        w.tpot_s,
        w.served.prompt_cv,
        w.served.output_cv,
        prefix.cached_share,
        prefix.common_tokens,
        w.e2e_s,
        w.percentile,
    )


def layout_record(layout: Layout) -> LayoutRecord:
    """One layout."""
    tp, pp, dp, ep = (int(np.asarray(layout.part(p)).item()) for p in ("tp", "pp", "dp", "ep"))
    return LayoutRecord(tp, pp, dp, ep, Layout(tp, pp, dp, ep).label())


def memory_record(account: MemoryAccount, dp: int = 1, sequences: float = 1.0) -> MemoryRecord:
    """The account of one device; `cache_tokens` counts all attention replicas."""

    def one(value: object) -> float:
        return float(np.asarray(value).reshape(-1)[0])

    return MemoryRecord(
        items={i.kind: one(i.bytes) for i in account.items if one(i.bytes) > 0},
        basis={i.kind: i.basis for i in account.items if one(i.bytes) > 0},
        capacity_bytes=one(account.capacity_bytes),
        withheld_bytes=one(account.withheld_bytes),
        cache_bytes=one(account.cache_bytes),
        cache_tokens=whole(one(account.tokens) * dp),
        verdict=account.verdict(sequences),
    )


def whole(value: float) -> int | None:
    """A count, or None where nothing limits it."""
    return int(value) if np.isfinite(value) else None


def price_record(basis: Rent | Own | None, chips: int, group: int = 1) -> PriceRecord | None:
    """What `chips` of a chip cost on that basis, every `group` of them in one machine, or None where no price is
    known."""
    if basis is None:
        return None
    hour = basis.hour(chips, group)
    if isinstance(basis, Own):
        assumed = f" (assumed: {', '.join(basis.assumed)})" if basis.assumed else ""
        words, dates, stale = f"owned: capital, power and cooling{assumed}", ("", ""), False
    else:
        kind = "spot price" if basis.spot else "on-demand list price"
        where = " ".join(filter(None, (basis.provider, basis.region)))
        of = "instances that replicas fill" if basis.filled else "whole instances"
        words = f"{kind} of {of}, {where or 'range over providers'}"
        dates, stale = (basis.oldest, basis.newest), basis.stale
    low, mid, high = float(hour.low), float(hour.mid), float(hour.high)
    return PriceRecord(low, mid, high, words, round(float(hour.billed)), *dates, stale)


def rank_plans(plans: list[PlanRecord], workload: Workload) -> tuple[PlanRecord, ...]:
    """Plans in order, numbered, with the front and the ties marked.

    First those that keep the targets with the confidence asked for, of them those with a price. Then what the user
    pays: one local user waits for a whole answer; serving a given rate costs dollars per hour; else dollars per output
    token, prompts included; without any price tokens per second. What counts is the cautious end: the middle price at
    the low end of the speed. Within the noise of list prices plans cost the same: of those come first the ones that
    rest on measurements and fresh prices, then fewer machines, fewer chips, fewer replicas, and the cheaper. Being
    faster than the targets ask earns nothing. Two plans tie where each one's figure lies inside the other's interval.
    """
    paid = workload.task != "local" and any(p.price for p in plans)
    wary = [(_goal(p, workload, paid=paid), p) for p in plans]
    wary.sort(key=lambda pair: (_unsure(pair[1], workload), pair[0] is None, _cautious(*pair, paid=paid)))
    if paid:
        wary = _simplest_within_noise(wary, workload)
    plans = [plan for _, plan in wary]
    if workload.task == "local":
        cost = np.array([p.price.mid if p.price else np.inf for p in plans])
    else:
        cost = np.array([np.inf if goal is None else goal.mid for goal, _ in wary])
    front = pareto(cost, np.array([p.pace.mid for p in plans])) if plans else ()
    ranked = []
    for i, (goal, plan) in enumerate(wary):
        ties = tuple(j + 1 for j, (other, _) in enumerate(wary) if j != i and _tie(goal, other))
        ranked.append(replace(plan, rank=i + 1, on_front=bool(front[i]), ties=ties))
    return tuple(ranked)


Ranked = tuple[Figure | None, PlanRecord]


def _unsure(plan: PlanRecord, w: Workload) -> bool:
    return plan.chance is not None and plan.chance < w.confidence - 0.005  # as it is printed


def _cautious(goal: Figure | None, plan: PlanRecord, *, paid: bool) -> float:
    """What is `paid` where the plan is as slow as the end of its interval, else the goal; chips where there is none."""
    if goal is None:
        return float(plan.chips)
    if not paid:
        return goal.mid
    # to eight digits: beyond those a load that was searched for is not known, and would rank by chance
    return float(f"{goal.mid * plan.tokens_per_s.mid / plan.tokens_per_s.low:.8g}")


def _simplest_within_noise(pairs: list[Ranked], w: Workload) -> list[Ranked]:
    """Runs of plans whose cautious dollars lie within the noise of the cheapest of the run, ordered by what else
    speaks for a plan."""
    runs: list[list[Ranked]] = []
    for pair in pairs:
        goal, plan = pair
        leader = runs[-1][0] if runs else None
        alike = leader is not None and (leader[0] is None, _unsure(leader[1], w)) == (
            goal is None,
            _unsure(plan, w),
        )
        if (
            leader
            and alike
            and (
                goal is None
                or _cautious(*pair, paid=True) < _cautious(*leader, paid=True) * (1.0 + PRICE_NOISE)
            )
        ):
            runs[-1].append(pair)
        else:
            runs.append([pair])

    def order(pair: Ranked) -> tuple[float, ...]:
        p = pair[1]
        doubts = (p.pace.basis == "modelled") + bool(p.price and p.price.stale)
        return doubts, p.hosts, p.chips, p.replicas, _cautious(*pair, paid=True)

    return [pair for run in runs for pair in sorted(run, key=order)]


def _goal(plan: PlanRecord, w: Workload, *, paid: bool) -> Figure | None:
    if w.task == "local":
        first = plan.ttft_s
        if plan.tpot_s is None:
            return first
        t, out = plan.tpot_s, w.output_tokens - 1.0
        return Figure(
            first.mid + out * t.mid,
            first.low + out * t.low,
            first.high + out * t.high,
            t.basis,
            t.provisional,
        )
    if not paid:
        tokens = plan.tokens_per_s
        return Figure(1 / tokens.mid, 1 / tokens.high, 1 / tokens.low, tokens.basis, tokens.provisional)
    if w.task == "serve" and w.rate_per_s is not None:
        price = plan.price
        return Figure(price.mid, price.low, price.high, "published", False) if price else None
    if plan.price is None:
        return None
    # all that a request costs, per output token: the split between input and output does not rank
    tokens = plan.tokens_per_s
    mid, low, high = (
        usd / 3600.0 / rate * 1e6
        for usd, rate in (
            (plan.price.mid, tokens.mid),
            (plan.price.low, tokens.high),
            (plan.price.high, tokens.low),
        )
    )
    return Figure(mid, low, high, tokens.basis, tokens.provisional)


def _tie(a: Figure | None, b: Figure | None) -> bool:
    return a is not None and b is not None and a.low <= b.mid <= a.high and b.low <= a.mid <= b.high
