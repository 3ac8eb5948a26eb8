"""The nearest published result of a plan: what `plan` shows beside its basis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import TypeVar

from chipwise.api.loaded import describe
from chipwise.api.media_asked import network
from chipwise.catalog.benchmarks import Named, benchmark_of
from chipwise.catalog.chips import load_chips
from chipwise.catalog.published import load_inference_results
from chipwise.catalog.snapshot import per_snapshot, today
from chipwise.errors import ChipwiseError
from chipwise.evidence.item import item_of
from chipwise.evidence.match import nearest as matched
from chipwise.evidence.match_axes import ModelFacts, Target
from chipwise.evidence.nearest import Nearest, nearest_published
from chipwise.report.evidence import match_words
from chipwise.report.media import MediaReport
from chipwise.report.plans import PlanRecord
from chipwise.report.records import ModelRecord, NearestRecord
from chipwise.workload.workload import Task, Workload

N = TypeVar("N", bound=MediaReport)
LOOKED_UP = 5
"""Plans whose nearest result is looked up: those that are shown first."""


def nearest(
    model: str | ModelRecord,
    chip: str,
    count: int | None,
    workload: Workload,
    *,
    precision: str = "",
    runtime: str = "",
    day: date | None = None,
) -> Nearest | None:
    """The published row of MLPerf Inference nearest to a plan: `count` chips of id `chip` running `model` under
    `workload` at full load, as submissions do. `Nearest.anchored(tokens_per_s)` moves a prediction by what was
    measured: by nothing where no such model was submitted on this very chip.

    None where no language model was submitted on this chip or a near one, the chip is the user's own, or the
    model cannot be read. Costs some tens of milliseconds the first time and about 2 afterwards.
    """
    facts = facts_of(model) if isinstance(model, ModelRecord) else model_facts(model)
    hardware = load_chips().get(chip)
    if facts is None or hardware is None:
        return None
    target = Target(
        model=facts,
        chip=chip,
        chips=count,
        precision=precision or (model.precision if isinstance(model, ModelRecord) else ""),
        scenario=workload.task,
        input_tokens=workload.prompt_tokens,
        output_tokens=workload.output_tokens,
        runtime=runtime,
        date=f"{day or today():%Y-%m}",
        power_w=hardware.tdp_w,
    )
    return nearest_published(target, model_facts)


def beside_network(report: N, model: str, task: Task) -> N:
    """The answer about a network that generates no tokens, with the published result nearest to its first plan; as it
    is where no benchmark measures that network, or a step of training was asked about. It moves nothing."""
    named, first = benchmark_of(model), report.plans[0]
    hardware = load_chips().get(first.chip)
    if report.trained or hardware is None or named is None or named.benchmark.generates or not named.own:
        return report
    target = Target(
        model=network_facts(named, model),
        chip=first.chip,
        chips=first.chips,
        precision=first.precision,
        scenario=task,
        runtime=first.runtime,
        date=f"{today():%Y-%m}",
        power_w=hardware.tdp_w,
        benchmark=named.benchmark.name,
        own=True,
    )
    rows = (r for r in load_inference_results().values() if r.benchmark == named.benchmark.name)
    found = matched(target, tuple(map(item_of, rows)), model_facts, 1)
    return replace(report, nearest=match_words(found[0])) if found else report


def network_facts(named: Named, model: str) -> ModelFacts:
    """What decides the speed of a network that only its benchmark describes."""
    params = float(network(named.benchmark.network).params) if named.benchmark.network else 0.0
    return ModelFacts(model, params, params, 0.0, named.benchmark.kind)


def facts_of(m: ModelRecord) -> ModelFacts:
    """What of a model decides its speed."""
    return ModelFacts(m.name, m.params, m.active_params, m.kv_bytes_per_token, m.architecture)


@per_snapshot
def model_facts(name: str) -> ModelFacts | None:
    """The same of a model by name, None where it cannot be read."""
    try:
        return facts_of(describe(name))
    except ChipwiseError:
        return None


def beside_published(
    plans: Sequence[PlanRecord], model: ModelRecord, workload: Workload, today: date
) -> tuple[PlanRecord, ...]:
    """The first plans with their nearest published result; it moves nothing that they are ranked by."""

    def looked_up(p: PlanRecord) -> PlanRecord:
        found = nearest(model, p.chip, p.chips, workload, precision=p.precision, runtime=p.runtime, day=today)
        if found is None:
            return p
        record = NearestRecord(
            found.result,
            found.label,
            found.date,
            found.verdict,
            found.supports,
            found.distance,
            found.tokens_per_s,
            found.chips,
            found.weight,
            found.anchored(p.tokens_per_s.mid),
        )
        return replace(p, nearest=record)

    first = [looked_up(p) for p in plans[:LOOKED_UP]]
    return (*first, *plans[LOOKED_UP:])
