"""Transcripts: commands that are run in this process, on a fixed day, and what a terminal would show."""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import os
import shlex
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from chipwise.catalog.snapshot import Snapshot, use
from chipwise.cli import main

__all__ = ["DAY", "Ran", "on_the_day", "python", "run", "transcript"]

DAY = dt.date(2026, 11, 21)
"""The day of every question in the documentation: prices age against it."""

SNAPSHOT = Snapshot(day=DAY)
"""One for all, so that tables are read once."""

PROMPT = "$ "
WIDTH = 90

FILES = {"--save", "--out", "replay", "diff", "launch"}
"""Words of commands that read or write files, which are run every time."""


@dataclass(frozen=True)
class Ran:
    """What a command printed, stdout before stderr, and its exit code."""

    text: str
    code: int


@contextlib.contextmanager
def on_the_day() -> Iterator[None]:
    """Questions are asked on `DAY`, in a folder of their own, at `WIDTH` columns, without the
    reader's own evidence."""
    before, kept = Path.cwd(), {name: os.environ.get(name) for name in ("COLUMNS", "CHIPWISE_DATA_DIR")}
    with tempfile.TemporaryDirectory() as folder, use(SNAPSHOT):
        os.environ |= {"COLUMNS": str(WIDTH), "CHIPWISE_DATA_DIR": str(Path(folder, "own"))}
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)
            for name, value in kept.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value


def run(command: str) -> Ran:
    """A command as a shell would run it: `chipwise ...`, perhaps through `head -n N`, `cut -c1-N`, `grep WORD`.

    A comment behind it is for the reader. Raises `ValueError` for anything else.
    """
    words = shlex.split(command, comments=True)
    parts: list[list[str]] = [[]]
    for word in words:
        if word == "|":
            parts.append([])
        else:
            parts[-1].append(word)
    first, *filters = parts
    if first[:1] != ["chipwise"]:
        raise ValueError(f"not a chipwise command: {command}")
    ask = _printed.__wrapped__ if FILES.intersection(first) else _printed
    printed, complaints, code = ask(*first[1:])
    lines = list(printed)
    for each in filters:
        lines = _filtered(lines, each)
    return Ran("\n".join(_calm([*lines, *complaints])), code)


def transcript(block: str) -> str:
    """A block of commands with the output of each brought up to date. Raises `ValueError` for a command that
    fails otherwise than its comment says (`# exits with 3`), or whose answer is cut before it says anything."""
    shown = []
    for line in block.splitlines():
        if not line.startswith(PROMPT):
            continue
        ran = run(line.removeprefix(PROMPT))
        asked = line.rpartition("# exits with ")[2] if "# exits with " in line else "0"
        if str(ran.code) != asked.strip():
            raise ValueError(f"{line}\nexits with {ran.code}: {ran.text[-400:]}")
        if ran.text.rpartition("\n")[2].strip(" ─") == "" and ran.text:
            raise ValueError(f"{line}\nis cut before the first row")
        shown += [line, ran.text] if ran.text else [line]
    return "\n".join(shown)


def python(code: str) -> str:
    """What a piece of Python prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "<docs>", "exec"), {"__name__": "docs"})
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


@cache
def _printed(*arguments: str) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    """Lines on stdout, lines on stderr, exit code; the same question is asked once."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(list(arguments))
        except SystemExit as exit_:
            code = int(exit_.code or 0)
    lines, complaints = (tuple(x.rstrip() for x in s.getvalue().splitlines()) for s in (out, err))
    return lines, complaints, code


def _filtered(lines: list[str], words: list[str]) -> list[str]:
    match words:
        case ["head", "-n", count]:
            return lines[: int(count)]
        case ["cut", span] if span.startswith("-c1-"):
            return [line[: int(span.removeprefix("-c1-"))].rstrip() for line in lines]
        case ["grep", word]:
            return [line for line in lines if word in line]
    raise ValueError(f"cannot filter with {shlex.join(words)}")


def _calm(lines: list[str]) -> Iterator[str]:
    """Without blank lines at the ends, and no two in a row."""
    text = [line for i, line in enumerate(lines) if line or (i and lines[i - 1])]
    while text and not text[0]:
        text.pop(0)
    while text and not text[-1]:
        text.pop()
    yield from text
