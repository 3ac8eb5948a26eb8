"""Plots: points stand where their values are."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from docs.generate.picture import Series, plot


def circles(svg: str) -> list[tuple[float, float]]:
    found = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', svg)
    return [(float(x), float(y)) for x, y in found]


def test_equal_ratios_are_equal_distances() -> None:
    (a, b, c) = circles(plot([Series("s", [(1, 3), (10, 30), (100, 300)])], "x", "y", "t"))
    assert b[0] - a[0] == pytest.approx(c[0] - b[0], abs=0.2)
    assert a[1] - b[1] == pytest.approx(b[1] - c[1], abs=0.2)
    assert b[0] > a[0]
    assert b[1] < a[1]


def test_what_has_no_logarithm_is_left_out() -> None:
    assert len(circles(plot([Series("s", [(0, 1), (1, 1), (2, 5)])], "x", "y", "t"))) == 2


def test_it_is_whole_xml_and_says_what_it_shows() -> None:
    svg = plot([Series("a & b", [(1, 1), (2, 2)], ["<first>", ""])], "x", "y", "what it shows")
    root = ElementTree.fromstring(svg)
    assert root.attrib["aria-label"] == "what it shows"
    assert {"a & b", "<first>", "x", "y"} <= {t.text for t in root.iter("text")}
