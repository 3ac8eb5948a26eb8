"""Pages: where generated parts stand in hand-written Markdown, and bringing them up to date.

Generated are the output in `console` blocks, the `text` block right behind a `python` block, and what stands
between `<!-- generated: NAME ARGUMENT -->` and `<!-- end -->`. All else is written by hand and left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from docs.generate import console
from docs.generate.parts import PARTS

__all__ = ["DOCS", "ROOT", "Problem", "fresh", "inline_commands", "pages", "refresh", "strip"]

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
OTHERS = {"accuracy.md"}
"""Pages that something else writes."""

RECORDS = {"log", "decisions"}
"""Folders of what was tried and chosen, as it was on the day."""

MARK = re.compile(r"<!-- generated: (?P<name>[\w-]+) ?(?P<arg>[^>]*?) -->\n(?P<old>.*?)<!-- end -->", re.S)
CONSOLE = re.compile(r"^(?P<indent> *)```console\n(?P<old>.*?)^(?P=indent)```$", re.S | re.M)
PYTHON = re.compile(r"^```python\n(?P<code>.*?)^```\n\n?```text\n.*?^```$", re.S | re.M)
INLINE = re.compile(r"(?<!`)`(chipwise [^`\n]+)`(?!`)")


@dataclass(frozen=True)
class Problem:
    """A page whose generated parts are not what would be generated now."""

    page: str
    what: str


def pages() -> list[Path]:
    """All pages that may have generated parts: the documentation, and what stands beside it."""
    found = [
        p
        for p in sorted(DOCS.rglob("*.md"))
        if p.relative_to(DOCS).as_posix() not in OTHERS and p.parent.name not in RECORDS
    ]
    beside = (ROOT / name for name in ("README.md", "SKILL.md", "CONTRIBUTING.md"))
    return [*found, *(p for p in beside if p.exists())]


def fresh(text: str, but: Collection[str] = ()) -> str:
    """A page with every generated part made again, `but` those of some names. Raises `ValueError` for a part that
    cannot be made."""
    text = MARK.sub(lambda found: found[0] if found["name"] in but else _part(found), text)
    text = CONSOLE.sub(_console, text)
    return PYTHON.sub(_python, text)


def refresh(path: Path, *, write: bool, but: Collection[str] = ()) -> Problem | None:
    """Bring a page up to date, or only say that it is not; `but` parts of some names, which stay as they are."""
    old = path.read_text("utf-8")
    new = fresh(old, but)
    if new == old:
        return None
    if write:
        path.write_text(new, "utf-8")
    return Problem(path.relative_to(ROOT).as_posix(), _first_difference(old, new))


def strip(text: str) -> str:
    """A page without its generated parts and code blocks: what was written by hand."""
    text = MARK.sub("", text)
    return re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.S | re.M)


def inline_commands(text: str) -> list[str]:
    """Commands named in running text; capitals stand for what the reader fills in."""
    return INLINE.findall(strip(text))


def _part(found: re.Match[str]) -> str:
    name, argument = found["name"], found["arg"].strip()
    if name not in PARTS:
        raise ValueError(f"no generated part is called {name}: {', '.join(PARTS)}")
    make: Callable[[str], str] = PARTS[name]
    head = found[0].partition("\n")[0]
    return f"{head}\n{make(argument).strip()}\n<!-- end -->"


def _console(found: re.Match[str]) -> str:
    indent = found["indent"]
    old = "\n".join(line.removeprefix(indent) for line in found["old"].splitlines())
    new = "\n".join(f"{indent}{line}".rstrip() for line in console.transcript(old).splitlines())
    return f"{indent}```console\n{new}\n{indent}```"


def _python(found: re.Match[str]) -> str:
    return f"```python\n{found['code']}```\n\n```text\n{console.python(found['code'])}\n```"


def _first_difference(old: str, new: str) -> str:
    before, after = old.splitlines(), new.splitlines()
    for number, (a, b) in enumerate(zip(before, after, strict=False), 1):
        if a != b:
            return f"line {number}: {a.strip()[:70]!r}, now {b.strip()[:70]!r}"
    return f"{len(before)} lines, now {len(after)}"
