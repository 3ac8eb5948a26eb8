"""What a pipeline takes on devices: every stage's operators priced, spread over devices, started by a host.

A stage is priced by parts (products, convolutions, attention, element-wise work, exchanges), so that a runtime's
numbers are factors of parts:

    t_part = <factor x seconds, energy x seconds at the power limit>
    t_call = <sum over parts of t_part, launches x host_s + what the host does itself>
    t = request_s + sum over stages of calls x (t_call + call_s)

The host runs ahead of the device and is seen only where it is the slower of the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, fields, replace
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from chipwise.cost.cost import Cost, soft_maximum
from chipwise.cost.device import Device
from chipwise.cost.price import CostParameters, price
from chipwise.cost.simt.family import Labels, SimtParameters, group_of, kernel_of, limited_s
from chipwise.parallel.collective import Kind, exchange
from chipwise.parallel.layout import ONE, Spread
from chipwise.parallel.memory import MemoryAccount, MemoryItem
from chipwise.parallel.overlap import uncovered
from chipwise.parallel.shard import cut
from chipwise.predict.exchange import device_network, exchange_numbers
from chipwise.predict.overheads import Overheads
from chipwise.units import Array, Real
from chipwise.values import dataclass
from chipwise.workload.backward import PARTS, STATES
from chipwise.workload.formats import FORMATS
from chipwise.workload.op import UNJOINED, Op, decodes, pointwise
from chipwise.workload.program import Counted, Program, Stage

MediaPart = Literal["gemm", "conv", "attention", "pointwise", "epilogue", "other", "exchange", "offload"]
MEDIA_PARTS: tuple[MediaPart, ...] = get_args(MediaPart)
Offload = Literal["none", "model", "sequential"]

LEAST_S = 1e-30
"""seconds: for ratios. Exact: guards a division, below any time."""
POWER_SOFTNESS = 4.0
"""exponent: of speed against power, as of products. Chosen: a corner as round as the roofline's; moves calls within a
tenth of the limit, by at most 19 %."""
HIDES = 4.0
"""exponent: of device against host. Chosen: queues are deep, and a call is rarely held up by one of them throughout;
moves calls whose kernels and starts take as long, by at most 19 %."""
OVERLAPPED = 0.5
"""share of a training step: the backward pass, behind which gradients are summed. Chosen: gradients come through most
of it, two thirds of the step; moves training of networks on several devices whose sums take longer."""
PACKED = 2.0
"""count: kernels of an exchange besides itself. Exact: pack, unpack."""
WIDE_BITS = 16.0
"""bits: of a type that needs no conversion. Exact: 16."""
WIDENING, NARROWING = 3.5, 8.0
"""count: 16-bit reads and writes of an element that is converted operator by operator. Source: pytorch/ao without a
compiler: weights of a byte to 16 bits by a cast and a product with the scale; activations to 8 bits by the largest
value, division, clamp and cast."""
NARROWED, WIDENED, BIAS, FEW_ROWS = 3.0, 3.0, 4.0, 8.0
"""count: 16-bit reads and writes of software that keeps activations in fp32 (one in is narrowed, one out widened, a
bias added by a kernel of its own), and rows up to which products read and write fp32 as they are. Source:
ggml-org/llama.cpp ggml-cuda (ggml_cuda_op_mul_mat_cublas, mul_mat_vec)."""
COMPOSED: Mapping[str, tuple[float, float]] = {
    "rms_norm": (8.5, 8.0),
    "rotate": (12.75, 16.0),
    "modulate": (2.0, 3.0),
    "gated_add": (1.67, 2.0),
    "gate": (1.67, 2.0),
    "geglu": (1.67, 2.0),
    "swiglu": (1.67, 2.0),
}
"""ratio, count: bytes over those of one kernel, and kernels, of element-wise work that nothing folds. Bytes of an
element: the root mean square in fp32 is a cast (6), squares (8), a mean (4), a product (6), a cast (6) and a product
with the scale (4) for 4; a rotation casts, turns, multiplies twice and adds in fp32, 51 for 4. Source:
huggingface/diffusers models/normalization.py RMSNorm, models/embeddings.py apply_rotary_emb."""
REGISTER_MACS = 1024.0
"""multiply-adds of 16 bits per unit and cycle: where operands pass through registers (mma.sync), as FlashAttention-2
multiplies. Source: NVIDIA A100 whitepaper: all of an A100, half of an H100."""
SOFTMAX_CYCLES = 0.09
"""cycles of a unit: for what softmax does with a score, an exponential, 16 of which end per cycle, and some
operations in fp32. Source: FlashAttention-2 multiplies nothing meanwhile, which explains 59 and 73 % of A100's peak
at heads of 64 and 128 (Dao, 2023) and 35 % of H100's (Shah et al., 2024)."""
FLASH_WIDTHS = (32.0, 64.0, 96.0, 128.0, 160.0, 192.0, 224.0, 256.0)
"""elements: widths of heads that FlashAttention-2 has kernels for. Source: Dao-AILab/flash-attention csrc/flash_attn
(one file per head dimension)."""
OVERLAPS = 1.25
"""exponent: of products against softmax where some warps multiply while others do softmax. Source: FlashAttention-3
reaches 497, 648 and 756 of an H100's 989 TFLOP/s at heads of 64, 128 and 256 (Shah et al., 2024, forward, no mask,
16,384 tokens)."""
COPY_SHARE = 0.4
"""share of the host's link: that copies of pageable memory reach. Chosen: they pass through a pinned buffer, twice
over memory; moves networks whose parts wait on the host in proportion."""


