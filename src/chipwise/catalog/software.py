"""Software: what every piece of it says of itself, and the one reader of `data/software.toml`.

A row is one piece of software; what it can do are tables of the row, each read by the class that describes it:
`serves` (`runtime_spec.Runtime`), `networks` (`media_runtime.MediaRuntime`), `trains` (`trainer.Trainer`),
`samples` (`runtime.Sampler`). Who needs software asks for the one capability, as in `all_software(Trainer)`.

```
[formats]               name -> class; [sets] stand for "@name" in lists of formats
[group]                 chips that software treats alike
[source]                name -> ref, and date unless it is general knowledge
[preset.NAME]           policy figures that runtimes share: `like = "NAME"`; assumed unless they say otherwise
[release]               tool -> its versions with their months
[order]                 capability -> ids that stand before the others, which stand as their rows do
[[kernel]]              see `runtime_spec.KernelRow`
[software.ID]           name, version, also, kernels_of, ended, source, grade, note: see `Software`
[software.ID.serves], [software.ID.networks], [software.ID.trains], [software.ID.samples]
                        the fields of its class; a key of all software is said anew for the capability alone, `as` its
                        id there; `like` the software whose capability it is but for what it says
```
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeVar, cast, get_args

from chipwise.catalog.chip import Grade, Provenance, Source
from chipwise.catalog.parsed import parse
from chipwise.catalog.schema import known_keys, read_sources, read_text, read_texts, record
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.errors import UsageError
from chipwise.values import dataclass

TABLE = "catalog/data/software.toml"
CAPABILITIES = ("serves", "networks", "trains", "samples")
CITED = ("source", "grade", "note")
COMMON = ("name", "version", "also", "kernels_of", "ended")
S = TypeVar("S", bound="Software")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Software:
    """A piece of software, asked for one capability.

    `also` are other names of it, and of software that it stands in for; `kernels_of` is the runtime whose measured
    kernels stand for its own, "" where it has its own; `default` says where what is known of it was read, unless a
    figure has a source of its own; `note` what has to be said of it. `named`: it is taken only where it is asked for by
    name, as another's kernels in a shell of its own are. `ended`: who said that its development is over, and when;
    None: it goes on, or nobody said.
    """

    capability: ClassVar[str]
    own_keys: ClassVar[tuple[str, ...]] = ()
    """Keys that `like` does not take over."""

    id: str
    name: str
    default: Provenance
    version: str = ""
    also: tuple[str, ...] = ()
    kernels_of: str = ""
    note: str = ""
    named: bool = False
    ended: Source | None = None

    @classmethod
    def read(cls, table: SoftwareTable, where: str, entry: Mapping[str, Any], common: Mapping[str, Any]) -> Self:
        """The software of one table of a capability, with what was read of its row. Raises `UsageError`."""
        return record(cls, entry, where, **common)


class SoftwareTable:
    """A text of software; every mistake is a `UsageError` that says where it is."""

    def __init__(self, text: str, where: str) -> None:
        try:
            raw: dict[str, Any] = parse(text)
        except tomllib.TOMLDecodeError as error:
            raise UsageError(f"{where}: not TOML: {error}") from error
        shared = ("kernel", "release", "order", "source", "preset", "formats", "sets", "group")
        top = {**{key: {} for key in shared[1:]}, **known_keys(raw, shared, where, ("software",))}
        self.formats = {name: read_text(f"formats.{name}", kind) for name, kind in top["formats"].items()}
        self.sets = {name: read_texts(f"sets.{name}", items, self.formats) for name, items in top["sets"].items()}
        self.groups = {name: read_texts(f"group.{name}", chips) for name, chips in top["group"].items()}
        self.listed = frozenset(chip for chips in self.groups.values() for chip in chips)
        self.sources = read_sources(top["source"], where)
        self.presets, self.kernels = top["preset"], top.get("kernel", [])
        self.releases: Mapping[str, Mapping[str, str]] = top["release"]
        self.rows: Mapping[str, Mapping[str, Any]] = {
            name: known_keys(row, (*COMMON, *CITED, *CAPABILITIES), f"software.{name}")
            for name, row in top["software"].items()
        }
        self.order = {
            name: read_texts(f"order.{name}", ids, self.names(name))
            for name, ids in known_keys(top["order"], CAPABILITIES, "order").items()
        }

    def able(self, kind: type[S]) -> Mapping[str, S]:
        """All software with a capability by id, the better default before the worse."""
        made = (self._software(kind, name, self.rows[name]) for name in self._able(kind.capability))
        found = {s.id: s for s in made}
        first = {name: found[name] for name in self.order.get(kind.capability, ())}
        return MappingProxyType(first | found)

    def names(self, capability: str) -> list[str]:
        """Ids of the software with a capability, as rows stand."""
        return [self.rows[name][capability].get("as", name) for name in self._able(capability)]

    def _able(self, capability: str) -> list[str]:
        return [name for name, row in self.rows.items() if capability in row]

    def _software(self, kind: type[S], name: str, row: Mapping[str, Any]) -> S:
        where = f"software.{name}.{kind.capability}"
        said = known_keys(row[kind.capability], row[kind.capability], where)  # that it is a table
        entry, shared = {**said}, {key: row[key] for key in (*COMMON, *CITED) if key in row}
        if "like" in entry:
            entry, shared = self._liked(kind, where, entry, shared)
        shared |= {key: entry.pop(key) for key in (*COMMON, *CITED) if key in entry}
        known_keys(shared, shared, f"software.{name}", ("name", "source"))
        default = self.cited(f"software.{name}", shared)
        common = {
            "id": read_text(f"{where}.as", entry.pop("as", name)),
            "default": default,
            "note": default.note,
            **{k: self._common(f"software.{name}.{k}", k, v) for k, v in shared.items() if k not in CITED},
        }
        return kind.read(self, where, entry, common)

    def _common(self, where: str, key: str, value: object) -> tuple[str, ...] | str | Source:
        """What is said of a piece of software, whatever it is asked for."""
        if key == "also":
            return tuple(read_texts(where, value))
        if key == "ended":
            return record(Source, value, where)
        return read_text(where, value, self.names("serves") if key == "kernels_of" else None)

    def _liked(
        self, kind: type[S], where: str, entry: dict[str, Any], shared: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """An entry, and what is said of its software, with what they take of the row that the entry is like."""
        rows = dict(zip(self.names(kind.capability), self._able(kind.capability), strict=True))
        other = self.rows[rows[read_text(f"{where}.like", entry.pop("like"), rows)]]
        left = ("like", "as", *COMMON, *CITED, *kind.own_keys)
        taken = {k: v for k, v in other[kind.capability].items() if k not in left}
        parts = {k: {**taken[k], **v} for k, v in entry.items() if isinstance(v, dict) and k in taken}
        return taken | entry | parts, {key: other[key] for key in ("kernels_of",) if key in other} | shared

    def cited(self, where: str, table: Mapping[str, Any], fallback: Provenance | None = None) -> Provenance:
        """The provenance that a table states, what it leaves out being taken from `fallback`."""
        sources = fallback.sources if fallback else ()
        grade: Grade = fallback.grade if fallback else "datasheet"
        if isinstance(own := table.get("source"), dict):
            sources = (record(Source, own, f"{where}.source"),)
        elif own is not None:
            names = read_texts(f"{where}.source", own if isinstance(own, list) else [own], self.sources)
            sources = tuple(self.sources[n] for n in names)
        if "grade" in table:
            grade = cast(Grade, read_text(f"{where}.grade", table["grade"], get_args(Grade)))
        if grade == "assumed" and own is None:
            sources = ()
        return Provenance(sources, grade, read_text(f"{where}.note", table.get("note", "")))

    def part(self, kind: type[T], where: str, entry: object, default: Provenance, **given: Any) -> T:
        """A record whose table may say where it was read."""
        table = known_keys(entry, entry if isinstance(entry, dict) else (), where)
        figures = {k: v for k, v in table.items() if k not in CITED}
        return record(kind, figures, where, provenance=self.cited(where, table, default), **given)

    def chips(self, where: str, names: object) -> frozenset[str]:
        """Ids of the groups and chips named."""
        found = read_texts(where, names, {**dict.fromkeys(self.groups), **dict.fromkeys(self.listed)})
        return frozenset(chip for name in found for chip in self.groups.get(name, [name]))

    def formats_of(self, where: str, names: object) -> list[str]:
        """Formats named, `@set` standing for all formats of a set."""
        found: list[str] = []
        for name in read_texts(where, names):
            if name.startswith("@"):
                found += self.sets[read_text(where, name[1:], self.sets)]
            else:
                found.append(read_text(where, name, self.formats))
        return found


@per_snapshot
def shipped() -> SoftwareTable:
    """The bundled table. Raises `UsageError` for one that is wrong."""
    return SoftwareTable(shipped_text(TABLE), "software.toml")


@per_snapshot
def all_software(kind: type[S]) -> Mapping[str, S]:
    """All bundled software with a capability by id, the better default for a chip before the worse."""
    return shipped().able(kind)
