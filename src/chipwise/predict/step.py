"""One forward pass of a sharded program on a device: operators, exchanges and host, added up, or piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.cost.cost import Cost
from chipwise.cost.dataflow import DataflowModel
from chipwise.cost.device import Device
from chipwise.cost.local import LocalModel
from chipwise.cost.price import CostParameters, narrow, price
from chipwise.cost.simt.family import SimtParameters
from chipwise.numeric import content
from chipwise.parallel.collective import Comm
from chipwise.parallel.layout import Layout
from chipwise.parallel.overlap import behind, stolen_share
from chipwise.parallel.shard import Sharded, shard
from chipwise.predict.alike import Alike, Repeated
from chipwise.predict.exchange import comm_time, device_network
from chipwise.predict.overheads import Overheads
from chipwise.predict.parts import STARTS, TOWER, part_of, quantity
from chipwise.units import Array, Real, scalar
from chipwise.values import dataclass
from chipwise.workload.moe import busiest_rank, distinct_experts
from chipwise.workload.op import Op
from chipwise.workload.program import Pictures
from chipwise.workload.step import Columns, Step, abreast, is_decoding

_Seconds = Callable[[Op, Device, CostParameters], Cost]

NARROW = frozenset(("fp8", "int8", "fp4"))
# One scale per matrix, known beforehand: the norm or activation before writes narrow values itself.
STATIC = frozenset(("fp8",))
EXCHANGED = "all_to_all"  # the part that takes tokens to their experts and back
NOTHING = Cost({"compute": 0.0, "memory": 0.0, "network": 0.0, "launch": 0.0, "host": 0.0})
"""seconds: by resource. Exact: nothing takes none."""


def step_cost(sharded: Sharded, step: Step, device: Device, efficiency: CostParameters, overheads: Overheads) -> Cost:
    """Seconds of one pass of one replica, by resource. Broadcasts over layout, step and device.

    Operators run one after the other; exchanges are not hidden behind them. Pipeline stages follow each
    other, so this is the time a token takes; stages work on other batches meanwhile (the caller counts
    them). Every part is multiplied by the factor that served workloads gave it (`Overheads.factors`). Latency of
    exchanges counts as launch, which faster links do not shorten; network is bytes over bandwidth. The device waits for
    a host that takes longer to start the kernels of a pass with prompts than they take.
    """
    total = NOTHING
    for _, cost in scaled_parts(sharded, step, device, efficiency, overheads):
        total = total + cost
    return total


def scaled_parts(
    sharded: Sharded, step: Step, device: Device, efficiency: CostParameters, overheads: Overheads
) -> Iterator[tuple[str, Cost]]:
    """What `step_cost` adds up: `step_parts` times their factors, all exposed. All of the host's work per pass is under
    "host"; what the device waits for kernels to be started (`STARTS`) comes last."""
    yield from _scaled(step_parts(sharded, step, device, efficiency, overheads), overheads)


def _scaled(parts: Iterable[tuple[str, Cost]], overheads: Overheads) -> Iterator[tuple[str, Cost]]:
    factors, total = overheads.factors, NOTHING
    starts_s: Real = 0.0
    for part, cost in parts:
        of = cost.hidden if part == STARTS else cost.exposed
        seconds = {name: s * factors.get(quantity(part, name), 1.0) for name, s in of.items()}
        if part == STARTS:
            starts_s = seconds["host"]
            continue
        cost = Cost({"host": seconds["launch"] + seconds["host"]} if part == "host" else seconds)
        total = total + cost
        yield part, cost
    yield STARTS, Cost({"host": np.maximum(starts_s - total.total_s, 0.0)})


def step_parts(
    sharded: Sharded, step: Step, device: Device, efficiency: CostParameters, overheads: Overheads
) -> Iterator[tuple[str, Cost]]:
    """Every operator and exchange of one pass of one replica: its part (see `parts`) and its seconds, repeats
    included, before any factor. Latency of exchanges and the host's work per pass are under "launch"; starting kernels
    of passes with prompts (`STARTS`) is hidden: it goes on while the device works, and bounds the pass from below.

    Where experts lie over a network and the runtime works on two halves of a batch in turn, exchanges of one half hide
    behind the other's work; `_overlapped`."""
    yield from _of_rows(parts_alike(sharded, step, device, efficiency, overheads, None))


def parts_alike(
    sharded: Sharded,
    step: Step,
    device: Device,
    efficiency: CostParameters,
    overheads: Overheads,
    alike: Alike | None,
    only: tuple[str, ...] = ("",),
) -> Iterator[tuple[str, Cost | Repeated]]:
    """`step_parts`, where rows are `alike` of each kind of them, unless the step itself differs between rows; `only`
    operators whose parts begin so are asked for, where nothing hides behind others."""
    wide = np.asarray(sharded.layout.tp * sharded.layout.dp > device.domain)
    able = wide & np.asarray(step.sequences >= 2.0)
    if overheads.two_batches and able.any():
        steals = np.where(step.decodes, 0.0, stolen_share(device.family))
        half = step.scaled(0.5)
        asked = [step, half] if step.columns is None else [abreast([step, half])]
        priced = [_of_rows(_parts(sharded, of, device, efficiency, overheads, alike)) for of in asked]
        whole, halves = priced if len(asked) > 1 else _in_two(priced[0], np.shape(asked[0].tokens)[-1])
        yield from _overlapped(whole, halves, able, steals)
    else:
        yield from _parts(sharded, step, device, efficiency, overheads, alike, only)
    if "" not in only:
        return
    if sharded.program.pictures is not None and not all(is_decoding(s) for s in step.segments):
        yield from _tower(sharded.program.pictures, sharded.layout, step, device, efficiency, overheads)


