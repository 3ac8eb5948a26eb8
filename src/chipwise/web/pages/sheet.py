"""One answer as one file: verdict, plans, charts, evidence, launch files and the record itself, to be sent and opened
anywhere without a network, and printed."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from chipwise import __version__
from chipwise.api.launching import spec_of
from chipwise.api.requests.command import about, command_line
from chipwise.api.requests.detail import FrontierRequest
from chipwise.api.requests.kinds import Request
from chipwise.api.requests.verbs import VERBS
from chipwise.api.saving import Answered, answered
from chipwise.catalog.files import output_file, writing
from chipwise.catalog.tools import tools_of
from chipwise.errors import ChipwiseError, UsageError
from chipwise.report.launch.files import LaunchFile
from chipwise.report.launch.targets import launch_files
from chipwise.report.saved import PAGE, Saved, saved_text
from chipwise.values import dataclass
from chipwise.web.pages.render import STATIC, environment
from chipwise.web.views import SHEETS, VIEWS, View
from chipwise.web.views.plan import curves_of
from chipwise.web.views.view import named, query_of

STYLES = ("style.css",)
SCRIPTS = ("vendor/vega.min.js", "vendor/vega-lite.min.js", "vendor/vega-interpreter.min.js", "charts.js", "page.js")
COMMANDS = {"train": "plan"}
VIEW_OF = {"estimate": "explain"}


@dataclass(frozen=True)
class Sheet:
    """The page of a question, as something that answers itself: for those who ask in a process of its own."""

    verb: str
    question: Request

    def answers(self) -> Generator[Any, None, str]:
        """The page. Raises the errors of the verb, and `UsageError` for one that has no page."""
        yield from ()
        return sheet_page(self.verb, self.question, answered(self.verb, self.question))


def write_sheet(verb: str, question: Any, path: str) -> Answered:
    """Write the page of a question to a new file. Raises the errors of the verb, and `UsageError` for a verb that has
    no page or a file that cannot be written."""
    _viewed(verb)
    output_file(path)  # before the work is done
    found = answered(verb, question)
    text = sheet_page(verb, question, found)
    with writing(path) as out:
        out.write(text)
    return found


@dataclass(frozen=True, slots=True)
class _Section:
    """A view of an answer as the template takes it."""

    view: View
    result: dict[str, Any]


def sheet_page(verb: str, question: Any, found: Answered) -> str:
    """The file of an answer. Raises `UsageError` for a verb that has no page."""
    sections = [_section(_viewed(verb), question, found.report)]
    if verb == "plan" and found.report.inside and found.report.plans:
        first = question.explained(found.report.plans[0])
        sections.append(_section("explain", first, first.run()))
        drawn = curves_of(found.report.plans)
        for part in ("operators", "sensitivity", "load"):
            asked = about(first, VERBS[part])  # type: ignore[type-var]
            sections.append(_section(part, asked, asked.run()))
        if drawn["chips"]:
            curves = about(question, FrontierRequest, **drawn)
            sections.append(_section("frontier", curves, curves.run()))
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
            record=PAGE + saved_text(found.saved).replace("<", "\\u003c"),
            styles=[(STATIC / name).read_text("utf-8") for name in STYLES],
            scripts=[(STATIC / name).read_text("utf-8") for name in SCRIPTS],
        )
    )


def _viewed(verb: str) -> str:
    """The view that shows a verb."""
    name = VIEW_OF.get(verb, verb)
    if name not in SHEETS:
        shown = ", ".join(SHEETS)
        raise UsageError(f"{verb} has no page to be written", f"one of {shown}")
    return name


def _section(verb: str, question: Any, record: Any) -> _Section:
    view = SHEETS.get(verb) or VIEWS[verb]
    shown = view.filled(question, record)
    return _Section(view, {"request": question, "record": record, "query": query_of(named(question)), **shown})


def _launched(saved: Saved) -> tuple[LaunchFile, ...]:
    """What starts the first plan with its own runtime or trainer, where a tool of the table can; else nothing."""
    plans = saved.report.get("plans") or ()
    if not plans:
        return ()
    first = plans[0]
    for target in tools_of(first.get("runtime", "")) or (("torchrun",) if saved.verb == "train" else ()):
        try:
            return launch_files(spec_of(saved, first["rank"]), target)
        except ChipwiseError:
            continue
    return ()
