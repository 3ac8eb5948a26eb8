"""What every answer can do in a program: print and show itself, make rows and charts, be kept, launch."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from chipwise.errors import MissingExtraError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from chipwise.report.table import Table

WIDTH = 80


class Origin(Protocol):
    """The question behind an answer."""

    def save(self, path: str) -> None:
        """Write the answer with all data it used to a file."""

    def launch(self, target: str, plan: int) -> Any:
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


class Answer(Tabled):
    """Base of the records that verbs answer with. It equals another answer with the same figures, whoever asked."""

    __slots__ = ("_origin",)

    _origin: Origin

    def tables(self, *, everything: bool = False) -> Sequence[Table]:
        """The tables of the answer: the first rows, or `everything`."""
        from chipwise.report.views import tables

        return tables(self, everything=everything)

    @property
    def df(self) -> Any:
        """All rows as a pandas DataFrame: one number a cell, in SI units or as the name of its column says.

        Raises `MissingExtraError` where pandas is not installed, `UsageError` without rows.
        """
        try:
            import pandas
        except ImportError:
            raise MissingExtraError("a DataFrame", "notebook") from None
        from chipwise.report.table import Table

        return pandas.read_csv(io.StringIO(Table((), (), records=self._rows()).csv()))

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
        known = _kind(self)[1](self)
        if not known:
            raise UsageError(f"{type(self).__name__} has no chart", "print(answer) shows what it says")
        if name is not None and name not in known:
            raise UnknownNameError("chart", name, known, f"one of {', '.join(known)}")
        return Chart(known[name or next(iter(known))]())

    def save(self, path: str = "") -> str:
        """Write the answer with all data it used to a file, as `--save` does, for replay, diff and launch, and return
        its name; default: `plan.json` of `plan`. Raises `UsageError` where that cannot be."""
        origin = self._asked()
        path = path or f"{origin.written()['verb']}.json"
        origin.save(path)
        return path

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


Charts = Mapping[str, Callable[[], Any]]
Kind = tuple[str, Callable[[Any], Charts]]


def _kind(answer: Answer) -> Kind:
    """The field that holds the rows of an answer, and its charts."""
    return next(KINDS[cls.__name__] for cls in type(answer).__mro__ if cls.__name__ in KINDS)


def _no_charts(answer: Any) -> Charts:
    return {}


def _plan_charts(answer: Any) -> Charts:
    from chipwise.report.charts.breakdown import elasticities
    from chipwise.report.charts.load import day_curve
    from chipwise.report.charts.memory import memory_bars
    from chipwise.report.charts.plans import METRICS, bars, pareto
    from chipwise.report.charts.timeline import request_timeline

    plans = answer.plans[:12]
    found: dict[str, Callable[[], Any]] = {}
    if sum(p.price is not None for p in plans) > 1:
        found["pareto"] = lambda: pareto(answer)
    if len(plans) == 1:
        found["elasticities"] = lambda: elasticities(plans[0])
    for name, (_, _, of) in METRICS.items():
        if any(map(of, plans)):
            found[name] = lambda name=name: bars(plans, name)  # type: ignore[misc]
    found["memory"] = lambda: memory_bars([(f"{p.chips}x {p.chip}", p.memory) for p in plans])
    found["timeline"] = lambda: request_timeline(answer)
    if plans[0].day is not None:
        found["day"] = lambda: day_curve(plans[0])
    return found


def _fit_charts(answer: Any) -> Charts:
    from chipwise.report.charts.memory import memory_bars

    return {"memory": lambda: memory_bars([(f"{f.chips}x {f.chip}", f.memory) for f in answer.fits[:16]])}


def _train_charts(answer: Any) -> Charts:
    from chipwise.report.charts.timeline import pipeline_step
    from chipwise.report.charts.training import scaling, step_bars, turnaround

    found: dict[str, Callable[[], Any]] = {}
    if sum(p.usd is not None for p in answer.plans) > 1:
        found["turnaround"] = lambda: turnaround(answer)
    found["step"] = lambda: step_bars(answer)
    staged = next((p for p in answer.plans if p.layout.pp > 1), None)
    if staged is not None:
        found["timeline"] = lambda: pipeline_step(staged)
    for kind in dict.fromkeys(s.kind for s in answer.scaling):
        found[kind] = lambda kind=kind: scaling(answer, kind)  # type: ignore[misc]
    return found


def _kernel_charts(answer: Any) -> Charts:
    from chipwise.report.charts.kernel import level_bars, time_bars
    from chipwise.report.charts.roofline import kernel_roofline

    found: dict[str, Callable[[], Any]] = {"time": lambda: time_bars(answer)}
    if any(k.flops > 0 for k in answer.kernels):
        found["roofline"] = lambda: kernel_roofline(answer)
    if any(v.bytes_per_mac > 0 for k in answer.kernels for v in k.levels):
        found["levels"] = lambda: level_bars(answer)
    return found


def _operators_charts(answer: Any) -> Charts:
    from chipwise.report.charts.breakdown import operator_bars
    from chipwise.report.charts.roofline import roofline

    return {
        "roofline": lambda: roofline(answer),
        "decode": lambda: operator_bars(answer, "decode"),
        "prefill": lambda: operator_bars(answer, "prefill"),
    }


def _load_charts(answer: Any) -> Charts:
    from chipwise.report.charts.load import CURVES, load_curve

    return {name: lambda name=name: load_curve(answer, name) for name in CURVES}  # type: ignore[misc]


def _media_charts(answer: Any) -> Charts:
    from chipwise.report.charts.timeline import stage_timeline

    timed = next((p for p in answer.plans if p.stages), None)
    return {} if timed is None else {"timeline": lambda: stage_timeline(timed)}


def _frontier_charts(answer: Any) -> Charts:
    from chipwise.report.charts.frontier import frontier_curves

    return {"frontier": lambda: frontier_curves(answer)}


def _sensitivity_charts(answer: Any) -> Charts:
    from chipwise.report.charts.breakdown import tornado

    return {"tornado": lambda: tornado(answer)}


def _chips_charts(answer: Any) -> Charts:
    from chipwise.report.charts.chips import landscape

    return {"landscape": lambda: landscape(answer)}


KINDS: Mapping[str, Kind] = {
    "ExplainReport": ("plans", _plan_charts),
    "PlanReport": ("plans", _plan_charts),
    "FitReport": ("fits", _fit_charts),
    "LocalReport": ("models", _no_charts),
    "MediaReport": ("plans", _media_charts),
    "TrainReport": ("plans", _train_charts),
    "RlReport": ("plans", _no_charts),
    "KernelReport": ("kernels", _kernel_charts),
    "OperatorsReport": ("operators", _operators_charts),
    "LoadReport": ("points", _load_charts),
    "SimulationReport": ("times", _no_charts),
    "SensitivityReport": ("inputs", _sensitivity_charts),
    "FrontierReport": ("points", _frontier_charts),
    "MatchReport": ("matches", _no_charts),
    "ClaimReport": ("", _no_charts),
    "EvidenceReport": ("items", _no_charts),
    "LaunchReport": ("files", _no_charts),
    "StatementsReport": ("statements", _no_charts),
    "ChipsReport": ("chips", _chips_charts),
    "ModelsReport": ("models", _no_charts),
    "SystemsReport": ("systems", _no_charts),
    "RuntimesReport": ("runtimes", _no_charts),
    "OffersReport": ("offers", _no_charts),
    "DiffReport": ("changes", _no_charts),
    "ReplayReport": ("changes", _no_charts),
}
"""Every answer by the name of its record: the field with its rows, its charts by name."""
