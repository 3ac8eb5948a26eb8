"""What the catalogue holds, said once of each: chips, models, systems, runtimes, offers, with their sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, fields
from datetime import date
from typing import ClassVar

from chipwise.catalog.chip import Chip, Provenance
from chipwise.catalog.chip_reader import MEASURES
from chipwise.catalog.media_runtime import MediaRuntime
from chipwise.catalog.offer import Offer
from chipwise.catalog.preferences import preferences
from chipwise.catalog.price import PriceRange
from chipwise.catalog.runtime_spec import Policies, Rule, Runtime
from chipwise.catalog.snapshot import today
from chipwise.catalog.system_spec import System
from chipwise.catalog.token_prices import ApiPrice
from chipwise.evidence.item import Item
from chipwise.report.answer import Answer
from chipwise.report.evidence import items_view
from chipwise.report.records import SCHEMA_VERSION, ModelRecord, NetworkRecord
from chipwise.report.table import DASH, Column, Table
from chipwise.units import format_bytes, format_count, format_number, parse_quantity
from chipwise.values import dataclass

EXPONENTS = 1e6  # from here on a plain `g` would write them
SHAPES = 24  # of slices that are listed


@dataclass(frozen=True, slots=True)
class FigureRecord:
    """A figure of the catalogue as its file has it, in the unit of its name, with where it was read and when.

    `grade`: measured, datasheet, secondary (a page about it), derived, assumed or recalled.
    """

    name: str
    value: str
    grade: str
    sources: tuple[str, ...]
    note: str


@dataclass(frozen=True, slots=True)
class ChipRecord:
    """A chip in SI units: usable bytes of its main memory, dense matrix peaks by data type, its scale-up link (one
    direction, all ports) and how many chips that joins, dollars per hour over all offers on demand. None = not
    published. `figures` is filled where the chip was asked for by name."""

    id: str
    name: str
    vendor: str
    kind: str
    family: str
    year: int
    status: str
    memory: str
    memory_bytes: float | None
    memory_bytes_per_s: float | None
    peak_flops_per_s: dict[str, float]
    link_bytes_per_s: float | None
    joins: int
    tdp_w: float | None
    devices: int
    usd_per_h_low: float | None
    usd_per_h_high: float | None
    grade: str
    figures: tuple[FigureRecord, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class ChipsReport(Answer[ChipRecord]):
    """The answer to `chips`; `found` counts those that were left out by the limit too."""

    rows: ClassVar[str] = "chips"

    chips: tuple[ChipRecord, ...]
    found: int
    schema_version: str = field(default=SCHEMA_VERSION)

    def tables(self, command: str = "", *, everything: bool = False) -> tuple[Table, ...]:
        """A line per chip."""
        return (Table.of(self.chips, CHIPS),)


@dataclass(frozen=True, slots=True, repr=False)
class ModelsReport(Answer[ModelRecord]):
    """The answer to `models`: language models, and networks that generate no tokens; `found` counts those that were
    left out by the limit too."""

    rows: ClassVar[str] = "models"

    models: tuple[ModelRecord, ...]
    found: int
    schema_version: str = field(default=SCHEMA_VERSION)
    networks: tuple[NetworkRecord, ...] = ()

    def tables(self, command: str = "", *, everything: bool = False) -> tuple[Table, ...]:
        """A line per model, and per network without tokens."""
        return known_views(self)


@dataclass(frozen=True, slots=True, repr=False)
class SystemsReport(Answer[System]):
    """The answer to `systems`."""

    rows: ClassVar[str] = "systems"

    systems: tuple[System, ...]
    schema_version: str = field(default=SCHEMA_VERSION)

    def tables(self, command: str = "", *, everything: bool = False) -> tuple[Table, ...]:
        """A line per system."""
        return (systems_view(self.systems),)


@dataclass(frozen=True, slots=True, repr=False)
class RuntimesReport(Answer[Runtime]):
    """The answer to `runtimes`: what serves language models, and what runs networks without tokens (`media`)."""

    rows: ClassVar[str] = "runtimes"

    runtimes: tuple[Runtime, ...]
    media: tuple[MediaRuntime, ...] = ()
    schema_version: str = field(default=SCHEMA_VERSION)

    def tables(self, command: str = "", *, everything: bool = False) -> tuple[Table, ...]:
        """A line per software."""
        return runtimes_view(self)


@dataclass(frozen=True, slots=True, repr=False)
class OffersReport(Answer[Offer]):
    """The answer to `offers`: cheapest first, and the range for each chip on demand."""

    rows: ClassVar[str] = "offers"

    offers: tuple[Offer, ...]
    ranges: tuple[PriceRange, ...]
    found: int
    schema_version: str = field(default=SCHEMA_VERSION)

    def tables(self, command: str = "", *, everything: bool = False) -> tuple[Table, ...]:
        """A line per offer."""
        return (offers_view(self.offers, today()),)


@dataclass(frozen=True, slots=True, repr=False)
class EvidenceReport(Answer[Item]):
    """The answer to `evidence`; `found` counts those that were left out by the limit too."""

    rows: ClassVar[str] = "items"

    items: tuple[Item, ...]
    found: int
    notice: str
    schema_version: str = field(default=SCHEMA_VERSION)

    def tables(self, command: str = "", *, everything: bool = False) -> tuple[Table, ...]:
        """A line per result."""
        return (items_view(self.items),)


def chip_record(chip: Chip, price: PriceRange | None, *, sources: bool = False) -> ChipRecord:
    """A chip as a record; with `sources` every figure and where it comes from."""
    link = chip.scaleup
    same = ("id", "name", "vendor", "kind", "family", "year", "status", "tdp_w")
    return ChipRecord(
        **{name: getattr(chip, name) for name in same},
        memory=chip.memory.name,
        memory_bytes=chip.memory.usable_bytes,
        memory_bytes_per_s=chip.memory.bytes_per_s,
        peak_flops_per_s=dict(chip.matrix),
        link_bytes_per_s=link.bytes_per_s if link else None,
        joins=link.domain if link else 1,
        devices=chip.devices_per_package,
        usd_per_h_low=price.low if price else None,
        usd_per_h_high=price.high if price else None,
        grade=chip.default.grade,
        figures=_figures(chip) if sources else (),
    )


def _figures(chip: Chip) -> tuple[FigureRecord, ...]:
    found = []
    for name, value in chip.figures.items():
        p = chip.provenance(name)
        said = tuple(f"{s.ref}, {s.date}" if s.date else s.ref for s in p.sources)
        text = f"{value:.12g}" if isinstance(value, float) else str(value)
        found.append(FigureRecord(name, text, p.grade, said, p.note))
    return tuple(found)


class Citations:
    """Numbers sources in the order in which figures cite them."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def mark(self, p: Provenance) -> str:
        """The numbers of a figure's sources, as in `1, 3`."""
        marks = []
        for source in p.sources:
            text = f"{source.ref} ({source.date})" if source.date else source.ref
            marks.append(self._numbers.setdefault(text, len(self._numbers) + 1))
        return ", ".join(map(str, marks))

    def notes(self) -> tuple[str, ...]:
        """One line per source."""
        return tuple(f"[{number}] {text}" for text, number in self._numbers.items())