@dataclass(frozen=True)
class Hardware:
    """A device with the numbers of its kernels and exchanges; `host_bytes_per_s` is its link to the host. `tf32_conv`:
    its software multiplies fp32 convolutions in TF32 where the chip has such units. `converts`: it
    converts operands of narrow products operator by operator. `widens`: it keeps activations in fp32 around products of
    16 bits. `folds`: casts are folded into the work around them. `turns`: convolutions of 16 bits and TF32
    are made for channels last, and tensors are laid out plane by plane. `starts`: what a host takes to
    start an operator of a name or kind over what it takes for a product. `host`: seconds of a unit of what a host does
    itself, by kind. `loops`: it starts a loop of a transducer as one graph."""

    device: Device
    costs: CostParameters
    overheads: Overheads
    host_bytes_per_s: float = np.nan
    tf32_conv: bool = False
    converts: bool = False
    widens: bool = False
    folds: bool = False
    turns: bool = False
    starts: Mapping[str, float] = field(default_factory=dict)
    host: Mapping[str, float] = field(default_factory=dict)
    loops: bool = False

    def exchange_s(self, kind: Kind, num_bytes: Real, ranks: int) -> Array:
        """Seconds of one exchange, or of several; of several chips each, along a first axis."""
        numbers = exchange_numbers(kind, self.costs, self.overheads)
        flat = exchange(kind, np.ravel(num_bytes), float(ranks), device_network(self.device), numbers)
        found = np.asarray(flat.total_s)
        return found.reshape((*found.shape[:-1], *np.shape(num_bytes)))

    @property
    def like(self) -> tuple[object, ...]:
        """What chips have in common whose stages are priced as one array; each of a kind without such stands alone."""
        simt = isinstance(self.costs, SimtParameters)
        return _Does.of(self), tuple(self.starts.items()), 0 if simt else id(self)

    @classmethod
    def stacked(cls, many: Sequence[Hardware]) -> Hardware:
        """Chips that are `like` each other, shaped [chips, 1]; one alone as it is."""
        costs = [one.costs for one in many if isinstance(one.costs, SimtParameters)]
        if len(many) == 1 or len(costs) < len(many):
            return many[0]
        index = np.arange(len(many)).reshape(-1, 1)
        device = Device.stack([one.device for one in many]).take(index)
        return replace(many[0], device=device, costs=SimtParameters.stack(costs).take(index))


@dataclass(frozen=True)
class StageTimes:
    """One call of a stage: exposed seconds by part before a runtime's factors, and the kernels that a host starts.
    `limited_s`: seconds of parts that multiply where nothing but the power limit holds them up. `host_s`: seconds of
    what the host does itself."""

    name: str
    calls: Real
    parts: Mapping[MediaPart, Cost]
    launches: Real
    limited_s: Mapping[MediaPart, Real] = field(default_factory=dict)
    host_s: Real = 0.0

    def of(self, part: MediaPart) -> float:
        """Seconds of a part."""
        return float(self.parts[part].total_s) if part in self.parts else 0.0


@dataclass(frozen=True)
class Pace:
    """A runtime's own numbers: `factors` of parts; `energy` of a multiplication in work of seconds over that of short
    timings, which run on charge and on cool chips; `host_s` per kernel that a host starts (0 where a graph does);
    `call_s` per call of a stage and `request_s` per request of what no kernel does. Numbers or arrays."""

    factors: Mapping[MediaPart, Real] = field(default_factory=dict)
    energy: Real = 0.0
    host_s: Real = 0.0
    call_s: Real = 0.0
    request_s: Real = 0.0


