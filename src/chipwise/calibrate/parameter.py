"""One fitted number with what is known about it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Parameter"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A number with a meaning: its prior, its value, and `spread`, one standard deviation of log(value).

    `rows` is the hash of the rows that it was fitted on, empty while the value is the prior.
    """

    prior: float
    value: float
    spread: float
    unit: str
    source: str
    rows: str = ""
