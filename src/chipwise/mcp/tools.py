"""The tools: a verb each, what it is for, the fields that matter most as a schema, and its short answer.

The list has to fit into what an agent can afford to read at the start: fields that few need are named, and described by
the resource `chipwise://fields/{verb}`; the whole of an answer is read by the links that come with it.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from mcp.types import Tool, ToolAnnotations

from chipwise.api.requests.doors import request_schema
from chipwise.api.requests.verbs import VERBS
from chipwise.mcp.answers import (
    chips_answer,
    claim_answer,
    evidence_answer,
    kernel_answer,
    launch_answer,
    match_answer,
    models_answer,
    rows_answer,
    statements_answer,
    table_answer,
)
from chipwise.report.table import to_json
from chipwise.values import dataclass

MOST_CHARS = 7_600
"""Characters of an answer: under 2,000 tokens of four characters."""


@dataclass(frozen=True, slots=True)
class Offered:
    """A tool: its title, when to use it, how its answer is shortened, and which fields are described in the list."""

    title: str
    use: str
    short: Callable[[Any], dict[str, Any]]
    front: tuple[str, ...] = ()


SAID: Mapping[str, Offered] = {
    "plan": Offered(
        "Rank chips and layouts",
        "Which chips to rent and how many, for serving under targets. Start here. `ttft` and "
        "`tpot` are targets of the mean; 50 users at once with one request each are a `rate` of about 50 / (seconds "
        "an answer takes). Networks without tokens (images, video, vision, speech) take `e2e`, `resolution`, `steps`, "
        "`batch` instead.",
        rows_answer,
        (
            "model",
            "rate",
            "in",
            "out",
            "ttft",
            "tpot",
            "percentile",
            "chips",
            "have",
            "max_usd_per_h",
            "precision",
            "task",
        ),
    ),
    "fit": Offered(
        "Does it fit in memory",
        "The fewest chips that hold a model, the largest batch and context.",
        rows_answer,
        ("model", "chips", "count", "context", "batch", "precision"),
    ),
    "estimate": Offered(
        "One deployment",
        "Speed, cost and memory of a deployment that is given in full.",
        rows_answer,
        ("model", "chip", "tp", "pp", "concurrency", "rate", "in", "out", "precision", "runtime", "task"),
    ),
    "simulate": Offered(
        "Requests through time",
        "A deployment under a `rate` with `burstiness`, or all `requests` at once: percentiles.",
        table_answer,
        ("model",),
    ),
    "explain": Offered(
        "The bottleneck of a deployment",
        "Shares of time by resource, what 10 % more of each gives, and memory by kind.",
        rows_answer,
        ("model", "chip", "tp", "pp", "concurrency", "rate", "in", "out", "precision", "runtime"),
    ),
    "compare": Offered(
        "Chips side by side",
        "The best plan of each of some chips.",
        rows_answer,
        ("model", "chips", "rate", "in", "out", "ttft", "tpot", "precision", "task"),
    ),
    "local": Offered(
        "What your machine runs",
        "Which models a machine of the user's own runs, in which format, how fast and with which command, or what to "
        "buy for a budget.",
        rows_answer,
        ("have", "host_memory", "max_usd", "min_tps", "context", "use", "models"),
    ),
    "train": Offered(
        "Plan a training run",
        "Step time, days, dollars and MFU of training or fine-tuning on chips and counts.",
        rows_answer,
        ("model", "tokens", "chips", "counts", "deadline", "max_usd", "method", "seq"),
    ),
    "rl": Offered(
        "Plan reinforcement learning",
        "A loop of sampling answers and training on them: time of a step, days, dollars, bottleneck.",
        rows_answer,
        ("model", "chips", "counts", "prompts", "in", "out"),
    ),
    "fleet": Offered(
        "Many demands on one fleet",
        "Many models and jobs on owned, rented and called supplies, by the hour.",
        table_answer,
        ("fleet",),
    ),
    "kernel": Offered(
        "One operator",
        "Time of one operator on chips and at the roofline: a product, attention, experts, a copy, a collective.",
        kernel_answer,
        ("op", "chips", "dtype", "m", "n", "k", "batch", "kv", "heads", "kv_heads", "head_dim", "bytes", "ranks"),
    ),
    "evidence": Offered(
        "Search published results",
        "MLPerf Inference results and imported measurements, to find the id of a result that somebody cites.",
        evidence_answer,
        ("search", "benchmark", "chip", "scenario", "limit"),
    ),
    "match": Offered(
        "Nearest measurements",
        "The published results nearest to a plan, the axes on which they differ, and the prediction adjusted for them.",
        match_answer,
        ("model", "chip", "count", "in", "out", "precision", "sample", "task"),
    ),
    "claim": Offered(
        "Does a benchmark lead matter",
        "Whether the lead of a published result over other chips carries over to a workload. Use it before giving a "
        "benchmark as a reason.",
        claim_answer,
        ("result", "model", "against", "in", "out", "ttft", "tpot", "task"),
    ),
    "frontier": Offered(
        "Throughput against speed",
        "Throughput of a chip against speed for one user: a curve for each chip over all layouts.",
        table_answer,
        ("model", "chips", "in", "out", "precision"),
    ),
    "chips": Offered(
        "Chips",
        "Figures of chips; by name every figure with its grade. Use it to find ids.",
        chips_answer,
        ("chips", "search", "vendor"),
    ),
    "models": Offered(
        "Models", "Models known by name, with parameters, weights and cache.", models_answer, ("model", "search")
    ),
    "check_statement": Offered(
        "Fact check",
        "A verdict on what people say about hardware, with figures and the commands that show them. Call it before "
        "repeating such a statement.",
        statements_answer,
    ),
    "launch": Offered(
        "Files that start a plan",
        "Scripts, YAML or Terraform that start a plan with a tool, and the benchmark that verifies it. Take "
        "`saved` from an "
        "answer's link, or the record that another face exported.",
        launch_answer,
    ),
    "replay": Offered(
        "Does a saved answer still hold",
        "Asks the question of an answer again, today: the same, or which figures moved. `saved` is an answer's link or "
        "record.",
        table_answer,
    ),
    "diff": Offered(
        "What changed between two answers",
        "Which figures of two answers (links or records) differ, and whether the question or the installation did it.",
        table_answer,
    ),
}


def _offered(verb: str) -> Offered:
    """A verb without words of its own for agents: shown as its question and tables say."""
    doc = " ".join((VERBS[verb].__doc__ or verb).split())
    return Offered(verb.replace("_", " ").capitalize(), doc.partition(". ")[0], table_answer)


TOOLS: Mapping[str, Offered] = {verb: SAID.get(verb) or _offered(verb) for verb in VERBS}
"""Every verb is a tool."""


def shortened(verb: str, report: Any, links: str = "") -> dict[str, Any]:
    """The answer of a tool as JSON of at most `MOST_CHARS` characters; `links` says where the whole is read. What is
    not known, does not apply or goes without saying (`SILENT`) is not there; what is left out of long lists is counted
    under `left_out`."""
    short = TOOLS[verb].short(report)
    answer: dict[str, Any] = _telling(json.loads(to_json(short))["items"])
    if links:
        answer["whole_answer"] = links
    return _within(answer, MOST_CHARS)


SILENT: Mapping[str, Any] = {
    "layout": "unsharded",
    "spare": 0,
    "prompt_workers": 0,
    "replicas": 1,
    "hosts": 1,
    "missing_gb": 0.0,
    "host_gb": 0.0,
    "weight": 0.0,
}
"""Values of the short form that say nothing: they are what one takes for granted where nothing is said."""


def _telling(value: Any) -> Any:
    """An answer without what says nothing: what is not known or does not apply, and what goes without saying."""
    if isinstance(value, list):
        return [_telling(part) for part in value]
    if not isinstance(value, dict):
        return value
    told = ((name, _telling(part)) for name, part in value.items())
    return {n: v for n, v in told if v not in (None, [], {}, "") and not (n in SILENT and v == SILENT[n])}


def _within(answer: dict[str, Any], most: int) -> dict[str, Any]:
    """An answer with its longest lists cut until it is short enough."""
    left: dict[str, int] = {}
    while _size(answer) > most:
        parts = {n: v for n, v in answer.items() if isinstance(v, list | dict) and len(v) > 1 and n != "left_out"}
        if not parts:
            texts = {n: v for n, v in answer.items() if isinstance(v, str) and len(v) > 200}
            if not texts:
                break
            name = max(texts, key=lambda n: len(texts[n]))
            answer[name] = f"{texts[name][: len(texts[name]) // 2]} ..."
            continue
        name = max(parts, key=lambda n: _size(parts[n]))
        whole = parts[name]
        gone = max(1, len(whole) // 4)
        kept = list(whole)[: len(whole) - gone]
        answer[name] = {n: whole[n] for n in kept} if isinstance(whole, dict) else kept
        left[name] = left.get(name, 0) + gone
        answer["left_out"] = left
    return answer


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


@cache
def listed(*, files: bool = False) -> tuple[Tool, ...]:
    """All tools as the protocol lists them. Without `files` no field that could only name a file is shown."""
    return tuple(_tool(verb, offered, files) for verb, offered in TOOLS.items())


@cache
def fields_of(verb: str, *, files: bool = False) -> dict[str, Any]:
    """Every field of a verb's question by name, as a flat JSON schema."""
    schema = request_schema(verb, files=files)
    parts: Mapping[str, Any] = schema["properties"]

    def field(found: re.Match[str]) -> str:
        name = found[1].replace("-", "_")
        return name if name in parts else found[0]

    flat = {name: _flat(part, schema.get("$defs", {})) for name, part in parts.items()}
    return {name: part | {"description": FLAG.sub(field, part["description"])} for name, part in flat.items()}


