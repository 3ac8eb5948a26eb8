"""How a model is spread over devices, and which spreads are legal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.units import Real
from chipwise.values import dataclass
from chipwise.workload.graph import Graph

AXIS_SPLIT = {**dict.fromkeys("HKSBGZOFUV", "tp"), "E": "ep", "X": "moe_tp"}
"""Which part of a layout cuts which axis; all other axes are held whole by every rank."""


SERVED = ("tp", "pp", "dp", "ep")
"""Degrees of a served language model, in the order in which they are written."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Degrees of parallelism; numbers, or arrays that broadcast. Devices are the product of all but `ep` and `vp`,
    which deal out what the others hold.

    | degree | what it cuts |
    |---|---|
    | tp | heads, widths and vocabulary: tensors |
    | pp | layers, into stages; of a denoiser patches follow each other through them (PipeFusion) |
    | dp | samples; where a served model has experts it replicates attention, and all tp x dp ranks share the experts |
    | ep | experts, into groups of whole ones; the rest of that cut, tp x dp / ep, goes through each expert |
    | vp | the layers of a stage, into virtual stages |
    | cp | a sequence, whose keys and values go round a ring or are gathered |
    | ulysses | a sequence, exchanged for heads around attention |
    | cfg | the two passes of a guided step |
    """

    tp: Real = 1.0
    pp: Real = 1.0
    dp: Real = 1.0
    ep: Real = 1.0
    vp: Real = 1.0
    cp: Real = 1.0
    ulysses: Real = 1.0
    cfg: Real = 1.0

    @property
    def devices(self) -> Real:
        """Devices of one replica; of a training run, in all."""
        return self.tp * self.pp * self.dp * self.cp * self.ulysses * self.cfg

    @property
    def moe_tp(self) -> Real:
        """Parts that each expert is cut into."""
        return self.tp * self.dp / self.ep

    def part(self, name: str) -> Real:
        """A degree by its name."""
        value: Real = getattr(self, name)
        return value

    def arrays(self) -> Layout:
        """The same as columns of at least one row."""
        return Layout(*(np.atleast_1d(np.asarray(self.part(p), dtype=float)) for p in SERVED))

    @classmethod
    def stack(cls, layouts: Iterable[Layout]) -> Layout:
        """Single layouts as one of columns."""
        each = list(layouts)
        return cls(*(np.array([float(x.part(p)) for x in each]) for p in SERVED))

    def take(self, rows: NDArray[Any]) -> Layout:
        """Some rows of columns, by their places or by a mask."""
        return Layout(*(np.asarray(self.part(p))[rows] for p in SERVED))

    def label(self) -> str:
        """`tp8 ep8`: degrees above one of a single layout; a replica on one device is `unsharded`."""
        parts = (f"{name}{int(getattr(self, name))}" for name in SERVED if getattr(self, name) > 1)
        return " ".join(parts) or "unsharded"


@dataclass(frozen=True, slots=True)
class Spread(Layout):
    """A layout of a pipeline. `fsdp` 1: weights of all stages are kept in parts on all devices and gathered layer by
    layer; `tables` 1: tables that are looked up are dealt out, and rows go to the devices of their samples."""

    tp: int = 1
    pp: int = 1
    dp: int = 1
    cp: int = 1
    ulysses: int = 1
    cfg: int = 1
    fsdp: int = 0
    tables: int = 0

    @property
    def devices(self) -> int:
        """Devices in all."""
        return self.rows * self.tp * self.pp

    @property
    def sequence(self) -> int:
        """Devices that share a sequence."""
        return self.ulysses * self.cp

    @property
    def rows(self) -> int:
        """Devices that share samples, guided passes and sequences."""
        return self.dp * self.cfg * self.sequence

    @property
    def parts(self) -> int:
        """Devices over which each weight of a stage that is shared, its gradient and its optimizer's states are cut."""
        return self.devices if self.fsdp else self.tp * self.pp

    @property
    def shares(self) -> dict[str, int]:
        """Degrees by what each way to share is called."""
        return {name: getattr(self, held) for name, held in SHARES.items()}

    @classmethod
    def of(cls, label: str) -> Spread:
        """From what `label` writes."""
        pairs = (part.partition("=")[::2] for part in filter(None, label.split(",")))
        return cls(**{SHARES[name]: int(degree) for name, degree in pairs})

    def label(self) -> str:
        """As it is written: cfg=2,ulysses=4; "" on one device."""
        said = self.shares.items()
        return ",".join(f"{name}={n}" for name, n in said if n > (name not in ("fsdp", "tables")))


