"""What a change moves, as a table to paste: which figure of which question, before, now, by how much."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from .net import Answer, Change, Difference, Kind, difference, read

WIDE = 60  # characters of a word that are shown: a table is read, not searched


class RevisionError(Exception):
    """Git does not know the revision; says what git says."""


def differences(
    kinds: Mapping[str, Kind], revision: str, ask: bool, folder: Path | None = None
) -> dict[str, Difference]:
    """By kind what is different between the stored answers of a git revision and those of the working tree, or, with
    `ask`, those that are given now. `folder` is one of the repository, by default that of the answers."""
    where = folder or Path(__file__).parent
    _git(where, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    found = {}
    for name, kind in kinds.items():
        if ask and kind.missing:
            continue
        now = kind.answers() if ask else kind.stored()
        found[name] = difference(_then(where, revision, kind.file), now)
    return found


def markdown(found: Mapping[str, Difference], most: int) -> str:
    """A line by kind, then figures by how far they moved, then words; at most so many of each."""
    if not any(found.values()):
        return f"No golden answer of {', '.join(found)} changed."
    same = [name for name, one in found.items() if not one]
    blocks = [_by_kind({name: one for name, one in found.items() if one})]
    blocks += [f"Unchanged: {', '.join(same)}."] if same else []
    changes = [(name, change) for name, one in found.items() for change in one.changes]
    numbers = [(name, c) for name, c in changes if math.isfinite(c.size)]
    numbers.sort(key=lambda pair: -pair[1].size)
    words = [(name, c) for name, c in changes if math.isinf(c.size)]
    for title, rows in (("figure", numbers), ("word, or figure that comes or goes", words)):
        if rows:
            blocks.append("\n".join(_rows(title, rows, most)))
    lost = [(name, "new", q) for name, one in found.items() for q in one.new]
    lost += [(name, "gone", q) for name, one in found.items() for q in one.gone]
    if lost:
        lines = ["| kind | question | |", "|---|---|---|"]
        lines += [f"| {name} | {_cell(question)} | {what} |" for name, what, question in lost[:most]]
        blocks.append("\n".join([*lines, *_rest(len(lost) - most)]))
    return "\n\n".join(blocks)


def _by_kind(found: Mapping[str, Difference]) -> str:
    lines = ["| kind | answers | changed | median | largest | words | new | gone |", "|---|" + "---:|" * 7]
    for name, one in found.items():
        sizes = sorted(c.size for c in one.changes if math.isfinite(c.size))
        middle, largest = (f"{sizes[i]:.2%}" if sizes else "" for i in (len(sizes) // 2, -1))
        words = sum(1 for c in one.changes if math.isinf(c.size))
        changed = len({c.question for c in one.changes})
        counts = f"{words} | {len(one.new)} | {len(one.gone)}"
        lines.append(f"| {name} | {one.asked} | {changed} | {middle} | {largest} | {counts} |")
    return "\n".join(lines)


def _rows(title: str, rows: list[tuple[str, Change]], most: int) -> Iterator[str]:
    yield f"| kind | question | {title} | before | now | by |"
    yield "|---|---|---|---:|---:|---:|"
    for name, change in rows[:most]:
        old, new = change.shown(WIDE)
        cells = (name, change.question, change.name, old, new, change.by)
        yield "| " + " | ".join(map(_cell, cells)) + " |"
    yield from _rest(len(rows) - most)


def _rest(count: int) -> list[str]:
    return [f"\nand {count:,} more"] if count > 0 else []


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _then(where: Path, revision: str, file: Path) -> dict[str, Answer]:
    """The answers of a revision; none where it has no such file."""
    try:
        return read(_git(where, "show", f"{revision}:./{file.name}"))
    except RevisionError:
        return {}


def _git(where: Path, *arguments: str) -> str:
    ran = subprocess.run(("git", *arguments), cwd=where, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise RevisionError(ran.stderr.strip() or f"git does not know '{arguments[-1].removesuffix('^{commit}')}'")
    return ran.stdout
