"""One model of what the physics misses: random effects over the axes of a row, their variances and their posterior.

Of row i of a family of figures, with y = log(measured / predicted) of its time (or bytes):

    y_i = sum_k x_ik u_k[level_k(i)] + e_i,   u_k[.] ~ N(0, s_k^2),   e_i ~ s_g t_4

A term k is one or several axes (chip; chip and runtime); its level is what the row has there. The loading x is 1, or
`first` where an effect of all passes enters the time to the first token. `fit` finds the variances by marginal
likelihood under a prior of every sigma, so that an axis with few levels is never free; heavy tails are weights of rows.
What ships is the posterior of the levels, cut to low rank: means, and B with covariance D - B B'. New rows lie around
z u with the variance sum x^2 s_k^2 - |z B|^2 + 1.43 s_g^2: an unseen level costs its whole variance, a known one what
is left of it (Henderson, 1975; Robinson, 1991). Mids are moved by own runs alone: what the mean of known levels is off
moves the ends of an interval, and chances.
"""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import field, fields, replace
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.parameter import Z80
from chipwise.catalog.parsed import parse
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.units import Array, Real
from chipwise.values import dataclass

AXES = "evidence/data/discrepancy.toml"
TABLE = "evidence/data/discrepancy.csv"
COLUMNS = ("family", "term", "level", "value", "known")

Axes = Mapping[str, Sequence[str] | NDArray[np.str_]]
"""Levels by axis, a text per row; an axis that is not given, or blank, is a level that nobody measured."""

PRIOR_SUM = 0.35
"""Of the logarithm: deviation of a row of which nothing was seen, the centre of the prior of each sigma times the
square root of the number of terms; the sum of all folds of round 2 (design of the discrepancy, "Model")."""
PRIOR_SPREAD = 0.8
"""Deviation of the logarithm of each sigma in that prior."""
DEGREES = 4.0
"""Of freedom of the noise of rows: tails in which 1 row of 40 is off by 2.8 deviations."""


