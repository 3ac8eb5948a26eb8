"""Measured serving rows -> engines: categories loop, numbers broadcast."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.runtime import Policies
from chipwise.cost.cost import Cost
from chipwise.cost.device import Device
from chipwise.evidence.serving_rows import Pool, ServingRun, graph_of
from chipwise.parallel.layout import Layout
from chipwise.parallel.memory import account
from chipwise.parallel.shard import Sharded, shard
from chipwise.predict.disaggregated import transfer_s
from chipwise.predict.engines import Engines
from chipwise.predict.passes import PassTable, tabulate
from chipwise.predict.step import step_parts
from chipwise.units import Array
from chipwise.workload.step import Step

__all__ = ["engines", "labels"]

# Where a stack was started with more memory than its defaults, as those which ran must have been.
LAST_SHARE = 0.97
LINK_SHARE = 0.5
BUILT_FOR_A_BATCH = frozenset(("trtllm",))
NETWORK_BYTES_PER_S = 50e9  # one 400 Gb/s port per device, where the chip's table names none


def labels(runs: Sequence[ServingRun]) -> dict[str, NDArray[np.str_]]:
    """Along which lines fitted numbers are shared: runtime, stack (runtime and launcher), chip, generation of chips,
    family (architecture of the model), period (quarter of the year), harness (stack, and how lengths and pools
    were set)."""

    def column(of: Callable[[ServingRun], str]) -> NDArray[np.str_]:
        return np.array([of(r) for r in runs], dtype=np.str_)

    return {
        "runtime": column(lambda r: r.runtime.id),
        "stack": column(lambda r: r.stack),
        "chip": column(lambda r: r.chip.id),
        "generation": column(lambda r: r.chip.base_generation),
        "family": column(lambda r: r.model.architecture),
        "period": column(lambda r: r.period),
        "harness": column(lambda r: r.harness),
        "mode": column(lambda r: "apart" if r.prefill else "together"),
    }


@dataclass(frozen=True, slots=True)
class _Engine:
    """One pool of one row, as the tables need it."""

    run: ServingRun
    pool: Pool

    @property
    def category(self) -> tuple[object, ...]:
        r = self.run
        return id(r.model), r.precision, r.runtime.id, r.chip.generation


def engines(runs: Sequence[ServingRun], numbers: Parameters) -> Engines:
    """Engines of all rows, in their order."""
    decode, limit = _tables([_Engine(r, r.pool) for r in runs], numbers)
    split = [i for i, r in enumerate(runs) if r.prefill is not None]
    prefill = decode
    if split:
        pools = [_Engine(r, r.prefill) for r in runs if r.prefill is not None]
        apart, _ = _tables(pools, numbers)
        # rows of the prefill pools behind those of the engines, then each where it belongs
        where = np.arange(len(runs))
        where[split] = len(runs) + np.arange(len(split))
        prefill = PassTable.join([decode, apart]).take(where)

    def column(of: Callable[[ServingRun], float]) -> Array:
        return np.array([of(r) for r in runs], dtype=float)

    return Engines(
        decode=decode,
        prefill=prefill,
        clients=column(lambda r: r.concurrency),
        output_tokens=column(lambda r: r.output_tokens),
        limit=np.minimum(limit, column(_started_for)),
        servers=column(lambda r: r.pool.workers * float(r.pool.layout.dp) * float(r.pool.layout.pp)),
        prefill_servers=column(
            lambda r: r.prefill.workers * float(r.prefill.layout.dp) if r.prefill else 0.0
        ),
        transfer_s=column(_transfer_s),
        alone=column(lambda r: float(_policies(r).prefill == "alone")),
        lockstep=column(lambda r: float(r.equal_lengths)),
    )


def _policies(run: ServingRun) -> Policies:
    return run.runtime.policies_on(run.chip)


def _started_for(run: ServingRun) -> float:
    """Requests that each decode server of a pool was started for, where an engine is built for a number of
    them: the power of two nearest to its share of the clients (assumed; no table says it)."""
    if run.prefill is None or run.runtime.id not in BUILT_FOR_A_BATCH:
        return np.inf
    share = run.concurrency / (run.pool.workers * float(run.pool.layout.dp))
    return float(2.0 ** np.round(np.log2(max(share, 1.0))))


def _transfer_s(run: ServingRun) -> float:
    if run.prefill is None:
        return 0.0
    device = Device.of(run.chip)
    inside = run.prefill.devices + run.pool.devices <= float(device.domain)
    rate = float(device.link_bytes_per_s if inside else device.scaleout_bytes_per_s)
    rate = rate if np.isfinite(rate) else NETWORK_BYTES_PER_S
    cache = float(graph_of(run.model, run.precision).kv_bytes(run.prompt_tokens, scope="all"))
    return float(transfer_s(cache, run.prefill.layout.tp, run.pool.layout.tp, rate, LINK_SHARE))


def _tables(pools: Sequence[_Engine], numbers: Parameters) -> tuple[PassTable, Array]:
    """Passes of all pools and the requests that fit on each of their ranks."""
    by_category: dict[tuple[object, ...], list[int]] = {}
    for i, pool in enumerate(pools):
        by_category.setdefault(pool.category, []).append(i)
    tables: list[PassTable] = []
    order: list[int] = []
    limits = np.zeros(len(pools))
    for members in by_category.values():
        group = [pools[i] for i in members]
        tables.append(_table(group, numbers))
        limits[members] = _limits(group)
        order += members
    back = np.empty(len(pools), dtype=np.intp)
    back[order] = np.arange(len(pools))
    return PassTable.join(tables).take(back), limits


def _columns(group: Sequence[_Engine]) -> tuple[Sharded, Device]:
    run = group[0].run
    layout = Layout(
        *(np.array([[float(e.pool.layout.part(p))] for e in group]) for p in ("tp", "pp", "dp", "ep"))
    )
    device = Device.stack([Device.of(e.run.chip) for e in group]).take(np.arange(len(group))[:, None])
    return shard(graph_of(run.model, run.precision), layout), device


def _table(group: Sequence[_Engine], numbers: Parameters) -> PassTable:
    sharded, device = _columns(group)
    family, runtime = device.family, group[0].run.runtime.id
    each = np.arange(len(group))[:, None]
    costs = numbers.cost(family, runtime, [e.run.chip for e in group]).take(each)
    rates = costs, numbers.overheads(family, runtime)

    def parts_of(step: Step) -> Iterable[tuple[str, Cost]]:
        return step_parts(sharded, step, device, *rates)

    return tabulate(
        parts_of,
        np.array([e.run.prompt_tokens for e in group]),
        np.array([e.run.output_tokens for e in group]),
        np.array([float(_policies(e.run).max_batched_tokens) for e in group]),
        replicas=np.array([float(e.pool.layout.dp) for e in group]),
    )


def _limits(group: Sequence[_Engine]) -> Array:
    sharded, device = _columns(group)
    found = np.zeros(len(group))
    by_policy: dict[Policies, list[int]] = {}
    for i, e in enumerate(group):
        by_policy.setdefault(_policies(e.run), []).append(i)
    for policies, members in by_policy.items():
        part = Layout(*(np.asarray(sharded.layout.part(p))[members] for p in ("tp", "pp", "dp", "ep")))
        context = np.array(
            [
                [e.run.prompt_tokens + policies.kv_reserved_share * e.run.output_tokens]
                for e in (group[i] for i in members)
            ]
        )
        capacity = np.asarray(device.memory_bytes)[members]
        memory = account(shard(sharded.graph, part), policies, capacity, context)
        weights = sum(np.asarray(x.bytes) for x in memory.items if x.kind.startswith("weights"))
        most = np.maximum((LAST_SHARE * capacity - weights) / memory.sequence_bytes, 1.0)
        fit = np.where(np.asarray(memory.sequences) >= 1, memory.sequences, most)
        found[members] = np.minimum(fit, policies.max_sequences)[:, 0]
    return found
