"""`plan`, `estimate`, `explain` and `fit` of models that generate no tokens: generators of images and video, encoders
of text, images and sound, recommenders, traced modules. They are a `Pipeline`, priced once for one size.

A name and sizes become a pipeline (`Sampling.pipeline`), a pipeline under terms becomes an answer (`answer`): a module
that a tracer turned into a pipeline takes the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import repeat
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from chipwise.api.loaded import find_chip
from chipwise.api.tactics import Level
from chipwise.calibrate.effects import Effects
from chipwise.calibrate.fit_media import MediaFit, attended, media_labels, media_numbers, pace_of
from chipwise.calibrate.fit_tuned import tuned_numbers, tuned_pace
from chipwise.calibrate.parameter import Z80
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import load_chips, recalled_words
from chipwise.catalog.machine import copies, counted, kinds
from chipwise.catalog.media_runtime import MediaRuntime, media_runtime_for
from chipwise.catalog.networks import BY_COUNTS
from chipwise.catalog.offer import PRICE_NOISE
from chipwise.cost.device import Device
from chipwise.cost.simt.family import SimtParameters
from chipwise.errors import ChipwiseError, InfeasibleError, UnknownNameError, UsageError, shorten
from chipwise.evidence.judge import TUNED, Estimate, Nearness, chance, tier_factors
from chipwise.predict.energy import Use, issued
from chipwise.predict.pipeline import (
    ONE,
    Account,
    Hardware,
    Offload,
    Pace,
    Spread,
    StageTimes,
    account,
    flash_attention,
    seconds,
    stage_times,
)
from chipwise.predict.waiting import Queue, replicas_within
from chipwise.report import figures
from chipwise.report.assemble import Contender, doubts_of, figure, price_record, simplest_first, tie
from chipwise.report.energy import OF_SAMPLES, Powered, energy_record
from chipwise.report.media import MediaPlan, MediaReport
from chipwise.report.records import Figure, JobRecord, NetworkRecord, PriceRecord, RefusalRecord
from chipwise.search.deployments import few_of, machine_for, reserved
from chipwise.search.space import FEW_WORDS, Limits
from chipwise.tracing.sources import Source, own_source
from chipwise.units import duration_above, format_number, format_seconds, parse_quantity
from chipwise.workload.pipeline import Pipeline
from chipwise.workload.workload import CONFIDENCE, UTILISATION, Job, Task

if TYPE_CHECKING:
    from chipwise.api.placing import Terms

__all__ = [
    "LATENCY",
    "MEMORY",
    "OFFLOADS",
    "SHORT",
    "STEP",
    "Files",
    "Place",
    "Sampling",
    "Work",
    "answer",
    "computed_in",
    "estimate",
    "figured",
    "fit",
    "network",
    "networks",
    "own_model",
    "plan",
    "refusal_of",
    "report_of",
    "tier",
    "wanted_of",
]

DEFAULT = "bf16"  # precision where none is said
WIDE = ("fp32", "tf32")
SIXTEEN = ("bf16", "fp16")
LAYOUT, ATTENTION = "memory_format", "attention"  # settings of the software, not of a family
CHANNELS_LAST = "channels_last"
LOADED_BYTES = 2.0  # of a parameter of a checkpoint
KERNELS = "transformers"  # the libraries as PyTorch calls them, whose operators were timed
COMFORTABLE = 0.9  # of the memory, up to which a plan is not tight
OFFLOADS: tuple[Offload, ...] = (
    "none",
    "model",
    "sequential",
)  # each keeps more on the host than the one before
COUNTS = (1, 2, 4, 8)  # devices of a replica that plans try
BATCHES = (1, 4, 16, 64)  # samples at once that plans try, where none were said
ATTENDED = 0.25  # of the time, from which on it matters whether such attention was measured
LATE = 0.99  # of requests, whose wait is told beside the mean
LATENCY, STEP, MEMORY = "media_s", "media_s trained", "media_bytes"
LEVELS: Mapping[Task, str] = {"batch": "", "serve": " served", "local": " alone"}
"""Suffix of the figure by which times of tuned software are judged: what bounds them."""
SHORT = 0.25  # of the memory, beyond which a request is refused: nearer, the estimate itself may be wrong


@dataclass(frozen=True)
class Sampling:
    """What is asked of a model that generates no tokens, and how devices share it; None: the model's own default.

    `resolution` is (width, height); `settings` are further sizes of a family, by name; `training` asks about one step
    of an optimizer. `aside`: parts that the host computes. `software`: a date, or a version of what the runtime comes
    with ("": the newest). `level`: what the runtime's defaults give, or what a benchmark submission reaches with it.
    Targets of a plan: `rate_per_s` of samples, and `latency_s` of a request with what it waits at that rate, of the
    mean request or of a share of them (`percentile`), with a probability of `confidence`; a `job` of samples (its
    `tokens`) with its deadline and budget; `task` says what the chips are for.
    """

    batch: int | None = None
    resolution: tuple[int, int] | None = None
    frames: int | None = None
    steps: int | None = None
    guidance: float | None = None
    settings: Mapping[str, float | str] = field(default_factory=dict)
    training: bool = False
    spread: Spread = ONE
    offload: Offload = "none"
    aside: tuple[str, ...] = ()
    software: str = ""
    level: Level = "stock"
    task: Task = "serve"
    latency_s: float | None = None
    rate_per_s: float | None = None
    percentile: float | None = None
    job: Job | None = None
    confidence: float = CONFIDENCE

    def pipeline(self, model: str, precision: str | None, *, scores: bool = False) -> Pipeline:
        """The model at these sizes; `scores`: attention writes its scores to memory. Raises `UsageError` and
        `UnknownNameError`."""
        from chipwise.workload import media

        if model.startswith(BY_COUNTS):
            return _counted(model, self, precision or DEFAULT)
        return media.pipeline(
            model,
            batch=self.batch or 1,
            precision=precision or DEFAULT,
            trained=self.training,
            **self.sizes(scores=scores),
        )

    def sizes(self, *, scores: bool = False) -> dict[str, Any]:
        """The sizes that were said, and how attention is written out."""
        found: dict[str, Any] = {
            name: value
            for name in ("resolution", "frames", "steps", "guidance")
            if (value := getattr(self, name)) is not None
        }
        found |= {name: value for name, value in self.settings.items() if name not in (LAYOUT, ATTENTION)}
        attention = self.settings.get(ATTENTION, "plain" if scores else "fused")
        if attention not in ("plain", "fused"):
            what = f"--settings attention={shorten(str(attention))}: not a way to compute it"
            raise UsageError(what, "fused, or plain, which writes scores to memory", field="settings")
        if attention == "plain":
            found[ATTENTION] = attention
        return found


@dataclass(frozen=True)
class Files:
    """A model of the user's own files for as long as a question takes: every size of it is read or traced once."""

    source: Source
    made: dict[str, Pipeline] = field(default_factory=dict, compare=False)

    def pipeline(self, asked: Sampling, precision: str | None, *, scores: bool = False) -> Pipeline:
        """It at these sizes. Raises `UsageError` for sizes and formats of what has its own."""
        sizes = asked.sizes(scores=scores and self.source.sized)
        if precision is not None:
            sizes["precision"] = precision
        if asked.batch not in (None, 1):
            sizes["batch"] = asked.batch
        key = repr((sorted(sizes.items()), asked.training))
        if key not in self.made:
            self.made[key] = self.source.pipeline(training=asked.training, sizes=sizes)
        return self.made[key]


