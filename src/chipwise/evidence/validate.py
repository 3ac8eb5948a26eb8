"""Predictions held against measurements that no fit behind them had seen: errors, bias, coverage, by slice.

Generic over suites: a suite brings `Judged` figures, out of fold, with the slices that it can be cut into.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["Judged", "Summary", "Validation", "leave_out", "ranking", "summarise"]


@dataclass(frozen=True, slots=True)
class Judged:
    """One figure of one row: predicted with its interval (NaN where refused), measured, and where it belongs."""

    row_id: str
    metric: str
    predicted: float
    low: float
    high: float
    measured: float
    slices: Mapping[str, str] = field(default_factory=dict)

    @property
    def error(self) -> float:
        """predicted / measured - 1."""
        return self.predicted / self.measured - 1.0


@dataclass(frozen=True, slots=True)
class Summary:
    """Errors of some figures: median and 90th percentile of the absolute error, median of the signed one, share
    of measured values inside the interval, share answered."""

    name: str
    metric: str
    rows: int
    answered: float
    median: float
    p90: float
    bias: float
    coverage: float


@dataclass(frozen=True)
class Validation:
    """All that `validate` found for a suite: how it was tested, summaries under titles, remarks."""

    suite: str
    method: str
    tables: Mapping[str, Sequence[Summary]]
    remarks: Sequence[str] = ()


def leave_out(
    keys: Sequence[Hashable], folds: int = 0
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """(kept rows, rows left out) for each fold: one key after the other, or with `folds` > 0 so many groups of
    keys, dealt out in the order of their size. Rows of one key are never on both sides."""
    named = [repr(k) for k in keys]
    found, codes, counts = np.unique(named, return_inverse=True, return_counts=True)
    groups = len(found) if folds <= 0 else min(folds, len(found))
    order = np.lexsort((found, -counts))
    fold_of = np.empty(len(found), dtype=np.intp)
    fold_of[order] = np.arange(len(found)) % groups
    for fold in range(groups):
        out = fold_of[codes] == fold
        yield np.flatnonzero(~out), np.flatnonzero(out)


def summarise(judged: Iterable[Judged], by: str = "", least: int = 1) -> list[Summary]:
    """A summary per metric, and per value of the slice `by`; groups under `least` rows are left out."""
    groups: dict[tuple[str, str], list[Judged]] = {}
    for j in judged:
        groups.setdefault((j.metric, j.slices.get(by, "") if by else "all"), []).append(j)
    found = []
    for (metric, name), rows in sorted(groups.items()):
        if len(rows) < least or not name:
            continue
        known = [j for j in rows if np.isfinite(j.predicted)]
        errors = np.array([j.error for j in known])
        inside = [j.low <= j.measured <= j.high for j in known]
        found.append(
            Summary(
                name,
                metric,
                len(rows),
                len(known) / len(rows),
                float(np.median(np.abs(errors))) if known else np.nan,
                float(np.quantile(np.abs(errors), 0.9)) if known else np.nan,
                float(np.median(errors)) if known else np.nan,
                float(np.mean(inside)) if known else np.nan,
            )
        )
    return found


def ranking(groups: Iterable[Sequence[tuple[float, float]]], least: float = 0.10) -> tuple[int, float]:
    """Pairs (predicted, measured) within each group whose measured values differ by more than `least`: how many,
    and the share that the prediction puts in the right order."""
    right = total = 0
    for members in groups:
        p, m = (np.array([pair[i] for pair in members]) for i in (0, 1))
        above = np.triu(np.maximum.outer(m, m) / np.minimum.outer(m, m) > 1.0 + least, 1)
        agree = np.sign(np.subtract.outer(p, p)) == np.sign(np.subtract.outer(m, m))
        total += int(above.sum())
        right += int((above & agree).sum())
    return total, right / total if total else float("nan")
