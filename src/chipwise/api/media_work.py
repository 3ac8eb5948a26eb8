"""A model that generates no tokens at work: a chip with its runtime (`Place`), and a pipeline on its devices (`Work`),
priced but for the runtime's own numbers, which are asked of it: seconds, bytes, what a device does meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from chipwise.api.media_asked import DEFAULT, LAYOUT, Files, Sampling, made, one_size
from chipwise.api.served_pass import ServedPass
from chipwise.api.train_job import TrainedStep
from chipwise.calibrate.effects import Effects
from chipwise.calibrate.fit_media import MediaFit, media_labels, media_numbers, pace_of
from chipwise.calibrate.fit_tuned import tuned_numbers, tuned_pace
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.chip import Chip
from chipwise.catalog.machine import usual_form
from chipwise.catalog.media_runtime import MediaRuntime, media_runtime_for
from chipwise.catalog.networks import BY_COUNTS, find, is_built_in
from chipwise.catalog.preferences import preferences
from chipwise.catalog.system_spec import System
from chipwise.cost.device import Device
from chipwise.cost.simt.family import SimtParameters
from chipwise.cost.systolic.family import SystolicModel
from chipwise.errors import UnknownNameError, UsageError
from chipwise.parallel.layout import Spread
from chipwise.parallel.memory import MemoryAccount
from chipwise.predict.energy import Use, issued
from chipwise.predict.pipeline import (
    Hardware,
    Offload,
    Pace,
    Priced,
    StageTimes,
    account,
    flash_attention,
    held_by,
    seconds,
    stage_times,
)
from chipwise.search.deployments import HOST_SHARE, machine_for, reserved
from chipwise.values import dataclass
from chipwise.workload.backward import OPTIMIZER
from chipwise.workload.program import Program, Stage

if TYPE_CHECKING:
    from chipwise.api.placing import Terms

WIDE = ("fp32", "tf32")
SIXTEEN = ("bf16", "fp16")
CHANNELS_LAST = "channels_last"
HOP = "hop_s"  # setting: seconds between windows of a recording
WINDOWED = "whisper"  # family of networks that hear a recording in windows
DESKTOPS = ("laptop", "desktop")
LOADED_BYTES = 2.0  # of a parameter of a checkpoint
KERNELS = "transformers"  # the libraries as PyTorch calls them, whose operators were timed


Attends = Literal["library", "registers", "overlapped"]
"""Kernels of attention: the vendor's, FlashAttention through registers, or at the full rate of matrix instructions."""


@dataclass(frozen=True)
class Timed:
    """Stages of a pipeline on devices, priced once they are asked for: a way that lacks memory never is."""

    pipeline: Program
    priced: Priced
    spread: Spread
    offload: Offload

    @cached_property
    def stages(self) -> tuple[StageTimes, ...]:
        """Seconds by stage and part."""
        hardware, known = self.priced
        return stage_times(self.pipeline, hardware, self.spread, offload=self.offload, known=known)


