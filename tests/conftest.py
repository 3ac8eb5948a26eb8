"""What the tests share: repeatable property tests, the command line in-process, the published tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

from chipwise.cli import main
from command_line import Ran, Run
from truth import published

settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=50)
settings.load_profile("repeatable")

READERS = {"published", "rows_of", "each_row", "each_file"}
"""What a test file takes from `truth`."""


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
    return published()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`-m tables`: the tests that use the published tables, and their neighbours in files that name them."""
    for item in items:
        if "truth" in item.fixturenames or READERS & vars(item.module).keys():
            item.add_marker("tables")
