"""Strict reader of chip files: the bundled ones and the user's own.

A file names its vendor and its sources, then holds one table per chip (see the head of any bundled file for
the keys and their units):

```toml
vendor = "acme"
[sources]
sheet = { ref = "Acme, data sheet of the A1", date = "2026-11-20" }

[a1]
name = "Acme A1"
kind = "gpu"
family = "simt"
year = 2026
status = "ga"
sources = ["sheet"]
grade = "datasheet"
memory = "48 GB"
memory_kind = "hbm"
memory_GBps = 2000
matrix_tflops = { bf16 = 300 }
own = [{ figures = ["memory_GBps"], grade = "assumed", note = "stacks x pins" }]
```
A table may hold `options = { 64gb = { memory = "64 GB" } }`: variants of the product with other memory, bandwidth or
cores, named as in `a1:64gb`; each lists the figures that differ. A chip of the user's own may be
`like = "h100-sxm5-80gb"`, which alone is enough: every figure that it leaves out is that of the bundled chip, and
`INHERITED` are, whatever it says of them itself. `template` writes such a file.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Set
from dataclasses import replace
from typing import Any, cast, get_args

from chipwise.catalog.chip import Chip, Family, Kind, Link, MatrixUnit, MemoryTier, Provenance, Source, Status
from chipwise.catalog.guards import GUARDS, check
from chipwise.catalog.parsed import parse
from chipwise.catalog.schema import PROVENANCE, Values, known_keys, read_sources
from chipwise.errors import UsageError, listed, nearest, shorten
from chipwise.values import dataclass

USABLE_SHARE = 0.99
"""Share of the label that software can use where no driver reading is known."""

_IDENTITY = (
    "name", "aliases", "kind", "family", "year", "status", "sources", "grade", "note", "own", "exceptions",
    "memory_kind", "accumulate", "like", "options", "only_named",
)  # fmt: skip
_TEXTS = (
    "process", "memory_type", "tier2", "unit", "matrix_unit", "host", "scaleup", "scaleup_topology",
    "array_holds",
)  # fmt: skip
_REMARKS = (
    "serves_only", "generation", "base_generation", "instruction", "runs_as", "stand_in",
)  # fmt: skip
INHERITED = (
    "generation",
    "base_generation",
    "core",
    "software_vendor",
    "instruction",
    "serves_only",
    "runs_as",
    "stand_in",
)
"""Facts about the software of a chip: that of the chip it is like."""

GIVEN = "given by the user"
"""The source of figures for which a chip that is like another names none."""
_UNLENT = frozenset(("name", "aliases", "options", "only_named", "note", "own", "exceptions"))
"""Keys that a chip does not lend to one that is like it."""
WITH = {
    "memory": ("usable_memory_GB",),
    "scaleup_GBps": ("scaleup_pairwise_GBps",),
    "scaleup_domain": ("scaleup_topology",),
}
"""Figures that are not lent where the first is another one, as they follow from it."""
_CLOCKED = frozenset(("matrix_tflops", "units", "macs_per_clock", "boost_MHz", "peak_MHz"))
MIXED = (
    (_CLOCKED, "peak_clock"),
    (_CLOCKED, "boost_clock"),
    (frozenset(("matrix_tflops", "vector_tflops")), "fp64_ratio"),
)
"""Guards that do not hold where some of their figures are the chip's own and some are lent."""
TEMPLATE = (
    "memory", "memory_GBps", "matrix_tflops", "vector_tflops", "cache", "host_GBps", "scaleup_GBps", "scaleup_domain",
    "scaleout_GBps", "tdp_W",
)  # fmt: skip
"""Figures that people change first."""

