"""`python -m docs.generate.shots`: pictures of the page in a browser, light and dark, wide and narrow.

They are taken by hand when the page changes: Chromium, Playwright and Pillow are needed, and no test repeats them.
"""

from __future__ import annotations

import io
import subprocess
import sys
import time
import urllib.request
from importlib import import_module
from pathlib import Path

__all__ = ["main"]

FOLDER = Path(__file__).resolve().parents[1] / "pictures"
PORT = 8391
QUESTION = f"http://127.0.0.1:{PORT}/plan?model=meta-llama/Llama-3.1-70B&rate=10/s&in=2000&out=300&ttft=1s&tpot=40ms"
SIZES = {"page-wide": (1400, 1000), "page-narrow": (390, 844)}
DRAWN = "[data-spec][data-drawn=true]"


def main() -> None:
    """Serve the page, ask one question, and keep what it looks like."""
    playwright, image = import_module("playwright.sync_api"), import_module("PIL.Image")
    server = subprocess.Popen([sys.executable, "-m", "chipwise", "web", "--port", str(PORT)])
    try:
        _await()
        with playwright.sync_playwright() as play:
            browser = play.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
            for name, (width, height) in SIZES.items():
                for ground, scheme in (("", "light"), ("-dark", "dark")):
                    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
                    page.goto(QUESTION)
                    page.wait_for_selector(DRAWN, timeout=90_000)
                    page.wait_for_selector(".waiting", state="detached", timeout=90_000)  # all parts of the answer
                    shot = image.open(io.BytesIO(page.screenshot()))
                    shot.save(FOLDER / f"{name}{ground}.webp", quality=80, method=6)
                    page.close()
            browser.close()
    finally:
        server.terminate()
        server.wait()


def _await() -> None:
    """Until the server answers."""
    for _ in range(120):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/", timeout=5)
        except OSError:
            time.sleep(0.5)
        else:
            return
    raise TimeoutError(f"no page on port {PORT}")


if __name__ == "__main__":
    main()
