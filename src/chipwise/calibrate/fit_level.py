"""What tuned submissions do better than stock software, how software of a date lags, and the prompts of benchmarks.

    passes of a level and age = those of stock software of the newest date x tuned x exp(A (i(age) - i(newest)))

with i(age) = exp(-(age + 1) / 0.9), age in rounds of MLPerf since v4.0. `tuned` is one number per runtime and vendor of
chips; A is one number; of every benchmark whose prompts were not published the mean prompt is one number. Where a
runtime is tuned by building engines, whose kernels the host starts one by one instead of replaying a captured graph,
starting kernels takes `starts` times as long: one number, which tight limits show and throughput hides. None is of
a chip, a model or a submitter. Fitted on the best submission of every cell, by `calibrate.fit`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.effects import Effects, Labels
from chipwise.calibrate.fit import FitRows, Fitting
from chipwise.calibrate.parameter import Parameter
from chipwise.calibrate.parameters import Parameters
from chipwise.calibrate.priors import priors
from chipwise.catalog.chip import Chip
from chipwise.catalog.published import software_age
from chipwise.catalog.runtime import kernel_library
from chipwise.predict.parts import PARTS
from chipwise.units import Array, Real
from chipwise.values import dataclass

PREFIX = "level"
SOURCE = "MLPerf Inference v3.1 to v6.1, closed division, language models; fitted (2026-11)"

NEWEST = "2026-06"
"""Age of the software that measured passes and published rows are of; nothing is known of later gains."""

MATURES_ROUNDS = 0.9
"""Rounds of half a year in which software for language models closes its gap by a factor e: submissions on unchanged
chips (H200, L40S, MI300X) gained a fifth from v4.0 to v4.1 and little after v5.0."""

LEVELS = priors("level")

FACTORS: Array = np.array([0.55, 0.85, 1.4])
"""Factors on passes at which the answer to every row is tabulated; between them it is interpolated in logarithms. The
middle of every table is close to what was fitted before: beside it all are taken to multiply, which limits break."""
PROMPTS: Array = np.array([0.5, 1.0, 2.0])
"""Factors on the guessed mean prompt, likewise."""
STARTS: Array = np.array([3.0, 5.5, 9.0])
"""Factors on the time to start kernels, likewise."""

MIDDLE = 1
"""Place of the middle in `FACTORS`, `PROMPTS` and `STARTS`."""

STARTING = frozenset(("launch", "experts.launch"))
"""Parts of a pass (`predict.parts`) that are the start of kernels."""
PRODUCTS = frozenset(part for part in PARTS if part.startswith("gemm."))
"""Parts of a pass that are plain products. Where the catalogue names a library for them, it was there before runtimes
of language models, and stock software of old calls it as that of today does: what is read as fast as memory goes has
nothing to learn. Source: pages of software older than the first round with language models on most chips (TensorRT-LLM
of 2023-12, LMDeploy of 2024-01), read with today's numbers: without it they are a quarter too slow."""


def immaturity(age: Real) -> Real:
    """i(age): 1 one round before v4.0, 0.33 at v4.0, 0.04 at v5.0."""
    found: Real = np.exp(-(np.asarray(age) + 1.0) / MATURES_ROUNDS)
    return found


