"""The site builds strictly, its links lead somewhere, and it fetches nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FETCHED = re.compile(r"<(?:script|img|iframe|source)[^>]*\ssrc=\"([^\"]+)\"|<link[^>]*\shref=\"([^\"]+)\"")
ELSEWHERE = re.compile(r"^(?:https?:)?//")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site. The build fails for broken links and anchors, and for pages that no menu holds."""
    pytest.importorskip("material", reason="needs mkdocs-material, of the group dev")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_built(site: Path) -> None:
    written = {p.relative_to(ROOT / "docs").with_suffix(".html") for p in (ROOT / "docs").rglob("*.md")}
    built = {p.relative_to(site) for p in site.rglob("*.html")}
    assert written <= built
    assert not list(site.rglob("*.py"))


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    found = {
        f"{page.relative_to(site)}: {link}"
        for page in site.rglob("*.html")
        for match in FETCHED.findall(page.read_text("utf-8"))
        for link in match
        if ELSEWHERE.match(link)
    }
    assert found == set()
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(?:https?:)?//|@import", sheet.read_text("utf-8")), sheet


def test_what_a_page_loads_is_there(site: Path) -> None:
    missing = [
        f"{page.relative_to(site)}: {link}"
        for page in site.rglob("*.html")
        if page.name != "404.html"
        for match in FETCHED.findall(page.read_text("utf-8"))
        for link in match
        if link and not (page.parent / link.partition("?")[0].partition("#")[0]).exists()
    ]
    assert missing == []
