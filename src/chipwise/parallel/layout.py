"""How a model is spread over devices, and which spreads are legal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.units import Real
from chipwise.workload.graph import Graph

AXIS_SPLIT = {**dict.fromkeys("HKSBGZOFUV", "tp"), "E": "ep", "X": "moe_tp"}
"""Which part of a layout cuts which axis; all other axes are held whole by every rank."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Degrees of parallelism; numbers, or arrays that broadcast.

    tp cuts heads, widths and vocabulary; pp cuts the layers into stages; dp replicates attention while all
    tp x dp ranks share the experts, cut into ep groups of whole experts (the rest of the cut, tp x dp / ep,
    goes through each expert). Devices: tp x pp x dp.
    """

    tp: Real = 1.0
    pp: Real = 1.0
    dp: Real = 1.0
    ep: Real = 1.0

    @property
    def devices(self) -> Real:
        """Devices of one replica."""
        return self.tp * self.pp * self.dp

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
        return Layout(
            *(np.atleast_1d(np.asarray(self.part(p), dtype=float)) for p in ("tp", "pp", "dp", "ep"))
        )

    @classmethod
    def stack(cls, layouts: Iterable[Layout]) -> Layout:
        """Single layouts as one of columns."""
        each = list(layouts)
        return cls(*(np.array([float(x.part(p)) for x in each]) for p in ("tp", "pp", "dp", "ep")))

    def take(self, rows: NDArray[Any]) -> Layout:
        """Some rows of columns, by their places or by a mask."""
        return Layout(*(np.asarray(self.part(p))[rows] for p in ("tp", "pp", "dp", "ep")))

    def label(self) -> str:
        """`tp8 ep8`: degrees above one of a single layout; `whole` if there are none."""
        parts = (
            f"{name}{int(getattr(self, name))}"
            for name in ("tp", "pp", "dp", "ep")
            if getattr(self, name) > 1
        )
        return " ".join(parts) or "whole"

    def words(self) -> str:
        """The label for people: a replica on one device is not sharded."""
        label = self.label()
        return "unsharded" if label == "whole" else label


class Reason(Enum):
    """Why a candidate is not a plan; the text is for people and ends with what is legal."""

    OK = "legal"
    TP_HEADS = "tp does not divide the attention or state heads: choose a divisor"
    TP_KV_HEADS = "tp and the key/value heads do not divide each other: choose a divisor or a multiple"
    TP_WIDTH = "tp does not divide the feed-forward width: choose a divisor"
    PP_LAYERS = "more pipeline stages than layers: choose fewer"
    EP_NO_EXPERTS = "dp or ep above one needs experts: run replicas instead"
    EP_EXPERTS = "ep does not divide the experts: choose a divisor, or a runtime that keeps copies of some"
    EP_GROUP = "ep does not divide tp x dp: choose a divisor"
    EP_WIDTH = "the expert width does not divide by tp x dp / ep: raise ep"
    DOMAIN = (
        "the layout leaves the scale-up domain: fewer devices, pipeline stages over a network, or whole experts "
        "over it (dp = ep)"
    )
    NO_MEMORY_FIGURE = "capacity or bandwidth of the chip is not published"
    NO_COST_MODEL = "no cost model for this kind of chip yet: see chipwise fit"
    NO_RUNTIME = "no runtime supports this chip, precision and architecture"
    MEMORY = "does not fit: more chips or a smaller format"
    SLO = "slower than asked at any batch"
    BUDGET = "above the limit of chips, of cost or of power"
    NO_PRICE = "no price known, so that no limit of cost can be kept: say what you pay (--owning)"


FILLED = frozenset((Reason.TP_HEADS, Reason.TP_KV_HEADS, Reason.TP_WIDTH, Reason.EP_WIDTH))
"""Rules of runtimes that do not pad what they cut."""
DIVIDED: Mapping[Reason, str] = {Reason.TP_HEADS: "HSGZO", Reason.TP_KV_HEADS: "KB", Reason.TP_WIDTH: "FU"}
"""Axes that tensor parallelism divides, in the order in which they are looked at."""


def illegal(graph: Graph, layout: Layout, *, padded: bool = False, spare: bool = False) -> NDArray[np.int64]:
    """Index into `list(Reason)` of the first rule that a layout breaks, 0 where it is legal.

    `padded`: the runtime fills up heads and widths that a degree does not divide, which is how `Sizes` counts them.
    `spare`: it fills up experts with copies of those that get most tokens (of any at most one more than there are).
    Broadcasts over the layout. The scale-up domain is the chip's affair and is not checked here.
    """
    codes = list(Reason)
    shape = np.broadcast_shapes(*(np.shape(layout.part(p)) for p in ("tp", "pp", "dp", "ep")))
    found: NDArray[np.int64] = np.zeros(shape, dtype=np.int64)

    def rule(reason: Reason, broken: object) -> None:
        if padded and reason in FILLED:
            return
        hit = np.broadcast_to(np.asarray(broken, dtype=bool), shape) & (found == 0)
        found[hit] = codes.index(reason)

    rule(Reason.PP_LAYERS, layout.pp > graph.layers)
    blocks = [block for _, block in graph.distinct()]
    has_experts = any("E" in block.axes for block in blocks)
    if not has_experts:
        rule(Reason.EP_NO_EXPERTS, np.maximum(layout.dp, layout.ep) > 1)
    for block in blocks:
        axes = block.axes
        for reason, names in DIVIDED.items():
            for size in (np.asarray(axes[name]) for name in names if name in axes):
                # what several heads share is copied where there are more ranks than that
                copied = (layout.tp % size == 0) & (reason is Reason.TP_KV_HEADS)
                rule(reason, (size % layout.tp != 0) & ~np.asarray(copied))
        if "E" in axes:
            rule(Reason.EP_GROUP, (layout.tp * layout.dp) % layout.ep != 0)
            uneven = np.asarray(axes["E"]) % layout.ep != 0
            rule(Reason.EP_EXPERTS, (layout.ep > 2.0 * axes["E"]) if spare else uneven)
            rule(Reason.EP_WIDTH, np.asarray(axes["X"]) % np.maximum(layout.moe_tp, 1) != 0)
    return found


def check_layout(graph: Graph, layout: Layout, *, padded: bool = False, spare: bool = False) -> Reason:
    """The verdict on one layout; `padded` and `spare` as for `illegal`."""
    return list(Reason)[int(illegal(graph, layout, padded=padded, spare=spare))]


def spans(layout: Layout, domain: Real, *, networked: Real, wide: bool) -> NDArray[np.bool_]:
    """Whether a layout can be joined: tp x dp inside a scale-up domain of `domain` devices, stages over a network where
    there is one; with `wide` also attention replicas that share whole experts (ep = tp x dp) over that network."""
    ranks = layout.tp * layout.dp
    inside = np.where(networked, ranks, layout.devices) <= domain
    over = np.asarray(networked) & (np.asarray(layout.ep) == ranks) & (np.asarray(layout.tp) <= domain)
    return np.asarray(inside | (over & wide & (np.asarray(layout.dp) > 1)))