def flash_attention(costs: SimtParameters, device: Device, *, overlapped: bool) -> SimtParameters:
    """The numbers of kernels with those of FlashAttention for attention of 16 bits that does not decode.

    A score takes a unit (D + Dv) / macs cycles of products and `SOFTMAX_CYCLES`: one after the other in version 2,
    whose operands pass through registers and whose heads are padded to `FLASH_WIDTHS`; `overlapped` in version 3 and
    what is like it, at the instruction's full rate.
    """
    macs = device.matrix["bf16"] / (2.0 * device.units * device.clock_hz)

    def find(group: str, labels: Labels) -> Mapping[str, Real]:
        found, said = costs.find(group, labels), dict(labels)
        if group != "simt.prompt" or said.get("dtype") != "b16":
            return found
        width = float(said["head_dim"])
        if overlapped:
            each = soft_maximum({"multiply": 2.0 * width / macs, "softmax": SOFTMAX_CYCLES}, OVERLAPS).total_s
        else:
            padded = next((w for w in FLASH_WIDTHS if w >= width), width)
            each = 2.0 * padded / np.minimum(macs, REGISTER_MACS) + SOFTMAX_CYCLES
        # the formula pads heads to 16 itself
        share = 2.0 * np.ceil(width / 16.0) * 16.0 / macs / each
        return {**found, "compute_share": share, "exponential_share": 0.0}

    return replace(costs, find=find)


def seconds(stages: Sequence[StageTimes], pace: Pace) -> Cost:
    """Seconds of a request by resource; the equation is that of the module."""
    total: dict[str, Real] = {"host": pace.request_s}
    for stage in stages:
        device: dict[str, Real] = {}
        for part, cost in stage.parts.items():
            own = cost * pace.factors.get(part, 1.0)
            if part in stage.limited_s:
                quick = np.maximum(own.total_s, LEAST_S)
                slow = stage.limited_s[part] * pace.energy
                own = own * (1.0 + (slow / quick) ** POWER_SOFTNESS) ** (1.0 / POWER_SOFTNESS)
            _gather(device, own.exposed)
        device_s = Cost(device).total_s
        host_s = stage.launches * pace.host_s + stage.host_s
        both = soft_maximum({"device": device_s, "host": host_s}, HIDES).exposed
        # the device's part keeps the proportions of its resources
        kept = both["device"] / np.maximum(device_s, LEAST_S)
        each = {name: value * kept for name, value in device.items()}
        _gather(each, {"host": both["host"] + pace.call_s})
        _gather(total, {name: value * stage.calls for name, value in each.items()})
    return Cost(total)


def _gather(total: dict[str, Real], more: Mapping[str, Real]) -> None:
    """Adds seconds by resource to a total."""
    for name, value in more.items():
        total[name] = total[name] + value if name in total else value


def stage_times(
    pipeline: Program,
    hardware: Hardware,
    spread: Spread = ONE,
    *,
    offload: Offload = "none",
    known: Known | None = None,
) -> tuple[StageTimes, ...]:
    """Every stage of a pipeline on its devices.

    Stages that are called more than once (a denoiser) are spread over all devices, others only over samples, as servers
    of diffusion models do. Weights that are offloaded are copied once a request, or once a call. `known` keeps what was
    priced on this very hardware, so that ways to share a request price alike stages once.
    """
    known = {} if known is None else known
    price_ahead([(pipeline, spread)], [(hardware, known)])
    found = []
    for stage, own in _shared(pipeline, spread):
        side, at = known[_Same(stage), own]
        times, copied = side.at(at, stage), _copied(stage, hardware, offload)
        if copied:
            times = replace(times, parts={**times.parts, "offload": Cost({"host": copied})})
        itself = sum(amount * hardware.host.get(kind, 0.0) for kind, amount in stage.host)
        if itself:
            times = replace(times, host_s=itself)
        if stage.looped and hardware.loops:
            times = replace(times, launches=0.0)
        found.append(times)
    return tuple(found)


def price_ahead(ways: Iterable[tuple[Program, Spread]], chips: Sequence[Priced]) -> None:
    """Prices pipelines, each shared by devices in some way, on chips that are `like` each other, into what is known of
    each: stages that differ in numbers alone as one. `stage_times` of each is what it is without."""
    left = {
        (_Same(stage), own): pipeline
        for pipeline, spread in ways
        for stage, own in _shared(pipeline, spread)
        if any((_Same(stage), own) not in known for _, known in chips)
    }
    for joined in _joined(tuple(left), _Does.of(chips[0][0])):
        each = _timed(joined, [left[way] for way in joined.ways], [hardware for hardware, _ in chips])
        for (_, known), times in zip(chips, each, strict=True):
            known.update((way, (times, i)) for i, way in enumerate(joined.ways))


