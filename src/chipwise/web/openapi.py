"""The HTTP API as OpenAPI 3.1, from the requests and records themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from chipwise import __version__
from chipwise.api.requests.doors import answer_schema, request_schema
from chipwise.api.requests.verbs import VERBS
from chipwise.values import dataclass
from chipwise.web.problems import TEXTS

PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
EXAMPLES: Mapping[str, Mapping[str, Any]] = TEXTS["examples"]
"""A question of each verb that has an answer."""
ASKED = {
    "type": "object",
    "properties": {"verb": {"enum": list(VERBS)}, "request": {"type": "object"}},
    "required": ["verb"],
    "additionalProperties": False,
}


@cache
def openapi() -> dict[str, Any]:
    """The document. Answers are described as they are written: a number that is not finite is null."""
    schemas: dict[str, Any] = {"Problem": TEXTS["problem"], "Job": TEXTS["job"]}
    refusals = {
        status: {"description": text, "content": PROBLEM}
        | ({"headers": {"Retry-After": {"schema": {"type": "integer"}}}} if status in ("429", "503") else {})
        for status, text in TEXTS["refusals"].items()
    }
    paths: dict[str, Any] = {
        "/healthz": {
            "get": {
                "operationId": "healthz",
                "summary": "Whether the server is up.",
                "tags": ["server"],
                "security": [],
                "responses": {"200": _json("up", {"type": "object", "required": ["status"]}, {"status": "ok"})}
                | {s: refusals[s] for s in ("403", "414", "421")},
            }
        }
    }
    for verb in VERBS:
        asked, answered = request_schema(verb), answer_schema(verb)
        schemas |= asked.pop("$defs", {}) | answered.pop("$defs", {})
        paths[f"/v1/{verb}"] = {
            "post": {
                "operationId": verb,
                "summary": (VERBS[verb].__doc__ or verb).partition("\n")[0],
                "tags": [tag for tag, verbs in TEXTS["tags"].items() if verb in verbs],
                "requestBody": _body(asked, EXAMPLES[verb]),
                "responses": {"200": _json("the answer", answered)} | refusals,
            }
        }
    paths |= _jobs(refusals)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "chipwise",
            "version": __version__,
            "description": "Which chips do you need to run this model, how fast will it be, what will it cost, and "
            "how do you know? Figures are `mid [low, high]` with an 80 % interval and a basis; units are in "
            "the names, SI otherwise. What is said here holds for /v1: fields may be added, none goes or changes its "
            "meaning.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": tag} for tag in (*TEXTS["tags"], "jobs", "server")],
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"token": []}],
    }


def _jobs(refusals: dict[str, Any]) -> dict[str, Any]:
    """Leaving a question with the server, and coming back for its answer."""
    number = {"name": "job", "in": "path", "required": True, "schema": {"type": "string"}}
    told = {"$ref": "#/components/schemas/Job"}
    example = {
        "id": "0123456789abcdef0123456789abcdef",
        "verb": "train",
        "state": "working",
        "submitted": "2026-01-31T12:00:00+00:00",
        "passed_s": 4.2,
        "self": "/v1/jobs/0123456789abcdef0123456789abcdef",
    }
    none = {"404": {"description": "there is no such job, or no longer", "content": PROBLEM}}
    early = {"409": {"description": "the job has not ended, or was ended", "content": PROBLEM}}
    failed = {"500": {"description": "chipwise failed on this question", "content": PROBLEM}}
    few = {s: refusals[s] for s in ("401", "403", "414", "421")}
    came = {s: refusals[s] for s in ("422", "429", "503")} | failed | none | few
    where = {"Location": {"schema": {"type": "string"}, "description": "where to ask for it"}}

    def operation(name: str, summary: str, responses: dict[str, Any], *parameters: Any) -> dict[str, Any]:
        found = {"operationId": name, "summary": summary, "tags": ["jobs"], "responses": responses}
        return found | ({"parameters": list(parameters)} if parameters else {})

    submitted = {"202": _json("taken", told, example) | {"headers": where}} | refusals | none
    body = {"verb": "train", "request": EXAMPLES["train"]}
    return {
        "/v1/jobs": {
            "post": operation("submit", "Leave a question that takes long with the server.", submitted)
            | {"requestBody": _body(ASKED, body)}
        },
        "/v1/jobs/{job}": {
            "get": operation(
                "job", "How far a job is.", {"200": _json("its state", told, example)} | none | few, number
            ),
            "delete": operation(
                "cancel", "End a job.", {"200": _json("its state", told, example)} | none | few, number
            ),
        },
        "/v1/jobs/{job}/result": {
            "get": operation(
                "result",
                "The answer of a job.",
                {"200": _json("the answer", {"type": "object"})} | came | early,
                number,
            )
        },
    }


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation as people read it: `fields` are name, type, whether it is needed, and meaning."""

    name: str
    method: str
    path: str
    summary: str
    fields: tuple[tuple[str, str, bool, str], ...]
    example: str


def operations() -> dict[str, list[Operation]]:
    """All operations by tag."""
    document, found = openapi(), {}
    for tag in document["tags"]:
        found[tag["name"]] = [
            _told(path, method, operation)
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
            if tag["name"] in operation["tags"]
        ]
    return found


def _told(path: str, method: str, operation: Mapping[str, Any]) -> Operation:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    schema = content.get("schema", {})
    needed = schema.get("required", ())
    fields = tuple(
        (name, _type(part), name in needed, str(part.get("description", "")))
        for name, part in schema.get("properties", {}).items()
    )
    example = json.dumps(content["example"], ensure_ascii=False) if "example" in content else ""
    return Operation(operation["operationId"], method.upper(), path, operation["summary"], fields, example)


def _type(schema: Mapping[str, Any]) -> str:
    """The types of a field in words."""
    ways = schema.get("anyOf", (schema,))
    names = [name for way in ways for name in _list(way)]
    return " or ".join(n for n in dict.fromkeys(names) if n != "null")


def _list(way: Mapping[str, Any]) -> list[str]:
    kind = way.get("type", "text" if "enum" in way else "object")
    return [kind] if isinstance(kind, str) else list(kind)


def _body(schema: Mapping[str, Any], example: Mapping[str, Any]) -> dict[str, Any]:
    return {"required": True, "content": {"application/json": {"schema": schema, "example": example}}}


def _json(text: str, schema: dict[str, Any], example: Mapping[str, Any] | None = None) -> dict[str, Any]:
    content = {"schema": schema} | ({"example": example} if example else {})
    return {"description": text, "content": {"application/json": content}}
