"""What a training step is made of, by the resource that takes the time: one name for each, wherever it is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from chipwise.predict.training.step import StepTime, step_time
from chipwise.report.train_records import ScalingRecord, TakeoverRecord
from chipwise.search.training import Job, Point

__all__ = ["HALF", "WAITING", "shares", "takeover", "waiting"]

CAUSES: Mapping[str, tuple[str, ...]] = {
    "compute": ("compute_s", "head_s"),
    "memory": ("passes_s",),
    "host": ("host_s",),
    "bubble": ("bubble_s",),
    "optimiser": ("optimiser_s",),
    "stragglers": ("straggle_s",),
}
EXCHANGES = ("tp_s", "cp_s", "ep_s", "pp_s", "dp_s")
WAITING = ("fabric", "network", "bubble", "stragglers")
HALF = 0.5  # of a step
STEP = 1e-3  # by which a bandwidth is raised


def shares(job: Job, at: Point) -> dict[str, float]:
    """Parts of a step by cause; they add up to 1.

    Of exposed communication the network (scale-out) takes what shrinks with its bandwidth, dC / d ln(1 / N), where it
    is the slower tier; the fabric (scale-up) the rest, latencies included.
    """
    faster = replace(job.cluster, nic_bytes_per_s=(1.0 + STEP) * job.cluster.nic_bytes_per_s)
    exposed = _exchanged(at.time)
    saved = exposed - _exchanged(step_time(job.network, at.spread, faster, job.recipe, job.rates))
    across = min(max(saved, 0.0) * (1.0 + STEP) / STEP, exposed)
    found = {
        name: sum(float(getattr(at.time, part)) for part in parts) / at.seconds
        for name, parts in CAUSES.items()
    }
    found["fabric"], found["network"] = (exposed - across) / at.seconds, across / at.seconds
    order = ("compute", "memory", "host", "fabric", "network", "bubble", "optimiser", "stragglers")
    return {name: found[name] for name in order}


def _exchanged(time: StepTime) -> float:
    """Seconds of communication that nothing hides."""
    return sum(float(getattr(time, part)) for part in EXCHANGES)


def waiting(parts: Mapping[str, float]) -> float:
    """The share of a step in which chips wait for one another."""
    return sum(parts[name] for name in WAITING)


def takeover(strong: Sequence[ScalingRecord]) -> TakeoverRecord:
    """Where chips wait for more than half of a step, in strong scaling; what takes most of it."""
    for s in sorted(strong, key=lambda s: s.chips):
        if waiting(s.shares) > HALF:
            parts = {name: s.shares[name] for name in WAITING}
            return TakeoverRecord(s.chips, max(parts, key=lambda name: parts[name]), parts)
    return TakeoverRecord(0, "", {})
