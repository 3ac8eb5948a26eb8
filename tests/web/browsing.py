"""A browser that reaches this machine alone, and what pages must not do in it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Route, sync_playwright

HERE = Path(__file__).parent
AXE = (HERE / "vendor" / "axe.min.js").read_text()
CHROMIUM = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")
UNDRAWN = ":is([data-spec], [data-flow]):not([data-drawn=true]):not(details:not([open]) *)"
LEFT = f"[...document.querySelectorAll('.waiting, .htmx-request, {UNDRAWN}')].map(e => e.id || e.className)"


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's browser. Skips where there is none."""
    found = next((path for path in CHROMIUM if os.access(path, os.X_OK)), None)
    if found is None:
        pytest.skip("needs a browser at /usr/bin/chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


class Visit:
    """A page of a site, with everything that went wrong on it."""

    def __init__(self, browser: Browser, site: str, **context: Any) -> None:
        self.site = site
        self.wrong: list[str] = []
        given = {"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce", **context}
        self.context = browser.new_context(**given)
        self.context.route("**/*", self._let)
        self.page: Page = self.context.new_page()
        self.page.on("console", lambda m: self.wrong.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))

    def _let(self, route: Route) -> None:
        """No network but this machine's own."""
        if urlsplit(route.request.url).hostname in ("127.0.0.1", None):
            route.continue_()
        else:
            self.wrong.append(f"asked for {route.request.url}")
            route.abort()

    def open(self, path: str) -> Page:
        """A page with its answer in it and its charts drawn."""
        self.page.goto(f"{self.site}{path}")
        self.page.wait_for_selector("#result .card")
        self.settle()
        return self.page

    def settle(self, seconds: float = 90.0) -> None:
        """Wait until nothing is asked or drawn any more. The page's policy forbids waiting inside it.

        The bound is for what hangs: how long an answer takes on a busy machine is not what is tested here.
        """
        end = time.monotonic() + seconds
        while left := self.page.evaluate(LEFT):
            assert time.monotonic() < end, f"the page did not settle: {left}; {self.wrong}"
            self.page.wait_for_timeout(30)

    def faults(self, *rules: str) -> list[str]:
        """What axe-core finds, by all of its rules or by some."""
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE)
        options = {"resultTypes": ["violations"]} | ({"runOnly": list(rules)} if rules else {})
        found = self.page.evaluate("options => axe.run(document, options)", options)
        return [f"{v['id']}: {v['nodes'][0]['html'][:200]}" for v in found["violations"]]

    def too_wide(self) -> int:
        """Pixels that the page is wider than its window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - innerWidth"))

    def close(self) -> None:
        """Leave the page."""
        self.context.close()