def _shared(pipeline: Program, spread: Spread) -> Iterator[tuple[Stage, Spread]]:
    """Stages and how devices share each: one that is called again all of it, others their samples."""
    repeated, samples = _repeated(pipeline), Spread(dp=spread.dp)
    for stage in pipeline.stages:
        yield stage, spread if stage.calls >= repeated else samples


@dataclass(frozen=True)
class _Times:
    """What `StageTimes` says of stages without what waits on the host: exposed seconds by part and resource, and the
    rest, of one stage after the other."""

    parts: Mapping[MediaPart, Mapping[str, Sequence[float]]]
    launches: Sequence[float]
    limited_s: Mapping[MediaPart, Sequence[float]]

    def at(self, i: int, stage: Stage) -> StageTimes:
        """Of one stage: without exchanges where there are none."""
        parts = {
            part: Cost({name: each[i] for name, each in exposed.items()})
            for part, exposed in self.parts.items()
            if part != "exchange" or exposed["network"][i]
        }
        limited = {part: each[i] for part, each in self.limited_s.items()}
        return StageTimes(stage.name, stage.calls, parts, self.launches[i], limited)


def _timed(joined: _Joined, pipelines: Sequence[Program], chips: Sequence[Hardware]) -> list[_Times]:
    """Stages, each of one of the pipelines, on every chip."""
    shape, together = (len(chips), len(joined.ways)), Hardware.stacked(chips)
    parts: Parts = {
        part: (Cost({name: np.broadcast_to(each, shape) for name, each in cost.exposed.items()}), groups)
        for part, (cost, groups) in _parts(joined, together).items()
    }
    exposed = _exchanged(joined, pipelines, parts, together)
    limited = {part: np.broadcast_to(each, shape) for part, each in _limited(parts, joined, together).items()}
    found = []
    for i, hardware in enumerate(chips):
        times = {
            part: {name: np.asarray(each)[i].tolist() for name, each in cost.exposed.items()}
            for part, (cost, _) in parts.items()
        }
        times |= {"exchange": {"network": exposed[i].tolist()}} if exposed[i].any() else {}
        starts = hardware.starts
        # what is started for each sample takes as long as one product
        each = [1.0 if apart else starts.get(name, starts.get(kind, 1.0)) for name, kind, apart in joined.names]
        launches = _one_by_one(joined.counts * (joined.launches * each) / joined.apart)
        held_back = bool(np.isfinite(hardware.device.power_w))
        found.append(
            _Times(
                times,
                (launches + _moves(joined, starts)).tolist(),
                {part: each[i].tolist() for part, each in limited.items()} if held_back else {},
            )
        )
    return found


def _one_by_one(values: Array) -> Array:
    """The sum along the last axis, in order."""
    return np.add.accumulate(values, axis=1)[:, -1] if values.shape[1] else np.zeros(len(values))


@dataclass(frozen=True, slots=True)
class _Does:
    """What software does with operators, which of `Hardware` sets the operators that run."""

    tf32_conv: bool
    converts: bool
    widens: bool
    folds: bool
    turns: bool

    @classmethod
    def of(cls, hardware: Hardware) -> _Does:
        """Of software on hardware."""
        return cls(**{f.name: getattr(hardware, f.name) for f in fields(cls)})


class _Same:
    """A stage as a key: it alone, and none that is like it."""

    __slots__ = ("stage",)

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    def __hash__(self) -> int:
        return id(self.stage)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.stage is self.stage


_Way = tuple[_Same, Spread]
Known = dict[_Way, tuple[_Times, int]]
"""What was priced: a stage and how devices share it, in an array at some place."""
Priced = tuple[Hardware, Known]
"""Hardware, and the stages that were priced on it."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Operators whose formulas differ in numbers alone, of some ways to share a stage: their repeats [ways, operators],
    and all as one (`whole`), as one device runs them (`shared`), one way after the other."""

    counts: Array
    whole: Op
    shared: Op

    def over_ways(self, value: Real) -> Array:
        """A number of each operator, [ways, operators], or [chips, ways, operators] of one of each chip too."""
        shape = np.broadcast_shapes(np.shape(value), (self.counts.size,))
        return np.broadcast_to(value, shape).reshape(*shape[:-1], *self.counts.shape)


