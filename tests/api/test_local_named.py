"""What `local` is told and says of names: a user's own file, and a machine that is built with several memories."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.catalog.test_headers import PAIRS, gguf

import chipwise as cw
from chipwise.api.requests.desk import LocalRequest
from chipwise.api.requests.known import with_known
from chipwise.catalog.machine import parse_machine
from chipwise.errors import UnknownNameError
from command_line import Run


@pytest.fixture
def own(tmp_path: Path) -> str:
    return str(gguf(tmp_path / "mine.gguf", PAIRS, {"output.weight": [64, 1000]}))


def test_a_file_of_ones_own_runs_at_a_desk(own: str) -> None:
    (found,) = cw.local(have="rtx-4090", models=own, context="4096").models
    assert (found.model, found.precision) == (own, "q4_k_m")


def test_a_file_is_not_opened_for_others(own: str) -> None:
    with pytest.raises(UnknownNameError):
        with_known(LocalRequest(have="rtx-4090", models=own))


def test_trace_says_what_reads_a_decoder(run: Run, own: str) -> None:
    shown = run("trace", own)
    assert shown.code
    assert "chipwise estimate" in " ".join(shown.err.split())


@pytest.mark.parametrize(
    ("machine", "words"),
    [
        ("m4-max", "m4-max with 128 GB"),
        ("ryzen 9 9950x", "ryzen-9-9950x with 192 GB"),
        ("m4-max:64gb", "m4-max:64gb"),
        ("rtx-4090", "rtx-4090"),
    ],
)
def test_a_memory_that_nobody_named_is_said(machine: str, words: str) -> None:
    assert parse_machine(machine).words == words


def test_a_page_is_not_started_by_programs_of_a_desk() -> None:
    said = {"have": "rtx-4060-laptop", "models": "Qwen/Qwen3-4B-Instruct-2507"}
    assert cw.local(**said).models[0].commands
    assert not cw.local(**said, environment="browser").models[0].commands
