"""The suite `energy`: rows of measured power ask what a user would, and take the same figures."""

from __future__ import annotations

import csv
import json
import shlex
from pathlib import Path

import pytest

from chipwise import api
from chipwise.api.suites import energy
from chipwise.api.suites.energy import ENERGY
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.evidence.rows import Predicted
from command_line import Run

SERVED = {
    "id": "e1",
    "model": "Qwen/Qwen3-14B",
    "chip": "h100-sxm5-80gb",
    "chips": "1",
    "phase": "serve",
    "precision": "bf16",
    "runtime": "vllm",
    "batch_or_concurrency": "64",
    "isl": "",
    "osl": "600",
    "metric": "joules_per_output_token",
    "value": "0.2",
    "scope": "chip",
    "date": "2026-02",
    "source": "someone",
    "note": "task lm-arena-chat; tp=1 dp=1 ep=1; running batch 63.0",
}
SUBMITTED = {
    "id": "e2",
    "model": "bert-99",
    "phase": "encoder",
    "chips": "8",
    "precision": "",
    "runtime": "TensorRT 9.0.0, CUDA 12.2",
    "batch_or_concurrency": "Offline",
    "osl": "",
    "metric": "system_power_w",
    "scope": "wall",
    "note": "MLPerf inference v3.1 closed datacenter power, NVIDIA; MaxQ = power-tuned (reduced caps)",
}
SOLVED = {
    "id": "e3",
    "model": "llama2-70b-99",
    "chip": "h200-sxm-141gb",
    "chips": "8",
    "phase": "serve",
    "precision": "",
    "runtime": "TensorRT 10.2.0, CUDA 12.4",
    "batch_or_concurrency": "Offline",
    "osl": "",
    "metric": "system_power_w",
    "scope": "wall",
    "note": "MLPerf inference v4.1 closed datacenter power, NVIDIA; MaxQ = power-tuned (reduced caps)",
}
PATHS = {
    ("chip", "avg_power_w_per_chip"): "chip_w",
    ("chip", "joules_per_output_token"): "joules_per_token",
    ("chip", "joules_per_request"): "joules_per_request",
    ("wall", "system_power_w"): "wall_w",
    ("wall", "joules_per_output_token"): "joules_per_token_wall",
    ("wall", "joules_per_request"): "joules_per_request_wall",
}


def table(folder: Path, *rows: dict[str, str]) -> Path:
    path = folder / "rows.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, SERVED)
        writer.writeheader()
        writer.writerows({**SERVED, **row} for row in rows)
    return path


def asked(folder: Path, **change: str) -> Predicted:
    (line,) = ENERGY.predict(str(table(folder, change)))
    return line


def test_printed_commands_hold_the_figures(tmp_path: Path, run: Run) -> None:
    rows = [{"id": f"{scope} {metric}", "scope": scope, "metric": metric} for scope, metric in PATHS]
    rows = [row if row["scope"] == "chip" else {**SOLVED, **row} for row in rows]
    out, commands = tmp_path / "out.csv", tmp_path / "commands.csv"
    api.predict_suite("energy", str(table(tmp_path, *rows)), str(out), commands=str(commands))
    with out.open(newline="", encoding="utf-8") as file:
        predicted = list(csv.DictReader(file))
    with commands.open(newline="", encoding="utf-8") as file:
        typed = {line["row_id"]: line["command"] for line in csv.DictReader(file)}
    assert len(typed) == len(PATHS)
    said: dict[str, dict[str, dict[str, float]]] = {}
    for line, (_, figure) in zip(predicted, PATHS.items(), strict=True):
        command = typed[line["row_id"]]
        if command not in said:
            said[command] = json.loads(run(*shlex.split(command)[1:], "--format", "json").out)["plans"][0]["energy"]
        shown = said[command][figure]
        for end, name in (("mid", "predicted"), ("low", "low"), ("high", "high")):
            assert shown[end] == pytest.approx(float(line[name]), rel=1e-9)


def test_measured_columns_move_no_answer(tmp_path: Path) -> None:
    one, other = asked(tmp_path), asked(tmp_path, value="9999")
    assert one == other