INSTRUCTIONS = ("wgmma", "tcgen05")
_SIZES = ("memory", "cache", "sram")
_COUNTS = (
    "units", "devices_per_package", "scaleup_domain", "arrays", "array_rows", "array_cols", "array_parts",
)  # fmt: skip
_NUMBERS = (
    "usable_memory_GB", "memory_GBps", "tier2_GB", "tier2_GBps", "macs_per_clock", "boost_MHz", "peak_MHz",
    "sram_per_unit_KiB", "registers_per_unit_KiB", "sram_GBps", "host_GBps", "scaleup_GBps",
    "scaleup_pairwise_GBps", "scaleout_GBps", "staged_GBps", "tdp_W",
)  # fmt: skip
_PEAKS = {
    "matrix_tflops": (
        "fp64", "fp32", "tf32", "fp16", "bf16", "fp16/fp16", "fp8", "fp8/fp16", "int8", "fp6", "fp4", "int4",
    ),
    "vector_tflops": ("fp64", "fp32", "fp16", "bf16"),
}  # fmt: skip
MEASURES = (*_TEXTS, *_SIZES, *_COUNTS, *_NUMBERS)
"""Keys of single figures that a chip may have."""

_KEYS = (*_IDENTITY, *_REMARKS, *_TEXTS, *_SIZES, *_COUNTS, *_NUMBERS, *_PEAKS)
_ID = re.compile(r"[a-z0-9]+(?:[-.+][a-z0-9+]+)*")
_SIZE = re.compile(r"(\d+(?:\.\d+)?) (GB|GiB|MB|MiB|TB|TiB)")
_BYTES = {"MB": 1e6, "GB": 1e9, "TB": 1e12, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40}


def read_chips(text: str, origin: str, bundled: Mapping[str, Entry] | None = None) -> dict[str, Chip]:
    """All chips of a TOML text by id; `origin` names the text in messages. `bundled` are the tables of chips that they
    may be `like`, by id.

    Raises `UsageError`, naming file, chip and key, for text that is no such table: an unknown or missing
    key, a value of the wrong type or out of range, a source that is not listed, a name given twice, or
    figures that violate a guard (see `chipwise.catalog.guards`).
    """
    chips: dict[str, Chip] = {}
    for entry in read_entries(text, origin).values():
        other = _other(entry, bundled or {}) if "like" in entry.table else None
        lent = entry if other is None else _lent(entry, other)
        for name in (entry.name, *entry.options):
            chip = lent.chip(name)
            facts = {} if other is None else {name: getattr(other[1], name) for name in INHERITED}
            chips[name] = chip if other is None else replace(chip, like=other[1].id, **facts)
    names_of(chips, origin)
    return chips


@dataclass(frozen=True)
class Entry:
    """One table of a file of chips, not read yet: its chip under its own name, and its options."""

    name: str
    vendor: str
    table: Mapping[str, Any]
    where: str
    sources: Mapping[str, Source]

    @property
    def options(self) -> tuple[str, ...]:
        """Full names of the options, `a1:64gb`."""
        listed = self.table.get("options", {})
        return tuple(f"{self.name}:{option}" for option in listed) if isinstance(listed, dict) else ()

    def chip(self, name: str) -> Chip:
        """The chip, or the option of that full name. Raises `UsageError` as `read_chips` does."""
        option = name.partition(":")[2]
        table = self.table
        if "options" in table:
            options = known_keys(table["options"], tuple(table["options"]), f"{self.where}, options")
            table = _with_option(table, options, option, self.where)
        found = _Table(table, self.where, self.sources).chip(self.name, self.vendor)
        if option:
            like = found.like or self.name
            found = replace(found, id=name, name=f"{found.name}, {option}", like=like, aliases=())
        check(found, self.where)
        return found


def _with_option(table: Mapping[str, Any], options: Mapping[str, Any], option: str, where: str) -> Mapping[str, Any]:
    """The table of an option: the figures that differ, in place of the product's; of the product itself for ""."""
    changed = known_keys(options.get(option, {}), (*_KEYS,), f"{where}, option '{option}'")
    base = {key: value for key, value in table.items() if key != "options"}
    if "memory" in changed:
        base.pop("usable_memory_GB", None)
    merged: dict[str, Any] = {**base, **changed}
    left = [
        {**entry, "figures": kept}
        for entry in merged.get("own", [])
        if (kept := [f for f in entry["figures"] if f != "usable_memory_GB" or "usable_memory_GB" in merged])
    ]
    return merged | ({"own": left} if left else {})


