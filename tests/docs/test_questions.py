"""First plans that one would sign: what holds of the answer to every question of the documentation."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from docs.generate.console import on_the_day
from docs.generate.pages import DOCS
from docs.generate.questions import LONG, Asked, answer, asked, line
from docs.generate.tables import table

from chipwise.errors import InfeasibleError
from chipwise.report.plans import PlanReport
from whole import some

QUESTIONS = asked()
PAGES = {
    "questions": ("questions.md", QUESTIONS),
    "training-questions": ("training.md", asked("training.toml", "train")),
}
LINES = [(page, *pair) for page, questions in PAGES.values() for pair in some([*enumerate(questions, 1)], 5)]
MOST_LOADED = 0.8


@pytest.fixture(scope="module", autouse=True)
def _the_day() -> Iterator[None]:
    with on_the_day():
        yield


@pytest.mark.parametrize(("page", "number", "question"), LINES)
def test_the_page_says_what_is_answered(page: str, number: int, question: Asked) -> None:
    said = table([""] * 5, [line(number, question)], [""]).splitlines()[-1]
    assert said in (DOCS / page).read_text("utf-8"), "make docs"


def test_every_long_table_is_asked() -> None:
    assert set(PAGES) == set(LONG)


@pytest.mark.parametrize("question", some(QUESTIONS, 5), ids=lambda q: q.ask)
def test_the_first_plan_is_one_that_would_be_signed(question: Asked) -> None:
    """Not at over 80 % load; targets not in the worse half of an interval, prices not stale and speeds not modelled
    while a plan that ties has better, unless nothing else keeps the targets."""
    report = answer(question)
    if isinstance(report, InfeasibleError):
        assert report.hint
        return
    assert isinstance(report, PlanReport)
    first, w = report.plans[0], report.workload
    if w.rate_per_s is not None:
        assert first.load <= MOST_LOADED
    kept = [p for p in report.plans if p.price and p.keeps_targets(w.confidence)]
    if kept and first.price:
        assert first.keeps_targets(w.confidence)
    tied = [p for p in kept if p.rank in first.ties]
    if first.price and first.price.stale:
        assert all(p.price and (p.price.stale or p.pace.basis == "modelled") for p in tied)
    if first.pace.basis == "modelled":
        assert all(p.pace.basis == "modelled" or (p.price and p.price.stale) for p in tied)


def test_there_are_forty_five_and_each_is_argued() -> None:
    assert len(QUESTIONS) == len({q.ask for q in QUESTIONS}) == 45
    assert all(len(q.sound) > 30 and q.expert for q in QUESTIONS)
