"""What tuned submissions do better than stock software, how software of a date lags, and the prompts of benchmarks.

    passes of a level and age = those of stock software of the newest date x tuned x exp(A (i(age) - i(newest)))

with i(age) = exp(-(age + 1) / 0.9), age in rounds of MLPerf since v4.0. `tuned` is one number per runtime and vendor of
chips; A is one number; of every benchmark whose prompts were not published the mean prompt is one number. None is of a
chip, a model or a submitter. Fitted on the best submission of every cell, by `fit_kernels.fit`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.effects import Effects, Labels, Level, Quantity
from chipwise.calibrate.fit_kernels import Rows, fit
from chipwise.calibrate.parameter import Parameter
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.chip import Chip
from chipwise.catalog.rounds import software_age
from chipwise.units import Array, Real

__all__ = ["LEVELS", "NEWEST", "LevelFit", "LevelRows", "fit_level", "immaturity"]

PREFIX = "level"
SOURCE = "MLPerf Inference v3.1 to v6.1, closed division, language models; fitted (2026-11)"

NEWEST = "2026-06"
"""Age of the software that measured passes and published rows are of; nothing is known of later gains."""

MATURES_ROUNDS = 0.9
"""Rounds of half a year in which software for language models closes its gap by a factor e: submissions on unchanged
chips (H200, L40S, MI300X) gained a fifth from v4.0 to v4.1 and little after v5.0."""

LEVELS: Mapping[str, Quantity] = {
    "tuned": Quantity(0.85, 0.2, "ratio of passes", (Level(("runtime", "vendor"), 0.2),), 0.2, 3.0),
    "immature": Quantity(1.0, 0.3, "log of passes one round before v4.0", (), 0.05, 3.0),
    "prompt": Quantity(
        1.0, 1e-6, "ratio of the guessed mean prompt", (Level(("benchmark",), 0.5),), 0.2, 5.0
    ),
}

FACTORS: Array = np.array([0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8])
"""Factors on passes at which the answer of every row is tabulated; between them it is interpolated in logarithms."""
PROMPTS: Array = np.array([0.4, 0.65, 1.0, 1.6, 2.5])
"""Factors on the guessed mean prompt, likewise."""


def immaturity(age: Real) -> Real:
    """i(age): 1 one round before v4.0, 0.33 at v4.0, 0.04 at v5.0."""
    found: Real = np.exp(-(np.asarray(age) + 1.0) / MATURES_ROUNDS)
    return found


@dataclass(frozen=True)
class LevelRows:
    """Submissions: seconds per token [row], the answer of the product to each at `FACTORS` and `PROMPTS` (its
    logarithm, [row, factor, prompt]; NaN where it has none), their age in rounds, and labels `runtime`, `vendor`,
    `benchmark`. `tuned`: the row is a tuned submission, not reference code."""

    seconds: Array
    table: Array
    age: Array
    tuned: NDArray[np.bool_]
    labels: Labels

    def __len__(self) -> int:
        return len(self.seconds)

    def take(self, index: NDArray[np.intp]) -> LevelRows:
        """Some of the rows."""
        labels = {k: v[index] for k, v in self.labels.items()}
        return LevelRows(self.seconds[index], self.table[index], self.age[index], self.tuned[index], labels)

    def predicted(self, values: Mapping[str, Real]) -> Array:
        """Seconds per token of every row, interpolated in its table."""
        size = len(self)
        slow = np.exp(np.asarray(values["immature"]) * _lag(self.age))
        pace = np.where(self.tuned, values["tuned"], 1.0) * slow
        x = np.broadcast_to(np.log(pace), (size,))
        y = np.broadcast_to(np.log(np.asarray(values["prompt"], dtype=float)), (size,))
        rows = np.arange(size)

        def place(where: Array, grid: Array) -> tuple[NDArray[np.intp], Array]:
            at = np.log(grid)
            left = np.clip(np.searchsorted(at, where, side="right") - 1, 0, len(at) - 2)
            return left, (where - at[left]) / (at[left + 1] - at[left])

        (i, u), (j, v) = place(x, FACTORS), place(y, PROMPTS)
        log_rate = (
            self.table[rows, i, j] * (1 - u) * (1 - v)
            + self.table[rows, i + 1, j] * u * (1 - v)
            + self.table[rows, i, j + 1] * (1 - u) * v
            + self.table[rows, i + 1, j + 1] * u * v
        )
        found: Array = np.exp(-log_rate)
        return found


@dataclass(frozen=True)
class LevelFit:
    """The fitted numbers."""

    effects: Effects

    def pace(self, runtime: str, chips: Sequence[Chip], *, tuned: bool, software: str) -> Array:
        """Passes on chips over those of stock software of the newest date; software newer than that is as fast."""
        size = len(chips)
        labels = {
            "runtime": np.full(size, runtime),
            "vendor": np.array([c.software_vendor for c in chips]),
            "benchmark": np.full(size, ""),
        }
        values = self.effects.values(labels)
        return self.slower(software) * (np.asarray(values["tuned"]) if tuned else np.ones(size))

    def slower(self, software: str) -> float:
        """Passes of software of a date or round ("": the newest) over those of the newest, at least 1."""
        if not software:
            return 1.0
        immature = self.effects.values(
            {"runtime": np.array([""]), "vendor": np.array([""]), "benchmark": np.array([""])}
        )
        return math.exp(float(np.mean(immature["immature"])) * float(_lag(software_age(software))))

    def prompt(self, benchmark: str) -> float:
        """The mean prompt of a benchmark over the guess."""
        labels = {"runtime": np.array([""]), "vendor": np.array([""]), "benchmark": np.array([benchmark])}
        return float(self.effects.values(labels)["prompt"][0])

    def parameters(self) -> dict[str, Parameter]:
        """What to ship."""
        found = self.effects.parameters(PREFIX, SOURCE, least=0.005)
        return {
            name: p for name, p in found.items() if ".scatter." not in name and name != f"{PREFIX}.prompt.all"
        }

    @classmethod
    def of(cls, numbers: Parameters) -> LevelFit:
        """The inverse of `parameters`; numbers that hold no such fit give its priors."""
        own = {name: p for name, p in numbers.table.items() if name.startswith(f"{PREFIX}.")}
        return cls(Effects.of(own, PREFIX, LEVELS))


def fit_level(rows: LevelRows) -> LevelFit:
    """The numbers that explain the rows best under their priors. Pure: same rows, same answer."""

    def model(values: Mapping[str, Real], index: NDArray[np.intp]) -> Array:
        return rows.take(index).predicted(values)

    return LevelFit(fit(Rows(rows.labels, rows.seconds, model), LEVELS))


def _lag(age: Real) -> Real:
    """i(age) - i(newest), 0 for what is newer."""
    found: Real = np.maximum(immaturity(age) - immaturity(software_age(NEWEST)), 0.0)
    return found
