"""The suite `serving`: a measured row becomes the question that a user would ask, and takes the same answer.

Works on tables with the columns of `serving_points.csv`. Out of fold a fit never saw a row's (architecture, chip) cell,
or what else is left out whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from chipwise.api.estimating import AskedLoad, alike, asked, loads_of, served
from chipwise.api.loaded import load
from chipwise.api.requests.command import command_line
from chipwise.api.requests.parts import numbers_of
from chipwise.api.requests.planning import EstimateRequest
from chipwise.api.suites.suite import Asking, Attempt, Index, Suite, Trial, readers
from chipwise.calibrate.fit import Fitting
from chipwise.calibrate.fit_serving import (
    FIRST_TOKEN,
    ServingFit,
    ServingRows,
    client_of,
    fit_serving,
    fitted_first,
    knows_client,
)
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import get_chip
from chipwise.catalog.harness import Published, get_harness, harness_of, median_harness
from chipwise.catalog.runtime import get_runtime
from chipwise.catalog.runtime_spec import Runtime
from chipwise.errors import ChipwiseError, InfeasibleError, UsageError, shorten
from chipwise.evidence.anchors import Anchors, Correction, Corrections, OwnRun, corrections
from chipwise.evidence.discrepancy import Scatter
from chipwise.evidence.judge import Nearness, basis_of, judge
from chipwise.evidence.residuals import OWN, Residuals, Summary, Validation, ranking
from chipwise.evidence.rows import Predicted, Row, number
from chipwise.evidence.tiers import tier_of
from chipwise.predict.parts import PARTS
from chipwise.predict.service import Engines
from chipwise.search.evaluate import bounds_of
from chipwise.units import Array
from chipwise.values import dataclass
from chipwise.workload.formats import FORMATS, Format
from chipwise.workload.model import Model, MoE

NEEDED = ("row_id", "chip", "backend", "isl", "osl", "concurrency")
FIGURES: Mapping[str, str] = {"ttft_s": "ttft_ms", "tpot_s": "tpot_ms"}
"""Figures of a prediction and the columns of the table that they answer."""
THROUGHPUT = "tokens_per_s"
TIMES = frozenset(FIGURES.values())
"""Metrics that are times: throughput follows from both."""

STREAMED = re.compile(r"mtp|eagle|speculat|medusa|draft", re.I)
DATE = re.compile(r"\d{4}-\d\d")
TIGHT = "memory_share=0.97"
"""Policy of a run that could not have run with its runtime's defaults, and ran."""


@dataclass(frozen=True)
class ServingRun:
    """A row as the question that it asks, read and checked."""

    id: str
    question: EstimateRequest
    asked: AskedLoad

    @property
    def cell(self) -> tuple[str, str]:
        """Architecture and chip: what stays together when a fit is tested."""
        return self.architecture, self.asked.deployment.chip.id

    @property
    def architecture(self) -> str:
        """Checkpoints of one architecture and size share a name: DeepSeek-R1 is V3."""
        model = self.asked.context.found.graph.model
        return f"{model.architecture}-{model.layers}x{model.hidden}"

    @property
    def apart(self) -> bool:
        """Whether prompts have workers of their own."""
        return self.asked.deployment.apart

    @property
    def mode(self) -> str:
        """The same in a word."""
        return "disaggregated" if self.apart else "aggregated"

    @property
    def run(self) -> OwnRun:
        """The row as anchors compare it."""
        a, q = self.asked, self.question
        family = a.context.found.graph.model.architecture
        cell = (family, a.deployment.chip.id, a.deployment.runtime.id, q.harness, self.apart)
        w = a.context.workload
        prompts = (float(part.partition("=")[2]) for part in (q.prefill or "").split(",") if part)
        degrees = (float(a.layout.part(name)) for name in ("tp", "pp", "dp", "ep"))
        return OwnRun(
            self.id,
            cell,
            (*cell, self.architecture, q.precision),
            (*degrees, float(a.replicas), *prompts),
            (a.concurrency or 1.0, w.prompt_tokens, w.output_tokens),
        )


