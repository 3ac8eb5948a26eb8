"""How far a training plan may be off: the interval and the basis that its trainer and its chip have earned."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from chipwise.calibrate.fit_training import seen_as, seen_runs
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.snapshot import per_snapshot, shipped_text

__all__ = ["CALIBRATED", "COMPILED", "TABLE", "Tier", "tier_name", "tier_of", "tiers", "write_tiers"]

TABLE = "evidence/data/training_tiers.csv"
COLUMNS = ("tier", "low", "high", "basis", "rows", "covered")
COMPILED = ", compiled"
CALIBRATED = 0.7  # of the rows of publications that no fit had seen, at least, in 80 % of those of others


@dataclass(frozen=True, slots=True)
class Tier:
    """Factors of the 80 % interval of measured / predicted, from residuals that no fit behind them had seen: `rows` of
    them, and the share that the interval `covered` of publications left out, each counted alike. `calibrated` where
    plain quantiles hold `CALIBRATED` of publications left out, before they are stretched to 80 %; else `modelled`."""

    low: float
    high: float
    basis: str
    rows: int = 0
    covered: float = 0.0


@per_snapshot
def tiers() -> Mapping[str, Tier]:
    """All tiers by name, as `python -m chipwise.api.suites.refit training` wrote them."""
    rows = csv.DictReader(io.StringIO(shipped_text(TABLE)))
    return {
        r["tier"]: Tier(float(r["low"]), float(r["high"]), r["basis"], int(r["rows"]), float(r["covered"]))
        for r in rows
    }


def write_tiers(found: Mapping[str, Tier]) -> str:
    """The table as text."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for name, t in sorted(found.items()):
        writer.writerow((name, f"{t.low:.3f}", f"{t.high:.3f}", t.basis, t.rows, f"{t.covered:.2f}"))
    return text.getvalue()


def tier_name(what: str, labels: Mapping[str, str], seen: Collection[str], *, packed: bool = False) -> str:
    """The tier of a figure ("time", "memory") of a plan: memory, or step times of dense models or experts; of what a
    fit has `seen` or not (`seen_as`), among step times not seen apart what runs as one compiled program: such chips
    have few relatives. Packed weights (QLoRA), of which no published figure is read, count as not seen."""
    known = seen_as(what, labels) in seen and not packed
    if what == "memory":
        return f"memory, {'seen' if known else 'not seen'}"
    name = "experts" if labels["moe"] == "moe" else "dense"
    return f"{name}, {'seen' if known else 'not seen' + COMPILED * (labels['kind'] == 'xla')}"


def tier_of(
    numbers: Parameters, labels: Mapping[str, str], what: str = "time", *, packed: bool = False
) -> Tier:
    """The interval of a figure of a plan with these labels."""
    name = tier_name(what, labels, seen_runs(numbers), packed=packed)
    return tiers().get(name) or tiers()[name.removesuffix(COMPILED)]
