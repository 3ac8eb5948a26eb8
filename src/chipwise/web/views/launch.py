"""What starts a plan: files of a tool, to be copied or taken as an archive."""

from __future__ import annotations

import json
from typing import Any

from chipwise.api.requests.field import fields_of
from chipwise.api.requests.kept import LaunchRequest
from chipwise.api.requests.kinds import Request
from chipwise.catalog.tools import tools_of
from chipwise.report.launch.spec import LaunchReport
from chipwise.report.launch.targets import ANYWHERE
from chipwise.web.views.query import query_of
from chipwise.web.views.view import MODEL, View, link


def launch_link(verb: str, question: Request, runtime: str) -> str:
    """The address of the files that start the answer to a question with its own runtime; "" where no tool does."""
    own = next(iter(tools_of(runtime)), "")
    asked = {"question": {"verb": verb, "request": fields_of(question)}}
    return link("launch", {"saved": json.dumps(asked), "for": own}) if own else ""


def _show(question: LaunchRequest, report: LaunchReport) -> dict[str, Any]:
    asked = {"saved": question.saved, "for": question.for_, "plan": question.plan}
    return {
        "files": report.files,
        "targets": {
            name: link("launch", {**asked, "for": name}) for name in dict.fromkeys((report.tool, *ANYWHERE))
        },
        "zip": f"/launch.zip?{query_of(asked)}",
    }


LAUNCH = View(
    verb="launch",
    tab="",
    title="To launch it",
    lead="Files that start a plan with a tool, and the benchmark that verifies its estimate.",
    example={
        "saved": json.dumps(
            {"question": {"verb": "estimate", "request": {"model": MODEL, "chip": "h100-sxm5-80gb", "tp": 8}}}
        ),
        "for": "vllm",
    },
    front=("for", "plan"),
    show=_show,
    template="launch.html",
)