@dataclass(frozen=True)
class Place:
    """A chip with its runtime and numbers."""

    chip: Chip
    runtime: MediaRuntime
    device: Device
    hardware: Hardware
    numbers: Parameters
    attending: dict[tuple[object, ...], Priced] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, chip: Chip, terms: Terms, numbers: Parameters) -> Place:
        """What other work leaves of the chip. Raises `UsageError` where no software runs it, or the chip's figures are
        not published."""
        chip = terms.shared(chip)
        return cls.under(chip, media_runtime_for(chip, terms.named), numbers)

    @classmethod
    def under(cls, chip: Chip, runtime: MediaRuntime, numbers: Parameters) -> Place:
        """A chip that runs that software. Raises `UsageError` where its figures are not published."""
        system = machine_for(chip)
        device = _summing(Device.of(chip, reserved(chip, system), system), chip, runtime)
        if not np.isfinite(float(device.memory_bytes_per_s)) or not np.isfinite(float(device.matrix["bf16"])):
            raise UsageError(f"{chip.id}: its memory bandwidth or its peak is not published")
        costs = numbers.cost(chip.family, KERNELS, [chip]).take(np.zeros((), dtype=np.intp))
        host = chip.host.bytes_per_s if chip.host and chip.host.bytes_per_s else np.nan
        overheads = numbers.overheads(chip.family, KERNELS)
        loops = chip.software_vendor in runtime.loops
        hardware = Hardware(device, costs, overheads, host, *_does(chip, runtime), runtime.host, loops)
        return cls(chip, runtime, device, hardware, numbers)

    def beside(self, runtime: MediaRuntime) -> Place:
        """The chip under other software; what both do alike is priced once."""
        tf32, converts, widens, folds, turns, starts = _does(self.chip, runtime)
        device = _summing(self.device, self.chip, runtime)
        hardware = replace(
            self.hardware,
            device=device,
            tf32_conv=tf32,
            converts=converts,
            widens=widens,
            folds=folds,
            turns=turns,
            starts=starts,
            host=runtime.host,
            loops=self.chip.software_vendor in runtime.loops,
        )
        return replace(self, runtime=runtime, device=device, hardware=hardware)

    def doing(self, asked: Sampling, pipeline: Program) -> Priced:
        """The hardware as software of that age and layout drives it, with what was priced on it; what makes no
        difference to the operators of a pipeline is left out."""
        h, kinds = self.hardware, pipeline.kinds
        turns = h.turns and asked.settings.get(LAYOUT) != CHANNELS_LAST
        turns = turns and any(kind == "conv" for kind, _ in kinds)
        tf32 = h.tf32_conv and ("conv", "fp32") in kinds
        attends = self.attends(asked) if pipeline.attends else "library"
        host = {} if asked.level == "tuned" else h.host  # submissions keep their devices busy meanwhile
        key = (
            attends,
            turns,
            tf32,
            h.converts,
            h.widens,
            h.folds,
            tuple(h.starts.items()),
            self.runtime.sums_narrow,
            asked.level,
        )
        if key not in self.attending:
            costs = h.costs
            if isinstance(costs, SimtParameters) and attends != "library":
                costs = flash_attention(costs, self.device, overlapped=attends == "overlapped")
            if isinstance(costs, SystolicModel) and attends != "library":
                costs = costs.unpaged()
            self.attending[key] = replace(h, costs=costs, turns=turns, tf32_conv=tf32, host=host), {}
        return self.attending[key]

    def attends(self, asked: Sampling) -> Attends:
        """Whose kernels of attention software of that age runs here."""
        if not self.runtime.flash_attends(self.chip):
            return "library"
        return "overlapped" if self.runtime.overlaps(self.chip, asked.software) else "registers"

    def packages(self, spread: Spread) -> int:
        """Chips of a replica, whose devices share a request so."""
        return packages(self.chip, spread)

    def pipeline(self, model: str | Files, terms: Terms, asked: Sampling, *, timed: bool = True) -> Program:
        """The model as the software runs it here."""
        scores = not self.runtime.fuses_attention(asked.software)
        if terms.precision is not None or not one_size(model):
            terms = replace(terms, precision=self.runtime.computes(terms.precision))
        if family_of(model) == WINDOWED and HOP not in asked.settings:
            asked = replace(asked, settings={**asked.settings, HOP: self.runtime.hop_s})
        return made(model, terms, asked, scores=scores, timed=timed)


def family_of(model: str | Files) -> str | None:
    """The family of a network, as runtimes name it: the task of its table, of speech whether it hears windows, a
    generator of a folder; None of what is not known."""
    from chipwise.workload import media

    if isinstance(model, Files):
        return "diffusion" if model.source.sized else None
    if model.startswith(BY_COUNTS) or not is_built_in(model):
        return None
    return WINDOWED if media.windowed(model) else media.entry(model).task


