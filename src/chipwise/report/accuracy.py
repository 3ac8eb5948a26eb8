"""What `validate` found, as tables and as a section of docs/accuracy.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chipwise.catalog.files import output_file, writing
from chipwise.errors import UsageError
from chipwise.evidence.residuals import Summary, Validation
from chipwise.report.table import DASH, Column, Table

__all__ = ["ACCURACY", "accuracy_lines", "accuracy_section", "accuracy_view", "write_section"]


def _percent(share: float) -> str:
    return DASH if share != share else f"{100 * share:.1f} %"


def _signed(share: float) -> str:
    return DASH if share != share else f"{100 * share:+.1f} %"


ACCURACY = (
    Column("part", "name", prose=True),
    Column("metric", "metric"),
    Column("rows", "rows", "{:,}".format, right=True),
    Column("answered", "answered", _percent, right=True),
    Column("median", "median", _percent, right=True),
    Column("p90", "p90", _percent, right=True),
    Column("bias", "bias", _signed, right=True),
    Column("in 80 % interval", "coverage", _percent, right=True),
)
"""What is said of the errors on some rows."""


def accuracy_view(found: Validation) -> tuple[Table, ...]:
    """Every table of the section, the method above the first, the remarks below the last."""
    titles = list(found.tables)
    tables = []
    for title, rows in found.tables.items():
        head = ((found.method, "") if title == titles[0] else ()) + (title, "")
        tables.append(Table.of(rows, ACCURACY, head, found.remarks if title == titles[-1] else ()))
    return tuple(tables)


def accuracy_lines(found: Validation) -> Iterator[str]:
    """The section without its markers, in Markdown."""
    yield f"## {found.suite}"
    yield ""
    yield found.method
    for title, rows in found.tables.items():
        yield ""
        yield f"**{title}**"
        yield ""
        yield from _table(rows)
    if found.remarks:
        yield ""
        for remark in found.remarks:
            yield f"- {remark}"


def accuracy_section(found: Validation) -> str:
    """The section as text."""
    return "\n".join(accuracy_lines(found)) + "\n"


def write_section(found: Validation, path: str) -> None:
    """Replace the suite's section in a Markdown file, between its markers, or append it.

    Raises `UsageError` for a file that cannot be read or written.
    """
    file = output_file(path)
    begin, end = (f"<!-- {found.suite}: {word} -->" for word in ("begin", "end"))
    try:
        text = file.read_text("utf-8") if file.exists() else "# Accuracy\n"
        section = f"{begin}\n{accuracy_section(found)}{end}\n"
        if begin in text and end in text:
            head, _, rest = text.partition(begin)
            text = head + section + rest.partition(end)[2].lstrip("\n")
        else:
            text = f"{text.rstrip()}\n\n{section}"
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read", str(error)) from None
    with writing(path) as out:
        out.write(text)


def _table(rows: Sequence[Summary]) -> Iterator[str]:
    heads = ("", *(c.head for c in ACCURACY[1:]))
    yield "| " + " | ".join(heads) + " |"
    yield "|---" * 2 + "|---:" * (len(heads) - 2) + "|"
    for s in rows:
        yield "| " + " | ".join(c.text(s) for c in ACCURACY) + " |"
