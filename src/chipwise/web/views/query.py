"""The query of an address as the fields of a question, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from dataclasses import MISSING as NO_DEFAULT
from typing import Any
from urllib.parse import urlencode


def given(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """What was filled in: fields without blanks; of several values of one name the last."""
    return {name: value.strip() for name, value in pairs if value.strip()}


def named(request: Any) -> dict[str, Any]:
    """The fields of a question that differ from their defaults, by the names that doors use."""
    found: dict[str, Any] = {}
    for f in fields(request):
        value = getattr(request, f.name)
        required = f.default in (MISSING, NO_DEFAULT)
        if value is not None and (required or value != f.default):
            found[str(f.metadata.get("alias") or f.name)] = value
    return found


def query_of(values: Mapping[str, Any]) -> str:
    """Fields as the query of an address, in an order that does not depend on how they came."""

    def text(value: Any) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        return f"{value:.10g}" if isinstance(value, float) else str(value)

    return urlencode([(name, text(value)) for name, value in sorted(values.items()) if value is not None])