def _sourced(name: str, p: Provenance, note: str, sources: Citations, *, value: object, text: str) -> dict[str, object]:
    """A figure with its source, as number or word and as text."""
    plain = value if isinstance(value, int | float) else text
    return {"figure": name, "value": plain, "text": text, "grade": p.grade, "source": sources.mark(p), "note": note}


SOURCED = (
    Column("figure", "figure"),
    Column("value", "text", right=True),
    Column("grade", "grade"),
    Column("source", "source"),
    Column("note", "note", prose=True),
)
"""Columns of a sheet: every figure of a thing with its source."""


def _sheet(rows: Sequence[Mapping[str, object]], first: str, head: tuple[str, ...], foot: Sequence[str]) -> Table:
    columns = (Column(first, "figure"), *SOURCED[1:])
    values = [{k: v for k, v in row.items() if k != "text"} for row in rows]
    return Table.of(rows, columns, head, foot, values=values)


def _cache_bytes(m: ModelRecord) -> float:
    return max(m.kv_bytes_in_window, m.kv_bytes_per_token)


MODELS = (
    Column("model", "name", short="name"),
    Column("", "architecture", short="architecture"),
    Column("parameters", "params", format_count, right=True, short="params_billion", scale=1e-9),
    Column("active", "active_params", format_count, right=True, spare=4, short="active_billion", scale=1e-9),
    Column("layers", "layers", right=True, spare=5, short="layers", scale=0),
    Column("precision", "precision", spare=3, short="precision"),
    Column("weights", "weight_bytes", format_bytes, right=True, short="weights_gb", scale=1e-9),
    Column("KV B/token", _cache_bytes, "{:,.0f}".format, right=True, spare=1, short="kv_bytes_per_token", scale=0),
    Column("context", "max_context", "{:,}".format, right=True, spare=2, short="max_context", scale=0),
    Column("", "assumptions", short="assumptions"),
)
"""What is said of a model."""


