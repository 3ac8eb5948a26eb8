"""operators, load: what one can ask about the inside of a plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chipwise.api.requests.field import MISSING, ask, quantity
from chipwise.api.requests.parts import numbers_of
from chipwise.api.requests.planning import MODEL, EstimateOptions
from chipwise.report.operators import LoadReport, OperatorsReport

__all__ = ["LoadRequest", "OperatorsRequest"]


@dataclass(frozen=True, kw_only=True)
class _Inside(EstimateOptions):
    """A plan, given in full."""

    model: str = ask(MODEL, MISSING, file=True)

    def _given(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "workload": self.workload(self.task),
            "chip": self.chip,
            "layout": self.layout(),
            "count": self.count,
            "concurrency": self.concurrency,
            "rate_per_s": self.arrivals(),
            "replicas": self.replicas,
            "pricing": self.pricing(),
            "parameters": numbers_of(self.parameters),
            **self.settings(),
        }


@dataclass(frozen=True, kw_only=True)
class OperatorsRequest(_Inside):
    """Every operator of a plan: FLOPs, bytes, seconds and what bounds it, in decoding and in prefill."""

    def run(self) -> OperatorsReport:
        """Both phases of the plan. Raises the errors of `api.estimate`."""
        from chipwise.api.operating import operators

        return operators(**self._given())


@dataclass(frozen=True, kw_only=True)
class LoadRequest(_Inside):
    """A plan under rising load: TTFT, TPOT and throughput from a lone request to as many as fit."""

    ttft: str | None = ask("target for the mean time to the first token, to hold the curve against")
    tpot: str | None = ask("target for the mean time per output token, to hold the curve against")

    def run(self) -> LoadReport:
        """The plan at 16 loads. Raises the errors of `api.estimate`."""
        from chipwise.api.operating import load_curve

        ttft_s = quantity(self.ttft, "s", "--ttft", low=1e-9, high=1e6)
        tpot_s = quantity(self.tpot, "s", "--tpot", low=1e-9, high=1e6)
        return load_curve(**self._given(), ttft_s=ttft_s, tpot_s=tpot_s)
