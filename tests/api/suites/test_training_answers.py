"""What `predict training` says of a row is what the printed command answers."""

import csv
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from chipwise.api.suites.predicting import predict_suite
from command_line import Run
from whole import some

EXACT = 1e-9
ALIKE = ("source", "framework", "chip", "task", "precision")
"""Columns by which rows of one publication ask alike: one of each is asked."""


@pytest.fixture(scope="module")
def predicted(truth: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """By row: its command, and the lines of it by metric."""
    folder = tmp_path_factory.mktemp("predicted")
    rows = folder / "rows.csv"
    with (truth / "training.csv").open(newline="") as source, rows.open("w", newline="") as target:
        reader = csv.DictReader(source)
        writer = csv.DictWriter(target, reader.fieldnames or ())
        writer.writeheader()
        kept = list({tuple(r[name] for name in ALIKE): r for r in reader}.values())
        writer.writerows(kept)
    out, commands = folder / "out.csv", folder / "commands.csv"
    predict_suite("training", str(rows), str(out), commands=str(commands))
    with commands.open(newline="") as file:
        found: dict[str, Any] = {r["row_id"]: (r["command"], {}) for r in csv.DictReader(file)}
    with out.open(newline="") as file:
        for line in csv.DictReader(file):
            if line["predicted"]:
                found[line["row_id"]][1][line["metric"]] = line
    assert len(found) > 0.95 * len([r for r in kept if r["chip_known"] == "1"])
    return found


def _same(plan: Mapping[str, Any], lines: Mapping[str, Mapping[str, str]]) -> None:
    def equal(metric: str, column: str, value: float) -> None:
        assert float(lines[metric][column]) == pytest.approx(value, rel=EXACT), (metric, column)

    if "fwd_bwd_time_s" in lines:
        equal("fwd_bwd_time_s", "predicted", plan["step_s"]["mid"] * (1.0 - plan["shares"]["optimiser"]))
        return
    equal("memory_gb", "predicted", plan["memory_bytes"] / 1e9)
    assert lines["step_time_s"]["basis"] == plan["step_s"]["basis"]
    for column, end in (("predicted", "mid"), ("low", "low"), ("high", "high")):
        equal("step_time_s", column, plan["step_s"][end])
        if "mfu" not in plan:  # a step of a generator, which counts no tokens
            continue
        equal("tokens_per_s_per_chip", column, plan["tokens_per_s"][end] / plan["chips"])
    if "mfu" in plan:
        equal("mfu_pct", "predicted", 100.0 * plan["mfu"])


def test_every_row_is_the_answer_to_its_command(predicted: Mapping[str, Any], run: Run) -> None:
    """Each is asked through the whole command line."""
    assert len(predicted) > 100
    for command, lines in some([*predicted.values()], 4):
        words = shlex.split(command)
        assert words[1] == ("estimate" if "--frames" in words else "plan")
        ran = run(*words[1:], "--format", "json")
        assert ran.code == 0, ran.err
        _same(json.loads(ran.out)["plans"][0], lines)


def test_a_row_in_a_process_of_its_own(predicted: Mapping[str, Any]) -> None:
    """What was asked before in this process has no part in the answer."""
    command, lines = list(predicted.values())[-1]
    words = [sys.executable, "-m", *shlex.split(command), "--format", "json"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=os.environ)
    _same(json.loads(done.stdout)["plans"][0], lines)
