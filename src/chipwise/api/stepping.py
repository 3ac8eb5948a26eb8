"""`step`: the seconds of any one pass of a deployment, as a value that answers without delay."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from chipwise.api.adapting import kernel_profile, work_of_batch, work_of_batches, work_of_metrics
from chipwise.api.estimating import AskedLoad
from chipwise.errors import UsageError
from chipwise.parallel.shard import shard
from chipwise.predict.step import step_cost
from chipwise.predict.steptable import StepTable
from chipwise.search.space import Group
from chipwise.units import Array, Real
from chipwise.values import dataclass
from chipwise.workload.step import Step


@dataclass(frozen=True, eq=False)
class PassTimes:
    """Seconds of passes of one rank of a deployment, `name`; `low` and `high` are the ends of their 80 % interval, that
    of the time per token of such deployments. It is a predictor of SGLang's simulator and of Dynamo's planner; BLIS
    loads it from a file, of which `about` is the head."""

    name: str
    mid: StepTable
    low: StepTable
    high: StepTable
    about: Mapping[str, str | int]

    def seconds(self, decode: Real, context: Real = 0.0, prompt: Real = 0.0, pairs: Real | None = None) -> Real:
        """Seconds of passes, numbers or arrays that broadcast: `decode` sequences that hold `context` tokens each get
        one token more, and `prompt` tokens of prompts are computed, with `pairs` of tokens that see each other: a chunk
        of c tokens after h known ones has c (h + c / 2); None is one prompt of which nothing is known. Of attention
        replicas that share experts, each has as much to do. Raises `ValueError` for numbers below 0."""
        return self.mid.seconds(decode, context, prompt, pairs)

    def predict_infer_time(self, batch: Any) -> float:
        """Seconds of a `ScheduleBatch` of SGLang's simulator: `reqs`, each with `extend_length` and `past_kv_length`.
        Raises `UsageError` and `UnknownNameError`, for a field or a forward mode that is not read."""
        return float(self.mid.seconds(*work_of_batch(batch)))

    def predict_infer_times(self, counts: Array, extend: Array, past: Array) -> Array:
        """The same of many batches: `counts` of requests in each, and the lengths of all, batch after batch. Raises
        `UsageError` where these do not match."""
        return np.asarray(self.mid.seconds(*work_of_batches(counts, extend, past)))

    def estimate_forward_pass_time_ms(self, metrics: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Real:
        """Milliseconds of a pass by its `ForwardPassMetrics`, a dictionary or those of all ranks, of which the slowest
        counts; its counts may be arrays. Raises `UsageError` and `UnknownNameError`, for a field that is not read."""
        ranks = [metrics] if isinstance(metrics, Mapping) else metrics
        if not ranks:
            raise UsageError("no metrics of any rank", "a dictionary for each rank", field="metrics")
        times = [self.mid.seconds(*work_of_metrics(rank)) for rank in ranks]
        return 1e3 * (times[0] if len(times) == 1 else np.max(np.stack(times), axis=0))

    def save(self, file: str | PathLike[str]) -> None:
        """Writes the kernel profile that BLIS loads: YAML, here as JSON, which is a part of it."""
        Path(file).write_text(json.dumps(kernel_profile(self.mid, self.about)) + "\n", "utf-8")

    def __repr__(self) -> str:
        return f"seconds of passes of {self.name}"


def pass_times(one: AskedLoad) -> PassTimes:
    """The passes of a deployment. Raises `UsageError` where a pass is not one of its model alone."""
    d, context = one.deployment, one.context
    if d.speculation is not None:
        raise UsageError("--speculate: a pass has no fixed number of tokens then", "leave it out", field="speculate")
    costs, overheads = context.rates([d])
    group = Group.single(d, one.layout)
    device, at = group.device(trailing=1), group.which.reshape(-1, 1)
    sharded = shard(context.found.graph, group.layouts(trailing=1))
    each, own = costs.take(at), overheads.take(at)

    def seconds(step: Step) -> Real:
        return step_cost(sharded, step, device, each, own).total_s

    table = StepTable.of(seconds, alone=d.policies.prefill == "alone")
    ends = context.ends(d)
    about: dict[str, str | int] = {
        "gpu": d.chip.id,
        "backend": d.runtime.id,
        "version": d.runtime.version,
        "model": context.found.graph.model.name,
        "tp": int(one.layout.tp),
    }
    return PassTimes(one.name, table, table.scaled(ends.low), table.scaled(ends.high), about)