def test_a_submission_of_fixed_samples_is_watts_at_the_wall(tmp_path: Path) -> None:
    tuned = asked(tmp_path, **SUBMITTED)
    plain = asked(tmp_path, **{**SUBMITTED, "note": "MLPerf inference v3.1 closed datacenter power"})
    each = asked(tmp_path, **{**SUBMITTED, "metric": "joules_per_request"})
    assert tuned.mid is not None
    assert plain.mid is not None
    assert each.mid is not None
    # chips of 700 W and all around them; tuned for power they draw less
    assert 3000.0 < tuned.mid < plain.mid < 10_200.0
    assert 0.02 < each.mid < 1.0
    assert tuned.command.startswith("chipwise plan bert-large --precision fp8-static")


def test_a_stated_limit_is_kept(tmp_path: Path) -> None:
    rows = table(tmp_path, {**SUBMITTED, "id": "a"})
    with rows.open(newline="", encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    with rows.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [*row, "power_limit_w"])
        writer.writeheader()
        writer.writerows([{**row, "power_limit_w": limit} for limit in ("350", "500")])
    low, high = (line.mid for line in ENERGY.predict(str(rows)))
    assert low is not None
    assert high is not None
    assert 1.2 < high / low < 1.05 * 500.0 / 350.0


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"chip": ""}, "not in the catalogue"),
        ({"chip": "tenth-chip"}, "unknown chip"),
        ({"metric": "smiles"}, "is not read"),
        ({"scope": "town"}, "is not read"),
        ({"phase": "image"}, "not answered by estimate"),
        ({"note": "task unheard-of; tp=1 dp=1 ep=1"}, "length of its prompts"),
        ({"osl": ""}, "osl"),
        ({"runtime": "notebook"}, "unknown runtime"),
    ],
)
def test_what_cannot_be_answered_says_why(tmp_path: Path, change: dict[str, str], why: str) -> None:
    line = asked(tmp_path, **change)
    assert line.mid is None
    assert why in line.refused


def test_power_is_learned_from_what_chips_did_at_the_rate_that_was_measured(tmp_path: Path) -> None:
    note = "task lm-arena-chat; tp=1 dp=1 ep=1; running batch 63.0"
    watts = {"id": "w", "metric": "avg_power_w_per_chip", "value": "500", "note": f"{note}; total GPU power / GPUs"}
    fast, slow = (_done(tmp_path, watts, {"id": "j", "note": note, "value": joules}) for joules in ("0.1", "0.4"))
    alone = _done(tmp_path, watts)
    # four times the joules at the same watts: a fourth of the rate, hence of the bytes
    assert fast / slow == pytest.approx(4.0)
    assert alone == pytest.approx(_said(tmp_path, watts))


def _done(folder: Path, *rows: dict[str, str]) -> float:
    found = energy._measured([str(table(folder, *rows))], shipped_parameters())
    return float(found.done.use.memory[0])


def _said(folder: Path, *rows: dict[str, str]) -> float:
    found = energy._measured([str(table(folder, *rows))], shipped_parameters())
    return float(found.data.use.memory[0])


def test_another_format_of_a_known_checkpoint_is_asked_for_by_its_precision(tmp_path: Path) -> None:
    wide, narrow = (
        asked(tmp_path, model=model, precision=precision)
        for model, precision in (("Qwen/Qwen3-14B", "bf16"), ("Qwen/Qwen3-14B-FP8", "fp8"))
    )
    assert wide.mid is not None
    assert narrow.mid is not None
    assert narrow.mid < wide.mid
    assert "FP8" in narrow.command


def test_the_published_tables_keep_their_errors(truth: Path) -> None:
    """Joules per token of chips and watts at the wall on rows whose (model, chip) no fit of power had seen."""
    found = api.validate("energy", str(truth / "energy.csv"))
    rows = {s.metric: s for s in found.tables["all"]}
    # no error of a speed is in these
    for metric in ("chip_w", "chip_w samples", "wall_w"):
        assert rows[f"{metric} at the measured rate"].median <= 0.12
    for metric, most in (("joules_per_token", 0.19), ("wall_w", 0.12), ("chip_w", 0.10)):
        assert rows[metric].median <= most
        assert 0.72 <= rows[metric].coverage <= 0.93
    fitted, cells = (int(word) for word in found.remarks[0].split() if word.isdigit())
    assert fitted <= cells / 2
