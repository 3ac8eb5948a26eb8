"""What the tests share: repeatable property tests, the command line in-process, the published tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

from chipwise.cli import main
from command_line import Ran, Run

settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=50)
settings.load_profile("repeatable")

TRUTH = Path(__file__).resolve().parents[2] / "shared" / "truth"


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
