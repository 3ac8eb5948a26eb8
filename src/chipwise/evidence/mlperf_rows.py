"""Rows of MLPerf Inference as the predictor reads them: what ran where, and under which limits.

Works on published results of the catalogue and on rows of a file alike. Nothing here reads a measured figure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from chipwise.catalog.benchmarks import Benchmark, get_benchmark
from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import get_chip
from chipwise.catalog.published import InferenceResult
from chipwise.catalog.rounds import ROUNDS, software_age
from chipwise.errors import UsageError, shorten
from chipwise.evidence.rows import Row

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
        chips, nodes = int(float(row["chips_total"])), int(float(row.get("nodes") or 1))
        power = float(row["power_limit_w"]) if row.get("power_limit_w") else None
        names = (row["model_base"], row["model"], row["scenario"], row["unit"], row["round"])
        chip = (row["chip"], row.get("accelerator", ""))
    except KeyError as error:
        raise UsageError(f"no column {error.args[0]}", "as in mlperf_inference.csv") from None
    except (ValueError, OverflowError):
        raise UsageError("chips_total, nodes or power_limit_w is no number") from None
    if not (0 < chips < 10**7 and 0 < nodes < 10**7):
        raise UsageError(f"chips_total {chips} or nodes {nodes} is out of range")
    if power is not None and not 0.0 < power < math.inf:
        raise UsageError(
            f"power_limit_w {power:g} is out of range", "watts of one chip, blank where it has no limit"
        )
    stack = (row.get("framework", ""), row.get("variant", ""))
    return _run(
        row.get("row_id", ""), chip, (chips, nodes), names, row.get("weight_precision", ""), stack, power
    )


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


def precision_of(
    benchmark: Benchmark, chip: Chip, declared: str, accuracy: str = "99"
) -> tuple[str | None, str]:
    """The format that ran, and why it is not the declared one ("" where it is).

    Language models were declared as fp16 where fp8 ran (v4.1), and not at all before; the vision-language
    model as anything from fp32 to fp4+fp8. A chip with units for fp8 is taken to have used them.
    """
    words = re.split(r"[+, ]+", declared.lower().replace("float8", "fp8")) if declared else []
    if benchmark.kind == "llm":
        return _language_model(benchmark, chip, words)
    native = "int8" if "int8" in chip.matrix or "int8" in chip.vector else "fp16"
    if benchmark.kind == "recurrent" and chip.kind == "gpu":
        return (
            "fp16",
            "" if "fp16" in words else "int8 is declared for the set; its recurrent layers run in fp16",
        )
    if benchmark.name == "whisper":
        return (
            "bf16" if "bf16" in chip.matrix else "fp16"
        ), "" if "fp16" in words else "weights narrower at most"
    if benchmark.name == "dlrm-v2" and accuracy == "99.9":
        return "fp16", "its crossings do not keep 99.9 % of their accuracy in 8 bits: taken to be fp16"
    if "fp32" in words and chip.kind == "gpu":
        known = "fp8" if benchmark.name in GENERATES and "fp8" in chip.matrix else native
        return known, f"declared fp32: no tuned engine runs this in fp32, taken to be {known}"
    if benchmark.name == "bert" and accuracy == "99.9" and words in ([], ["int8"]):
        wide = "fp8" if "fp8" in chip.matrix and chip.memory.kind == "hbm" else _sixteen(chip)
        return wide, f"int8 does not keep 99.9 % of its accuracy: taken to have run in {wide}"
    if words == ["fp16"] and benchmark.name == "bert" and "fp8" in chip.matrix and chip.memory.kind == "hbm":
        return "fp8", "declared fp16: taken to have run in fp8"
    for name in ("fp8", "int8", "bf16", "fp16", "fp32"):
        if name in words:
            return name, ""
    if "fp4" in words:
        wide = "fp8" if benchmark.name in GENERATES and "fp8" in chip.matrix else "fp16"
        return wide, f"declared fp4: most of its layers have no 4-bit form, taken to be {wide}"
    return native, "precision not declared: int8 where the chip has units for it"


def _sixteen(chip: Chip) -> str:
    """The format of 16 bits that a chip is fast in."""
    return "bf16" if chip.kind == "cpu" and "bf16" in chip.matrix else "fp16"


def _language_model(benchmark: Benchmark, chip: Chip, words: list[str]) -> tuple[str | None, str]:
    four_bit: Mapping[str, str] = {"amd": "mxfp4", "nvidia": "nvfp4"}
    own = benchmark.name == "gpt-oss-120b"
    if own:
        return None, ""  # its checkpoint is mxfp4; fp8 declares the cache
    if "fp4" in words and "fp4" in chip.matrix:
        return four_bit.get(chip.vendor, "mxfp4"), ""
    if "fp8" in words and "fp8" in chip.matrix:
        return "fp8", ""
    for name in ("int4", "int8"):
        if name in words:
            return name, ""
    said = "+".join(words) or "nothing"
    if words and "fp4" in chip.matrix and chip.memory.kind == "hbm":
        return four_bit.get(chip.vendor, "mxfp4"), f"declared {said}: taken to have run in 4 bit"
    if "fp8" in chip.matrix:
        return "fp8", f"declared {said}: taken to have run in fp8"
    if not words and chip.kind == "tpu":
        return "int8", "precision not declared: taken to be int8"
    return "fp16" if "bf16" not in chip.matrix else "bf16", "" if words else "precision not declared"