@dataclass(frozen=True)
class ServedRow:
    """Seconds by figure, and what nothing beats; `later`: how many times as long a first token takes where requests
    start together; `by` says what measured rows that corrected them leave of their intervals (None: there are none)."""

    times: Mapping[str, float]
    least: Mapping[str, float]
    later: float
    by: Correction | None = None


def answer(runs: Sequence[ServingRun], _: Parameters | None = None) -> list[ServedRow]:
    """Seconds to the first token and per further one of every row, by the code that answers `estimate`."""
    found: dict[int, ServedRow] = {}
    for members in alike([run.asked for run in runs]):
        asks = [runs[i].asked for i in members]
        group, loads = loads_of(asks)
        times = served(asks, loads)
        bounds = bounds_of(asks[0].context.found.graph, group, loads.engines, times)
        for place, i in enumerate(members):
            found[i] = ServedRow(
                {figure: float(getattr(times, figure)[place, 0]) for figure in FIGURES},
                {figure: float(getattr(bounds, figure)[place]) for figure in FIGURES},
                float(times.in_step_s[place, 0] / times.ttft_s[place, 0]) if asks[place].in_step else 1.0,
            )
    return [found[i] for i in range(len(runs))]


def _corrected(
    runs: Sequence[ServingRun], answers: Sequence[Attempt[ServedRow]], path: str, numbers: Parameters | None
) -> list[ServedRow]:
    """The answers, moved by measured rows of the same deployments."""
    plain = [a for a in answers if isinstance(a, ServedRow)]
    both = zip(*ASKING.questions(path, numbers), strict=True)
    read = [(row, run) for row, run in both if isinstance(run, ServingRun) and _seconds(row, "tpot_ms") > 0]
    own = [run for _, run in read]
    before, times = _times(answer(own)), _times(plain)
    tpot, ttft = (np.array([_seconds(row, name) for row, _ in read]) for name in ("tpot_ms", "ttft_ms"))
    anchors = Anchors([r.run for r in own], before["tpot_s"], before["ttft_s"], tpot, ttft)
    asked = times["tpot_s"], times["ttft_s"]
    by = corrections([r.run for r in runs], anchors, _spread(runs), asked)
    moved = _moved(times, by)
    return [
        replace(a, times={f: moved[f][i] for f in FIGURES}, by=by.of(i) if by.used[i] else None)
        for i, a in enumerate(plain)
    ]


def _times(answers: Sequence[ServedRow]) -> dict[str, Array]:
    """Both times of answers."""
    return {figure: np.array([a.times[figure] for a in answers]) for figure in FIGURES}


def _moved(times: Mapping[str, Array], by: Corrections) -> dict[str, Array]:
    """Both times as measured rows correct them."""
    return {"tpot_s": times["tpot_s"] * by.passes, "ttft_s": times["ttft_s"] * by.passes * by.first}


def _near(run: ServingRun) -> Nearness:
    d, experts = run.asked.deployment, run.asked.context.found.graph.routed
    return tier_of(d.chip, d.runtime.id, run.asked.context.numbers, experts=experts)


def _doubt(run: ServingRun) -> Mapping[str, Scatter]:
    """How far both times of a row may be off, as `estimate` says."""
    context = run.asked.context
    known = knows_client(context.numbers, context.tactics.harness, apart=run.apart)
    doubt = context.doubt(run.asked.deployment, apart=run.apart, harnessed=known)
    return {"ttft_s": doubt.first, "tpot_s": doubt.further}


def _ends(runs: Sequence[ServingRun], figure: str, left: Array) -> tuple[Array, Array]:
    """Ends of the 80 % intervals of a time over what is predicted, where own runs leave so much of a deviation."""
    found = [
        judge(1.0, _doubt(run)[figure].shrunk(share).around(), "measured")
        for run, share in zip(runs, left, strict=True)
    ]
    return np.array([e.low for e in found]), np.array([e.high for e in found])


