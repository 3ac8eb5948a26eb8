"""Notebooks run from top to bottom and show what they were published with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from docs.generate.console import on_the_day
from docs.generate.notebook import notebooks, refresh_notebook

BOOKS = notebooks()


@pytest.mark.parametrize("path", BOOKS, ids=lambda p: p.name)
def test_a_notebook_shows_what_it_runs_to(path: Path) -> None:
    pytest.importorskip("pandas")
    with on_the_day():
        stale = refresh_notebook(path, write=False)
    assert stale is None, f"make docs: {stale.what if stale else ''}"


@pytest.mark.parametrize("path", BOOKS, ids=lambda p: p.name)
def test_a_notebook_is_published_with_its_outputs(path: Path) -> None:
    book = json.loads(path.read_text("utf-8"))
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    cells = [c for c in book["cells"] if c["cell_type"] == "code"]
    assert len({c["id"] for c in book["cells"]}) == len(book["cells"])
    assert all(c["outputs"] for c in cells[1:])
    kinds = {kind for c in cells for o in c["outputs"] for kind in o.get("data", ())}
    assert {"text/html", "text/plain", "application/vnd.vegalite.v5+json"} <= kinds


def test_there_is_a_notebook() -> None:
    assert [p.name for p in BOOKS] == ["notebook.ipynb"]
