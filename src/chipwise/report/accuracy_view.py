"""What `validate` found as a section of docs/accuracy.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chipwise.catalog.files import output_file, writing
from chipwise.errors import UsageError
from chipwise.evidence.residuals import Summary, Validation

__all__ = ["accuracy_lines", "accuracy_section", "write_section"]

COLUMNS = ("", "metric", "rows", "answered", "median", "p90", "bias", "in 80 % interval")


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
    yield "| " + " | ".join(COLUMNS) + " |"
    yield "|---" * 2 + "|---:" * (len(COLUMNS) - 2) + "|"
    for s in rows:
        cells = (
            s.name,
            s.metric,
            f"{s.rows:,}",
            *(_percent(x) for x in (s.answered, s.median, s.p90)),
            _percent(s.bias, sign=True),
            _percent(s.coverage),
        )
        yield "| " + " | ".join(cells) + " |"


def _percent(share: float, *, sign: bool = False) -> str:
    if share != share:
        return "-"
    return f"{100 * share:+.1f} %" if sign else f"{100 * share:.1f} %"
