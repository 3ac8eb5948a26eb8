"""`sweep`: a verb over many cells, kept in a folder as they are answered, and what they add up to.

A folder holds `sweep.json`, which says whose it is, `cells.sqlite3`, the row of every cell that was answered by the
address of what it asks, and at the end `results.csv`, `results.parquet` where that extra is installed, and
`report.html`. Whatever ends the program, the same command goes on with the cells that are missing.
"""

from __future__ import annotations

import contextlib
import csv
import datetime as dt
import json
import math
import os
import sqlite3
import statistics
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import islice
from pathlib import Path
from typing import Any

from chipwise import __version__
from chipwise.api.requests.sweep import SweepAxis, SweepDesign, read_sweep, sweep_of
from chipwise.api.sweep_run import SweepEngine, SweepWork, engine_of, flow, installed, own_files
from chipwise.catalog.files import writing
from chipwise.catalog.snapshot import shipped_text, today
from chipwise.errors import UsageError, shorten
from chipwise.report.charts.kinds import charts_of
from chipwise.report.sensitivity import InputRecord
from chipwise.report.sweep import HeatMap, SweepCell, SweepProblem, SweepReport
from chipwise.report.table import csv_cells
from chipwise.values import dataclass

FORMAT = "chipwise-sweep"
MARKER, CELLS, RESULTS, PARQUET, REPORT = (
    "sweep.json", "cells.sqlite3", "results.csv", "results.parquet", "report.html",
)  # fmt: skip
BATCH = 50_000
"""Rows of a group of a Parquet file."""
MOST_FRONT, MOST_POINTS, MOST_LINES = 200, 500, 30
"""Cells that a report lists of the front and shows beside it, and values of an axis in a map."""
GROUPS = 5
"""Parts of equal width that a range is cut into to say what it does."""

Row = tuple[int, bytes, dict[str, Any], list[Any], str, str]
"""A cell's number, address, design, values, kind of problem and its words."""
Progress = Callable[[int, int, int], None]
"""What is told of cells answered, cells and problems after each block."""


def sweep(
    design: str | Mapping[str, Any],
    *,
    out: str | None = None,
    on: str = "local",
    workers: int | None = 1,
    address: str | None = None,
) -> Iterator[dict[str, Any]]:
    """The rows of a sweep in the order of its cells, each as soon as it and those before it are answered: what varies,
    the columns of the answer, `error` and `message`, "" where there is an answer.

    `design` is a TOML file or the same as a dictionary, `out` a folder that keeps the cells and gets the results at the
    end. Raises `UsageError` and `UnknownNameError` for a design that cannot be asked, before the first row.
    """
    found = read_sweep(design) if isinstance(design, str) else sweep_of(design)
    with _opened(found, out) as run:
        engine = engine_of(run.work, on, workers, address)
        try:
            yield from run.rows(engine)
        finally:
            engine.close()
        if out is not None:
            run.write()


def run_sweep(
    path: str,
    out: str,
    engine: tuple[str, int | None, str | None] = ("local", None, None),
    tell: Progress | None = None,
) -> SweepReport:
    """Answer all cells of a file that are missing in a folder, write the results there, and say what they add up to.
    `engine` says on what, with how many processes, and where. Raises `UsageError`, `UnknownNameError` before any cell
    is asked, for a folder that holds anything else too."""
    with _opened(read_sweep(path), out) as run:
        chosen = engine_of(run.work, *engine)
        try:
            run.answer(chosen, tell)
        finally:
            chosen.close()
        return run.write()


@contextlib.contextmanager
def _opened(design: SweepDesign, out: str | None) -> Iterator[SweepRun]:
    files = own_files(design.tried())
    if out is None:
        work, folder = SweepWork(design, today(), files, installed()), None
    else:
        folder = Path(out)
        work = _claimed(folder, design, files)
    store = CellStore(folder / CELLS if folder else None)
    try:
        yield SweepRun(work, store, folder)
    finally:
        store.close()


