"""`plan --task train|finetune`: which chips, how many, arranged how, for a budget of tokens.

configuration -> graph -> mean layer -> jobs (chip, count) -> layouts -> step time and memory -> records
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Literal

import numpy as np

from chipwise.api.loaded import find_chip, load
from chipwise.api.train_input import PRECISIONS, USUAL, Ask, asked, check_counts, check_layout, pins_of
from chipwise.calibrate.fit_training import training_effects
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.calibrate.training_rates import labels_of, rates
from chipwise.catalog.chip import Chip
from chipwise.catalog.pricing import Pricing
from chipwise.catalog.snapshot import today as day
from chipwise.catalog.system import System, systems_for
from chipwise.errors import InfeasibleError, UsageError
from chipwise.evidence.training_tiers import plan_tier
from chipwise.predict.training.cluster import chip_generation, cluster, on_system
from chipwise.predict.training.dims import transformer
from chipwise.predict.training.memory import MemoryRates
from chipwise.predict.training.values import Rates, Recipe, Transformer
from chipwise.report.assemble import model_record, price_record
from chipwise.report.records import RefusalRecord
from chipwise.report.train_assemble import Failures, TrainCase, plan_record, ranked, scaling_records
from chipwise.report.train_records import TrainPlanRecord, TrainReport
from chipwise.report.train_view import duration
from chipwise.search.training import Job, Priced, TrainReason, best, evaluate, layouts, point, scaling
from chipwise.search.training_space import SCHEDULES

__all__ = ["PRECISIONS", "train_plan"]

NEEDS = {"fp8": "fp8", "mxfp8": "fp8", "nvfp4": "fp4"}
# Pipeline schedules of the usual software: Megatron-Core, Primus, MaxText (circular pipelines), torchtitan, NxD.
SCHEDULES_OF = {
    "nemo": ("1f1b", "interleaved"),
    "rocm": ("1f1b", "interleaved", "zero-bubble", "zb-v"),
    "xla": ("gpipe", "interleaved"),
    "neuron": ("1f1b", "interleaved"),
    "habana": ("1f1b",),
}
NF4_BYTES = 0.53  # per weight, scales of blocks of 64 included (Dettmers et al., 2023)
# What makes a run lighter than each method.
LIGHTER = {
    "full": "adapters (method lora or qlora), or another chip",
    "lora": "weights of 4 bits (method qlora), or another chip",
    "qlora": "choose another chip",
}
COUNTS = (8, 16, 32, 64, 128, 256, 512, 1024)
SCALING = (64, 256, 1024, 4096, 16384)


def train_plan(
    model: str,
    *,
    chips: Sequence[str] = (),
    counts: Sequence[int] = (),
    task: Literal["train", "finetune"] = "train",
    tokens: float = 1e12,
    seq: int = 4096,
    global_batch: int = 0,
    precision: str = "bf16",
    method: str | None = None,
    deadline_days: float | None = None,
    max_usd: float | None = None,
    layout: Mapping[str, int | str] | None = None,
    failures: Failures | None = None,
    pricing: Pricing | None = None,
    curves: bool = False,
    changes: Mapping[str, str] | None = None,
    today: date | None = None,
    parameters: Parameters | None = None,
) -> TrainReport:
    """The best layout of every chip and count, ranked by cost (turnaround where no price is known).

    `chips`: those named, else `USUAL`. `counts` of chips (default: powers of two up to 1,024, of fine-tuning up to
    64); `global_batch` in sequences, 0: 4 M tokens, of fine-tuning 0.25 M. `method`: full, lora (low-rank adapters
    on frozen weights; default of `finetune`) or qlora (on weights of 4 bits). `layout` fixes degrees by name (tp,
    pp, vp, cp, ep, dp, micro_batch), and schedule, recompute and offload. `deadline_days` and `max_usd` drop plans.
    `curves` adds weak and strong scaling. Raises `UsageError` for input that makes no sense, `InfeasibleError` where
    no plan is left.
    """
    found = load(model)
    if found.graph.encoder:
        raise UsageError(f"{found.graph.model.name} has an encoder, whose training is not timed yet")
    ask, pins = asked(tokens, seq, global_batch, precision, task, method), pins_of(layout or {})
    counts = tuple(counts) or (COUNTS if task == "train" else COUNTS[:4])
    check_counts(counts)
    numbers = parameters or shipped_parameters()
    network = transformer(found.graph)
    failures = failures or Failures()
    when, prices = today or day(), pricing or Pricing()
    plans: list[TrainPlanRecord] = []
    refused: list[RefusalRecord] = []
    rejected: Counter[str] = Counter()
    curve = []
    takes_over: dict[str, int] = {}
    considered = 0
    notes = list(found.notes)
    if not chips:
        notes.append(f"chips: only {', '.join(USUAL)} are tried; name others with --chips")
    for name in chips or USUAL:
        chip = find_chip(name, changes)
        try:
            job, system, stack, precision = _job(chip, network, ask, numbers)
        except UsageError as error:
            refused.append(RefusalRecord(chip.id, "NO_COST_MODEL", str(error)))
            continue
        routed = bool(float(network.moe_share))
        tier = plan_tier(numbers, stack, chip.software_id, chip_generation(chip), routed=routed)
        if precision != ask.precision:
            notes.append(f"{chip.id} has no {ask.precision}: {precision}, its losses scaled")
        left_out: dict[TrainReason, list[int]] = {}
        for count in counts:
            check_layout(pins, job, count)
            priced = evaluate(job, layouts(job, count, pins))
            considered += len(priced)
            tally = _tally(priced)
            rejected.update({r.name: n for r, n in tally.items() if r is not TrainReason.OK})
            chosen = best(priced, float(job.cluster.memory_bytes))
            if not len(chosen):
                left_out.setdefault(_blocker(tally), []).append(count)
                continue
            at = point(job, priced, int(chosen[0]))
            case = TrainCase(job, at, chip, system, stack, precision, ask.tokens, tier)
            price = price_record(prices.basis(chip.id, when), count, int(at.spread.tp))
            plans.append(plan_record(case, count, price, failures))
        refused += _left_out(chip, job, left_out, ask.method)
        if curves:
            strong, weak = scaling(job, SCALING), scaling(job, SCALING, weak=True)
            curve += scaling_records(chip.id, "strong", strong) + scaling_records(chip.id, "weak", weak)
            takes_over[chip.id] = next((p.devices for p in strong if p.network_share > 0.5), 0)
    every, plans = plans, [p for p in plans if _within(p, deadline_days, max_usd)]
    if not plans:
        raise InfeasibleError(f"{found.graph.model.name}: no plan", _nearest(every, refused))
    return TrainReport(
        model=model_record(found.graph, found.config),
        task=ask.task,
        tokens=ask.tokens,
        plans=ranked(plans),
        refused=tuple(refused),
        scaling=tuple(curve),
        network_takes_over=takes_over,
        considered=considered,
        rejected=dict(rejected),
        assumptions=_assumptions(ask, failures, notes),
    )


def _job(
    chip: Chip, network: Transformer, ask: Ask, numbers: Parameters
) -> tuple[Job, System | None, str, str]:
    """What a chip computes, with which numbers, on what, by which software, in which type: chips without bf16 take
    fp16. Raises `UsageError` for a chip that cannot."""
    dtype, flavour, operand = PRECISIONS[ask.precision]
    needed = NEEDS.get(ask.precision)
    if needed and needed not in chip.matrix:
        raise UsageError(f"{chip.id} has no {needed} unit", "plan in bf16")
    if chip.kind not in ("gpu", "tpu", "asic"):
        raise UsageError(f"{chip.id}: training is not timed on a {chip.kind}", "choose a gpu, tpu or asic")
    system = next((s for s in systems_for(chip.software_id) if not s.mixed), None)
    half = "fp16" if "fp16" in chip.matrix and "bf16" not in chip.matrix else "bf16"
    machine = on_system(chip, system, dtype, half) if system else cluster(chip, dtype, half=half)
    stack, kind = _stack(chip)
    labels = labels_of(
        dtype,
        kind,
        stack,
        chip_generation(chip),
        chip.software_id,
        recipe=flavour,
        moe=bool(network.moe_share),
    )
    times, memory = training_effects(numbers)
    one = {k: float(np.ravel(v)[0]) for k, v in times.values(labels).items()}
    held = {k: float(np.ravel(v)[0]) for k, v in memory.values(labels).items()}
    recipe = Recipe(
        operand_bytes=operand,
        compiled=1.0 if kind == "xla" else 0.0,
        regather=0.0 if kind == "xla" else 1.0,
        frozen_bytes=NF4_BYTES if ask.method == "qlora" else 2.0 if dtype == "16" else 1.0,
    )
    made: Rates = rates(one)
    job = Job(
        network,
        machine,
        recipe,
        made,
        MemoryRates(**held),
        ask.batch,
        ask.seq,
        ask.adapter,
        SCHEDULES_OF.get(stack, tuple(SCHEDULES)),
    )
    return job, system, stack, half if ask.precision == "bf16" else ask.precision


def _stack(chip: Chip) -> tuple[str, str]:
    """The usual software of a vendor's chips, as the fit names it."""
    name = chip.software_id
    if chip.kind == "tpu":
        return "xla", "xla"
    if name.startswith(("trainium", "inferentia")):
        return "neuron", "xla"
    if name.startswith("gaudi"):
        return "habana", "xla"
    return {"nvidia": ("nemo", "fused"), "amd": ("rocm", "fused")}.get(chip.vendor, ("other", "fsdp"))


