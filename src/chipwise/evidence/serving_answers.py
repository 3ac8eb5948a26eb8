"""Predictions of measured serving rows: engines under fitted numbers, corrected by anchors, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from chipwise.calibrate.fit_serving import ServingFit
from chipwise.calibrate.parameters import Parameters
from chipwise.evidence.anchors import Anchors, Corrections, corrections
from chipwise.evidence.judge import APART, Factors, Nearness, tier_factors
from chipwise.evidence.serving_rows import ServingRun
from chipwise.evidence.serving_tables import engines, labels
from chipwise.evidence.tiers import tier_of
from chipwise.predict.serving import Served
from chipwise.units import Array

__all__ = ["FIGURES", "Answers", "answer", "corrected", "predicted", "seconds"]

FIGURES: Mapping[str, str] = {"ttft_s": "ttft_ms", "tpot_s": "tpot_ms"}
"""Figures of a prediction and the columns of the table that they answer."""


@dataclass(frozen=True)
class Answers:
    """Means of every row in seconds, and how near anything measured was."""

    served: Served
    nearness: tuple[Nearness, ...]
    apart: tuple[bool, ...]

    def interval(
        self, figure: str, row: int, table: Mapping[tuple[str, str], Factors] | None = None
    ) -> tuple[float, float, float]:
        """Middle, low and high of a figure of a row, in seconds."""
        mid = float(getattr(self.served, figure)[row])
        factors = tier_factors(figure + (APART if self.apart[row] else ""), self.nearness[row], table)
        return mid, mid * factors.low, mid * factors.high


def predicted(runs: Sequence[ServingRun], numbers: Parameters, fit: ServingFit | None = None) -> Served:
    """Means of all rows without anchors."""
    found = ServingFit.of(numbers) if fit is None else fit
    return engines(runs, numbers).served(found.values(labels(runs)))


def answer(
    runs: Sequence[ServingRun],
    numbers: Parameters,
    anchors: tuple[Sequence[ServingRun], Array, Array] | None = None,
) -> Answers:
    """Predictions of all rows; `anchors` are measured rows with seconds per token and to the first token."""
    fit = ServingFit.of(numbers)
    served = predicted(runs, numbers, fit)
    pairs = {(run.chip.id, run.runtime.id): run.chip for run in runs}
    found = {pair: tier_of(chip, pair[1], numbers) for pair, chip in pairs.items()}
    near = [found[run.chip.id, run.runtime.id] for run in runs]
    if anchors is not None and len(anchors[0]):
        measured, tpot_s, ttft_s = anchors
        own = corrections(runs, Anchors(measured, predicted(measured, numbers, fit), tpot_s, ttft_s))
        served = corrected(served, own)
        near = ["own" if used else n for used, n in zip(own.used, near, strict=True)]
    return Answers(served, tuple(near), tuple(run.prefill is not None for run in runs))


def corrected(served: Served, by: Corrections) -> Served:
    """All times of a closed loop are proportional to its passes, so that a factor on them is one on TPOT."""
    first = by.passes * by.first
    return replace(served, tpot_s=served.tpot_s * by.passes, ttft_s=served.ttft_s * first)


def seconds(values: Sequence[str]) -> Array:
    """A column of milliseconds, NaN where blank."""
    return np.array([float(v) / 1e3 if v else np.nan for v in values])
