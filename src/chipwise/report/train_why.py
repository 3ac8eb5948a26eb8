"""Why a layout wins, in closed form, and what would change it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from chipwise.parallel.network import group_rate
from chipwise.predict.training.stages import fullest
from chipwise.predict.training.step import step_time
from chipwise.predict.training.values import Cluster, Spread
from chipwise.search.training import RISKY, Job, Point
from chipwise.units import format_bytes, format_seconds

__all__ = ["reasons"]

FASTER = 1.1
# What 10 % more of it would give, by the figures of a cluster that it raises.
RESOURCES: Mapping[str, tuple[str, ...]] = {
    "compute": ("wide", "narrow"),
    "memory": ("memory_bytes_per_s",),
    "fabric": ("link_bytes_per_s",),
    "network": ("nic_bytes_per_s",),
}


def reasons(job: Job, at: Point, shares: Mapping[str, float]) -> tuple[str, ...]:
    """Largest shares; when gathered weights hide behind compute; when tensor parallelism pays, and what half or twice
    of it does; and what 10 % more of each resource gives."""
    top = sorted(shares.items(), key=lambda i: -i[1])[:2]
    lines = [f"{name} takes {share:.0%} of the step" for name, share in top]
    lines.append(_gathering(job, at.spread))
    lines.append(_tensor(job, at.spread))
    lines += [line for line in (_other_tp(job, at, 0.5), _other_tp(job, at, 2.0)) if line]
    gains = {name: _gain(job, at, fields) for name, fields in RESOURCES.items()}
    told = ", ".join(f"{name} {gain:+.1%}" for name, gain in gains.items())
    return (*lines, f"10 % more of a resource gives tokens/s: {told}")


def _gathering(job: Job, s: Spread) -> str:
    """FSDP moves 6 bytes per gathered parameter and micro-batch; a micro-batch of x tokens computes 6 x FLOPs per
    active one: compute covers traffic from x = (gathered / active) ε P / bandwidth on. Frozen weights move twice in
    their own type, and compute 4 x FLOPs."""
    t, c, r = job.network, job.cluster, job.rates
    near = float(c.domain) / max(float(s.tp), 1.0)
    inside = float(s.dp * s.cp) <= near
    link = float(r.link * c.link_bytes_per_s)
    net = float(r.net * np.nan_to_num(c.nic_bytes_per_s)) * max(near, 1.0)
    gathered = float(t.layers * t.layer_params + t.table_params) / float(t.active_params)
    moved = 2.0 * float(job.recipe.frozen_bytes) / 4.0 if job.adapter else 1.0
    balance = moved * gathered * float(r.linear * c.narrow) / max(link if inside else min(link, net), 1.0)
    where, here = "fabric" if inside else "network", f"{balance:,.0f} tokens per rank and micro-batch"
    if float(s.tokens) >= balance:
        does = "hides" if float(s.zero) >= 3 else "would hide"
        return f"FSDP {does} behind compute from {here} on; here {float(s.tokens):,.0f}"
    does = "waits" if float(s.zero) >= 3 else "would wait"
    return f"FSDP {does} for the {where} below {here}; here {float(s.tokens):,.0f}"


def _tensor(job: Job, s: Spread) -> str:
    """Four all-reduces of 2 x h bytes per layer, over 6 x p / t FLOPs of its p active parameters: traffic takes
    (t - 1) 16 h ε P / (6 p B) of the time of the products, whatever the batch; of adapters 4 FLOPs in place of 6, of
    layers that run again two more of either. So tensor parallelism pays where it saves more than that: recomputation
    (a third of the step), a bubble, gradients of fewer ranks."""
    t, c, r = job.network, job.cluster, job.rates
    ranks = max(float(s.tp), 2.0)
    rate = float(np.asarray(group_rate(c.network, ranks, 1.0, r.link, r.net).bytes_per_s))
    active = float((t.active_params - t.table_params) / t.layers)
    calls, flops = 4.0 + 2.0 * float(s.full), (4.0 if job.adapter else 6.0) + 2.0 * float(s.full)
    each = 4.0 * calls * float(t.hidden) * float(r.linear * c.narrow) / (flops * active * rate)
    exposed = float(r.tp_exposed) if float(job.recipe.fused) > 0 else 1.0
    return (
        f"traffic of tensor parallelism takes {each:.1%} of the products per rank beyond one, whatever the batch, "
        f"{exposed:.0%} of it exposed: tp{ranks:.0f} pays where it saves over {each * exposed * (ranks - 1.0):.1%}, "
        "of recomputation, bubble or gradients"
    )


def _other_tp(job: Job, at: Point, factor: float) -> str:
    """The same with another tp, the data-parallel degree taking the rest."""
    s = at.spread
    tp, dp = float(s.tp) * factor, float(s.dp) / factor
    legal = tp >= 1 and dp >= 1 and tp <= float(job.cluster.domain) and float(job.network.heads) % tp == 0
    if not legal or tp % 1 or dp % 1 or float(s.global_batch) % (dp * float(s.micro_batch)):
        return ""
    other = replace(s, tp=tp, dp=dp, shard=min(float(s.shard) / factor, dp * float(s.cp)))
    took = float(step_time(job.network, other, job.cluster, job.recipe, job.rates).total_s)
    held = float(np.asarray(fullest(job.network, other, job.recipe, job.memory).total_bytes))
    room = float(np.asarray(job.cluster.memory_bytes))
    most = f"{RISKY:.0%} of {format_bytes(room)} at most"
    fits = "" if held <= RISKY * room else f", and {format_bytes(held)} do not fit ({most})"
    return f"tp{tp:.0f} instead of tp{float(s.tp):.0f}: {format_seconds(took)} a step{fits}"


def _gain(job: Job, at: Point, names: tuple[str, ...]) -> float:
    """Relative gain of tokens/s where some figures of the cluster are 10 % higher."""
    raised = {n: FASTER * getattr(job.cluster, n) for n in names}
    faster: Cluster = replace(job.cluster, **raised)
    took = float(step_time(job.network, at.spread, faster, job.recipe, job.rates).total_s)
    return at.seconds / took - 1.0
