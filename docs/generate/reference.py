"""References: what the command line, Python and the doors take and give, from the code itself."""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

from docs.generate.console import run
from docs.generate.tables import table

from chipwise import api
from chipwise.api.requests.kinds import answer_type
from chipwise.api.requests.verbs import VERBS
from chipwise.catalog.tools import get_tool
from chipwise.cli.app import app
from chipwise.mcp.resources import RESOURCES, TEMPLATES
from chipwise.mcp.tools import TOOLS
from chipwise.report.glossary import GLOSSARY
from chipwise.report.launch.targets import TARGETS
from chipwise.web.openapi import openapi

__all__ = [
    "commands",
    "functions",
    "glossary",
    "help_page",
    "paths",
    "records",
    "requests",
    "resources",
    "targets",
    "tools",
]


def commands() -> Iterator[str]:
    """All commands by their words, groups of them first, as in `kernel` and `kernel gemm`."""

    def inside(part: Any, words: tuple[str, ...]) -> Iterator[str]:
        for name in sorted(n for n in part if not n.startswith("-")):
            yield " ".join((*words, name))
            yield from inside(part[name], (*words, name))

    yield from inside(app, ())


def help_page(_: str) -> str:
    """The help of every command."""
    parts = ["```text\n" + run("chipwise --help").text + "\n```"]
    for name in commands():
        level = "##" if " " not in name else "###"
        parts.append(f"{level} chipwise {name}\n\n```text\n{run(f'chipwise {name} --help-all').text}\n```")
    return "\n\n".join(parts)


def functions(_: str) -> str:
    """The functions of `chipwise.api` with their signatures and docstrings."""
    parts = []
    for name in api.__all__:
        value = getattr(api, name)
        if not inspect.isfunction(value):
            continue
        text = inspect.cleandoc(value.__doc__ or "")
        parts.append(f"### api.{name}\n\n```text\n{_signature(name, value)}\n```\n\n{_prose(text)}")
    return "\n\n".join(parts)


def requests(_: str) -> str:
    """Every verb: what it asks, its fields, and the record that answers."""
    parts = []
    for verb, request in VERBS.items():
        rows = []
        for f in fields(request):  # type: ignore[arg-type]
            name = str(f.metadata.get("alias") or f.name)
            kind = _type(get_type_hints(request)[f.name])
            default = "**required**" if f.default is MISSING else f"`{f.default!r}`"
            rows.append((f"`{name}`", kind, default, str(f.metadata.get("help", ""))))
        kinds = [k.__name__ for k in get_args(answer_type(VERBS[verb])) or (answer_type(VERBS[verb]),)]
        answer = " or ".join(f"[`{kind}`](records.md#{kind.lower()})" for kind in kinds)
        text = _prose(inspect.cleandoc(request.__doc__ or ""))
        columns = table(("field", "type", "default", "meaning"), rows)
        parts.append(f"## {verb}\n\n`{request.__name__}` → {answer}\n\n{text}\n\n{columns}")
    return "\n\n".join(parts)


def records(_: str) -> str:
    """Every record that an answer holds, by name, with its fields."""
    found: dict[str, Any] = {}
    for verb in VERBS:
        for kind in get_args(answer_type(VERBS[verb])) or (answer_type(VERBS[verb]),):
            _collect(kind, found)
    parts = []
    for name, record in found.items():
        rows = []
        for f in fields(record):
            kind = _type(get_type_hints(record)[f.name], found)
            rows.append((f"`{f.name}`", kind, "" if f.default is MISSING else f"`{f.default!r}`"))
        doc = record.__doc__ or ""
        text = "" if doc.startswith(f"{name}(") else _prose(inspect.cleandoc(doc))
        parts.append(f"## {name}\n\n{text}\n\n{table(('field', 'type', 'default'), rows)}")
    return "\n\n".join(parts)


def glossary(_: str) -> str:
    """The words of the field."""
    return table(("word", "meaning"), list(GLOSSARY.items()))


def paths(_: str) -> str:
    """The HTTP API: methods, paths, and what refusals mean."""
    document = openapi()
    rows = [
        (f"`{method.upper()} {path}`", operation["summary"])
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    refused: dict[str, str] = {}
    for methods in document["paths"].values():
        for operation in methods.values():
            refused |= {s: r["description"] for s, r in operation["responses"].items() if s != "200"}
    below = table(("status", "meaning"), sorted(refused.items()))
    return f"{table(('request', 'answers'), rows)}\n\n### Refusals\n\n{below}"


def tools(_: str) -> str:
    """The tools that agents see."""
    rows = [(f"`{verb}`", offered.title, " ".join(offered.use.split())) for verb, offered in TOOLS.items()]
    return table(("tool", "title", "when to use it"), rows)


def resources(_: str) -> str:
    """What agents can read."""
    rows = [(f"`{r.uri}`", r.description or "") for r in RESOURCES]
    rows += [(f"`{t.uri_template}`", t.description or "") for t in TEMPLATES]
    return table(("resource", "holds"), rows)


def targets(_: str) -> str:
    """The tools that launch files are written for, with the version whose options were read."""
    rows = []
    for name in TARGETS:
        tool = get_tool(name)
        rows.append((f"`{name}`", tool.name, tool.version, tool.source))
    return table(("--for", "tool", "version read", "source"), rows)


def _collect(kind: Any, found: dict[str, Any]) -> None:
    """The dataclasses that a type holds, in the order in which they are met."""
    if is_dataclass(kind) and isinstance(kind, type):
        if kind.__name__ in found:
            return
        found[kind.__name__] = kind
        for hint in get_type_hints(kind).values():
            _collect(hint, found)
    for part in get_args(kind):
        _collect(part, found)


def _type(kind: Any, linked: dict[str, Any] | None = None) -> str:
    """A type in words, records as links."""
    if kind is type(None):
        return "none"
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_type(p, linked) for p in parts)
    if origin is typing.Literal:
        return " or ".join(f"`{p}`" for p in parts)
    if origin is tuple and len(parts) == 2 and parts[1] is Ellipsis:
        return f"list of {_type(parts[0], linked)}"
    if origin is not None and parts:
        name = getattr(origin, "__name__", str(origin))
        word = {"dict": "map", "Mapping": "map"}.get(name, name)
        return f"{word} of {' to '.join(_type(p, linked) for p in parts)}"
    name = getattr(kind, "__name__", str(kind))
    if linked is not None and name in linked:
        return f"[{name}](#{name.lower()})"
    return {"str": "text", "float": "number", "int": "whole number", "bool": "yes or no"}.get(name, name)


def _signature(name: str, value: Any) -> str:
    """A signature, one parameter per line."""
    signature = inspect.signature(value)
    lines = []
    starred = False
    for p in signature.parameters.values():
        if p.kind is p.KEYWORD_ONLY and not starred:
            lines.append("    *,")
            starred = True
        kind = str(p.annotation).removeprefix("typing.")
        default = "" if p.default is p.empty else f" = {_default(p.default)}"
        lines.append(f"    {p.name}: {kind}{default},")
    return (
        "\n".join([f"{name}(", *lines, f") -> {signature.return_annotation}"])
        if lines
        else f"{name}() -> {signature.return_annotation}"
    )


def _default(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 40 and " at 0x" not in text else f"{type(value).__name__}()"


def _prose(text: str) -> str:
    """A docstring as Markdown: indented equations become blocks."""
    return re.sub(r"<(?=[a-zA-Z])", "&lt;", text)
