"""The job of a training run on one chip: what is computed, with which numbers, on what, by which software."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import Literal

import numpy as np

from chipwise.api.train_input import PRECISIONS, Ask, Pins, check_chip
from chipwise.calibrate.effects import Effects
from chipwise.calibrate.fit_training import training_effects
from chipwise.calibrate.parameters import Parameters
from chipwise.calibrate.training_rates import labels_of, rates
from chipwise.catalog.chip import Chip
from chipwise.catalog.media_runtime import MediaRuntime
from chipwise.catalog.preferences import preferences
from chipwise.catalog.system import systems_for, with_own_links
from chipwise.catalog.system_spec import System
from chipwise.catalog.trainer import GRADIENTS, LOSSES, MemoryPolicy, Trainer, get_trainer, usual_trainer
from chipwise.cost.cost import Cost
from chipwise.cost.device import Device
from chipwise.cost.simt.family import Labels, SimtParameters
from chipwise.cost.systolic.family import SystolicModel
from chipwise.errors import UsageError, check_known
from chipwise.evidence.axes import Levels, trained_axes
from chipwise.evidence.judge import Estimate
from chipwise.evidence.tiers import trained_tier
from chipwise.parallel.layout import Spread
from chipwise.parallel.memory import MemoryAccount
from chipwise.parallel.network import ALIKE
from chipwise.predict.pipeline import StageTimes, held_by
from chipwise.predict.training.cluster import Wired, cluster, on_system
from chipwise.predict.training.dims import adapter_share
from chipwise.predict.training.memory import MemoryRates
from chipwise.predict.training.objective import OBJECTIVES
from chipwise.predict.training.operators import TrainKernels
from chipwise.predict.training.program import StepProgram
from chipwise.predict.training.step import step_time
from chipwise.predict.training.values import Cluster, Recipe, Transformer
from chipwise.search.training import TrainJob
from chipwise.search.training_space import ANY, TrainerRules
from chipwise.units import Real, parse_quantity
from chipwise.values import dataclass
from chipwise.workload.backward import OPTIMIZER
from chipwise.workload.formats import get_format
from chipwise.workload.program import Program

# Figures of a network that the user may know better: unit, least, most.
NETWORK = {
    "nic": ("B/s", 1e6, 1e13),
    "host": ("B/s", 1e6, 1e14),
    "domain": ("", 1.0, 1e6),
    "oversubscription": ("", 1.0, 100.0),
    "leaf": ("", 1.0, 1e6),
}
# Formats of products by class; blocks of 32 are scaled in the matrix unit, at the rate of whole tensors.
NARROW = {"fp32": "fp32", "8": "fp8", "4": "nvfp4"}
Find = Callable[[str, Labels], Mapping[str, Real]]
SHARED = (
    "wide",
    "narrow",
    "memory_bytes",
    "memory_bytes_per_s",
    "link_bytes_per_s",
    "nic_bytes_per_s",
    "host_memory_bytes",
)
WARPS = 0.3
"""ratio: of the speed of an attention core whose kernels multiply by instructions of a warp on units that have later
ones. Derived: FlashAttention-2 on B200 multiplies as fast per unit and clock as on H100, 1.18 times its 203 TFLOP/s as
fitted, in place of 803. Confirmed: github Dao-AILab/flash-attention issue 1589 (346 TFLOP/s on a B200, forward and
backward, where FlashAttention-4 has 1,100 to 1,300); moves attention=flash2 there."""
PACKED = "nf4_double"  # 4 bits whose scales are quantised too (Dettmers et al., 2023)


@dataclass(frozen=True, slots=True)
class Site:
    """Where and with what a run is planned: the job of a chip, its machine, the trainer, the type of its products, the
    labels that chose its fitted numbers, whether the trainer was `named`, or is the `usual` one of the chip, and what
    the user says of `memory`."""

    job: TrainJob
    chip: Chip
    system: System | None
    trainer: Trainer
    precision: str
    labels: Mapping[str, str]
    named: bool
    usual: bool
    memory: Mapping[str, str]

    def levels(self, method: str) -> Levels:
        """Where runs of it that train so lie in the model of error."""
        experts = self.labels["moe"] == "moe"
        return trained_axes(self.chip, self.labels["stack"], experts=experts, method=method, precision=self.precision)

    def pinned(self, pins: Pins, *, recompute: bool = True) -> Pins:
        """What the user pins, and what the configurations of a trainer that was named set besides; without
        `recompute` what they recompute stays open, as where nothing fits with it."""
        usual: dict[str, int | str] = {}
        if self.named and self.trainer.usual_recompute and recompute:
            usual["recompute"] = self.trainer.usual_recompute
        if self.named and self.trainer.usual_schedule and int(pins.get("pp", 1)) > 1:
            virtual = int(pins.get("vp", 1)) > 1
            usual["schedule"] = "interleaved" if virtual else self.trainer.usual_schedule
        return {**usual, **pins}

    def kept(self, job: TrainJob, devices: int) -> list[TrainJob]:
        """The job as the trainer keeps its memory on so many devices, then leaner, as it can be told to: nothing but
        the first where the user says how, the run exists, or its base weights are frozen."""
        cramped = devices == 1 and not (job.adapter or self._roomy(job))
        own = {**self.trainer.alone, **self.memory} if cramped else self.memory
        memory, half = self.trainer.memory, "fp16" if self.precision == "fp16" else "bf16"
        found: dict[Recipe, TrainJob] = {}
        for change in ({}, *self._leaner(job)):
            said = {**own, **change}
            recipe = replace(job.recipe, **_kept(memory.changed(said), half))
            other = {k: v for k, v in said.items() if memory.changed({k: v}) != memory}
            words = ",".join(f"{k}={v}" for k, v in other.items() if k not in self.memory)
            found.setdefault(recipe, replace(job, recipe=recipe, policy=words))
        return list(found.values())

    def _roomy(self, job: TrainJob) -> bool:
        """Whether a device holds weights in 16 bit, gradients and all that the optimiser keeps with ease."""
        kept = self.trainer.memory.changed(self.memory).figures
        of_parameter = GRADIENTS["bf16"] + kept["gradient"] + kept["master"] + kept["moments"]
        state = of_parameter * float(job.network.params)
        return not job.known and state <= preferences().roomy * float(job.cluster.memory_bytes)

    def _leaner(self, job: TrainJob) -> list[dict[str, str]]:
        """What the trainer can be told to keep less, in the order in which it is tried."""
        open_ = not (self.memory or job.known or job.adapter)
        known = self.trainer.leaner
        leaner = [dict(change) for change in known or ()] if open_ else []
        can = ["chunked"] if known is None else [change["loss"] for change in known if "loss" in change]
        if not self.usual or job.known or not can or "loss" in self.memory:
            return leaner
        loss = min(*can, self.trainer.memory.loss, key=LOSSES.__getitem__)
        return [{"loss": loss}, *({**change, "loss": loss} for change in leaner)]

    @property
    def devices(self) -> int:
        """Devices that layouts count in one chip."""
        return self.trainer.devices_of(self.chip)


@dataclass(frozen=True, slots=True)
class TrainSoftware:
    """What the user says of software and place: the trainer (None: the usual one of each chip, tuned) and whether it
    was `named`: one that is only tried is tuned too; figures of the network: `nic` bytes/s of a chip, one direction,
    `domain`, the chips that meet on the fabric, `oversubscription` of leaf switches (links down over links up) and
    `leaf`, the hosts under one; that the run is `known` to exist; how `memory` is kept otherwise than by the trainer's
    policies; and the `pins` of the layout."""

    trainer: str | None = None
    network: Mapping[str, float] = field(default_factory=dict)
    known: bool = False
    memory: Mapping[str, str] = field(default_factory=dict)
    pins: Pins = field(default_factory=dict)
    named: bool = True


@dataclass(frozen=True)
class TrainedStep:
    """A training step of a network under software that trains language models too, by its numbers and policies."""

    site: Site
    program: StepProgram
    numbers: Parameters

    @classmethod
    def of(
        cls,
        pipeline: Program,
        chip: Chip,
        software: MediaRuntime,
        numbers: Parameters,
        spread: Spread,
        precision: str,
        optimizer: str = "",
    ) -> TrainedStep | None:
        """None of software that does not train, of networks without attention, and where devices share a batch
        otherwise than by samples, which the equations of networks tell."""
        trainer = get_trainer(software.trained_as) if software.trained_as else None
        precision = precision.removeprefix("amp-")
        plain = spread.devices == spread.dp and precision in PRECISIONS and trainer is not None
        if not plain or trainer is None or not trainer.on(chip) or not pipeline.trained:
            return None
        program = StepProgram.of(pipeline, spread.dp, _sharded(spread, trainer))
        if program is None:
            return None
        ask = Ask(1.0, int(program.spread.seq), pipeline.batch, precision, "train", "full")
        updates = optimizer != "none"
        memory = {"optimizer": optimizer} if optimizer and updates else {}
        site = site_of(chip, program.layer, ask, numbers, TrainSoftware(trainer.id, memory=memory))
        if not updates:
            still = replace(site.job.recipe, optimiser=0.0, moments=0.0, master=0.0, products=0.0)
            site = replace(site, job=replace(site.job, recipe=still))
        return cls(site, program, numbers)

    @cached_property
    def stages(self) -> tuple[StageTimes, ...]:
        """Layers, the head with its loss, and the update, with what nothing hides of the exchange of gradients."""
        job, p = self.site.job, self.program
        t = step_time(p.layer, p.spread, job.cluster, job.recipe, job.rates, p.work(job.recipe, job.kernels))
        parts = {
            "layers": {"compute": t.compute_s, "memory": t.passes_s, "host": t.host_s},
            "head": {"compute": t.head_s},
            "gradients": {"network": t.dp_s + t.straggle_s},
            OPTIMIZER: {"memory": t.optimiser_s},
        }
        return tuple(
            StageTimes(name, 1.0, {"other": Cost({k: float(v) for k, v in cost.items()})}, 0.0)
            for name, cost in parts.items()
            if any(float(v) for v in cost.values())
        )

    def judged(self, mid: float, what: Literal["time", "memory"]) -> Estimate:
        """A figure with the interval of the model of error of training."""
        return trained_tier(self.numbers, self.site.labels, self.site.levels("full"), what).scaled(mid)

    @property
    def held(self) -> MemoryAccount:
        """Bytes of one device."""
        m = self.program.memory(self.site.job.recipe, self.site.job.memory)
        saved, logits, beside = (float(m.of(name)) for name in ("activations", "logits", "overhead"))
        state = sum(float(m.of(name)) for name in ("weights", "gradients", "optimiser", "gathered"))
        return held_by(state, saved, logits, beside)


def _sharded(spread: Spread, trainer: Trainer) -> int:
    """The stage of ZeRO: what is asked for, else what the trainer's users take."""
    if spread.fsdp:
        return 3
    return trainer.usual_zero or 0 if spread.dp > 1 else 0