def read_entries(text: str, origin: str) -> dict[str, Entry]:
    """The tables of a TOML text of chips by id, unread. Raises `UsageError` for a text that is no such file."""
    try:
        document = parse(text)
    except tomllib.TOMLDecodeError as error:
        hint = 'a table for each chip, as in [my-chip] with like = "h100-sxm5-80gb"'
        raise UsageError(f"{origin}: not valid TOML: {error}", hint) from None
    vendor = document.pop("vendor", "")
    lone = [t for n, t in document.items() if n != "sources" and isinstance(t, dict) and "like" not in t]
    if not isinstance(vendor, str) or (lone and not vendor):
        raise UsageError(f"{origin}: no vendor", 'start the file with vendor = "..."')
    sources = read_sources(document.pop("sources", {}), origin)
    if not document:
        raise UsageError(f"{origin}: no chips", "write one table per chip: [my-chip]")
    entries: dict[str, Entry] = {}
    for name, table in document.items():
        where = f"{origin}: chip '{shorten(name, 40)}'"
        if not isinstance(table, dict):
            raise UsageError(f"{origin}: '{shorten(name, 40)}' is not a table", "only vendor stands outside tables")
        if not _ID.fullmatch(name):
            raise UsageError(f"{where}: an id is made of a-z, 0-9, '-', '.' and '+'")
        entries[name] = Entry(name, vendor, table, where, sources)
    return entries


def _other(entry: Entry, bundled: Mapping[str, Entry]) -> tuple[Entry, Chip]:
    """The bundled chip that one is like, with the table of its product."""
    like = Values(entry.where).text(entry.table, "like")
    aliases = {str(alias): e.name for e in bundled.values() for alias in e.table.get("aliases", ())}
    product, _, option = aliases.get(like, like).partition(":")
    found = bundled.get(product)
    if found is None or (option and f"{product}:{option}" not in found.options):
        close = nearest(like, bundled)
        hint = f"did you mean {', '.join(close)}?" if close else listed("chips")
        raise UsageError(f"{entry.where}: like names no chip of the catalogue: '{shorten(like, 40)}'", hint)
    return found, found.chip(f"{product}:{option}" if option else product)


def _lent(entry: Entry, other: tuple[Entry, Chip]) -> Entry:
    """The table with the figures of the chip that it is like, where it has none of its own. What it says itself is from
    its own sources, or given by the user where it names none."""
    product, chip = other
    option = chip.id.partition(":")[2]
    base = _with_option(product.table, product.table.get("options", {}), option, product.where)
    own = dict(entry.table)
    said = {key for key in own if key in (*MEASURES, *_REMARKS, *_PEAKS)}
    others = [first for first in WITH if own.get(first, base.get(first)) != base.get(first)]
    gone = said.union(_UNLENT, *(WITH[first] for first in others))
    kept = {key: value for key, value in base.items() if key not in gone}
    given = {"sources": [GIVEN], "grade": "assumed", **{k: own.pop(k) for k in PROVENANCE if k in own}}
    both = [guard for names, guard in MIXED if 0 < len(said & names) < len(names)]
    excused = known_keys(own.get("exceptions", {}), GUARDS, f"{entry.where}, exceptions")
    mixed = dict.fromkeys(both, f"some figures are those of {chip.id}")
    table = {
        "name": entry.name,
        **kept,
        **own,
        "own": [*_theirs(base, kept), *_own_rows(entry, given, said.difference(_TEXTS, _REMARKS))],
        "exceptions": {**base.get("exceptions", {}), **mixed, **excused},
    }
    sources = {**product.sources, **entry.sources, GIVEN: Source(GIVEN, None)}
    return replace(entry, vendor=entry.vendor or product.vendor, table=table, sources=sources)


