"""Seconds from pressing return to the prompt, in a fresh process."""

from __future__ import annotations

import subprocess
import sys

from bench.timing import median_s

__all__ = ["cold_seconds"]


def cold_seconds(*arguments: str, times: int = 5) -> float:
    """Median seconds of a command. The first run is not counted: it may write the byte code."""

    def run() -> None:
        subprocess.run([sys.executable, "-m", "chipwise", *arguments], check=True, stdout=subprocess.DEVNULL)

    run()
    return median_s(run, times)
