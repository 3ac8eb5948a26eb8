"""The HTTP API: the same answers as the command line, problems with a next step, and no 5xx."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from chipwise.api.requests.verbs import VERBS
from command_line import Run

SMALL = "meta-llama/Llama-3.1-8B"


def post(address: str, verb: str, given: Any) -> httpx.Response:
    return httpx.post(f"{address}/api/{verb}", json=given, timeout=60)


def problem(answer: httpx.Response, status: int) -> Mapping[str, Any]:
    """The problem of an answer, which must be whole."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body: Mapping[str, Any] = answer.json()
    assert body["status"] == status
    assert body["detail"]
    assert body["type"].startswith("urn:chipwise:")
    assert "--" not in body["detail"] + body["hint"]
    return body


def test_it_answers_as_the_command_does(address: str, run: Run) -> None:
    answer = post(address, "fit", {"model": SMALL, "chips": "l4", "lora": "rank=16,count=8"})
    command = run("fit", SMALL, "--chips", "l4", "--lora", "rank=16,count=8", "--format", "json")
    assert answer.json() == json.loads(command.out)


def test_numbers_are_taken_for_text(address: str) -> None:
    a = post(address, "plan", {"model": SMALL, "chips": "l4", "in": 500, "rate": 0.5}).json()
    b = post(address, "plan", {"model": SMALL, "chips": "l4", "in": "500", "rate": "0.5/s"}).json()
    assert a.pop("question")["request"]["rate"] == "0.5"
    assert b.pop("question")["request"]["rate"] == "0.5/s"
    assert a == b


def test_nearest_names_come_with_an_unknown_one(address: str) -> None:
    body = problem(post(address, "plan", {"model": "qwen3-235b-a2b"}), 422)
    assert body["type"] == "urn:chipwise:unknown-name"
    assert "Qwen/Qwen3-235B-A22B" in body["nearest"]


def test_a_target_out_of_reach_says_what_is_in_reach(address: str) -> None:
    body = problem(post(address, "plan", {"model": SMALL, "chips": "l4", "tpot": "1us"}), 422)
    assert body["type"] == "urn:chipwise:infeasible"
    assert body["reachable"]["tpot_s"] > 1e-6


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "needs 'model'"),
        ({"model": SMALL, "ratee": 3}, "ratee"),
        ({"model": SMALL, "rate": [1]}, "rate"),
        ({"model": SMALL, "rate": "fast"}, "rate"),
        ({"model": SMALL, "max_chips": -1}, "max_chips"),
        ({"model": SMALL, "task": "train"}, "task"),
        ({"model": SMALL, "have": "2xl4", "chips": "l4"}, "have and chips"),
        ({"model": None}, "model"),
    ],
)
def test_values_that_cannot_be_used(address: str, given: dict[str, Any], said: str) -> None:
    body = problem(post(address, "plan", given), 422)
    assert said in body["detail"]


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[" * 30_000, b"\xff\xfe", b'{"a":1,"a":2}', b'{"tp":NaN}', b"{}x"]
)
def test_bodies_that_are_no_json(address: str, body: bytes) -> None:
    answer = httpx.post(f"{address}/api/plan", content=body, headers={"content-type": "application/json"})
    problem(answer, 400)


@pytest.mark.parametrize("given", [[], 5, "plan", None, True])
def test_json_that_is_no_object(address: str, given: Any) -> None:
    body, kind = json.dumps(given).encode(), {"content-type": "application/json"}
    problem(httpx.post(f"{address}/api/plan", content=body, headers=kind), 422)


def test_only_json_is_read(address: str) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        answer = httpx.post(f"{address}/api/plan", content=b"{}", headers={"content-type": kind})
        problem(answer, 415)


def test_addresses_and_methods_that_are_not(address: str) -> None:
    body = problem(post(address, "plans", {}), 404)
    assert "plan" in body["nearest"]
    problem(httpx.get(f"{address}/api/plan"), 405)
    problem(httpx.get(f"{address}/nowhere"), 404)
    assert httpx.get(f"{address}/healthz").json() == {"status": "ok"}


def test_the_document_is_served(address: str) -> None:
    document = httpx.get(f"{address}/openapi.json").json()
    assert {f"/api/{verb}" for verb in VERBS} <= set(document["paths"])
    assert json.dumps(document).count("$ref") > 20
