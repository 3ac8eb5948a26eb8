"""The facts that an answer rests on: the text of every table that was read, and the day.

All shipped tables and the user's own files are read through here, so that a saved answer can carry what it was
made of and be made again from it, whatever the installed tables say by then.
"""

from __future__ import annotations

import datetime as dt
import functools
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from chipwise.values import dataclass

P = ParamSpec("P")
T = TypeVar("T")

PACKAGE = Path(__file__).parents[1]
"""The folder that shipped tables lie in; `importlib.resources` finds the same after 2 % of a command's time."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Files by name (`catalog/data/offers.csv`, or the path of a user's own) and the day of the question.

    What is not in `given` is read from the package or the disk. `read`, where there is one, collects what was.
    `found` is what functions that read them remember, each by its arguments.
    """

    given: Mapping[str, bytes] = field(default_factory=dict)
    day: dt.date | None = None
    read: dict[str, bytes] | None = None
    found: dict[object, dict[object, Any]] = field(default_factory=dict, repr=False)

    def content(self, name: str, load: Callable[[], bytes]) -> bytes:
        """The bytes of a file, given or loaded."""
        found = self.given[name] if name in self.given else load()
        if self.read is not None:
            self.read[name] = found
        return found


_current: ContextVar[Snapshot] = ContextVar("snapshot", default=Snapshot())  # noqa: B039 - one for all


def current() -> Snapshot:
    """The snapshot in use: that of the installed tables, unless `use` says otherwise."""
    return _current.get()


@contextmanager
def use(snapshot: Snapshot) -> Iterator[Snapshot]:
    """Read all tables from a snapshot for a while, in this thread."""
    token = _current.set(snapshot)
    try:
        yield snapshot
    finally:
        _current.reset(token)


def today() -> dt.date:
    """The day of the question: that of the snapshot, or this one."""
    return current().day or dt.date.today()


def shipped_bytes(name: str) -> bytes:
    """A table of the package by its path below it, as in `catalog/data/offers.csv`."""
    return current().content(name, lambda: (PACKAGE / name).read_bytes())


def shipped_text(name: str) -> str:
    """The same as text."""
    return shipped_bytes(name).decode("utf-8")


def shipped_names(folder: str, ending: str) -> list[str]:
    """The tables of a folder, sorted; of a snapshot that holds some of them, those alone."""
    given = [n for n in current().given if n.startswith(f"{folder}/") and n.endswith(ending)]
    if given:
        return sorted(given)
    entries = (PACKAGE / folder).iterdir()
    return sorted(f"{folder}/{e.name}" for e in entries if e.name.endswith(ending))


def own_bytes(path: Path) -> bytes:
    """A file of the user's, by the path that was written. Raises `OSError`, for a device too: it may have no end."""

    def load() -> bytes:
        if path.is_char_device() or path.is_block_device():
            raise OSError("a device, not a file")
        return path.read_bytes()

    return current().content(str(path), load)


def own_exists(path: Path) -> bool:
    """Whether a file or a folder of the user's is there, or was when the question was asked."""
    return str(path) in current().given or own_is_folder(path) or path.exists()


def own_is_folder(path: Path) -> bool:
    """Whether it is a folder, or was one when the question was asked."""
    return any(name.startswith(f"{path}{os.sep}") for name in current().given) or path.is_dir()


def own_folder_name(file: Path) -> str:
    """The name of the folder that a file of the user's lies in: where its path does not say it, that of the folder
    where the question was asked."""
    if file.parent.name not in ("", ".."):
        return file.parent.name
    return current().content(f"{file}#folder", file.resolve().parent.name.encode).decode()


MOST_FOUND = 4096
"""Answers of a function that are remembered at most, before all are forgotten."""


def per_snapshot(function: Callable[P, T], most: int = MOST_FOUND) -> Callable[P, T]:
    """Remember what a function of hashable arguments found, up to `most` answers, apart for every snapshot."""

    @functools.wraps(function)
    def remembered(*args: P.args, **kwargs: P.kwargs) -> T:
        known = current().found.setdefault(remembered, {})
        key = (args, *sorted(kwargs.items())) if kwargs else args
        found: T = known.get(key, known)
        if found is known:
            found = function(*args, **kwargs)
            if len(known) >= most:
                known.clear()
            known[key] = found
        return found

    return remembered
