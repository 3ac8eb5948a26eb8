"""What would change a plan of a model that generates no tokens: the same question with one thing asked otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from chipwise.api.media_asked import Files, Sampling, one_size
from chipwise.api.media_ways import OFFLOADS, priced
from chipwise.api.media_work import Place, entry_of, family_of
from chipwise.catalog.media_runtime import MediaRuntime
from chipwise.catalog.preferences import preferences
from chipwise.catalog.software import all_software
from chipwise.errors import ChipwiseError
from chipwise.parallel.layout import ONE, Spread
from chipwise.report.media import MediaChange, MediaPlan
from chipwise.values import dataclass

if TYPE_CHECKING:
    from chipwise.api.placing import Terms

LARGER = 4  # times the batch that is tried
NARROW = ("fp8", "int8")  # formats of products that are tried, the first that the chip multiplies
QUALITY = "quality not assessed"


@dataclass(frozen=True)
class _Change:
    """One thing asked otherwise: the options that ask for it, what they mean, under which terms."""

    options: str
    words: str
    asked: Sampling
    terms: Terms


def quicker(
    model: str | Files, place: Place, terms: Terms, asked: Sampling, plan: MediaPlan
) -> tuple[MediaChange, ...]:
    """Other software and formats with which the chips of a plan make clearly more of the same samples at full load."""
    way = next(way for way in OFFLOADS if way == plan.offload)
    batch = None if one_size(model) else plan.batch
    same = replace(asked.unbound, batch=batch, spread=Spread.of(plan.spread), offload=way)
    now = priced(place.pipeline(model, terms, same), place, terms, same)
    found = _changes(_software(model, place, terms, same), model, place, now)
    return tuple(change for change in found if change.more_per_chip > 1.0 + preferences().worth)


def changes(
    model: str | Files, place: Place, terms: Terms, asked: Sampling, plan: MediaPlan
) -> tuple[MediaChange, ...]:
    """Each change of a plan that fits and is worth it, those that a chip makes most more samples with first; every
    figure is the answer to the question with the change's options added."""
    return _changes(_tried(model, place, terms, asked, plan), model, place, plan)


def _changes(tried: Iterable[_Change], model: str | Files, place: Place, plan: MediaPlan) -> tuple[MediaChange, ...]:
    found = []
    for change in tried:
        try:
            there = Place.of(place.chip, change.terms, place.numbers)
            pipeline = there.pipeline(model, change.terms, change.asked)
            other = priced(pipeline, there, change.terms, change.asked)
        except ChipwiseError:  # what cannot be done so changes nothing
            continue
        rate = (other.samples_per_s.mid / other.chips) / (plan.samples_per_s.mid / plan.chips)
        ratios = rate, plan.latency_s.mid / other.latency_s.mid, plan.memory_bytes / other.memory_bytes
        if other.verdict != "no" and max(abs(ratio - 1.0) for ratio in ratios) > preferences().noticed:
            found.append(
                MediaChange(
                    change.options,
                    change.words,
                    other.chips // other.replicas,
                    other.batch,
                    other.latency_s,
                    other.memory_bytes,
                    rate,
                    other.usd_per_1000,
                )
            )
    return tuple(sorted(found, key=lambda change: -change.more_per_chip))


def _software(model: str | Files, place: Place, terms: Terms, asked: Sampling) -> Iterator[_Change]:
    """Other software, and formats of products."""
    for runtime in _others(model, place):
        yield _Change(f"--runtime {runtime.id}", runtime.name, asked, replace(terms, runtime=runtime.id))
    if asked.level == "stock" and not place.runtime.server:
        tuned = replace(asked, level="tuned")
        yield _Change("--level tuned", "as benchmark submissions run it", tuned, terms)
    narrow = next((name for name in NARROW if name in place.chip.matrix), None)
    if terms.precision is None and narrow is not None:
        yield from _narrowed(model, place, terms, asked, narrow)


def _narrowed(model: str | Files, place: Place, terms: Terms, asked: Sampling, narrow: str) -> Iterator[_Change]:
    """Products in a narrower format, of the software or of another that folds conversions."""
    words = f"products in {narrow}, {QUALITY}"
    if place.runtime.takes(narrow):
        yield _Change(f"--precision {narrow}", words, asked, replace(terms, precision=narrow))
    folds = next((r.id for r in _able(model, place) if r.folds and r.takes(narrow)), None)
    if folds is not None and not (place.runtime.folds and place.runtime.takes(narrow)):
        both = replace(terms, precision=narrow, runtime=folds)
        how = "" if place.runtime.folds else ", conversions folded into other kernels"
        yield _Change(f"--runtime {folds} --precision {narrow}", f"{words}{how}", asked, both)


def _able(model: str | Files, place: Place) -> Iterator[MediaRuntime]:
    """Software that runs a network on the chip, of a server other servers."""
    family, entry = family_of(model), entry_of(model)
    for runtime in all_software(MediaRuntime).values():
        able = runtime.runs_on(place.chip) and runtime.runs(family) and runtime.has(entry)
        if able and place.runtime.server <= runtime.server:
            yield runtime


def _others(model: str | Files, place: Place) -> Iterator[MediaRuntime]:
    """Other software that runs a network on the chip as it is or exported, one of each pace."""
    paces = {place.runtime.pace}
    for runtime in _able(model, place):
        if not runtime.rewritten and runtime.pace not in paces:
            paces.add(runtime.pace)
            yield runtime


def _tried(model: str | Files, place: Place, terms: Terms, asked: Sampling, plan: MediaPlan) -> Iterator[_Change]:
    """Software, and the request asked otherwise."""
    yield from _software(model, place, terms, asked)
    pipeline = place.pipeline(model, terms, asked)
    settings = pipeline.settings
    more = LARGER * plan.batch
    yield _Change(
        f"--batch {more}",
        f"{more} {'windows' if plan.parts else f'{pipeline.unit}s'} at once",
        replace(asked, batch=more),
        terms,
    )
    if asked.spread == ONE:
        ways = {"ulysses=2": Spread(ulysses=2)} if pipeline.attends else {}
        if settings.get("passes", 1) > 1:
            ways["cfg=2"] = Spread(cfg=2)
        for label, spread in ways.items():
            yield _Change(f"--spread {label}", "two devices share it", replace(asked, spread=spread), terms)
    elif asked.spread.devices > 1:
        yield _Change("no --spread", "one device", replace(asked, spread=ONE), terms)
    for way in OFFLOADS:
        if way != asked.offload and (place.runtime.offloads or way == "none"):
            what = {"none": "all on the chip", "model": "one part at a time on the chip"}
            words = what.get(way, "layers come from the host one by one")
            yield _Change(f"--offload {way}", words, replace(asked, offload=way), terms)
    steps = int(settings.get("steps", 0.0))
    if steps > 1:
        fewer = replace(asked, steps=steps // 2)
        yield _Change(f"--steps {steps // 2}", f"half the steps, {QUALITY}", fewer, terms)
    if settings.get("guidance", 0.0) > 1.0 and settings.get("passes", 1) > 1:
        alone = replace(asked, guidance=1.0)
        yield _Change("--guidance 1", "a model distilled to do without guidance", alone, terms)
