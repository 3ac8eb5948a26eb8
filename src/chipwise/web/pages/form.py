"""A question as a form: built from the fields of its dataclass, so that a new option appears by itself."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from chipwise.api.requests.field import MISSING

__all__ = ["Control", "Group", "controls", "groups"]

# Names that say less than they could; all others are read as they are written.
LABELS = {
    "in": "Prompt tokens",
    "out": "Output tokens",
    "rate": "Load",
    "ttft": "TTFT target",
    "tpot": "TPOT target",
    "tp": "Tensor parallel",
    "pp": "Pipeline stages",
    "dp": "Attention replicas",
    "ep": "Expert parallel",
    "set": "Chip figures",
    "have": "Chips you have",
    "max_usd_per_h": "Most $/h",
    "max_usd": "Most $",
    "min_tps": "Least tokens/s",
    "use": "What for",
    "max_watts": "Most watts",
    "lora": "Adapters",
    "seq": "Sequence",
    "m": "Rows m",
    "n": "Columns n",
    "k": "Inner k",
    "dtype": "Data type",
    "kv": "KV",
    "cv": "Spread of lengths",
    "prefix_hit": "Prefix cache hits",
    "speculate": "Guess ahead",
    "disaggregate": "Prompts apart",
    "software": "Software of",
    "day": "Load over a day",
}
LISTS = {"model": "models", "chip": "chips", "chips": "several"}


@dataclass(frozen=True, slots=True)
class Control:
    """One field: how it is asked for, and what stands in it."""

    name: str
    label: str
    help: str
    kind: Literal["text", "number", "select", "check"]
    value: str
    placeholder: str
    options: tuple[str, ...]
    list_id: str
    required: bool


@dataclass(frozen=True, slots=True)
class Group:
    """Fields that belong together, under what their part of the question says of itself."""

    title: str
    controls: tuple[Control, ...]

    @property
    def filled(self) -> bool:
        """Whether something stands in one of them."""
        return any(c.value for c in self.controls)


def controls(request: type, values: Mapping[str, Any], hidden: Sequence[str] = ()) -> dict[str, Control]:
    """Every field that a page may ask for, by name; fields that name files are left to the command line."""
    hints = typing.get_type_hints(request)
    found = {}
    for f in fields(request):
        name = str(f.metadata.get("alias") or f.name)
        if name in hidden or (f.metadata.get("file") and f.name not in ("model", "chip", "chips")):
            continue
        found[name] = _control(f, name, hints[f.name], values.get(name))
    return found


def groups(request: type, found: Mapping[str, Control], front: Sequence[str]) -> tuple[Group, ...]:
    """The fields that are not in front, by the part of the question that brings them."""
    table: dict[str, list[Control]] = {}
    homes = _homes(request)
    for name, control in found.items():
        if name not in front:
            table.setdefault(homes[name], []).append(control)
    return tuple(Group(title, tuple(members)) for title, members in table.items())


def _homes(request: type) -> dict[str, str]:
    """The first words of the class that brings each field."""
    homes: dict[str, str] = {}
    for cls in reversed(request.__mro__):
        title = (cls.__doc__ or "").split("\n")[0].split(":")[0].rstrip(".")
        for name in inspect.get_annotations(cls):
            field = getattr(request, "__dataclass_fields__", {}).get(name)
            if field is not None:
                homes.setdefault(str(field.metadata.get("alias") or name), title)
    return homes


def _control(f: Any, name: str, hint: Any, value: Any) -> Control:
    required = f.default is MISSING
    default = "" if required or f.default is None else str(f.default)
    options = _options(hint)
    if _is(hint, bool):
        kind: Literal["text", "number", "select", "check"] = "check"
    elif options:
        kind = "select"
    else:
        kind = "number" if _is(hint, int) or _is(hint, float) else "text"
    return Control(
        name=name,
        label=LABELS.get(name, name.replace("_", " ").capitalize()),
        help=str(f.metadata.get("help", "")),
        kind=kind,
        value="" if value is None else str(value),
        placeholder=default,
        options=options,
        list_id=LISTS.get(name, ""),
        required=required,
    )


def _members(hint: Any) -> tuple[Any, ...]:
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return typing.get_args(hint) if union else (hint,)


def _is(hint: Any, kind: type) -> bool:
    return kind in _members(hint)


def _options(hint: Any) -> tuple[str, ...]:
    for member in _members(hint):
        if typing.get_origin(member) is Literal:
            return tuple(map(str, typing.get_args(member)))
    return ()
