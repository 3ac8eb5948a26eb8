"""What is fitted of pipelines: factors of the seconds of parts, what a host adds, and bytes beyond those of tensors.

The parts come from operators that were priced (`predict.pipeline`); numbers are shared over runtimes and generations,
so that a chip or software without rows keeps what its relatives have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.effects import EffectGroup, Effects, Labels, seen
from chipwise.calibrate.fit import WORTH, FitRows, Fitting
from chipwise.calibrate.parameter import Parameter
from chipwise.calibrate.parameters import Parameters
from chipwise.calibrate.priors import priors
from chipwise.cost.cost import Cost
from chipwise.predict.pipeline import MEDIA_PARTS, MediaPart, Pace, StageTimes, seconds
from chipwise.units import Array
from chipwise.values import dataclass

SOURCE = "published speeds and memory of image, video, vision, speech and text models; fitted (2026-11)"


TIMES = EffectGroup("media", priors("media"), SOURCE)
"""What times are multiplied with, and what a host adds."""

MEMORY = EffectGroup("media_memory", priors("media_memory"), SOURCE)
"""Bytes beyond those that tensors have (`predict.pipeline.Account`)."""

WORTH_MEMORY = 0.03
"""What a number of memory must explain to ship (`fit`). Chosen: two are left; with one, 12 billion parameters in four
bits are said not to fit 8 GB, where they run."""


@dataclass(frozen=True)
class MediaRows:
    """Measured requests [row]: `stages`, as `predict.pipeline.seconds` takes them with arrays over rows; seconds; or,
    of rows of memory, bytes of weights and activations, and whether the figure counts what is
    `reserved` and what the `device` shows (1 or 0). Labels `runtime`, `pace`, `folds`, `attends`,
    `generation`, `core`, `chip`, `dtype`, `phase`, `unit`, `use`, `layout`, `host` of each. `whole`: 1 where a
    request was timed, 0 where one of its steps (None: all requests); `weight` of each in a fit."""

    labels: Labels
    measured: Array
    stages: tuple[StageTimes, ...] = ()
    weights: Array | None = None
    activations: Array | None = None
    reserved: Array | None = None
    device: Array | None = None
    weight: Array | None = None
    whole: Array | None = None

    def __len__(self) -> int:
        return len(self.measured)

    def take(self, index: NDArray[np.intp]) -> MediaRows:
        """Some of the rows."""
        return MediaRows(
            {name: v[index] for name, v in self.labels.items()},
            self.measured[index],
            tuple(_taken(stage, index) for stage in self.stages),
            None if self.weights is None else self.weights[index],
            None if self.activations is None else self.activations[index],
            None if self.reserved is None else self.reserved[index],
            None if self.device is None else self.device[index],
            None if self.weight is None else self.weight[index],
            None if self.whole is None else self.whole[index],
        )

    def predicted(self, values: Mapping[str, Any], index: NDArray[np.intp] | None = None) -> Array:
        """Seconds, or bytes, of some rows (None: all) under fitted quantities."""
        rows = self if index is None else self.take(index)
        if rows.weights is not None:
            assert rows.activations is not None
            assert rows.reserved is not None
            assert rows.device is not None
            alive = values["activation"] * rows.activations * (1.0 + values["cache"] * rows.reserved)
            return np.asarray(rows.weights + alive + values["runtime_bytes"] * rows.device)
        pace = pace_of(values)
        if rows.whole is not None:
            pace = replace(pace, request_s=pace.request_s * rows.whole)
        return np.asarray(seconds(rows.stages, pace).total_s)

    @property
    def rows(self) -> FitRows:
        """As a fit reads them."""
        return FitRows(self.labels, self.measured, self.predicted, self.weight)

    @staticmethod
    def together(requests: Sequence[Sequence[StageTimes]]) -> tuple[StageTimes, ...]:
        """Requests side by side: every number an array over them; a request with fewer stages has empty ones."""
        most = max(map(len, requests), default=0)
        empty = StageTimes("", 0.0, {}, 0.0)
        found = []
        for place in range(most):
            each = [r[place] if place < len(r) else empty for r in requests]
            parts: dict[MediaPart, Cost] = {
                part: Cost({"device": np.array([stage.of(part) for stage in each])})
                for part in MEDIA_PARTS
                if any(part in stage.parts for stage in each)
            }
            calls, launches, host_s = (
                np.array([getattr(s, name) for s in each]) for name in ("calls", "launches", "host_s")
            )
            limited = {
                part: np.array([float(stage.limited_s.get(part, 0.0)) for stage in each])
                for part in parts
                if any(part in stage.limited_s for stage in each)
            }
            found.append(StageTimes("", calls, parts, launches, limited, host_s))
        return tuple(found)


def _taken(stage: StageTimes, index: NDArray[np.intp]) -> StageTimes:
    parts = {
        part: Cost({name: np.asarray(v)[index] for name, v in cost.exposed.items()})
        for part, cost in stage.parts.items()
    }
    return replace(
        stage,
        calls=np.asarray(stage.calls)[index],
        launches=np.asarray(stage.launches)[index],
        host_s=np.broadcast_to(stage.host_s, np.shape(stage.calls))[index],
        parts=parts,
        limited_s={part: np.asarray(v)[index] for part, v in stage.limited_s.items()},
    )


def pace_of(values: Mapping[str, Any]) -> Pace:
    """A runtime's numbers from fitted quantities, arrays or numbers."""
    product = values["product"]
    factors: dict[MediaPart, Any] = {part: values[part] for part in MEDIA_PARTS if part in values}
    factors["gemm"], factors["conv"] = product, product * values["conv"]
    return Pace(factors, values["energy"], values["host_s"], values["call_s"], values["request_s"])