def _tally(priced: Priced) -> Counter[TrainReason]:
    """How many layouts got which verdict."""
    codes = list(TrainReason)
    found, counts = np.unique(priced.reason, return_counts=True)
    return Counter({codes[int(r)]: int(n) for r, n in zip(found, counts, strict=True)})


def _blocker(tally: Counter[TrainReason]) -> TrainReason:
    """What keeps a count from having a plan: no network, else memory, else the commonest verdict."""
    for reason in (TrainReason.NO_NETWORK, TrainReason.MEMORY):
        if tally[reason]:
            return reason
    return tally.most_common(1)[0][0] if tally else TrainReason.PP_LAYERS


def _left_out(
    chip: Chip, job: Job, left_out: Mapping[TrainReason, Sequence[int]], method: str
) -> Iterator[RefusalRecord]:
    """The counts without a plan, by reason; no hint asks for what another rules out."""
    most, nic = int(float(job.cluster.domain)), float(job.cluster.nic_bytes_per_s)
    alone = not (np.isfinite(nic) and nic > 0)
    full = alone and max(left_out.get(TrainReason.MEMORY, (0,))) >= most
    for reason, counts in left_out.items():
        why = reason.value
        if reason is TrainReason.NO_NETWORK:
            hint = "choose another chip" if full else f"use at most {most:,}"
            why = f"{most:,} chips meet on a fabric and no network is known: {hint}"
        elif reason is TrainReason.MEMORY and full:
            why = f"does not fit, and no more chips meet: {LIGHTER[method]}"
        elif reason is TrainReason.MEMORY and alone:
            why = f"does not fit: more chips, at most {most:,}, recomputation, or a smaller micro-batch"
        *first, last = [f"{c:,}" for c in counts]
        tried = f"{', '.join(first)} or {last}" if first else last
        yield RefusalRecord(chip.id, reason.name, f"not on {tried}: {why}")


