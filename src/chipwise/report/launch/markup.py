"""YAML and Terraform's language, as far as launch files need them; only known names are written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from chipwise.catalog.tools import Tool
from chipwise.report.launch.command import terminator

Yaml = Mapping[str, "Yaml"] | Sequence["Yaml"] | str | int | float | bool


class Raw(str):
    """An expression that stands as it is."""


class Own(dict[str, Yaml]):
    """A mapping whose names are the user's own, not a tool's."""


class Heredoc(str):
    """A text of several lines."""


def hcl(blocks: Iterable[tuple[str, Mapping[str, object]]], tool: Tool) -> str:
    """Blocks by their heads. Raises `KeyError` for a name that is not documented."""
    return "\n".join(f"{head} {{\n{_body(body, tool, 1)}}}\n" if body else f"{head} {{}}\n" for head, body in blocks)


def _body(body: Mapping[str, object], tool: Tool, depth: int) -> str:
    lead, text = "  " * depth, ""
    for name, value in body.items():
        _known(name, tool)
        if isinstance(value, Mapping):
            text += f"{lead}{name} {{\n{_body(value, tool, depth + 1)}{lead}}}\n"
        elif isinstance(value, Heredoc):
            plain = _inert(value)
            end = terminator("START", plain)
            text += f"{lead}{name} = <<-{end}\n{plain}\n{end}\n"
        else:
            text += f"{lead}{name} = {value if isinstance(value, Raw) else _inert(json.dumps(value))}\n"
    return text


def _inert(text: str) -> str:
    """A text in which Terraform expands nothing: a dollar or percent sign with a brace is its own, unless it is
    doubled; of several signs the text is an expression."""

    def kept(found: re.Match[str]) -> str:
        signs = found[1]
        return f"{signs * 2}{{" if len(signs) == 1 else f'${{"{signs}"}}{{'

    return re.sub(r"(\$+|%+)\{", kept, text)


def yaml(node: Yaml, tool: Tool, depth: int = 0) -> str:
    """Mappings, lists, numbers and texts. Raises `KeyError` for a name that is not documented."""
    lead, text = "  " * depth, ""
    if isinstance(node, Mapping):
        for name, value in node.items():
            if not isinstance(node, Own):
                _known(name, tool)
            text += f"{lead}{name}:{_value(value, tool, depth + 1)}"
    elif isinstance(node, Sequence) and not isinstance(node, str):
        for value in node:
            inner = _value(value, tool, depth + 1)
            text += f"{lead}-" + (f" {inner.lstrip()}" if isinstance(value, Mapping) else inner)
    return text


def _value(value: Yaml, tool: Tool, depth: int) -> str:
    if isinstance(value, str):
        if "\n" in value:
            lead = "  " * depth
            return " |\n" + "".join(f"{lead}{line}\n" for line in value.splitlines())
        return f" {json.dumps(value)}\n"
    if isinstance(value, bool | int | float):
        return f" {_number(value)}\n"
    return "\n" + yaml(value, tool, depth)


def _number(value: float) -> str:
    """A number as YAML 1.1 reads it: 1e-05 has no point and would be a text."""
    return re.sub(r"^(-?\d+)e", r"\1.0e", json.dumps(value))


def documented(node: object, tool: Tool) -> None:
    """Raises `KeyError` for a name in a document that the tool does not document."""
    if isinstance(node, Mapping):
        for name, value in node.items():
            _known(str(name), tool)
            documented(value, tool)


def _known(name: str, tool: Tool) -> None:
    if name not in tool.options:
        raise KeyError(f"{name} is no documented option of {tool.name} {tool.version}")
