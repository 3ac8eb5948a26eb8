"""Every request describes itself, and answers as the command line does."""

from __future__ import annotations

from dataclasses import fields

import pytest
from pydantic import TypeAdapter, ValidationError

from chipwise.api.requests.planning import FitRequest, PlanRequest
from chipwise.api.requests.verbs import VERBS
from chipwise.report.table import to_json
from command_line import Run

MODEL = "meta-llama/Llama-3.1-8B"


@pytest.mark.parametrize("verb", VERBS)
def test_a_request_describes_every_field(verb: str) -> None:
    schema = TypeAdapter(VERBS[verb]).json_schema()
    assert schema["additionalProperties"] is False
    assert "model" in schema["required"]
    for name, part in schema["properties"].items():
        assert part["description"], name
        assert not name.endswith("_")


@pytest.mark.parametrize("verb", VERBS)
def test_what_may_be_a_file_is_marked(verb: str) -> None:
    marked = {f.name for f in fields(VERBS[verb]) if f.metadata["file"]}  # type: ignore[arg-type]
    named = {f.name for f in fields(VERBS[verb])} & {"model", "chip", "chips", "parameters"}  # type: ignore[arg-type]
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
