"""`frontier`: what each chip gives at every balance of throughput and speed, over all layouts and batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from chipwise.api.context import Context
from chipwise.api.nearest import model_facts
from chipwise.api.placing import Terms
from chipwise.catalog.chip import Chip
from chipwise.catalog.published import load_inference_results
from chipwise.errors import InfeasibleError, UsageError, shorten
from chipwise.evidence.item import Item, item_of
from chipwise.evidence.match_axes import Target, model_axis
from chipwise.evidence.nearest import predicted
from chipwise.evidence.store import Store
from chipwise.report.assemble import ReplicaSet, model_record, workload_record
from chipwise.report.frontier import FrontierPoint, FrontierReport, MeasuredPoint
from chipwise.report.plans import PlanRecord
from chipwise.report.records import RefusalRecord
from chipwise.search.deployments import deployments
from chipwise.search.evaluate import Evaluated, evaluate
from chipwise.search.space import Limits, candidates
from chipwise.units import Array, parse_quantity
from chipwise.workload.workload import Workload

PARTS = 3
"""Of a format: weights, software, cache."""
POINTS = 14
"""Points of a curve that are kept: those that stand apart."""


def frontier(
    model: str,
    workload: Workload,
    chips: Sequence[str],
    terms: Terms | None = None,
    *,
    most: int = 64,
    evidence: bool = True,
    formats: Mapping[str, str] | None = None,
) -> FrontierReport:
    """The layouts and loads of one replica of at most `most` devices that no other on the same chip beats both in
    tokens per second of a chip and in tokens per second that a user sees, for each of `chips`; with `evidence` what was
    measured of the same or a near model on them. `formats` are weights, software and cache of a chip,
    `fp8/vllm/bf16@40`, where they are not those of `terms`; the speed behind them is marked.

    Raises `InfeasibleError` where no chip has one, `UsageError` and `UnknownNameError` for bad input.
    """
    terms = terms or Terms()
    asked = replace(workload, task="batch")
    wanted = [terms.chip(name) for name in dict.fromkeys(chips)]
    own = {terms.chip(name).id: text for name, text in (formats or {}).items()}
    alike: dict[str, list[Chip]] = {}
    for chip in wanted:
        alike.setdefault(own.get(chip.id, "").partition("@")[0], []).append(chip)
    records: list[PlanRecord] = []
    refused: list[RefusalRecord] = []
    for text, some in alike.items():
        formatted = _formatted(terms, text)
        context = formatted.context(model, asked)
        curves, unable = _curves(context, formatted, some, most)
        records += curves
        refused += unable
    graph = context.found.graph
    order = {chip.id: place for place, chip in enumerate(wanted)}
    found = _points(records, order)
    known = {p.chip for p in found}
    without = order.keys() - known - {r.chip for r in refused}
    refused += [RefusalRecord(c, "MEMORY", f"nothing fits on {most} devices") for c in sorted(without)]
    if not found:
        said = "; ".join(f"{r.chip}: {r.detail}" for r in refused)
        raise InfeasibleError(f"no chip runs {graph.model.name}: {said}", "name other chips")
    return FrontierReport(
        model=model_record(graph, context.found.config),
        workload=workload_record(context.workload),
        points=found,
        measured=_measured(model, known) if evidence else (),
        refused=tuple(refused),
        assumptions=(*context.assumptions(records, wanted), *terms.said),
        speeds=_speeds(own, known),
    )


def _curves(
    context: Context, terms: Terms, chips: Sequence[Chip], most: int
) -> tuple[list[PlanRecord], list[RefusalRecord]]:
    """The points of the curves of chips in the formats of terms, and the chips that run nothing so."""
    graph, w = context.found.graph, context.workload
    offered, never = deployments(graph.model, chips, terms.runtime, policy=terms.policy)
    able, unable = context.tactics.on(offered, graph, terms.policy)
    groups = candidates(graph, tuple(able), Limits(max_devices=most))
    priced = (evaluate(graph, group, w, *context.rates(group.deployments)) for group in groups)
    found = [record for e in priced for record in _records(context, e)]
    return found, [*(RefusalRecord(c.id, r.name, why) for c, r, why in never), *unable]


def _formatted(terms: Terms, text: str) -> Terms:
    """Terms with the weights, software and cache that a text says, `fp8/vllm/bf16`; what it leaves out stays. Raises
    `UsageError`."""
    parts = [part.strip() or None for part in text.split("/")]
    if len(parts) > PARTS:
        raise UsageError(f"--formats: cannot read '{shorten(text)}'", "as in h100=fp8/vllm/bf16")
    precision, runtime, kv = [*parts, None, None, None][:PARTS]
    return replace(terms, precision=precision or terms.precision, runtime=runtime or terms.runtime, kv=kv or terms.kv)


def _speeds(formats: Mapping[str, str], chips: set[str]) -> dict[str, float]:
    """The speeds that are said behind formats."""
    said = {chip: text.partition("@")[2] for chip, text in formats.items() if "@" in text and chip in chips}
    return {chip: parse_quantity(text, "", "--formats", low=1e-6, high=1e9) for chip, text in said.items()}


def _points(records: Sequence[PlanRecord], order: Mapping[str, int]) -> tuple[FrontierPoint, ...]:
    """The points that serve users, by chip in this order, the fastest for a user first."""
    found = (FrontierPoint.of(p) for p in records if p.tokens_per_s_per_user is not None)
    return tuple(sorted(found, key=lambda p: (order[p.chip], -p.tokens_per_s_per_user.mid)))


def _records(context: Context, e: Evaluated) -> list[PlanRecord]:
    """The points of the curves of a group, one replica each."""
    rows, points = _outer(e)
    if not len(rows):
        return []
    group = e.group.take(rows)
    engines = replace(e.engines_at(rows), replicas=np.ones(len(rows)))
    workers = np.ceil(e.beside[rows, points] * (1.0 - 1e-9))
    if workers.any():
        engines = replace(engines, prompt_servers=(workers * engines.ranks * engines.stages)[:, None])
    loads = context.loads(group, engines, e.rates[1].service)
    found = loads.at(e.prediction.load[rows, points][:, None])
    return context.records(group, loads, found, [ReplicaSet(prompt_workers=int(n)) for n in workers])


def _outer(e: Evaluated) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Candidates and batches on the outer curve of each deployment, at most `POINTS` that stand apart."""
    p, layouts = e.prediction, e.group.layouts()
    package = np.array([d.chip.devices_per_package for d in e.group.deployments])[e.group.which]
    chips = (np.asarray(layouts.devices) / package)[:, None] * (1.0 + e.beside)
    with np.errstate(divide="ignore", invalid="ignore"):
        user, chip = 1.0 / p.tpot_s, p.tokens_per_s / chips
    good = e.allowed & (e.reason == 0)[:, None] & np.isfinite(user) & np.isfinite(chip) & (chip > 0.0)
    rows: list[int] = []
    points: list[int] = []
    for i in range(len(e.group.deployments)):
        mine, at = np.nonzero(good & (e.group.which == i)[:, None])
        kept = _front(user[mine, at], chip[mine, at])
        rows += list(mine[kept])
        points += list(at[kept])
    return np.array(rows, dtype=np.intp), np.array(points, dtype=np.intp)


