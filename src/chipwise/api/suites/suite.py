"""A suite is a value: how rows of a table are read, asked, answered, measured, split and fitted. Prediction, folds,
intervals and refits are written here, once over it.

A row becomes the question of a user (`Asking.read`), takes the product's answer (`Asking.answer`), which measurements
of one's own may move (`Asking.correct`), and becomes lines (`Asking.lines`). Of a table of measurements (`Trial.read`)
every key is left out in turn: what the rest teaches (`Trial.fit`) answers what was left out (`Trial.answer`), and
what is left over are `Residuals`, of which errors and the model of error are made.
"""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.fit import Bought, Fitting, bought
from chipwise.calibrate.parameter import Parameter
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.chip import Chip
from chipwise.errors import ChipwiseError, UsageError, check_known, shorten
from chipwise.evidence.residuals import Residuals, Validation, leave_out
from chipwise.evidence.rows import Predicted, Row, RowPart, id_of, read_rows
from chipwise.values import dataclass
from chipwise.workload.graph import Graph

Q = TypeVar("Q")
A = TypeVar("A")
T = TypeVar("T")
F = TypeVar("F")

Index = NDArray[np.intp]
Judged: TypeAlias = Callable[[Sequence[str], Residuals, str], Residuals]
"""Tables, their lines out of fold and the key that was left out -> the lines with intervals."""
Attempt: TypeAlias = A | ChipwiseError
"""What was asked for, or why there is none."""

LARGEST = 1e18  # figure of a row that can be meant
FOLDS = 8  # groups that keys are dealt into, to tell what numbers buy


def tried(make: Callable[..., A], *given: Any) -> Attempt[A]:
    """What a function makes, or the `ChipwiseError` that it raises."""
    try:
        return make(*given)
    except ChipwiseError as error:
        return error


def kept_rows(
    rows: Iterable[Row], make: Callable[[Row], A], paths: Sequence[str], what: str
) -> tuple[list[Row], list[A]]:
    """The rows of tables that a fit can read, and what it makes of them. Raises `UsageError` where there are none."""
    both = [(row, tried(make, row)) for row in rows]
    kept = [(row, one) for row, one in both if not isinstance(one, ChipwiseError)]
    if not kept:
        raise UsageError(f"{', '.join(paths)}: no row can be read", f"is it a table of {what}?")
    return [row for row, _ in kept], [one for _, one in kept]


def each(answer: Callable[[Q, Parameters | None], A]) -> Callable[[Sequence[Q], Parameters | None], list[Attempt[A]]]:
    """Answers one after the other, as `Asking.answer` gives them."""
    return lambda asked, numbers: [tried(answer, q, numbers) for q in asked]


@dataclass(frozen=True)
class Asking(Generic[Q, A]):
    """How rows are answered. None for `numbers` are those shipped, which alone a command line can ask for.

    `needed`: columns without which a table is none. `read`: a row and the folder of its table to a question; raises
    `ChipwiseError`. `answer`: questions to answers; `lines`: what both say of the measured columns. `correct`, where
    measurements of one's own may move answers: questions, answers, path of measured rows, numbers -> answers.
    """

    needed: tuple[str, ...]
    read: Callable[[Row, Path, Parameters | None], Q]
    answer: Callable[[Sequence[Q], Parameters | None], Sequence[Attempt[A]]]
    lines: Callable[[Q, A], Iterable[Predicted]]
    correct: Callable[[Sequence[Q], Sequence[Attempt[A]], str, Parameters | None], Sequence[Attempt[A]]] | None = None

    def questions(self, path: str, numbers: Parameters | None) -> tuple[list[Row], list[Attempt[Q]]]:
        """The rows of a table and what they ask."""
        table: list[Row] = list(read_rows(path, self.needed))
        return table, [tried(self.read, row, Path(path).parent, numbers) for row in table]


