"""`predict SUITE`: rows of a table answered, in this process or spread over others by the engines of sweeps, as the
folds of `validate` are.

A block of a prediction is some numbers of parts of a table, one of a validation some numbers of folds. What a part or a
fold answers depends on nothing but the table, the numbers and the installed package, so lines are the same wherever
they are made.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import astuple, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from chipwise.api.suites.doors import SUITES
from chipwise.api.suites.suite import Suite, Trial
from chipwise.api.sweep_run import MOST_CARRIED, BlockWork, Engine, check_build, engine_of, flow, installed
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.catalog.files import data_dir, output_file
from chipwise.catalog.snapshot import Snapshot, today, use
from chipwise.errors import UsageError, check_known
from chipwise.evidence.residuals import Residuals, leave_out
from chipwise.evidence.rows import Predicted, Row, RowPart, read_rows, write_commands, write_predictions
from chipwise.values import dataclass

PART = 200
"""count: rows that are answered together where they are spread. Chosen: arrays are filled, and a block is some seconds;
moves the time of a prediction."""


def predict_suite(
    suite: str,
    rows: str,
    out: str,
    anchors: str | None = None,
    parameters: Parameters | None = None,
    commands: str | None = None,
    *,
    engine: Engine | None = None,
) -> tuple[int, int]:
    """Predict every row of a suite into a CSV; returns (lines written, rows refused).

    `anchors` names measured rows that the user owns; `parameters` replace the shipped ones; `commands` names a CSV
    for the command line of each answered row that gives the same figures; `engine` says over what rows are spread, with
    how many processes, and where (None: all in this process). A row that cannot be answered becomes a line with the
    reason. Raises `UnknownNameError` for an unknown suite or engine, `UsageError` for unreadable rows.
    """
    check_known("suite", (suite,), SUITES)
    asked = SUITES[suite]
    output_file(out, rows, anchors)  # before the work is done
    if commands is not None:
        output_file(commands, rows, anchors)
    for given, able, lacks, option in (
        (commands, "commanded", "has no command lines", "--commands is for {}"),
        (anchors, "anchored", "takes no anchors", "--anchors is for {}"),
        (parameters, "priced", "takes no parameters here", "--parameters is for {}, without anchors"),
    ):
        both = given is parameters and anchors is not None
        if given is not None and (both or not getattr(asked, able)):
            suites = ", ".join(name for name, s in SUITES.items() if getattr(s, able))
            raise UsageError(f"{suite} {lacks}", option.format(suites))
    if engine is None:
        answers = asked.predict(rows, parameters, anchors, commands=commands is not None)
    elif anchors is not None:
        raise UsageError("--anchors correct all rows together", "leave --on out", field="anchors")
    else:
        answers = _spread(suite, rows, parameters, engine)
    written = write_predictions(answers, out)
    if commands is not None:
        write_commands(answers, commands)
    return written, sum(1 for a in answers if a.refused)


@dataclass(frozen=True, eq=False)
class SuiteTable:
    """A table of a suite as it travels: its path, its rows (None: too many, they are read where they are answered), the
    numbers that answer (None: those shipped), the day and the build."""

    suite: str
    path: str
    carried: tuple[Row, ...] | None
    numbers: Parameters | None
    day: dt.date = field(default_factory=today)
    installed: str = field(default_factory=installed)

    @classmethod
    def of(cls, suite: str, path: str, numbers: Parameters | None) -> SuiteTable:
        """A table. Raises `UsageError` where it cannot be read."""
        small = isinstance(path, RowPart) or not Path(path).is_file() or _bytes(path) <= MOST_CARRIED
        return cls(suite, str(path), tuple(read_rows(path, ())) if small else None, numbers)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Its rows, wherever this is."""
        return tuple(read_rows(self.path, ())) if self.carried is None else self.carried

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}  # what was read is read again

    @property
    def asked(self) -> Suite:
        """Its suite."""
        return SUITES[self.suite]


def _bytes(path: str) -> int:
    return Path(path).stat().st_size