def _spread(runs: Sequence[ServingRun]) -> tuple[Array, Array]:
    """Standard deviations of the logarithms of both times where nothing of a deployment was measured."""
    doubts = [_doubt(run) for run in runs]
    further, first = (np.array([float(d[f].sd()[0]) for d in doubts]) for f in ("tpot_s", "ttft_s"))
    return further, first


def _seconds(row: Row, name: str) -> float:
    """A figure in milliseconds as seconds, NaN where blank or no number."""
    try:
        return float(row.get(name) or "nan") / 1e3
    except ValueError:
        return float("nan")


def _lines(run: ServingRun, found: ServedRow) -> Iterator[Predicted]:
    """`ttft_ms` and `tpot_ms` with 80 % intervals."""
    command = "" if found.by else command_line("estimate", run.question)
    by, doubt = found.by or Correction(), _doubt(run)
    for figure, metric in FIGURES.items():
        if figure == "tpot_s" and run.asked.context.workload.output_tokens <= 1.0:
            yield Predicted(run.id, metric, None, refused="one token: there is no time per further one")
            continue
        left = by.first if figure == "ttft_s" else by.further
        spread = doubt[figure]
        e = judge(
            found.times[figure],
            spread.shrunk(left).around(),
            by.basis() or basis_of(_near(run)),
            provisional=not spread.known[0],
            least=found.least[figure],
        )
        e = (e.reaching(found.later, left) if figure == "ttft_s" else e).scaled(1e3)
        yield Predicted(run.id, metric, e.mid, e.low, e.high, e.basis, "", command)


def _read(row: Row, folder: Path, numbers: Parameters | None) -> ServingRun:
    question = question_of(row, folder / "models")
    try:
        return ServingRun(row["row_id"], question, asked_of(question, numbers))
    except InfeasibleError:
        tight = replace(question, policy=",".join(filter(None, (question.policy, TIGHT))))
        return ServingRun(row["row_id"], tight, asked_of(tight, numbers))


def asked_of(q: EstimateRequest, numbers: Parameters | None) -> AskedLoad:
    """The question of a row, read and checked. Raises the errors of `estimate`."""
    return asked(q.model, q.workload(q.task), q.given(), q.terms(numbers or numbers_of(q.parameters)))


ASKING = Asking(NEEDED, _read, answer, _lines, _corrected)


def question_of(row: Row, folder: Path) -> EstimateRequest:
    """The question of a row; measured columns are not read.

    Raises `UsageError` for a row that lacks a column, names no chip of the catalogue or no workers, or has a
    layout that cannot be; `UnknownNameError` for an unknown chip or runtime.
    """
    name = row.get("config_file", "")
    if not name:
        raise UsageError(f"{shorten(row.get('model', 'row'))}: no config_file", "the model is read from a config.json")
    if not row["chip"]:
        raise UsageError("the chip is not in the catalogue", "chipwise chips list")
    if STREAMED.search(row.get("precision", "")):
        raise UsageError("speculative decoding is named without an acceptance rate")
    chip, runtime = get_chip(row["chip"]), get_runtime(row["backend"])
    path = str(folder / name)
    model = _model(path)
    disagg = row.get("mode", "agg") == "disagg"
    pool = _degrees(row, "decode_" if disagg else "")
    prompts = _degrees(row, "prefill_") if disagg else None
    precision, kv = _formats(model, row.get("gemm_quant", ""), row.get("moe_quant", ""), chip, runtime)
    date = DATE.match(row.get("measured_date", ""))
    replicas = pool.pop("workers")
    clients = _clients(row, replicas, pool["dp"])
    together = None
    if prompts is None:
        together = Published(
            runtime.id,
            chip.id,
            row.get("model", ""),
            row.get("moe_quant") or row.get("gemm_quant", ""),
            clients,
            pool["tp"],
            pool["dp"],
            number(row, "isl"),
            number(row, "osl"),
            date[0] if date else "",
        )
    harness = harness_of(row.get("source", ""), together)
    launched = harness.launched(together)
    return EstimateRequest(
        model=path,
        chip=chip.id,
        tp=pool["tp"],
        pp=pool["pp"],
        dp=pool["dp"],
        ep=pool["ep"],
        replicas=replicas,
        prefill=None if prompts is None else ",".join(f"{k}={v}" for k, v in prompts.items()),
        concurrency=clients,
        in_=f"{number(row, 'isl', 1.0):.10g}",
        out=f"{number(row, 'osl', 1.0):.10g}",
        precision=precision,
        kv=kv,
        runtime=runtime.id,
        software=date[0] if date else None,
        harness=(median_harness(harness) if row.get("ttft_is_mean") == "0" else harness).id,
        policy=",".join(f"{name}={value}" for name, value in launched.items()) or None,
        evidence="none",
    )