@dataclass(frozen=True)
class Trial(Generic[T, F]):
    """How a table of measurements tests and fits what is sold.

    | field | meaning |
    |---|---|
    | file | name of the table in a folder of tables |
    | read | paths and numbers to rows as a fit reads them |
    | keys | what may stay together: one key a row, by name; the first is the split of the table |
    | fit | what some rows teach |
    | answer | other rows under it, out of fold, by the name of the key |
    | report | rows, residuals and key to what is shown |
    | parameters | what a fit ships, by file in calibrate/data |
    | folds | into how many groups a key is dealt, where not one each |
    | more | what else a refit writes, text by file of the package, from rows, fit and residuals by key |
    | under | the numbers of a fit, where those decide how rows are read |
    | fitted | how the numbers of all rows are fitted, by what their names begin with, and the places of those rows |
    """

    file: str
    read: Callable[[Sequence[str], Parameters], T]
    keys: Mapping[str, Callable[[T], Sequence[Hashable]]]
    fit: Callable[[T, Index, Parameters], F]
    answer: Callable[[T, Index, F, str], Residuals]
    report: Callable[[T, Residuals, str], Validation]
    parameters: Mapping[str, Callable[[F], Mapping[str, Parameter]]] = field(default_factory=dict)
    folds: Mapping[str, int] = field(default_factory=dict)
    more: Callable[[T, F, Callable[[str], Residuals]], Mapping[str, str]] | None = None
    under: Callable[[F], Parameters] | None = None
    fitted: Callable[[T, Parameters], Mapping[str, tuple[Fitting, Index]]] | None = None

    def unseen(self, table: T, numbers: Parameters, key: str) -> Residuals:
        """Every row as fits answer it that never saw its key, in the order of the table."""
        folds = leave_out(self.keys[key](table), self.folds.get(key, 0))
        parts = [self.answer(table, out, self.fit(table, kept, numbers), key) for kept, out in folds]
        return Residuals.join(parts)

    def validate(
        self,
        paths: Sequence[str],
        numbers: Parameters,
        key: str | None = None,
        judged: Judged | None = None,
        unseen: Callable[[str], Residuals] | None = None,
    ) -> Validation:
        """Errors out of fold, with intervals by `judged`; `unseen` answers the folds of a key in place of this process.

        Raises `UnknownNameError` for a key, `UsageError` for tables without measured rows.
        """
        chosen = self._key(key)
        table = self.read(paths, numbers)
        found = self.unseen(table, numbers, chosen) if unseen is None else unseen(chosen)
        return self.report(table, found if judged is None else judged(paths, found, chosen), chosen)

    def _key(self, key: str | None) -> str:
        """Raises `UnknownNameError`."""
        chosen = key or next(iter(self.keys))
        check_known("key", (chosen,), self.keys)
        return chosen

    def bought(
        self, paths: Sequence[str], numbers: Parameters, key: str | None = None
    ) -> tuple[str, dict[str, list[Bought]]]:
        """What every fitted number that ships buys on rows whose key no fit had seen (`calibrate.fit.bought`), by what
        names begin with; and the key. Raises as `validate` does."""
        chosen, table = self._key(key), self.read(paths, numbers)
        assert self.fitted is not None
        folds = [*leave_out(self.keys[chosen](table), self.folds.get(chosen, FOLDS))]
        parts = self.fitted(table, numbers)
        return chosen, {
            start: [b for b in bought(of, at, folds) if f"{start}.{b.name}" in numbers.table]
            for start, (of, at) in parts.items()
        }

    def size(self, table: T) -> int:
        """How many rows a table has."""
        return len(next(iter(self.keys.values()))(table))


