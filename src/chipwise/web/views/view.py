"""One view: a verb as a page, and the questions that lead to it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, field, fields
from dataclasses import MISSING as NO_DEFAULT
from typing import Any
from urllib.parse import urlencode

from chipwise import __version__
from chipwise.api.requests.doors import read_request
from chipwise.api.requests.verbs import VERBS
from chipwise.catalog.configs import INLINE
from chipwise.catalog.snapshot import today
from chipwise.report.answer import by_kind
from chipwise.report.charts.plans import OF_NETWORK, bars
from chipwise.report.charts.spec import Spec
from chipwise.report.charts.timeline import stage_timeline
from chipwise.report.media import MediaReport
from chipwise.report.records import PriceRecord
from chipwise.report.table import DASH, Table
from chipwise.values import dataclass
from chipwise.web.words import label_of, plainly

CHOOSE, INSIDE, EVIDENCE, CATALOGUE = GROUPS = (
    "Choose",
    "Look into one deployment",
    "Evidence and accuracy",
    "Catalogue",
)
"""Groups of the navigation, as the help of the command line has them."""
LONG = 120
"""Characters of a value that is not repeated under a picture."""
FIRST = 3
"""Chips that a glance compares."""
FEW = 4
"""Plans whose bars are read in five seconds."""
OF_REQUEST = ("cost", "time", "rate")
"""What is read so of models without tokens."""
MODEL = "meta-llama/Llama-3.1-70B"


@dataclass(frozen=True, slots=True)
class PageChart:
    """A figure of a page: `name` is its file when it is saved, `note` how to read it; `wide` takes the whole row.
    `variants` are the same with other figures, by the name on a switch, `spec` being the first."""

    name: str
    title: str
    spec: Spec
    note: str = ""
    wide: bool = False
    variants: Mapping[str, Spec] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class View:
    """How a verb is shown: what the form starts with, and what the template is filled with.

    `front` are the fields that are not folded away; `show` makes charts and lines from question and answer,
    `tables` what CSV holds (None: all tables of the answer). `tab` "" keeps it out of the navigation, where it
    stands under `group`.
    """

    verb: str
    tab: str
    title: str
    lead: str
    front: tuple[str, ...]
    example: Mapping[str, str] = field(default_factory=dict)
    show: Callable[[Any, Any], dict[str, Any]] = lambda question, report: {}
    template: str = "charts.html"
    tables: Callable[[Any], Sequence[Table]] | None = None
    group: str = CHOOSE

    def filled(self, question: Any, record: Any) -> dict[str, Any]:
        """What the template takes of an answer: its verdict and tables, and what `show` says besides or instead; one
        about a network without tokens has no more than those."""
        common: dict[str, Any] = {
            "asked": asked_of(question),
            "tab": self.tab or self.title,
            "short": short_of(question),
            "usual": self._usual(question),
            "pin": pin_of(record),
            "made": f"{today()} · chipwise {__version__}",
            "top": _top(record),
            "charts": (),
            "badges": (),
            "tables": [plainly(table) for table in record.tables(everything=True)],
        }
        if said := record.verdict():
            common["verdict"] = said
        alike = by_kind(ALIKE, record)
        if alike is not None:
            return {**common, "template": "charts.html", **alike(record)}
        return {**common, "template": self.template, **self.show(question, record)}

    def _usual(self, question: Any) -> bool:
        """Whether it is the question that the page opens with, which nobody asked."""
        return bool(self.example) and named(question) == named(read_request(self.verb, dict(self.example)))

    def rows(self, record: Any) -> Sequence[Table]:
        """What CSV holds of an answer."""
        if self.tables is None or by_kind(ALIKE, record) is not None:
            return record.tables(everything=True)  # type: ignore[no-any-return]
        return self.tables(record)

    @property
    def request(self) -> type:
        """The class of its question."""
        return VERBS[self.verb]


def asked_of(question: Any) -> str:
    """The question in words, for what leaves the page: `model NAME, rate 10/s`."""
    return ", ".join(f"{name} {value}" for name, value in given_of(question).items())


def given_of(question: Any) -> dict[str, str]:
    """The fields of a question as they are repeated, what it is about first; long ones only as given."""
    said = {n: str(v) for n, v in named(question).items()}
    said = {n: "as given" if v.lstrip().startswith(INLINE) or len(v) > LONG else v for n, v in said.items()}
    return dict(sorted(said.items(), key=lambda one: one[0] not in ("model", "op")))


def short_of(question: Any) -> str:
    """The question in few words and in those of the form, for lists of questions: `Llama-3.1-70B, 10/s, TTFT target
    1s`."""
    said = []
    for name, value in given_of(question).items():
        bare = value.rpartition("/")[2] if name == "model" else value.replace(",", ", ")
        said.append(bare if name in PLAIN else f"{label_of(name)} {bare}")
    return ", ".join(said)


PLAIN = ("model", "rate", "have", "text", "chip", "chips", "op", "search", "result")
"""Fields whose values need no name beside them."""
TITLE = 90
"""Characters of a headline in a list."""
PINNED = 9
"""Figures that are kept of a pinned answer."""


def pin_of(record: Any) -> dict[str, Any]:
    """The headline of an answer and the figures of its first line as a browser keeps them, to be held against a later
    answer to the same question; empty where it has none."""
    tables = [table for table in record.tables(everything=True) if table.rows]
    if not tables:
        return {}
    columns, lines = tables[0].columns, tables[0].rows
    if columns[0] == "figure":
        first = {line[0]: line[1] for line in lines}
    else:
        first = dict(zip(columns, lines[0], strict=True))
    first.pop("#", None)
    rows = getattr(record, "plans", None) or ()
    price = getattr(rows[0], "price", None) if rows else None
    dated = {"price of": price.date} if price is not None and price.date else {}
    shown = {name: text for name, text in first.items() if text != DASH}
    return {
        "title": _headline(record),
        "figures": dict(list(shown.items())[:PINNED]) | dated,
        "day": str(today()),
        "version": __version__,
    }


def _headline(record: Any) -> str:
    """The first sentence of an answer without brackets and ages, cut after a word; "" where it says none."""
    judged = getattr(record, "statements", None) or ()
    said = record.verdict() or tuple(s.sentence for s in judged[:1])
    words = re.sub(r" (\([^()]*\)|\[[^][]*\])|, price of .*", "", said[0].split(". ")[0] if said else "")
    if len(words) <= TITLE:
        return words.rstrip(".")
    return words[:TITLE].rpartition(" ")[0].rstrip(",:;") + " …"


def _top(record: Any) -> str:
    """The chips of the first rows of an answer, which a glance compares again."""
    rows = getattr(record, "plans", None) or getattr(record, "fits", None) or ()
    return ",".join(list(dict.fromkeys(row.chip for row in rows if "+" not in row.chip))[:FIRST])


def _generated(report: MediaReport) -> dict[str, Any]:
    """What is shown of a model without tokens."""
    timed = [p for p in report.plans if p.stages]
    note = "Each part of the model in the order in which it runs, on the first plan."
    charts = [PageChart("timeline", "Timeline of one request", stage_timeline(timed[0]), note)] if timed else []
    first = report.plans[0] if report.plans else None
    few = report.plans[:FEW] if len(report.plans) > 1 else ()
    glance = [
        PageChart(f"first-{n}", OF_NETWORK[n][0], bars(few, n, OF_NETWORK))
        for n in OF_REQUEST
        if any(map(OF_NETWORK[n][2], few))
    ]
    said = report.verdict()
    # which hardware stands large, an API below
    large = next((i for i, words in enumerate(said) if first and f"{first.machines} " in words), 0)
    badges = [(first.latency_s.basis, first.latency_s.basis), price_badge(first.price)] if first else []
    return {
        "charts": charts,
        "glance": glance,
        "verdict": (*said[large : large + 1], *said[:large], *said[large + 1 :]),
        "badges": [b for b in badges if b[0]],
    }


ALIKE: Mapping[type, Callable[[Any], dict[str, Any]]] = {MediaReport: _generated}
"""Answers that every page shows alike, whatever verb gave them."""


def price_badge(price: PriceRecord | None) -> tuple[str, str]:
    """How old a price is, as a badge; empty where none is dated."""
    if price is None or not price.date:
        return "", ""
    return f"price of {price.date}", "weak" if price.stale else ""


def link(verb: str, values: Mapping[str, Any]) -> str:
    """The address of a view with a question; fields that the verb does not have are left out."""
    known = {
        str(f.metadata.get("alias") or f.name)
        for f in VERBS[verb].__dataclass_fields__.values()  # type: ignore[attr-defined]
    }
    return f"/{verb}?{query_of({name: value for name, value in values.items() if name in known})}"


def given(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """What was filled in: fields without blanks; of several values of one name the last."""
    return {name: value.strip() for name, value in pairs if value.strip()}


def named(request: Any) -> dict[str, Any]:
    """The fields of a question that differ from their defaults, by the names that doors use."""
    found: dict[str, Any] = {}
    for f in fields(request):
        value = getattr(request, f.name)
        required = f.default in (MISSING, NO_DEFAULT)
        if value is not None and (required or value != f.default):
            found[str(f.metadata.get("alias") or f.name)] = value
    return found


def query_of(values: Mapping[str, Any]) -> str:
    """Fields as the query of an address, in an order that does not depend on how they came."""

    known = sorted((name, value) for name, value in values.items() if value is not None)
    return urlencode([(name, query_text(value)) for name, value in known])


def query_text(value: Any) -> str:
    """A value as it stands in an address."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.10g}" if isinstance(value, float) else str(value)
