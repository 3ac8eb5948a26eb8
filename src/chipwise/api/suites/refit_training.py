"""`python -m chipwise.api.suites.refit_training training.csv mlperf_training.csv [--write]`: the numbers of training
and the intervals of their answers, made anew; with --write they are shipped in calibrate/data/training.csv and
evidence/data/training_tiers.csv. To be run after every change of the physics: the numbers are relative to it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from chipwise.api.suites.training import fitted_training, measured_runs
from chipwise.api.suites.training_folds import measured_tiers
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.calibrate.table import write_table
from chipwise.calibrate.training_rates import PREFIX
from chipwise.errors import ChipwiseError, UsageError
from chipwise.evidence.training_tiers import TABLE, write_tiers

__all__ = ["main"]


def main(arguments: Sequence[str]) -> None:
    """Fit, print what moved, ship on --write."""
    paths = [a for a in arguments if not a.startswith("--")]
    if not paths:
        raise UsageError("no rows", "python -m chipwise.api.suites.refit_training training.csv [--write]")
    numbers = fitted_training(paths, shipped_parameters())
    fitted = {name: p for name, p in numbers.table.items() if name.startswith(f"{PREFIX}.")}
    for name, p in fitted.items():
        print(f"{name:52s} {p.value:10.4g}  prior {p.prior:8.4g}  spread {p.spread:.2f}", file=sys.stderr)
    found = measured_tiers(measured_runs(paths, numbers))
    print(write_tiers(found), file=sys.stderr)
    if "--write" in arguments:
        package = Path(str(files("chipwise")))
        package.joinpath("calibrate/data/training.csv").write_text(write_table(fitted), "utf-8")
        package.joinpath(TABLE).write_text(write_tiers(found), "utf-8")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ChipwiseError as error:
        sys.exit(f"chipwise: {error}")
