"""`plan`, `estimate`, `explain`, `fit` and `simulate` of models that generate no tokens: generators of images and
video, encoders of text, images and sound, recommenders, traced modules. This page is the architecture in order:

question -> pipeline -> chips with their runtime -> work on devices -> plans -> choice -> report
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import repeat

from chipwise.api.answering import Preferred
from chipwise.api.deciding import apis, called, weighed
from chipwise.api.loaded import find_chip
from chipwise.api.media_asked import Files, Sampling, made, one_size, own_model
from chipwise.api.media_asked import record_of as network_record
from chipwise.api.media_changes import changes, quicker
from chipwise.api.media_choice import NetworkChoice, Question, of_each, together
from chipwise.api.media_infeasible import PLAUSIBLE, host_too_small, no_plan, roomier, short_plans
from chipwise.api.media_record import Doing, Replicas, Speed, plan_of
from chipwise.api.media_time import job_runs, job_times, over_day, over_log, overload_words, unseen, words_of
from chipwise.api.media_ways import Way, held, priced, runs
from chipwise.api.media_work import Place, Work
from chipwise.api.nearest import beside_network
from chipwise.api.placing import Terms
from chipwise.api.planning import bounded
from chipwise.api.remedies import either
from chipwise.api.scaling import said_policy
from chipwise.api.simulating import ENDS, WHOLE, RepeatedRuns, SimulatedTraffic, record_of, scaling_record
from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import load_chips, recalled_words
from chipwise.catalog.machine import copies, counted, kinds
from chipwise.catalog.preferences import preferences
from chipwise.catalog.snapshot import today as day
from chipwise.errors import InfeasibleError
from chipwise.predict.events.engine import QUEUE
from chipwise.predict.events.scaling import Scaling, ScalingGiven
from chipwise.report.decision import ApiRecord, DecisionRecord
from chipwise.report.media import MediaExplainReport, MediaPlan, MediaReport
from chipwise.report.records import RefusalRecord
from chipwise.report.simulated import SimulationReport, rows_of
from chipwise.search.space import FEW_WORDS, Limits
from chipwise.values import dataclass
from chipwise.workload.arrivals import Arrivals
from chipwise.workload.media.assemble import MOST_BATCH
from chipwise.workload.program import Program
from chipwise.workload.workload import Task, Workload


def answer(
    pipeline: Program, terms: Terms | None = None, *, chips: Sequence[str] = (), asked: Sampling | None = None
) -> MediaReport:
    """Any pipeline, traced or built in, on each of some chips (none named: all on the market), in the order asked.

    Chips that cannot run it are refused with the reason. Raises `UsageError` and `UnknownNameError` for a chip or a
    runtime that does not exist, `InfeasibleError` where nothing runs it.
    """

    terms = terms or Terms()
    numbers = terms.numbers

    def on(chip: Chip) -> MediaPlan:
        return priced(pipeline, Place.of(chip, terms, numbers), terms, asked or Sampling())

    plans, refused = of_each(((chip.id, chip) for chip in _chips(chips, terms)), on, alone=len(chips) == 1)
    return report_of(pipeline, plans, refused, terms)


def estimate(model: str, chip: str, terms: Terms, asked: Sampling) -> MediaReport:
    """One chip, or a group of them that shares the work, and its request; so many chips of servers (`8xh100`,
    `p5.48xlarge`) are filled with replicas, else there are as many as carry the rate asked. Raises `InfeasibleError`
    where the memory lacks, or those chips do not carry the rate."""
    return deployed(own_model(model), chip, terms, asked)[0]


def explain(model: str, chip: str, terms: Terms, asked: Sampling) -> MediaExplainReport:
    """The same, and what would change it: software, format, batch, sharing, steps, each asked otherwise alone."""
    opened = own_model(model)
    report, place = deployed(opened, chip, terms, asked)
    return MediaExplainReport.of(report, changes(opened, place, terms, asked, report.plans[0]))


def deployed(model: str | Files, chip: str, terms: Terms, asked: Sampling) -> tuple[MediaReport, Place]:
    """The answer of `estimate` with its errors, and the chip with its runtime."""
    several = counted(chip)
    found = find_chip(several[0] if several else chip, terms.changes, terms.own_chips)
    place = Place.of(found, terms, terms.numbers)
    runs(place.runtime, model, terms.precision)
    each = place.packages(asked.spread)
    replicas = copies(several[1], each, chip, "--spread") if several else None
    if asked.training and asked.batch is None and not one_size(model):
        asked = _filled(model, place, terms, asked)
    pipeline = place.pipeline(model, terms, asked)
    plan_ = priced(pipeline, place, terms, asked, replicas)
    if plan_.verdict == "no":
        short = plan_.short_bytes / 1e9
        name = f"{pipeline.name} on {each} x {plan_.chip}"
        if plan_.short_on_host_bytes:
            raise host_too_small(name, plan_.host_bytes, plan_.host_bytes - plan_.short_on_host_bytes)
        hint = "a smaller --batch, a narrower --precision, or --spread over more devices"
        alone = several[1] if several else None
        fitting = either([*roomier(place, model, terms, asked, alone)])
        note = f"{fitting} fits" if fitting else hint
        some = preferences().short
        if short > some * plan_.capacity_bytes / 1e9:
            raise InfeasibleError(f"{name}: {short:,.1f} GB short per device", note, reasons={"MEMORY": 1})
        near = "The estimate of its memory may be off by as much, so times are given as if it fitted"
        plan_ = replace(plan_, note=f"{note}. {near}")
    elif plan_.load is not None and plan_.load >= 1.0:
        enough = priced(pipeline, place, terms, asked).chips
        what = f"{plan_.chips:,}x {plan_.chip} sustain {plan_.samples_per_s.mid:,.3g} {pipeline.unit}s/s"
        raise InfeasibleError(f"{pipeline.name}: {what}, less than --rate", f"--chip {enough}x{plan_.chip} is enough")
    report = report_of(pipeline, [plan_], [], terms)
    return replace(report, rate_per_s=asked.rate_per_s), place


def _filled(model: str | Files, place: Place, terms: Terms, asked: Sampling) -> Sampling:
    """A training step with as many samples as give more of them a second and leave room, doubled from one for each part
    of a batch on; what its batch is nobody said."""
    batch, best, found = asked.spread.dp, 0.0, replace(asked, batch=asked.spread.dp)
    while batch <= MOST_BATCH:
        sized = replace(asked, batch=batch)
        plan_ = priced(place.pipeline(model, terms, sized), place, terms, sized)
        if plan_.verdict != "comfortable" or plan_.samples_per_s.mid < best * (1.0 + preferences().equal):
            break
        batch, best, found = 2 * batch, plan_.samples_per_s.mid, sized
    return found


def fit(model: str, terms: Terms, asked: Sampling, chips: Sequence[str]) -> MediaReport:
    """The memory of a request on every chip: as it is, else with weights kept by the host in part. Devices share it
    where `asked.spread` says so; so many chips (`8xh100`, `p5.48xlarge`) are filled with replicas, as in `estimate`."""
    numbers, opened = terms.numbers, own_model(model)
    if isinstance(opened, Files):
        made(opened, terms, asked, timed=False)  # what is wrong with a file is wrong on every chip
    ran: list[Program] = []

    def on(asked_of: tuple[Chip, int | None]) -> MediaPlan:
        chip, count = asked_of
        place = Place.of(chip, terms, numbers)
        work = held(opened, place, terms, asked)
        ran.append(work.pipeline)
        replicas, each = None, place.packages(asked.spread)
        if count is not None:
            replicas = copies(count, each, f"{count}x{chip.id}", "--spread", field="chips")
        return plan_of(work, numbers, terms, Replicas(replicas))

    groups = ((one[0].id, one) for one in _groups(chips, terms))
    plans, refused = of_each(groups, on, alone=len(chips) == 1)
    if not ran:
        raise InfeasibleError(f"{model}: none of these chips has known software for it", "chipwise chips list")
    order = {"comfortable": 0, "tight": 1, "no": 2}
    plans.sort(key=lambda p: (order[p.verdict], p.offload != "none", p.chip, p.chips))
    return report_of(ran[-1], plans, refused, terms)


@dataclass(frozen=True)
class NetworksFound:
    """All ways that were tried, the chips that cannot run the network, the network as it runs on one of them, and what
    is said of how the first were timed, where a log drives the load."""

    choice: NetworkChoice
    refused: Sequence[RefusalRecord]
    shown: Program
    timed: tuple[str, ...]


@dataclass(frozen=True)
class NetworkAsked:
    """A question about plans of a model that generates no tokens, read (`answering.Choosing`); `published`: the
    published result nearest to them stands beside."""

    name: str
    question: Question
    chips: Sequence[Chip]
    log: Arrivals | None
    published: bool

    @classmethod
    def of(
        cls,
        model: str,
        terms: Terms,
        asked: Sampling,
        chips: Sequence[str],
        limits: Limits,
        log: Arrivals | None = None,
        *,
        published: bool = False,
    ) -> NetworkAsked:
        """The best plan of each chip (`limits.by`: of each software, format or provider) that keeps the targets and
        `limits`, in the order of `search.prefer`; where no plan keeps its targets as surely as asked those that do in
        the middle, the likeliest first. Of chips that nobody named no more than a few of cards made for desks, as for
        language models.

        Tries all software that runs the network, batches by doubling, devices that share a request or tables, and
        keeping parts on the host. Of many users a plan is given no more than `utilisation` of what it carries. Without
        a rate it is one replica, ranked by dollars per sample; chips that one has (`limits.have`) are then all used,
        and the most samples come first; one user is answered soonest. Without a price, chips stand for dollars. The
        first plans are simulated over a `log`, whose rate is asked. Raises `UsageError`, `UnknownNameError`;
        `InfeasibleError` where the watts feed no chip.
        """
        opened = own_model(model)
        if limits.have:
            terms = replace(terms, pricing=None)
        wanted = _chips(tuple(limits.have) or chips, terms)
        nobodys = not (limits.have or chips) and asked.task != "local"
        limits = bounded(limits, wanted, terms.numbers, terms.basis if nobodys else None)
        owned = bool(limits.have) and asked.rate_per_s is None
        question = Question(opened, terms, asked, limits, owned, terms.numbers, every=limits.by == "runtime")
        return cls(model, question, wanted, log, published)

    def candidates(self) -> NetworksFound:
        """All ways on all chips. Raises what is wrong with a file of one's own."""
        q = self.question
        if isinstance(q.model, Files):
            made(q.model, q.terms, q.asked)  # what is wrong with a file is wrong on every chip
        choice, refused = q.choice(self.chips)
        timed: tuple[str, ...] = ()
        if self.log is not None and choice.ways:
            choice, timed = over_log(choice, q.model, self.log, q.limits.by, q.terms.scaling)
        elif q.asked.curve is not None and choice.ways:
            choice = over_day(choice, q.model, q.asked.curve, q.limits.by, q.terms.scaling)
        shown = choice.tried[-1].pipeline if choice.tried else made(q.model, q.terms, q.asked)
        return NetworksFound(choice, refused, shown, timed)

    def choice(self, found: NetworksFound) -> Preferred[MediaPlan]:
        """The plans in order; where memory lacks everywhere by no more than the estimate of it may be off, those."""
        plans = found.choice.plans(self.question.limits.by) or short_plans(found.choice)
        return Preferred(tuple(plans), found.timed)

    def refusal(self, found: NetworksFound) -> InfeasibleError:
        """Why nothing keeps the targets even in the middle, or the limits."""
        return no_plan(self.question, found.choice, found.shown)

    def record(self, found: NetworksFound, chosen: Preferred[MediaPlan]) -> MediaReport:
        """The answer with the targets that its plans were chosen by."""
        q, plans = self.question, chosen.plans
        report = report_of(found.shown, plans, [*found.refused, *found.choice.refusals()], q.terms)
        report = replace(
            report,
            rate_per_s=q.asked.rate_per_s,
            limit_s=q.asked.latency_s,
            percentile=q.asked.percentile,
            job=q.asked.job,
            confidence=q.asked.confidence,
            owned=bool(q.limits.have),
        )
        if plans[0].verdict != "no":
            seen = report.plans if self.log is None else unseen(report.plans, self.log)
            said = (*report.assumptions, *chosen.said, *_sizes(plans[0], q.limits))
            report = replace(report, plans=seen, assumptions=said, by=q.limits.by)
        return beside_network(report, self.name, q.asked.task) if self.published else report

    def beside(self, found: NetworksFound, chosen: Preferred[MediaPlan], report: MediaReport) -> MediaReport:
        """The answer with changes of its first plan, the cheapest, and chips of one's own together."""
        q, choice = self.question, found.choice
        if chosen.plans[0].verdict == "no":
            return report
        by, asked = q.limits.by, q.asked
        ways, cheap = choice.best_by(by), choice.cheapest
        side_by_side = q.owned and len(ways) > 1 and by == "chip" and asked.task != "local"
        report = replace(report, apis=_read(report, self.name, q.terms))
        return replace(
            report,
            changes=quicker(q.model, ways[0].place, ways[0].terms, asked, report.plans[0]),
            cheapest=None if cheap is ways[0] else cheap.plan(),
            extra=choice.dearer(ways[0], cheap),
            measured=_measured(choice, ways[0]),
            together=together(ways, asked) if side_by_side else None,
            decision=_decision(report, q.terms, choice),
        )


