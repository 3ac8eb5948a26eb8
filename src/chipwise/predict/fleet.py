"""Many replicas under arrivals: how many are needed, how many are away for repair, and what a day costs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from chipwise.units import Array, Real
from chipwise.values import dataclass
from chipwise.workload.curve import RateCurve

DAY_S = 86_400.0
"""seconds: of a day. Exact: 24 hours."""
PER_MILLION = 1e6
"""count: tokens that a price is said of. Exact: a million."""


def replicas_for(rate_per_s: Real, largest_per_s: Real, spare: int = 0, most_used: float = 1.0) -> NDArray[np.int64]:
    """ceil(rate / (most_used x largest)) + spare: `spare` of them may fail or be updated and the rest carries
    the rate (N + spare). 0 where nothing is sustained."""
    each = most_used * np.asarray(largest_per_s)
    carried = each > 0
    needed = np.ceil(np.asarray(rate_per_s) / np.where(carried, each, 1.0) * (1.0 - 1e-9))
    return np.where(carried, np.maximum(np.where(carried, needed, 1.0), 1.0) + spare, 0).astype(np.int64)


@dataclass(frozen=True)
class Day:
    """A fleet under a day's arrivals. Utilisation is the rate over what all replicas sustain, hours are those of
    the day in which it exceeds that. `scaled_*`: replicas follow the rate, slice by slice, spares included, each asked
    for `lead_s` before the slice that needs it (0: there at once). `rates_per_s` are those of the slices, `room_per_s`
    is what one replica sustains, `scaled_replicas` how many each slice needs."""

    replicas: int
    peak_utilisation: float
    mean_utilisation: float
    saturated_hours: float
    requests_per_day: float
    tokens_per_day: float
    usd_per_day: float
    usd_per_m_tokens: float
    mean_scaled_replicas: float
    scaled_usd_per_day: float
    scaled_usd_per_m_tokens: float
    rates_per_s: tuple[float, ...]
    room_per_s: float
    scaled_replicas: tuple[int, ...]
    lead_s: float = 0.0

    def led(self, lead_s: float) -> Day:
        """The same where a replica takes so long to start: one more for a slice is paid for that long before it."""
        counts = np.array(self.scaled_replicas, dtype=float)
        slice_s = DAY_S / len(counts)
        rises = np.maximum(counts - np.roll(counts, 1), 0.0)
        ahead_s = float(rises.sum()) * min(lead_s, slice_s)
        more = (float(counts.mean()) * DAY_S + ahead_s) / (self.mean_scaled_replicas * DAY_S)
        more = min(more, self.replicas / self.mean_scaled_replicas)
        return replace(
            self,
            lead_s=lead_s,
            mean_scaled_replicas=self.mean_scaled_replicas * more,
            scaled_usd_per_day=self.scaled_usd_per_day * more,
            scaled_usd_per_m_tokens=self.scaled_usd_per_m_tokens * more,
        )


def over_day(
    curve: RateCurve,
    largest_per_s: float,
    replicas: int,
    usd_per_replica_h: float,
    output_tokens: float,
    spare: int = 0,
    most_used: float = 1.0,
) -> Day:
    """`replicas` that each sustain `largest_per_s`, kept on all day, against replicas that follow the curve.

    Requests beyond what is sustained are not served and not counted as tokens. A fleet that follows the curve
    starts and stops replicas at once: `Day.led` says what it costs to start them ahead.
    """
    rates = np.array(curve.rates_per_s)
    hours = curve.slice_s / 3600.0
    room = replicas * largest_per_s
    served = np.minimum(rates, room)
    requests = float(np.sum(served)) * curve.slice_s
    tokens = requests * output_tokens
    scaled = np.minimum(replicas_for(rates, largest_per_s, spare, most_used), replicas)
    usd, scaled_usd = 24.0 * replicas * usd_per_replica_h, float(np.sum(scaled)) * hours * usd_per_replica_h
    return Day(
        replicas=replicas,
        peak_utilisation=curve.peak / room,
        mean_utilisation=float(np.mean(served)) / room,
        saturated_hours=float(np.sum(rates > room * (1.0 + 1e-9))) * hours,
        requests_per_day=requests,
        tokens_per_day=tokens,
        usd_per_day=usd,
        usd_per_m_tokens=usd / tokens * PER_MILLION,
        mean_scaled_replicas=float(np.mean(scaled)),
        scaled_usd_per_day=scaled_usd,
        scaled_usd_per_m_tokens=scaled_usd / tokens * PER_MILLION,
        rates_per_s=curve.rates_per_s,
        room_per_s=largest_per_s,
        scaled_replicas=tuple(int(n) for n in scaled),
    )


def at_most_away(mean: float, bunch: float, most: int) -> Array:
    """Share of the time in which at most 0, 1, ... `most` are away, whose `mean` is failures per hour x hours of
    repair: a Poisson number, or where failures bunch a negative binomial one of a variance `bunch` times its mean."""
    if mean <= 0.0:
        return np.ones(most + 1)
    size = mean / (bunch - 1.0) if bunch > 1.0 else math.inf
    logs, term = [], -mean if math.isinf(size) else -size * math.log(bunch)
    for k in range(most + 1):
        logs.append(term)
        more = mean if math.isinf(size) else (size + k) * (bunch - 1.0) / bunch
        term += math.log(more / (k + 1.0))
    found: Array = np.minimum(np.cumsum(np.exp(logs)), 1.0)
    return found