def site_of(chip: Chip, network: Transformer, ask: Ask, numbers: Parameters, given: TrainSoftware) -> Site:
    """What a chip computes, with which numbers, on what, by which trainer, in which type: chips without bf16 take fp16.

    Raises `UsageError` for a chip that cannot, `UnknownNameError` for an unknown trainer.
    """
    check_chip(chip, ask, given.known)
    software = _software(chip, ask, given, experts=bool(network.moe_share)).as_told(given.pins, chip)
    dtype, _ = PRECISIONS[ask.precision]
    system, half = _system(chip), _half(chip, ask)
    machine = on_system(chip, system, dtype, half) if system else cluster(chip, dtype, half=half)
    machine = _shared(_on_network(machine, given.network, system), software.devices_of(chip))
    policy = software.memory.changed(given.memory)
    gated = bool(network.moe_share) and float(network.expert_gates) > 1.0
    fused = gated and software.fuses_on(chip, ask.precision)
    moe = bool(network.moe_share)
    captured = moe and float(network.core_share) >= 1.0 and software.captures_on(chip)
    labels = labels_of(dtype, software, chip.generation, moe=moe, basis=policy.basis, fused=fused)
    one, held = _fitted(software, labels, numbers)
    joined = chip.scaleup is not None and "bridge" not in chip.scaleup.name
    recipe = replace(
        _recipe(software, ask),
        fused=float(software.overlaps and joined),
        graphs=float(software.graphs or captured or fused),
        fused_experts=float(fused),
        **_kept(policy, half),
    )
    kernels = _kernels(chip, software, ask.precision, half, numbers)
    objective = OBJECTIVES[ask.objective]
    job = TrainJob(
        network,
        machine,
        recipe,
        rates(one, numbers.links(chip)),
        MemoryRates(**held),
        kernels,
        ask.batch,
        ask.seq,
        adapter_share(network, ask.adapters) if ask.adapter else 0.0,
        _rules(software, ask, given),
        software.sequence,
        system is not None and system.unified,
        given.known,
        document=ask.document,
        objective=objective,
    )
    precision = half if dtype == "16" else ask.precision
    named, usual = bool(given.trainer) and given.named, not given.trainer
    return Site(job, chip, system, software, precision, labels, named, usual, given.memory)


