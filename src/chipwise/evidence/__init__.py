"""How do you know: rows of published measurements, and the interval and basis of every figure.

Calling the room asks the verb of its name: `chipwise.evidence(chip="h200", best=True)`.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _LazyRoom(ModuleType):
    """A package that a program may call."""

    def __call__(self, *values: Any, **keywords: Any) -> Any:
        # by name: a room does not import the verbs above it
        return import_module("chipwise.api.python").verb("evidence")(*values, **keywords)


sys.modules[__name__].__class__ = _LazyRoom
