"""Fits the parameters of a formula to measured times, shared over hardware and software in a hierarchy.

A parameter q of row i is exp(sum of effects): one for all rows, one for its data type, one for its
generation, one for its chip, ... Every effect has a normal prior around 0 (around log(mid) for the first), so
that a chip with many rows gets its own value, one with five moves part of the way, and one with none keeps
what its relatives have and a wider interval.

    minimise  sum_i w_i huber(log t_i - log y_i) / s^2 + 1/2 sum_e ((e - prior_e) / spread_e)^2

by damped Gauss-Newton; derivatives are differences of the formula, one evaluation per parameter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.parameter import Parameter
from chipwise.units import Array, Real

__all__ = ["Effect", "Effects", "Level", "Quantity", "Rows", "fit", "log_spread"]

Labels = Mapping[str, NDArray[np.str_]]
Model = Callable[[Mapping[str, Real]], Array]

HUBER = 0.15  # of log(predicted / measured): beyond this a row pulls with constant force
SCATTER = 0.12  # one standard deviation of a good row: noise floor of kernel timings
SCATTER_SPREAD = 0.1  # of the logarithm of a scatter: assumed
STEP = 0.02  # of log(parameter), for derivatives
# Short kernels scatter more than long ones: one residual spread for each range of predicted time.
SCATTER_EDGES_S = (1e-5, 1e-4, 1e-3)


@dataclass(frozen=True, slots=True)
class Level:
    """An effect for each combination of `attributes` seen in the rows, with prior N(centre, spread)."""

    attributes: tuple[str, ...]
    spread: float
    centres: Mapping[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """`dtype+generation`."""
        return "+".join(self.attributes)


@dataclass(frozen=True, slots=True)
class Quantity:
    """One parameter of a formula: prior `mid` with `spread` (of its logarithm), kept within low..high."""

    mid: float
    spread: float
    unit: str
    levels: tuple[Level, ...] = ()
    low: float = 0.0
    high: float = np.inf

    @property
    def all_levels(self) -> tuple[Level, ...]:
        """The overall effect first."""
        return (Level((), self.spread, {"": float(np.log(self.mid))}), *self.levels)


@dataclass(frozen=True, slots=True)
class Effect:
    """One fitted effect on log(parameter): its prior, value and rows, and its standard deviation with the
    other effects held: what is confounded in all rows alike does not widen their predictions."""

    prior: float
    value: float
    spread: float
    rows: int

    @property
    def factor(self) -> float:
        """What the parameter is multiplied by; the parameter itself where the effect is the overall one."""
        return float(np.exp(self.value))


@dataclass(frozen=True)
class Effects:
    """All effects of one formula, by (quantity, level, key); rows whose key is unknown get the prior's 0."""

    quantities: Mapping[str, Quantity]
    table: Mapping[tuple[str, str, str], Effect]
    scatter: tuple[float, ...] = (SCATTER,) * (len(SCATTER_EDGES_S) + 1)
    rows_hash: str = ""

    def values(self, labels: Labels) -> dict[str, Array]:
        """Every quantity for every row."""
        out: dict[str, Array] = {}
        for name, quantity in self.quantities.items():
            total: Array = np.asarray(0.0)
            for level in quantity.all_levels:
                keys, codes = _keys(labels, level.attributes)
                known = [self.table.get((name, level.name, k)) for k in keys]
                column = np.array(
                    [
                        level.centres.get(k, 0.0) if e is None else e.value
                        for k, e in zip(keys, known, strict=True)
                    ]
                )
                total = total + column[codes]
            out[name] = np.clip(np.exp(total), quantity.low, quantity.high)
        return out

    def keys_of(self, attribute: str) -> list[str]:
        """Values of an attribute, a generation say, for which any effect was fitted."""
        places = {
            level.name: level.attributes.index(attribute)
            for quantity in self.quantities.values()
            for level in quantity.levels
            if attribute in level.attributes
        }
        found = {key.split("+")[places[level]] for _, level, key in self.table if level in places}
        return sorted(found)

    def spreads(self, labels: Labels) -> dict[str, Array]:
        """One standard deviation of log(quantity) for every row: effects without rows bring their prior's."""
        out: dict[str, Array] = {}
        for name, quantity in self.quantities.items():
            total: Array = np.asarray(0.0)
            for level in quantity.all_levels:
                keys, codes = _keys(labels, level.attributes)
                known = [self.table.get((name, level.name, k)) for k in keys]
                column = np.array([level.spread if e is None else e.spread for e in known])
                total = total + column[codes] ** 2
            out[name] = np.sqrt(total)
        return out

    def parameters(self, prefix: str, source: str, least: float = 0.0) -> dict[str, Parameter]:
        """Named parameters to ship: `prefix.quantity.all`, factors `prefix.quantity.level=key`.

        Factors that the rows moved less than `least` and told little about (more than half of the prior's
        spread is left) are left out; read back, they count as never measured.
        """
        out: dict[str, Parameter] = {}
        prior_spread = {(q, v.name): v.spread for q, s in self.quantities.items() for v in s.all_levels}
        for (name, level, key), e in self.table.items():
            if level and abs(e.value - e.prior) < least and e.spread > 0.5 * prior_spread[name, level]:
                continue
            full = f"{prefix}.{name}.all" if not level else f"{prefix}.{name}.{level}={key}"
            quantity = self.quantities[name]
            unit = quantity.unit if not level else "factor"
            value = float(np.exp(e.value))
            if not quantity.levels:  # nothing is added to it, so that its bounds are known here
                value = min(max(value, quantity.low), quantity.high)
            out[full] = Parameter(float(np.exp(e.prior)), value, e.spread, unit, source, self.rows_hash)
        for i, sigma in enumerate(self.scatter):
            out[f"{prefix}.scatter.{i}"] = Parameter(
                SCATTER,
                sigma,
                SCATTER_SPREAD,
                "standard deviation of log(time), by range of time",
                source,
                self.rows_hash,
            )
        return out

    @classmethod
    def of(cls, table: Mapping[str, Parameter], prefix: str, prior: Mapping[str, Quantity]) -> Effects:
        """The inverse of `parameters`; what `table` does not hold keeps its prior."""
        effects: dict[tuple[str, str, str], Effect] = {}
        scatter = [SCATTER] * (len(SCATTER_EDGES_S) + 1)
        levels = {(q, v.name) for q, s in prior.items() for v in s.all_levels}
        start, rows_hash = f"{prefix}.", ""
        for full, p in table.items():
            if not full.startswith(start):
                continue
            quantity, _, tail = full[len(start) :].partition(".")
            level, _, key = tail.partition("=") if tail != "all" else ("", "", "")
            if (quantity, level) in levels:
                effect = Effect(float(np.log(p.prior)), float(np.log(p.value)), p.spread, 0)
                effects[quantity, level, key] = effect
                rows_hash = p.rows
            elif quantity == "scatter":
                scatter[int(tail)] = p.value
        return cls(prior, effects, tuple(scatter), rows_hash)


