"""The tools: a verb each, its question and short answer as schemas, one sentence on when to use it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, get_type_hints

from mcp.types import Tool, ToolAnnotations

from chipwise.api.requests.doors import request_schema, written_schema
from chipwise.api.requests.verbs import VERBS
from chipwise.mcp.answers import (
    chips_answer,
    claim_answer,
    evidence_answer,
    fit_answer,
    kernel_answer,
    local_answer,
    match_answer,
    models_answer,
    plans_answer,
    train_answer,
)

__all__ = ["DETAILS", "TOOLS", "Offered", "listed", "shortened"]

DETAILS = "details"


@dataclass(frozen=True, slots=True)
class Offered:
    """A tool: its title, when to use it, and how its answer is shortened."""

    title: str
    use: str
    short: Callable[[Any], Any]


TOOLS: Mapping[str, Offered] = {
    "plan": Offered(
        "Rank chips and layouts",
        "Which chips to rent, how many and arranged how, for serving a model under targets. Start here. `ttft` and "
        "`tpot` are targets of the mean; 50 users at once with one request each are a `rate` of about 50 / (seconds "
        "an answer takes).",
        plans_answer,
    ),
    "fit": Offered(
        "Does it fit in memory",
        "Memory of a model on chips: the fewest chips that hold it, the largest batch and context.",
        fit_answer,
    ),
    "estimate": Offered(
        "One deployment", "Speed, cost and memory of a deployment that is given in full.", plans_answer
    ),
    "explain": Offered(
        "What bounds a deployment",
        "Shares of time by resource, what 10 % more of each would give, and memory by kind, of one deployment.",
        plans_answer,
    ),
    "compare": Offered("Chips side by side", "The best plan of each of some chips.", plans_answer),
    "local": Offered(
        "What a desk runs",
        "Which models a machine of the user's own runs, in which format, how fast and with which command, or what to "
        "buy for a budget. Name the machine as in rtx-4090, 2xrtx-3090, m4-max:64gb or rtx-4090+ryzen-9-9950x:128gb.",
        local_answer,
    ),
    "train": Offered(
        "Plan a training run",
        "Step time, days, dollars and MFU of training or fine-tuning on chips and counts.",
        train_answer,
    ),
    "kernel": Offered(
        "One operator",
        "Time of one operator on chips and at the roofline: a product, attention, experts, a copy, a collective.",
        kernel_answer,
    ),
    "evidence": Offered(
        "Search published results",
        "MLPerf Inference results and imported measurements, to find the id of a result that somebody cites.",
        evidence_answer,
    ),
    "match": Offered(
        "Nearest measurements",
        "The published results nearest to a plan, the axes on which they differ, and a prediction moved towards them.",
        match_answer,
    ),
    "claim": Offered(
        "Does a benchmark lead matter",
        "Whether the lead of a published result over other chips carries over to a workload. Use it before giving a "
        "benchmark as a reason.",
        claim_answer,
    ),
    "chips": Offered(
        "Chips", "Figures of chips; by name every figure with its grade. Use it to find ids.", chips_answer
    ),
    "models": Offered("Models", "Models known by name, with parameters, weights and cache.", models_answer),
}


def shortened(verb: str, report: Any, *, details: bool) -> Any:
    """The answer of a tool; with `details` the whole record too."""
    short = TOOLS[verb].short(report)
    return replace(short, details=report) if details else short


@cache
def listed(*, files: bool = False) -> tuple[Tool, ...]:
    """All tools as the protocol lists them. Without `files` no field that could only name a file is shown."""
    return tuple(_tool(verb, offered, files) for verb, offered in TOOLS.items())


def _tool(verb: str, offered: Offered, files: bool) -> Tool:
    asked = _plain(request_schema(verb, files=files))
    said = "the whole record too: tens of kilobytes, so narrow the question first"
    asked["properties"][DETAILS] = {"type": "boolean", "default": False, "description": said}
    asked.pop("description", None)
    doc = " ".join((VERBS[verb].__doc__ or "").split())
    return Tool(
        name=verb,
        title=offered.title,
        description=f"{offered.use}\n\n{doc}",
        input_schema=asked,
        output_schema=_answer_schema(offered.short),
        annotations=ToolAnnotations(
            title=offered.title,
            read_only_hint=True,
            destructive_hint=False,
            idempotent_hint=True,
            open_world_hint=False,
        ),
    )


def _answer_schema(short: Callable[[Any], Any]) -> dict[str, Any]:
    return _plain(written_schema(get_type_hints(short)["return"], "#/$defs/{model}"))


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """A copy without the titles that repeat the names of properties."""

    def visit(part: Any, *, names: bool = False) -> Any:
        if isinstance(part, dict):
            kept = {k: v for k, v in part.items() if names or k != "title" or not isinstance(v, str)}
            return {k: visit(v, names=k in ("properties", "$defs") and not names) for k, v in kept.items()}
        return [visit(v) for v in part] if isinstance(part, list) else part

    plain: dict[str, Any] = visit(json.loads(json.dumps(schema)))
    return plain
