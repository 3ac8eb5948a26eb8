"""What the tests share: repeatable property tests, the command line in-process, the published tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from chipwise.cli import main

settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=50)
settings.load_profile("repeatable")

TRUTH = Path(__file__).resolve().parents[2] / "shared" / "truth"


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        def refuse(word: str) -> None:
            raise AssertionError(f"{word} is no JSON")

        return json.loads(self.out, parse_constant=refuse)


Run = Callable[..., Ran]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """The command line without a process: `run("plan", "Llama-3.1-8B")`. A crash passes through."""

    def call(*arguments: str) -> Ran:
        capsys.readouterr()
        with pytest.raises(SystemExit) as exit_:
            main(arguments)
        out, err = capsys.readouterr()
        return Ran(int(exit_.value.code or 0), out, err)

    return call


@pytest.fixture(scope="session")
def truth() -> Path:
    """The folder of published measurements."""
    if not TRUTH.is_dir():
        pytest.skip("needs the published tables in ../shared/truth, beside the checkout")
    return TRUTH
