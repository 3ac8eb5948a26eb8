"""What is answered of a model that generates no tokens where no plan keeps what was asked: what comes nearest, and the
smallest changes that work, found by asking again."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from chipwise.api.infeasible import over_limits
from chipwise.api.media_asked import Files, Sampling
from chipwise.api.media_changes import NARROW, QUALITY
from chipwise.api.media_choice import NetworkChoice, Question, answered_s, cautious_usd
from chipwise.api.media_record import Doing
from chipwise.api.media_ways import COUNTS, OFFLOADS, Way, offloads
from chipwise.api.media_work import Place, Work, family_of
from chipwise.api.placing import Terms
from chipwise.api.remedies import Again, Unmet, answered, either, most, working, works
from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import load_chips
from chipwise.errors import InfeasibleError
from chipwise.parallel.layout import Reason
from chipwise.report import figures
from chipwise.report.media import MediaPlan, noticed
from chipwise.search.choose import Refusal
from chipwise.search.deployments import HOST_SHARE
from chipwise.search.reach import Reach
from chipwise.units import duration_words, format_bytes, format_seconds
from chipwise.workload.media.assemble import TEXT, entry, names
from chipwise.workload.media.layers import get_precision
from chipwise.workload.program import Program

SAME = ("text", "denoiser", "vae", "frames", "image")  # of one distilled to fewer steps
SIZE = ("width", "height")
"""Its own size, where none was asked for."""
LARGER = 5  # chips with more memory that are tried
AGAIN = "recompute"  # setting: what a training step runs again
FEWEST = 8  # part of the steps, below which nobody generates


PLAUSIBLE = 100_000
"""count: chips of a kind, of which a plan takes no more. Source: the largest clusters of 2025 count 100,000 to 200,000
(xAI Colossus)."""


def host_too_small(name: str, waiting: float, room: float) -> InfeasibleError:
    """The refusal where `waiting` bytes are more than the `room` that a host has for them."""
    what = f"{format_bytes(waiting)} wait on the host, which has {format_bytes(room)} to spare"
    needed = math.ceil(waiting / HOST_SHARE / 1e9)
    hint = f"--host-memory {needed}GB or more, --offload none on a larger chip, or a narrower --precision"
    return InfeasibleError(f"{name}: {what}", hint, reasons={"HOST_MEMORY": 1})


def roomier(place: Place, model: str | Files, terms: Terms, asked: Sampling, chips: int | None) -> Iterator[str]:
    """The smallest changes with which devices hold what they lack memory for, of each kind one, tried on `chips` (None:
    as many as it takes): what waits on the host; of training layers that are run again, weights in parts on devices
    that share a batch, or a sequence."""

    def fits(changed: Sampling) -> bool:
        if chips is not None and chips % place.packages(changed.spread):
            return False
        work = Work.of(place.pipeline(model, terms, changed), place, terms, changed)
        return work.fits(place.numbers) and work.waiting_bytes(place.numbers, 1) <= work.host_capacity_bytes

    if not asked.training:
        yield from working(fits, _lighter(place, model, terms, asked))
        return
    again = replace(asked, settings={**asked.settings, AGAIN: "full"})
    told = f"--settings {_settings(again)}"
    found = working(fits, [(told, again)])
    axes = ("dp", "ulysses") if place.pipeline(model, terms, asked).attends else ("dp",)
    yield from found or dict.fromkeys(working(fits, *(_parts(asked, again, told, axis) for axis in axes)))


def _lighter(place: Place, model: str | Files, terms: Terms, asked: Sampling) -> Iterator[tuple[str, Sampling]]:
    """Ways of asking that take less of the memory, the quicker first, with the options that say them: encoders of text
    in the few bits of the network that they steer, weights that wait on the host."""
    at = OFFLOADS.index(asked.offload)
    further = OFFLOADS[at:] if offloads(place, asked) else OFFLOADS[at : at + 1]
    few = TEXT not in asked.settings and family_of(model) == "diffusion" and isinstance(model, str)
    few = few and terms.precision is not None and get_precision(terms.precision).stored.bits < 16
    for way in further:
        said = [f"--offload {way}"] if way != asked.offload else []
        if said:
            yield " ".join(said), replace(asked, offload=way)
        if few and way != OFFLOADS[-1]:
            settings = {**asked.settings, TEXT: str(terms.precision)}
            words = [*said, f"--settings {TEXT}={terms.precision}"]
            yield " ".join(words), replace(asked, offload=way, settings=settings)


def _parts(asked: Sampling, again: Sampling, told: str, axis: str) -> Iterator[tuple[str, Sampling]]:
    """A training step with weights in parts on ever more devices that share a batch (`dp`) or a sequence, each as it is
    asked and with layers run `again`, as `told`."""
    most_ = (asked.batch or 1) if axis == "dp" else max(COUNTS)
    counts = (n for n in COUNTS if n <= most_ and n % getattr(asked.spread, axis) == 0)
    for spread in (asked.spread, *(replace(asked.spread, **{axis: n}) for n in counts)):
        if spread.devices > 1:
            parts = replace(spread, fsdp=1)
            yield f"--spread {parts.label()}", replace(asked, spread=parts)
            yield f"{told} --spread {parts.label()}", replace(again, spread=parts)


def _settings(asked: Sampling) -> str:
    """Settings as they are asked for."""
    return ",".join(f"{name}={value}" for name, value in asked.settings.items())


def short_plans(choice: NetworkChoice) -> list[MediaPlan]:
    """Where devices lack memory in every way, by less than the estimate of it may be wrong: what would run there if it
    fitted, the least short first; else none."""
    if choice.ways:
        return []
    short = [(one.short, p) for one in choice.tried if one.short and (p := one.short.plan())]
    found = sorted((p for _, p in short), key=lambda p: p.short_bytes / p.capacity_bytes)
    return [replace(p, rank=i + 1) for i, p in enumerate(found)]


def no_plan(question: Question, choice: NetworkChoice, shown: Program) -> InfeasibleError:
    """Why no chip has a plan (memory, its limits, or the targets), and what works."""
    name, asked = shown.name, question.asked
    if not choice.ways:
        return _no_room(question, choice, shown)
    beyond, unmet = choice.nearest(), _unmet(question, choice)
    if beyond is not None:
        what, hint = over_limits(unmet, shown.unit)
        narrow = working(partial(_kept, beyond), _narrower(question, beyond))
        ways, reason = [*unmet.less(), *narrow, *unmet.more(), *unmet.later()], "BUDGET"
        return InfeasibleError(f"{name}: {what}", works(ways) if ways else hint, reasons={reason: 1})
    surest = choice.soonest()
    assert surest is not None  # there is a way
    ways = [*unmet.more(), *unmet.later(), *_sooner(question, surest)]
    what, hint = _too_late(surest.plan(), asked), "a later target, or more --chips"
    return InfeasibleError(f"{name}: {what}", works(ways) if ways else hint, reasons={"SLO": 1})


def _too_late(p: MediaPlan, asked: Sampling) -> str:
    """That no chip keeps the target or the deadline, and how near the way comes that is done first."""
    due_s = asked.latency_s if asked.job is None else asked.job.deadline_s
    if due_s is None:
        return "no chip keeps the target"
    chance = p.chance or 0.0
    surely = f" with {chance:.0%} probability" if chance >= NEVER else ""
    limit = format_seconds(due_s) if asked.job is None else duration_words(due_s)
    within = f"{'within' if surely else 'never within'} {limit}{surely}, {asked.confidence:.0%} asked"
    if p.job is not None:
        done = duration_words(3600.0 * p.job.hours.mid)
        what = f"no chip keeps the deadline of {limit}, the nearest is {p.machines}"
        return f"{what}, which is done in {done}: {within}"
    waits = "" if not noticed(p) else f" after waiting {format_seconds(p.wait_s or 0.0)}"
    takes = f"where a request takes {figures.seconds(p.latency_s)}{waits}"
    return f"no chip keeps the target, the nearest is {p.machines} with {p.runtime}, {takes}: {within}"


def _unmet(question: Question, choice: NetworkChoice) -> Unmet[Sampling]:
    """The question as it is asked again of the chips that were tried."""
    asked, limits, beyond = question.asked, question.limits, choice.nearest()
    chips = {one.chip.id: one.chip for one in choice.tried}

    def fewest(again: Again[Sampling]) -> int | None:
        changed = replace(question, asked=again.load, limits=again.limits)
        found, _ = changed.choice([chips[again.chip]])
        return found.best_by()[0].doing.chips if found.kept else None

    near = [_near(question, replace(choice, tried=(one,))) for one in choice.tried if one.ways]
    plan = None if beyond is None else beyond.plan()
    usd = math.inf if beyond is None or plan is None or plan.price is None else cautious_usd(beyond, plan.price.mid)
    return Unmet(asked, limits, near, fewest, plan, usd, asked.curve is not None)


def _near(question: Question, alone: NetworkChoice) -> Refusal:
    """What is in reach on one chip, and what stands in the way: within the limits so many requests a second, or the
    job as soon as anything does it."""
    asked, chip, limits = question.asked, alone.tried[0].chip, question.limits
    basis = question.terms.basis(chip.id)
    affordable = limits.max_usd_per_h is None or basis is not None
    most = min(limits.paid({chip.id: basis}).chips(chip.id), PLAUSIBLE) if affordable else 0.0
    sure = [way.doing for way, kept in zip(alone.ways, alone.sure, strict=True) if kept]
    soonest_s = min(map(answered_s, alone.ways))
    if asked.job is not None:
        carried = asked.job.tokens / soonest_s
    else:
        carried = max((_carried(d, int(most // d.work.packages) - asked.spare) for d in sure), default=0.0)
    return Refusal(chip.id, Reason.BUDGET if sure else Reason.SLO, Reach(soonest_s, 0.0, 0.0, carried))


NEVER = 0.005
"""probability: below it a target is never kept. Exact: whole percent, as they are printed."""


def _no_room(question: Question, choice: NetworkChoice, shown: Program) -> InfeasibleError:
    """The refusal where neither devices nor hosts have the memory."""
    asked = question.asked
    if not choice.tried:
        return InfeasibleError(f"{shown.name}: none of these chips has known software for it", "chipwise chips list")
    hosted = [one.hosted for one in choice.tried if one.hosted is not None]
    if hosted and len(choice.tried) == 1:
        d = hosted[0].doing
        return host_too_small(choice.tried[0].chip.id, d.waiting_bytes, d.work.host_capacity_bytes)
    sizes = [f"a smaller --{name}" for name in ("batch", "resolution", "frames") if getattr(asked, name)]
    ways = [*_smaller(question, choice)]
    hint = works(ways) if ways else either([*sizes, "other chips", "a narrower --precision"])
    return InfeasibleError(f"{shown.name}: no chip has the memory", hint, reasons={"MEMORY": 1})


def _kept(near: Way, question: Question) -> bool:
    """Whether a question has a plan on the chip of a way that keeps what it asks."""
    return question.choice([near.place.chip])[0].kept


def _carried(d: Doing, count: int) -> float:
    """Requests a second that so many replicas carry, which wait the less for each other the more they are."""
    return count * replace(d, replicas=replace(d.replicas, count=count)).each_per_s if count > 0 else 0.0


def _sooner(question: Question, near: Way) -> Iterator[str]:
    """What takes less time, and was tried on the chip which comes nearest: fewer steps, a network of fewer, a narrower
    format."""
    kept, changed = partial(_kept, near), partial(_asking, question)
    all_ = int(near.doing.work.pipeline.settings.get("steps", 0.0))
    fewer = most(max(all_ // FEWEST, 1), all_, lambda n: bool(answered(kept, changed(steps=n))))
    yield from [] if fewer is None else [f"--steps {fewer} ({QUALITY})"]
    yield from working(kept, _distilled(question), _narrower(question, near))


def _distilled(question: Question) -> Iterator[tuple[str, Question]]:
    """Networks of the same parts that were trained to take fewer steps, those of the same size first; of another size
    where none was asked for."""
    if not isinstance(question.model, str) or family_of(question.model) != "diffusion":
        return
    own = entry(question.model).values
    asked = replace(question.asked, steps=None, guidance=None)
    other: list[tuple[str, Question]] = []
    for name in names():
        found = entry(name).values
        if found.get("steps", 0) >= own.get("steps", 0) or any(found.get(k) != own.get(k) for k in SAME):
            continue
        taken = f"{name}, which takes {found['steps']} step{'s' * (found['steps'] > 1)}"
        instead = replace(question, model=name, asked=asked)
        if all(found.get(k) == own.get(k) for k in SIZE):
            yield f"{taken} ({QUALITY})", instead
        elif question.asked.resolution is None:
            size = "x".join(f"{found[k]:g}" for k in SIZE)
            other.append((f"{taken} at {size} ({QUALITY})", instead))
    yield from other


def _asking(question: Question, **changes: object) -> Question:
    return replace(question, asked=replace(question.asked, **changes))  # type: ignore[arg-type]


def _narrower(question: Question, near: Way) -> Iterator[tuple[str, Question]]:
    """A narrower format, where none was asked for."""
    narrow = next((name for name in NARROW if name in near.place.chip.matrix), None)
    if question.terms.precision is None and narrow is not None:
        terms = replace(question.terms, precision=narrow)
        yield f"--precision {narrow} ({QUALITY})", replace(question, terms=terms)


def _smaller(question: Question, choice: NetworkChoice) -> Iterator[str]:
    """What has room: a smaller batch, the smallest chip for rent that holds it."""
    asked, first = question.asked, choice.tried[0].chip

    def fits(there: tuple[Sampling, Chip]) -> bool:
        asked, chip = there
        return bool(_asking(question, batch=asked.batch).space(chip).tried(asked, question.numbers).ways)

    batch = asked.batch or 1
    smaller = most(1, batch, lambda n: bool(answered(fits, (replace(asked, batch=n), first))))
    yield from [] if smaller is None else [f"--batch {smaller} on {first.id}"]
    if not question.limits.have:
        room = max(_bytes(one.chip) for one in choice.tried)
        priced = (c for c in load_chips().values() if _bytes(c) > room and question.terms.basis(c.id))
        larger = sorted(priced, key=_bytes)[:LARGER]
        yield from working(fits, ((f"--chips {chip.id}", (asked, chip)) for chip in larger))


def _bytes(chip: Chip) -> float:
    return chip.memory.label_bytes or 0.0
