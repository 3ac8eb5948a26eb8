"""Rates of MLPerf runs of language models by physics alone: the best layout and batch of the given chips.

The same search as `plan`, with the limits of the benchmark. What was fitted to MLPerf is applied to the curve
that comes out, by `evidence.mlperf_model`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np

from chipwise.api.loaded import load_generating
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.benchmarks import Limit
from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import get_chip
from chipwise.catalog.runtime import get_runtime, override, runtimes_for
from chipwise.catalog.snapshot import current, per_snapshot
from chipwise.cost.device import Device
from chipwise.errors import ChipwiseError, UsageError
from chipwise.evidence.mlperf_features import is_card
from chipwise.evidence.mlperf_rows import SLACK, Curve, Run
from chipwise.search.deployments import TIMED, deployments
from chipwise.search.evaluate import Evaluated, evaluate
from chipwise.search.space import Deployment, Limits, candidates
from chipwise.units import Array
from chipwise.workload.build import build
from chipwise.workload.graph import Graph
from chipwise.workload.precision import uniform
from chipwise.workload.workload import Workload

__all__ = ["full_load", "language_curve"]

# From the means that the closed form predicts to the 99th percentiles that the rules limit, at a load just
# below saturation with Poisson arrivals: TPOT x 1.25, and a prompt's own time x 1.5 with two passes before it.
# Assumed; what is left of them is fitted as `limit.*`.
TPOT_P99 = 1.25
PROMPT_P99 = 1.5
PASSES_P99 = 2.0

# Logarithm of what a replica on cards without a common fabric is taken to lose in the choice of its layout: assumed.
JOINED = 0.3

# A replica of a submission rarely leaves the host or the scale-up domain.
MOST_DEVICES = 72

# Submissions cut replicas into few stages where tensor parallelism can do; more only where nothing else fits.
MOST_STAGES = 2

# Tokens that a pass yields with drafts of the model's own heads: prior, no published acceptance.
SPECULATIVE_TOKENS = 2.0


def language_curve(run: Run, parameters: Parameters) -> Curve:
    """The highest throughput of a run of a language model, over slack of its limits.

    Offline: the most tokens per second and chip over layouts and batches; Server and Interactive: the same
    where the 99th percentiles stay below the limits; SingleStream: one request at a time. Replicas fill the
    system. Raises `UsageError` where no layout of the chips holds the model.
    """
    if run.benchmark.refused or not run.benchmark.model:
        raise UsageError(f"{run.benchmark.name} is not predicted", run.benchmark.refused)
    lone = run.scenario in ("SingleStream", "MultiStream")
    limit = None if lone else run.benchmark.limits.get(run.scenario)
    if run.scenario in ("Server", "Interactive") and limit is None:
        raise UsageError(f"{run.benchmark.name} has no published limit for {run.scenario}")
    b = run.benchmark
    key = (b.model, run.precision, run.chip.id, run.chips, _runtime(run))
    drafts = SPECULATIVE_TOKENS if run.scenario in b.speculative else 1.0
    lengths = (b.input_tokens, b.output_tokens, b.beams)
    return _curve(*key, lengths, limit, lone, drafts, _Held(parameters))


def full_load(
    model: str,
    precision: str | None,
    chip: str,
    chips: int,
    lengths: tuple[float, float],
    limit: Limit | None,
    parameters: Parameters,
    *,
    lone: bool = False,
    concurrency: float | None = None,
) -> Curve:
    """The same for any workload: tokens per second of `chips` chips at the best layout and batch.

    `lengths` are prompt and output tokens, `limit` 99th percentiles; `concurrency` requests are in flight over
    all chips, None = as many as it takes. Raises `UsageError` where nothing fits.
    """
    asked = None if lone else limit
    return _curve(
        model, precision, chip, chips, None, (*lengths, 1), asked, lone, 1.0, _Held(parameters), concurrency
    )


class _Held:
    """Parameters and the facts in use as part of a cache key: by identity, as they are never changed."""

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters
        self.facts = current()

    def __hash__(self) -> int:
        return hash((id(self.parameters), id(self.facts)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Held):
            return NotImplemented
        return other.parameters is self.parameters and other.facts is self.facts


@lru_cache(maxsize=8192)
def _curve(
    model: str,
    precision: str | None,
    chip_id: str,
    chips: int,
    runtime: str | None,
    lengths: tuple[float, float, int],
    limit: Limit | None,
    lone: bool,
    drafts: float,
    held: _Held,
    concurrency: float | None = None,
) -> Curve:
    graph, chip = _graph(model, precision), get_chip(chip_id)
    prompt, output, beams = lengths
    # a beam search computes every beam of an output and keeps one; beams share the prompt and its cache
    workload = Workload("local" if lone else "serve" if limit else "batch", prompt / beams, output)
    d = _deployment(graph, chip, runtime)
    total = chips * chip.devices_per_package
    limits = Limits(max_devices=min(total, MOST_DEVICES))
    curves = []
    for e in _evaluated(graph, d, workload, limits, held.parameters):
        curves += list(_points(e, output, limit, total, lone, drafts, d.runtime.id, concurrency))
    if is_card(chip):
        curves = [replace(c, log_rate=c.log_rate - JOINED) if c.devices > 1 else c for c in curves]
    if not curves:
        raise UsageError(f"{model} does not fit on {chips}x {chip.id} as the model of memory has it")
    curves = [c for c in curves if c.stages <= MOST_STAGES] or curves
    rates = np.array([c.log_rate for c in curves]) - np.log(beams)
    at = np.argmax(rates, axis=0)
    best = curves[int(at[len(SLACK) // 2])]
    return replace(best, log_rate=rates.max(axis=0))


@per_snapshot
def _graph(model: str, precision: str | None) -> Graph:
    found = load_generating(model)
    if precision is None:
        return found.graph
    stored = uniform(precision)
    if any("E" in block.axes for _, block in found.graph.distinct()) and stored.weight("expert").bits < 8:
        stored = stored.without(("attention",))  # 4-bit checkpoints of experts leave attention wide
    if stored.weight("ffn").bits <= 8 and stored.activation("ffn").bits <= 8:
        stored = stored.with_kv("fp8")
    return build(found.graph.model.at_precision(stored))


def _runtime(run: Run) -> str | None:
    """The software that a submission names, where the catalogue knows it; None for the chip's default."""
    said = run.framework.lower()
    if run.chip.vendor == "nvidia" and "tensorrt" in said:
        return "trtllm"
    return "sglang" if "sglang" in said else None


