"""Fits the effects on the parameters of a formula to measured times.

Every effect has a normal prior around 0 (around log(mid) for the first), so that a chip with many rows gets its own
value, one with five moves part of the way, and one with none keeps what its relatives have and a wider interval.

    minimise  sum_i w_i huber(log t_i - log y_i) / s^2 + 1/2 sum_e ((e - prior_e) / spread_e)^2

by damped Gauss-Newton; derivatives are differences of the formula, one evaluation per parameter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.effects import (
    SCATTER,
    SCATTER_EDGES_S,
    Effect,
    Effects,
    Labels,
    Quantity,
    Widths,
    label_codes,
    name_of,
    told,
)
from chipwise.calibrate.parameter import Z80
from chipwise.units import Array, Real
from chipwise.values import dataclass

Model = Callable[[Mapping[str, Real]], Array]

WORTH = 0.1
"""What a number must explain to ship (`fit`), where a suite says nothing else. Chosen: networks with 27 numbers instead
of 51 are no worse on figures of strangers, submissions of samples with 25 instead of 35 no worse with a cell or a chip
left out; moves what is learnt from few rows."""
HUBER = 0.15  # of log(predicted / measured): beyond this a row pulls with constant force
STEP = 0.02  # of log(parameter), for derivatives
LEAST_SCATTER = 30  # rows from which a range of times, or a kind of row, has a scatter of its own
LEAST_FACTOR = 0.1  # of a kind of rows: none is known ten times as well as all
ROUNDS, FEW = 5, 4  # of dropping effects and solving again, in so many steps
DECILES = 2.563  # standard deviations between the 10 % and the 90 % quantile of a normal distribution


@dataclass(frozen=True)
class FitRows:
    """Measured rows of one formula: labels, seconds, and the formula at all rows or at some of them. `alike` names
    what each shares its scatter with."""

    labels: Labels
    measured_s: Array
    model: Callable[[Mapping[str, Real], NDArray[np.intp]], Array]
    weight: Array | None = None
    alike: NDArray[np.str_] | None = None

    def __len__(self) -> int:
        return len(self.measured_s)

    def take(self, index: NDArray[np.intp]) -> FitRows:
        """Some of the rows."""
        whole = self.model
        return FitRows(
            {k: v[index] for k, v in self.labels.items()},
            self.measured_s[index],
            lambda values, i: whole(values, index[i]),
            None if self.weight is None else self.weight[index],
            None if self.alike is None else self.alike[index],
        )

    def predict(self, effects: Effects) -> Array:
        """Seconds of every row."""
        return self.model(effects.values(self.labels), np.arange(len(self)))

    @property
    def digest(self) -> str:
        """Hash of what was measured."""
        return hashlib.sha256(np.sort(self.measured_s).tobytes()).hexdigest()[:12]


def fit(rows: FitRows, prior: Mapping[str, Quantity], *, iterations: int = 15, worth: float = 0.0) -> Effects:
    """The effects that explain the rows best under their priors. Pure: same rows, same answer.

    With `worth` an effect is a number only if without it, the others moving to make up for it, the loss L would grow by
    worth x sqrt(L): between a fixed price, which gives large tables all numbers, and a share of L, which gives them to
    small ones. What is not worth it stays at its prior, where it falls back to its relatives. The cheapest go first, on
    the quadratic model of the loss at its minimum, half of them at most before the fit is solved again.
    """
    work = _Work(rows, prior)
    return work.effects(*work.worthy(iterations, worth))


@dataclass(frozen=True)
class Fitting:
    """Numbers that are fitted together: measured rows, what is believed of the numbers, and the other arguments of
    `fit`."""

    rows: FitRows
    prior: Mapping[str, Quantity]
    worth: float = 0.0
    iterations: int = 15

    def effects(self) -> Effects:
        """What the rows tell."""
        return fit(self.rows, self.prior, iterations=self.iterations, worth=self.worth)


@dataclass(frozen=True, slots=True)
class Bought:
    """What a fitted number buys on rows that its fit had not seen: its name, prior, value and spread where all rows are
    fitted, how many of them it moves, and the median of |log(predicted / measured)| on those, out of fold, `known` and
    `unknown`: at its prior, while the others move to make up for it. `buys` is the difference of the means."""

    name: str
    prior: float
    value: float
    spread: float
    rows: int
    known: float
    unknown: float
    buys: float


def bought(
    of: Fitting, at: NDArray[np.intp], folds: Iterable[tuple[NDArray[np.intp], NDArray[np.intp]]]
) -> list[Bought]:
    """What every number of a fit buys, the least first. `at` [row] are the places of its rows in a table; `folds` are
    places that are kept and left out. A number of which no fold has rows on both sides buys nothing that can be told,
    and is left out."""
    off: dict[tuple[str, str, str], list[Array]] = {}
    for kept, out in folds:
        some, rest = np.flatnonzero(np.isin(at, kept)), np.flatnonzero(np.isin(at, out))
        if len(some) and len(rest):
            work, left = _Work(of.rows.take(some), of.prior), of.rows.take(rest)
            solved = work.worthy(of.iterations, of.worth)
            for name, errors in work.bought(*solved, left):
                off.setdefault(name, []).append(errors)
    found = []
    for (quantity, level, key), e in of.effects().table.items():
        if (quantity, level, key) in off:
            known, unknown = np.concatenate(off[quantity, level, key], axis=1)
            medians = float(np.median(known)), float(np.median(unknown))
            gain = float(np.mean(unknown) - np.mean(known))
            prior, value = float(np.exp(e.prior)), e.factor
            found.append(Bought(name_of(quantity, level, key), prior, value, e.spread, len(known), *medians, gain))
    return sorted(found, key=lambda b: b.buys)


class _Work:
    """Rows and priors as one vector of effects: its loss, and the minimum over those that are `kept`."""

    def __init__(self, rows: FitRows, prior: Mapping[str, Quantity]) -> None:
        self.rows, self.prior = rows, prior
        self.names, self.blocks, self.centre, self.spread = _design(rows.labels, prior)
        self._measured = np.log(rows.measured_s)
        self._weight = np.ones(len(rows)) if rows.weight is None else rows.weight
        self._everything = np.arange(len(rows))
        self._bounds = {q: (np.log(max(s.low, 1e-300)), np.log(s.high)) for q, s in prior.items()}

    def _sums(self, theta: Array) -> dict[str, Array]:
        return {q: np.sum([theta[c] for c in codes], axis=0) for q, codes in self.blocks.items()}

    def _logs(self, sums: Mapping[str, Array]) -> dict[str, Array]:
        """Logarithms of the parameters: sums of effects, within the bounds of their quantity."""
        return {q: np.clip(total, *self._bounds[q]) for q, total in sums.items()}

    def _residual(self, columns: Mapping[str, Array]) -> Array:
        times = self.rows.model({q: np.exp(v) for q, v in columns.items()}, self._everything)
        difference: Array = np.log(times) - self._measured
        return difference

    def _loss(self, r: Array, theta: Array) -> float:
        a = np.abs(r)
        pull = np.where(a < HUBER, 0.5 * a * a, HUBER * (a - 0.5 * HUBER))
        doubt = 0.5 * np.sum(((theta - self.centre) / self.spread) ** 2)
        return float(np.sum(self._weight * pull) / SCATTER**2 + doubt)

    def solved(self, theta: Array, kept: NDArray[np.bool_], iterations: int) -> tuple[Array, Array, float]:
        """The best effects from a start, those that are not kept as they are; the Hessian of the loss over those that
        are; and the loss."""
        free = int(kept.sum())
        blocks = self._free(kept)
        spread, centre = self.spread[kept], self.centre[kept]
        sums = self._sums(theta)
        columns = self._logs(sums)
        r = self._residual(columns)
        best = self._loss(r, theta)
        damping = 1e-2

        def equations(slopes: Mapping[str, Array]) -> tuple[Array, Array]:
            pull = self._weight * np.minimum(1.0, HUBER / np.maximum(np.abs(r), 1e-12)) / SCATTER**2
            hessian, gradient = _normal_equations(blocks, slopes, pull, r, free)
            return hessian + np.diag(1.0 / spread**2), gradient + (theta[kept] - centre) / spread**2

        for _ in range(iterations):
            slopes, held = self._slopes(blocks, sums, columns, r)
            hessian, gradient = equations({q: np.where(held[q], 0.0, slopes[q]) for q in blocks})
            gain = 0.0
            for _ in range(6):
                move = np.linalg.solve(hessian + damping * np.diag(np.diag(hessian)), -gradient)
                trial = theta.copy()
                trial[kept] += np.clip(move, -0.7, 0.7)
                trial_sums = self._sums(trial)
                trial_columns = self._logs(trial_sums)
                trial_r = self._residual(trial_columns)
                value = self._loss(trial_r, trial)
                if value < best:
                    gain, best = best - value, value
                    theta, sums, columns, r = trial, trial_sums, trial_columns, trial_r
                    damping = max(damping / 5.0, 1e-5)
                    break
                damping *= 6.0
            if gain < 1e-4 * best:
                break
        return theta, equations(self._slopes(blocks, sums, columns, r)[0])[0], best

    def _free(self, kept: NDArray[np.bool_]) -> dict[str, list[_Block]]:
        """By quantity its levels of which some effects are kept; those of one level stand side by side."""
        place = np.cumsum(kept) - 1
        found: dict[str, list[_Block]] = {}
        for q, each in self.blocks.items():
            for codes in each:
                own = codes[kept[codes]]
                if len(own):
                    first, size = int(place[own.min()]), int(place[own.max()] - place[own.min()]) + 1
                    found.setdefault(q, []).append(
                        _Block(first, size, np.where(kept[codes], place[codes] - first, size))
                    )
        return found

    def _slopes(
        self, quantities: Iterable[str], sums: Mapping[str, Array], columns: Mapping[str, Array], r: Array
    ) -> tuple[dict[str, Array], dict[str, NDArray[np.bool_]]]:
        """Derivatives of the residuals by the logarithms of parameters, of those at an upper bound towards less; and
        which rows are held: their parameter is at a bound, and they ask for more of the same. Such rows pull no
        more, or the effect would run off without any gain and its relatives come back to make up for it."""
        slopes, held = {}, {}
        for q in quantities:
            low, high = self._bounds[q]
            top, bottom = sums[q] + STEP > high, sums[q] - STEP < low
            step = np.where(top, -STEP, STEP)
            slopes[q] = (self._residual({**columns, q: columns[q] + step}) - r) / step
            wanted = -slopes[q] * r
            held[q] = (top & (wanted > 0.0)) | (bottom & (wanted < 0.0))
        return slopes, held

    def worthy(self, iterations: int, worth: float) -> tuple[Array, NDArray[np.bool_], Array]:
        """The best effects, which of them are worth a number (`fit`), and the Hessian of the loss over those."""
        kept = np.ones(len(self.names), dtype=bool)
        theta, hessian, loss = self.solved(self.centre, kept, iterations)
        for last in (False,) * (ROUNDS - 1) + (True,) if worth else ():
            most = len(hessian) if last else max(len(hessian) // 2, 1)
            offset, left = _pruned(theta[kept] - self.centre[kept], hessian, worth * np.sqrt(loss), most)
            if left.all():
                break
            theta = self.centre.copy()
            theta[kept] += offset
            kept[np.flatnonzero(kept)[~left]] = False
            theta, hessian, _ = self.solved(theta, kept, iterations if last else FEW)
        return theta, kept, hessian

    def bought(
        self, theta: Array, kept: NDArray[np.bool_], hessian: Array, rows: FitRows
    ) -> Iterator[tuple[tuple[str, str, str], Array]]:
        """Of every number that moves some of other `rows` their |log(predicted / measured)| with it and without it,
        [2, row]."""
        free = np.flatnonzero(kept)
        inverse, offset = np.linalg.inv(hessian), theta[free] - self.centre[free]
        levels = {(q, v.name): v for q, spec in self.prior.items() for v in spec.all_levels}
        measured, whole = np.log(rows.measured_s), self._found(free, offset)
        log = np.log(rows.predict(whole))
        for j, place in enumerate(free.tolist()):
            quantity, level, key = name = self.names[place]
            keys, codes = label_codes(rows.labels, levels[quantity, level].attributes)
            if key not in keys:
                continue
            moved = np.flatnonzero(codes == keys.index(key))
            without = offset - inverse[:, j] * offset[j] / inverse[j, j]
            without[j] = 0.0
            changed = np.log(rows.take(moved).predict(self._found(free, without)))
            yield name, np.abs(np.stack([log[moved], changed]) - measured[moved])

    def _found(self, free: NDArray[np.intp], offset: Array) -> Effects:
        """Effects at these offsets from their priors."""
        pairs = zip(free.tolist(), offset.tolist(), strict=True)
        centre = self.centre.tolist()
        return Effects(self.prior, {self.names[i]: Effect(centre[i], centre[i] + x, 0.0, 0) for i, x in pairs})

    def effects(self, theta: Array, kept: NDArray[np.bool_], hessian: Array) -> Effects:
        """What is kept, as effects."""
        size = len(self.names)
        deviation = np.zeros(size)
        deviation[kept] = 1.0 / np.sqrt(np.diag(hessian))
        counts = np.zeros(size, dtype=int)
        for codes in self.blocks.values():
            for c in codes:
                counts += np.bincount(c, minlength=size)
        table = {
            self.names[i]: Effect(float(self.centre[i]), float(theta[i]), float(deviation[i]), int(counts[i]))
            for i in np.flatnonzero(kept)
        }
        r = self._residual(self._logs(self._sums(theta)))
        scatter = _scatter(r, np.exp(self._measured + r), _alike(self.rows))
        about = told(self.prior, table)
        return Effects(
            dict(self.prior),
            table,
            scatter,
            self.rows.digest,
            {
                name: frozenset(np.unique(self.rows.labels[name]).tolist()) - about.get(name, frozenset())
                for name in told(self.prior, self.names)
            },
        )


def _pruned(offset: Array, hessian: Array, price: float, most: int) -> tuple[Array, NDArray[np.bool_]]:
    """Offsets from the priors after those that are not worth their price have gone to 0, and which are left.

    With P the inverse of the Hessian, the loss grows by offset_j^2 / (2 P_jj) where effect j goes to its prior and the
    others move by -P_ij offset_j / P_jj (Hassibi and Stork, Optimal Brain Surgeon, 1993).
    """
    inverse, offset = np.linalg.inv(hessian), offset.copy()
    worth = np.ones(len(offset), dtype=bool)
    for _ in range(most):
        with np.errstate(divide="ignore", invalid="ignore"):
            cost = np.where(worth, 0.5 * offset**2 / np.diag(inverse), np.inf)
        j = int(np.argmin(cost))
        if not cost[j] < price:
            break
        column, pivot = inverse[:, j].copy(), inverse[j, j]
        offset -= column * offset[j] / pivot
        inverse -= np.outer(column, column) / pivot
        worth[j] = False
        offset[~worth] = 0.0
    return offset, worth


def log_spread(rows: FitRows, effects: Effects) -> Array:
    """One standard deviation of log(time) per row: parameters through the formula, and its scatter."""
    everything = np.arange(len(rows))
    values = effects.values(rows.labels)
    base = np.log(rows.model(values, everything))
    variance = effects.scatter.of(np.exp(base), _alike(rows)) ** 2
    for name, spread in effects.spreads(rows.labels).items():
        moved = {**values, name: values[name] * np.exp(STEP)}
        slope = (np.log(rows.model(moved, everything)) - base) / STEP
        variance = variance + (slope * spread) ** 2
    deviation: Array = np.sqrt(variance)
    return deviation


@dataclass(frozen=True)
class Times:
    """Seconds of every question with an 80 % interval, NaN where no measured formula applies; `calibrated` where rows
    of such chips are behind the formula."""

    mid_s: Array
    low_s: Array
    high_s: Array
    calibrated: NDArray[np.bool_]


@dataclass(frozen=True)
class PricedEffect:
    """Questions at `index` under the effects of their formula. The spread of rows is wider by `shapes` for shapes that
    a fit did not see, and by `unseen` (of log(time)) for chips that it did not see."""

    index: NDArray[np.intp]
    rows: FitRows
    effects: Effects
    shapes: float
    unseen: Real
    calibrated: NDArray[np.bool_]


def priced(size: int, parts: Iterable[PricedEffect]) -> Times:
    """Seconds of `size` questions, of which `parts` have answers."""
    log_mid, spread = np.full(size, np.nan), np.full(size, np.nan)
    calibrated = np.zeros(size, dtype=bool)
    for p in parts:
        log_mid[p.index] = np.log(p.rows.predict(p.effects))
        spread[p.index] = Z80 * np.hypot(p.shapes * log_spread(p.rows, p.effects), p.unseen)
        calibrated[p.index] = p.calibrated
    return Times(np.exp(log_mid), np.exp(log_mid - spread), np.exp(log_mid + spread), calibrated)


def _alike(rows: FitRows) -> NDArray[np.str_]:
    return np.full(len(rows), "") if rows.alike is None else rows.alike


def _scatter(residuals: Array, predicted_s: Array, alike: NDArray[np.str_]) -> Widths:
    """Half the distance between the 10 % and 90 % residuals as a standard deviation: of every range of time, those with
    few rows with the one of all, and of every kind with enough rows in units of that of its ranges."""

    def deviation(part: Array) -> float:
        return float(np.subtract(*np.quantile(part, [0.9, 0.1])) / DECILES) if len(part) else SCATTER

    within = np.searchsorted(SCATTER_EDGES_S, predicted_s)
    parts = [residuals[within == i] for i in range(len(SCATTER_EDGES_S) + 1)]
    ranges = tuple(deviation(part if len(part) >= LEAST_SCATTER else residuals) for part in parts)
    in_units = residuals / np.maximum(np.array(ranges)[within], 1e-9)
    keys, counts = np.unique(alike, return_counts=True)
    many = [str(k) for k, n in zip(keys, counts, strict=True) if n >= LEAST_SCATTER and k]
    return Widths(ranges, {k: max(deviation(in_units[alike == k]), LEAST_FACTOR) for k in many})


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
            keys, codes = label_codes(labels, level.attributes)
            blocks[quantity].append(codes + len(names))
            names += [(quantity, level.name, key) for key in keys]
            centre += [level.centres.get(key, 0.0) for key in keys]
            spread += [level.spread] * len(keys)
    return names, blocks, np.array(centre), np.array(spread)


class _Block(NamedTuple):
    """Effects of one level of a quantity: place of the `first` and how many (`size`) of those that are solved for, and
    which of them each row has, `size` where it has none."""

    first: int
    size: int
    codes: NDArray[np.intp]

    @property
    def at(self) -> slice:
        """Their places."""
        return slice(self.first, self.first + self.size)


def _normal_equations(
    blocks: Mapping[str, Sequence[_Block]], slopes: Mapping[str, Array], pull: Array, residuals: Array, size: int
) -> tuple[Array, Array]:
    """J^T W J and J^T W r, where row i of J holds slope q_i in the column of each of its effects on q."""
    hessian = np.zeros((size, size))
    gradient = np.zeros(size)
    quantities = list(blocks)
    for i, q in enumerate(quantities):
        for a in blocks[q]:
            gradient[a.at] += np.bincount(a.codes, pull * residuals * slopes[q], a.size + 1)[:-1]
        for other in quantities[i:]:
            product = pull * slopes[q] * slopes[other]
            for a in blocks[q]:
                for b in blocks[other]:
                    wide = b.size + 1
                    part = np.bincount(a.codes * wide + b.codes, product, (a.size + 1) * wide).reshape(-1, wide)[
                        :-1, :-1
                    ]
                    hessian[a.at, b.at] += part
                    if other != q:
                        hessian[b.at, a.at] += part.T
    return hessian, gradient
