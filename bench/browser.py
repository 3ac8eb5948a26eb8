"""What a reader of the page waits for in a browser: from the form, and from a slider, to an answer on the screen, and
from a link to the first paint.

    python -m bench.browser [--times 7]

Needs Chromium and the packages of the tests. Every question is a new one, so that no answer is known already.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from statistics import median
from typing import Any

from bench.load import address_in

CHROMIUM = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")
SUBMIT = """rate => new Promise(done => {
  const start = performance.now(), found = {}, field = document.querySelector('[name=rate]');
  field.value = rate + '/s';
  document.getElementById('ask').requestSubmit();
  const look = () => {
    const head = document.querySelector('#result .headline'), now = performance.now() - start;
    if (head?.querySelector('.verdict')?.textContent.includes(`serves ${rate} requests`)) {
      found.first ??= now;
      if (!head.classList.contains('glance')) found.whole ??= now;
    }
    const charts = [...document.querySelectorAll('#result > [data-spec]')];
    if (found.whole && !document.querySelector('#cheaper .waiting')) found.beside ??= now;
    if (found.beside && charts.every(chart => chart.dataset.drawn === 'true')) return done({...found, charts: now});
    requestAnimationFrame(look);
  };
  look();
})"""
SLIDE = """at => new Promise(done => {
  const start = performance.now(), slide = document.querySelector('[data-slide=in]');
  slide.value = at;
  slide.dispatchEvent(new Event('input', {bubbles: true}));
  const before = document.querySelector('#result .headline');
  const look = () => document.querySelector('#result .headline') === before ? requestAnimationFrame(look)
    : requestAnimationFrame(() => done({glance: performance.now() - start}));
  look();
})"""
LINKS = (
    "/train?model=deepseek-ai/DeepSeek-V3&curves=true&tokens={}T",
    "/plan?model=Wan-AI/Wan2.2-T2V-A14B&rate={}/h&e2e=2min",
    "/plan?model=meta-llama/Llama-3.1-70B&rate={}/s",
)
"""Questions whose answers take long, as somebody sends them."""
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


def painted(page: Any, link: str) -> float:
    """Milliseconds from opening a link to its first paint, in a page of its own."""
    other = page.context.browser.new_page()
    try:
        other.goto(page.evaluate("location.origin") + link, wait_until="commit")
        for _ in range(2_000):
            if found := other.evaluate(PAINT):
                return float(found)
            other.wait_for_timeout(20)
    finally:
        other.close()
    raise RuntimeError(f"{link} paints nothing")


@contextlib.contextmanager
def shown() -> Iterator[Any]:
    """The first page of a server of its own, with its answer."""
    from playwright.sync_api import sync_playwright

    found = next(path for path in CHROMIUM if os.access(path, os.X_OK))
    command = [sys.executable, "-m", "chipwise", "web", "--no-open", "--port", "0"]
    with tempfile.TemporaryFile("w+") as log, sync_playwright() as playwright:
        server = subprocess.Popen(command, stderr=log)
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        try:
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            page.goto(address_in(log))
            page.wait_for_selector("#result .headline .verdict", timeout=60_000)
            page.wait_for_timeout(3_000)
            yield page
        finally:
            browser.close()
            server.terminate()
            server.wait(30)


def main() -> None:
    """Print medians in seconds."""
    reader = argparse.ArgumentParser(description=re.sub(r"\s+", " ", (__doc__ or "").partition("\n\n")[0]))
    reader.add_argument("--times", type=int, default=7)
    times = reader.parse_args().times
    with shown() as page:
        page.evaluate(SUBMIT, 9)
        seen = []
        for i in range(times):
            seen.append(page.evaluate(SUBMIT, 11 + i))
            page.wait_for_timeout(1_500)  # what stands beside the answer has come
        slid = []
        for i in range(times):
            slid.append(page.evaluate(SLIDE, 300 + 20 * i))
            page.wait_for_timeout(200)
        paints = []
        for i in range(times):
            paints.append({"paint": max(painted(page, link.format(31 + i)) for link in LINKS)})
    for name, rows, key in (
        ("form to the answer among the first chips", seen, "first"),
        ("form to the whole answer", seen, "whole"),
        ("form to what would make it cheaper", seen, "beside"),
        ("form to its charts", seen, "charts"),
        ("slider to answer", slid, "glance"),
        ("link to first paint, the slowest of three", paints, "paint"),
    ):
        print(f"{name:<44}{median(row[key] for row in rows) / 1000.0:6.2f} s")


if __name__ == "__main__":
    main()
