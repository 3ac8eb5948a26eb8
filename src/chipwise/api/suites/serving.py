"""The suite `serving`: a measured row becomes the question that a user would ask, and takes the same answer.

Works on tables with the columns of `serving_points.csv`. Nothing here reads a measured figure but `measured_runs`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from chipwise.api.estimating import Asked, asked, loads_of, served
from chipwise.api.loaded import load
from chipwise.api.requests.command import command_line
from chipwise.api.requests.parts import numbers_of
from chipwise.api.requests.planning import EstimateRequest
from chipwise.calibrate.fit_serving import knows_client
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import get_chip
from chipwise.catalog.harness import harness_of
from chipwise.catalog.runtime import Runtime, get_runtime
from chipwise.errors import ChipwiseError, InfeasibleError, UsageError, shorten
from chipwise.evidence.anchors import Anchors, Run, corrections
from chipwise.evidence.judge import APART, USERS, judge
from chipwise.evidence.rows import Predicted, Row, number, read_rows
from chipwise.evidence.tiers import tier_of
from chipwise.search.evaluate import bounds_of
from chipwise.units import Array
from chipwise.workload.formats import FORMATS
from chipwise.workload.model import Model, MoE

__all__ = [
    "FIGURES",
    "ServingRun",
    "answer",
    "by_category",
    "measured_runs",
    "predict_serving",
    "question_of",
    "readable_runs",
]

NEEDED = ("row_id", "chip", "backend", "isl", "osl", "concurrency")
FIGURES: Mapping[str, str] = {"ttft_s": "ttft_ms", "tpot_s": "tpot_ms"}
"""Figures of a prediction and the columns of the table that they answer."""

CLIENT = "aiperf"  # closed loops of equal requests, where a table does not say which client it was
STREAMED = re.compile(r"mtp|eagle|speculat|medusa|draft", re.I)
DATE = re.compile(r"\d{4}-\d\d")
TIGHT = "memory_share=0.97"
"""Policy of a run that could not have run with its runtime's defaults, and ran."""


@dataclass(frozen=True)
class ServingRun:
    """A row as the question that it asks, read and checked."""

    id: str
    question: EstimateRequest
    asked: Asked

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
    def run(self) -> Run:
        """The same as anchors compare it."""
        a, q = self.asked, self.question
        deployment = (*self.cell, q.precision, a.deployment.runtime.id, q.harness, self.apart)
        w = a.context.workload
        return Run(
            self.id,
            deployment,
            (a.layout, q.prefill, a.replicas),
            (a.concurrency or 1.0, w.prompt_tokens, w.output_tokens),
        )


def predict_serving(
    rows: str, anchors: str | None = None, numbers: Parameters | None = None
) -> Iterator[Predicted]:
    """`ttft_ms` and `tpot_ms` of every row with 80 % intervals; measured columns are not read.

    `anchors` is a table of the same form with measured columns, of runs that the user owns: rows of the same
    deployment correct the prediction. A row that cannot be answered becomes a line with the reason.
    """
    table, found = readable_runs(rows, numbers)
    runs = [run for run in found if isinstance(run, ServingRun)]
    found_times, least = _bounded(runs)
    answers = {run.id: times for run, times in zip(runs, found_times, strict=True)}
    floors = {run.id: times for run, times in zip(runs, least, strict=True)}
    used: dict[str, float] = {}
    if anchors is not None and runs:
        own, tpot, ttft = measured_runs(anchors, numbers)
        known = answer(own)
        before = {figure: np.array([times[figure] for times in known]) for figure in FIGURES}
        by = corrections(
            [r.run for r in runs],
            Anchors([r.run for r in own], before["tpot_s"], before["ttft_s"], tpot, ttft),
        )
        for i, run in enumerate(runs):
            tpot_s, ttft_s = (answers[run.id][figure] for figure in ("tpot_s", "ttft_s"))
            answers[run.id] = {"tpot_s": tpot_s * by.passes[i], "ttft_s": ttft_s * by.passes[i] * by.first[i]}
            used[run.id] = float(by.used[i])
    for row, read in zip(table, found, strict=True):
        if not isinstance(read, ServingRun):
            for metric in FIGURES.values():
                yield Predicted(row["row_id"], metric, None, refused=str(read))
            continue
        run = read
        command = "" if used.get(run.id) or numbers else command_line("estimate", run.question)
        d = run.asked.deployment
        near = tier_of(d.chip, d.runtime.id, run.asked.context.numbers, anchored=bool(used.get(run.id)))
        for figure, metric in FIGURES.items():
            client = run.asked.context.tactics.harness.id
            suffix = "" if knows_client(run.asked.context.numbers, client, d.runtime.id) else USERS
            name = figure + (APART if run.apart else "") + suffix
            e = judge(name, answers[run.id][figure], near, least=floors[run.id][figure])
            if figure == "tpot_s" and run.asked.context.workload.output_tokens <= 1.0:
                yield Predicted(
                    row["row_id"], metric, None, refused="one token: there is no time per further one"
                )
                continue
            yield Predicted(
                row["row_id"], metric, 1e3 * e.mid, 1e3 * e.low, 1e3 * e.high, e.basis, "", command
            )


