"""Seconds from pressing return to the prompt, in a fresh process."""

from __future__ import annotations

import os
import subprocess
import sys

from bench.timing import median_s

__all__ = ["cold_seconds"]

# Where byte code may not be written (many containers) every run compiles the whole package again.
NOT_OURS = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")


def cold_seconds(*arguments: str, times: int = 5) -> float:
    """Median seconds of a command. The first run is not counted: it may write the byte code."""
    environment = {name: value for name, value in os.environ.items() if name not in NOT_OURS}
    command = [sys.executable, "-m", "chipwise", *arguments]

    def run() -> None:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)

    run()
    return median_s(run, times)
