"""`simulate`: a deployment request by request, over arrivals as they were, at random, or all at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from math import ceil

import numpy as np
from numpy.typing import NDArray

from chipwise.api.cache_tiers import CacheBytes, GivenTiers, below_record, check_log, tiers_of
from chipwise.api.estimating import AskedLoad, loads_of, parted
from chipwise.api.scaling import ready_s, said_policy
from chipwise.api.stepping import PassTimes, pass_times
from chipwise.calibrate.parameter import Z80
from chipwise.errors import InfeasibleError, UsageError
from chipwise.predict.events.cache import ENDLESS, CacheTier
from chipwise.predict.events.engine import Fleet, Outcome, run, run_apart, run_by_turns
from chipwise.predict.events.rank import Rules
from chipwise.predict.events.scaling import Scaling, ScalingGiven
from chipwise.report.assemble import model_record, workload_record
from chipwise.report.records import Figure
from chipwise.report.simulated import (
    FollowingRecord,
    SimulationRecord,
    SimulationReport,
    SpreadRecord,
    WithinRecord,
    rows_of,
)
from chipwise.search.memory import account_of
from chipwise.units import Array
from chipwise.values import dataclass
from chipwise.workload.arrivals import Arrivals, rate_words
from chipwise.workload.lengths import Lengths

QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
WHOLE = "whole answer"
"""The target of the time from arrival to end."""
ENDS = "low and high: the same requests at the ends of the interval of"
HOUR_S = 3600.0
"""seconds: of an hour. Exact: 3600."""
BATCHES = 10
"""Stretches of a run that its mean is told from, one after the other: they depend on each other less than requests."""
AHEAD = 0.1
"""Of the requests that are counted: as many come before them, so that an engine is not met empty, and after them."""


@dataclass(frozen=True)
class SimulatedTraffic:
    """Requests, and how they come: at their own times, or from so many `clients`, each of which sends its next one when
    the last has ended. The `counted` ones alone are told. `words` say so."""

    arrivals: Arrivals
    words: str
    clients: int | None = None
    counted: slice = field(default_factory=lambda: slice(None))

    @classmethod
    def random(
        cls, lengths: Lengths, count: int, rate_per_s: float, *, burstiness: float = 1.0, seed: int = 0
    ) -> SimulatedTraffic:
        """`count` requests at a rate, with others before and after them."""
        more = ceil(AHEAD * count)
        drawn = Arrivals.drawn(lengths, count + 2 * more, rate_per_s, burstiness=burstiness, seed=seed)
        kind = "Poisson" if burstiness == 1.0 else f"gaps gamma-distributed, coefficient of variation {burstiness:g}"
        words = f"{rate_words(rate_per_s)}, {kind}; {more:,} more before and after, which are not counted"
        return cls(drawn, words, counted=slice(more, more + count))


@dataclass(frozen=True)
class RepeatedRuns:
    """The same requests at the ends and the middle of the interval of step times."""

    low: Outcome
    mid: Outcome
    high: Outcome

    @property
    def all(self) -> tuple[Outcome, Outcome, Outcome]:
        """All three."""
        return self.low, self.mid, self.high


def fleet_of(one: AskedLoad, passes: PassTimes, *, route: str = "least") -> Fleet:
    """What a deployment is to the engine: its ranks, the policies of its software, and its cache in blocks.

    Pipeline stages are engines of their own, which share sequences and cache: passes take the time through all
    stages. Raises `UsageError` for what is not simulated, `InfeasibleError` where no cache is left.
    """
    d, policies = one.deployment, one.deployment.policies
    if policies.look_passes != 1 or policies.gather_passes:
        raise UsageError(
            "look_passes and gather_passes are not simulated", "leave them out of --policy", field="policy"
        )
    context, prefix = one.context, one.context.workload.prefix
    if prefix is not None and (prefix.common_tokens or prefix.sharers > 1.0):
        name = "common_prefix" if prefix.common_tokens else "sharers"
        hint = "a --log with hash_ids says which requests share what; --prefix-hit alone is a share of each prompt"
        raise UsageError(f"--{name.replace('_', '-')} is not simulated", hint, field=name)
    held = float(np.asarray(one.requests.held))
    account = account_of(context.found.graph, d, one.layout, held)
    stages = int(np.asarray(one.layout.pp))
    tokens = float(np.max(np.asarray(account.tokens))) / stages
    size = policies.kv_block_tokens
    blocks = ENDLESS if not np.isfinite(tokens) else int(tokens // size)
    if blocks < 1:
        raise InfeasibleError(f"{one.name}: no room for a cache", "more chips, or a smaller format")
    experts = context.found.graph.routed
    ranks = int(np.asarray(one.layout.dp)) if experts else 1
    rules = Rules(
        policies.max_batched_tokens,
        max(policies.max_sequences // stages, 1),
        blocks,
        size,
        whole=policies.kv_reservation != "growing",
        alone=policies.prefill == "alone",
        static=policies.batch == "static",
        known=prefix.cached_share if prefix else 0.0,
        moved_s=_moved_s(one, _token_bytes(one)),
    )
    return Fleet(rules, passes.mid, one.replicas * stages, ranks, route, stages)


def _token_bytes(one: AskedLoad) -> float:
    """Bytes of the cache of a token on the device that holds most of it."""
    held = float(np.asarray(one.requests.held))
    account = account_of(one.context.found.graph, one.deployment, one.layout, held)
    return float(np.max(np.asarray(account.sequence_bytes))) / held


def _moved_s(one: AskedLoad, token_bytes: float) -> float | None:
    """Seconds in which a device moves what it keeps of a token to its host, or back; None where it does not. Raises
    `UsageError` where nothing is known of the way there."""
    if one.deployment.policies.preemption != "swap":
        return None
    host = one.deployment.chip.host
    if host is None or not host.bytes_per_s:
        what = f"{one.deployment.chip.id}: no link to the memory of a host is known"
        raise UsageError(what, "--policy preemption=recompute", field="policy")
    return token_bytes / host.bytes_per_s


def runs_of(
    one: AskedLoad,
    traffic: SimulatedTraffic,
    *,
    route: str = "least",
    scaling: Scaling | None = None,
    tiers: tuple[CacheTier, ...] = (),
    passes: PassTimes | None = None,
) -> RepeatedRuns:
    """The requests on a deployment, at the middle and the ends of its interval: the same requests each time; `tiers`
    are those of a rank that has some below its cache, `passes` its pass times where they are known. Raises the errors
    of `fleet_of` and `pass_times`, and `UsageError` for clients and scaling of pools."""
    passes = passes or pass_times(one)
    tables = (passes.low, passes.mid, passes.high)
    fleet = replace(fleet_of(one, passes, route=route), scaling=scaling)
    fleet = replace(fleet, rules=replace(fleet.rules, tiers=tiers))
    host_s = float(np.asarray(one.context.rates([one.deployment])[1].request_s))
    if not one.deployment.apart:
        whole = (
            run(traffic.arrivals, replace(fleet, table=table), clients=traffic.clients, pause_s=host_s)
            for table in tables
        )
        return RepeatedRuns(*(found.delayed(host_s).counting(traffic.counted) for found in whole))
    if scaling is not None:
        what = "separate prompt workers do not follow the load in a simulation"
        raise UsageError(what, "leave --scale out, or --prefill and --disaggregate", field="scale")
    if traffic.clients is not None:
        hint = "--rate 10/s, --log or --requests alone"
        raise UsageError("clients of separate prompt workers are not simulated", hint, field="concurrency")
    one = parted(one, one.layout)
    layout, workers = one.context.tactics.prefill or (one.layout, 1)
    before = replace(one, layout=layout, replicas=workers)
    first = pass_times(before)
    prompts = fleet_of(before, first, route=route)
    prompts = replace(prompts, rules=replace(prompts.rules, alone=True, static=False, whole=False))
    requests = traffic.arrivals
    each_s = float(np.asarray(loads_of([one])[1].engines.transfer_s)[0])
    sent_s = each_s * requests.prompt / requests.prompt.mean()
    apart = (
        run_apart(requests, replace(prompts, table=mine), replace(fleet, table=table), sent_s)
        for mine, table in zip((first.low, first.mid, first.high), tables, strict=True)
    )
    return RepeatedRuns(*(found.delayed(host_s).counting(traffic.counted) for found in apart))


def runs_by_turns(
    ones: Sequence[AskedLoad], arrivals: Arrivals, who: NDArray[np.intp], move_s: Sequence[float]
) -> RepeatedRuns:
    """Requests to models on one card of which one is awake, each of which asks the model `who` and takes `move_s` to
    be moved in or out: all models as fast or slow as each other within their intervals. Raises the errors of
    `fleet_of` and `pass_times`."""
    passes = [pass_times(one) for one in ones]
    fleets = [fleet_of(one, its) for one, its in zip(ones, passes, strict=True)]
    host_s = np.array([float(np.asarray(one.context.rates([one.deployment])[1].request_s)) for one in ones])
    found = []
    for tables in zip(*((its.low, its.mid, its.high) for its in passes), strict=True):
        models = [replace(fleet, table=table) for fleet, table in zip(fleets, tables, strict=True)]
        outcome = run_by_turns(arrivals, who, models, move_s).outcome
        found.append(replace(outcome, arrived=outcome.arrived - host_s[who]))
    return RepeatedRuns(*found)


def simulate(
    one: AskedLoad,
    traffic: SimulatedTraffic,
    *,
    route: str = "least",
    targets: Mapping[str, float] | None = None,
    scaling: ScalingGiven | None = None,
    below: GivenTiers | None = None,
) -> SimulationReport:
    """What becomes of requests on a deployment; `targets` are seconds by name (TTFT, TPOT, whole answer), of which the
    share within is told, `below` the tiers below the cache of each replica. Raises the errors of `runs_of`,
    `said_policy`, `check_log` and `tiers_of`, and `InfeasibleError` where no request can
    be served."""
    followed = None if scaling is None else said_policy(scaling, ready_s(one), one.replicas, "--replicas 4")
    if below is not None:
        static = one.deployment.policies.batch == "static"
        check_log(traffic.arrivals, apart=one.deployment.apart, static=static)
    passes, cache = pass_times(one), None
    tiers: tuple[CacheTier, ...] = ()
    if below is not None:
        cache = CacheBytes.of(one, fleet_of(one, passes), _token_bytes(one))
        tiers = tiers_of(below, one, cache, traffic.arrivals.block_tokens)
    runs = runs_of(one, traffic, route=route, scaling=followed, tiers=tiers, passes=passes)
    if not runs.mid.served.any():
        longest = float(np.min(runs.mid.prompt + runs.mid.output))
        what = f"{one.name}: not one request fits its cache, the shortest has {longest:,.0f} tokens"
        raise InfeasibleError(what, "more chips or shorter lengths; chipwise fit shows what would help")
    record = record_of(runs, targets or {})
    context = one.context
    words = _words(one, traffic, runs, route)
    if followed is not None:
        record = replace(record, scaling=scaling_record(followed, runs.mid, one.replicas))
    if below is not None and cache is not None:
        without = runs_of(one, traffic, route=route, scaling=followed, passes=passes).mid
        told = below_record(below, one, cache, tiers, traffic.arrivals, runs.mid, without)
        record, words = replace(record, below=told), (*words, *_below_words(one))
    return SimulationReport(
        model_record(context.found.graph, context.found.config),
        workload_record(context.workload),
        f"{one.replicas} x ({one.name.partition(' on ')[2]})" if one.replicas > 1 else one.name.partition(" on ")[2],
        traffic.words,
        record,
        rows_of(record),
        (*words, *context.found.notes),
    )


def _below_words(one: AskedLoad) -> tuple[str, ...]:
    """What the tiers of an answer rest on."""
    below = one.deployment.runtime.cache_below
    return (
        f"tiers: {below.through if below else '-'}; what the cache forgets moves down, least recently used first, and "
        "comes up where that is sooner than computing it; its request waits, others run",
    )


def scaling_record(scaling: Scaling, found: Outcome, fixed: int, spare: int = 0) -> FollowingRecord:
    """A policy and what became of it, against so many `fixed` replicas; `spare` ones are there beside both."""
    hours, whole_h = found.paid_s / HOUR_S, found.whole_s / HOUR_S
    return FollowingRecord(
        scaling.target,
        scaling.least + spare,
        scaling.most + spare,
        scaling.start_s,
        scaling.hold_s,
        scaling.every_s,
        found.started,
        hours + spare * whole_h,
        (fixed + spare) * whole_h,
    )


def _words(one: AskedLoad, traffic: SimulatedTraffic, runs: RepeatedRuns, route: str) -> tuple[str, ...]:
    """What the answer rests on."""
    policies, layout = one.deployment.policies, one.layout
    engines = one.replicas * float(layout.pp) * (float(layout.dp) if one.context.found.graph.routed else 1.0)
    how = {"turn": "in turn", "least": "to the least loaded", "prefix": "to the prefix and the least loaded"}
    words = [
        f"{one.deployment.runtime.name}: "
        + ("batches start and end together" if policies.batch == "static" else "continuous batching")
        + (", prompts in separate passes" if policies.prefill == "alone" else ", prompts in pieces mixed with decoding")
        + f", {policies.max_batched_tokens:,} tokens a pass, {policies.max_sequences:,} sequences"
    ]
    if one.deployment.apart:
        layout_, workers = (parted(one, one.layout).context.tactics.prefill) or (one.layout, 1)
        words.append(
            f"{workers} worker{'s' * (workers > 1)} for prompts ({layout_.label()}), which do not wait for room where "
            "their requests go; the first token is seen when its cache has been sent"
        )
    if policies.preemption == "swap":
        words.append("the cache of preempted requests is moved to the host and back, where room is not counted")
    if engines > 1:
        words.append(f"requests go {how[route]}")
    if float(layout.pp) > 1:
        words.append("each pipeline stage works on different sequences, with its part of the cache")
    if traffic.arrivals.blocks is not None and policies.batch != "static":
        words.append("prefixes stay in the cache that running requests leave, the least recently used go first")
    words.append(f"{ENDS} step times, and chance of the sample")
    return (*words, *traffic.arrivals.said)


def record_of(runs: RepeatedRuns, targets: Mapping[str, float], *, tokens: bool = True) -> SimulationRecord:
    """What became of requests, of which each has a sample where there are no `tokens`."""
    mid = runs.mid
    tpot = None if not len(mid.tpot_s) else _spread([o.tpot_s for o in runs.all])
    last = float(np.max(mid.arrived))
    ended = float(np.nanmax(mid.last))
    rates = [float(o.output[o.served].sum()) / o.duration_s for o in runs.all]
    within = []
    for name, limit in targets.items():
        times = [{"TTFT": o.ttft_s, "TPOT": o.tpot_s}.get(name, o.e2e_s) for o in runs.all]
        shares = [float(np.mean(t <= limit)) if len(t) else 1.0 for t in times]
        within.append(WithinRecord(name, limit, shares[1], min(shares), max(shares)))
    return SimulationRecord(
        len(mid.arrived),
        int(np.sum(~mid.served)),
        mid.duration_s,
        max(ended - last, 0.0),
        int(np.sum(mid.served & (mid.last > last))),
        mid.hit_rate,
        mid.preempted,
        float(mid.served.sum()) / mid.duration_s,
        _figure(rates[1], rates, 0.0) if tokens else None,
        mid.busy,
        _spread([o.ttft_s for o in runs.all]) if tokens else None,
        tpot,
        _spread([o.e2e_s for o in runs.all]),
        tuple(within),
        None if tokens else _spread([o.wait_s for o in runs.all]),
    )


def _spread(times: Sequence[Array]) -> SpreadRecord:
    """Mean and quantiles over runs at the low end, the middle and the high end."""
    means = [float(t.mean()) for t in times]
    found = {"mean": _figure(means[1], means, _mean_error(times[1]))}
    for name, q in QUANTILES.items():
        values = [float(np.quantile(t, q)) for t in times]
        found[name] = _figure(values[1], values, _quantile_error(times[1], q))
    return SpreadRecord(**found)


def _mean_error(times: Array) -> float:
    """80 % of the chance of the sample in the logarithm of its mean, by stretches of the run."""
    if len(times) < 2 * BATCHES:
        return float(Z80 * times.std() / max(times.mean(), 1e-12) / max(len(times), 1) ** 0.5)
    means = np.array([part.mean() for part in np.array_split(times, BATCHES)])
    return float(Z80 * means.std(ddof=1) / max(means.mean(), 1e-12) / BATCHES**0.5)


def _quantile_error(times: Array, q: float) -> float:
    """The same of a quantile, by the ranks that it may have had."""
    ordered, n = np.sort(times), len(times)
    off = Z80 * (n * q * (1.0 - q)) ** 0.5
    low, high = (float(ordered[int(np.clip(round(n * q + s * off) - (s > 0), 0, n - 1))]) for s in (-1, 1))
    return float(np.log(max(high, 1e-12) / max(low, 1e-12))) / 2.0


def _figure(mid: float, ends: Sequence[float], chance: float) -> Figure:
    """A figure with the ends of its runs and the chance of its sample, independent of each other."""
    low, high = (
        mid * float(np.exp(s * np.hypot(np.log(max(end, 1e-12) / max(mid, 1e-12)), chance)))
        for s, end in ((-1.0, min(ends)), (1.0, max(ends)))
    )
    return Figure(mid, min(low, mid), max(high, mid), "simulated", provisional=True)
