"""`python -m chipwise.api.suites.refit_kernels kernels.parquet [--write]`: the numbers of kernels, fitted anew.

Fits the formulas of GPUs and of systolic arrays to every measured row of a known chip, from the priors of
`calibrate.kernel_priors` and `calibrate.systolic_kernels`; with --write ships them in calibrate/data/kernels.csv and
systolic.csv. Serving factors are relative to them: `refit_serving` comes next. A user's own rows do not go here but
through `chipwise calibrate`, which moves what is shipped.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from chipwise.api.suites.kernels import METRIC
from chipwise.calibrate.kernel_questions import taken
from chipwise.calibrate.kernel_table import NUMBERS, TEXT, asked_of
from chipwise.calibrate.kernels import calibrate_kernels, kernel_parameters
from chipwise.calibrate.parameter import Parameter
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.calibrate.systolic_kernels import calibrate_systolic
from chipwise.calibrate.table import write_table
from chipwise.catalog.chips import load_chips
from chipwise.errors import ChipwiseError, UsageError
from chipwise.evidence.columns import read_columns

__all__ = ["fitted_kernels", "main"]


def fitted_kernels(path: str) -> dict[str, dict[str, Parameter]]:
    """Parameters by the name of the table that ships them. Raises `UsageError` for a table without measured rows."""
    columns = read_columns(path, TEXT, (*NUMBERS, METRIC, "chip_known"), ("chip", "op", METRIC))
    used = (columns["chip_known"] != 0) & (columns["chip"] != "") & (columns[METRIC] > 0)
    if not used.any():
        raise UsageError(f"{path}: no measured rows", f"needed: {METRIC}")
    asked = asked_of(taken(columns, used))
    chips, known = load_chips(), shipped_parameters().table
    arrays: dict[str, Parameter] = {}
    for group, effects in calibrate_systolic(asked, chips).items():
        arrays |= effects.parameters(group, known["systolic.gemm.compute_share.all"].source)
    gpus = calibrate_kernels(asked, chips)
    return {
        "kernels.csv": kernel_parameters(gpus, known["simt.gemm.compute_share.all"].source),
        "systolic.csv": arrays,
    }


def main(arguments: Sequence[str]) -> None:
    """Fit, print what moved by more than a hundredth, ship on --write."""
    if not arguments:
        raise UsageError("no rows", "python -m chipwise.api.suites.refit_kernels kernels.parquet [--write]")
    shipped = shipped_parameters().table
    for file, fitted in fitted_kernels(arguments[0]).items():
        before = [shipped[name].value if name in shipped else p.prior for name, p in fitted.items()]
        moved = [(n, old, p) for (n, p), old in zip(fitted.items(), before, strict=True)]
        moved = [(n, old, p) for n, old, p in moved if abs(p.value / old - 1.0) > 0.01]
        print(f"{file}: {len(fitted)} parameters, {len(moved)} moved", file=sys.stderr)
        for name, old, p in moved:
            print(f"{name:64s} {old:10.4g} -> {p.value:10.4g}  spread {p.spread:.2f}", file=sys.stderr)
        if "--write" in arguments:
            folder = Path(str(files("chipwise.calibrate")))
            folder.joinpath("data", file).write_text(write_table(fitted), "utf-8")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ChipwiseError as error:
        sys.exit(f"chipwise: {error}")
