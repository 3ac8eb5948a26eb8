"""What agents can read besides the tools: words, accuracy by suite, chips, fields of a tool, and whole answers; and
what people ask agents for, as prompts that a client offers: each names the calls that answer it."""

from __future__ import annotations

import io
import json
import re
import secrets
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any
from urllib.parse import unquote

from mcp.types import (
    GetPromptResult,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
)

from chipwise.catalog.chips import get_chip, load_chips
from chipwise.catalog.parsed import names
from chipwise.catalog.statements import load_statements
from chipwise.errors import UnknownNameError, UsageError, check_known
from chipwise.report.catalogue import chip_view
from chipwise.report.glossary import GLOSSARY
from chipwise.report.table import render
from chipwise.values import dataclass

MARKDOWN = "text/markdown"
JSON = "application/json"
SHEET = re.compile(r"chipwise://chips/([^/?#]+)")
SUITE = re.compile(r"chipwise://accuracy/([^/?#]+)")
FIELDS = re.compile(r"chipwise://fields/([^/?#]+)")
ANSWER = re.compile(r"chipwise://answers/([0-9a-f]{16})(?:/(\w+)(?:/(\d+))?)?")
MOST_CHARS = 7_600
"""Characters of a part of an answer."""
SUITE_CHARS = 4_000
"""Characters of the accuracy of a suite."""

RESOURCES = (
    Resource(
        uri="chipwise://glossary",
        name="glossary",
        title="Words of the field",
        description="What chipwise means by chip, plan, layout, basis, TTFT, TPOT and the rest.",
        mime_type=MARKDOWN,
    ),
    Resource(
        uri="chipwise://accuracy",
        name="accuracy",
        title="Accuracy",
        description="What readers care about, on one page: errors on measurements that no fit had seen.",
        mime_type=MARKDOWN,
    ),
)

TEMPLATES = (
    ResourceTemplate(
        uri_template="chipwise://chips/{id}",
        name="chip",
        title="Sheet of a chip",
        description="Every figure of a chip with its grade, source and date. Ids: the tool chips.",
        mime_type=MARKDOWN,
    ),
    ResourceTemplate(
        uri_template="chipwise://accuracy/{suite}",
        name="accuracy of a suite",
        title="Accuracy of a suite",
        description="The section of the accuracy report with that heading.",
        mime_type=MARKDOWN,
    ),
    ResourceTemplate(
        uri_template="chipwise://fields/{verb}",
        name="fields",
        title="All fields of a tool",
        description="Every field of a tool with type, default and meaning.",
        mime_type=JSON,
    ),
    ResourceTemplate(
        uri_template="chipwise://answers/{id}/{part}/{number}",
        name="answer",
        title="Whole answer",
        description="A part of an earlier answer in full, e.g. plans/1; without part what there is.",
        mime_type=JSON,
    ),
)


