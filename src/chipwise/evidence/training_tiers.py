"""How far a training plan may be off: the interval and the basis that its trainer and its chip have earned."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from chipwise.calibrate.fit_training import seen_as, seen_runs
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.snapshot import per_snapshot, shipped_text

TABLE = "evidence/data/training_tiers.csv"
COLUMNS = ("tier", "low", "high", "basis", "rows", "covered")
COMPILED = ", compiled"
FARTHER = ("seen", "not seen", "not seen" + COMPILED)  # from what was measured
CALIBRATED = 0.7  # of the rows of publications that no fit had seen, at least, in 80 % of those of others


@dataclass(frozen=True, slots=True)
class Tier:
    """Factors of the 80 % interval of measured / predicted, from residuals that no fit behind them had seen: `rows` of
    them, and the share that the interval `covered` of publications left out, each counted alike. `calibrated` where
    plain quantiles hold `CALIBRATED` of publications left out, before they are stretched to 80 %; else `modelled`.
    `provisional` where no publication tested it; `seen`: such was measured, by several runs of the fit."""

    low: float
    high: float
    basis: str
    rows: int = 0
    covered: float = 0.0
    seen: bool = False

    @property
    def provisional(self) -> bool:
        """Whether no publication that was left out tested the interval."""
        return self.covered == 0.0

    def at_least(self, other: Tier) -> Tier:
        """As wide as both; tested as far as this one."""
        return replace(self, low=min(self.low, other.low), high=max(self.high, other.high))


@per_snapshot
def tiers() -> Mapping[str, Tier]:
    """All tiers by name, as `python -m chipwise.api.suites.refit training` wrote them, each at least as wide as those
    nearer to what was measured: less evidence is never surer."""
    rows = csv.DictReader(io.StringIO(shipped_text(TABLE)))
    found = {
        r["tier"]: Tier(
            float(r["low"]),
            float(r["high"]),
            r["basis"],
            int(r["rows"]),
            float(r["covered"]),
            r["tier"].endswith(", seen"),
        )
        for r in rows
    }
    for name in sorted(found, key=_distance):
        for nearer in _nearer(name):
            if nearer in found:
                found[name] = found[name].at_least(found[nearer])
    return found


def _distance(tier: str) -> int:
    """How many tiers of its figure are nearer."""
    return len(_nearer(tier))


def _nearer(tier: str) -> tuple[str, ...]:
    """The tiers of the same figure that lie nearer to what was measured."""
    figure = tier.partition(",")[0]
    order = tuple(f"{figure}, {far}" for far in FARTHER)
    return order[: order.index(tier)]


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
    """The interval of a figure of a plan with these labels; that of compiled programs, where none such was left out, is
    the next nearer one, not tested."""
    name = tier_name(what, labels, seen_runs(numbers), packed=packed)
    known = tiers()
    return known.get(name) or replace(known[name.removesuffix(COMPILED)], rows=0, covered=0.0)
