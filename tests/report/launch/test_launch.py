"""Launch files equal the kept ones; every option that they use is in the table of documented options.

`CHIPWISE_WRITE_GOLDEN=1 python -m pytest tests/report/launch` writes them anew.
"""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from chipwise.catalog.tools import load_tools
from chipwise.errors import ChipwiseError
from chipwise.report.launch.command import Command
from chipwise.report.launch.targets import TARGETS, launch_files
from report.launch.plans import PLANS, plan_for

KEPT = Path(__file__).parent / "files"


def text_of(name: str, target: str) -> str:
    try:
        files = launch_files(plan_for(name, target), target)
    except ChipwiseError as error:
        return f"refused: {error}\n"
    return "".join(f"==== {f.name}{' (executable)' if f.script else ''}\n{f.text}" for f in files)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", PLANS)
def test_files_equal_the_kept_ones(name: str, target: str) -> None:
    file = KEPT / name / f"{target}.txt"
    text = text_of(name, target)
    if os.environ.get("CHIPWISE_WRITE_GOLDEN"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert text == file.read_text()


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_starts_some_plan(target: str) -> None:
    texts = [text_of(name, target) for name in PLANS]
    assert any(not text.startswith("refused: ") for text in texts)
    assert all("verify" in text for text in texts if not text.startswith("refused: "))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", PLANS)
def test_options_are_documented(name: str, target: str) -> None:
    """Read back from the text, whatever the code that wrote it checked."""
    known = {option for tool in load_tools().values() for option in tool.options}
    text = text_of(name, target)
    commands = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    if not text.startswith("refused: "):
        used = set(re.findall(r"(?<![\w-])--[a-zA-Z][\w.-]*", commands))
        assert used <= known


@pytest.mark.parametrize("tool", load_tools().values(), ids=lambda t: t.id)
def test_a_tool_has_version_and_source(tool: object) -> None:
    assert re.search(r"\d", tool.version)  # type: ignore[attr-defined]
    assert re.search(r"20\d\d-\d\d-\d\d", tool.source)  # type: ignore[attr-defined]
    assert all(tool.options.values())  # type: ignore[attr-defined]


def test_an_undocumented_option_is_a_bug() -> None:
    with pytest.raises(KeyError, match="no documented option"):
        Command.of("vllm", "vllm serve").option("--tensor-parallel")


@pytest.mark.parametrize("name", PLANS)
def test_shell_is_well_formed(name: str) -> None:
    for target in TARGETS:
        text = text_of(name, target)
        for script in re.findall(r"==== \S+ \(executable\)\n(.*?)(?===== |\Z)", text, re.DOTALL):
            assert script.startswith("#!/usr/bin/env bash\n")
            shlex.split(script, comments=True)


def test_names_are_quoted() -> None:
    from dataclasses import replace

    from chipwise.report.launch.spec import ServeSpec

    spec = plan_for("dense", "sglang")
    assert isinstance(spec, ServeSpec)
    evil = replace(spec, model="a; rm -rf ~ #")
    for target in ("vllm", "sglang", "trtllm", "dynamo"):
        (serve, *_) = launch_files(replace(evil, runtime=plan_for("dense", target).runtime), target)  # type: ignore[union-attr]
        assert "'a; rm -rf ~ #'" in serve.text


def test_the_table_is_toml() -> None:
    from importlib.resources import files

    tomllib.loads(files("chipwise").joinpath("catalog/data/launch.toml").read_text("utf-8"))
