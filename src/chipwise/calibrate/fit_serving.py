"""Fits what a serving stack needs beyond its kernels to measured time per token and time to the first token.

Two stages. First factors on the parts of a pass (`predict.parts`), to TPOT;
then the numbers of a stack that only the first token sees, to TTFT under those passes. Numbers are shared in a
hierarchy (`fit`): one value for all rows, and effects by runtime and by benchmark client; an effect without
rows is 1. Priors: kernel measurements, hence factors of 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, fields, replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.effects import EffectGroup, EffectLevel, Effects, Labels, Quantity, seen
from chipwise.calibrate.fit import FitRows, Fitting
from chipwise.calibrate.parameter import Parameter
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.chip import Chip
from chipwise.catalog.harness import Harness
from chipwise.cost.cost import Cost
from chipwise.predict.overheads import Overheads
from chipwise.predict.parts import PARTS
from chipwise.predict.service import Engines, Prediction, Service
from chipwise.units import Array, Real
from chipwise.values import dataclass

PREFIX = "serving"
SOURCE = "published serving measurements with vLLM, SGLang and TensorRT-LLM on NVIDIA chips; fitted (2026-11)"
ITERATIONS = 7

APART = " apart"
_RUNTIME = ("runtime",)

LAUNCHED = frozenset(("launch", "experts.launch", "quantise", "pointwise"))
"""Parts whose time is mostly that of starting kernels: how well a runtime captures and fuses them differs."""

_PASSES: Mapping[str, Quantity] = {
    # what a runtime adds to or takes from every pass, and from its launches besides; factors on products, experts,
    # attention or exchanges made rows worse that a fit had not seen (docs/log/serving.md)
    "whole": Quantity(1.0, 0.2, "ratio", (EffectLevel(_RUNTIME, 0.1),), 0.1, 10.0),
    "launch": Quantity(1.0, 0.3, "ratio", (EffectLevel(_RUNTIME, 0.2),), 0.1, 10.0),
}

_FIRST_TOKEN: Mapping[str, Quantity] = {
    # without a benchmark client close to its prior: what clients add is theirs
    "request_s": Quantity(0.01, 0.1, "s", (EffectLevel(("harness", "runtime"), 0.8),), 1e-4, 1.0),
    # and of what it adds in passes every runtime has as many, also one that was never met under it
    "stream_tokens": Quantity(1.0, 1.0, "tokens", (EffectLevel(("harness",), 0.5),), 0.01, 60.0),
    # of the wait of a first wave, if clients started at once and all prompts queued
    "burst": Quantity(1.0, 0.5, "ratio", (), 0.02, 40.0),
}

PASSES = EffectGroup(f"{PREFIX}.pass", _PASSES, SOURCE, least=0.005)
FIRST_TOKEN = EffectGroup(f"{PREFIX}.first", _FIRST_TOKEN, SOURCE, least=0.6)


@dataclass(frozen=True)
class ServingRows:
    """Measured rows: their engines with tables by part (those with one pool and those with two; `index` names the
    rows of either), clients of a closed loop, shares of first waves, how much slower parts of passes of old software
    are [row, part], along which lines numbers are shared, and means in seconds."""

    engines: tuple[Engines, ...]
    index: tuple[NDArray[np.intp], ...]
    clients: Array
    burst: Array
    slower: Array
    labels: Labels
    tpot_s: Array
    ttft_s: Array

    def __len__(self) -> int:
        return len(self.clients)

    def take(self, index: NDArray[np.intp]) -> ServingRows:
        """Some of the rows."""
        place = np.full(len(self), -1)
        place[index] = np.arange(len(index))
        engines, rows = [], []
        for e, own in zip(self.engines, self.index, strict=True):
            kept = np.flatnonzero(place[own] >= 0)
            if len(kept):
                engines.append(e.take(kept))
                rows.append(place[own[kept]])
        return ServingRows(
            tuple(engines),
            tuple(rows),
            clients=self.clients[index],
            burst=self.burst[index],
            slower=self.slower[index],
            labels={name: column[index] for name, column in self.labels.items()},
            tpot_s=self.tpot_s[index],
            ttft_s=self.ttft_s[index],
        )

    def served(self, values: Mapping[str, Real]) -> Prediction:
        """Every row under factors on parts and numbers of the stack, [N, 1]; absent ones are the defaults."""
        size = len(self)
        factors = np.stack([np.broadcast_to(f, (size,)) for f in part_factors(values).values()], axis=1)
        factors = factors * self.slower
        plain = Service()
        names = ("request_s", "stream_tokens")
        numbers = {
            n: np.broadcast_to(np.asarray(values.get(n, getattr(plain, n)), dtype=float), (size,)) for n in names
        }
        service = Service(**numbers, burst=self.burst * np.asarray(values.get("burst", 1.0)))
        found: dict[str, Array] = {f.name: np.full((size, 1), np.nan) for f in fields(Prediction) if f.name != "cost"}
        for engines, rows in zip(self.engines, self.index, strict=True):
            answer = engines.under(service.take(rows), factors[rows]).closed(self.clients[rows, None])
            for name, column in found.items():
                column[rows] = getattr(answer, name)
        return Prediction(**found, cost=Cost())


def part_factors(values: Mapping[str, Real]) -> dict[str, Real]:
    """The factor of every part: that of the runtime, and on launches its own; 1 where nothing was fitted."""
    whole = np.asarray(values.get("whole", 1.0))
    launch = whole * np.asarray(values.get("launch", 1.0))
    return {part: launch if part in LAUNCHED else whole for part in PARTS}


@dataclass(frozen=True)
class ServingFit:
    """Effects on passes and on the first token, and which chips were seen."""

    passes: Effects
    first: Effects
    seen: Mapping[str, Parameter] = field(default_factory=dict)

    def values(self, labels: Labels) -> dict[str, Array]:
        """Factors and numbers of every row, as `Engines.served` reads them."""
        return {**self.passes.values(labels), **self.first.values(labels)}

    def parameters(self) -> dict[str, Parameter]:
        """What to ship."""
        return {**PASSES.parameters(self.passes), **FIRST_TOKEN.parameters(self.first), **self.seen}

    @property
    def count(self) -> int:
        """Numbers that the fit chose: one for every effect on a pass or on the first token."""
        return len(self.passes.table) + len(self.first.table)

    @classmethod
    def of(cls, numbers: Parameters) -> ServingFit:
        """The inverse of `parameters`; numbers that hold no serving fit give its priors."""
        own = {name: p for name, p in numbers.table.items() if name.startswith(f"{PREFIX}.")}
        return cls(PASSES.of(own), FIRST_TOKEN.of(own))


def fitted_passes(rows: ServingRows) -> Fitting:
    """How the factors on passes are fitted."""
    return Fitting(_Stage(rows, {}).rows(rows.tpot_s, "tpot_s"), PASSES.quantities, iterations=ITERATIONS)


def fitted_first(rows: ServingRows, passes: Effects) -> Fitting:
    """How the numbers of the first token are fitted under those of passes."""
    stage = _Stage(rows, passes.values(rows.labels)).rows(rows.ttft_s, "ttft_s")
    return Fitting(stage, FIRST_TOKEN.quantities, iterations=ITERATIONS)


def fit_serving(rows: ServingRows) -> ServingFit:
    """The effects that explain the rows best under their priors. Pure: same rows, same answer."""
    passes = fitted_passes(rows).effects()
    first = fitted_first(rows, passes).effects()
    chips = seen(f"{PREFIX}.seen.chip", rows.labels["chip"].tolist(), SOURCE, passes.rows_hash)
    return ServingFit(passes, first, chips)


def served_overheads(numbers: Parameters, family: str, runtime: str, chips: Sequence[Chip]) -> Overheads:
    """Host and link overheads of a runtime on chips of one family, with the factors that served workloads gave
    the parts of its passes, one per chip. Runtimes and families that were not fitted have none."""
    plain = numbers.overheads(family, runtime)
    fitted = numbers.derived(ServingFit.of)
    if family != "simt" or runtime not in fitted.passes.keys_of("runtime"):
        return plain
    labels = {"runtime": np.full(len(chips), runtime)}
    values = fitted.passes.values(labels)
    factors = part_factors(values)
    client = fitted.first.values({**labels, "harness": np.full(len(chips), "")})
    return replace(plain, factors=factors, request_s=float(client["request_s"][0]))


def client_of(harness: Harness, *, apart: bool) -> str:
    """Along which numbers of the first token are shared: a client, and whether a router stands between it and workers
    for prompts."""
    return harness.client + (APART if apart and harness.client else "")


def harnessed(service: Service, harness: Harness, runtime: str, numbers: Parameters, *, apart: bool) -> Service:
    """What a client sees: under a harness also what its runs were found to add, those with prompts `apart` or not."""
    if not harness.id:
        return service
    fitted = numbers.derived(ServingFit.of).first
    found = fitted.values({"runtime": np.array([runtime]), "harness": np.array([client_of(harness, apart=apart)])})
    rounds = inf if harness.median_of and harness.alike else service.rounds
    seen = replace(service, burst=harness.first_wave * float(found["burst"][0]), rounds=rounds)
    if not harness.server:
        return replace(seen, request_s=0.0)
    if not knows_client(numbers, harness, apart=apart):
        return seen
    if harness.median_of:
        # the mean holds requests that found the server cold, and those held up behind a crowd
        own_s = harness.request_s.get(runtime)
        return seen if own_s is None else replace(seen, request_s=own_s)
    seen = replace(seen, stream_tokens=float(found["stream_tokens"][0]))
    if runtime not in fitted.keys_of("runtime"):
        return seen
    return replace(seen, request_s=float(found["request_s"][0]))


def knows_client(numbers: Parameters, harness: Harness, *, apart: bool) -> bool:
    """Whether runs under a benchmark client were fitted."""
    known = numbers.derived(ServingFit.of).first.keys_of("harness")
    return bool(harness.id) and client_of(harness, apart=apart) in known


@dataclass(frozen=True)
class _Stage:
    """One figure of all rows as a function of the numbers that are not `known` yet."""

    data: ServingRows
    known: Mapping[str, Array]

    def rows(self, measured_s: Array, figure: str) -> FitRows:
        def model(values: Mapping[str, Real], index: NDArray[np.intp]) -> Array:
            whole = len(index) == len(measured_s) and bool(np.all(index == np.arange(len(index))))
            rows = self.data if whole else self.data.take(index)
            known = {name: column[index] for name, column in self.known.items()}
            found: Array = getattr(rows.served({**known, **values}), figure)[:, 0]
            return found

        return FitRows(self.data.labels, measured_s, model)