def _fitted(
    software: Trainer, labels: Mapping[str, str], numbers: Parameters
) -> tuple[dict[str, float], dict[str, float]]:
    """The numbers of a run's time and memory."""
    one, held = (_of_one(effects, labels) for effects in training_effects(numbers))
    if software.kind == "fsdp" and not software.permutes:
        # what is fitted to the kind is of the one trainer whose experts were measured, which sorts them in kernels
        plain = _of_one(training_effects(numbers)[0], {**labels, "kind": ""})
        one = one | {"expert_loss": plain["expert_loss"]}
    if software.warps:
        one = one | {"core": one["core"] * WARPS}
    return one, held


def _software(chip: Chip, ask: Ask, given: TrainSoftware, *, experts: bool) -> Trainer:
    """The trainer that is asked for, else the usual one of a chip. Raises `UsageError` for one that is not for it."""
    usual = usual_trainer(
        chip, ask.method, given.pins, anew=ask.task == "train", experts=experts, objective=ask.objective
    )
    if not given.trainer:
        return usual if given.known else _able(usual, chip, ask)
    software = get_trainer(given.trainer)
    if not given.known and not software.on(chip):
        hint = f"there it is usually {usual.id}" if usual.on(chip) else "leave --trainer out"
        raise UsageError(f"{software.id} does not list {chip.name}", hint, field="trainer")
    return software if given.known else _able(software, chip, ask)


