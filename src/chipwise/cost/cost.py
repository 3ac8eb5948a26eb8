"""Seconds by resource that add up to the time that is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

import numpy as np

from chipwise.units import Real
from chipwise.values import dataclass

Resource = Literal["compute", "memory", "on-chip", "network", "launch", "host", "bubble", "queue"]
RESOURCES: tuple[Resource, ...] = ("compute", "memory", "on-chip", "network", "launch", "host", "bubble", "queue")


@dataclass(frozen=True)
class Cost:
    """Exposed seconds by resource, and the seconds of each that others hide.

    The total is exactly the sum of the exposed seconds. Numbers or arrays; costs add, and a cost times a
    number is that many of it.
    """

    exposed: Mapping[str, Real] = field(default_factory=dict)
    hidden: Mapping[str, Real] = field(default_factory=dict)

    def __add__(self, other: Cost) -> Cost:
        return Cost(_add(self.exposed, other.exposed), _add(self.hidden, other.hidden))

    def __mul__(self, factor: Real) -> Cost:
        return Cost(
            {name: value * factor for name, value in self.exposed.items()},
            {name: value * factor for name, value in self.hidden.items()},
        )

    __rmul__ = __mul__

    @property
    def total_s(self) -> Real:
        """Seconds that pass."""
        total: Real = 0.0
        for value in self.exposed.values():
            total = total + value
        return total

    def share(self, resource: str) -> Real:
        """Part of the total that a resource is exposed for.

        With the soft maximum this is also the elasticity: 1 % more speed of that resource makes the whole
        that many percent faster.
        """
        return self.exposed.get(resource, 0.0) / self.total_s

    @property
    def bound(self) -> str:
        """The resource with the largest exposed time (of a single cost, not of arrays)."""
        return max(self.exposed, key=lambda name: float(self.exposed[name]))


def soft_maximum(times: Mapping[str, Real], softness: float) -> Cost:
    """Resources that overlap: t = (sum t_i^q)^(1/q), q = `softness`; q large is the roofline's maximum.

    Each resource is exposed for t_i (t_i / t)^(q - 1) = t (t_i / t)^q <= t_i, the derivative of log t by log t_i times
    t, so that exposed parts add to t and read as elasticities; the rest of t_i is hidden.
    """
    # scaled by the largest so that powers of microseconds do not underflow
    largest: Real = 0.0
    for value in times.values():
        largest = np.maximum(largest, value)
    scale = np.where(np.asarray(largest) > 0, largest, 1.0)
    powers = {name: (value / scale) ** softness for name, value in times.items()}
    powered: Real = 0.0
    for power in powers.values():
        powered = powered + power
    powered = np.where(np.asarray(powered) > 0, powered, 1.0)
    each = scale * powered ** (1.0 / softness) / powered
    exposed = {name: power * each for name, power in powers.items()}
    return Cost(exposed, {name: value - exposed[name] for name, value in times.items()})


def _add(left: Mapping[str, Real], right: Mapping[str, Real]) -> dict[str, Real]:
    total = dict(left)
    for name, value in right.items():
        total[name] = total[name] + value if name in total else value
    return total
