"""The one table behind the model of error and what is said of accuracy: measured figures beside what fits say of them
that never saw them.

Generic over suites: a suite brings `Residuals` out of fold, with the labels that they can be cut by.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chipwise.calibrate.fit import Bought
from chipwise.calibrate.parameter import Z80
from chipwise.units import Array
from chipwise.values import dataclass

FEW = 5
"""Rows of a cell, at least, for its error to be one of the cell's rather than of a row."""

OWN = "own"
"""Tier of lines that a measured row of the same deployment corrected."""


_COLUMNS = ("place", "predicted", "low", "high", "measured")


@dataclass(frozen=True, slots=True)
class Summary:
    """Errors of some figures: median and 90th percentile of the absolute error, median of the signed one, share
    of measured values inside the interval, share answered; `z`, the root mean square of log(measured / predicted) over
    the standard deviation that its interval says.

    `cell_mean` is the mean over `cells` of the median absolute error in each (of its logarithm, as a share), so that no
    large one decides alone, and `cell_low` to `cell_high` the 80 % interval of a bootstrap over benchmarkers (over
    cells, where a table is of one).
    """

    name: str
    metric: str
    rows: int
    answered: float
    median: float
    p90: float
    bias: float
    coverage: float
    z: float = float("nan")
    cells: int = 0
    cell_mean: float = float("nan")
    cell_low: float = float("nan")
    cell_high: float = float("nan")


@dataclass(frozen=True, slots=True)
class Reliable:
    """A class of chances: the mean that was `said`, the share that `held`, and how many rows have such."""

    name: str
    said: float
    held: float
    rows: int


@dataclass(frozen=True)
class Validation:
    """All that `validate` found for a suite: how it was tested, summaries under titles, remarks.

    `glance` are the lines that the accuracy page begins with, by what readers care about, `cells` those by cell, of
    which it lists the worst; `classes` are chances by what they are of, `numbers` what fitted numbers buy by what their
    names begin with; `command` repeats them.
    """

    suite: str
    method: str
    tables: Mapping[str, Sequence[Summary]]
    remarks: Sequence[str] = ()
    glance: Sequence[Summary] = ()
    cells: Sequence[Summary] = ()
    command: str = ""
    classes: Mapping[str, Sequence[Reliable]] = field(default_factory=dict)
    numbers: Mapping[str, Sequence[Bought]] = field(default_factory=dict)

    def shown(self, lines: Residuals) -> Validation:
        """The same with what readers care about, of judged lines with the labels `reader` and `where`."""
        return replace(self, glance=lines.summaries("reader"), cells=lines.summaries("where", FEW))


