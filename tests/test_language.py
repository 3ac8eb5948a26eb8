"""The language of what people read: words that readers stumble over do not come back."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from chipwise.report.catalogue import CHIPS, MODELS
from chipwise.report.evidence import RESULTS
from chipwise.report.fit import FITS
from chipwise.report.kernel import AMDAHL, EXCHANGES, KERNELS
from chipwise.report.operators import LOADS, OPERATORS
from chipwise.report.plans import PLANS
from chipwise.report.training import SCALING, TRAINING

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src" / "chipwise"

BANNED = re.compile(
    r"\b(so many|of (?:its|their) own|told|mend(?:s|ed|ing)?|work(?:s|ed|ing)? off|beside|yours to know|binds|"
    r"carries(?! over)|in all|(?<!-)alike)\b|\bwhole \(|\bbound by\b",
    re.IGNORECASE,
)
"""Home-made words, and English that was translated word by word; `bound by` is a bottleneck everywhere."""

GENERATED = re.compile(r"<!-- generated.*?<!-- end -->|^```.*?^```", re.DOTALL | re.MULTILINE)
LEFT = {"docs/accuracy.md", "docs/claims.md", "docs/reference/claims.md"}
"""Pages that a program writes, and the record of what was tried."""


def texts(path: Path) -> Iterator[str]:
    """String literals of a file that people may read: no docstrings, no names of fields."""
    tree = ast.parse(path.read_text("utf-8"))
    documented = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and id(node) not in documented else None
        if isinstance(text, str) and not text.isidentifier():
            yield text


def said(text: str) -> list[str]:
    """The banned words of a text, with what stands around them."""
    return [text[max(m.start() - 30, 0) : m.end() + 30] for m in BANNED.finditer(text)]


def test_the_words_are_found() -> None:
    assert said("as so many replicas of so many chips") != []
    assert said("the lead carries over") == []
    assert said("a table of its own, told apart") != []


def test_no_text_of_the_program_uses_them() -> None:
    lines = [
        f"{path.relative_to(SRC)}: {hit}"
        for path in sorted(SRC.rglob("*.py"))
        for text in texts(path)
        for hit in said(text)
    ]
    assert lines == []


@pytest.mark.parametrize("path", sorted((SRC / "web" / "templates").rglob("*.html")), ids=lambda p: p.name)
def test_no_page_uses_them(path: Path) -> None:
    assert said(re.sub(r"\{[%{].*?[%}]\}", "", path.read_text("utf-8"))) == []


PAGES = [
    *(ROOT / name for name in ("README.md", "SKILL.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *(
        page
        for page in sorted((ROOT / "docs").rglob("*.md"))
        if page.relative_to(ROOT).as_posix() not in LEFT and page.parent.name not in ("reference", "stories", "log")
    ),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_no_prose_uses_them(page: Path) -> None:
    assert said(GENERATED.sub("", page.read_text("utf-8"))) == []


@pytest.mark.parametrize("story", sorted((ROOT / "examples").glob("*.toml")), ids=lambda p: p.name)
def test_no_story_uses_them(story: Path) -> None:
    assert said(story.read_text("utf-8")) == []


def test_one_word_for_one_idea_in_headings() -> None:
    """A heading stands for the same thing in every table, and is written once in each."""
    tables = (PLANS, FITS, KERNELS, EXCHANGES, AMDAHL, OPERATORS, LOADS, TRAINING, SCALING, CHIPS, MODELS, RESULTS)
    for columns in tables:
        heads = [c.head for c in columns if c.head]
        assert len(set(heads)) == len(heads)
        short = [c.short for c in columns if c.short]
        assert len(set(short)) == len(short)
        assert any(not c.spare for c in columns if c.head)
    every = {c.head for columns in tables for c in columns}
    assert every & {"bound by", "bound", "binds", "to mend", "left out of"} == set()
