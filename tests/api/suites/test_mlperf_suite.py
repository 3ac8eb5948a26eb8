"""A row of MLPerf is a question to `plan`, and its answer is the plan's."""

from __future__ import annotations

import csv
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chipwise import api
from chipwise.api.evidence_match import match_evidence
from chipwise.api.placing import Given, Terms
from chipwise.api.requests.command import command_line
from chipwise.api.suites.mlperf import MlperfAnswer, answer, media_runtime_of
from chipwise.api.suites.mlperf_folds import MLPERF
from chipwise.calibrate.fit_level import without_level
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.evidence.mlperf_rows import read_run
from chipwise.search.space import Limits
from chipwise.workload.workload import Workload
from command_line import Run
from evidence.mlperf import ROW

NEAR = 1e-9


def asked(rows: list[dict[str, str]]) -> list[MlperfAnswer]:
    found = answer([read_run(row) for row in rows])
    assert all(isinstance(a, MlperfAnswer) for a in found), found
    return [a for a in found if isinstance(a, MlperfAnswer)]


def some(truth: Path, step: int) -> list[dict[str, str]]:
    with (truth / "mlperf_inference.csv").open(newline="", encoding="utf-8") as source:
        rows = [r for r in csv.DictReader(source) if r["tokens_per_s"] and r["chip_known"] == "1"]
    return [r for r in rows if r["model_base"] not in ("whisper", "gptj")][::step]


def test_every_scenario_is_the_question_of_a_user() -> None:
    rows = [{**ROW, "scenario": s} for s in ("Offline", "Server", "Interactive")]
    found = {a.run.scenario: a.question for a in asked(rows)}
    offline, server, interactive = (found[s] for s in ("Offline", "Server", "Interactive"))
    assert offline is not None
    assert server is not None
    assert interactive is not None
    assert (offline.task, offline.percentile, offline.ttft) == ("batch", None, None)
    assert (server.task, server.percentile, server.ttft, server.tpot) == ("serve", "p99", "2s", "0.2s")
    assert (interactive.ttft, interactive.harness) == ("0.45s", "mlperf-interactive")
    assert (server.have, server.level, server.software) == ("8xh200-sxm-141gb", "tuned", "v5.1")
    line = command_line("plan", server)
    assert line.startswith("chipwise plan meta-llama/Llama-2-70b-chat-hf")
    for part in ("--have 8xh200-sxm-141gb", "--level tuned", "--software v5.1", "--percentile p99"):
        assert part in line


def test_a_tuned_network_is_compiled_whatever_library_is_named() -> None:
    row_ = {
        **ROW, "model": "resnet", "model_base": "resnet", "scenario": "Offline", "chip": "xeon-8480plus",
        "unit": "Samples/s", "round": "v3.1", "weight_precision": "int8", "framework": "PyTorch",
    }  # fmt: skip
    assert media_runtime_of(read_run(row_)) == "compile"
    assert media_runtime_of(read_run({**row_, "framework": "reference code of PyTorch"})) == "eager"


def test_tighter_limits_give_less_and_older_rounds_too() -> None:
    rates = {
        a.run.scenario: a.rate[0] for a in asked([{**ROW, "scenario": s} for s in ("Offline", "Server", "Interactive")])
    }
    assert rates["Interactive"] < rates["Server"] <= rates["Offline"] * (1 + NEAR)
    aged = [a.rate[0] for a in asked([{**ROW, "round": r} for r in ("v4.0", "v4.1", "v5.0", "v6.0")])]
    assert aged == sorted(aged)


def test_twice_the_chips_twice_the_replicas() -> None:
    one, two = asked([{**ROW, "chips_total": n} for n in ("8", "16")])
    assert two.rate[0] == pytest.approx(2 * one.rate[0], rel=0.05)


def test_the_printed_question_has_the_very_answer(truth: Path) -> None:
    rows = some(truth, 97)
    found = [a for a in answer([read_run(r) for r in rows]) if isinstance(a, MlperfAnswer)]
    assert len(found) >= 0.8 * len(rows) > 5
    for a in found:
        assert a.question is not None
        t = a.question.run().plans[0].tokens_per_s
        assert (t.mid, t.low, t.high) == pytest.approx(a.rate, rel=NEAR)


def test_on_the_command_line_too(truth: Path, run: Run) -> None:
    rows = some(truth, 181)[:6]
    found = [a for a in answer([read_run(r) for r in rows]) if isinstance(a, MlperfAnswer) and a.question]
    assert found
    for a in found:
        assert a.question is not None
        words = shlex.split(command_line("plan", a.question))[1:]
        t = run(*words, "--format", "json").json["plans"][0]["tokens_per_s"]
        assert (t["mid"], t["low"], t["high"]) == pytest.approx(a.rate, rel=NEAR)


def test_evidence_match_says_the_same_figure() -> None:
    (a,) = asked([ROW])
    q = a.question
    assert q is not None
    workload = Workload("batch", float(q.in_), float(q.out))
    # the cache in 8 bits and the policies of a submission are beyond what a match is told
    stock = match_evidence(q.model, workload, Given("h200-sxm-141gb", count=8), Terms(precision="fp8"))
    plan = api.plan(q.model, workload, Terms(precision="fp8"), limits=Limits(have={"h200-sxm-141gb": 8})).plans[0]
    assert stock.anchored is not None
    assert stock.anchored.model == plan.tokens_per_s.mid
    assert stock.interval == (plan.tokens_per_s.low, plan.tokens_per_s.high)


def test_rows_beside_a_plan_are_priced_anew_for_other_numbers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    priced = []

    def counted(runs: list[Any], numbers: Any) -> Any:
        priced.append(runs)
        return answer(runs, numbers)

    monkeypatch.setattr("chipwise.api.evidence_match.answer", counted)
    ask = ("meta-llama/Llama-3.1-70B", Workload("batch", 2000.0, 300.0), Given("h100-sxm5-80gb", count=8))
    kept = match_evidence(*ask).anchored
    assert priced == []
    own = Terms(parameters=Parameters(shipped_parameters().table))
    anew = match_evidence(*ask, own).anchored
    assert priced
    assert kept is not None
    assert anew is not None
    assert kept.used == anew.used
    assert kept.value == pytest.approx(anew.value, rel=0.05)


def test_beams_are_answered_and_printed_nowhere(tmp_path: Path) -> None:
    row = {**ROW, "model": "gptj-99", "model_base": "gptj", "round": "v4.1"}
    path = tmp_path / "rows.csv"
    with path.open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, list(row))
        writer.writeheader()
        writer.writerow(row)
    lines = {p.metric: p for p in MLPERF.predict(str(path))}
    assert lines["tokens_per_s"].mid is not None
    assert not lines["tokens_per_s"].command


def test_numbers_of_a_fold_price_the_answer() -> None:
    slow, fast = (answer([read_run(ROW)], without_level(shipped_parameters(), pace=pace))[0] for pace in (1.4, 0.7))
    assert isinstance(slow, MlperfAnswer)
    assert isinstance(fast, MlperfAnswer)
    assert 1.5 < fast.rate[0] / slow.rate[0] < 2.1
    assert np.isfinite(fast.rate).all()