def end_of_t(degrees: float) -> float:
    """The upper 80 % end of Student's t, its quantile 0.9, to 0.5 % from two degrees of freedom on (Cornish and
    Fisher's expansion; Abramowitz and Stegun 26.7.5)."""
    z, n = Z80, 4.0 * degrees
    first = (z**3 + z) / n
    second = (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / (6.0 * n**2)
    third = (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / (6.0 * n**3)
    return z + first + second + third


HEAVY = (end_of_t(DEGREES) / Z80) ** 2
"""Variance of the normal distribution whose 80 % ends are those of t_4 with a scale of 1: ends are sold, no tails."""
RANK = 64  # of B: deviations are about 1 % too large in the median
FULL = 127.0  # of 8 bits: |b| <= sigma
STEPS, SMALL = 40, 1e-3  # of the search for variances: at most so many, until none moves by more
ROUNDS = 3  # of weights of rows


@dataclass(frozen=True)
class Term:
    """Axes that share an effect, of one `figure` of the family alone ("": of all), with its standard deviation."""

    axes: tuple[str, ...]
    figure: str = ""
    sigma: float = 0.0

    @property
    def name(self) -> str:
        """As tables and logs write it."""
        return " x ".join(self.axes) + (f" of {self.figure}" if self.figure else "")

    def levels(self, axes: Axes, size: int) -> NDArray[np.str_]:
        """The level of every row, "" where one of the axes is blank or not given."""
        each = [_column(axes.get(a, ""), size) for a in self.axes]
        return np.array(["|".join(row) if all(row) else "" for row in zip(*each, strict=True)], dtype=np.str_)


def _column(levels: Sequence[str] | NDArray[np.str_], size: int) -> Sequence[str]:
    """A level for each row; of one alone the same for all."""
    given = [levels] if isinstance(levels, str) else np.ravel(levels).tolist()
    return given * size if len(given) == 1 else given


@dataclass(frozen=True)
class FigureFamily:
    """Figures whose errors share effects: terms over axes, `intercept` the deviation of a common bias, `first` the
    loading of shared effects in the time to the first token; `strangers`, by figure, how many times as wide deviations
    of what ships are as the fit makes them (1 where it is not named)."""

    name: str
    terms: tuple[Term, ...]
    intercept: float
    first: float
    strangers: Mapping[str, float] = field(default_factory=dict)

    def loading(self, term: Term, figure: NDArray[np.str_]) -> Array:
        """x of a term for rows of these figures."""
        if term.figure:
            return np.asarray(figure == term.figure, dtype=float)
        return np.where(figure == "first", self.first, 1.0)


@per_snapshot
def families() -> Mapping[str, FigureFamily]:
    """The families of `evidence/data/discrepancy.toml`."""
    found = {}
    for name, row in parse(shipped_text(AXES)).items():
        terms = [Term(tuple(axes)) for axes in row["terms"]]
        terms += [Term(tuple(axes), figure) for figure, own in row.get("of", {}).items() for axes in own]
        found[name] = FigureFamily(
            name, tuple(terms), row["intercept"], row.get("first", 1.0), row.get("strangers", {})
        )
    return found


@dataclass(frozen=True)
class Observed:
    """Rows of a family: y [n] = log(measured / predicted) of times, levels by axis, `figure` of each, and the `kind` of
    table that it is of, whose rows scatter alike."""

    y: Array
    axes: Mapping[str, NDArray[np.str_]]
    figure: NDArray[np.str_]
    kind: NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.y)

    def take(self, which: NDArray[np.intp] | NDArray[np.bool_]) -> Observed:
        """Some rows."""
        axes = {name: np.asarray(column)[which] for name, column in self.axes.items()}
        return Observed(self.y[which], axes, self.figure[which], self.kind[which])

    @property
    def group(self) -> NDArray[np.str_]:
        """Whose noise rows have."""
        return np.char.add(np.char.add(self.figure, " "), self.kind)

    @classmethod
    def join(cls, parts: Sequence[Observed]) -> Observed:
        """All rows of the parts; an axis that a part lacks is blank."""
        names = list(dict.fromkeys(name for part in parts for name in part.axes))

        def column(name: str) -> NDArray[np.str_]:
            return np.concatenate([np.asarray(p.axes.get(name, np.full(len(p), ""))) for p in parts])

        axes = {name: column(name) for name in names}
        of = (np.concatenate([getattr(p, n) for p in parts]) for n in ("y", "figure", "kind"))
        y, figure, kind = of
        return cls(y, axes, figure, kind)

    def balanced(self, most: int, by: Sequence[str]) -> Observed:
        """At most so many rows, of every combination of axes alike: one after the other, in a fixed random order."""
        if len(self) <= most:
            return self
        rng = np.random.default_rng(0)
        keys = np.array(["|".join(row) for row in zip(*(self.axes[name].tolist() for name in by), strict=True)])
        mixed = rng.permutation(len(self))
        turn = np.empty(len(self), dtype=int)
        for key in np.unique(keys):
            mine = mixed[keys[mixed] == key]
            turn[mine] = np.arange(len(mine))
        return self.take(np.sort(mixed[np.argsort(turn[mixed], kind="stable")][:most]))


@dataclass(frozen=True)
class _Design:
    """Rows as matrices: Z [n, levels], which term each column is of, and the name of its level."""

    z: Array
    term: NDArray[np.intp]
    names: tuple[str, ...]

    @classmethod
    def of(cls, family: FigureFamily, rows: Observed) -> _Design:
        """The first column is the intercept, whose deviation is fixed (term -1)."""
        columns, terms, names = [np.ones((len(rows), 1))], [-1], [""]
        for k, term in enumerate(family.terms):
            level, x = term.levels(rows.axes, len(rows)), family.loading(term, rows.figure)
            known, codes = np.unique(level, return_inverse=True)
            z = np.zeros((len(rows), len(known)))
            z[np.arange(len(rows)), codes] = np.where(level != "", x, 0.0)
            keep = (known != "") & np.any(z != 0.0, axis=0)
            columns.append(z[:, keep])
            terms += [k] * int(keep.sum())
            names += known[keep].tolist()
        return cls(np.hstack(columns), np.array(terms), tuple(names))

    def prior(self, family: FigureFamily, variances: Array) -> Array:
        """D, the variance of every level."""
        return np.where(self.term < 0, family.intercept**2, variances[self.term])


def fit(family: FigureFamily, rows: Observed) -> Posterior:
    """Variances by marginal likelihood, with the posterior of the levels of these rows.

    -2 log L = log|V| + y' V^-1 y of V = Z D Z' + R, plus the prior of each sigma; damped Newton steps in log s^2 with
    the average information as curvature. Weights of rows, 5 / (4 + e^2 / s^2) of t_4, are found in between.
    """
    d = _Design.of(family, rows)
    groups, code = np.unique(rows.group, return_inverse=True)
    count = len(family.terms)
    centre = np.log((PRIOR_SUM / np.sqrt(count)) ** 2)
    theta = np.full(count + len(groups), centre)
    theta[count:] = np.log(0.02)  # of rows: a deviation of 0.14, from where the search begins
    prior_of = np.arange(count + len(groups)) < count
    weight = np.ones(len(rows))
    for _ in range(ROUNDS):
        theta = _variances(family, d, rows.y, code, weight, theta, np.where(prior_of, centre, np.nan))
        post = _posterior(family, d, rows, theta[:count], np.exp(theta[count:]), weight)
        noise = np.exp(theta[count:])[code]
        left = rows.y - d.z @ post.mean
        own = np.sum((d.z @ post.covariance) * d.z, axis=1)
        weight = (DEGREES + 1.0) / (DEGREES + (left**2 + own) / noise)
    scales = {str(g): float(np.exp(0.5 * t)) for g, t in zip(groups, theta[count:], strict=True)}
    return replace(post, scales=scales)


def posterior(fitted: Posterior, rows: Observed) -> Posterior:
    """The levels of other rows under variances that were fitted: C = (Z' R^-1 Z + D^-1)^-1, u = C Z' R^-1 y."""
    family = fitted.family
    d = _Design.of(family, rows)
    scale = np.square(fitted._noise(rows))
    weight = np.ones(len(rows))
    theta = np.log(np.array([t.sigma for t in family.terms]) ** 2)
    for _ in range(ROUNDS):
        post = _posterior(family, d, rows, theta, scale, weight, code=np.arange(len(rows)))
        left = rows.y - d.z @ post.mean
        own = np.sum((d.z @ post.covariance) * d.z, axis=1)
        weight = (DEGREES + 1.0) / (DEGREES + (left**2 + own) / scale)
    return replace(post, scales=fitted.scales)


def _posterior(
    family: FigureFamily,
    d: _Design,
    rows: Observed,
    theta: Array,
    noise: Array,
    weight: Array,
    code: NDArray[np.intp] | None = None,
) -> Posterior:
    at = np.unique(rows.group, return_inverse=True)[1] if code is None else code
    r = weight / noise[at]
    prior = d.prior(family, np.exp(theta))
    among = (d.z * r[:, None]).T @ d.z + np.diag(1.0 / prior)
    covariance = np.asarray(np.linalg.inv(among), dtype=float)
    mean = covariance @ (d.z.T @ (r * rows.y))
    terms = tuple(replace(t, sigma=float(np.exp(0.5 * x))) for t, x in zip(family.terms, theta, strict=True))
    known = {(int(k), name): i for i, (k, name) in enumerate(zip(d.term, d.names, strict=True))}
    return Posterior(replace(family, terms=terms), known, mean, covariance, {})


def _variances(
    family: FigureFamily, d: _Design, y: Array, code: NDArray[np.intp], weight: Array, start: Array, centre: Array
) -> Array:
    """log s^2 of every term, then of every group of rows, from those of a `start`."""
    count, size = len(family.terms), len(start)
    theta, damp = start.copy(), 1.0
    penalty = 1.0 / (4.0 * PRIOR_SPREAD**2)  # of log s^2, whose deviation is twice that of log s
    at = [d.term == k for k in range(count)]

    def at_theta(values: Array) -> tuple[float, Array, Array]:
        dee, r = d.prior(family, np.exp(values[:count])), np.exp(values[count:])[code] / weight
        v = (d.z * dee) @ d.z.T
        v[np.diag_indices(len(y))] += r
        lower = np.linalg.cholesky(v)
        p = np.linalg.inv(v)
        py = p @ y
        pz, zpy = p @ d.z, d.z.T @ py
        each = np.sum(d.z * pz, axis=0)
        gradient, moved = np.empty(size), np.empty((size, len(y)))
        for k in range(size):
            if k < count:
                s, mine = np.exp(values[k]), at[k]
                gradient[k] = 0.5 * s * (each[mine].sum() - np.sum(zpy[mine] ** 2))
                moved[k] = s * (d.z[:, mine] @ zpy[mine])
            else:
                share = np.where(code == k - count, r, 0.0)
                gradient[k] = 0.5 * (np.sum(np.diag(p) * share) - np.sum(share * py**2))
                moved[k] = share * py
        curvature = 0.5 * moved @ p @ moved.T
        away = np.where(np.isfinite(centre), values - centre, 0.0)
        held = np.isfinite(centre) * penalty
        value = float(np.log(np.diag(lower)).sum() + 0.5 * y @ py + 0.5 * np.sum(held * away**2))
        return value, gradient + held * away, curvature + np.diag(held)

    value, gradient, curvature = at_theta(theta)
    for _ in range(STEPS):
        step = -np.linalg.solve(curvature + damp * np.eye(size) * np.trace(curvature) / size, gradient)
        step = np.clip(step, -1.0, 1.0)
        tried = at_theta(np.clip(theta + step, -16.0, 4.0))
        if tried[0] <= value:
            theta, (value, gradient, curvature), damp = np.clip(theta + step, -16.0, 4.0), tried, damp / 4.0
            if np.max(np.abs(step)) < SMALL:
                break
        else:
            damp = max(damp, 0.01) * 6.0
            if damp > 1e6:
                break
    return theta


@dataclass(frozen=True)
class Posterior:
    """A fitted family: terms with their sigmas, `mean` and `covariance` of the levels that rows had (`at` by term and
    name; term -1 is the intercept), and `scales` of the noise of rows by group."""

    family: FigureFamily
    at: Mapping[tuple[int, str], int]
    mean: Array
    covariance: Array
    scales: Mapping[str, float]

    def state(self, private: Sequence[str] = (), rank: int = RANK) -> State:
        """What ships: levels but those of terms of `private` axes (who measured), D - C = B B' cut to a rank."""
        prior = np.array([self.family.intercept**2 if k < 0 else self.family.terms[k].sigma ** 2 for k, _ in self.at])
        root = np.sqrt(prior)
        gone = np.eye(len(prior)) - self.covariance / np.outer(root, root)
        values, vectors = np.linalg.eigh(0.5 * (gone + gone.T))
        order = np.argsort(-values)[:rank]
        b = root[:, None] * vectors[:, order] * np.sqrt(np.maximum(values[order], 0.0))
        keep = {
            key: i for key, i in self.at.items() if key[0] < 0 or not set(self.family.terms[key[0]].axes) & set(private)
        }
        where = list(keep.values())
        return State(self.family, {key: i for i, key in enumerate(keep)}, self.mean[where], b[where], self.scales)

    def without(self, rows: Observed, out: NDArray[np.bool_]) -> tuple[Array, Array]:
        """Mean and covariance of rows that are left out together, as a refit under the same variances would have them
        (and the weights 1): mean = y_o - P_oo^-1 (P y)_o, covariance P_oo^-1, P = V^-1."""
        return _left_out(self._precision(rows), rows.y, out)

    def left_out(self, rows: Observed, keys: NDArray[np.str_]) -> tuple[Array, Array]:
        """Where rows lie around predictions and their standard deviations there, all rows of their key left out."""
        p, mean, variance = self._precision(rows), np.empty(len(rows)), np.empty(len(rows))
        for key in np.unique(keys):
            out = keys == key
            mean[out], covariance = _left_out(p, rows.y, out)
            variance[out] = np.diag(covariance)
        return mean, np.asarray(np.sqrt(variance + (HEAVY - 1.0) * np.square(self._noise(rows))))

    def _precision(self, rows: Observed) -> Array:
        """P = V^-1 of rows."""
        d = _Design.of(self.family, rows)
        dee = d.prior(self.family, np.array([t.sigma**2 for t in self.family.terms]))
        return np.asarray(np.linalg.inv((d.z * dee) @ d.z.T + np.diag(np.square(self._noise(rows)))))

    def _noise(self, rows: Observed) -> Array:
        """The scale of each row; of a table of an unknown kind the usual one."""
        usual = float(np.median(list(self.scales.values())))
        return np.array([self.scales.get(g, usual) for g in rows.group.tolist()])


def _left_out(p: Array, y: Array, out: NDArray[np.bool_]) -> tuple[Array, Array]:
    cut = np.asarray(np.linalg.inv(p[np.ix_(out, out)]))
    return y[out] - cut @ (p @ y)[out], cut


@dataclass(frozen=True)
class State:
    """The posterior of a family as it ships: covariance of the levels at hand is D - B B'."""

    family: FigureFamily
    at: Mapping[tuple[int, str], int]
    mean: Array
    b: Array
    scales: Mapping[str, float]

    @cached_property
    def _of_term(self) -> tuple[Mapping[str, int], ...]:
        """Places of the known levels of each term."""
        found: list[dict[str, int]] = [{} for _ in self.family.terms]
        for (term, name), i in self.at.items():
            if term >= 0:
                found[term][name] = i
        return tuple(found)

    def _placed(self, axes: Axes, size: int) -> NDArray[np.intp]:
        """Where the level of each row is among the known ones of each term [K, n], -1 for one that nobody measured."""
        each = zip(self._of_term, self.family.terms, strict=True)
        return np.array([[known.get(level, -1) for level in term.levels(axes, size)] for known, term in each])

    def spread(self, axes: Axes, figure: str = "rate", kind: str = "published") -> Scatter:
        """How far a figure of rows with these levels may be off, measured as in this kind of table."""
        size = max((np.size(np.asarray(a)) for a in axes.values()), default=1)
        terms, which = self.family.terms, np.full(1, figure)
        x = np.array([self.family.loading(term, which)[0] for term in terms])
        prior = float(np.sum(np.square([x[k] * term.sigma for k, term in enumerate(terms)])))
        at = self._placed(axes, size)
        hit = np.where(at >= 0, x[:, None], 0.0)
        known = np.all([hit[k] != 0.0 for k, term in enumerate(terms) if term.axes in MEASURED] or [True], axis=0)
        base = self.at.get((-1, ""))
        if base is not None:
            at = np.concatenate([np.full((1, size), base), at])
            hit = np.concatenate([np.ones((1, size)), hit])
            prior += self.family.intercept**2
        b, mean = np.zeros((size, 1)), np.zeros(size)
        if len(self.mean):
            b, mean = np.sum(hit[:, :, None] * self.b[at], axis=0), np.sum(hit * self.mean[at], axis=0)
        scale = self.scales.get(f"{figure} {kind}")
        if scale is None:
            scale = max((s for g, s in self.scales.items() if g.partition(" ")[0] == figure), default=0.0)
        wider = self.family.strangers.get(figure, 1.0) ** 2
        shared = wider * np.maximum(prior - np.sum(b**2, axis=1), 0.0)
        return Scatter(mean, shared, np.full(size, wider * HEAVY * scale**2), np.broadcast_to(known, (size,)))

    def apart(self, axes: Axes, figure: str = "rate", kind: str = "published") -> Array:
        """Standard deviations [n, n] of log(error of one row / error of another): what both share cancels, who measures
        included; levels that they do not share, known or not, and the noise of either are left.

        The variance is (z_a - z_b)' C (z_a - z_b), plus that of the difference of means, as mids do not move.
        """
        size = max((np.size(np.asarray(a)) for a in axes.values()), default=1)
        which, at = np.full(size, figure), self._placed(axes, size)
        b, mean, prior = np.zeros((size, self.b.shape[1])), np.zeros(size), np.zeros((size, size))
        for k, term in enumerate(self.family.terms):
            x = self.family.loading(term, which)
            each = [np.broadcast_to(np.asarray(axes.get(a, ""), dtype=np.str_), (size,)) for a in term.axes]
            same = np.all([column[:, None] == column for column in each], axis=0)
            prior += np.where(same, 0.0, 2.0 * np.square(x * term.sigma)[:, None])
            if len(self.mean):
                hit = np.where(at[k] >= 0, x, 0.0)
                b += hit[:, None] * self.b[at[k]]
                mean += hit * self.mean[at[k]]
        gone = np.sum((b[:, None] - b) ** 2, axis=2)
        noise = 2.0 * float(self.spread(axes, figure, kind).noise[0]) * (1.0 - np.eye(size))
        return np.asarray(np.sqrt(np.maximum(prior - gone, 0.0) + (mean[:, None] - mean) ** 2 + noise))


MEASURED = (("chip",), ("runtime",), ("trainer",))
"""Axes whose unseen levels make an interval provisional."""


LEAN = 0.5
"""share. Chosen: of the mean that known levels lie at, so much moves the ends of an interval, and nothing its middle.
With a benchmarker left out, 9,700 rows of serving, desks, training and media are predicted no better by moving the
middle (errors of serving 8.1 -> 11.1, of training 10.9 -> 13.2 %), and the score of the whole distribution (CRPS) is
best at a half: 0.101 of serving's rates where the middle of chances moved too gave 0.110; moves ends of intervals and
chances."""
VERIFYING = 0.2
"""logarithm of seconds. Source: published steps that verify guesses take 0.14, 0.27, -0.10 and 0.44 (logarithms, four
sources, eight figures) more than is said, which no mechanism explains: the deviation of such passes beyond that of
others; moves intervals with speculative decoding."""


@dataclass(frozen=True)
class Scatter:
    """How far figures [n] may be off, as logarithms of measured over predicted times or amounts: the `mean` that known
    levels lie at, and variances: what the rows of a deployment have in `shared`, as errors of its passes, and the
    `noise` of rows. `known`: chip and software were measured."""

    mean: Array
    shared: Array
    noise: Array
    known: NDArray[np.bool_]

    def sd(self, slope: Real = 1.0) -> Array:
        """Standard deviations of log(measured / predicted) of new rows; a rate under limits falls by `slope` per cent
        where passes take one per cent longer."""
        return np.asarray(np.sqrt(np.square(slope) * self.shared + self.noise))

    @classmethod
    def join(cls, parts: Sequence[Scatter]) -> Scatter:
        """The rows of several, one after the other."""
        if len(parts) == 1:
            return parts[0]
        return cls(*(np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(cls)))

    def take(self, index: NDArray[np.intp]) -> Scatter:
        """Some of the rows, in this order."""
        return Scatter(*(getattr(self, f.name)[index] for f in fields(self)))

    def row(self, i: int) -> Scatter:
        """That of one of them."""
        return self.take(np.array([i]))

    @property
    def lies(self) -> Array:
        """How far above what is predicted the middles of the intervals of logarithms lie [n]."""
        return LEAN * self.mean

    def around(self, power: float = 1.0) -> tuple[float, float]:
        """Of the first of them, where the interval lies of the logarithm of a figure that grows with this power of the
        time or amount, and its deviation: -1 of a rate, less where limits bind it."""
        return power * float(self.lies[0]), float(self.sd(power)[0])

    def carrying(self, passes: Scatter, power: float) -> Scatter:
        """That of a figure which grows with this power of the length of `passes` where what it was taken from grows
        with the first: their error is in it once already."""
        return Scatter(
            self.mean + (power - 1.0) * passes.mean,
            self.shared + (power**2 - 1.0) * passes.shared,
            self.noise,
            self.known,
        )

    def looser(self, sd: float) -> Scatter:
        """That of passes which may be off by so much more, as the standard deviation of a logarithm."""
        return Scatter(self.mean, self.shared + sd**2, self.noise, self.known)

    def of_passes(self) -> Scatter:
        """What runs of one deployment have in common: without the noise of rows."""
        return Scatter(self.mean, self.shared, np.zeros_like(self.noise), self.known)

    def ends(self) -> Array:
        """Where the 80 % interval lies and its upper end, both over what is predicted, [2, N]: see `judge.judge`."""
        centre = np.exp(self.lies)
        return np.stack([centre, np.maximum(centre * np.exp(Z80 * np.maximum(self.sd(), 1e-9)), 1.0)])

    def shrunk(self, left: Real) -> Scatter:
        """What the user's own runs leave of it, `left` of the standard deviation, and of the mean what they are not
        worth."""
        share = np.square(left)
        return Scatter(self.mean * np.minimum(share, 1.0), self.shared * share, self.noise * share, self.known)


def write_states(states: Sequence[State]) -> str:
    """The text of the shipped table: sigma of every term, scale of every group of rows, mean and B of every level (8
    bits, over the sigma of its term)."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for s in states:
        name = s.family.name
        for k, term in enumerate(s.family.terms):
            writer.writerow((name, k, "", f"{term.sigma:.5g}", term.name))
        for group, scale in sorted(s.scales.items()):
            writer.writerow((name, "noise", group, f"{scale:.5g}", ""))
        for (k, level), i in s.at.items():
            sigma = s.family.intercept if k < 0 else s.family.terms[k].sigma
            row = np.round(s.b[i] / sigma * FULL).astype("i1")
            text = base64.b85encode(row.tobytes()).decode("ascii")
            writer.writerow((name, k, level or ".", f"{s.mean[i]:.4g}", text))
    return out.getvalue()


def states() -> Mapping[str, State]:
    """The shipped posterior of every family. Raises `ValueError` for a table that was fitted on other terms."""
    return {name: state(name) for name in families()}


@per_snapshot
def _rows() -> Mapping[str, Sequence[Mapping[str, str]]]:
    """The rows of the shipped table by family."""
    found: dict[str, list[Mapping[str, str]]] = {}
    for row in csv.DictReader(io.StringIO(shipped_text(TABLE))):
        found.setdefault(row["family"], []).append(row)
    return found


@per_snapshot
def state(name: str) -> State:
    """The shipped posterior of a family. Raises `ValueError` for a table that was fitted on other terms."""
    family = families()[name]
    sigma: list[float] = []
    scales: dict[str, float] = {}
    at: dict[tuple[int, str], int] = {}
    mean: list[float] = []
    b: list[Array] = []
    for row in _rows().get(name, ()):
        term, level = row["term"], row["level"]
        if term == "noise":
            scales[level] = float(row["value"])
        elif not level:
            wanted = family.terms[int(term)].name
            if row["known"] != wanted:
                raise ValueError(f"{TABLE}: {name} has {row['known']} where {AXES} has {wanted}: refit it")
            sigma.append(float(row["value"]))
        else:
            k = int(term)
            at[k, "" if level == "." else level] = len(mean)
            mean.append(float(row["value"]))
            scale = family.intercept if k < 0 else sigma[k]
            b.append(scale * np.frombuffer(base64.b85decode(row["known"]), dtype="i1").astype(float) / FULL)
    if len(sigma) != len(family.terms):
        raise ValueError(f"{TABLE}: {len(sigma)} of {len(family.terms)} terms of {name}: refit it")
    terms = tuple(replace(t, sigma=s) for t, s in zip(family.terms, sigma, strict=True))
    matrix = np.array(b) if b else np.zeros((0, 1))
    return State(replace(family, terms=terms), at, np.array(mean), matrix, scales)


def spread_of(levels: Mapping[str, str], family: str, figure: str = "rate", kind: str = "published") -> Scatter:
    """How far a figure of one deployment may be off, under the shipped posterior."""
    return spreads_of([levels], family, figure, kind)


def spreads_of(
    levels: Sequence[Mapping[str, str]], family: str, figure: str = "rate", kind: str = "published"
) -> Scatter:
    """How far a figure of each of several deployments of one family may be off: plans share most of their levels, so
    what was asked is remembered."""
    known = _spreads()
    keys = [(family, figure, kind, *sorted(row.items())) for row in levels]
    new = {key: row for key, row in zip(keys, levels, strict=True) if key not in known}
    if new:
        names = {name for row in new.values() for name in row}
        axes = {name: [row.get(name, "") for row in new.values()] for name in names}
        found = state(family).spread(axes, figure, kind)
        known.update((key, found.row(i)) for i, key in enumerate(new))
    return Scatter.join([known[key] for key in keys])


def apart_of(mine: Mapping[str, str], other: Mapping[str, str], family: str, figure: str = "rate") -> float:
    """The standard deviation of log(error of one deployment / error of another) of a family, where both were measured
    by the same people."""
    axes = {name: [mine.get(name, ""), other.get(name, "")] for name in {**mine, **other}}
    return float(state(family).apart(axes, figure)[0, 1])


@per_snapshot
def _spreads() -> dict[tuple[object, ...], Scatter]:
    """A memory of what was asked of the shipped posterior."""
    return {}


def winkler(y: Array, sd: Array, share: float = 0.8) -> Array:
    """The interval score of 80 % ends at +- 1.28 `sd` around 0: their distance, plus 2 / (1 - share) times what a row
    lies beyond them; less is better (Gneiting and Raftery, 2007)."""
    half = NormalDist().inv_cdf(0.5 + share / 2.0) * sd
    return np.asarray(2.0 * half + 2.0 / (1.0 - share) * np.maximum(np.abs(y) - half, 0.0))