@dataclass(frozen=True, slots=True)
class _Joined:
    """Ways to share stages that differ in numbers alone: their groups, and of every operator name and kind, whether it
    is started apart for each sample, its repeats and launches and the devices that deal samples out [ways,
    operators]."""

    ways: tuple[_Way, ...]
    groups: tuple[_Group, ...]
    names: tuple[tuple[str, str, bool], ...]
    counts: Array
    launches: Array
    apart: Array

    def degree(self, of: Callable[[Spread], float]) -> Array:
        """A number of every way to share, [ways, 1]."""
        return np.array([[float(of(spread))] for _, spread in self.ways])


Parts = dict["MediaPart", tuple[Cost, list[_Group]]]


@lru_cache(maxsize=2048)
def _grouped(
    same: _Same, does: _Does, spread: Spread
) -> tuple[tuple[object, ...], tuple[Counted, ...], tuple[_Group, ...]]:
    """The operators of a stage as software runs them, and the same in groups; before both what stages have in common
    that are priced as one. Chips of a search share them."""
    ops = tuple(made for n, op in same.stage.ops for made in _converted(n, _started(op, does), does))
    groups, keys = [], []
    for key, group in _alike(ops).items():
        whole = _stacked([op for _, op in group])
        shared = _stacked([cut(op, spread) for _, op in group]) if spread != ONE else whole
        groups.append(_Group(np.array([[n for n, _ in group]]), whole, shared))
        # how heads are shared may change the kernel
        kernel = repr(kernel_of(shared)) if shared.kind == "attention" else ""
        keys.append((key, len(group), kernel, *whole.dims, *shared.dims))
    names = tuple((op.name, op.kind, "apart" in op.dims) for _, op in ops)
    return (names, *keys), ops, tuple(groups)


@lru_cache(maxsize=1024)
def _joined(ways: tuple[_Way, ...], does: _Does) -> tuple[_Joined, ...]:
    """Ways to share stages, those as one that differ in numbers alone."""
    alike: dict[tuple[object, ...], list[_Way]] = {}
    for same, spread in ways:
        alike.setdefault(_grouped(same, does, spread)[0], []).append((same, spread))
    found = []
    for some in alike.values():
        each = [_grouped(same, does, spread) for same, spread in some]
        groups = []
        for members in zip(*(one for _, _, one in each), strict=True):
            whole = _stacked([group.whole for group in members], _end_to_end)
            shared = _stacked([group.shared for group in members], _end_to_end)
            groups.append(_Group(np.concatenate([group.counts for group in members]), whole, shared))
        names = tuple((op.name, op.kind, "apart" in op.dims) for _, op in each[0][1])
        columns = ([[n for n, _ in ops] for _, ops, _ in each], [[op.launches for _, op in ops] for _, ops, _ in each])
        apart = [
            [float(s.dp) if "apart" in op.dims else 1.0 for _, op in ops]
            for (_, ops, _), (_, s) in zip(each, some, strict=True)
        ]
        found.append(_Joined(tuple(some), tuple(groups), names, *(np.array(c, dtype=float) for c in (*columns, apart))))
    return tuple(found)


def _end_to_end(values: Iterable[Real]) -> Array:
    """Arrays one after the other."""
    return np.concatenate([np.atleast_1d(value) for value in values])


def _limited(parts: Parts, joined: _Joined, hardware: Hardware) -> dict[MediaPart, Array]:
    """Seconds of products and convolutions at the power limit, [ways] or [chips, ways], no numbers for chips without
    one. Attention waits for exponentials too often to reach it."""
    costs, device = hardware.costs, hardware.device
    if not isinstance(costs, SimtParameters):
        return {}
    devices = joined.degree(lambda s: s.devices)[:, 0]
    return {
        part: sum(
            np.sum(group.counts * group.over_ways(limited_s(group.whole, device, costs)), axis=-1)
            for group in groups
            if group.whole.compute != "fp32"
        )
        / devices
        for part, (_, groups) in parts.items()
        if part in ("gemm", "conv")
    }


def _moves(joined: _Joined, starts: Mapping[str, float]) -> Array:
    """What a host starts around exchanges of attention, [ways]: tensors are packed, sent and unpacked."""
    tensors = joined.degree(lambda s: 4.0 * (s.ulysses > 1) + 2.0 * (s.tp > 1) + 2.0 * (s.cp - 1))
    attends = [kind == "attention" for _, kind, _ in joined.names]
    each = (1.0 + PACKED * starts.get("pointwise", 1.0)) * tensors
    return _one_by_one(joined.counts[:, attends] * each)