@dataclass(frozen=True)
class Suite:
    """A table that is answered, and perhaps of measurements.

    `metrics`: what a row is refused under, none where rows name their metric. `commanded`: rows are questions that a
    user can ask on the command line; `priced`: other numbers than the shipped ones may answer them. `stream`, in place
    of `asking`, answers tables too large for rows as values: path, numbers and whether commands are wanted.
    """

    name: str
    metrics: tuple[str, ...]
    asking: Asking[Any, Any] | None = None
    trial: Trial[Any, Any] | None = None
    commanded: bool = False
    priced: bool = False
    stream: Callable[[str, Parameters | None, bool], Iterator[Predicted]] | None = None

    @property
    def fits(self) -> bool:
        """Whether numbers of its own are fitted."""
        return self.trial is not None and self.trial.fitted is not None

    @property
    def anchored(self) -> bool:
        """Whether own measurements may correct its answers."""
        return self.asking is not None and self.asking.correct is not None

    def predict(
        self, path: str, numbers: Parameters | None = None, anchors: str | None = None, *, commands: bool = False
    ) -> list[Predicted]:
        """The lines of every row of a table, whatever the others hold; measured columns are not read. `anchors` are
        measured rows of one's own; one that itself has no answer anchors nothing.

        Raises `UsageError` for a table that cannot be read.
        """
        own = None
        if anchors is not None:
            alone = every_row(self, partial(self._answered, None, None, False), anchors)
            refused = {line.row_id for line in alone if line.refused}
            sound = [row for row in read_rows(anchors, ("row_id",)) if row["row_id"] not in refused]
            own = RowPart.of(anchors, sound) if sound and refused else anchors
        return every_row(self, partial(self._answered, numbers, own, commands), path)

    def _answered(self, numbers: Parameters | None, own: str | None, commands: bool, path: str) -> Iterator[Predicted]:
        if self.stream is not None:
            yield from self.stream(path, numbers, commands)
            return
        asking = self.asking
        assert asking is not None
        table, asked = asking.questions(path, numbers)
        questions = [q for q in asked if not isinstance(q, ChipwiseError)]
        answers = asking.answer(questions, numbers)
        if own is not None and asking.correct is not None and questions:
            answers = asking.correct(questions, answers, own, numbers)
        found = iter(answers)
        for row, q in zip(table, asked, strict=True):
            a = q if isinstance(q, ChipwiseError) else next(found)
            if isinstance(a, ChipwiseError):
                yield from self.refused(row, str(a))
                continue
            lines = asking.lines(q, a)
            yield from lines if numbers is None else (replace(line, command="") for line in lines)

    def refused(self, row: Row, why: str) -> Iterator[Predicted]:
        """The lines of a row without an answer."""
        for metric in self.metrics or (row.get("metric", self.name),):
            yield Predicted(id_of(row), metric, None, refused=why)


def readers(chip: Chip, graph: Graph, level: str = "stock") -> str:
    """Whom a row concerns: vendor and line of the chip, dense or experts, stock or tuned software, as in "aws trainium,
    dense, stock"."""
    line = re.match("[a-z]*", chip.id)
    line_ = "" if chip.kind == "gpu" or line is None else line[0]
    who = chip.vendor if line_ in ("", chip.vendor) else f"{chip.vendor} {line_}"
    return f"{who}, {'experts' if graph.routed else 'dense'}, {level}"


def every_row(suite: Suite, answer: Callable[[str], Iterable[Predicted]], rows: str) -> list[Predicted]:
    """The lines of every row of a table: where an answer cannot be computed the table is halved until the row that is
    the cause stands alone, and that row is refused.

    A figure that overflows, divides by zero or is not finite is no answer. Raises `UsageError` for a table that cannot
    be read.
    """
    try:
        with warnings.catch_warnings(), np.errstate(divide="raise", over="raise", invalid="raise"):
            warnings.simplefilter("error", RuntimeWarning)
            return [_finite(line) for line in answer(rows)]
    except ChipwiseError:
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError, RuntimeWarning) as error:
        table = rows.rows if isinstance(rows, RowPart) else tuple(read_rows(rows, ()))
        if len(table) == 1:
            what = shorten(str(error) or type(error).__name__, 200)
            return list(suite.refused(table[0], f"it cannot be computed: {what} ({_check(table[0])})"))
    half = len(table) // 2
    parts = (RowPart.of(rows, table[:half]), RowPart.of(rows, table[half:]))
    return [line for part in parts for line in every_row(suite, answer, part)]


def _check(row: Row) -> str:
    """Which figures of a row to look at: those that no machine and no measurement has."""
    odd = []
    for name, cell in row.items():
        with contextlib.suppress(ValueError):
            if not 0.0 <= float(cell) < LARGEST:
                odd.append(f"{name} {shorten(cell, 20)}")
    return f"check {', '.join(odd[:4])}" if odd else "check its figures"


def _finite(line: Predicted) -> Predicted:
    """A line whose figures can be; otherwise its refusal."""
    figures = (line.mid, line.low, line.high)
    if all(x is None or 0.0 <= x < LARGEST**2 for x in figures):
        return line
    return Predicted(line.row_id, line.metric, None, refused="its answer is beyond all bounds (check its figures)")