class KeptAnswers:
    """The last answers of a server in full, under names that nobody can guess."""

    MOST = 32

    def __init__(self) -> None:
        self._answers: OrderedDict[str, dict[str, Any]] = OrderedDict()

    def keep(self, answer: dict[str, Any]) -> str:
        """The address of an answer from now on, until `MOST` newer ones were kept."""
        name = secrets.token_hex(8)
        self._answers[name] = answer
        while len(self._answers) > self.MOST:
            self._answers.popitem(last=False)
        return f"chipwise://answers/{name}"

    def record(self, uri: str) -> dict[str, Any] | None:
        """The record of an address, None for any other text."""
        found = ANSWER.fullmatch(uri)
        return self._answers.get(found.group(1)) if found else None

    def read(self, uri: str) -> str:
        """What an address holds as JSON: the parts of an answer, one of its parts, one line of it, or its question.

        Raises `KeyError` for an address that holds nothing.
        """
        found = ANSWER.fullmatch(uri)
        if found is None:
            raise KeyError(uri)
        name, part, number = found.groups()
        answer = self._answers[name]
        if part is None:
            return _written({n: len(v) if isinstance(v, list) else _size(v) for n, v in answer.items()})
        if part == "record":
            return _written({"question": answer["question"]})
        whole = answer[part]
        if number is not None:
            if not isinstance(whole, list) or not 1 <= int(number) <= len(whole):
                raise KeyError(uri)
            whole = whole[int(number) - 1]
        return _written(whole)

    def why(self, uri: str) -> str:
        """Why the address of an answer holds nothing, "" for any other address."""
        found = ANSWER.fullmatch(uri)
        if found is None:
            return ""
        name, part, _ = found.groups()
        answer = self._answers.get(name)
        if answer is None:
            return f"unknown answer {uri}: it is no longer kept, ask the question again"
        if part not in answer:
            return f"unknown part '{part}' of this answer: it has {', '.join(answer)} and record"
        lines = answer[part]
        most = f"1 to {len(lines)}" if isinstance(lines, list) and lines else "no numbers"
        return f"unknown number of {part}: it has {most}"


def _written(value: Any) -> str:
    text = json.dumps(_rounded(value), ensure_ascii=False, separators=(",", ":"))
    return text if len(text) <= MOST_CHARS else json.dumps({"cut_after": MOST_CHARS, "text": text[: MOST_CHARS - 200]})


def _size(value: Any) -> str:
    return "one value" if isinstance(value, str | int | float | None) else f"{len(value)} parts"


