"""What every verb that prices plans shares: the model, the load, the parameters and the prices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, fields, replace
from datetime import date
from functools import cached_property

import numpy as np

from chipwise.api.corrected import OwnRuns, corrected, noted
from chipwise.api.loaded import Loaded
from chipwise.api.tactics import Tactics
from chipwise.calibrate.fit_serving import harnessed, served_overheads
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import load_chips, recalled_words
from chipwise.catalog.override import GIVEN
from chipwise.catalog.price import OwnCosts, Pricing, Rent
from chipwise.catalog.runtime import own_kernels
from chipwise.cost.price import CostParameters
from chipwise.errors import Sentence, Setting, UsageError
from chipwise.evidence.anchors import Correction, Corrections, OwnRun
from chipwise.evidence.axes import chip_axes, served_axes, served_family
from chipwise.evidence.discrepancy import VERIFYING, Scatter, spread_of, spreads_of
from chipwise.evidence.judge import Estimate, Nearness, basis_of, judge
from chipwise.evidence.tiers import tier_of
from chipwise.parallel.layout import Layout
from chipwise.predict.overheads import Overheads
from chipwise.predict.passes import Requests
from chipwise.predict.service import Engines, Loads, Prediction, Service, Stretch
from chipwise.predict.tails import VALID
from chipwise.report.assemble import Deployed, Doubt, Performance, ReplicaSet, plan_record, price_record
from chipwise.report.energy import Powered
from chipwise.report.plans import PlanRecord, span
from chipwise.report.records import PriceRecord, TailRecord
from chipwise.search.evaluate import Bounds, bounds_of, use_of
from chipwise.search.memory import memory_of, row_of
from chipwise.search.space import Deployment, Group
from chipwise.search.targets import Caution, stretched, tails_at
from chipwise.units import Array
from chipwise.values import dataclass
from chipwise.workload.graph import Graph
from chipwise.workload.workload import Workload

QUANTILES = (0.5, 0.95, 0.99)
OwnAnchors = Callable[[Graph, Parameters], OwnRuns | None]
"""What a user measured of a model, priced under these numbers; None where nothing of it can be asked about."""


@dataclass(frozen=True)
class Context:
    """A loaded model under a workload, with the numbers and prices of one day.

    `pricing` None: chips that the user has, at no price. `own`: where the user's measurements are found that correct
    what is predicted, None: they do not count.
    """

    found: Loaded
    workload: Workload
    numbers: Parameters
    today: date
    pricing: Pricing | None = field(default_factory=Pricing)
    policy: Mapping[str, str] = field(default_factory=dict)
    tactics: Tactics = field(default_factory=Tactics)
    own: OwnAnchors | None = None

    def __post_init__(self) -> None:
        if self.tactics.apart and self.workload.task == "local":
            raise UsageError(
                "--disaggregate is for many users",
                Sentence("add ", Setting("task", "serve"), " or ", Setting("task", "batch")),
            )

    @cached_property
    def measured(self) -> OwnRuns | None:
        """The user's runs of this model, None where there are none or they are not to count."""
        return self.own(self.found.graph, self.numbers) if self.own else None

    def without_budget(self) -> Context:
        """The same, where a job may cost anything."""
        job = self.workload.job
        free = None if job is None else replace(job, max_usd=None)
        return replace(self, workload=replace(self.workload, job=free))

    def rates(self, deployments: Sequence[Deployment]) -> tuple[CostParameters, Overheads]:
        """The parameters of deployments of one family and runtime, a number per deployment where they differ."""
        family, software = deployments[0].device.family, deployments[0].runtime.id
        chips = [d.chip for d in deployments]
        dated, policies = self.tactics.software, deployments[0].policies
        costs = self.numbers.cost(family, software, chips, software=dated, policies=policies)
        if self.tactics.level == "stock":
            graph = self.found.graph
            costs = self.numbers.as_installed(costs, software, chips, dated, graph.model.architecture)
        overheads = served_overheads(self.numbers, family, software)
        if self.tactics.level == "stock":  # submissions run engines of their own, or capture what they send
            overheads = self.numbers.starts(overheads, software, chips, dated)
        overheads = replace(overheads, two_batches="two_batches" in deployments[0].runtime.features)
        return costs, self.tactics.paced(overheads, self.numbers, deployments[0].runtime, chips)

    def caution(self, deployments: Sequence[Deployment]) -> Caution:
        """How far times of deployments may be off, as they are printed, and how surely targets are to hold."""
        if not deployments:
            none = np.empty((2, 0))
            return Caution.of(none, none, none, self.workload.confidence)
        of_family: dict[str, list[int]] = {}
        for i, d in enumerate(deployments):
            of_family.setdefault(served_family(d.runtime.id), []).append(i)
        asked = [self._scatters([deployments[i] for i in rows]) for rows in of_family.values()]
        back = np.argsort([i for rows in of_family.values() for i in rows])
        first, further, whole = (Scatter.join(parts).take(back) for parts in zip(*asked, strict=True))
        by = None
        if self.measured is not None:
            by = self.measured.on([self.run_of(d) for d in deployments], (further.sd(), first.sd()))
            first, further, whole = (first.shrunk(by.first_left), further.shrunk(by.left), whole.shrunk(by.left))
        ends = first.ends(), further.ends(), whole.ends(), self.workload.confidence
        found = Caution.of(*ends, further.of_passes().ends())
        if by is None:
            return found
        return replace(found, first_by=by.passes * by.first, further_by=np.asarray(by.passes))

    def doubt(self, d: Deployment, *, apart: bool | None = None, harnessed: bool = False) -> Doubt:
        """How far the figures of a deployment may be off, before anything of the user's own is looked at: as in other
        people's benchmarks, or in those of a benchmark client that was fitted (`harnessed`)."""
        first, further, whole = self._scatters([d], apart=apart, harnessed=harnessed)
        levels = served_axes(d.chip, d.runtime.id, self.found.graph)
        held = spread_of(chip_axes(d.chip, runtime=d.runtime.id, model=levels["model"]), "media_memory")
        return Doubt(first, further, whole, held)

    def _doubts(self, known: Sequence[Deployment], fleets: Sequence[ReplicaSet]) -> list[Doubt]:
        """The doubt of each of several plans, asked once of those that share a deployment."""
        keys = [(id(d), bool(f.prompt_workers), f.harnessed) for d, f in zip(known, fleets, strict=True)]
        each = {
            key: self.doubt(d, apart=key[1], harnessed=key[2]) for key, d in dict(zip(keys, known, strict=True)).items()
        }
        return [each[key] for key in keys]

    def _scatters(
        self, deployments: Sequence[Deployment], *, apart: bool | None = None, harnessed: bool = False
    ) -> tuple[Scatter, Scatter, Scatter]:
        """How far the time to the first token, that of further ones, and throughput of deployments may be off, whose
        runtimes are of one family. Engines of a desk were measured with one user, tuned software by its throughput
        alone."""
        w, graph, split = self.workload, self.found.graph, self.tactics.apart if apart is None else apart
        lone = w.task == "local"
        levels = [served_axes(d.chip, d.runtime.id, graph, apart=split, lone=lone) for d in deployments]
        family = served_family(deployments[0].runtime.id)
        kind = "points" if harnessed else "published"
        further = spreads_of(levels, family, "rate", kind)
        further = further.looser(VERIFYING) if self.tactics.speculation else further
        whole = further
        if self.tactics.level == "tuned" and w.task != "local":
            scenario = "Offline" if w.task == "batch" else "Server"
            whole = spreads_of([chip_axes(d.chip, scenario=scenario) for d in deployments], "tuned", "tokens")
        return spreads_of(levels, family, "first", kind), further, whole

    def _near(self, d: Deployment) -> Nearness:
        """The tier of a deployment, before anything of the user's own is looked at. Engines of a desk were measured
        with one user: of many nothing is known."""
        if own_kernels(d.runtime.id) and self.workload.task != "local":
            return "kind"
        experts, level = self.found.graph.routed, self.tactics.level
        return tier_of(d.chip, d.runtime.id, self.numbers, experts=experts, level=level)

    def ends(self, d: Deployment) -> Estimate:
        """The ends of the 80 % interval of its passes over their middle: those of the time per token."""
        return judge(1.0, self.doubt(d).further.around(), basis_of(self._near(d)))

    def run_of(
        self, d: Deployment, layout: Layout | None = None, concurrency: float = float("nan"), name: str = ""
    ) -> OwnRun:
        """A deployment as anchors compare it, at so many requests in flight of each replica."""
        model, w = self.found.graph.model, self.workload
        cell = (model.architecture, d.chip.id, d.runtime.id, d.apart)
        key = (*cell, model.layers, model.hidden, model.precision.name)
        degrees = None if layout is None else tuple(float(layout.part(x)) for x in ("tp", "pp", "dp", "ep"))
        return OwnRun(name, cell, key, degrees, (concurrency, w.prompt_tokens, w.output_tokens))

    def basis(self, chip: str) -> Rent | OwnCosts | None:
        """How a chip is paid, None where that is unknown or nothing is paid."""
        return self.pricing.basis(chip, self.today) if self.pricing else None

    def price(self, chip: str, chips: int, group: int = 1) -> PriceRecord | None:
        """What `chips` of a chip cost, every `group` of them in one machine; None as for `basis`."""
        return price_record(self.basis(chip), chips, group)

    def loads(self, group: Group, engines: Engines, service: Service) -> Loads:
        """Engines of candidates of a group ready to be loaded, under the harness that was named."""
        d = group.deployments[0]
        seen = harnessed(service.take(group.which), self.tactics.harness, d.runtime.id, self.numbers, apart=d.apart)
        return engines.under(seen)

    def records(
        self,
        group: Group,
        loads: Loads,
        found: Prediction,
        fleets: Sequence[ReplicaSet],
        *,
        rate_per_s: float | None = None,
        quantiles: Mapping[str, tuple[Array, Array]] | None = None,
        judged: Deployment | None = None,
    ) -> list[PlanRecord]:
        """The plan of every candidate of a group at a load that was found for its engines, [N, 1]: `rate_per_s`
        requests that arrive whatever happens (None: clients who wait for their answers, or as many as fit). `quantiles`
        are its `tails`, where they are known; `judged` is the deployment whose errors the intervals are of, where it is
        not the candidate itself."""
        requests = Requests.of(self.workload, group.deployments[0].policies)
        memory = memory_of(self.found.graph, group, requests)
        bounds = bounds_of(self.found.graph, group, loads.engines, found)
        quantiles = dict(self.tails(loads, found) if quantiles is None else quantiles)
        use = use_of(self.found.graph, group, loads.engines, found)
        known = [judged or group.deployments[int(i)] for i in group.which]
        near = [self._near(d) for d in known]
        doubt = self._doubts(known, fleets)
        by = self._corrections(group, found, fleets, doubt)
        stretch = self._stretched(group, loads, found, fleets, rate_per_s)
        if by is not None:
            found = corrected(found, by, self.workload.output_tokens, driven=rate_per_s is not None)
            quantiles = by.of_times(quantiles)
        records, w = [], self.workload
        for row, fleet in enumerate(fleets):

            def of_row(values: Array, row: int = row) -> Array:
                return np.asarray(values[row, 0])

            d = group.deployments[int(group.which[row])]
            layout = _layout(group, row)
            package = d.chip.devices_per_package
            chips = fleet.devices(layout) // package
            # of parts that share a model only one would be counted
            powered = None if d.holds is not None else Powered.of(d.chip, chips, d.system, self.numbers)
            ranks = min(float(layout.tp * layout.dp), float(np.asarray(d.device.domain)))
            together = max(int(ranks) // package, 1)
            does = Performance(
                found.each(of_row),
                Bounds(*(np.asarray(getattr(bounds, f.name)[row]) for f in fields(Bounds))),
                row_of(memory, row),
                {name: TailRecord(*(_known(t, row) for t in pair)) for name, pair in quantiles.items()},
                None if powered is None else (powered, use.take(row)),
            )
            record = plan_record(
                Deployed(
                    d,
                    layout,
                    replace(fleet, stretch=stretch[row]),
                    self.found.graph.model,
                    w,
                    near[row],
                    doubt[row],
                    Correction() if by is None else by.of(row),
                ),
                does,
                self.price(d.chip.id, chips, together),
            )
            records.append(record if by is None else noted(record, by, row))
        return records

    def _stretched(
        self, group: Group, loads: Loads, found: Prediction, fleets: Sequence[ReplicaSet], rate_per_s: float | None
    ) -> list[Stretch]:
        """What longer passes do to times of every candidate, as fleets say it or as it is asked now."""
        known = [fleet.stretch for fleet in fleets if fleet.stretch is not None]
        if len(known) == len(fleets):
            return known
        passes = self.caution(group.deployments).take(group.which).passes
        return stretched(loads, found, self.workload, rate_per_s, passes)

    def _corrections(
        self, group: Group, found: Prediction, fleets: Sequence[ReplicaSet], doubts: Sequence[Doubt]
    ) -> Corrections | None:
        """What the user's runs say of candidates, None where they say nothing of any."""
        if self.measured is None:
            return None
        runs = []
        for row, fleet in enumerate(fleets):
            layout = _layout(group, row)
            each = float(found.concurrency[row, 0]) / fleet.carrying
            runs.append(self.run_of(group.deployments[int(group.which[row])], layout, each))
        further, first = (np.array([float(getattr(d, name).sd()[0]) for d in doubts]) for name in ("further", "first"))
        by = self.measured.on(runs, (further, first), (found.tpot_s[:, 0], found.ttft_s[:, 0]))
        return by if by.used.any() else None

    def tails(self, loads: Loads, found: Prediction) -> dict[str, tuple[Array, Array]]:
        """Quantiles of TTFT and TPOT at a load and its neighbours, which say how times grow with the batch; none for a
        lone user or for throughput alone."""
        if self.workload.task != "serve":
            return {}
        shares = tuple(sorted({*QUANTILES, self.workload.percentile or 0.5}))
        quantiles = tails_at(loads, found, self.workload, shares)
        return {f"p{q * 100:g}": (quantiles.ttft_s[q], quantiles.tpot_s[q]) for q in shares}

    def _load(self) -> Iterator[str]:
        lengths, prefix = self.workload.served, self.workload.prefix
        if self.workload.log is not None:
            yield f"lengths as in the log: {self.workload.log.line}"
            yield from self.workload.log.said
        elif lengths.prompt_cv or lengths.output_cv:
            yield f"lengths log-normal, deviation over mean {lengths.prompt_cv:g} in and {lengths.output_cv:g} out"
        else:
            yield "every request has the mean length"
        if prefix is None:
            yield "no prefix cache"
        else:
            common = f", {prefix.common_tokens:,.0f} tokens shared by all" if prefix.common_tokens else ""
            yield f"{prefix.cached_share:.0%} of prompt tokens found in the prefix cache{common}"

    def assumptions(self, plans: Sequence[PlanRecord], chips: Iterable[Chip]) -> tuple[str, ...]:
        """Everything that the answer rests on and the user did not say; `chips` are those asked about, with the user's
        figures."""
        notes = [*self.found.notes, *self.found.graph.model.assumptions]
        notes.append("continuous batching")
        notes += [*self._load(), *self.tactics.notes(self.found.graph, self.numbers)]
        if any(p.ttft_s.provisional for p in plans):
            notes.append(
                "intervals of chips and runtimes that nobody measured are provisional: no measurement tests them"
            )
        if any(p.tails for p in plans):
            notes.append(f"p95, p99: {VALID}")
        if any(p.kwh_per_million_out for p in plans):
            notes.append("energy: watts of chips by what they do, at the wall with their hosts; cooling left out")
        notes += _peer_words(plans, {chip.id: chip for chip in chips})
        notes += recalled_words(name for p in plans for name in (p.chip, *(part.chip for part in p.parts)))
        notes += [f"{name} = {value}, set by you" for name, value in self.policy.items()]
        return (*notes, *_priced_words([p.price for p in plans if p.price]))


def _layout(group: Group, row: int) -> Layout:
    """That of one candidate of a group."""
    return Layout(*(float(np.asarray(group.layout.part(x))[row]) for x in ("tp", "pp", "dp", "ep")))


def _peer_words(plans: Sequence[PlanRecord], chips: Mapping[str, Chip]) -> Iterator[str]:
    """How cards without links of their own are taken to exchange what a layout over several of them asks."""
    over = [(p.chip, p.layout.tp * p.layout.dp) for p in plans if max(p.layout.tp, p.layout.dp, p.layout.ep) > 1]
    for name in sorted({chip for chip, _ in over}):
        chip = chips.get(name) or load_chips().get(name)
        if chip is None or chip.family != "simt":
            continue
        if any(_unlinked(chip, ranks) for other, ranks in over if other == name):
            yield _exchange_words(name, chip)


def _unlinked(chip: Chip, ranks: int) -> bool:
    """Whether so many cards meet over no link or network of their own."""
    if chip.scaleup is None or not chip.scaleup.bytes_per_s:
        return True
    # beyond their links they meet over a network, but for cards with a bridge
    return chip.staged_bytes_per_s is not None and ranks > chip.scaleup.domain


def _exchange_words(name: str, chip: Chip) -> str:
    """How cards exchange over the bus."""
    if chip.staged_bytes_per_s is None:
        return (
            f"{name}: cards reach each other's memory over the bus (peer access assumed; where the driver gives "
            "none: --set staged=12.7GB/s)"
        )
    rate, given = chip.staged_bytes_per_s / 1e9, chip.own.get("staged") == GIVEN
    where = "as given" if given else "as in servers (desktop boards: 2 to 3, --set staged=3GB/s)"
    return f"{name}: no peer access; cards exchange through the memory of the host at {rate:.3g} GB/s, {where}"


def _known(times: Array, row: int) -> float | None:
    """The time, None where no formula holds."""
    seconds = float(times[row, 0])
    return seconds if np.isfinite(seconds) else None


def _priced_words(prices: Sequence[PriceRecord]) -> Iterator[str]:
    """What prices are, and from when."""
    if prices:
        yield prices[0].basis
    if dated := sorted(p.date for p in prices if p.date):
        yield f"prices of {span(dated[0], dated[-1])}"
