"""Low-rank adapters (LoRA, arXiv:2106.09685): what they add to a model in parameters, bytes and FLOPs.

A matrix [n, k] gets two more of rank r: [r, k] and [n, r], 2 m r (n + k) FLOPs for m rows on top of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from chipwise.errors import UnknownNameError, UsageError
from chipwise.values import dataclass
from chipwise.workload.axes import Sizes, Tensor
from chipwise.workload.formats import FORMATS, Format
from chipwise.workload.graph import Graph

# Targets as adapters name them (PEFT), to the names in a graph; others stand for themselves.
NAMES: Mapping[str, tuple[str, ...]] = {
    "q_proj": ("q",),
    "k_proj": ("k",),
    "v_proj": ("v",),
    "o_proj": ("o",),
    "gate_proj": ("gate",),
    "up_proj": ("up",),
    "down_proj": ("down",),
    "qkv_proj": ("q", "k", "v"),
    "query_key_value": ("q", "k", "v"),
    "gate_up_proj": ("gate", "up"),
}
ALL_LINEAR = "all-linear"


@dataclass(frozen=True, slots=True)
class Adapter:
    """`rank` over the matrices named in `targets`, or over all in the layers but routers ("all-linear").

    Experts have adapters only where `experts` says so, as in PEFT and in runtimes. Raises `UsageError`.
    """

    rank: int
    targets: tuple[str, ...] = ("q_proj", "v_proj")
    experts: bool = False
    format: Format = FORMATS["bf16"]

    def __post_init__(self) -> None:
        if not 1 <= self.rank <= 65_536:
            raise UsageError(f"rank {self.rank} is out of range", "1 to 65,536")
        if not self.targets:
            raise UsageError("an adapter without targets", "name matrices, as q_proj, or all-linear")


def adapter_params(graph: Graph, adapter: Adapter) -> int:
    """Parameters of one adapter: r (n + k) per matrix. Raises `UnknownNameError` for a target that the model
    does not have."""
    return sum(repeat * copies * one for repeat, copies, one in _matrices(graph, adapter))


def adapter_bytes(graph: Graph, adapter: Adapter) -> float:
    """Stored bytes of one adapter."""
    return adapter_params(graph, adapter) * adapter.format.bits / 8.0


def _matrices(graph: Graph, adapter: Adapter) -> Iterator[tuple[int, int, int]]:
    """(repeat, copies, parameters of one) of every matrix with an adapter."""
    for repeat, block in graph.distinct():
        sizes = Sizes(block.axes)
        for tensor in _chosen(block.tensors, adapter, graph):
            one = adapter.rank * (sizes.whole(tensor.rows) + sizes.whole(tensor.cols))
            yield repeat, sizes.whole(tensor.copies), one


def _chosen(tensors: Iterable[Tensor], adapter: Adapter, graph: Graph) -> Iterator[Tensor]:
    classes = {"attention", "ffn"} | ({"expert"} if adapter.experts else set())
    if adapter.targets == (ALL_LINEAR,):
        yield from (t for t in tensors if t.cls in classes)
        return
    known = {t.name for _, block in graph.distinct() for t in block.tensors if t.cls in classes}
    wanted: set[str] = set()
    for target in adapter.targets:
        names = NAMES.get(target, (target,))
        # shared experts carry the same names under a prefix
        found = {n for n in known if n.removeprefix("shared_") in names}
        if not found:
            raise UnknownNameError("target", target, [*NAMES, *known, ALL_LINEAR])
        wanted |= found
    yield from (t for t in tensors if t.cls in classes and t.name in wanted)
