"""sweep: one verb over many cells, on this machine or on a cluster."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from chipwise.api.sweep import PARQUET, REPORT, RESULTS, run_sweep
from chipwise.cli.options import Output, whole
from chipwise.report.terminal import tell
from chipwise.units import duration_words

OFTEN_S, SELDOM_S = 0.5, 10.0
"""Seconds between two lines about progress: on a terminal, where each replaces the last, and in a log."""


def sweep(
    file: Annotated[str, Parameter(help="the sweep, TOML: verb, [fixed], [grid], [random], columns, least, most")],
    *,
    out: Annotated[str, Parameter(help="folder of the cells and results; the same command goes on with it")],
    on: Annotated[Literal["local", "ray"], Parameter(help="processes of this machine, or a Ray cluster")] = "local",
    workers: Annotated[int | None, whole("processes of --on local; default: one for each core")] = None,
    address: Annotated[str | None, Parameter(help="the Ray cluster, e.g. auto; default: one on this machine")] = None,
    output: Output = Output(),  # noqa: B008
) -> None:
    """Ask one verb over a grid or random cells: CSV, Parquet and a report, resumable after a kill."""
    report = run_sweep(file, out, (on, workers, address), ProgressLine())
    files = [name for name in (RESULTS, PARQUET, REPORT) if Path(out, name).exists()]
    more = "" if PARQUET in files else "; Parquet too with pip install 'chipwise[parquet]'"
    tell(f"{out}: {', '.join(files)}{more}")
    output.show(report.tables(), report)


class ProgressLine:
    """What is said on standard error while cells are answered."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._last = self._start
        self._first: int | None = None
        self._terminal = sys.stderr.isatty()

    def __call__(self, done: int, cells: int, failed: int) -> None:
        """After a block."""
        now = time.monotonic()
        self._first = done if self._first is None else self._first
        if now - self._last < (OFTEN_S if self._terminal else SELDOM_S) and done < cells:
            return
        self._last = now
        rate = (done - self._first) / max(now - self._start, 1e-9)
        left = f", {rate:,.1f} cells/s, {duration_words((cells - done) / rate)} left" if rate and done < cells else ""
        text = f"{done:,} of {cells:,} cells{f', {failed:,} without an answer' if failed else ''}{left}"
        if self._terminal:
            print(f"\r\x1b[K{text}", end="" if done < cells else "\n", file=sys.stderr, flush=True)
        else:
            tell(text)
