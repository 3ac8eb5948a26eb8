"""A clone with nothing beside it: without the published tables all tests are found, and those that want them skip."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from truth import AWAY, FOLDER, VARIABLE

ROOT = Path(__file__).resolve().parents[1]
LEAST = 80  # of tests that want a table; there are some more


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the tables are hidden: all tests show it")
def test_the_tests_stand_without_the_tables(tmp_path: Path) -> None:
    """The whole suite is collected, and every file that names a table is run."""
    inner = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    asked = [sys.executable, "-m", "pytest", "-m", "tables", "-n", "0", "-rs", "-p", "no:cacheprovider"]
    ran = subprocess.run(
        asked, cwd=ROOT, env=inner | {VARIABLE: str(tmp_path / "nothing")}, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]
    skipped = [int(line[1]) for line in re.finditer(r"^SKIPPED \[(\d+)\] .*" + re.escape(AWAY), ran.stdout, re.M)]
    assert sum(skipped) >= LEAST, ran.stdout[-4000:]


def test_one_place_knows_where_the_tables_lie() -> None:
    """A test that finds them by a path of its own would fail in a clone, or look where they are not."""
    path = re.compile(r"[\"']shared[\"'] */|shared/truth")
    files = [f for f in (ROOT / "tests").rglob("*.py") if f.name not in ("truth.py", Path(__file__).name)]
    assert [str(f.relative_to(ROOT)) for f in files if path.search(f.read_text("utf-8"))] == []
