"""Questions drawn at random over the catalogue, answered many at a time by the code of `estimate`, and what holds of
every answer: for tests, and for a hundred thousand in `bench`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from chipwise.api.estimating import AskedLoad, asked, loads_of
from chipwise.api.requests.planning import EstimateRequest
from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import load_chips
from chipwise.cost.device import Device
from chipwise.errors import ChipwiseError
from chipwise.evidence.judge import judge
from chipwise.predict.service import Loads, Prediction
from chipwise.predict.tails import tails
from chipwise.report.assemble import model_record
from chipwise.search.evaluate import bounds_of
from chipwise.units import Array

__all__ = ["Answers", "answered", "broken", "drawn", "named", "peak_flops"]

MODELS = (
    "meta-llama/Llama-3.1-8B",
    "meta-llama/Llama-3.1-70B",
    "Qwen/Qwen3-32B",
    "Qwen/Qwen3-30B-A3B",
    "openai/gpt-oss-120b",
    "deepseek-ai/DeepSeek-V3",
)
RUNTIMES = ("vllm", "sglang", "trtllm", "llama.cpp")
FORMATS = (None, None, "fp8", "bf16", "int4")

LESS, SAME, NEAR = 0, 1, 2
SCALES = np.array([0.6, 1.0, 1.001])
"""Loads that every question is answered at, as shares of its own."""
JUMP = 0.02
"""What a thousandth more load, or a thousandth longer prompts, may move, beside what is left of an engine's time."""
TILE, LARGEST_STEP = 128, 0.3
"""Rows of a kernel's tile: a prompt that ends on one takes another when it grows, and that share of its time more."""
FIGURES = ("ttft_s", "tpot_s", "requests_per_s")
SLOWER = {"ttft_s": 0.02, "tpot_s": 1e-6, "requests_per_s": 1e-6}
SLOWER_OF_EXPERTS = 0.07
"""By how much a figure may be larger at a lower load: a prompt that rides in a fuller pass reads fewer weights of its
own, so that a first token may come a little sooner; most where a short prompt meets experts that others have read."""


def drawn(count: int, seed: int = 13) -> Iterator[EstimateRequest]:
    """Chip, runtime, format, layout, lengths and load, independent of each other: many cannot be."""
    rng = np.random.default_rng(seed)
    chips = list(load_chips().market())
    for _ in range(count):
        load: dict[str, object] = [
            {},
            {"concurrency": float(np.round(2 ** rng.uniform(0, 8), 1))},
            {"rate": f"{2 ** rng.uniform(-4, 4):.3f}/s"},
        ][rng.integers(3)]
        yield EstimateRequest(
            model=str(rng.choice(MODELS[: 1 if rng.random() < 0.4 else None])),
            chip=str(rng.choice(chips)),
            runtime=None if rng.random() < 0.7 else str(rng.choice(RUNTIMES)),
            precision=FORMATS[rng.integers(len(FORMATS))],
            tp=int(2 ** rng.integers(0, 4)),
            pp=int(rng.choice([1, 1, 1, 2, 4])),
            replicas=int(rng.choice([1, 1, 3])),
            in_=str(int(2 ** rng.uniform(4, 14))),
            out=str(int(rng.choice([1, 2, 3, 30, 300, 3000]))),
            evidence="none",
            **load,  # type: ignore[arg-type]
        )


def named(q: EstimateRequest) -> str:
    """The question in words."""
    return " ".join(f"{k}={v}" for k, v in vars(q).items() if v not in (None, "", 1, False))


@dataclass(frozen=True)
class Answers:
    """Questions of one category and one kind of load with their answers, [N, 3] at `SCALES` of the load of each;
    `near` [N, 1] to prompts a thousandth longer, `tails` [N, figure, quantile] of TTFT and TPOT. What a deployment does
    not carry is left out."""

    questions: Sequence[EstimateRequest]
    asks: Sequence[AskedLoad]
    clients: Array | None
    rates: Array | None
    found: Prediction
    near: Prediction
    least: dict[str, Array]
    tails: Array


QUANTILES = (0.5, 0.95, 0.99)


