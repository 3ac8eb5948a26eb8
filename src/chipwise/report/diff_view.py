"""Tables of `replay` and `diff`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chipwise.errors import shorten
from chipwise.report.diff_records import DiffReport, ReplayReport
from chipwise.report.difference import TOLERANCE, Change
from chipwise.report.table import Table
from chipwise.units import format_number, format_seconds

__all__ = ["diff_view", "likely_cause", "replay_view"]

LEAST = 5e-4  # what a table shows
MOST = 12  # changes of one cause
TEXT = 60  # letters of a word that changed
COLUMNS = ("of", "figure", "before", "after", "change")
# Ends of intervals, shares and the account of memory move with these; they are in the JSON.
LEADING = {
    "rank": "rank",
    "replicas": "replicas",
    "concurrency": "requests in flight",
    "price.low": "$/h, least",
    "price.mid": "$/h",
    "price.high": "$/h, most",
    "ttft_s.mid": "TTFT",
    "tpot_s.mid": "TPOT",
    "tokens_per_s_per_chip.mid": "tokens/s/chip",
    "usd_per_million_in.mid": "$/M in",
    "usd_per_million_out.mid": "$/M out",
    "bound": "bound by",
    "verdict": "fits",
    "step_s.mid": "step",
    "days.mid": "days",
    "usd.mid": "$",
    "mfu": "MFU",
    "plan": "plan",
    "error": "refused",
}
ASIDE = ("workload", "considered", "rejected")  # what was asked and how the answer was found, no part of it
WITHIN = f"{TOLERANCE:.0e}".replace("e-0", "e-")
SAME = f"identical (every figure within {WITHIN})"
NAMES = {"python": "Python", "numpy": "NumPy"}
WHOLE = "the answer"  # what a figure is of that belongs to no entry
NAMING = ("rank", "chip", "id", "name", "item.id")  # figures that an entry has as long as it is there


def replay_view(report: ReplayReport) -> tuple[Table, ...]:
    """One line where the answer is the same, else what is not."""
    asked = (
        f"{report.verb} of {report.day}, catalogue {report.catalogue}, saved by chipwise {report.saved_by}"
    )
    if report.identical:
        return (Table((), (), (asked, SAME)),)
    head: tuple[str, ...] = (
        asked,
        f"made again by chipwise {report.replayed_by}: {_differ(len(report.changes))} by more than {WITHIN}",
    )
    if cause := likely_cause(report):
        head = (*head, cause)
    return (_table(report.changes, head),)


def likely_cause(report: ReplayReport) -> str:
    """Which versions differ between saving and making again, as a sentence; "" where none is known to."""
    pairs = [(NAMES.get(n, n), report.saved_with.get(n), new) for n, new in report.replayed_with.items()]
    others = [f"{name} {shorten(old, 20)} -> {new}" for name, old, new in pairs if old and old != new]
    return f"likely cause: {', '.join(others)}" if others else ""


def diff_view(report: DiffReport) -> tuple[Table, ...]:
    """A table for every cause: the facts that changed above it, what they moved in it."""
    if not report.changes and not report.causes:
        return (Table((), (), (f"{report.before} and {report.after}: {SAME}",)),)
    tables = []
    for cause in report.causes:
        facts = cause.facts[:MOST]
        rest = len(cause.facts) - len(facts)
        head = (cause.cause, *(f"  {fact}" for fact in facts), *((f"  and {rest} more",) if rest else ()))
        if not cause.changes:
            head = (*head, "  moves no figure of the answer")
        tables.append(_table(cause.changes, head, cause.first))
    return tuple(tables)


def _differ(count: int) -> str:
    return f"{count:,} figures differ" if count != 1 else "1 figure differs"


def _table(changes: Sequence[Change], head: tuple[str, ...], ahead: Sequence[Change] = ()) -> Table:
    """The largest changes of leading figures, those of the first plan (`ahead`) above them."""
    came, went = _whole(changes, "before"), _whole(changes, "after")
    ends = tuple(f"{n} " for n in (*came, *went))
    known = [c for c in changes if not f"{c.entry} ".startswith(ends)]
    moved = [c for c in known if c.size > LEAST]
    # an answer without any leading figure shows its own
    shown = [c for c in moved if c.figure in LEADING] or [
        c for c in moved if c.factor is not None and not _aside(c)
    ]
    first = sorted(shown, key=lambda c: -c.size)[:MOST]
    above = [c for c in ahead if c.figure in LEADING and c.figure != "rank"]
    rows = [
        (
            c.entry or WHOLE,
            LEADING.get(c.figure, c.figure),
            _text(c.figure, c.before),
            _text(c.figure, c.after),
            _moved(c),
        )
        for c in (*above, *(c for c in shown if c in first))
    ]
    lists = [f"{word}: {_listed(names)}" for word, names in (("new", came), ("gone", went)) if names]
    more = len(known) - len(rows) + len(above)
    foot = (*lists, *((f"and {more} more figure{'s' if more > 1 else ''} (--format json)",) if more else ()))
    return Table(COLUMNS if rows else (), rows, head, foot, frozenset(COLUMNS[2:]))


def _aside(change: Change) -> bool:
    return not change.entry and change.figure.partition(".")[0] in ASIDE


def _whole(changes: Sequence[Change], end: str) -> list[str]:
    """Entries of which nothing was there at one end."""
    named = dict.fromkeys(c.entry for c in changes if c.entry and c.figure in NAMING)
    whole = [n for n in named if all(getattr(c, end) is None for c in changes if c.entry == n)]
    return [n for n in whole if not any(n.startswith(f"{other} ") for other in whole)]


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST
    return ", ".join(names[:MOST]) + (f" and {more} more" if more > 0 else "")


def _text(figure: str, value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return shorten(str(value), TEXT)
    if figure == "mfu":
        return f"{value:.1%}"
    return format_seconds(value) if "_s." in figure and "tokens" not in figure else format_number(value, 4)


def _moved(change: Change) -> str:
    factor = None if change.figure == "rank" else change.factor
    if factor is None:
        return "new" if change.before is None else "gone" if change.after is None else ""
    return f"{(factor - 1) * 100:+.1f} %"
