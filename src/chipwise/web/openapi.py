"""The HTTP API as OpenAPI 3.1, from the requests and records themselves."""

from __future__ import annotations

from functools import cache
from typing import Any

from chipwise import __version__
from chipwise.api.requests.doors import answer_schema, request_schema
from chipwise.api.requests.verbs import VERBS
from chipwise.web.problems import PROBLEM_SCHEMA

__all__ = ["openapi"]

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
    "503": "the answer takes too long",
}
EXAMPLES: dict[str, dict[str, Any]] = {
    "plan": {"model": "meta-llama/Llama-3.1-70B", "rate": "10/s", "in": 2000, "out": 300, "tpot": "40ms"},
    "fit": {"model": "meta-llama/Llama-3.1-70B", "chips": "h100-sxm5-80gb,rtx-4090"},
    "estimate": {"model": "meta-llama/Llama-3.1-70B", "chip": "h100-sxm5-80gb", "tp": 8},
    "explain": {"model": "meta-llama/Llama-3.1-70B", "chip": "h100-sxm5-80gb", "tp": 8},
    "compare": {"model": "meta-llama/Llama-3.1-70B", "chips": "h100-sxm5-80gb,mi300x,tpu-v5e"},
    "local": {"have": "rtx-4090", "host_memory": "64GB"},
    "train": {"model": "meta-llama/Llama-3.1-8B", "tokens": "1T", "counts": "64,256"},
    "rl": {"model": "Qwen/Qwen3-8B", "chips": "h100", "counts": "16", "out": 4000},
}


@cache
def openapi() -> dict[str, Any]:
    """The document. Answers are described as they are written: a number that is not finite is null."""
    schemas: dict[str, Any] = {"Problem": PROBLEM_SCHEMA}
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
                "security": [],
                "responses": {"200": _json("up", {"type": "object", "required": ["status"]})}
                | {s: refusals[s] for s in ("403", "414", "421")},
            }
        }
    }
    for verb in VERBS:
        asked, answered = request_schema(verb), answer_schema(verb)
        schemas |= asked.pop("$defs", {}) | answered.pop("$defs", {})
        body = {"schema": asked} | ({"example": EXAMPLES[verb]} if verb in EXAMPLES else {})
        paths[f"/api/{verb}"] = {
            "post": {
                "operationId": verb,
                "summary": (VERBS[verb].__doc__ or verb).partition("\n")[0],
                "requestBody": {"required": True, "content": {"application/json": body}},
                "responses": {"200": _json("the answer", answered)} | refusals,
            }
        }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "chipwise",
            "version": __version__,
            "description": "Which chip, how many, arranged how, for this model and this workload; how fast, at what "
            "cost; and how do you know? Figures are `mid [low, high]` with an 80 % interval and a basis; units are in "
            "the names, SI otherwise.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _json(text: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": text, "content": {"application/json": {"schema": schema}}}
