"""Predictions moved by what the user measured of the same deployment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from chipwise.cost.cost import Cost
from chipwise.evidence.anchors import Anchors, Corrections, OwnRun, corrections
from chipwise.predict.service import Prediction
from chipwise.report.plans import PlanRecord
from chipwise.units import Array, format_seconds
from chipwise.values import dataclass

NAMED = 3
"""Runs that an answer names."""


@dataclass(frozen=True)
class OwnRuns:
    """The user's runs of a model: what ran, what was predicted for it and what was measured."""

    anchors: Anchors

    def on(
        self, runs: Sequence[OwnRun], spread: Sequence[Array], predicted: Sequence[Array] | None = None
    ) -> Corrections:
        """What they say of deployments, as `corrections` has it."""
        return corrections(runs, self.anchors, spread, predicted)


def corrected(found: Prediction, by: Corrections, output_tokens: float, *, driven: bool) -> Prediction:
    """Predictions [N, 1] with all passes longer by `by.passes`, and the first token by `by.first` more.

    With n output tokens a request takes T = TTFT + (n - 1) TPOT. Requests that arrive anyway (`driven`) are then in
    flight T' / T times as many (Little); clients who wait send T / T' times as many.
    """
    passes, first = by.passes[:, None], by.first[:, None]
    further = max(output_tokens - 1.0, 0.0)
    before = found.ttft_s + further * found.tpot_s
    moved = {name: getattr(found, name) * passes for name in ("tpot_s", "decode_s", "prefill_s", "service_s")}
    moved |= {
        name: getattr(found, name) * passes * first for name in ("ttft_s", "wait_s", "own_s", "outside_s", "in_step_s")
    }
    longer = (moved["ttft_s"] + further * moved["tpot_s"]) / before
    if driven:
        inside = {name: getattr(found, name) * longer for name in ("batch", "concurrency", "resident")}
        inside["utilisation"] = found.utilisation * passes
    else:
        inside = {name: getattr(found, name) / longer for name in ("requests_per_s", "tokens_per_s")}
    cost = Cost({name: np.asarray(value) * passes for name, value in found.cost.exposed.items()})
    return replace(found, **moved, **inside, cost=cost)


def noted(record: PlanRecord, by: Corrections, row: int) -> PlanRecord:
    """The plan with the runs that moved it in its note; as it is where none did."""
    names = by.by[row]
    if not names:
        return record
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    what = "measured by you" if by.same[row] else "corrected by your runs nearby"
    moved = f"{what} ({', '.join(names[:NAMED])}{more}): passes take {by.passes[row]:.2f}x what was predicted"
    if by.same[row]:
        times = (("TPOT", by.nearest_tpot_s[row]), ("TTFT", by.nearest_ttft_s[row]))
        seen = " and ".join(f"{name} {format_seconds(float(s))}" for name, s in times if np.isfinite(s))
        moved += f", your run had {seen}; one run is trusted in part, as runs vary"
    return replace(record, note="; ".join(filter(None, (record.note, moved))))
