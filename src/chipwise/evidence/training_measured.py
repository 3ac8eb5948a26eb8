"""What was measured in a row of training, in seconds and bytes, how much it may pull on a fit, and how many samples its
benchmark needs to its target."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from chipwise.catalog.parsed import parse
from chipwise.catalog.snapshot import shipped_text
from chipwise.evidence.rows import Row, positive
from chipwise.evidence.training_rows import TrainingRun
from chipwise.predict.training.result import Convention, step_flops
from chipwise.predict.training.values import TrainSpread, Transformer
from chipwise.units import Array
from chipwise.values import dataclass

KEY = ("model", "benchmark", "chip", "accelerator", "chips_total", "seq_len", "global_batch", "precision")


def measured_of(row: Row, network: Transformer, spread: TrainSpread, counts: Convention) -> tuple[float, float]:
    """(seconds of a step, bytes of a device), NaN where not measured.

    Time first, then rates; FLOP/s only where nothing else is published, as the trainer counts them.
    """
    s, chips = spread, positive(row, "chips_total") or 1.0
    memory = (positive(row, "memory_gb") or np.nan) * 1e9
    seconds = positive(row, "step_time_s") or positive(row, "fwd_bwd_time_s")
    if seconds is None and (rate := positive(row, "samples_per_s")):
        seconds = float(s.global_batch) / rate
    if seconds is None and (rate := positive(row, "tokens_per_s_per_chip")):
        seconds = float(s.global_batch * s.seq) / (rate * chips)
    if seconds is None and (rate := positive(row, "tflops_per_chip")):
        seconds = float(step_flops(network, s, counts)) / (rate * 1e12 * chips)
    return (np.nan if seconds is None else seconds), memory


def workload_key(row: Row) -> str:
    """Rows of one workload: every layout and release of a model on so many chips."""
    return "|".join(row.get(k, "") for k in KEY)


def row_group(row: Row) -> str:
    """The publication that a row belongs to; vTrain's composed single-node rows apart from its runs."""
    family = row.get("family") or f"mlperf_{row.get('benchmark', '')}"
    if family == "vtrain":
        return "vtrain_multi" if (positive(row, "chips_total") or 0) > 8 else "vtrain_single"
    return family


def row_weights(runs: Sequence[TrainingRun]) -> Array:
    """A row's pull: rows of one workload and of a large publication share theirs (by the square root), assumed
    inputs count 0.4; runs on Jean Zay 0.3, V100s there 0.15 (the same test differed by 16 % in the median, by 40 %
    between allocations). vTrain's rows count nothing: those of one node are composed from about 32 layer times, and
    all of them are what others are judged by. Nor does a step time of an unknown batch."""
    keys = [(row_group(r.row), workload_key(r.row)) for r in runs]
    workloads, groups = Counter(keys), Counter(g for g, _ in keys)
    out = []
    for run, key in zip(runs, keys, strict=True):
        sure = 0.4 if set(run.assumed) & {"dimensions", "layout", "sequences"} else 1.0
        if run.row.get("system") == "Jean Zay":
            sure = 0.15 if run.row.get("chip", "").startswith("v100") else 0.3 * sure
        if unknown_batch(run) or key[0].startswith("vtrain"):
            sure = 0.0
        out.append(sure / workloads[key] ** 0.5 / max(1.0, groups[key[0]] / 40.0) ** 0.5)
    return np.array(out)


def unknown_batch(run: TrainingRun) -> bool:
    """Whether a step time is published without its batch: it says nothing about speed."""
    return "global batch" in run.assumed and bool(run.row.get("step_time_s"))


TARGETS = "evidence/data/training_targets.toml"
SPREAD = 1.07  # 10 % to 90 % of runs around the median: published best and worst runs


@dataclass(frozen=True, slots=True)
class MeasuredTarget:
    """Samples to the target of a benchmark (the median), and its evaluation as a share of the steps' time."""

    samples: float
    evaluation: float


def target_of(row: Row) -> MeasuredTarget | None:
    """What the benchmark of a row needs at its batch; None where nothing is published."""
    entry = parse(shipped_text(TARGETS)).get(row.get("benchmark", ""))
    batch = positive(row, "global_batch")
    if entry is None or batch is None:
        return None
    sizes, counts = (np.log(column) for column in zip(*entry["samples"], strict=True))
    return MeasuredTarget(math.exp(float(np.interp(math.log(batch), sizes, counts))), entry["evaluation"])
