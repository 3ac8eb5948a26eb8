"""The catalogue as tables: what is known, by whom it is said, and how sure it is."""

from __future__ import annotations

import re
from collections.abc import Sequence

from docs.generate.console import DAY

from chipwise.api.loaded import describe
from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import load_chips
from chipwise.catalog.configs import bundled_configs
from chipwise.catalog.offer import load_offers
from chipwise.catalog.price import price_range
from chipwise.catalog.runtime_spec import Runtime
from chipwise.catalog.software import all_software
from chipwise.catalog.system import load_systems
from chipwise.catalog.system_spec import System
from chipwise.report.catalogue import Citations
from chipwise.units import format_bytes, format_count

__all__ = [
    "chips_table",
    "counts",
    "models_table",
    "offers_table",
    "runtimes_table",
    "systems_table",
    "table",
    "vendors",
]

GRADES = {"measured": "ᵐ", "datasheet": "", "secondary": "ˢ", "derived": "ᵈ", "assumed": "ᵃ", "recalled": "ʳ"}


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()) -> str:
    """A Markdown table."""
    rule = ["---:" if name in right else "---" for name in columns]
    lines = [columns, rule, *([cell.replace("|", "\\|") or "-" for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def chips_table(vendor: str) -> str:
    """Chips of a vendor: figures with the mark of their grade, and sources as notes."""
    sources = Citations()
    columns = ("chip", "year", "memory", "TB/s", "16 bit", "8 bit", "4 bit", "link GB/s", "joins", "W", "sources")
    rows = [_chip(c, sources) for c in load_chips().values() if c.vendor == vendor]
    return f"{table(columns, rows, columns[2:-1])}\n\n{_notes(sources)}"


def systems_table(_: str) -> str:
    """Every machine, pod and slice with its fabric."""
    sources = Citations()
    columns = ("system", "form", "chips of a host", "joined", "GB/s per chip", "scale-out", "grade", "sources")
    rows = [_system(s, sources) for s in load_systems().values()]
    return f"{table(columns, rows)}\n\n{_notes(sources)}"


def runtimes_table(_: str) -> str:
    """Serving software with what it keeps of a memory, and how much of it is documented."""
    sources = Citations()
    columns = ("runtime", "version", "access", "chips", "memory share", "chunk budget", "prompts", "grade", "sources")
    rows = []
    for r in all_software(Runtime).values():
        p = r.policies
        chips = {chip for rule in r.rules if rule.runs for chip in rule.chips}
        rows.append(
            (
                f"`{r.id}`: {r.name}",
                r.version,
                r.access,
                str(len(chips)),
                f"{p.memory_share:.2f} of {p.memory_base.replace('_', ' ')}",
                f"{p.max_batched_tokens:,}",
                p.prefill,
                r.default.grade,
                sources.mark(r.default),
            )
        )
    return f"{table(columns, rows, ('chips', 'chunk budget'))}\n\n{_notes(sources)}"


def models_table(_: str) -> str:
    """Bundled models, further names of the same one left out."""
    columns = ("model", "parameters", "active", "layers", "precision", "weights", "cache B/token", "context")
    rows = []
    for name, config in bundled_configs().items():
        if config.alias:
            continue
        m = describe(name)
        cache = max(m.kv_bytes_in_window, m.kv_bytes_per_token)
        rows.append(
            (
                f"`{m.name}`",
                format_count(m.params),
                format_count(m.active_params),
                str(m.layers),
                m.precision,
                format_bytes(m.weight_bytes),
                f"{cache:,.0f}",
                f"{m.max_context:,}",
            )
        )
    origins = sorted({c.origin for c in bundled_configs().values() if not c.alias})
    said = "".join(f"- {origin}\n" for origin in origins)
    return f'{table(columns, rows, columns[1:])}\n\n??? note "Where the dimensions come from"\n\n{_indent(said)}'


def offers_table(_: str) -> str:
    """Dollars per hour of one chip on demand: what a plan takes, and the range over the offers that count."""
    columns = ("chip", "a plan of one, $/chip/h", "range, $/chip/h", "providers", "prices of")
    rows = []
    for chip in sorted({o.chip for o in load_offers()}, key=list(load_chips()).index):
        found = price_range(chip, today=DAY)
        if found is not None:
            dates = found.newest if found.oldest == found.newest else f"{found.oldest} to {found.newest}"
            spans = f"{found.picked:.2f}", f"{found.low:.2f} to {found.high:.2f}"
            rows.append((f"`{chip}`", *spans, str(found.providers), dates + (" (stale)" if found.stale else "")))
    return table(columns, rows, columns[1:4])


def counts(_: str) -> str:
    """How much is known."""
    models = sum(not config.alias for config in bundled_configs().values())
    return (
        f"{len(load_chips())} chips, {len(load_systems())} systems, {len(all_software(Runtime))} runtimes, "
        f"{models} models and {len(load_offers())} offers are in the catalogue."
    )


def _chip(c: Chip, sources: Citations) -> tuple[str, ...]:
    def figure(value: float | None, unit: float, name: str) -> str:
        if value is None:
            return "-"
        mark = GRADES[c.provenance(name).grade] if name in c.figures else ""
        return f"{value / unit:,.4g}{mark}"

    memory = c.memory
    four = next((t for t in ("nvfp4", "mxfp4", "fp4", "int4") if c.peak(t)), "")
    eight = next((t for t in ("fp8", "int8") if c.peak(t)), "")
    wide = next((t for t in ("bf16", "fp16") if c.peak(t)), "")

    def peak(dtype: str) -> str:
        return figure(c.peak(dtype), 1e12, f"matrix_tflops.{dtype}") if dtype else "-"

    size = "-" if memory.label_bytes is None else f"{format_bytes(memory.label_bytes)} {memory.name}"
    return (
        f"`{c.id}`",
        f"{c.year}" + ("" if c.rentable else ", announced"),
        size + (GRADES[c.provenance("memory").grade] if "memory" in c.figures else ""),
        figure(memory.bytes_per_s, 1e12, "memory_GBps"),
        peak(wide),
        peak(eight),
        peak(four),
        figure(c.scaleup.bytes_per_s if c.scaleup else None, 1e9, "scaleup_GBps"),
        str(c.scaleup.domain) if c.scaleup else "1",
        figure(c.tdp_w, 1.0, "tdp_W"),
        sources.mark(c.default),
    )


def _system(s: System, sources: Citations) -> tuple[str, ...]:
    speeds = ["?" if t.bytes_per_s is None else f"{t.bytes_per_s / 1e9:g}" for t in s.tiers]
    shapes = [f"{t.chips} by {t.name}" + (f" ({' x '.join(map(str, t.shape))})" if t.torus else "") for t in s.tiers]
    return (
        f"`{s.id}`",
        s.form,
        ", ".join(f"{n} `{chip}`" for chip, n in s.members),
        "; ".join(shapes),
        "; ".join(speeds),
        s.scaleout.kind if s.scaleout else "",
        s.default.grade,
        sources.mark(s.default),
    )


def _notes(sources: Citations) -> str:
    """Sources, folded away."""
    lines = "\n".join(f"- {_plain(note)}" for note in sources.notes())
    return f'??? note "Sources"\n\n{_indent(lines)}'


ADDRESS = re.compile(r"https?://[^\s\[\]{}<>\"'|;,]+")


def _plain(text: str) -> str:
    """A note that Markdown takes as text, with its addresses as links."""
    parts: list[str] = []
    end = 0
    for found in ADDRESS.finditer(text):
        address = found[0].rstrip(".:)" if "(" not in found[0] else ".:")
        if "..." not in address:
            parts += [_escaped(text[end : found.start()]), f"[{_escaped(address)}]({_where(address)})"]
            end = found.start() + len(address)
    return "".join([*parts, _escaped(text[end:])]).replace("[", "\\[", 1)


def _escaped(text: str) -> str:
    return text.replace("*", "\\*").replace("_", "\\_").replace("<", "&lt;")


def _where(address: str) -> str:
    """Where an address leads: a repository at a commit is named `owner/name@commit` in the data."""
    at = re.fullmatch(r"(https://github\.com/[\w.-]+/[\w.-]+)@([0-9a-f]{7,40})(/.*)?", address)
    return f"{at[1]}/tree/{at[2]}{at[3] or ''}" if at else address


def _indent(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.splitlines())


def vendors() -> list[str]:
    """All vendors, those with most chips first."""
    names = [c.vendor for c in load_chips().values()]
    return sorted(set(names), key=lambda name: (-names.count(name), name))
