"""One fitted number with what is known about it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Z80", "Parameter"]

Z80 = 1.2816
"""Standard deviations on either side of the middle that hold 80 % of a normal distribution."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A number with a meaning: its prior, its value, and `spread`, one standard deviation of log(value).

    `rows` is the hash of the rows that it was fitted on, or chosen from by hand as `source` says; empty while the value
    is the prior.
    """

    prior: float
    value: float
    spread: float
    unit: str
    source: str
    rows: str = ""
