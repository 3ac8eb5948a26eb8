"""A command of a tool, which can only use options that the tool documents."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from chipwise.catalog.tools import Tool, get_tool
from chipwise.errors import shorten
from chipwise.report.launch.spec import Spec

__all__ = ["Command", "asked_for", "comment", "script"]

GIVEN = ("NODE_RANK", "HEAD_ADDRESS")


@dataclass(frozen=True)
class Command:
    """`program` with options of a tool, in order."""

    tool: Tool
    program: str
    parts: tuple[str, ...] = field(default=())

    @staticmethod
    def of(tool: str, program: str) -> Command:
        """A command of a tool by id."""
        return Command(get_tool(tool), program)

    def option(self, name: str, value: object = None, *, when: bool = True) -> Command:
        """The command with an option more; a flag has no value. Raises `KeyError` for one that the table of
        documented options does not hold."""
        if not when:
            return self
        self._documented(name)
        text = name if value is None else f"{name} {value if _plain(value) else shlex.quote(str(value))}"
        return replace(self, parts=(*self.parts, text))

    def on_others(self, name: str) -> Command:
        """The command with a flag that all hosts but the first are given."""
        self._documented(name)
        return replace(self, parts=(*self.parts, f'$([ "$NODE_RANK" = 0 ] || echo {name})'))

    def setting(self, name: str, value: object, *, when: bool = True) -> Command:
        """The same for tools that take NAME=VALUE."""
        if not when:
            return self
        self._documented(name)
        return replace(self, parts=(*self.parts, f"{name}={value}"))

    def _documented(self, name: str) -> None:
        if name not in self.tool.options:
            raise KeyError(f"{name} is no documented option of {self.tool.name} {self.tool.version}")

    @property
    def words(self) -> tuple[str, ...]:
        """Program and options, one string for each line."""
        return (self.program, *self.parts)

    def __str__(self) -> str:
        return " \\\n  ".join(self.words)


def _plain(value: object) -> bool:
    """Numbers, and references to variables of the shell, which must not be quoted."""
    return isinstance(value, int | float) or str(value).startswith('"$')


def asked_for(command: str) -> tuple[str, ...]:
    """The variables that a command must be given, rank and address of a host aside."""
    found = dict.fromkeys(re.findall(r"\$\{(\w+):\?", command))
    return tuple(name for name in found if name not in GIVEN)


def comment(spec: Spec, tool: Tool, notes: Iterable[str] = ()) -> str:
    """What a file launches, what is predicted, of which version its options are, and what the user must know."""
    lines = (spec.title, *spec.expected, f"options of {tool.name} {tool.version}", *notes)
    return "\n".join(f"# {shorten(line, 300)}" for line in lines) + "\n"


def script(spec: Spec, tool: Tool, *commands: object, notes: Iterable[str] = ()) -> str:
    """A shell script of commands."""
    body = "\n\n".join(str(c) for c in commands)
    return f"#!/usr/bin/env bash\n{comment(spec, tool, notes)}set -euo pipefail\n\n{body}\n"