def _theirs(base: Mapping[str, Any], kept: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What a table says of sources of figures, of those that are kept."""
    rows = [
        {**row, "figures": [f for f in row["figures"] if f.partition(".")[0] in kept]} for row in base.get("own", [])
    ]
    return [row for row in rows if row["figures"]]


def _own_rows(entry: Entry, given: Mapping[str, Any], said: Set[str]) -> list[dict[str, Any]]:
    """What the user's table says of sources of its figures, and that those of which it says nothing are `given`."""
    reader, inner = Values(entry.where), f"{entry.where}, own"
    listed_ = reader.array(entry.table, "own")
    rows = [{**given, **known_keys(row, ("figures", *PROVENANCE), inner)} for row in listed_]
    stated = {figure for row in rows for figure in reader.texts(row, "figures")}
    figures = [f for key in sorted(said) for f in _figures(key, entry.table[key]) if f not in stated]
    return [*rows, {**given, "figures": figures}] if figures else rows


def _figures(key: str, value: object) -> list[str]:
    """The names of the figures of a key: one, or a peak for each format."""
    return [f"{key}.{dtype}" for dtype in value] if key in _PEAKS and isinstance(value, dict) else [key]


def template(entry: Entry, name: str = "my-chip") -> str:
    """A file of a chip of the user's own that is like a bundled one, as text: it loads as it is."""
    table = {key: entry.table[key] for key in TEMPLATE if key in entry.table}
    lines = [f"{key} = {_toml(value)}" for key, value in table.items()]
    return "\n".join(
        (
            f"# A chip of your own. Its software, and each figure that no line gives, are those of {entry.name}.",
            "# Change the lines that differ and delete the others.",
            "",
            f"[{name}]",
            f'like = "{entry.name}"',
            'name = "My own chip"',
            *lines,
            "",
        )
    )


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_toml_key(k)} = {v:g}' for k, v in value.items())} }}"
    return f'"{value}"' if isinstance(value, str) else f"{value:.10g}"


def _toml_key(key: str) -> str:
    return key if key.isalnum() else f'"{key}"'


def names_of(chips: Mapping[str, Chip], origin: str) -> dict[str, str]:
    """Every id and alias with the id that it stands for.

    Raises `UsageError` for a name that stands for two chips.
    """
    names = {name: name for name in chips}
    for chip in chips.values():
        for alias in chip.aliases:
            if names.setdefault(alias, chip.id) != chip.id or alias in chips:
                raise UsageError(f"{origin}: '{alias}' names both {names[alias]} and {chip.id}")
    return names


