"""step and simulate: a deployment pass by pass, and request by request."""

from __future__ import annotations

from dataclasses import MISSING, replace
from typing import TYPE_CHECKING, Literal

from chipwise.api.estimating import asked
from chipwise.api.media_time import SAMPLE
from chipwise.api.requests.field import CONFIG, ask, count_of, duration, option_of
from chipwise.api.requests.parts import (
    LengthOptions,
    PlaceOptions,
    SampleOptions,
    ScaleOptions,
    Serving,
    SoftwareOptions,
    TierOptions,
    tokenless,
)
from chipwise.api.requests.planning import MODEL
from chipwise.api.simulating import SimulatedTraffic, runs_of, simulate
from chipwise.api.stepping import pass_times
from chipwise.errors import UsageError
from chipwise.report.simulated import SimulationReport
from chipwise.values import dataclass
from chipwise.workload.arrivals import Arrivals, read_log, read_times
from chipwise.workload.lengths import Lengths
from chipwise.workload.workload import Workload

if TYPE_CHECKING:
    from chipwise.api.estimating import AskedLoad
    from chipwise.api.media import NetworkCopies
    from chipwise.api.simulating import RepeatedRuns, SimulatedTraffic
    from chipwise.api.stepping import PassTimes


@dataclass(frozen=True, kw_only=True)
class StepRequest(Serving, PlaceOptions):
    """The seconds of any pass of a deployment: of one rank of one replica, as a value that answers without delay."""

    model: str = ask(MODEL, MISSING, file=True, reading=CONFIG)

    def run(self) -> PassTimes:
        """The passes. Raises the errors of `api.estimate`, and `UsageError` for what no pass depends on."""
        for name in ("concurrency", "rate", "replicas", "disaggregate", "prefill", "harness", "host_memory"):
            if getattr(self, name) != type(self).__dataclass_fields__[name].default:
                what = f"{option_of(name)} changes no pass"
                raise UsageError(what, "a pass is one of one rank of one replica: leave it out", field=name)
        if tokenless(self.model):
            hint = "chipwise estimate predicts its time, for example chipwise estimate resnet50 --chip h100"
            what = f"{self.model} generates no tokens: no pass of it is priced by tokens"
            raise UsageError(what, hint, field="model")
        return pass_times(asked(self.model, Workload(output_tokens=1.0), self.given(), self.terms()))


SHARE_TOLD = ", e.g. 500ms: the share of requests within it is shown"


