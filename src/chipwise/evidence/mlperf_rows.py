"""Rows of MLPerf Inference as the predictor reads them: what ran where, and under which limits.

Works on published results of the catalogue and on rows of a file alike. Nothing here reads a measured figure.
"""

from __future__ import annotations

import re
from typing import Literal

from chipwise.catalog.benchmarks import Benchmark, get_benchmark
from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import get_chip
from chipwise.catalog.published import ROUNDS, InferenceResult, software_age
from chipwise.errors import UsageError, shorten
from chipwise.evidence.rows import Row, number, said_of
from chipwise.values import dataclass

Scenario = Literal["Offline", "Server", "Interactive", "SingleStream", "MultiStream"]
SCENARIOS: tuple[Scenario, ...] = ("Offline", "Server", "Interactive", "SingleStream", "MultiStream")

GENERATES = ("stable-diffusion-xl", "wan-2.2-t2v-a14b")
"""Pictures and videos, whose engines run in fp8 where a chip has it."""

# Software that runs a model as its reference code does, without an engine tuned for the chip.
UNTUNED = re.compile(r"onnxruntime|tflite|armnn|reference|\bncnn\b|\bglow\b|\btf\b|ultralytics", re.I)
TUNED = re.compile(r"tensorrt|nvidia", re.I)


@dataclass(frozen=True, slots=True)
class MlperfRun:
    """One system under one benchmark, as far as it is known before the result.

    `precision` is what the weights and products are taken to have been in, a name of `workload.formats`, None
    for the checkpoint's own; `precision_note` says why where that is not what was declared. `power_w` is the
    stated limit of one chip, None where the chip runs at its own. `age` counts rounds since v4.0.
    """

    id: str
    benchmark: Benchmark
    chip: Chip
    chips: int
    nodes: int
    scenario: Scenario
    accuracy: str
    unit: str
    round: str
    age: float
    precision: str | None
    precision_note: str
    framework: str
    variant: str
    power_w: float | None
    untuned: bool

    @property
    def cell(self) -> tuple[str, str]:
        """What must stay together when a fit is tested: the chip and the benchmark."""
        return self.chip.id, self.benchmark.name


def run_of(result: InferenceResult) -> MlperfRun:
    """A published result without its figures. Raises `UsageError` for a part that is not in the catalogue."""
    return _run(
        result.id,
        (result.chip, result.accelerator),
        (result.chips, result.nodes),
        (result.benchmark, result.model, result.scenario, result.unit, result.round),
        result.precision,
        (result.framework, result.variant),
        result.power_limit_w,
    )


def read_run(row: Row) -> MlperfRun:
    """A row of a table with the columns of `mlperf_inference.csv`; measured ones are not read.

    Raises `UsageError` for a row that lacks a column, names no chip of the catalogue or is malformed.
    """
    try:
        names = (row["model_base"], row["model"], row["scenario"], row["unit"], row["round"])
        chip = (row["chip"], row.get("accelerator", ""))
    except KeyError as error:
        raise UsageError(f"no column {error.args[0]}", "as in mlperf_inference.csv") from None
    counts = int(number(row, "chips_total", 1.0, 1e7)), int(number(row, "nodes", 1.0, 1e7, blank=1.0))
    power = number(row, "power_limit_w") if row.get("power_limit_w") else None
    stack = (row.get("framework", ""), row.get("variant", ""))
    return _run(row.get("row_id", ""), chip, counts, names, row.get("weight_precision", ""), stack, power)


def _run(
    name: str,
    part: tuple[str, str],
    counts: tuple[int, int],
    what: tuple[str, str, str, str, str],
    declared: str,
    stack: tuple[str, str],
    power_w: float | None,
) -> MlperfRun:
    if not part[0]:
        raise UsageError(f"{shorten(part[1]) or 'the part'} is not in the catalogue", "chipwise chips list")
    chip = get_chip(part[0])
    benchmark = get_benchmark(what[0])
    scenario = next((s for s in SCENARIOS if s == what[2]), None)
    if scenario is None:
        raise UsageError(f"unknown scenario '{shorten(what[2])}'", f"one of {', '.join(SCENARIOS)}")
    if what[4] not in ROUNDS:
        raise UsageError(f"unknown round '{shorten(what[4])}'", f"one of {', '.join(ROUNDS)}")
    if scenario == "Server" and "interactive" in what[1]:
        scenario = "Interactive"  # v5.0 listed it as a model of its own
    accuracy = "99.9" if what[1].endswith("99.9") else "99"
    precision, note = precision_of(benchmark, chip, declared, accuracy)
    framework, variant = stack
    return MlperfRun(
        id=name,
        benchmark=benchmark,
        chip=chip,
        chips=counts[0],
        nodes=counts[1],
        scenario=scenario,
        accuracy=accuracy,
        unit=what[3],
        round=what[4],
        age=software_age(what[4]),
        precision=precision,
        precision_note=note,
        framework=framework,
        variant=variant,
        power_w=power_w,
        untuned=bool(UNTUNED.search(framework)) and not TUNED.search(framework),
    )


def precision_of(benchmark: Benchmark, chip: Chip, declared: str, accuracy: str = "99") -> tuple[str | None, str]:
    """The format that ran, None for the checkpoint's own, and why it is not the declared one ("" where it is)."""
    words = re.split(r"[+, ]+", declared.lower().replace("float8", "fp8"))
    row = {
        "kind": benchmark.kind,
        "benchmark": benchmark.name,
        "makes": "pictures" if benchmark.name in GENERATES else "",
        "accuracy": accuracy,
        "declared": "+".join(words),
        "chip": chip.kind,
        "vendor": chip.vendor,
        "memory": chip.memory.kind,
        "matrix": " ".join(chip.matrix),
        "formats": " ".join((*chip.matrix, *chip.vector)),
    }
    said = said_of(row, "mlperf_runs")
    return said["precision"] or None, said["note"]
