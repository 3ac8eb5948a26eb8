"""`python -m chipwise.api.refit_mlperf ROWS.csv [--write]`: the factors of MLPerf submissions, fitted anew.

Reads rows with measured figures (mlperf_inference.csv), keeps the best of each (chip, chips, nodes, model,
scenario, round), prints the errors on cells (chip, benchmark) that a fit did not see, and with --write ships
parameters and intervals in calibrate/data/mlperf.toml. To be run again whenever the physics has changed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from chipwise.api.mlperf import fit_row, measured_log
from chipwise.calibrate.fit_mlperf import FitRow, Fitted, fit, folds, shipped_mlperf, to_toml, worth_fitting
from chipwise.errors import ChipwiseError, UsageError
from chipwise.evidence.mlperf_rows import Run, read_run
from chipwise.evidence.rows import Row, read_rows
from chipwise.units import Array

__all__ = ["fit_rows", "main", "unfitted"]

MANY = 20
"""Rows below which quantiles are not trusted; a wide default stands in for them."""


def fit_rows(rows: Iterable[Row]) -> list[tuple[Run, FitRow]]:
    """Rows with measured figures, the best of each (chip, chips, nodes, model, scenario, round, power)."""
    best: dict[tuple[object, ...], tuple[Run, float]] = {}
    for row in rows:
        try:
            run = read_run(row)
            value = measured_log(run, float(row["result"]))
        except (ChipwiseError, ValueError, KeyError):
            continue
        key = (run.cell, run.chips, run.nodes, run.accuracy, run.scenario, run.round, run.unit)
        if key not in best or value > best[key][1]:
            best[key] = (run, value)
    out = []
    for run, value in best.values():
        try:
            out.append((run, fit_row(run, None, value)))
        except UsageError:
            continue
    return [(run, row) for run, row in out if worth_fitting(row)]


def main(arguments: Sequence[str]) -> None:
    """Refit, print the errors out of fold, ship on --write."""
    if not arguments:
        raise UsageError("no rows", "python -m chipwise.api.refit_mlperf mlperf_inference.csv [--write]")
    pairs = fit_rows(read_rows(arguments[0], ("row_id", "result")))
    prior = unfitted()
    spread: dict[str, tuple[float, float]] = {}
    for group in ("llm", "fixed"):
        own = [(run, row) for run, row in pairs if (run.benchmark.kind == "llm") == (group == "llm")]
        spread |= _report(group, own, folds([row for _, row in own], prior))
    if "--write" in arguments:
        target = Path(__file__).parents[1] / "calibrate" / "data" / "mlperf.toml"
        note = "Factors of MLPerf submissions, as logarithms: what they mean stands in evidence/mlperf_features.py.\n"
        note += "Written by python -m chipwise.api.refit_mlperf; priors are the design's, or doubt around 0."
        fitted = replace(fit([row for _, row in pairs], prior), spread=spread)
        target.write_text(to_toml(fitted, note), encoding="utf-8")


def unfitted() -> Fitted:
    """The shipped parameters without what was fitted."""
    return Fitted({n: replace(p, value=p.prior, rows="") for n, p in shipped_mlperf().table.items()})


def _report(group: str, pairs: Sequence[tuple[Run, FitRow]], seen: Array) -> dict[str, tuple[float, float]]:
    """Prints the errors by scenario; returns the quantiles where there are enough rows."""
    y = np.array([row.log_measured for _, row in pairs])
    found = {}
    for scenario in dict.fromkeys(run.scenario for run, _ in pairs):
        here = np.array([run.scenario == scenario for run, _ in pairs])
        log = (y - seen)[here]
        error = np.exp(-log) - 1.0
        low, high = (float(q) for q in np.quantile(log, [0.1, 0.9]))
        if here.sum() >= MANY:
            found[f"{group}.{scenario}"] = (low, high)
        print(
            f"{group} {scenario}: n {here.sum()}, median {np.median(abs(error)):.1%}, "
            f"p90 {np.quantile(abs(error), 0.9):.1%}, bias {np.median(error):+.1%}, "
            f"80 % of log(measured/predicted) {low:+.2f} to {high:+.2f}"
        )
    return found


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ChipwiseError as error:
        sys.exit(f"chipwise: {error}")
