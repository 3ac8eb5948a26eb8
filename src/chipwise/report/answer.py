"""What every answer can do in a program: print and show itself, make rows and charts, be kept, launch."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar, overload

from chipwise.errors import InfeasibleError, MissingExtraError, UnknownNameError, UsageError
from chipwise.report.launch.files import LaunchFiles
from chipwise.report.table import Table

if TYPE_CHECKING:
    from pandas import DataFrame

WIDTH = 80
Charts = Mapping[str, Callable[[], Any]]
"""What makes each picture of an answer, by its name."""


OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]+)")
COMMAND = re.compile(r"\bchipwise [a-z]")


def renamed(line: str, call: Callable[[str], str]) -> str:
    """A line with its options of the command line as others `call` those fields: `--tpot 54ms` is `tpot 54ms` for
    agents. One with a command stays as it is."""
    return line if COMMAND.search(line) else OPTION.sub(lambda o: call(o[1].replace("-", "_")), line)


class AnswerOrigin(Protocol):
    """The question behind an answer."""

    def charts(self, answer: Answer[Any]) -> Charts:
        """The pictures of the answer by name."""

    def save(self, answer: Answer[Any], path: str) -> None:
        """Write the answer to a file in the format that its name ends with."""

    def launch(self, target: str, plan: int) -> LaunchFiles:
        """The files that start a plan of it with a tool."""

    def written(self) -> Mapping[str, Any]:
        """The question as a record carries it: the verb, its fields by public name, and the version that answered."""


class Tabled:
    """What `print` shows as tables at 80 columns, and a notebook as tables of HTML: answers, and each plan of one."""

    __slots__ = ()

    def tables(self) -> Sequence[Table]:
        """Its tables, the most important first."""
        raise NotImplementedError

    def __str__(self) -> str:
        return "\n".join(table.text(WIDTH) for table in self.tables()).rstrip()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "\n".join(table.html() for table in self.tables())


Row = TypeVar("Row", covariant=True)


class Answer(Tabled, Generic[Row]):
    """Base of the records that verbs answer with: a sequence of its rows. It equals another answer with the same
    figures, whoever asked."""

    __slots__ = ("_origin",)

    _origin: AnswerOrigin

    rows: ClassVar[str] = ""
    """The field that holds its rows, "" where it has none."""
    inside: ClassVar[bool] = False
    """Whether its plans are looked into: their operators, their load, what inputs do to them, their curves."""

    def tables(self, command: str = "", *, everything: bool = False) -> tuple[Table, ...]:
        """The answer as tables, the most important first. `command` looks into the first plan, for the last line;
        `everything`: all rows instead of the first."""
        raise NotImplementedError

    def verdict(self) -> tuple[str, ...]:
        """What opens the answer, in sentences that can be quoted alone; none where its tables say all."""
        return ()

    @property
    def failure(self) -> InfeasibleError | None:
        """Why it is no plan to follow although it is an answer, None where it is one."""
        return None

    @property
    def df(self) -> DataFrame:
        """All rows as a pandas DataFrame: one number a cell, in SI units or as the name of its column says.

        Raises `MissingExtraError` where pandas is not installed, `UsageError` without rows.
        """
        try:
            import pandas
        except ImportError:
            raise MissingExtraError("a DataFrame", "notebook") from None
        return pandas.read_csv(io.StringIO(Table((), (), records=self._rows()).csv()))

    @property
    def best(self) -> Row:
        """The first row: of plans the best ranked, of fits the roomiest verdict. Raises `UsageError` without rows."""
        return self._rows()[0]

    def _rows(self) -> Sequence[Row]:
        if not self._held():
            raise UsageError(f"{type(self).__name__} has no rows", "print(answer) shows what it says")
        return self._held()

    def _held(self) -> Sequence[Row]:
        rows: Sequence[Row] = getattr(self, self.rows) if self.rows else ()
        return rows

    def __len__(self) -> int:
        return len(self._held())

    def __bool__(self) -> bool:
        return True  # an answer is there, even that nothing was found

    def __iter__(self) -> Iterator[Row]:
        return iter(self._held())

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Row]: ...
    def __getitem__(self, at: int | slice) -> Row | Sequence[Row]:
        return self._held()[at]

    def chart(self, name: str | None = None) -> Chart:
        """A picture of the answer as a Vega-Lite specification, which notebooks draw; without a name the first that
        the answer has. Raises `UnknownNameError` for a name that it does not have, with those it has."""
        known = self._asked().charts(self)
        if not known:
            raise UsageError(f"{type(self).__name__} has no chart", "print(answer) shows what it says")
        if name is not None and name not in known:
            raise UnknownNameError("chart", name, known, f"one of {', '.join(known)}")
        return Chart(known[name or next(iter(known))]())

    def save(self, path: str | PathLike[str] = "") -> str:
        """Write the answer to a file and return its name; default: `plan.json` of `plan`. JSON holds all data it used,
        for replay, diff and launch; `.html` is a page with the same in it, `.csv` are its tables. Raises `UsageError`
        where that cannot be, or the name ends otherwise."""
        origin = self._asked()
        path = str(path) or f"{origin.written()['verb']}.json"
        origin.save(self, path)
        return path

    def launch(self, target: str = "", plan: int = 1) -> LaunchFiles:
        """The files that start the plan of that rank with a tool, as in `answer.launch("vllm")`, or with that of the
        plan's own software. Raises `UsageError`
        for a tool that cannot start it, `UnknownNameError` for an unknown one."""
        return self._asked().launch(target, plan)

    def _asked(self) -> AnswerOrigin:
        origin: AnswerOrigin | None = getattr(self, "_origin", None)
        if origin is None:
            raise UsageError("this answer does not know its question", "ask by the verb, as in chipwise.plan(...)")
        return origin


Shown = TypeVar("Shown")


def by_kind(table: Mapping[type, Shown], answer: object) -> Shown | None:
    """What a table says of the kind of an answer, or of a kind that it is one of; None where it says nothing."""
    return next((table[kind] for kind in type(answer).__mro__ if kind in table), None)


class Chart(dict[str, Any]):
    """A Vega-Lite specification that a notebook draws."""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        drawn = {**self, "width": 560} if self.get("width") == "container" else dict(self)
        older = {**drawn, "$schema": drawn["$schema"].replace("/v6", "/v5")}  # what most notebooks come with
        return {
            "application/vnd.vegalite.v6+json": drawn,
            "application/vnd.vegalite.v5+json": older,
            "text/plain": str(self.get("description", "")),
        }
