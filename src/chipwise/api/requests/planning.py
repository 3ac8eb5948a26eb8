"""plan, compare, estimate, fit: what one can ask of a deployment."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import MISSING, asdict, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from chipwise.api.amdahl import amdahl
from chipwise.api.answering import Choosing, Ranked
from chipwise.api.estimating import estimate
from chipwise.api.fitting import fit
from chipwise.api.nearest import beside_network
from chipwise.api.own import stored_runs
from chipwise.api.placing import BEST, Terms
from chipwise.api.requests.command import about, hinting
from chipwise.api.requests.field import (
    CONFIG,
    NAMES,
    OBJECT,
    SHARE,
    ChoiceRequest,
    Reading,
    as_text,
    ask,
    count_of,
    figure,
    option_of,
)
from chipwise.api.requests.parts import (
    ADAPTERS,
    DAY,
    HOST_BYTES,
    HOST_MEMORY,
    LORA,
    PAID,
    JobOptions,
    LengthOptions,
    Money,
    PlaceOptions,
    SampleOptions,
    ScaleOptions,
    Serving,
    SoftwareOptions,
    Targets,
    numbers_of,
)
from chipwise.api.tactics import Tactics
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.machine import capped
from chipwise.catalog.releases import beyond, dated
from chipwise.errors import CommandText, InfeasibleError, Sentence, Setting, UsageError
from chipwise.predict.events.scaling import ScalingGiven
from chipwise.report.fit import FitReport
from chipwise.report.media import MediaExplainReport, MediaPlan, MediaReport
from chipwise.report.moved import MovedReport
from chipwise.report.plans import ExplainReport, PlanRecord, PlanReport
from chipwise.search.space import By, Limits
from chipwise.values import dataclass
from chipwise.workload.arrivals import Arrivals, read_times
from chipwise.workload.workload import CONFIDENCE, UTILISATION, Job, Task, Workload

if TYPE_CHECKING:
    from chipwise.api.media_asked import Sampling

N = TypeVar("N", bound=MediaReport)


def _owned(value: Any) -> str:
    """Counts by chip, `{"h100": 8}`, as text; text stays."""
    return ",".join(f"{n}x{name}" for name, n in value.items()) if isinstance(value, Mapping) else as_text(value)


def _elsewhere(text: str, option: str) -> str:
    """The text itself. Raises `UsageError` for `auto`: doors on the user's own machine have put its chips there before
    the question is made, so that the question means the same everywhere."""
    if text.strip().lower() == AUTO:
        what = f"{option} {AUTO} would describe the machine that answers, not yours"
        hint = Sentence("run ", CommandText("doctor --devices"), " on your machine and name what it finds, e.g. 8xh100")
        raise UsageError(what, hint)
    return text


MODEL = (
    "a bundled name, a config.json or its folder, the configuration itself as JSON, or dimensions such as "
    "transformer:layers=40,hidden=5120,...; on your own machine FILE.py:function, FILE.onnx or a diffusers folder too"
)
AUTO = "auto"
"""What stands for the chips of the machine on which chipwise is started."""
SERIAL = "part of a request's work that is serial, e.g. 5%: when is a CPU faster?"
HAVE = Reading(_elsewhere, _owned, (OBJECT,))
TASK = "serve many users, batch for throughput, local for one user"


Evidence = Literal["all", "none", "published", "own"]
EVIDENCE = (
    "published: benchmark results next to the answer, which never change it; own: your measurements, which correct "
    "it; all; none"
)


@dataclass(frozen=True, kw_only=True)
class PriceOptions(Money, Serving):
    """How chips are paid, and the evidence and numbers behind a prediction."""

    evidence: Evidence = ask(EVIDENCE, "all")
    parameters: str | None = ask("parameters that chipwise calibrate wrote; default: those shipped", file=True)

    def terms(self, numbers: Parameters | None = None) -> Terms:
        """The terms with how chips are paid."""
        own = stored_runs if self.evidence in ("all", "own") else None
        return replace(super().terms(numbers), pricing=self.pricing(), own=own)

    def beside(self, model: str, task: Task, report: N) -> N:
        """The answer about a model that generates no tokens, with the published result nearest to it."""
        if self.evidence not in ("all", "published"):
            return report
        return beside_network(report, model, task)


@dataclass(frozen=True, kw_only=True)
class PlanOptions(SampleOptions, PriceOptions, Targets, JobOptions, ScaleOptions):
    """What narrows a search for plans."""

    chips: str | None = ask(
        "only these, separated by commas; with a count at most that many, e.g. h200,16xh100,p5.48xlarge",
        file=True,
        reading=NAMES,
    )
    have: str | None = ask(
        "chips that you have, e.g. 2xrtx-4090,1xrtx-3090, or auto for those of this machine", reading=HAVE
    )
    host_memory: str | None = ask(HOST_MEMORY, reading=HOST_BYTES)
    max_chips: int | None = ask("at most this many chips in total")
    max_usd_per_h: float | None = ask("at most this many dollars per hour in total")
    max_watts: str | None = ask(
        "power limit at the plugs with all chips at their limits, e.g. 10kW", reading=figure("W", low=1, high=1e10)
    )
    spare: int = ask("extra replicas, e.g. 1 for N+1", 0)
    samples: str | None = ask(
        "batch of a model without tokens: samples of the job, e.g. 10k", reading=figure("", low=1, high=1e15)
    )

    def terms(self, numbers: Parameters | None = None) -> Terms:
        """The terms with how replicas follow the load."""
        return replace(super().terms(numbers), scaling=self.values["scale"] or ScalingGiven())

    def idle(self) -> tuple[str, ...]:
        """A percentile is of answer times under a load: of a rate, or of what chips that one has can carry."""
        loads = (self.have, self.rate, self.day, self.log)
        loaded = any(load is not None for load in loads)
        return () if loaded else ("percentile", "utilisation")

    def workload_of(self, task: Task) -> Workload:
        """The workload with its load and targets, or its job."""
        return replace(super().workload_of(task), job=self.job())

    def job(self) -> Job | None:
        """What a batch has to do, None where it has no end. Raises `UsageError` for limits of no job."""
        amount = self.values["tokens"] if self.samples is None else self.values["samples"]
        if amount is not None:
            return Job(amount, self.values["deadline"], self.max_usd)
        for name in ("deadline", "max_usd"):
            if getattr(self, name) is not None:
                what = f"{option_of(name)} is the limit of a job, and none was given"
                parts = (Setting("task", "batch"), " ", Setting("tokens", "1B"))
                hint = Sentence("add ", *parts, ", of a model without tokens ", Setting("samples", "10k"))
                if name == "deadline":
                    hint = Sentence(hint, "; the target for a whole answer is --e2e, e.g. 10min")
                raise UsageError(what, hint, field=name)
        return None

    def _check_host(self, missing: str = "") -> None:
        """Raises `UsageError` for a host's memory where the host is not the user's; `missing` is what lacks besides."""
        if self.host_memory is not None and (missing or not self.have):
            what = "--host-memory is of a machine that you have"
            raise UsageError(what, f"add {missing}--have rtx-4090", field="host_memory")

    def limits_of(self, task: str) -> Limits:
        """One machine for a local user, else up to 64 devices per replica."""
        count_of(self.max_chips, "--max-chips", "chips")
        if self.max_usd_per_h is not None and not 0 < self.max_usd_per_h < float("inf"):
            what = f"--max-usd-per-h {self.max_usd_per_h:g} is out of range"
            raise UsageError(what, "more than 0", field="max_usd_per_h")
        if self.spare and (task != "serve" or (self.rate is None and self.day is None)):
            raise UsageError("--spare needs a load to carry", "add --rate or --day", field="spare")
        if not 0 <= self.spare <= 1000:
            raise UsageError(f"--spare {self.spare}: not a count of replicas", "0 to 1000", field="spare")
        most = 8 if task == "local" else 64
        return Limits(
            max_devices=min(most, (self.max_chips or most) * 2),
            max_chips=self.max_chips,
            max_usd_per_h=self.max_usd_per_h,
            max_watts=self.values["max_watts"],
            spare=self.spare,
            host_memory=self.values["host_memory"],
        )


UNFOLLOWED = (
    "--scale needs arrivals to follow",
    "--log with times, e.g. requests.csv, or --day; of one deployment simulate --rate 10/s --scale target=8",
)
"""What is wrong with a policy that nothing follows, and what helps."""
BY_CLOCK = (
    "--scale target follows requests in flight, not a --day",
    "of a day it takes start, least, hold and every, e.g. --scale start=90s,least=2",
)
"""The same of a policy that follows no clock."""


@dataclass(frozen=True, kw_only=True)
class PlanRequest(ChoiceRequest, PlanOptions):
    """Rank chips, counts and layouts for a workload: time, throughput, cost and bottleneck."""

    model: str = ask(MODEL, MISSING, file=True, reading=CONFIG)
    task: Task = ask(TASK, "serve")
    by: By = ask("list the best plan of each", "chip")

    def run(self) -> PlanReport | MediaReport:
        """The best plan of every chip, ranked. Raises the errors of `ranked`."""
        found: PlanReport | MediaReport = self.ranked().whole()
        return found

    ranking = True

    def answers(self) -> Generator[Any, None, Any]:
        """First the ranked plans of a language model, then the same with what would make the first of them cheaper."""
        if self.media(self.model):
            return self.answer()
        with self._placed():
            found = self.ranked()
            yield found.report
            return found.whole()

    def asking(self, numbers: Parameters | None = None, *, published: bool = True) -> Choosing[Any, Any, Any]:
        """The question about a model of either kind, read."""
        if (own := self._beside_own_work()) is not None:
            return own.asking(numbers, published=published)
        numbers = numbers or numbers_of(self.parameters)
        published = published and self.evidence in ("all", "published")
        kind = self._of_network if self.media(self.model) else self._of_tokens
        return kind(numbers, published)

    def _beside_own_work(self) -> PlanRequest | None:
        """Where other work of the user leaves a share of the chip and no load of many users is named: the question of
        one user about the chip that he has; None of any other question."""
        loads = (self.rate, self.day, self.log, self.samples, self.tokens)
        if self.share is None or self.task != "serve" or any(load is not None for load in loads):
            return None
        chips, at_most = capped(self.values["chips"] or ())
        paid = self.price != "rent" or self.provider or self.owning
        if self.have is None and len(chips) == 1 and not paid:
            have = f"{at_most.get(chips[0], 1)}x{chips[0]}"
            return replace(self, task="local", chips=None, have=have)
        return replace(self, task="local")

    def ranked(self, numbers: Parameters | None = None, *, published: bool = True) -> Ranked[Any]:
        """The plans as they are ranked; an error that points to `fit` names its command."""
        with hinting("fit", self._sized):
            return super().ranked(numbers, published=published)

    def _of_network(self, numbers: Parameters | None, published: bool) -> Choosing[Any, Any, Any]:
        """The same of a model that generates no tokens."""
        from chipwise.api import media

        self._check_host()
        have, asked, log = self.owned(), self.generating(), None
        if self.log is not None:
            log, asked = self._arriving(asked)
        self._check_following(asked, log)
        terms = replace(
            SoftwareOptions.terms(self, numbers),
            pricing=None if have else self.pricing(),
            scaling=self.values["scale"] or ScalingGiven(),
        )
        chips, at_most = capped(self.values["chips"] or ())
        limits = replace(self.limits_of(self.task), have=have or {}, at_most=at_most, by=self.by)
        return media.NetworkAsked.of(self.model, terms, asked, tuple(chips), limits, log, published=published)

    def common(self) -> tuple[str, ...]:
        """A log of requests is one of any kind, and replicas of any kind may follow it."""
        return "log", "scale"

    def _check_following(self, asked: Sampling, log: Arrivals | None) -> None:
        """Raises `UsageError` for a policy that nothing follows, of a model without tokens, or that has no target to
        hold."""
        if self.scale is None:
            return
        if log is None and asked.curve is None:
            raise UsageError(*UNFOLLOWED, field="scale")
        if asked.curve is not None and self.values["scale"].target is not None:
            raise UsageError(*BY_CLOCK, field="scale")
        if asked.latency_s is None:
            what = "--scale looks for the cheapest replicas that hold a target, and there is none"
            raise UsageError(what, "add --e2e, e.g. 20s", field="scale")

    def _arriving(self, asked: Sampling) -> tuple[Arrivals, Sampling]:
        """The arrivals of a log, and the question at their rate. Raises `UsageError` where they are no load."""
        for name in ("day", "have", "samples"):
            if getattr(self, name) is not None:
                raise UsageError(f"--log and {option_of(name)} are two loads", "keep one", field=name)
        if self.task != "serve":
            raise UsageError("--log is of many users", "leave it out, or --task serve", field="task")
        log = read_times(str(self.log))
        log = log if asked.rate_per_s is None else log.at_rate(asked.rate_per_s)
        if log.rate_per_s is None:
            what = f"{self.log}: all requests come at once, which is no rate to plan for"
            raise UsageError(what, "--task batch --samples 1k plans for a number of samples", field="log")
        return log, replace(asked, rate_per_s=log.rate_per_s)

    def generating(self) -> Sampling:
        """What this asks of a model that generates no tokens, with its targets. Raises `UsageError` for what says how
        targets hold where there is none, and for a rate of one user."""
        job = self._samples_due()
        self._check_targets(job)
        curve = self.curve()
        for name in ("rate", "day"):
            if self.task == "local" and getattr(self, name) is not None:
                what = "--task local is one user, who sends one request after the other"
                raise UsageError(what, f"leave --{name} out, or --task serve", field=name)
        if curve is not None and (self.task != "serve" or self.rate is not None):
            raise UsageError(DAY, "without --rate, and with --task serve", field="day")
        return replace(
            self.sampling(),
            latency_s=self.values["e2e"],
            rate_per_s=self.values["rate"] if curve is None else curve.peak,
            percentile=self.values["percentile"],
            job=job,
            spare=self.spare,
            curve=curve,
            utilisation=UTILISATION if self.utilisation is None else self.values["utilisation"],
            confidence=CONFIDENCE if self.confidence is None else self.values["confidence"],
            software=self.software or "",
            level=self.level,
            task=self.task,
        )

    def _check_targets(self, job: Job | None) -> None:
        """Raises `UsageError` for what says how surely targets of samples hold, where there is none."""
        targets = self.e2e is not None or (job is not None and (job.deadline_s or job.max_usd))
        for name, held in (("percentile", self.e2e is not None), ("confidence", targets)):
            if getattr(self, name) is not None and not held:
                what = f"--{name} says how surely a target holds, and there is none"
                raise UsageError(what, "add --e2e, e.g. 2min", field=name)

    def _samples_due(self) -> Job | None:
        """The job of a model that generates no tokens. Raises `UsageError` where a rate or single requests are asked
        about too."""
        job = self.job()
        if job is None:
            return None
        if self.task != "batch":
            raise UsageError("--samples is a job and needs --task batch", "--rate is of many users", field="samples")
        for name, instead in (
            ("rate", "--deadline says how fast it must go"),
            ("day", "--deadline says how fast it must go"),
            ("e2e", "--deadline limits a job"),
        ):
            if getattr(self, name) is not None:
                raise UsageError(f"--{name} is of single requests, --samples is a job", instead, field=name)
        return job

    def _by(self, chips: Sequence[str]) -> By:
        """What plans are the best of: who compares all software on one chip wants to see each."""
        return "runtime" if self.runtime == BEST and self.by == "chip" and len(chips) == 1 else self.by

    def _of_tokens(self, numbers: Parameters | None, published: bool) -> Choosing[Any, Any, Any]:
        """The same of a language model."""
        from chipwise.api.planning import PlansAsked

        self._check_host("" if self.task == "local" else "--task local ")
        have = self.owned() or {}
        chips, at_most = capped(self.values["chips"] or ())
        workload = self.workload_of(self.task)
        self._check_scale(workload)
        return PlansAsked.of(
            self.model,
            workload,
            self.terms(numbers),
            chips,
            replace(self.limits_of(self.task), have=have, at_most=at_most, by=self._by([*have] or chips)),
            curve=self.curve(),
            published=published,
        )

    def _sized(self) -> FitRequest:
        """The question whether a sequence as long as is asked about fits."""
        have = self.owned()
        return about(
            self,
            FitRequest,
            chips=",".join(have) if have else self.chips,
            count=next(iter(have.values())) if have and len(have) == 1 else None,
            context=f"{self.workload_of(self.task).context:.10g}",
            runtime=None if self.runtime == "best" else self.runtime,
        )

    def _check_scale(self, workload: Workload) -> None:
        """Raises `UsageError` for a policy that nothing follows, and for what moves nothing in a day."""
        if self.scale is None:
            return
        log = workload.log
        if self.day is None and (not workload.driven or log is None or log.rate_per_s is None):
            raise UsageError(*UNFOLLOWED, field="scale")
        if self.day is not None and self.values["scale"].target is not None:
            raise UsageError(*BY_CLOCK, field="scale")

    def explained(self, plan: PlanRecord | MediaPlan) -> ExplainRequest:
        """The question that shows one of the plans in full, under the same options."""
        if isinstance(plan, MediaPlan):
            said = {f.name: getattr(plan, f.name) for f in fields(plan)}
            changed = self.deployed_network(said)
            if self.log is not None:
                changed |= {"log": None, "rate": f"{(plan.load or 0.0) * plan.samples_per_s.mid:.4g}/s"}
            elif self.rate is None or plan.replicas == 1:
                changed["chip"] = plan.chip
            return about(self, ExplainRequest, **changed)
        said = {f.name: getattr(plan, f.name) for f in fields(plan)} | {"layout": asdict(plan.layout)}
        return about(self, ExplainRequest, **self.deployed(said))

    def deployed_network(self, plan: Mapping[str, Any]) -> dict[str, Any]:
        """The same of a model without tokens: all chips of a plan that work, software, batch, sharing."""
        working = plan["chips"] // plan["replicas"] * (plan["replicas"] - plan["spare"])
        waiting = None if plan["offload"] == "none" else plan["offload"]
        named = {name: plan[name] for name in ("runtime", "batch")}
        chip = f"{working}x{plan['chip']}"
        return {"chip": chip, **named, "spread": plan["spread"] or None, "offload": waiting}

    def deployed(self, plan: Mapping[str, Any]) -> dict[str, Any]:
        """The options that name one of the plans, a record or what was saved of it: its chip, runtime, layout, load."""
        degrees = {name: int(plan["layout"][name]) for name in ("tp", "pp", "dp", "ep")}
        if plan.get("parts"):
            degrees = dict.fromkeys(degrees, 1)  # the name of the machine says how many of what
        load: dict[str, Any] = {"replicas": plan["replicas"] - plan["spare"]}
        if self.rate is None:
            load = {"concurrency": float(max(int(plan["concurrency"]), 1))}
        precision = plan["precision"] if plan.get("converted") else self.precision
        if plan["prompt_workers"]:
            shape = ",".join(f"{name}={degree}" for name, degree in degrees.items())
            load["prefill"] = f"workers={plan['prompt_workers']},{shape}"
        return {"chip": plan["chip"], "runtime": plan["runtime"], "precision": precision, **load, **degrees}


@dataclass(frozen=True, kw_only=True)
class CompareRequest(PlanRequest):
    """The best plan of each of some chips, side by side."""

    chips: str = ask(
        "the chips to compare, separated by commas; with --have, in its place", MISSING, file=True, reading=NAMES
    )

    def run(self) -> PlanReport | MovedReport | MediaReport:
        """The best plan of every chip; with chips that one has, what changes where these take their place. Raises the
        errors of `ranked`."""
        return super().run() if self.have is None else self._moved()

    def answers(self) -> Generator[Any, None, Any]:
        """At once what takes two plans."""
        return (yield from super().answers()) if self.have is None else self.answer()

    def glance(self) -> Any:
        """The ranked plans alone, or all of what changes."""
        return super().glance() if self.have is None else self.answer()

    def _moved(self) -> MovedReport:
        """The plan of what one has, and that of the other chips."""
        if self.media(self.model) or self.task == "local":
            what = "compare --have is of language models that serve many or write a batch"
            hint = Sentence(CommandText("plan ... --have 8xh100"), " and then --chips, one after the other")
            raise UsageError(what, hint, field="have")
        unpaid = {f.name: f.default for f in fields(PlanRequest) if f.name in PAID}
        mine = about(self, PlanRequest, chips=None, **unpaid)
        others = about(self, PlanRequest, have=None).run()
        assert isinstance(others, PlanReport)
        have, (_, at_most) = mine.owned() or {}, capped(self.values["chips"])
        before, stays = None, ""
        try:
            before = cast(PlanReport, mine.run()).plans[0]
        except InfeasibleError as e:
            stays = e.what
        there = have.get(before.chip, 0) if before else 0
        return MovedReport.of(others, before, stays, (there, at_most.get(others.plans[0].chip, 0)))


@dataclass(frozen=True, kw_only=True)
class EstimateOptions(SampleOptions, PriceOptions, LengthOptions, PlaceOptions):
    """One deployment and how it is used."""

    task: Task = ask(TASK, "serve")


@dataclass(frozen=True, kw_only=True)
class EstimateRequest(EstimateOptions):
    """One plan in full: its times, what they are made of, its memory."""

    model: str = ask(MODEL, MISSING, file=True, reading=CONFIG)

    def run(self) -> PlanReport | MediaReport:
        """The plan as it is, without targets. Raises the errors of `api.estimate`."""
        if self.media(self.model):
            from chipwise.api import media

            return self.beside(self.model, self.task, media.estimate(*self.placed_network()))
        return self.report()

    def placed_network(self) -> tuple[str, str, Terms, Sampling]:
        """A model that generates no tokens on its chip, under its terms and at its sizes."""
        terms = replace(SoftwareOptions.terms(self, numbers_of(self.parameters)), pricing=self.pricing())
        if self.rate is not None and self.task != "serve":
            what = "--rate is of many users, who share the chips"
            raise UsageError(what, "leave --rate out, or --task serve", field="rate")
        asked = replace(
            self.sampling(),
            software=self.software or "",
            level=self.level,
            task=self.task,
            rate_per_s=self.values["rate"],
        )
        return self.model, self.chip, terms, asked

    def report(self) -> PlanReport:
        """The same of a language model."""

        workload, given = self.workload(self.task), self.given()
        sized = partial(about, self, FitRequest, chips=self.chip, context=f"{workload.context:.10g}")
        with hinting("fit", sized):
            return estimate(
                self.model,
                workload,
                given,
                self.terms(numbers_of(self.parameters)),
                evidence=self.evidence in ("all", "published"),
            )

    def planned(self) -> PlanRequest:
        """The question for the best plan on the same chip, under the same options."""
        return about(self, PlanRequest, chips=self.chip)


@dataclass(frozen=True, kw_only=True)
class ExplainRequest(EstimateRequest):
    """The bottleneck of a plan and what would help: shares of time, elasticities, memory by kind."""

    serial: str | None = ask(SERIAL, reading=SHARE)

    def idle(self) -> tuple[str, ...]:
        """A serial part is of a language model's request."""
        return (*super().idle(), "serial")

    def run(self) -> ExplainReport | MediaExplainReport:
        """The plan, and the crossover to a CPU where a serial part is named. Raises the errors of `api.estimate`."""
        fraction = self.values["serial"]
        if self.media(self.model):
            from chipwise.api import media

            found = media.explain(*self.placed_network())
            return self.beside(self.model, self.task, found)
        report = self.report()
        if fraction is None:
            return ExplainReport.of(report, None)
        w = report.workload
        work = 2.0 * report.model.active_params * (w.prompt_tokens + w.output_tokens)
        changes = self.values["set_"]
        return ExplainReport.of(report, amdahl((self.given().chip,), fraction, work, changes=changes))


