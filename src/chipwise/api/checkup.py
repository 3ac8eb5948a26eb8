"""`doctor`: is the installation whole."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

from chipwise import __version__
from chipwise.api.loaded import models
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.chips import load_chips
from chipwise.catalog.offer import load_offers
from chipwise.catalog.runtime import load_runtimes
from chipwise.errors import ChipwiseError

__all__ = ["Check", "doctor"]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    ok: bool
    detail: str


def doctor() -> tuple[Check, ...]:
    """Load every table once and say what is there."""
    python = ".".join(map(str, sys.version_info[:3]))
    checks = [
        Check("chipwise", True, f"{__version__} on Python {python}"),
        _count("chips", lambda: len(load_chips())),
        _count("runtimes", lambda: len(load_runtimes())),
        _count("offers", lambda: len(load_offers())),
        _count("models", lambda: len(models())),
        _count("parameters", lambda: len(shipped_parameters().table)),
    ]
    parquet = find_spec("pyarrow") is not None
    note = (
        "installed"
        if parquet
        else "not installed (pip install 'chipwise[parquet]'), needed for .parquet rows only"
    )
    return (*checks, Check("extra parquet", True, note))


def _count(name: str, load: Callable[[], int]) -> Check:
    try:
        return Check(name, True, f"{load()} loaded")
    except ChipwiseError as error:
        return Check(name, False, str(error))
