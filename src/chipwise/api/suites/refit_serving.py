"""`python -m chipwise.api.suites.refit_serving serving_points.csv [published_serving.csv ...] [--write]`.

Fits the serving parameters anew and prints them; with --write ships them in calibrate/data/serving.csv and intervals in
evidence/data/intervals.csv: those under a fitted benchmark client from errors on cells that a fit did not see, those
of plans without one from published figures of other benchmarkers, which no fit sees. To be run again whenever the
physics has changed: factors are relative to it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from chipwise.api.suites.serving_folds import (
    TIERS,
    interval_table,
    out_of_fold,
    serving_rows,
    stranger_coverage,
    stranger_table,
    strangers,
)
from chipwise.calibrate.fit_serving import chips_seen, fit_serving
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.calibrate.table import write_table
from chipwise.errors import ChipwiseError, UsageError
from chipwise.evidence.judge import TUNED, as_rows, shipped_factors

__all__ = ["main"]


def main(arguments: Sequence[str]) -> None:
    """Fit, print what moved, ship on --write."""
    tables = [a for a in arguments if not a.startswith("-")]
    if not tables:
        raise UsageError(
            "no rows",
            "python -m chipwise.api.suites.refit_serving serving_points.csv published_serving.csv [--write]",
        )
    runs, data, refused = serving_rows(tables[0], shipped_parameters())
    fit = fit_serving(data)
    fitted = {**fit.parameters(), **chips_seen(data.labels, fit.passes.rows_hash)}
    for name, p in fitted.items():
        print(f"{name:48s} {p.value:10.4g}  prior {p.prior:8.4g}  spread {p.spread:.2f}", file=sys.stderr)
    if "--write" not in arguments:
        return
    shipped = Path(str(files("chipwise.calibrate"))).joinpath("data/serving.csv")
    shipped.write_text(write_table(fitted), "utf-8")
    keys = sorted({key for key, _ in TIERS.values()})
    table = interval_table({key: out_of_fold(runs, data, refused, key) for key in keys})
    found = [s for path in tables[1:] for s in strangers(path, str(shipped))]
    for (figure, near), (share, rows) in sorted(stranger_coverage(found).items()):
        said = f"holds {share:.0%} of {rows} rows of a benchmarker left out"
        print(f"{figure:14s} {near:12s} {said}", file=sys.stderr)
    others = {key: factors for key, factors in shipped_factors().items() if TUNED in key[0]}
    lines = as_rows(table | stranger_table(found) | others)
    Path(str(files("chipwise.evidence"))).joinpath("data/intervals.csv").write_text(
        "\n".join(lines) + "\n", "utf-8"
    )


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ChipwiseError as error:
        sys.exit(f"chipwise: {error}")
