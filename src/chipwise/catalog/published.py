"""Published results: MLPerf Inference and Training, closed division, and what their benchmarks ask for.

The figures are facts that MLCommons published under Apache-2.0 (`data/published/NOTICE.txt`). MLPerf is a
trademark of MLCommons. Figures derived here (tokens per second from samples, per chip) are not verified by
MLCommons. Unit mistakes of the published tables are corrected in the table: the importers say which.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from chipwise.catalog.snapshot import per_snapshot, shipped_bytes
from chipwise.errors import UnknownNameError, listed
from chipwise.values import dataclass

INFERENCE_COLUMNS = (
    *("row_id", "round", "category", "availability", "submitter", "system_name", "chip", "accelerator"),
    *("variant", "power_limit_w", "chips_total", "nodes", "chips_per_node", "host_cpu", "interconnect"),
    *("framework", "model", "model_base", "scenario", "weight_precision", "unit", "notes", "source"),
    *("result", "tokens_per_s", "ttft_p99_ms", "tpot_p99_ms"),
)

TRAINING_COLUMNS = (
    *("row_id", "round", "submitter", "system_name", "chip", "accelerator", "chips_total", "nodes"),
    *("chips_per_node", "interconnect", "host_network", "host_cpu", "framework", "benchmark", "seq_len"),
    *("global_batch", "grad_accum", "micro_batch", "tp", "pp", "cp", "vp", "n_runs", "n_success"),
    *("step_time_derived", "source", "step_time_s", "samples_per_s", "time_to_train_min"),
    *("time_to_train_best_run_min", "time_to_train_worst_run_min", "samples_to_target"),
)


@dataclass(frozen=True, slots=True)
class InferenceResult:
    """One published result of MLPerf Inference.

    `result` is in `unit` ("Tokens/s", "Samples/s", "Queries/s", "Latency (ms)", "Latency (s)") and belongs to
    the whole system of `chips` chips (sockets of CPU systems; 0 = unknown) in `nodes` hosts. `chip` is an id of the
    catalogue, "" where the part is not in it. `variant` is "", "maxq", "virtual", "mig" or "powercap".
    `precision` is that of the weights as declared, "" where unknown. None = not published.
    """

    id: str
    round: str
    category: str
    availability: str
    submitter: str
    system: str
    chip: str
    accelerator: str
    variant: str
    power_limit_w: float | None
    chips: int
    nodes: int
    chips_per_node: int
    host: str
    interconnect: str
    framework: str
    model: str
    benchmark: str
    scenario: str
    precision: str
    unit: str
    notes: str
    source: str
    result: float
    tokens_per_s: float | None
    ttft_p99_s: float | None
    tpot_p99_s: float | None

    @property
    def date(self) -> str:
        """Month in which the round was published, "" for an unknown round."""
        return ROUNDS.get(self.round, "")

    @property
    def per_chip(self) -> float | None:
        """`result` of one chip, None where their number is unknown; latencies are not divided."""
        if self.unit.startswith("Latency"):
            return self.result
        return self.result / self.chips if self.chips else None


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """One published result of MLPerf Training. Times are seconds; None = not published.

    `time_to_train_s` is the mean of the runs without the best and the worst, not the official score.
    `step_time_derived`: the step was computed from the batch and the logged throughput.
    """

    id: str
    round: str
    submitter: str
    system: str
    chip: str
    accelerator: str
    chips: int
    nodes: int
    interconnect: str
    network: str
    framework: str
    benchmark: str
    seq_len: int | None
    global_batch: int | None
    grad_accum: int | None
    micro_batch: int | None
    tp: int | None
    pp: int | None
    cp: int | None
    vp: int | None
    step_time_s: float | None
    step_time_derived: bool
    samples_per_s: float | None
    time_to_train_s: float | None
    samples_to_target: float | None
    source: str


@per_snapshot
def load_inference_results() -> Mapping[str, InferenceResult]:
    """All bundled results of MLPerf Inference by id, in the order of the table; read once."""
    return MappingProxyType({r.id: r for r in map(_inference, _rows("mlperf_inference"))})


@per_snapshot
def rated_chips(benchmarks: frozenset[str]) -> tuple[str, ...]:
    """The chips of the catalogue with tokens per second in some benchmarks, in the order of the table."""
    return tuple(_rated(benchmarks))


@per_snapshot
def rated_results(benchmarks: frozenset[str], chip: str) -> tuple[InferenceResult, ...]:
    """The results of one of those chips that have tokens per second, in the order of the table."""
    return tuple(map(_inference, _rated(benchmarks).get(chip, ())))


@per_snapshot
def _rated(benchmarks: frozenset[str]) -> Mapping[str, list[list[str]]]:
    # lines by chip: most of them are asked for nothing more
    benchmark, chip, tokens, chips = (
        INFERENCE_COLUMNS.index(name) for name in ("model_base", "chip", "tokens_per_s", "chips_total")
    )
    found: dict[str, list[list[str]]] = {}
    for row in _rows("mlperf_inference"):
        if row[benchmark] in benchmarks and row[chip] and row[tokens] and int(row[chips]):
            found.setdefault(row[chip], []).append(row)
    return found


@per_snapshot
def load_training_results() -> Mapping[str, TrainingResult]:
    """All bundled results of MLPerf Training by id, in the order of the table; read once."""
    return MappingProxyType({r.id: r for r in map(_training, _rows("mlperf_training"))})


def find_result(name: str) -> InferenceResult | TrainingResult:
    """The bundled result of an id. Raises `UnknownNameError` with the nearest ids."""
    key = name.strip()
    inference = load_inference_results()
    if key in inference:
        return inference[key]
    training = load_training_results()
    if key in training:
        return training[key]
    raise UnknownNameError("result", name, (*inference, *training), listed("evidence"))


def select(
    results: Iterable[InferenceResult],
    *,
    benchmark: str | None = None,
    chip: str | None = None,
    scenario: str | None = None,
    round_: str | None = None,
    submitter: str | None = None,
    chips: int | None = None,
) -> tuple[InferenceResult, ...]:
    """The results with all given properties; case of names does not matter."""
    wanted: list[tuple[Callable[[InferenceResult], object], object]] = []
    texts: tuple[tuple[Callable[[InferenceResult], str], str | None], ...] = (
        (lambda r: r.benchmark, benchmark),
        (lambda r: r.chip, chip),
        (lambda r: r.scenario.lower(), scenario.lower() if scenario else None),
        (lambda r: r.round, round_),
        (lambda r: r.submitter.lower(), submitter.lower() if submitter else None),
    )
    wanted += [(read, value) for read, value in texts if value is not None]
    if chips is not None:
        wanted.append((lambda r: r.chips, chips))
    return tuple(r for r in results if all(read(r) == value for read, value in wanted))


def best_results(results: Iterable[InferenceResult]) -> tuple[InferenceResult, ...]:
    """The best result of each (chip, chips, nodes, model, scenario, round), in order of appearance.

    Best is the highest throughput or the lowest latency: what the hardware was shown to do.
    """
    best: dict[tuple[object, ...], InferenceResult] = {}
    for r in results:
        key = (r.chip, r.accelerator if not r.chip else "", r.chips, r.nodes, r.model, r.scenario, r.round, r.unit)
        held = best.get(key)
        if held is None or (r.result < held.result) == r.unit.startswith("Latency"):
            best[key] = r
    return tuple(best.values())


def _rows(name: str) -> Iterable[list[str]]:
    """The lines of a packed table below its header."""
    packed = shipped_bytes(f"catalog/data/published/{name}.csv.gz")
    reader = csv.reader(io.StringIO(gzip.decompress(packed).decode()))
    next(reader)
    return reader


def _inference(row: list[str]) -> InferenceResult:
    ttft, tpot = row[25], row[26]
    return InferenceResult(
        id=row[0],
        round=row[1],
        category=row[2],
        availability=row[3],
        submitter=row[4],
        system=row[5],
        chip=row[6],
        accelerator=row[7],
        variant=row[8],
        power_limit_w=float(row[9]) if row[9] else None,
        chips=int(row[10]),
        nodes=int(row[11]),
        chips_per_node=int(row[12] or row[10]),
        host=row[13],
        interconnect=row[14],
        framework=row[15],
        model=row[16],
        benchmark=row[17],
        scenario=row[18],
        precision=row[19],
        unit=row[20],
        notes=row[21],
        source=row[22],
        result=float(row[23]),
        tokens_per_s=float(row[24]) if row[24] else None,
        ttft_p99_s=float(ttft) / 1e3 if ttft else None,
        tpot_p99_s=float(tpot) / 1e3 if tpot else None,
    )


def _training(row: list[str]) -> TrainingResult:
    named = dict(zip(TRAINING_COLUMNS, row, strict=True))

    def number(name: str, scale: float = 1.0) -> float | None:
        return float(named[name]) * scale if named[name] else None

    def whole(name: str) -> int | None:
        return int(float(named[name])) if named[name] else None

    return TrainingResult(
        id=named["row_id"],
        round=named["round"],
        submitter=named["submitter"],
        system=named["system_name"],
        chip=named["chip"],
        accelerator=named["accelerator"],
        chips=int(named["chips_total"]),
        nodes=int(named["nodes"] or 1),
        interconnect=named["interconnect"],
        network=named["host_network"],
        framework=named["framework"],
        benchmark=named["benchmark"],
        seq_len=whole("seq_len"),
        global_batch=whole("global_batch"),
        grad_accum=whole("grad_accum"),
        micro_batch=whole("micro_batch"),
        tp=whole("tp"),
        pp=whole("pp"),
        cp=whole("cp"),
        vp=whole("vp"),
        step_time_s=number("step_time_s"),
        step_time_derived=named["step_time_derived"] == "1",
        samples_per_s=number("samples_per_s"),
        time_to_train_s=number("time_to_train_min", 60.0),
        samples_to_target=number("samples_to_target"),
        source=named["source"],
    )


# Months in which MLCommons published the rounds of MLPerf Inference; 2026 by its half-yearly cadence.
ROUNDS: Mapping[str, str] = MappingProxyType(
    {
        "v3.0": "2023-04",
        "v3.1": "2023-09",
        "v4.0": "2024-03",
        "v4.1": "2024-08",
        "v5.0": "2025-04",
        "v5.1": "2025-09",
        "v6.0": "2026-04",
        "v6.1": "2026-09",
    }
)


def month_of(when: str) -> str:
    """A date or MLPerf round as a month, 2025-06; "" stays so."""
    found = re.match(r"(\d{4})-?(\d{2})", ROUNDS.get(when, when))
    return f"{found[1]}-{found[2]}" if found else ""


def software_age(when: str) -> float:
    """Age of software in rounds, half a year each, from v4.0 (2024-03): of a round, or of a date ("2025-06").

    The first round with large language models on most chips is the origin. Raises `UnknownNameError`.
    """
    names = tuple(ROUNDS)
    if when in ROUNDS:
        return float(names.index(when) - names.index("v4.0"))
    found = re.match(r"(\d{4})-?(\d{2})", when)
    if found is None or not 1 <= int(found[2]) <= 12:
        raise UnknownNameError("MLPerf round or date", when, names, f"one of {', '.join(names)}, or as in 2025-06")
    return ((int(found[1]) - 2024) * 12 + int(found[2]) - 3) / 6.0
