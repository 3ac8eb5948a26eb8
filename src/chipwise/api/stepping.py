"""`step`: the seconds of any one pass of a deployment, as a value that answers without delay."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.api.estimating import AskedLoad
from chipwise.errors import UsageError
from chipwise.parallel.shard import shard
from chipwise.predict.step import step_cost
from chipwise.predict.steptable import StepTable
from chipwise.search.space import Group
from chipwise.units import Real
from chipwise.workload.step import Step


@dataclass(frozen=True, eq=False)
class PassTimes:
    """Seconds of passes of one rank of a deployment, `name`; `low` and `high` are the ends of their 80 % interval, that
    of the time per token of such deployments."""

    name: str
    mid: StepTable
    low: StepTable
    high: StepTable

    def seconds(
        self, decode: Real, context: Real = 0.0, prompt: Real = 0.0, pairs: Real | None = None
    ) -> Real:
        """Seconds of passes, numbers or arrays that broadcast: `decode` sequences that hold `context` tokens each get
        one token more, and `prompt` tokens of prompts are computed, with `pairs` of tokens that see each other: a chunk
        of c tokens after h known ones has c (h + c / 2); None is one prompt of which nothing is known. Of attention
        replicas that share experts, each has as much to do. Raises `ValueError` for numbers below 0."""
        return self.mid.seconds(decode, context, prompt, pairs)

    def __repr__(self) -> str:
        return f"seconds of passes of {self.name}"


def pass_times(one: AskedLoad) -> PassTimes:
    """The passes of a deployment. Raises `UsageError` where a pass is not one of its model alone."""
    d, context = one.deployment, one.context
    if d.speculation is not None:
        raise UsageError(
            "--speculate: a pass has no fixed number of tokens then", "leave it out", field="speculate"
        )
    costs, overheads = context.rates([d])
    group = Group.single(d, one.layout)
    device, at = group.device(trailing=1), group.which.reshape(-1, 1)
    sharded = shard(context.found.graph, group.layouts(trailing=1))
    each, own = costs.take(at), overheads.take(at)

    def seconds(step: Step) -> Real:
        return step_cost(sharded, step, device, each, own).total_s

    table = StepTable.of(seconds, alone=d.policies.prefill == "alone")
    ends = context.ends(d)
    return PassTimes(one.name, table, table.scaled(ends.low), table.scaled(ends.high))
