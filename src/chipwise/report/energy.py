"""From what chips do to watts and joules as records read them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from chipwise.calibrate.energy import EnergyFit
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.chip import Chip
from chipwise.catalog.price import load_assumptions
from chipwise.catalog.system import load_systems
from chipwise.catalog.system_spec import System
from chipwise.evidence.judge import Estimate, Nearness, judge, tier_factors
from chipwise.evidence.tiers import power_tier
from chipwise.predict.energy import PoweredMachine, PowerModel, Use
from chipwise.report.records import EnergyRecord, Figure

JOULE_PER_KWH = 3.6e6
JOULES = "joules_per_token"
"""The figure whose intervals tell how well joules per token are known, speed and power together."""
AT_WALL = f"{JOULES} wall"
"""The same of joules at the plug, of submissions to MLPerf."""

OF_SAMPLES = " samples"
"""Suffix of figures of networks without tokens: they compute most of the time, and their speeds are known otherwise."""

SURE: tuple[Nearness, ...] = ("own", "chip")
"""Tiers of a speed that rows of measured energy were of too."""


@dataclass(frozen=True, slots=True)
class Powered:
    """What turns the work of a chip into watts: its limit, the shares of it, the machine around it, how `near` measured
    power is, what the building adds (`pue`). `kind`: suffix of figures of the chips alone, by which they are judged."""

    limit_w: float
    power: PowerModel
    machine: PoweredMachine
    near: Nearness
    pue: float
    kind: str = ""

    @classmethod
    def of(cls, chip: Chip, chips: int, system: System | None, numbers: Parameters) -> Powered | None:
        """Of so many chips, in several of a `system` where no machine holds them all; None where their power limit is
        not published."""
        if chip.tdp_w is None:
            return None
        fit, pue = numbers.derived(EnergyFit.of), load_assumptions()["pue"].value
        machine = fit.machine(form_of(chip, chips, system))
        return cls(chip.tdp_w, fit.power, machine, power_tier(chip, numbers), pue)


def form_of(chip: Chip, chips: int, system: System | None = None) -> str:
    """Form of the smallest machine that holds so many chips, so that one card for desktops is in a desktop; where none
    does, that of `system`. Chips that are the processor of their machine too are on a board, whatever is around it. ""
    for chips in no bundled one."""
    machines = load_systems().holding(chip.software_id)
    room = [s for s in machines if s.chips_per_host >= chips]
    smallest = min(room, key=lambda s: s.chips_per_host, default=system or next(iter(machines), None))
    if smallest is None:
        return ""
    return "board" if smallest.unified and chip.family != "cpu" else smallest.form


def energy_record(
    powered: Powered,
    use: Use,
    chips: int,
    machines: int,
    rate: Estimate,
    speed: Nearness,
    tokens: float | None,
) -> EnergyRecord:
    """Power of `chips` in `machines` at `use` that give `rate` tokens per second, whose interval is that of a `speed`
    of that tier, and energy per token; per request of `tokens`, where there are requests (None: training).

    Joules are watts over tokens per second. Those of serving have an interval that was measured as a whole, no narrower
    than that of the speed where the speed is less well known; those of training those of power and speed together. A
    plug delivers what chips draw: no end of its joules is below that of theirs.
    """
    mid = float(powered.power.share(use)) * powered.limit_w
    one = judge(f"chip_w{powered.kind}", mid, powered.near, most=powered.limit_w)
    wall_w = float(powered.machine.wall_w(mid * chips, machines))
    wall = judge("wall_w", wall_w, powered.near)

    def joules(watts: Estimate, total_w: float, figure: str) -> Figure:
        each, f = total_w / rate.mid, tier_factors(figure, powered.near)
        low, high = min(f.low, 1.0), max(f.high, 1.0)
        slow, fast = rate.mid / rate.low, rate.mid / rate.high
        if tokens is None:
            low, high = _together(watts.low / watts.mid, fast), _together(watts.high / watts.mid, slow)
        elif speed not in SURE:
            low, high = min(low, fast), max(high, slow)
        return Figure(each, each * low, each * high, watts.basis, watts.provisional or not f.tested)

    def shown(e: Estimate) -> Figure:
        return Figure(e.mid, e.low, e.high, e.basis, e.provisional)

    def request(token: Figure) -> Figure | None:
        if tokens is None:
            return None
        return replace(token, mid=tokens * token.mid, low=tokens * token.low, high=tokens * token.high)

    inside, plug = joules(one, mid * chips, JOULES + powered.kind), joules(wall, wall_w, AT_WALL)
    plug = replace(plug, low=max(plug.low, inside.low), high=max(plug.high, inside.high))
    return EnergyRecord(
        chip_w=shown(one),
        node_w=shown(wall.scaled(1.0 / machines)),
        wall_w=shown(wall),
        joules_per_token=inside,
        joules_per_token_wall=plug,
        joules_per_request=request(inside),
        joules_per_request_wall=request(plug),
        limit_w=powered.limit_w,
        machines=machines,
        pue=powered.pue,
        use={name: float(getattr(use, name)) for name in ("memory", "compute", "integer")},
    )


def _together(a: float, b: float) -> float:
    """The end of an interval over its middle, of a product of two that are independent."""
    far = math.hypot(math.log(a), math.log(b))
    return math.exp(far if a * b > 1.0 else -far)
