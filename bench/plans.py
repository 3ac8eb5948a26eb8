"""Candidate plans a second: layouts times batches through memory, step time, targets and price."""

from __future__ import annotations

from datetime import date

from bench.timing import median_s
from chipwise import api
from chipwise.api.placing import Terms
from chipwise.api.searching import search
from chipwise.catalog.chips import load_chips
from chipwise.catalog.price import Pricing
from chipwise.search.deployments import deployments
from chipwise.search.space import Limits
from chipwise.workload.workload import Workload

__all__ = ["plans_per_s"]

MODELS = {"dense 70 B": "meta-llama/Llama-3.1-70B", "experts, latent attention": "deepseek-ai/DeepSeek-V3"}
WORKLOAD = Workload("serve", 2000, 300, 10.0, 1.0, 0.04)


def plans_per_s() -> dict[str, tuple[float, float]]:
    """For each model: candidates a second of the search alone, and of `api.plan` with reading and records."""
    return {name: _of(model) for name, model in MODELS.items()}


def _of(model: str) -> tuple[float, float]:
    context = Terms().context(model, WORKLOAD)
    graph = context.found.graph
    terms = Terms(precision=graph.model.precision.name)  # one format, as the search below has it
    offered, _ = deployments(graph.model, [c for c in load_chips().values() if c.rentable], every=True)
    prices = {d.chip.id: Pricing().basis(d.chip.id, date(2026, 11, 21)) for d in offered}
    considered = api.plan(model, WORKLOAD, terms).considered

    def searched() -> None:
        search(context, offered, Limits(), prices)

    def whole() -> None:
        api.plan(model, WORKLOAD, terms)

    return considered / median_s(searched), considered / median_s(whole)
