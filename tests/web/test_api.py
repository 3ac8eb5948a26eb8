"""The HTTP API: the same answers as the command line, problems with a next step, and no 5xx."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from chipwise.api.requests.verbs import VERBS
from command_line import Run

SMALL = "meta-llama/Llama-3.1-8B"


def post(address: str, verb: str, given: Any) -> httpx.Response:
    return httpx.post(f"{address}/v1/{verb}", json=given, timeout=60)


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


def test_memory_of_the_host_is_asked_and_answered(address: str) -> None:
    asked = {"model": "flux", "chip": "rtx-4090", "offload": "model"}
    plan = post(address, "estimate", {**asked, "host_memory": "64GB"}).json()["plans"][0]
    assert 30e9 < plan["host_bytes"] < plan["host_capacity_bytes"]
    short = problem(post(address, "estimate", {**asked, "host_memory": "32GB"}), 422)
    assert "wait on the host" in short["detail"]
    assert "host_memory" in short["hint"]


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


@pytest.mark.parametrize("body", [b"", b"{", b"[" * 30_000, b"\xff\xfe", b'{"a":1,"a":2}', b'{"tp":NaN}', b"{}x"])
def test_bodies_that_are_no_json(address: str, body: bytes) -> None:
    answer = httpx.post(f"{address}/v1/plan", content=body, headers={"content-type": "application/json"})
    problem(answer, 400)


@pytest.mark.parametrize("given", [[], 5, "plan", None, True])
def test_json_that_is_no_object(address: str, given: Any) -> None:
    body, kind = json.dumps(given).encode(), {"content-type": "application/json"}
    problem(httpx.post(f"{address}/v1/plan", content=body, headers=kind), 422)


def test_only_json_is_read(address: str) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        answer = httpx.post(f"{address}/v1/plan", content=b"{}", headers={"content-type": kind})
        problem(answer, 415)


def test_a_method_that_is_not_taken_names_the_one_that_is(address: str) -> None:
    asked = httpx.get(f"{address}/v1/plan")
    assert (asked.status_code, asked.headers["allow"]) == (405, "POST")
    assert asked.json()["detail"] == "GET is not taken at /v1/plan"
    assert "GET /plan.json" in asked.json()["hint"]
    sent = httpx.post(f"{address}/plan")
    assert (sent.status_code, sent.json()["hint"]) == (405, "use GET or HEAD")
    unknown = httpx.get(f"{address}/v1/plam")
    assert (unknown.status_code, unknown.json()["nearest"][0]) == (404, "plan")


@pytest.mark.parametrize(("path", "allowed"), [("/v1/plan", {"POST"}), ("/plan", {"GET", "HEAD"})])
def test_options_are_told(address: str, path: str, allowed: set[str]) -> None:
    told = httpx.options(f"{address}{path}")
    assert (told.status_code, told.text) == (204, "")
    assert set(told.headers["allow"].split(", ")) == {*allowed, "OPTIONS"}
    assert "access-control-allow-origin" not in told.headers


def test_a_body_in_a_coding_is_refused_as_such(address: str) -> None:
    packed = gzip.compress(b'{"model": "meta-llama/Llama-3.1-8B"}')
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    answer = httpx.post(f"{address}/v1/fit", content=packed, headers=headers)
    assert (answer.status_code, answer.json()["detail"]) == (415, "a body in gzip is not read")


def test_addresses_and_methods_that_are_not(address: str) -> None:
    body = problem(post(address, "plans", {}), 404)
    assert "plan" in body["nearest"]
    problem(httpx.get(f"{address}/v1/plan"), 405)
    problem(httpx.get(f"{address}/nowhere"), 404)
    assert "/chips.json?search=h100" in problem(httpx.get(f"{address}/v1/chips/h100"), 404)["hint"]
    assert "POST /v1/diff" in problem(httpx.get(f"{address}/diff"), 404)["hint"]
    detailed = httpx.get(f"{address}/estimate?model=Qwen/Qwen3-8B&chip=h100")
    assert (detailed.status_code, detailed.headers["location"]) == (307, "/explain?model=Qwen/Qwen3-8B&chip=h100")
    assert httpx.get(f"{address}/healthz").json() == {"status": "ok"}


def test_the_field_is_pointed_to(address: str) -> None:
    for given, pointer in (
        ({"model": SMALL, "rate": "soon"}, "#/rate"),
        ({"model": SMALL, "tpot": 40}, "#/tpot"),
        ({"model": "lama"}, "#/model"),
        ({"model": SMALL, "chips": "h100x"}, "#/chips"),
        ({"model": SMALL, "a~/b c": 1}, "#/a~0/b%20c"),
        ({}, "#/model"),
    ):
        said = httpx.post(f"{address}/v1/plan", json=given).json()
        assert [e["pointer"] for e in said["errors"]] == [pointer]
        assert said["errors"][0]["detail"] == said["detail"]
    said = httpx.post(f"{address}/v1/jobs", json={"verb": "plan", "request": {"model": "lama"}}).json()
    assert said["errors"][0]["pointer"] == "#/request/model"


def test_former_addresses_answer_alike_and_name_their_successor(address: str) -> None:
    asked = {"model": SMALL, "chips": "l4"}
    now, former = (httpx.post(f"{address}/{where}/fit", json=asked) for where in ("v1", "api"))
    assert now.json() == former.json()
    assert "deprecation" not in now.headers
    assert former.headers["link"] == '</v1/fit>; rel="successor-version"'
    assert former.headers["deprecation"].startswith("@")
    document = httpx.get(f"{address}/openapi.json")
    assert document.json() == httpx.get(f"{address}/v1/openapi.json").json()
    assert document.headers["link"] == '</v1/openapi.json>; rel="successor-version"'


def test_kept_answers_are_compared(address: str) -> None:
    """An answer of HTTP is made again, and compared with another; a doctored figure shows."""
    asked = {"model": SMALL, "chip": "l4"}
    one = httpx.post(f"{address}/v1/estimate", json=asked).json()
    two = httpx.post(f"{address}/v1/estimate", json={**asked, "concurrency": 8}).json()
    assert len(json.dumps(one)) > 1000
    assert httpx.post(f"{address}/v1/replay", json={"saved": one}).json()["identical"]
    found = httpx.post(f"{address}/v1/diff", json={"before": one, "after": two}).json()
    assert [c["cause"] for c in found["causes"]] == ["question"]
    assert found["causes"][0]["facts"] == ["concurrency: not given -> 8.0"]
    one["plans"][0]["ttft_s"]["mid"] *= 2
    assert [c["figure"] for c in httpx.post(f"{address}/v1/replay", json={"saved": one}).json()["changes"]] == [
        "ttft_s.mid"
    ]
    large = {"saved": {**one, "padding": "x" * 200_000}}
    assert httpx.post(f"{address}/v1/replay", json=large).status_code == 200
    assert httpx.post(f"{address}/v1/fit", json=large).status_code == 413


def test_the_interface_is_described_for_people(address: str) -> None:
    page = httpx.get(f"{address}/v1/docs").text
    for verb in VERBS:
        assert f"POST /v1/{verb}<" in page
    assert "&#34;model&#34;" in page


def test_the_document_is_served(address: str) -> None:
    document = httpx.get(f"{address}/openapi.json").json()
    assert {f"/v1/{verb}" for verb in VERBS} <= set(document["paths"])
    assert json.dumps(document).count("$ref") > 20


def test_answers_are_small_and_not_sent_twice(address: str) -> None:
    with httpx.stream("GET", f"{address}/v1/openapi.json", timeout=60) as answer:
        raw = b"".join(answer.iter_raw())
    tag = answer.headers["etag"]
    assert answer.headers["content-encoding"] == "gzip"
    assert len(gzip.decompress(raw)) > 4 * len(raw)
    again = httpx.get(f"{address}/v1/openapi.json", headers={"if-none-match": f'"x", {tag}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert httpx.get(f"{address}/v1/openapi.json", headers={"if-none-match": '"x"'}).status_code == 200
    plain = httpx.get(f"{address}/healthz", headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert plain.headers["etag"] != tag
    assert httpx.get(f"{address}/").headers["cache-control"] == "no-store", "a page is made anew"


def test_a_browser_sees_a_page_where_nothing_is(address: str) -> None:
    browser = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    page = httpx.get(f"{address}/nowhere", headers=browser)
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "nothing is at /nowhere" in page.text
    assert httpx.get(f"{address}/nowhere").headers["content-type"] == "application/problem+json"
