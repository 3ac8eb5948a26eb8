"""Long lists of questions: `make test` asks some of a list, `make whole` all, which takes an hour more."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

VARIABLE = "CHIPWISE_WHOLE"
T = TypeVar("T")


def some(questions: Sequence[T], of: int) -> list[T]:
    """One of so many; all where the variable is set."""
    return list(questions[:: 1 if os.environ.get(VARIABLE) else of])
