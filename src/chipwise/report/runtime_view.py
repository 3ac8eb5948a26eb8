"""Runtimes as tables: policies, and what runs where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from chipwise.catalog.runtime import Policies, Rule, Runtime
from chipwise.report.citations import Citations
from chipwise.report.table import Table
from chipwise.units import format_bytes

__all__ = ["runtime_view", "runtimes_view"]


def runtimes_view(runtimes: Sequence[Runtime]) -> Table:
    """One line per runtime."""
    columns = ("runtime", "name", "version", "access", "chips", "can do")
    rows = [
        (
            r.id,
            r.name,
            r.version,
            r.access,
            str(len({chip for rule in r.rules if rule.runs for chip in rule.chips})),
            ", ".join(sorted(r.features)),
        )
        for r in runtimes
    ]
    return Table(columns, rows, right=frozenset(("chips",)))


def runtime_view(runtime: Runtime) -> tuple[Table, Table]:
    """Policies with their sources, and the support matrix."""
    policies = []
    sources = Citations()
    for f in fields(Policies):
        p = runtime.provenance(f.name)
        value = getattr(runtime.policies, f.name)
        text = format_bytes(value) if f.name.endswith("_bytes") else str(value)
        policies.append((f.name, text, p.grade, sources.mark(p), p.note))
    head = (f"{runtime.name} {runtime.version} ({runtime.access})", *filter(None, (runtime.note,)), "")
    matrix = [_rule(rule, sources) for rule in runtime.rules]
    columns = ("chips", "computed natively", "weights only", "cache", "grade", "source", "note")
    return (
        Table(("policy", "value", "grade", "source", "note"), policies, head),
        Table(columns, matrix, ("", "support matrix: weight format / activations", ""), sources.notes()),
    )


def _rule(rule: Rule, sources: Citations) -> tuple[str, ...]:
    native = sorted(w if w == a else f"{w}/{a}" for w, a in rule.native)
    return (
        ", ".join(sorted(rule.chips)),
        ", ".join(native) if rule.runs else "not supported",
        ", ".join(sorted(rule.weights_only)),
        ", ".join(sorted(rule.kv)),
        rule.provenance.grade,
        sources.mark(rule.provenance),
        rule.provenance.note,
    )