FAMILIES = {
    "diffusion": "generator of images or video",
    "shape": "generator of shapes",
    "voxels": "generator of shapes",
    "reconstruction": "generator of shapes",
    "structure": "structure of molecules",
    "vision": "images read: classes, boxes, masks",
    "text": "text read: embeddings, encoders",
    "speech": "speech recognition",
    "voice": "text to speech",
    "recommend": "recommender",
}
"""What a request of a built-in network is, by the task that its table names."""


def networks(search: str | None = None) -> tuple[str, ...]:
    """Built-in networks by their own names: all, or those whose names or family hold all words."""
    from chipwise.catalog.names import holding
    from chipwise.workload import media

    if search is None:
        return media.names()
    known = {
        name: " ".join((name, *media.entry(name).names, FAMILIES[media.entry(name).task]))
        for name in media.names()
    }
    return tuple(name for name, words in known.items() if holding(search, (words,)))


def network(name: str) -> NetworkRecord:
    """A built-in network in figures, at its own sizes. Raises `UnknownNameError`."""
    from chipwise.workload import media

    entry, found = media.entry(name), media.pipeline(name)
    return NetworkRecord(
        name=entry.name,
        names=entry.names,
        family=FAMILIES[entry.task],
        unit=found.unit,
        params=found.parameters,
        parts={stage.name: stage.parameters for stage in found.stages},
        flops=found.flops,
        settings=dict(found.settings),
        origin=entry.source,
    )


def own_model(model: str) -> str | Files:
    """A model by name as it is, one of the user's own with its files."""
    source = own_source(model)
    return model if source is None else Files(source)


def _made(
    model: str | Files, terms: Terms, asked: Sampling, *, scores: bool = False, timed: bool = True
) -> Pipeline:
    """The model at these sizes. Raises `UsageError`, where it is to be `timed` for one of which only weights are
    known."""
    if isinstance(model, str):
        return asked.pipeline(model, terms.precision, scores=scores)
    found = model.pipeline(asked, terms.precision, scores=scores)
    if timed and not any(stage.ops for stage in found.stages):
        raise UsageError(
            f"{found.name}: only its weights are known, not what it computes",
            "chipwise fit says where they fit; FILE.py:function or FILE.onnx says what it computes",
            field="model",
        )
    return found


def _counted(model: str, asked: Sampling, precision: str) -> Pipeline:
    """`macs:params=25.6M,gmacs=4.1`: a network of which only totals are known. Raises `UsageError`."""
    from chipwise.workload import media

    hint = f"as in {BY_COUNTS}params=25.6M,gmacs=4.1,macts=11.1M,style=conv"
    given = dict(part.partition("=")[::2] for part in model.removeprefix(BY_COUNTS).split(","))
    strange = sorted(set(given) - {"params", "gmacs", "macts", "style"})
    strange += [said for said in (given.get("style", "conv"),) if said not in ("conv", "transformer")]
    if strange or not {"params", "gmacs"} <= set(given):
        raise UsageError(f"cannot read {shorten(model)}", hint, field="model")
    figures = {name: parse_quantity(given.get(name, "0"), "", name) for name in ("params", "gmacs", "macts")}
    return media.from_macs(
        model,
        figures["params"] / 1e6,
        figures["gmacs"],
        macts_m=figures["macts"] / 1e6,
        style="transformer" if given.get("style") == "transformer" else "conv",
        batch=asked.batch or 1,
        precision=precision,
        trained=asked.training,
    )


