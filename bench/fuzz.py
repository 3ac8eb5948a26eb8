"""Doors given what nobody should send: every case ends in an answer or a refusal, soon, and never in a traceback.

    python -m bench.fuzz [DOOR ...] [--seconds 60] [--seed 1]

Doors: questions (through all verbs, `bench/questions.py`), configs (a model's configuration, as a file and inline),
saved (answers that were kept), rows (tables of the suites, from the folder in CHIPWISE_TRUTH; one bad row costs one
row), http, mcp, mcp-http. What is wrong is printed with the case that shows it; the exit code is 1 if anything was.
"""

from __future__ import annotations

import argparse
import copy
import csv
import http.client
import json
import os
import random
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from types import FrameType
from typing import Any

from bench.questions import asked, drawn
from chipwise.api.requests.doors import read_request
from chipwise.api.requests.verbs import VERBS, question
from chipwise.api.saving import diff, replay, save
from chipwise.api.suites.doors import SUITES
from chipwise.catalog.configs import bundled_configs
from chipwise.errors import ChipwiseError
from chipwise.web.openapi import EXAMPLES

LONGEST_S = 90.0
"""Seconds after which a case hangs."""
MEMORY = 6_000_000_000
"""Bytes of address space of a door that runs in this process."""
ROWS = 6
"""Rows of a table."""

HOSTILE: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 0.5, -0.0, 1e308, -1e308, 1e-308, 5e-324, 2**31, 2**53 + 1, 2**63, 10**40, 10**400,
    "", " ", "0", "-1", "nan", "inf", "-inf", "1e999", "0x10", "1_000", "١٢", "true", "null", "none", "None", "auto",
    "../../etc/passwd", "/dev/zero", "file:///etc/passwd", "http://127.0.0.1:1/", "$(id)", "`id`", "'; id; '",
    '"$(id)"', "%s%n", "{0}", "{{7*7}}", "<script>", "\x00", "\x1b[2J", "\u202e", "\ud800", "\u2028", "a\nb", "a,b",
    "=1+1", "@SUM(1)", "x" * 300, "9" * 400, "é" * 100, "10/s", "40ms", "-40ms", "1e400ms", "8x", "0xh100", "4k", "fp8",
    "moe", [], {}, [[]], [None], {"": ""}, ["x"] * 50, {"a": {"b": {"c": []}}}, [0, -1, 1e308], [1, "2"], {"type": "x"},
)  # fmt: skip
BYTES = (b"\x00", b"\xff\xfe", b"\xf0\x9f", b'"', b"{", b"]", b",", b"\n", b"1e999", b"NaN", b"\\u0000", b"\r")


class HangError(BaseException):
    """A case that takes too long; nothing that catches errors catches it."""


class Found:
    """What was wrong, told apart by where, with the first case of each."""

    def __init__(self, door: str) -> None:
        self.door = door
        self.cases = 0
        self.outcomes: Counter[str] = Counter()
        self.wrong: dict[str, tuple[int, str]] = {}

    def note(self, what: str, case: object) -> None:
        """A fault."""
        count, first = self.wrong.get(what, (0, ""))
        text = first or (case if isinstance(case, str) else repr(case))[:1500]
        self.wrong[what] = (count + 1, text)

    def report(self, seconds: float) -> None:
        """What came of a door."""
        told = ", ".join(f"{name} {count:,}" for name, count in sorted(self.outcomes.items()))
        print(f"{self.door}: {self.cases:,} cases in {seconds:.0f} s; {told}; {len(self.wrong)} faults", flush=True)
        for what, (count, case) in self.wrong.items():
            print(f"  {count} x {what}\n    {case}", flush=True)