@dataclass(frozen=True)
class Rows:
    """Measured rows of one formula: labels, seconds, and the formula at all rows or at some of them."""

    labels: Labels
    measured_s: Array
    model: Callable[[Mapping[str, Real], NDArray[np.intp]], Array]
    weight: Array | None = None

    def __len__(self) -> int:
        return len(self.measured_s)

    def take(self, index: NDArray[np.intp]) -> Rows:
        """Some of the rows."""
        whole = self.model
        return Rows(
            {k: v[index] for k, v in self.labels.items()},
            self.measured_s[index],
            lambda values, i: whole(values, index[i]),
            None if self.weight is None else self.weight[index],
        )

    def predict(self, effects: Effects) -> Array:
        """Seconds of every row."""
        return self.model(effects.values(self.labels), np.arange(len(self)))

    @property
    def digest(self) -> str:
        """Hash of what was measured."""
        return hashlib.sha256(np.sort(self.measured_s).tobytes()).hexdigest()[:12]


def fit(rows: Rows, prior: Mapping[str, Quantity], *, iterations: int = 15) -> Effects:
    """The effects that explain the rows best under their priors. Pure: same rows, same answer."""
    names, blocks, centre, spread = _design(rows.labels, prior)
    size = len(centre)
    measured = np.log(rows.measured_s)
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    everything = np.arange(len(rows))
    bounds = {q: (np.log(max(s.low, 1e-300)), np.log(s.high)) for q, s in prior.items()}

    def logs(theta: Array) -> dict[str, Array]:
        sums = {q: np.sum([theta[c] for c in codes], axis=0) for q, codes in blocks.items()}
        return {q: np.clip(total, *bounds[q]) for q, total in sums.items()}

    def residual(columns: Mapping[str, Array]) -> Array:
        times = rows.model({q: np.exp(v) for q, v in columns.items()}, everything)
        difference: Array = np.log(times) - measured
        return difference

    def loss(r: Array, theta: Array) -> float:
        a = np.abs(r)
        pull = np.where(a < HUBER, 0.5 * a * a, HUBER * (a - 0.5 * HUBER))
        return float(np.sum(weight * pull) / SCATTER**2 + 0.5 * np.sum(((theta - centre) / spread) ** 2))

    theta = centre.copy()
    columns = logs(theta)
    r = residual(columns)
    best = loss(r, theta)
    damping = 1e-2
    hessian = np.diag(1.0 / spread**2)
    for _ in range(iterations):
        pull = weight * np.minimum(1.0, HUBER / np.maximum(np.abs(r), 1e-12)) / SCATTER**2
        slopes = {q: (residual({**columns, q: columns[q] + STEP}) - r) / STEP for q in blocks}
        hessian, gradient = _normal_equations(blocks, slopes, pull, r, size)
        hessian += np.diag(1.0 / spread**2)
        gradient += (theta - centre) / spread**2
        gain = 0.0
        for _ in range(6):
            move = np.linalg.solve(hessian + damping * np.diag(np.diag(hessian)), -gradient)
            trial = theta + np.clip(move, -0.7, 0.7)
            trial_columns = logs(trial)
            trial_r = residual(trial_columns)
            value = loss(trial_r, trial)
            if value < best:
                gain, best = best - value, value
                theta, columns, r = trial, trial_columns, trial_r
                damping = max(damping / 5.0, 1e-5)
                break
            damping *= 6.0
        if gain < 1e-4 * best:
            break
    deviation = 1.0 / np.sqrt(np.diag(hessian))
    counts = np.zeros(size, dtype=int)
    for codes in blocks.values():
        for c in codes:
            counts += np.bincount(c, minlength=size)
    table = {
        name: Effect(float(centre[i]), float(theta[i]), float(deviation[i]), int(counts[i]))
        for i, name in enumerate(names)
    }
    scatter = _scatter(r, np.exp(measured + r))
    return Effects(dict(prior), table, scatter, rows.digest)


