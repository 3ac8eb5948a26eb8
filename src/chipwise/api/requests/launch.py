"""launch, replay, diff: what one can ask of an answer that was kept, wherever it was kept."""

from __future__ import annotations

import json
from dataclasses import MISSING, dataclass
from typing import Any

from chipwise.api.requests.field import OBJECT, WORDS, Asked, Reading, ask
from chipwise.errors import UsageError
from chipwise.report.diff import DiffReport, ReplayReport
from chipwise.report.launch.spec import LaunchReport

MOST_CHARS = 4_000_000
"""Characters of a record that is given as text."""


def _record(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _short_enough(text: str, option: str) -> str:
    if len(text) > MOST_CHARS:
        raise UsageError(f"{option}: {len(text):,} characters are no record", f"at most {MOST_CHARS:,}")
    return text


RECORD = Reading(_short_enough, _record, (OBJECT,), names=False)
"""The JSON of an answer that was kept."""
SAVED = "the JSON of an answer: what --save or --format json wrote, a page exported, or HTTP answered"


@dataclass(frozen=True, kw_only=True)
class LaunchRequest(Asked):
    """The files that start a plan of an answer with a tool, and the benchmark that verifies its estimate."""

    saved: str = ask(SAVED, MISSING, reading=RECORD)
    for_: str = ask(
        "the tool, e.g. vllm, sglang, trtllm, llama.cpp, megatron, torchtitan, maxtext, trl, torchrun, skypilot, "
        "kubernetes or terraform; an unknown one is answered with all",
        MISSING,
        name="for",
        reading=WORDS,
    )
    plan: int = ask("which plan of the answer, by its number", 1)

    def run(self) -> LaunchReport:
        """The files. Raises `UsageError` for text that is no answer with such a plan, or a tool that cannot start
        it."""
        from chipwise.api.launching import started
        from chipwise.api.saving import saved_of

        files, plan, words = started(saved_of(self.saved, "saved"), self.for_, self.plan)
        return LaunchReport(self.for_, plan, files, words)


@dataclass(frozen=True, kw_only=True)
class ReplayRequest(Asked):
    """Ask the question of a kept answer again of what is installed: the same to nine digits, or what differs."""

    saved: str = ask(SAVED, MISSING, reading=RECORD)

    def run(self) -> ReplayReport:
        """The comparison. Raises `UsageError` for text that is no answer, and the errors of its verb."""
        from chipwise.api.saving import kept_of, replayed

        return replayed(kept_of(self.saved, "saved"), "saved")


@dataclass(frozen=True, kw_only=True)
class DiffRequest(Asked):
    """What changed between two answers of one verb and why: the question, or what was installed."""

    before: str = ask(SAVED, MISSING, reading=RECORD)
    after: str = ask("the other one", MISSING, reading=RECORD)

    def run(self) -> DiffReport:
        """The changes by cause. Raises `UsageError` for texts that are no answers of one verb."""
        from chipwise.api.saving import differing, kept_of

        return differing(kept_of(self.before, "before"), kept_of(self.after, "after"), "before", "after")
