"""The HTTP server under load: connections that send half a head, thousands of requests, many clients at once for a
minute; what was answered, how fast, and whether memory grew.

    python -m bench.load [--clients 500] [--seconds 60] [--half-open 1100] [--requests 5000]
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import quantiles
from typing import IO, Any

import httpx

FILES = 1_024
"""Files that the server may have open, as is the rule."""
SMALL = "meta-llama/Llama-3.1-8B"
PLAN = {"model": "meta-llama/Llama-3.1-70B", "rate": "10/s", "ttft": "1s", "tpot": "40ms"}


def question(dice: random.Random) -> tuple[str, dict[str, Any]]:
    """What a client asks: mostly new, sometimes what others ask too, sometimes wrong."""
    kind = dice.randrange(10)
    if kind < 4:
        return "estimate", {"model": SMALL, "chip": "l4", "concurrency": dice.randint(1, 100)}
    if kind < 7:
        return "fit", {"model": SMALL, "chips": "l4,h100-sxm5-80gb", "context": dice.randint(1000, 100_000)}
    if kind < 8:
        return "plan", PLAN
    if kind < 9:
        return "chips", {"search": dice.choice(("nvidia", "amd", "google"))}
    return dice.choice((("plan", {"model": "no-such-model"}), ("fit", {"model": SMALL, "chips": "/etc/passwd"})))


async def client(address: str, until: float, seed: int, seen: Counter[str], times: list[float]) -> None:
    """One client that asks again as soon as it is answered; told to come back, it waits a little."""
    dice = random.Random(seed)
    async with httpx.AsyncClient(base_url=address, timeout=120, verify=False) as http:
        while time.monotonic() < until:
            verb, given = question(dice)
            began = time.monotonic()
            try:
                answer = await http.post(f"/v1/{verb}", json=given)
            except httpx.HTTPError as error:
                seen[type(error).__name__] += 1
                continue
            seen[str(answer.status_code)] += 1
            if answer.status_code == 429:
                await asyncio.sleep(1.0)
            else:
                times.append(time.monotonic() - began)


def memory_bytes(pid: int) -> int:
    """Resident memory of a process and its children; 0 where the system does not tell."""
    total = 0
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            text = status.read_text()
        except OSError:
            continue
        parent = re.search(r"^PPid:\s+(\d+)", text, re.M)
        resident = re.search(r"^VmRSS:\s+(\d+) kB", text, re.M)
        if resident and parent and pid in (int(parent.group(1)), int(status.parent.name)):
            total += int(resident.group(1)) * 1024
    return total


async def load(address: str, clients: int, seconds: float, pid: int) -> None:
    """The load, with memory at its beginning, in the middle and at its end."""
    seen: Counter[str] = Counter()
    times: list[float] = []
    began = time.monotonic()
    until = began + seconds
    tasks = [asyncio.create_task(client(address, until, i, seen, times)) for i in range(clients)]
    for _ in range(6):
        await asyncio.sleep(seconds / 6)
        done = sum(seen.values())
        print(f"{time.monotonic() - began:5.0f} s  {done:7,} answers  {memory_bytes(pid) / 1e6:7.0f} MB  {dict(seen)}")
    await asyncio.gather(*tasks)
    cuts = quantiles(times, n=100) if len(times) > 1 else [0.0] * 99
    print(f"{len(times) / seconds:.0f} answers/s, median {cuts[49]:.2f} s, 99th percentile {cuts[98]:.2f} s")
    bad = {status: n for status, n in seen.items() if not status.isdigit() or int(status) >= 500}
    print(f"failures: {bad or 'none'}")


def half_open(where: httpx.URL, count: int) -> list[socket.socket]:
    """Connections that send half a head and nothing more; as many as can be had."""
    found = []
    for _ in range(count):
        try:
            wire = socket.create_connection((where.host, where.port or 80), 10)
            wire.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-a: ")
        except OSError:
            continue
        found.append(wire)
    return found


def besides(address: str, count: int) -> None:
    """What others get while many connections hold on to half a head."""
    where = httpx.URL(address)
    wires = half_open(where, count)
    times, seen = [], Counter[str]()
    for _ in range(20):
        began = time.monotonic()
        try:
            seen[str(httpx.get(f"{address}/healthz", timeout=30).status_code)] += 1
        except httpx.HTTPError as error:
            seen[type(error).__name__] += 1
        times.append(time.monotonic() - began)
        time.sleep(0.2)
    for wire in wires:
        wire.close()
    print(f"{len(wires):,} half-open connections: others {dict(seen)}, the slowest in {max(times):.2f} s")


async def many(address: str, requests: int, at_once: int, pid: int) -> None:
    """So many requests in all, some at once, with memory after each fifth."""
    seen: Counter[str] = Counter()
    left = iter(range(requests))
    began = time.monotonic()

    async def one() -> None:
        async with httpx.AsyncClient(base_url=address, timeout=120, verify=False) as http:
            for i in left:
                given = {"model": SMALL, "chips": "l4", "context": 1000 + i % 50}
                seen[str((await http.post("/v1/fit", json=given)).status_code)] += 1

    async def told() -> None:
        for part in range(1, 6):
            while sum(seen.values()) < requests * part / 5:
                await asyncio.sleep(0.2)
            passed = time.monotonic() - began
            print(f"{sum(seen.values()):,} requests in {passed:.0f} s  {memory_bytes(pid) / 1e6:.0f} MB  {dict(seen)}")

    await asyncio.gather(told(), *(one() for _ in range(at_once)))


def main() -> None:
    """Start a server, load it, stop it."""
    reader = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for name, value in (("clients", 500), ("seconds", 60), ("half-open", 1_100), ("requests", 5_000)):
        reader.add_argument(f"--{name}", type=int, default=value, help=f"default: {value:,}")
    given = reader.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 8_192), most))  # of the clients; the server has fewer
    web = (sys.executable, "-m", "chipwise", "web", "--no-open", "--port", "0")
    with tempfile.TemporaryFile("w+") as log:
        command = ["sh", "-c", f'ulimit -n {FILES}; exec "$0" "$@"', *web]
        server = subprocess.Popen(command, stderr=log)
        try:
            loaded(address_in(log), server.pid, given)
        finally:
            server.terminate()
            server.wait(30)
            log.seek(0)
            print(f"lines in the log of the server, its address aside: {len(log.readlines()) - 1}")


def address_in(log: IO[str]) -> str:
    """The address that a server says in its log."""
    for _ in range(300):
        log.seek(0)
        if found := re.search(r"http://\S+?:\d+", log.read()):
            return found.group()
        time.sleep(0.2)
    raise RuntimeError("the server did not start")


def loaded(address: str, pid: int, given: argparse.Namespace) -> None:
    """All loads, one after the other."""
    for i in range(3):
        began = time.monotonic()
        answer = httpx.post(f"{address}/v1/plan", json=PLAN | {"in": 2000 + i}, timeout=60)
        print(f"plan {i + 1}: {answer.status_code} in {time.monotonic() - began:.2f} s")
    besides(address, given.half_open)
    asyncio.run(many(address, given.requests, 8, pid))
    asyncio.run(load(address, given.clients, given.seconds, pid))
    print(f"afterwards: {httpx.get(f'{address}/healthz').status_code}, {memory_bytes(pid) / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
