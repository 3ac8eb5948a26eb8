"""One fitted number with what is known about it; and many of them in few bytes: a CSV whose lines leave out what the
line above said.

Columns: stem, key, value, spread, prior, unit, source, rows. The name is stem + key; a blank stem, unit, source
or rows is that of the line above, a blank prior is 1 (a factor that is believed to do nothing).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping

from chipwise.errors import UsageError
from chipwise.values import dataclass

Z80 = 1.2816
"""Standard deviations on either side of the middle that hold 80 % of a normal distribution."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A number with a meaning: its prior, its value, and `spread`, one standard deviation of log(value).

    `rows` is the hash of the rows that it was fitted on, or chosen from by hand as `source` says; empty while the value
    is the prior.
    """

    prior: float
    value: float
    spread: float
    unit: str
    source: str
    rows: str = ""


COLUMNS = ("stem", "key", "value", "spread", "prior", "unit", "source", "rows")


def read_table(text: str, origin: str) -> dict[str, Parameter]:
    """Parameters by name. Raises `UsageError`, naming `origin` and the line, for text that is no such table."""
    lines = csv.reader(io.StringIO(text))
    if tuple(next(lines, ())) != COLUMNS:
        raise UsageError(f"{origin}: not a table of parameters", f"columns: {', '.join(COLUMNS)}")
    table: dict[str, Parameter] = {}
    above = ["", "", "", ""]
    try:
        for stem, key, value, spread, prior, *rest in lines:
            above = [new or old for new, old in zip((stem, *rest), above, strict=True)]
            table[above[0] + key] = Parameter(
                float(prior) if prior else 1.0, float(value), float(spread), above[1], above[2], above[3]
            )
    except (ValueError, csv.Error):
        raise UsageError(f"{origin}: line {lines.line_num} cannot be read") from None
    return table


def write_table(parameters: Mapping[str, Parameter]) -> str:
    """The text that `read_table` reads: values to 4 digits, spreads to 2."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    above = ["", "", "", ""]
    for name, p in parameters.items():
        stem, mark, key = name.rpartition("=") if "=" in name else name.rpartition(".")
        texts = [stem + mark, p.unit, p.source, p.rows]
        stem_, unit, source, rows = ("" if a == b else a for a, b in zip(texts, above, strict=True))
        prior = "" if f"{p.prior:.4g}" == "1" else f"{p.prior:.4g}"
        writer.writerow((stem_, key, f"{p.value:.4g}", f"{p.spread:.2g}", prior, unit, source, rows))
        above = texts
    return out.getvalue()
