"""Candidate plans a second: layouts times batches through memory, step time, targets and price."""

from __future__ import annotations

from datetime import date

from bench.timing import median_s
from chipwise import api
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.chips import load_chips
from chipwise.catalog.pricing import Pricing
from chipwise.search.choose import choose
from chipwise.search.deployments import deployments
from chipwise.search.evaluate import evaluate
from chipwise.search.space import Limits, candidates
from chipwise.workload.workload import Workload

__all__ = ["plans_per_s"]

MODELS = {
    "dense 70 B": "meta-llama/Llama-3.1-70B",
    "experts, latent attention": "deepseek-ai/DeepSeek-V3",
}
WORKLOAD = Workload("serve", 2000, 300, 10.0, 1.0, 0.04)


def plans_per_s() -> dict[str, tuple[float, float]]:
    """For each model: candidates a second of the search alone, and of `api.plan` with reading and records."""
    return {name: _of(model) for name, model in MODELS.items()}


def _of(model: str) -> tuple[float, float]:
    graph = api.load(model).graph
    numbers = shipped_parameters()
    offered, _ = deployments(graph.model, [c for c in load_chips().values() if c.rentable])
    prices = {d.chip.id: Pricing().basis(d.chip.id, date(2026, 11, 21)) for d in offered}
    considered = api.plan(model, WORKLOAD).considered

    def search() -> None:
        for group in candidates(graph, offered, Limits()):
            family, software = group.deployments[0].device.family, group.deployments[0].runtime.id
            costs = numbers.cost(family, software, [d.chip for d in group.deployments])
            rates = costs, numbers.overheads(family, software)
            choose(evaluate(graph, group, WORKLOAD, *rates), WORKLOAD, prices, Limits())

    def whole() -> None:
        api.plan(model, WORKLOAD)

    return considered / median_s(search), considered / median_s(whole)
