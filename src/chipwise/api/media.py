"""`plan`, `estimate`, `explain` and `fit` of models that generate no tokens: generators of images and video, encoders
of text, images and sound, recommenders, traced modules. This page is the architecture in order:

question -> pipeline -> chips with their runtime -> work on devices -> plans -> choice -> report
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING

from chipwise.api.loaded import find_chip
from chipwise.api.media_asked import Files, Sampling, made, own_model
from chipwise.api.media_changes import changes, quicker
from chipwise.api.media_choice import (
    OFFLOADS,
    SHORT,
    Found,
    answered_s,
    best_of,
    bill,
    fitting,
    numbered,
    priced,
    ranked,
    taken,
)
from chipwise.api.media_record import too_late
from chipwise.api.media_work import Place
from chipwise.api.planning import fed
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import load_chips, recalled_words
from chipwise.catalog.machine import copies, counted, kinds
from chipwise.catalog.offer import PRICE_NOISE
from chipwise.errors import ChipwiseError, InfeasibleError
from chipwise.report import figures
from chipwise.report.media import MediaExplainReport, MediaPlan, MediaReport, noticed
from chipwise.report.records import RefusalRecord
from chipwise.search.deployments import HOST_SHARE, few_of
from chipwise.search.space import FEW_WORDS, Limits
from chipwise.units import duration_above, format_bytes, format_number, format_seconds
from chipwise.workload.pipeline import Pipeline

if TYPE_CHECKING:
    from chipwise.api.placing import Terms

__all__ = [
    "answer",
    "estimate",
    "explain",
    "fit",
    "host_too_small",
    "plan",
    "refusal_of",
    "report_of",
    "wanted_of",
]

PLAUSIBLE = 100_000  # chips of a kind; the largest clusters of 2025 count 100,000 to 200,000 (xAI Colossus)
MOST_ADVICE = 2  # of software and formats that are named where chips do not carry what was asked


def answer(
    pipeline: Pipeline,
    terms: Terms | None = None,
    *,
    chips: Sequence[str] = (),
    asked: Sampling | None = None,
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
            plans.append(priced(pipeline, place, terms, asked or Sampling()))
        except ChipwiseError as error:
            if len(chips) == 1:
                raise
            refused.append(refusal_of(chip.id, error))
    return report_of(pipeline, plans, refused, terms)


def estimate(model: str, chip: str, terms: Terms, asked: Sampling) -> MediaReport:
    """One chip, or a group of them that shares the work, and its request; so many chips of servers (`8xh100`,
    `p5.48xlarge`) are filled with replicas, else there are as many as carry the rate asked. Raises `InfeasibleError`
    where the memory lacks, or those chips do not carry the rate."""
    return _estimated(own_model(model), chip, terms, asked)[0]


def explain(model: str, chip: str, terms: Terms, asked: Sampling) -> MediaExplainReport:
    """The same, and what would change it: software, format, batch, sharing, steps, each asked otherwise alone."""
    opened = own_model(model)
    report, place = _estimated(opened, chip, terms, asked)
    return MediaExplainReport.of(report, changes(opened, place, terms, asked, report.plans[0]))


def _estimated(model: str | Files, chip: str, terms: Terms, asked: Sampling) -> tuple[MediaReport, Place]:
    """The answer of `estimate`, and the chip with its runtime."""
    numbers = terms.parameters or shipped_parameters()
    several = counted(chip)
    place = Place.of(
        find_chip(several[0] if several else chip, terms.changes, terms.own_chips), terms, numbers
    )
    pipeline = place.pipeline(model, terms, asked)
    each = place.packages(asked.spread)
    replicas = copies(several[1], each, chip, "--spread") if several else None
    plan_ = priced(pipeline, place, terms, asked, replicas)
    if plan_.verdict == "no":
        short = plan_.short_bytes / 1e9
        name = f"{pipeline.name} on {each} x {plan_.chip}"
        if plan_.short_on_host_bytes:
            raise host_too_small(name, plan_.host_bytes, plan_.host_bytes - plan_.short_on_host_bytes)
        further = OFFLOADS[OFFLOADS.index(asked.offload) + 1 :] if place.runtime.offloads else ()
        ways = (priced(pipeline, place, terms, replace(asked, offload=way), replicas) for way in further)
        fits = next((p.offload for p in ways if p.verdict != "no"), None)
        hint = "a smaller --batch, a narrower --precision, or --spread over more devices"
        note = f"--offload {fits} fits" if fits else hint
        if short > SHORT * plan_.capacity_bytes / 1e9:
            raise InfeasibleError(f"{name}: {short:,.1f} GB short per device", note, reasons={"MEMORY": 1})
        near = f"less than {SHORT:.0%} of the memory, as this estimate of it may be off: times are as if it fitted"
        plan_ = replace(plan_, note=f"{note}; {near}")
    elif plan_.load is not None and plan_.load >= 1.0:
        enough = priced(pipeline, place, terms, asked).chips
        what = f"{plan_.chips:,}x {plan_.chip} carry {plan_.samples_per_s.mid:,.3g} {pipeline.unit}s/s"
        raise InfeasibleError(
            f"{pipeline.name}: {what}, less than --rate", f"--chip {enough}x{plan_.chip} is enough"
        )
    report = report_of(pipeline, [plan_], [], terms)
    return replace(report, rate_per_s=asked.rate_per_s), place


def host_too_small(name: str, waiting: float, room: float) -> InfeasibleError:
    """The refusal where `waiting` bytes are more than the `room` that a host has for them."""
    what = f"{format_bytes(waiting)} wait on the host, which has {format_bytes(room)} to spare"
    needed = math.ceil(waiting / HOST_SHARE / 1e9)
    hint = f"--host-memory {needed}GB or more, --offload none on a larger chip, or a narrower --precision"
    return InfeasibleError(f"{name}: {what}", hint, reasons={"HOST_MEMORY": 1})


def fit(model: str, terms: Terms, asked: Sampling, chips: Sequence[str]) -> MediaReport:
    """The memory of a request on every chip: as it is, else with weights kept by the host in part. Devices share it
    where `asked.spread` says so; so many chips (`8xh100`, `p5.48xlarge`) are filled with replicas, as in `estimate`."""
    numbers = terms.parameters or shipped_parameters()
    plans, refused, pipeline, opened = [], [], None, own_model(model)
    if isinstance(opened, Files):
        made(opened, terms, asked, timed=False)  # what is wrong with a file is wrong on every chip
    for chip, count in _groups(chips, terms):
        try:
            place = Place.of(chip, terms, numbers)
            pipeline = place.pipeline(opened, terms, asked, timed=False)
            replicas, each = None, place.packages(asked.spread)
            if count is not None:
                replicas = copies(count, each, f"{count}x{chip.id}", "--spread", field="chips")
            plans.append(fitting(pipeline, place, terms, asked, replicas))
        except ChipwiseError as error:
            if len(chips) == 1:
                raise
            refused.append(refusal_of(chip.id, error))
    if pipeline is None:
        raise InfeasibleError(
            f"{model}: none of these chips has known software for it", "chipwise chips list"
        )
    order = {"comfortable": 0, "tight": 1, "no": 2}
    plans.sort(key=lambda p: (order[p.verdict], p.offload != "none", p.chip, p.chips))
    return report_of(pipeline, plans, refused, terms)


def plan(model: str, terms: Terms, asked: Sampling, chips: Sequence[str], limits: Limits) -> MediaReport:
    """The cheapest way to make samples on each chip that keeps the latency and carries the rate, cheapest chip first;
    of about equal cost the simplest, and of chips that nobody named no more than a few of cards made for desks, as for
    language models.

    Tries batches, counts of devices that share a denoising step and a sequence (up to `limits.max_chips`, else
    eight), and keeping parts on the host; all replicas keep `limits` of chips, watts and dollars per hour, for which a
    price must be known. Without a rate a plan is one replica, ranked by dollars per sample; without a price, by time,
    of chips that the user has (`limits.have`) and a rate by how many it takes.
    Raises `InfeasibleError` where nothing keeps the target and the limits.
    """
    numbers = terms.parameters or shipped_parameters()
    wanted, opened = _chips(chips, terms), own_model(model)
    if not chips and asked.task != "local":
        limits = replace(limits, few=few_of(wanted, terms.basis))
    limits = fed(limits, wanted, numbers)
    shown = made(opened, terms, asked) if isinstance(opened, Files) else None
    found: list[Found] = []
    refused: list[RefusalRecord] = []
    for chip in wanted:
        try:
            found.append(best_of(opened, chip, terms, asked, limits, numbers))
        except ChipwiseError as error:
            if len(chips) == 1:
                raise
            refused.append(refusal_of(chip.id, error))
    shown = next((one.pipeline for one in reversed(found)), shown) or made(opened, terms, asked)
    best = [one.best for one in found if one.best is not None]
    if not best:
        raise _no_plan(shown, found, asked, limits, _owned(model, terms, asked, limits))
    plans = numbered(ranked(best, asked, PRICE_NOISE), asked)
    refused += [one.refusal for one in found if one.refusal is not None]
    report = wanted_of(asked, report_of(shown, plans, refused, terms), owned=bool(limits.have))
    first = next(chip for chip in wanted if chip.id == plans[0].chip)
    taken_up = replace(terms, runtime=plans[0].runtime)
    report = replace(
        report, changes=quicker(opened, Place.of(first, taken_up, numbers), taken_up, asked, plans[0])
    )
    said = [FEW_WORDS] if limits.few else []
    if plans[0].chips > PLAUSIBLE and not limits.have:
        what = f"{plans[0].chips:,} chips of a kind are more than the {PLAUSIBLE:,} of the largest clusters"
        said.append(f"{what}: a size, and nothing that can be rented")
    return replace(report, assumptions=(*report.assumptions, *said))


def _owned(model: str, terms: Terms, asked: Sampling, limits: Limits) -> MediaReport | None:
    """What chips that one has carry within the targets; None where there are none, or they carry nothing."""
    from chipwise.api.media_owned import most

    if not limits.have:
        return None
    with suppress(InfeasibleError):
        return most(model, terms, replace(asked, rate_per_s=None, curve=None, spare=0), limits.have)
    return None


def _no_plan(
    shown: Pipeline, found: Sequence[Found], asked: Sampling, limits: Limits, owned: MediaReport | None
) -> InfeasibleError:
    """Why no chip has a plan: its limits, the targets, or memory; `owned`: what chips that one has carry instead."""
    beyond = [one.beyond for one in found if one.beyond is not None]
    if beyond:
        near = min(beyond, key=partial(bill, asked=asked))
        if limits.have:
            return _too_few(shown, near, asked, owned)
        what = f"no plan within the limits, the nearest is {near.chip}, which {taken(near, asked)}"
        return InfeasibleError(f"{shown.name}: {what}", _either([*_limits(asked, limits), *_targets(asked)]))
    fits = (one.surest for one in found if one.surest is not None)
    surest = min(fits, key=partial(answered_s, asked=asked), default=None)
    if surest is None:
        sizes = [f"a smaller --{name}" for name in ("batch", "resolution", "frames") if getattr(asked, name)]
        hint = _either([*sizes, "other chips", "a narrower --precision"])
        return InfeasibleError(f"{shown.name}: no chip has the memory", hint)
    if asked.job is not None:
        return InfeasibleError(*too_late(shown.name, surest, asked))
    if asked.latency_s is None:
        return InfeasibleError(f"{shown.name}: no chip keeps the target", _either(_targets(asked)))
    waits = "" if not noticed(surest) else f" after waiting {format_seconds(surest.wait_s or 0.0)}"
    within = f"within {format_seconds(asked.latency_s)} with {surest.chance or 0.0:.0%} probability"
    fewer = ["fewer --steps"] if shown.settings.get("steps", 0.0) > 1.0 else []
    return InfeasibleError(
        f"{shown.name}: no chip keeps the target, the nearest is {surest.chips:,}x {surest.chip} with "
        f"{surest.runtime}, which takes {figures.seconds(surest.latency_s)}{waits}: {within}, "
        f"{asked.confidence:.0%} asked",
        _either([f"--e2e {duration_above(answered_s(surest, asked))}", *fewer, "a lower --confidence"]),
    )


def _too_few(shown: Pipeline, near: MediaPlan, asked: Sampling, owned: MediaReport | None) -> InfeasibleError:
    """Chips that one has are too few: what they carry, how many it takes, and what else they could be asked."""
    takes = f"{near.chips:,}x {near.chip} with {near.runtime}"
    if asked.rate_per_s is None or owned is None:
        return InfeasibleError(
            f"{shown.name}: it takes {takes}, more than there are", _either(_targets(asked))
        )
    kinds_ = ", ".join(f"{p.chips:,}x {p.chip} with {p.runtime}" for p in owned.plans)
    every = owned.together or owned.plans[0].samples_per_s
    verb = "carries" if sum(p.chips for p in owned.plans) == 1 else "carry"
    by, time = figures.per(min(every.mid, asked.rate_per_s))
    carried, wanted = (f"{format_number(r * by)} {shown.unit}s/{time}" for r in (every.mid, asked.rate_per_s))
    faster = [f"{c.options} for x{c.more_per_chip:.1f} {shown.unit}s" for c in owned.changes[:MOST_ADVICE]]
    hint = _either([*_targets(asked), *faster, "more chips"])
    return InfeasibleError(f"{shown.name}: {kinds_} {verb} {carried}, {wanted} take {takes}", hint)


def _limits(asked: Sampling, limits: Limits) -> list[str]:
    """The limits that were said, as what else could be."""
    said = {
        "a higher --max-chips": limits.max_chips,
        "a higher --max-usd-per-h": limits.max_usd_per_h,
        "a higher --max-watts": limits.max_watts,
        "more of them in --chips": limits.at_most,
        "chips named by --chips": limits.few,
        "a higher --max-usd": asked.job and asked.job.max_usd,
    }
    return [words for words, given in said.items() if given]


def _targets(asked: Sampling) -> list[str]:
    """The targets that were said, as what else could be."""
    sure = asked.latency_s is not None or (
        asked.job is not None and (asked.job.deadline_s or asked.job.max_usd)
    )
    said = {
        "lower rates in --day": asked.curve,
        "a lower --rate": asked.rate_per_s if asked.curve is None else None,
        "a later --e2e": asked.latency_s,
        "a later --deadline": asked.job and asked.job.deadline_s,
        "a lower --confidence": sure,
        "fewer --spare": asked.spare,
    }
    return [words for words, given in said.items() if given]


def _either(ways: Sequence[str]) -> str:
    """Ways out as one sentence."""
    return ", or ".join(filter(None, (", ".join(ways[:-1]), *ways[-1:])))


def refusal_of(chip: str, error: ChipwiseError) -> RefusalRecord:
    """Why a chip cannot run it, without the chip's name before the reason."""
    return RefusalRecord(chip, "NO_RUNTIME", str(error).removeprefix(f"{chip}: "))


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
