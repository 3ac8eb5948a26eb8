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
[runtime.ID.service]    stored, drafts_since: see `Service`
[[runtime.ID.tier]]     from_bytes, chips, except, until (a month), and the figures that differ there
[[runtime.ID.on]]       chips, native, mixed ("int4/fp8": weights/activations), weights_only, kv, half
```
A row of `on` with an empty `native` and no `weights_only` records that the chips are not supported.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any, cast, get_args

from chipwise.catalog.chip import Grade, Provenance
from chipwise.catalog.parsed import parse
from chipwise.catalog.runtime_spec import (
    FIGURES,
    Access,
    Feature,
    KernelRow,
    MemoryBase,
    Offload,
    Policies,
    PolicyTier,
    Rule,
    Runtime,
    Service,
)
from chipwise.catalog.schema import known_keys, read_sources, read_text, read_texts, record
from chipwise.errors import UsageError, shorten
from chipwise.units import parse_quantity

_CHOICES: dict[str, tuple[str, ...]] = {
    "memory_base": get_args(MemoryBase),
    "workspace": ("profiled", "reserved"),
    "kv_reservation": ("full", "growing"),
    "prefill": ("mixed", "alone"),
    "batch": ("continuous", "static"),
    "token_table": ("device", "host"),
}
_COUNTS = ("kv_block_tokens", "max_batched_tokens", "max_sequences", "look_passes", "micro_batch_tokens")
_SHARES = ("memory_share", "kv_reserved_share")
_CITED = ("source", "grade", "note")
_LEFT_OUT = (
    "look_passes",
    "gather_passes",
    "batch",
    "micro_batch_tokens",
    "token_table",
    "backend",
)  # every pass takes what is there; the others are figures of local runtimes alone, and the backend follows the chip


def _figure(where: str, name: str, value: object) -> Any:
    """A policy figure of the type and range that its name asks for."""
    if name in _CHOICES:
        return read_text(where, value, _CHOICES[name])
    if name == "kv_format":
        return read_text(where, value)
    if name.endswith("_bytes"):
        return parse_quantity(read_text(where, value), "B", where)
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
        top = known_keys(raw, ("kernel",), where, ("formats", "sets", "group", "source", "preset", "runtime"))
        self.formats = {name: read_text(f"formats.{name}", kind) for name, kind in top["formats"].items()}
        self.sets = {
            name: read_texts(f"sets.{name}", items, self.formats) for name, items in top["sets"].items()
        }
        self.groups = {name: read_texts(f"group.{name}", chips) for name, chips in top["group"].items()}
        self.sources = read_sources(top["source"], where)
        self.listed = frozenset(chip for chips in self.groups.values() for chip in chips)
        self.chip_names = {**dict.fromkeys(self.groups), **dict.fromkeys(self.listed)}
        assumed = Provenance((), "assumed")
        self.presets = {
            name: self._figures(f"preset.{name}", known_keys(table, FIGURES, f"preset.{name}"), assumed)
            for name, table in top["preset"].items()
        }
        self.names = frozenset(top["runtime"])
        self.runtimes = {name: self._runtime(name, table) for name, table in top["runtime"].items()}
        self.kernels = tuple(self._kernel(f"kernel[{i}]", row) for i, row in enumerate(top.get("kernel", [])))

    def _cited(self, where: str, table: Mapping[str, Any], fallback: Provenance | None = None) -> Provenance:
        """The provenance that a table states, what it leaves out being taken from `fallback`."""
        sources = fallback.sources if fallback else ()
        grade: Grade = fallback.grade if fallback else "assumed"
        if "source" in table:
            names = table["source"] if isinstance(table["source"], list) else [table["source"]]
            sources = tuple(self.sources[n] for n in read_texts(f"{where}.source", names, self.sources))
        if "grade" in table:
            grade = cast(Grade, read_text(f"{where}.grade", table["grade"], get_args(Grade)))
        if grade == "assumed" and "source" not in table:
            sources = ()
        return Provenance(sources, grade, read_text(f"{where}.note", table.get("note", "")))

    def _chips(self, where: str, names: object) -> frozenset[str]:
        """Ids of the groups and chips named."""
        found = read_texts(where, names, self.chip_names)
        return frozenset(chip for name in found for chip in self.groups.get(name, [name]))

    def _formats(self, where: str, names: object) -> list[str]:
        """Formats named, `@set` standing for all formats of a set."""
        found: list[str] = []
        for name in read_texts(where, names):
            if name.startswith("@"):
                found += self.sets[read_text(where, name[1:], self.sets)]
            else:
                found.append(read_text(where, name, self.formats))
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
                own[name] = self._cited(spot, known_keys(value, _CITED, spot, ("is",)), default)
                value = value["is"]
            values[name] = _figure(spot, name, value)
        return values, own

    def _tier(self, where: str, entry: object, default: Provenance) -> PolicyTier:
        table = known_keys(entry, ("from_bytes", "chips", "except", "until", *_CITED, *FIGURES), where)
        cited = self._cited(where, table, default)
        figures = {name: value for name, value in table.items() if name in FIGURES}
        changes, own = self._figures(where, figures, cited)
        bound = parse_quantity(read_text(f"{where}.from_bytes", table.get("from_bytes", "0 B")), "B", where)
        chips, excluded = (self._chips(f"{where}.{key}", table.get(key, [])) for key in ("chips", "except"))
        until = read_text(f"{where}.until", table.get("until", ""))
        return PolicyTier(bound, chips, excluded, changes, own, until)

    def _rule(self, where: str, entry: object, default: Provenance) -> Rule:
        table = known_keys(
            entry, ("mixed", "weights_only", "kv", "half", *_CITED), where, ("chips", "native")
        )
        native = {(name, self.formats[name]) for name in self._formats(f"{where}.native", table["native"])}
        for pair in read_texts(f"{where}.mixed", table.get("mixed", [])):
            weight, _, act = pair.partition("/")
            act = read_text(f"{where}.mixed", act, self.formats.values())
            native.add((read_text(f"{where}.mixed", weight, self.formats), act))
        rule = Rule(
            chips=self._chips(f"{where}.chips", table["chips"]),
            native=frozenset(native),
            weights_only=frozenset(self._formats(f"{where}.weights_only", table.get("weights_only", []))),
            kv=frozenset(self._formats(f"{where}.kv", table.get("kv", ["bf16", "fp16"]))),
            half=read_text(f"{where}.half", table.get("half", "bf16"), self.formats),
            provenance=self._cited(where, table, default),
        )
        if not rule.runs and not rule.provenance.note:
            raise UsageError(
                f"{where}: a row without formats records that chips are not supported", "say why in note"
            )
        return rule

    def _offload(self, where: str, entry: object, default: Provenance) -> Offload:
        table = entry if isinstance(entry, dict) else {}
        figures = {k: v for k, v in table.items() if k not in _CITED} if table else entry
        return record(Offload, figures, where, provenance=self._cited(where, table, default))

    def _service(self, where: str, entry: object, default: Provenance) -> Service:
        table = known_keys(entry, (*_CITED, "stored", "drafts_since"), where)
        return Service(
            self._cited(where, table, default),
            read_text(f"{where}.stored", table["stored"], self.formats) if "stored" in table else "",
            read_text(f"{where}.drafts_since", table.get("drafts_since", "")),
        )

    def _kernel(self, where: str, entry: object) -> KernelRow:
        row = record(KernelRow, entry, where)
        read_texts(f"{where}.runtimes", list(row.runtimes), self.names)
        return row

    def _policies(
        self, where: str, entry: object, default: Provenance
    ) -> tuple[dict[str, Any], dict[str, Provenance]]:
        """All policy figures: those of the preset that `like` names, then the table's own."""
        table = dict(known_keys(entry, ("like", *FIGURES), where))
        like = table.pop("like", None)
        values, own = self._figures(where, table, default)
        if like is not None:
            shared, shared_own = self.presets[read_text(f"{where}.like", like, self.presets)]
            values, own = shared | values, shared_own | own
        known_keys(values, _LEFT_OUT[:-1], where, [f for f in FIGURES if f not in _LEFT_OUT])
        return values, own

    def _runtime(self, name: str, entry: object) -> Runtime:
        where = f"runtime.{name}"
        lists = ("architectures", "features")
        needed = ("name", "version", "access", "source", "grade", "policies", "on", *lists)
        others = ("kernels_of", "latent_as")
        table = known_keys(
            entry,
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
                "service",
            ),
            where,
            needed,
        )
        like = {key: read_text(f"{where}.{key}", table[key], self.names) for key in others if key in table}
        default = self._cited(where, table)
        values, own = self._policies(f"{where}.policies", table["policies"], default)
        kernels = dict(table.get("backends", {}))
        own["backend"] = self._cited(
            f"{where}.backends", {k: kernels.pop(k) for k in _CITED if k in kernels}, default
        )
        named: dict[str, frozenset[str]] = {}
        for key in lists:
            part = known_keys(table[key], _CITED, f"{where}.{key}", ("is",))
            choices = get_args(Feature) if key == "features" else None
            named[key] = frozenset(read_texts(f"{where}.{key}", part["is"], choices))
            own[key] = self._cited(f"{where}.{key}", part, default)
        return Runtime(
            id=name,
            name=read_text(f"{where}.name", table["name"]),
            version=read_text(f"{where}.version", table["version"]),
            access=cast(Access, read_text(f"{where}.access", table["access"], get_args(Access))),
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
            converts=frozenset(read_texts(f"{where}.converts", table.get("converts", []), self.formats)),
            made_for=frozenset(
                read_texts(f"{where}.made_for", table.get("made_for", []), self.formats.values())
            ),
            narrow_cache=frozenset(
                read_texts(f"{where}.narrow_cache", table.get("narrow_cache", []), self.formats)
            ),
            also=tuple(read_texts(f"{where}.also", table.get("also", []))),
            backends={k: tuple(read_texts(f"{where}.backends.{k}", v)) for k, v in kernels.items()},
            stores={k: read_text(f"{where}.stores.{k}", v) for k, v in table.get("stores", {}).items()},
            published_as=read_text(f"{where}.published_as", table.get("published_as", "")),
            offload=self._offload(f"{where}.offload", table["offload"], default)
            if "offload" in table
            else None,
            service=self._service(f"{where}.service", table["service"], default)
            if "service" in table
            else None,
            **like,
        )