@lru_cache(maxsize=256)
def _model(path: str) -> Model:
    return load(path).graph.model


def _clients(row: Row, replicas: int, dp: int) -> float:
    """The concurrency, or where it is blank what all decode workers run at a time."""
    if row["concurrency"]:
        return number(row, "concurrency", 1.0)
    return (number(row, "decode_batch", 1.0) if row.get("decode_batch") else 1.0) * replicas * dp


def _degrees(row: Row, prefix: str) -> dict[str, int]:
    """Degrees of a pool and its workers; blank degrees are 1."""

    def degree(name: str) -> int:
        value = int(number(row, prefix + name, 0.0)) if row.get(prefix + name) else 1
        if value > 4096:
            raise UsageError(f"{prefix}{name} = {value} is out of range", "at most 4096")
        return max(value, 1)

    tp, pp, dp, ep = degree("tp"), degree("pp"), degree("attention_dp"), degree("moe_ep")
    if (tp * dp) % ep:
        raise UsageError(f"experts in {ep} groups on {tp * dp} devices", "moe_ep divides tp x attention_dp")
    if prefix and not row.get(prefix + "workers"):
        raise UsageError("the number of workers is not known")
    return {"workers": degree("workers") if prefix else 1, "tp": tp, "pp": pp, "dp": dp, "ep": ep}


def _formats(model: Model, gemm: str, moe: str, chip: Chip, runtime: Runtime) -> tuple[str | None, str]:
    """What a row's labels mean for a checkpoint: --precision (None: as stored) and --kv.

    A checkpoint that is quantised to as few bits keeps its own formats (gpt-oss is mxfp4 whatever the label). Where the
    chip has no 4-bit units, activations stay 16 bit; where it has, those of MXFP4 experts are narrowed to 8 bit. The
    cache is 8 bit in TensorRT-LLM with quantised checkpoints; in vLLM and SGLang it is so from 4-bit units on (inferred
    from memory limits: not recorded).
    """
    label = moe or gemm
    moes = any(isinstance(layer.ffn, MoE) for _, layer in model.runs)
    stored = model.precision.weight("expert" if moes else "ffn")
    narrow = "fp4" in chip.matrix
    if not label or (stored.bits <= min(_format(x)[1] for x in (label, gemm) if x) and stored.name != "int4"):
        name, bits = stored.name, stored.bits
        precision = _as_stored(stored, narrow, wide=not model.precision.activations)
    else:
        name, bits = _format(label)
        precision = name if narrow or FORMATS[name].compute != "fp4" else f"{name}_weights"
    small = bits < 16 and (name in runtime.narrow_cache or narrow)
    return precision, "fp8" if small else "bf16"


def _as_stored(stored: Format, narrow: bool, *, wide: bool) -> str | None:
    """--precision of a checkpoint in its own format (None: as it is) on a chip with 4-bit units or without;
    `wide`: its activations are 16 bit."""
    if stored.name == "mxfp4" and wide and narrow:
        return "mxfp4_mxfp8"
    return f"{stored.name}_weights" if stored.compute == "fp4" and not narrow and not wide else None


def _format(label: str) -> tuple[str, float]:
    name = {"fp4": "nvfp4"}.get(label, label)
    if name not in FORMATS:
        raise UsageError(f"precision {shorten(label)} is not read", f"one of {', '.join(FORMATS)}")
    return name, FORMATS[name].bits


# --------------------------------------------------------------- measurements


