"""What a training step is made of, by the resource that takes the time: one name for each, wherever it is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from chipwise.report.train_records import ScalingRecord, TakeoverRecord
from chipwise.search.training import Job, Point

__all__ = ["HALF", "OVERHEADS", "overhead", "shares", "takeover", "taking"]

CAUSES: Mapping[str, tuple[str, ...]] = {
    "compute": ("compute_s", "head_s"),
    "memory": ("passes_s",),
    "host": ("host_s",),
    "bubble": ("bubble_s",),
    "optimiser": ("optimiser_s",),
    "stragglers": ("straggle_s",),
}
OVERHEADS = ("host", "fabric", "network", "bubble", "optimiser", "stragglers")  # all but compute and memory
HALF = 0.5  # of a step
STEP = 1e-3  # by which a bandwidth is raised


def shares(job: Job, at: Point) -> dict[str, float]:
    """Parts of a step by cause; they add up to 1.

    Of exposed communication the network (scale-out) takes what shrinks with its bandwidth, dC / d ln(1 / N), where it
    is the slower tier; the fabric (scale-up) the rest, latencies included.
    """
    faster = replace(job.cluster, nic_bytes_per_s=(1.0 + STEP) * job.cluster.nic_bytes_per_s)
    exposed = float(at.time.exposed_s)
    saved = exposed - float(replace(job, cluster=faster).step(at.spread).exposed_s)
    across = min(max(saved, 0.0) * (1.0 + STEP) / STEP, exposed)
    found = {
        name: sum(float(getattr(at.time, part)) for part in parts) / at.seconds
        for name, parts in CAUSES.items()
    }
    found["fabric"], found["network"] = (exposed - across) / at.seconds, across / at.seconds
    order = ("compute", "memory", "host", "fabric", "network", "bubble", "optimiser", "stragglers")
    return {name: found[name] for name in order}


def overhead(parts: Mapping[str, float]) -> float:
    """The share of a step besides compute and memory."""
    return sum(parts[name] for name in OVERHEADS)


def takeover(strong: Sequence[ScalingRecord]) -> TakeoverRecord:
    """Where compute and memory take less than half of a step, in strong scaling; what takes most of the rest."""
    for s in sorted(strong, key=lambda s: s.chips):
        if overhead(s.shares) > HALF:
            parts = {name: s.shares[name] for name in OVERHEADS}
            return TakeoverRecord(s.chips, max(parts, key=lambda name: parts[name]), parts)
    return TakeoverRecord(0, "", {})


def taking(cause: str) -> str:
    """A cause with its verb: `compute takes`, `stragglers take`."""
    return f"{cause} {'take' if cause == 'stragglers' else 'takes'}"
