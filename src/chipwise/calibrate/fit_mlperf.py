"""Fitting the factors of MLPerf submissions with samples of fixed size: maximum a posteriori, robust, least squares.

The model (see `evidence.mlperf_features`): log rate = what physics reaches + features x parameters. Every parameter has
a normal prior; residuals beyond 1.3 times the noise count by their size only (Huber), so that rows with mislabelled
precision or untuned software do not steer the rest. Pure functions of their rows.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from chipwise.calibrate.parameter import Parameter
from chipwise.catalog.parsed import parse
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.units import Array

__all__ = ["FitRow", "Fitted", "fit", "folds", "predict", "shipped_mlperf", "to_toml", "worth_fitting"]

NOISE = 0.15
"""Spread of log(measured) of one cell between submissions beyond what the features know."""

HUBER = 1.3
STEPS = 14


@dataclass(frozen=True)
class FitRow:
    """One run: `cell` must stay on one side of a split; `physics` is the logarithm of the rate without factors.

    `log_measured` is NaN where only a prediction is wanted.
    """

    id: str
    cell: tuple[str, str]
    physics: float
    features: Mapping[str, float]
    log_measured: float = float("nan")


@dataclass(frozen=True)
class Fitted:
    """Parameters by name; one that a row asks for and nobody has is 0.

    `spread` holds, by scenario and tier ("fixed.Server.chip"), the ends of 80 % of log(measured / predicted)
    on cells that the fit did not see; `seen` the chips whose rows were fitted.
    """

    table: Mapping[str, Parameter]
    spread: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    seen: frozenset[str] = frozenset()

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
    return Fitted(table, spread, frozenset(data.get("seen", {}).get("fixed", ())))


def fit(rows: Sequence[FitRow], prior: Fitted) -> Fitted:
    """The parameters that explain `rows`; those that no row touches keep their prior."""
    names = sorted({n for r in rows for n in r.features} & set(prior.table))
    if not names:
        return prior
    design = _design(rows, names)
    beyond = np.array([r.log_measured - r.physics for r in rows])
    mean = np.array([prior.table[n].prior for n in names])
    spread = np.array([prior.table[n].spread for n in names])
    theta = mean.copy()
    for _ in range(STEPS):
        residual = beyond - design @ theta
        weight = 1.0 / np.maximum(1.0, np.abs(residual) / (HUBER * NOISE)) / NOISE**2
        weighted = design * weight[:, None]
        precision = weighted.T @ design + np.diag(spread**-2.0)
        theta = theta + np.linalg.solve(precision, weighted.T @ residual + (mean - theta) / spread**2)
    mark = hashlib.sha256(" ".join(sorted(r.id for r in rows)).encode()).hexdigest()[:12]
    table = dict(prior.table)
    for name, value in zip(names, theta, strict=True):
        p = table[name]
        table[name] = Parameter(p.prior, float(value), p.spread, p.unit, p.source, mark)
    return Fitted(table, prior.spread, prior.seen)


def predict(rows: Sequence[FitRow], fitted: Fitted) -> Array:
    """log of the rate of every row."""
    return np.array([r.physics + sum(v * fitted.value(n) for n, v in r.features.items()) for r in rows])


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
    """Rows with a finite measurement and physics."""
    return math.isfinite(row.log_measured) and math.isfinite(row.physics)


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
    lines += ["fixed = [", *(f'  "{chip}",' for chip in sorted(fitted.seen)), "]"]
    return "\n".join(lines) + "\n"


def _design(rows: Sequence[FitRow], names: Sequence[str]) -> Array:
    return np.array([[r.features.get(n, 0.0) for n in names] for r in rows])
