"""From what chips do to watts and joules as records read them."""

from __future__ import annotations

import math
from dataclasses import replace

from chipwise.calibrate.energy import EnergyFit
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.chip import Chip
from chipwise.catalog.price import load_assumptions
from chipwise.catalog.system import load_systems
from chipwise.catalog.system_spec import System
from chipwise.evidence.axes import Levels, chip_axes
from chipwise.evidence.discrepancy import Scatter, spread_of
from chipwise.evidence.judge import Estimate, Nearness, basis_of, judge
from chipwise.evidence.tiers import power_tier
from chipwise.predict.energy import PoweredMachine, PowerModel, Use
from chipwise.report.records import EnergyRecord, Figure, figure
from chipwise.values import dataclass

JOULE_PER_KWH = 3.6e6
TOKENS, SAMPLES, SUBMITTED = "language models served", "images and videos made", "submissions to MLPerf"
"""What ran where power was measured, as the model of error calls it: chips alone that served or made samples, and
whole machines at the plug."""


@dataclass(frozen=True, slots=True)
class Powered:
    """What turns the work of a chip into watts: its limit, the shares of it, the machine around it, how `near` measured
    power is, what the building adds (`pue`). `levels` of the chip in the model of error; `kind`: what runs on it."""

    limit_w: float
    power: PowerModel
    machine: PoweredMachine
    near: Nearness
    pue: float
    levels: Levels
    kind: str = TOKENS

    @classmethod
    def of(cls, chip: Chip, chips: int, system: System | None, numbers: Parameters) -> Powered | None:
        """Of so many chips, in several of a `system` where no machine holds them all; None where their power limit is
        not published."""
        if chip.tdp_w is None:
            return None
        fit, pue = numbers.derived(EnergyFit.of), load_assumptions()["pue"].value
        machine = fit.machine(form_of(chip, chips, system))
        return cls(chip.tdp_w, fit.power, machine, power_tier(chip, numbers), pue, chip_axes(chip))


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
    powered: Powered, use: Use, chips: int, machines: int, rate: Estimate, tokens: float | None
) -> EnergyRecord:
    """Power of `chips` in `machines` at `use` that give `rate` tokens per second, and energy per token; per request of
    `tokens`, where there are requests (None: training).

    Joules are watts over tokens per second. Those of serving have an interval that was measured as a whole, no narrower
    than that of the speed; those of training those of power and speed together. A plug delivers what chips draw: no end
    of its joules is below that of theirs.
    """
    basis = basis_of(powered.near)

    def spread(figure: str) -> Scatter:
        kind = powered.kind if figure == "chip" else SUBMITTED
        return spread_of({**powered.levels, "kind": kind}, "energy", figure)

    def judged(mid: float, figure: str, most: float = math.inf) -> Estimate:
        s = spread(figure)
        return judge(mid, s.around(), basis, provisional=not s.known[0], most=most)

    mid = float(powered.power.share(use)) * powered.limit_w
    one = judged(mid, "chip", powered.limit_w)
    wall_w = float(powered.machine.wall_w(mid * chips, machines))
    wall = judged(wall_w, "wall")
    whole = None if tokens is None else judged(1.0, "joules")

    def joules(watts: Estimate, total_w: float) -> Figure:
        each = total_w / rate.mid
        slow, fast = rate.mid / rate.low, rate.mid / rate.high
        if whole is None:
            low, high = _together(watts.low / watts.mid, fast), _together(watts.high / watts.mid, slow)
        else:
            low, high = min(whole.low, fast), max(whole.high, slow)
        return Figure(each, each * low, each * high, watts.basis, watts.provisional)

    def request(token: Figure) -> Figure | None:
        if tokens is None:
            return None
        return replace(token, mid=tokens * token.mid, low=tokens * token.low, high=tokens * token.high)

    inside, plug = joules(one, mid * chips), joules(wall, wall_w)
    plug = replace(plug, low=max(plug.low, inside.low), high=max(plug.high, inside.high))
    return EnergyRecord(
        chip_w=figure(one),
        node_w=figure(wall.scaled(1.0 / machines)),
        wall_w=figure(wall),
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
