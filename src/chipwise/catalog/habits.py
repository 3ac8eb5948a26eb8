"""Habits of measurers: what the sources of tables of measurements leave out of their rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from chipwise.catalog.parsed import parse
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.values import dataclass

TABLE = "catalog/data/habits.toml"


@dataclass(frozen=True, slots=True)
class Habit:
    """What the source of a table of measurements does not say row by row.

    `precision`: what it means by one. `memory`: what its figures of memory count, `gigabyte` their unit in bytes.
    `settings`: of its models; `training`: of theirs in training. `pictures`: their usual size, where it gives bounds
    that they are fitted into. `sharded`: several devices keep weights in parts.
    """

    precision: Mapping[str, str]
    memory: Literal["allocated", "reserved", "device"] = "device"
    gigabyte: float = 1e9
    settings: Mapping[str, str] = field(default_factory=dict)
    training: Mapping[str, str] = field(default_factory=dict)
    pictures: Mapping[str, str] = field(default_factory=dict)
    sharded: bool = False

    def sizes(self, *, trained: bool) -> Mapping[str, str]:
        """Settings of a run."""
        return {**self.settings, **self.training} if trained else self.settings

    def picture(self, bounds: str, *, trained: bool, peak: bool = False) -> str:
        """The usual size, width x height, of pictures that were fitted into bounds, of a `peak` over them the largest;
        "" where they are the size."""
        usual = self.pictures.get(f"{bounds} trained" if trained else bounds, "")
        return self.pictures.get(f"{bounds} peak", usual) if peak else usual


@per_snapshot
def _habits() -> Mapping[str, Habit]:
    facts = ("precision", "memory", "settings", "training", "pictures", "sharded")
    return {
        start: Habit(
            **{"precision": {}} | {name: t[name] for name in facts if name in t},
            gigabyte=2.0**30 if t.get("binary") else 1e9,
        )
        for start, t in parse(shipped_text(TABLE))["habit"].items()
    }


def habit_of(source: str) -> Habit:
    """The habits of a source, its repository with or without the word GitHub; those of one that is not known."""
    name = source.removeprefix("github").lstrip(": ")
    return next((habit for start, habit in _habits().items() if name.startswith(start)), Habit({}))