@contextmanager
def watched(seconds: float = LONGEST_S) -> Iterator[None]:
    """Raises `HangError` in the block after a time."""

    def end(number: int, frame: FrameType | None) -> None:
        raise HangError("".join(traceback.format_stack(frame)[-3:]))

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def tried(found: Found, case: object, work: Callable[[], object]) -> object:
    """One case in this process: an answer, or a refusal; anything else is noted."""
    found.cases += 1
    try:
        with watched(), warnings.catch_warnings():
            warnings.simplefilter("error")
            answer = work()
    except ChipwiseError as error:
        found.outcomes["refused"] += 1
        said = str(error)
        if len(said) > 5_000 or any(not (c.isprintable() or c == "\n") for c in said):
            found.note("a refusal that cannot be printed", said)
        return None
    except HangError as hang:
        found.note(f"no end within {LONGEST_S:g} s: {hang}", case)
        return None
    except (Exception, RecursionError) as error:
        own = [f for f in traceback.extract_tb(error.__traceback__) if "chipwise" in f.filename]
        where = f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else "?"
        found.note(f"{type(error).__name__}: {str(error)[:100]} ({where})", case)
        return None
    found.outcomes["answered"] += 1
    return answer


# how a document is spoilt


def places(node: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """All places in a document."""
    yield here
    parts = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for name, part in parts:
        yield from places(part, (*here, name))


def spoilt(document: Any, dice: random.Random) -> Any:
    """A copy with up to three things wrong."""
    found = copy.deepcopy(document)
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        place = dice.choice(list(places(found)))
        if not place:
            continue
        owner = found
        for step in place[:-1]:
            owner = owner[step]
        last, value = place[-1], owner[place[-1]]
        way = dice.randrange(9)
        if way == 0:
            del owner[last]
        elif way == 1 and isinstance(value, int | float) and not isinstance(value, bool):
            factor = dice.choice((-1, 0, 2, 3, 0.5, 1e-9, 1e9, 1e300))
            huge = isinstance(value, int) and value.bit_length() > 1000
            owner[last] = -value if huge else value * factor
        elif way == 2:
            owner[last] = [value]
        elif way == 3:
            owner[last] = {"x": value}
        elif way == 4:
            owner[last] = str(value)
        elif way == 5 and isinstance(owner, dict):
            owner[str(dice.choice(HOSTILE))[:50]] = value
        elif way == 6 and isinstance(owner, list):
            owner.append(value)
        elif way == 7 and dice.random() < 0.1:
            for _ in range(300):
                value = [value]
            owner[last] = value
        else:
            owner[last] = copy.deepcopy(dice.choice(HOSTILE))  # what comes next may change it
    return found


def garbled(text: bytes, dice: random.Random) -> bytes:
    """Bytes of which some are gone, doubled or others."""
    found = bytearray(text)
    for _ in range(dice.randint(1, 6)):
        at = dice.randrange(len(found) + 1)
        way = dice.randrange(4)
        if way == 0:
            del found[at : at + dice.randint(1, 20)]
        elif way == 1:
            found[at:at] = dice.choice(BYTES)
        elif way == 2:
            found[at:at] = found[at : at + dice.randint(1, 50)]
        elif at < len(found):
            found[at] = dice.randrange(256)
    return bytes(found)


def written(document: Any, dice: random.Random) -> bytes:
    """A document as bytes, sometimes garbled."""
    text = json.dumps(document).encode("utf-8", "surrogatepass")
    return garbled(text, dice) if dice.random() < 0.15 else text


# doors in this process


def configs(found: Found, dice: random.Random, until: float, folder: Path) -> None:
    """A configuration of a model, spoilt: its memory, its speed, its training."""
    known = [dict(config.data) for config in bundled_configs().values()]
    file = folder / "config.json"
    while time.monotonic() < until:
        document = spoilt(dice.choice(known), dice)
        verb, given = dice.choice(
            (
                ("fit", {"chips": "l4,h100-sxm5-80gb"}),
                ("estimate", {"chip": "h100-sxm5-80gb", "tp": 8}),
                ("explain", {"chip": "mi300x", "tp": 4, "runtime": "sglang"}),
                ("train", {"tokens": "1B", "chips": "h100-sxm5-80gb", "counts": "8"}),
                ("local", {"have": "rtx-4090", "host_memory": "64GB"}),
            )
        )
        name = "models" if verb == "local" else "model"
        inline = dice.random() < 0.5 and verb != "local"
        if inline:
            told = given | {name: document}
            tried(found, (verb, told), lambda v=verb, t=told: read_request(v, t).run())
        else:
            file.write_bytes(written(document, dice))
            told = given | {name: str(file)}
            tried(found, (verb, file.read_bytes()), lambda v=verb, t=told: question(v, t).run())


def questions(found: Found, dice: random.Random, until: float, folder: Path) -> None:
    """Random questions through all verbs: designed exit codes, no traceback, no file that is not whole."""
    kept, made = str(folder / "saved.json"), folder / "made"
    made.mkdir()
    save("plan", question("plan", {"model": "Qwen/Qwen3-8B", "chips": "l4,h100", "rate": "1/s"}), kept)
    while time.monotonic() < until:
        verb, given = drawn(dice, HOSTILE, kept)
        came: list[tuple[str, list[str]]] = []
        tried(found, (verb, given), lambda v=verb, g=given, c=came: c.append(asked(v, g, made, dice)))
        for outcome, faults in came:
            found.outcomes["answered"] -= outcome != "answered"
            found.outcomes[outcome] += outcome != "answered"
            for fault in faults:
                found.note(f"{verb}: {fault}", given)


def saved(found: Found, dice: random.Random, until: float, folder: Path) -> None:
    """A saved answer, spoilt, made again, compared and launched; as a file and as a record."""
    from chipwise.api.launching import launch
    from chipwise.report.launch.targets import TARGETS

    kept = []
    for i, verb in enumerate(("estimate", "fit", "train", "plan", "local")):
        path = folder / f"{i}.json"
        asked = {"train": {"tokens": "1B", "chips": "h100-sxm5-80gb", "counts": "8"}, "plan": {"chips": "l4,h100"}}
        given = {"model": "meta-llama/Llama-3.1-8B"} | asked.get(verb, {"chip": "l4"})
        given = {"have": "rtx-4090"} if verb == "local" else given
        given = {n.replace("chip", "chips") if verb == "fit" else n: v for n, v in given.items()}
        save(verb, question(verb, given), str(path))
        kept.append(json.loads(path.read_text()))
    file, good = folder / "spoilt.json", str(folder / "0.json")
    while time.monotonic() < until:
        document = dice.choice(kept)
        alone = {**document["report"], "question": {"verb": document["verb"], "request": document["request"]}}
        whole = dice.random() < 0.5
        tables = document["tables"]
        bad = spoilt({**document, "tables": ""} if whole else alone, dice)
        if whole and isinstance(bad, dict) and bad.get("tables") == "":
            bad["tables"] = tables
        file.write_bytes(written(bad, dice))
        target, plan = dice.choice(list(TARGETS)), dice.choice((1, 1, 2, 0, -1, 10**9))
        way = dice.randrange(4)
        if way == 0:
            tried(found, ("replay", bad), lambda: replay(str(file)))
        elif way == 1:
            tried(found, ("diff", bad), lambda: diff(good, str(file)))
        elif way == 2:
            tried(found, ("launch", target, bad), lambda t=target, p=plan: launch(str(file), t, p))
        else:
            told = {"saved": bad, "for": target, "plan": plan}
            tried(found, ("record", told), lambda t=told: read_request("launch", t).run())


def rows(found: Found, dice: random.Random, until: float, folder: Path) -> None:
    """A table of a suite with one row spoilt: the others are answered as before."""
    truth = Path(os.environ.get("CHIPWISE_TRUTH") or "")
    for part in ("models", "media_models", "zoo", "machines"):
        if (truth / part).exists():
            (folder / part).symlink_to((truth / part).resolve())
    file = folder / "rows.csv"
    tables: dict[str, list[dict[str, str]]] = {}
    for name, suite in SUITES.items():
        table = truth / suite.trial.file if suite.trial is not None else None
        if table is not None and table.suffix == ".csv" and table.exists():
            tables[name] = list(csv.DictReader(table.open(encoding="utf-8", newline="")))
    if not tables:
        found.note("no tables: CHIPWISE_TRUTH names no folder with any", "")
        return
    while time.monotonic() < until:
        name = dice.choice(list(tables))
        picked = [dict(row) for row in dice.sample(tables[name], ROWS)]
        suite = SUITES[name]
        key = "row_id" if "row_id" in picked[0] else next(iter(picked[0]))

        def answers(table: list[dict[str, str]], asked: Any = suite) -> dict[str, Any]:
            with file.open("w", encoding="utf-8", errors="surrogatepass", newline="") as out:
                writer = csv.DictWriter(out, list(table[0]))
                writer.writeheader()
                writer.writerows(table)
            told: dict[str, Any] = {}
            for a in asked.predict(str(file), None, None, commands=False):
                told.setdefault(a.row_id, []).append((a.metric, a.mid))
            return told

        before = tried(found, (name, picked), lambda t=picked, a=answers: a(t))
        for _ in range(8):
            bad = [dict(row) for row in picked]
            victim = dice.randrange(ROWS)
            for _ in range(dice.choice((1, 1, 2))):
                column = dice.choice([c for c in bad[victim] if c != key])
                value = dice.choice([h for h in HOSTILE if isinstance(h, str | int | float)])
                bad[victim][column] = str(value).replace("\ud800", "?").replace("\x00", "\x01")
            case = (name, {c: v for c, v in bad[victim].items() if v != picked[victim][c]}, bad)
            after = tried(found, case, lambda t=bad, a=answers: a(t))
            if not isinstance(after, dict) or not isinstance(before, dict):
                if isinstance(before, dict):
                    found.note(f"{name}: one bad row refuses the table", case)
                continue
            for row in (r for i, r in enumerate(picked) if i != victim):
                if not _alike(before.get(row[key]), after.get(row[key])):
                    found.note(f"{name}: one bad row moves another", case)


def _alike(one: Any, other: Any) -> bool:
    """Whether the answers to a row are the same but for the order in which sums were taken."""
    if one is None or other is None or len(one) != len(other):
        return one == other

    def near(a: float | None, b: float | None) -> bool:
        return a == b or (a is not None and b is not None and abs(a - b) <= 1e-6 * max(abs(a), abs(b)))

    return all(m == n and near(a, b) for (m, a), (n, b) in zip(one, other, strict=True))


# doors of a server


@contextmanager
def server(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str, int]]:
    """A server with the port that it said, whose log must hold no traceback."""
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "chipwise", *arguments, "--port", "0"], stderr=log, stdout=log, text=True
        )
        try:
            where = None
            for _ in range(300):
                log.seek(0)
                where = re.search(r"http://([\w.]+):(\d+)", log.read())
                if where or process.poll() is not None:
                    break
                time.sleep(0.2)
            if where is None:
                raise RuntimeError("the server did not start")
            yield process, where[1], int(where[2])
            if process.poll() is not None:
                raise RuntimeError(f"the server has ended with {process.poll()}")
        finally:
            process.terminate()
            process.wait(30)
            log.seek(0)
            text = log.read()
            if "Traceback" in text:
                raise RuntimeError(f"the log holds a traceback:\n{text[-3000:]}")


