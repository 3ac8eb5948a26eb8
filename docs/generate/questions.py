"""Questions that people ask before they rent: what is answered first, why that is sound, what an expert might prefer.

They are kept in `examples/questions.toml`; the answers are those of the command line on the day of the documentation.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from docs.generate.stories import EXAMPLES
from docs.generate.tables import table

from chipwise.api.requests.command import command_line
from chipwise.api.requests.doors import read_request
from chipwise.api.requests.verbs import question
from chipwise.errors import InfeasibleError
from chipwise.report import figures
from chipwise.report.plans import PlanRecord, PlanReport
from chipwise.report.training import TrainPlanRecord, TrainReport, duration
from chipwise.units import format_count

__all__ = ["LONG", "Asked", "answer", "asked", "line", "questions_table", "training_table"]

LONG = {"questions": "questions.toml", "training-questions": "training.toml"}
"""Tables whose lines take seconds each, and where their questions are kept."""


@dataclass(frozen=True, eq=False)
class Asked:
    """A question by the fields of its verb, and what is to be said of its answer."""

    fields: Mapping[str, Any]
    sound: str
    expert: str
    verb: str = "plan"

    @property
    def ask(self) -> str:
        """The question as it is typed behind the verb."""
        line = command_line(self.verb, question(self.verb, self.fields))
        return line.removeprefix(f"chipwise {self.verb} ")


@cache
def asked(file: str = "questions.toml", verb: str = "plan") -> tuple[Asked, ...]:
    """All questions, in the order of the file."""
    rows = tomllib.loads((EXAMPLES / file).read_text("utf-8"))["question"]
    return tuple(Asked(row["fields"], row["sound"], row["expert"], verb) for row in rows)


@cache
def answer(one: Asked) -> PlanReport | TrainReport | InfeasibleError:
    """The plans on the day of the documentation, or why there is none; asked once."""
    beside = {"evidence": "none"} if one.verb == "plan" else {}
    try:
        found: PlanReport | TrainReport = read_request(one.verb, {**one.fields, **beside}).run()
    except InfeasibleError as error:
        return error
    return found


def line(number: int, one: Asked) -> tuple[str, ...]:
    """The line of a question: its number, what is typed, the first plan, and what is to be said of it."""
    found = answer(one)
    if isinstance(found, InfeasibleError):
        first = f"none: {found.what}"
    elif isinstance(found, PlanReport):
        first = _first(found)
    else:
        first = "; ".join(_trained(p) for p in found.plans[:2])
    return str(number), f"`{one.ask}`", first, one.sound, one.expert


def questions_table(_: str) -> str:
    """A line for each question."""
    return _table(asked(), "plan", "first plan")


def training_table(_: str) -> str:
    """A line for each question about training."""
    return _table(asked("training.toml", "train"), "train", "first plans")


def _table(questions: Sequence[Asked], verb: str, first: str) -> str:
    heads = ("#", f"`chipwise {verb} ...`", first, "why it is sound", "what an expert might prefer")
    return table(heads, [line(number, one) for number, one in enumerate(questions, 1)], heads[:1])


def _trained(p: TrainPlanRecord) -> str:
    cost = "no price" if p.usd is None else f"${format_count(p.usd.mid)}"
    took = f"{duration(p.days.mid)} [{duration(p.days.low)} to {duration(p.days.high)}]"
    rate = f"{p.tokens_per_s.mid / p.chips:,.0f} tokens/s a chip"
    what = f"**{p.chips:,}x {p.chip}**, {p.stack}, {p.layout.label}, {p.precision}"
    return f"{what}: {took}, {cost}, {rate}, {p.days.basis}"


def _first(report: PlanReport) -> str:
    p, w = report.plans[0], report.workload
    said = [f"**{p.chips}x {p.chip}**, {p.spread}, {p.precision}, {p.runtime}"]
    if p.price is not None:
        said.append(f"${figures.mid(p.price)}/h{' (stale price)' if p.price.stale else ''}")
    if p.job is not None:
        said.append(f"{figures.number(p.job.hours)} hours")
    elif p.tpot_s is not None and w.task != "batch":
        said.append(f"{figures.milliseconds(p.tpot_s)} ms a token")
    said += _certainty(p, w.rate_per_s)
    return ", ".join(said)


def _certainty(p: PlanRecord, rate_per_s: float | None) -> Iterator[str]:
    if p.chance is not None:
        yield f"targets {min(round(100 * p.chance), 99)} %"
    if rate_per_s is not None:
        yield f"load {p.load:.0%}"
    yield p.pace.basis
