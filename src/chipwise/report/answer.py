"""What every answer can do in a program: print and show itself, make rows and charts, be kept, launch."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any, Protocol

from chipwise.errors import MissingExtraError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from chipwise.report.table import Table

__all__ = ["Answer", "Chart", "Origin", "html_of"]

WIDTH = 80


class Origin(Protocol):
    """The question behind an answer."""

    def save(self, path: str) -> None:
        """Write the answer with all data it used to a file."""

    def launch(self, target: str, plan: int) -> Any:
        """The files that start a plan of it with a tool."""


class Answer:
    """Base of the records that verbs answer with. `print(answer)` shows its tables at 80 columns, a notebook shows them
    as HTML; it equals another answer with the same figures, whoever asked."""

    __slots__ = ("_origin",)

    _origin: Origin

    def tables(self, *, everything: bool = False) -> Sequence[Table]:
        """The tables of the answer: the first rows, or `everything`."""
        found = _kind(self)[1](self, everything)
        # the last line of some tables names the next command: a program has none
        return [replace(t, foot=tuple(x for x in t.foot if x.strip() != "next:")) for t in found]

    def __str__(self) -> str:
        from rich.console import Console

        from chipwise.report.terminal import show

        console = Console(
            file=io.StringIO(), width=WIDTH, color_system=None, highlight=False, emoji=False, markup=False
        )
        return "\n".join(show(table, console, terminal=True) for table in self.tables()).rstrip()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(map(html_of, self.tables()))

    @property
    def df(self) -> Any:
        """All rows as a pandas DataFrame: one number a cell, in SI units or as the name of its column says.

        Raises `MissingExtraError` where pandas is not installed, `UsageError` without rows.
        """
        try:
            import pandas
        except ImportError:
            raise MissingExtraError("a DataFrame", "notebook") from None
        from chipwise.report.flat import flat_rows

        names, rows = flat_rows(self._rows())
        out = io.StringIO(newline="")
        csv.writer(out).writerows([names, *rows])
        out.seek(0)
        return pandas.read_csv(out)

    @property
    def best(self) -> Any:
        """The first row: of plans the best ranked, of fits the roomiest verdict. Raises `UsageError` without rows."""
        return self._rows()[0]

    def _rows(self) -> Sequence[Any]:
        name = _kind(self)[0]
        rows: Sequence[Any] = getattr(self, name) if name else ()
        if not rows:
            raise UsageError(f"{type(self).__name__} has no rows", "print(answer) shows what it says")
        return rows

    def chart(self, name: str | None = None) -> Chart:
        """A picture of the answer as a Vega-Lite specification, which notebooks draw; without a name the first that
        the answer has. Raises `UnknownNameError` for a name that it does not have, with those it has."""
        known = _kind(self)[2](self)
        if not known:
            raise UsageError(f"{type(self).__name__} has no chart", "print(answer) shows what it says")
        if name is not None and name not in known:
            raise UnknownNameError("chart", name, known, f"one of {', '.join(known)}")
        return Chart(known[name or next(iter(known))]())

    def save(self, path: str) -> None:
        """Write the answer with all data it used to a file, as `--save` does, for replay, diff and launch. Raises
        `UsageError` where that cannot be."""
        self._asked().save(path)

    def launch(self, target: str, plan: int = 1) -> Any:
        """The files that start the plan of that rank with a tool, as in `answer.launch("vllm")`. Raises `UsageError`
        for a tool that cannot start it, `UnknownNameError` for an unknown one."""
        return self._asked().launch(target, plan)

    def _asked(self) -> Origin:
        origin: Origin | None = getattr(self, "_origin", None)
        if origin is None:
            raise UsageError(
                "this answer does not know its question", "ask by the verb, as in chipwise.plan(...)"
            )
        return origin


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


def html_of(table: Table) -> str:
    """A table as HTML with the lines above and below it. All text is escaped."""
    right = "text-align:right"
    sides = [f' style="{right if name in table.right else "text-align:left"}"' for name in table.columns]
    parts = [f"<p>{escape(text)}</p>" for text in table.head if text]
    if table.columns:
        head = "".join(
            f"<th scope='col'{s}>{escape(c)}</th>" for c, s in zip(table.columns, sides, strict=True)
        )
        rows = (
            "".join(f"<td{s}>{escape(cell)}</td>" for cell, s in zip(row, sides, strict=True))
            for row in table.rows
        )
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
    parts += [f"<p><small>{escape(text)}</small></p>" for text in table.foot if text]
    return "".join(parts)


Charts = Mapping[str, Callable[[], Any]]
Kind = tuple[str, Callable[[Any, bool], Sequence["Table"]], Callable[[Any], Charts]]


def _kind(answer: Answer) -> Kind:
    """The field that holds the rows of an answer, its tables and its charts."""
    return next(KINDS[cls.__name__] for cls in type(answer).__mro__ if cls.__name__ in KINDS)


def _no_charts(answer: Any) -> Charts:
    return {}


def _plan_tables(answer: Any, everything: bool) -> Sequence[Table]:
    from chipwise.report.plan_view import breakdown_view, plan_view

    shown = plan_view(answer, "", everything=everything)
    return (shown, *breakdown_view(answer.plans[0])) if answer.considered == 1 else (shown,)


def _explain_tables(answer: Any, everything: bool) -> Sequence[Table]:
    found = _plan_tables(answer, everything)
    if answer.amdahl is None:
        return found
    from chipwise.report.kernel_view import amdahl_view

    return (*found, amdahl_view(answer.amdahl))


def _plan_charts(answer: Any) -> Charts:
    from chipwise.report.charts.breakdown import elasticities
    from chipwise.report.charts.memory import memory_bars
    from chipwise.report.charts.plans import METRICS, bars, pareto

    plans = answer.plans[:12]
    found: dict[str, Callable[[], Any]] = {}
    if sum(p.price is not None for p in plans) > 1:
        found["pareto"] = lambda: pareto(answer)
    if len(plans) == 1:
        found["elasticities"] = lambda: elasticities(plans[0])
    for name, (_, _, of) in METRICS.items():
        if any(map(of, plans)):
            found[name] = lambda name=name: bars(plans, name)  # type: ignore[misc]
    return found | {"memory": lambda: memory_bars([(f"{p.chips}x {p.chip}", p.memory) for p in plans])}


def _fit_tables(answer: Any, everything: bool) -> Sequence[Table]:
    from chipwise.report.fit_view import fit_view

    return fit_view(answer)


def _fit_charts(answer: Any) -> Charts:
    from chipwise.report.charts.memory import memory_bars

    return {"memory": lambda: memory_bars([(f"{f.chips}x {f.chip}", f.memory) for f in answer.fits[:16]])}


def _train_tables(answer: Any, everything: bool) -> Sequence[Table]:
    from chipwise.report.train_view import layout_views, scaling_view, train_view

    alone = layout_views(answer.plans[0]) if len(answer.plans) == 1 else ()
    curves = (scaling_view(answer),) if answer.scaling else ()
    return (train_view(answer, everything=everything), *alone, *curves)


def _train_charts(answer: Any) -> Charts:
    from chipwise.report.charts.training import scaling, step_bars, turnaround

    found: dict[str, Callable[[], Any]] = {}
    if sum(p.usd is not None for p in answer.plans) > 1:
        found["turnaround"] = lambda: turnaround(answer)
    found["step"] = lambda: step_bars(answer)
    for kind in dict.fromkeys(s.kind for s in answer.scaling):
        found[kind] = lambda kind=kind: scaling(answer, kind)  # type: ignore[misc]
    return found


def _kernel_tables(answer: Any, everything: bool) -> Sequence[Table]:
    from chipwise.report.kernel_view import kernel_view

    return kernel_view(answer)


def _kernel_charts(answer: Any) -> Charts:
    from chipwise.report.charts.kernel import level_bars, time_bars
    from chipwise.report.charts.roofline import kernel_roofline

    found: dict[str, Callable[[], Any]] = {"time": lambda: time_bars(answer)}
    if any(k.flops > 0 for k in answer.kernels):
        found["roofline"] = lambda: kernel_roofline(answer)
    if any(v.bytes_per_mac > 0 for k in answer.kernels for v in k.levels):
        found["levels"] = lambda: level_bars(answer)
    return found


def _operators_tables(answer: Any, everything: bool) -> Sequence[Table]:
    from chipwise.report.operators_view import operators_view

    return (operators_view(answer),)


def _operators_charts(answer: Any) -> Charts:
    from chipwise.report.charts.breakdown import operator_bars
    from chipwise.report.charts.roofline import roofline

    return {
        "roofline": lambda: roofline(answer),
        "decode": lambda: operator_bars(answer, "decode"),
        "prefill": lambda: operator_bars(answer, "prefill"),
    }


def _load_tables(answer: Any, everything: bool) -> Sequence[Table]:
    from chipwise.report.operators_view import load_view

    return (load_view(answer),)


def _load_charts(answer: Any) -> Charts:
    from chipwise.report.charts.load import CURVES, load_curve

    return {name: lambda name=name: load_curve(answer, name) for name in CURVES}  # type: ignore[misc]


def _match_tables(answer: Any, everything: bool) -> Sequence[Table]:
    from chipwise.report.evidence_view import match_view

    return match_view(answer)


def _claim_tables(answer: Any, everything: bool) -> Sequence[Table]:
    from chipwise.report.evidence_view import claim_view

    return claim_view(answer)


def _evidence_tables(answer: Any, everything: bool) -> Sequence[Table]:
    from chipwise.report.evidence_view import items_view

    return (items_view(answer.items),)


def _chips_tables(answer: Any, everything: bool) -> Sequence[Table]:
    from chipwise.catalog.chips import get_chip
    from chipwise.report.chip_view import chips_view, compare_view

    chips = [get_chip(c.id) for c in answer.chips]
    return (compare_view(chips) if chips and answer.chips[0].figures else chips_view(chips),)


def _chips_charts(answer: Any) -> Charts:
    from chipwise.report.charts.chips import landscape

    return {"landscape": lambda: landscape(answer)}


def _models_tables(answer: Any, everything: bool) -> Sequence[Table]:
    from chipwise.report.catalogue_view import model_view, models_view

    return (model_view(answer.models[0]) if len(answer.models) == 1 else models_view(answer.models),)


def _systems_tables(answer: Any, everything: bool) -> Sequence[Table]:
    from chipwise.report.system_view import system_view, systems_view

    return (system_view(answer.systems[0]) if len(answer.systems) == 1 else systems_view(answer.systems),)


def _runtimes_tables(answer: Any, everything: bool) -> Sequence[Table]:
    from chipwise.report.runtime_view import runtime_view, runtimes_view

    return (
        runtime_view(answer.runtimes[0]) if len(answer.runtimes) == 1 else (runtimes_view(answer.runtimes),)
    )


def _offers_tables(answer: Any, everything: bool) -> Sequence[Table]:
    from chipwise.catalog.snapshot import today
    from chipwise.report.catalogue_view import offers_view

    return (offers_view(answer.offers, today()),)


def _diff_tables(answer: Any, everything: bool) -> Sequence[Table]:
    from chipwise.report.diff_view import diff_view

    return diff_view(answer)


def _replay_tables(answer: Any, everything: bool) -> Sequence[Table]:
    from chipwise.report.diff_view import replay_view

    return replay_view(answer)


KINDS: Mapping[str, Kind] = {
    "ExplainReport": ("plans", _explain_tables, _plan_charts),
    "PlanReport": ("plans", _plan_tables, _plan_charts),
    "FitReport": ("fits", _fit_tables, _fit_charts),
    "TrainReport": ("plans", _train_tables, _train_charts),
    "KernelReport": ("kernels", _kernel_tables, _kernel_charts),
    "OperatorsReport": ("operators", _operators_tables, _operators_charts),
    "LoadReport": ("points", _load_tables, _load_charts),
    "MatchReport": ("matches", _match_tables, _no_charts),
    "ClaimReport": ("", _claim_tables, _no_charts),
    "EvidenceReport": ("items", _evidence_tables, _no_charts),
    "ChipsReport": ("chips", _chips_tables, _chips_charts),
    "ModelsReport": ("models", _models_tables, _no_charts),
    "SystemsReport": ("systems", _systems_tables, _no_charts),
    "RuntimesReport": ("runtimes", _runtimes_tables, _no_charts),
    "OffersReport": ("offers", _offers_tables, _no_charts),
    "DiffReport": ("changes", _diff_tables, _no_charts),
    "ReplayReport": ("changes", _replay_tables, _no_charts),
}
"""Every answer by the name of its record: the field with its rows, its tables, its charts by name."""
