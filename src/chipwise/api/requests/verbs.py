"""All requests by the name of their verb: what the doors offer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from chipwise.api.requests.catalogue import (
    ChipsRequest,
    ModelsRequest,
    OffersRequest,
    RuntimesRequest,
    SystemsRequest,
)
from chipwise.api.requests.detail import LoadRequest, OperatorsRequest
from chipwise.api.requests.evidence import CheckClaimRequest, EvidenceMatchRequest, EvidenceRequest
from chipwise.api.requests.kernel import KernelRequest
from chipwise.api.requests.planning import (
    CompareRequest,
    EstimateRequest,
    ExplainRequest,
    FitRequest,
    PlanRequest,
)
from chipwise.api.requests.training import TrainRequest

__all__ = ["VERBS", "Request"]


class Request(Protocol):
    """A question: a frozen dataclass whose docstring says what it asks, and which answers itself."""

    def run(self) -> Any:
        """The answer as a record. Raises `ChipwiseError` where there is none."""

    @classmethod
    def implied(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """What fields that were left out mean where it depends on those that were given, by public name."""


VERBS: dict[str, type[Request]] = {
    "plan": PlanRequest,
    "fit": FitRequest,
    "estimate": EstimateRequest,
    "explain": ExplainRequest,
    "compare": CompareRequest,
    "operators": OperatorsRequest,
    "load": LoadRequest,
    "train_plan": TrainRequest,
    "kernel": KernelRequest,
    "evidence": EvidenceRequest,
    "evidence_match": EvidenceMatchRequest,
    "check_claim": CheckClaimRequest,
    "chips": ChipsRequest,
    "models": ModelsRequest,
    "systems": SystemsRequest,
    "runtimes": RuntimesRequest,
    "offers": OffersRequest,
}