def _question(dice: random.Random) -> tuple[str, dict[str, Any]]:
    """A question that is nearly one."""
    verb = dice.choice(list(VERBS))
    given = dict(EXAMPLES[verb])
    if verb in ("plan", "train", "compare"):
        given |= {"chips": "l4,h100-sxm5-80gb"}
    if dice.random() < 0.9:
        given = spoilt(given, dice)
    known = VERBS[verb].__dataclass_fields__  # type: ignore[attr-defined]
    if isinstance(given, dict) and dice.random() < 0.4:
        given[dice.choice(list(known)).rstrip("_")] = dice.choice(HOSTILE)
    return verb, given


def web(found: Found, dice: random.Random, until: float, folder: Path) -> None:
    """HTTP: spoilt bodies and queries, spoilt heads; no 5xx but 503 for what takes too long, and no silence."""
    with server("web", "--no-open") as (_, host, port):
        while time.monotonic() < until:
            found.cases += 1
            verb, given = _question(dice)
            body = written(given, dice)
            way = dice.randrange(10)
            path, method, kind = f"/v1/{verb}", "POST", "application/json"
            if way == 0:
                path, body = "/v1/jobs", written(spoilt({"verb": verb, "request": given}, dice), dice)
            elif way == 1:
                raw = dice.choice(("/plan", "/fit", "/kernel", "/chips", "/load", "/launch", "/v1/jobs", "/static/"))
                words = "".join(f"%{b:02x}" for b in body[:2000])
                path, method, body = (f"{raw}{dice.choice(('', '.json', '.csv', '.html'))}?model={words}", "GET", b"")
            elif way == 2:
                path = "/" + "".join(f"%{b:02x}" for b in garbled(path.encode(), dice)) + dice.choice(("", "/..", "//"))
                method = dice.choice(("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "X"))
            elif way == 3:
                kind = (
                    str(dice.choice(HOSTILE))[:40].encode("ascii", "ignore").decode().translate({0: 32, 10: 32, 27: 32})
                )
            head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
            wire = head.encode() + f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body
            if way == 4:
                wire = garbled(wire, dice)
            status = _status(host, port, wire)
            found.outcomes[status] += 1
            if status == "silence" and way != 4:
                found.note("no answer", wire[:1500])
            if status.startswith("5") and status != "503":
                found.note(f"status {status}", wire[:1500])


def _status(host: str, port: int, wire: bytes) -> str:
    """The status of the answer to some bytes."""
    with socket.create_connection((host, port), LONGEST_S) as line:
        try:
            line.sendall(wire)
            line.shutdown(socket.SHUT_WR) if wire.startswith(b"\x00") else None
            first = line.recv(64)
        except OSError:
            return "closed"
    return first.split()[1].decode() if first.startswith(b"HTTP/1.1 ") else "silence" if not first else "other"


CALLS = (
    "tools/call", "resources/read", "prompts/get", "completion/complete", "tools/list", "resources/list", "ping",
    "resources/templates/list", "prompts/list", "logging/setLevel", "initialize", "x/y", "notifications/cancelled",
)  # fmt: skip


def _message(dice: random.Random, number: int) -> dict[str, Any]:
    """A message of the protocol that is nearly one."""
    verb, given = _question(dice)
    method = "tools/call" if dice.random() < 0.6 else dice.choice(CALLS)
    part = dice.choice(("glossary", "accuracy", "chips/mi300x", "chips/..%2f", "answers/0", "fields/plan", "\x00"))
    parameters: dict[str, Any] = {
        "tools/call": {"name": verb, "arguments": given},
        "resources/read": {"uri": f"chipwise://{part}"},
        "prompts/get": {"name": "plan-my-model", "arguments": {"model": "x"}},
        "completion/complete": {
            "ref": {"type": "ref/prompt", "name": "plan-my-model"},
            "argument": {"name": "model", "value": "llama"},
        },
    }.get(method, {})
    if dice.random() < 0.5:
        parameters = spoilt(parameters, dice)
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}
    if dice.random() < 0.1:
        strange = spoilt(message, dice)
        return strange if isinstance(strange, dict) else message
    return message


HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "fuzz", "version": "0"}},
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def mcp(found: Found, dice: random.Random, until: float, folder: Path) -> None:
    """Stdin and stdout: after every spoilt line a good one is answered, and the spoilt one if it had a number."""
    command = [sys.executable, "-m", "chipwise", "mcp"]
    with tempfile.TemporaryFile("w+b") as log:
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=log)
        assert process.stdin is not None
        assert process.stdout is not None
        lines: Queue[bytes] = Queue()
        threading.Thread(target=lambda: [lines.put(line) for line in process.stdout or ()], daemon=True).start()
        try:
            for hello in (HELLO, READY):
                process.stdin.write(json.dumps(hello).encode() + b"\n")
            process.stdin.flush()
            lines.get(timeout=60)
            number = 0
            while time.monotonic() < until and process.poll() is None:
                number += 2
                found.cases += 1
                wire = written(_message(dice, number), dice).replace(b"\n", b" ")
                ping = {"jsonrpc": "2.0", "id": number + 1, "method": "ping"}
                process.stdin.write(wire + b"\n" + json.dumps(ping).encode() + b"\n")
                process.stdin.flush()
                _heard(found, lines, number, wire)
            if process.poll() is not None:
                found.note(f"the server ended with {process.poll()}", "")
        finally:
            process.kill()
            process.wait(30)
        log.seek(0)
        text = log.read().decode("utf-8", "replace")
        if "Traceback" in text:
            found.note("a traceback in the log", text[-1500:])


