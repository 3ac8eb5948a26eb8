"""Questions as command lines: what a user types, answered in this process on a day that stays the same."""

from __future__ import annotations

import io
import json
import os
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import pytest

from chipwise.catalog.snapshot import Snapshot, use
from chipwise.cli import main

from .net import Answer

FILES = Path(__file__).parent / "files"
"""What questions name by a path: modules of the user's own, results of runs."""
TODAY = Snapshot(day=date(2026, 11, 1))
"""Prices grow old: all answers are of one day."""


def commands(
    lines: Callable[[], Iterable[str]], pick: Callable[[Any], Answer]
) -> Callable[[], Iterator[tuple[str, Answer]]]:
    """What asks command lines, of whose JSON `pick` takes what shall stay."""

    def ask() -> Iterator[tuple[str, Answer]]:
        for line in lines():
            found = json.loads(printed(f"{line} --format json"))
            yield line, pick(found) if "error" not in found else refused(found["error"])

    return ask


def refused(error: Any) -> Answer:
    """Why there is no answer: the kind and the words, candidates by what they fell to, what can be had."""
    found = {"refused": error["kind"], **{name: error[name] for name in ("what", "hint", "reasons", "reachable")}}
    return {name: value for name, value in found.items() if value}


def printed(line: str, own: str | None = None) -> str:
    """What a command prints. It sees the measurements in the folder `own`, by default none."""
    code, out, complaints = ran(line, own)
    assert code == 0 or out, f"chipwise {line}: {complaints}"
    return out


def ran(line: str, own: str | None = None) -> tuple[int, str, str]:
    """A command's exit code, what it prints and what it complains of, in the folder of the questions' files."""
    with (
        TemporaryDirectory() as nothing,
        mock.patch.dict(os.environ, CHIPWISE_DATA_DIR=own or nothing),
        chdir(FILES),
        use(TODAY),
        redirect_stdout(io.StringIO()) as out,
        redirect_stderr(io.StringIO()) as complaints,
        pytest.raises(SystemExit) as end,
    ):
        main(shlex.split(line))
    return int(end.value.code or 0), out.getvalue(), complaints.getvalue()


def figure(given: Any) -> Answer | None:
    """A figure with its interval and basis."""
    if given is None:
        return None
    basis = given["basis"] + (", provisional" if given["provisional"] else "")
    return {"mid": given["mid"], "low": given["low"], "high": given["high"], "basis": basis}
