"""TOML tables as they were parsed: parsing them anew takes longer than most answers.

`data/parsed.jsonl` holds the content of every shipped table behind the digest of its text. So it can be old but
never wrong: a text that it does not know (a table just edited, a user's own, one of a saved answer) is parsed.
`python -m chipwise.catalog.parsed` writes it anew; a test fails where that was forgotten.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from chipwise.catalog.snapshot import PACKAGE

PARSED = "catalog/data/parsed.jsonl"


def parse(text: str) -> dict[str, Any]:
    """What a TOML text says; the caller's own, to be changed at will. Raises `tomllib.TOMLDecodeError`."""
    content = _known().get(_digest(text))
    table: dict[str, Any] = tomllib.loads(text) if content is None else json.loads(content)
    return table


def names(table: str) -> dict[str, Any]:
    """What a table of names says by which code itself knows things, by its path below the package: those of this
    version always, so that no saved answer carries them."""
    return parse((PACKAGE / table).read_text("utf-8"))


def shipped_lines() -> Iterator[str]:
    """The lines of the file: digest and content of every shipped table, in the order of their paths."""
    for path in sorted(PACKAGE.glob("*/data/**/*.toml")):
        text = path.read_bytes().decode()
        yield f"{_digest(text)} {json.dumps(tomllib.loads(text), ensure_ascii=False, separators=(',', ':'))}"


def main() -> None:
    """Write the file anew, as a whole or not at all."""
    target = PACKAGE / PARSED
    draft = target.with_suffix(".draft")
    draft.write_bytes("\n".join(shipped_lines()).encode())
    draft.replace(target)


@cache
def _known() -> Mapping[str, str]:
    lines = (PACKAGE / PARSED).read_bytes().decode().split("\n")
    return {digest: content for digest, _, content in (line.partition(" ") for line in lines)}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


if __name__ == "__main__":
    main()
