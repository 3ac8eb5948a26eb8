"""Pages say what the tool says: generated parts are those of now, and every command that is named exists."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from cyclopts.exceptions import MissingArgumentError
from docs.generate.console import on_the_day, python, run
from docs.generate.pages import ROOT, inline_commands, pages, refresh
from docs.generate.questions import LONG

from chipwise.cli.app import app

PAGES = pages()


@pytest.fixture(scope="module", autouse=True)
def _the_day() -> Iterator[None]:
    with on_the_day():
        yield


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_generated_parts_are_fresh(path: Path) -> None:
    stale = refresh(path, write=False, but=LONG)  # whose lines tests/docs/test_questions.py asks
    assert stale is None, f"make docs: {stale.what if stale else ''}"


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_commands_in_running_text_exist(path: Path) -> None:
    for command in inline_commands(path.read_text("utf-8")):
        typed = command.replace("...", "").partition(" > ")[0]
        words = [w for w in shlex.split(typed)[1:] if not w.startswith("<")]
        with contextlib.suppress(MissingArgumentError):  # a command may be named without its arguments
            app.parse_args(words, exit_on_error=False, print_error=False)


def test_there_is_something_to_check() -> None:
    texts = [p.read_text("utf-8") for p in PAGES]
    assert sum(t.count("\n$ chipwise ") for t in texts) > 30
    assert sum(len(inline_commands(t)) for t in texts) > 30


def blocks(language: str) -> list[tuple[str, str]]:
    pattern = re.compile(r"^```(\w*)\n(.*?)^```$", re.S | re.M)
    found = [(name(p), *block) for p in PAGES for block in pattern.findall(p.read_text("utf-8"))]
    return [(page, code) for page, kind, code in found if kind == language]


@pytest.mark.parametrize(("page", "code"), blocks("python"))
def test_python_runs(page: str, code: str) -> None:
    python(code)


def test_plain_commands_of_the_readme_run() -> None:
    commands = [
        line
        for page, code in blocks("")
        for line in code.splitlines()
        if page == "README.md" and line.startswith("chipwise ")
    ]
    assert len(commands) >= 3
    for command in commands:
        assert run(command).code == 0, command


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "SKILL.md"])
def test_links_beside_the_site_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text)]
    assert [link for link in links if "://" not in link and link and not (ROOT / link).exists()] == []
