"""operators, load: what one can ask about the inside of a plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipwise.api.requests.field import CONFIG, MISSING, ask, duration
from chipwise.api.requests.parts import numbers_of
from chipwise.api.requests.planning import MODEL, EstimateOptions
from chipwise.report.operators_records import LoadReport, OperatorsReport

if TYPE_CHECKING:
    from chipwise.api.placing import Given, Terms
    from chipwise.workload.workload import Workload

__all__ = ["LoadRequest", "OperatorsRequest"]


@dataclass(frozen=True, kw_only=True)
class _Inside(EstimateOptions):
    """A plan, given in full."""

    model: str = ask(MODEL, MISSING, file=True, reading=CONFIG)

    def _asked(self) -> tuple[str, Workload, Given, Terms]:
        terms = self.terms(numbers_of(self.parameters))
        return self.model, self.workload(self.task), self.given(), terms


@dataclass(frozen=True, kw_only=True)
class OperatorsRequest(_Inside):
    """Every operator of a plan: FLOPs, bytes, seconds and what bounds it, in decoding and in prefill."""

    def run(self) -> OperatorsReport:
        """Both phases of the plan. Raises the errors of `api.estimate`."""
        from chipwise.api.operating import operators

        return operators(*self._asked())


@dataclass(frozen=True, kw_only=True)
class LoadRequest(_Inside):
    """A plan under rising load: TTFT, TPOT and throughput from a lone request to as many as fit."""

    ttft: str | None = ask(
        "target for the mean time to the first token, to hold the curve against", reading=duration()
    )
    tpot: str | None = ask(
        "target for the mean time per output token, to hold the curve against", reading=duration()
    )

    def run(self) -> LoadReport:
        """The plan at 16 loads. Raises the errors of `api.estimate`."""
        from chipwise.api.operating import load_curve

        return load_curve(*self._asked(), ttft_s=self.values["ttft"], tpot_s=self.values["tpot"])