@dataclass(frozen=True)
class Place:
    """A chip with its runtime and numbers."""

    chip: Chip
    runtime: MediaRuntime
    device: Device
    hardware: Hardware
    numbers: Parameters

    @classmethod
    def of(cls, chip: Chip, terms: Terms, numbers: Parameters) -> Place:
        """What other work leaves of the chip. Raises `UsageError` where no software runs it, or the chip's figures are
        not published."""
        chip = terms.shared(chip)
        runtime = media_runtime_for(chip, terms.runtime)
        system = machine_for(chip)
        device = Device.of(chip, reserved(chip, system), system)
        if not np.isfinite(float(device.memory_bytes_per_s)) or not np.isfinite(float(device.matrix["bf16"])):
            raise UsageError(f"{chip.id}: its memory bandwidth or its peak is not published")
        costs = numbers.cost(chip.family, KERNELS, [chip]).take(np.zeros((), dtype=np.intp))
        host = chip.host.bytes_per_s if chip.host and chip.host.bytes_per_s else np.nan
        overheads = numbers.overheads(chip.family, KERNELS)
        tf32 = runtime.tf32_conv and "tf32" in chip.matrix
        turns = chip.software_vendor in runtime.turns
        does = tf32, runtime.converts, runtime.widens, runtime.folds, turns
        hardware = Hardware(device, costs, overheads, host, *does)
        return cls(chip, runtime, device, hardware, numbers)

    def packages(self, spread: Spread) -> int:
        """Chips of a replica, whose devices share a request so."""
        return -(-spread.devices // self.chip.devices_per_package)

    def pipeline(self, model: str | Files, terms: Terms, asked: Sampling, *, timed: bool = True) -> Pipeline:
        """The model as the software runs it here."""
        scores = not self.runtime.fuses_attention(asked.software)
        return _made(model, terms, asked, scores=scores, timed=timed)


def figured(task: Task, level: Level, *, trained: bool = False) -> str:
    """The figure by which times are judged: steps of training, whose backward pass and optimizer no kernel was timed
    for, scatter more than requests."""
    if level == "tuned":
        return LATENCY + TUNED + LEVELS[task]
    return STEP if trained else LATENCY


def _seen(numbers: Parameters) -> frozenset[str]:
    """Labels of the rows that numbers were fitted to."""
    return frozenset(name.removeprefix(SEEN) for name in numbers.table if name.startswith(SEEN))


def tier(chip: Chip, runtime: MediaRuntime, numbers: Parameters, level: Level = "stock") -> Nearness:
    """How near the rows of the fit are: this chip under this runtime, its generation, other chips; of tuned software
    this chip, others of its vendor, other chips."""
    if level == "tuned":
        chips, market = numbers.derived(tuned_numbers).chips, load_chips()
        if chip.software_id in chips:
            return "chip"
        vendors = {market[name].software_vendor for name in chips if name in market}
        return "vendor" if chip.software_vendor in vendors else "kind"
    known = numbers.derived(_seen)
    if f"runtime={runtime.id}" not in known:
        return "kind"
    if f"chip={chip.software_id}" in known:
        return "chip"
    return "generation" if f"generation={chip.base_generation}" in known else "kind"


def answer(
    pipeline: Pipeline,
    terms: Terms | None = None,
    *,
    chips: Sequence[str] = (),
    asked: Sampling = Sampling(),
) -> MediaReport:
    """Any pipeline, traced or built in, on each of some chips (none named: all on the market), in the order asked.

    Chips that cannot run it are refused with the reason. Raises `UsageError` and `UnknownNameError` for a chip or a
    runtime that does not exist, `InfeasibleError` where nothing runs it.
    """
    from chipwise.api.placing import Terms

    terms = terms or Terms()
    numbers = terms.parameters or shipped_parameters()
    plans, refused = [], []
    for chip in _chips(chips, terms):
        try:
            place = Place.of(chip, terms, numbers)
            plans.append(_priced(pipeline, place, terms, asked))
        except ChipwiseError as error:
            if len(chips) == 1:
                raise
            refused.append(refusal_of(chip.id, error))
    return report_of(pipeline, plans, refused, terms)


def estimate(model: str, chip: str, terms: Terms, asked: Sampling) -> MediaReport:
    """One chip, or a group of them that shares the work, and its request; so many chips of servers (`8xh100`,
    `p5.48xlarge`) are filled with replicas."""
    numbers = terms.parameters or shipped_parameters()
    several = counted(chip)
    place = Place.of(
        find_chip(several[0] if several else chip, terms.changes, terms.own_chips), terms, numbers
    )
    pipeline = place.pipeline(own_model(model), terms, asked)
    each = place.packages(asked.spread)
    replicas = copies(several[1], each, chip, "--spread") if several else None
    plan_ = _priced(pipeline, place, terms, asked, replicas)
    if plan_.verdict == "no":
        short = (plan_.memory_bytes - plan_.capacity_bytes) / 1e9
        name = f"{pipeline.name} on {plan_.chips} x {plan_.chip}"
        further = OFFLOADS[OFFLOADS.index(asked.offload) + 1 :] if place.runtime.offloads else ()
        ways = (_priced(pipeline, place, terms, replace(asked, offload=way)) for way in further)
        fits = next((p.offload for p in ways if p.verdict != "no"), None)
        hint = "a smaller --batch, a narrower --precision, or --spread over more devices"
        note = f"--offload {fits} fits" if fits else hint
        if short > SHORT * plan_.capacity_bytes / 1e9:
            raise InfeasibleError(f"{name}: {short:,.1f} GB short per device", note, reasons={"MEMORY": 1})
        near = f"less than {SHORT:.0%} of the memory, as this estimate of it may be off: times are as if it fitted"
        plan_ = replace(plan_, note=f"{note}; {near}")
    return report_of(pipeline, [plan_], [], terms)


def fit(model: str, terms: Terms, asked: Sampling, chips: Sequence[str]) -> MediaReport:
    """The memory of a request on every chip: as it is, else with weights kept by the host in part. Devices share it
    where `asked.spread` says so; so many chips (`8xh100`, `p5.48xlarge`) are filled with replicas, as in `estimate`."""
    numbers = terms.parameters or shipped_parameters()
    plans, refused, pipeline, opened = [], [], None, own_model(model)
    if isinstance(opened, Files):
        _made(opened, terms, asked, timed=False)  # what is wrong with a file is wrong on every chip
    for chip, count in _groups(chips, terms):
        try:
            place = Place.of(chip, terms, numbers)
            pipeline = place.pipeline(opened, terms, asked, timed=False)
            replicas, each = None, place.packages(asked.spread)
            if count is not None:
                replicas = copies(count, each, f"{count}x{chip.id}", "--spread", field="chips")
            plans.append(_fitting(pipeline, place, terms, asked, replicas))
        except ChipwiseError as error:
            if len(chips) == 1:
                raise
            refused.append(refusal_of(chip.id, error))
    if pipeline is None:
        raise InfeasibleError(
            f"{model}: none of these chips has known software for it", "chipwise chips list"
        )
    order = {"comfortable": 0, "tight": 1, "no": 2}
    plans.sort(key=lambda p: (order[p.verdict], p.offload != "none", p.chip, p.chips * p.replicas))
    return report_of(pipeline, plans, refused, terms)


def plan(model: str, terms: Terms, asked: Sampling, chips: Sequence[str], limits: Limits) -> MediaReport:
    """The cheapest way to make samples on each chip that keeps the latency and carries the rate, cheapest chip first;
    of about equal cost the simplest, and of chips that nobody named no more than a few of cards made for desks, as for
    language models.

    Tries batches, counts of devices that share a guided step and a sequence (up to `limits.max_chips`, else
    eight), and keeping parts on the host; all replicas keep `limits` of chips and dollars per hour, for which a
    price must be known. Without a rate a plan is one replica, ranked by dollars per sample; without a price, by time.
    Raises `InfeasibleError` where nothing keeps the target and the limits.
    """
    most = limits.max_chips or COUNTS[-1]
    numbers = terms.parameters or shipped_parameters()
    wanted = _chips(chips, terms)
    machines = {c.id: machine_for(c) for c in wanted}
    hosts = {chip: system.chips_per_host if system else 1 for chip, system in machines.items()}
    if not chips and asked.task != "local":
        limits = replace(limits, few=few_of(wanted, terms.basis))
    best: list[MediaPlan] = []
    beyond: list[MediaPlan] = []
    refused: list[RefusalRecord] = []
    surest: MediaPlan | None = None
    opened = own_model(model)
    shown = _made(opened, terms, asked) if isinstance(opened, Files) else None
    for chip in wanted:
        try:
            place = Place.of(chip, terms, numbers)
            found = list(_candidates(opened, place, terms, asked, most))
        except ChipwiseError as error:
            if len(chips) == 1:
                raise
            refused.append(refusal_of(chip.id, error))
            continue
        shown = found[0][0] if found else shown
        fitting = [p for _, p in found if p.verdict != "no"]
        surest = min(
            [*fitting, *([surest] if surest else [])], key=partial(_answered_s, asked=asked), default=None
        )
        kept = [p for p in fitting if p.chance is None or p.chance >= asked.confidence - 1e-9]
        allowed = [p for p in kept if _allowed(p, limits) and _paid(p, asked)]
        if allowed:
            best.append(_ranked(allowed, asked, hosts, 0.0)[0])
        elif kept:
            near = min(kept, key=_bill)
            beyond.append(near)
            refused.append(
                RefusalRecord(chip.id, "BUDGET", f"{_taken(near, asked)}: beyond the limit of chips or price")
            )
        else:
            why = "slower than asked" if fitting else "lacks memory"
            refused.append(RefusalRecord(chip.id, "SLO" if fitting else "MEMORY", why))
    if shown is None:
        shown = _made(opened, terms, asked)
    if beyond and not best:
        near = min(beyond, key=_bill)
        raise InfeasibleError(
            f"{shown.name}: no plan within the limits, the nearest is {near.chip}, which {_taken(near, asked)}",
            "a higher --max-chips or --max-usd-per-h, or a lower --rate"
            if near.job is None
            else "a higher --max-usd or --max-chips, a later --deadline, or a lower --confidence",
        )
    if not best:
        what = f"{shown.name}: no chip keeps the target"
        if surest is None or surest.chance is None or asked.latency_s is None:
            raise InfeasibleError(f"{what}, none has the memory", "more --chips, or a narrower --precision")
        waits = "" if surest.wait_s is None else f" after waiting {format_seconds(surest.wait_s)}"
        within = f"within {format_seconds(asked.latency_s)} with {surest.chance:.0%} probability"
        raise InfeasibleError(
            f"{what}, the nearest is {surest.chips * surest.replicas}x {surest.chip}, which takes "
            f"{figures.seconds(surest.latency_s)}{waits}: {within}, {asked.confidence:.0%} asked",
            f"--e2e {duration_above(_answered_s(surest, asked))}, fewer --steps, or a lower --confidence",
        )
    ranked = _numbered(_ranked(best, asked, hosts, PRICE_NOISE))
    report = wanted_of(asked, report_of(shown, ranked, refused, terms))
    return replace(report, assumptions=(*report.assumptions, FEW_WORDS)) if limits.few else report


def _candidates(
    model: str | Files, place: Place, terms: Terms, asked: Sampling, most: int
) -> Iterator[tuple[Pipeline, MediaPlan]]:
    """Every way that is tried on a chip, with its pipeline."""
    one_size = isinstance(model, Files) and not model.source.sized
    batches = (asked.batch,) if asked.batch or one_size else BATCHES
    domain = float(np.nan_to_num(float(np.asarray(place.device.domain)), nan=1.0))
    for batch in batches:
        sized = replace(asked, batch=batch)
        pipeline = place.pipeline(model, terms, sized)
        stepped = max(stage.calls for stage in pipeline.stages) > 1.0
        spreads = [asked.spread]
        shares = place.runtime.shares or asked.level == "tuned"
        if asked.spread == ONE and shares and stepped and batch == batches[0]:
            spreads += [Spread(ulysses=n) for n in COUNTS[1:] if n <= min(most, domain)]
        for spread in spreads:
            one = replace(sized, spread=spread)
            yield pipeline, _fitting(pipeline, place, terms, one)


def _answered_s(p: MediaPlan, asked: Sampling) -> float:
    """Seconds that a request and its wait take with the probability asked."""
    waits = p.wait_s if asked.percentile is None else p.wait_p99_s
    return _within(p.latency_s, asked.confidence) * (1.0 + (waits or 0.0) / p.latency_s.mid)


def _within(latency: Figure, confidence: float) -> float:
    """Seconds that a latency keeps with a probability: the inverse of `chance`."""
    z = NormalDist().inv_cdf(confidence) / Z80
    end = latency.high if z > 0.0 else latency.low
    return float(latency.mid * (end / latency.mid) ** abs(z))


def refusal_of(chip: str, error: ChipwiseError) -> RefusalRecord:
    """Why a chip cannot run it, without the chip's name before the reason."""
    return RefusalRecord(chip, "NO_RUNTIME", str(error).removeprefix(f"{chip}: "))


def _allowed(p: MediaPlan, limits: Limits) -> bool:
    usd = limits.max_usd_per_h
    cheap = usd is None or (p.price is not None and p.price.mid <= usd)
    return cheap and p.chips * p.replicas <= limits.chips(p.chip)


def _paid(p: MediaPlan, asked: Sampling) -> bool:
    """Whether a job at the middle price stays within its budget, with the probability asked."""
    if asked.job is None or asked.job.max_usd is None:
        return True
    return _cautious_usd(p, asked) <= asked.job.max_usd


def _cautious_usd(p: MediaPlan, asked: Sampling) -> float:
    """What a job costs at the middle price with the probability asked; infinite where no price is known."""
    if p.job is None or p.price is None:
        return float("inf")
    return p.price.mid * _within(p.job.hours, asked.confidence)


def _per_hour(p: MediaPlan) -> float:
    return p.price.mid if p.price else float("inf")


def _bill(p: MediaPlan) -> float:
    """Dollars of the job, else of an hour; infinite where no price is known."""
    return _per_hour(p) if p.job is None else p.job.usd.mid if p.job.usd else float("inf")


def _taken(p: MediaPlan, asked: Sampling) -> str:
    cost = f"at ${p.price.mid:,.3g}/h" if p.price else "without a known price"
    if p.job is not None and p.job.usd is not None:
        cost += f", at most ${format_number(_cautious_usd(p, asked))} in total with {asked.confidence:.0%} probability"
    return f"takes {p.chips * p.replicas:,} chips {cost}"


def _ranked(
    plans: Sequence[MediaPlan], asked: Sampling, hosts: Mapping[str, int], noise: float
) -> list[MediaPlan]:
    """Priced first; cheapest per hour of what carries the rate asked, else per sample; then soonest. Within the `noise`
    of that the simplest, but for one user. `hosts`: chips of each that one holds."""

    def contender(p: MediaPlan) -> Contender:
        rate = p.samples_per_s
        per = rate.mid if asked.rate_per_s is None else 1.0
        # to eight digits: beyond those ways that cost the same would differ
        cost = float(f"{p.price.mid / per * rate.mid / rate.low:.8g}") if p.price else None
        count = p.chips * p.replicas
        size = (-(-count // hosts[p.chip]), p.price.billed if p.price else count, p.replicas)
        return Contender((), cost, doubts_of(p.latency_s.basis, p.price), size)

    def order(pair: tuple[Contender, MediaPlan]) -> tuple[bool, float, float]:
        contender, p = pair
        if contender.cost is None:
            return True, p.latency_s.mid * p.chips, p.latency_s.mid
        return False, contender.cost, p.latency_s.mid

    pairs = sorted(((contender(p), p) for p in plans), key=order)
    return [p for _, p in pairs] if asked.task == "local" else simplest_first(pairs, noise)


def _numbered(plans: Sequence[MediaPlan]) -> list[MediaPlan]:
    """Plans in their order with their ranks, and the ranks of those that the prediction cannot tell apart."""
    goals = [p.usd_per_1000 or p.latency_s for p in plans]
    return [
        replace(p, rank=i + 1, ties=tuple(j + 1 for j, g in enumerate(goals) if j != i and tie(goals[i], g)))
        for i, p in enumerate(plans)
    ]


def wanted_of(asked: Sampling, report: MediaReport, *, owned: bool = False) -> MediaReport:
    """The answer with the targets that its plans were chosen by."""
    return replace(
        report,
        rate_per_s=asked.rate_per_s,
        limit_s=asked.latency_s,
        percentile=asked.percentile,
        job=asked.job,
        confidence=asked.confidence,
        owned=owned,
    )


def _priced(
    pipeline: Pipeline, place: Place, terms: Terms, asked: Sampling, replicas: int | None = None
) -> MediaPlan:
    return Work.of(pipeline, place, terms, asked).plan(place.numbers, terms, replicas=replicas)


def _fitting(
    pipeline: Pipeline, place: Place, terms: Terms, asked: Sampling, replicas: int | None = None
) -> MediaPlan:
    """The plan as asked; where that does not fit and nothing was said of it, with parts that wait on the host; where
    nothing fits, as asked."""
    ways = OFFLOADS if asked.offload == "none" and place.runtime.offloads else (asked.offload,)
    plans = (_priced(pipeline, place, terms, replace(asked, offload=way), replicas) for way in ways)
    first = next(plans)
    return first if first.verdict != "no" else next((p for p in plans if p.verdict != "no"), first)


def _chips(names: Sequence[str], terms: Terms) -> list[Chip]:
    """The chips of these names, of none all on the market."""
    market = load_chips()
    return [find_chip(c, terms.changes, terms.own_chips) for c in names] or [
        market[c] for c in market.market()
    ]


def _groups(names: Sequence[str], terms: Terms) -> list[tuple[Chip, int | None]]:
    """The same, each with every count that was said of it, None for none."""
    asked = kinds(names)
    counts = asked.values() if asked else repeat((None,))
    return [
        (chip, n) for chip, several in zip(_chips(tuple(asked), terms), counts, strict=False) for n in several
    ]


SEEN = "media.seen."


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


@dataclass(frozen=True)
class Work:
    """A pipeline on the devices of `asked.spread` of one chip under a runtime, priced but for the runtime's own
    numbers: seconds by stage and part, bytes of tensors, and the labels that those numbers go by."""

    pipeline: Pipeline
    chip: Chip
    runtime: MediaRuntime
    device: Device
    asked: Sampling
    precision: str
    stages: tuple[StageTimes, ...]
    tensors: Account

    @classmethod
    def of(cls, pipeline: Pipeline, place: Place, terms: Terms, asked: Sampling) -> Work:
        """Raises `UsageError` for devices that nothing joins, or a tuned training step, `UnknownNameError` for a part
        that it does not have."""
        device, spread = place.device, asked.spread
        if asked.level == "tuned" and pipeline.trained:
            raise UsageError(
                "what is known of tuned software is of inference", "--level stock", field="level"
            )
        joined = float(np.nan_to_num(np.asarray(device.link_bytes_per_s)))
        passes = int(pipeline.settings.get("passes", 1))
        if spread.cfg > passes:
            raise UsageError(
                f"{pipeline.name} takes {passes} {'pass' if passes == 1 else 'passes'} a step: cfg={spread.cfg} has "
                "nothing to split",
                "ulysses or ring share a sequence, dp a batch",
                field="spread",
            )
        if spread.devices > 1 and joined <= 0.0:
            raise UsageError(f"{place.chip.id} is joined to no other", "one device", field="spread")
        parts = [s.name for s in pipeline.stages]
        for part in asked.aside:
            if not any(name.startswith(part) for name in parts):
                hint = f"{pipeline.name} has {', '.join(parts)}"
                raise UnknownNameError("part", part, parts, hint)
        aside = [name for name in parts if name.startswith(asked.aside)]
        kept = replace(pipeline, stages=tuple(stage for stage in pipeline.stages if stage.name not in aside))
        turns = place.hardware.turns and asked.settings.get(LAYOUT) != CHANNELS_LAST
        costs = place.hardware.costs
        if isinstance(costs, SimtParameters) and place.runtime.flash_attends(place.chip):
            overlapped = place.runtime.overlaps(place.chip, asked.software)
            costs = flash_attention(costs, device, overlapped=overlapped)
        hardware = replace(place.hardware, costs=costs, turns=turns)
        stages = stage_times(kept, hardware, spread, offload=asked.offload)
        tensors = account(pipeline, spread, offload=asked.offload, aside=aside)
        narrowed = place.runtime.narrows_loaded
        if narrowed and asked.offload == "none" and (terms.precision or "").startswith(narrowed):
            # the weights arrive in 16 bits and are all there before the first is narrowed; offloaded ones on the host
            loaded = max(tensors.weights, LOADED_BYTES * pipeline.parameters)
            tensors = replace(tensors, weights=loaded, activations=max(tensors.total - loaded, 0.0))
        precision = terms.precision or computed_in(pipeline)
        return cls(pipeline, place.chip, place.runtime, device, asked, precision, stages, tensors)

    @property
    def labels(self) -> dict[str, str]:
        """By what numbers of pipelines are shared."""
        return {
            "chip": self.chip.software_id,
            "core": self.chip.core,
            "generation": self.chip.base_generation,
            "runtime": self.runtime.id,
            "pace": self.runtime.pace,
            "folds": "yes" if self.runtime.folds else "no",
            "attends": "own" if self.runtime.overlaps(self.chip, self.asked.software) else "framework",
            "dtype": self._wide if self.precision in WIDE else "b16",
            "phase": "train" if self.pipeline.trained else "infer",
            "unit": self.pipeline.unit,
            "use": "repeated" if any(float(s.calls) > 1.0 for s in self.stages) else "once",
            "layout": str(self.asked.settings.get(LAYOUT, "nchw")),
        }

    def asking(self, metric: str) -> tuple[StageTimes, ...]:
        """The stages that a metric times: of a step of a request, those calls that make one step of what is called most
        often: one, or one for each pass of a guided step whose passes follow each other."""
        if metric not in ("step_s", "it_per_s") or self.pipeline.trained:
            return self.stages
        step = self._step
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
        """The runtime's own numbers at the level asked."""
        stock = self.stock(numbers)
        if self.asked.level == "stock":
            return pace_of(stock)
        return tuned_pace(stock, numbers.derived(_factors).of(self.submitted))

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
        """What a device does on average where a batch takes so long. What is folded into the product before it counts
        for nothing."""
        device, folds = self.device, self.runtime.folds
        total = {f.name: 0.0 for f in fields(Use)}
        for stage in self.pipeline.stages:
            for n, op in stage.ops:
                if folds and float(np.max(op.dims.get("epilogue", 0.0))) > 0.0:
                    continue
                total["memory"] += stage.calls * n * float(op.bytes) / float(device.memory_bytes_per_s)
                name, peak_s = issued(op, device)
                total[name] += stage.calls * n * float(peak_s)
        each = seconds_ * self.asked.spread.devices
        return Use(*(min(total[f.name] / each, 1.0) for f in fields(Use)))

    def held(self, numbers: Parameters) -> Account:
        """Bytes of one device."""
        sizes = numbers.derived(_sizes).of(self.labels)
        alive = sizes["activation"] * self.tensors.activations
        return Account(self.tensors.weights, alive, sizes["cache"] * alive, sizes["runtime_bytes"])

    @property
    def capacity_bytes(self) -> float:
        """Bytes of one device that are left for it."""
        return float(self.device.memory_bytes) - float(self.device.reserved_bytes)

    def plan(
        self,
        numbers: Parameters,
        terms: Terms,
        *,
        replicas: int | None = None,
        copies: int = 1,
        load: float = 1.0,
    ) -> MediaPlan:
        """The record under fitted numbers and prices, of so many `replicas` (None: those that carry the rate or the job
        asked), each with `copies` of the model, which are given a part `load` of what they carry."""
        pace = self.pace(numbers)
        cost = seconds(self.stages, pace)
        total_s = float(cost.total_s)
        near = self._near(numbers, total_s)
        what = figured(self.asked.task, self.asked.level, trained=self.pipeline.trained)
        latency = _judged(what, total_s, near)
        one = pace if self.pipeline.trained else replace(pace, request_s=0.0)
        step = latency.scaled(float(seconds(self.asking("step_s"), one).total_s) / total_s)
        full = latency.scaled(self.busy_s(pace) / total_s / copies)
        busy = full.scaled(1.0 / load)
        rate = busy.inverse(float(self.pipeline.batch))
        wanted, limit = self.asked.rate_per_s, self.asked.latency_s
        if replicas is None:
            replicas = self._replicas(figure(latency), figure(full))
        queue = None
        if wanted is not None or load < 1.0:
            arriving = rate.mid * replicas if wanted is None else wanted
            queue = Queue(arriving, latency.mid, full.mid * copies, self.pipeline.batch, replicas * copies)
        odds = None
        if limit is not None:
            slower = limit / latency.mid if queue is None else queue.slowest(limit, self.asked.percentile)
            odds = chance(slower * latency.mid, latency.mid, latency.low, latency.high)
        devices = self.asked.spread.devices
        packages = -(-devices // self.chip.devices_per_package)
        system = machine_for(self.chip)
        group = min(packages, system.chips_per_host) if system else packages
        price = price_record(terms.basis(self.chip.id), packages * replicas, group)
        words = float(self.pipeline.settings.get("tokens", 0.0))
        powered = Powered.of(self.chip, packages * replicas, system, numbers)
        energy = None
        if powered is not None and self.pipeline.flops > 0.0:
            hosts = -(-packages * replicas // (system.chips_per_host if system else 1))
            alone = self.asked.task == "local" and self.asked.level == "tuned"
            use = self.use(total_s if alone else busy.mid)
            total = latency.inverse(float(self.pipeline.batch)) if alone else rate.scaled(float(replicas))
            whole = float(self.pipeline.batch) if self.asked.task == "local" else 1.0
            energy = energy_record(
                replace(powered, kind=OF_SAMPLES), use, packages * replicas, hosts, total, near, whole
            )
        job = None
        if self.asked.job is not None:
            job, odds = _job(self.asked.job, rate.scaled(float(replicas)), price)
        held, capacity = self.held(numbers), self.capacity_bytes
        loose = held.total <= COMFORTABLE * capacity
        peak = float(self.device.matrix[DEFAULT]) * devices
        return MediaPlan(
            chip=self.chip.id,
            chips=packages,
            runtime=self.runtime.id,
            precision=self.precision,
            spread=self.asked.spread.label,
            offload=self.asked.offload,
            batch=self.pipeline.batch,
            replicas=replicas,
            latency_s=figure(latency),
            step_s=figure(step),
            it_per_s=figure(step.inverse(1.0)),
            samples_per_s=figure(rate.scaled(float(replicas))),
            tokens_per_s=figure(rate.scaled(replicas * words)) if words else None,
            bound=cost.bound,
            shares={name: float(s) / total_s for name, s in cost.exposed.items() if float(s) > 0.0},
            stages={s.name: _alone(s, pace) for s in self.stages} | {"request": float(pace.request_s)},
            memory_bytes=held.total,
            memory_range=figure(_judged(MEMORY, held.total, tier(self.chip, self.runtime, numbers))),
            memory={name: getattr(held, name) for name in ("weights", "activations", "cache", "runtime")},
            capacity_bytes=capacity,
            verdict="comfortable" if loose else "tight" if held.total <= capacity else "no",
            flops_per_s=self.pipeline.flops / total_s,
            share_of_peak=self.pipeline.flops / total_s / peak,
            energy=energy,
            price=price,
            usd_per_1000=_per_1000(price, rate, replicas, wanted),
            chance=odds,
            job=job,
            load=None if queue is None else queue.load(),
            wait_s=None if queue is None else queue.waits_s(),
            wait_p99_s=None if queue is None else queue.waits_s(LATE),
            hosts=-(-packages * replicas // (system.chips_per_host if system else 1)),
        )

    def _replicas(self, latency: Figure, busy: Figure) -> int:
        """Replicas that carry the rate at `UTILISATION` of what each can, and more where requests would be answered
        later than the limit; that are done with the job by its deadline; else one. All with the probability asked."""
        wanted, job, batch = self.asked.rate_per_s, self.asked.job, self.pipeline.batch
        slower = _within(latency, self.asked.confidence) / latency.mid
        if wanted is not None:
            least = max(1, int(np.ceil(wanted * busy.mid / (UTILISATION * batch))))
            if self.asked.latency_s is None:
                return least
            spare = self.asked.latency_s - latency.mid * slower
            enough = replicas_within(wanted, spare, busy.mid * slower, batch, self.asked.percentile)
            return max(least, enough or least)
        if job is None or job.deadline_s is None:
            return 1
        return max(1, int(np.ceil(job.tokens * busy.mid * slower / batch / job.deadline_s)))

    def _near(self, numbers: Parameters, total_s: float) -> Nearness:
        """How near the rows of the fit are; those of other attention are far where that is most of the time."""
        near = tier(self.chip, self.runtime, numbers, self.asked.level)
        attended_s = sum(float(s.calls) * s.of("attention") for s in self.stages)
        if self.asked.level == "tuned" or attended_s < ATTENDED * total_s:
            return near
        label = attended(*(self.labels[name] for name in ("runtime", "attends", "core")))
        return near if f"attends={label}" in _seen(numbers) else "kind"

    @property
    def _step(self) -> StageTimes:
        """The stage that is called most often; of equals the largest."""
        return max(self.stages, key=lambda s: (s.calls, sum(s.of(part) for part in s.parts)))


def computed_in(pipeline: Pipeline) -> str:
    """The number format of most of its operations; of weights alone the usual one."""
    work: dict[str, float] = {}
    for stage in pipeline.stages:
        for n, op in stage.ops:
            work[op.compute] = work.get(op.compute, 0.0) + stage.calls * n * float(op.flops)
    return max(work, key=lambda name: work[name]) if any(work.values()) else DEFAULT


def _alone(stage: StageTimes, pace: Pace) -> float:
    """Seconds of all calls of a stage."""
    return float(seconds((stage,), replace(pace, request_s=0.0)).total_s)


def _judged(name: str, mid: float, near: Nearness) -> Estimate:
    f = tier_factors(name, near)
    return Estimate(
        mid, mid * f.low, mid * f.high, "modelled" if near == "kind" else "calibrated", not f.tested
    )


def _job(job: Job, rate: Estimate, price: PriceRecord | None) -> tuple[JobRecord, float | None]:
    """How long a job takes at a rate of samples and what it costs by the second, and the probability that it is done
    by its deadline."""
    hours = rate.inverse(job.tokens / 3600.0)
    usd = None
    if price is not None:
        ends = (price.mid * hours.mid, price.low * hours.low, price.high * hours.high)
        usd = Figure(*ends, hours.basis, hours.provisional)
    due = job.deadline_s
    odds = None if due is None else chance(due / 3600.0, hours.mid, hours.low, hours.high)
    return JobRecord(figure(hours), usd), odds


def _per_1000(
    price: PriceRecord | None, rate: Estimate, replicas: int, wanted: float | None
) -> Figure | None:
    """Dollars per 1,000 samples: of the rate `wanted`, which is carried whatever the speed, else of full load."""
    if price is None:
        return None
    if wanted is not None:
        mid, low, high = (usd / (3.6 * wanted) for usd in (price.mid, price.low, price.high))
        return Figure(mid, low, high, rate.basis, rate.provisional)
    hour = 3600.0 * replicas / 1000.0
    ends = (
        price.mid / (rate.mid * hour), price.low / (rate.high * hour), price.high / (rate.low * hour),
    )  # fmt: skip
    return Figure(*ends, rate.basis, rate.provisional)


def report_of(
    pipeline: Pipeline, plans: Sequence[MediaPlan], refused: Sequence[RefusalRecord], terms: Terms
) -> MediaReport:
    """The answer about a pipeline."""
    return MediaReport(
        model=pipeline.name,
        unit=pipeline.unit,
        trained=pipeline.trained,
        parameters=pipeline.parameters,
        flops=pipeline.flops,
        settings=dict(pipeline.settings),
        plans=tuple(plans),
        refused=tuple(refused),
        assumptions=(*pipeline.assumptions, *recalled_words(p.chip for p in plans), *terms.said),
    )
