"""A look at published measurements: decode times of dense models within a factor of two for most rows.

Nothing is fitted here; the accuracy of the package is reported by `chipwise validate`.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.chips import get_chip
from chipwise.catalog.configs import find_config
from chipwise.catalog.runtime import get_runtime
from chipwise.cost.device import Device
from chipwise.parallel.layout import Layout, Reason, check_layout
from chipwise.search.evaluate import predict, single
from chipwise.search.space import Deployment
from chipwise.workload.build import build
from chipwise.workload.load import load_model
from chipwise.workload.precision import uniform
from chipwise.workload.workload import Workload

DENSE = ("Llama-3.1", "Qwen3-32B")
ROWS = 40
FORMATS = {"fp8": "fp8", "fp4": "nvfp4", "bf16": "bf16", "": "bf16"}


def dense_rows(truth: Path) -> list[Mapping[str, str]]:
    """Every n-th aggregated row that counts, of dense models."""
    with (truth / "serving_points.csv").open(newline="", encoding="utf-8") as source:
        rows = [
            row
            for row in csv.DictReader(source)
            if (row["mode"], row["score"]) == ("agg", "1") and any(name in row["model"] for name in DENSE)
        ]
    return rows[:: max(1, len(rows) // ROWS)][:ROWS]


def tpot_ms(truth: Path, row: Mapping[str, str]) -> float:
    model = load_model(find_config(str(truth / "models" / row["config_file"])))
    graph = build(model.at_precision(uniform(FORMATS[row["precision"]])))
    layout = Layout(float(row["tp"]))
    assert check_layout(graph, layout) is Reason.OK
    chip, runtime = get_chip(row["chip"]), get_runtime(row["backend"])
    deployment = Deployment(chip, Device.of(chip), runtime, runtime.policies_on(chip))
    numbers = shipped_parameters()
    rates = numbers.cost("simt", runtime.id, [chip]), numbers.overheads("simt", runtime.id)
    # lengths are nominal: part of the runs draws between 0.8 and 1 times that
    lengths = 0.9 * float(row["isl"]), 0.9 * float(row["osl"])
    workload = Workload(prompt_tokens=lengths[0], output_tokens=lengths[1])
    p = predict(graph, single(deployment, layout), workload, *rates)
    return 1e3 * float(np.interp(float(row["concurrency"]), p.concurrency[0], p.tpot_s[0]))


def test_most_decode_times_are_within_a_factor_of_two(truth: Path) -> None:
    rows = dense_rows(truth)
    assert len(rows) >= 30
    ratio = np.array([tpot_ms(truth, row) / float(row["tpot_ms"]) for row in rows])
    assert np.all(np.isfinite(ratio))
    within = np.mean((ratio > 0.5) & (ratio < 2.0))
    assert within >= 0.8, f"{within:.0%} within a factor of two, median {np.median(ratio):.2f}"
    assert 0.7 < np.median(ratio) < 1.4
