"""Fits the numbers of training to measured steps and memory: pure, robust, priors shared over software and chips."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.effects import Effects
from chipwise.calibrate.fit import FitRows, Fitting
from chipwise.calibrate.parameter import Parameter
from chipwise.calibrate.parameters import Parameters
from chipwise.calibrate.training_rates import MEMORY, MEMORY_PREFIX, PREFIX, QUANTITIES, rates
from chipwise.catalog.chips import get_chip
from chipwise.numeric import take
from chipwise.parallel.collective import CollectiveParameters, Kind
from chipwise.predict.training.memory import MemoryRates, memory_use
from chipwise.predict.training.operators import TrainWork
from chipwise.predict.training.step import step_time
from chipwise.predict.training.values import Cluster, Recipe, TrainSpread, Transformer
from chipwise.units import Array, Real
from chipwise.values import dataclass

T = TypeVar("T")
SOURCE = "fitted on published training runs of 2020-2026 (step times and peak memory; rows are not shipped)"
SEEN = f"{PREFIX}.seen."
KNOWN_ROWS = 8.0  # fewer do not make known what they are of
# What a number must explain to ship (`fit`), in a loss of few rows that pull little: 33 numbers of time instead of 46,
# with which a publication, a trainer or a chip left out is as far off, a workload by 6 % of its figure further, and
# figures of strangers nearer; 8 of memory instead of 12.
WORTH, WORTH_MEMORY = 0.04, 0.003


@dataclass(frozen=True)
class Runs:
    """Training runs as columns: what the equations need, labels that choose fitted numbers, and, where it was
    measured, seconds of a step and bytes of a device (NaN elsewhere). `weight` is a row's pull on a fit."""

    network: Transformer
    spread: TrainSpread
    cluster: Cluster
    recipe: Recipe
    work: TrainWork
    labels: dict[str, NDArray[np.str_]]
    seconds: Array
    memory_bytes: Array
    weight: Array

    def __len__(self) -> int:
        return len(self.seconds)

    def take(self, index: NDArray[np.intp]) -> Runs:
        """Some of them."""
        parts: dict[str, Any] = {
            n: take(getattr(self, n), index) for n in ("network", "spread", "cluster", "recipe", "work")
        }
        return Runs(
            labels={k: v[index] for k, v in self.labels.items()},
            seconds=self.seconds[index],
            memory_bytes=self.memory_bytes[index],
            weight=self.weight[index],
            **parts,
        )


def fit(runs: Runs, prior: Parameters) -> Parameters:
    """`prior` with the numbers of training fitted to the runs; everything else is passed on.

    Step time and memory are fitted one after the other; log residuals, Huber's loss, normal priors on the
    logarithm of every effect. Pure: same runs, same answer.
    """
    table: dict[str, Parameter] = {n: p for n, p in prior.table.items() if not n.startswith(PREFIX + ".")}
    timed, weighed = timed_of(runs), weighed_of(runs)
    if len(timed):
        table |= fitted_times(runs.take(timed), prior).effects().parameters(PREFIX, SOURCE)
    if len(weighed):
        table |= fitted_memory(runs.take(weighed)).effects().parameters(MEMORY_PREFIX, SOURCE)
    for what, index in (("time", timed), ("memory", weighed)):
        of = (seen_as(what, {n: str(c[i]) for n, c in runs.labels.items()}) for i in index.tolist())
        for name, rows in sorted(Counter(of).items()):
            table[f"{SEEN}{name}"] = Parameter(0.0, float(rows), 0.0, "rows that were fitted", SOURCE)
    return Parameters(table)


def timed_of(runs: Runs) -> NDArray[np.intp]:
    """Places of runs whose steps were timed."""
    return np.flatnonzero(np.isfinite(runs.seconds))


def weighed_of(runs: Runs) -> NDArray[np.intp]:
    """Places of runs whose memory was measured."""
    return np.flatnonzero(np.isfinite(runs.memory_bytes))


def seen_as(what: str, labels: Mapping[str, str]) -> str:
    """Under which name runs count that make a figure known: step times of dense models or of experts by trainer and
    generation of the chip, as in `moe=nemo+hopper`, memory by trainer, as in `memory=nemo`."""
    return (
        f"memory={labels['stack']}" if what == "memory" else f"{labels['moe']}={labels['stack']}+{labels['generation']}"
    )


def seen_runs(numbers: Parameters) -> frozenset[str]:
    """What several runs behind the numbers were of, as `seen_as` names it."""
    return numbers.derived(_seen)


def _seen(numbers: Parameters) -> frozenset[str]:
    own = ((name.removeprefix(SEEN), p) for name, p in numbers.table.items() if name.startswith(SEEN))
    return frozenset(name for name, p in own if p.value >= KNOWN_ROWS)


def fitted_count(numbers: Parameters) -> int:
    """How many numbers of training were fitted: all but the lists of what was seen."""
    own = (name for name in numbers.table if name.startswith(f"{PREFIX}."))
    return sum(1 for name in own if not name.startswith(SEEN) and ".label." not in name)


def training_effects(numbers: Parameters) -> tuple[Effects, Effects]:
    """Effects on time and on memory in a table of parameters; priors where it has none."""
    return numbers.derived(_both)


def _both(numbers: Parameters) -> tuple[Effects, Effects]:
    table = numbers.table
    return Effects.of(table, PREFIX, QUANTITIES), Effects.of(table, MEMORY_PREFIX, MEMORY)


def links_of(runs: Runs, numbers: Parameters) -> dict[Kind, CollectiveParameters]:
    """Numbers of exchanges of the chip of every run, or of the one that stands for it."""
    names, codes = np.unique(runs.labels["chip"], return_inverse=True)
    each = [numbers.links(get_chip(str(name).removeprefix("near-"))) for name in names]
    return {
        kind: CollectiveParameters(
            **{f.name: np.array([getattr(e[kind], f.name) for e in each])[codes] for f in fields(CollectiveParameters)}
        )
        for kind in each[0]
    }


def fitted_times(runs: Runs, numbers: Parameters) -> Fitting:
    """How the numbers of step times are fitted."""
    links = links_of(runs, numbers)

    def model(values: Any, index: NDArray[np.intp]) -> Array:
        whole = len(index) == len(runs)
        part = runs if whole else runs.take(index)
        r = rates(values, links if whole else {kind: take(p, index) for kind, p in links.items()})
        found: Real = step_time(part.network, part.spread, part.cluster, part.recipe, r, part.work).total_s
        return np.asarray(found)

    return Fitting(FitRows(runs.labels, runs.seconds, model, runs.weight), QUANTITIES, WORTH)


def fitted_memory(runs: Runs) -> Fitting:
    """How the numbers of memory are fitted."""

    def model(values: Any, index: NDArray[np.intp]) -> Array:
        part = runs if len(index) == len(runs) else runs.take(index)
        use = memory_use(part.network, part.spread, part.recipe, MemoryRates(**values))
        return np.asarray(use.total_bytes)

    return Fitting(FitRows(runs.labels, runs.memory_bytes, model, runs.weight), MEMORY, WORTH_MEMORY)