@dataclass(frozen=True)
class LevelRows:
    """Submissions: seconds per token [row]; logarithms of the tokens per second that the product answers, `by_pace`
    [row, factor] at `FACTORS` on passes, `by_prompt` [row, prompt] at `PROMPTS` and `by_starts` [row, factor] at
    `STARTS`; age in rounds; labels `runtime`, `vendor`, `benchmark`. `tuned`: a tuned submission, not reference code;
    `engines`: and tuned by engines without captured graphs."""

    seconds: Array
    by_pace: Array
    by_prompt: Array
    by_starts: Array
    age: Array
    tuned: NDArray[np.bool_]
    engines: NDArray[np.bool_]
    labels: Labels

    def __len__(self) -> int:
        return len(self.seconds)

    def take(self, index: NDArray[np.intp]) -> LevelRows:
        """Some of the rows."""
        return LevelRows(
            self.seconds[index],
            self.by_pace[index],
            self.by_prompt[index],
            self.by_starts[index],
            self.age[index],
            self.tuned[index],
            self.engines[index],
            {k: v[index] for k, v in self.labels.items()},
        )

    def predicted(self, values: Mapping[str, Real]) -> Array:
        """Seconds per token of every row, interpolated."""
        slow = np.exp(np.asarray(values["immature"]) * _lag(self.age))
        # nobody tunes software to be slower than stock
        pace = np.where(self.tuned, np.minimum(values["tuned"], 1.0), 1.0) * slow
        log_rate = _between(FACTORS, self.by_pace, pace)
        middle = self.by_prompt[:, MIDDLE]
        log_rate = log_rate + _between(PROMPTS, self.by_prompt, np.asarray(values["prompt"])) - middle
        started = _between(STARTS, self.by_starts, np.asarray(values["starts"])) - self.by_starts[:, MIDDLE]
        log_rate = log_rate + np.where(self.engines, started, 0.0)
        return np.asarray(np.exp(-log_rate))


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
        return self.slower(software, tuned=tuned) * (np.asarray(values["tuned"]) if tuned else np.ones(size))

    def aged(self, runtime: str, chips: Sequence[Chip], software: str) -> dict[str, Array]:
        """Parts of passes of stock software of a date over those of the newest, one per chip: all were slower, but
        plain products of a chip's own library (`PRODUCTS`)."""
        slower = np.full(len(chips), self.slower(software, tuned=False))
        own = [bool(kernel_library("product", runtime, c.generation, software=software)) for c in chips]
        products = np.where(own, 1.0, slower)
        return {part: products if part in PRODUCTS else slower for part in PARTS}

    @property
    def starts(self) -> float:
        """Time to start a kernel in tuned engines over that in captured graphs, at least 1."""
        labels = {name: np.array([""]) for name in ("runtime", "vendor", "benchmark")}
        return float(np.mean(self.effects.values(labels)["starts"]))

    def slower(self, software: str, *, tuned: bool = True) -> float:
        """Passes of software of a date or round ("": the newest) over those of the newest, at least 1. Before the first
        round with language models on most chips submissions tell of one vendor's tuning: stock software, not `tuned`,
        is taken to be no slower than then."""
        if not software:
            return 1.0
        age = software_age(software)
        immature = self.effects.values(
            {"runtime": np.array([""]), "vendor": np.array([""]), "benchmark": np.array([""])}
        )
        return math.exp(float(np.mean(immature["immature"])) * float(_lag(age if tuned else max(age, 0.0))))

    def prompt(self, benchmark: str) -> float:
        """The mean prompt of a benchmark over the guess."""
        labels = {"runtime": np.array([""]), "vendor": np.array([""]), "benchmark": np.array([benchmark])}
        return float(self.effects.values(labels)["prompt"][0])

    def parameters(self) -> dict[str, Parameter]:
        """What to ship."""
        found = self.effects.parameters(PREFIX, SOURCE, least=0.005)
        kept = {n: p for n, p in found.items() if n != f"{PREFIX}.prompt.all"}
        low, high = LEVELS["prompt"].low, LEVELS["prompt"].high
        common = min(found[f"{PREFIX}.tuned.all"].value, 1.0)

        def bounded(name: str, value: float) -> float:
            """Prompts that ran into their bounds stand there; tuned software is at most as slow as stock."""
            if ".prompt." in name:
                return min(max(value, low), high)
            if ".tuned." in name:
                return common if name.endswith(".all") else min(value, 1.0 / common)
            return value

        return {n: replace(p, value=bounded(n, p.value)) for n, p in kept.items()}

    @classmethod
    def of(cls, numbers: Parameters) -> LevelFit:
        """The inverse of `parameters`; numbers that hold no such fit give its priors."""
        own = {name: p for name, p in numbers.table.items() if name.startswith(f"{PREFIX}.")}
        return cls(Effects.of(own, PREFIX, LEVELS))


def without_level(numbers: Parameters, pace: float = 1.0, prompt: float = 1.0, starts: float = 1.0) -> Parameters:
    """The same numbers with tuned software at these factors on passes, on guessed prompts and on starts of kernels."""
    table = {name: p for name, p in numbers.table.items() if not name.startswith(f"{PREFIX}.")}
    plain = {"tuned": pace, "prompt": prompt, "starts": starts}
    own = {f"{PREFIX}.{n}.all": Parameter(v, v, 0.0, LEVELS[n].unit, "assumed") for n, v in plain.items()}
    return replace(numbers, table={**table, **own})


def fitted_level(rows: LevelRows) -> Fitting:
    """How the level of tuned software is fitted."""

    def model(values: Mapping[str, Real], index: NDArray[np.intp]) -> Array:
        return rows.take(index).predicted(values)

    return Fitting(FitRows(rows.labels, rows.seconds, model), LEVELS)


def fit_level(rows: LevelRows) -> LevelFit:
    """The numbers that explain the rows best under their priors. Pure: same rows, same answer."""
    return LevelFit(fitted_level(rows).effects())


def _lag(age: Real) -> Real:
    """i(age) - i(newest), 0 for what is newer."""
    found: Real = np.maximum(immaturity(age) - immaturity(software_age(NEWEST)), 0.0)
    return found


def _between(grid: Array, table: Array, where: Array) -> Array:
    """`table` [row, point] at `where` on the logarithm of the grid; straight on beyond its ends."""
    x, at = np.log(grid), np.broadcast_to(np.log(where), (len(table),))
    left = np.clip(np.searchsorted(x, at, side="right") - 1, 0, len(x) - 2)
    part, rows = (at - x[left]) / (x[left + 1] - x[left]), np.arange(len(table))
    found: Array = table[rows, left] * (1.0 - part) + table[rows, left + 1] * part
    return found
