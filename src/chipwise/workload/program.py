"""Any network as a program: the stages that a request or a step calls, each made of blocks of operators.

Operators of a language model depend on how many tokens are at work in a pass, so its blocks stay symbolic, on named
axes, and are asked for each `Step`. What has no such pass (an image or video generator, an encoder of text, images or
sound, a recommender, a traced module) is written out for one size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import cached_property

from chipwise.values import dataclass
from chipwise.workload.axes import Sizes, Tensor
from chipwise.workload.cache import KVSpec
from chipwise.workload.nodes import Node
from chipwise.workload.op import Op

Counted = tuple[float, Op]
"""(repeats, operator)."""
PEAK = "peak_bytes"
"""Setting of a module that was traced: most bytes alive at a time, weights and gradients included."""


@dataclass(frozen=True)
class Block:
    """A residual layer (or the embedding, or the head): nodes in order on its own axes, and its caches."""

    name: str
    axes: Mapping[str, int]
    nodes: tuple[Node, ...]
    caches: tuple[KVSpec, ...] = ()

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """All parameters of the block."""
        return tuple(tensor for node in self.nodes for tensor in node.tensors)


Blocks = tuple[tuple[int, Block], ...]
"""(repeat, block) in order."""


def count_entries(blocks: Iterable[tuple[int, Block]], *, buffers: bool = False, scales: bool = False) -> int:
    """Parameters of (repeat, block) pairs, with untrained buffers and with scale entries where asked."""
    total = 0
    for repeat, block in blocks:
        sizes = Sizes(block.axes)
        for tensor in block.tensors:
            if buffers or not tensor.buffer:
                total += repeat * tensor.params(sizes)
            if scales:
                total += repeat * tensor.scales(sizes)
    return total


def distinct(blocks: Blocks) -> Blocks:
    """Blocks that differ, each with how often it occurs; order is lost, sums are not."""
    counts: dict[int, tuple[int, Block]] = {}
    for repeat, block in blocks:
        seen = counts.get(id(block), (0, block))
        counts[id(block)] = (seen[0] + repeat, block)
    return tuple(counts.values())


@dataclass(frozen=True)
class Stage:
    """A part that is called as a whole: the layers of a language model, a text encoder, one pass of a denoiser, a
    decoder of images.

    | field | meaning |
    |---|---|
    | ops | (repeats, operator) in order, where they are written out: what one call does for the whole batch |
    | calls | how often a request runs it: denoising steps, say; a guided step's two passes are a larger batch |
    | parameters | entries of its weights, each once |
    | weight_bytes | stored bytes of the weights |
    | activation_bytes | most bytes of activations that are alive at a time in one call |
    | host | (kind, amount) of what the host itself does in a call; software says how long a unit takes |
    | kept_bytes, again_bytes | of activations that a backward pass needs; the same where layers are computed again |
    | looped | its calls are a loop that the device itself repeats, where software has it as one graph |
    | blocks | (repeat, block) in order, where operators follow from what a pass is asked |
    | beside | no sum of a program includes it unless it is asked for: a vision tower, a module that predicts tokens |
    """

    name: str
    ops: tuple[Counted, ...] = ()
    calls: float = 1.0
    parameters: int = 0
    weight_bytes: float = 0.0
    activation_bytes: float = 0.0
    host: tuple[tuple[str, float], ...] = ()
    kept_bytes: float = 0.0
    again_bytes: float = 0.0
    looped: bool = False
    blocks: Blocks = ()
    beside: bool = False

    @classmethod
    def of(cls, name: str, blocks: Blocks, *, calls: float = 1.0, beside: bool = False) -> Stage:
        """A stage of blocks on named axes, whose weights they hold."""
        once = distinct(blocks)
        held = sum(n * t.local_bytes(Sizes(b.axes)) for n, b in once for t in b.tensors)
        return cls(name, (), calls, count_entries(once), float(held), blocks=blocks, beside=beside)

    @property
    def flops(self) -> float:
        """Operations of one call that is written out; a multiply-add counts as two."""
        return float(sum(n * op.flops for n, op in self.ops))


@dataclass(frozen=True)
class Pictures:
    """What every request shows beside its text: the operators (repeats, operator) of the vision tower for all its
    pictures on one device, between which ranks that share the tower sum `exchanges` times `exchanged_bytes`; and how
    many tokens its prompt has, pictures included."""

    ops: tuple[Counted, ...]
    exchanges: float
    exchanged_bytes: float
    prompt_tokens: float


@dataclass(frozen=True)
class Program:
    """The stages of one request for `samples` of a `unit` ("image", "clip", "utterance", "sample", "token").

    `batch`: what is at work together: samples, or members of one (windows of a long recording), `members` of which are
    a sample; more of them than a batch holds are worked off in rounds. `trained`: the stages are those of a training
    step, backward passes among them. `settings` are the sizes that were used (resolution, steps, frames),
    `assumptions` what was not said and how it was taken. `pictures` are those of requests for text, None where there
    are none.
    """

    name: str
    stages: tuple[Stage, ...]
    batch: int = 1
    unit: str = "sample"
    trained: bool = False
    settings: Mapping[str, float] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    members: int = 1
    pictures: Pictures | None = field(default=None, kw_only=True)

    @property
    def samples(self) -> int:
        """Samples that a request makes."""
        return max(self.batch // self.members, 1)

    @cached_property
    def kinds(self) -> frozenset[tuple[str, str]]:
        """Kinds of operators that are written out, with the formats that they compute in."""
        return frozenset((op.kind, op.compute) for stage in self.stages for _, op in stage.ops)

    @cached_property
    def work(self) -> Mapping[str, float]:
        """Operations of one request by the format that they compute in."""
        found: dict[str, float] = {}
        for stage in self.stages:
            for n, op in stage.ops:
                found[op.compute] = found.get(op.compute, 0.0) + stage.calls * n * float(op.flops)
        return found

    @property
    def attends(self) -> bool:
        """Whether attention is among its operators."""
        return any(kind == "attention" for kind, _ in self.kinds)

    @property
    def in_pieces(self) -> bool:
        """Whether servers that capture passes with prompts in pieces do so for it."""
        return True

    @property
    def parameters(self) -> int:
        """Trained entries of all weights, tied tables once."""
        return sum(stage.parameters for stage in self.stages if not stage.beside)

    @property
    def weight_bytes(self) -> float:
        """Stored bytes of all weights, on no device in particular."""
        return sum(stage.weight_bytes for stage in self.stages if not stage.beside)

    @property
    def flops(self) -> float:
        """Operations of one request."""
        return sum(stage.calls * stage.flops for stage in self.stages)