@dataclass(frozen=True)
class Residuals:
    """Figures of measured rows in columns [line], in the unit of their metric: `predicted` with the ends `low` and
    `high` of its 80 % interval, and `measured`. A refused figure is NaN; so are the ends until it is judged.

    `place` is the row in its table. Labels are texts [line]: `metric`; `figure` and `tier`, whose intervals they give;
    `cell`, rows of which are alike; `key`, what the fit behind a line had not seen; and what a suite cuts them by.
    """

    place: NDArray[np.intp]
    predicted: Array
    low: Array
    high: Array
    measured: Array
    labels: Mapping[str, NDArray[np.str_]]

    def __len__(self) -> int:
        return len(self.place)

    @classmethod
    def of(
        cls,
        place: ArrayLike,
        predicted: ArrayLike,
        measured: ArrayLike,
        *,
        low: ArrayLike = np.nan,
        high: ArrayLike = np.nan,
        **labels: Any,
    ) -> Residuals:
        """Columns, or what holds of every line; `labels` likewise."""
        where = np.atleast_1d(np.asarray(place, dtype=np.intp))
        size = where.shape
        texts = {n: np.broadcast_to(np.asarray(v, dtype=np.str_), size) for n, v in labels.items()}
        columns = {"predicted": predicted, "low": low, "high": high, "measured": measured}
        figures = {n: np.array(np.broadcast_to(np.asarray(x, dtype=float), size)) for n, x in columns.items()}
        return cls(place=where, labels=texts, **figures)

    @classmethod
    def join(cls, parts: Iterable[Residuals]) -> Residuals:
        """All lines of the parts, in the order of their rows; a label that a part lacks is ""."""
        each = list(parts) or [cls.of([], [], [])]
        names = list(dict.fromkeys(n for part in each for n in part.labels))
        blank = np.array("")

        def column(name: str) -> NDArray[np.str_]:
            return np.concatenate([np.broadcast_to(p.labels.get(name, blank), len(p)) for p in each])

        columns = {name: np.concatenate([getattr(p, name) for p in each]) for name in _COLUMNS}
        joined = cls(labels={name: column(name) for name in names}, **columns)
        return joined.take(np.argsort(joined.place, kind="stable"))

    def take(self, index: NDArray[Any]) -> Residuals:
        """Some lines: places or a mask."""
        columns = {name: getattr(self, name)[index] for name in _COLUMNS}
        return Residuals(labels={name: column[index] for name, column in self.labels.items()}, **columns)

    def where(self, **labels: str) -> Residuals:
        """Lines with these labels."""
        index = np.ones(len(self), dtype=bool)
        for name, value in labels.items():
            index &= self.label(name) == value
        return self.take(index)

    def labelled(self, **labels: Any) -> Residuals:
        """The same lines with more labels."""
        more = {n: np.broadcast_to(np.asarray(v, dtype=np.str_), len(self)) for n, v in labels.items()}
        return replace(self, labels={**self.labels, **more})

    def label(self, name: str) -> NDArray[np.str_]:
        """A label of every line, "" where it has none."""
        return self.labels[name] if name in self.labels else np.full(len(self), "")

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which lines have an answer."""
        return np.isfinite(self.predicted)

    @property
    def error(self) -> Array:
        """predicted / measured - 1."""
        return self.predicted / self.measured - 1.0

    @property
    def log(self) -> Array:
        """log(measured / predicted)."""
        return np.asarray(np.log(self.measured / self.predicted))

    def by(self, *names: str) -> Iterator[tuple[tuple[str, ...], Residuals]]:
        """Lines of each combination of labels that occurs."""
        groups: dict[tuple[str, ...], list[int]] = {}
        columns = [self.label(name).tolist() for name in names]
        for i, values in enumerate(zip(*columns, strict=True)):
            groups.setdefault(values, []).append(i)
        for values, lines in groups.items():
            yield values, self.take(np.array(lines, dtype=np.intp))

    def summaries(self, by: str = "", least: int = 1) -> list[Summary]:
        """A summary per metric, and per value of the label `by` that is not ""; groups under `least` lines are left
        out. Coverage is of lines that have an interval: what nobody else measured has none."""
        names = self.label(by) if by else np.full(len(self), "all")
        metric, error, known = self.label("metric"), self.error, self.known
        cells = self.label("cell")
        who = self.label("who") if "who" in self.labels else cells
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.square(2.0 * Z80 * self.log / np.log(self.high / self.low))
        inside = (self.low <= self.measured) & (self.measured <= self.high)
        found = []
        for which in np.unique(metric).tolist():
            keys, codes = np.unique(names[metric == which], return_inverse=True)
            lines = np.flatnonzero(metric == which)
            for code, name in enumerate(keys.tolist()):
                at = lines[codes == code]
                if len(at) < least or not name:
                    continue
                good = at[known[at]]
                none = float("nan")
                one = Summary(name, which, len(at), len(good) / len(at), none, none, none, none)
                if len(good):
                    off, finite = np.abs(error[good]), z[good][np.isfinite(z[good])]
                    bounded = good[self.high[good] > self.low[good]]  # others have no interval to hold
                    count, mean, low, high = _over_cells(np.abs(self.log[good]), cells[good], who[good])
                    one = replace(
                        one,
                        median=float(np.median(off)),
                        p90=float(np.quantile(off, 0.9)),
                        bias=float(np.median(error[good])),
                        coverage=float(np.mean(inside[bounded])) if len(bounded) else none,
                        z=float(np.sqrt(np.mean(finite))) if len(finite) else none,
                        cells=count,
                        cell_mean=mean,
                        cell_low=low,
                        cell_high=high,
                    )
                found.append(one)
        return found


DRAWS = 400  # of a bootstrap


def _over_cells(off: Array, cells: NDArray[np.str_], who: NDArray[np.str_]) -> tuple[int, float, float, float]:
    """How many cells, the mean of their median errors `off` (logarithms, so that a cell off by ten is no hundred) as a
    share, and the ends of its 80 % interval by a bootstrap over `who` measured them."""
    names, code = np.unique(cells, return_inverse=True)
    middle = np.array([np.median(off[code == i]) for i in range(len(names))])
    mean = float(np.expm1(middle.mean()))
    groups = np.unique(who)
    if len(groups) < 2:
        groups, who = names, cells
    counts = np.array([[np.any(code[who == g] == i) for i in range(len(names))] for g in groups], dtype=float)
    if len(groups) < 2:
        return len(names), mean, float("nan"), float("nan")
    drawn = np.random.default_rng(0).integers(0, len(groups), (DRAWS, len(groups)))
    weight = counts[drawn].sum(axis=1)
    low, high = np.expm1(np.quantile(weight @ middle / weight.sum(axis=1), (0.1, 0.9)))
    return len(names), mean, float(low), float(high)


def leave_out(keys: Sequence[Hashable], folds: int = 0) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """(kept rows, rows left out) for each fold: one key after the other, or with `folds` > 0 so many groups of
    keys, dealt out in the order of their size. Rows of one key are never on both sides."""
    named = [repr(k) for k in keys]
    found, codes, counts = np.unique(named, return_inverse=True, return_counts=True)
    groups = len(found) if folds <= 0 else min(folds, len(found))
    order = np.lexsort((found, -counts))
    fold_of = np.empty(len(found), dtype=np.intp)
    fold_of[order] = np.arange(len(found)) % groups
    for fold in range(groups):
        out = fold_of[codes] == fold
        yield np.flatnonzero(~out), np.flatnonzero(out)


def ranking(groups: Iterable[Sequence[tuple[float, float]]], least: float = 0.10) -> tuple[int, float]:
    """Pairs (predicted, measured) within each group whose measured values differ by more than `least`: how many,
    and the share that the prediction puts in the right order."""
    right = total = 0
    for members in groups:
        p, m = (np.array([pair[i] for pair in members]) for i in (0, 1))
        above = np.triu(np.maximum.outer(m, m) / np.minimum.outer(m, m) > 1.0 + least, 1)
        agree = np.sign(np.subtract.outer(p, p)) == np.sign(np.subtract.outer(m, m))
        total += int(above.sum())
        right += int((above & agree).sum())
    return total, right / total if total else float("nan")
