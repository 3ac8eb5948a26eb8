"""The user's own runs as anchors: each is asked as the question that it answers, and takes the answer of `estimate`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from chipwise.api.corrected import OwnRuns
from chipwise.api.estimating import AskedLoad, alike, asked, loads_of, served
from chipwise.api.loaded import load
from chipwise.api.placing import Given, Terms
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.runtime import get_runtime
from chipwise.errors import ChipwiseError, UsageError
from chipwise.evidence.anchors import Anchors, OwnRun
from chipwise.evidence.item import Item
from chipwise.evidence.store import Store
from chipwise.parallel.layout import Layout
from chipwise.workload.formats import FORMATS
from chipwise.workload.gguf import GGUF
from chipwise.workload.graph import Graph
from chipwise.workload.workload import Workload


def stored_runs(graph: Graph, numbers: Parameters) -> OwnRuns | None:
    """The runs of this and other sizes of a model that the user measured, as `own_runs` has them."""
    kept = [item for item in Store().items() if item.measured_by_user and item.chip]
    return own_runs(kept, graph, numbers) if kept else None


def own_runs(items: Iterable[Item], graph: Graph, numbers: Parameters) -> OwnRuns | None:
    """A user's runs of models of one architecture as anchors, None where none can be asked about: those that say too
    little, or that cannot have run so, are left out."""
    kept: list[tuple[Item, AskedLoad]] = []
    for item in items:
        if not _alike(item.model, graph):
            continue
        try:
            kept.append((item, load_of_item(item, numbers)))
        except ChipwiseError:
            continue
    if not kept:
        return None
    runs: list[OwnRun] = []
    columns: list[tuple[float, float, float, float]] = []
    for (item, a), times in zip(kept, _times([a for _, a in kept]), strict=True):
        tpot, ttft = times["tpot_s"], times["ttft_s"]
        each = (a.concurrency or _in_flight(item, times)) / a.replicas
        runs.append(a.context.run_of(a.deployment, a.layout, each, item.id))
        columns.append((tpot, ttft, _tpot(item, tpot, ttft, each * a.replicas), _ttft(item)))
    return OwnRuns(Anchors(runs, *map(np.array, zip(*columns, strict=True))))


def _times(asks: list[AskedLoad]) -> list[Mapping[str, float]]:
    """Seconds per further token and to the first one of every question, as `estimate` answers it."""
    found: dict[int, Mapping[str, float]] = {}
    for members in alike(asks):
        mine = [asks[i] for i in members]
        times = served(mine, loads_of(mine)[1])
        for place, i in enumerate(members):
            found[i] = {name: float(getattr(times, name)[place, 0]) for name in ("tpot_s", "ttft_s")}
    return [found[i] for i in range(len(asks))]


def load_of_item(item: Item, numbers: Parameters | None = None) -> AskedLoad:
    """The deployment and load of a run. Raises `UsageError` where it does not say what ran, under which load, and the
    errors of `estimate`."""
    if not (item.chip and item.model and item.input_tokens and item.output_tokens):
        raise UsageError(f"{item.id} does not say what ran", "chip, model, tokens in and out are needed")
    lone = item.scenario == "local"
    open_ = not lone and not item.concurrency and "open" in item.scenario
    software = item.runtime.lower().split()
    return asked(
        item.model,
        Workload("local" if lone else "serve", item.input_tokens, item.output_tokens),
        Given(
            item.chip,
            _layout(item),
            concurrency=None if lone else item.concurrency or None,
            rate_per_s=item.requests_per_s if open_ else None,
        ),
        Terms(
            _format(item.precision.lower()),
            runtime=get_runtime(software[0]).id if software else None,
            parameters=numbers,
        ),
    )


def _layout(item: Item) -> Layout:
    """How a run was spread; where it does not say, by tensor parallelism over its chips. Raises `UsageError`."""
    degrees = {k: int(v) for k, _, v in (part.partition("=") for part in item.layout.split(",") if part)}
    strange = [k for k, n in degrees.items() if k not in ("tp", "pp", "dp", "ep") or n < 1]
    if strange:
        raise UsageError(f"{item.id}: {strange[0]}={degrees[strange[0]]} is no degree of a served model")
    return Layout(**{k: float(n) for k, n in (degrees or {"tp": item.chips or 1}).items()})


def _format(name: str) -> str | None:
    """A precision as `--precision` takes it; None for 16 bits, which is what checkpoints are stored in, and for words
    that name no format."""
    if name in FORMATS:
        return name if FORMATS[name].bits < 16 else None
    return name if name in GGUF else None


def _in_flight(item: Item, times: Mapping[str, float]) -> float:
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
        return load(name).graph.model.architecture == graph.model.architecture
    except ChipwiseError:
        return False
