"""operators, load, sensitivity, frontier: what one can ask about the inside of plans."""

from __future__ import annotations

from dataclasses import MISSING
from typing import TYPE_CHECKING

from chipwise.api.frontier import frontier
from chipwise.api.inside import load_curve, operators
from chipwise.api.requests.field import CONFIG, NAMES, PAIRS, ask, count_of, duration
from chipwise.api.requests.parts import LengthOptions, numbers_of
from chipwise.api.requests.planning import MODEL, EstimateOptions, PriceOptions
from chipwise.api.sensitivity import sensitivity
from chipwise.report.frontier import FrontierReport
from chipwise.report.operators import LoadReport, OperatorsReport
from chipwise.report.sensitivity import SensitivityReport
from chipwise.values import dataclass

if TYPE_CHECKING:
    from chipwise.api.placing import Given, Terms
    from chipwise.workload.workload import Workload


@dataclass(frozen=True, kw_only=True)
class _Inside(EstimateOptions):
    """A plan, given in full."""

    model: str = ask(MODEL, MISSING, file=True, reading=CONFIG)

    def _asked(self) -> tuple[str, Workload, Given, Terms]:
        self.media(self.model)
        terms = self.terms(numbers_of(self.parameters))
        return self.model, self.workload(self.task), self.given(), terms


@dataclass(frozen=True, kw_only=True)
class OperatorsRequest(_Inside):
    """Every operator of a plan: FLOPs, bytes, seconds and bottleneck, in decoding and in prefill."""

    def run(self) -> OperatorsReport:
        """Both phases of the plan. Raises the errors of `api.estimate`."""
        return operators(*self._asked())


@dataclass(frozen=True, kw_only=True)
class LoadRequest(_Inside):
    """A plan under rising load: TTFT, TPOT and throughput from a lone request to as many as fit."""

    ttft: str | None = ask("target for the mean time to the first token, to hold the curve against", reading=duration())
    tpot: str | None = ask("target for the mean time per output token, to hold the curve against", reading=duration())

    def run(self) -> LoadReport:
        """The plan at 16 loads. Raises the errors of `api.estimate`."""
        return load_curve(*self._asked(), ttft_s=self.values["ttft"], tpot_s=self.values["tpot"])


@dataclass(frozen=True, kw_only=True)
class SensitivityRequest(_Inside):
    """What each input of a plan does to its cost: lengths, load, number formats, price, the error of the prediction."""

    def run(self) -> SensitivityReport:
        """The cost with each input changed alone. Raises the errors of `api.estimate`."""
        return sensitivity(*self._asked())


@dataclass(frozen=True, kw_only=True)
class FrontierRequest(PriceOptions, LengthOptions):
    """Throughput of a chip against speed for one user: a curve for each chip over all layouts."""

    model: str = ask(MODEL, MISSING, file=True, reading=CONFIG)
    chips: str = ask("the chips to compare, separated by commas", MISSING, file=True, reading=NAMES)
    max_chips: int | None = ask("at most this many devices in a replica; default: 64")
    formats: str | None = ask(
        "weights, software and cache of a chip where they are its own, e.g. h100=fp8/vllm/bf16; @40 behind them marks "
        "the point of 40 tokens/s for each user",
        reading=PAIRS,
    )

    def run(self) -> FrontierReport:
        """The curves. Raises the errors of `api.frontier`."""
        return frontier(
            self.model,
            self.workload("batch"),
            self.values["chips"],
            self.terms(numbers_of(self.parameters)),
            most=count_of(self.max_chips, "--max-chips", "devices", 1024) or 64,
            evidence=self.evidence in ("all", "published"),
            formats=self.values["formats"] or {},
        )
