"""Effects on the parameters of a formula, shared over hardware and software in a hierarchy.

A parameter q of row i is exp(sum of effects): one for all rows, one for its data type, one for its generation, one for
its chip, ... Here are their priors, their values, and how they are named when they are shipped; `fit` fits them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache, cached_property, partial

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.parameter import Parameter
from chipwise.units import Array
from chipwise.values import dataclass

Labels = Mapping[str, NDArray[np.str_]]
"""Texts by name, one per row: chip, generation, dtype, ..."""

SCATTER = 0.12  # one standard deviation of log(time) of a good row: noise floor of kernel timings
SCATTER_SPREAD = 0.1  # of the logarithm of a scatter: assumed
NO_WIDTH = 1e-6
"""standard deviation: of rows that a formula meets. Exact: far below what any clock tells apart."""
LEAST_WIDTH = 0.25
"""Of the logarithm of a scatter: ranges and kinds that are nearer to their formula's have its own. Chosen: it leaves 62
of 121 widths of kernels and systolic arrays, and intervals hold as often; moves intervals of kernels alone."""
SCATTER_EDGES_S = (1e-5, 1e-4, 1e-3)  # between ranges of predicted time: short kernels scatter more than long ones


@dataclass(frozen=True, slots=True)
class EffectLevel:
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
    levels: tuple[EffectLevel, ...] = ()
    low: float = 0.0
    high: float = np.inf

    @property
    def all_levels(self) -> tuple[EffectLevel, ...]:
        """The overall effect first."""
        return (EffectLevel((), self.spread, {"": float(np.log(self.mid))}), *self.levels)


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
class Widths:
    """One standard deviation of log(time) of rows around a formula: one for each range of predicted time, times a
    factor of those `kinds` of rows that scatter otherwise."""

    ranges: tuple[float, ...] = (SCATTER,) * (len(SCATTER_EDGES_S) + 1)
    kinds: Mapping[str, float] = field(default_factory=dict)

    def of(self, seconds: Array, kinds: NDArray[np.str_]) -> Array:
        """That of rows of such predicted times and kinds, [row]."""
        keys, codes = np.unique(kinds, return_inverse=True)
        factors = np.array([self.kinds.get(str(k), 1.0) for k in keys])
        return np.asarray(np.array(self.ranges)[np.searchsorted(SCATTER_EDGES_S, seconds)] * factors[codes])

    def parameters(self, prefix: str, source: str, rows_hash: str) -> dict[str, Parameter]:
        """What to ship: `prefix.scatter.all`, the median of ranges, and factors `.range=i` and `.kind=key` of those
        that differ by more than `LEAST_WIDTH`."""
        ranges = np.maximum(self.ranges, NO_WIDTH)
        middle = float(np.exp(np.median(np.log(ranges))))
        unit = "standard deviation of log(time)"
        found = {f"{prefix}.scatter.all": Parameter(SCATTER, middle, SCATTER_SPREAD, unit, source, rows_hash)}
        factors = {f"range={i}": float(sigma) / middle for i, sigma in enumerate(ranges)}
        factors |= {f"kind={key}": factor for key, factor in self.kinds.items()}
        return found | {
            f"{prefix}.scatter.{name}": Parameter(1.0, factor, SCATTER_SPREAD, "factor", source, rows_hash)
            for name, factor in factors.items()
            if abs(np.log(factor)) > LEAST_WIDTH
        }

    @classmethod
    def read(cls, known: Mapping[str, Mapping[str, float]]) -> Widths:
        """The inverse of `parameters`, of what it named under "", "range" and "kind"."""
        middle = known[""].get("", SCATTER)
        return cls(tuple(middle * known["range"].get(str(i), 1.0) for i in range(len(cls().ranges))), known["kind"])


@dataclass(frozen=True)
class Effects:
    """All effects of one formula, by (quantity, level, key); rows whose key is unknown get the prior's 0.

    `labels`: by attribute the values that rows had and no effect tells, as none was worth a number.
    """

    quantities: Mapping[str, Quantity]
    table: Mapping[tuple[str, str, str], Effect]
    scatter: Widths = Widths()
    rows_hash: str = ""
    labels: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def values(self, labels: Labels) -> dict[str, Array]:
        """Every quantity for every row."""
        logs = self._columns(labels, lambda level, key, e: level.centres.get(key, 0.0) if e is None else e.value)
        return {
            name: np.clip(np.exp(sum(columns, np.asarray(0.0))), self.quantities[name].low, self.quantities[name].high)
            for name, columns in logs
        }

    def _columns(
        self, labels: Labels, of: Callable[[EffectLevel, str, Effect | None], float]
    ) -> Iterator[tuple[str, list[Array]]]:
        """Of every quantity what `of` says of its effect of each level on every row, from level, key and effect
        (None: it has no number)."""
        coded = cache(partial(label_codes, labels))  # levels of most quantities share their attributes
        for name, quantity in self.quantities.items():
            columns = []
            for level in quantity.all_levels:
                keys, codes = coded(level.attributes)
                said = [of(level, key, self.table.get((name, level.name, key))) for key in keys]
                columns.append(np.array(said)[codes])
            yield name, columns

    def keys_of(self, attribute: str) -> list[str]:
        """Values of an attribute, a generation say, that the rows of the fit had."""
        return sorted(self._told.get(attribute, frozenset()) | self.labels.get(attribute, frozenset()))

    @cached_property
    def _told(self) -> Mapping[str, frozenset[str]]:
        """Values of every attribute that some effect is about."""
        return told(self.quantities, self.table)

    def spreads(self, labels: Labels) -> dict[str, Array]:
        """One standard deviation of log(quantity) for every row: effects without rows bring their prior's, those that
        rows knew and did not need bring none."""
        found = self._columns(labels, lambda level, key, e: self._doubt(level, key) if e is None else e.spread)
        return {name: np.sqrt(sum((c**2 for c in columns), np.asarray(0.0))) for name, columns in found}

    def _doubt(self, level: EffectLevel, key: str) -> float:
        """The spread of an effect that has no number: none if rows had its labels, else the prior's."""
        pairs = zip(level.attributes, key.split("+"), strict=False)
        known = all(v in self._told.get(a, ()) or v in self.labels.get(a, ()) for a, v in pairs)
        return 0.0 if known and self.table else level.spread

    def parameters(self, prefix: str, source: str, least: float = 0.0) -> dict[str, Parameter]:
        """Named parameters to ship: `prefix.quantity.all`, factors `prefix.quantity.level=key`.

        Factors that the rows moved less than `least` and told little about (more than half of the prior's spread is
        left), or less than a tenth of it, are left out; `prefix.label.attribute=key` says what was measured and has no
        number.
        """
        out: dict[str, Parameter] = {}
        written: set[tuple[str, str, str]] = set()
        prior_spread = {(q, v.name): v.spread for q, s in self.quantities.items() for v in s.all_levels}
        for (name, level, key), e in self.table.items():
            moved, vague = abs(e.value - e.prior), e.spread > 0.5 * prior_spread[name, level]
            if level and moved < (least if vague else least / 10.0):
                continue
            full = f"{prefix}.{name_of(name, level, key)}"
            quantity = self.quantities[name]
            unit = quantity.unit if not level else "factor"
            value = float(np.exp(e.value))
            if not quantity.levels:  # nothing is added to it, so that its bounds are known here
                value = min(max(value, quantity.low), quantity.high)
            out[full] = Parameter(float(np.exp(e.prior)), value, e.spread, unit, source, self.rows_hash)
            written.add((name, level, key))
        known = told(self.quantities, written)
        for attribute in sorted(self._told.keys() | self.labels.keys()):
            for key in self.keys_of(attribute):
                if key not in known.get(attribute, ()):
                    seen = Parameter(1.0, 1.0, 0.0, "seen", source, self.rows_hash)
                    out[f"{prefix}.label.{attribute}={key}"] = seen
        return out

    @classmethod
    def of(cls, table: Mapping[str, Parameter], prefix: str, prior: Mapping[str, Quantity]) -> Effects:
        """The inverse of `parameters` and `Widths.parameters`; what `table` does not hold keeps its prior."""
        effects: dict[tuple[str, str, str], Effect] = {}
        widths: dict[str, dict[str, float]] = {"": {}, "range": {}, "kind": {}}
        labels: dict[str, frozenset[str]] = {}
        levels = {(q, v.name) for q, s in prior.items() for v in s.all_levels}
        longest = sorted(prior, key=len, reverse=True)  # names of quantities may hold dots
        start, rows_hash = f"{prefix}.", ""
        for full, p in table.items():
            if not full.startswith(start):
                continue
            rest = full[len(start) :]
            quantity = next((q for q in longest if rest.startswith(f"{q}.")), rest.partition(".")[0])
            tail = rest[len(quantity) + 1 :]
            level, _, key = tail.partition("=") if tail != "all" else ("", "", "")
            if (quantity, level) in levels:
                effect = Effect(float(np.log(p.prior)), float(np.log(p.value)), p.spread, 0)
                effects[quantity, level, key] = effect
                rows_hash = p.rows
            elif quantity == "label":
                labels[level] = labels.get(level, frozenset()) | {key}
            elif quantity == "scatter":
                widths[level][key] = p.value
        return cls(prior, effects, Widths.read(widths), rows_hash, labels)