@dataclass(frozen=True)
class MeasuredServing:
    """Scored rows with measured columns: what ran, the same as a fit reads it, and the ids of unreadable ones."""

    runs: Sequence[ServingRun]
    data: ServingRows
    refused: Sequence[str]


def measured_rows(paths: Sequence[str], numbers: Parameters) -> MeasuredServing:
    """Raises `UsageError` for a table without measured columns."""
    both = [pair for path in paths for pair in zip(*ASKING.questions(path, numbers), strict=True)]
    scored = [(row, run) for row, run in both if row.get("score", "1") == "1"]
    refused = [row["row_id"] for row, run in scored if isinstance(run, ChipwiseError)]
    kept = [(row, run) for row, run in scored if isinstance(run, ServingRun)]
    if not kept or not all(row.get(metric) for row, _ in kept for metric in FIGURES.values()):
        raise UsageError(f"{', '.join(paths)}: no measured columns", f"needed: {', '.join(FIGURES.values())}")
    return MeasuredServing([run for _, run in kept], _fitted_rows(kept, numbers), refused)


def _fitted_rows(kept: Sequence[tuple[Row, ServingRun]], numbers: Parameters) -> ServingRows:
    """Measured rows as a fit reads them."""
    runs = [run for _, run in kept]
    tpot, ttft = (np.array([float(row[name]) / 1e3 for row, _ in kept]) for name in ("tpot_ms", "ttft_ms"))
    engines, places = _engines(runs)
    return ServingRows(
        engines,
        places,
        clients=np.array([r.asked.concurrency or 1.0 for r in runs], dtype=float),
        burst=np.array([get_harness(r.question.harness).first_wave for r in runs], dtype=float),
        slower=np.array([_aged(r, numbers) for r in runs]),
        labels={
            **{n: np.array([KEYS[n](r) for r in runs]) for n in ("runtime", "chip", "generation")},
            "harness": np.array([client_of(get_harness(r.question.harness), apart=r.apart) for r in runs]),
        },
        tpot_s=tpot,
        ttft_s=ttft,
    )


def _aged(run: ServingRun, numbers: Parameters) -> Array:
    """Parts of passes of the software and host of a row over those of the newest on the usual host, [part]."""
    one = run.asked.deployment
    parts = run.asked.context.tactics.factors(numbers, one.runtime, [one.chip])
    return np.concatenate([parts[part] for part in PARTS])


def _each(of: Callable[[ServingRun], Hashable]) -> Callable[[MeasuredServing], Sequence[Hashable]]:
    return lambda m: [of(r) for r in m.runs]


KEYS: Mapping[str, Callable[[ServingRun], Hashable]] = {
    "cell": lambda r: r.cell,
    "chip": lambda r: r.asked.deployment.chip.id,
    "model": lambda r: r.architecture,
    "runtime": lambda r: r.asked.deployment.runtime.id,
    "generation": lambda r: r.asked.deployment.chip.base_generation,
    "harness": lambda r: get_harness(r.question.harness).client,
}
"""What stays together: the split of the table, a whole chip, architecture, runtime, generation of chips or harness."""


def _engines(runs: Sequence[ServingRun]) -> tuple[tuple[Engines, ...], tuple[NDArray[np.intp], ...]]:
    """Engines of all rows by part, those with one pool and those with two, and which rows they are of."""
    found: dict[bool, list[tuple[Engines, list[int]]]] = {}
    for members in alike([run.asked for run in runs]):
        _, loads = loads_of([runs[i].asked for i in members], by_part=True)
        found.setdefault(runs[members[0]].apart, []).append((loads.engines, members))
    engines = tuple(Engines.join([e for e, _ in parts]) for parts in found.values())
    return engines, tuple(np.array([i for _, members in parts for i in members]) for parts in found.values())


def _fit(m: MeasuredServing, kept: Index, _: Parameters) -> ServingFit:
    return fit_serving(m.data.take(kept))


def _fitted(m: MeasuredServing, _: Parameters) -> dict[str, tuple[Fitting, Index]]:
    return {FIRST_TOKEN.prefix: (fitted_first(m.data), np.arange(len(m.data)))}


