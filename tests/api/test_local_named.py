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


def test_files_are_known_of_models_that_are_not_looked_through() -> None:
    (found,) = cw.local(have="rtx-4090", models="Qwen/Qwen3-8B").models
    assert "Qwen3-8B-GGUF:Q8_0" in found.commands["llama.cpp"]


def test_several_cards_share_a_layer_in_the_fastest_format_of_eight_bits() -> None:
    def made(**said: str) -> tuple[float, str, dict[str, str]]:
        (found,) = cw.local(have="4xrtx-4090", models="Qwen/Qwen3-32B", **said).models
        return found.tokens_per_s.mid, found.precision, found.commands

    pace, precision, commands = made()
    assert precision == "fp8"
    assert pace > made(precision="bf16")[0]
    assert commands
    assert not any("GGUF" in line for line in commands.values())


def test_deepseek_at_home_is_a_machine_that_is_sold() -> None:
    report = cw.local(max_usd=15_000, models="deepseek-ai/DeepSeek-V3", min_tps=5)
    assert report.models
    for found in report.models:
        assert (found.covers, found.usd <= 15_000) == ("machine", True)
        assert "withdrawn" not in found.item


def test_a_larger_model_is_named_on_what_runs_it_best() -> None:
    report = cw.local(max_usd=1500, models="Qwen/Qwen3.8-27B,google/gemma-4-31b-it")
    for opened in report.opens:
        (there,) = cw.local(have="rtx-3090", models=opened.model).models
        assert opened.tokens_per_s.mid >= there.tokens_per_s.mid
