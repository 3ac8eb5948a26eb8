"""`python -m chipwise.api.suites.refit_serving serving_points.csv [published_serving.csv ...] [--write|--strangers]`.

Fits the serving parameters anew and prints them; with --write ships them in calibrate/data/serving.csv and intervals in
evidence/data/intervals.csv: those under a fitted benchmark client from errors on cells that a fit did not see, those
of plans without one from published figures of other benchmarkers, which no fit sees (--strangers: these alone, under
the numbers that ship). To be run again whenever the
physics has changed: factors are relative to it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
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
from chipwise.evidence.judge import TUNED, USERS, Factors, as_rows, shipped_factors

__all__ = ["main"]


def main(arguments: Sequence[str]) -> None:
    """Fit, print what moved, ship on --write."""
    tables = [a for a in arguments if not a.startswith("-")]
    if not tables:
        raise UsageError(
            "no rows",
            "python -m chipwise.api.suites.refit_serving serving_points.csv published_serving.csv [--write]",
        )
    shipped = Path(str(files("chipwise.calibrate"))).joinpath("data/serving.csv")
    if "--strangers" in arguments:
        kept = {key: f for key, f in shipped_factors().items() if USERS not in key[0]}
        _write(kept | _strangers(tables[1:], shipped))
        return
    runs, data, refused = serving_rows(tables[0], shipped_parameters())
    fit = fit_serving(data)
    fitted = {**fit.parameters(), **chips_seen(data.labels, fit.passes.rows_hash)}
    for name, p in fitted.items():
        print(f"{name:48s} {p.value:10.4g}  prior {p.prior:8.4g}  spread {p.spread:.2f}", file=sys.stderr)
    if "--write" not in arguments:
        return
    shipped.write_text(write_table(fitted), "utf-8")
    keys = sorted({key for key, _ in TIERS.values()})
    table = interval_table({key: out_of_fold(runs, data, refused, key) for key in keys})
    others = {key: factors for key, factors in shipped_factors().items() if TUNED in key[0]}
    _write(table | _strangers(tables[1:], shipped) | others)


def _strangers(tables: Sequence[str], shipped: Path) -> dict[tuple[str, str], Factors]:
    """Intervals from published figures; prints what they hold of a benchmarker left out."""
    found = [s for path in tables for s in strangers(path, str(shipped))]
    for (figure, near), (share, rows) in sorted(stranger_coverage(found).items()):
        said = f"holds {share:.0%} of {rows} rows of a benchmarker left out"
        print(f"{figure:14s} {near:12s} {said}", file=sys.stderr)
    return stranger_table(found)


def _write(table: Mapping[tuple[str, str], Factors]) -> None:
    lines = "\n".join(as_rows(table)) + "\n"
    Path(str(files("chipwise.evidence"))).joinpath("data/intervals.csv").write_text(lines, "utf-8")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ChipwiseError as error:
        sys.exit(f"chipwise: {error}")
