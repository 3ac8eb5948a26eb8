"""Reads runtimes from TOML: strict, so that a mistyped key or a format that does not exist is an error.

```
[formats]               name -> class; [sets] stand for "@name" in lists of formats
[group]                 chips that software treats alike
[source]                name -> ref, and date unless it is general knowledge
[preset.NAME]           policy figures that runtimes share: `like = "NAME"`; assumed unless they say otherwise
[[kernel]]              operator, library, and runtimes, generations, types, until (left out = all): the first that fits
[runtime.ID]            name, version, access, source, grade, note
                        kernels_of, latent_as, converts, made_for, published_as, also, narrow_cache:
                        see `Runtime`
[runtime.ID.backends]   kind of chips (generation, family, vendor, any) -> kernels of its own, the default first; source
[runtime.ID.stores]     label of a precision -> that of the file which the runtime has of it
[runtime.ID.policies]   figure = value, or { is = value, source = ..., grade = ..., note = ... }
[runtime.ID.offload]    holds, streams_from, micro_batch, second_socket, unequal, matrix_units,
                        alone: see `Offload`
[[runtime.ID.tier]]     from_bytes, chips, except, and the figures that differ there
[[runtime.ID.on]]       chips, native, mixed ("int4/fp8": weights/activations), weights_only, kv, half
```
A row of `on` with an empty `native` and no `weights_only` records that the chips are not supported.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from typing import Any, cast, get_args

from chipwise.catalog.chip import Grade, Provenance, Source
from chipwise.catalog.parsed import parse
from chipwise.catalog.runtime_spec import (
    FIGURES,
    Access,
    Feature,
    KernelRow,
    MemoryBase,
    Offload,
    Operator,
    Policies,
    PolicyTier,
    Rule,
    Runtime,
)
from chipwise.errors import UsageError, nearest, shorten
from chipwise.units import parse_quantity

__all__ = ["RuntimeReader"]

_CHOICES: dict[str, tuple[str, ...]] = {
    "memory_base": get_args(MemoryBase),
    "workspace": ("profiled", "reserved"),
    "kv_reservation": ("full", "growing"),
    "prefill": ("mixed", "alone"),
    "token_table": ("device", "host"),
}
_COUNTS = ("kv_block_tokens", "max_batched_tokens", "max_sequences", "look_passes", "micro_batch_tokens")
_SHARES = ("memory_share", "kv_reserved_share")
_CITED = ("source", "grade", "note")
_OFFLOAD: dict[str, Any] = {
    "streams_from": 0, "micro_batch": 512, "second_socket": 0.0, "unequal": False,
    "matrix_units": True, "alone": True,
}  # fmt: skip
_LEFT_OUT = (
    "look_passes",
    "gather_passes",
    "micro_batch_tokens",
    "token_table",
    "backend",
)  # every pass takes what is there; the others are figures of local runtimes alone, and the backend follows the chip


def _keys(
    where: str, table: object, required: Collection[str], optional: Collection[str] = ()
) -> dict[str, Any]:
    """`table` itself, once it is a table with the required keys and no unknown ones."""
    if not isinstance(table, dict):
        raise UsageError(f"{where}: expected a table, found {shorten(repr(table))}")
    for key in table:
        if key not in required and key not in optional:
            known = [*required, *optional]
            close = nearest(key, known)
            hint = f"did you mean {', '.join(close)}?" if close else f"known: {', '.join(known)}"
            raise UsageError(f"{where}: unknown key '{shorten(key)}'", hint)
    for key in required:
        if key not in table:
            raise UsageError(f"{where}: key '{key}' is missing")
    return table


def _text(where: str, value: object, choices: Collection[str] | None = None) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{where}: expected text, found {shorten(repr(value))}")
    if choices is not None and value not in choices:
        close = nearest(value, choices)
        hint = f"did you mean {', '.join(close)}?" if close else f"one of {', '.join(choices)}"
        raise UsageError(f"{where}: unknown value '{shorten(value)}'", hint)
    return value


def _texts(where: str, value: object, choices: Collection[str] | None = None) -> list[str]:
    if not isinstance(value, list):
        raise UsageError(f"{where}: expected a list, found {shorten(repr(value))}")
    return [_text(where, item, choices) for item in value]


def _figure(where: str, name: str, value: object) -> Any:
    """A policy figure of the type and range that its name asks for."""
    if name in _CHOICES:
        return _text(where, value, _CHOICES[name])
    if name == "kv_format":
        return _text(where, value)
    if name.endswith("_bytes"):
        return parse_quantity(_text(where, value), "B", where)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UsageError(f"{where}: expected a number, found {shorten(repr(value))}")
    if name in _COUNTS and (not isinstance(value, int) or value < 1):
        raise UsageError(f"{where}: {value} is not a count", "a whole number of at least 1")
    if name in _SHARES and not 0 < value <= 1:
        raise UsageError(f"{where}: {value} is no share", "more than 0 and at most 1")
    return value


class RuntimeReader:
    """Turns the tables of one text into runtimes; every mistake is a `UsageError` that says where it is."""

    def __init__(self, text: str, where: str) -> None:
        try:
            raw: dict[str, Any] = parse(text)
        except tomllib.TOMLDecodeError as error:
            raise UsageError(f"{where}: not TOML: {error}") from error
        top = _keys(where, raw, ("formats", "sets", "group", "source", "preset", "runtime"), ("kernel",))
        self.formats = {name: _text(f"formats.{name}", kind) for name, kind in top["formats"].items()}
        self.sets = {name: _texts(f"sets.{name}", items, self.formats) for name, items in top["sets"].items()}
        self.groups = {name: _texts(f"group.{name}", chips) for name, chips in top["group"].items()}
        self.sources = {name: self._source(name, entry) for name, entry in top["source"].items()}
        self.listed = frozenset(chip for chips in self.groups.values() for chip in chips)
        self.chip_names = {**dict.fromkeys(self.groups), **dict.fromkeys(self.listed)}
        assumed = Provenance((), "assumed")
        self.presets = {
            name: self._figures(f"preset.{name}", _keys(f"preset.{name}", table, (), FIGURES), assumed)
            for name, table in top["preset"].items()
        }
        self.names = frozenset(top["runtime"])
        self.runtimes = {name: self._runtime(name, table) for name, table in top["runtime"].items()}
        self.kernels = tuple(self._kernel(f"kernel[{i}]", row) for i, row in enumerate(top.get("kernel", [])))

    def _source(self, name: str, entry: object) -> Source:
        where = f"source.{name}"
        table = _keys(where, entry, ("ref",), ("date",))
        date = _text(f"{where}.date", table["date"]) if "date" in table else None
        return Source(_text(f"{where}.ref", table["ref"]), date)

    def _cited(self, where: str, table: Mapping[str, Any], fallback: Provenance | None = None) -> Provenance:
        """The provenance that a table states, what it leaves out being taken from `fallback`."""
        sources = fallback.sources if fallback else ()
        grade: Grade = fallback.grade if fallback else "assumed"
        if "source" in table:
            names = table["source"] if isinstance(table["source"], list) else [table["source"]]
            sources = tuple(self.sources[n] for n in _texts(f"{where}.source", names, self.sources))
        if "grade" in table:
            grade = cast(Grade, _text(f"{where}.grade", table["grade"], get_args(Grade)))
        if grade == "assumed" and "source" not in table:
            sources = ()
        return Provenance(sources, grade, _text(f"{where}.note", table.get("note", "")))

    def _chips(self, where: str, names: object) -> frozenset[str]:
        """Ids of the groups and chips named."""
        found = _texts(where, names, self.chip_names)
        return frozenset(chip for name in found for chip in self.groups.get(name, [name]))

    def _formats(self, where: str, names: object) -> list[str]:
        """Formats named, `@set` standing for all formats of a set."""
        found: list[str] = []
        for name in _texts(where, names):
            if name.startswith("@"):
                found += self.sets[_text(where, name[1:], self.sets)]
            else:
                found.append(_text(where, name, self.formats))
        return found

    def _figures(
        self, where: str, table: Mapping[str, Any], default: Provenance
    ) -> tuple[dict[str, Any], dict[str, Provenance]]:
        """Policy figures and the provenance of each: its own for `{ is = value, source = ..., ... }`."""
        values: dict[str, Any] = {}
        own: dict[str, Provenance] = {}
        for name, value in table.items():
            spot, own[name] = f"{where}.{name}", default
            if isinstance(value, dict):
                own[name] = self._cited(spot, _keys(spot, value, ("is",), _CITED), default)
                value = value["is"]
            values[name] = _figure(spot, name, value)
        return values, own

    def _tier(self, where: str, entry: object, default: Provenance) -> PolicyTier:
        table = _keys(where, entry, (), ("from_bytes", "chips", "except", *_CITED, *FIGURES))
        cited = self._cited(where, table, default)
        figures = {name: value for name, value in table.items() if name in FIGURES}
        changes, own = self._figures(where, figures, cited)
        bound = parse_quantity(_text(f"{where}.from_bytes", table.get("from_bytes", "0 B")), "B", where)
        chips, excluded = (self._chips(f"{where}.{key}", table.get(key, [])) for key in ("chips", "except"))
        return PolicyTier(bound, chips, excluded, changes, own)

    def _rule(self, where: str, entry: object, default: Provenance) -> Rule:
        table = _keys(where, entry, ("chips", "native"), ("mixed", "weights_only", "kv", "half", *_CITED))
        native = {(name, self.formats[name]) for name in self._formats(f"{where}.native", table["native"])}
        for pair in _texts(f"{where}.mixed", table.get("mixed", [])):
            weight, _, act = pair.partition("/")
            act = _text(f"{where}.mixed", act, self.formats.values())
            native.add((_text(f"{where}.mixed", weight, self.formats), act))
        rule = Rule(
            chips=self._chips(f"{where}.chips", table["chips"]),
            native=frozenset(native),
            weights_only=frozenset(self._formats(f"{where}.weights_only", table.get("weights_only", []))),
            kv=frozenset(self._formats(f"{where}.kv", table.get("kv", ["bf16", "fp16"]))),
            half=_text(f"{where}.half", table.get("half", "bf16"), self.formats),
            provenance=self._cited(where, table, default),
        )
        if not rule.runs and not rule.provenance.note:
            raise UsageError(
                f"{where}: a row without formats records that chips are not supported", "say why in note"
            )
        return rule

    def _offload(self, where: str, entry: object, default: Provenance) -> Offload:
        table = _keys(where, entry, ("holds",), (*_OFFLOAD, *_CITED))
        figures = _OFFLOAD | {name: value for name, value in table.items() if name in _OFFLOAD}
        for name, value in figures.items():
            kind = type(_OFFLOAD[name])
            if not isinstance(value, kind) or value < 0:
                raise UsageError(f"{where}.{name}: expected {kind.__name__}, found {shorten(repr(value))}")
        holds = frozenset(_texts(f"{where}.holds", table["holds"], ("layers", "experts")))
        return Offload(holds, provenance=self._cited(where, table, default), **figures)

    def _kernel(self, where: str, entry: object) -> KernelRow:
        table = _keys(where, entry, ("operator", "library"), ("runtimes", "generations", "types", "until"))
        return KernelRow(
            cast(Operator, _text(f"{where}.operator", table["operator"], get_args(Operator))),
            _text(f"{where}.library", table["library"]),
            frozenset(_texts(f"{where}.runtimes", table.get("runtimes", []), self.names)),
            frozenset(_texts(f"{where}.generations", table.get("generations", []))),
            frozenset(_texts(f"{where}.types", table.get("types", []))),
            _text(f"{where}.until", table["until"]) if "until" in table else "",
        )

    def _policies(
        self, where: str, entry: object, default: Provenance
    ) -> tuple[dict[str, Any], dict[str, Provenance]]:
        """All policy figures: those of the preset that `like` names, then the table's own."""
        table = dict(_keys(where, entry, (), ("like", *FIGURES)))
        like = table.pop("like", None)
        values, own = self._figures(where, table, default)
        if like is not None:
            shared, shared_own = self.presets[_text(f"{where}.like", like, self.presets)]
            values, own = shared | values, shared_own | own
        _keys(where, values, [f for f in FIGURES if f not in _LEFT_OUT], _LEFT_OUT[:-1])
        return values, own

    def _runtime(self, name: str, entry: object) -> Runtime:
        where = f"runtime.{name}"
        lists = ("architectures", "features")
        needed = ("name", "version", "access", "source", "grade", "policies", "on", *lists)
        others = ("kernels_of", "latent_as")
        table = _keys(
            where,
            entry,
            needed,
            (
                "note",
                "tier",
                "backends",
                "stores",
                *others,
                "converts",
                "made_for",
                "published_as",
                "also",
                "narrow_cache",
                "offload",
            ),
        )
        like = {key: _text(f"{where}.{key}", table[key], self.names) for key in others if key in table}
        default = self._cited(where, table)
        values, own = self._policies(f"{where}.policies", table["policies"], default)
        kernels = dict(table.get("backends", {}))
        own["backend"] = self._cited(
            f"{where}.backends", {k: kernels.pop(k) for k in _CITED if k in kernels}, default
        )
        named: dict[str, frozenset[str]] = {}
        for key in lists:
            part = _keys(f"{where}.{key}", table[key], ("is",), _CITED)
            choices = get_args(Feature) if key == "features" else None
            named[key] = frozenset(_texts(f"{where}.{key}", part["is"], choices))
            own[key] = self._cited(f"{where}.{key}", part, default)
        return Runtime(
            id=name,
            name=_text(f"{where}.name", table["name"]),
            version=_text(f"{where}.version", table["version"]),
            access=cast(Access, _text(f"{where}.access", table["access"], get_args(Access))),
            note=default.note,
            policies=Policies(**values),
            tiers=tuple(
                self._tier(f"{where}.tier[{i}]", row, default) for i, row in enumerate(table.get("tier", []))
            ),
            rules=tuple(self._rule(f"{where}.on[{i}]", row, default) for i, row in enumerate(table["on"])),
            architectures=named["architectures"],
            features=named["features"],
            default=default,
            own=own,
            formats=self.formats,
            listed_chips=self.listed,
            converts=frozenset(_texts(f"{where}.converts", table.get("converts", []), self.formats)),
            made_for=frozenset(_texts(f"{where}.made_for", table.get("made_for", []), self.formats.values())),
            narrow_cache=frozenset(
                _texts(f"{where}.narrow_cache", table.get("narrow_cache", []), self.formats)
            ),
            also=tuple(_texts(f"{where}.also", table.get("also", []))),
            backends={k: tuple(_texts(f"{where}.backends.{k}", v)) for k, v in kernels.items()},
            stores={k: _text(f"{where}.stores.{k}", v) for k, v in table.get("stores", {}).items()},
            published_as=_text(f"{where}.published_as", table.get("published_as", "")),
            offload=self._offload(f"{where}.offload", table["offload"], default)
            if "offload" in table
            else None,
            **like,
        )
