"""Learning rates and their schedules that published recipes use, by what is trained."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.catalog.parsed import parse
from chipwise.catalog.schema import record
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.errors import UnknownNameError

TABLE = "catalog/data/launch_rates.toml"


@dataclass(frozen=True, slots=True)
class Learning:
    """What a run of a method and `objective` learns at: `rate` after `warmup` of its steps, `longest` steps at most,
    then lowered (`decay`) to `least` of it. `above` are the parameters a token passes through from which the row
    holds."""

    method: str
    above: float
    rate: float
    warmup: float
    longest: int
    decay: str
    least: float
    source: str
    objective: str = "next-token"

    def warm(self, steps: int) -> int:
        """Steps until the rate is reached, of so many: at least 1, and 0 of a single one."""
        return min(max(round(self.warmup * steps), 1), self.longest, steps - 1)


@per_snapshot
def learning_rows() -> tuple[Learning, ...]:
    """All rows, small models first."""
    rows = parse(shipped_text(TABLE))["rate"]
    found = (record(Learning, row, f"{TABLE}: {row.get('method')}") for row in rows)
    return tuple(sorted(found, key=lambda row: (row.method, row.above)))


def learning_of(method: str, parameters: float, objective: str = "next-token") -> Learning:
    """What a method ("" from random weights, full, lora, qlora) learns at in a network of so many parameters that a
    token passes through, for an objective: as for next tokens where no row is of it. Raises `UnknownNameError` for
    another method."""
    able = [row for row in learning_rows() if row.method == method and row.above <= parameters]
    rows = [[row for row in able if row.objective == name] for name in (objective, "next-token")]
    if not any(rows):
        raise UnknownNameError("method", method, [row.method for row in learning_rows() if row.method])
    return (rows[0] or rows[1])[-1]
