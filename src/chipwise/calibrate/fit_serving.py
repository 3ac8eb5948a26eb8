"""Fits what a serving stack adds to a first token beyond its kernels to measured times, under passes as kernels say.

Numbers are shared in a hierarchy (`fit`): one value for all rows, and effects by runtime and by benchmark client; an
effect without rows is 1. Passes themselves have no number of their own: those of a runtime on all of a pass and on its
launches bought nothing on rows that a fit had not seen, and cost a tenth where a runtime or a client was left out
(docs/log/serving.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields, replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.effects import EffectGroup, EffectLevel, Effects, Labels, Quantity, seen
from chipwise.calibrate.fit import FitRows, Fitting
from chipwise.calibrate.parameter import Parameter
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.harness import Harness
from chipwise.cost.cost import Cost
from chipwise.predict.overheads import Overheads
from chipwise.predict.service import Engines, Prediction, Service
from chipwise.units import Array, Real
from chipwise.values import dataclass

PREFIX = "serving"
SOURCE = "published serving measurements with vLLM, SGLang and TensorRT-LLM on NVIDIA chips; fitted (2026-11)"
ITERATIONS = 7

APART = " apart"

_FIRST_TOKEN: Mapping[str, Quantity] = {
    # without a benchmark client close to its prior: what clients add is theirs
    "request_s": Quantity(0.01, 0.1, "s", (EffectLevel(("harness", "runtime"), 0.8),), 1e-4, 1.0),
    # and of what it adds in passes every runtime has as many, also one that was never met under it
    "stream_tokens": Quantity(1.0, 1.0, "tokens", (EffectLevel(("harness",), 0.5),), 0.01, 60.0),
    # of the wait of a first wave, if clients started at once and all prompts queued
    "burst": Quantity(1.0, 0.5, "ratio", (), 0.02, 40.0),
}

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
        """Every row under numbers of the stack, [N, 1]; absent ones are the defaults."""
        size = len(self)
        plain = Service()
        names = ("request_s", "stream_tokens")
        numbers = {
            n: np.broadcast_to(np.asarray(values.get(n, getattr(plain, n)), dtype=float), (size,)) for n in names
        }
        service = Service(**numbers, burst=self.burst * np.asarray(values.get("burst", 1.0)))
        found: dict[str, Array] = {f.name: np.full((size, 1), np.nan) for f in fields(Prediction) if f.name != "cost"}
        for engines, rows in zip(self.engines, self.index, strict=True):
            answer = engines.under(service.take(rows), self.slower[rows]).closed(self.clients[rows, None])
            for name, column in found.items():
                column[rows] = getattr(answer, name)
        return Prediction(**found, cost=Cost())


@dataclass(frozen=True)
class ServingFit:
    """Effects on the first token, and which chips and runtimes were seen."""

    first: Effects
    seen: Mapping[str, Parameter] = field(default_factory=dict)

    def parameters(self) -> dict[str, Parameter]:
        """What to ship."""
        return {**FIRST_TOKEN.parameters(self.first), **self.seen}

    @classmethod
    def of(cls, numbers: Parameters) -> ServingFit:
        """The inverse of `parameters`; numbers that hold no serving fit give its priors."""
        own = {name: p for name, p in numbers.table.items() if name.startswith(f"{PREFIX}.")}
        return cls(FIRST_TOKEN.of(own))


def fitted_first(rows: ServingRows) -> Fitting:
    """How the numbers of the first token are fitted."""

    def model(values: Mapping[str, Real], index: NDArray[np.intp]) -> Array:
        whole = len(index) == len(rows) and bool(np.all(index == np.arange(len(index))))
        found: Array = (rows if whole else rows.take(index)).served(values).ttft_s[:, 0]
        return found

    return Fitting(FitRows(rows.labels, rows.ttft_s, model), FIRST_TOKEN.quantities, iterations=ITERATIONS)


def fit_serving(rows: ServingRows) -> ServingFit:
    """The effects that explain the rows best under their priors. Pure: same rows, same answer."""
    first = fitted_first(rows).effects()
    met = (seen(f"{PREFIX}.seen.{of}", rows.labels[of].tolist(), SOURCE, first.rows_hash) for of in ("chip", "runtime"))
    return ServingFit(first, {name: p for each in met for name, p in each.items()})


def served_overheads(numbers: Parameters, family: str, runtime: str) -> Overheads:
    """Host and link overheads of a runtime on chips of one family, with what it adds to a request where that was
    fitted."""
    plain = numbers.overheads(family, runtime)
    fitted = numbers.derived(ServingFit.of).first
    if family != "simt" or runtime not in fitted.keys_of("runtime"):
        return plain
    client = fitted.values({"runtime": np.array([runtime]), "harness": np.array([""])})
    return replace(plain, request_s=float(client["request_s"][0]))


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
