"""The contracts of the faces: every command's help, the HTTP API's document, the tools of the agents' server.

A line per option, per operation and per property of a schema, so that git shows which one changed.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

from rich.console import Console

from chipwise.cli.app import GROUPS, app
from chipwise.mcp.tools import listed
from chipwise.report.terminal import EXPLAINED
from chipwise.web.openapi import openapi

from .net import Answer, Kind

WIDE = 400  # columns: no option is wrapped
ROW = re.compile(r"│ (?:\* )? *(\S.*?)(?:\s{2,}(\S.*?))?\s*│")
"""A row of a panel: what is typed, and what it means."""


def faces() -> Iterator[tuple[str, Answer]]:
    """All contracts."""
    yield from _help("")
    yield from _once(_http())
    yield from _once(_tools())


def _http() -> Iterator[tuple[str, Answer]]:
    """The document of the HTTP API, but for the version."""
    document = openapi()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            name = f"http {method.upper()} {path}"
            parts = {k: v for k, v in operation.items() if k != "requestBody"}
            yield name, parts | {"responses": list(operation["responses"])}
            if "requestBody" in operation:
                content = operation["requestBody"]["content"]["application/json"]
                if "example" in content:
                    yield f"{name} as in", content["example"]
                yield from _schema(f"{name} asks", content["schema"])
            for status, response in operation["responses"].items():
                if status == "200":
                    yield from _schema(f"{name} answers", response["content"]["application/json"]["schema"])
                else:
                    yield f"http refuses {status}", response
    for name, schema in document["components"]["schemas"].items():
        yield from _schema(f"http schema {name}", schema)
    beside = {k: v for k, v in document.items() if k not in ("paths", "components", "info")}
    info = {k: v for k, v in document["info"].items() if k != "version"}
    yield "http", beside | {"info": info, "securitySchemes": document["components"]["securitySchemes"]}


def _tools() -> Iterator[tuple[str, Answer]]:
    """The tools as agents see them."""
    for tool in listed():
        given = tool.model_dump(mode="json", exclude_none=True)
        schema = given.pop("input_schema")
        yield f"mcp {tool.name}", given
        for name, part in schema.pop("$defs", {}).items():
            yield from _schema(f"mcp schema {name}", part)
        yield from _schema(f"mcp {tool.name} asks", schema)


def _once(found: Iterator[tuple[str, Answer]]) -> Iterator[tuple[str, Answer]]:
    """Without what is said again in the same words; what another part says in other words is counted."""
    said: dict[str, list[Answer]] = {}
    for name, answer in found:
        before = said.setdefault(name, [])
        if answer not in before:
            before.append(answer)
            yield (name if len(before) == 1 else f"{name} ({len(before)})"), answer


def _help(command: str) -> Iterator[tuple[str, Answer]]:
    """What `chipwise COMMAND --help-all` says, and of the commands below it."""
    name = f"chipwise {command}".strip()
    head, below, title = [], [], ""
    rows: list[tuple[str, Answer]] = []
    console = Console(file=io.StringIO(), width=WIDE, color_system=None)
    EXPLAINED.set(True)
    app.help_print(command.split(), console=console)
    for line in console.file.getvalue().splitlines():
        if line.startswith("╭"):
            title = line.strip("╭╮─ ")
        elif row := ROW.fullmatch(line):
            typed, means = row.groups()
            rows.append((f"{name} | {typed}", {"says": means or ""}))
            if title in ("Commands", *GROUPS) and not typed.startswith("-"):
                below.append(f"{command} {typed}".strip())
        elif not line.startswith("╰") and line.strip():
            head.append(line.strip())
    yield name, {"says": head}
    yield from rows
    for part in below:
        yield from _help(part)


def _schema(name: str, schema: dict[str, Any]) -> Iterator[tuple[str, Answer]]:
    """A schema and its properties, each for itself; their titles repeat names."""
    yield name, {k: v for k, v in schema.items() if k not in ("properties", "title")}
    for key, part in schema.get("properties", {}).items():
        yield f"{name} {key}", {k: v for k, v in part.items() if k != "title"}


KIND = Kind("faces", faces)
