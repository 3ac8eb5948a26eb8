"""What is answered of a model that generates no tokens where no plan keeps what was asked: what comes nearest, and the
smallest changes that work, found by asking again."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial

from chipwise.api.media_asked import Files, Sampling
from chipwise.api.media_changes import NARROW, QUALITY
from chipwise.api.media_choice import NetworkChoice, Question, cautious_usd, taken
from chipwise.api.media_record import too_late
from chipwise.api.media_ways import COUNTS, OFFLOADS, Way, offloads
from chipwise.api.media_work import Place, Work, family_of
from chipwise.api.placing import Terms
from chipwise.api.remedies import answered, down, either, most, steps, up, working
from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import load_chips
from chipwise.errors import InfeasibleError
from chipwise.report import figures
from chipwise.report.media import MediaPlan, noticed
from chipwise.search.deployments import HOST_SHARE
from chipwise.search.space import Limits
from chipwise.units import duration_above, format_bytes, format_number, format_seconds, typed_s
from chipwise.workload.media.assemble import TEXT, entry, names
from chipwise.workload.media.layers import get_precision
from chipwise.workload.pipeline import Pipeline

SAME = ("text", "denoiser", "vae", "frames", "image")  # of one distilled to fewer steps
SIZE = ("width", "height")
"""Its own size, where none was asked for."""
ASKS = 5  # times a limit is made later, and larger chips that are tried
HALVED = 12  # times that a rate is halved, after which none lower is looked for
PARTS = 1 << 16  # of a rate, in which a lower one is looked for: more than `HALVED` and `most` can halve
LATER = 1.1  # times a limit that does not work yet, that is asked next
AGAIN = "recompute"  # setting: what a training step runs again
FEWEST = 8  # part of the steps, below which nobody generates


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


def no_plan(question: Question, choice: NetworkChoice, shown: Pipeline) -> InfeasibleError:
    """Why no chip has a plan (its limits, the targets, or memory), and what works."""
    asked, limits = question.asked, question.limits
    near, surest = choice.nearest(), choice.soonest()
    if near is not None and limits.have:
        return _too_few(question, shown, near)
    if near is not None:
        p = near.plan()
        what = f"no plan within the limits, the nearest is {p.chip}, which {taken(p, asked)}"
        ways = [*_limits(asked, limits, near), *_less(question, near)]
        return InfeasibleError(f"{shown.name}: {what}", either([*ways, *_targets(asked)]))
    if surest is None:
        return _no_room(question, choice, shown)
    p = surest.plan()
    if asked.job is not None:
        what, hint = too_late(shown.name, p, asked)
        return InfeasibleError(what, hint, reasons={"SLO": 1})
    if asked.latency_s is None:
        return InfeasibleError(f"{shown.name}: no chip keeps the target", either(_targets(asked)))
    waits = "" if not noticed(p) else f" after waiting {format_seconds(p.wait_s or 0.0)}"
    chance = p.chance or 0.0
    surely = f" with {chance:.0%} probability" if chance >= NEVER else ""
    within = f"{'within' if surely else 'never within'} {format_seconds(asked.latency_s)}{surely}"
    return InfeasibleError(
        f"{shown.name}: no chip keeps the target, the nearest is {p.chips:,}x {p.chip} with "
        f"{p.runtime}, where a request takes {figures.seconds(p.latency_s)}{waits}: {within}, "
        f"{asked.confidence:.0%} asked",
        either([*_sooner(question, surest), "a lower --confidence"]),
        reasons={"SLO": 1},
    )


NEVER = 0.005
"""probability: below it a target is never kept. Exact: whole percent, as they are printed."""


def _no_room(question: Question, choice: NetworkChoice, shown: Pipeline) -> InfeasibleError:
    """The refusal where neither devices nor hosts have the memory."""
    asked = question.asked
    if not choice.tried:
        return InfeasibleError(f"{shown.name}: none of these chips has known software for it", "chipwise chips list")
    hosted = [one.hosted for one in choice.tried if one.hosted is not None]
    if hosted and len(choice.tried) == 1:
        d = hosted[0].doing
        return host_too_small(choice.tried[0].chip.id, d.waiting_bytes, d.work.host_capacity_bytes)
    sizes = [f"a smaller --{name}" for name in ("batch", "resolution", "frames") if getattr(asked, name)]
    said = [*_smaller(question, choice), *sizes, "other chips", "a narrower --precision"]
    return InfeasibleError(f"{shown.name}: no chip has the memory", either(said), reasons={"MEMORY": 1})


def _too_few(question: Question, shown: Pipeline, near: Way) -> InfeasibleError:
    """Chips that one has are too few: what they carry, how many it takes, and what else they could be asked."""
    asked, p = question.asked, near.plan()
    takes = f"{p.chips:,}x {p.chip} with {p.runtime}"
    chips = [question.terms.chip(name) for name in question.limits.have]
    free = replace(asked, rate_per_s=None, curve=None, spare=0)
    choice, _ = replace(question, asked=free, owned=True).choice(chips)
    ways = choice.best_by()
    if asked.rate_per_s is None or not ways:
        return InfeasibleError(f"{shown.name}: it takes {takes}, more than there are", either(_targets(asked)))
    plans = [way.plan() for way in ways]
    kinds = ", ".join(f"{p.chips:,}x {p.chip} with {p.runtime}" for p in plans)
    every = sum(p.samples_per_s.mid for p in plans)
    by, time = figures.per(min(every, asked.rate_per_s))
    carried, wanted = (f"{format_number(r * by)} {shown.unit}s/{time}" for r in (every, asked.rate_per_s))
    hint = either([*_less(question, near), *_targets(asked), "more chips"])
    what = f"{kinds} can deliver {carried}, not {wanted}: that takes {takes}"
    return InfeasibleError(f"{shown.name}: {what}", hint)


def _kept(near: Way, question: Question) -> bool:
    """Whether a question has a plan on the chip of a way that keeps what it asks."""
    return question.choice([near.place.chip])[0].kept


def _sooner(question: Question, near: Way) -> Iterator[str]:
    """Changes of a question whose limit is missed, that were tried on the chip which comes nearest."""
    kept, changed = partial(_kept, near), partial(_asking, question)
    late = near.doing.speed.latency.mid * near.doing.speed.within(question.asked.confidence)
    later = steps(late, LATER, ASKS)
    yield from working(kept, ((f"--e2e {duration_above(s)}", changed(latency_s=typed_s(s))) for s in later))
    all_ = int(near.doing.work.pipeline.settings.get("steps", 0.0))
    fewer = most(max(all_ // FEWEST, 1), all_, lambda n: bool(answered(kept, changed(steps=n))))
    yield from [] if fewer is None else [f"--steps {fewer} ({QUALITY})"]
    yield from working(kept, _distilled(question))
    yield from working(kept, _narrower(question, near))


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


def _less(question: Question, near: Way) -> Iterator[str]:
    """Less of what was asked, that was tried on the chip which comes nearest: a lower rate, a narrower format."""
    kept, rate = partial(_kept, near), question.asked.rate_per_s
    if rate is not None and question.asked.curve is None:

        @cache
        def carried(parts: int) -> bool:
            return bool(answered(kept, _asking(question, rate_per_s=rate * parts / PARTS)))

        low = next((n for i in range(1, HALVED) if carried(n := PARTS >> i)), 0)
        by, time = figures.per(rate)
        if low and (parts := most(low, 2 * low, carried)):
            yield f"--rate {down(rate * parts / PARTS * by)}/{time}"
    yield from working(kept, _narrower(question, near))


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
        larger = sorted(priced, key=_bytes)[:ASKS]
        yield from working(fits, ((f"--chips {chip.id}", (asked, chip)) for chip in larger))


def _bytes(chip: Chip) -> float:
    return chip.memory.label_bytes or 0.0


def _usd(usd: float | None) -> str:
    return "(no price is known)" if usd is None or not math.isfinite(usd) else up(usd)


def _limits(asked: Sampling, limits: Limits, near: Way) -> list[str]:
    """The limits that the nearest plan breaks, as it would keep them together."""
    p, chip = near.plan(), near.place.chip.id
    usd = None if p.price is None else p.price.mid
    total = None if asked.job is None or usd is None else cautious_usd(near, usd)
    broken = {
        f"--max-chips {p.chips}": limits.max_chips is not None and p.chips > limits.max_chips,
        f"--max-usd-per-h {_usd(usd)}": limits.max_usd_per_h is not None
        and (usd is None or usd > limits.max_usd_per_h),
        "a higher --max-watts": bool(limits.fed) and p.chips > limits.fed.get(chip, 0),
        f"more of them in --chips, as in {p.chips}x{chip}": p.chips > limits.at_most.get(chip, math.inf),
        f"chips named by --chips, as in {chip}": chip in limits.few and p.chips > Limits(few=limits.few).chips(chip),
        f"--max-usd {_usd(total)}": asked.job is not None
        and asked.job.max_usd is not None
        and (total is None or total > asked.job.max_usd),
    }
    words = [words for words, holds in broken.items() if holds]
    return [" with ".join(words)] if words else []


def _targets(asked: Sampling) -> list[str]:
    """The targets that were said, as what else could be."""
    sure = asked.latency_s is not None or (asked.job is not None and (asked.job.deadline_s or asked.job.max_usd))
    said = {
        "lower rates in --day": asked.curve,
        "a later --e2e": asked.latency_s,
        "a later --deadline": asked.job and asked.job.deadline_s,
        "a lower --confidence": sure,
        "fewer --spare": asked.spare,
    }
    return [words for words, given in said.items() if given]