def _front(x: Array, y: Array) -> NDArray[np.intp]:
    """Points that no other beats in both, from large x to small, without those that lie close to one before."""
    order = np.lexsort((-y, -x))
    best = np.maximum.accumulate(y[order])
    front: NDArray[np.intp] = order[np.r_[True, best[1:] > best[:-1]]] if len(order) else order
    if len(front) <= POINTS:
        return front
    way = np.r_[0.0, np.cumsum(np.abs(np.diff(np.log(x[front]))) + np.abs(np.diff(np.log(y[front]))))]
    wanted = np.linspace(0.0, way[-1], POINTS)
    kept = np.unique(np.searchsorted(way, wanted - 1e-12).clip(max=len(front) - 1))
    return np.asarray(front[kept])


def _measured(model: str, chips: set[str]) -> tuple[MeasuredPoint, ...]:
    """Measurements of the same or a near model on the chips that know both figures; of published ones that differ in
    round or submitter only, the best."""
    facts = model_facts(model)
    if facts is None:
        return ()
    target = Target(model=facts, chip="")
    found: dict[tuple[object, ...], MeasuredPoint] = {}
    for item in (*Store().items(), *map(item_of, load_inference_results().values())):
        pace = item.tpot_mean_s or item.tpot_p99_s
        if item.chip not in chips or item.per_chip is None or not pace:
            continue
        mark = model_axis(target, item, model_facts).mark
        if mark not in ("same", "near"):
            continue
        own = item.id if item.measured_by_user else ""
        key = (own, item.model, item.chip, item.chips, item.scenario, item.precision)
        point = _point(item, pace, item.per_chip, same=mark == "same")
        if key not in found or point.tokens_per_s_per_chip > found[key].tokens_per_s_per_chip:
            found[key] = point
    return tuple(sorted(found.values(), key=lambda m: (m.chip, -m.tokens_per_s_per_chip)))


def _point(item: Item, pace: float, per_chip: float, *, same: bool) -> MeasuredPoint:
    who = "measured here" if item.measured_by_user else f"{item.submitter}, {item.format}, {item.scenario}"
    lengths = (item.input_tokens, item.output_tokens)
    said = f", {lengths[0]:,.0f} tokens in, {lengths[1]:,.0f} out" if lengths[0] and lengths[1] else ""
    return MeasuredPoint(
        item.id,
        item.chip,
        item.chips or 1,
        1.0 / pace,
        per_chip,
        item.model,
        item.precision,
        f"{who}{said} ({item.id})",
        same,
        item.tpot_mean_s is None,
        _ratio(item),
    )


def _ratio(item: Item) -> float | None:
    """What was measured over what is predicted for the conditions of the measurement."""
    guess = predicted(item)
    return item.tokens_per_s / guess if guess and item.tokens_per_s else None
