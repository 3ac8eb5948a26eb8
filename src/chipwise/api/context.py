"""What every verb that prices plans shares: the model, the load, the parameters and the prices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

import numpy as np

from chipwise.api.loaded import Loaded
from chipwise.calibrate.fit_serving import served_overheads
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.pricing import Pricing
from chipwise.cost.time import CostParameters
from chipwise.parallel.layout import Layout
from chipwise.predict.inference import Prediction, in_flight
from chipwise.predict.overheads import Overheads
from chipwise.report.assemble import plan_record, price_record
from chipwise.report.plan_view import span
from chipwise.report.records import PlanRecord, PriceRecord
from chipwise.search.evaluate import memory_of, predict, single
from chipwise.search.space import Deployment
from chipwise.units import Array
from chipwise.workload.workload import Workload

__all__ = ["Context"]


@dataclass(frozen=True)
class Context:
    """A loaded model under a workload, with the numbers and prices of one day.

    `pricing` None: chips that the user has, at no price.
    """

    found: Loaded
    workload: Workload
    numbers: Parameters
    today: date
    pricing: Pricing | None = field(default_factory=Pricing)
    policy: Mapping[str, str] = field(default_factory=dict)

    def rates(self, deployments: Sequence[Deployment]) -> tuple[CostParameters, Overheads]:
        """The parameters of deployments of one family and runtime, a number per deployment where they differ."""
        family, software = deployments[0].device.family, deployments[0].runtime.id
        costs = self.numbers.cost(family, software, [d.chip for d in deployments])
        chips = [d.chip for d in deployments]
        architecture = self.found.graph.model.architecture
        overheads = served_overheads(self.numbers, family, software, chips, architecture)
        return costs, overheads

    def price(self, chip: str, chips: int) -> PriceRecord | None:
        """What `chips` of a chip cost, None where that is unknown or nothing is paid."""
        return price_record(self.pricing.basis(chip, self.today), chips) if self.pricing else None

    def usd_per_chip_h(self, chip: str) -> float:
        """Middle price of a chip, NaN where unknown."""
        price = self.price(chip, 1)
        return price.mid if price else float("nan")

    def at_batches(self, d: Deployment, layout: Layout, batches: Array) -> Prediction:
        """One replica at each of some numbers of decoding sequences, without interpolation."""
        micro = batches / float(in_flight(self.workload, layout.pp) * layout.dp)
        return predict(self.found.graph, single(d, layout), self.workload, *self.rates((d,)), micro)

    def at_batch(self, d: Deployment, layout: Layout, replicas: int, batch: float) -> PlanRecord:
        """The plan with `batch` sequences decoding in each replica."""
        graph = self.found.graph
        group = single(d, layout)
        prediction = self.at_batches(d, layout, np.array([batch]))
        memory = memory_of(graph, group, self.workload)
        price = self.price(d.chip.id, replicas * int(layout.devices) // d.chip.devices_per_package)
        name = graph.model.precision.name
        return plan_record(d, layout, replicas, prediction, memory, self.workload, name, price)

    def assumptions(self, plans: list[PlanRecord]) -> tuple[str, ...]:
        """Everything that the answer rests on and the user did not say."""
        notes = [*self.found.notes, *self.found.graph.model.assumptions]
        notes.append("continuous batching, no prefix cache, no speculative decoding, mean lengths")
        notes.append("intervals are provisional: their coverage is not tested yet")
        notes += [f"{name} = {value}, set by you" for name, value in self.policy.items()]
        priced = [p.price for p in plans if p.price]
        if priced:
            notes.append(priced[0].basis)
            dated = [p for p in priced if p.newest]
            if dated:
                oldest, newest = min(p.oldest for p in dated), max(p.newest for p in dated)
                notes.append(f"prices of {span(oldest, newest)}")
        return tuple(notes)
