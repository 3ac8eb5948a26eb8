"""Tables as they were parsed: they say what the tables say, and nothing of any other text."""

from __future__ import annotations

import tomllib
from importlib.resources import files

import pytest

from chipwise.catalog.parsed import PARSED, parse, shipped_lines
from chipwise.catalog.snapshot import shipped_names, shipped_text

FOLDERS = (
    "catalog/data",
    "catalog/data/chips",
    "catalog/data/systems",
    "catalog/data/published",
    "calibrate/data",
    "evidence/data",
    "workload/data",
    "mcp/data",
    "report/data",
    "web/data",
)
TABLES = [name for folder in FOLDERS for name in shipped_names(folder, ".toml")]


def test_every_shipped_table_is_held_as_it_is_now() -> None:
    held = files("chipwise").joinpath(PARSED).read_bytes().decode().split("\n")
    assert held == list(shipped_lines()), "run: python -m chipwise.catalog.parsed"
    assert len(held) == len(TABLES)


@pytest.mark.parametrize("name", TABLES)
def test_it_says_what_the_text_says(name: str) -> None:
    text = shipped_text(name)
    assert repr(parse(text)) == repr(tomllib.loads(text))


def test_what_is_not_shipped_is_parsed() -> None:
    text = shipped_text("catalog/data/ownership.toml")
    assert parse("answer = 42") == {"answer": 42}
    assert parse(f"answer = 42\n{text}") == {"answer": 42, **parse(text)}
    with pytest.raises(tomllib.TOMLDecodeError):
        parse("answer =")


def test_a_table_is_the_callers_own() -> None:
    text = shipped_text("catalog/data/ownership.toml")
    parse(text).clear()
    assert parse(text) == tomllib.loads(text)
