"""`python -m chipwise.api.suites.refit SUITE ROWS... [--write]`: the numbers of a suite, fitted anew.

Fits to every measured row that counts and prints what moved; with --write ships the parameters in calibrate/data and
the intervals, from residuals out of fold, in evidence/data. To be run again whenever the physics has changed, kernels
first: fitted numbers are relative to it, and those of serving to those of kernels. The suite `published` is fitted to
nothing; it gives the intervals of plans without a benchmark client, from figures of other benchmarkers. A user's own
rows do not go here but through `chipwise calibrate`, which moves what is shipped.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np

from chipwise.api.suites.doors import SUITES
from chipwise.api.suites.suite import Trial
from chipwise.calibrate.parameter import Parameter, write_table
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog import parsed
from chipwise.errors import ChipwiseError, UnknownNameError, UsageError
from chipwise.evidence.judge import as_rows, shipped_factors
from chipwise.evidence.residuals import Residuals
from chipwise.report.accuracy import accuracy_section

INTERVALS = "evidence/data/intervals.csv"
MOVED = 0.01  # of a parameter, beyond which it is printed


def refitted(suite: str, paths: Sequence[str]) -> dict[str, str]:
    """Texts by the file of the package that ships them: parameters and intervals. Raises `UnknownNameError` for a suite
    without measurements, `UsageError` for tables without measured rows."""
    able = [name for name, s in SUITES.items() if s.trial and (s.trial.parameters or s.trial.tiers)]
    if suite not in able:
        raise UnknownNameError("suite to fit", suite, able, f"one of {', '.join(able)}")
    trial = SUITES[suite].trial
    assert isinstance(trial, Trial)
    numbers = shipped_parameters()
    table = trial.read(paths, numbers)
    fitted = trial.fit(table, np.arange(trial.size(table)), numbers)
    if trial.under is not None:
        table = trial.read(paths, trial.under(fitted))
        fitted = trial.fit(table, np.arange(trial.size(table)), numbers)
        table = trial.read(paths, trial.under(fitted))
    texts: dict[str, str] = {}
    for file, parameters in trial.parameters.items():
        found = parameters(fitted)
        _say(file, found, numbers.table)
        texts[f"calibrate/data/{file}"] = write_table(found)

    @cache
    def unseen(key: str) -> Residuals:
        return trial.unseen(table, numbers, key)

    if trial.more is not None:
        texts |= trial.more(table, fitted, unseen)
    if trial.tiers:
        intervals = trial.intervals(unseen)
        others = {key: f for key, f in shipped_factors().items() if not trial.figures(key[0])}
        texts[INTERVALS] = "\n".join(as_rows(intervals | others)) + "\n"
        for (figure, tier), f in intervals.items():
            print(f"{figure:24s} {tier:12s} {f.low:.3f} to {f.high:.3f}, {f.rows} rows", file=sys.stderr)
    if not trial.parameters:
        key = next(iter(trial.keys))
        print(accuracy_section(trial.report(table, unseen(key), key)), file=sys.stderr)
    return texts


def main(arguments: Sequence[str]) -> None:
    """Fit, print what moved, ship on --write."""
    suite, *paths = [a for a in arguments if not a.startswith("-")] or [""]
    if not paths:
        raise UsageError(
            "no rows", "python -m chipwise.api.suites.refit serving serving_points.csv [--write]"
        )
    texts = refitted(suite, paths)
    if "--write" in arguments:
        for file, text in texts.items():
            Path(str(files("chipwise")), file).write_text(text, "utf-8")
        parsed.main()


def _say(file: str, fitted: Mapping[str, Parameter], before: Mapping[str, Parameter]) -> None:
    """What moved."""
    pairs = [(name, before[name].value if name in before else p.prior, p) for name, p in fitted.items()]
    moved = [(name, old, p) for name, old, p in pairs if old == 0.0 or abs(p.value / old - 1.0) > MOVED]
    print(f"{file}: {len(fitted)} parameters, {len(moved)} moved", file=sys.stderr)
    for name, old, p in moved:
        print(f"{name:64s} {old:10.4g} -> {p.value:10.4g}  spread {p.spread:.2f}", file=sys.stderr)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ChipwiseError as error:
        sys.exit(f"chipwise: {error}")