NETWORKS = (
    Column("network", "name", short="name"),
    Column("kind", "family", short="family"),
    Column("parameters", "params", format_count, right=True, short="params_million", scale=1e-6),
    Column("GFLOP", "flops", lambda value: format_number(value / 1e9), right=True, spare=1, short="gflop", scale=1e-9),
    Column("of one", "unit", spare=2, short="unit"),
    Column("also called", lambda n: ", ".join(n.names) or None, spare=3, prose=True),
)
"""What is said of a network that generates no tokens."""


def models_view(models: Sequence[ModelRecord]) -> Table:
    """One line per model."""
    return Table.of(models, MODELS)


def known_views(report: ModelsReport) -> tuple[Table, ...]:
    """One line per language model, and one per network without tokens."""
    both = (models_view(report.models), networks_view(report.networks))
    found = tuple(table for table, rows in zip(both, (report.models, report.networks), strict=True) if rows)
    return found or both[:1]


def networks_view(networks: Sequence[NetworkRecord]) -> Table:
    """One line per network that generates no tokens."""
    return Table.of(networks, NETWORKS)


def network_view(n: NetworkRecord) -> Table:
    """A network that generates no tokens, in full."""
    sizes = ", ".join(f"{name} {value:g}" for name, value in n.settings.items())
    rows = [
        ("kind", n.family),
        *((("also called", ", ".join(n.names)),) if n.names else ()),
        ("parameters", f"{n.params:,}"),
        *((part, f"{count:,}") for part, count in n.parts.items() if len(n.parts) > 1),
        (f"of one {n.unit}", f"{format_number(n.flops / 1e9)} GFLOP"),
        *((("at", sizes),) if sizes else ()),
        ("from", n.origin),
    ]
    head = (f"{n.name}   {format_count(n.params)} parameters", "")
    return Table(("figure", "value"), rows, head, records=(n,), prose=frozenset(("value",)))


def model_view(m: ModelRecord) -> Table:
    """A model in full."""
    rows = [
        ("architecture", m.architecture),
        ("parameters", f"{m.params:,}"),
        ("active per token", f"{m.active_params:,}"),
        ("layers", str(m.layers)),
        ("precision", m.precision),
        ("weights", format_bytes(m.weight_bytes)),
        ("cache", m.words[-1]),
        ("longest context", f"{m.max_context:,} tokens"),
        ("from", m.origin),
        *((f"as {found.format}", found.words) for found in m.tested),
        *(("assumed", text) for text in m.assumptions),
    ]
    return Table(("figure", "value"), rows, (m.line, ""), records=(m,), prose=frozenset(("value",)))


def _scaled(unit: float) -> Callable[[float], str]:
    return lambda value: format_number(value / unit, 4)


def _year(c: ChipRecord) -> str:
    return str(c.year) + ("" if c.status == "ga" else f" {c.status}")


def _peak(*dtypes: str) -> Callable[[ChipRecord], float | None]:
    """The peak of the first of some data types that the chip has."""
    return lambda c: next((c.peak_flops_per_s[d] for d in dtypes if c.peak_flops_per_s.get(d)), None)


def _dollars(c: ChipRecord) -> str:
    if c.usd_per_h_low is None or c.usd_per_h_high is None:
        return "unknown"
    return f"{c.usd_per_h_low:.2f}-{c.usd_per_h_high:.2f}"


def _graded(c: ChipRecord) -> dict[str, str]:
    return {f.name: f.value if f.grade == "datasheet" else f"{f.value} ({f.grade})" for f in c.figures}