def _claimed(folder: Path, design: SweepDesign, files: Mapping[str, bytes]) -> SweepWork:
    """The work of a sweep on the day it was started, which the marker of its folder says; a new folder gets one. Raises
    `UsageError` for a folder of anything else."""
    other = "name a folder that is not there yet: --out DIR"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for draft in folder.glob(".*.part"):  # of a run that was killed while it wrote
            draft.unlink()
        marker = folder / MARKER
        known = json.loads(marker.read_text("utf-8")) if marker.is_file() else {}
        taken = not known and any(folder.iterdir())
        day = dt.date.fromisoformat(known["day"]) if known else today()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{shorten(str(folder))}: cannot be used, {shorten(str(error))}", other) from None
    if taken or known.get("format", FORMAT) != FORMAT:
        raise UsageError(f"{shorten(str(folder))}: holds something else than a sweep", other)
    work = SweepWork(design, day, files, installed())
    said = {
        "format": FORMAT,
        "version": 1,
        "sweep": design.digest,
        "made_of": work.sources,
        "day": day.isoformat(),
        "verb": design.verb,
        "cells": design.cells,
        "chipwise": __version__,
    }
    for key, what in (("sweep", "another sweep"), ("made_of", "a sweep of other data or another build of chipwise")):
        if known and known.get(key) != said[key]:
            raise UsageError(f"{shorten(str(folder))}: holds {what}", other)
    if not known:
        with writing(marker) as out:
            out.write(json.dumps(said, indent=1) + "\n")
    return work


class CellStore:
    """Rows by address: in a file that no kill leaves broken and one process alone writes, or in memory."""

    def __init__(self, path: Path | None) -> None:
        try:
            self._base = sqlite3.connect(path or ":memory:", isolation_level=None, timeout=1.0)
            self._base.execute("pragma locking_mode = exclusive")
            self._base.execute("begin exclusive")
            self._base.execute("create table if not exists cells (key blob primary key, row text) without rowid")
            self._base.execute("commit")
        except sqlite3.Error as error:
            busy = "another process works on this sweep" if "locked" in str(error) else str(error)
            raise UsageError(f"{path}: {busy}", "wait for it, or name another folder: --out DIR") from None

    def __len__(self) -> int:
        return int(self._base.execute("select count(*) from cells").fetchone()[0])

    def row(self, key: bytes) -> str | None:
        """The row of an address, None where it is missing."""
        found = self._base.execute("select row from cells where key = ?", (key,)).fetchone()
        return None if found is None else str(found[0])

    def add(self, rows: Iterable[tuple[bytes, str]]) -> None:
        """Keep rows, all or none of them."""
        self._base.execute("begin")
        self._base.executemany("insert or ignore into cells values (?, ?)", rows)
        self._base.execute("commit")

    def close(self) -> None:
        """Let others have it."""
        self._base.close()