def _deployment(graph: Graph, chip: Chip, runtime: str | None) -> Deployment:
    """A chip under its software. What was submitted ran, whatever the support matrix says of it."""
    if chip.family not in TIMED:
        raise UsageError(f"{chip.id}: no cost model for {chip.family} chips yet")
    changes = {"max_sequences": "4096"}
    for wanted in (runtime, None):
        try:
            offered, _ = deployments(graph.model, (chip,), wanted, policy=changes)
        except ChipwiseError:
            continue
        if offered:
            return offered[0]
    known = runtimes_for(chip)
    software = known[0] if known else get_runtime("trtllm" if chip.vendor == "nvidia" else "vllm")
    policies = override(software.policies_on(chip) if known else software.policies, changes)
    return Deployment(chip, Device.of(chip), software, policies)


def _evaluated(
    graph: Graph, d: Deployment, workload: Workload, limits: Limits, parameters: Parameters
) -> Iterator[Evaluated]:
    family, software = d.device.family, d.runtime.id
    # Saturated machines of all vendors: the plain roofline, with shares that every chip has in common, transfers
    # better to cells that no fit saw than kernel timings of some chips do (Offline 9.6 against 13.2 %, 2026-11).
    rates = parameters.efficiency(family, software), parameters.overheads(family, software)
    for group in candidates(graph, (d,), limits):
        yield evaluate(graph, group, workload, *rates)


def _points(
    e: Evaluated,
    output: float,
    limit: Limit | None,
    total: int,
    lone: bool,
    drafts: float,
    runtime: str,
    concurrency: float | None,
) -> Iterator[Curve]:
    """A curve for every layout of a group that fits; throughput is interpolated to where a limit binds."""
    p, layout = e.prediction, e.group.layouts()
    each = np.asarray(layout.devices)
    for i in np.flatnonzero(e.allowed.any(axis=1)):
        last = 1 if lone else int(np.flatnonzero(e.allowed[i])[-1]) + 1
        rate, prompt, tpot, batch = (
            np.asarray(x[i])[:last] for x in (p.tokens_per_s, p.prefill_s, p.tpot_s, p.batch)
        )
        ttft = PROMPT_P99 * prompt + PASSES_P99 * tpot
        # accepted drafts: several tokens of a request in a pass that costs little more
        rate, tpot = rate * drafts * (1.0 if lone else total / each[i]), tpot / drafts
        parts = [f"{x}{int(np.asarray(layout.part(x))[i])}" for x in ("tp", "pp", "dp", "ep")]
        name = " ".join(part for part in parts if part[2:] != "1") or "tp1"
        k, meets = int(np.argmax(rate)), True
        flat = np.full(len(SLACK), float(np.log(rate[k])))
        if concurrency is not None:
            held = np.asarray(p.concurrency[i])[:last] * (total / each[i])
            flat = np.full(len(SLACK), float(np.log(np.interp(concurrency, held, rate))))
        elif limit is not None:
            use = _use(ttft, tpot, output, limit)
            flat = _within(use, np.log(rate))
            k = max(int(np.searchsorted(use, 1.0, side="right")) - 1, 0)
            meets = bool(use[0] <= 1.0)
        stages = float(np.asarray(layout.pp)[i])
        yield Curve(
            log_rate=flat,
            devices=float(each[i]),
            stages=stages,
            layout=name,
            batch=float(batch[k]),
            runtime=runtime,
            ttft_s=float(ttft[k]),
            tpot_s=float(tpot[k]),
            compute_share=float(np.asarray(p.cost.share("compute"))[i, k]),
            meets=meets,
        )


def _use(ttft: Array, tpot: Array, output: float, limit: Limit) -> Array:
    """The share of the tightest limit that is used at every batch, made monotone; `ttft` is its percentile."""
    shares = []
    if limit.ttft_s is not None:
        shares.append(ttft / limit.ttft_s)
    if limit.tpot_s is not None:
        shares.append(TPOT_P99 * tpot / limit.tpot_s)
    if limit.total_s is not None:
        shares.append((ttft + output * TPOT_P99 * tpot) / limit.total_s)
    most = np.max(np.nan_to_num(np.array(shares), nan=np.inf), axis=0)
    use: Array = np.maximum.accumulate(most)
    return use


def _within(use: Array, log_rate: Array) -> Array:
    """log of the best rate at every slack of the limits: at slack u the limits are e^u times as wide.

    Where not even the smallest batch meets them, the rate falls with the square of the missing slack: the run
    was submitted, so the limit is met by something that the model lacks.
    """
    best = np.maximum.accumulate(log_rate)
    at = np.interp(SLACK, np.log(use), best)
    found: Array = at + 2.0 * np.minimum(SLACK - np.log(use[0]), 0.0)
    return found
