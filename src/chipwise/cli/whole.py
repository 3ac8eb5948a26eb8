"""Whole numbers on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cyclopts

__all__ = ["read"]


def read(type_: Any, tokens: Sequence[cyclopts.Token]) -> Any:
    """The value of an option. cyclopts alone would round 2.6 to 3 where a whole number is asked for."""
    if type_ in (int, int | None):
        try:
            return int(tokens[0].value)
        except ValueError:
            raise ValueError("not a whole number") from None
    return cyclopts.convert(type_, tokens)
