"""The HTTP API as OpenAPI 3.1, from the requests and records themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from chipwise import __version__
from chipwise.api.requests.doors import answer_schema, request_schema
from chipwise.api.requests.verbs import VERBS
from chipwise.web.problems import PROBLEM_SCHEMA

PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
REFUSALS = {
    "400": "the body cannot be read, or is no JSON",
    "401": "the server asks for a token and got none or another",
    "403": "the request comes from another site",
    "408": "the body did not arrive in time",
    "413": "the body is too large",
    "414": "the address is too long",
    "415": "the body is no JSON by its type",
    "421": "the server is not known by the name in Host",
    "422": "the question has no answer: an unknown name, an unusable value, or nothing fits",
    "429": "too many questions at once",
    "503": "the answer takes too long, or the process that worked on it has ended",
}
MODEL, CHIP = "meta-llama/Llama-3.1-70B", "h100-sxm5-80gb"
DEPLOYED = {"model": MODEL, "chip": CHIP, "tp": 8}
EXAMPLES: dict[str, dict[str, Any]] = {
    "plan": {"model": MODEL, "rate": "10/s", "in": 2000, "out": 300, "tpot": "40ms"},
    "fit": {"model": MODEL, "chips": f"{CHIP},rtx-4090"},
    "estimate": DEPLOYED,
    "explain": DEPLOYED,
    "compare": {"model": MODEL, "chips": f"{CHIP},mi300x,tpu-v5e"},
    "local": {"have": "rtx-4090", "host_memory": "64GB"},
    "operators": DEPLOYED,
    "load": DEPLOYED,
    "frontier": {"model": MODEL, "chips": CHIP},
    "sensitivity": DEPLOYED,
    "simulate": {**DEPLOYED, "rate": "4/s", "requests": 500},
    "train": {"model": "meta-llama/Llama-3.1-8B", "tokens": "1T", "counts": "64,256"},
    "rl": {"model": "Qwen/Qwen3-8B", "chips": "h100", "counts": "16", "out": 4000},
    "fleet": {
        "fleet": {
            "demand": [{"name": "chat", "model": MODEL, "rate": "10/s"}],
            "supply": [{"chip": CHIP, "count": 16, "price": "own"}, {"chip": CHIP}],
        }
    },
    "kernel": {"op": "gemm", "chips": f"{CHIP},tpu-v5e", "m": 512, "n": 4096, "k": 4096},
    "evidence": {"search": "h200 llama2-70b server", "limit": 5},
    "match": {"model": MODEL, "chip": "h200-sxm-141gb", "count": 8},
    "claim": {"model": MODEL, "result": "v4.0-03001", "against": CHIP, "tpot": "40ms"},
    "check_statement": {"text": "an H100 is 3x an A100"},
    "launch": {"saved": {"question": {"verb": "estimate", "request": DEPLOYED}}, "for": "vllm"},
    "replay": {
        "saved": {"found": 1, "models": [], "question": {"verb": "models", "request": {"search": "405b"}}}
    },
    "diff": {
        "before": {"question": {"verb": "fit", "request": {"model": MODEL, "chips": CHIP}}},
        "after": {"question": {"verb": "fit", "request": {"model": MODEL, "chips": CHIP, "context": "128k"}}},
    },
    "chips": {"chips": "mi300x"},
    "models": {"search": "qwen3 235b"},
    "systems": {"system": "dgx-h100"},
    "runtimes": {"runtime": "vllm"},
    "offers": {"chip": CHIP},
}
"""A question of each verb that has an answer."""
TAGS: dict[str, tuple[str, ...]] = {
    "serving": (
        "plan",
        "fit",
        "estimate",
        "explain",
        "compare",
        "local",
        "operators",
        "load",
        "frontier",
        "sensitivity",
        "simulate",
        "fleet",
    ),
    "training": ("train", "rl"),
    "operators": ("kernel",),
    "evidence": ("evidence", "match", "claim", "check_statement"),
    "answers": ("launch", "replay", "diff"),
    "catalogue": ("chips", "models", "systems", "runtimes", "offers"),
}
JOB = {
    "type": "object",
    "description": "A question that was left with the server.",
    "properties": {
        "id": {"type": "string"},
        "verb": {"type": "string"},
        "state": {"enum": ["waiting", "working", "done", "failed", "cancelled"]},
        "submitted": {"type": "string", "format": "date-time"},
        "passed_s": {"type": "number", "description": "seconds since then, or until it ended"},
        "self": {"type": "string", "description": "where to ask again"},
        "result": {"type": "string", "description": "where the answer is, once there is one"},
        "problem": {"$ref": "#/components/schemas/Problem"},
    },
    "required": ["id", "verb", "state", "submitted", "passed_s", "self"],
    "additionalProperties": False,
}
ASKED = {
    "type": "object",
    "properties": {"verb": {"enum": list(VERBS)}, "request": {"type": "object"}},
    "required": ["verb"],
    "additionalProperties": False,
}


@cache
def openapi() -> dict[str, Any]:
    """The document. Answers are described as they are written: a number that is not finite is null."""
    schemas: dict[str, Any] = {"Problem": PROBLEM_SCHEMA, "Job": JOB}
    refusals = {
        status: {"description": text, "content": PROBLEM}
        | ({"headers": {"Retry-After": {"schema": {"type": "integer"}}}} if status in ("429", "503") else {})
        for status, text in REFUSALS.items()
    }
    paths: dict[str, Any] = {
        "/healthz": {
            "get": {
                "operationId": "healthz",
                "summary": "Whether the server is up.",
                "tags": ["server"],
                "security": [],
                "responses": {
                    "200": _json("up", {"type": "object", "required": ["status"]}, {"status": "ok"})
                }
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
                "tags": [tag for tag, verbs in TAGS.items() if verb in verbs],
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
        "tags": [{"name": tag} for tag in (*TAGS, "jobs", "server")],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
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
