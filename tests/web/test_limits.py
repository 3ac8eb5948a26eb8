"""How much one may ask for: size, time, concurrency; what happens to questions whose asker has gone."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from serving import served

from chipwise.api.requests.field import Asked, ask
from chipwise.api.requests.verbs import VERBS
from chipwise.web.jobs import Jobs
from chipwise.web.limits import RefusedError, ServerLimits
from chipwise.web.worker import EndedError, Worker

SMALL = "meta-llama/Llama-3.1-8B"


@dataclass(frozen=True, kw_only=True)
class Trick(Asked):
    """A question that sleeps, fails, ends its worker or opens a file."""

    what: str = ask("what it does", "sleep")
    seconds: float = ask("how long", 0.0)

    def answers(self) -> Generator[Any, None, Any]:
        if self.what != "parts":
            return self.answer()
        began = time.monotonic()
        yield {"slept": 0.0, "began": began}
        time.sleep(self.seconds)
        return {"slept": self.seconds, "began": began}

    def answer(self) -> Any:
        if self.what == "open":
            return Path("/etc/hostname").read_text()
        if self.what == "write":
            Path(__file__).with_suffix(".tmp").write_text("x")
        if self.what == "fail":
            raise RuntimeError("a secret")
        if self.what == "exit":
            os._exit(3)
        time.sleep(self.seconds)
        return {"slept": self.seconds, "process": os.getpid()}


@pytest.fixture(autouse=True)
def trick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(VERBS, "trick", Trick)


class Desk:
    """Questions to one set of jobs from outside their loop; `limit` changes its limits between them."""

    def __init__(self, portal: BlockingPortal, jobs: Jobs) -> None:
        self.portal = portal
        self.jobs = jobs

    def ask(self, gone_s: float | None = None, **given: Any) -> Any:
        """The answer, given up after `gone_s`."""
        return self.all(given, gone_s=gone_s)[0]

    def all(self, *asked: dict[str, Any], gone_s: float | None = None) -> list[Any]:
        """Answers, or what was raised instead, to questions that are asked at once; the first may be given up."""

        async def gone() -> None:
            await asyncio.sleep(gone_s or 0.0)

        async def whole() -> list[Any]:
            leave = [gone if gone_s is not None and not i else None for i in range(len(asked))]
            works = (self.jobs.answer("trick", a, left) for a, left in zip(asked, leave, strict=True))
            return await asyncio.gather(*works, return_exceptions=True)

        return self.portal.call(whole)

    def limit(self, **changed: Any) -> None:
        """Other limits from here on."""
        self.jobs.limits = ServerLimits(workers=1, **changed)


@pytest.fixture(scope="module")
def jobs() -> Iterator[tuple[BlockingPortal, Jobs]]:
    with start_blocking_portal() as portal:
        started = Jobs(ServerLimits(workers=1))
        portal.call(started.start)
        yield portal, started
        portal.call(started.stop)


@pytest.fixture
def desk(jobs: tuple[BlockingPortal, Jobs]) -> Desk:
    found = Desk(*jobs)
    found.limit()
    assert found.ask()["slept"] == 0.0
    return found


def test_too_long_is_ended_and_the_next_is_answered(desk: Desk) -> None:
    desk.limit(answer_s=0.3)
    refused = desk.ask(seconds=60)
    desk.limit()
    assert refused.status == 503
    assert refused.retry_s
    assert desk.ask(seconds=0.01)["slept"] == 0.01


def test_bugs_and_ended_workers_are_not_the_end(desk: Desk) -> None:
    for what, status in (("fail", 500), ("open", 500), ("write", 500), ("exit", 503)):
        refused = desk.ask(what=what)
        assert isinstance(refused, RefusedError)
        assert (refused.status, refused.retry_s) == (status, 1 if status == 503 else None)
        assert "secret" not in str(refused)
    assert desk.ask(seconds=0.011)["slept"] == 0.011
    assert not Path(__file__).with_suffix(".tmp").exists()


def test_equal_questions_share_one_answer(desk: Desk) -> None:
    same = desk.all(*[{"seconds": 0.2}] * 20)
    assert len({id(answer) for answer in same}) == 1


def test_too_many_are_told_to_come_back(desk: Desk) -> None:
    desk.limit(waiting=2)
    done = desk.all(*({"seconds": 0.21 + i * 1e-3} for i in range(8)))
    assert Counter(getattr(d, "status", 200) for d in done) == {200: 3, 429: 5}


def test_a_question_whose_asker_has_gone_is_dropped(desk: Desk) -> None:
    desk.limit(grace_s=0.2)
    before = desk.ask(seconds=0.012)["process"]
    began = time.monotonic()
    assert isinstance(desk.ask(0.1, seconds=60), RefusedError)
    assert desk.ask(seconds=0.013)["process"] != before
    assert time.monotonic() - began < 50


def test_an_answer_that_is_nearly_done_keeps_its_worker(desk: Desk) -> None:
    desk.limit(grace_s=20.0)
    before = desk.ask(seconds=0.014)["process"]
    assert isinstance(desk.ask(0.1, seconds=0.4), RefusedError)
    assert desk.ask(seconds=0.015)["process"] == before


def test_what_can_be_read_already_comes_first_and_the_rest_is_not_asked_for_again(desk: Desk) -> None:
    async def asked() -> tuple[Any, Any, Any]:
        question = Trick(what="parts", seconds=0.5)
        early = await desk.jobs.soon(question)
        whole = await desk.jobs.run(question)
        return early, whole, await desk.jobs.soon(question)

    (first, done), whole, again = desk.portal.call(asked)
    assert (first["slept"], done) == (0.0, False)
    assert (whole["slept"], whole["began"]) == (0.5, first["began"]), "the same answer went on"
    assert again == (whole, True), "an answer that is known is given whole"


def test_one_asker_leaving_does_not_take_the_answer_from_another(desk: Desk) -> None:
    left, stayed = desk.all({"seconds": 0.3}, {"seconds": 0.3}, gone_s=0.0)
    assert isinstance(left, RefusedError)
    assert stayed["slept"] == 0.3


def test_who_asks_just_as_another_leaves_gets_an_answer(desk: Desk) -> None:
    async def asked() -> tuple[Any, Any]:
        async def gone() -> None:
            await asyncio.sleep(0.0)

        question = Trick(seconds=0.31)
        first = asyncio.create_task(desk.jobs.run(question, gone))
        while not desk.jobs._flights:
            await asyncio.sleep(0.0)
        (flight,) = desk.jobs._flights.values()
        while not flight.task.cancelling():
            await asyncio.sleep(0.0)
        return await asyncio.gather(first, desk.jobs.run(question), return_exceptions=True)

    left, stayed = desk.portal.call(asked)
    assert isinstance(left, RefusedError)
    assert stayed["slept"] == 0.31


def test_a_worker_that_is_stopped_says_so() -> None:
    worker = Worker()
    worker.stop()
    with pytest.raises(EndedError):
        worker.ask(Trick())


@pytest.fixture(scope="module")
def small() -> Iterator[str]:
    limits = ServerLimits(workers=1, waiting=20, body_bytes=2_000, body_s=0.5, target_bytes=500)
    with served(limits=limits) as found:
        yield found


def raw(address: str, head: bytes, more: bytes = b"", body: bytes = b"") -> bytes:
    """The status of an answer to bytes that no client would send."""
    where = httpx.URL(address)
    with socket.create_connection((where.host, where.port or 80), 10) as wire:
        with contextlib.suppress(ConnectionError):
            wire.sendall(head + b"Host: localhost\r\n" + more + b"\r\n" + body)
        return wire.recv(100).split()[1]


def chunks(count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield b" " * 1000


def test_heads_that_are_too_long(small: str) -> None:
    """In one write, so that no part of a head is ever waited for."""
    lines = b"".join(b"X-%d: a\r\n" % i for i in range(3_000))
    assert raw(small, b"GET /healthz HTTP/1.1\r\n", lines) in (b"400", b"431")
    assert raw(small, b"GET /healthz HTTP/1.1\r\n", lines[:12_000].rpartition(b"\r\n")[0] + b"\r\n") == b"200"


def test_bodies_that_are_too_large(small: str) -> None:
    kind = {"content-type": "application/json"}
    said = httpx.post(f"{small}/v1/plan", content=b" " * 3_000, headers=kind)
    unsaid = httpx.post(f"{small}/v1/plan", content=chunks(3), headers=kind)
    assert (said.status_code, unsaid.status_code) == (413, 413)
    assert httpx.post(f"{small}/v1/fit", json={"model": SMALL, "chips": "l4"}).status_code == 200


def test_addresses_that_are_too_long(small: str) -> None:
    assert httpx.get(f"{small}/healthz?{'x' * 600}").status_code == 414
    assert raw(small, b"GET /healthz?" + b"x" * 100_000 + b" HTTP/1.1\r\n") in (b"400", b"414")


def test_a_body_that_does_not_arrive(small: str) -> None:
    kind = b"Content-Type: application/json\r\n"
    assert raw(small, b"POST /v1/plan HTTP/1.1\r\n" + kind, b"Content-Length: 50\r\n", b"{") == b"408"
    assert raw(small, b"POST /v1/plan HTTP/1.1\r\n" + kind, b"Content-Length: 99999999\r\n") == b"413"
    assert raw(small, b"POST /v1/plan HTTP/1.1\r\n" + kind, b"Content-Length: -1\r\n") == b"400"


def test_two_hundred_at_once(small: str) -> None:
    """A burst: everybody gets an answer, is told to come back or, on a machine too busy to send its body in time, that
    it came too late; and the server answers afterwards."""

    async def burst() -> Counter[int]:
        limits = httpx.Limits(max_connections=200)
        async with httpx.AsyncClient(base_url=small, timeout=60, limits=limits) as client:

            async def one(i: int) -> int:
                given = {"model": SMALL, "chips": "l4", "context": 1000 + i % 100}
                return (await client.post("/v1/fit", json=given)).status_code

            return Counter(await asyncio.gather(*(one(i) for i in range(200))))

    statuses = asyncio.run(burst())
    assert set(statuses) <= {200, 408, 429}
    assert statuses[200] >= 21
    assert statuses.total() == 200
    assert httpx.get(f"{small}/healthz").status_code == 200