def _rounded(value: Any) -> Any:
    """Numbers with four digits, and nothing that says nothing."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {n: _rounded(v) for n, v in value.items() if v not in (None, [], {}, "")}
    return [_rounded(v) for v in value] if isinstance(value, list) else value


def completed(name: str, begun: str) -> Sequence[str]:
    """Names that a client may have begun to write: chips, models, suites of the accuracy report, tools."""
    from chipwise.api.requests.verbs import VERBS
    from chipwise.catalog.configs import bundled_configs

    tables: dict[str, Sequence[str]] = {
        "id": tuple(load_chips()),
        "chip": tuple(load_chips()),
        "chips": tuple(load_chips()),
        "have": tuple(load_chips()),
        "claim": tuple(s.text for s in load_statements().values()),
        "text": tuple(s.text for s in load_statements().values()),
        "model": tuple(bundled_configs()),
        "suite": tuple(_sections()),
        "verb": tuple(VERBS),
    }
    before, last = ("", begun)
    if name in ("chip", "chips", "have"):  # a list, of which the last name is being written, and a count before it
        before, last = re.fullmatch(r"((?:.*,)?\s*(?:\d+\s*x\s*)?)(.*)", begun, re.DOTALL).groups()  # type: ignore[union-attr]
    words = re.findall(r"[a-z0-9.]+", last.lower())
    found = [n for n in tables.get(name, ()) if all(word in n.lower() for word in words)]
    start = "".join(words)
    begins = sorted(found, key=lambda n: (not re.sub(r"[^a-z0-9.]+", "", n.lower()).startswith(start), n.lower()))
    return [f"{before}{n}" for n in begins]


def read(uri: str, kept: KeptAnswers | None = None) -> ReadResourceResult:
    """A resource, as Markdown or JSON; `kept` are the answers of the server.

    Raises `UnknownNameError` for a chip, a tool or a suite that does not exist, `KeyError` for any other address.
    """
    kind = MARKDOWN
    if (sheet := SHEET.fullmatch(uri)) is not None:
        text = _sheet(unquote(sheet.group(1)))
    elif (suite := SUITE.fullmatch(uri)) is not None:
        text = _section(unquote(suite.group(1)))
    elif (fields := FIELDS.fullmatch(uri)) is not None:
        kind, text = JSON, _fields(fields.group(1))
    elif kept is not None and ANSWER.fullmatch(uri):
        kind, text = JSON, kept.read(uri)
    else:
        text = {"chipwise://glossary": _glossary, "chipwise://accuracy": _accuracy}[uri]()
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=kind, text=text)])


def _fields(verb: str) -> str:
    from chipwise.mcp.tools import TOOLS, fields_of

    check_known("tool", (verb,), TOOLS)
    return json.dumps(fields_of(verb), ensure_ascii=False, separators=(",", ":"))


def _glossary() -> str:
    return "\n".join(("# Glossary", "", *(f"- **{word}**: {meaning}" for word, meaning in GLOSSARY.items()))) + "\n"


def _accuracy() -> str:
    """The first page of the accuracy report, and where the rest is."""
    rest = ", ".join(f"chipwise://accuracy/{name}" for name in _sections())
    page = _accuracy_page()
    first = page[: page.index("\n## ", page.index("\n## ") + 1)] if page.count("\n## ") > 1 else page
    return f"{first[: MOST_CHARS - len(rest) - 20]}\n\nBy suite: {rest}\n"


def _accuracy_page() -> str:
    return files("chipwise.report").joinpath("data", "accuracy.md").read_text("utf-8")


def _sections() -> dict[str, str]:
    """The sections of the accuracy report, each short enough, by their heading as a word."""
    found = {}
    for section in _accuracy_page().split("\n## ")[1:]:
        name = "-".join(re.findall(r"[a-z0-9]+", section.partition("\n")[0].lower()))
        found[name] = f"## {section}"[:SUITE_CHARS]
    return found


def _section(name: str) -> str:
    sections = _sections()
    check_known("suite", (name,), sections)
    return sections[name]


def _sheet(name: str) -> str:
    chip = load_chips()[get_chip(name).id]
    out = io.StringIO()
    render((chip_view(chip),), chip, "md", out)
    return out.getvalue()


LONGEST = 400
"""Characters of an argument."""


@dataclass(frozen=True, slots=True)
class PromptField:
    """A prompt: its title, what it is for, its arguments (name, meaning, what stands for it if it is left out; None: it
    is needed), and the text."""

    title: str
    use: str
    arguments: tuple[tuple[str, str, str | None], ...]
    text: str


PROMPTS: Mapping[str, PromptField] = {
    name: PromptField(said["title"], said["use"], tuple((*a, None)[:3] for a in said["arguments"]), said["text"])
    for name, said in names("mcp/data/prompts.toml").items()
}


def listed_prompts() -> list[Prompt]:
    """The prompts as the protocol lists them."""
    return [
        Prompt(
            name=name,
            title=asking.title,
            description=asking.use,
            arguments=[
                PromptArgument(name=a, description=said, required=default is None)
                for a, said, default in asking.arguments
            ],
        )
        for name, asking in PROMPTS.items()
    ]


def prompted(name: str, given: Mapping[str, str]) -> GetPromptResult:
    """A prompt with its arguments. Raises `UnknownNameError` for another name, `UsageError` for an argument that is
    missing, unknown or too long."""
    check_known("prompt", (name,), PROMPTS)
    asking = PROMPTS[name]
    known = {a: default for a, _, default in asking.arguments}
    for argument, value in given.items():
        if argument not in known:
            raise UnknownNameError(f"argument of {name}", argument, known, f"it has {', '.join(known)}")
        if len(value) > LONGEST:
            raise UsageError(f"{argument}: {len(value):,} characters", f"at most {LONGEST}", field=argument)
    missing = [a for a, default in known.items() if default is None and not given.get(a)]
    if missing:
        raise UsageError(f"{name} needs '{missing[0]}'", field=missing[0])
    text = asking.text.format(**{a: " ".join((given.get(a) or default or "").split()) for a, default in known.items()})
    message = PromptMessage(role="user", content=TextContent(type="text", text=text))
    return GetPromptResult(description=asking.use, messages=[message])
