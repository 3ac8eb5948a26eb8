"""The published tables that tests compare with. They may not be passed on, so a clone has none: a test that asks for
them is skipped there, and says so.

This is the one place that knows where they lie: the folder that CHIPWISE_TRUTH names, else ../shared/truth beside the
checkout. A folder that does not exist hides them.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import pytest

VARIABLE = "CHIPWISE_TRUTH"
FOLDER = Path(os.environ.get(VARIABLE) or Path(__file__).resolve().parents[2] / "shared" / "truth")
AWAY = f"needs the published tables: ../shared/truth beside the checkout, or the folder in {VARIABLE}"
NONE = [pytest.param(None, marks=pytest.mark.skip(reason=AWAY), id="no-tables")]
"""In place of the rows of a table, where it is away."""


def published(name: str = "") -> Path:
    """A table, or the folder of all: for use inside a test or a fixture."""
    path = FOLDER / name
    if not path.exists():
        pytest.skip(AWAY)
    return path


def rows_of(name: str) -> list[dict[str, str]]:
    """The rows of a table: for use inside a test or a fixture."""
    return _rows(published(name))


def each_row(name: str) -> list[Any]:
    """The rows of a table as parameters of a test."""
    return _rows(FOLDER / name) if (FOLDER / name).is_file() else NONE


def each_file(folder: str, pattern: str) -> list[Any]:
    """The files of a folder as parameters of a test."""
    return sorted((FOLDER / folder).glob(pattern)) or NONE


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