def _repeated(pipeline: Program) -> float:
    """Calls from which a stage is one that devices share: 2, or 1 where none is called again."""
    return 2.0 if any(stage.calls >= 2.0 for stage in pipeline.stages) else 1.0


def _started(op: Op, does: _Does) -> Op:
    """Work on elements as software starts it: what was traced counts the bytes of kernels that a compiler joins, and
    the starts of software without one, where every call moves its own bytes."""
    if op.kind != "pointwise":
        return op
    if does.folds:
        return replace(op, launches=min(op.launches, 1.0))
    return replace(op, activation_bytes=op.activation_bytes * op.dims.get(UNJOINED, 1.0))


def _converted(n: float, op: Op, does: _Does) -> list[Counted]:
    """An operator in the type that the software multiplies it in, with the passes that convert its operands.

    Software without folded kernels writes narrow weights out in 16 bits before every product, or scales and rounds
    activations to a narrow type operator by operator.
    """
    if not does.folds and op.kind == "pointwise" and op.name in COMPOSED:
        more, kernels = COMPOSED[op.name]
        op = replace(op, activation_bytes=more * op.activation_bytes, launches=op.launches * kernels)
    if op.kind == "conv":
        tf32 = does.tf32_conv and op.compute == "fp32"
        return _convolved(n, replace(op, compute="tf32") if tf32 else op, does)
    if op.dims.get("autocast"):
        dims = {name: value for name, value in op.dims.items() if name != "autocast"}
        times, casts = (1.0, 0.0) if does.folds else (op.dims["autocast"], 1.0)
        return [(n, replace(op, activation_bytes=times * op.activation_bytes, launches=op.launches + casts, dims=dims))]
    if does.widens and op.compute != "fp32":
        return _widened(n, op)
    if op.kind != "gemm" or not does.converts or op.weight not in FORMATS or FORMATS[op.weight].bits >= WIDE_BITS:
        return [(n, op)]
    d = op.dims
    narrow = op.compute not in ("bf16", "fp16")
    elements = d["batch"] * d["k"] * (d["m"] if narrow else d["n"])
    work = pointwise(elements, NARROWING if narrow else WIDENING, name="convert")
    return [(n, replace(work, launches=4.0)), (n, op)]


def _convolved(n: float, op: Op, does: _Does) -> list[Counted]:
    """A convolution with the passes that lay its input out with channels last and its output back, which libraries
    start by themselves; filters of one position are products, and grouped ones run, as they lie."""
    alone = float(np.max(op.dims["batch"])) == 1.0 and float(np.max(op.dims["kernel"])) > 1.0
    if not does.turns or not alone or op.compute == "fp32":
        return [(n, op)]
    turned = pointwise(op.activation_bytes / 2.0, 2.0, name="turn")
    return [(n, op), (n, replace(turned, launches=0.0))]


def _widened(n: float, op: Op) -> list[Counted]:
    """An operator between tensors in fp32."""
    if op.kind == "pointwise":
        return [(n, replace(op, activation_bytes=2.0 * op.activation_bytes))]
    if op.kind != "gemm" or op.dims["m"] <= FEW_ROWS:
        return [(n, op)]
    d = op.dims
    out = WIDENED + BIAS * (float(op.weight_bytes) > 0.0)
    moved = d["batch"] * d["m"] * (NARROWED * d["k"] + out * d["n"])
    return [(n, op), (n, replace(pointwise(moved, 1.0, name="convert"), launches=3.0))]


def _part(op: Op) -> MediaPart:
    if op.kind == "pointwise" and float(np.max(op.dims.get("epilogue", 0.0))) > 0.0:
        return "epilogue"
    return op.kind if op.kind in ("gemm", "conv", "attention", "pointwise") else "other"


def _parts(joined: _Joined, hardware: Hardware) -> Parts:
    """Seconds of the operators of one device by part, [ways], or [chips, ways], with the groups that it is of."""
    found: Parts = {}
    # layers that are dealt out follow each other: a device runs its part of them
    dealt = joined.degree(lambda s: s.pp)
    for group in joined.groups:
        exposed, counts = price(group.shared, hardware.device, hardware.costs).exposed, group.counts / dealt
        summed = Cost({name: np.sum(counts * group.over_ways(value), axis=-1) for name, value in exposed.items()})
        part = _part(group.whole)
        cost, others = found.get(part, (Cost(), []))
        found[part] = (cost + summed, [*others, group])
    return found


