"""`plan --task train|finetune`: which chips, how many, arranged how, for a budget of tokens.

configuration -> graph -> mean layer -> jobs (chip, count) -> layouts -> step time and memory -> records
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

import numpy as np

from chipwise.api.loaded import find_chip, load
from chipwise.calibrate.fit_training import training_effects
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.calibrate.training_rates import labels_of, rates
from chipwise.catalog.chip import Chip
from chipwise.catalog.pricing import Pricing
from chipwise.catalog.snapshot import today as day
from chipwise.catalog.system import System, systems_for
from chipwise.errors import InfeasibleError, UnknownNameError, UsageError
from chipwise.predict.training.cluster import chip_generation, cluster, on_system
from chipwise.predict.training.dims import transformer
from chipwise.predict.training.memory import MemoryRates
from chipwise.predict.training.values import Rates, Recipe, Transformer
from chipwise.report.assemble import model_record, price_record
from chipwise.report.records import RefusalRecord
from chipwise.report.train_assemble import Failures, TrainCase, plan_record, ranked, scaling_records
from chipwise.report.train_records import TrainPlanRecord, TrainReport
from chipwise.search.training import Job, TrainReason, best, evaluate, layouts, point, scaling

__all__ = ["PRECISIONS", "train_plan"]

# (class of the products' type, flavour of scaling, bytes per operand entry)
PRECISIONS: Mapping[str, tuple[str, str, float]] = {
    "bf16": ("16", "", 2.0),
    "fp8": ("8", "tensor", 1.5),
    "mxfp8": ("8", "mx", 1.5),
    "nvfp4": ("4", "nvfp4", 1.5),
}
PINNABLE = ("tp", "pp", "vp", "cp", "ep", "dp", "micro_batch")
NEEDS = {"fp8": "fp8", "mxfp8": "fp8", "nvfp4": "fp4"}
DEFAULT_BATCH_TOKENS = 4e6  # of pre-training at scale; of fine-tuning 0.25 M
COUNTS = (8, 16, 32, 64, 128, 256, 512, 1024)
SCALING = (64, 256, 1024, 4096, 16384)


@dataclass(frozen=True, slots=True)
class _Ask:
    tokens: float
    seq: int
    batch: int
    precision: str
    task: str
    adapter: bool


def train_plan(
    model: str,
    *,
    chips: Sequence[str] = ("h100-sxm5-80gb",),
    counts: Sequence[int] = (),
    task: Literal["train", "finetune"] = "train",
    tokens: float = 1e12,
    seq: int = 4096,
    global_batch: int = 0,
    precision: str = "bf16",
    adapter: bool | None = None,
    deadline_days: float | None = None,
    max_usd: float | None = None,
    layout: Mapping[str, int] | None = None,
    failures: Failures | None = None,
    pricing: Pricing | None = None,
    curves: bool = False,
    changes: Mapping[str, str] | None = None,
    today: date | None = None,
    parameters: Parameters | None = None,
) -> TrainReport:
    """The best layout of every chip and count, ranked by cost (turnaround where no price is known).

    `counts` of chips (default: powers of two up to 1,024, of fine-tuning up to 64); `global_batch` in
    sequences, 0: 4 M tokens, of fine-tuning 0.25 M. `adapter`: low-rank adapters on frozen weights (default
    for `finetune`). `layout` fixes degrees by name (tp, pp, vp, cp, ep, dp, micro_batch). `deadline_days` and
    `max_usd` drop plans. `curves` adds weak and strong scaling. Raises
    `UsageError` for input that makes no sense, `InfeasibleError` where no plan is left.
    """
    found = load(model)
    if found.graph.encoder:
        raise UsageError(f"{found.graph.model.name} has an encoder, whose training is not timed yet")
    ask = _asked(tokens, seq, global_batch, precision, task, adapter)
    counts = tuple(counts) or (COUNTS if task == "train" else COUNTS[:4])
    if min(counts) < 1:
        raise UsageError(f"counts: {min(counts)} is out of range", "at least 1 chip")
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
    for name in chips:
        chip = find_chip(name, changes)
        try:
            job, system, stack = _job(chip, network, ask, numbers)
        except UsageError as error:
            refused.append(RefusalRecord(chip.id, "NO_COST_MODEL", str(error)))
            continue
        worst = TrainReason.OK
        mine = 0
        for count in counts:
            _check_layout(layout or {}, job, count)
            priced = evaluate(job, layouts(job, count, layout))
            considered += len(priced)
            reasons = list(TrainReason)
            tally = Counter(int(r) for r in priced.reason)
            rejected.update({reasons[r].name: n for r, n in tally.items() if r})
            chosen = best(priced, float(job.cluster.memory_bytes))
            if not len(chosen):
                worst = (
                    reasons[max(tally, key=lambda r: (r != 0, tally[r]))] if tally else TrainReason.PP_LAYERS
                )
                continue
            at = point(job, priced, int(chosen[0]))
            case = TrainCase(job, at, chip, system, stack, ask.precision, ask.tokens)
            price = price_record(prices.basis(chip.id, when), count)
            plans.append(plan_record(case, count, price, failures))
            mine += 1
        if not mine:
            detail = f"{worst.value} (tried {min(counts):,} to {max(counts):,})"
            if worst is TrainReason.NO_NETWORK:
                most = int(float(job.cluster.domain))
                detail = f"{chip.id}: {most:,} chips meet on a fabric and no network is known: use at most {most:,}"
            refused.append(RefusalRecord(chip.id, worst.name, detail))
        if curves:
            strong, weak = scaling(job, SCALING), scaling(job, SCALING, weak=True)
            curve += scaling_records(chip.id, "strong", strong) + scaling_records(chip.id, "weak", weak)
            takes_over[chip.id] = next((p.devices for p in strong if p.network_share > 0.5), 0)
    plans = [p for p in plans if _within(p, deadline_days, max_usd)]
    if not plans:
        hint = refused[0].detail if refused else "relax the deadline or the budget, or allow more chips"
        raise InfeasibleError(f"{found.graph.model.name}: no plan", hint)
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
        assumptions=_assumptions(ask, failures, found.notes),
    )


def _asked(tokens: float, seq: int, batch: int, precision: str, task: str, adapter: bool | None) -> _Ask:
    if not 1 <= tokens <= 1e17:
        raise UsageError(f"tokens: {tokens:g} is out of range", "at least 1, as in 15T")
    if not 1 <= seq <= 10_000_000:
        raise UsageError(f"seq: {seq} is out of range", "1 to 10 million tokens")
    if batch < 0 or batch > 10_000_000:
        raise UsageError(f"global_batch: {batch} is out of range", "sequences per step, at least 1")
    if precision not in PRECISIONS:
        raise UnknownNameError("precision", precision, PRECISIONS, f"one of {', '.join(PRECISIONS)}")
    if not batch:
        wanted = (DEFAULT_BATCH_TOKENS if task == "train" else DEFAULT_BATCH_TOKENS / 16) / seq
        batch = 2 ** max(round(float(np.log2(max(wanted, 1.0)))), 0)
    lora = task == "finetune" if adapter is None else adapter
    return _Ask(float(tokens), seq, batch, precision, task, lora)


def _check_layout(pins: Mapping[str, int], job: Job, devices: int) -> None:
    """Degrees that the user fixes: each must be legal by itself; the message names the nearest that is."""
    t = job.network
    for name, value in pins.items():
        if name not in PINNABLE:
            raise UnknownNameError("degree", name, PINNABLE, f"one of {', '.join(PINNABLE)}")
        if value < 1:
            raise UsageError(f"{name}: {value} is out of range", "at least 1")
    whole = {"tp": ("attention heads", int(float(t.heads))), "ep": ("experts", int(float(t.experts)))}
    for name, (what, number) in whole.items():
        if name in pins and number % pins[name]:
            raise UsageError(
                f"{name} {pins[name]} does not divide {number} {what}",
                f"nearest: {_near(pins[name], number)}",
            )
    if pins.get("pp", 1) > float(t.layers):
        raise UsageError(f"pp {pins['pp']} is more than {t.layers:.0f} layers", f"at most {t.layers:.0f}")
    degrees = int(np.prod([pins.get(k, 1) for k in ("tp", "pp", "cp", "dp")]))
    if devices % degrees:
        raise UsageError(
            f"tp x pp x cp x dp = {degrees} does not divide {devices} chips",
            f"as in {_near(degrees, devices)}",
        )
    parts = pins.get("dp", 1) * pins.get("micro_batch", 1)
    if job.global_batch % parts:
        raise UsageError(
            f"dp x micro-batch = {parts} does not divide the batch of {job.global_batch}",
            f"nearest: {_near(parts, job.global_batch)}",
        )


def _near(value: int, number: int) -> str:
    """The divisors of a number on either side of a value."""
    divisors = [d for d in range(1, number + 1) if number % d == 0] if number < 10**6 else [1]
    below, above = max(d for d in divisors if d <= value), min((d for d in divisors if d >= value), default=0)
    return " or ".join(str(d) for d in dict.fromkeys((below, above)) if d)


def _job(chip: Chip, network: Transformer, ask: _Ask, numbers: Parameters) -> tuple[Job, System | None, str]:
    """What a chip computes and with which numbers. Raises `UsageError` for a chip that cannot."""
    dtype, flavour, operand = PRECISIONS[ask.precision]
    needed = NEEDS.get(ask.precision)
    if needed and needed not in chip.matrix:
        raise UsageError(f"{chip.id} has no {needed} unit", "plan in bf16")
    if chip.kind not in ("gpu", "tpu", "asic"):
        raise UsageError(f"{chip.id}: training is not timed on a {chip.kind}", "choose a gpu, tpu or asic")
    system = next((s for s in systems_for(chip.software_id) if not s.mixed), None)
    machine = on_system(chip, system, dtype) if system else cluster(chip, dtype)
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
        frozen_bytes=2.0 if dtype == "16" else 1.0,
    )
    made: Rates = rates(one)
    job = Job(network, machine, recipe, made, MemoryRates(**held), ask.batch, ask.seq, ask.adapter)
    return job, system, stack


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


def _within(p: TrainPlanRecord, deadline_days: float | None, max_usd: float | None) -> bool:
    late = deadline_days is not None and p.days.mid > deadline_days
    dear = max_usd is not None and (p.usd is None or p.usd.mid > max_usd)
    return not late and not dear


def _assumptions(ask: _Ask, failures: Failures, notes: Sequence[str]) -> tuple[str, ...]:
    what = "low-rank adapters on frozen weights" if ask.adapter else "all weights trained, Adam in fp32"
    return (
        *notes,
        f"{ask.seq:,} tokens per sequence, {ask.batch:,} sequences per step",
        what,
        f"a chip fails every {failures.chip_mtbf_h:,.0f} h; {failures.save_s:g} s to save, "
        f"{failures.restart_s:g} s to restart",
        "1F1B pipelines, tensor-parallel collectives overlapped, data loading hidden",
        "MFU: 6 FLOPs per active parameter and token, all pairs of attention, over the dense peak",
    )
