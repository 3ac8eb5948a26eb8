"""From what chips do to watts and joules as records read them."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.evidence.judge import Estimate, Nearness, judge, tier_factors
from chipwise.predict.energy import Machine, PowerModel, Use
from chipwise.report.records import EnergyRecord, Figure

__all__ = ["JOULES", "JOULE_PER_KWH", "Drawn", "energy_record"]

JOULE_PER_KWH = 3.6e6
JOULES = "joules_per_token"
"""The figure whose intervals tell how well joules per token are known, speed and power together."""

SURE: tuple[Nearness, ...] = ("own", "chip")
"""Tiers of a speed that rows of measured energy were of too."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """What decides the power of a deployment: what its chips do, their limit in watts, how a chip and a machine turn
    that into watts, how `near` measured power is, what the building adds (`pue`)."""

    use: Use
    limit_w: float
    power: PowerModel
    machine: Machine
    near: Nearness
    pue: float


def energy_record(
    drawn: Drawn,
    chips: int,
    machines: int,
    rate: Estimate,
    speed: Nearness,
    tokens: float | None,
) -> EnergyRecord:
    """Power of `chips` in `machines` that give `rate` tokens per second, whose interval is that of a `speed` of that
    tier, and energy per token; per request of `tokens`, where there are requests.

    Joules are watts over tokens per second; their interval was measured as a whole, and is no narrower than that of
    the speed where the speed is less well known.
    """
    mid = float(drawn.power.share(drawn.use)) * drawn.limit_w
    one = judge("chip_w", mid, drawn.near, most=drawn.limit_w)
    wall_w = float(drawn.machine.wall_w(mid * chips, machines))
    wall = judge("wall_w", wall_w, drawn.near)
    f = tier_factors(JOULES, drawn.near)
    low, high = f.low, f.high
    if speed not in SURE:
        low, high = min(low, rate.mid / rate.high), max(high, rate.mid / rate.low)

    def joules(watts: Estimate, total_w: float, scale: float) -> Figure:
        each = total_w / rate.mid * scale
        return Figure(each, each * low, each * high, watts.basis, watts.provisional or not f.tested)

    def shown(e: Estimate) -> Figure:
        return Figure(e.mid, e.low, e.high, e.basis, e.provisional)

    return EnergyRecord(
        chip_w=shown(one),
        node_w=shown(wall.scaled(1.0 / machines)),
        wall_w=shown(wall),
        joules_per_token=joules(one, mid * chips, 1.0),
        joules_per_token_wall=joules(wall, wall_w, 1.0),
        joules_per_request=None if tokens is None else joules(one, mid * chips, tokens),
        joules_per_request_wall=None if tokens is None else joules(wall, wall_w, tokens),
        limit_w=drawn.limit_w,
        machines=machines,
        pue=drawn.pue,
        use={name: float(getattr(drawn.use, name)) for name in ("memory", "compute", "integer")},
    )
