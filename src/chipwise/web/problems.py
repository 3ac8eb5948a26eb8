"""Problems as answers of HTTP (RFC 9457)."""

from __future__ import annotations

import json
import math
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from chipwise.api.requests.doors import Problem

PROBLEM_SCHEMA = {
    "type": "object",
    "description": "Why there is no answer (RFC 9457): what is wrong, the next step, names perhaps meant.",
    "properties": {
        "type": {"type": "string", "description": "kind of the problem, e.g. urn:chipwise:unknown-name"},
        "title": {"type": "string", "description": "the status in words"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "what is wrong, in one sentence"},
        "hint": {"type": "string", "description": "the next step"},
        "nearest": {"type": "array", "items": {"type": "string"}, "description": "names perhaps meant"},
        "field": {
            "type": "string",
            "description": "the field that it is about, empty where it is about the whole",
        },
        "instead": {
            "type": "array",
            "items": {"type": "string"},
            "description": "values of the field perhaps meant",
        },
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"detail": {"type": "string"}, "pointer": {"type": "string"}},
                "required": ["detail", "pointer"],
                "additionalProperties": False,
            },
            "description": "the field as a JSON pointer into the body (RFC 6901), e.g. #/rate",
        },
        "reasons": {
            "type": "object",
            "additionalProperties": {"type": "integer"},
            "description": "candidates by what they fell to",
        },
        "reachable": {
            "type": "object",
            "additionalProperties": {"type": ["number", "null"]},
            "description": "the best figures that can be had",
        },
    },
    "required": ["type", "title", "status", "detail", "hint", "nearest", "field", "instead"],
    "additionalProperties": False,
}


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
