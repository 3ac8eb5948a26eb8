"""All requests by the name of their verb: what the doors offer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
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
from chipwise.errors import UsageError, nearest, shorten

__all__ = ["VERBS", "Request", "ask"]


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


def ask(verb: str, *model: Any, **keywords: Any) -> Any:
    """The answer of a verb to keywords as Python programs write them: the long options with `_`, `in_` for `in`.

    Numbers, lists and dictionaries are taken for text: `in_=1000`, `chips=["h100"]`, `policy={"max_sequences": 64}`.
    A single value without a name is the model. Raises `UsageError` for a keyword that the verb does not have, naming
    the nearest, and the errors of the verb.
    """
    kind = VERBS[verb]
    known = {f.name: str(f.type) for f in fields(kind)}  # type: ignore[arg-type]
    if model:
        keywords = {"model": model[0], **keywords}
    # a trailing underscore keeps Python's own names apart, and may be left out where it need not
    given = {f"{k}_" if f"{k}_" in known else k: v for k, v in keywords.items()}
    strange = [name for name in given if name not in known]
    if strange or len(model) > 1:
        wrong = strange[0] if strange else "a second value without a name"
        near = nearest(wrong, known)
        hint = f"did you mean {' or '.join(near)}?" if near else f"{verb} takes {', '.join(known)}"
        raise UsageError(f"{verb}: {shorten(wrong)} is not one of its arguments", hint)
    missing = [f.name for f in fields(kind) if f.default is MISSING and f.name not in given]  # type: ignore[arg-type]
    if missing:
        raise UsageError(f"{verb}: {missing[0]} is missing", f"{verb}({missing[0]}=...)")
    return kind(**{name: _spelled(v) if "str" in known[name] else v for name, v in given.items()}).run()


def _spelled(value: Any) -> Any:
    """A value as the text that says it."""
    if isinstance(value, Mapping):
        return ",".join(f"{name}={_spelled(v)}" for name, v in value.items()) or None
    if isinstance(value, (list, tuple, set, frozenset)):
        return ",".join(str(_spelled(v)) for v in value) or None
    if isinstance(value, float):
        return f"{value:.17g}"
    return value if value is None or isinstance(value, str) else str(value)