@dataclass(frozen=True, kw_only=True)
class DeployedSimulation(SampleOptions, Serving, LengthOptions, PlaceOptions, ScaleOptions, TierOptions):
    """What one can ask of a deployment through time."""

    model: str = ask(MODEL, MISSING, file=True, reading=CONFIG)
    chip: str | None = ask(  # type: ignore[assignment]
        "a chip or several (8xh100); without one the model is a file of --save, of which a plan is simulated", file=True
    )
    plan: int = ask("number of the plan in the file of --save", 1)
    requests: int | None = ask("requests to simulate; default: all of --log, else 2000; without --rate all at once")
    burstiness: float | None = ask(
        "coefficient of variation of gaps between arrivals of --rate; 0 a clock; default: 1, Poisson"
    )
    seed: int = ask("of the random draws: equal seeds give equal answers", 0)
    route: Literal["least", "turn", "prefix", "queue"] | None = ask(
        "where a request goes: to the replica with the least in flight (default), in turn, or where its prefix is; of "
        "models without tokens also queue: to the first that is free (their default)"
    )
    ttft: str | None = ask(f"target for the time to the first token{SHARE_TOLD}", reading=duration())
    tpot: str | None = ask(f"target for the time per output token{SHARE_TOLD}", reading=duration())
    e2e: str | None = ask(f"target for the time of a whole answer{SHARE_TOLD}", reading=duration())

    def run(self) -> SimulationReport:
        """What becomes of the requests. Raises the errors of `api.estimate` and `api.simulating.simulate`."""
        if self.chip is None:
            hint = "for example --chip h100, or the file of a saved plan"
            raise UsageError("simulate needs a chip", hint, field="chip")
        network = self.media(self.model)
        self._check()
        if self.route == ("prefix" if network else "queue"):
            what = "has no prefixes" if network else "keeps a queue at each replica, where its cache is"
            raise UsageError(f"--route {self.route}: {self.model} {what}", "least or turn", field="route")
        if network:
            return self._network()
        workload, given = self.workload("serve"), self.given()
        if given.parted:
            what = "a model over several parts of a machine is not simulated"
            raise UsageError(what, "name one kind of chip", field="chip")
        one = self.load_asked()
        names = {"ttft": "TTFT", "tpot": "TPOT", "e2e": "whole answer"}
        targets = {told: self.values[name] for name, told in names.items() if self.values[name] is not None}
        traffic = self.traffic(workload.served, workload.log)
        return simulate(
            one,
            traffic,
            route=self.route or "least",
            targets=targets,
            scaling=self.values["scale"],
            below=self.values["cache_tiers"],
        )

    def outcomes(self, arrivals: Arrivals) -> RepeatedRuns:
        """What becomes of each of these requests, of a model that generates no tokens of so many samples. Raises the
        errors of `run`."""
        traffic = SimulatedTraffic(arrivals, arrivals.named)
        if self.media(self.model):
            return self._copies().runs(replace(traffic, arrivals=replace(arrivals, sized=False)))
        return runs_of(self.load_asked(), traffic)

    def load_asked(self) -> AskedLoad:
        """The deployment and its load, of a model that generates tokens."""
        return asked(self.model, self.workload("serve"), self.given(), self.terms())

    def common(self) -> tuple[str, ...]:
        """Arrivals are of requests of any kind."""
        return "log", "concurrency", "scale"

    def idle(self) -> tuple[str, ...]:
        """A training step is no request."""
        return ("training",)

    def _network(self) -> SimulationReport:
        """The same of a model that generates no tokens."""
        log = None if self.log is None else read_times(self.log)
        traffic = self.traffic(SAMPLE, log)
        alone = replace(traffic, arrivals=replace(traffic.arrivals, sized=False))
        within_s, scaling = self.values["e2e"], self.values["scale"]
        return self._copies().simulated(alone, route=self.route or "queue", within_s=within_s, scaling=scaling)

    def _copies(self) -> NetworkCopies:
        """The copies of a model that generates no tokens."""
        from chipwise.api import media

        sizes = replace(self.sampling(), software=self.software or "", level=self.level)
        return media.NetworkCopies.of(self.model, str(self.chip), SoftwareOptions.terms(self), sizes)

    def traffic(self, lengths: Lengths, log: Arrivals | None) -> SimulatedTraffic:
        """Requests of such lengths or of a log, and how they come. Raises `UsageError` where nothing says so."""
        count, rate = self.requests, self.values["rate"]
        clients = None if self.concurrency is None else max(round(self.concurrency), 1)
        if log is None and rate is not None:
            how = 1.0 if self.burstiness is None else self.burstiness
            return SimulatedTraffic.random(lengths, count or REQUESTS, rate, burstiness=how, seed=self.seed)
        if log is None:
            drawn = Arrivals.drawn(lengths, count or REQUESTS, None, seed=self.seed)
            return SimulatedTraffic(drawn, "all at once" if clients is None else _clients(clients), clients)
        drawn = log if count is None else log.first(count)
        if rate is not None:
            drawn = drawn.at_rate(rate)
        if clients is not None:
            return SimulatedTraffic(drawn, f"{drawn.line}; {_clients(clients)}", clients)
        return SimulatedTraffic(drawn, drawn.line if drawn.time_s is not None else f"{drawn.line}; all at once")

    def _check(self) -> None:
        """Raises `UsageError` for what changes nothing, cannot be, or leaves open what comes."""
        count_of(self.requests, "--requests", "requests", 10_000_000)
        if self.burstiness is not None and not 0.0 <= self.burstiness <= 100.0:
            raise UsageError(f"--burstiness {self.burstiness:g} is out of range", "0 to 100", field="burstiness")
        if self.seed < 0:
            raise UsageError(f"--seed {self.seed} is out of range", "0 or more", field="seed")
        drawn = self.log is None
        at_once = "arrivals come as they are: --requests 1000 is a benchmark that sends all at once"
        for name, useless, hint in (
            ("burstiness", not drawn or self.rate is None, "it is of random arrivals: --rate 10/s, without --log"),
            ("seed", not drawn, "a log is taken as it is"),
            ("prefix_hit", not drawn and self.prefix_hit and self._shares(), "the log says what prompts share"),
            ("harness", True, at_once),
            ("plan", True, "it is a number in a saved answer: name its file instead of a model and a chip"),
        ):
            if getattr(self, name) != type(self).__dataclass_fields__[name].default and useless:
                raise UsageError(f"{option_of(name)} changes nothing here", hint, field=name)
        if drawn and self.rate is None and self.concurrency is None and self.requests is None:
            hint = "--log requests.csv, --rate 10/s, --concurrency 64, or --requests 1000 for all at once"
            raise UsageError("nothing says which requests come", hint, field="requests")

    def _shares(self) -> bool:
        return read_log(str(self.log)).blocks is not None


REQUESTS = 2000
"""Requests that are simulated where nothing else is asked: their p99 is the twentieth longest."""


def _clients(count: int) -> str:
    return f"{count:,} clients, each with one request in flight"