def _nearest(plans: Sequence[TrainPlanRecord], refused: Sequence[RefusalRecord]) -> str:
    """What comes nearest to the limits that nothing meets."""
    if not plans:
        if not refused:
            return "allow more chips"
        one = len({r.chip for r in refused}) == 1
        return refused[0].detail if one else f"{refused[0].chip}: {refused[0].detail}"
    soon = min(plans, key=lambda p: p.days.mid)
    text = f"soonest: {duration(soon.days.mid)} on {soon.chips:,}x {soon.chip}"
    priced = [p for p in plans if p.usd is not None]
    if priced:
        cheap = min(priced, key=lambda p: p.usd.mid if p.usd else 0.0)
        text += f"; cheapest: {cheap.usd.mid if cheap.usd else 0.0:,.0f} $ on {cheap.chips:,}x {cheap.chip}"
    return f"{text}; relax the deadline or the budget"


def _within(p: TrainPlanRecord, deadline_days: float | None, max_usd: float | None) -> bool:
    late = deadline_days is not None and p.days.mid > deadline_days
    dear = max_usd is not None and (p.usd is None or p.usd.mid > max_usd)
    return not late and not dear


def _assumptions(ask: Ask, failures: Failures, notes: Sequence[str]) -> tuple[str, ...]:
    what = {
        "full": "all weights trained, Adam in fp32",
        "lora": "low-rank adapters on frozen weights, 1 % of them trained",
        "qlora": "low-rank adapters, 1 % of the weights, on frozen weights of 4 bits (nf4), unpacked for every pass",
    }[ask.method]
    flops, frozen = (4, " (frozen weights need no gradient)") if ask.adapter else (6, "")
    return (
        *notes,
        f"{ask.seq:,} tokens per sequence, {ask.batch:,} sequences per step",
        what,
        f"a chip fails every {failures.chip_mtbf_h:,.0f} h; {failures.save_s:g} s to save, "
        f"{failures.restart_s:g} s to restart",
        "tensor-parallel collectives overlapped as the usual software does, data loading hidden",
        f"MFU: {flops} FLOPs per active parameter and token{frozen}, all pairs of attention, over the dense peak",
    )
