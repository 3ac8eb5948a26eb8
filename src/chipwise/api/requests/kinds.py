"""Questions that answer themselves, by the name of their verb, and how one is made of its fields.

Verbs about other questions and about answers that were kept ask these; all verbs are in `verbs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, Protocol, get_type_hints

from chipwise.api.requests.catalogue import ChipsRequest, ModelsRequest, OffersRequest, RuntimesRequest, SystemsRequest
from chipwise.api.requests.desk import LocalRequest
from chipwise.api.requests.detail import FrontierRequest, LoadRequest, OperatorsRequest, SensitivityRequest
from chipwise.api.requests.evidence import CheckClaimRequest, EvidenceMatchRequest, EvidenceRequest
from chipwise.api.requests.field import ALSO, ELSEWHERE, outer
from chipwise.api.requests.kernel import KernelRequest
from chipwise.api.requests.planning import CompareRequest, EstimateRequest, ExplainRequest, FitRequest, PlanRequest
from chipwise.api.requests.portfolio import FleetRequest
from chipwise.api.requests.reinforce import RlRequest
from chipwise.api.requests.simulate import DeployedSimulation
from chipwise.api.requests.training import TrainRequest
from chipwise.errors import UnknownNameError, UsageError, check_known, shorten

TRAINED = ("train", "finetune")  # tasks that train answers


class Request(Protocol):
    """A question: a frozen dataclass whose docstring says what it asks, and which answers itself."""

    values: Mapping[str, Any]

    def run(self) -> Any:
        """The answer as a record. Raises `ChipwiseError` where there is none."""

    def answer(self) -> Any:
        """The same; an error about a name that does not exist carries the field that holds it."""

    def glance(self) -> Any:
        """The answer without what stands beside the plans."""

    def resolved(self) -> Request:
        """The question by itself, where it names an answer that was kept."""

    @classmethod
    def implied(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """What fields that were left out mean where it depends on those that were given, by public name."""


PLANNING: Mapping[str, type[Request]] = {
    "plan": PlanRequest,
    "fit": FitRequest,
    "estimate": EstimateRequest,
    "explain": ExplainRequest,
    "compare": CompareRequest,
    "local": LocalRequest,
    "operators": OperatorsRequest,
    "load": LoadRequest,
    "sensitivity": SensitivityRequest,
    "frontier": FrontierRequest,
    "simulate": DeployedSimulation,
    "train": TrainRequest,
    "rl": RlRequest,
    "fleet": FleetRequest,
    "kernel": KernelRequest,
    "evidence": EvidenceRequest,
    "match": EvidenceMatchRequest,
    "claim": CheckClaimRequest,
}
"""Verbs of deployments, training, operators and evidence."""
CATALOGUE: Mapping[str, type[Request]] = {
    "chips": ChipsRequest,
    "models": ModelsRequest,
    "systems": SystemsRequest,
    "runtimes": RuntimesRequest,
    "offers": OffersRequest,
}
"""Verbs that list what is known."""
DIRECT: Mapping[str, type[Request]] = {**PLANNING, **CATALOGUE}
"""Verbs that ask no other question."""


FORMER = {"train_plan": "train", "evidence_match": "match", "check_claim": "claim"}
"""Names that verbs had over HTTP and for agents before every door called them alike; they are still understood."""


def answer_type(kind: type[Request]) -> Any:
    """The type of the answer to a kind of question."""
    return get_type_hints(kind.run)["return"]


def question_in(kinds: Mapping[str, type[Request]], verb: str, given: Mapping[str, Any]) -> Request:
    """The question of one of some verbs by the public names of its fields, whatever door it came through.

    Raises `UnknownNameError` for a verb or field that does not exist, `UsageError` for a field that is missing or a
    value that cannot be used; each carries the field.
    """
    verb = FORMER.get(verb, verb)
    check_known("verb", (verb,), kinds)
    return question_of(kinds[verb], verb, given)


def _no_field(verb: str, name: str, known: Mapping[str, Any]) -> UnknownNameError:
    """That a verb has no such field, and which is meant where another tool calls it so."""
    error = UnknownNameError(f"field of {verb}", name, known)
    if not error.nearest:
        error.hint = f"it has {', '.join(known)}"
    called = ELSEWHERE.get(name.lower().replace("-", "_"), "").split()
    if ours := next((other for other in called if other in known), ""):
        error.nearest = (ours,)
        error.hint = f"here it is called {ours}: {known[ours].metadata['help']}"
    elif verb == "claim" and name in SENTENCES:
        error.nearest = ()
        error.hint = "what is said about hardware is checked by check_statement, in its field text"
    elif name in TARGETS and name not in known:
        error.nearest = ()
        error.hint = f"it is a target, which plan takes; {verb} takes concurrency or rate and says what comes of it"
    error.field = shorten(name)
    return error


SENTENCES = ("statement", "text", "sentence")
"""Names of a sentence to check, which claim, about a benchmark's lead, does not take."""
TARGETS = ("ttft", "tpot", "e2e")
"""Fields of plan that one given deployment does not have."""


def question_of(kind: type[Request], verb: str, given: Mapping[str, Any]) -> Request:
    """The question of a kind by the public names of its fields, called `verb` in errors, which are those of
    `question_in`."""
    known = {outer(f): f for f in fields(kind)}  # type: ignore[arg-type]
    if given.get("task") in TRAINED and verb != "train":
        said = f"{verb} does not answer the task {given['task']}"
        raise UsageError(said, "the verb train does, with the same fields", field="task")
    also = {name: other for name, other in ALSO.items() if other in known and other not in given}
    given = {name if name in known else also.get(name, name): value for name, value in given.items()}
    for name in given:
        if name not in known:
            raise _no_field(verb, name, known)
    for name, f in known.items():
        if f.default is MISSING and given.get(name) is None:
            raise UsageError(f"{verb} needs '{name}'", str(f.metadata["help"]), field=name)
    return kind(**{known[name].name: value for name, value in given.items()})