CHIPS = (
    Column("chip", "id", short="id"),
    Column("", "name", short="name"),
    Column("", "year", short="year", scale=0),
    Column("year", _year, spare=2),
    Column("", "status", short="status"),
    Column("kind", "kind", spare=5, short="kind"),
    Column("memory", "memory_bytes", format_bytes, right=True, short="memory_gb", scale=1e-9),
    Column("GB/s", "memory_bytes_per_s", _scaled(1e9), right=True, short="memory_gb_per_s", scale=1e-9),
    Column("16-bit TFLOPS", _peak("bf16", "fp16"), _scaled(1e12), right=True),
    Column("fp8", _peak("fp8"), _scaled(1e12), right=True, spare=1),
    Column("int8 TOPS", _peak("int8"), _scaled(1e12), right=True, spare=3),
    Column("", "peak_flops_per_s", short="tflops", scale=1e-12),
    Column("link GB/s", "link_bytes_per_s", _scaled(1e9), right=True, short="link_gb_per_s", scale=1e-9),
    Column("joins", "joins", right=True, short="joins"),
    Column("W", "tdp_w", _scaled(1.0), right=True, spare=4, short="tdp_w", scale=0),
    Column("", _dollars, short="usd_per_h"),
    Column("grade", "grade", spare=6, short="grade"),
    Column("", _graded, short="figures"),
)
"""What is said of a chip."""


def chips_view(chips: Sequence[Chip]) -> Table:
    """One line per chip."""
    values = [{"chip": c.id, "year": c.year, "kind": c.kind, "status": c.status, **c.figures} for c in chips]
    return Table.of([chip_record(c, None) for c in chips], CHIPS, values=values)


def chip_view(chip: Chip) -> Table:
    """Every figure of a chip with its source."""
    rows = []
    sources = Citations()
    for name, value in chip.figures.items():
        p = chip.provenance(name)
        note = "" if p.note == chip.default.note else p.note
        rows.append(_sourced(name, p, note, sources, value=value, text=_figure_text(value)))
    head = (f"{chip.name} ({chip.vendor}, {chip.year}, {chip.kind}, {chip.status})", "")
    foot = [chip.default.note] if chip.default.note else []
    missing = [name for name in MEASURES if name not in chip.figures]
    if chip.family != "systolic":
        missing = [name for name in missing if not name.startswith("array")]
    foot.append(f"not found: {', '.join(missing)}")
    foot += [f"exception to guard {guard}: {why}" for guard, why in chip.exceptions.items()]
    return _sheet(rows, "figure", head, (*foot, *sources.notes()))


def compare_view(chips: Sequence[Chip]) -> Table:
    """One line per figure that any of the chips has, one column per chip; the grade where it is weak."""
    names = list(dict.fromkeys(name for chip in chips for name in chip.figures))

    def cell(chip: Chip, name: str) -> str:
        if name not in chip.figures:
            return DASH
        grade = chip.provenance(name).grade
        weak = f" ({grade})" if grade in ("derived", "assumed", "recalled") else ""
        return f"{_figure_text(chip.figures[name])}{weak}"

    rows = [(name, *(cell(chip, name) for chip in chips)) for name in names]
    values = [{"figure": name, **{c.id: c.figures.get(name) for c in chips}} for name in names]
    ids = tuple(chip.id for chip in chips)
    return Table(("figure", *ids), rows, right=frozenset(ids), records=values)


def _figure_text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}" if value < EXPONENTS else f"{value:,.0f}"
    text = str(value)
    # decimal units as everything else has them, after the binary ones
    return f"{text} ({format_bytes(parse_quantity(text, 'B', 'capacity'))})" if text.endswith("GiB") else text


def _members(s: System) -> str:
    return ", ".join(f"{n}x {chip}" for chip, n in s.members)


def _tiers(s: System) -> str | None:
    return "; ".join(f"{t.chips} by {t.name}" for t in s.tiers) or None


def _speeds(s: System) -> str | None:
    return "; ".join("?" if t.bytes_per_s is None else f"{t.bytes_per_s / 1e9:g}" for t in s.tiers) or None