class _Table(Values):
    """One chip's table on its way to a `Chip`; carries what its messages need."""

    def __init__(self, table: object, where: str, sources: Mapping[str, Source]) -> None:
        super().__init__(where)
        self.table = known_keys(table, _KEYS, where)
        self.sources = sources
        figures: dict[str, object] = {}
        for key, value in self.table.items():
            if key in _PEAKS:
                for dtype, peak in known_keys(value, _PEAKS[key], f"{where}, {key}").items():
                    figures[f"{key}.{dtype}"] = self.positive(peak, f"{key}.{dtype}")
            elif key in _NUMBERS:
                figures[key] = self.positive(value, key)
            elif key in _COUNTS:
                figures[key] = self.count(self.table, key)
            elif key in _TEXTS or key in _SIZES or key in _REMARKS:
                figures[key] = self.text(self.table, key)
        self.figures = figures

    def chip(self, name: str, vendor: str) -> Chip:
        """The checked value."""
        figures = self.figures
        label = self.size("memory")
        table = self.table
        default = self.provenance(table, self.sources)
        own = self.own(table, figures, self.sources, default)
        usable = self.si("usable_memory_GB", 1e9)
        if usable is None and label is not None:
            usable = USABLE_SHARE * label
            figures["usable_memory_GB"] = float(f"{usable / 1e9:.8g}")
            own["usable_memory_GB"] = Provenance(
                default.sources, "assumed", f"{USABLE_SHARE} of the label, no driver reading"
            )
        kind = self.choice(table, "memory_kind", ("sram", "hbm", "ddr"))
        tiers = [MemoryTier(self.get("memory_type"), cast(Any, kind), label, usable, self.si("memory_GBps", 1e9))]
        if "tier2" in figures:
            size = self.si("tier2_GB", 1e9)
            tiers.append(MemoryTier(self.get("tier2"), "ddr", size, size, self.si("tier2_GBps", 1e9)))
        elif "tier2_GB" in figures or "tier2_GBps" in figures:
            raise self.fail("tier2_GB and tier2_GBps need tier2", "the name of the second memory")
        if self.get("array_holds") not in ("", "weights", "outputs"):
            raise self.fail(f"array_holds must be weights or outputs, not '{shorten(self.get('array_holds'), 40)}'")
        if self.get("instruction") not in ("", *INSTRUCTIONS):
            known = " or ".join(INSTRUCTIONS)
            raise self.fail(f"instruction must be {known}, not '{shorten(self.get('instruction'), 40)}'")
        domain = cast(int, figures.get("scaleup_domain", 1))
        scaleup = None
        if domain > 1 or "scaleup" in figures or "scaleup_GBps" in figures:
            scaleup = Link(
                self.get("scaleup"), self.si("scaleup_GBps", 1e9), self.si("scaleup_pairwise_GBps", 1e9),
                self.get("scaleup_topology"), domain,
            )  # fmt: skip
        year = table.get("year")
        if type(year) is not int or not 2000 <= year <= 2100:
            raise self.fail(f"year must be a whole number such as 2026, not {shorten(repr(year), 40)}")
        base = self.get("base_generation") or self.get("generation") or name
        macs = self.si("macs_per_clock", 1)
        return Chip(
            id=name,
            name=self.text(table, "name"),
            vendor=vendor,
            kind=cast(Kind, self.choice(table, "kind", get_args(Kind))),
            family=cast(Family, self.choice(table, "family", get_args(Family))),
            year=year,
            status=cast(Status, self.choice(table, "status", get_args(Status))),
            process=self.get("process"),
            tiers=tuple(tiers),
            matrix=self.peaks("matrix_tflops"),
            vector=self.peaks("vector_tflops"),
            matrix_unit=MatrixUnit(
                self.get("unit"), cast(int, figures.get("units", 0)), self.get("matrix_unit"),
                macs, self.si("boost_MHz", 1e6), self.si("peak_MHz", 1e6),
                cast(int, figures.get("arrays", 0)), cast(int, figures.get("array_rows", 0)),
                cast(int, figures.get("array_cols", 0)), self.get("array_holds"),
                cast(int, figures.get("array_parts", 1)),
            ),
            cache_bytes=self.size("cache"),
            sram_per_unit_bytes=self.si("sram_per_unit_KiB", 2.0**10),
            registers_per_unit_bytes=self.si("registers_per_unit_KiB", 2.0**10),
            sram_bytes=self.size("sram"),
            sram_bytes_per_s=self.si("sram_GBps", 1e9),
            host=Link(self.get("host"), self.si("host_GBps", 1e9)) if "host" in figures else None,
            scaleup=scaleup,
            scaleout_bytes_per_s=self.si("scaleout_GBps", 1e9),
            staged_bytes_per_s=self.si("staged_GBps", 1e9),
            tdp_w=self.si("tdp_W", 1),
            devices_per_package=cast(int, figures.get("devices_per_package", 1)),
            accumulate_note=self.text(table, "accumulate", ""),
            default=default,
            own=own,
            figures=figures,
            like=self.text(table, "like", ""),
            aliases=self.texts(table, "aliases"),
            exceptions=self.exceptions(),
            serves_only=self.get("serves_only"),
            generation=self.get("generation") or name,
            base_generation=base,
            core=f"{base} {macs:g}" if macs else base,
            software_vendor=vendor,
            instruction=self.get("instruction"),
            runs_as=self.get("runs_as"),
            stand_in=self.get("stand_in"),
            only_named=self.flag(table, "only_named"),
        )  # fmt: skip

    def exceptions(self) -> Mapping[str, str]:
        table = known_keys(self.table.get("exceptions", {}), GUARDS, f"{self.where}, exceptions")
        for guard, reason in table.items():
            if not isinstance(reason, str) or not reason:
                raise self.fail(f"exception '{guard}' needs a reason")
        return table

    def size(self, key: str) -> float | None:
        if key not in self.figures:
            return None
        match = _SIZE.fullmatch(self.get(key))
        if match is None or not float(match[1]):
            raise self.fail(f"{key} must be a size such as '80 GiB', not '{shorten(self.get(key), 40)}'")
        return float(match[1]) * _BYTES[match[2]]

    def get(self, key: str) -> str:
        return cast(str, self.figures.get(key, ""))

    def si(self, key: str, factor: float) -> float | None:
        return cast(float, self.figures[key]) * factor if key in self.figures else None

    def peaks(self, key: str) -> Mapping[str, float]:
        start = len(key) + 1
        return {f[start:]: cast(float, v) * 1e12 for f, v in self.figures.items() if f.startswith(f"{key}.")}
