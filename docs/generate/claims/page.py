"""All claims, and how they are written down."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from docs.generate.claims.claim import Checked
from docs.generate.claims.sheets import SHEETS
from docs.generate.claims.speeds import SPEEDS

__all__ = ["CLAIMS", "checked", "claims_page", "claims_table"]

CLAIMS: tuple[Callable[[], Checked], ...] = (*SHEETS, *SPEEDS)


@cache
def checked() -> tuple[Checked, ...]:
    """Every claim with its verdict, computed once."""
    return tuple(claim() for claim in CLAIMS)


def claims_table() -> str:
    """Claims and verdicts alone."""
    lines = ["| it is said | verdict |", "|---|---|"]
    lines += [f"| [{c.quote}](#{number}) | {c.verdict} |" for number, c in enumerate(checked(), 1)]
    return "\n".join(lines)


def claims_page() -> str:
    """Every claim with its numbers and their sources."""
    parts = []
    for number, c in enumerate(checked(), 1):
        rows = "\n".join(f"| {n.what} | {n.source} | {n.value} |" for n in c.numbers)
        parts.append(
            f"## {number}. “{c.quote}” {{ #{number} }}\n\n**{c.verdict.capitalize()}.** {c.because}\n\n"
            f"| figure | source | value |\n|---|---|---:|\n{rows}\n\nSee for yourself: `{c.command}`"
        )
    return "\n\n".join(parts)
