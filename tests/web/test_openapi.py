"""The API against its own description: thousands of generated questions, never a 5xx, every answer as described."""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from chipwise.api.requests.verbs import VERBS
from chipwise.web.openapi import EXAMPLES, openapi

EACH = int(os.environ.get("CHIPWISE_GENERATED") or ("130" if os.environ.get("CI") else "30"))
"""Generated questions for each verb; 130, as where CI is set, make more than 2,000 in all."""

COSTLY = {"claim": 10}
"""Of these one in so many: a sentence is judged from many plans, some of which take half a minute under load."""

SMALL = "meta-llama/Llama-3.1-8B"
KNOWN = {"model": SMALL, "chip": "l4", "chips": "l4,rtx-4090", "result": "v4.0-03001"}
GEMM = {"op": "gemm", "m": 64, "n": 4096, "k": 4096}


def test_the_description_is_openapi_and_names_every_verb() -> None:
    document = openapi()
    assert document["openapi"].startswith("3.1")
    jobs = {"/v1/jobs", "/v1/jobs/{job}", "/v1/jobs/{job}/result"}
    assert set(document["paths"]) == {"/healthz", *jobs, *(f"/v1/{verb}" for verb in VERBS)}
    for methods in document["paths"].values():
        for operation in methods.values():
            assert len(operation["tags"]) == 1, operation["operationId"]
    json.dumps(document, allow_nan=False)
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("verb", VERBS)
def test_examples_are_answered_as_described(address: str, verb: str) -> None:
    answer = httpx.post(f"{address}/v1/{verb}", json=EXAMPLES[verb], timeout=60)
    assert answer.status_code == 200, answer.text
    document = openapi()
    schema = document["paths"][f"/v1/{verb}"]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
    Draft202012Validator(schema | {"components": document["components"]}).validate(answer.json())


SCHEMA = schemathesis.openapi.from_dict(openapi())
OPERATIONS = {f"POST /v1/{verb}": SCHEMA[f"/v1/{verb}"]["POST"] for verb in VERBS}
CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
)


def fields_of(label: str) -> set[str]:
    """The fields of a question."""
    verb = label.rpartition("/")[2]
    content = openapi()["paths"][f"/v1/{verb}"]["post"]["requestBody"]["content"]
    return set(content["application/json"]["schema"]["properties"])


@pytest.mark.parametrize("label", OPERATIONS)
def test_generated_questions(address: str, label: str) -> None:
    """Questions within the description and beyond it; most are given names that exist, so that they reach the
    answer and not only the first check."""
    statuses: Counter[int] = Counter()
    operation = OPERATIONS[label]
    each = EACH // COSTLY.get(label.rpartition("/")[2], 1)
    modes = [operation.as_strategy(generation_mode=mode) for mode in GenerationMode]

    @settings(max_examples=each, suppress_health_check=list(HealthCheck), database=None)
    @given(st.one_of(modes), st.integers(0, 3))
    def ask(case: Any, dice: int) -> None:
        if isinstance(case.body, dict) and dice:
            known = {n: v for n, v in KNOWN.items() if n in case.body or n in ("model", "result")}
            known = {n: v for n, v in known.items() if n in fields_of(label)}
            case.body = case.body | known | (GEMM if label.endswith("kernel") else {})
        response = case.call(base_url=address, timeout=30)
        statuses[response.status_code] += 1
        case.validate_response(response, checks=CHECKS)

    ask()
    assert not {status for status in statuses if status >= 500}
    assert sum(statuses.values()) >= each