def _of_rows(parts: Iterable[tuple[str, Cost | Repeated]]) -> list[tuple[str, Cost]]:
    return [(name, cost.cost if isinstance(cost, Repeated) else cost) for name, cost in parts]


def _in_two(parts: Sequence[tuple[str, Cost]], width: int) -> list[list[tuple[str, Cost]]]:
    """The parts of the first half of so many columns, and those of the other."""

    def some(values: Mapping[str, Real], columns: slice) -> dict[str, Real]:
        at = ((name, np.asarray(seconds)) for name, seconds in values.items())
        return {name: s[..., columns] if s.shape[-1:] == (width,) else s for name, s in at}

    halves = slice(0, width // 2), slice(width // 2, width)
    return [[(p, Cost(some(c.exposed, h), some(c.hidden, h))) for p, c in parts] for h in halves]


def _tower(
    shown: Pictures, layout: Layout, step: Step, device: Device, costs: CostParameters, overheads: Overheads
) -> Iterator[tuple[str, Cost]]:
    """The vision tower on the pictures that go with the prompts of a pass, cut by tensors as the language model is:
    every rank starts all its kernels, does its part of their work and adds up with the others twice a layer."""
    prompts: Real = sum(s.batch * s.q for s in step.segments if not is_decoding(s)) / shown.prompt_tokens
    for repeat, op in shown.ops:
        cost = price(op, device, costs) * (repeat * prompts)
        yield (
            TOWER + part_of(op),
            Cost({name: s if name == "launch" else s / layout.tp for name, s in cost.exposed.items()}),
        )
    summed = Comm("all_reduce", shown.exchanged_bytes, layout.tp, "tp")
    latency, transfer = comm_time(summed, layout, device_network(device), costs, overheads)
    times = shown.exchanges * prompts
    yield TOWER + summed.kind, Cost({"launch": latency * times, "network": transfer * times})


def _overlapped(
    whole: Sequence[tuple[str, Cost]], halves: Sequence[tuple[str, Cost]], able: NDArray[np.bool_], steals: Real
) -> Iterator[tuple[str, Cost]]:
    """The parts of a pass, in two halves where that is `able` and faster: twice what a half takes, of exchanges of
    experts only what outlasts all other work of the device, which `steals` slow meanwhile (`parallel.overlap`); few
    tokens are exchanged by the network cards alone."""

    def seconds(parts: Sequence[tuple[str, Cost]], exchanged: bool) -> Real:
        mine = (cost.total_s for part, cost in parts if part != "host" and (part == EXCHANGED) is exchanged)
        return sum(mine, np.zeros(()))

    work, exchange = 2.0 * seconds(halves, False), 2.0 * seconds(halves, True)
    seen = behind(work, exchange, steals) - work
    faster = able & np.asarray(work + seen < seconds(whole, False) + seconds(whole, True))
    left = seen / np.maximum(exchange, 1e-15)
    for (part, one), (_, half) in zip(whole, halves, strict=True):
        if part in ("host", STARTS):
            yield part, one
            continue
        scale = 2.0 * (left if part == EXCHANGED else 1.0)
        yield (part, Cost({name: np.where(faster, scale * half.exposed[name], s) for name, s in one.exposed.items()}))


def _parts(
    sharded: Sharded,
    step: Step,
    device: Device,
    efficiency: CostParameters,
    overheads: Overheads,
    alike: Alike | None,
    only: tuple[str, ...] = ("",),
) -> Iterator[tuple[str, Cost | Repeated]]:
    """`parts_alike` of a pass in one piece."""
    whole, network, costs = sharded, device_network(device), efficiency
    if any(np.shape(v)[:1] > (1,) for s in step.segments for v in (s.batch, s.q, s.kv)):
        alike = None
    if alike is not None:
        sharded, device, efficiency = shard(sharded.program, alike.layout), alike.device, alike.numbers
    if isinstance(efficiency, DataflowModel):
        # compilers spread a model evenly over its chips
        efficiency = efficiency.holding(sharded.program.weight_bytes / sharded.layout.devices)
    elif isinstance(efficiency, LocalModel):
        efficiency = efficiency.staged(sharded.layout.pp)
    none: Real = 0.0 if step.columns is None else np.zeros((1, np.shape(step.tokens)[-1]))
    decoding = sum((s.batch * s.q for s in step.segments if is_decoding(s)), none)
    prompts = ~np.asarray(step.decodes)
    kernels = _Sums()

    known: dict[Hashable, Any] = {}  # blocks that differ elsewhere have operators and exchanges in common

    def asked(op: Op, columns: Columns | None, seconds: _Seconds = price) -> Cost:
        """Of one operator, once, in all columns."""

        def beside(op: Op, device: Device, numbers: CostParameters) -> Cost:
            if isinstance(numbers, SimtParameters):
                numbers = numbers.beside(decoding if columns is None else np.asarray(decoding)[..., columns])
            return seconds(op, device, numbers)

        key = seconds, id(columns), content(op)
        if key not in known:
            cost = beside(op, device, efficiency) if alike is None else alike.price(op, beside)
            known[key] = cost if columns is None else _in_columns(cost, columns, step)
        found: Cost = known[key]
        return found

    def times(cost: Cost, repeat: Real) -> Cost | Repeated:
        return cost * repeat if alike is None else Repeated(cost, repeat, alike)

    for repeat, op, columns in sharded.placed(step, whole):
        if not (part := part_of(op)).startswith(only):
            continue
        kernels.add(repeat, _kernels(op) * _within(columns, step))
        cost = asked(op, columns)
        yield part, times(cost, repeat)
        if op.kind == "experts":
            yield "imbalance", times(_imbalance(op, sharded.layout, cost), repeat)
        if op.kind == "gemm" and narrowed(op):
            yield "quantise", times(asked(op, columns, narrow), repeat)
    if "" not in only:
        return
    within = network if alike is None else device_network(device)
    for repeat, comm in sharded.comms(step, whole):
        between = comm.axis == "pp"  # stages are of a row, not of its kind
        seen = (whole.layout, network, costs) if between else (sharded.layout, within, efficiency)
        if (key := content(comm)) not in known:
            known[key] = comm_time(comm, *seen, overheads)
        latency, transfer = known[key]
        ranks = comm.ranks if alike is None or between else alike.spread(comm.ranks)
        kernels.add(repeat, np.where(np.asarray(ranks) > 1.0, 1.0, 0.0))
        cost = Cost({"launch": latency, "network": transfer})
        yield comm.kind, cost * repeat if between else times(cost, repeat)
    if prompts.any():
        able = whole.program.in_pieces & (np.asarray(whole.layout.dp) <= 1.0)
        start_s = np.where(able, overheads.starts_s, overheads.eager_s)
        if start_s.any():
            yield STARTS, Cost({}, {"host": np.where(prompts, kernels.total() * start_s, 0.0)})
    # every stage has a host process of its own, which works for each micro-batch
    passes = whole.layout.pp * overheads.iteration_s
    yield "host", Cost({"launch": passes, "host": overheads.sequence_s * step.sequences})


class _Sums:
    """Sums of what is repeated, one for each number of repeats: blocks share theirs."""

    def __init__(self) -> None:
        self._of: dict[int, tuple[Real, Real]] = {}

    def add(self, repeat: Real, value: Real) -> None:
        """One more of `value`, so many times."""
        _, before = self._of.get(id(repeat), (repeat, 0.0))
        self._of[id(repeat)] = repeat, before + value

    def total(self) -> Real:
        """All of them, repeats included."""
        total: Real = 0.0
        for repeat, value in self._of.values():
            total = total + repeat * value
        return total


def narrowed(op: Op) -> bool:
    """Whether a kernel of its own writes the input of a product in few bits."""
    return op.kind in ("gemm", "experts") and op.compute in NARROW and op.weight not in STATIC


def _kernels(op: Op) -> float:
    """Kernels of an operator whose host starts each: those that narrow its inputs too, of both products of experts."""
    return op.launches + (float(narrowed(op)) * (2.0 if op.kind == "experts" else 1.0))


def _within(columns: Columns | None, step: Step) -> Real:
    """1 in some of the passes that stand side by side in a step, 0 in others; None: in all."""
    if columns is None:
        return 1.0
    found = np.zeros(np.shape(step.tokens)[-1])
    found[columns] = 1.0
    return found


def _in_columns(cost: Cost, columns: Columns, step: Step) -> Cost:
    """The exposed seconds of some of the passes that stand side by side in a step, none in the columns of others."""
    width = np.shape(step.tokens)[-1]

    def spread(seconds: Real) -> Array:
        found = np.zeros((*np.shape(seconds)[:-1], width))
        found[..., columns] = seconds
        return found

    return Cost({name: spread(seconds) for name, seconds in cost.exposed.items()})


def _imbalance(op: Op, layout: Layout, even: Cost) -> Cost:
    """What the busiest rank of experts takes beyond the mean one."""
    d = op.dims
    hit = distinct_experts(d["tokens"], d["experts"], d["top_k"])
    read, rows = busiest_rank(layout.ep, d["experts"], hit, d["tokens"] * d["top_k"])
    none: Real = 0.0
    return Cost(
        {
            "memory": (read - 1.0) * even.exposed.get("memory", none),
            "compute": (rows - 1.0) * even.exposed.get("compute", none),
            "on-chip": (rows - 1.0) * even.exposed.get("on-chip", none),
        }
    )


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
