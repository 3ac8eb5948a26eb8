"""A question with one wrong field is refused at that field, and its asker hears what to put there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from chipwise.api.requests.doors import problem_of, read_request, request_schema
from chipwise.api.requests.verbs import VERBS
from chipwise.errors import ChipwiseError
from chipwise.web.openapi import EXAMPLES

TAKEN = {
    ("check_statement", "text"),
    ("kernel", "library"),
    ("kernel", "runtime"),
    ("match", "sample"),
    ("claim", "sample"),
}
"""What takes any text: words, a library of kernels and the software it was timed with, names of sizes of a sample."""
WORDS = {"search"}
COMBINED = {"evidence": {"benchmark", "scenario", "round", "submitter"}}
"""Fields that the example's own search excludes: the refusal names that."""


def wrong() -> Iterator[tuple[str, str, Any]]:
    """Every field once with a value that it cannot take, by the first verb that has it under these words."""
    seen = set()
    for verb in VERBS:
        for name, part in request_schema(verb)["properties"].items():
            key = (name, str(part.get("description")))
            if name in WORDS or (verb, name) in TAKEN or key in seen:
                continue
            seen.add(key)
            types = str(part)
            yield verb, name, -7 if "integer" in types or "'number'" in types else "no such thing"


@pytest.mark.parametrize(("verb", "name", "value"), list(wrong()))
def test_a_wrong_field_is_named(verb: str, name: str, value: Any) -> None:
    with pytest.raises(ChipwiseError) as refused:
        read_request(verb, EXAMPLES[verb] | {name: value}).answer()
    problem = problem_of(refused.value)
    assert problem.field.split("/")[0] == ("search" if name in COMBINED.get(verb, ()) else name)
    assert problem.hint or problem.nearest


@pytest.mark.parametrize("verb", ["operators", "load", "sensitivity"])
def test_sizes_of_other_networks_are_refused(verb: str) -> None:
    with pytest.raises(ChipwiseError, match="says nothing about") as refused:
        read_request(verb, EXAMPLES[verb] | {"resolution": "1280x720"}).answer()
    assert refused.value.field == "resolution"


def test_names_that_no_match_knows() -> None:
    for field, value in {"precision": "fp99", "runtime": "no such server"}.items():
        with pytest.raises(ChipwiseError) as refused:
            read_request("match", EXAMPLES["match"] | {field: value}).answer()
        assert refused.value.field == field


def test_a_command_in_a_hint_keeps_its_options() -> None:
    with pytest.raises(ChipwiseError) as refused:
        read_request("replay", {"saved": "{}"}).answer()
    assert "chipwise plan MODEL --save FILE" in problem_of(refused.value).hint