def _alike(ops: Sequence[Counted]) -> Mapping[tuple[object, ...], list[Counted]]:
    """Operators whose formulas differ in numbers alone, by what they have in common, so that they are priced as one
    array."""
    groups: dict[tuple[object, ...], list[Counted]] = {}
    for n, op in ops:
        d = op.dims
        key: tuple[object, ...] = (op.kind, op.compute, op.weight, tuple(sorted(d)))
        if op.kind in ("gemm", "conv"):
            key += (float(d["batch"]) > 1.0, float(op.weight_bytes) > 0.0)
        elif op.kind == "attention":
            heads = float(d["heads"]) == float(d["kv_heads"])
            key += (float(d["head_dim"]), float(d["value_dim"]), decodes(op), heads, float(d["window"]) > 0.0)
        elif op.kind == "pointwise":
            key += (group_of(op),)
        groups.setdefault(key, []).append((n, op))
    return groups


def _in_line(values: Iterable[Real]) -> Array:
    """Numbers one after the other."""
    return np.array([float(v) for v in values])


def _stacked(ops: Sequence[Op], column: Callable[[Iterable[Real]], Array] = _in_line) -> Op:
    """Operators of one kind as one, every number an array."""
    return replace(
        ops[0],
        flops=column(op.flops for op in ops),
        weight_bytes=column(op.weight_bytes for op in ops),
        activation_bytes=column(op.activation_bytes for op in ops),
        kv_bytes=column(op.kv_bytes for op in ops),
        launches=column(op.launches for op in ops),  # type: ignore[arg-type]
        dims={name: column(op.dims[name] for op in ops) for name in ops[0].dims},
    )


def _copied(stage: Stage, hardware: Hardware, offload: Offload) -> float:
    """Seconds of copies from the host per call: all stages once a request, or layer by layer in every call."""
    if offload == "none" or not np.isfinite(hardware.host_bytes_per_s):
        return 0.0
    times = 1.0 if offload == "sequential" else 1.0 / stage.calls
    return times * stage.weight_bytes / (COPY_SHARE * hardware.host_bytes_per_s)


def _exchanged(joined: _Joined, pipelines: Sequence[Program], parts: Parts, hardware: Hardware) -> Array:
    """Exposed seconds of exchanges of one call, [chips, ways]."""
    found = np.zeros((np.size(hardware.device.memory_bytes), len(joined.ways)))
    work_s = found + sum(cost.total_s for cost, _ in parts.values())
    attention, groups = parts.get("attention", (Cost(), []))
    attention_s = found + attention.total_s
    for s in {spread for _, spread in joined.ways if spread.devices > 1}:
        at = np.array([i for i, (_, spread) in enumerate(joined.ways) if spread == s])
        own = _around_attention(at, groups, attention_s[:, at], hardware, s)
        for i, exposed in zip(at.tolist(), own.T, strict=True):
            stage = joined.ways[i][0].stage
            found[:, i] = exposed + _of_weights(pipelines[i], stage, work_s[:, i], hardware, s)
    return found


def _around_attention(
    at: NDArray[np.intp], groups: Sequence[_Group], attention_s: Array, hardware: Hardware, s: Spread
) -> Array:
    """Exposed seconds of exchanges of what is computed, [chips, ways], of the ways `at` that share a stage alike.

    Around every attention: Ulysses sends queries, keys, values and results to all (4), tensor parallelism sums twice;
    a ring passes keys and values on, r - 1 times, hidden by attention. A call ends with one exchange of guided passes,
    and of stages that are dealt out.
    """
    exposed, ring_s, last = (np.zeros(len(at)) for _ in range(3))
    for group in groups:
        op, d = group.whole, group.whole.dims
        rows = d["batch"] * d["q"] * d["heads"] * d["head_dim"] / (s.dp * s.cfg * s.sequence)
        size = op.activation_bytes / np.maximum(
            d["batch"] * d["q"] * d["heads"] * (d["head_dim"] + d["value_dim"]), 1.0
        )
        each, counts = group.over_ways(rows * size)[at], group.counts[at]
        last = each[:, -1]
        if s.ulysses > 1:
            sent_s = hardware.exchange_s("all_to_all", each / s.tp, s.ulysses)
            exposed = exposed + np.sum(counts * 4.0 * sent_s, axis=-1)
        if s.tp > 1:
            exposed = exposed + np.sum(counts * 2.0 * hardware.exchange_s("all_reduce", each, s.tp), axis=-1)
        if s.cp > 1:
            passed_s = hardware.exchange_s("p2p", 2.0 * each / s.tp, 2)
            ring_s = ring_s + np.sum(counts * (s.cp - 1) * passed_s, axis=-1)
    exposed = exposed / s.pp + uncovered(ring_s, attention_s)
    if s.cfg > 1:
        exposed = exposed + hardware.exchange_s("all_gather", s.cfg * last, s.cfg)
    if s.pp > 1:
        exposed = exposed + hardware.exchange_s("p2p", last, 2)
    return exposed


