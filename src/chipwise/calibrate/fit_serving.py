"""Fits what a serving stack needs beyond its kernels to measured time per token and time to the first token.

Two stages. First factors on the parts of a pass (`predict.parts`) and the interference of prompts, to TPOT;
then the numbers of a stack that only the first token sees, to TTFT under those passes. Numbers are shared in a
hierarchy (`fit_kernels`): one value for all rows, and effects by runtime, by generation of chips, by
architecture under a runtime; an effect without rows is 1. Priors: kernel measurements, hence factors of 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.effects import Effects, Level, Quantity
from chipwise.calibrate.fit_kernels import Rows, fit
from chipwise.calibrate.parameter import Parameter
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.chip import Chip
from chipwise.predict.engines import Engines
from chipwise.predict.overheads import Overheads
from chipwise.predict.parts import PARTS
from chipwise.units import Array, Real

__all__ = ["PREFIX", "ServingFit", "ServingRows", "chips_seen", "fit_serving", "served_overheads"]

PREFIX = "serving"
SOURCE = "published serving measurements with vLLM, SGLang and TensorRT-LLM on NVIDIA chips; fitted (2026-11)"
ITERATIONS = 7

Labels = Mapping[str, NDArray[np.str_]]

_RUNTIME, _GENERATION = ("runtime",), ("generation",)
# Latencies and the host's work belong to a runtime; shares of peaks to a generation of chips.
_OF_RUNTIME = frozenset(
    ("launch", "experts.launch", "quantise", "comm.latency", "a2a.latency", "host.iteration", "host.sequence")
)


def _factor(part: str) -> Quantity:
    if part in _OF_RUNTIME:
        return Quantity(1.0, 0.3, "ratio", (Level(_RUNTIME, 0.2),), 0.1, 10.0)
    return Quantity(1.0, 0.1, "ratio", (Level(_GENERATION, 0.05),), 0.1, 10.0)


PASSES: Mapping[str, Quantity] = {
    **{part: _factor(part) for part in PARTS},
    # maturity of a stack's kernels for an architecture; a launcher that adds work to every pass; software age
    "whole": Quantity(
        1.0,
        0.2,
        "ratio",
        (
            Level(("family",), 0.05),
            Level(("family", "harness"), 0.08),
            Level(_RUNTIME, 0.1),
            Level(("stack",), 0.3),
            Level(("period",), 0.05),
        ),
        0.1,
        10.0,
    ),
    "interference": Quantity(1.0, 0.2, "ratio of a prompt's own time", (), 0.1, 3.0),
}

_MODE = Level(("mode",), 0.5)
_STACK = (Level(_RUNTIME, 0.5), Level(("harness",), 0.5), _MODE)
FIRST_TOKEN: Mapping[str, Quantity] = {
    "request_s": Quantity(0.02, 0.7, "s", _STACK, 1e-4, 1.0),
    "stream_tokens": Quantity(3.0, 0.7, "tokens", _STACK, 0.05, 60.0),
    "queue": Quantity(1.0, 0.3, "ratio", (Level(("harness",), 0.3), _MODE), 0.05, 10.0),
    "burst": Quantity(0.06, 0.4, "ratio", (Level(("harness",), 0.4), _MODE), 2e-3, 1.0),
}


@dataclass(frozen=True)
class ServingRows:
    """Measured rows: their engines, along which lines numbers are shared, and means in seconds."""

    engines: Engines
    labels: Labels
    tpot_s: Array
    ttft_s: Array

    def take(self, index: NDArray[np.intp]) -> ServingRows:
        """Some of the rows."""
        labels = {name: column[index] for name, column in self.labels.items()}
        return ServingRows(self.engines.take(index), labels, self.tpot_s[index], self.ttft_s[index])


@dataclass(frozen=True)
class ServingFit:
    """Effects on passes and on the first token."""

    passes: Effects
    first: Effects

    def values(self, labels: Labels) -> dict[str, Array]:
        """Factors and numbers of every row, as `Engines.served` reads them."""
        return {**self.passes.values(labels), **self.first.values(labels)}

    def parameters(self) -> dict[str, Parameter]:
        """What to ship."""
        return {
            **self.passes.parameters(f"{PREFIX}.pass", SOURCE, least=0.005),
            **self.first.parameters(f"{PREFIX}.first", SOURCE, least=0.005),
        }

    @classmethod
    def of(cls, numbers: Parameters) -> ServingFit:
        """The inverse of `parameters`; numbers that hold no serving fit give its priors."""
        names = (f"{PREFIX}.pass", f"{PREFIX}.first")
        own = {name: p for name, p in numbers.table.items() if name.startswith(f"{PREFIX}.")}
        if not own:
            return cls(Effects(PASSES, {}), Effects(FIRST_TOKEN, {}))
        return cls(Effects.of(own, names[0], PASSES), Effects.of(own, names[1], FIRST_TOKEN))


def chips_seen(labels: Labels, rows_hash: str) -> dict[str, Parameter]:
    """How many rows of each chip a fit has seen, to ship beside it: they decide how near a prediction is."""
    chips, counts = np.unique(labels["chip"], return_counts=True)
    return {
        f"{PREFIX}.seen.chip={chip}": Parameter(float(n), float(n), 0.0, "rows", SOURCE, rows_hash)
        for chip, n in zip(chips, counts, strict=True)
    }


def fit_serving(rows: ServingRows) -> ServingFit:
    """The effects that explain the rows best under their priors. Pure: same rows, same answer."""
    passes = fit(_Stage(rows, {}).rows(rows.tpot_s, "tpot_s"), PASSES, iterations=ITERATIONS)
    known = passes.values(rows.labels)
    first = fit(_Stage(rows, known).rows(rows.ttft_s, "ttft_s"), FIRST_TOKEN, iterations=ITERATIONS)
    return ServingFit(passes, first)


def served_overheads(
    numbers: Parameters, family: str, runtime: str, chips: Sequence[Chip], architecture: str
) -> Overheads:
    """Host and link overheads of a runtime on chips of one family, with the factors that served workloads gave
    the parts of its passes, one per chip. Runtimes and families that were not fitted have none."""
    plain = numbers.overheads(family, runtime)
    fitted = numbers.derived(ServingFit.of)
    if family != "simt" or runtime not in fitted.passes.keys_of("runtime"):
        return plain
    # software of the last quarter that was measured
    period = max(fitted.passes.keys_of("period"), default="")
    known = {"runtime": runtime, "stack": runtime, "family": architecture, "period": period}
    known["harness"] = f"{runtime}, drawn lengths"  # as public benchmarks are run
    known["mode"] = "together"
    labels = {name: np.full(len(chips), value) for name, value in known.items()}
    labels["generation"] = np.array([c.base_generation for c in chips])
    values = fitted.passes.values(labels)
    factors: dict[str, Real] = {part: values[part] * values["whole"] for part in PARTS}
    first = {name: float(np.mean(column)) for name, column in fitted.first.values(labels).items()}
    return replace(
        plain,
        factors=factors,
        request_s=first["request_s"],
        stream_tokens=first["stream_tokens"],
        interference=float(np.mean(values["interference"])),
    )


@dataclass(frozen=True)
class _Stage:
    """One figure of all rows as a function of the numbers that are not `known` yet."""

    data: ServingRows
    known: Mapping[str, Array]

    def rows(self, measured_s: Array, figure: str) -> Rows:
        def model(values: Mapping[str, Real], index: NDArray[np.intp]) -> Array:
            whole = len(index) == len(measured_s) and bool(np.all(index == np.arange(len(index))))
            engines = self.data.engines if whole else self.data.engines.take(index)
            known = {name: column[index] for name, column in self.known.items()}
            found: Array = getattr(engines.served({**known, **values}), figure)
            return found

        return Rows(self.data.labels, measured_s, model)
