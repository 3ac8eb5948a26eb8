"""Any network as the calls that a request makes: stages of operators with their numbers, one after the other.

A language model is a `Graph`, whose operators depend on how many tokens are at work. What has no such step (an image or
video generator, an encoder of text, images or sound, a recommender, a traced module) is written out for one size: a
`Stage` is a part that is called as a whole, a `Pipeline` the stages of one request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property

from chipwise.values import dataclass
from chipwise.workload.op import Op

Counted = tuple[float, Op]
"""(repeats, operator)."""
PEAK = "peak_bytes"
"""Setting of a module that was traced: most bytes alive at a time, weights and gradients included."""


@dataclass(frozen=True)
class Stage:
    """A part that is called as a whole: a text encoder, one pass of a denoiser, a decoder of images.

    | field | meaning |
    |---|---|
    | ops | (repeats, operator) in order: what one call does for the whole batch, on one device |
    | calls | how often a request runs it: denoising steps, say; a guided step's two passes are a larger batch |
    | parameters | entries of its weights, each once |
    | weight_bytes | stored bytes of the weights |
    | activation_bytes | most bytes of activations that are alive at a time in one call |
    | host | (kind, amount) of what the host itself does in a call; software says how long a unit takes |
    | kept_bytes, again_bytes | of activations that a backward pass needs; the same where layers are computed again |
    | looped | its calls are a loop that the device itself repeats, where software has it as one graph |
    """

    name: str
    ops: tuple[Counted, ...]
    calls: float = 1.0
    parameters: int = 0
    weight_bytes: float = 0.0
    activation_bytes: float = 0.0
    host: tuple[tuple[str, float], ...] = ()
    kept_bytes: float = 0.0
    again_bytes: float = 0.0
    looped: bool = False

    @property
    def flops(self) -> float:
        """Operations of one call; a multiply-add counts as two."""
        return float(sum(n * op.flops for n, op in self.ops))


@dataclass(frozen=True)
class Pipeline:
    """The stages of one request for `samples` of a `unit` ("image", "clip", "utterance", "sample").

    `batch`: what is at work together: samples, or members of one (windows of a long recording), `members` of which are
    a sample; more of them than a batch holds are worked off in rounds. `trained`: the stages are those of a training
    step, backward passes among them. `settings` are the sizes that were used (resolution, steps, frames),
    `assumptions` what was not said and how it was taken.
    """

    name: str
    stages: tuple[Stage, ...]
    batch: int = 1
    unit: str = "sample"
    trained: bool = False
    settings: Mapping[str, float] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    members: int = 1

    @property
    def samples(self) -> int:
        """Samples that a request makes."""
        return max(self.batch // self.members, 1)

    @cached_property
    def kinds(self) -> frozenset[tuple[str, str]]:
        """Kinds of operators with the formats that they compute in."""
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
    def parameters(self) -> int:
        """Entries of all weights."""
        return sum(stage.parameters for stage in self.stages)

    @property
    def weight_bytes(self) -> float:
        """Stored bytes of all weights."""
        return sum(stage.weight_bytes for stage in self.stages)

    @property
    def flops(self) -> float:
        """Operations of one request."""
        return sum(stage.calls * stage.flops for stage in self.stages)
