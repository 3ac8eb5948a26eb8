"""One plan at one operating point as a record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from chipwise.catalog.price import split_usd_per_million
from chipwise.evidence.judge import APART, USERS, Estimate, Nearness, chance, judge
from chipwise.parallel.layout import Layout
from chipwise.parallel.memory import MemoryAccount
from chipwise.predict.service import Prediction
from chipwise.report.assemble import figure, layout_record, memory_record
from chipwise.report.records import Figure, PlanRecord, PriceRecord, TailRecord
from chipwise.search.evaluate import Bounds
from chipwise.search.space import Deployment
from chipwise.workload.precision import Precision
from chipwise.workload.workload import Workload

__all__ = ["Fleet", "plan_record"]

JOULE_PER_KWH = 3.6e6
RESTING = frozenset(("launch", "host", "queue", "bubble"))
"""Resources that keep a chip waiting: its power falls towards that of an idle one meanwhile."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """Replicas: those that carry the load, spare ones, and workers for prompts alone, which may have a layout of their
    own. `largest_per_s` is what each replica can carry (0: what it does); `harnessed`: under a benchmark client whose
    runs were fitted."""

    carrying: int = 1
    spare: int = 0
    prompt_workers: int = 0
    largest_per_s: float = 0.0
    prompt_layout: Layout | None = None
    harnessed: bool = False

    def devices(self, layout: Layout) -> int:
        """Devices of all of them, replicas in a layout."""
        prompts = self.prompt_layout or layout
        replicas = (self.carrying + self.spare) * int(layout.devices)
        return replicas + self.prompt_workers * int(np.asarray(prompts.devices).reshape(-1)[0])


def plan_record(
    deployment: Deployment,
    layout: Layout,
    prediction: Prediction,
    bounds: Bounds,
    memory: MemoryAccount,
    workload: Workload,
    precision: Precision,
    price: PriceRecord | None,
    near: Nearness,
    tails: Mapping[str, TailRecord],
    fleet: Fleet,
    idle_power: float,
    level: str = "",
) -> PlanRecord:
    """`prediction` and `bounds` hold a single number in each figure, of all replicas that carry the load; `near` says
    what was measured near the deployment, `level` by which figure of throughput (`tiers.level_figure`). `idle_power` is
    that of a chip over its TDP."""

    def one(value: object) -> float:
        return float(np.asarray(value).reshape(-1)[0])

    layout_ = layout_record(layout)
    package = deployment.chip.devices_per_package
    chips = fleet.devices(layout) // package
    pools = (APART if fleet.prompt_workers else "") + ("" if fleet.harnessed else USERS)
    requests = one(prediction.requests_per_s)
    fastest = one(bounds.requests_per_s) * workload.output_tokens
    tokens = judge("tokens_per_s" + (level or pools), requests * workload.output_tokens, near, most=fastest)
    tpot = None
    if workload.output_tokens > 1.0:
        tpot = judge("tpot_s" + pools, one(prediction.tpot_s), near, least=one(bounds.tpot_s))
    per_request = (
        one(prediction.prefill_s) / layout_.pp,
        workload.output_tokens
        * one(prediction.decode_s)
        * layout_.dp
        * fleet.carrying
        / max(one(prediction.batch), 1e-9),
    )
    into, out = _usd_per_million(price, tokens, requests, per_request, workload)
    exposed = {k: one(v) for k, v in prediction.cost.exposed.items()}
    total = sum(exposed.values())
    shares = {k: v / total for k, v in sorted(exposed.items(), key=lambda kv: -kv[1]) if v > 0}
    busy = 1.0 - sum(v for k, v in shares.items() if k in RESTING)
    ttft = judge("ttft_s" + pools, one(prediction.ttft_s), near, least=one(bounds.ttft_s))
    # whole sequences: a lone one stays alone, although the mean in flight counts the next one's prefill
    held = max(1.0, float(np.floor(one(prediction.resident))))
    return PlanRecord(
        rank=0,
        chip=deployment.chip.id,
        chips=chips,
        replicas=fleet.carrying + fleet.spare,
        layout=layout_,
        precision=precision.name,
        kv=precision.kv.name,
        runtime=deployment.runtime.id,
        batch=one(prediction.batch) / fleet.carrying,
        concurrency=one(prediction.concurrency) / fleet.carrying,
        ttft_s=figure(ttft),
        tpot_s=None if tpot is None else figure(tpot),
        decode_s=one(prediction.decode_s),
        prefill_s=one(prediction.prefill_s),
        tokens_per_s=figure(tokens),
        tokens_per_s_per_chip=figure(tokens.scaled(1.0 / chips)),
        tokens_per_s_per_user=None if tpot is None else figure(tpot.inverse(1.0)),
        requests_per_s=requests,
        largest_requests_per_s=max(fleet.carrying * fleet.largest_per_s, requests),
        prompt_share=min(one(prediction.utilisation), 1.0),
        price=price,
        usd_per_million_in=into,
        usd_per_million_out=out,
        kwh_per_million_out=_energy(deployment.chip.tdp_w, chips, tokens, busy, idle_power),
        bound=next(iter(shares)),
        shares=shares,
        memory=memory_record(memory, layout_.dp, held),
        tails=dict(tails),
        spare=fleet.spare,
        prompt_workers=fleet.prompt_workers,
        note=deployment.note,
        system=deployment.system.id if deployment.system else "",
        chance=_chance(workload, ttft, tpot, tails),
        hosts=_hosts(deployment, fleet, layout),
    )


def _chance(
    w: Workload, ttft: Estimate, tpot: Estimate | None, tails: Mapping[str, TailRecord]
) -> float | None:
    """The probability that the least certain of the targets holds, of a percentile with the spread of the mean; None
    without a target."""
    further = tpot or Estimate(0.0, 0.0, 0.0, ttft.basis)
    first_s, further_s = ttft.mid, further.mid
    if w.percentile is not None:
        tail = tails.get(f"p{w.percentile * 100:g}", TailRecord(None, None))
        first_s, further_s = tail.ttft_s or np.inf, np.inf if tail.tpot_s is None else tail.tpot_s
    n = w.output_tokens - 1.0
    found = []
    for target, one, more in ((w.ttft_s, 1.0, 0.0), (w.tpot_s, 0.0, 1.0), (w.e2e_s, 1.0, n)):
        if target is None or (one == 0.0 and tpot is None):
            continue
        if not np.isfinite(one * first_s + (more * further_s if more else 0.0)):
            return 0.0
        firsts = one * first_s / ttft.mid
        furthers = more * further_s / further.mid if more and further.mid else 0.0
        ends = (
            firsts * getattr(ttft, end) + furthers * getattr(further, end) for end in ("mid", "low", "high")
        )
        found.append(chance(target, *ends))
    return min(found, default=None)


def _hosts(d: Deployment, fleet: Fleet, layout: Layout) -> int:
    """Machines that hold all replicas, whole ones in each where they fit."""
    held = d.system.chips_per_host if d.system else 1
    total = 0
    for count, each in (
        (fleet.carrying + fleet.spare, layout),
        (fleet.prompt_workers, fleet.prompt_layout or layout),
    ):
        chips = int(np.asarray(each.devices).reshape(-1)[0]) // d.chip.devices_per_package or 1
        total += -(-count // (held // chips)) if chips <= held else count * -(-chips // held)
    return total


def _energy(tdp_w: float | None, chips: int, tokens: Estimate, busy: float, idle: float) -> Figure | None:
    """Kilowatt-hours of all chips per million output tokens: TDP while chips work, `idle` of it while they wait for
    launches or the host; low all idle, high all at TDP. Hosts, fans and cooling are left out."""
    if tdp_w is None:
        return None
    full = tdp_w * chips * 1e6 / JOULE_PER_KWH
    drawn = busy + (1.0 - busy) * idle
    return Figure(
        full * drawn / tokens.mid, full * idle / tokens.high, full / tokens.low, "modelled", provisional=True
    )


def _usd_per_million(
    price: PriceRecord | None,
    tokens: Estimate,
    requests_per_s: float,
    machine_s: tuple[float, float],
    workload: Workload,
) -> tuple[Figure | None, Figure | None]:
    """Dollars per million input and output tokens by the one rule of `catalog.price`: each kind pays for its
    share of the machine seconds of a request (`machine_s`: prefill, decode), idle time included."""
    if price is None:
        return None, None
    share = machine_s[0] / sum(machine_s)

    def split(usd_per_h: float, faster: float) -> tuple[float, float]:
        paid_s = 1.0 / (requests_per_s * faster)  # of the whole fleet, per request
        lengths = workload.prompt_tokens, workload.output_tokens
        into, out = split_usd_per_million(usd_per_h, paid_s * share, paid_s * (1.0 - share), *lengths)
        return float(into), float(out)

    mid = split(price.mid, 1.0)
    low = split(price.low, tokens.high / tokens.mid)
    high = split(price.high, tokens.low / tokens.mid)
    into, out = (
        Figure(*three, tokens.basis, tokens.provisional) for three in zip(mid, low, high, strict=True)
    )
    return into, out
