"""Stories: what somebody needs, what they ask, what the tool answers, and what it cannot answer.

A story is a file in `examples/`: prose questions with the verb and the fields of the request that stands for each.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docs.generate.console import run, transcript

from chipwise.api.requests.command import command_line
from chipwise.api.requests.doors import read_request
from chipwise.report.kernel import KernelReport
from chipwise.report.records import Figure, FitReport, PlanReport
from chipwise.report.training import TrainReport
from chipwise.units import format_bytes, format_seconds

__all__ = ["EXAMPLES", "Question", "Story", "command", "load_story", "story_page", "summary"]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

WORDS: Mapping[str, str] = {
    "train_plan": "plan",
    "evidence_match": "evidence match",
    "chips": "chips compare",
}
"""Commands that are not called like their verb."""

LINES = 16
"""Lines of an answer that a page shows."""


@dataclass(frozen=True)
class Question:
    """What is asked: in words, and as a request. `shown` lines of the answer, 0 for all."""

    text: str
    verb: str
    fields: Mapping[str, Any]
    reading: str
    shown: int = LINES


@dataclass(frozen=True)
class Story:
    """Who asks, why, what, and which questions stay open."""

    title: str
    who: str
    need: str
    questions: tuple[Question, ...]
    open: tuple[str, ...]


def load_story(name: str) -> Story:
    """The story of that name."""
    data = tomllib.loads((EXAMPLES / f"{name}.toml").read_text("utf-8"))
    questions = tuple(
        Question(q["question"], q["verb"], q["fields"], q["reading"], q.get("lines", LINES))
        for q in data["ask"]
    )
    return Story(data["title"], data["who"], data["need"], questions, tuple(data["open"]))


def command(question: Question) -> str:
    """The command line that asks the same."""
    request: Any = read_request(question.verb, question.fields)
    line = command_line(WORDS.get(question.verb, question.verb), request)
    if question.verb == "kernel":
        words = line.split()
        at = words.index("--op")
        op = words[at + 1]
        rest = words[2:at] + words[at + 2 :]
        return " ".join(["chipwise", "kernel", op, *rest])
    if question.verb == "train_plan":
        return f"{line.replace(f' --task {request.task}', '')} --task {request.task}"
    return line.replace("chipwise 'evidence match'", "chipwise evidence match")


def story_page(name: str) -> str:
    """Questions, commands and answers of a story, and what it leaves open."""
    story = load_story(name)
    parts = [f"*{' '.join(story.who.split())}*", " ".join(story.need.split())]
    for number, q in enumerate(story.questions, 1):
        line = command(q)
        ran = run(line)
        if ran.code not in (0, 4):
            raise ValueError(f"examples/{name}.toml: {line} exits with {ran.code}: {ran.text[:300]}")
        if q.shown and len(ran.text.splitlines()) > q.shown:
            line = f"{line} | head -n {q.shown}"
        if ran.code:
            line = f"{line}  # exits with {ran.code}"
        said = summary(read_request(q.verb, q.fields).run()) if ran.code == 0 else ""
        parts += [
            f"## {number}. {q.text}",
            *([f"**{said}**"] if said else []),
            " ".join(q.reading.split()),
            f"```console\n{transcript(f'$ {line}')}\n```",
        ]
    parts += ["## Not answered yet", "\n".join(f"- {text}" for text in story.open)]
    return "\n\n".join(parts)


def summary(report: Any) -> str:
    """The answer in a sentence, "" where it is a table."""
    if isinstance(report, TrainReport):
        p = report.plans[0]
        cost = "" if p.usd is None else f", ${_dollars(p.usd.low)} to ${_dollars(p.usd.high)}"
        return f"{p.chips:,} x {p.chip}, {p.layout.label}: {_span(p.days)}{cost}; MFU {p.mfu:.0%}, bound by {p.bound}."
    if isinstance(report, PlanReport):
        best = report.plans[0]
        cost = (
            ""
            if best.price is None
            else f", ${_dollars(best.price.low)} to ${_dollars(best.price.high)} an hour"
        )
        return (
            f"{best.chips} x {best.chip}, {best.layout.label}, {best.precision}: first token after "
            f"{format_seconds(best.ttft_s.mid)}, then one every {format_seconds(best.tpot_s.mid)}{cost}; "
            f"bound by {best.bound}."
        )
    if isinstance(report, FitReport):
        fitting = [f for f in report.fits if f.verdict != "no"]
        if not fitting:
            return "It fits on none of these."
        roomy = max(fitting, key=lambda f: f.memory.cache_bytes)
        return (
            f"It fits on {len(fitting)} of {len(report.fits)}; most room is left on {roomy.chips} x {roomy.chip}: "
            f"{format_bytes(roomy.memory.cache_bytes)} for the cache."
        )
    if isinstance(report, KernelReport):
        first = min(report.kernels, key=lambda k: k.time_s.mid)
        return f"Fastest on {first.chip}: {format_seconds(first.time_s.mid)}, bound by {first.bound}."
    return ""


def _dollars(value: float) -> str:
    """Two digits: prices are no sharper."""
    rounded = float(f"{value:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:.2g}"


def _span(days: Figure) -> str:
    """Days with their interval, or hours where it is less than one."""
    unit, each = ("days", 1.0) if days.mid >= 1.0 else ("hours", 24.0)
    low, mid, high = (each * x for x in (days.low, days.mid, days.high))
    return f"{mid:.1f} {unit} [{low:.1f} to {high:.1f}]"
