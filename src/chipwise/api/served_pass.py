"""A forward pass of a causal decoder that is written out for one size, as software that serves language models runs it:
priced by that software's kernels and host, as its passes over prompts are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from chipwise.calibrate.fit_serving import served_overheads
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.chip import Chip
from chipwise.catalog.media_runtime import MediaRuntime
from chipwise.cost.cost import Cost
from chipwise.cost.device import Device
from chipwise.evidence.axes import chip_axes, served_family
from chipwise.evidence.discrepancy import spread_of
from chipwise.evidence.judge import Estimate, basis_of, judge
from chipwise.evidence.tiers import tier_of
from chipwise.predict.pipeline import StageTimes
from chipwise.predict.step import written_cost
from chipwise.values import dataclass
from chipwise.workload.pipeline import Counted, Pipeline


@dataclass(frozen=True)
class ServedPass:
    """One pass of `pipeline` on one chip under the runtime `software`, with what its host does for a pass; without
    what a server adds to a request."""

    pipeline: Pipeline
    chip: Chip
    device: Device
    software: str
    numbers: Parameters

    @classmethod
    def of(
        cls, pipeline: Pipeline, chip: Chip, device: Device, runtime: MediaRuntime, numbers: Parameters
    ) -> ServedPass | None:
        """None of software that serves no language models, and of what is no forward pass of a causal decoder."""
        cores = [op for stage in pipeline.stages for _, op in stage.ops if op.kind == "attention"]
        once = len(pipeline.stages) == 1 and pipeline.stages[0].calls == 1.0 and not pipeline.trained
        if not runtime.served_as or not once or not cores or not all(op.dims["causal"] for op in cores):
            return None
        return cls(pipeline, chip, device, runtime.served_as, numbers)

    @property
    def stages(self) -> tuple[StageTimes, ...]:
        """The pass, by resource."""
        numbers, chips, family = self.numbers, [self.chip], self.chip.family
        costs = numbers.as_installed(numbers.cost(family, self.software, chips), self.software, chips)
        overheads = served_overheads(numbers, family, self.software, chips)
        overheads = numbers.starts(overheads, self.software, chips)
        at = np.zeros((), dtype=np.intp)
        (stage,) = self.pipeline.stages
        ops = tuple(_as_served(stage.ops))
        cost = written_cost(ops, self.pipeline.batch, self.device, costs.take(at), overheads.take(at))
        seconds = {name: float(value) for name, value in cost.exposed.items()}
        return (StageTimes(stage.name, 1.0, {"other": Cost(seconds)}, 0.0),)

    def judged(self, mid: float) -> Estimate:
        """Seconds with the interval of passes of that software."""
        levels = chip_axes(self.chip, runtime=self.software)
        around = spread_of(levels, served_family(self.software)).around()
        return judge(mid, around, basis_of(tier_of(self.chip, self.software, self.numbers)))


def _as_served(ops: tuple[Counted, ...]) -> Iterator[Counted]:
    """Operators as serving software starts them: work on elements is joined, and what stands before attention without
    weights rotates queries and keys, which its kernels do."""
    for i, (n, op) in enumerate(ops):
        if op.kind == "pointwise":
            turns = op.weight_bytes == 0.0 and i + 1 < len(ops) and ops[i + 1][1].kind == "attention"
            op = replace(op, name="rope" if turns else op.name, launches=0.0 if turns else min(op.launches, 1.0))
        yield n, op
