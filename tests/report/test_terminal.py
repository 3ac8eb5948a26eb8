"""Tables as text: no word is broken, no line is longer than the terminal or 100 columns, what is left out is named."""

from __future__ import annotations

import shlex
import subprocess
import sys
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.api.requests.planning import EstimateRequest, PlanRequest
from chipwise.catalog.chips import load_chips
from chipwise.catalog.offer import load_offers
from chipwise.report.catalogue import chip_view, chips_view, compare_view, offers_view
from chipwise.report.glossary import GLOSSARY
from chipwise.report.plans import breakdown_view, plan_view
from chipwise.report.table import Table
from chipwise.report.terminal import width_of

WIDTHS = (60, 80, 100)


def words(text: str) -> set[str]:
    return {word for word in text.split() if word.strip("\u2500\\")}


def views() -> dict[str, tuple[Table, ...]]:
    plan = PlanRequest(model="meta-llama/Llama-3.1-70B", rate="10/s", ttft="1s", tpot="40ms").run()
    one = EstimateRequest(model="meta-llama/Llama-3.1-8B", chip="h100-sxm5-80gb").run()
    chips = tuple(load_chips().values())
    command = "chipwise explain meta-llama/Llama-3.1-70B --chip mi300x --tp 4 --concurrency 21 --runtime vllm"
    return {
        "plan": (plan_view(plan, command),),
        "estimate": (plan_view(one, command), *breakdown_view(one.plans[0])),
        "chips": (chips_view(chips),),
        "chip": (chip_view(chips[0]),),
        "compare": (compare_view(chips[:4]),),
        "offers": (offers_view(tuple(load_offers()), date(2026, 11, 21)),),
        "glossary": (Table(("word", "means"), list(GLOSSARY.items())),),
    }


@pytest.fixture(scope="module")
def tables() -> dict[str, tuple[Table, ...]]:
    return views()


def cells(table: Table, names: set[str]) -> set[str]:
    """Words of the cells of some columns."""
    kept = [i for i, name in enumerate(table.columns) if name in names]
    return {word for row in table.rows for i in kept for word in row[i].split()}


def left_out(table: Table, width: int) -> set[str]:
    """Columns that a text says are not shown."""
    said = " ".join(table.text(width).split()).partition("not shown: ")[2].partition(" (--format")[0]
    return {name for name in table.columns if f", {name}," in f", {said},"}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["plan", "estimate", "chips", "chip", "compare", "offers", "glossary"])
def test_nothing_is_broken_and_what_is_left_out_is_named(
    name: str, width: int, tables: dict[str, tuple[Table, ...]]
) -> None:
    for table in tables[name]:
        text = table.text(width)
        out = left_out(table, width)
        assert out <= set(table.spare)
        assert cells(table, set(table.columns) - out) <= words(text)
        for line in (*table.head, *table.foot):
            assert words(line) <= words(text)
        longest = max(map(len, words(text)))
        assert max(map(len, text.splitlines())) <= max(width, longest + 6)


def test_the_more_room_the_more_columns(tables: dict[str, tuple[Table, ...]]) -> None:
    (plan,) = tables["plan"]
    narrow, wide, whole = (left_out(plan, width) for width in (80, 100, 300))
    assert len(wide) < len(narrow)
    assert whole == set()
    assert not wide & {"#", "plan", "$/h", "TTFT, ms", "TPOT, ms", "basis"}


def test_what_matters_less_is_left_out_first() -> None:
    names = ("a", "important", "wide", "unimportant")
    table = Table(names, [("x", "yes", "w" * 30, "no")], spare=("unimportant", "wide", "important"))
    assert left_out(table, 44) == {"unimportant"}
    assert left_out(table, 30) == {"wide"}  # what fits in its place is shown
    assert left_out(table, 12) == {"wide", "unimportant"}


def test_prose_makes_room_before_a_row_becomes_a_block() -> None:
    names = ("name", "number", "text")
    rows = [("a" * 20, "1" * 20, "words of a text " * 4)]
    table = Table(names, rows, prose=frozenset(("text",)))
    assert table.text(70).splitlines()[0].split() == ["name", "number", "text"]
    assert table.text(40).startswith("a" * 20 + "\n")


def test_the_width_is_that_of_the_terminal_and_100_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    for columns, width in (("80", 80), ("100", 100), ("200", 200)):
        monkeypatch.setenv("COLUMNS", columns)
        assert width_of() == width
    monkeypatch.delenv("COLUMNS")
    piped = subprocess.run(
        [sys.executable, "-c", "from chipwise.report.terminal import width_of; print(width_of())"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert piped.stdout == "100\n"


def test_headings_are_bold_on_a_terminal_alone() -> None:
    table = Table(("a",), [("b",)])
    assert "\x1b[1ma\x1b[0m" in table.text(80, bold=True)
    assert "\x1b" not in table.text(80)


def test_a_command_that_is_broken_is_one_command(tables: dict[str, tuple[Table, ...]]) -> None:
    text = tables["plan"][0].text(80)
    command = text[text.index("next: ") + 6 :]
    assert "\\\n" in command
    (whole,) = (line[6:] for line in tables["plan"][0].foot if line.startswith("next: "))
    assert shlex.split(command.replace("\\\n", "")) == shlex.split(whole)


def test_the_shape_with_fewer_lines() -> None:
    prose = Table(("word", "means"), [("a", "many words " * 9)] * 3)
    assert "word" in prose.text(60).splitlines()[0]  # a table still: cells are broken at spaces
    many = Table(tuple(f"column{i}" for i in range(12)), [tuple(f"value{i}" for i in range(12))])
    assert "column3 value3" in many.text(80)


def test_values_stand_below_each_other() -> None:
    names = ("#", "plan", *(f"figure{i}" for i in range(9)))
    rows = [("1", "a", *["1"] * 9), ("2", "b", *["1,000,000"] * 8, "")]
    lines = Table(names, rows).text(80).splitlines()
    first, second = (next(line for line in lines if f"figure1 {v}" in line) for v in ("1 ", "1,000,000"))
    assert first.index("figure1") == second.index("figure1")


CELL = st.lists(st.text(st.characters(categories=("L", "N")), min_size=1, max_size=9), max_size=4).map(" ".join)


@given(
    rows=st.integers(1, 6).flatmap(lambda n: st.lists(st.tuples(*[CELL] * n), min_size=1, max_size=4)),
    width=st.integers(40, 120),
)
def test_any_table_keeps_its_words(rows: list[tuple[str, ...]], width: int) -> None:
    table = Table(tuple(f"c{i}" for i in range(len(rows[0]))), rows)
    assert {word for row in rows for cell in row for word in cell.split()} <= words(table.text(width))


def test_a_block_begins_with_what_tells_it_from_others() -> None:
    names = ("chip", "scaling", "chips", *(f"figure{i}" for i in range(9)))
    rows = [("h100", kind, count, *["1,000,000"] * 9) for kind in ("strong", "weak") for count in ("64", "128")]
    lines = Table(names, rows).text(80).splitlines()
    assert [line for line in lines if line.startswith("h100")] == [
        f"h100   {kind}   {count}" for kind in ("strong", "weak") for count in ("64", "128")
    ]
