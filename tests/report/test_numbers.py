"""Numbers that people read have no exponent, and each column holds one kind of figure."""

from __future__ import annotations

import re

import pytest

from chipwise.api.requests.catalogue import ChipsRequest
from chipwise.catalog.chips import get_chip, load_chips
from chipwise.catalog.system import load_systems
from chipwise.report.catalogue import chip_view, chips_view, compare_view, system_view
from chipwise.report.charts.spec import said
from chipwise.report.figures import span
from chipwise.report.table import Table

EXPONENT = re.compile(r"(?<![\w-])[\d.]+e[+-]?\d")


def cells(table: Table) -> list[str]:
    return [cell for row in table.rows for cell in row]


def test_no_exponents() -> None:
    chips = tuple(load_chips().values())
    tables = [chips_view(chips), compare_view(chips), *map(chip_view, chips)]
    tables += [system_view(s) for s in load_systems().values()]
    assert [cell for table in tables for cell in cells(table) if EXPONENT.search(cell)] == []
    figures = [f.value for c in ChipsRequest(chips="wse3-cs3").run().chips for f in c.figures]
    assert "21000000" in figures


@pytest.mark.parametrize(
    ("chip", "fp8", "int8"),
    [("tpu-v5p", "459", "918"), ("tpu-v5e", "-", "394"), ("b300-sxm", "4,500", "153.5"), ("mi455x", "20,130", "-")],
)
def test_floating_point_and_integers_are_apart(chip: str, fp8: str, int8: str) -> None:
    table = chips_view((get_chip(chip),))
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert (row["fp8"], row["int8 TOPS"]) == (fp8, int8)


def test_a_capacity_in_binary_units_is_shown_in_decimal_ones_too() -> None:
    rows = {row[0]: row[1] for row in chip_view(get_chip("b300-sxm")).rows}
    assert (rows["memory"], rows["usable_memory_GB"]) == ("288 GiB (309 GB)", "288.4")


def test_spans_for_agents_and_words_of_charts() -> None:
    assert span(589_123.0, 2_051_000.0, 3) == "589,000-2,050,000"
    assert span(11.04, 11.01, 3) == "11"
    assert said(3.4567e7) == "34,600,000"
