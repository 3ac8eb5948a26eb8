"""How a figure is written with its interval: `236 [152-422] ms`, `30 [24-142]`, `24-142`."""

from __future__ import annotations

from typing import Protocol

from chipwise import units
from chipwise.units import format_number, format_seconds, in_duration

SHORT = {"day": "d", "hour": "h", "minute": "min"}
SCALES = {"h": 1.0 / 3600.0, "s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


class Interval(Protocol):
    """A middle value with the ends of its interval: a figure, or a price."""

    @property
    def mid(self) -> float:
        """The middle."""

    @property
    def low(self) -> float:
        """The lower end."""

    @property
    def high(self) -> float:
        """The upper end."""


def span(low: float, high: float, digits: int = 2) -> str:
    """`24-142`, or the one number where both ends read the same."""
    a, b = format_number(low, digits), format_number(high, digits)
    return a if a == b else f"{a}-{b}"


def mid(figure: Interval) -> str:
    """The middle alone."""
    return format_number(figure.mid)


def number(figure: Interval) -> str:
    """`30 [24-142]`, or the one number where nothing is uncertain."""
    ends = span(figure.low, figure.high, 3)
    return mid(figure) if ends == mid(figure) else f"{mid(figure)} [{ends}]"


def split_s(figure: Interval) -> tuple[str, str, str, str]:
    """Middle, low and high of a time in the unit of the middle one, and that unit."""
    unit = format_seconds(figure.mid).split()[-1]
    by = SCALES[unit]
    middle, low, high = (format_number(x * by) for x in (figure.mid, figure.low, figure.high))
    return middle, low, high, unit


def seconds(figure: Interval) -> str:
    """`236 [152-422] ms`: all three numbers in the unit of the middle one."""
    middle, low, high, unit = split_s(figure)
    return f"{middle} {unit}" if low == high else f"{middle} [{low}-{high}] {unit}"


def duration(figure: Interval) -> str:
    """`16.1 [12.4-19.8] h`: how long something takes, in the unit that its middle is said in."""
    by, name = in_duration(figure.mid)
    middle, low, high = (format_number(x / by) for x in (figure.mid, figure.low, figure.high))
    unit = SHORT.get(name, name)
    return f"{middle} {unit}" if low == high else f"{middle} [{low}-{high}] {unit}"


def duration_words(figure: Interval) -> str:
    """`16.1 hours [12.4 to 19.8]`, for prose."""
    by = in_duration(figure.mid)[0]
    return f"{units.duration_words(figure.mid)} [{format_number(figure.low / by)} to {format_number(figure.high / by)}]"


def per(rate_per_s: float) -> tuple[float, str]:
    """How a rate is counted: times 1 by the second, below one a second times 3,600 by the hour."""
    return (1.0, "s") if rate_per_s >= 1.0 else (3600.0, "h")


def milliseconds(figure: Interval) -> str:
    """`236 [152-422]`, of a time whose column says that it is in milliseconds."""
    middle, low, high = (format_number(x * 1e3) for x in (figure.mid, figure.low, figure.high))
    return middle if low == high else f"{middle} [{low}-{high}]"