def answered(questions: Sequence[EstimateRequest], refused: Counter[str]) -> Iterator[Answers]:
    """Answers by category; questions without one are counted in `refused` by the name of the error."""
    groups: dict[tuple[object, ...], list[tuple[EstimateRequest, AskedLoad]]] = {}
    for q in questions:
        try:
            one = _read(q)
        except ChipwiseError as error:
            refused[type(error).__name__] += 1
            continue
        if not one.deployment.apart:
            groups.setdefault((*one.category, q.concurrency is None, q.rate is None), []).append((q, one))
    for pairs in groups.values():
        yield from _answers(pairs, refused)


def _read(q: EstimateRequest) -> AskedLoad:
    return asked(q.model, q.workload(q.task), q.given(), q.terms())


def _answers(pairs: Sequence[tuple[EstimateRequest, AskedLoad]], refused: Counter[str]) -> Iterator[Answers]:
    group, loads = loads_of([a for _, a in pairs])
    first = pairs[0][0]
    clients = rates = None
    if first.rate is not None:
        rates = np.array([[a.rate_per_s] for _, a in pairs], dtype=float)
        fits = loads.open(rates).requests_per_s[:, 0] >= rates[:, 0] * (1.0 - 1e-6)
    else:
        full = loads.full().concurrency
        # where as many as fit are asked for: a little fewer, as those beyond wait outside
        clients = 0.99 * full if first.concurrency is None else np.array([[a.concurrency] for _, a in pairs])
        engines = loads.engines
        fits = clients[:, 0] * SCALES[NEAR] <= engines.limit * engines.ranks * engines.replicas
    refused["too much load"] += int(np.sum(~fits))
    kept = np.flatnonzero(fits)
    if not len(kept):
        return
    asks = [pairs[i][1] for i in kept]
    # asked again, that chips and lengths stay beside their answers
    group, loads = loads_of(asks)
    _, longer = loads_of([_longer(a) for a in asks])
    clients = None if clients is None else clients[kept]
    rates = None if rates is None else rates[kept]

    def at(loads: Loads, scales: Array) -> Prediction:
        return loads.closed(clients * scales) if clients is not None else loads.open(rates * scales)

    found = at(loads, SCALES)
    bounds = bounds_of(asks[0].context.found.graph, group, loads.engines, found.each(lambda v: v[:, SAME:NEAR]))
    yield Answers(
        [pairs[i][0] for i in kept],
        asks,
        clients,
        rates,
        found,
        at(longer, np.ones(1)),
        {name: np.asarray(getattr(bounds, name)) for name in ("ttft_s", "tpot_s")},
        np.array([_tails(one, found, loads, row) for row, one in enumerate(asks)]),
    )


def _tails(one: AskedLoad, found: Prediction, loads: Loads, row: int) -> list[list[float]]:
    """Quantiles of TTFT and TPOT of one answer."""
    mine = found.each(lambda v: v[row])
    mine = replace(mine, batch=mine.batch / loads.engines.slots[row])
    said = tails(mine, one.context.workload.served, QUANTILES, at=SAME)
    return [[float(times[q][0]) for q in QUANTILES] for times in (said.ttft_s, said.tpot_s)]


def _longer(one: AskedLoad) -> AskedLoad:
    workload = one.context.workload
    longer = replace(workload, prompt_tokens=1.001 * workload.prompt_tokens)
    return replace(one, context=replace(one.context, workload=longer))


def peak_flops(chip: Chip) -> float:
    """The largest dense rate of one chip in any format."""
    rates = [float(np.asarray(v)) for v in Device.of(chip).matrix.values()]
    return max(r for r in rates if np.isfinite(r)) * chip.devices_per_package


def _peak(one: AskedLoad) -> float:
    chip = one.deployment.chip
    return peak_flops(chip) * float(one.layout.devices) / chip.devices_per_package * one.replicas


