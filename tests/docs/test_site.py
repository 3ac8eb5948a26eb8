"""The site builds strictly, its links lead somewhere, and it fetches nothing from elsewhere."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FETCHED = re.compile(r"<(?:script|img|iframe|source)[^>]*\ssrc=\"([^\"]+)\"|<link[^>]*\shref=\"([^\"]+)\"")
ELSEWHERE = re.compile(r"^(?:https?:)?//")
LOOKED_AT = (
    "404.html", "accuracy.html", "catalogue/index.html", "concepts/tpu.html", "how/dataflow.html", "how/time.html",
    "questions.html", "reference/index.html", "reference/launch.html", "training.html",
)  # fmt: skip
"""A page of each make: axe takes seconds for one."""


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


class Silent(SimpleHTTPRequestHandler):
    """Files, without a word."""

    def log_message(self, *_: Any) -> None:
        pass


def test_pages_can_be_used_by_all(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("playwright", reason="needs playwright, of the group dev")
    monkeypatch.syspath_prepend(ROOT / "tests" / "web")
    browsing = importlib.import_module("browsing")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    faults = {}
    with browsing.chromium() as browser:
        visit = browsing.Visit(browser, f"http://127.0.0.1:{server.server_port}")
        for page in LOOKED_AT:
            visit.page.goto(f"{visit.site}/{page}")
            visit.page.wait_for_selector("body[data-named]")
            visit.page.wait_for_timeout(100)
            faults[page] = visit.faults()
    server.shutdown()
    server.server_close()
    assert {name: found for name, found in faults.items() if found} == {}
    assert visit.wrong == []
