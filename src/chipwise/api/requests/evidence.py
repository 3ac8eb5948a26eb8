"""evidence, match, claim: what one can ask of published results and one's own."""

from __future__ import annotations

from dataclasses import MISSING
from typing import TYPE_CHECKING, Literal

from chipwise.api.placing import Given, Terms
from chipwise.api.requests.field import CONFIG, NAMES, NUMBER, PAIRS, Asked, Reading, as_word, ask, count_of, duration
from chipwise.api.requests.parts import LENGTH, PERCENTILE, TPOT, TTFT, Targets
from chipwise.api.requests.planning import MODEL, TASK
from chipwise.api.tactics import Tactics
from chipwise.errors import UsageError
from chipwise.report.catalogue import EvidenceReport
from chipwise.report.evidence import NOTICE, ClaimReport, MatchReport
from chipwise.units import parse_quantity
from chipwise.values import dataclass
from chipwise.workload.workload import Task, Workload

if TYPE_CHECKING:
    from chipwise.api.evidence import Filter
    from chipwise.api.evidence_match import Sample

ACCURACY = Reading(
    lambda text, option: parse_quantity(text.strip().removesuffix("%"), "", option, low=0.0, high=100.0),
    as_word,
    (NUMBER,),
)


@dataclass(frozen=True, kw_only=True)
class EvidenceRequest(Asked):
    """Published results of MLPerf Inference and your own measurements: search by words, or filter."""

    search: str | None = ask("words that all occur in id, model, chip, submitter, software or notes")
    benchmark: str | None = ask("for example llama2-70b")
    chip: str | None = ask("on this chip", file=True)
    scenario: str | None = ask("Offline, Server, Interactive, SingleStream or MultiStream")
    round_: str | None = ask("for example v5.1", name="round")
    submitter: str | None = ask("for example NVIDIA")
    own: bool = ask("your imported measurements alone", False)
    best: bool = ask("the best of each chip, count, model, scenario and round alone", False)
    limit: int = ask("at most this many", 15)

    def wanted(self) -> Filter:
        """The results that are asked for."""
        from chipwise.api.evidence import Filter

        return Filter(self.benchmark, self.chip, self.scenario, self.round_, self.submitter)

    def run(self) -> EvidenceReport:
        """The results, those of a search with your own first. Raises `UnknownNameError` for a name in a filter."""
        from chipwise.api.evidence import Filter, list_evidence, search_evidence

        most = count_of(self.limit, "--limit", "lines")
        wanted = self.wanted()
        if self.search is None:
            found = list_evidence(wanted, own=self.own, best=self.best)
        else:
            if wanted != Filter() or self.own or self.best:
                raise UsageError("--search stands alone", "put the names of the filter among its words")
            found = search_evidence((self.search,))
        return EvidenceReport(found[:most], len(found), NOTICE)


@dataclass(frozen=True, kw_only=True)
class Judged(Asked):
    """A workload that results are held against: mean lengths and targets, or what a sample is."""

    by_benchmark = True  # no field: it has no type
    """Whether the model may be a network that chipwise knows by its benchmark alone."""

    in_: str = ask("mean prompt tokens", "2000", name="in", reading=LENGTH)
    out: str = ask("mean output tokens", "300", reading=LENGTH)
    ttft: str | None = ask(TTFT, reading=duration())
    tpot: str | None = ask(TPOT, reading=duration())
    task: Task = ask(TASK, "serve")
    precision: str | None = ask("override the checkpoint's precision")
    runtime: str | None = ask("serving software")
    percentile: str | None = ask(
        "what targets hold for, e.g. p99; default: the mean, of claims p99", reading=PERCENTILE
    )
    level: Literal["stock", "tuned"] = ask(
        "stock: what defaults give; tuned: what benchmark submissions reach", "stock"
    )
    software: str | None = ask("date or MLPerf round of the software, e.g. 2025-06 or v5.0; default: the newest")
    sample: str | None = ask(
        "what a sample is where tokens do not say it, e.g. resolution=1024x1024,steps=20", reading=PAIRS
    )
    accuracy: str | None = ask("percent of the reference's accuracy that is needed, e.g. 99.9", reading=ACCURACY)

    def terms(self) -> Terms:
        """What this says of the terms of a verb."""

        tactics = Tactics(software=self.software or "", level=self.level)
        return Terms(self.precision, runtime=self.runtime, tactics=tactics)

    def workload(self) -> Workload:
        """The workload; a served one without targets gets the stated ones."""
        targets = Targets(in_=self.in_, out=self.out, ttft=self.ttft, tpot=self.tpot, percentile=self.percentile)
        return targets.workload_of(self.task)

    def asked_sample(self) -> Sample:
        """What a sample is, and how exact it has to be."""
        from chipwise.api.evidence_match import Sample

        return Sample(self.values["sample"] or {}, self.accuracy or "")


@dataclass(frozen=True, kw_only=True)
class MatchOptions(Judged):
    """A deployment that results are held against."""

    chip: str | None = ask("a chip; default: what was measured on every chip", file=True)
    count: int | None = ask("total chips")
    concurrency: float | None = ask("concurrent clients; default: as many as fit, with --task local one")
    limit: int = ask("at most this many results", 5)


@dataclass(frozen=True, kw_only=True)
class ClaimOptions(Judged):
    """A lead, and what is planned instead."""

    result: str = ask("the id of a result, as the verb evidence shows it", MISSING)
    against: str | None = ask("other chips, separated by commas; default: the best rivals", reading=NAMES)
    count: int | None = ask("your chips; default: those of the result")


@dataclass(frozen=True, kw_only=True)
class EvidenceMatchRequest(MatchOptions):
    """The published results nearest to a plan, axis by axis (same, near, different, unknown), and what they would make
    of the prediction; of any network of MLPerf, by name alone, what was measured on each chip."""

    model: str = ask(MODEL, MISSING, file=True, reading=CONFIG)

    def run(self) -> MatchReport:
        """The nearest results. Raises `UnknownNameError` for an unknown model or chip."""
        from chipwise.api.evidence_match import match_evidence, measured_evidence

        if self.concurrency is not None and not 0 < self.concurrency < 1e7:
            what = f"--concurrency {self.concurrency:g} is out of range"
            raise UsageError(what, "more than 0", field="concurrency")
        if self.chip is None:
            return measured_evidence(self.model, self.workload())
        return match_evidence(
            self.model,
            self.workload(),
            Given(self.chip, count=count_of(self.count, "--count", "chips"), concurrency=self.concurrency),
            self.terms(),
            most=count_of(self.limit, "--limit", "lines") or 1,
            sample=self.asked_sample(),
        )


@dataclass(frozen=True, kw_only=True)
class CheckClaimRequest(ClaimOptions):
    """Does the lead of a published result over other chips carry over to your workload, and what reverses it."""

    model: str = ask(MODEL, MISSING, file=True, reading=CONFIG)

    def run(self) -> ClaimReport:
        """The verdict, axis by axis. Raises `UnknownNameError` for an unknown result, model or chip."""
        from chipwise.api.evidence_match import claim_evidence

        return claim_evidence(
            self.result,
            self.model,
            self.workload(),
            self.terms(),
            count=count_of(self.count, "--count", "chips"),
            against=self.values["against"] or (),
            sample=self.asked_sample(),
        )
