"""`python -m chipwise.api.suites.refit_mlperf ROWS.csv [--write]`: what submissions to MLPerf teach, fitted anew.

Reads rows with measured figures (mlperf_inference.csv), keeps the best of each (chip, chips, nodes, model,
scenario, round), prints the errors on cells (chip, benchmark) that a fit did not see, and with --write ships the level
and age of software and the prompts of benchmarks in calibrate/data/level.csv, the factors of samples of fixed size in
calibrate/data/mlperf.toml, the intervals of tuned software in evidence/data/intervals.csv and what is left of every
published row of a language model in evidence/data/mlperf_residuals.csv. To be run again whenever the physics has
changed.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np

from chipwise.api.suites.mlperf import Answer, answer
from chipwise.api.suites.mlperf_folds import (
    best_rows,
    fixed_folds,
    level_intervals,
    own_residuals,
    seen_chips,
    submissions,
    unseen,
)
from chipwise.calibrate.fit_level import fit_level, without_level
from chipwise.calibrate.fit_mlperf import fit, shipped_mlperf, to_toml
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.calibrate.table import write_table
from chipwise.catalog import parsed
from chipwise.catalog.benchmarks import load_benchmarks
from chipwise.catalog.published import load_inference_results
from chipwise.errors import ChipwiseError, UsageError
from chipwise.evidence.judge import TUNED, as_rows, shipped_factors
from chipwise.evidence.mlperf_rows import Run, run_of
from chipwise.evidence.mlperf_tiers import spreads
from chipwise.evidence.rows import read_rows
from chipwise.units import Array

__all__ = ["main"]


def main(arguments: Sequence[str]) -> None:
    """Refit, print the errors out of fold, ship on --write."""
    if not arguments:
        raise UsageError(
            "no rows", "python -m chipwise.api.suites.refit_mlperf mlperf_inference.csv [--write]"
        )
    measured, _ = best_rows(read_rows(arguments[0], ("row_id", "result")))
    numbers = shipped_parameters()
    found = submissions(measured, numbers)
    level = fit_level(found.data)
    fitted = level.parameters() | seen_chips(found.runs, level.effects.rows_hash)
    for name, p in fitted.items():
        print(f"{name:48s} {p.value:10.4g}  prior {p.prior:8.4g}  spread {p.spread:.2f}", file=sys.stderr)
    predicted = {key: unseen(found, numbers, key) for key in ("cell", "chip")}
    for key, (log, _) in predicted.items():
        _print(f"language models, {key} left out", found.runs, found.log_measured - log)
    prior = shipped_mlperf().unfitted()
    fixed, rows = fixed_folds(measured, prior)
    _print("fixed", fixed.runs, fixed.residuals)
    if "--write" not in arguments:
        return
    package = Path(str(files("chipwise")))
    own = list(own_residuals(fixed.runs, fixed.residuals))
    anchored = spreads([fixed.runs[i] for i, _ in own], ["own"] * len(own), np.array([r for _, r in own]))
    spread = {**spreads(fixed.runs, fixed.tiers, fixed.residuals), **anchored}
    seen = frozenset(run.chip.id for run in fixed.runs)
    note = (
        "Factors of MLPerf submissions with samples of fixed size, as logarithms: what they mean stands in\n"
    )
    note += "evidence/mlperf_features.py. Written by python -m chipwise.api.suites.refit_mlperf;\n"
    note += "priors are what was believed beforehand, or doubt around 0."
    text = to_toml(replace(fit(rows, prior), spread=spread, seen=seen), note)
    (package / "calibrate" / "data" / "mlperf.toml").write_text(text, encoding="utf-8")
    (package / "calibrate" / "data" / "level.csv").write_text(write_table(fitted), encoding="utf-8")
    others = {key: f for key, f in shipped_factors().items() if TUNED not in key[0]}
    table = others | level_intervals(found, predicted)
    (package / "evidence" / "data" / "intervals.csv").write_text("\n".join(as_rows(table)) + "\n", "utf-8")
    plain = without_level(numbers).table
    bare = {name: p for name, p in plain.items() if not name.startswith("level.")}
    lines = _residuals(replace(numbers, table={**bare, **fitted}))
    residuals = package / "evidence" / "data" / "mlperf_residuals.csv"
    residuals.write_text("\n".join(lines) + "\n", encoding="utf-8")
    parsed.main()


def _residuals(numbers: Parameters) -> Iterable[str]:
    """id, log(measured / predicted) of the published results of language models that are predicted."""
    yield "id,log_residual"
    kept: list[tuple[str, float]] = []
    runs: list[Run] = []
    for result in load_inference_results().values():
        if (
            result.tokens_per_s is None
            or not result.chip
            or load_benchmarks()[result.benchmark].kind != "llm"
        ):
            continue
        try:
            runs.append(run_of(result))
        except ChipwiseError:
            continue
        kept.append((result.id, result.tokens_per_s))
    for (name, tokens_per_s), a in zip(kept, answer(runs, numbers), strict=True):
        if isinstance(a, Answer):
            yield f"{name},{math.log(tokens_per_s / a.rate[0]):.3f}"


def _print(group: str, runs: Sequence[Run], residuals: Array) -> None:
    """The errors by scenario."""
    for scenario in dict.fromkeys(run.scenario for run in runs):
        here = np.array([run.scenario == scenario for run in runs])
        error = np.exp(-residuals[here & np.isfinite(residuals)]) - 1.0
        print(
            f"{group} {scenario}: n {here.sum()}, answered {len(error)}, median {np.median(abs(error)):.1%}, "
            f"p90 {np.quantile(abs(error), 0.9):.1%}, bias {np.median(error):+.1%}"
        )


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ChipwiseError as error:
        sys.exit(f"chipwise: {error}")
