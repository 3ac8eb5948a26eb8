"""A command of a tool, which can only use options that the tool documents."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import field, replace

from chipwise.catalog.snapshot import shipped_text
from chipwise.catalog.tools import Tool, get_tool
from chipwise.errors import shorten
from chipwise.report.launch.spec import Launched, LaunchPasses
from chipwise.values import dataclass

GIVEN = ("NODE_RANK", "HEAD_ADDRESS")
# what a shell reads as text whatever it holds, and (in a group) a variable that must be set
TOKENS = re.compile(r"""'[^']*'|"'"|\$\{(\w+):\?""")


@dataclass(frozen=True, slots=True)
class Env:
    """A variable of the environment, the only thing in a command that the shell expands: the script stops where it is
    not set and says what is `needed`. `then` is text behind its value (a port); `times` multiplies it.

    Raises `ValueError` for anything but plain words in it.
    """

    name: str
    needed: str = ""
    then: str = ""
    times: int = 0

    def __post_init__(self) -> None:
        plain = re.fullmatch(r"[A-Z_]+", self.name) and re.fullmatch(r"[\w :/.]*", self.needed + self.then)
        if not plain or type(self.times) is not int:
            raise ValueError(f"{self} is not the name of a variable")

    def __str__(self) -> str:
        if self.times:
            return f'"$(({self.name} * {self.times}))"'
        return f'"${{{self.name}:?{self.needed}}}{self.then}"'


@dataclass(frozen=True)
class Command:
    """`program` with options of a tool, in order."""

    tool: Tool
    program: str
    parts: tuple[str, ...] = field(default=())

    @staticmethod
    def of(tool: str, program: str, *arguments: object) -> Command:
        """A command of a tool by id: `program` as the shell reads it, then arguments that stand for themselves."""
        return Command(get_tool(tool), " ".join((program, *map(_word, arguments))))

    def option(self, name: str, *values: object, when: bool = True) -> Command:
        """The command with an option more, with its values; a flag has none (nor has None). Raises `KeyError`
        for one that the table of documented options does not hold."""
        if not when:
            return self
        self._documented(name)
        text = " ".join((name, *(_word(value) for value in values if value is not None)))
        return replace(self, parts=(*self.parts, text))

    def positional(self, *values: object) -> Command:
        """The command with words that are no options."""
        return replace(self, parts=(*self.parts, " ".join(map(_word, values))))

    def on_others(self, name: str) -> Command:
        """The command with a flag that all hosts but the first are given."""
        self._documented(name)
        return replace(self, parts=(*self.parts, f'$([ "$NODE_RANK" = 0 ] || echo {name})'))

    def setting(self, name: str, value: object, *, when: bool = True) -> Command:
        """The same for tools that take NAME=VALUE."""
        if not when:
            return self
        self._documented(name)
        return replace(self, parts=(*self.parts, f"{name}={_word(value)}"))

    def _documented(self, name: str) -> None:
        if name not in self.tool.options:
            raise KeyError(f"{name} is no documented option of {self.tool.name} {self.tool.version}")

    @property
    def words(self) -> tuple[str, ...]:
        """Program and options, one string for each line."""
        return (self.program, *self.parts)

    def __str__(self) -> str:
        return " \\\n  ".join(self.words)


def _word(value: object) -> str:
    """One word of a command: variables are expanded, everything else stands for itself."""
    return str(value) if isinstance(value, Env) else shlex.quote(str(value))


def asked_for(command: str) -> tuple[str, ...]:
    """The variables that a command must be given, rank and address of a host aside. What is quoted names none."""
    found = dict.fromkeys(m[1] for m in TOKENS.finditer(command) if m[1])
    return tuple(name for name in found if name not in GIVEN)


def here_document(file: str, text: str) -> str:
    """The command that writes a text of whole lines to a file, whatever it holds."""
    end = terminator("END", text)
    return f"cat > {shlex.quote(file)} <<'{end}'\n{text}{end}\n"


def terminator(word: str, text: str) -> str:
    """`word`, made longer until no line of a text is it."""
    lines = {line.strip() for line in text.splitlines()}
    while word in lines:
        word += "_"
    return word


def log_check(tool: Tool, passes: LaunchPasses, *, steps: int, warm: int) -> str:
    """The program that reads the time of a step off a tool's log, verify.log, and holds it against the prediction: of
    so many steps that ran the first are `warm`."""
    pattern, unit = tool.logged
    plan = {
        "pattern": pattern,
        "unit": unit,
        "warm": 0 if unit == "run" else warm,
        "steps": steps,
        "step_s": passes.step_s,
        "interval": passes.interval,
    }
    program = shipped_text("report/launch/data/check.txt").replace("@PLAN@", repr(plan), 1)
    end = terminator("CHECK", program)
    return f"python - verify.log <<'{end}'\n{program}{end}"


def comment(spec: Launched, tool: Tool, notes: Iterable[str] = ()) -> str:
    """What a file launches, what is predicted, of which version its options are, and what the user must know."""
    lines = (spec.title, *spec.expected, f"options of {tool.name} {tool.version}", *notes)
    return "".join(map(comment_line, lines))


def comment_line(text: str) -> str:
    """A line of a script that is text."""
    return f"# {shorten(text, 300)}\n"


def script(spec: Launched, tool: Tool, *commands: object, notes: Iterable[str] = ()) -> str:
    """A shell script of commands."""
    body = "\n\n".join(str(c) for c in commands)
    return f"#!/usr/bin/env bash\n{comment(spec, tool, notes)}set -euo pipefail\n\n{body}\n"
