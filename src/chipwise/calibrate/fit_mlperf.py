"""Fitting the factors of MLPerf submissions: maximum a posteriori, robust, by Gauss-Newton.

The model (see `evidence.mlperf_features`): log rate = x + curve(x + h) with x and h linear in the parameters.
Every parameter has a normal prior; residuals beyond 1.3 times the noise count by their size only (Huber), so
that rows with mislabelled precision or untuned software do not steer the rest. Pure functions of their rows.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.parameters import Parameter
from chipwise.catalog.parsed import parse
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.units import Array

__all__ = [
    "FitRow",
    "Fitted",
    "fit",
    "folds",
    "immaturity",
    "predict",
    "shipped_mlperf",
    "software_speed",
    "to_toml",
    "worth_fitting",
]

NOISE = 0.15
"""Spread of log(measured) of one cell between submissions beyond what the features know."""

MATURES_ROUNDS = 0.9
"""Rounds of half a year in which software for language models closes the gap by a factor e."""

HUBER = 1.3
STEPS = 14


@dataclass(frozen=True)
class FitRow:
    """One run: `cell` must stay on one side of a split; the curve is on the grid `slack`.

    `log_measured` is NaN where only a prediction is wanted.
    """

    id: str
    cell: tuple[str, str]
    slack: Array
    curve: Array
    speed: Mapping[str, float]
    limit: Mapping[str, float]
    log_measured: float = float("nan")


@dataclass(frozen=True)
class Fitted:
    """Parameters by name; one that a row asks for and nobody has is 0.

    `spread` holds, by kind, scenario and tier ("llm.Server.chip"), the ends of 80 % of log(measured / predicted)
    on cells that the fit did not see; `seen` the chips whose rows were fitted, by kind.
    """

    table: Mapping[str, Parameter]
    spread: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    seen: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def value(self, name: str) -> float:
        """The value of a parameter, 0 where there is none."""
        return self.table[name].value if name in self.table else 0.0

    def unfitted(self) -> Fitted:
        """The same parameters at their priors."""
        return Fitted({n: replace(p, value=p.prior, rows="") for n, p in self.table.items()})


@per_snapshot
def shipped_mlperf() -> Fitted:
    """The parameters that come with the package."""
    data = parse(shipped_text("calibrate/data/mlperf.toml"))
    rows = str(data["rows"])
    table = {
        name: Parameter(
            prior=float(entry["prior"]),
            value=float(entry.get("value", entry["prior"])),
            spread=float(entry["spread"]),
            unit="log",
            source=str(entry["means"]),
            rows=rows if "value" in entry else "",
        )
        for name, entry in data["parameters"].items()
    }
    spread = {name: (float(low), float(high)) for name, (low, high) in data.get("spread", {}).items()}
    seen = {group: frozenset(chips) for group, chips in data.get("seen", {}).items()}
    return Fitted(table, spread, seen)


def software_speed(age: float, fitted: Fitted) -> float:
    """Speed of serving software of an age (`catalog.published.software_age`) against a mature stack: below 1.

    exp(-A immaturity(age)): what two and a half years of submissions on unchanged chips show.
    """
    return float(np.exp(-fitted.value("llm.maturity") * immaturity(age)))


def immaturity(age: float) -> float:
    """exp(-(age + 1) / 0.9): what software of an age still lacks, 1 in the round before v4.0.

    Submissions on unchanged chips (H200, L40S, MI300X) gained a fifth from v4.0 to v4.1 and little after v5.0.
    """
    return math.exp(-(age + 1.0) / MATURES_ROUNDS)


def fit(rows: Sequence[FitRow], prior: Fitted) -> Fitted:
    """The parameters that explain `rows`; those that no row touches keep their prior."""
    names = sorted({n for r in rows for n in (*r.speed, *r.limit)} & set(prior.table))
    if not names:
        return prior
    X, H = _design(rows, names)
    y = np.array([r.log_measured for r in rows])
    mean = np.array([prior.table[n].prior for n in names])
    spread = np.array([prior.table[n].spread for n in names])
    theta = mean.copy()
    for step in range(STEPS):
        x = X @ theta
        value, slope = _curves(rows, x + H @ theta)
        residual = y - x - value
        weight = 1.0 / np.maximum(1.0, np.abs(residual) / (HUBER * NOISE)) / NOISE**2
        J = X + slope[:, None] * (X + H)
        precision = (J * weight[:, None]).T @ J + np.diag(spread**-2.0)
        change = np.linalg.solve(precision, (J * weight[:, None]).T @ residual + (mean - theta) / spread**2)
        theta = theta + change * (0.7 if step < 4 else 1.0)
    mark = hashlib.sha256(" ".join(sorted(r.id for r in rows)).encode()).hexdigest()[:12]
    table = dict(prior.table)
    for name, value in zip(names, theta, strict=True):
        p = table[name]
        table[name] = Parameter(p.prior, float(value), p.spread, p.unit, p.source, mark)
    return Fitted(table, prior.spread, prior.seen)


def predict(rows: Sequence[FitRow], fitted: Fitted) -> Array:
    """log of the rate of every row."""
    if not rows:
        return np.zeros(0)
    names = sorted({n for r in rows for n in (*r.speed, *r.limit)})
    theta = np.array([fitted.value(n) for n in names])
    X, H = _design(rows, names)
    x = X @ theta
    value, _ = _curves(rows, x + H @ theta)
    total: Array = x + value
    return total


def folds(rows: Sequence[FitRow], prior: Fitted, key: Callable[[FitRow], object] = lambda r: r.cell) -> Array:
    """log of the rate of every row, predicted by a fit that never saw its cell."""
    out = np.full(len(rows), np.nan)
    keys = [key(r) for r in rows]
    for cell in dict.fromkeys(keys):
        inside = [i for i, k in enumerate(keys) if k == cell]
        fitted = fit([r for r, k in zip(rows, keys, strict=True) if k != cell], prior)
        out[inside] = predict([rows[i] for i in inside], fitted)
    return out


def worth_fitting(row: FitRow) -> bool:
    """Rows with a finite measurement and curve."""
    return bool(np.isfinite(row.log_measured) and np.isfinite(row.curve).all())


def to_toml(fitted: Fitted, note: str) -> str:
    """The parameters as the file that is shipped; the same parameters give the same text."""
    marks = sorted({p.rows for p in fitted.table.values() if p.rows})
    lines = [f"# {line}" for line in note.splitlines()]
    lines += ["", f'rows = "{" ".join(marks)}"', "", "[parameters]"]
    for name, p in sorted(fitted.table.items()):
        value = f"value = {p.value:.4g}, " if p.rows else ""
        lines.append(
            f'"{name}" = {{ prior = {p.prior:g}, {value}spread = {p.spread:g}, means = "{p.source}" }}'
        )
    lines += [
        "",
        "# Ends of 80 % of log(measured / predicted) on unseen cells, by tier",
        "[spread]",
    ]
    lines += [f'"{name}" = [{low:.3g}, {high:.3g}]' for name, (low, high) in sorted(fitted.spread.items())]
    lines += ["", "# Chips whose rows were fitted", "[seen]"]
    for group, chips in sorted(fitted.seen.items()):
        lines += [f"{group} = [", *(f'  "{chip}",' for chip in sorted(chips)), "]"]
    return "\n".join(lines) + "\n"


def _design(rows: Sequence[FitRow], names: Sequence[str]) -> tuple[Array, Array]:
    X = np.array([[r.speed.get(n, 0.0) for n in names] for r in rows])
    H = np.array([[r.limit.get(n, 0.0) for n in names] for r in rows])
    return X, H


def _curves(rows: Sequence[FitRow], at: Array) -> tuple[Array, Array]:
    """Value and slope of every row's curve at its slack; straight on beyond the ends."""
    grid = rows[0].slack
    step = float(grid[1] - grid[0])
    table = np.array([r.curve for r in rows])
    place = (at - grid[0]) / step
    left: NDArray[np.int64] = np.clip(place.astype(np.int64), 0, len(grid) - 2)
    line = np.arange(len(rows))
    low, high = table[line, left], table[line, left + 1]
    share = np.clip(place - left, 0.0, None)
    share = np.where(left == len(grid) - 2, np.minimum(share, 1.0), share)
    return low + share * (high - low), (high - low) / step