def _of_weights(pipeline: Program, stage: Stage, work_s: Array, hardware: Hardware, s: Spread) -> Real:
    """Exposed seconds of exchanges of weights, rows of tables and gradients, [chips]: gathered weights and summed
    gradients hide behind the work of the call."""
    exposed: Real = 0.0
    if s.fsdp:
        gathered_s = hardware.exchange_s("all_gather", stage.weight_bytes, s.devices)
        exposed = exposed + np.maximum(0.0, pipeline.settings.get(PARTS, 1.0) * gathered_s - work_s)
    looked = [(n, op) for n, op in stage.ops if op.kind == "lookup"] if s.tables else []
    for n, op in looked:
        exposed = exposed + n * hardware.exchange_s("all_to_all", op.activation_bytes / (2.0 * s.dp), s.dp)
    if pipeline.trained and s.dp > 1 and not looked:
        summed_s = hardware.exchange_s("all_reduce", min(stage.weight_bytes, 4.0 * stage.parameters), s.dp)
        exposed = exposed + np.maximum(0.0, summed_s - OVERLAPPED * work_s)
    return exposed


SHOWN: Mapping[str, tuple[str, ...]] = {
    "allocated": ("weights", "activations"),
    "reserved": ("weights", "activations", "cache"),
    "device": ("weights", "activations", "cache", "runtime"),
}
"""Uses of memory (`held_by`) that tools show: torch's counters of allocated and of reserved bytes, and the driver.
Exact: what they are defined to count."""


def held_by(
    weights: float,
    activations: float,
    cache: float = 0.0,
    runtime: float = 0.0,
    host: float = 0.0,
    capacity: float = np.inf,
) -> MemoryAccount:
    """Bytes of one device at the peak: weights (of training with gradients and optimizer), activations, what the
    allocator and the libraries keep beside those (`cache`), what the driver and the `runtime` take, and weights that
    wait in the memory of the `host`."""
    sizes = zip(SHOWN["device"], (weights, activations, cache, runtime), strict=True)
    items = (MemoryItem(name, size) for name, size in sizes)
    return MemoryAccount((*items, MemoryItem("weights", host, "offloaded", "host")), capacity)


def account(
    pipeline: Program, spread: Spread = ONE, *, offload: Offload = "none", aside: Sequence[str] = ()
) -> MemoryAccount:
    """Bytes of the tensors of one device.

    Weights of all stages (offloaded: of the one at work; layer by layer: none to speak of; `aside`: names of stages
    that the host keeps), in parts under tensor parallelism, layers dealt out, or sharding; activations of the
    hungriest stage. The host keeps all weights that are offloaded, as each leaves its place for the next.

    Gradients of one device that does a batch at once take the place of activations on the way back: torch gives them
    up before the next step (zero_grad since 2.0). Devices that share a batch keep them, and once more in the buckets
    that are summed (DistributedDataParallel unless gradient_as_bucket_view is said).
    """
    repeated = _repeated(pipeline)
    held, alive, waiting = [], [], 0.0
    for stage in pipeline.stages:
        main = stage.calls >= repeated
        shards = spread.parts if main or spread.fsdp else 1
        if spread.tables and any(op.kind == "lookup" for _, op in stage.ops):
            shards = spread.devices
        own = stage.weight_bytes / shards
        held.append(0.0 if stage.name in aside else own)
        waiting += own if stage.name in aside or offload != "none" else 0.0
        rows = spread.dp * (spread.cfg * spread.sequence if main else 1)
        alive.append(stage.activation_bytes / rows)
    if offload == "none":
        states = pipeline.settings.get(STATES, 0.0) / spread.parts
        most = max(alive, default=0.0)
        gradients = min(states, sum(held))
        if spread.devices == 1 and pipeline.settings.get(PARTS, 1.0) == 1.0:
            states -= min(most, gradients)
        elif spread.dp > 1 and not spread.fsdp and not spread.tables:
            states += gradients
        return held_by(sum(held) + states, most, host=waiting)
    # what works is beside its own activations alone
    both = [(h if offload == "model" else 0.0, a) for h, a in zip(held, alive, strict=True)]
    return held_by(*max(both, key=sum, default=(0.0, 0.0)), host=waiting)