def name_of(quantity: str, level: str, key: str) -> str:
    """An effect as it ships: `quantity.all`, or `quantity.level=key`."""
    return f"{quantity}.{level}={key}" if level else f"{quantity}.all"


def told(quantities: Mapping[str, Quantity], names: Iterable[tuple[str, str, str]]) -> dict[str, frozenset[str]]:
    """By attribute the values that effects of these names (quantity, level, key) are about."""
    attributes = {level.name: level.attributes for q in quantities.values() for level in q.levels}
    found: dict[str, set[str]] = {}
    for _, level, key in names:
        for attribute, value in zip(attributes.get(level, ()), key.split("+"), strict=False):
            found.setdefault(attribute, set()).add(value)
    return {attribute: frozenset(values) for attribute, values in found.items()}


@dataclass(frozen=True)
class EffectGroup:
    """Numbers that are fitted together: the start of their names, what is believed of them, and what they were fitted
    on. Factors that rows moved less than `least` are not shipped."""

    prefix: str
    quantities: Mapping[str, Quantity]
    source: str
    least: float = 0.0

    def of(self, table: Mapping[str, Parameter]) -> Effects:
        """Their effects among the parameters; priors where there are none."""
        return Effects.of(table, self.prefix, self.quantities)

    def parameters(self, effects: Effects) -> dict[str, Parameter]:
        """What to ship of a fit."""
        return effects.parameters(self.prefix, self.source, self.least)


def seen(name: str, values: Sequence[str], source: str, rows_hash: str = "") -> dict[str, Parameter]:
    """How many rows of each label a fit has seen, to ship beside it: they decide how near a prediction is."""
    keys, counts = np.unique(np.asarray(values, dtype=np.str_), return_counts=True)
    return {
        f"{name}={key}": Parameter(float(n), float(n), 0.0, "rows", source, rows_hash)
        for key, n in zip(keys.tolist(), counts.tolist(), strict=True)
    }


def label_codes(labels: Labels, attributes: Sequence[str]) -> tuple[list[str], NDArray[np.intp]]:
    """Distinct combinations of the attributes, and which one each row has."""
    if not attributes:
        size = len(next(iter(labels.values())))
        return [""], np.zeros(size, dtype=np.intp)
    if len(labels[attributes[0]]) == 1:
        return ["+".join(str(labels[name][0]) for name in attributes)], np.zeros(1, dtype=np.intp)
    joined = labels[attributes[0]].astype(str)
    for name in attributes[1:]:
        joined = np.char.add(np.char.add(joined, "+"), labels[name].astype(str))
    keys, codes = np.unique(joined, return_inverse=True)
    return [str(k) for k in keys], codes.astype(np.intp)
