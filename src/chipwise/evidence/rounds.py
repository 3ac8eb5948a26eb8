"""The register of rounds: figures that strangers published, predicted by a fixed commit before anybody had read them.

It is the one measure of what happens on figures that nobody has seen. Lines stay as they were scored: what is fitted
later does not change them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.evidence.residuals import Summary, Validation
from chipwise.values import dataclass

TABLE = "evidence/data/rounds.csv"
HOW = (
    "Somebody looked for measurements from sources that no table names; the product predicted every row at the commit "
    "that is named; only then were both laid side by side. All rows count, those kept aside too. Errors are of the "
    "figure; 80 % of measured values are meant to lie inside the interval. Rounds 2 and 3 were looked for by people "
    "who do not work on the product, those since by its makers; rows that they marked as doubtful before an answer was "
    "read, or found in a table before it was compared, do not count."
)
LED = 2
"""count: rounds that pages lead with. Chosen: the last one, and the one before, which may be larger."""


@dataclass(frozen=True, slots=True)
class Scored:
    """One line of the register: what was predicted in a round, and how far off it was."""

    round: int
    date: str
    commit: str
    found: Summary


@per_snapshot
def register() -> tuple[Scored, ...]:
    """All lines, the last round first."""

    def share(text: str) -> float:
        return float(text) if text else float("nan")

    rows = csv.DictReader(io.StringIO(shipped_text(TABLE)))
    return tuple(
        Scored(
            int(r["round"]),
            r["date"],
            r["commit"],
            Summary(
                r["group"],
                r["metric"],
                int(r["rows"]),
                share(r["answered"]),
                share(r["median"]),
                share(r["p90"]),
                share(r["bias"]),
                share(r["coverage"]),
            ),
        )
        for r in rows
    )


def leading() -> tuple[tuple[Scored, ...], ...]:
    """The lines of the rounds that pages lead with, the last round first."""
    lines = register()
    last = list(dict.fromkeys(line.round for line in lines))[:LED]
    return tuple(tuple(line for line in lines if line.round == number) for number in last)


def register_lines(scored: Sequence[Scored]) -> str:
    """Lines of the register as its file has them."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for line in scored:
        s = line.found
        shares = (s.answered, s.median, s.bias, s.p90, s.coverage)
        figures = ("" if x != x else f"{x:.3f}" for x in shares)
        writer.writerow((line.round, line.date, line.commit, s.name, s.metric, s.rows, *figures))
    return out.getvalue()


def rounds() -> Validation:
    """The register as `validate rounds` prints it."""
    tables: dict[str, list[Summary]] = {}
    for line in register():
        title = f"round {line.round}, {line.date}, product at {line.commit}"
        tables.setdefault(title, []).append(line.found)
    return Validation("rounds", HOW, tables)
