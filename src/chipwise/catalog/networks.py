"""What the table of networks without tokens says: which there are, by all their names, and the keys of each.

A `[parts.NAME]` is one network, a `[models.NAME]` what a request runs: `task` names the kind of request, the other keys
its fields, which name parts. Both say their `source`; `like` begins with the keys of another entry. What families make
of the keys is in `workload.media`; whether a name is one of these is known here, without them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from chipwise.catalog.names import fitting, formats, near
from chipwise.catalog.parsed import parse
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.errors import UnknownNameError, UsageError, is_name, shorten
from chipwise.values import dataclass

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

ID = re.compile(r"^[\w.-]{2,}/[A-Za-z][\w.-]+$")
"""An organisation and the name of what it publishes."""

MAKERS = frozenset(
    "ai alibaba baai black bytedance diffusers facebook forest genmo google hf huggingface labs lightricks meta "
    "microsoft mit model network nvidia openai pytorch sentence stability stabilityai tencent thudm timm torchvision "
    "transformers ultralytics weights zai".split()
)
"""Words beside a name that leave its model alone: who made or publishes it, the library that runs it."""

SAID = (
    (r"\bstable[\s_-]*diffusion\b", "sd"),
    (r"\bsd[\s_-]*xl\b", "sdxl"),
    (r"\bsd[\s_-]*v?(?=\d)", "sd "),
    (r"\btext[\s_-]*(?:to|2)[\s_-]*video\b", "t2v"),
    (r"\bimage[\s_-]*(?:to|2)[\s_-]*video\b", "i2v"),
    (r"\bseg[\s_-]former", "segformer"),
    (r"(?<=\bvit)[\s_-]+(t|s|b|l|h|g)(?=[\s_/-]*\d|[\s_-]|$)", r" \1 "),
)
"""Ways to write the same, both in names that are known and in those asked for."""

LETTERS = {"t": "tiny", "s": "small", "b": "base", "l": "large", "h": "huge", "g": "giant"}
"""Sizes of vision transformers by their letter."""


@dataclass(frozen=True)
class NetworkEntry:
    """A model as the table gives it: its task and the keys of that task; `names` are others that mean it, `alike` those
    of other weights that have its dimensions, with their organisation."""

    name: str
    task: str
    names: tuple[str, ...]
    alike: tuple[str, ...]
    source: str
    values: Mapping[str, Any]

    @property
    def called(self) -> tuple[str, ...]:
        """All names."""
        return (self.name, *self.names, *self.alike)


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
    row.update({k: v for k, v in rows[parent].items() if k not in ("names", "alike")} | own)


@per_snapshot
def entries() -> Mapping[str, NetworkEntry]:
    """All models by their own name."""
    found = {}
    for name, row in table()["models"].items():
        values = dict(row)
        missing = {"task", "source"} - set(values)
        if missing:
            raise UsageError(f"{TABLE}: models.{name} has no {' and no '.join(sorted(missing))}")
        task, source = values.pop("task"), values.pop("source")
        names, alike = (tuple(values.pop(key, ())) for key in ("names", "alike"))
        found[name] = NetworkEntry(name, task, names, alike, source, values)
    return found


@per_snapshot
def _by_name() -> Mapping[str, NetworkEntry]:
    return {_plain(n): e for e in entries().values() for n in (*e.called, *map(_weights, e.alike))}


def _weights(name: str) -> str:
    """A name without its organisation."""
    return name.rsplit("/", 1)[-1]


def _plain(text: str) -> str:
    return "".join(c for c in text.lower() if c.isalnum())


@dataclass(frozen=True)
class FoundNetwork:
    """The model that a name means: its entry, the part that words after it ask for ("": the whole), how the name was
    read where it is none of those in the table, and of other weights with its dimensions their name."""

    entry: NetworkEntry
    part: str = ""
    note: str = ""
    alike: str = ""

    @property
    def name(self) -> str:
        """The name of its weights."""
        return self.alike or self.entry.name


def find(name: str) -> FoundNetwork:
    """What a name means: one of the table as it is written there or as people type it (words in any order, with or
    without organisation, maker or library). Raises `UnknownNameError`, with those that fit where several do."""
    found = _found(name)
    if found is None:
        fit = close(name)
        names = [] if fit else [n for e in entries().values() for n in e.called]
        error = UnknownNameError("model", name, names, f"did you mean {', '.join(fit)}?" if fit else "")
        error.nearest = fit or error.nearest
        raise error
    return found


def is_built_in(name: str) -> bool:
    """Whether a text names a model that generates no tokens, or counts of one, and can be no path."""
    if name.startswith(BY_COUNTS):
        return True
    return not name.startswith((".", "~", os.sep)) and _found(name) is not None


@per_snapshot
def _found(name: str) -> FoundNetwork | None:
    if not is_name(name):
        return None
    known = _by_name()
    for key in (_plain(name), _plain(_weights(name))):
        if key in known:
            return _as_written(known[key], key)
    lowered = name.strip().lower()
    for words, part in PARTS.items():
        if _plain(name).endswith(_plain(words)):
            key = _plain(name).removesuffix(_plain(words))
            if key in known:
                return FoundNetwork(known[key], part)
            whole = _fitting(lowered.removesuffix(words)) if lowered.endswith(words) else []
            if len(whole) == 1:
                return FoundNetwork(whole[0], part, _read_as(name, whole[0]))
    fit = _fitting(name)
    return FoundNetwork(fit[0], note=_read_as(name, fit[0])) if len(fit) == 1 else None


def _as_written(entry: NetworkEntry, key: str) -> FoundNetwork:
    """A model by one of its names."""
    alike = next((n for n in entry.alike if key in (_plain(n), _plain(_weights(n)))), "")
    return FoundNetwork(entry, note=f"{alike} has the dimensions of {entry.name}" if alike else "", alike=alike)


def close(name: str) -> tuple[str, ...]:
    """The models among which a name does not choose: those that have all of its words, else those whose names begin
    with it, else those that share words with it."""
    if not is_name(name):
        return ()
    start = _plain(_weights(name))
    begun = (entry for key, entry in _by_name().items() if len(start) > 2 and key.startswith(start))
    fit = _fitting(name) or list(begun)
    known = _by_spelling()
    fit = fit or [known[text] for text in near(_spelled(name), known, 8)]
    return tuple(dict.fromkeys(entry.name for entry in fit))[:6]


def _fitting(name: str) -> list[NetworkEntry]:
    """The models that a name may mean by its words. An id with its organisation is written exactly or means another."""
    if ID.match(name):
        return []
    known = _by_spelling()
    return list({known[text].name: known[text] for text in fitting(_spelled(name), known)}.values())


def _read_as(asked: str, entry: NetworkEntry) -> str:
    note = f"'{shorten(asked, 60)}' is read as {entry.name}"
    taken = {word for name in entry.called for word in formats(_spelled(name))}
    left = [word for word in formats(_spelled(asked)) if word not in taken]
    return f"{note}; '{' '.join(left)}' is left to --precision" if left else note


@per_snapshot
def _by_spelling() -> Mapping[str, NetworkEntry]:
    """All names in the words that names are compared by."""
    return {_spelled(n): e for e in entries().values() for n in e.called}


def _spelled(name: str) -> str:
    """A name as words: usual ways to say the same made one, makers and libraries left out."""
    text = name.strip().lower()
    for pattern, said in SAID:
        text = re.sub(pattern, said, text)
    words = re.split(r"[\s_/()+,:-]+", text)
    if "vit" in words:
        words = [LETTERS.get(word, word) for word in words]
    return " ".join(word for word in words if word and word not in MAKERS)
