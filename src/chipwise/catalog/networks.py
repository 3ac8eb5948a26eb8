"""What the table of networks without tokens says: which there are, by all their names, and the keys of each.

A `[parts.NAME]` is one network, a `[models.NAME]` what a request runs: `task` names the kind of request, the other keys
its fields, which name parts. Both say their `source`; `like` begins with the keys of another entry. What families make
of the keys is in `workload.media`; whether a name is one of these is known here, without them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chipwise.catalog.parsed import parse
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.errors import UnknownNameError, UsageError

__all__ = ["BY_COUNTS", "TABLE", "Entry", "entries", "find", "is_built_in", "table"]

TABLE = "workload/data/media_models.toml"

BY_COUNTS = "macs:"
"""What the name of a network begins with of which one knows nothing but counts."""

PARTS = {
    "vae encoder": "vae_encode",
    "vae decoder": "vae_decode",
    "encoder": "encoder",
    "decoder": "decoder",
    "text encoder": "text",
}
"""Words after a model's name that ask for a part of it alone."""


@dataclass(frozen=True)
class Entry:
    """A model as the table gives it: its task and the keys of that task; `names` are others that mean it."""

    name: str
    task: str
    names: tuple[str, ...]
    source: str
    values: Mapping[str, Any]


@per_snapshot
def table() -> dict[str, dict[str, dict[str, Any]]]:
    """Parts and models as they are written, with what they inherit. Raises `UsageError` for what is neither."""
    read = parse(shipped_text(TABLE))
    strange = set(read) - {"parts", "models"}
    if strange:
        raise UsageError(f"{TABLE}: [{', '.join(sorted(strange))}] is neither parts nor models")
    for rows in read.values():
        for name, row in rows.items():
            _inherit(rows, name, row)
    return read


def _inherit(rows: Mapping[str, dict[str, Any]], name: str, row: dict[str, Any]) -> None:
    parent = row.pop("like", None)
    if parent is None:
        return
    if parent not in rows or parent == name:
        raise UsageError(f"{TABLE}: {name} is like '{parent}', which is not there")
    _inherit(rows, parent, rows[parent])
    own = dict(row)
    row.clear()
    row.update({k: v for k, v in rows[parent].items() if k != "names"} | own)


@per_snapshot
def entries() -> Mapping[str, Entry]:
    """All models by their own name."""
    found = {}
    for name, row in table()["models"].items():
        values = dict(row)
        missing = {"task", "source"} - set(values)
        if missing:
            raise UsageError(f"{TABLE}: models.{name} has no {' and no '.join(sorted(missing))}")
        task, source, others = values.pop("task"), values.pop("source"), values.pop("names", [])
        found[name] = Entry(name, task, tuple(others), source, values)
    return found


@per_snapshot
def _by_name() -> Mapping[str, Entry]:
    return {_plain(n): e for e in entries().values() for n in (e.name, *e.names)}


def _plain(text: str) -> str:
    return "".join(c for c in text.lower() if c.isalnum())


def find(name: str) -> tuple[Entry, str]:
    """The entry of a name, nickname or id with its organisation, and the part that words after it ask for ("": the
    whole). Raises `UnknownNameError`."""
    found = _found(name)
    if found is None:
        raise UnknownNameError("model", name, [n for e in entries().values() for n in (e.name, *e.names)])
    return found


def is_built_in(name: str) -> bool:
    """Whether a text names a model that generates no tokens, or counts of one, and can be no path."""
    if name.startswith(BY_COUNTS):
        return True
    return not name.startswith((".", "~", os.sep)) and _found(name) is not None


def _found(name: str) -> tuple[Entry, str] | None:
    known = _by_name()
    for key in (_plain(name), _plain(name.rsplit("/", 1)[-1])):
        if key in known:
            return known[key], ""
    key = _plain(name)
    for words, part in PARTS.items():
        if key.endswith(_plain(words)) and key.removesuffix(_plain(words)) in known:
            return known[key.removesuffix(_plain(words))], part
    return None
