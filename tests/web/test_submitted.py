"""Long answers: left with the server, asked for, ended, fetched; few and not for ever."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from serving import served

from chipwise.web.limits import ServerLimits

SMALL = "meta-llama/Llama-3.1-8B"
FIT = {"verb": "fit", "request": {"model": SMALL, "chips": "l4"}}
LONG = {"verb": "train", "request": {"model": "deepseek-ai/DeepSeek-V3", "tokens": "10T"}}


@pytest.fixture(scope="module")
def few() -> Iterator[httpx.Client]:
    """A client of a server that keeps two jobs for a second and a half."""
    with (
        served(limits=ServerLimits(workers=2, jobs=2, job_kept_s=1.5)) as address,
        httpx.Client(base_url=address, timeout=60) as client,
    ):
        yield client


def ended(client: httpx.Client, where: str) -> dict[str, Any]:
    """The state of a job that has ended."""
    for _ in range(600):
        answer = client.get(where)
        if answer.status_code != 200 or answer.json()["state"] not in ("waiting", "working"):
            return dict(answer.json())
        time.sleep(0.1)
    raise AssertionError("the job does not end")


def test_a_job_is_answered_as_the_question_is(few: httpx.Client) -> None:
    taken = few.post("/v1/jobs", json=FIT)
    assert (taken.status_code, taken.headers["retry-after"]) == (202, "1")
    where = taken.headers["location"]
    assert where == taken.json()["self"]
    told = ended(few, where)
    assert (told["state"], told["verb"], told["result"]) == ("done", "fit", f"{where}/result")
    assert few.get(f"{where}/result").json() == few.post("/v1/fit", json=FIT["request"]).json()
    time.sleep(1.6)
    assert few.get(where).status_code == 404, "it is not kept for ever"


def test_a_job_is_ended(few: httpx.Client) -> None:
    one, two = (few.post("/v1/jobs", json=LONG).json()["self"] for _ in range(2))
    full = few.post("/v1/jobs", json=FIT)
    assert (full.status_code, full.headers["retry-after"]) == (429, "30")
    assert few.get(f"{one}/result").status_code == 409
    assert few.post("/v1/fit", json=FIT["request"]).status_code == 200, "short questions are answered meanwhile"
    for job in (one, two):
        assert few.delete(job).json()["state"] == "cancelled"
        assert few.delete(job).json()["state"] == "cancelled"
        assert few.get(f"{job}/result").status_code == 409
    again = few.post("/v1/jobs", json=FIT)
    assert ended(few, again.json()["self"])["state"] == "done"


def test_a_job_without_an_answer_says_why(few: httpx.Client) -> None:
    asked = {"model": "meta-llama/Llama-3.1-70B", "chip": "l4"}
    where = few.post("/v1/jobs", json={"verb": "estimate", "request": asked}).json()["self"]
    told = ended(few, where)
    assert (told["state"], told["problem"]["type"]) == ("failed", "urn:chipwise:infeasible")
    result = few.get(f"{where}/result")
    assert (result.status_code, result.json()) == (422, told["problem"]), "asking how far it is has not failed"


@pytest.mark.parametrize(
    ("given", "status", "pointer"),
    [
        ({"verb": "rm"}, 404, None),
        ({}, 422, "#/verb"),
        ({"verb": ["plan"]}, 422, "#/verb"),
        ({"verb": "plan", "request": 3}, 422, "#/request"),
        ({"verb": "plan", "model": SMALL}, 422, "#/model"),
        ({"verb": "plan", "request": {}}, 422, "#/request/model"),
    ],
)
def test_what_is_no_job(few: httpx.Client, given: Any, status: int, pointer: str | None) -> None:
    answer = few.post("/v1/jobs", json=given)
    assert answer.status_code == status
    assert [e["pointer"] for e in answer.json().get("errors", [])] == ([pointer] if pointer else [])


def test_a_number_is_not_guessed(few: httpx.Client) -> None:
    for number in ("0", "..%2Fhealthz", "f" * 32):
        for path in (f"/v1/jobs/{number}", f"/v1/jobs/{number}/result"):
            assert few.get(path).status_code == 404