def _tool(verb: str, offered: Offered, files: bool) -> Tool:
    every = fields_of(verb, files=files)
    needed = list(request_schema(verb, files=files).get("required", ()))
    usual = DEPLOYMENT if set(DEPLOYMENT) <= set(every) else list(every)[:FRONT]
    front = [n for n in dict.fromkeys((*needed, *(offered.front or usual))) if n in every]
    further = [n for n in every if n not in front]
    more = f" Further fields (chipwise://fields/{verb}): {_named(verb, further, files)}." if further else ""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: _described(verb, name, every[name], files) for name in front},
    }
    if not further:
        schema["additionalProperties"] = False
    if needed:
        schema["required"] = needed
    return Tool(
        name=verb,
        title=offered.title,
        description=f"{offered.use}{more}",
        input_schema=schema,
        annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
    )


def _described(verb: str, name: str, field: dict[str, Any], files: bool) -> dict[str, Any]:
    """A field of the list: in few words where an earlier tool has described the same in full."""
    earlier = itertools.takewhile(lambda v: v != verb, SAID)
    same = (v for v in earlier if name in SAID[v].front and fields_of(v, files=files).get(name) == field)
    return field | {"description": BRIEF[name]} if name in BRIEF and any(same) else field


def _named(verb: str, further: Sequence[str], files: bool) -> str:
    """The names of fields that are not described, as shortly as they can be said: all of an earlier tool stand for its
    own, but those that this one lacks."""
    own, ways = set(fields_of(verb, files=files)), [", ".join(further)]
    for other in itertools.takewhile(lambda v: v != verb, TOOLS):
        theirs = fields_of(other, files=files)
        lacks = " and ".join(name for name in theirs if name not in own)
        all_of = f"all of `{other}`" + (f" but {lacks}" if lacks else "")
        ways.append(", ".join((all_of, *(n for n in further if n not in theirs))))
    return min(ways, key=len)


