"""Statements that one reads about hardware, with verdicts and figures, as the product answers them."""

from __future__ import annotations

from functools import cache

from chipwise.api.statements import check_statement, list_statements
from chipwise.report.statements import StatementRecord

__all__ = ["checked", "claims_page", "claims_table"]


@cache
def checked() -> tuple[StatementRecord, ...]:
    """Every statement with its figures, worked out once."""
    return tuple(check_statement(s.text).statements[0] for s in list_statements().statements)


def claims_table() -> str:
    """Statements and verdicts alone."""
    lines = ["| it is said | verdict | confidence |", "|---|---|---|"]
    lines += [
        f"| [{s.text}](reference/claims.md#{number}) | {s.verdict} | {s.confidence} |"
        for number, s in enumerate(checked(), 1)
    ]
    return "\n".join(lines)


def claims_page() -> str:
    """Every statement with its figures and what shows them."""
    parts = []
    for number, s in enumerate(checked(), 1):
        rows = "\n".join(f"| {f.what} | {f.shown} |" for f in s.figures)
        basis = "; ".join((*s.basis, *s.sources))
        commands = ", ".join(f"`{command}`" for command in s.commands)
        parts.append(
            f"## {number}. “{s.text}” {{ #{number} }}\n\n**{s.verdict.capitalize()}**, confidence {s.confidence}. "
            f"{s.because}\n\n| figure | value |\n|---|---:|\n{rows}\n\nBasis: {basis}.\n\n"
            f"See for yourself: {commands}"
        )
    return "\n\n".join(parts)