SYSTEMS = (
    Column("system", "id"),
    Column("form", "form"),
    Column("chips per host", _members, prose=True),
    Column("joined", _tiers, spare=1, prose=True),
    Column("GB/s per chip", _speeds, right=True, spare=2, prose=True),
    Column("scale-out", "scaleout.kind", spare=4),
    Column("offered by", lambda s: ", ".join(s.offered) or None, spare=3, prose=True),
)
"""What is said of a system."""


def systems_view(systems: Sequence[System]) -> Table:
    """One line per system: chips of a host, and what each tier of fabric joins."""
    return Table.of(systems, SYSTEMS, values=[_system_values(s) for s in systems])


def _system_values(s: System) -> dict[str, object]:
    """A system as numbers: chips of a host and tiers of fabric one by one."""
    tiers = [{"name": t.name, "chips": t.chips, "bytes_per_s": t.bytes_per_s} for t in s.tiers]
    return {
        "system": s.id,
        "form": s.form,
        "members": [{"chip": chip, "count": n} for chip, n in s.members],
        "tiers": tiers,
        "scaleout": s.scaleout.kind if s.scaleout else None,
        "offered": s.offered,
    }


def system_view(system: System) -> Table:
    """Every figure of a system with its source."""
    rows = []
    sources = Citations()
    for name, value in system.figures.items():
        if name != "tiers":  # each tier has its line
            p = system.provenance(name)
            rows.append(_sourced(name, p, p.note, sources, value=value, text=_parts_text(value)))
    shapes = ["x".join(map(str, shape)) for shape in system.slices()]
    more = ", ..." if len(shapes) > SHAPES else ""
    foot = (f"shapes: {', '.join(shapes[:SHAPES])}{more}", *sources.notes())
    head = (f"{system.name}: {_members(system)} per host, {system.chips} chips at most", "")
    return _sheet(rows, "figure", head, foot)


def _parts_text(value: object) -> str:
    """A figure, or those of a tier side by side."""
    if isinstance(value, dict):
        names = ("name", "fabric", "chips", "shape", "wrap", "GBps", "pairwise_GBps")
        return ", ".join(f"{name} {_parts_text(value[name])}" for name in names if name in value)
    if isinstance(value, list | tuple):
        return ("x" if all(isinstance(v, int) for v in value) else ", ").join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _chips_of(runtime: Runtime) -> int:
    return len({chip for rule in runtime.rules if rule.runs for chip in rule.chips})


RUNTIMES = (
    Column("runtime", "id"),
    Column("name", "name"),
    Column("version", "version"),
    Column("access", "access"),
    Column("chips", _chips_of, right=True),
    Column("features", lambda r: ", ".join(sorted(r.features)), prose=True),
)
"""What is said of a runtime."""


PACES = {"host": "one by one", "compiled": "compiled", "graph": "one graph"}
"""How a host starts kernels."""

MEDIA_RUNTIMES = (
    Column("runtime", "id"),
    Column("name", "name", prose=True),
    Column("kernels", lambda r: PACES[r.pace]),
    Column("chips of", lambda r: ", ".join(sorted(r.vendors)), prose=True),
    Column("also called", lambda r: ", ".join(r.also) or None, prose=True, spare=1),
    Column("source", lambda r: "; ".join(s.ref for s in r.default.sources), prose=True, spare=2),
    Column("as of", lambda r: max((s.date for s in r.default.sources if s.date), default=None), spare=3),
)
"""What is said of software for networks without tokens."""


def runtimes_view(report: RuntimesReport) -> tuple[Table, ...]:
    """One line per runtime of language models, and one per runtime of networks without tokens."""
    values = [{c.head: c.value(r) for c in RUNTIMES} for r in report.runtimes]
    serving = Table.of(report.runtimes, RUNTIMES, values=values)
    if not report.media:
        return (serving,)
    # a table of nothing beside one that holds something says nothing
    media = Table.of(report.media, MEDIA_RUNTIMES, ("for networks without tokens (images, video, speech, ...):",))
    return (serving, media) if report.runtimes else (media,)


RULES = (
    Column("chips", lambda row: ", ".join(sorted(row["rule"].chips)), prose=True),
    Column("computed natively", lambda row: _native(row["rule"]), prose=True),
    Column("weights only", lambda row: ", ".join(sorted(row["rule"].weights_only)), prose=True),
    Column("cache", lambda row: ", ".join(sorted(row["rule"].kv)), prose=True),
    Column("grade", "rule.provenance.grade"),
    Column("source", "source"),
    Column("note", "rule.provenance.note", prose=True, spare=1),
)
"""What is said of a row of the support matrix."""


