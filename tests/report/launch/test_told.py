"""Rows of options: conditions, facts in values, places in documents, and that every option is documented."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from chipwise.catalog import tools
from chipwise.catalog.tools import command_rows, get_tool, load_tools
from chipwise.errors import UsageError
from chipwise.report.launch import facts
from chipwise.report.launch.command import Command, Env
from chipwise.report.launch.facts import document, run_facts, told
from report.launch.plans import trained

SHARED = {"run_clm": ("deepspeed", "optimum-habana")}  # tables of several tools
ROWS = {
    "trl": {
        "options": [
            ["--max_length", "{seq}"],
            ["--use_peft", "", "adapters"],
            ["--lora_r", "{rank}", "adapters rank>8"],
            ["--optim", "adamw_{kind}", "!adapters"],
            ["--lora_target_modules", "{modules}"],
            ["--output_dir", "{output}", "kind!=plain"],
        ],
        "file": [["a.b", "{rank}"], ["a.c", ["x", { "y": "{seq}" }]], ["d", True, "kind=torch"]],
    }
}  # fmt: skip


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "command_rows", lambda: ROWS)


def given(**more: object) -> dict[str, Any]:
    output = Env("OUTPUT")
    return {"seq": 512, "rank": 16, "adapters": True, "kind": "torch", "modules": ("q", "k"), "output": output, **more}


@pytest.mark.usefixtures("rows")
def test_rows_are_told_where_their_condition_holds() -> None:
    parts = told(Command.of("trl", "x"), given()).parts
    whole = ("--max_length 512", "--use_peft", "--lora_r 16", "--lora_target_modules q k")
    assert parts == (*whole, '--output_dir "${OUTPUT:?}"')
    parts = told(Command.of("trl", "x"), given(adapters=False, kind="plain")).parts
    assert parts == ("--max_length 512", "--optim adamw_plain", "--lora_target_modules q k")
    assert "--lora_r" not in str(told(Command.of("trl", "x"), given(rank=8)))


@pytest.mark.usefixtures("rows")
def test_dots_are_places_in_a_document() -> None:
    assert document("trl", given()) == {"a": {"b": 16, "c": ["x", {"y": 512}]}, "d": True}
    assert document("trl", given(kind="plain")) == {"a": {"b": 16, "c": ["x", {"y": 512}]}}


@pytest.mark.usefixtures("rows")
def test_a_fact_that_nobody_gave_is_an_error() -> None:
    with pytest.raises(KeyError, match="rank"):
        told(Command.of("trl", "x"), {k: v for k, v in given().items() if k != "rank"})


def test_facts_of_a_run() -> None:
    found = run_facts(trained(micro_batch=2, global_batch=64, dp=4), 30)
    assert (found["passes"], found["measuring"], found["again"], found["hosts"]) == (8, True, True, 8)
    assert (found["layers"], found["vendor"], found["several"]) == (80, "nvidia", True)


def options() -> Iterator[tuple[str, str, str]]:
    for table, parts in command_rows().items():
        for part, told_rows in parts.items():
            for row in told_rows if part != "joined" else ():
                yield table, part, row[0]


def test_every_option_is_documented() -> None:
    for table, _, option in options():
        for tool in SHARED.get(table, (table,)):
            known = get_tool(tool).options
            assert option in known or set(option.split(".")) <= set(known), (tool, option)
    assert set(command_rows()) <= {*load_tools(), *SHARED}


def test_a_row_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "parse", lambda _: {"trl": {"options": [["--r", 1, "a", "b"]]}})
    with pytest.raises(UsageError, match=r"trl\.options: .*an option, its value, and when"):
        command_rows.__wrapped__()  # type: ignore[attr-defined]
