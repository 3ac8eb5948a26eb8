"""The user's own runs as anchors: each is asked as the question that it answers, and takes the answer of `estimate`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from chipwise.api.corrected import OwnRuns
from chipwise.api.loaded import load
from chipwise.api.requests.planning import EstimateRequest
from chipwise.api.suites.serving import ServingRun, answer, asked_of
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.runtime import get_runtime
from chipwise.errors import ChipwiseError, UsageError
from chipwise.evidence.anchors import Anchors, OwnRun
from chipwise.evidence.item import Item
from chipwise.workload.formats import FORMATS
from chipwise.workload.gguf import GGUF
from chipwise.workload.graph import Graph


def own_runs(items: Iterable[Item], graph: Graph, numbers: Parameters) -> OwnRuns | None:
    """A user's runs of models with these dimensions as anchors, None where none can be asked about: those that say
    too little, or that cannot have run so, are left out."""
    kept: list[tuple[Item, ServingRun]] = []
    for item in items:
        if not _alike(item.model, graph):
            continue
        try:
            question = question_of_item(item)
            kept.append((item, ServingRun(item.id, question, asked_of(question, numbers))))
        except ChipwiseError:
            continue
    if not kept:
        return None
    answers = answer([run for _, run in kept])
    runs: list[OwnRun] = []
    columns: list[tuple[float, float, float, float]] = []
    for (item, run), found in zip(kept, answers, strict=True):
        tpot, ttft = found.times["tpot_s"], found.times["ttft_s"]
        a = run.asked
        each = (a.concurrency or _in_flight(item, found.times)) / a.replicas
        runs.append(a.context.run_of(a.deployment, a.layout, each, item.id))
        columns.append((tpot, ttft, _tpot(item, tpot, ttft, each * a.replicas), _ttft(item)))
    return OwnRuns(Anchors(runs, *map(np.array, zip(*columns, strict=True))))


def question_of_item(item: Item) -> EstimateRequest:
    """The question that a run answers. Raises `UsageError` where it does not say what ran, under which load."""
    if not (item.chip and item.model and item.input_tokens and item.output_tokens):
        raise UsageError(f"{item.id} does not say what ran", "chip, model, tokens in and out are needed")
    degrees = {k: int(v) for k, _, v in (part.partition("=") for part in item.layout.split(",") if part)}
    software = item.runtime.lower().split()
    question = EstimateRequest(
        model=item.model,
        chip=item.chip,
        in_=f"{item.input_tokens:.10g}",
        out=f"{item.output_tokens:.10g}",
        runtime=get_runtime(software[0]).id if software else None,
        precision=_format(item.precision.lower()),
        task="local" if item.scenario == "local" else "serve",
        evidence="none",
        **(degrees or {"tp": item.chips or 1}),  # type: ignore[arg-type]
    )
    if item.scenario == "local":
        return question  # one user
    if item.concurrency:
        return replace(question, concurrency=item.concurrency)
    if item.requests_per_s and "open" in item.scenario:
        return replace(question, rate=f"{item.requests_per_s:.10g}/s")
    return question


def _format(name: str) -> str | None:
    """A precision as `--precision` takes it; None for 16 bits, which is what checkpoints are stored in, and for words
    that name no format."""
    if name in FORMATS:
        return name if FORMATS[name].bits < 16 else None
    return name if name in GGUF else None


def _in_flight(item: Item, times: dict[str, float] | object) -> float:
    """Requests in flight where none were counted: arrivals times what one takes (Little), else unknown."""
    if not item.requests_per_s or not item.tpot_mean_s:
        return float("nan")
    took = (item.ttft_mean_s or 0.0) + ((item.output_tokens or 1.0) - 1.0) * item.tpot_mean_s
    return item.requests_per_s * took


def _ttft(item: Item) -> float:
    return item.ttft_mean_s or float("nan")


def _tpot(item: Item, tpot_s: float, ttft_s: float, clients: float) -> float:
    """Seconds per further token as measured; of a run that counted tokens alone, those at which its clients get as
    many: C n / R - TTFT over n - 1 tokens."""
    if item.tpot_mean_s:
        return item.tpot_mean_s
    n = item.output_tokens or 1.0
    if not item.tokens_per_s or not np.isfinite(clients) or n <= 1.0:
        return float("nan")
    took = clients * n / item.tokens_per_s
    return took * tpot_s / (ttft_s + (n - 1.0) * tpot_s) if took > 0.0 else float("nan")


def _alike(name: str, graph: Graph) -> bool:
    try:
        model = load(name).graph.model
    except ChipwiseError:
        return False
    mine = graph.model
    return (model.architecture, model.layers, model.hidden) == (mine.architecture, mine.layers, mine.hidden)