def attended(runtime: str, attends: str, core: str) -> str:
    """A runtime's kernels of attention and the compute units that ran them, as one label of what was seen."""
    return f"{runtime} {attends} {core}"


def media_labels(**labels: str) -> Labels:
    """The labels of one row."""
    return {name: np.array([value]) for name, value in labels.items()}


@dataclass(frozen=True)
class MediaFit:
    """Fitted effects on times and on memory."""

    times: Effects
    memory: Effects
    seen: Mapping[str, Parameter]

    def parameters(self) -> dict[str, Parameter]:
        """What to ship."""
        return TIMES.parameters(self.times) | MEMORY.parameters(self.memory) | dict(self.seen)


SEEN = "media.seen."  # before the label of what rows a fit saw


def media_seen(numbers: Parameters) -> frozenset[str]:
    """Labels of the rows that numbers were fitted to, as in chip=a100."""
    return frozenset(name.removeprefix(SEEN) for name in numbers.table if name.startswith(SEEN))


def media_numbers(numbers: Parameters) -> MediaFit:
    """The fit among shipped numbers; priors where there is none."""
    known = {name: p for name, p in numbers.table.items() if name.startswith(SEEN)}
    return MediaFit(TIMES.of(numbers.table), MEMORY.of(numbers.table), known)


def fitted_times(rows: MediaRows) -> Fitting:
    """How the numbers of times are fitted."""
    return Fitting(rows.rows, TIMES.quantities, worth=WORTH)


def fitted_memory(rows: MediaRows) -> Fitting:
    """How the numbers of memory are fitted."""
    return Fitting(rows.rows, MEMORY.quantities, worth=WORTH_MEMORY)


def fit_media(times: MediaRows, memory: MediaRows) -> MediaFit:
    """The effects that explain measured requests; pure."""
    found = {name: list(times.labels[name]) for name in ("chip", "generation", "runtime")} if len(times) else {}
    if len(times):
        kernels = zip(*(map(str, times.labels[n]) for n in ("runtime", "attends", "core")), strict=True)
        found["attends"] = [attended(*three) for three in kernels]
    counted: dict[str, Parameter] = {}
    for name, values in found.items():
        counted |= seen(f"{SEEN}{name}", [str(v) for v in values], SOURCE)
    return MediaFit(fitted_times(times).effects(), fitted_memory(memory).effects(), counted)
