"""Four renderings of one table: aligned text, strict JSON, CSV that reads back, Markdown."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import dataclass
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.report.records import Figure
from chipwise.report.table import Column, Format, Table, render, to_json

TABLE = Table(
    ("name", "value"),
    [("a", "1"), ("b|c", "22"), ("x, y", "[bold]3[/bold] :smile:")],
    ("head",),
    ("foot",),
    frozenset(("value",)),
)


@dataclass(frozen=True)
class Record:
    name: str
    numbers: tuple[float, ...]
    by_kind: dict[str, float]
    missing: float | None = None


def shown(form: str, *tables: Table, record: object = None) -> str:
    out = io.StringIO()
    render(tables or (TABLE,), record, form, out)  # type: ignore[arg-type]
    return out.getvalue()


def test_text_is_aligned_and_takes_no_markup() -> None:
    lines = shown("table").splitlines()
    assert lines[0] == "head"
    assert lines[-1].rstrip() == "foot"
    assert "[bold]3[/bold] :smile:" in shown("table")
    right = [line.rstrip() for line in lines if line.strip().startswith(("a ", "b|c "))]
    assert len({len(line) for line in right}) == 1


def test_text_in_a_pipe_is_whole_and_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    wide = Table(("a", "b"), [("x" * 150, "y" * 150)], ("h" * 900, "w " * 200))
    text = shown("table", wide)
    for word in ("x" * 150, "y" * 150, "h" * 900):
        assert word in text
    assert all(len(line) <= 100 for line in text.splitlines() if line.startswith(("w", "  w")))
    assert "\x1b" not in text


@given(st.lists(st.tuples(st.text(max_size=20), st.text(max_size=20)), min_size=1, max_size=4))
def test_csv_reads_back(rows: list[tuple[str, str]]) -> None:
    text = shown("csv", Table(("a", "b"), rows))
    read = list(csv.reader(io.StringIO(text, newline="")))[1:]
    written = [[cell.replace("\r\n", "\n").replace("\r", "\n") for cell in row] for row in rows]
    for got, told in zip(read, written, strict=True):
        assert all(cell in (text, f"'{text}") for cell, text in zip(got, told, strict=True))


def test_no_cell_of_csv_is_a_formula_and_numbers_stay_numbers() -> None:
    cells = ("=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-A1", "\t=1", "-1.5", "+2 %", "-", "1e-3")
    text = shown("csv", Table(("a",), [(c,) for c in cells]))
    read = [row[0] for row in list(csv.reader(io.StringIO(text, newline="")))[1:]]
    assert read == [*(f"'{c}" for c in cells[:5]), *cells[5:]]


def test_csv_leaves_head_and_foot_out_and_parts_tables_by_a_blank_line() -> None:
    text = shown("csv", TABLE, TABLE)
    assert "head" not in text
    assert "foot" not in text
    first, second = text.split("\n\n")
    assert first == second.rstrip("\n")


@dataclass(frozen=True)
class Priced:
    name: str
    time_s: Figure
    price: dict[str, float] | None
    tags: tuple[str, ...] = ()


def test_csv_holds_every_digit_of_the_records_behind_the_rows() -> None:
    third = Figure(1 / 3, 0.1, math.inf, "modelled", True)
    records = [Priced("a", third, None, ("x", "y")), Priced("b", third, {"low": 2.5, "high": 1e-9})]
    text = shown("csv", Table(("name", "time"), [("a", "0.3 s"), ("b", "0.3 s")], records=records))
    first, second = csv.DictReader(io.StringIO(text))
    assert list(first) == [
        "name",
        "time_s.mid",
        "time_s.low",
        "time_s.high",
        "time_s.basis",
        "time_s.provisional",
        "price.low",
        "price.high",
        "tags",
    ]
    assert float(first["time_s.mid"]) == 1 / 3
    assert (first["time_s.high"], first["price.low"], first["tags"]) == ("", "", "x; y")
    assert (second["price.low"], float(second["price.high"]), second["tags"]) == ("2.5", 1e-9, "")
    assert second["time_s.provisional"] == "true"


def test_csv_numbers_the_records_of_a_list() -> None:
    levels = [{"name": "L2", "bytes": 2.0}, {"name": "HBM", "bytes": 1.0}]
    text = shown(
        "csv",
        Table(("chip",), [("a",), ("b",)], records=[{"chip": "a", "levels": levels}, {"chip": "b", "levels": []}]),
    )
    first, second = csv.DictReader(io.StringIO(text))
    assert list(first) == ["chip", "levels.0.name", "levels.0.bytes", "levels.1.name", "levels.1.bytes"]
    assert (first["levels.1.name"], float(first["levels.1.bytes"])) == ("HBM", 1.0)
    assert set(second.values()) == {"b", ""}


RATE = Column("rate", "time_s.mid", lambda s: f"{1 / s:.0f}/s", right=True, spare=1)
NAMED = (Column("name", "name"), RATE, Column("", "tags", short="tags"), Column("note", lambda p: None, prose=True))


def test_a_table_follows_from_columns_that_are_declared_once() -> None:
    records = [Priced("a", Figure(0.25, 0.2, 0.3, "modelled", False), None)]
    table = Table.of(records, NAMED, ("head",), ("foot",))
    assert table.columns == ("name", "rate", "note")
    assert table.rows == [("a", "4/s", "-")]
    assert (table.right, table.spare, table.prose) == ({"rate"}, ("rate",), {"note"})
    assert float(next(csv.DictReader(io.StringIO(table.csv())))["time_s.mid"]) == 0.25
    assert "| name | rate | note |" in table.markdown()


def test_html_takes_text_from_data_as_text() -> None:
    table = Table(("<b>",), [("<script>",), ("b",)], foot=("a & b",))
    html = table.html("what", {"b": "/b?x=1&y=2"}, "sheet")
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert '<a href="/b?x=1&amp;y=2">b</a>' in html
    assert '<table class="sheet">' in html
    assert "<li>a &amp; b</li>" in html


def test_markdown_escapes_bars() -> None:
    lines = shown("md").splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert table[1] == "| --- | ---: |"
    assert "| b\\|c | 22 |" in table
    assert lines[0] == "head"
    assert lines[-1] == "- foot"


def test_json_is_strict() -> None:
    def refuse(word: str) -> None:
        raise AssertionError(word)

    record = Record("é", (1.0, math.inf, -math.inf, math.nan), {"a": 0.1})
    back = json.loads(shown("json", record=record), parse_constant=refuse)
    assert back == {"name": "é", "numbers": [1.0, None, None, None], "by_kind": {"a": 0.1}, "missing": None}


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_json_keeps_every_digit(value: float) -> None:
    assert json.loads(to_json(Record("", (value,), {})))["numbers"] == [value]


EMPTY = '{\n  "schema_version": "0.1",\n  "items": []\n}'


@pytest.mark.parametrize("form", get_args(Format))
def test_an_empty_table_is_rendered(form: str) -> None:
    assert shown(form, Table((), ()), record=()).strip() in ("", EMPTY)


def test_a_column_that_says_the_same_of_every_row_stands_below() -> None:
    rows = [("h100", "bf16", "-", "1"), ("l40s", "bf16", "-", "2"), ("a10", "bf16", "-", "3")]
    lean = Table(("plan", "precision", "offload", "$"), rows, foot=("note",)).lean()
    assert lean.columns == ("plan", "$")
    assert lean.rows[0] == ("h100", "1")
    assert lean.foot == ("the same in every row: precision bf16", "note"), "dashes say nothing"
    two = Table(("plan", "precision"), [row[:2] for row in rows[:2]])
    assert two.lean() is two
