"""The bundled chips: by id, and by the names that people use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from chipwise.catalog.chip import Chip
from chipwise.catalog.chip_reader import names_of, read_chips
from chipwise.catalog.files import read_text
from chipwise.catalog.snapshot import per_snapshot, shipped_names, shipped_text
from chipwise.errors import UnknownNameError

__all__ = ["get_chip", "load_chips", "read_chip_file", "read_chips"]


@per_snapshot
def load_chips() -> Mapping[str, Chip]:
    """All bundled chips by id, in the order of the files; read once."""
    chips: dict[str, Chip] = {}
    for name in shipped_names("catalog/data/chips", ".toml"):
        chips |= read_chips(shipped_text(name), name.rpartition("/")[2])
    names_of(chips, "the catalogue")
    return MappingProxyType(chips)


@per_snapshot
def _bundled_names() -> Mapping[str, str]:
    return names_of(load_chips(), "the catalogue")


def get_chip(name: str) -> Chip:
    """The bundled chip of that id or alias; case, blanks and underscores do not matter.

    Raises `UnknownNameError` with the nearest names.
    """
    chips = load_chips()
    key = re.sub(r"[\s_]+", "-", name.strip().lower())
    if key not in chips:
        key = _bundled_names().get(key, key)
    if key not in chips:
        raise UnknownNameError("chip", name, _bundled_names(), "list them: chipwise chips list")
    return chips[key]


def read_chip_file(path: Path) -> Mapping[str, Chip]:
    """The chips of a user's TOML file. Raises `UsageError` for a file or an entry that cannot be read."""
    return read_chips(read_text(path, 1_000_000, "a TOML file of chips"), str(path), load_chips())
