"""The candidates of a network without tokens on one chip, for rent or one's own: software, how devices share a request,
what waits on the host, and batches by doubling."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from functools import cache, partial
from itertools import repeat
from math import ceil, inf

import numpy as np

from chipwise.api.media_asked import Files, Sampling, one_size
from chipwise.api.media_record import Doing, Replicas, Speed, attention_seen, load_kept, plan_of
from chipwise.api.media_work import WINDOWED, Place, Work, entry_of, family_of, tabled
from chipwise.api.placing import Terms
from chipwise.api.tactics import Level
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.chip import Chip
from chipwise.catalog.media_runtime import MediaRuntime, media_runtimes_tried
from chipwise.catalog.preferences import preferences
from chipwise.catalog.price import paid_for
from chipwise.errors import UsageError
from chipwise.evidence.judge import Nearness
from chipwise.evidence.tiers import network_tier
from chipwise.parallel.layout import ONE, Spread
from chipwise.predict.pipeline import Offload, price_ahead
from chipwise.predict.rounds import rounds
from chipwise.report.media import MediaPlan
from chipwise.values import dataclass
from chipwise.workload.media.assemble import MOST_BATCH
from chipwise.workload.op import decodes
from chipwise.workload.program import Program

OFFLOADS: tuple[Offload, ...] = ("none", "model", "sequential")
"""What waits on the host: each keeps more there than the one before, and is slower."""
COUNTS = (2, 4, 8, 16, 32, 64)  # devices that share a request
WAYS = frozenset({"ulysses", "cfg"})
"""How they share one."""
SATURATED = 1.01  # of samples a second, below which a batch twice as large is no better
AHEAD = 8  # batches that are priced as one
PATIENCE = 2  # batches in a row that are no better, after which none larger is tried
NEAREST: tuple[Nearness, ...] = ("own", "chip", "vendor", "generation", "kind")
FAR = NEAREST.index("kind")  # from where on figures are modelled
MIDDLE = 0.5  # probability with which a target holds in the middle


@dataclass(frozen=True)
class Way:
    """One way to run a network on a chip: what it does, where, the terms with its software, and how far that is down
    the list of what usually runs there."""

    doing: Doing
    place: Place
    terms: Terms
    order: int

    def plan(self) -> MediaPlan:
        """The record of it."""
        return self.doing.plan(self.terms)


@dataclass(frozen=True)
class Tried:
    """What was tried on a chip. Of `ways` devices and hosts hold everything; `carrying` are the same with no more
    replicas than the load needs, before those that are billed anyhow. Where there is none: what comes nearest, on
    devices that are `short` of less than the estimate of activations may be wrong by; or on hosts that lack memory for
    what waits there (`hosted`)."""

    chip: Chip
    pipeline: Program
    ways: tuple[Way, ...]
    short: Way | None = None
    hosted: Way | None = None
    carrying: tuple[Way, ...] = ()


@dataclass(frozen=True)
class Begun:
    """A question about one chip before anything is priced: `asked`, and each `software` that is worth trying with its
    place in the list, ways to share a request, and the smallest batches of all of them that may fit."""

    asked: Sampling
    software: Sequence[tuple[int, Place, Sequence[Sampling], Sequence[Work]]]


def price_first(many: Iterable[Begun]) -> None:
    """Prices the smallest batches on several chips: chips on which software does the same as one array."""
    alike: dict[tuple[object, ...], list[Work]] = {}
    for _, _, _, works in (each for begun in many for each in begun.software):
        if works:
            alike.setdefault(works[0].timed.priced[0].like, []).extend(works)
    for works in alike.values():
        _price_all(works)


def _price_all(works: Sequence[Work]) -> None:
    """Prices some work on all the chips that it is of."""
    chips = {id(work.timed.priced[1]): work.timed.priced for work in works}
    ways = {(id(work.timed.pipeline), work.asked.spread): work.timed.pipeline for work in works}
    if works:
        price_ahead([(pipeline, spread) for (_, spread), pipeline in ways.items()], list(chips.values()))


@dataclass(frozen=True)
class NetworkSpace:
    """A network at some sizes on one chip, under each software in `places`. `have` chips are all used (None: as many as
    it takes, up to `most`). Every way is priced once; questions may differ in targets, task and level."""

    model: str | Files
    places: tuple[Place, ...]
    terms: Terms
    have: int | None = None
    most: float = inf
    every: bool = False
    made: dict[tuple[object, ...], Work] = field(default_factory=dict, compare=False, repr=False)
    sized: dict[tuple[object, ...], Program] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(
        cls,
        model: str | Files,
        chip: Chip,
        terms: Terms,
        numbers: Parameters,
        *,
        level: Level = "stock",
        have: int | None = None,
        most: float = inf,
    ) -> NetworkSpace:
        """Under the software asked for, else under all that runs it there; tuned, under the usual one, whose numbers
        its factors are of. Raises `UsageError` and `UnknownNameError` for software that does not run it."""
        if terms.named or level == "tuned":
            place = Place.of(chip, terms, numbers)
            runs(place.runtime, model, terms.precision)
            return cls(model, (place,), terms, have, most)
        shared = terms.shared(chip)
        able = media_runtimes_tried(shared, family_of(model), entry_of(model), terms.precision)
        usual = Place.under(shared, able[0], numbers)
        return cls(model, (usual, *(usual.beside(other) for other in able[1:])), terms, have, most)

    @property
    def chip(self) -> Chip:
        """The chip."""
        return self.places[0].chip

    def work(self, place: Place, asked: Sampling) -> Work:
        """One replica."""
        key = (place.runtime.id, asked.batch, asked.spread, asked.offload)
        if key not in self.made:
            size = key[:2]
            if size not in self.sized:
                self.sized[size] = place.pipeline(self.model, self.terms, asked)
            self.made[key] = Work.of(self.sized[size], place, self.terms, asked)
        found = self.made[key]
        return found if found.asked == asked else replace(found, asked=asked)

    def begun(self, asked: Sampling, numbers: Parameters) -> Begun:
        """What is tried, and priced before the rest. Raises the errors of `Place.pipeline`."""
        if asked.job is not None and asked.batch is not None and family_of(self.model) != WINDOWED:
            asked = replace(asked, batch=min(asked.batch, max(ceil(asked.job.tokens), 1)))
        software = []
        for order, place in self._worth(asked, numbers):
            shared = [replace(asked, spread=spread) for spread in self._spreads(place, asked)]
            software.append((order, place, shared, self._coming(place, shared, numbers, asked.batch or 1)))
        return Begun(asked, software)

    def tried(self, asked: Sampling, numbers: Parameters, begun: Begun | None = None) -> Tried:
        """Every way; where devices lack memory in all of them, also those that are short of a little. `begun` where
        that was priced, together with other chips. Raises the errors of `Place.pipeline`."""
        if begun is None:
            begun = self.begun(asked, numbers)
            price_first([begun])
        asked, found = begun.asked, list(self._found(begun, numbers))
        ways, lacking = ([way for way, fits in found if fits == wanted] for wanted in (True, False))
        pipeline = self._plain(self.places[0], asked)
        if ways:
            return Tried(self.chip, pipeline, tuple(self._filled(ways, asked, numbers)), carrying=tuple(ways))
        on_device = [w for w in lacking if w.doing.work.fits(numbers)]
        off_device = [w for w in lacking if not w.doing.work.fits(numbers)]
        return Tried(
            self.chip,
            pipeline,
            (),
            min(off_device, key=lambda w: float(w.doing.work.held(numbers).total_bytes), default=None),
            min(on_device, key=lambda w: w.doing.waiting_bytes, default=None),
        )

    def _found(self, begun: Begun, numbers: Parameters) -> Iterator[tuple[Way, bool]]:
        """Every way, each with whether it fits."""
        for order, place, shared, _ in begun.software:
            terms = replace(self.terms, runtime=place.runtime.id)
            ahead = cache(partial(self._ahead, place, shared, numbers))
            for one in shared:
                for doing, fits in self._doubled(place, one, numbers, ahead):
                    yield Way(doing, place, terms, order), fits

    def _filled(self, ways: Sequence[Way], asked: Sampling, numbers: Parameters) -> Iterator[Way]:
        """Ways for rent with the replicas that the machines hold which are billed anyhow: of a job as many as find a
        sample of it to make."""
        basis = self.terms.basis(self.chip.id)
        does = [way.doing for way in ways]
        if basis is None or self.have is not None or (asked.rate_per_s is None and asked.job is None):
            yield from ways
            return
        paid = partial(basis.paid, group=np.array([float(d.group) for d in does]))
        replicas = np.array([float(d.replicas.count or 1) for d in does])
        alone = np.array([float(d.work.packages) for d in does])
        more = paid_for(paid, replicas, alone, most=self.most, spare=asked.spare)
        for way, count in zip(ways, more.astype(int).tolist(), strict=True):
            d = way.doing
            if asked.job is not None:
                at_once = d.work.copies * d.work.pipeline.batch
                count = min(count, int(rounds(asked.job.tokens, at_once)))
            larger = Replicas(max(count, d.replicas.all - asked.spare), spare=asked.spare)
            held = d.work.waiting_bytes(numbers, larger.all) <= d.work.host_capacity_bytes
            grown = larger.count != d.replicas.count and held
            yield replace(way, doing=Doing.of(d.work, numbers, d.speed, larger)) if grown else way

    def _doubled(
        self, place: Place, asked: Sampling, numbers: Parameters, ahead: Callable[[int], None]
    ) -> Iterator[tuple[Doing, bool]]:
        """Batches of one way to share, as long as larger ones give more samples a second, fit and may keep the limit.
        Devices that share a sequence take one sample at a time: two batches of half the size, each on half of them,
        give no less and no later. Of the smallest batch also what lacks memory, by less than may be wrong of it on
        devices. Each with whether it fits. `ahead` prices a batch and the next larger ones of all ways to share."""
        alone, single = _alone(asked), self._single(asked)
        batch, best, worse, tried = asked.batch or 1, 0.0, 0, 0
        while worse < PATIENCE and batch <= MOST_BATCH:
            sized = replace(asked, batch=batch)
            work = self.work(place, sized)
            if best and work.least_s > _limit_s(asked):
                return
            # the members of one sample end sooner, the more of them are at work together
            parted = work.pipeline.members > batch
            if tried and tried % AHEAD == 0:
                ahead(batch)
            # what waits on the host makes larger batches slower, so they have to be worth something without
            doing, lacking = self._held(place, sized, numbers, alone=worse > 0)
            if doing is None:
                yield from zip([] if best else lacking, repeat(False))
                return
            yield doing, True
            worse = (worse + 1) * (doing.part_per_s <= best * SATURATED)
            best = max(best, doing.part_per_s)
            if single or not (parted or _more(doing, asked, alone=alone, worse=worse > 0)):
                return
            batch, tried = 2 * batch, tried + 1

    def _single(self, asked: Sampling) -> bool:
        """Whether no other batch is tried."""
        return asked.batch is not None or one_size(self.model)

    def _ahead(self, place: Place, shared: Sequence[Sampling], numbers: Parameters, batch: int) -> None:
        """Prices a batch together with the next larger ones that may be tried."""
        _price_all(self._coming(place, shared, numbers, batch))

    def _coming(self, place: Place, shared: Sequence[Sampling], numbers: Parameters, batch: int) -> list[Work]:
        """A batch with the next larger ones that may be tried."""
        short, works = preferences().short, list[Work]()
        for asked in shared:
            limit_s = _limit_s(asked)
            for work in self._next(place, asked, batch):
                if work.least_s > limit_s:
                    break
                ways = (replace(work.asked, offload=way) for way in _kept(place, asked))
                if any(self.work(place, way).beyond(numbers) <= short for way in ways):
                    works.append(work)
        return works

    def _next(self, place: Place, asked: Sampling, batch: int) -> Iterator[Work]:
        """A batch and the next larger ones."""
        for larger in (batch << i for i in range(AHEAD) if batch << i <= MOST_BATCH):
            work = self.work(place, replace(asked, batch=larger))
            yield work
            if self._single(asked) or (_alone(asked) and work.pipeline.members <= larger):
                return

    def _held(
        self, place: Place, asked: Sampling, numbers: Parameters, *, alone: bool
    ) -> tuple[Doing | None, list[Doing]]:
        """The first way to keep parts on the host that devices and hosts hold, which is the fastest (`alone`: as asked
        only); else None, and those that come near."""
        lacking = []
        for way in (asked.offload,) if alone else _kept(place, asked):
            work = self.work(place, asked if way == asked.offload else replace(asked, offload=way))
            beyond = work.beyond(numbers)
            if beyond > preferences().short:
                continue
            doing = self._doing(work, numbers)
            if doing is None:
                continue
            if beyond <= 0.0 and doing.waiting_bytes <= work.host_capacity_bytes:
                return doing, []
            lacking.append(doing)
        return None, lacking

    def _doing(self, work: Work, numbers: Parameters) -> Doing | None:
        """Work on as many replicas as it takes, or on all chips one has: one request at a time for a lone user, all
        samples of a batch, and for users the part of full load that keeps the limit as surely as asked, where none does
        in the middle. None where they are too few for one."""
        asked, speed, batch = work.asked, Speed.of(work, numbers), work.pipeline.samples
        if asked.rate_per_s is not None or (asked.job is not None and self.have is None):
            return Doing.of(work, numbers, speed, Replicas())
        count = 1 if self.have is None or asked.task == "local" else self.have // work.packages
        if count < 1:
            return None
        if asked.job is not None:  # those that find a sample of it to make
            count = min(count, int(rounds(asked.job.tokens, batch * work.copies)))
        load = 1.0
        if asked.task == "serve":
            load = asked.utilisation
            if asked.latency_s is not None:
                kept = (load_kept(asked, speed, batch, count * work.copies, p) for p in (asked.confidence, MIDDLE))
                most = next((one for one in kept if one > 0.0), 0.0)
                # what a benchmark submission is driven to, nobody drives a server to that has days of more requests;
                # what is too slow alone is shown alone
                load = 1.0 if not most else most if asked.level == "tuned" else min(most, load)
        return Doing.of(work, numbers, speed, Replicas(count, load))

    def _plain(self, place: Place, asked: Sampling) -> Program:
        """The pipeline of the smallest batch."""
        return self.work(place, replace(asked, batch=asked.batch or 1)).pipeline

    def _spreads(self, place: Place, asked: Sampling) -> Iterator[Spread]:
        """Ways to share, fewest devices first: as asked, or one device, tables dealt out, a sequence."""
        if asked.spread != ONE:
            yield asked.spread
            return
        yield ONE
        plain = self._plain(place, asked)
        domain = float(np.nan_to_num(float(np.asarray(place.device.domain)), nan=1.0))
        chips = self.most if self.have is None else min(self.most, self.have)
        joined = int(max(min(domain, chips * place.chip.devices_per_package, COUNTS[-1]), 1.0))
        if tabled(plain):
            counts = {n for n in COUNTS if n < joined} | {joined}
            yield from (Spread(dp=n, tables=1) for n in sorted(counts) if n > 1)
        ways = WAYS if asked.level == "tuned" else place.runtime.ways(place.chip)
        yield from (s for s in _shared(plain, joined) if not _degrees(s) - ways)

    def _worth(self, asked: Sampling, numbers: Parameters) -> list[tuple[int, Place]]:
        """Software with its place in the list, without what other software does at least as well in every way. Raises
        `UsageError` where none keeps parts on the host, which was asked."""
        able = self._able(asked)
        if len(able) == 1 or self.every:
            return able
        one = replace(asked, batch=asked.batch or 1)
        found = [_Software(i, place, self.work(place, one), numbers) for i, place in able]
        return [(s.order, s.place) for s in found if not any(o.covers(s) for o in found if o is not s)]

    def _able(self, asked: Sampling) -> list[tuple[int, Place]]:
        """Software that does what was asked: of several, where requests come at a rate, servers before what is none.
        Raises `UsageError` where none keeps parts on the host, which was asked."""
        host = asked.offload != "none"
        able = [(i, place) for i, place in enumerate(self.places) if place.runtime.offloads or not host]
        if not able:
            what = f"{self.chip.id}: {self.places[0].runtime.name} keeps no parts on the host"
            raise UsageError(what, "leave --offload out", field="offload")
        if len(able) == 1 or self.every or asked.rate_per_s is None:
            return able
        return [one for one in able if one[1].runtime.server] or able


@dataclass(frozen=True)
class _Software:
    """Software on a chip, to be compared with other software there before anything is priced."""

    order: int
    place: Place
    work: Work
    numbers: Parameters

    @property
    def near(self) -> tuple[int, int]:
        """How far what was measured is, 0 the nearest: where attention takes little of the time, and where much."""
        one = NEAREST.index(network_tier(self.place.chip, self.place.runtime, self.numbers))
        known = attention_seen(self.work, self.numbers) or not self.work.pipeline.attends
        return one, one if known else FAR

    def covers(self, other: _Software) -> bool:
        """Whether the other could come first in no question: this is no slower in any part, holds no more, shares and
        offloads whatever the other does, is known as well, and is preferred where both cost the same."""
        mine, its, near, far = self.place.runtime, other.place.runtime, self.near, other.near
        if mine.offloads < its.offloads or mine.ported > its.ported:
            return False
        if its.ways(other.place.chip) - mine.ways(self.place.chip):
            return False
        if any(a > b for a, b in zip(near, far, strict=True)):
            return False
        preferred = self.order < other.order or max(near) < FAR <= min(far)
        return preferred and self._no_slower(other) and self._no_larger(other)

    def _no_slower(self, other: _Software) -> bool:
        a, b = self.place.hardware, other.place.hardware
        does = (
            a.tf32_conv >= b.tf32_conv
            and self.place.runtime.sums_narrow >= other.place.runtime.sums_narrow
            and a.folds >= b.folds
            and a.converts <= b.converts
            and a.widens <= b.widens
            and a.turns <= b.turns
        )
        asked, pipeline = self.work.asked, other.work.pipeline
        attends = self.place.attends(asked) == other.place.attends(asked) or not pipeline.attends
        written = self.work.pipeline is not pipeline and pipeline.attends  # scores, by one of them
        if written or not (does and attends):
            return False
        mine, theirs = self.work.stock(self.numbers), other.work.stock(self.numbers)
        return all(value <= theirs[name] * (1.0 + 1e-12) for name, value in mine.items())

    def _no_larger(self, other: _Software) -> bool:
        mine, its = self.work.held(self.numbers), other.work.held(self.numbers)
        pairs = ((mine.total_bytes, its.total_bytes), (mine.of("weights"), its.of("weights")))
        return all(float(a) <= float(b) * (1.0 + 1e-12) for a, b in pairs)


def _degrees(spread: Spread) -> set[str]:
    """The ways in which a request is shared."""
    return {way for way, degree in spread.shares.items() if degree > 1}


def _shared(pipeline: Program, joined: int) -> list[Spread]:
    """Ways in which up to so many devices that are joined share a stage that is called again and attends to a sequence,
    fewest first: the sequence, where none of its convolutions looks over the edge of a part, and the two guided
    passes."""
    stepped = _stepped(pipeline)
    if not stepped:
        return []
    cut = not any("conv" in kinds for kinds in stepped)
    parts = [1, *(COUNTS if cut else ())]
    halves = [1, 2] if pipeline.settings.get("passes", 1) > 1 else [1]
    found = [Spread(cfg=passes, ulysses=n) for n in parts for passes in halves]
    wanted = (s for s in found if 1 < s.devices <= joined)
    return sorted(wanted, key=lambda s: (s.devices, s.cfg))


def _stepped(pipeline: Program) -> list[set[str]]:
    """The kinds of operators of each stage that is called again and attends to a sequence."""
    return [
        {op.kind for _, op in stage.ops}
        for stage in pipeline.stages
        if stage.calls > 1.0 and any(op.kind == "attention" and not decodes(op) for _, op in stage.ops)
    ]


def _kept(place: Place, asked: Sampling) -> Sequence[Offload]:
    """Ways to keep parts on the host that are tried, fastest first."""
    return OFFLOADS if asked.offload == "none" and place.runtime.offloads else (asked.offload,)


def _alone(asked: Sampling) -> bool:
    """Whether one sample is at work at a time: of a lone user, and of devices that share a sequence."""
    return asked.task == "local" or asked.spread.cfg * asked.spread.sequence > 1


def _more(doing: Doing, asked: Sampling, *, alone: bool, worse: bool) -> bool:
    """Whether twice the batch may be of use: of many requests, of a job that is not done by this one, within the limit.
    Of a batch that gave no more (`worse`) the next takes twice as long."""
    done = asked.job is not None and doing.work.pipeline.samples >= asked.job.tokens
    next_s = doing.speed.latency.mid * (2.0 / SATURATED if worse else 1.0)
    return not (alone or done or next_s > _limit_s(asked))


def _limit_s(asked: Sampling) -> float:
    """Seconds after which no request may end: a larger batch takes longer."""
    due = None if asked.job is None else asked.job.deadline_s
    return min(x for x in (asked.latency_s, due, inf) if x is not None)


def runs(runtime: MediaRuntime, model: str | Files, precision: str | None) -> None:
    """Raises `UsageError` where software is known not to run a network, or a number format."""
    family = family_of(model)
    if family is not None and not runtime.runs(family):
        what = f"{runtime.name} runs networks of {' and '.join(sorted(runtime.networks))}, not {model}"
        raise UsageError(what, "leave --runtime out, or chipwise runtimes list", field="runtime")
    own = entry_of(model)
    if own is not None and not runtime.has(own):
        what = f"{runtime.name} has no pipeline of {model}; it has {', '.join(sorted(runtime.models))}"
        raise UsageError(what, "leave --runtime out", field="runtime")
    if not runtime.takes(precision):
        what = f"{runtime.name} does not run {precision}"
        raise UsageError(what, f"--precision {' or '.join(runtime.formats)}", field="precision")


def offloads(place: Place, asked: Sampling) -> bool:
    """Whether parts of a network may wait on the host: of what is trained none does, whose update nobody runs there."""
    return place.runtime.offloads and not asked.training


def held(model: str | Files, place: Place, terms: Terms, asked: Sampling) -> Work:
    """The work as asked; where that does not fit and nothing was said of it, with parts that wait on the host; where
    nothing fits, the first that lacks memory of the host alone, else as asked."""
    ways: Sequence[Offload] = OFFLOADS if asked.offload == "none" and offloads(place, asked) else (asked.offload,)
    pipeline = place.pipeline(model, terms, asked, timed=False)
    works = [Work.of(pipeline, place, terms, replace(asked, offload=way)) for way in ways]
    fits = [work for work in works if work.fits(place.numbers)]
    numbers = place.numbers
    room = (w for w in fits if w.waiting_bytes(numbers, 1) <= w.host_capacity_bytes)
    return next(room, (*fits, *works)[0])


def priced(pipeline: Program, place: Place, terms: Terms, asked: Sampling, replicas: int | None = None) -> MediaPlan:
    """The plan as asked."""
    return plan_of(Work.of(pipeline, place, terms, asked), place.numbers, terms, Replicas(replicas))
