"""A question as a form: built from the fields of its dataclass, so that a new option appears by itself.

Which fields apply follows the question: the browser shows those whose condition holds, and sends no others. Figures
that people try out have a slider.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, field, fields, replace
from typing import Any, Literal

from chipwise.api.operators import OPERATORS
from chipwise.api.requests.field import homes_of, outer
from chipwise.api.requests.kernel import KernelRequest
from chipwise.api.requests.parts import TOKENS, SampleOptions
from chipwise.catalog.parsed import names
from chipwise.values import dataclass
from chipwise.web.words import label_of

_SAID = names("web/data/form.toml")
AREAS = ("own_chips",)
"""Fields of several lines."""
LISTS = {"model": "models", "chip": "chips", "chips": "several"}


@dataclass(frozen=True, slots=True)
class Slider:
    """The range of a figure on a logarithmic scale, and the unit that its text ends with."""

    low: float
    high: float
    unit: str = ""


SLIDERS = {name: Slider(*said) for name, said in _SAID["sliders"].items()}
"""Figures that people try out: load, lengths, context, targets."""

STARTS: Sequence[Mapping[str, Any]] = _SAID["starts"]
"""Questions that the first page offers: their text, the verb, and its fields."""

ANY = "*"
"""Stands for any value that a field may have but none."""
When = Mapping[str, Sequence[str]]
_OWN_KIND = {f.name: {"kind": ("media",)} for f in fields(SampleOptions) if f.name != "offload"}
WHEN: Mapping[str, When] = {
    **_OWN_KIND,
    **{name.rstrip("_"): {"kind": ("tokens",)} for name in TOKENS},
    **_SAID["when"],
}
"""Under which values of other fields a field applies; `kind` is that of the model: tokens or media. A condition on a
field that a question does not have holds."""


@dataclass(frozen=True, slots=True)
class Control:
    """One field: how it is asked for, and what stands in it."""

    name: str
    label: str
    help: str
    kind: Literal["text", "number", "select", "check", "area"]
    value: str
    placeholder: str
    options: tuple[str, ...]
    list_id: str
    required: bool
    slider: Slider | None = None
    when: When = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FieldGroup:
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
        if name in hidden or (f.metadata.get("file") and f.name not in ("model", "models", "teacher", "chip", "chips")):
            continue
        found[name] = _control(f, name, hints[f.name], values.get(name))
    modelled = "model" in found
    for name, control in found.items():
        when = _operators(name) if request is KernelRequest else WHEN.get(name, {})
        kept = {other: said for other, said in when.items() if other in found or (other == "kind" and modelled)}
        found[name] = replace(control, when=kept)
    return found


def _operators(name: str) -> When:
    """The operators that have an option, where not all do."""
    having = tuple(op for op, operator in OPERATORS.items() if name in {n.rstrip("_") for n in operator.options})
    return {"op": having} if having and len(having) < len(OPERATORS) else {}


def groups(request: type, found: Mapping[str, Control], front: Sequence[str]) -> tuple[FieldGroup, ...]:
    """The fields that are not in front, by the part of the question that brings them."""
    table: dict[str, list[Control]] = {}
    titles = homes_of(request)
    homes = {outer(f): titles[f.name] for f in fields(request)}
    for name, control in found.items():
        if name not in front:
            table.setdefault(homes[name], []).append(control)
    return tuple(FieldGroup(title, tuple(members)) for title, members in table.items())


def _control(f: Any, name: str, hint: Any, value: Any) -> Control:
    required = f.default is MISSING
    default = "" if required or f.default is None else str(f.default)
    options = _options(hint)
    if _is(hint, bool):
        kind: Literal["text", "number", "select", "check", "area"] = "check"
    elif options:
        kind = "select"
    elif name in AREAS:
        kind = "area"
    else:
        kind = "number" if _is(hint, int) or _is(hint, float) else "text"
    return Control(
        name=name,
        label=label_of(name),
        help=str(f.metadata.get("help", "")),
        kind=kind,
        value="" if value is None else str(value),
        placeholder=default,
        options=options,
        list_id=LISTS.get(name, ""),
        required=required,
        slider=SLIDERS.get(name),
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