def _answer(m: MeasuredServing, out: Index, fitted: ServingFit, _: str) -> Residuals:
    """What a fit says of rows, alone and with one other row of their deployment as an anchor."""
    part = m.data.take(out)
    times = part.served(fitted.first.values(part.labels))
    plain = {figure: getattr(times, figure)[:, 0] for figure in FIGURES}
    lines = [_compared(m, out, plain, UNSEEN)]
    runs = [m.runs[i] for i in out]
    mine = [r.run for r in runs]
    for chosen, rows in _one_anchor_each(runs):
        anchors = Anchors(
            [mine[i] for i in chosen],
            plain["tpot_s"][chosen],
            plain["ttft_s"][chosen],
            part.tpot_s[chosen],
            part.ttft_s[chosen],
        )
        asked = plain["tpot_s"][rows], plain["ttft_s"][rows]
        by = corrections([mine[i] for i in rows], anchors, _spread([runs[i] for i in rows]), asked)
        moved = _moved({figure: times[rows] for figure, times in plain.items()}, by)
        lines.append(_compared(m, out[rows], moved, OWN, by))
    return Residuals.join(lines)


UNSEEN = "unseen"
"""Tier of lines that no measured row corrected."""


def _compared(
    m: MeasuredServing, place: Index, predicted: Mapping[str, Array], tier: str, by: Corrections | None = None
) -> Residuals:
    """Lines of some rows: both times, and tokens per second of the closed loop, C n_o / (TTFT + (n_o - 1) TPOT); `by`
    are the anchors that corrected them."""
    runs = [m.runs[i] for i in place]
    tokens = np.array([r.asked.context.workload.output_tokens for r in runs])
    measured = {"ttft_s": m.data.ttft_s[place], "tpot_s": m.data.tpot_s[place]}

    def rate(times: Mapping[str, Array]) -> Array:
        return np.asarray(m.data.clients[place] * tokens / (times["ttft_s"] + (tokens - 1.0) * times["tpot_s"]))

    pairs = {metric: (1e3 * predicted[f], 1e3 * measured[f], f) for f, metric in FIGURES.items()}
    none = np.full(len(place), np.nan)
    ends = dict.fromkeys((*FIGURES, THROUGHPUT), (none, none))
    if by is not None:
        ends |= {f: _ends(runs, f, left) for f, left in (("tpot_s", by.left), ("ttft_s", by.first_left))}
    pairs[THROUGHPUT] = rate(predicted), rate(measured), THROUGHPUT
    labels = _labels(runs)
    return Residuals.join(
        Residuals.of(
            place,
            mine,
            its,
            low=mine * ends[figure][0],
            high=mine * ends[figure][1],
            metric=metric,
            figure=[figure + (" apart" if r.apart else "") for r in runs],
            tier=tier,
            **labels,
        )
        for metric, (mine, its, figure) in pairs.items()
    )


def _labels(runs: Sequence[ServingRun]) -> dict[str, list[str]]:
    """What errors of rows are told apart by."""
    chips = [r.asked.deployment.chip for r in runs]
    graphs = [r.asked.context.found.graph for r in runs]
    precision = [graph.model.precision.name for graph in graphs]
    models = [r.architecture for r in runs]
    return {
        "row": [r.id for r in runs],
        "cell": [repr(r.cell) for r in runs],
        "mode": [r.mode for r in runs],
        "chip": [chip.id for chip in chips],
        "runtime": [r.asked.deployment.runtime.id for r in runs],
        "precision": precision,
        "model": models,
        "reader": [readers(*both) for both in zip(chips, graphs, strict=True)],
        "where": [f"{name} on {chip.id}" for name, chip in zip(models, chips, strict=True)],
        "llama fp8": [
            "Llama-70B fp8" if name.startswith("llama-80") and p == "fp8" else ""
            for name, p in zip(models, precision, strict=True)
        ],
    }


