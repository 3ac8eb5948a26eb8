"""`plan --have` of models that generate no tokens: the most that chips one has can do, all of them, kept within a limit
or asked one request at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from chipwise.api.loaded import find_chip
from chipwise.api.media import host_too_small, refusal_of, report_of, wanted_of
from chipwise.api.media_asked import Files, Sampling, own_model
from chipwise.api.media_changes import quicker
from chipwise.api.media_choice import HOSTED, OFFLOADS, SHORT, shared, ways_of
from chipwise.api.media_record import Replicas, load_kept, plan_of
from chipwise.api.media_work import Place, Work
from chipwise.api.placing import Terms
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.catalog.offer import PRICE_NOISE
from chipwise.errors import ChipwiseError, InfeasibleError, UsageError
from chipwise.predict.pipeline import ONE, Spread
from chipwise.predict.rounds import kept_up, rounds, side_by_side
from chipwise.predict.waiting import wait_s
from chipwise.report.media import MediaPlan, MediaReport
from chipwise.report.records import Figure, RefusalRecord
from chipwise.units import format_seconds
from chipwise.workload.pipeline import Pipeline
from chipwise.workload.workload import CONFIDENCE

__all__ = ["Best", "Owned", "most"]

LARGEST = 4096  # samples of a batch that are tried
WORTH = 1.01  # of throughput, for which a larger batch is tried further


@dataclass(frozen=True)
class Best:
    """How chips are used best: work of one replica, how many replicas, and the share of full load that they are
    given."""

    work: Work
    replicas: int
    load: float

    def plan(self, numbers: Parameters, terms: Terms) -> MediaPlan:
        """The record of it."""
        return plan_of(self.work, numbers, terms, Replicas(self.replicas, self.load))


@dataclass(frozen=True)
class Owned:
    """`chips` of one kind with their runtime, for a network at some sizes; every batch and way of sharing is priced
    once."""

    model: str | Files
    place: Place
    terms: Terms
    chips: int
    made: dict[tuple[str, int, Spread], Work] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, model: str, chip: str, chips: int, terms: Terms) -> Owned:
        """By names. Raises `UsageError` and `UnknownNameError`."""
        numbers = terms.parameters or shipped_parameters()
        place = Place.of(find_chip(chip, terms.changes), terms, numbers)
        return cls(own_model(model), place, terms, chips)

    def work(self, asked: Sampling, batch: int, spread: Spread) -> Work:
        """One replica."""
        plain = replace(
            asked, level="stock", task="serve", latency_s=None, percentile=None, confidence=CONFIDENCE
        )
        key = (repr(plain), batch, spread)
        if key not in self.made:
            sized = replace(plain, batch=batch, spread=spread)
            pipeline = self.place.pipeline(self.model, self.terms, sized)
            self.made[key] = Work.of(pipeline, self.place, self.terms, sized)
        found = self.made[key]
        return replace(found, asked=replace(asked, batch=batch, spread=spread))

    def best(self, asked: Sampling, numbers: Parameters) -> Best:
        """One request at a time: soonest. A batch: most samples a second. Served: most that keep the limit, under stock
        software and without a limit at `utilisation` of the most. What fits in no other way, and nothing was said of
        it, waits on the host in part. Raises `InfeasibleError` where memory or the limit stands in the way."""
        waiting = OFFLOADS[1:] if asked.offload == "none" and self.place.runtime.offloads else ()
        tries = [(asked, 0.0), *((replace(asked, offload=way), 0.0) for way in waiting), (asked, SHORT)]
        ways = (list(self._ways(one, numbers, slack=slack)) for one, slack in tries)
        found = [(self._value(b, asked, numbers), b) for b in next(filter(None, ways), [])]
        if not found:
            raise self._why(asked, numbers)
        return max(found, key=lambda pair: pair[0])[1]

    def _why(self, asked: Sampling, numbers: Parameters) -> InfeasibleError:
        """What stands in the way: memory, or how long a request takes that comes while others are in work."""
        name = self.place.chip.id
        if asked.latency_s is not None:
            with suppress(InfeasibleError):
                work = self.best(replace(asked, latency_s=None, batch=asked.batch or 1), numbers).work
                alone = work.busy_s(work.pace(numbers))
                used = asked.utilisation
                waits = wait_s(used, alone, work.pipeline.batch, 1, asked.percentile)
                return InfeasibleError(
                    f"{name}: slower than asked, a request takes {format_seconds(alone)}, and waits up to "
                    f"{format_seconds(waits)} at {used:.0%} load",
                    f"an --e2e of more than {format_seconds(alone)}, fewer steps, or a narrower --precision",
                    reasons={"SLO": 1},
                )
        if asked.host_memory is not None:
            batch = asked.batch or 1
            ways = (
                OFFLOADS[1:] if asked.offload == "none" and self.place.runtime.offloads else (asked.offload,)
            )
            tries = (self.work(replace(asked, offload=way), batch, asked.spread) for way in ways)
            near = (work for work in tries if work.held(numbers).total <= work.capacity_bytes)
            for work in near:
                replicas = 1 if asked.task == "local" else self.chips // self.place.packages(asked.spread)
                return host_too_small(name, work.waiting_bytes(replicas), work.host_capacity_bytes)
        return InfeasibleError(
            f"{name}: it lacks memory", "a narrower --precision, or more chips", reasons={"MEMORY": 1}
        )

    def _value(self, b: Best, asked: Sampling, numbers: Parameters) -> float:
        pace = b.work.pace(numbers)
        if asked.task == "local":
            return 1.0 / b.work.request_s(pace)
        at_once = b.replicas * b.work.copies * b.work.pipeline.batch
        kept = 1.0 if asked.job is None else float(kept_up(asked.job.tokens, at_once))
        return kept * b.load * at_once / b.work.busy_s(pace)

    def _ways(self, asked: Sampling, numbers: Parameters, *, slack: float = 0.0) -> Iterator[Best]:
        """Every way that is tried: of each way to share, batches as long as they are worth it and fit into the memory
        and `slack` of it. Of tables so much may wait on the host: rows that are hardly ever looked up."""
        slack = SHORT if self._tabled(asked) else slack
        for spread in self._spreads(asked):
            replicas = 1 if asked.task == "local" else self.chips // self.place.packages(spread)
            most, worse, batch = 0.0, 0, asked.batch or 1
            while batch <= max(LARGEST, asked.batch or 1) and worse < 2:
                work = self.work(asked, batch, spread)
                if work.held(numbers).total > work.capacity_bytes * (1.0 + slack):
                    break
                if work.waiting_bytes(replicas) > work.host_capacity_bytes:
                    break
                pace = work.pace(numbers)
                load = self._load(work, numbers, replicas * work.copies)
                if load <= 0.0:
                    break
                yield Best(work, self._busy(work, replicas), load)
                rate = load * work.pipeline.batch / work.busy_s(pace)
                worse = 0 if rate > most * WORTH else worse + 1
                most = max(most, rate)
                if asked.batch is not None or asked.task == "local":
                    break
                batch *= 2
            if most and asked.task != "local" and asked.job is None:
                break  # what needs fewer devices a replica gives more samples of all, but for a job of few

    @staticmethod
    def _busy(work: Work, replicas: int) -> int:
        """Those replicas that find a sample of a job to make; without one all."""
        job = work.asked.job
        if job is None:
            return replicas
        return min(replicas, int(rounds(job.tokens, work.pipeline.batch * work.copies)))

    def _load(self, work: Work, numbers: Parameters, replicas: int) -> float:
        """The part of full load that keeps the limit as surely as asked."""
        asked = work.asked
        if asked.task != "serve":
            return 1.0
        if asked.latency_s is None:
            return asked.utilisation
        most = load_kept(work, numbers, replicas)
        # what a benchmark submission is driven to, nobody drives a server to that has days of more requests
        return most if asked.level == "tuned" else min(most, asked.utilisation)

    def _plainly(self, asked: Sampling) -> Pipeline:
        """The pipeline of the smallest batch on one device."""
        return self.work(asked, asked.batch or 1, ONE).pipeline

    def _tabled(self, asked: Sampling) -> bool:
        """Whether tables are looked up, which can be dealt out."""
        ops = (op for stage in self._plainly(asked).stages for _, op in stage.ops)
        return any(op.name == "embedding_bag" for op in ops)

    def _spreads(self, asked: Sampling) -> Iterator[Spread]:
        """Ways to share, fewest devices first: as asked, or one device, tables dealt out, a sequence."""
        if asked.spread != ONE:
            yield asked.spread
            return
        yield ONE
        devices = self.chips * self.place.chip.devices_per_package
        joined = min(devices, int(float(self.place.device.domain)) if self.place.device.domain > 1 else 1)
        if self._tabled(asked):
            counts = {n for n in (2, 4, 8, 16) if n < joined} | {joined}
            yield from (Spread(dp=n, tables=1) for n in sorted(counts) if n > 1)
        if self.place.runtime.shares or asked.level == "tuned":
            yield from shared(self._plainly(asked), self.place, asked.level, joined)


def _of_kind(
    model: str, chip: str, count: int, terms: Terms, asked: Sampling, numbers: Parameters
) -> tuple[Best, MediaPlan]:
    """What chips of a kind do at best under the runtimes that plans try: under the default where others do about as
    much. Raises the errors of `Owned.best` under the default where none can."""
    best: tuple[Best, MediaPlan] | None = None
    failed: InfeasibleError | None = None
    for way in ways_of(find_chip(chip, terms.changes), terms, asked):
        owned = Owned.of(model, chip, count, way)
        if best is not None and not owned.place.runtime.folds and best[1].shares.get("host", 0.0) <= HOSTED:
            continue
        try:
            found = owned.best(asked, numbers)
        except InfeasibleError as error:
            failed = failed or error
            continue
        p = found.plan(numbers, way)
        if best is None or _did(p, asked) > _did(best[1], asked) * (1.0 + PRICE_NOISE):
            best = found, p
    if best is None:
        raise failed or InfeasibleError(f"{chip}: no software runs it")
    return best


def _did(p: MediaPlan, asked: Sampling) -> float:
    """What chips are used for: requests of a lone user a second, or samples."""
    return 1.0 / p.latency_s.mid if asked.task == "local" else p.samples_per_s.mid


def most(model: str, terms: Terms, asked: Sampling, have: Mapping[str, int]) -> MediaReport:
    """What each kind of chips one has does at best, all of its kind together, most first; nothing is paid for them.
    Raises `InfeasibleError` where none can, `UsageError` for a rate, which is what is answered."""
    if asked.rate_per_s is not None:
        raise UsageError("--have answers the rate that its chips carry", "leave --rate out", field="rate")
    terms = replace(terms, pricing=None)
    numbers = terms.parameters or shipped_parameters()
    found: list[tuple[Best, MediaPlan]] = []
    refused: list[RefusalRecord] = []
    shown = None
    for name, count in have.items():
        try:
            best, plan = _of_kind(model, name, count, terms, asked, numbers)
        except ChipwiseError as error:
            if len(have) == 1:
                raise
            refused.append(refusal_of(name, error))
            continue
        found.append((best, plan))
        shown = best.work.pipeline
    if shown is None:
        raise InfeasibleError(f"{model}: none of these chips can", "; ".join(r.detail for r in refused))
    alone = asked.task == "local"
    found.sort(key=lambda pair: pair[1].latency_s.mid if alone else -pair[1].samples_per_s.mid)
    ranked = [replace(p, rank=i + 1) for i, (_, p) in enumerate(found)]
    report = wanted_of(asked, report_of(shown, ranked, refused, terms), owned=True)
    under = replace(terms, runtime=ranked[0].runtime)
    place = Place.of(find_chip(ranked[0].chip, terms.changes), under, numbers)
    report = replace(report, changes=quicker(own_model(model), place, under, asked, ranked[0]))
    if alone or len(found) == 1:
        return report
    return replace(report, together=_together(found, asked, numbers))


def _together(found: Sequence[tuple[Best, MediaPlan]], asked: Sampling, numbers: Parameters) -> Figure:
    """Samples a second of all kinds side by side; of a job its samples over the time in which they are done with it."""
    rates, job = [p.samples_per_s for _, p in found], asked.job

    def rate(end: str) -> float:
        if job is None:
            return float(sum(getattr(rate, end) for rate in rates))
        kinds = []
        for best, p in found:
            # the rate of a low end has times of a high one
            slower = getattr(p.latency_s, {"low": "high", "high": "low"}.get(end, end)) / p.latency_s.mid
            work, pace = best.work, best.work.pace(numbers)
            at_once = float(best.replicas * work.copies * work.pipeline.batch)
            kinds.append((at_once, slower * work.request_s(pace), slower * work.busy_s(pace)))
        return job.tokens / side_by_side(job.tokens, kinds)

    return Figure(rate("mid"), rate("low"), rate("high"), rates[0].basis, rates[0].provisional)
