"""A table as text of a given width: the columns that matter most side by side, prose wrapped; where even those do not
fit, a block of `name value` pairs for every row. No word and no number is ever broken."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import IO, Protocol

WIDEST = 100
"""Columns of text that goes to no terminal."""

GAP = "  "  # between columns
PAIRS = "   "
INDENT = "    "
PROSE = (24, 14)  # the least width of a column of prose, and where nothing else helps
COMMAND = "next: "  # such a line holds a command, to be copied whole
EXPLAINED: ContextVar[bool] = ContextVar("EXPLAINED", default=False)
"""Whether help explains every option, or the first ones."""
WIPED = "\r\x1b[2K"  # the line that the cursor is in
BOLD, PLAIN = "\x1b[1m", "\x1b[0m"


def width_of() -> int:
    """Columns of the terminal, or of COLUMNS; `WIDEST` where there is neither."""
    return shutil.get_terminal_size((WIDEST, 24)).columns


def takes_bold(out: IO[str]) -> bool:
    """Whether `out` is a terminal that shows bold letters, and nobody has asked for plain ones (no-color.org)."""
    return out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") not in ("dumb", "unknown")


def tell(text: str) -> None:
    """A message beside the answer, on stderr: as wide as tables are."""
    print("\n".join(_broken(text, width_of(), "  ")), file=sys.stderr)


@contextmanager
def waiting(after_s: float = 2.0) -> Iterator[None]:
    """A line on stderr that counts the seconds of what takes longer than `after_s`, where that is a terminal; it is
    gone before anything else is written."""
    out = sys.stderr
    if not takes_bold(out):
        yield
        return
    done, began = threading.Event(), time.monotonic()

    def count() -> None:
        if done.wait(after_s):
            return
        while not done.is_set():
            out.write(f"{WIPED}working, {time.monotonic() - began:.0f} s")
            out.flush()
            done.wait(1.0)
        out.write(WIPED)
        out.flush()

    counting = threading.Thread(target=count, daemon=True)
    counting.start()
    try:
        yield
    finally:
        done.set()
        counting.join()


class Grid(Protocol):
    """A table that is written out: `report.table.Table` says what its parts are."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Headings."""

    @property
    def rows(self) -> Sequence[tuple[str, ...]]:
        """Cells."""

    @property
    def head(self) -> tuple[str, ...]:
        """Lines above."""

    @property
    def foot(self) -> tuple[str, ...]:
        """Lines below."""

    @property
    def right(self) -> frozenset[str]:
        """Headings of columns that are aligned to the right."""

    @property
    def spare(self) -> tuple[str, ...]:
        """Headings of columns that may be left out, the first first."""

    @property
    def prose(self) -> frozenset[str] | None:
        """Headings of columns whose cells may be wrapped, None: any."""


def show(table: Grid, width: int, *, bold: bool) -> str:
    """The table as text; `bold` for headings, on a terminal."""
    lines = [line for text in table.head for line in _lines(text, width)]
    if table.columns:
        lines += _body(table, width, bold=bold)
    lines += [line for text in table.foot for line in _lines(text, width)]
    return "\n".join(line.rstrip() for line in lines).strip("\n") + "\n"


def _body(table: Grid, width: int, *, bold: bool) -> list[str]:
    sizes = [[_sizes(text) for text in column] for column in zip(table.columns, *table.rows, strict=True)]
    whole = [max(size for size, _ in column) for column in sizes]
    words = [max(word for _, word in column) for column in sizes]
    every = list(range(len(whole)))
    for prose in PROSE:
        least = _least(table, whole, words, prose)
        chosen = _chosen(table, least, width)
        room = _room(chosen, width)
        if sum(least[i] for i in chosen) <= room:
            widths = _fitted([whole[i] for i in chosen], [least[i] for i in chosen], room)
            return [*_grid(table, chosen, widths, bold=bold), *_left_out(table, chosen, width)]
    stacked = _blocks(table, width, bold=bold)
    room = _room(every, width)
    if sum(words) > room:
        return stacked
    broken = _grid(table, every, _fitted(whole, words, room), bold=bold)
    return min(broken, stacked, key=len)


def _left_out(table: Grid, chosen: Sequence[int], width: int) -> list[str]:
    """Which columns are not shown, and where they are."""
    left = [name for i, name in enumerate(table.columns) if i not in chosen]
    return list(_lines(f"not shown: {', '.join(left)} (--format md or csv)", width)) if left else []


