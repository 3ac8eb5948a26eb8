"""Help of commands with many options: the first twelve explained, the others named by what they are about, until
`--help-all` asks for all of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cyclopts import Group

from chipwise.report.terminal import EXPLAINED

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel
    from rich.console import Console, ConsoleOptions

FRONT = (
    "model", "fleet", "task", "rate", "in_", "out", "ttft", "tpot", "chip", "chips", "count", "have", "precision",
    "runtime", "price",
    "tokens", "counts", "deadline", "max_usd", "concurrency", "context", "tp", "pp", "dp", "ep", "seq",
    "global_batch", "layout", "trainer",
)  # fmt: skip
"""Fields by how often they are asked for; the first ones that a question has are explained first."""
FIRST = 13
"""What is asked about, and twelve options."""


def _folded(console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
    """A group of options: explained, or named in a line."""
    from cyclopts.help import DefaultFormatter  # both take a tenth of the time of imports, and only help needs them
    from rich.text import Text

    if EXPLAINED.get():
        DefaultFormatter()(console, options, panel)
        return
    names = [max(entry.positive_names, key=len) for entry in panel.entries if entry.positive_names]
    console.print(Text(f"{panel.title}: {', '.join(names)}"), soft_wrap=False)


def _last(console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
    """The last group, and below it how the folded ones are read."""
    from rich.text import Text

    _folded(console, options, panel)
    if not EXPLAINED.get():
        console.print(Text("\n--help-all explains these too."))


def grouped(homes: Mapping[str, str]) -> dict[str, Group | None]:
    """The group of each field by its name, in the order of help: None for the first ones, which stand with the model.

    `homes` are all fields with what their part of the question is about. Few fields have no groups."""
    front = [name for name in FRONT if name in homes][:FIRST]
    if len(homes) < 2 * FIRST:
        return dict.fromkeys(homes)
    titles = list(dict.fromkeys(title for name, title in homes.items() if name not in front))
    groups = {
        title: Group(title, sort_key=(1, at), help_formatter=_last if title == titles[-1] else _folded)
        for at, title in enumerate(titles)
    }
    return dict.fromkeys(front) | {name: groups[title] for name, title in homes.items() if name not in front}
