"""Anchors of MLPerf runs: measured rows of one's own that correct the prediction of runs of the same cell.

What a prediction misses is mostly one factor per cell (chip, benchmark): other counts and rounds of it share
that factor (residuals of 9 % fall to 5), Offline and Server too. Interactive shares it with neither, and
other benchmarks on the same chip share nothing (errors grow), so that they are no anchors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chipwise.evidence.mlperf_rows import Run

__all__ = ["Anchor", "correction"]

NOISE = 0.3
"""Variance of residuals within a cell over that between cells."""

OTHER_SCENARIO = 0.6
"""Worth of a row under another scenario of those that share the factor."""

THROUGHPUT = ("Offline", "Server")


@dataclass(frozen=True, slots=True)
class Anchor:
    """A measured run and the logarithm of measured over predicted."""

    run: Run
    residual: float


def correction(run: Run, anchors: Sequence[Anchor]) -> tuple[float, int]:
    """The logarithm by which a prediction is moved, and how many anchors move it:
    sum w r / (sum w + noise) with w of the nearest kind only. A row is never its own anchor."""
    near = [a for a in anchors if a.run.cell == run.cell and (a.run.id != run.id or not run.id)]
    pairs = [(w, a.residual) for a in near if (w := _worth(run, a.run)) > 0.0]
    if not pairs:
        return 0.0, 0
    best = max(w for w, _ in pairs)
    pairs = [(w, r) for w, r in pairs if w == best]
    # rows of one cell repeat its factor: more of them do not weigh more than one that is known well
    mean = sum(r for _, r in pairs) / len(pairs)
    return best / (best + NOISE) * mean, len(pairs)


def _worth(run: Run, other: Run) -> float:
    if other.scenario == run.scenario:
        return 1.0
    return OTHER_SCENARIO if run.scenario in THROUGHPUT and other.scenario in THROUGHPUT else 0.0