def broken(a: Answers) -> Iterator[tuple[str, int, float]]:
    """What does not hold: the rule, the place of the question, and by how much."""

    def check(rule: str, excess: Array) -> Iterator[tuple[str, int, float]]:
        for i in np.flatnonzero(~(excess <= 0)):
            yield rule, int(i), float(excess[i])

    out = np.array([float(q.out) for q in a.questions])
    several = out > 1
    p = {name: np.asarray(getattr(a.found, name)) for name in (*FIGURES, "tokens_per_s", "concurrency")}
    for name in FIGURES:
        positive = several if name == "tpot_s" else np.ones(len(out), dtype=bool)
        good = np.isfinite(p[name]).all(axis=1) & ((p[name] > 0).all(axis=1) | ~positive)
        yield from check(f"{name} is a figure", 1.0 - good)
    # the load
    if a.rates is not None:
        yield from check(
            "the answered rate is the asked one", np.abs(p["requests_per_s"][:, SAME] / a.rates[:, 0] - 1.0) - 1e-6
        )
    if a.clients is not None:
        yield from check("clients are those asked for", np.abs(p["concurrency"][:, SAME] / a.clients[:, 0] - 1) - 1e-6)
        seconds = p["ttft_s"] + (out - 1.0)[:, None] * p["tpot_s"]
        inside = (p["requests_per_s"] * seconds)[:, SAME] / a.clients[:, 0]
        yield from check("rate times time is the clients", 1.0 - 1e-5 - inside)
    # neighbours
    lone = a.clients is not None and a.clients[:, 0] * SCALES[LESS] < 1.0
    # what is left of the engine's time, and what the other load takes of it: a queue is as long as its inverse
    left, left_near = (
        np.maximum(1.0 - np.maximum(np.asarray(x.budget_share), np.asarray(x.utilisation)), 1e-3)
        for x in (a.found, a.near)
    )
    fuller = 2.0 * np.abs(left[:, SAME] / left[:, NEAR] - 1.0)
    # a longer prompt takes a tile more of a kernel, or a pass more
    rows = np.minimum([float(q.in_) for q in a.questions], [o.requests.budget for o in a.asks])
    step = np.minimum(TILE / rows, LARGEST_STEP) + p["tpot_s"][:, SAME] / p["ttft_s"][:, SAME]
    step = step + 2.0 * np.abs(left[:, SAME] / left_near[:, 0] - 1.0)
    for name in FIGURES:
        value = np.where(p[name] > 0, p[name], 1.0)
        here = value[:, SAME]
        yield from check(f"{name} jumps with the load", np.abs(value[:, NEAR] / here - 1.0) - JUMP - fuller)
        longer = np.where(several | (name != "tpot_s"), np.asarray(getattr(a.near, name))[:, 0], 1.0)
        yield from check(f"{name} jumps with the prompt", np.abs(longer / here - 1.0) - JUMP - step)
        if a.rates is not None or name != "requests_per_s":
            blocks = a.asks[0].context.found.graph.distinct()
            experts = name == "ttft_s" and any("E" in block.axes for _, block in blocks)
            most = SLOWER_OF_EXPERTS if experts else SLOWER[name]
            slower = np.where(lone, 0.0, value[:, LESS] / here - 1.0 - most)
            yield from check(f"{name} is worse at less load", slower)
    # peaks
    active = float(model_record(a.asks[0].context.found.graph, a.asks[0].context.found.config).active_params)
    prompt = np.array([float(q.in_) for q in a.questions])
    # embedding tables are looked up: a twentieth of small models
    needed = 0.85 * 2.0 * active * (prompt + out - 1.0) / out
    most = np.array([_peak(one) for one in a.asks]) / needed
    yield from check("tokens beat the peak", p["tokens_per_s"][:, SAME] / most - 1.0)
    for name in ("ttft_s", "tpot_s"):
        known = several | (name != "tpot_s")
        beaten = np.where(known, a.least[name] / np.where(p[name][:, SAME] > 0, p[name][:, SAME], 1.0) - 1.0, 0.0)
        yield from check(f"{name} beats its roofline", beaten - 1e-9)
    # quantiles: NaN where only a simulation can say
    for name, found in zip(("ttft_s", "tpot_s"), np.swapaxes(a.tails, 0, 1), strict=True):
        known = np.isfinite(found).all(axis=1)
        rising = np.hstack([np.zeros((len(found), 1)), found])
        falls = np.where(known, np.max(-np.diff(rising, axis=1), axis=1, initial=0.0), 0.0)
        yield from check(f"{name}: a quantile lies below a lesser one", falls)
        below = np.where(known, 1.0 - found[:, -1] / np.maximum(p[name][:, SAME], 1e-12), 0.0)
        yield from check(f"{name}: p99 lies below the mean", below - 1e-9)
    # intervals
    for i, one in enumerate(a.asks):
        doubt = one.context.doubt(one.deployment)
        for name, spread in (("ttft_s", doubt.first), ("tpot_s", doubt.further)):
            e = judge(float(p[name][i, SAME]), spread.around(), "modelled", least=float(a.least[name][i]))
            if not e.low <= e.mid <= e.high:
                yield f"the interval of {name} holds its middle", i, e.low - e.mid