def _able(trainer: Trainer, chip: Chip, ask: Ask) -> Trainer:
    """The trainer. Raises `UsageError` where it does not train for what is asked."""
    if ask.objective in trainer.objectives:
        return trainer
    usual = usual_trainer(chip, ask.method, anew=ask.task == "train", objective=ask.objective)
    hint = f"--trainer {usual.id}" if ask.objective in usual.objectives else "another chip"
    what = f"{trainer.id} trains for {', '.join(trainer.objectives)}, not for {ask.objective}"
    raise UsageError(what, hint, field="objective")


def _half(chip: Chip, ask: Ask) -> str:
    """The type of 16 bits that a run takes."""
    without = "fp16" in chip.matrix and "bf16" not in chip.matrix
    return "fp16" if ask.precision == "fp16" or without else "bf16"


def _of_one(effects: Effects, labels: Mapping[str, str]) -> dict[str, float]:
    """The numbers of one run."""
    columns = {name: np.array([text]) for name, text in labels.items()}
    return {name: float(np.ravel(v)[0]) for name, v in effects.values(columns).items()}


def _recipe(software: Trainer, ask: Ask) -> Recipe:
    """How a trainer runs a step, whatever it runs on."""
    dtype = PRECISIONS[ask.precision][0]
    packed = get_format(PACKED).mean_bits / 8.0
    return Recipe(
        flash=float(software.flash),
        score_passes=software.score_passes,
        compiled=float(software.compiled),
        hides_experts=float(software.hides_experts),
        regather=float(software.regather),
        whole_logits=float(software.whole_logits),
        flat=float(software.flat),
        broadcast=float(software.broadcast),
        hooked=float(software.hooked),
        looped=float(software.looped),
        grouped=float(software.grouped),
        copies=float(software.copies),
        stops=float(software.stops),
        # one scale for a whole tensor lets compilers fuse the cast with what makes the operand
        quantises=float(software.quantises and get_format(ask.precision).block_cols > 1),
        summed=GRADIENTS[software.summed],
        frozen_bytes=packed if ask.method == "qlora" else 1.0 if dtype in ("8", "4") else 2.0,
        adapter_passes=software.adapter_passes,
        dropped=software.dropped,
        dora=float(ask.adapters.dora),
        operand=_saved_operand(software, dtype, ask.precision),
    )


def _rules(software: Trainer, ask: Ask, given: TrainSoftware) -> TrainerRules:
    """Which layouts a trainer has; a run that exists may have done what launch files here do not say."""
    stages = software.zero or ANY.zero
    if given.trainer and given.named and software.usual_zero is not None:
        # adapters leave next to nothing to cut: weights stay whole where they fit
        stages = tuple(dict.fromkeys((0, software.usual_zero) if ask.adapter else (software.usual_zero,)))
    return TrainerRules(
        schedules=software.schedules or ANY.schedules,
        zero=stages,
        accumulates=(not given.trainer or software.accumulates) and not OBJECTIVES[ask.objective].whole,
        single=bool(given.trainer) and software.one_each,
        degrees=ANY.degrees if given.known and software.degrees else software.degrees,
        offloads=software.offloads,
        stashes=software.stashes,
        recompute=ANY.recompute if given.known else software.recompute,
        hybrid=given.known or software.hybrid,
        staged=given.known or software.staged,
        together=OBJECTIVES[ask.objective].together,
    )