def log_spread(rows: Rows, effects: Effects) -> Array:
    """One standard deviation of log(time) per row: parameters through the formula, and its scatter."""
    everything = np.arange(len(rows))
    values = effects.values(rows.labels)
    base = np.log(rows.model(values, everything))
    variance = np.asarray(effects.scatter)[np.searchsorted(SCATTER_EDGES_S, np.exp(base))] ** 2
    for name, spread in effects.spreads(rows.labels).items():
        moved = {**values, name: values[name] * np.exp(STEP)}
        slope = (np.log(rows.model(moved, everything)) - base) / STEP
        variance = variance + (slope * spread) ** 2
    deviation: Array = np.sqrt(variance)
    return deviation


def _scatter(residuals: Array, predicted_s: Array) -> tuple[float, ...]:
    """Half the distance between the 10 % and 90 % residuals as a standard deviation, by range of time."""
    ranges = np.searchsorted(SCATTER_EDGES_S, predicted_s)
    out = []
    for i in range(len(SCATTER_EDGES_S) + 1):
        part = residuals[ranges == i]
        part = part if len(part) >= 30 else residuals
        out.append(float(np.subtract(*np.quantile(part, [0.9, 0.1])) / 2.563) if len(part) else SCATTER)
    return tuple(out)


def _keys(labels: Labels, attributes: Sequence[str]) -> tuple[list[str], NDArray[np.intp]]:
    """Distinct combinations of the attributes, and which one each row has."""
    if not attributes:
        size = len(next(iter(labels.values())))
        return [""], np.zeros(size, dtype=np.intp)
    joined = labels[attributes[0]].astype(str)
    for name in attributes[1:]:
        joined = np.char.add(np.char.add(joined, "+"), labels[name].astype(str))
    keys, codes = np.unique(joined, return_inverse=True)
    return [str(k) for k in keys], codes.astype(np.intp)


def _design(
    labels: Labels, prior: Mapping[str, Quantity]
) -> tuple[list[tuple[str, str, str]], dict[str, list[NDArray[np.intp]]], Array, Array]:
    """Names of the effects, per quantity the effect of each row at each level, prior centres and spreads."""
    names: list[tuple[str, str, str]] = []
    centre: list[float] = []
    spread: list[float] = []
    blocks: dict[str, list[NDArray[np.intp]]] = {}
    for quantity, spec in prior.items():
        blocks[quantity] = []
        for level in spec.all_levels:
            keys, codes = _keys(labels, level.attributes)
            blocks[quantity].append(codes + len(names))
            names += [(quantity, level.name, key) for key in keys]
            centre += [level.centres.get(key, 0.0) for key in keys]
            spread += [level.spread] * len(keys)
    return names, blocks, np.array(centre), np.array(spread)


def _normal_equations(
    blocks: Mapping[str, Sequence[NDArray[np.intp]]],
    slopes: Mapping[str, Array],
    pull: Array,
    residuals: Array,
    size: int,
) -> tuple[Array, Array]:
    """J^T W J and J^T W r, where row i of J holds slope q_i in the column of each of its effects on q."""
    hessian = np.zeros((size, size))
    gradient = np.zeros(size)
    quantities = list(blocks)
    for i, q in enumerate(quantities):
        for a in blocks[q]:
            gradient += np.bincount(a, pull * residuals * slopes[q], size)
        for other in quantities[i:]:
            product = pull * slopes[q] * slopes[other]
            for a in blocks[q]:
                for b in blocks[other]:
                    part = np.bincount(a * size + b, product, size * size).reshape(size, size)
                    hessian += part
                    if other != q:
                        hessian += part.T
    return hessian, gradient