SHARES = {
    "dp": "dp",
    "cfg": "cfg",
    "ulysses": "ulysses",
    "ring": "cp",
    "tp": "tp",
    "pipefusion": "pp",
    "fsdp": "fsdp",
    "tables": "tables",
}
"""What servers of diffusion models call the ways to share a request: fields of `Spread`."""
ONE = Spread()


class Reason(Enum):
    """Why a layout or a plan is none; the text is for people and ends with what is legal."""

    OK = "legal"
    TP_HEADS = "tp does not divide the attention or state heads: choose a divisor"
    TP_KV_HEADS = "tp and the key/value heads do not divide each other: choose a divisor or a multiple"
    TP_WIDTH = "tp does not divide the feed-forward width: choose a divisor"
    TP_DOMAIN = "tp leaves the scale-up domain: choose at most its size"
    PP_LAYERS = "more pipeline stages than layers: choose fewer"
    STAGES = "more than twice the pipeline stages that hold the model: choose fewer"
    VIRTUAL = "a virtual stage without a layer, embedding or head: choose fewer"
    INTERLEAVED = "virtual stages need micro-batches in multiples of the stages: choose vp 1"
    SCHEDULE = "the software of this chip has no such pipeline schedule: choose 1f1b"
    BATCH = "dp x micro-batch does not divide the global batch: choose a divisor"
    CONTEXT = "cp does not divide the sequence: choose a divisor"
    EP_NO_EXPERTS = "dp or ep above one needs experts: run replicas instead"
    EP_EXPERTS = "ep does not divide the experts: choose a divisor"
    EP_GROUP = "ep does not divide the ranks of a stage: choose a divisor"
    EP_WIDTH = "the expert width does not divide by tp x dp / ep: raise ep"
    DOMAIN = (
        "the layout leaves the scale-up domain: fewer devices, pipeline stages over a network, or whole experts "
        "over it (dp = ep)"
    )
    NO_NETWORK = "more devices than one scale-up domain holds, and no network is known: use fewer"
    GRADIENTS = "zero 2 is timed for one stage: choose zero 1 or 3"
    SHARED_MEMORY = "the host has no separate memory to keep the optimiser in: choose offload 0"
    ADAPTERS = "adapters leave nothing for host memory unless FSDP cuts the weights: choose offload 0, or zero 3"
    STASH = "activations wait in host memory in one stage alone: choose stash 0, or pp 1"
    PINNED = "no layout keeps all that is fixed: fix less"
    FAILURES = "failures come faster than work is saved: fewer chips, or a longer mtbf of --failures"
    NO_MEMORY_FIGURE = "capacity or bandwidth of the chip is not published"
    NO_COST_MODEL = "no cost model for this kind of chip yet: see chipwise fit"
    NO_RUNTIME = "no runtime supports this chip, precision and architecture"
    HOST_MEMORY = "the host's memory does not hold what is offloaded: more chips, or offload 0 and stash 0"
    MEMORY = "does not fit: more chips or a smaller format"
    SLO = "slower than asked at any batch"
    BUDGET = "above the limit of chips, of cost or of power"
    NO_PRICE = "no price known, so that no limit of cost can be kept: say what you pay (--owning)"


REASONS = tuple(Reason)
"""Columns of layouts keep a reason as its place here, 0 where there is none."""


