"""A round: answers are frozen before values are read, never made anew, and scored against what was asked."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from chipwise.api.suites.round import freeze, frozen_beside, registered, score
from chipwise.errors import UsageError
from command_line import Run

COLUMNS = (
    "id",
    "model",
    "chip",
    "chips",
    "quant",
    "runtime",
    "backend",
    "context",
    "metric",
    "value",
    "source",
    "note",
)
ROWS = (
    ("a", "meta-llama/Llama-3.1-8B", "rtx-4090", "1", "q4_k_m", "llama.cpp", "cuda", "512", "tg_tok_s"),
    ("b", "meta-llama/Llama-3.1-8B", "rtx-3090", "1", "q4_k_m", "llama.cpp", "cuda", "512", "tg_tok_s"),
    ("c", "meta-llama/Llama-3.1-8B", "no-such-chip", "1", "q4_k_m", "llama.cpp", "cuda", "512", "tg_tok_s"),
)
DAY, VERSION = "2026-11-24", "0.0.0"


def table(path: Path, values: tuple[str, str, str], context: str = "512") -> str:
    """The rows with these values."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row, value in zip(ROWS, values, strict=True):
            writer.writerow((*row[:7], context, row[8], value, "github someone/else", ""))
    return str(path)


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("round") / "rows.csv"
    rows = table(path, ("", "", ""))
    assert freeze(rows, frozen_beside(rows), DAY, VERSION) == 3
    return Path(frozen_beside(rows))


def test_answers_hold_the_day_the_version_and_a_reason_for_none(frozen: Path) -> None:
    lines = list(csv.DictReader(frozen.read_text("utf-8").splitlines()))
    assert [line["date"] for line in lines] == [DAY] * 3
    assert [line["version"] for line in lines] == [VERSION] * 3
    assert [bool(line["predicted"]) for line in lines] == [True, True, False]
    assert lines[2]["refused"]


def test_values_do_not_change_what_was_asked(frozen: Path, tmp_path: Path) -> None:
    said = [float(line["predicted"] or 1) for line in csv.DictReader(frozen.read_text("utf-8").splitlines())]
    rows = table(tmp_path / "rows.csv", (f"{1.05 * said[0]}", f"{0.5 * said[1]}", "3"))
    (found,) = score(rows, str(frozen)).tables["by family"]
    assert found.rows == 3
    assert found.answered == pytest.approx(2 / 3)
    assert found.median == pytest.approx((1 - 1 / 1.05 + 1.0) / 2, rel=1e-4)
    assert found.coverage == 0.5
    assert found.z > 1.0
    assert found.cells == 2
    lines = registered(score(rows, str(frozen)), str(frozen), 4).splitlines()
    assert lines[0].startswith("4,2026-11-24,")


def test_rows_that_ask_something_else_are_left_out(frozen: Path, tmp_path: Path) -> None:
    rows = table(tmp_path / "rows.csv", ("30", "30", "30"), context="1024")
    with pytest.raises(UsageError, match="none of its rows was answered"):
        score(rows, str(frozen))


def test_answers_are_never_frozen_twice(frozen: Path, tmp_path: Path) -> None:
    rows = table(tmp_path / "rows.csv", ("", "", ""))
    before = frozen.read_text("utf-8")
    with pytest.raises(UsageError, match="frozen already"):
        freeze(rows, str(frozen), DAY, VERSION)
    assert frozen.read_text("utf-8") == before


def test_without_values_the_next_step_is_said(frozen: Path, tmp_path: Path, run: Run) -> None:
    rows = table(tmp_path / "rows.csv", ("", "", ""))
    assert f"chipwise evidence round {rows}" in run("evidence", "round", rows, "--frozen", str(frozen)).refused(2)


def test_a_table_of_nothing_measured_names_the_columns(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2\n", "utf-8")
    assert "isl (published)" in run("evidence", "round", str(path)).refused(2)
