"""Plots on two logarithmic axes, as SVG that stands in a page: no script, colours of the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Series", "plot"]

WIDTH, HEIGHT = 720, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 20, 16, 48
COLOURS = ("var(--md-typeset-a-color)", "var(--md-accent-fg-color)", "#7a8f3c", "#8a6fb0")


@dataclass(frozen=True)
class Series:
    """Points (x, y), with a text beside each where there is one; joined by a line, or not."""

    name: str
    points: Sequence[tuple[float, float]]
    texts: Sequence[str] = ()
    joined: bool = True
    marked: bool = True


@dataclass(frozen=True)
class _Axis:
    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        share = (math.log10(value) - math.log10(self.low)) / (math.log10(self.high) - math.log10(self.low))
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        """1, 2 and 5 of every decade; over more than two decades 1 alone."""
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        steps = (1.0,) if self.high > 200.0 * self.low else (1.0, 2.0, 5.0)
        every = (step * 10.0**decade for decade in decades for step in steps)
        return [t for t in every if self.low * 0.999 <= t <= self.high * 1.001]


def plot(series: Sequence[Series], x: str, y: str, title: str, *, names_below: bool = False) -> str:
    """A plot with its axes named; `title` says in words what it shows, names stand above or below on the left.

    Points at or below zero are left out.
    """
    shown = [[(a, b) for a, b in s.points if a > 0 and b > 0] for s in series]
    across = _axis([a for points in shown for a, _ in points], LEFT, WIDTH - RIGHT)
    up = _axis([b for points in shown for _, b in points], HEIGHT - BOTTOM, TOP)
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}" class="plot">',
        *_grid(across, up, x, y),
    ]
    for number, (s, points) in enumerate(zip(series, shown, strict=True)):
        colour = COLOURS[number % len(COLOURS)]
        places = [(across.at(a), up.at(b)) for a, b in points]
        if s.joined:
            path = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
            parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        if s.marked:
            parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.5" fill="{colour}"/>' for a, b in places]
        parts += [_beside(a, b, text, colour) for (a, b), text in zip(places, s.texts, strict=False) if text]
        first = HEIGHT - BOTTOM - 16 * len(series) if names_below else TOP
        end = first + 14 + 16 * number - 6 * names_below
        parts.append(f'<text x="{LEFT + 12}" y="{end}" fill="{colour}">{escape(s.name)}</text>')
    return "".join([*parts, "</svg>"])


def _beside(x: float, y: float, text: str, colour: str) -> str:
    """A text to the right of a point, or to its left at the edge."""
    late = x > 0.9 * WIDTH
    where = f'x="{x - 7:.1f}" text-anchor="end"' if late else f'x="{x + 7:.1f}"'
    return f'<text {where} y="{y + (28 if late else 14):.1f}" fill="{colour}">{escape(text)}</text>'


def _axis(values: Sequence[float], start: float, end: float) -> _Axis:
    low, high = min(values), max(values)
    room = (high / low) ** 0.06 if high > low else 2.0
    return _Axis(low / room, high * room, start, end)


def _grid(across: _Axis, up: _Axis, x: str, y: str) -> list[str]:
    """Lines and numbers of both axes, and what they are."""
    lines = []
    for value in across.ticks():
        at = across.at(value)
        lines.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" class="grid"/>')
        lines.append(f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{value:,g}</text>')
    for value in up.ticks():
        at = up.at(value)
        lines.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}" class="grid"/>')
        lines.append(f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{value:,g}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    lines.append(f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x)}</text>')
    half = (TOP + HEIGHT - BOTTOM) / 2
    turned = f'transform="rotate(-90 14 {half})"'
    lines.append(f'<text x="14" y="{half}" text-anchor="middle" {turned}>{escape(y)}</text>')
    return lines