def first_broken(
    rules: Iterable[tuple[Reason, object]], shape: tuple[int, ...], found: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Place in `REASONS` of the first rule that is broken, masks that broadcast to `shape`; 0 where none is. What is
    `found` already comes before all of them."""
    first = np.zeros(shape, dtype=np.int64)
    for reason, broken in reversed(tuple(rules)):
        np.copyto(first, REASONS.index(reason), where=np.asarray(broken, dtype=bool))
    return first if found is None else np.where(found == 0, first, found)


FILLED = frozenset((Reason.TP_HEADS, Reason.TP_KV_HEADS, Reason.TP_WIDTH, Reason.EP_WIDTH))
"""Rules of runtimes that do not pad what they cut."""
DIVIDED: Mapping[Reason, str] = {Reason.TP_HEADS: "HSGZO", Reason.TP_KV_HEADS: "KB", Reason.TP_WIDTH: "FU"}
"""Axes that tensor parallelism divides, in the order in which they are looked at."""


def illegal(graph: Graph, layout: Layout, *, padded: bool = False, spare: bool = False) -> NDArray[np.int64]:
    """Place in `REASONS` of the first rule that a layout breaks, 0 where it is legal.

    `padded`: the runtime fills up heads and widths that a degree does not divide, which is how `Sizes` counts them.
    `spare`: it fills up experts with copies of those that get most tokens (of any at most one more than there are).
    Broadcasts over the layout. The scale-up domain is the chip's affair and is not checked here.
    """
    shape = np.broadcast_shapes(*(np.shape(layout.part(p)) for p in SERVED))
    rules = _rules(graph, layout, spare=spare)
    return first_broken([(why, broken) for why, broken in rules if not (padded and why in FILLED)], shape)


def _rules(graph: Graph, layout: Layout, *, spare: bool) -> Iterator[tuple[Reason, object]]:
    """What a model asks of a layout, and where that is broken."""
    yield Reason.PP_LAYERS, layout.pp > graph.layers
    blocks = [block for _, block in graph.distinct()]
    if not any("E" in block.axes for block in blocks):
        yield Reason.EP_NO_EXPERTS, np.maximum(layout.dp, layout.ep) > 1
    for block in blocks:
        axes = block.axes
        for reason, names in DIVIDED.items():
            for size in (np.asarray(axes[name]) for name in names if name in axes):
                # what several heads share is copied where there are more ranks than that
                copied = (layout.tp % size == 0) & (reason is Reason.TP_KV_HEADS)
                yield reason, (size % layout.tp != 0) & ~np.asarray(copied)
        if "E" in axes:
            yield Reason.EP_GROUP, (layout.tp * layout.dp) % layout.ep != 0
            uneven = np.asarray(axes["E"]) % layout.ep != 0
            yield Reason.EP_EXPERTS, (layout.ep > 2.0 * axes["E"]) if spare else uneven
            yield Reason.EP_WIDTH, np.asarray(axes["X"]) % np.maximum(layout.moe_tp, 1) != 0


def check_layout(graph: Graph, layout: Layout, *, padded: bool = False, spare: bool = False) -> Reason:
    """The verdict on one layout; `padded` and `spare` as for `illegal`."""
    return REASONS[int(illegal(graph, layout, padded=padded, spare=spare))]


def spans(layout: Layout, domain: Real, *, networked: Real, wide: bool) -> NDArray[np.bool_]:
    """Whether a layout can be joined: tp x dp inside a scale-up domain of `domain` devices, stages over a network where
    there is one; with `wide` also attention replicas that share whole experts (ep = tp x dp) over that network."""
    ranks = layout.tp * layout.dp
    inside = np.where(networked, ranks, layout.devices) <= domain
    over = np.asarray(networked) & (np.asarray(layout.ep) == ranks) & (np.asarray(layout.tp) <= domain)
    return np.asarray(inside | (over & wide & (np.asarray(layout.dp) > 1)))