def _measured(choice: NetworkChoice, first: Way) -> MediaPlan | None:
    """The best plan that rests on measurements, where the first does not."""
    if first.doing.speed.latency.basis != "modelled":
        return None
    way = choice.measured
    return None if way is None else way.plan()


def _read_load(report: MediaReport) -> Workload | None:
    """The load of a model that reads texts, in tokens; None where it reads none, or neither a rate nor a job was
    asked."""
    tokens = report.settings.get("tokens")
    if not tokens or (report.rate_per_s is None and report.job is None):
        return None
    task: Task = "serve" if report.job is None else "batch"
    return Workload(task, prompt_tokens=tokens, output_tokens=1.0, rate_per_s=report.rate_per_s, job=report.job)


def _read(report: MediaReport, name: str, terms: Terms) -> tuple[ApiRecord, ...]:
    """Who reads tokens with the weights of that name."""
    load = _read_load(report)
    return () if load is None else apis(report.plans[0], name, load, terms.today or day())


def _decision(report: MediaReport, terms: Terms, choice: NetworkChoice) -> DecisionRecord | None:
    """What renting the chips of the first plan costs, and what owning them does; None where neither a rate nor a job
    was asked, or it keeps no target."""
    asked = report.job is not None or report.rate_per_s is not None
    if not asked or not report.kept or report.owned:
        return None
    likely = [p for p in report.plans if p.keeps_targets(report.confidence)]
    first, load = report.plans[0], _read_load(report)
    api = None if load is None else called(first, report.apis, load)
    other = None if first.job is not None else choice.otherwise()
    return weighed(likely, [other.plan()] if other else [], api, terms.pricing, terms.today or day())


