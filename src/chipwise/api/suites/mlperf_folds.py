"""The suite `mlperf` out of fold: fits that never saw a run's cell, intervals from other cells, anchors."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from chipwise.api.suites.mlperf import fit_row, measured_log
from chipwise.calibrate.fit_mlperf import FitRow, Fitted, folds, shipped_mlperf, worth_fitting
from chipwise.calibrate.parameters import Parameters
from chipwise.errors import ChipwiseError, UsageError
from chipwise.evidence.mlperf_anchors import Anchor, correction
from chipwise.evidence.mlperf_rows import Run, read_run
from chipwise.evidence.mlperf_tiers import Tier, group_of, interval, spreads, tier_of
from chipwise.evidence.rows import Row, read_rows
from chipwise.evidence.validate import Judged, Validation, summarise
from chipwise.units import Array

__all__ = ["Folds", "best_rows", "fit_rows", "out_of_fold", "own_residuals", "validate_mlperf"]

KEYS: Mapping[str, Callable[[FitRow], Hashable]] = {
    "cell": lambda r: r.cell,
    "chip": lambda r: r.cell[0],
    "model": lambda r: r.cell[1],
}
"""What stays together: the split of the table, a whole chip, a whole benchmark."""

Pairs = Sequence[tuple[Run, FitRow]]


@dataclass(frozen=True)
class Folds:
    """Runs of one group, log(rate) as fits without their key predict it, and what such a fit knows of them."""

    pairs: Pairs
    predicted: Array
    tiers: Sequence[Tier]

    @property
    def residuals(self) -> Array:
        """log(measured / predicted)."""
        return np.array([row.log_measured for _, row in self.pairs]) - self.predicted


def best_rows(rows: Iterable[Row]) -> tuple[list[tuple[Run, float]], list[Row]]:
    """(runs with the logarithm of what was measured, rows that cannot be read): the best submission of each
    (chip, chips, nodes, model, scenario, round, power bin).

    The best of a cell shows what the system can do; the others, how far it was tuned.
    """
    best: dict[tuple[object, ...], tuple[Run, float]] = {}
    refused = []
    for row in rows:
        try:
            run = read_run(row)
            value = measured_log(run, float(row["result"]))
        except (ChipwiseError, ValueError, KeyError):
            refused.append(row)
            continue
        key = (run.cell, run.chips, run.nodes, run.accuracy, run.scenario, run.round, run.unit)
        if key not in best or value > best[key][1]:
            best[key] = (run, value)
    return list(best.values()), refused


def fit_rows(rows: Iterable[Row]) -> list[tuple[Run, FitRow]]:
    """The best rows as the fit reads them; runs that physics cannot answer are left out."""
    found = []
    for run, value in best_rows(rows)[0]:
        try:
            row = fit_row(run, None, value)
        except UsageError:
            continue
        if worth_fitting(row):
            found.append((run, row))
    return found


def out_of_fold(pairs: Pairs, prior: Fitted, key: str = "cell") -> Folds:
    """Refit without each key in turn. `pairs` are of one group ("llm" or "fixed")."""
    rows = [row for _, row in pairs]
    predicted = folds(rows, prior, KEYS[key])
    keys = [KEYS[key](row) for row in rows]
    chips_of: dict[Hashable, frozenset[str]] = {}
    for k in dict.fromkeys(keys):
        chips_of[k] = frozenset(r.cell[0] for r, other in zip(rows, keys, strict=True) if other != k)
    tiers = [tier_of(run, chips_of[k]) for (run, _), k in zip(pairs, keys, strict=True)]
    return Folds(pairs, predicted, tiers)


def own_residuals(found: Folds) -> Iterator[tuple[int, float]]:
    """(index, log(measured / predicted)) of runs with the other rows of their cell as anchors, one at a time:
    the next row that can anchor them."""
    anchors = [Anchor(run, float(r)) for (run, _), r in zip(found.pairs, found.residuals, strict=True)]
    by_cell: dict[tuple[str, str], list[int]] = {}
    for i, (run, _) in enumerate(found.pairs):
        by_cell.setdefault(run.cell, []).append(i)
    for members in by_cell.values():
        for place, i in enumerate(members):
            for other in (*members[place + 1 :], *members[:place]):
                shift, used = correction(found.pairs[i][0], [anchors[other]])
                if used:
                    yield i, float(found.residuals[i]) - shift
                    break


def validate_mlperf(rows: str, numbers: Parameters, key: str = "cell") -> Validation:
    """Refit without each key in turn and report errors and coverage on what was left out.

    Intervals of a run come from residuals of other keys in its tier. `numbers` price the physics. Raises
    `UsageError` for an unknown key or rows without measured figures.
    """
    if key not in KEYS:
        raise UsageError(f"no key '{key}'", f"one of {', '.join(KEYS)}")
    table = [r for r in read_rows(rows, ("row_id", "result")) if r.get("chip_known", "1") != "0"]
    pairs = fit_rows(table)
    if not pairs:
        raise UsageError(f"{rows}: no row with a figure that is predicted", "as in mlperf_inference.csv")
    prior = shipped_mlperf().unfitted()
    judged: list[Judged] = []
    own: list[Judged] = []
    for group in ("llm", "fixed"):
        some = [(run, row) for run, row in pairs if group_of(run) == group]
        if some:
            found = out_of_fold(some, prior, key)
            judged += _judged(found, key)
            own += _judged_own(found)
    judged += _unanswered(table)
    llm = [j for j in judged if j.slices["kind"] == "llm"]
    fixed = [j for j in judged if j.slices["kind"] == "fixed"]
    return Validation(
        suite="mlperf",
        method=f"Best submission of each (chip, count, nodes, model, scenario, round); every row predicted by a fit "
        f"that never saw its {'(chip, benchmark) cell' if key == 'cell' else key}. Intervals come from the "
        f"residuals of all others in the same tier.",
        tables={
            "language models": summarise(llm, "scenario"),
            "language models, by what a fit had seen": summarise(llm, "tier"),
            "language models, with one other row of the cell as an anchor": summarise(
                [j for j in own if j.slices["kind"] == "llm"], "scenario"
            ),
            "language models, by benchmark": summarise(llm, "benchmark", 5),
            "language models, by vendor": summarise(llm, "vendor", 5),
            "samples of fixed size": summarise(fixed, "scenario"),
            "samples of fixed size, with one other row of the cell as an anchor": summarise(
                [j for j in own if j.slices["kind"] == "fixed"], "scenario"
            ),
            "samples of fixed size, by benchmark": summarise(fixed, "benchmark", 5),
        },
    )


def _judged(found: Folds, key: str) -> Iterator[Judged]:
    """Rates with intervals from residuals of other keys."""
    runs = [run for run, _ in found.pairs]
    keys = np.array([repr(KEYS[key](row)) for _, row in found.pairs])
    for k in dict.fromkeys(keys):
        kept = np.flatnonzero(keys != k).tolist()
        table = spreads([runs[i] for i in kept], [found.tiers[i] for i in kept], found.residuals[kept])
        for i in np.flatnonzero(keys == k).tolist():
            run, row = found.pairs[i]
            low, high = interval(run, found.tiers[i], table)
            yield _rate(run, row, float(found.predicted[i]), (low, high), found.tiers[i])


def _judged_own(found: Folds) -> Iterator[Judged]:
    """The same with an anchor, intervals from anchored rows of other cells."""
    rows = list(own_residuals(found))
    left = np.array([r for _, r in rows])
    cells = np.array([repr(found.pairs[i][0].cell) for i, _ in rows])
    runs = [found.pairs[i][0] for i, _ in rows]
    for place, (i, residual) in enumerate(rows):
        kept = np.flatnonzero(cells != cells[place]).tolist()
        run, row = found.pairs[i]
        ends = interval(run, "own", spreads([runs[j] for j in kept], ["own"] * len(kept), left[kept]))
        yield _rate(run, row, row.log_measured - residual, ends, "own")


def _rate(run: Run, row: FitRow, log_rate: float, ends: tuple[float, float], tier: str) -> Judged:
    metric = "tokens_per_s" if group_of(run) == "llm" else "result"
    mid, low, high = (math.exp(log_rate + shift) for shift in (0.0, *ends))
    return Judged(run.id, metric, mid, low, high, math.exp(row.log_measured), _slices(run, tier))


def _slices(run: Run, tier: str) -> Mapping[str, str]:
    return {
        "kind": group_of(run),
        "scenario": run.scenario,
        "tier": tier,
        "benchmark": run.benchmark.name,
        "vendor": run.chip.vendor,
        "chip": run.chip.id,
    }


def _unanswered(table: Iterable[Row]) -> Iterator[Judged]:
    """One refused row of each cell, so that the share answered is honest."""
    columns = ("chip", "chips_total", "nodes", "model", "scenario", "round")
    cells = {tuple(row.get(c, "") for c in columns): row for row in best_rows(table)[1]}
    nan = float("nan")
    for row in cells.values():
        slices = {
            "kind": "fixed",
            "scenario": row.get("scenario", ""),
            "benchmark": row.get("model_base", ""),
        }
        yield Judged(row["row_id"], "result", nan, nan, nan, nan, slices)
