"""What a step is made of, why a layout wins, in closed form, and what would change it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from chipwise.catalog.preferences import preferences
from chipwise.parallel.memory import Verdict
from chipwise.predict.training.values import TrainSpread
from chipwise.report.training import taking
from chipwise.search.training import Point, TrainJob
from chipwise.units import format_bytes, format_seconds

CAUSES: Mapping[str, tuple[str, ...]] = {
    "compute": ("compute_s", "head_s"),
    "memory": ("passes_s",),
    "host": ("host_s", "stash_s"),
    "bubble": ("bubble_s",),
    "optimiser": ("optimiser_s",),
    "stragglers": ("straggle_s",),
}
STEP = 1e-3  # by which a bandwidth is raised
FASTER = 1.1
# What 10 % more of it would give, by the figure of a cluster that it raises; matrix units are raised where operators
# run.
RESOURCES: Mapping[str, str] = {
    "compute": "",
    "memory": "memory_bytes_per_s",
    "fabric": "link_bytes_per_s",
    "network": "nic_bytes_per_s",
}
ALONE = ("compute", "memory")  # what a single device has
LEAST = 0.005  # of a step: less is not named


def shares(job: TrainJob, at: Point) -> dict[str, float]:
    """Parts of a step by cause; they add up to 1.

    Of exposed communication the network (scale-out) takes what shrinks with its bandwidth, dC / d ln(1 / N), where it
    is the slower tier; the fabric (scale-up) the rest, latencies included.
    """
    faster = replace(job.cluster, nic_bytes_per_s=(1.0 + STEP) * job.cluster.nic_bytes_per_s)
    exposed = float(at.time.exposed_s)
    saved = exposed - float(replace(job, cluster=faster).step(at.spread, at.operators).exposed_s)
    across = min(max(saved, 0.0) * (1.0 + STEP) / STEP, exposed)
    found = {name: sum(float(getattr(at.time, part)) for part in parts) / at.seconds for name, parts in CAUSES.items()}
    found["fabric"], found["network"] = (exposed - across) / at.seconds, across / at.seconds
    order = ("compute", "memory", "host", "fabric", "network", "bubble", "optimiser", "stragglers")
    return {name: found[name] for name in order}


def reasons(job: TrainJob, at: Point, parts: Mapping[str, float]) -> tuple[str, ...]:
    """Largest shares; of several devices from how many tokens on gathered weights hide behind compute, what tensor
    parallelism costs and buys, or would cost; and what 10 % more of each resource gives."""
    top = [item for item in sorted(parts.items(), key=lambda i: -i[1])[:2] if item[1] >= LEAST]
    lines = [f"{taking(name)} {share:.0%} of the step" for name, share in top]
    lines += [line for line in (_gathering(job, at.spread), *_tensor(job, at)) if line]
    gains = {name: _gain(job, at, name) for name in RESOURCES if at.devices > 1 or name in ALONE}
    said = ", ".join(f"{name} {gain:+.1%}" for name, gain in gains.items())
    return (*lines, f"10 % more of a resource gives tokens/s: {said}")


def _gathering(job: TrainJob, s: TrainSpread) -> str:
    """FSDP moves 6 bytes per gathered parameter and micro-batch; a micro-batch of x tokens computes 6 x FLOPs per
    active one: compute covers traffic from x = (gathered / active) ε P / bandwidth on. Frozen weights move twice in
    their own type, and compute 4 x FLOPs. Empty where there is one data-parallel rank: nothing is cut over others."""
    t, c, r = job.network, job.cluster, job.rates
    if float(s.dp * s.cp) < 2.0:
        return ""
    near = float(c.domain) / max(float(s.tp), 1.0)
    inside = float(s.dp * s.cp) <= near
    link = float(r.of("all_gather").link_share * c.link_bytes_per_s)
    net = float(r.of("all_gather").net_share * np.nan_to_num(c.nic_bytes_per_s)) * max(near, 1.0)
    gathered = float(t.layers * t.layer_params + t.table_params) / float(t.active_params)
    moved = 2.0 * float(job.recipe.frozen_bytes) / 4.0 if job.adapter else 1.0
    balance = (
        moved
        * gathered
        * float(r.linear)
        * job.kernels.product_flops_per_s
        / max(link if inside else min(link, net), 1.0)
    )
    here, used = float(s.tokens), float(s.zero) >= 3
    hides = ("hides" if used else "would hide") if here >= balance else ("waits" if used else "would wait")
    where = "behind compute" if here >= balance else f"for the {'fabric' if inside else 'network'}"
    return (
        f"FSDP {hides} {where}: its all-gathers are hidden from {balance:,.0f} tokens per rank and micro-batch on, "
        f"here {here:,.0f}"
    )


def _tensor(job: TrainJob, at: Point) -> list[str]:
    """What tensor parallelism costs, the exposed share of its traffic, and what half of it would need instead; what
    twice of it would cost."""
    tp = float(at.spread.tp)
    lines = []
    if tp > 1:
        cost = f"tp{tp:.0f} costs {float(at.time.tp_s) / at.seconds:.0%} of the step here (traffic that stays exposed)"
        half = _other(job, at, 0.5)
        lines.append(cost + (f"; {_other_tp(job, at, half)}" if half else ""))
    twice = _other(job, at, 2.0)
    return lines + ([_other_tp(job, at, twice)] if twice else [])


def _other(job: TrainJob, at: Point, factor: float) -> TrainSpread | None:
    """The same with another tp, the data-parallel degree taking the rest; None where that is not legal."""
    s = at.spread
    tp, dp = float(s.tp) * factor, float(s.dp) / factor
    legal = tp >= 1 and dp >= 1 and tp <= float(job.cluster.domain) and float(job.network.heads) % tp == 0
    if not legal or tp % 1 or dp % 1 or float(s.global_batch) % (dp * float(s.micro_batch)):
        return None
    return replace(s, tp=tp, dp=dp, shard=min(float(s.shard) / factor, dp * float(s.cp)))


def _other_tp(job: TrainJob, at: Point, other: TrainSpread) -> str:
    """Step, exposed traffic and memory of another tp."""
    took = job.step(other)
    memory = job.held(other)
    name, seconds = f"tp{float(other.tp):.0f}", float(took.total_s)
    spent = f", {float(took.tp_s) / seconds:.0%} of it exposed traffic" if float(other.tp) > 1 else ""
    use = f"{format_bytes(float(memory.total_bytes))} of {format_bytes(float(memory.capacity_bytes))}"
    aim, limit = preferences().training_aim, preferences().training_limit
    full = {
        Verdict.SHORT: f"needs {use}, more than the limit of {limit:.0%}",
        Verdict.TIGHT: f"is tight, {use} where {aim:.0%} is aimed at",
    }.get(memory.verdict(1.0, aim, limit))
    head = f"{name} instead of tp{float(at.spread.tp):.0f}"
    return f"{head} takes {format_seconds(seconds)} a step{spent}" + (f", but {full}" if full else "")


def _gain(job: TrainJob, at: Point, resource: str) -> float:
    """Relative gain of tokens/s where there is 10 % more of a resource."""
    figure = RESOURCES[resource]
    cluster = replace(job.cluster, **{figure: FASTER * getattr(job.cluster, figure)}) if figure else job.cluster
    more = replace(job, cluster=cluster)
    if resource in ALONE:
        took = replace(more, kernels=job.kernels.faster(**{resource: FASTER})).step(at.spread)
    else:
        took = more.step(at.spread, at.operators)
    return at.seconds / float(took.total_s) - 1.0
