"""The pieces of a forward pass, operator by operator: what `step_cost` adds up, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chipwise.cost.device import Device
from chipwise.cost.price import CostParameters
from chipwise.parallel.shard import Sharded
from chipwise.predict.overheads import Overheads
from chipwise.predict.parts import STARTS, TOWER
from chipwise.predict.step import scaled_parts
from chipwise.units import scalar
from chipwise.workload.op import Op
from chipwise.workload.step import Step

# Parts that belong to the operator before them.
BESIDE = ("imbalance", "quantise")
WAITS = "waits for kernels to be started"


@dataclass(frozen=True)
class Piece:
    """Operators of one name in a pass: their work on one device, and their exposed seconds by resource."""

    name: str
    kind: str
    dtype: str
    repeats: float
    flops: float
    bytes: float
    exposed_s: Mapping[str, float]

    @property
    def seconds(self) -> float:
        """Seconds that pass."""
        return sum(self.exposed_s.values())

    def plus(self, other: Piece) -> Piece:
        """Both together."""
        names = dict.fromkeys((*self.exposed_s, *other.exposed_s))
        seconds = {n: self.exposed_s.get(n, 0.0) + other.exposed_s.get(n, 0.0) for n in names}
        repeats, flops = self.repeats + other.repeats, self.flops + other.flops
        return Piece(self.name, self.kind, self.dtype, repeats, flops, self.bytes + other.bytes, seconds)


def pieces(
    sharded: Sharded, step: Step, device: Device, efficiency: CostParameters, overheads: Overheads
) -> dict[str, Piece]:
    """The pieces of a pass by name. Their seconds add up to those of `step_cost` with the same arguments, which
    describe one deployment at one load."""
    ops = iter(sharded.ops(step))
    comms = sharded.comms(step)
    left = sum(1 for _ in sharded.ops(step))
    found: dict[str, Piece] = {}
    last: Op | None = None
    for part, cost in scaled_parts(sharded, step, device, efficiency, overheads):
        seconds = {name: scalar(value) for name, value in cost.exposed.items()}
        if part == STARTS:
            if not seconds["host"]:
                continue
            piece = Piece(WAITS, "host", "", 1.0, 0.0, 0.0, seconds)
        elif part.startswith(TOWER):
            piece = Piece("vision tower", "tower", "", 1.0, 0.0, 0.0, seconds)
        elif part in BESIDE and last is not None:
            piece = Piece(f"{last.name}: {part}", part, last.compute, 0.0, 0.0, 0.0, seconds)
        elif left:
            repeat, last = next(ops)
            left -= 1
            times = scalar(repeat)
            work = times * scalar(last.flops), times * scalar(last.bytes)
            piece = Piece(last.name, last.kind, last.compute, times, *work, seconds)
        elif part == "host":
            piece = Piece(part, part, "", 1.0, 0.0, 0.0, seconds)
        else:
            times = scalar(next(comms)[0])
            piece = Piece(part.replace("_", "-"), "exchange", "", times, 0.0, 0.0, seconds)
        found[piece.name] = found[piece.name].plus(piece) if piece.name in found else piece
    return found