def _saved_operand(trainer: Trainer, dtype: str, precision: str) -> float:
    """Bytes per entry that a product saves for its backward pass: narrow ones a byte (TransformerEngine keeps fp4 along
    both sides); torchao saves what it narrowed in 8 bit as it came, in 16 bit, and narrows it again, of fp4 the narrow.

    Source: github pytorch/ao, float8_linear.py and mx_formats/mx_linear.py: ctx.save_for_backward(input_hp, weight_hp).
    """
    if dtype not in ("8", "4"):
        return PRECISIONS[precision][1]
    if not trainer.quantises:
        return 1.0
    return 2.0 if dtype == "8" else get_format(precision).mean_bits / 8.0


def _kept(policy: MemoryPolicy, half: str) -> dict[str, float]:
    """Fields of a recipe that a policy sets; gradients of fp16 are in fp16, and unscaled into a copy for the update."""
    figures = policy.figures
    if half == "fp16" and policy.gradients == "fp32":
        figures |= {"gradient": 2.0, "moments": figures["moments"] + 4.0}
    return figures


def _kernels(chip: Chip, trainer: Trainer, precision: str, half: str, numbers: Parameters) -> TrainKernels:
    """Where and how the operators of a rank run: types of its products, devices of a package that it has."""
    narrow = NARROW.get(PRECISIONS[precision][0], half)
    found = numbers.cost(chip.family, trainer.kernels_of or "any", [chip]).take(np.zeros((), dtype=np.intp))
    if isinstance(found, SystolicModel):
        found = replace(found, resident=0.0)  # what a layer makes is saved for its backward pass
    if isinstance(found, SimtParameters):
        found = replace(found, find=_trained(found.find, trainer.attention))
    parts = float(chip.devices_per_package) / trainer.devices_of(chip)
    return TrainKernels(Device.of(chip), found, narrow, "fp32" if narrow == "fp32" else half, parts)


def _trained(find: Find, attention: str) -> Find:
    """Numbers of kernels as training runs them: the library of attention that the trainer calls (FlashAttention-2 for
    Triton's first one too: what serving has in Triton reads pages of a cache), and without what a serving runtime does
    around it (a cache to write; rotations are element-wise work of the layer)."""

    def found(group: str, labels: Labels) -> Mapping[str, Real]:
        if group != "simt.prompt":
            return find(group, labels)
        called = (("library", "fa2"),) if attention != "native" else ()
        return {**find(group, (*labels, *called)), "passes": 0.0}

    return found


def network_of(given: Mapping[str, str]) -> dict[str, float]:
    """Figures of the network as numbers. Raises `UsageError`, `UnknownNameError`."""
    check_known("figure of the network", given, NETWORK)
    if {"nic", "host"} <= given.keys():
        raise UsageError("network: nic is of a chip, host of all chips of one", "one of them", field="network")
    return {name: _read(name, text) for name, text in given.items()}


def _on_network(c: Cluster, read: Mapping[str, float], system: System | None) -> Wired:
    """The cluster on the user's own network. Links between every pair of a host end there: a fabric that joins more has
    switches."""
    if "host" in read:
        chips = float(system.chips_per_host if system else c.domain)
        read = {name: v for name, v in read.items() if name != "host"} | {"nic": read["host"] / chips}
    known = c.wiring if isinstance(c, Wired) else ALIKE
    c = replace(c, mesh=0.0) if read.get("domain", 0.0) > c.domain else c
    own = {"nic": "nic_bytes_per_s", "domain": "domain"}
    wiring = replace(known, **{name: v for name, v in read.items() if name not in own})
    return Wired.of(replace(c, **{own[name]: v for name, v in read.items() if name in own}), wiring)


def _shared(c: Wired, devices: int) -> Wired:
    """The cluster whose chips are several devices each: every one has its share of all, and more meet on the fabric."""
    if devices == 1:
        return c
    parts = {name: getattr(c, name) / devices for name in SHARED}
    return replace(c, **parts, domain=c.domain * devices)


def _read(name: str, text: str) -> float:
    unit, low, high = NETWORK[name]
    return parse_quantity(text, unit, name, low=low, high=high)


def _system(chip: Chip) -> System | None:
    """Where a chip trains: the first of its systems that has a network, else the one that joins most."""
    systems = [with_own_links(s, chip) for s in systems_for(chip.software_id) if not s.mixed]
    joined = (s for s in systems if s.scaleout is not None and s.scaleout.bytes_per_s is not None)
    return next(joined, max(systems, key=lambda s: s.chips, default=None))
