"""Who is refused: foreign names and pages, askers without the token, paths that would open files, scripts in names."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from serving import served

from chipwise.web.limits import ServerLimits
from chipwise.web.security import COOKIE, CSP, Access, Guard, loopback

SMALL = "meta-llama/Llama-3.1-8B"
TOKEN = "a-token-that-is-long-enough"


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1", "[fe80::1]",
     "127.0.0.1@evil.example", "evil.example/127.0.0.1", "", "127.0.0.1:99999999", "0.0.0.0", "2130706433"],
)  # fmt: skip
def test_foreign_hosts_are_refused(address: str, host: str) -> None:
    assert httpx.get(f"{address}/healthz", headers={"host": host}).status_code in (400, 421)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST:9", "127.0.0.1:9000", "[::1]:80", "localhost."])
def test_names_of_this_machine_are_taken(address: str, host: str) -> None:
    assert httpx.get(f"{address}/healthz", headers={"host": host}).status_code == 200


def test_two_hosts_are_none(address: str) -> None:
    where = httpx.URL(address)
    with socket.create_connection((where.host, where.port or 80), 5) as raw:
        raw.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
        assert raw.recv(100).split()[1] in (b"400", b"421")


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://localhost.evil.example", "file://", ""]
)
def test_foreign_origins_are_refused(address: str, origin: str) -> None:
    for method, path in (("POST", "/v1/fit"), ("GET", "/openapi.json")):
        answer = httpx.request(method, address + path, headers={"origin": origin}, json={"model": SMALL})
        assert answer.status_code == 403


def test_the_own_origin_is_taken(address: str) -> None:
    given = {"model": SMALL, "chips": "l4"}
    assert httpx.post(f"{address}/v1/fit", headers={"origin": address}, json=given).status_code == 200


def test_other_sites_may_link_but_not_load(address: str) -> None:
    cross = {"sec-fetch-site": "cross-site"}
    linked = httpx.get(f"{address}/healthz", headers=cross | {"sec-fetch-mode": "navigate"})
    loaded = httpx.get(f"{address}/healthz", headers=cross | {"sec-fetch-mode": "no-cors"})
    posted = httpx.post(f"{address}/v1/fit", headers=cross | {"sec-fetch-mode": "navigate"}, json={})
    assert (linked.status_code, loaded.status_code, posted.status_code) == (200, 403, 403)


def test_a_link_of_another_site_starts_no_work(address: str) -> None:
    """It fills in the form; what would answer by the address alone is refused."""
    cross = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    query = "model=meta-llama/Llama-3.1-8B&chips=l4"
    page = httpx.get(f"{address}/fit?{query}", headers=cross)
    assert page.status_code == 200
    assert "press the button" in page.text
    assert 'value="meta-llama/Llama-3.1-8B"' in page.text
    assert "hx-trigger" not in httpx.get(f"{address}/", headers=cross).text
    for end in ("json", "csv", "html"):
        assert httpx.get(f"{address}/fit.{end}?{query}", headers=cross).status_code == 403
    own = httpx.get(f"{address}/fit?{query}", headers={**cross, "sec-fetch-site": "same-origin"})
    assert "press the button" not in own.text


def test_answers_carry_the_headers(address: str) -> None:
    for path in ("/healthz", "/openapi.json", "/nowhere"):
        headers = httpx.get(address + path).headers
        assert headers["content-security-policy"] == CSP
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["x-frame-options"] == "DENY"
        assert "server" not in headers or "uvicorn" not in headers["server"]
    assert "unsafe" not in CSP


PATHS = (
    *("/etc/passwd", "../../etc/passwd", "~/.ssh/id_rsa", "own.toml", "chips.toml:x"),
    *(".", "config.json", "\\\\host\\x", "file:///etc/passwd"),
)


@pytest.mark.parametrize("path", PATHS)
def test_no_field_opens_a_file(address: str, path: str) -> None:
    for verb, given in (
        ("plan", {"model": path}),
        ("fit", {"model": SMALL, "chips": path}),
        ("estimate", {"model": SMALL, "chip": path}),
        ("plan", {"model": SMALL, "parameters": path}),
        ("kernel", {"op": "gemm", "chips": path, "m": 1, "n": 1, "k": 1}),
        ("train", {"model": path}),
        ("rl", {"model": SMALL, "algorithm": "distill", "teacher": path}),
        ("chips", {"chips": path}),
        ("match", {"model": path, "chip": "l4"}),
        ("plan", {"model": SMALL, "have": f"1x{path}"}),
    ):
        answer = httpx.post(f"{address}/v1/{verb}", json=given)
        assert answer.status_code == 422, (verb, given, answer.text)
        assert "root:" not in answer.text
        assert "No such file" not in answer.text


ESCAPES = (
    *("/../../etc/passwd", "/static/../app.py", "/static/%2e%2e/app.py", "/static//etc/passwd"),
    *("/v1/../healthz/..%2f", "/.git/config", "/%00"),
)


@pytest.mark.parametrize("path", ESCAPES)
def test_no_address_reaches_a_file(address: str, path: str) -> None:
    where = httpx.URL(address)
    with socket.create_connection((where.host, where.port or 80), 5) as raw:  # a client would tidy the path up
        raw.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: raw.recv(65_536), b""))
    assert answer.split()[1] in (b"400", b"404")
    assert b"root:" not in answer
    assert b"import" not in answer


def test_script_in_a_name_stays_text(address: str) -> None:
    answer = httpx.post(f"{address}/v1/plan", json={"model": "<script>alert(1)</script>"})
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.fixture(scope="module")
def guarded() -> Iterator[str]:
    with served(Access(host="0.0.0.0", token=TOKEN, wrong_s=0.01), ServerLimits(workers=1)) as found:
        yield found


@pytest.mark.parametrize(
    "headers",
    [{}, {"authorization": f"Bearer {TOKEN}x"}, {"authorization": f"Bearer {TOKEN[:-1]}"}, {"authorization": TOKEN},
     {"authorization": f"Basic {TOKEN}"}, {"cookie": f"{COOKIE}=x"}],
)  # fmt: skip
def test_without_the_token_nothing_is_answered(guarded: str, headers: dict[str, str]) -> None:
    for path in ("/", "/openapi.json", "/v1/fit", "/static/page.js", "/plan?model=x"):
        answer = httpx.get(guarded + path, headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
    assert httpx.get(f"{guarded}/openapi.json?token=wrong", headers=headers).status_code == 401
    assert httpx.get(f"{guarded}/healthz", headers=headers).status_code == 200


def test_a_wrong_token_is_answered_late(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    async def slept(seconds: float) -> None:
        waited.append(seconds)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError("a request without the token came through")

    async def send(message: Any) -> None:
        pass

    monkeypatch.setattr("chipwise.web.security.sleep", slept)
    guard = Guard(app, Access(token=TOKEN), 1_000)
    for headers in ([], [(b"authorization", b"Bearer wrong")]):
        scope = {"type": "http", "method": "GET", "path": "/plan", "query_string": b""}
        asyncio.run(guard({**scope, "headers": [(b"host", b"localhost"), *headers]}, send, send))
    assert waited == [Access().wrong_s]


def test_the_token_opens(guarded: str) -> None:
    answer = httpx.get(f"{guarded}/openapi.json", headers={"authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200


def test_the_token_of_an_address_becomes_a_cookie_and_leaves_it(guarded: str) -> None:
    with httpx.Client(base_url=guarded) as client:
        answer = client.get(f"/openapi.json?a=1&token={TOKEN}")
        assert (answer.status_code, answer.headers["location"]) == (303, "/openapi.json?a=1")
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert client.get("/openapi.json").status_code == 200
    away = httpx.get(f"{guarded}//evil.example/?token={TOKEN}")
    assert away.headers["location"] == "/evil.example/"


def test_an_open_address_is_known_by_number_and_given_names() -> None:
    access = Access("0.0.0.0", TOKEN, frozenset(("plans.example",)))
    assert all(map(access.knows, ("192.168.1.5:80", "[fe80::1]:80", "plans.example", socket.gethostname())))
    assert not any(map(access.knows, ("evil.example", "xplans.example", "plans.example.evil.example")))


def test_what_is_loopback() -> None:
    assert all(map(loopback, ("127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost")))
    assert not any(map(loopback, ("0.0.0.0", "::", "192.168.0.1", "example.org", "")))