@dataclass
class SweepRun:
    """A sweep at work: what it asks, the rows it has, and the folder that it writes to."""

    work: SweepWork
    store: CellStore
    folder: Path | None
    _failed: int = 0

    def _missing(self) -> Iterator[int]:
        work = self.work
        return (n for n in range(work.design.cells) if self.store.row(work.key(n)) is None)

    def _blocks(self, engine: SweepEngine) -> Iterator[int]:
        """Keeps the rows of all missing cells, and says after each block how many cells it held."""
        left = self.work.design.cells - len(self.store)
        for block, rows in flow(engine, self._missing(), left):
            self.store.add(zip(map(self.work.key, block), rows, strict=True))
            self._failed += sum(not row.endswith(',"",""]') for row in rows)
            yield len(block)

    def answer(self, engine: SweepEngine, tell: Progress | None = None) -> None:
        """Answer what is missing."""
        done, cells = len(self.store), self.work.design.cells
        for count in self._blocks(engine):
            done += count
            if tell:
                tell(done, cells, self._failed)

    def rows(self, engine: SweepEngine) -> Iterator[dict[str, Any]]:
        """All rows in order, each as soon as it can be."""
        blocks, number, design = self._blocks(engine), 0, self.work.design
        while number < design.cells:
            while number < design.cells and (row := self._row(number)) is not None:
                _, _, asked, values, kind, words = row
                answer = dict(zip(design.columns, values, strict=True))
                yield {**asked, **answer, "error": kind, "message": words}
                number += 1
            if number < design.cells:
                next(blocks)

    def _row(self, number: int) -> Row | None:
        key, design = self.work.key(number), self.work.design
        text = self.store.row(key)
        if text is None:
            return None
        values, kind, words = json.loads(text)
        return number, key, design.labels(number), values or [None] * len(design.columns), kind, words

    def _each(self) -> Iterator[Row]:
        for number in range(self.work.design.cells):
            row = self._row(number)
            assert row is not None
            yield row

    def write(self) -> SweepReport:
        """Write the results of all cells into the folder, and say what they add up to."""
        assert self.folder is not None
        design, tally = self.work.design, SweepTally(self.work.design)
        for row in self._each():
            tally.add(row)
        kept = [i for i, c in enumerate(design.columns) if not design.chosen or tally.kinds.get(c)]
        names = ["cell", *design.named, *(design.columns[i] for i in kept), "error", "message", "key"]

        def cells() -> Iterator[list[Any]]:
            for number, key, asked, values, kind, words in self._each():
                said = (asked.get(name) for name in design.named)
                yield [number + 1, *said, *(values[i] for i in kept), kind or None, words or None, key.hex()]

        kinds: dict[str, set[type]] = {**tally.kinds, "cell": {int}}
        kinds |= {name: {str} for name in ("error", "message", "key")}
        columns = {name: kinds.get(name, set()) for name in names}
        with writing(self.folder / RESULTS) as out, _parquet(self.folder / PARQUET, columns) as table:
            writer, rows = csv.writer(out, lineterminator="\n"), cells()
            writer.writerow(names)
            while batch := list(islice(rows, BATCH)):
                writer.writerows(map(csv_cells, batch))
                table(batch)
        report = tally.report()
        with writing(self.folder / REPORT) as out:
            out.write(page_of(report, self.work.day))
        return report


