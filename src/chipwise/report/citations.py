"""Sources as numbered notes under a table."""

from __future__ import annotations

from chipwise.catalog.chip import Provenance

__all__ = ["Citations"]


class Citations:
    """Numbers sources in the order in which figures cite them."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def mark(self, p: Provenance) -> str:
        """The numbers of a figure's sources, as in `1, 3`."""
        marks = []
        for source in p.sources:
            text = f"{source.ref} ({source.date})" if source.date else source.ref
            marks.append(self._numbers.setdefault(text, len(self._numbers) + 1))
        return ", ".join(map(str, marks))

    def notes(self) -> tuple[str, ...]:
        """One line per source."""
        return tuple(f"[{number}] {text}" for text, number in self._numbers.items())
