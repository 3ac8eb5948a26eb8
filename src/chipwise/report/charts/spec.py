"""What all charts share: one colour per resource, axes, the frame of a specification."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from chipwise.units import format_number

Spec = dict[str, Any]

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"

# After Okabe and Ito: told apart with any common colour blindness, on light ground and on dark.
RESOURCES: dict[str, str] = {
    "compute": "#e08e0b",
    "memory": "#2f86c8",
    "on-chip": "#10a37f",
    "network": "#c46a9c",
    "fabric": "#a9c46a",
    "launch": "#d65f14",
    "host": "#8b93a0",
    "bubble": "#6cc0ee",
    "queue": "#b3a11a",
    "optimiser": "#8f6fd1",
    "stragglers": "#5f7480",
}
SERIES = ("#2f86c8", "#e08e0b", "#10a37f", "#c46a9c", "#d65f14", "#8b93a0", "#6cc0ee", "#b3a11a")
ACCENT = "#0f8a80"
MUTED = "#8b93a0"


def chart(description: str, **parts: Any) -> Spec:
    """A specification as wide as its place, with what it shows in words."""
    return {"$schema": SCHEMA, "description": description, "width": "container", **parts}


def said(value: object) -> str:
    """A number of a row in words: three digits, no exponent."""
    return format_number(float(str(value)))


def axis(field: str, title: str, kind: str = "quantitative", **more: Any) -> Spec:
    """One channel: a field, its title with the unit, and its type."""
    return {"field": field, "type": kind, "title": title, **more}


FACTOR = 3.0
"""Numbers within it lie on an even scale: a logarithmic one would have no round numbers to name."""
WRITTEN = "abs(datum.value) < 1e4 ? format(datum.value, ',.4~r') : format(datum.value, '.4~s')"


def ticks(count: int = 5, unless: str = "datum.label === ''") -> Spec:
    """Numbers along an axis as people write them: 0.5, 1,500, 20k. Those of which `unless` is true are left out."""
    return {"tickCount": count, "format": "~s", "labelExpr": f"{unless} ? '' : {WRITTEN}"}


def ratio(field: str, title: str, among: Sequence[float] = (), **more: Any) -> Spec:
    """A channel of positive numbers on a logarithmic scale, which its title ends with; those `among` a factor of
    `FACTOR` lie on an even one."""
    even = bool(among) and max(among) < FACTOR * min(among)
    scale = {"zero": False, "padding": 12} if even else {"type": "log", "nice": False, "padding": 12}
    said = title.removesuffix(" (log)") if even else title
    return axis(field, said, scale=scale, axis={"grid": True, **ticks()}, **more)


def filling(bars: int, most: int = 56, high: int = 240) -> Spec:
    """The height of a picture of some bars that stands beside one of usual height: few are thick."""
    return {"step": max(26, min(most, high // max(bars, 1)))}


def color(names: Iterable[str], field: str = "resource", title: str | None = None) -> Spec:
    """Colours of categories in a fixed order: those of resources where they are some."""
    domain = list(dict.fromkeys(names))
    known = [RESOURCES.get(n, SERIES[i % len(SERIES)]) for i, n in enumerate(domain)]
    return {
        "field": field,
        "type": "nominal",
        "scale": {"domain": domain, "range": known},
        "legend": {"title": title, "orient": "top"},
    }


def labels(place: Spec, text: str, where: str, after: Sequence[Spec] = (), **more: Any) -> list[Spec]:
    """Names of points, to their right in the left half of the picture and to their left in the right half: a
    field `half` of the data says which. `where` filters the rows, which go through transforms `after` it; `more` are
    properties of the mark."""

    def side(half: str, align: str, shift: int) -> Spec:
        return {
            "mark": {"type": "text", "align": align, "dx": shift, "dy": -9, "fontSize": 11, **more},
            "transform": [{"filter": f"({where}) && datum.half === '{half}'"}, *after],
            "encoding": {**place, "text": {"field": text}, "detail": {"field": "half"}},
        }

    return [side("left", "left", 9), side("right", "right", -9)]


def halves(values: Sequence[float]) -> list[str]:
    """The half of a logarithmic axis that each of some positive numbers lies in."""
    middle = math.sqrt(min(values) * max(values)) if values else 1.0
    return ["left" if value <= middle else "right" for value in values]


WIDE, HIGH, LETTER, LINE = 640.0, 290.0, 6.2, 13.0
"""Pixels of a picture of usual size, of a letter and of a line."""


def having_room(
    points: Sequence[tuple[float, float, str, str]],
    ends: tuple[tuple[float, float], tuple[float, float]],
    most: int = 40,
) -> list[bool]:
    """Which labels of points on logarithmic axes lie over none before in a picture of usual size. A point is (x, y,
    label, half) with the label to its right in the left half; `ends` are those of both axes; `most` are kept."""

    def pixel(value: float, axis_ends: tuple[float, float], size: float) -> float:
        low, high = (math.log(end) for end in axis_ends)
        return size * (math.log(value) - low) / max(high - low, 1e-9)

    kept: list[tuple[float, float, float]] = []
    found = []
    for x, y, label, half in points:
        long = LETTER * len(label)
        start = pixel(x, ends[0], WIDE) + (9.0 if half == "left" else -9.0 - long)
        at = pixel(y, ends[1], HIGH)
        free = all(start > e or start + long < s or abs(at - line) > LINE for s, e, line in kept)
        found.append(bool(label) and free and len(kept) < most)
        if found[-1]:
            kept.append((start, start + long, at))
    return found


def tip(fields: Mapping[str, str] | Sequence[str]) -> list[Spec]:
    """Lines of the box that hovering shows: field to title; numbers are cut to four digits."""
    pairs = fields.items() if isinstance(fields, Mapping) else ((f, f) for f in fields)
    return [{"field": name, "title": title} for name, title in pairs]
