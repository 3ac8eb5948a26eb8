"""Plans with the published result nearest to each beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from chipwise.report.plans import PlanRecord
from chipwise.report.records import ModelRecord, NearestRecord
from chipwise.workload.workload import Workload

LOOKED_UP = 5
"""Plans whose nearest result is looked up: those that are shown first."""


def beside_published(
    plans: Sequence[PlanRecord], model: ModelRecord, workload: Workload, today: date
) -> tuple[PlanRecord, ...]:
    """The first plans with their nearest published result; it moves nothing that they are ranked by."""
    from chipwise.api.nearest import nearest

    def looked_up(p: PlanRecord) -> PlanRecord:
        found = nearest(
            model,
            p.chip,
            p.chips,
            workload,
            precision=p.precision,
            runtime=p.runtime,
            day=today,
        )
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