def answer(runs: Sequence[ServingRun]) -> list[dict[str, float]]:
    """Seconds to the first token and per further one of every row, by the code that answers `estimate`."""
    return _bounded(runs)[0]


def _bounded(runs: Sequence[ServingRun]) -> tuple[list[dict[str, float]], list[dict[str, float]]]:
    """The same, and what nothing beats."""
    found: list[dict[str, float]] = [{} for _ in runs]
    least: list[dict[str, float]] = [{} for _ in runs]
    for members in by_category(runs):
        asks = [runs[i].asked for i in members]
        group, loads = loads_of(asks)
        times = served(asks, loads)
        bounds = bounds_of(asks[0].context.found.graph, group, loads.engines, times)
        for place, i in enumerate(members):
            found[i] = {figure: float(getattr(times, figure)[place, 0]) for figure in FIGURES}
            least[i] = {figure: float(getattr(bounds, figure)[place]) for figure in FIGURES}
    return found, least


def by_category(runs: Sequence[ServingRun]) -> Iterator[list[int]]:
    """Places of rows that are priced together."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for i, run in enumerate(runs):
        groups.setdefault(run.asked.category, []).append(i)
    yield from groups.values()


def readable_runs(
    path: str, numbers: Parameters | None = None
) -> tuple[list[Row], list[ServingRun | ChipwiseError]]:
    """Rows of a table and what they ask, or why they cannot be read."""
    folder = Path(path).parent / "models"
    table: list[Row] = list(read_rows(path, NEEDED))
    found: list[ServingRun | ChipwiseError] = []
    for row in table:
        try:
            found.append(_read(row, folder, numbers))
        except ChipwiseError as error:
            found.append(error)
    return table, found


def _read(row: Row, folder: Path, numbers: Parameters | None) -> ServingRun:
    question = question_of(row, folder)
    try:
        return ServingRun(row["row_id"], question, _asked(question, numbers))
    except InfeasibleError:
        tight = replace(question, policy=TIGHT)
        return ServingRun(row["row_id"], tight, _asked(tight, numbers))


def _asked(q: EstimateRequest, numbers: Parameters | None) -> Asked:
    return asked(
        q.model,
        q.workload(q.task),
        q.given(),
        q.terms(numbers or numbers_of(q.parameters)),
    )


def measured_runs(path: str, numbers: Parameters | None = None) -> tuple[list[ServingRun], Array, Array]:
    """Readable rows with measured columns: runs, seconds per token, seconds to the first token."""
    table, found = readable_runs(path, numbers)
    kept = [(row, run) for row, run in zip(table, found, strict=True) if isinstance(run, ServingRun)]
    kept = [(row, run) for row, run in kept if _seconds(row.get("tpot_ms", "")) > 0]
    runs = [run for _, run in kept]
    tpot, ttft = (
        np.array([_seconds(row.get(name, "")) for row, _ in kept]) for name in ("tpot_ms", "ttft_ms")
    )
    return runs, tpot, ttft


def _seconds(text: str) -> float:
    """Milliseconds as seconds, NaN where blank or no number."""
    try:
        return float(text) / 1e3 if text else float("nan")
    except ValueError:
        return float("nan")


def question_of(row: Row, folder: Path) -> EstimateRequest:
    """The question of a row; measured columns are not read.

    Raises `UsageError` for a row that lacks a column, names no chip of the catalogue or no workers, or has a
    layout that cannot be; `UnknownNameError` for an unknown chip or runtime.
    """
    name = row.get("config_file", "")
    if not name:
        raise UsageError(
            f"{shorten(row.get('model', 'row'))}: no config_file", "the model is read from a config.json"
        )
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
    harness = harness_of(row.get("source", ""))
    date = DATE.match(row.get("measured_date", ""))
    replicas = pool.pop("workers")
    return EstimateRequest(
        model=path,
        chip=chip.id,
        tp=pool["tp"],
        pp=pool["pp"],
        dp=pool["dp"],
        ep=pool["ep"],
        replicas=replicas,
        prefill=None if prompts is None else ",".join(f"{k}={v}" for k, v in prompts.items()),
        concurrency=_clients(row, replicas, pool["dp"]),
        in_=f"{number(row, 'isl', 1.0):.10g}",
        out=f"{number(row, 'osl', 1.0):.10g}",
        precision=precision,
        kv=kv,
        runtime=runtime.id,
        software=date[0] if date else None,
        harness=CLIENT if harness is None else harness.id,
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
        precision, stored_as = None, stored.name
        bits, wide = stored.bits, not model.precision.activations
        if stored.name == "mxfp4" and wide and narrow:
            precision = "mxfp4_mxfp8"
        elif stored.compute == "fp4" and not narrow and not wide:
            precision = f"{stored.name}_weights"
    else:
        name, bits = _format(label)
        stored_as = name
        precision = name if narrow or FORMATS[name].compute != "fp4" else f"{name}_weights"
    small = bits < 16 and (stored_as in runtime.narrow_cache or narrow)
    return precision, "fp8" if small else "bf16"


def _format(label: str) -> tuple[str, float]:
    name = {"fp4": "nvfp4"}.get(label, label)
    if name not in FORMATS:
        raise UsageError(f"precision {shorten(label)} is not read", f"one of {', '.join(FORMATS)}")
    return name, FORMATS[name].bits
