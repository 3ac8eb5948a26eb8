"""Seconds of processor time that a fresh process takes, from pressing return to the prompt.

What others do on the machine moves the clock on the wall twice as much.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from statistics import median

__all__ = ["cold_seconds"]

# Where byte code may not be written (many containers) every run compiles the whole package again.
NOT_OURS = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")


def cold_seconds(*arguments: str, times: int = 7) -> float:
    """Median seconds of processor time of Python with arguments. The first run is not counted: it may write the byte
    code."""
    environment = {name: value for name, value in os.environ.items() if name not in NOT_OURS}

    def busy_s() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    def once_s() -> float:
        before = busy_s()
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=environment)
        return busy_s() - before

    once_s()
    return median(once_s() for _ in range(times))