BRIEF: Mapping[str, str] = {
    "model": "a bundled name, a config.json's keys, or dimensions",
    "chip": "a chip, or several as 8xh100",
    "concurrency": "concurrent clients, one request in flight each; default: as many as fit",
    "chips": "only these, separated by commas, with a count at most that many",
    "precision": "number format of the weights, e.g. fp8",
    "runtime": "serving software; best compares all",
    "task": "serve many users, batch, or local for one",
    "ttft": "target for the first token, e.g. 500ms",
    "tpot": "target for each later token, e.g. 30ms",
    "rate": "requests per second, e.g. 10/s",
}
"""Fields that many tools have, in few words."""

DEPLOYMENT = ("model", "chip", "tp", "pp", "concurrency")
"""What a deployment is given by."""

FLAG = re.compile(r"--([a-z][a-z-]+)")
"""An option of the command line in a description: agents know it as a field."""

FRONT = 8
"""Fields that are described in the list where a tool does not say which and takes no deployment."""


def _flat(part: Mapping[str, Any], defs: Mapping[str, Any]) -> dict[str, Any]:
    """A field as types, choices, pattern, default and description; what stands for nothing is left out."""
    ways = [_resolved(way, defs) for way in part.get("anyOf", (part,))]
    types = [t for way in ways for t in ([way["type"]] if isinstance(way.get("type"), str) else way.get("type", ()))]
    types = [t for t in dict.fromkeys(types) if t != "null"]
    found: dict[str, Any] = {"type": types[0] if len(types) == 1 else types} if types else {}
    for way in ways:
        for name in ("enum", "const", "pattern"):
            if name in way:
                found[name] = way[name]
    if part.get("default") is not None:
        found["default"] = part["default"]
    return found | {"description": part.get("description", "")}


def _resolved(way: Mapping[str, Any], defs: Mapping[str, Any]) -> Mapping[str, Any]:
    named = str(way.get("$ref", "")).rpartition("/")[2]
    found: Mapping[str, Any] = defs.get(named, way)
    return found
