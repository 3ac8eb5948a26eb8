"""A table as text: as it is where the terminal is wide enough, else in the shape that takes fewer lines, without ever
breaking a word or a number: cells broken at spaces, or one block of `name value` pairs for every row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from chipwise.report.table import Table

__all__ = ["show"]

GAP = 3  # characters between columns
PAIRS = "   "
INDENT = "    "
COMMAND = "next: "  # such a line holds a command, to be copied whole


def show(table: Table, console: Console, *, terminal: bool) -> str:
    """The table as text. Nothing is cut or wrapped where there is no terminal: a pipe has no width."""
    width = console.width if terminal else None
    parts = [_lines(text, width, console) for text in table.head]
    if table.columns:
        parts.append(_body(table, width, console))
    parts += [_lines(text, width, console) for text in table.foot]
    return "".join(parts)


def _body(table: Table, width: int | None, console: Console) -> str:
    if width is None:
        return _grid(table, None, console)
    cells = [[_sizes(text) for text in column] for column in zip(table.columns, *table.rows, strict=True)]
    whole = [max(size for size, _ in column) for column in cells]
    room = width - GAP * len(whole) + 1
    if sum(whole) <= room:
        return _grid(table, None, console)
    stacked = _blocks(table, width, console)
    words = [max(word for _, word in column) for column in cells]
    if sum(words) > room:
        return stacked
    broken = _grid(table, _fitted(whole, words, room), console)
    return min(broken, stacked, key=lambda text: text.count("\n"))


def _sizes(text: str) -> tuple[int, int]:
    """Columns of the terminal that a cell takes, and its longest word."""
    from rich.cells import cell_len

    return cell_len(text), max(map(cell_len, text.split()), default=0)


def _fitted(whole: Sequence[int], words: Sequence[int], room: int) -> list[int]:
    """Widths of columns: the widest ones are cut to the same width, no word is."""

    def cut(most: int) -> list[int]:
        return [max(w, min(n, most)) for n, w in zip(whole, words, strict=True)]

    return next(found for most in range(max(whole), -1, -1) if sum(found := cut(most)) <= room)


def _grid(table: Table, widths: Sequence[int] | None, console: Console) -> str:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable

    shown = RichTable(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for i, name in enumerate(table.columns):
        side = "right" if name in table.right else "left"
        shown.add_column(name, justify=side, overflow="fold", width=widths[i] if widths else None)  # type: ignore[arg-type]
    for row in table.rows:
        shown.add_row(*row)
    with console.capture() as captured:
        console.print(shown)
    return captured.get()


def _blocks(table: Table, width: int, console: Console) -> str:
    """A block for every row: what it is, then the other columns by name, each at the same place in every block."""
    lead = _lead(table)
    named = [
        [f"{name} {cell}".strip() if cell else "" for cell in cells]
        for name, cells in _by_column(table)[lead:]
    ]
    slots = [max((_sizes(text)[0] for text in texts), default=0) for texts in named]
    with console.capture() as captured:
        for i, row in enumerate(table.rows):
            for line in _broken(PAIRS.join(cell for cell in row[:lead] if cell), width, INDENT):
                console.print(line, style="bold", soft_wrap=True)
            for columns in _packed(slots, width - len(INDENT)):
                line = PAIRS.join(_filled(named[c][i], slots[c]) for c in columns).strip()
                for part in _broken(INDENT + line, width, INDENT + "  ") if line else ():
                    console.print(part, soft_wrap=True)
        console.print()
    return captured.get()


def _lead(table: Table) -> int:
    """How many columns say what a row is: a number and what it numbers, else as few as tell the rows apart."""
    if table.columns[0] in ("#", ""):
        return min(2, len(table.columns))
    apart = (n for n in (1, 2, 3) if len({row[:n] for row in table.rows}) == len(table.rows))
    return next(apart, 1)


def _by_column(table: Table) -> list[tuple[str, list[str]]]:
    return [(name, [row[i] for row in table.rows]) for i, name in enumerate(table.columns)]


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


def _filled(text: str, size: int) -> str:
    return text + " " * (size - _sizes(text)[0])


def _lines(text: str, width: int | None, console: Console) -> str:
    """A line above or below the table; a command that is broken stays one command."""
    lines = [text]
    if width is not None and len(text) > width:
        command = text.startswith(COMMAND)
        lines = _broken(text, width - 2 if command else width, INDENT if command else "  ")
        lines = [f"{line} \\" for line in lines[:-1]] + lines[-1:] if command else lines
    with console.capture() as captured:
        for line in lines:
            console.print(line, soft_wrap=True)
    return captured.get()


def _broken(text: str, width: int, indent: str) -> list[str]:
    """A text broken at spaces; later lines are indented. A word longer than the width stays whole."""
    import textwrap

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
