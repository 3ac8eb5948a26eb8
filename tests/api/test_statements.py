"""Statements are recognised however they are said; their verdicts follow from figures that their commands show."""

from __future__ import annotations

import ast
import json
import math
import shlex
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from docs.generate.console import on_the_day

import chipwise as cw
from chipwise.api.requests.doors import read_request
from chipwise.api.statements import check_statement, list_statements, worked_out
from chipwise.api.worked_out import WorkedOut, value_of
from chipwise.catalog.statements import Said, load_statements
from chipwise.errors import UsageError
from chipwise.report.table import to_json
from command_line import Run

ALL = sorted(load_statements())


@pytest.fixture(scope="module", autouse=True)
def _the_day() -> Iterator[None]:
    with on_the_day():
        yield


@pytest.mark.parametrize("name", ALL)
def test_todays_figures_bear_the_verdict_out(name: str) -> None:
    found = worked_out(load_statements()[name])
    assert found.stands, (found.because, found.figures)
    assert "{" not in found.because
    assert found.figures
    assert found.basis


@pytest.mark.parametrize("name", ALL)
def test_its_own_text_makes_a_statement_and_no_other(name: str) -> None:
    statement = load_statements()[name]
    assert statement.made_in(statement.text)
    assert [s.text for s in check_statement(statement.text).statements] == [statement.text]


def _leaves(expression: str, asks: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """The numbers that an expression reads of answers, by the question they come from."""
    inner: set[ast.AST] = set()
    for node in ast.walk(ast.parse(expression, mode="eval")):
        if node in inner or not isinstance(node, ast.Attribute | ast.Subscript):
            continue
        inner |= set(ast.walk(node))
        root: Any = node
        while not isinstance(root, ast.Name):
            root = root.value
        value = value_of(ast.unparse(node), asks) if root.id in asks else None
        if isinstance(value, int | float):
            yield root.id, float(value)


def _numbers(document: Any) -> Iterator[float]:
    if isinstance(document, dict | list):
        for part in document.values() if isinstance(document, dict) else document:
            yield from _numbers(part)
    elif isinstance(document, int | float):
        yield float(document)


SHOWN: dict[str, tuple[float, ...]] = {}


@pytest.mark.parametrize("name", ALL)
def test_its_commands_run_and_show_its_figures(name: str, run: Run) -> None:
    statement = load_statements()[name]
    works = {name: WorkedOut() for name in statement.asks}
    asks = {name: works[name].ask(**ask) for name, ask in statement.asks.items()}
    commands = {name: next(iter(work.commands)) for name, work in works.items()}
    for figure in statement.figures.values():
        for ask, value in _leaves(figure.value, asks):
            command = commands[ask]
            if command not in SHOWN:
                ran = run(*shlex.split(command)[1:], "--format", "json")
                assert ran.code in (0, 4), (command, ran.err)
                SHOWN[command] = tuple(_numbers(json.loads(ran.out)))
            assert any(math.isclose(value, shown, rel_tol=1e-9) for shown in SHOWN[command]), (command, value)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Google's TPU pods use a four-dimensional torus, right?", "torus-4d"),
        ("each core executes one instruction per clock", "one-op-per-cycle"),
        ("moving to TPUs saves us millions over some months", "tpu-saves-millions"),
        ("Trainium costs less than NVIDIA", "trainium-cheaper"),
        ("you can put the whole LLM onto a single Cerebras wafer", "wafer-entire-model"),
        ("Groq's LPU has predictable latency", "groq-deterministic"),
        ("mixed precision (autocast) is faster and needs less memory", "autocast"),
        ("H100 is 3x A100", "h100-3x-a100"),
        ("using fp8 cuts TPOT in half", "fp8-halves-latency"),
        ("MoE models: only the active experts must be in VRAM", "moe-active-memory"),
        ("H100: 1979 TFLOPS", "sparse-peaks"),
        ("Blackwell is 30x faster than Hopper", "b200-30x"),
        ("The GPU has 9,728 CUDA cores", "cores-of-a-card"),
        ("TPUs could bring savings over weeks", "tpu-saves-millions"),
        ("a systolic array needs no register access", "tpu-no-registers"),
        ("Inferentia2: low-cost inference with low latency", "inferentia-cheap-and-quick"),
    ],
)
def test_statements_are_recognised_in_other_words(text: str, name: str) -> None:
    found = [s.name for s in check_statement(text).statements]
    assert name in found
    assert len(found) <= 2


def test_an_unknown_statement_is_not_judged_and_the_nearest_are_named() -> None:
    report = check_statement("Trainium runs PyTorch well")
    assert report.statements == ()
    assert "no statement is known" in report.note
    assert report.nearest[0] == "Trainium is cheaper than an A100."


def test_a_denial_is_said() -> None:
    denied = check_statement("TPUs are not a 4D torus")
    assert "opposite" in denied.note
    assert denied.statements[0].verdict == "true"
    assert check_statement("TPUs are a 4D torus").note == ""


def test_a_verdict_falls_with_its_condition() -> None:
    statement = load_statements()["nvlink-900"]
    found = worked_out(replace(statement, holds="rate > 1e15"))
    assert not found.stands
    assert found.verdict == "not settled"
    assert "no longer" in found.because


@pytest.mark.parametrize("text", ["__import__('os')", "a.__class__", "open('x')", "a.b(1)", "[1 for x in a]", "b"])
def test_figures_are_expressions_over_answers_and_nothing_else(text: str) -> None:
    with pytest.raises(ValueError, match="no figure"):
        value_of(text, {"a": Said("", "", "")})


def test_every_face_checks_statements(run: Run) -> None:
    listed = list_statements()
    assert len(listed.statements) >= 30
    assert {s.stands for s in listed.statements} == {None}
    out = run("claim", "check", "TPUs", "are", "a", "4-D", "torus").out
    assert out.startswith("False. ")
    assert "confidence high" in out
    assert "shown by: chipwise systems show tpu-v4-pod" in out
    assert "TPUs came in 2016." in run("claim", "list").out
    over_http = read_request("check_statement", {"text": "TPUs are a 4-D torus"}).run()
    assert to_json(over_http) == to_json(cw.check_statement("TPUs are a 4-D torus"))
    with pytest.raises(UsageError, match="no statement"):
        check_statement("  ?! ")
    with pytest.raises(UsageError, match="characters"):
        check_statement("x " * 2000)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("int4 halves quality", "misleading"),
        ("FP8 loses no accuracy", "true with a condition"),
        ("NVLink matters for inference", "true with a condition"),
        ("CPUs are useless for LLM inference", "misleading"),
    ],
)
def test_a_sentence_that_says_the_opposite_gets_the_opposite_verdict(text: str, verdict: str) -> None:
    report = check_statement(text)
    assert report.statements[0].verdict == verdict
    assert report.statements[0].because.startswith("Known of the opposite") == bool(report.note)
