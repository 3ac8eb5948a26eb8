"""`python -m chipwise.api.suites.refit_mlperf ROWS.csv [--write]`: the factors of MLPerf submissions, fitted anew.

Reads rows with measured figures (mlperf_inference.csv), keeps the best of each (chip, chips, nodes, model,
scenario, round), prints the errors on cells (chip, benchmark) that a fit did not see, and with --write ships
parameters and intervals in calibrate/data/mlperf.toml and what is left of every published row of a language
model in evidence/data/mlperf_residuals.csv. To be run again whenever the physics has changed.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np

from chipwise.api.suites.mlperf import predict_run
from chipwise.api.suites.mlperf_folds import Folds, fit_rows, out_of_fold, own_residuals
from chipwise.calibrate.fit_mlperf import Fitted, fit, shipped_mlperf, to_toml
from chipwise.catalog import parsed
from chipwise.catalog.benchmarks import load_benchmarks
from chipwise.catalog.published import load_inference_results
from chipwise.errors import ChipwiseError, UsageError
from chipwise.evidence.mlperf_rows import run_of
from chipwise.evidence.mlperf_tiers import group_of, spreads
from chipwise.evidence.rows import read_rows

__all__ = ["main"]


def main(arguments: Sequence[str]) -> None:
    """Refit, print the errors out of fold, ship on --write."""
    if not arguments:
        raise UsageError(
            "no rows", "python -m chipwise.api.suites.refit_mlperf mlperf_inference.csv [--write]"
        )
    pairs = fit_rows(read_rows(arguments[0], ("row_id", "result")))
    prior = shipped_mlperf().unfitted()
    spread: dict[str, tuple[float, float]] = {}
    seen = {}
    for group in ("llm", "fixed"):
        found = out_of_fold([(run, row) for run, row in pairs if group_of(run) == group], prior)
        seen[group] = frozenset(run.chip.id for run, _ in found.pairs)
        _print(group, found)
        spread |= spreads([run for run, _ in found.pairs], found.tiers, found.residuals)
        own = list(own_residuals(found))
        runs = [found.pairs[i][0] for i, _ in own]
        spread |= spreads(runs, ["own"] * len(own), np.array([r for _, r in own]))
    if "--write" in arguments:
        fitted = replace(fit([row for _, row in pairs], prior), spread=spread, seen=seen)
        package = Path(str(files("chipwise")))
        note = "Factors of MLPerf submissions, as logarithms: what they mean stands in evidence/mlperf_features.py.\n"
        note += "Written by python -m chipwise.api.suites.refit_mlperf; "
        note += "priors are what was believed beforehand, or doubt around 0."
        (package / "calibrate" / "data" / "mlperf.toml").write_text(to_toml(fitted, note), encoding="utf-8")
        table = package / "evidence" / "data" / "mlperf_residuals.csv"
        table.write_text("\n".join(_residuals(fitted)) + "\n", encoding="utf-8")
        parsed.main()


def _residuals(fitted: Fitted) -> Iterable[str]:
    """id, log(measured / predicted) of the published results of language models that are predicted."""
    yield "id,log_residual"
    for result in load_inference_results().values():
        if result.tokens_per_s is None or not result.chip:
            continue
        try:
            found = predict_run(run_of(result), fitted)["tokens_per_s"]
        except ChipwiseError:
            continue
        if found is not None and load_benchmarks()[result.benchmark].kind == "llm":
            yield f"{result.id},{math.log(result.tokens_per_s / found[0]):.3f}"


def _print(group: str, found: Folds) -> None:
    """The errors by scenario."""
    for scenario in dict.fromkeys(run.scenario for run, _ in found.pairs):
        here = np.array([run.scenario == scenario for run, _ in found.pairs])
        error = np.exp(-found.residuals[here]) - 1.0
        print(
            f"{group} {scenario}: n {here.sum()}, median {np.median(abs(error)):.1%}, "
            f"p90 {np.quantile(abs(error), 0.9):.1%}, bias {np.median(error):+.1%}"
        )


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ChipwiseError as error:
        sys.exit(f"chipwise: {error}")
