"""Tables on terminals: no word and no number is broken, no line is longer than the terminal."""

from __future__ import annotations

import io
import re
import shlex
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
from chipwise.report.table import Table, render

WIDTHS = (80, 100, 140, 200)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    return monkeypatch


def shown(tables: tuple[Table, ...], width: int | None, patch: pytest.MonkeyPatch) -> str:
    out: io.StringIO = io.StringIO() if width is None else Terminal()
    if width is not None:
        patch.setenv("COLUMNS", str(width))
    render(tables, None, "table", out)
    return re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())


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


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["plan", "estimate", "chips", "chip", "compare", "offers", "glossary"])
def test_nothing_is_broken_or_lost(
    name: str, width: int, tables: dict[str, tuple[Table, ...]], wide: pytest.MonkeyPatch
) -> None:
    piped, narrow = (shown(tables[name], w, wide) for w in (None, width))
    assert words(narrow) <= words(piped)
    # a block says first what it is about, without the name of that column
    assert words(piped) - words(narrow) <= {name for table in tables[name] for name in table.columns[:3]}
    longest = max(map(len, words(piped)))
    assert max(len(line.rstrip()) for line in narrow.splitlines()) <= max(width, longest + 6)


def test_a_plan_takes_a_few_lines(tables: dict[str, tuple[Table, ...]], wide: pytest.MonkeyPatch) -> None:
    text = shown(tables["plan"], 80, wide)
    block = text[text.index("\n1   ") : text.index("\n2   ")]
    assert len(block.splitlines()) <= 6
    assert re.search(r"TTFT \d+ \[[\d,.]+-[\d,.]+\] ms", block)


def test_what_a_pipe_gets_is_what_a_wide_terminal_shows(
    tables: dict[str, tuple[Table, ...]], wide: pytest.MonkeyPatch
) -> None:
    assert shown(tables["chips"], None, wide) == shown(tables["chips"], 400, wide)


def test_a_command_that_is_broken_is_one_command(
    tables: dict[str, tuple[Table, ...]], wide: pytest.MonkeyPatch
) -> None:
    text = shown(tables["plan"], 80, wide)
    command = text[text.index("next: ") + 6 :]
    assert "\\\n" in command
    (whole,) = (line[6:] for line in tables["plan"][0].foot if line.startswith("next: "))
    assert shlex.split(command.replace("\\\n", "")) == shlex.split(whole)


def test_the_shape_with_fewer_lines(wide: pytest.MonkeyPatch) -> None:
    prose = Table(("word", "means"), [("a", "so many words " * 9)] * 3)
    text = shown((prose,), 60, wide)
    assert "word" in text.splitlines()[1]  # a table still: cells are broken at spaces
    many = Table(tuple(f"column{i}" for i in range(12)), [tuple(f"value{i}" for i in range(12))])
    assert "column3 value3" in shown((many,), 80, wide)


def test_values_stand_below_each_other(wide: pytest.MonkeyPatch) -> None:
    names = ("#", "plan", *(f"figure{i}" for i in range(9)))
    rows = [("1", "a", *["1"] * 9), ("2", "b", *["1,000,000"] * 8, "")]
    lines = shown((Table(names, rows),), 80, wide).splitlines()
    first, second = (next(line for line in lines if f"figure1 {v}" in line) for v in ("1 ", "1,000,000"))
    assert first.index("figure1") == second.index("figure1")


CELL = st.lists(st.text(st.characters(categories=("L", "N")), min_size=1, max_size=9), max_size=4).map(
    " ".join
)


@given(
    rows=st.integers(1, 6).flatmap(lambda n: st.lists(st.tuples(*[CELL] * n), min_size=1, max_size=4)),
    width=st.integers(40, 120),
)
def test_any_table_keeps_its_words(rows: list[tuple[str, ...]], width: int) -> None:
    table = Table(tuple(f"c{i}" for i in range(len(rows[0]))), rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TERM", "xterm")
        narrow = shown((table,), width, patch)
    assert {word for row in rows for cell in row for word in cell.split()} <= words(narrow)


def test_a_block_begins_with_what_tells_it_from_others(wide: pytest.MonkeyPatch) -> None:
    names = ("chip", "scaling", "chips", *(f"figure{i}" for i in range(9)))
    rows = [
        ("h100", kind, count, *["1,000,000"] * 9) for kind in ("strong", "weak") for count in ("64", "128")
    ]
    lines = shown((Table(names, rows),), 80, wide).splitlines()
    assert [line for line in lines if line.startswith("h100")] == [
        f"h100   {kind}   {count}" for kind in ("strong", "weak") for count in ("64", "128")
    ]
