"""Quantities at the door: text in, SI floats out, and back to text for people.

Inside the package every number is SI and carries its unit in its name. GB is 10^9 bytes and GiB is 2^30
bytes, here and nowhere else.
"""

from __future__ import annotations

import math
import re
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from chipwise.errors import UsageError, shorten

Array: TypeAlias = NDArray[np.float64]
Real: TypeAlias = float | Array
"""A number, or an array of numbers that broadcasts."""

GIB = 2.0**30


def scalar(value: object) -> float:
    """A number out of one, or the first entry of an array: where a formula that broadcasts was asked one question."""
    return float(np.asarray(value, dtype=float).reshape(-1)[0])


_PREFIX = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
_TIME = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def _prefixed(prefixes: dict[str, float], *names: str) -> dict[str, float]:
    return {f"{p}{name}": f for p, f in prefixes.items() for name in names}


_SCALES: dict[str, dict[str, float]] = {
    "s": _TIME,
    "B": _prefixed(_PREFIX | _BINARY, "B"),
    "B/s": _prefixed(_PREFIX | _BINARY, "B/s")
    | _prefixed({p: f / 8.0 for p, f in _PREFIX.items() if f > 1.0}, "b/s", "bit/s", "bps", "bE"),
    "FLOP/s": _prefixed(_PREFIX, "FLOP/s", "FLOPS", "OPS", "OP/s"),
    "Hz": _prefixed(_PREFIX, "Hz"),
    "W": _prefixed(_PREFIX, "W"),
    "1/s": {"/s": 1.0, "/min": 1 / 60.0, "/h": 1 / 3600.0, "/d": 1 / 86400.0, "rps": 1.0, "qps": 1.0, "": 1.0},
    "": {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12},
}
"""The suffixes that a dimension accepts, each with its factor to SI."""


# a comma separates thousands, nothing else: 1,5 is neither 15 nor 1.5 here
_NUMBER = re.compile(
    r"([+-]?(?:(?:\d{1,3}(?:,\d{3})+|\d+(?:_\d+)*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*(.*)", re.DOTALL
)


def parse_quantity(text: str, unit: str, name: str, *, low: float = 0.0, high: float = math.inf) -> float:
    """`text` as an SI float of dimension `unit` ("s", "B", "B/s", "FLOP/s", "Hz", "W", "1/s" or "" for counts).

    A bare number is taken in SI. Raises `UsageError`, naming `name`, for text that is no such quantity and
    for a value outside `low` to `high`.
    """
    scales = _SCALES[unit]
    match = _NUMBER.fullmatch(text.strip())
    suffix = match.group(2) if match else ""
    if match is None or (suffix and suffix not in scales):
        # one name for each size, as people write it
        known = list({factor: s for s, factor in reversed(scales.items()) if s}.values())[::-1][:8]
        hint = f"write a number with one of {', '.join(known)}"
        if match is not None and unit == "s" and suffix == "m":
            hint = f"{match.group(1)}min for minutes, {match.group(1)}ms for milliseconds"
        raise UsageError(f"{name}: cannot read '{shorten(text)}'", hint)
    value = float(match.group(1).replace(",", "").replace("_", "")) * scales.get(suffix, 1.0)
    if not math.isfinite(value) or not low <= value <= high:
        if unit == "B" and high < math.inf:
            bound = f"{format_bytes(low)} to {format_bytes(high)}"
        else:
            bound = f"{_range(low, high)} {unit}".strip()
        raise UsageError(f"{name}: {shorten(text)} is out of range", bound)
    return value


def _range(low: float, high: float) -> str:
    """What a figure may be; ends that nobody comes near are left out."""
    floor = "more than 0" if 0.0 < low < 1e-6 else f"at least {low:,.15g}"
    if high >= 1e15:
        return floor
    return f"{floor}, at most {high:,.15g}" if 0.0 < low < 1e-6 else f"{low:,.15g} to {high:,.15g}"


def _scaled(value: float, steps: list[tuple[float, str]], digits: int) -> str:
    if value == 0 or not math.isfinite(value):
        return f"{value:g} {steps[-1][1]}".strip()
    # half of the last printed digit below a step already rounds up to it
    reach = 1.0 - 0.5 * 10.0**-digits
    factor, suffix = next((step for step in steps if abs(value) >= step[0] * reach), steps[-1])
    shown = float(f"{value / factor:.{digits - 1}e}")
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(shown))))
    return f"{shown:,.{decimals}f} {suffix}".strip()


def format_number(value: float, digits: int = 3) -> str:
    """At most `digits` significant digits, without an exponent: `1,230`, `27.5`, `40`."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    shown = float(f"{value:.{digits - 1}e}")
    text = f"{shown:,.{max(0, digits - 1 - math.floor(math.log10(abs(shown))))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def format_bytes(value: float, digits: int = 3) -> str:
    """Decimal bytes with three significant digits: `141 GB`."""
    return _scaled(value, [(1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")], digits)


def format_flops(value: float, digits: int = 3) -> str:
    """Operations per second with three significant digits: `989 TFLOP/s`."""
    steps = [(10.0 ** (3 * n), f"{prefix}FLOP/s") for n, prefix in ((5, "P"), (4, "T"), (3, "G"), (2, "M"), (0, ""))]
    return _scaled(value, steps, digits)


def format_seconds(value: float, digits: int = 3) -> str:
    """Seconds with three significant digits: `24.1 ms`, from an hour on `1.53 h`."""
    return _scaled(value, [(3600.0, "h"), (1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")], digits)


_DURATIONS = ((259_200.0, 86_400.0, "day"), (3600.0, 3600.0, "hour"), (100.0, 60.0, "minute"))
"""From so many seconds on a duration is said in units of so many seconds: three days, an hour, a hundred seconds."""


def in_duration(seconds: float) -> tuple[float, str]:
    """The unit in which a duration is said: its seconds, and its name for one of it (`s` and `ms` stay so for more)."""
    for above, by, name in _DURATIONS:
        if seconds >= above * (1.0 - 5e-4):
            return by, name
    return (1.0, "s") if seconds >= 0.9995 else (1e-3, "ms")


def duration_words(seconds: float) -> str:
    """How long something takes, for prose: `16.1 hours`, `1 hour`, `45 minutes`, `47.3 s`."""
    by, name = in_duration(seconds)
    return f"{format_number(seconds / by)} {name}" if len(name) < 3 else amount(seconds / by, name)


def amount(value: float, name: str) -> str:
    """So many of what is called `name` where there is one: `1 clip`, `10 clips`, `1.5 hours`."""
    said = format_number(value)
    return f"{said} {name}" if said == "1" else f"{said} {name}s"


def duration_above(seconds: float) -> str:
    """The next whole duration that is no shorter, as it is typed: `90s`, `3min`, `450ms`, `9h`."""
    units = (("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 1e-3))
    unit, by = next(((unit, by) for unit, by in units if seconds > 2.0 * by), units[-1])
    return f"{math.ceil(seconds / by):.0f}{unit}"


def typed_s(seconds: float) -> float:
    """The seconds that `duration_above` stands for."""
    words = duration_above(seconds)
    by = {"h": 3600.0, "min": 60.0, "ms": 1e-3}.get(words.lstrip("0123456789"), 1.0)
    return by * float(words.rstrip("hmins"))


def format_count(value: float, digits: int = 3) -> str:
    """A count with three significant digits: `70.6 B`."""
    return _scaled(value, [(1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"), (1.0, "")], digits)