def entry_of(model: str | Files) -> str | None:
    """The name that the table has for a network; None of what is not in it."""
    if isinstance(model, Files) or model.startswith(BY_COUNTS) or not is_built_in(model):
        return None
    return find(model).entry.name


def _does(chip: Chip, runtime: MediaRuntime) -> tuple[bool, bool, bool, bool, bool, Mapping[str, float]]:
    """What software does with operators on a chip: `tf32_conv`, `converts`, `widens`, `folds`, `turns` and `starts` of
    `Hardware`."""
    tf32, turns = runtime.tf32_conv and "tf32" in chip.matrix, chip.software_vendor in runtime.turns
    return tf32, runtime.converts, runtime.widens, runtime.folds, turns, runtime.starts


def _summing(device: Device, chip: Chip, runtime: MediaRuntime) -> Device:
    """The device with its rate of fp16 as software sums it."""
    rate = (runtime.sums_narrow and chip.peak("fp16", "fp16")) or chip.peak("fp16")
    if rate is None:
        return device
    return replace(device, matrix={**device.matrix, "fp16": rate / chip.devices_per_package})


@dataclass(frozen=True)
class _Told:
    """What fitted effects say of labels, each asked once."""

    effects: Effects
    known: dict[tuple[str, ...], Mapping[str, float]] = field(default_factory=dict)

    def of(self, labels: Mapping[str, str]) -> Mapping[str, float]:
        """Every quantity of one row."""
        key = tuple(labels.values())
        if key not in self.known:
            values = self.effects.values(media_labels(**labels))
            self.known[key] = {name: float(value[0]) for name, value in values.items()}
        return self.known[key]


def _times(numbers: Parameters) -> _Told:
    return _Told(numbers.derived(media_numbers).times)


def _sizes(numbers: Parameters) -> _Told:
    return _Told(numbers.derived(media_numbers).memory)


def _factors(numbers: Parameters) -> _Told:
    return _Told(numbers.derived(tuned_numbers).effects)


def _check_spread(pipeline: Program, place: Place, spread: Spread) -> None:
    """Raises `UsageError` where passes or devices cannot be split so."""
    passes = int(pipeline.settings.get("passes", 1))
    if spread.cfg > passes:
        raise UsageError(
            f"{pipeline.name} takes {passes} {'pass' if passes == 1 else 'passes'} a step: cfg={spread.cfg} has "
            "nothing to split",
            "ulysses or ring share a sequence, dp a batch",
            field="spread",
        )
    joined = float(np.nan_to_num(np.asarray(place.device.link_bytes_per_s)))
    if spread.devices > 1 and joined <= 0.0:
        raise UsageError(f"{place.chip.id} is joined to no other", "one device", field="spread")


def _computed(pipeline: Program, place: Place, terms: Terms) -> str:
    """The format that operators compute in, as it is said."""
    precision = terms.precision or computed_in(pipeline)
    return precision if pipeline.trained else multiplied(place.chip, precision)


def _aside(pipeline: Program, asked: Sampling) -> list[str]:
    """The stages that are not on the devices. Raises `UnknownNameError`."""
    parts = [s.name for s in pipeline.stages]
    for part in asked.aside:
        if not any(name.startswith(part) for name in parts):
            raise UnknownNameError("part", part, parts, f"{pipeline.name} has {', '.join(parts)}")
    return [name for name in parts if name.startswith(asked.aside)]


def _as_loaded(tensors: MemoryAccount, pipeline: Program) -> MemoryAccount:
    """Memory where weights arrive in 16 bits and are all there before the first is narrowed; offloaded ones on the
    host."""
    loaded = max(float(tensors.of("weights")), LOADED_BYTES * pipeline.parameters)
    host = float(tensors.on("host"))
    return held_by(loaded, max(float(tensors.total_bytes) - loaded, 0.0), host=host)