@contextlib.contextmanager
def _parquet(path: Path, kinds: Mapping[str, set[type]]) -> Iterator[Callable[[list[list[Any]]], None]]:
    """What adds rows to a Parquet file whose columns hold values of these kinds, which takes its place when all are
    there; what does nothing where the extra is not installed."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        yield lambda rows: None
        return

    def of(found: set[type]) -> Any:
        if found and found <= {int, float}:
            return pyarrow.int64() if found == {int} else pyarrow.float64()
        return pyarrow.bool_() if found == {bool} else pyarrow.string()

    schema = pyarrow.schema([(name, of(found)) for name, found in kinds.items()])
    draft = path.with_name(f".{os.urandom(8).hex()}.part")
    text = [pyarrow.types.is_string(kind) for kind in schema.types]

    def add(rows: list[list[Any]]) -> None:
        columns = [
            [None if v is None else str(v) if words else v for v in column]
            for column, words in zip(zip(*rows, strict=True), text, strict=True)
        ]
        arrays = [pyarrow.array(c, kind) for c, kind in zip(columns, schema.types, strict=True)]
        file.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))

    with parquet.ParquetWriter(draft, schema) as file:
        yield add
    draft.replace(path)


class SweepTally:
    """What is counted while the rows of a sweep go by."""

    def __init__(self, design: SweepDesign) -> None:
        self._design = design
        self._names = tuple(dict.fromkeys((*design.least, *design.most)))
        self._at = {name: design.columns.index(name) for name in self._names}
        self._places = [array("d") for _ in design.axes]
        self._figures = {name: array("d") for name in self._names}
        self._problems: dict[str, SweepProblem] = {}
        self.kinds: dict[str, set[type]] = {}

    def add(self, row: Row) -> None:
        """Count a row; they come in order."""
        number, _, asked, values, kind, words = row
        for name, value in (*asked.items(), *zip(self._design.columns, values, strict=True)):
            if value is not None:
                self.kinds.setdefault(name, set()).add(type(value))
        for places, place in zip(self._places, self._design.places(number), strict=True):
            places.append(place)
        for name, figures in self._figures.items():
            value = values[self._at[name]]
            figures.append(value if isinstance(value, int | float) and not kind else math.nan)
        if kind:
            known = self._problems.get(kind)
            first, said = (known.first, known.message) if known else (number + 1, words)
            self._problems[kind] = SweepProblem(kind, known.cells + 1 if known else 1, first, said)

    def report(self) -> SweepReport:
        """What they add up to."""
        design, (least, most) = self._design, self._compared()
        names = (*least, *most)
        figure = next(iter(names), "")
        values = self._figures.get(figure, array("d"))
        base = statistics.median(_known(values)) if figure else None
        groups = [_groups(axis, places) for axis, places in zip(design.axes, self._places, strict=True)]
        effects = self._effects(groups, values, base)
        two = sorted(axis for axis, _ in effects[:2])
        front = self._front(least, most)
        return SweepReport(
            verb=design.verb,
            cells=design.cells,
            failed=sum(p.cells for p in self._problems.values()),
            axes={a.name: len(a.values) or design.cells for a in design.axes},
            figure=figure,
            base=base,
            least=least,
            most=most,
            front=tuple(self._cell(n, names) for n in front[:MOST_FRONT]),
            effects=tuple(found for _, found in effects),
            map=_map(design, two, groups, values) if len(two) == 2 else None,
            points=tuple(self._cell(n, names) for n in self._others(front)),
            problems=tuple(sorted(self._problems.values(), key=lambda p: (-p.cells, p.kind))),
        )

    def _compared(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The figures to compare that any cell has; of the verb's own the first of each kind."""
        having = {name for name, figures in self._figures.items() if _known(figures)}
        most = 1 if self._design.usual else None
        both = (self._design.least, self._design.most)
        less, more = (tuple(name for name in names if name in having)[:most] for names in both)
        return less, more

    def _effects(
        self, groups: Sequence[Sequence[int]], values: Sequence[float], base: float | None
    ) -> list[tuple[int, InputRecord]]:
        """What each axis does, by its number, the one that does most first."""
        if base is None:
            return []
        pairs = [(axis, _effect(self._design, axis, of, values)) for axis, of in enumerate(groups)]
        found = [(axis, effect) for axis, effect in pairs if effect is not None]
        return sorted(found, key=lambda pair: -pair[1].swing(base))

    def _others(self, front: Sequence[int]) -> Iterator[int]:
        """Some cells that are not on the front, evenly from all."""
        known = set(front)
        every = range(0, self._design.cells, -(-self._design.cells // MOST_POINTS))
        return (n for n in every if n not in known) if front else iter(())

    def _cell(self, number: int, names: Sequence[str]) -> SweepCell:
        found = {name: self._figures[name][number] for name in names}
        figures = {name: None if math.isnan(x) else x for name, x in found.items()}
        return SweepCell(number + 1, self._design.labels(number), figures)

    def _front(self, least: Sequence[str], most: Sequence[str]) -> list[int]:
        """The cells that no other beats in all figures, the best by the first figure first."""
        if not (least or most):
            return []
        columns = [list(self._figures[n]) for n in least]
        columns += [[-x for x in self._figures[n]] for n in most]
        points = [(p, n) for n, p in enumerate(zip(*columns, strict=True)) if not any(map(math.isnan, p))]
        found: list[tuple[tuple[float, ...], int]] = []
        for point, number in sorted(points):
            if not any(all(a <= b for a, b in zip(p, point, strict=True)) for p, _ in found):
                found.append((point, number))
        return [number for _, number in found]


def _known(figures: Iterable[float]) -> list[float]:
    return [x for x in figures if not math.isnan(x)]


def _groups(axis: SweepAxis, places: Iterable[float]) -> list[int]:
    """The value of an axis that each cell has, by its number; of a range, the part."""
    return [min(int(GROUPS * x), GROUPS - 1) if axis.span else int(x) for x in places]


def _label(design: SweepDesign, axis: int, group: int) -> str:
    """A value of an axis, or a part of its range, in words."""
    found = design.axes[axis]
    if found.span:
        return f"{found.span.at(group / GROUPS)} to {found.span.at((group + 1) / GROUPS)}"
    return shorten(", ".join(map(str, found.said(found.values[group]).values())), 60)


def _medians(keys: Iterable[Any], values: Iterable[float]) -> dict[Any, float]:
    found: dict[Any, list[float]] = {}
    for key, value in zip(keys, values, strict=True):
        if not math.isnan(value):
            found.setdefault(key, []).append(value)
    return {key: statistics.median(of) for key, of in sorted(found.items())}


def _effect(design: SweepDesign, axis: int, groups: Sequence[int], values: Iterable[float]) -> InputRecord | None:
    """Between which values of an axis the median is least and greatest; None where it has less than two."""
    found = _medians(groups, values)
    if len(found) < 2:
        return None
    low, high = (end(found, key=lambda g: found[g]) for end in (min, max))
    name = design.axes[axis].name
    return InputRecord(name, _label(design, axis, low), _label(design, axis, high), found[low], found[high])


def _map(design: SweepDesign, axes: Sequence[int], groups: Sequence[Sequence[int]], values: Iterable[float]) -> HeatMap:
    """The median where two axes meet, the one of more values from top to bottom."""
    found = _medians(zip(groups[axes[0]], groups[axes[1]], strict=True), values)
    ends = [sorted({pair[i] for pair in found})[:MOST_LINES] for i in (0, 1)]
    x, y = (0, 1) if len(ends[0]) <= len(ends[1]) else (1, 0)

    def at(column: int, line: int) -> float | None:
        return found.get((column, line) if x == 0 else (line, column))

    return HeatMap(
        x=design.axes[axes[x]].name,
        y=design.axes[axes[y]].name,
        columns=tuple(_label(design, axes[x], g) for g in ends[x]),
        lines=tuple(_label(design, axes[y], g) for g in ends[y]),
        medians=tuple(tuple(at(column, line) for column in ends[x]) for line in ends[y]),
    )


# the report as a page

STATIC = "web/static"
SCRIPTS = ("vendor/vega.min.js", "vendor/vega-lite.min.js", "vendor/vega-interpreter.min.js", "charts.js")
TITLES = {"front": "Cells that no other beats", "map": "Where two axes meet", "sensitivity": "One axis at a time"}


def page_of(report: SweepReport, day: dt.date) -> str:
    """The report as one page that opens anywhere without a network: tables, and pictures where the axes allow them."""
    pictures = "".join(
        f'<figure class="chart card span" data-chart="{name}" data-spec="{escape(json.dumps(make()))}">'
        f'<div class="chart-head"><h2 class="title">{TITLES[name]}</h2></div><div class="plot"></div></figure>\n'
        for name, make in charts_of(report).items()
    )
    tables = "".join(f'<section class="card">{table.html()}</section>\n' for table in report.tables(everything=True))
    scripts = "".join(f"<script>{shipped_text(f'{STATIC}/{name}')}</script>\n" for name in SCRIPTS)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>A sweep of {escape(report.verb)}, chipwise {day}</title>\n"
        f"<style>{shipped_text(f'{STATIC}/style.css')}</style>\n</head>\n"
        f'<body class="alone">\n<main>\n<div class="lead"><h1>A sweep of {escape(report.verb)}</h1>'
        f"<p>{escape(' '.join(report.verdict()))}<br>Answered on {day} by chipwise {__version__}; all cells are in "
        f'{RESULTS}.</p></div>\n<div class="answer">\n{pictures}{tables}</div>\n</main>\n{scripts}</body>\n</html>\n'
    )
