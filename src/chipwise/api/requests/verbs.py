"""All requests by the name of their verb: what the doors offer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chipwise.api.requests.kept import DiffRequest, LaunchRequest, ReplayRequest, SimulateRequest
from chipwise.api.requests.kinds import CATALOGUE, PLANNING, Request, question_in
from chipwise.api.requests.statement import CheckStatementRequest

VERBS: Mapping[str, type[Request]] = {
    **PLANNING,
    "simulate": SimulateRequest,
    "check_statement": CheckStatementRequest,
    "launch": LaunchRequest,
    "replay": ReplayRequest,
    "diff": DiffRequest,
    **CATALOGUE,
}


def question(verb: str, given: Mapping[str, Any]) -> Request:
    """The question of any verb by the public names of its fields. Raises the errors of `question_in`."""
    return question_in(VERBS, verb, given)
