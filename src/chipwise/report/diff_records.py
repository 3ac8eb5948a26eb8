"""What `replay` and `diff` answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from chipwise.report.answer import Answer
from chipwise.report.difference import TOLERANCE, Change
from chipwise.report.records import SCHEMA_VERSION

__all__ = ["Cause", "DiffReport", "ReplayReport"]


@dataclass(frozen=True, slots=True, repr=False)
class ReplayReport(Answer):
    """A saved answer made again: `identical` if no figure differs by more than `tolerance` (relative), else what does.
    `saved_with` and `replayed_with` are the versions of Python and NumPy; files of earlier versions do not say."""

    verb: str
    day: str
    catalogue: str
    saved_by: str
    replayed_by: str
    identical: bool
    changes: tuple[Change, ...]
    report: Any
    tolerance: float = TOLERANCE
    saved_with: dict[str, str] = field(default_factory=dict)
    replayed_with: dict[str, str] = field(default_factory=dict)
    schema_version: str = field(default=SCHEMA_VERSION)


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that is not as it was: the facts that changed, and what they did to the answer; `first` is how its
    first plan compares with the one before, where that is another plan."""

    cause: str
    facts: tuple[str, ...]
    changes: tuple[Change, ...]
    first: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class DiffReport(Answer):
    """Two saved answers: what changed, cause by cause, and in all."""

    before: str
    after: str
    causes: tuple[Cause, ...]
    changes: tuple[Change, ...]
    schema_version: str = field(default=SCHEMA_VERSION)
