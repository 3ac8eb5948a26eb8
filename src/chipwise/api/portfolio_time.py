"""The placements of a fleet through time: each served demand as `simulate` runs it, on the chips that it got."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace

from chipwise.api.portfolio import Demand, FleetAsked, placed_options
from chipwise.api.requests.command import about
from chipwise.api.requests.planning import PlanRequest
from chipwise.api.requests.simulate import DeployedSimulation
from chipwise.errors import ChipwiseError
from chipwise.report.portfolio import API, PlacedTimeRecord, PlacementRecord, PortfolioReport

EVEN = 0.5
"""ratio: of chance up to which the middle of an interval is compared with a target, above it the upper end."""
FIELDS = {"TTFT": "ttft_s", "TPOT": "tpot_s", "whole answer": "e2e_s"}


def through_time(asked: FleetAsked, report: PortfolioReport) -> PortfolioReport:
    """The answer with its placements simulated, one by one, each in the slices of the day that no other is harder than;
    of those that cannot be, why."""
    demands = {d.name: d for d in asked.demands}
    found: list[PlacedTimeRecord] = []
    left: list[str] = []
    for p in report.placements:
        demand = demands[p.demand]
        why = "tokens of an API" if p.kind == API else "training" if demand.training else ""
        why = why or ("a step of a chain, whose times are added up" if demand.step else "")
        why = why or ("a job without targets" if demand.tokens else "")
        why = why or ("its turns are played through for the plan" if p.sharing and p.sharing.turn else "")
        try:
            found += () if why else _times(demand, p)
        except ChipwiseError as error:
            why = error.what
        left += [f"{p.demand} on {p.supply}: {why}"] if why else []
    return replace(report, simulated=tuple(found), unsimulated=tuple(dict.fromkeys(left)))


def _times(demand: Demand, p: PlacementRecord) -> Iterator[PlacedTimeRecord]:
    """Each time that has a target, in the slice in which it is worst."""
    rows = [row for hour, n, rate in _hardest(p) for row in _slice(demand, p, hour, n, rate)]
    for time in dict.fromkeys(row.time for row in rows):
        yield min((r for r in rows if r.time == time), key=lambda r: (r.holds, r.within, -r.mean.mid))


def _hardest(p: PlacementRecord) -> Iterator[tuple[float, int, float]]:
    """Hour, replicas and requests per second of the slices in which it works, but for those that another one has with
    no more replicas and no less for each of them."""
    each = 24.0 / len(p.per_slice)
    slices = [
        (round(n), rate, i * each)
        for i, (n, rate) in enumerate(zip(p.per_slice, p.requests_per_s, strict=True))
    ]
    fewest = float("inf")
    for n, rate, hour in sorted((s for s in slices if s[0] and s[1]), key=lambda s: (-s[1] / s[0], s[0])):
        if n < fewest:
            yield hour, n, rate
            fewest = n


def _slice(
    demand: Demand, p: PlacementRecord, hour: float, replicas: int, rate: float
) -> Iterator[PlacedTimeRecord]:
    """Its requests in one slice. Raises the errors of `simulate`."""
    question = demand.question
    assert isinstance(question, PlanRequest)
    workload = question.workload_of("serve")
    given = {"ttft": workload.ttft_s, "tpot": workload.tpot_s, "e2e": workload.e2e_s}
    targets = {name: None if s is None else f"{s:.10g}s" for name, s in given.items()}
    options = placed_options(question, asdict(p), replicas, f"{rate:.10g}/s")
    found = about(question, DeployedSimulation, **{**options, **targets}).answer().simulation
    sure = workload.confidence > EVEN
    for w in found.within:
        spread = getattr(found, FIELDS[w.target])
        if spread is None:
            continue
        if workload.percentile is None:
            holds = (spread.mean.high if sure else spread.mean.mid) <= w.seconds
        else:
            holds = (w.low if sure else w.mid) >= workload.percentile
        yield PlacedTimeRecord(
            rank=p.rank,
            demand=p.demand,
            chip=p.chip,
            hour=hour,
            replicas=replicas,
            rate_per_s=rate,
            requests=found.requests,
            time=w.target,
            mean=spread.mean,
            p99=spread.p99,
            target_s=w.seconds,
            percentile=workload.percentile,
            within=w.mid,
            holds=holds and not found.lost,
        )
