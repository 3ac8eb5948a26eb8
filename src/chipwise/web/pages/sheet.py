"""One answer as one file: verdict, plans, charts, evidence, launch files and the record itself, to be sent and opened
anywhere without a network, and printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chipwise import __version__
from chipwise.api.launching import spec_of
from chipwise.api.requests.command import about, command_line
from chipwise.api.requests.verbs import VERBS
from chipwise.api.saving import Answered
from chipwise.catalog.tools import load_tools
from chipwise.errors import ChipwiseError, UsageError
from chipwise.report.launch.spec import LaunchFile
from chipwise.report.launch.targets import launch_files
from chipwise.report.records import PlanReport
from chipwise.report.saved import Saved, saved_text
from chipwise.web.pages.render import STATIC, environment
from chipwise.web.views import VIEWS, View
from chipwise.web.views.query import named, query_of

__all__ = ["sheet_page"]

STYLES = ("style.css",)
SCRIPTS = (
    "vendor/vega.min.js",
    "vendor/vega-lite.min.js",
    "vendor/vega-interpreter.min.js",
    "charts.js",
    "page.js",
)
COMMANDS = {"train": "plan", "match": "evidence match"}


@dataclass(frozen=True, slots=True)
class _Section:
    """A view of an answer as the template takes it."""

    view: View
    result: dict[str, Any]


def sheet_page(verb: str, question: Any, found: Answered) -> str:
    """The file of an answer. Raises `UsageError` for a verb that has no page."""
    if verb not in VIEWS or not VIEWS[verb].tab:
        shown = ", ".join(v.verb for v in VIEWS.values() if v.tab)
        raise UsageError(f"{verb} has no page to be written", f"one of {shown}")
    sections = [_section(verb, question, found.report)]
    if verb == "plan" and isinstance(found.report, PlanReport) and found.report.plans:
        first = question.explained(found.report.plans[0])
        sections.append(_section("explain", first, first.run()))
        for part in ("operators", "load"):
            asked = about(first, VERBS[part])  # type: ignore[type-var]
            sections.append(_section(part, asked, asked.run()))
    return (
        environment()
        .get_template("sheet.html")
        .render(
            view=sections[0].view,
            sections=sections,
            command=command_line(COMMANDS.get(verb, verb), question),
            day=found.saved.day.isoformat(),
            alone=True,
            version=__version__,
            files=_launched(found.saved),
            record=saved_text(found.saved).replace("<", "\\u003c"),
            styles=[(STATIC / name).read_text("utf-8") for name in STYLES],
            scripts=[(STATIC / name).read_text("utf-8") for name in SCRIPTS],
        )
    )


def _section(verb: str, question: Any, record: Any) -> _Section:
    view = VIEWS[verb]
    shown = view.filled(question, record)
    return _Section(
        view, {"request": question, "record": record, "query": query_of(named(question)), **shown}
    )


def _launched(saved: Saved) -> tuple[LaunchFile, ...]:
    """What starts the first plan with its own runtime or trainer, where a tool of the table can; else nothing."""
    plans = saved.report.get("plans") or ()
    if not plans:
        return ()
    first = plans[0]
    tools = load_tools()
    own = [name for name, tool in tools.items() if first.get("runtime") in tool.runtimes]
    for target in own or (["torchrun"] if saved.verb == "train" else []):
        try:
            return launch_files(spec_of(saved, first["rank"]), target)
        except ChipwiseError:
            continue
    return ()
