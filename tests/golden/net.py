"""What a kind of golden answers is: its questions, the answers of last time, and what has changed since.

A file holds an answer per line, with the question under `ask`; figures are rounded to `DIGITS` digits. An answer that
is the same within the last digit keeps its line, so that git shows what changed and nothing else.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from truth import AWAY

DIGITS = 6
RTOL = 1.1 * 10.0 ** (1 - DIGITS)  # one unit of the last digit is no change: it may be rounded either way
ATOL = 1e-14  # below that a figure is what rounding left over: times are nanoseconds, shares count from 1e-9 on
WIDE = 120  # characters of a word that are told: an order of all plans is long
FOLDER = Path(__file__).parent

Answer = dict[str, Any]
"""Numbers and words by name, perhaps in groups."""


@dataclass(frozen=True)
class Kind:
    """A name, and what asks all of its questions: pairs of a question and its answer, in order.

    `needs`: a folder without which nothing can be asked; `packages`: modules that must be installed.
    """

    name: str
    ask: Callable[[], Iterable[tuple[str, Answer]]]
    needs: Path | None = None
    packages: tuple[str, ...] = ()

    @property
    def file(self) -> Path:
        return FOLDER / f"{self.name}.jsonl"

    @property
    def missing(self) -> str:
        """Why it cannot be asked here, "" where it can."""
        if self.needs is not None and not self.needs.is_dir():
            return f"{self.name} {AWAY}"
        away = [name for name in self.packages if find_spec(name) is None]
        return f"{self.name} needs {', '.join(away)}, which is not installed" if away else ""

    def answers(self) -> dict[str, Answer]:
        """What is answered today, by question."""
        found: dict[str, Answer] = {}
        for question, answer in self.ask():
            assert question not in found, f"{self.name}: asked twice: {question}"
            found[question] = _rounded(answer)
        return found

    def stored(self) -> dict[str, Answer]:
        """What was answered last time, by question."""
        return read(self.file.read_text("utf-8")) if self.file.is_file() else {}

    def renew(self) -> Difference:
        """Write the answers of today; returns what is different."""
        before, now = self.stored(), self.answers()
        found = difference(before, now)
        changed = {c.question for c in found.changes}
        kept = {q: before[q] if q in before and q not in changed else answer for q, answer in now.items()}
        lines = (json.dumps({"ask": q, **answer}, ensure_ascii=False) for q, answer in kept.items())
        self.file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return found


def read(text: str) -> dict[str, Answer]:
    """Answers by question, from the lines of a file."""
    rows = map(json.loads, text.splitlines())
    return {row.pop("ask"): row for row in rows}


@dataclass(frozen=True)
class Change:
    """A figure or word of an answer that is another; None where there is none."""

    question: str
    name: str
    old: float | str | None
    new: float | str | None

    @property
    def size(self) -> float:
        """The relative change of a number; infinite for a word, or where a side is zero or missing."""
        if isinstance(self.old, float) and isinstance(self.new, float) and self.old:
            return abs(self.new / self.old - 1.0)
        return math.inf

    @property
    def by(self) -> str:
        """The relative change with its sign; "" where there is none."""
        if isinstance(self.old, float) and isinstance(self.new, float) and self.old:
            return f"{self.new / self.old - 1:+.3%}"
        return ""

    def shown(self, wide: int) -> tuple[str, str]:
        """Both sides in at most so many characters; of words from where they begin to differ."""
        old, new = (f"{x:.6g}" if isinstance(x, float) else x or "-" for x in (self.old, self.new))
        if max(len(old), len(new)) > wide:
            alike = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), 0)
            start = old.rfind(" ", 0, alike) + 1
            old, new = (("… " if start else "") + text[start:] for text in (old, new))
        return _short(old, wide), _short(new, wide)

    def __str__(self) -> str:
        old, new = self.shown(WIDE)
        return f"{self.name} {old} -> {new}" + (f" ({self.by})" if self.by else "")


def _short(text: str, wide: int) -> str:
    return text if len(text) <= wide else text[: wide - 1] + "…"


@dataclass(frozen=True)
class Difference:
    """Questions that are new or no longer asked, and changes of those that stay."""

    asked: int
    new: tuple[str, ...]
    gone: tuple[str, ...]
    changes: tuple[Change, ...]

    def __bool__(self) -> bool:
        return bool(self.new or self.gone or self.changes)

    def told(self, most: int) -> str:
        """What changed by how much: counts, the largest relative change, and the answers that changed most."""
        by_question: dict[str, list[Change]] = {}
        for change in self.changes:
            by_question.setdefault(change.question, []).append(change)
        sizes = [c.size for c in self.changes if math.isfinite(c.size)]
        largest = f", largest {max(sizes):.3%}" if sizes else ""
        words = sum(1 for c in self.changes if math.isinf(c.size))
        head = f"{len(by_question)} of {self.asked} answers changed{largest}"
        head += f", {words} words or figures replaced" if words else ""
        head += f", {len(self.new)} new" if self.new else ""
        head += f", {len(self.gone)} gone" if self.gone else ""
        worst = sorted(by_question.items(), key=lambda item: -max(c.size for c in item[1]))
        lines = [head]
        for question, found in worst[:most]:
            found = sorted(found, key=lambda c: -c.size)
            more = f", {len(found) - 4} more" if len(found) > 4 else ""
            lines.append(f"  {question}: {', '.join(map(str, found[:4]))}{more}")
        if len(worst) > most:
            lines.append(f"  and {len(worst) - most} more")
        return "\n".join(lines)


def difference(before: Mapping[str, Answer], now: Mapping[str, Answer]) -> Difference:
    """What is different between two sets of answers."""
    return Difference(
        len(now),
        tuple(q for q in now if q not in before),
        tuple(q for q in before if q not in now),
        tuple(change for q in now if q in before for change in _changes(q, before[q], now[q])),
    )


def _changes(question: str, before: Answer, now: Answer) -> Iterator[Change]:
    """What is different, by the dotted name of the figure."""
    olds, news = dict(_leaves(before)), dict(_leaves(now))
    for name in (*olds, *(n for n in news if n not in olds)):
        old, new = olds.get(name), news.get(name)
        if isinstance(old, float) and isinstance(new, float):
            if not math.isclose(old, new, rel_tol=RTOL, abs_tol=ATOL):
                yield Change(question, name, old, new)
        elif old != new:
            yield Change(question, name, old, new)


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, float | str]]:
    """The numbers and words in a group, each with its dotted name."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if parts is not None:
        for key, part in parts:
            yield from _leaves(part, f"{name}.{key}" if name else str(key))
    elif isinstance(value, bool) or value is None:
        yield name, json.dumps(value)
    else:
        yield name, float(value) if isinstance(value, int) else value


def _rounded(value: Any) -> Any:
    """The same with all numbers to `DIGITS` significant digits, and tuples as lists."""
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(part) for part in value]
    if isinstance(value, float):
        short = float(f"{value:.{DIGITS}g}")
        return int(short) if short.is_integer() and abs(short) < 1e15 else short
    return value
