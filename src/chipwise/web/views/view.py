"""One view: a verb as a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from chipwise.api.requests.verbs import VERBS
from chipwise.report.charts.spec import Spec
from chipwise.report.media import MediaReport
from chipwise.report.table import Table
from chipwise.report.tables import tables
from chipwise.web.views.query import query_of

__all__ = ["MODEL", "Chart", "View", "link"]

NETWORK = "charts.html"
EVERYTHING = partial(tables, everything=True)
MODEL = "meta-llama/Llama-3.1-70B"


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure of a page: `name` is its file when it is saved, `note` how to read it; `wide` takes the whole row."""

    name: str
    title: str
    spec: Spec
    note: str = ""
    wide: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """How a verb is shown: what the form starts with, and what the template is filled with.

    `front` are the fields that are not folded away; `show` makes charts and lines from question and answer,
    `tables` what CSV holds. `tab` "" keeps it out of the navigation.
    """

    verb: str
    tab: str
    title: str
    lead: str
    example: Mapping[str, str]
    front: tuple[str, ...]
    show: Callable[[Any, Any], dict[str, Any]]
    template: str
    tables: Callable[[Any], Sequence[Table]] = EVERYTHING

    def filled(self, question: Any, record: Any) -> dict[str, Any]:
        """What the template takes of an answer; one about a network without tokens is its tables."""
        if isinstance(record, MediaReport):
            shown = tables(record, everything=True)
            return {"charts": [], "tables": shown, "template": NETWORK}
        return {"template": self.template, **self.show(question, record)}

    @property
    def request(self) -> type:
        """The class of its question."""
        return VERBS[self.verb]


def link(verb: str, values: Mapping[str, Any]) -> str:
    """The address of a view with a question; fields that the verb does not have are left out."""
    known = {
        str(f.metadata.get("alias") or f.name)
        for f in VERBS[verb].__dataclass_fields__.values()  # type: ignore[attr-defined]
    }
    return f"/{verb}?{query_of({name: value for name, value in values.items() if name in known})}"
