"""A chip with figures replaced by the user's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from chipwise.catalog.chip import Chip, Link, Provenance, Source
from chipwise.errors import UnknownNameError
from chipwise.units import parse_quantity

__all__ = ["SETTABLE", "told", "with_figures"]

GIVEN = Provenance((Source("given by the user", None),), "assumed")

SETTABLE: Mapping[str, str] = {
    "memory": "B",
    "hbm": "B/s",
    "bandwidth": "B/s",
    "link": "B/s",
    "pairwise": "B/s",
    "scaleout": "B/s",
    "host": "B/s",
    "tdp": "W",
} | dict.fromkeys(("fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4", "int4"), "FLOP/s")
"""What `--set` takes, with the dimension of each: memory capacity and bandwidth (`hbm` is `bandwidth`), links
per direction, matrix peaks by data type."""


def told(changes: Mapping[str, str] | None, what: str = "chips") -> tuple[str, ...]:
    """The user's own figures of `what` as a line of assumptions; none without any."""
    given = ", ".join(f"{name} {text}" for name, text in (changes or {}).items())
    return (f"{what}: {given}, as given",) if given else ()


def with_figures(chip: Chip, changes: Mapping[str, str]) -> Chip:
    """The chip with figures replaced, as in `{"hbm": "4TB/s", "bf16": "1.2 PFLOPS"}`.

    Raises `UnknownNameError` for a figure that cannot be set, `UsageError` for a value that is none.
    """
    fields: dict[str, Any] = {
        "own": dict(chip.own),
        "figures": dict(chip.figures),
        "matrix": dict(chip.matrix),
    }
    memory = chip.memory
    links = {"link": chip.scaleup, "host": chip.host}
    for name, text in changes.items():
        if name not in SETTABLE:
            raise UnknownNameError("figure to set", name, SETTABLE, f"one of {', '.join(SETTABLE)}")
        value = parse_quantity(text, SETTABLE[name], name, low=1.0, high=1e20)
        if name == "memory":
            memory = replace(memory, label_bytes=value, usable_bytes=value)
        elif name in ("hbm", "bandwidth"):
            memory = replace(memory, bytes_per_s=value)
        elif name == "pairwise":
            links["link"] = replace(links["link"] or Link("given", value), pairwise_bytes_per_s=value)
        elif name in links:
            links[name] = replace(links[name] or Link("given", None, domain=8), bytes_per_s=value)
        elif name == "scaleout":
            fields["scaleout_bytes_per_s"] = value
        elif name == "tdp":
            fields["tdp_w"] = value
        else:
            fields["matrix"][name] = value
        fields["figures"][name] = text
        fields["own"][name] = GIVEN
    fields |= {"tiers": (memory, *chip.tiers[1:]), "scaleup": links["link"], "host": links["host"]}
    return replace(chip, name=f"{chip.name} ({', '.join(f'{k}={v}' for k, v in changes.items())})", **fields)
