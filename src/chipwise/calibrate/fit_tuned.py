"""What tuned submissions of networks without tokens do better than stock software: factors on what is fitted of
pipelines (`fit_media`), the same for all networks.

    t_part = tuned part x stock part,    t at full load = t without what a host adds to a request

Engines are built for a network and a batch, several requests are in flight: what the host adds to one of them hides
behind the others, and is seen by a request that comes alone. Factors go by the type of products, by who wrote the
engine and by generation of chips; none is of a chip, a submitter or a benchmark. Fitted on the best submission of every
cell, by `calibrate.fit`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.effects import EffectGroup, Effects, Labels, seen
from chipwise.calibrate.fit import WORTH, FitRows, Fitting
from chipwise.calibrate.fit_media import MediaRows, pace_of
from chipwise.calibrate.parameter import Parameter
from chipwise.calibrate.parameters import Parameters
from chipwise.calibrate.priors import priors
from chipwise.predict.pipeline import Pace, StageTimes, seconds
from chipwise.units import Array
from chipwise.values import dataclass

PREFIX = "tuned"
SOURCE = "MLPerf Inference v3.0 to v6.1, closed division, samples of fixed size; fitted (2026-11)"
SEEN = f"{PREFIX}.seen.chip="

TUNED = EffectGroup(PREFIX, priors("tuned"), SOURCE, 0.005)
"""What the quantities of `fit_media.TIMES` are multiplied with."""


@dataclass(frozen=True)
class TunedFit:
    """Fitted factors, and the chips that they were fitted on."""

    effects: Effects
    seen: Mapping[str, Parameter]

    def parameters(self) -> dict[str, Parameter]:
        """What to ship."""
        return TUNED.parameters(self.effects) | dict(self.seen)

    @property
    def chips(self) -> frozenset[str]:
        """Chips whose submissions were fitted."""
        return frozenset(name.removeprefix(SEEN) for name in self.seen)


def tuned_numbers(numbers: Parameters) -> TunedFit:
    """The fit among shipped numbers; priors where there is none."""
    known = {name: p for name, p in numbers.table.items() if name.startswith(SEEN)}
    return TunedFit(TUNED.of(numbers.table), known)


def tuned_pace(stock: Mapping[str, Any], factors: Mapping[str, Any]) -> Pace:
    """The pace of tuned software: quantities of stock software times factors; numbers or arrays."""
    return pace_of({name: value * factors.get(name, 1.0) for name, value in stock.items()})


@dataclass(frozen=True)
class TunedRows:
    """Submissions [row]: `stages` as `predict.pipeline.seconds` takes them, `stock` quantities of `fit_media`, measured
    seconds of a batch; `alone`: 1 where a request was timed alone, 0 at full load. Labels `compute`, `vendor`,
    `generation`, `unit`."""

    labels: Labels
    measured: Array
    stages: tuple[StageTimes, ...]
    stock: Mapping[str, Array]
    alone: Array

    def __len__(self) -> int:
        return len(self.measured)

    def take(self, index: NDArray[np.intp]) -> TunedRows:
        """Some of the rows."""
        rows = MediaRows(self.labels, self.measured, self.stages).take(index)
        stock = {name: value[index] for name, value in self.stock.items()}
        return TunedRows(rows.labels, rows.measured, rows.stages, stock, self.alone[index])

    def predicted(self, factors: Mapping[str, Any]) -> Array:
        """Seconds of every row."""
        pace = tuned_pace(self.stock, factors)
        pace = replace(pace, request_s=pace.request_s * self.alone, call_s=pace.call_s * self.alone)
        return np.asarray(seconds(self.stages, pace).total_s)


def fitted_factors(rows: TunedRows) -> Fitting:
    """How the factors of submissions are fitted."""

    def model(values: Mapping[str, Any], index: NDArray[np.intp]) -> Array:
        return rows.take(index).predicted({n: np.broadcast_to(v, len(index)) for n, v in values.items()})

    return Fitting(FitRows(rows.labels, rows.measured, model), TUNED.quantities, worth=WORTH)


def fit_tuned(rows: TunedRows, chips: Sequence[str]) -> TunedFit:
    """The factors that explain submissions; `chips` are those of the rows. Pure: same rows, same answer."""
    found = fitted_factors(rows).effects()
    return TunedFit(found, seen(SEEN.removesuffix("="), chips, SOURCE, found.rows_hash))