def _sizes(first: MediaPlan, limits: Limits) -> Iterator[str]:
    """What is to be known of the numbers of chips."""
    if limits.few:
        yield FEW_WORDS
    if first.chips > PLAUSIBLE and not limits.have:
        what = f"{first.chips:,} chips of a kind are more than the {PLAUSIBLE:,} of the largest clusters"
        yield f"{what}: a size, and nothing that can be rented"


@dataclass(frozen=True)
class NetworkCopies:
    """A deployment through time: the answer of `estimate` about it, and the `count` of its copies."""

    model: str | Files
    terms: Terms
    found: MediaReport
    place: Place
    work: Work
    speed: Speed
    count: int

    @classmethod
    def of(cls, model: str, chip: str, terms: Terms, asked: Sampling) -> NetworkCopies:
        """Those on a chip, or a group of them. Raises the errors of `estimate`."""
        opened = own_model(model)
        found, place = deployed(opened, chip, terms, asked)
        work = Work.of(place.pipeline(opened, terms, asked), place, terms, asked)
        speed, count = Speed.of(work, place.numbers), found.plans[0].replicas * work.copies
        return cls(opened, terms, found, place, work, speed, count)

    def runs(self, traffic: SimulatedTraffic, route: str = QUEUE, scaling: Scaling | None = None) -> RepeatedRuns:
        """The requests, for one sample each, one by one, on replicas that may follow them."""
        times, stages = job_times(self.model, self.place, self.terms, self.work, self.speed), self.work.copies
        return job_runs(times, self.speed, self.count, traffic, route, stages=stages, scaling=scaling)

    def simulated(
        self,
        traffic: SimulatedTraffic,
        *,
        route: str = QUEUE,
        within_s: float | None = None,
        scaling: ScalingGiven | None = None,
    ) -> SimulationReport:
        """What becomes of requests for one sample each, on replicas that may follow them; the share within a target is
        told. Raises the errors of `said_policy`."""
        plan_, work = self.found.plans[0], self.work
        targets = {} if within_s is None else {WHOLE: within_s}
        start_s = Doing.of(work, self.place.numbers, self.speed, Replicas(1)).start_s
        followed = said_policy(scaling, start_s, plan_.replicas, f"--chip {4 * plan_.chips}x{plan_.chip}")
        runs = self.runs(traffic, route, followed)
        record = record_of(runs, targets, tokens=False)
        if followed is not None:
            record = replace(record, scaling=scaling_record(followed, runs.mid, plan_.replicas))
        return SimulationReport(
            network_record(work.pipeline),
            None,
            f"{plan_.machines} ({self.place.runtime.id})",
            traffic.words,
            record,
            rows_of(record),
            (
                *words_of(self.place, work, self.count, route),
                *overload_words(traffic, self.speed.full.mid / (self.count * work.pipeline.samples)),
                f"{ENDS} times, and chance of the sample",
                *([plan_.note] if plan_.note else []),
                *traffic.arrivals.said,
                *self.found.assumptions,
            ),
        )


def _chips(names: Sequence[str], terms: Terms) -> list[Chip]:
    """The chips of these names, of none all on the market."""
    market = load_chips()
    return [find_chip(c, terms.changes, terms.own_chips) for c in names] or [market[c] for c in market.market()]


def _groups(names: Sequence[str], terms: Terms) -> list[tuple[Chip, int | None]]:
    """The same, each with every count that was said of it, None for none."""
    asked = kinds(names)
    counts = asked.values() if asked else repeat((None,))
    return [(chip, n) for chip, several in zip(_chips(tuple(asked), terms), counts, strict=False) for n in several]


def report_of(
    pipeline: Program, plans: Sequence[MediaPlan], refused: Sequence[RefusalRecord], terms: Terms
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
