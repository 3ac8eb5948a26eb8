"""Stories: their requests are those that doors take, and their commands ask the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from docs.generate.console import on_the_day, run
from docs.generate.stories import EXAMPLES, Question, command, load_story, summary

from chipwise.api.requests.doors import read_request
from chipwise.api.requests.written import Origin
from chipwise.errors import ChipwiseError
from chipwise.report.table import to_json

STORIES = sorted(p.stem for p in EXAMPLES.glob("*.toml") if "[[ask]]" in p.read_text("utf-8"))
QUESTIONS = [(name, q) for name in STORIES for q in load_story(name).questions]


@pytest.fixture(scope="module", autouse=True)
def _the_day() -> Iterator[None]:
    with on_the_day():
        yield


def test_there_are_three() -> None:
    assert STORIES == ["game-tools", "research-team", "video-backend"]


@pytest.mark.parametrize("name", STORIES)
def test_each_ends_with_what_stays_open(name: str) -> None:
    story = load_story(name)
    assert len(story.questions) >= 5
    assert len(story.open) >= 4
    assert "## Not answered yet" in (EXAMPLES.parent / "docs" / "stories" / f"{name}.md").read_text("utf-8")


@pytest.mark.parametrize(("name", "question"), QUESTIONS)
def test_the_command_asks_what_the_request_asks(name: str, question: Question) -> None:
    asked = read_request(question.verb, question.fields)
    # what does not fit says so behind its answer
    told, _ = json.JSONDecoder().raw_decode(run(f"{command(question)} --format json").text)
    said = told.pop("question")
    if question.verb == "kernel":  # its command writes the defaults of the operator out
        assert told == json.loads(to_json(asked.run()))
    else:
        assert said == json.loads(json.dumps(Origin(question.verb, asked).written()))


def test_a_field_that_does_not_exist_is_refused() -> None:
    _, question = QUESTIONS[0]
    wrong = replace(question, fields={**question.fields, "batches": 3})
    with pytest.raises(ChipwiseError, match="batches"):
        command(wrong)


def test_answers_are_summed_up_in_a_sentence() -> None:
    said = [summary(read_request(q.verb, q.fields).run()) for _, q in QUESTIONS[:3]]
    assert all(text.endswith(".") for text in said)
