"""Every request describes itself, and answers as the command line does."""

from __future__ import annotations

from dataclasses import fields

import pytest
from pydantic import TypeAdapter, ValidationError

from chipwise.api.requests.command import about, command_line
from chipwise.api.requests.doors import read_request
from chipwise.api.requests.planning import FitRequest, PlanRequest
from chipwise.api.requests.verbs import VERBS
from chipwise.errors import UsageError
from chipwise.report.table import to_json
from command_line import Run

FILES = {"model", "chip", "chips", "parameters", "log", "day"}
MODEL = "meta-llama/Llama-3.1-8B"


@pytest.mark.parametrize("verb", VERBS)
def test_a_request_describes_every_field(verb: str) -> None:
    schema = TypeAdapter(VERBS[verb]).json_schema()
    assert schema["additionalProperties"] is False
    assert set(schema.get("required", ())) == {
        n for n, p in schema["properties"].items() if "default" not in p
    }
    for name, part in schema["properties"].items():
        assert part["description"], name
        assert not name.endswith("_")


@pytest.mark.parametrize("verb", VERBS)
def test_what_may_be_a_file_is_marked(verb: str) -> None:
    marked = {f.name for f in fields(VERBS[verb]) if f.metadata["file"]}  # type: ignore[arg-type]
    named = {f.name for f in fields(VERBS[verb])} & FILES  # type: ignore[arg-type]
    assert marked == named


def test_numbers_are_read_for_text() -> None:
    asked = TypeAdapter(PlanRequest).validate_python({"model": MODEL, "in": 500, "rate": 2, "tpot": "40ms"})
    assert (asked.in_, asked.rate, asked.workload_of("serve").tpot_s) == ("500", "2", 0.04)


@pytest.mark.parametrize("given", [{}, {"model": MODEL, "ratee": 3}, {"model": MODEL, "task": "train"}])
def test_a_door_refuses_what_no_request_has(given: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(PlanRequest).validate_python(given)


def test_a_request_answers_as_the_command_does(run: Run) -> None:
    asked = FitRequest(model=MODEL, chips="l4", lora="rank=16,count=8")
    command = run("fit", MODEL, "--chips", "l4", "--lora", "rank=16,count=8", "--format", "json")
    assert command.out == to_json(asked.run()) + "\n"


@pytest.mark.parametrize("given", [{"day": "/etc/hostname"}, {"log": "/etc/hostname"}, {"day": "README.md"}])
def test_doors_open_no_file_of_a_question(given: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=r"files are not read here|no rate"):
        read_request("plan", {"model": MODEL, **given})


def test_doors_take_a_day_that_is_written_out() -> None:
    asked = read_request("plan", {"model": MODEL, "day": "1, 2 3"})
    assert asked.curve().peak == 3.0  # type: ignore[attr-defined]


def test_a_question_becomes_a_command_and_another_question() -> None:
    asked = PlanRequest(
        model=MODEL, in_="1k", precision="fp8", have="2xl4", disaggregate=True, spare=1, rate="5/s"
    )
    line = command_line("plan", asked)
    assert line == (
        f"chipwise plan {MODEL} --in 1k --rate 5/s --precision fp8 --disaggregate --have 2xl4 --spare 1"
    )
    sized = about(asked, FitRequest, chips="l4")
    assert command_line("fit", sized) == f"chipwise fit {MODEL} --precision fp8 --chips l4"