@dataclass(frozen=True, eq=False)
class PartsWork(BlockWork):
    """The parts of a table, of `PART` rows each, with commands or without."""

    table: SuiteTable
    commands: bool = True
    data: str = field(default_factory=lambda: str(data_dir()))

    def part(self, number: int) -> RowPart:
        """The rows of a part."""
        return RowPart.of(self.table.path, self.table.rows[number * PART : (number + 1) * PART])

    def answered(self, block: Sequence[int]) -> list[str]:
        """The lines of some parts, as JSON."""
        check_build(self.table.installed)
        asked, commands = self.table.asked, self.commands and self.table.asked.commanded
        with use(Snapshot({}, self.table.day)):
            lines = (asked.predict(self.part(n), self.table.numbers, commands=commands) for n in block)
            return [json.dumps([astuple(line) for line in its]) for its in lines]


def _spread(suite: str, rows: str, numbers: Parameters | None, engine: Engine) -> list[Predicted]:
    """The lines of all rows in their order, made by an engine; of a part whose process was killed its refusals."""
    work = PartsWork(SuiteTable.of(suite, rows, numbers))
    count = -(-len(work.table.rows) // PART)
    found = _flown(work, count, engine)
    lines: list[Predicted] = []
    for number in range(count):
        its = json.loads(found[number])
        if LOST in its:
            refused = (work.table.asked.refused(row, str(its[-1])) for row in work.part(number).rows)
            lines += (line for each in refused for line in each)
        else:
            lines += (Predicted(*values) for values in its)
    return lines


LOST = "lost"
"""What stands in the row of a block whose process was killed."""


def _flown(work: BlockWork, count: int, engine: Engine) -> Mapping[int, str]:
    """What an engine answers to so many numbers."""
    chosen, found = engine_of(work, *engine), dict[int, str]()
    try:
        for block, texts in flow(chosen, iter(range(count)), count):
            found |= dict(zip(block, texts, strict=True))
    finally:
        chosen.close()
    return found


@dataclass(frozen=True, eq=False)
class FoldsWork(BlockWork):
    """The folds of a table of measurements by a key: each is answered by a fit that has not seen it."""

    table: SuiteTable
    key: str
    data: str = field(default_factory=lambda: str(data_dir()))

    @cached_property
    def _read(self) -> tuple[Trial[Any, Any], Any, list[Any]]:
        trial = self.table.asked.trial
        assert trial is not None
        numbers = self.table.numbers or shipped_parameters()
        table = trial.read([RowPart.of(self.table.path, self.table.rows)], numbers)
        return trial, table, list(leave_out(trial.keys[self.key](table), trial.folds.get(self.key, 0)))

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}  # a table of a fit does not travel

    @property
    def count(self) -> int:
        """How many folds there are."""
        return len(self._read[2])

    def answered(self, block: Sequence[int]) -> list[str]:
        """The residuals of some folds, as text."""
        check_build(self.table.installed)
        numbers = self.table.numbers or shipped_parameters()
        with use(Snapshot({}, self.table.day)):
            trial, table, folds = self._read
            found = []
            for kept, out in (folds[n] for n in block):
                residuals = trial.answer(table, out, trial.fit(table, kept, numbers), self.key)
                found.append(base64.b64encode(pickle.dumps(residuals)).decode())
            return found


def unseen_by(suite: str, rows: str, key: str, numbers: Parameters, engine: Engine) -> Residuals:
    """Every row of a table as fits answer it that never saw its key, made by an engine. Raises `UsageError` where a
    process that fitted was killed."""
    work = FoldsWork(SuiteTable.of(suite, rows, numbers), key)
    found = _flown(work, work.count, engine)
    parts = []
    for number in range(work.count):
        if found[number].startswith("["):
            raise UsageError(f"validate {suite}: {json.loads(found[number])[-1]}", "fewer --workers")
        parts.append(cast(Residuals, pickle.loads(base64.b64decode(found[number]))))
    return Residuals.join(parts)
