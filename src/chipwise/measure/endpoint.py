"""An OpenAI-compatible endpoint under a stated load: so many requests in flight, or so many a second at random.

Every request streams `/v1/completions`. TTFT is the time until the first text, TPOT what passed from then to the last
text over the tokens in between, as `vllm bench serve` counts them; tokens are those that the server counts (`usage`),
else one for each piece of text.
"""

from __future__ import annotations

import asyncio
import json
import random
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from chipwise.errors import UsageError, shorten
from chipwise.values import dataclass

SCHEMES = {"http": 80, "https": 443}
WORDS = "the of and to in is that it was for on are as with his they at be this from have or by one had not but".split()
LINE = 1 << 20
"""Bytes of a line of a stream, at most."""


@dataclass(frozen=True, slots=True)
class Load:
    """What is sent: `requests`, `concurrency` in flight or `rate_per_s` arriving at random, each with a prompt of
    `prompt_words` that asks for `output_tokens`; 0 requests: ten for each in flight, or a minute of arrivals, at least
    20. `timeout_s`: after which a request has failed. Raises `UsageError` for two loads or none, and for what is out of
    range."""

    concurrency: int | None
    rate_per_s: float | None
    prompt_words: int
    output_tokens: int
    requests: int = 0
    timeout_s: float = 600.0

    def __post_init__(self) -> None:
        if (self.concurrency is None) == (self.rate_per_s is None):
            raise UsageError("one load is needed", "--concurrency 16 or --rate 4/s")
        for name, value, most in (
            ("--in", self.prompt_words, 1_000_000),
            ("--out", self.output_tokens, 100_000),
            ("--concurrency", 1 if self.concurrency is None else self.concurrency, 10_000),
            ("--requests", self.requests or 1, 1_000_000),
        ):
            if not 1 <= value <= most:
                raise UsageError(f"{name} {value} is out of range", f"1 to {most:,}")
        if self.rate_per_s is not None and not 0.0 < self.rate_per_s <= 10_000.0:
            raise UsageError(f"--rate {self.rate_per_s:g} is out of range", "more than 0, at most 10,000/s")
        usual = 10 * self.concurrency if self.concurrency else round(60.0 * (self.rate_per_s or 0.0))
        object.__setattr__(self, "requests", self.requests or max(20, usual))


@dataclass(frozen=True, slots=True)
class EndpointRequest:
    """One request: seconds from sending to the first and the last text, tokens in and out; or why it failed."""

    first_s: float = 0.0
    last_s: float = 0.0
    prompt_tokens: float = 0.0
    output_tokens: float = 0.0
    failed: str = ""


def loaded(
    url: str, model: str, load: Load, say: Callable[[int, int], None] = lambda done, of: None
) -> tuple[list[EndpointRequest], float]:
    """Every request that was sent, and the seconds of the run. Ctrl-C ends it and keeps what was answered.

    Raises `UsageError` for an address that is none.
    """
    parts = urlsplit(url if "//" in url else f"http://{url}")
    if parts.scheme not in SCHEMES or not parts.hostname:
        raise UsageError(f"{shorten(url)}: not an address", "as in http://localhost:8000")
    done: list[EndpointRequest] = []
    began = time.perf_counter()
    try:
        asyncio.run(_run(_Server(url, model), load, done, say))
    except KeyboardInterrupt:
        if not done:
            raise
    return done, time.perf_counter() - began


async def _run(server: _Server, load: Load, done: list[EndpointRequest], say: Callable[[int, int], None]) -> None:
    random_ = random.Random(0)
    prompts = [" ".join(random_.choices(WORDS, k=load.prompt_words)) for _ in range(load.requests)]

    async def send(prompt: str) -> None:
        done.append(await server.ask(prompt, load))
        say(len(done), load.requests)

    if load.rate_per_s is not None:
        waiting: list[Awaitable[None]] = []
        for prompt in prompts:
            waiting.append(asyncio.ensure_future(send(prompt)))
            await asyncio.sleep(random_.expovariate(load.rate_per_s))
        await asyncio.gather(*waiting)
        return
    left = iter(prompts)

    async def client() -> None:
        for prompt in left:
            await send(prompt)

    await asyncio.gather(*(client() for _ in range(load.concurrency or 1)))


class _Server:
    def __init__(self, url: str, model: str) -> None:
        split = urlsplit(url if "//" in url else f"http://{url}")
        self._host, self._port = split.hostname or "", split.port or SCHEMES[split.scheme]
        self._tls = ssl.create_default_context() if split.scheme == "https" else None
        path = split.path.rstrip("/")
        self._path = path if path.endswith("/completions") else f"{path.removesuffix('/v1')}/v1/completions"
        self._model = model

    async def ask(self, prompt: str, load: Load) -> EndpointRequest:
        """Send one request and read its stream."""
        try:
            return await asyncio.wait_for(self._asked(prompt, load), load.timeout_s)
        except (OSError, ValueError, TimeoutError, EOFError, asyncio.LimitOverrunError) as error:
            return EndpointRequest(failed=shorten(str(error)) or type(error).__name__)

    async def _asked(self, prompt: str, load: Load) -> EndpointRequest:
        body = json.dumps(
            {
                "model": self._model,
                "prompt": prompt,
                "max_tokens": load.output_tokens,
                "temperature": 0.0,
                "ignore_eos": True,
                "stream": True,
                "stream_options": {"include_usage": True},
            }
        ).encode()
        head = (
            f"POST {self._path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\nContent-Type: application/json\r\n"
            f"Accept: text/event-stream\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        began = time.perf_counter()
        reader, writer = await asyncio.open_connection(self._host, self._port, ssl=self._tls, limit=LINE)
        try:
            writer.write(head.encode() + body)
            await writer.drain()
            first = last = 0.0
            pieces = 0
            usage: dict[str, Any] = {}
            async for event in _events(reader):
                usage = event.get("usage") or usage
                choices = event.get("choices") or [{}]
                if choices[0].get("text"):
                    pieces += 1
                    last = time.perf_counter() - began
                    first = first or last
        finally:
            writer.close()
        if not pieces:
            return EndpointRequest(failed="an answer without text")
        prompted = float(usage.get("prompt_tokens") or load.prompt_words)
        return EndpointRequest(first, last, prompted, float(usage.get("completion_tokens") or pieces))


async def _events(reader: asyncio.StreamReader) -> AsyncIterator[dict[str, Any]]:
    """The JSON of every event of a stream. Raises `ValueError` for an answer that is none."""
    status = (await reader.readline()).decode("latin-1").split(" ", 2)
    chunked = False
    while (line := (await reader.readline()).strip()) != b"":
        chunked |= line.lower().replace(b" ", b"") == b"transfer-encoding:chunked"
    if len(status) < 2 or status[1] != "200":
        said = (await reader.read(300)).decode(errors="replace")
        raise ValueError(f"the server answers {' '.join(status[1:]).strip() or 'nothing'}: {shorten(said)}")
    held = b""
    while True:
        part = await _chunk(reader) if chunked else await reader.read(65536)
        if not part:
            return
        *lines, held = (held + part).split(b"\n")
        for line in lines:
            text = line.strip()
            if text == b"data: [DONE]":
                return
            if text.startswith(b"data:"):
                event = json.loads(text[5:])
                if isinstance(event, dict):
                    yield event


async def _chunk(reader: asyncio.StreamReader) -> bytes:
    size = int((await reader.readline()).split(b";")[0] or b"0", 16)
    found = await reader.readexactly(size) if size else b""
    await reader.readline()
    return found
