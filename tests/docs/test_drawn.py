"""Pictures of the pages: each is there, is used, says what it shows, and is of the chart that is declared."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import pytest
from docs.generate.console import on_the_day
from docs.generate.drawings import DRAWN, SHOTS, Drawn
from docs.generate.drawn import FOLDER, digest, digests, figure, file_digest, specification
from docs.generate.elsewhere import on_page_content
from docs.generate.pages import DOCS
from docs.generate.tables import _plain

GROUNDS = ("", "-dark")
SLOW = {"ways-to-pay", "queue", "sweep-map", "rooms", "plan-front", "plan-cost", "plan-tpot"}
"""Pictures of several answers or of long ones, which `make whole` asks again."""
ASKED = [d for d in DRAWN if os.environ.get("CHIPWISE_WHOLE") or d.name not in SLOW]
MOST, MOST_SHOT = 3_000_000, 150_000


@pytest.fixture(scope="module", autouse=True)
def _the_day() -> Iterator[None]:
    with on_the_day():
        yield


def test_there_are_pictures_enough_and_each_has_a_name() -> None:
    names = [d.name for d in (*DRAWN, *SHOTS)]
    assert len(names) >= 20
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("drawn", [*DRAWN, *SHOTS], ids=lambda d: d.name)
def test_a_picture_is_there_for_both_grounds_and_stands_on_its_page(drawn: Drawn) -> None:
    assert all((FOLDER / f"{drawn.name}{ground}.{drawn.kind}").exists() for ground in GROUNDS)
    assert figure(drawn.name) in (DOCS / drawn.page).read_text("utf-8")
    assert len(drawn.alt.split()) >= 8
    assert drawn.caption.endswith(".")


def test_no_file_is_left_over_and_all_are_small() -> None:
    wanted = {f"{d.name}{ground}.{d.kind}" for d in (*DRAWN, *SHOTS) for ground in GROUNDS}
    found = {p.name: p.stat().st_size for p in FOLDER.iterdir() if p.suffix != ".json"}
    assert found.keys() == wanted
    assert sum(found.values()) < MOST
    assert all(size < MOST_SHOT for name, size in found.items() if name.endswith("webp"))


def test_files_are_those_that_were_drawn() -> None:
    known = digests()
    assert known.keys() == {d.name for d in DRAWN}
    for each in known.values():
        for name, said in each.items():
            assert name == "chart" or file_digest(FOLDER / name) == said, name


@pytest.mark.parametrize("drawn", ASKED, ids=lambda d: d.name)
def test_the_question_still_gives_the_chart(drawn: Drawn) -> None:
    assert digest(specification(drawn)) == digests()[drawn.name]["chart"], "python -m docs.generate pictures"


def test_every_image_of_a_page_says_what_it_shows() -> None:
    for path in DOCS.rglob("*.md"):
        for alt in re.findall(r"!\[([^\]]*)\]\(", path.read_text("utf-8")):
            assert alt.strip(), path


def test_links_that_lead_elsewhere_open_elsewhere() -> None:
    here, there = '<a href="choose.html">', '<a class="x" href="https://example.org">'
    assert on_page_content(here) == here
    assert 'target="_blank" rel="noopener noreferrer"' in on_page_content(there)


def test_addresses_of_sources_are_links() -> None:
    said = _plain("[3] https://github.com/ai-dynamo/aiconfigurator@095f58a (2026-08-21) a_b")
    assert "](https://github.com/ai-dynamo/aiconfigurator/tree/095f58a) (2026-08-21) a\\_b" in said
    assert _plain("[1] https://www.tomshardware.com/...cut").count("](") == 0