def _heard(found: Found, lines: Queue[bytes], number: int, wire: bytes) -> None:
    """Reads until the message and the good one behind it are answered."""
    try:
        asked = json.loads(wire)
    except (ValueError, RecursionError):
        asked = None
    expected = isinstance(asked, dict) and asked.get("id") == number and asked.get("method") in CALLS
    expected = expected and str(asked.get("method", "")).partition("/")[0] != "notifications"
    waiting = {number + 1} | ({number} if expected else set())
    until = time.monotonic() + LONGEST_S
    while waiting:
        try:
            line = lines.get(timeout=max(0.1, until - time.monotonic()))
        except Empty:
            found.note(f"no answer to {'the message' if number in waiting else 'a ping after it'}", wire)
            return
        answer = json.loads(line)
        # what is no message at all is answered without its number, as JSON-RPC has it
        told = number if answer.get("id") is None and "error" in answer else answer.get("id")
        if told == number:
            _judged(found, answer, wire)
        waiting.discard(told)


def _judged(found: Found, answer: Mapping[str, Any], wire: bytes) -> None:
    """An answer of the protocol: a result, or an error that says something."""
    text = json.dumps(answer)
    found.outcomes["error" if "error" in answer or answer.get("result", {}).get("isError") else "answered"] += 1
    if "failed on this question" in text or "Traceback" in text or "Internal" in text:
        found.note(f"a bug: {text[:200]}", wire)
    if len(text) > 60_000:
        found.note("an answer that is too long", wire)