@dataclass(frozen=True)
class Work:
    """A pipeline on the devices of `asked.spread` of one chip under a runtime, priced but for the runtime's own
    numbers: seconds by stage and part, bytes of tensors, and the labels that those numbers go by."""

    pipeline: Program
    chip: Chip
    runtime: MediaRuntime
    device: Device
    asked: Sampling
    precision: str
    timed: Timed
    tensors: MemoryAccount
    trained: TrainedStep | None = None
    served: ServedPass | None = None

    @classmethod
    def of(cls, pipeline: Program, place: Place, terms: Terms, asked: Sampling) -> Work:
        """Raises `UsageError` for devices that nothing joins, or a tuned training step, `UnknownNameError` for a part
        that it does not have."""
        device, spread = place.device, asked.spread
        if asked.level == "tuned" and pipeline.trained:
            raise UsageError("what is known of tuned software is of inference", "--level stock", field="level")
        _check_spread(pipeline, place, spread)
        aside = _aside(pipeline, asked)
        kept = pipeline
        if aside:
            stages = tuple(stage for stage in pipeline.stages if stage.name not in aside)
            kept = replace(pipeline, stages=stages)
        timed = Timed(kept, place.doing(asked, pipeline), spread, asked.offload)
        tensors = account(pipeline, spread, offload=asked.offload, aside=aside)
        narrowed = place.runtime.narrows_loaded
        if narrowed and asked.offload == "none" and (terms.precision or "").startswith(narrowed):
            tensors = _as_loaded(tensors, pipeline)
        precision = _computed(pipeline, place, terms)
        optimizer = str(asked.settings.get(OPTIMIZER, ""))
        step = TrainedStep.of(pipeline, place.chip, place.runtime, place.numbers, spread, precision, optimizer)
        served = ServedPass.of(pipeline, place.chip, device, place.runtime, place.numbers, asked)
        return cls(pipeline, place.chip, place.runtime, device, asked, precision, timed, tensors, step, served)

    @property
    def stages(self) -> tuple[StageTimes, ...]:
        """Seconds by stage and part."""
        own = self.trained or self.served
        return self.timed.stages if own is None else own.stages

    @cached_property
    def system(self) -> System | None:
        """The machine that holds the chip."""
        return machine_for(self.chip)

    @cached_property
    def packages(self) -> int:
        """Chips of a replica."""
        return packages(self.chip, self.asked.spread)

    @cached_property
    def copies(self) -> int:
        """How many times a replica runs the model at once, where its chips have more devices than share a request: a
        lone user has one request, a training step one batch."""
        if self.asked.task == "local" or self.pipeline.trained:
            return 1
        return self.packages * self.chip.devices_per_package // self.asked.spread.devices

    @cached_property
    def labels(self) -> Mapping[str, str]:
        """By what numbers of pipelines are shared."""
        return {
            "chip": self.chip.software_id,
            "core": self.chip.core,
            "generation": self.chip.base_generation,
            "runtime": self.runtime.paced_as or self.runtime.id,
            "pace": self.runtime.pace,
            "folds": "yes" if self.runtime.folds else "no",
            "attends": "own" if self.runtime.overlaps(self.chip, self.asked.software) else "framework",
            "dtype": self._wide if self.precision in WIDE else "b16",
            "phase": "train" if self.pipeline.trained else "infer",
            "unit": self.pipeline.unit,
            "use": self._use,
            "layout": str(self.asked.settings.get(LAYOUT, "nchw")),
            "host": self._beside,
        }

    def asking(self, metric: str) -> tuple[StageTimes, ...]:
        """The stages that a metric times: of a step of a request, those calls that make one step of what is called most
        often: one, or one for each pass of a guided step whose passes follow each other."""
        if metric not in ("step_s", "it_per_s") or self.pipeline.trained:
            return self.stages
        step = self.most_called
        kind, steps = step.name.partition(":")[0], self.pipeline.settings.get("steps", 0.0)
        calls = sum(float(s.calls) for s in self.stages if s.name.partition(":")[0] == kind)
        return (replace(step, calls=calls / steps if steps else 1.0),)

    def hosted(self, fitted: MediaFit) -> bool:
        """Whether a host rather than the device sets the time."""
        labels = media_labels(**self.labels)
        values = {name: float(value[0]) for name, value in fitted.times.values(labels).items()}
        cost = seconds(self.stages, pace_of(values))
        return float(cost.exposed["host"]) > 0.5 * float(cost.total_s)

    @property
    def _use(self) -> str:
        """How stages are called: those of a denoiser again and again, a decoder for each token, others once."""
        stages = self.timed.pipeline.stages
        if any(kind == "token" for stage in stages for kind, _ in stage.host):
            return "decoded"
        return "repeated" if any(s.calls > 1.0 for s in stages) else "once"

    @property
    def _beside(self) -> str:
        """What kind of machine starts its kernels: that of a chip without a bus has one memory for both."""
        form, bus = usual_form(self.chip), self.chip.host and self.chip.host.bytes_per_s
        return "board" if form == "board" else "server" if form not in DESKTOPS else "desk" if bus else "unified"

    @property
    def _wide(self) -> str:
        """The type of products of 32 bits: TF32 only where the chip has it."""
        return self.precision if self.precision in self.chip.matrix else "fp32"

    @property
    def submitted(self) -> dict[str, str]:
        """By what factors of tuned software are shared."""
        narrow = computed_in(self.pipeline)
        return {
            "compute": "b16" if narrow in SIXTEEN else narrow,
            "vendor": self.chip.software_vendor,
            "generation": self.chip.base_generation,
            "unit": self.pipeline.unit,
        }

    def stock(self, numbers: Parameters) -> Mapping[str, float]:
        """The runtime's own numbers as its defaults give them."""
        return numbers.derived(_times).of(self.labels)

    def pace(self, numbers: Parameters) -> Pace:
        """The runtime's own numbers at the level asked; those of software that trains or serves language models are in
        the seconds of its stages."""
        if self.trained is not None or self.served is not None:
            return Pace()
        stock = self.stock(numbers)
        if self.asked.level == "stock":
            return pace_of(stock)
        return tuned_pace(stock, numbers.derived(_factors).of(self.submitted))

    @cached_property
    def least_s(self) -> float:
        """Seconds of a request in which devices at their peaks would only compute."""
        rates = {name: float(x) for name, x in self.device.matrix.items() if np.isfinite(float(x))}
        rates["fp32"] = max(rates.get(name, 0.0) for name in WIDE)  # which may run in TF32
        peak = max(rates.values())
        work = self.pipeline.work.items()
        return sum(flops / (rates.get(name) or peak) for name, flops in work) / self.asked.spread.devices

    def request_s(self, pace: Pace) -> float:
        """Seconds of a request that is alone."""
        return float(seconds(self.stages, pace).total_s)

    def busy_s(self, pace: Pace) -> float:
        """Seconds until the next can be taken at full load: of tuned software, which has several in flight, without
        what a host adds to each."""
        if self.asked.level == "stock":
            return self.request_s(pace)
        return float(seconds(self.stages, replace(pace, request_s=0.0, call_s=0.0)).total_s)

    def use(self, seconds_: float) -> Use:
        """What a chip does on average where each of its copies takes so long for a batch. What is folded into the
        product before it counts for nothing."""
        device, folds = self.device, self.runtime.folds
        total = {f.name: 0.0 for f in fields(Use)}
        for stage in self.pipeline.stages:
            for n, op in stage.ops:
                if folds and float(np.max(op.dims.get("epilogue", 0.0))) > 0.0:
                    continue
                total["memory"] += stage.calls * n * float(op.bytes) / float(device.memory_bytes_per_s)
                name, peak_s = issued(op, device)
                total[name] += stage.calls * n * float(peak_s)
        each = seconds_ * self.packages * self.chip.devices_per_package / self.copies
        return Use(*(min(total[f.name] / each, 1.0) for f in fields(Use)))

    def fits(self, numbers: Parameters) -> bool:
        """Whether a device has the memory."""
        return bool(self.held(numbers).fits())

    def beyond(self, numbers: Parameters) -> float:
        """The share of a device's memory that it holds more than there is; negative where some is left."""
        return float(self.held(numbers).total_bytes) / self.capacity_bytes - 1.0

    def held(self, numbers: Parameters) -> MemoryAccount:
        """Bytes of one device. Rows of tables that are hardly ever looked up may wait on the host, up to the share of
        them that `preferences` calls `short`."""
        if self.trained is not None:
            return replace(self.trained.held, capacity_bytes=self.capacity_bytes)
        sizes, tensors = numbers.derived(_sizes).of(self.labels), self.tensors
        alive = sizes["activation"] * float(tensors.of("activations"))
        beside = (alive, sizes["cache"] * alive, sizes["runtime_bytes"])
        weights, host = float(tensors.of("weights")), float(tensors.on("host"))
        beyond = weights + sum(beside) - self.capacity_bytes
        if 0.0 < beyond <= preferences().short * self._tables_bytes:
            beyond += 1.0  # a byte, for rounding
            weights, host = weights - beyond, host + beyond
        return held_by(weights, *beside, host, self.capacity_bytes)

    @property
    def _tables_bytes(self) -> float:
        """Bytes of tables that one device holds for a request."""
        if self.asked.offload != "none" or self.pipeline.trained:
            return 0.0
        stored = sum(s.weight_bytes for s in self.timed.pipeline.stages if looks_up(s))
        return stored / (self.asked.spread.devices if self.asked.spread.tables else 1)

    def waiting_bytes(self, numbers: Parameters, replicas: int) -> float:
        """Bytes that wait in the memory of one host, each of its devices with its own: of the fullest host of so many
        replicas."""
        devices = self.asked.spread.devices * self.copies * replicas
        system = self.system
        most = system.chips_per_host * self.chip.devices_per_package if system else devices
        return float(self.held(numbers).on("host")) * min(devices, most)

    @property
    def host_capacity_bytes(self) -> float:
        """Bytes of one host that are left for what waits there: of the memory that was asked about, else of the most
        that the machine is rented with; infinite where nobody says, as of a machine at a desk."""
        said = self.asked.host_memory
        system = self.system if said is None and self.asked.task != "local" else None
        if system is not None and system.host.memory_bytes:
            said = system.host.memory_bytes[-1]
        return float("inf") if said is None else HOST_SHARE * said

    @property
    def capacity_bytes(self) -> float:
        """Bytes of one device that are left for it."""
        return float(self.device.memory_bytes) - float(self.device.reserved_bytes)

    @property
    def most_called(self) -> StageTimes:
        """The stage that is called most often; of equals the largest."""
        return max(self.stages, key=lambda s: (s.calls, sum(s.of(part) for part in s.parts)))


def tabled(pipeline: Program) -> bool:
    """Whether tables are looked up, which can be dealt out."""
    return any(looks_up(stage) for stage in pipeline.stages)


def looks_up(stage: Stage) -> bool:
    """Whether a stage looks rows of tables up."""
    return any(op.name == "embedding_bag" for _, op in stage.ops)


def packages(chip: Chip, spread: Spread) -> int:
    """Chips that have the devices which share a request so."""
    return -(-spread.devices // chip.devices_per_package)


def multiplied(chip: Chip, precision: str) -> str:
    """The precision in which a chip multiplies: one that has fp16 alone would emulate bf16, what is counted is its
    fp16."""
    return "fp16" if precision == "bf16" and "bf16" not in chip.matrix and "fp16" in chip.matrix else precision


def computed_in(pipeline: Program) -> str:
    """The number format of most of its operations; of weights alone the usual one."""
    work = pipeline.work
    return max(work, key=lambda name: work[name]) if any(work.values()) else DEFAULT
