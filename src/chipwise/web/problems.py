"""Problems as answers of HTTP (RFC 9457)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from chipwise.api.requests.doors import Problem
from chipwise.catalog.snapshot import PACKAGE

TEXTS: Mapping[str, Any] = json.loads((PACKAGE / "web/data/openapi.json").read_text("utf-8"))
"""Of the description of the API: what refusals mean by status, a question of each verb, verbs by what they are about,
and the schemas of a problem (RFC 9457) and of a question that was left with the server."""


def problem_response(status: int, problem: Problem, retry_s: int | None = None) -> Response:
    """A problem as a response; `retry_s` says when one may ask again."""
    headers = {"retry-after": str(retry_s)} if retry_s is not None else {}
    text = json.dumps(problem_of_refusal(status, problem), ensure_ascii=False).encode("utf-8", "replace")
    return Response(text, status, headers, "application/problem+json")


def problem_of_refusal(status: int, problem: Problem) -> dict[str, Any]:
    """A problem with its status as JSON says it."""
    try:
        title = HTTPStatus(status).phrase
    except ValueError:
        title = "Refused"
    body: dict[str, Any] = {
        "type": f"urn:chipwise:{problem.kind}",
        "title": title,
        "status": status,
        "detail": problem.what,
        "hint": problem.hint,
        "nearest": list(problem.nearest),
        "field": problem.field,
        "instead": list(problem.instead),
    }
    if problem.field:
        body["errors"] = [{"detail": problem.what, "pointer": f"#/{_escaped(problem.field)}"}]
    if problem.reasons or problem.reachable:
        finite = {k: v if math.isfinite(v) else None for k, v in problem.reachable.items()}
        body |= {"reasons": dict(problem.reasons), "reachable": finite}
    return body


def _escaped(field: str) -> str:
    """A field as part of a pointer in the fragment of an address; a slash stands between a part and one inside it."""
    return "/".join(quote(part.replace("~", "~0"), safe="~") for part in field.split("/"))