def _one_anchor_each(runs: Sequence[ServingRun]) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """(anchor, rows) such that every row of a deployment but the anchor has just that one; the anchors get the
    next row of their deployment. Chosen by a seed, not by fit."""
    groups: dict[Hashable, list[int]] = {}
    for i, r in enumerate(runs):
        groups.setdefault(r.run.deployment, []).append(i)
    first: list[int] = []
    second: list[int] = []
    rest: list[int] = []
    rng = np.random.default_rng(0)
    for members in groups.values():
        if len(members) > 1:
            mixed = [members[i] for i in rng.permutation(len(members))]
            first.append(mixed[0])
            second.append(mixed[1])
            rest += mixed[1:]
    pairs = ((first, rest), (second, first))
    return [(np.array(a, dtype=np.intp), np.array(b, dtype=np.intp)) for a, b in pairs if a and b]


def _report(m: MeasuredServing, found: Residuals, key: str) -> Validation:
    """Errors on what no fit had seen, by slice; anchored rows apart."""
    times = found.take(found.label("metric") != THROUGHPUT)
    unseen, own = (times.where(tier=tier) for tier in (UNSEEN, OWN))
    none = [
        Residuals.of([-1] * len(m.refused), np.nan, np.nan, metric=metric, mode="refused")
        for metric in FIGURES.values()
    ]
    tables: dict[str, list[Summary]] = {"by mode": Residuals.join([unseen, *none]).summaries("mode")}
    tables["with one measured row of the same deployment as an anchor"] = own.summaries("mode")
    together = unseen.where(mode="aggregated")
    for name in ("llama fp8", "chip", "runtime", "precision", "model"):
        tables[f"aggregated, by {name}"] = together.summaries(name, least=10)
    what = {"cell": "(architecture, chip) cell", "model": "architecture"}.get(key, key)
    count, cells = len(fit_serving(m.data).first.table), len({r.run.deployment for r in m.runs})
    return Validation(
        "serving" if key == "cell" else f"serving with a {key} never seen",
        f"Rows with score = 1; every row predicted by a fit that never saw its {what}. Intervals are "
        "those of a plan of which nobody measured that. Means of a run; ttft of harnesses that are not documented.",
        tables,
        [f"{count} fitted numbers, {cells} deployments in the rows", *_rankings(m, unseen)],
    ).shown(unseen)


def _rankings(m: MeasuredServing, found: Residuals) -> list[str]:
    """Layouts of one workload: of equal chip counts by TPOT, of unequal ones by tokens per second and chip."""
    equal: dict[Hashable, dict[Hashable, list[tuple[float, float]]]] = {}
    unequal: dict[Hashable, dict[Hashable, list[tuple[float, float]]]] = {}
    first, each = (found.where(metric=metric) for metric in FIGURES.values())
    for i, r in enumerate(m.runs):
        if r.apart:
            continue
        run, output = r.run, r.asked.context.workload.output_tokens
        devices = float(r.asked.layout.devices)
        load = (run.deployment, run.load)
        (p, t), (q, s) = ((float(x.predicted[i]), float(x.measured[i])) for x in (each, first))
        equal.setdefault((load, devices), {}).setdefault(run.layout, []).append((p, t))
        total = [1e3 * output * run.load[0] / (a + output * b) / devices for a, b in ((q, p), (s, t))]
        unequal.setdefault(load, {}).setdefault(run.layout, []).append((total[0], total[1]))
    said = []
    for name, groups in (("equal chip counts, by TPOT", equal), ("by tokens/s per chip", unequal)):
        # a layout that was measured in several versions counts once, with their mean
        means = [
            [(float(np.mean(p)), float(np.mean(m))) for p, m in (zip(*found, strict=True) for found in g.values())]
            for g in groups.values()
        ]
        pairs, share = ranking(means)
        said.append(f"layouts of one workload, {name}: {share:.1%} of {pairs:,} pairs in the right order")
    return said


SERVING = Suite(
    "serving",
    tuple(FIGURES.values()),
    ASKING,
    Trial(
        "serving_points.csv",
        measured_rows,
        {name: _each(of) for name, of in KEYS.items()},
        _fit,
        _answer,
        _report,
        {"serving.csv": ServingFit.parameters},
        fitted=_fitted,
    ),
    commanded=True,
    priced=True,
)