def _least(table: Grid, whole: Sequence[int], words: Sequence[int], prose: int) -> list[int]:
    """What each column needs: prose so much or its longest word, all others to stand on one line."""
    broken = table.prose or ()
    return [
        max(word, min(size, prose)) if name in broken else size
        for name, size, word in zip(table.columns, whole, words, strict=True)
    ]


def _chosen(table: Grid, least: Sequence[int], width: int) -> list[int]:
    """The columns that are shown: those that always are, and of the others, most important first, each that fits."""
    spare = [table.columns.index(name) for name in table.spare]
    chosen = [i for i in range(len(least)) if i not in spare]
    for i in reversed(spare):
        more = sorted((*chosen, i))
        if sum(least[k] for k in more) <= _room(more, width):
            chosen = more
    return chosen


def _room(columns: Sequence[int], width: int) -> int:
    return width - len(GAP) * (len(columns) - 1)


def _sizes(text: str) -> tuple[int, int]:
    """Columns of the terminal that a cell takes, and its longest word."""
    return _length(text), max(map(_length, text.split()), default=0)


def _length(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _fitted(whole: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Widths of columns: the widest ones are cut to the same width, none below what it needs."""

    def cut(most: int) -> list[int]:
        return [max(w, min(n, most)) for n, w in zip(whole, least, strict=True)]

    return next(found for most in range(max(whole), -1, -1) if sum(found := cut(most)) <= room)


def _grid(table: Grid, chosen: Sequence[int], widths: Sequence[int], *, bold: bool) -> list[str]:
    """Headings, a rule, and the rows; a cell that is wrapped makes its row taller."""
    sides = [table.columns[i] in table.right for i in chosen]

    def lines(row: Sequence[str]) -> list[str]:
        cells = [_broken(row[i], size, "") for i, size in zip(chosen, widths, strict=True)]
        return [
            GAP.join(
                _filled(cell[n] if n < len(cell) else "", size, right=right)
                for cell, size, right in zip(cells, widths, sides, strict=True)
            )
            for n in range(max(map(len, cells)))
        ]

    heading = [f"{BOLD}{line}{PLAIN}" if bold else line for line in lines(table.columns)]
    rule = "\u2500" * (sum(widths) + len(GAP) * (len(widths) - 1))
    return [*heading, rule, *(line for row in table.rows for line in lines(row)), ""]


def _filled(text: str, size: int, *, right: bool) -> str:
    space = " " * (size - _length(text))
    return f"{space}{text}" if right else f"{text}{space}"


def _blocks(table: Grid, width: int, *, bold: bool) -> list[str]:
    """A block for every row: what it is, then the other columns by name, each at the same place in every block."""
    lead = _lead(table)
    named = [
        [f"{name} {row[i]}".strip() if row[i] else "" for row in table.rows] for i, name in enumerate(table.columns)
    ][lead:]
    slots = [max((_length(text) for text in texts), default=0) for texts in named]
    found = []
    for i, row in enumerate(table.rows):
        for line in _broken(PAIRS.join(cell for cell in row[:lead] if cell), width, INDENT):
            found.append(f"{BOLD}{line}{PLAIN}" if bold else line)
        for columns in _packed(slots, width - len(INDENT)):
            line = PAIRS.join(_filled(named[c][i], slots[c], right=False) for c in columns).strip()
            found += _broken(INDENT + line, width, INDENT + "  ") if line else []
    return [*found, ""]


def _lead(table: Grid) -> int:
    """How many columns say what a row is: a number and what it numbers, else as few as tell the rows apart."""
    if table.columns[0] in ("#", ""):
        return min(2, len(table.columns))
    apart = (n for n in (1, 2, 3) if len({row[:n] for row in table.rows}) == len(table.rows))
    return next(apart, 1)


def _packed(slots: Sequence[int], width: int) -> list[list[int]]:
    """Columns by line: as many on each as fit."""
    lines: list[list[int]] = []
    taken = width
    for column, size in enumerate(slots):
        taken += len(PAIRS) + size
        if taken > width:
            lines.append([])
            taken = size
        lines[-1].append(column)
    return lines


def _lines(text: str, width: int) -> list[str]:
    """A line above or below the table; a command that is broken stays one command."""
    if _length(text) <= width:
        return [text]
    if not text.startswith(COMMAND):
        return _broken(text, width, "  ")
    lines = _broken(text, width - 2, INDENT)
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:]


def _broken(text: str, width: int, indent: str) -> list[str]:
    """A text broken at spaces; later lines are indented. A word longer than the width stays whole."""
    if _length(text) <= width:
        return [text]
    start = text[: len(text) - len(text.lstrip())]
    found = textwrap.wrap(
        text.lstrip(),
        width,
        initial_indent=start,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return found or [text]
