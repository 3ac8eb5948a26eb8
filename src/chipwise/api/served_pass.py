"""A forward pass of a causal decoder that is written out for one size, as software that serves language models runs it:
priced by that software's kernels and host, as its passes over prompts are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from chipwise.api.media_asked import Sampling
from chipwise.api.tactics import Tactics
from chipwise.calibrate.fit_serving import served_overheads
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.chip import Chip
from chipwise.catalog.media_runtime import MediaRuntime
from chipwise.catalog.runtime import get_runtime
from chipwise.cost.cost import Cost
from chipwise.cost.device import Device
from chipwise.evidence.axes import chip_axes, served_family
from chipwise.evidence.discrepancy import spread_of
from chipwise.evidence.judge import Estimate, basis_of, judge
from chipwise.evidence.tiers import tier_of
from chipwise.parallel.layout import ONE
from chipwise.parallel.shard import shard
from chipwise.predict.pipeline import StageTimes
from chipwise.predict.step import step_cost
from chipwise.values import dataclass
from chipwise.workload.program import PEAK, Counted, Program
from chipwise.workload.step import prefill


@dataclass(frozen=True)
class ServedPass:
    """One pass of `pipeline` on one chip under the runtime `software`, with what its host does for a pass; without
    what a server adds to a request."""

    pipeline: Program
    chip: Chip
    device: Device
    software: str
    numbers: Parameters

    @classmethod
    def of(
        cls, pipeline: Program, chip: Chip, device: Device, runtime: MediaRuntime, numbers: Parameters, asked: Sampling
    ) -> ServedPass | None:
        """None of software that serves no language models, and of what is no traced pass of a causal decoder on one
        device: requests for embeddings are priced by what their servers were measured to take."""
        cores = [op for stage in pipeline.stages for _, op in stage.ops if op.kind == "attention"]
        traced = PEAK in pipeline.settings and len(pipeline.stages) == 1
        whole = asked.spread.devices == 1 and asked.offload == "none" and not asked.aside and asked.level == "stock"
        if not (runtime.served_as and traced and whole) or not all(op.dims["causal"] for op in cores) or not cores:
            return None
        return cls(pipeline, chip, device, runtime.served_as, numbers)

    @property
    def words(self) -> str:
        """What the answer is of."""
        return f"one pass over a prompt as {self.software} runs it, without what a server adds to a request"

    @property
    def stages(self) -> tuple[StageTimes, ...]:
        """The pass, by resource."""
        numbers, chips, family = self.numbers, [self.chip], self.chip.family
        costs = numbers.as_installed(numbers.cost(family, self.software, chips), self.software, chips)
        overheads = served_overheads(numbers, family, self.software)
        overheads = numbers.starts(overheads, self.software, chips)
        overheads = Tactics().paced(overheads, numbers, get_runtime(self.software), chips)
        at = np.zeros((), dtype=np.intp)
        (stage,) = self.pipeline.stages
        served = replace(self.pipeline, stages=(replace(stage, ops=tuple(_as_served(stage.ops))),))
        rows = max((float(op.dims["m"]) for _, op in stage.ops if op.kind == "gemm"), default=0.0)
        asked = prefill(float(self.pipeline.batch), rows / self.pipeline.batch)
        cost = step_cost(shard(served, ONE), asked, self.device, costs.take(at), overheads.take(at))
        seconds = {name: float(value) for name, value in cost.exposed.items()}
        return (StageTimes(stage.name, 1.0, {"other": Cost(seconds)}, 0.0),)

    def judged(self, mid: float) -> Estimate:
        """Seconds with the interval of passes of that software."""
        levels = chip_axes(self.chip, runtime=self.software)
        around = spread_of(levels, served_family(self.software)).around()
        return judge(mid, around, basis_of(tier_of(self.chip, self.software, self.numbers)))


def _as_served(ops: tuple[Counted, ...]) -> Iterator[Counted]:
    """Operators as serving software starts them, last first: products by weights of one input are one, work on elements
    is joined, and what stands before attention without weights rotates queries and keys, which its kernels do."""
    attends = False
    for n, op in reversed(_packed(ops)):
        turns = attends and op.kind == "pointwise" and op.weight_bytes == 0.0
        if op.kind == "pointwise":
            op = replace(op, name="rope" if turns else op.name, launches=0.0 if turns else min(op.launches, 1.0))
        attends = turns or op.kind == "attention"
        yield n, op


def _packed(ops: tuple[Counted, ...]) -> list[Counted]:
    """Products by weights that follow each other and read as many rows of as many features, as one: queries, keys and
    values, gates and what they gate, whose weights serving software loads side by side."""
    found: list[Counted] = []
    for n, op in ops:
        times, last = found[-1] if found else (0.0, op)
        own, its, weights = dict(op.dims), last.dims, float(op.weight_bytes)
        alike = op.kind == last.kind == "gemm" and times == n and weights > 0.0 and float(last.weight_bytes) > 0.0
        if not alike or any(own[name] != its[name] for name in ("m", "k", "batch")):
            found.append((n, op))
            continue
        # the input is read once
        share = float(own["k"] / (own["k"] + own["n"]))
        more = {name: getattr(last, name) + getattr(op, name) for name in ("flops", "weight_bytes")}
        moved = last.activation_bytes + op.activation_bytes * (1.0 - share)
        found[-1] = n, replace(last, **more, activation_bytes=moved, dims={**its, "n": its["n"] + own["n"]})
    return found
