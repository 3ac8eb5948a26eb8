"""What a command did, for the tests that run commands."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from chipwise.report.terminal import width_of


@dataclass(frozen=True)
class Ran:
    """Exit code and output of a command; `told` is stderr as it stands there."""

    code: int
    out: str
    told: str

    @property
    def err(self) -> str:
        """stderr with messages that are broken over lines as one line each."""
        return self.told.replace("\n  ", " ")

    @property
    def json(self) -> Any:
        """stdout as strict JSON, without the question that an answer carries."""

        def refuse(word: str) -> None:
            raise AssertionError(f"{word} is no JSON")

        found = json.loads(self.out, parse_constant=refuse)
        return {n: v for n, v in found.items() if n != "question"} if isinstance(found, dict) else found

    @property
    def next(self) -> list[str]:
        """The words of the command that a table ends with, which may be broken over lines as a shell takes it."""
        said = self.out.replace(" \\\n", " ").partition("\nnext: chipwise ")[2]
        return shlex.split(said.partition("\n")[0])

    def refused(self, code: int) -> str:
        """The one line on stderr of a command that was refused, with nothing on stdout."""
        assert (self.code, self.out) == (code, ""), self.err
        return self.one_line()

    def one_line(self) -> str:
        """stderr, which must be one printable message of bearable length, broken at spaces where it is wider than a
        table."""
        assert all(len(line) <= width_of() or " " not in line.strip() for line in self.told.splitlines())
        assert self.err.startswith("chipwise: ")
        assert self.err.endswith("\n")
        assert self.err[:-1].isprintable()
        assert len(self.err) < 1100
        return self.err


Run = Callable[..., Ran]