def mcp_http(found: Found, dice: random.Random, until: float, folder: Path) -> None:
    """The same over HTTP: spoilt messages and heads; no 5xx."""
    with server("mcp", "--http") as (_, host, port):
        base = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        session = ""
        number = 0
        while time.monotonic() < until:
            found.cases += 1
            number += 1
            fresh = not session or dice.random() < 0.02
            message = HELLO if fresh else _message(dice, number)
            wire = written(message, dice) if not fresh else json.dumps(message).encode()
            headers = base | ({"Mcp-Session-Id": session} if session and not fresh else {})
            if dice.random() < 0.1 and not fresh:
                name = dice.choice(("Mcp-Session-Id", "Accept", "Content-Type", "MCP-Protocol-Version", "Origin"))
                said = str(dice.choice(HOSTILE)).encode("ascii", "ignore").decode()
                headers[name] = "".join(c for c in said if c.isprintable())[:200]
            line = http.client.HTTPConnection(host, port, timeout=LONGEST_S)
            try:
                line.request("POST", "/mcp", wire, headers)
                answer = line.getresponse()
                text = answer.read(200_000).decode("utf-8", "replace")
            except (OSError, http.client.HTTPException) as error:
                found.note(f"no answer: {type(error).__name__}", wire[:1500])
                session = ""
                continue
            finally:
                line.close()
            session = answer.getheader("Mcp-Session-Id") or session
            found.outcomes[str(answer.status)] += 1
            if answer.status >= 500:
                found.note(f"status {answer.status}: {text[:200]}", wire[:1500])
            if "failed on this question" in text or "Traceback" in text:
                found.note(f"a bug: {text[:200]}", wire[:1500])
            if answer.status == 404:
                session = ""


DOORS: Mapping[str, Callable[[Found, random.Random, float, Path], None]] = {
    "questions": questions,
    "configs": configs,
    "saved": saved,
    "rows": rows,
    "http": web,
    "mcp": mcp,
    "mcp-http": mcp_http,
}


def main() -> int:
    """Try the doors, each for some seconds; 1 if anything was wrong."""
    reader = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    reader.add_argument("doors", nargs="*", metavar="DOOR", help=", ".join(DOORS))
    reader.add_argument("--seconds", type=float, default=60.0, help="for each door")
    reader.add_argument("--seed", type=int, default=1)
    given = reader.parse_args()
    unknown = [name for name in given.doors if name not in DOORS]
    if unknown:
        reader.error(f"no door {unknown[0]}: one of {', '.join(DOORS)}")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    wrong = 0
    for name in given.doors or DOORS:
        found, began = Found(name), time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            try:
                DOORS[name](found, random.Random(given.seed), began + given.seconds, Path(folder))
            except RuntimeError as error:
                found.note(str(error), "")
        found.report(time.monotonic() - began)
        wrong += len(found.wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