@dataclass(frozen=True, kw_only=True)
class FitOptions(SampleOptions, SoftwareOptions):
    """What shall fit, and where."""

    chips: str | None = ask(
        "only these, separated by commas; with a count that many, e.g. h200,16xh100,p5.48xlarge; a model without "
        "tokens is copied to each of them, or shared as --spread says",
        file=True,
        reading=NAMES,
    )
    software: str | None = ask(
        "date or version of the serving software, e.g. 2025-06 or vllm 0.11, as it keeps memory; default: the newest"
    )
    count: int | None = ask("ask about this many chips; default: the fewest that fit")
    context: str | None = ask("tokens of a sequence, prompt and output", reading=figure("", low=1, high=1e9))
    batch: int = ask("sequences, or samples of models without tokens, held at once", 1)
    host_memory: str | None = ask(HOST_MEMORY, reading=HOST_BYTES)
    lora: str | None = ask(LORA, reading=ADAPTERS)


@dataclass(frozen=True, kw_only=True)
class FitRequest(FitOptions):
    """Does it fit: memory by kind on every chip, smallest count, largest batch and context, what would help."""

    model: str = ask(MODEL, MISSING, file=True, reading=CONFIG)

    def run(self) -> FitReport | MediaReport:
        """The memory of a model on every chip asked for. Raises the errors of `api.fit`."""
        if self.media(self.model):
            from chipwise.api import media

            if self.software is not None:
                what = "--software says nothing of the memory of a model without tokens"
                raise UsageError(what, "leave it out", field="software")
            asked = self.sampling()
            return media.fit(self.model, self.terms(), asked, self.values["chips"] or ())
        count_of(self.count, "--count", "chips", 100_000)
        count_of(self.batch, "--batch", "sequences", 10_000_000)
        context = self.values["context"]
        said = self.software or "", self.runtime or ""
        tactics = Tactics(software=dated(*said), beyond=beyond(*said))
        return fit(
            self.model,
            replace(self.terms(), tactics=tactics),
            context=None if context is None else int(context),
            sequences=self.batch,
            chips=self.values["chips"] or (),
            count=self.count,
            adapters=self.values["lora"],
            host_memory=self.values["host_memory"],
        )
