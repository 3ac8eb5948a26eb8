"""A question behind its answer: how a record carries it, and what can be done with it again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from chipwise import __version__
from chipwise.api.requests.field import fields_of
from chipwise.catalog.chips import family
from chipwise.catalog.files import output_file, writing
from chipwise.errors import UsageError, shorten
from chipwise.report.answer import Answer, Charts
from chipwise.report.launch.files import LaunchFiles
from chipwise.report.table import render
from chipwise.values import dataclass

if TYPE_CHECKING:
    from chipwise.api.requests.kinds import Request


PAGES = "chipwise.web.pages.sheet"
"""What writes an answer as a page, by name: it stands above this room, and needs what pages need."""


CHIPS = ("chip", "chips", "have", "with_", "cpu", "host")
"""Fields that name chips, alone, with a count, in a list or joined by a plus."""


def families(question: Request) -> tuple[str, ...]:
    """The names in a question that several chips share, each with the chip that it is taken for, as a sentence."""
    return families_in(*(text for name in CHIPS if isinstance(text := getattr(question, name, None), str)))


def families_in(*texts: str) -> tuple[str, ...]:
    """The same of names of chips in texts."""
    parts = (re.sub(r"^\d+\s*x\s*", "", part.strip()) for text in texts for part in re.split("[,+]", text))
    return tuple(str(found) for part in dict.fromkeys(parts) if part and (found := family(part)))


KINDS = ("json", "html", "csv")
"""Endings of files that an answer is saved in."""


@dataclass(frozen=True)
class Origin:
    """The question of an answer, which can be asked again with a record of all data that it reads."""

    verb: str
    question: Request

    def written(self) -> Mapping[str, Any]:
        """The question as a record carries it."""
        said = {"verb": self.verb, "request": fields_of(self.question), "chipwise": __version__}
        taken = families(self.question)
        return {**said, "taken": taken} if taken else said

    def charts(self, answer: Answer[Any]) -> Charts:
        """The pictures of the answer by name."""
        from chipwise.report.charts.kinds import charts_of  # 0.1 s, of answers that are drawn

        return charts_of(answer)

    def save(self, answer: Answer[Any], path: str) -> None:
        """Write the answer to a file: `.csv` its tables, `.html` its page, `.json` the record with all data it used.
        Raises `UsageError` for a name that ends otherwise."""
        from chipwise.api.saving import save

        kind = path.rpartition(".")[2].lower()
        if kind not in KINDS:
            what = f"{shorten(path)}: its ending says no format that an answer is saved in"
            raise UsageError(what, f"one of {', '.join(f'.{k}' for k in KINDS)}: report.save('plan.json')")
        if kind == "csv":
            output_file(path)
            with writing(path) as out:
                render(answer.tables(everything=True), answer, "csv", out)
        elif kind == "html":
            import_module(PAGES).write_sheet(self.verb, self.question, path)
        else:
            save(self.verb, self.question, path)

    def launch(self, target: str, plan: int) -> LaunchFiles:
        """The files that start a plan of it with a tool."""
        from chipwise.api.launching import started
        from chipwise.api.saving import answered

        files, _, words = started(answered(self.verb, self.question).saved, target, plan)
        return LaunchFiles(files, words)