def runtime_view(runtime: Runtime) -> tuple[Table, Table]:
    """Policies with their sources, and the support matrix."""
    policies = []
    sources = Citations()
    for f in fields(Policies):
        p, value = runtime.provenance(f.name), getattr(runtime.policies, f.name)
        if f.name == "backend":
            value = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in runtime.backends.items())
        if value == f.default:
            continue  # of local runtimes alone
        text = format_bytes(value) if f.name.endswith("_bytes") else str(value)
        policies.append(_sourced(f.name, p, p.note, sources, value=value, text=text))
    head = (f"{runtime.name} {runtime.version} ({runtime.access})", *filter(None, (runtime.note,)), "")
    rows = [{"rule": rule, "source": sources.mark(rule.provenance)} for rule in runtime.rules]
    values = [{c.head.replace(" ", "_"): c.value(row) for c in RULES} for row in rows]
    matrix = Table.of(rows, RULES, ("support matrix: weight format / activations", ""), sources.notes(), values=values)
    return _sheet(policies, "policy", head, ()), matrix


def _native(rule: Rule) -> str:
    native = sorted(w if w == a else f"{w}/{a}" for w, a in rule.native)
    return ", ".join(native) if rule.runs else "not supported"


def offers_view(offers: Sequence[Offer], today: date) -> Table:
    """Offers by price of one chip, cheapest first; those without a price last."""
    columns = (
        Column("chip", "chip"),
        Column("$/chip/h", "usd_per_chip_h", "{:.2f}".format, right=True),
        Column("spot", "spot_usd_per_chip_h", "{:.2f}".format, right=True),
        Column("provider", "provider"),
        Column("instance", "instance", spare=1),
        Column("chips", lambda o: str(o.chips or "part"), right=True),
        Column("region", "region", spare=2, prose=True),
        Column("date", "date"),
        Column("age", lambda o: "stale" if o.stale(today) else ""),
    )
    ordered = sorted(offers, key=lambda o: (o.chip, o.usd_per_chip_h is None, o.usd_per_chip_h or 0.0))
    dated = sorted((o.earliest_day, o.date) for o in offers if o.earliest_day is not None)
    age = (
        f"prices of {dated[0][1]} to {dated[-1][1]}, the newest {(today - dated[-1][0]).days} days old; "
        if dated
        else ""
    )
    foot = (
        f"{age}list prices, no guarantee; differences under 25 % mean nothing; stale: older than 90 days; newer ones: "
        "chipwise offers update --from FILE, offers add"
    )
    return Table.of(ordered, columns, (), (foot,))


TOKEN_PRICES = (
    Column("provider", "provider"),
    Column("model", "model"),
    Column("$/M in", "input_usd_per_million", "{:.2f}".format, right=True),
    Column("$/M out", "output_usd_per_million", "{:.2f}".format, right=True),
    Column("$/M cached", "cached_usd_per_million", "{:.2f}".format, right=True, spare=2),
    Column("date", "date"),
    Column("model here", "config", spare=1),
    Column("own chip", "chip", spare=2),
    Column("source", "source", spare=3),
    Column("licence", "licence", spare=4),
)
"""What is said of the price of an API."""


def token_prices_view(prices: Sequence[ApiPrice], today: date) -> Table:
    """Dollars per million tokens of vendors' APIs: no cost of a chip."""
    dates = sorted(p.date for p in prices)
    old = sum(p.age_days(today) > preferences().dated_days for p in prices)
    span = f"{dates[0]} to {dates[-1]}" if dates else ""
    days = f"read {span}, {old} of them more than {preferences().dated_days:.0f} days ago; " if dates else ""
    vendors, models = len({p.provider for p in prices}), len({p.config for p in prices if p.config})
    count = f"prices: {len(prices)}, vendors: {vendors}, models of the catalogue: {models}; "
    foot = (
        f"{count}{days}the price of an API, not the cost of a chip; newer ones: pip download --no-deps litellm, then "
        "chipwise offers update --from FILE.whl"
    )
    return Table.of(prices, TOKEN_PRICES, (), (foot,))
