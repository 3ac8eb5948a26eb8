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
from chipwise.report.fit import FitReport
from chipwise.report.kernel import KernelReport
from chipwise.units import format_bytes, format_seconds

__all__ = ["EXAMPLES", "Question", "Story", "command", "load_story", "story_page", "summary"]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

WORDS: Mapping[str, str] = {"train": "plan", "match": "evidence match", "chips": "chips compare"}
"""Commands that are not called like their verb."""

LINES = 22
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
        Question(q["question"], q["verb"], q["fields"], q["reading"], q.get("lines", LINES)) for q in data["ask"]
    )
    return Story(data["title"], data["who"], data["need"], questions, tuple(data["open"]))


def command(question: Question) -> str:
    """The command line that asks the same."""
    request: Any = read_request(question.verb, question.fields)
    line = command_line(WORDS.get(question.verb, question.verb), request)
    if question.verb == "train":
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
        said = "" if said in " ".join(ran.text.split()) else said  # the answer itself opens with it
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
    if isinstance(report, FitReport):
        fitting = [f for f in report.fits if f.verdict != "no"]
        if not fitting:
            return "It fits on none of these."
        roomy = max(fitting, key=lambda f: f.memory.cache_bytes)
        return (
            f"It fits on {len(fitting)} of {len(report.fits)}; {roomy.chips}x {roomy.chip} has the most memory left: "
            f"{format_bytes(roomy.memory.cache_bytes)} for the cache."
        )
    if isinstance(report, KernelReport):
        first = min(report.kernels, key=lambda k: k.time_s.mid)
        return f"Fastest on {first.chip}: {format_seconds(first.time_s.mid)}, bottleneck: {first.bound}."
    return " ".join(report.verdict())
