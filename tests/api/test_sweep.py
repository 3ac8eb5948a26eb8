"""A sweep: the same bytes however it runs and however often it is killed, and every problem in its row."""

from __future__ import annotations

import csv
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.api.test_like import MINE, copy_of

import chipwise as cw
from chipwise.api.requests.sweep import DEFAULTS, SweepAxis, SweepDesign, read_sweep, sweep_of
from chipwise.api.requests.verbs import VERBS
from chipwise.api.sweep import CELLS, MARKER, PARQUET, REPORT, RESULTS, CellStore, SweepTally, run_sweep
from chipwise.api.sweep_run import (
    AloneEngine,
    Block,
    LocalEngine,
    LostError,
    Rows,
    SweepEngine,
    SweepWork,
    flow,
    installed,
    own_files,
    timed,
)
from chipwise.catalog.snapshot import today
from chipwise.errors import ChipwiseError, UnknownNameError, UsageError
from command_line import Run

PRODUCTS = """
verb = "kernel"
[fixed]
op = "gemm"
n = 1024
k = 1024
[grid]
chips = ["h100", "l4"]
m = [1, 0, 64, 4096]
dtype = ["bf16", "fp8", "fp16"]
"""
SERVED: Mapping[str, Any] = {
    "verb": "estimate",
    "columns": ["plans.0.tpot_s.mid"],
    "fixed": {"model": "llama-3.1-8b"},
    "grid": {"chip": ["h100", "l4"], "concurrency": [1, 64]},
}


def work_of(said: Mapping[str, Any]) -> SweepWork:
    design = sweep_of(said)
    return SweepWork(design, today(), own_files(design.tried()), installed())


def written(folder: Path) -> dict[str, bytes]:
    """What a finished sweep shows."""
    return {name: (folder / name).read_bytes() for name in (RESULTS, REPORT, MARKER)} | (
        {PARQUET: (folder / PARQUET).read_bytes()} if (folder / PARQUET).exists() else {}
    )


@pytest.fixture(scope="module")
def products(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished sweep, with its file beside the folder."""
    home = tmp_path_factory.mktemp("sweep")
    (home / "sweep.toml").write_text(PRODUCTS)
    run_sweep(str(home / "sweep.toml"), str(home / "out"), ("local", 1, None))
    return home


def lines(folder: Path) -> list[dict[str, str]]:
    with (folder / RESULTS).open(newline="") as text:
        return list(csv.DictReader(text))


def test_every_cell_is_a_row_and_every_problem_its_own(products: Path) -> None:
    rows = lines(products / "out")
    assert [(r["chips"], r["m"], r["dtype"]) for r in rows] == [
        (c, m, d) for c in ("h100", "l4") for m in ("1", "0", "64", "4096") for d in ("bf16", "fp8", "fp16")
    ]
    for row in rows:
        assert row["error"] == ("unusable-value" if row["m"] == "0" else "")
        assert ("m 0: not a size" in row["message"]) == (row["m"] == "0")
        assert bool(row["kernels.0.time_s.mid"]) == (row["m"] != "0")
    assert len({row["key"] for row in rows}) == len(rows)


def test_a_cell_answers_as_its_verb_does(products: Path) -> None:
    row = lines(products / "out")[9]
    asked = {name: row[name] for name in ("chips", "m", "dtype")}
    alone = cw.kernel("gemm", n=1024, k=1024, **asked).kernels[0]
    assert float(row["kernels.0.time_s.mid"]) == pytest.approx(alone.time_s.mid, rel=1e-11)
    assert row["kernels.0.bound"] == alone.bound


def test_many_processes_write_the_same_bytes(products: Path, tmp_path: Path) -> None:
    run_sweep(str(products / "sweep.toml"), str(tmp_path / "two"), ("local", 2, None))
    assert written(tmp_path / "two") == written(products / "out")


@pytest.mark.filterwarnings("ignore")
def test_ray_writes_the_same_bytes(products: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs the ray extra")
    run_sweep(str(products / "sweep.toml"), str(tmp_path / "ray"), ("ray", None, None))
    assert written(tmp_path / "ray") == written(products / "out")


def count(folder: Path) -> int:
    """Rows that are kept at this moment, as far as another process may look."""
    return (folder / CELLS).stat().st_size if (folder / CELLS).exists() else 0


def test_a_sweep_that_is_killed_goes_on_to_the_same_bytes(products: Path, tmp_path: Path) -> None:
    """Once as its folder appears, then as its first rows are kept, then at moments between."""
    out = tmp_path / "out"
    command = [sys.executable, "-m", "chipwise", "sweep", str(products / "sweep.toml"), "--out", str(out)]
    moments: Sequence[Callable[[], bool]] = (
        out.exists,
        lambda: count(out) > 0,
        lambda: time.sleep(0.13) is None and count(out) > 0,
        lambda: time.sleep(0.31) is None and count(out) > 0,
    )
    killed = 0
    for moment in moments:
        ran = subprocess.Popen([*command, "--workers", "2"], stdout=-3, stderr=-3, start_new_session=True)
        while ran.poll() is None and not moment():
            time.sleep(0.001)
        killed += ran.poll() is None
        with_children = getattr(os, "killpg", None)
        with_children(ran.pid, signal.SIGKILL) if with_children else ran.kill()
        ran.wait()
    assert killed >= 2
    (out / ".0123456789abcdef.part").write_text("half a resu")  # as a kill in the middle of writing leaves it
    assert subprocess.run([*command, "--workers", "1"], capture_output=True, check=False).returncode == 0
    assert written(out) == written(products / "out")
    assert sorted(p.name for p in out.iterdir() if p.name.startswith(".")) == []


def test_a_finished_sweep_asks_nothing_again(products: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = written(products / "out")
    monkeypatch.setattr(AloneEngine, "start", lambda *_: pytest.fail("a cell was asked again"))
    report = run_sweep(str(products / "sweep.toml"), str(products / "out"), ("local", 1, None))
    assert report.cells == 24
    assert report.failed == 6
    assert written(products / "out") == before


def test_a_folder_of_anything_else_is_left_alone(products: Path, tmp_path: Path, run: Run) -> None:
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("mine")
    asked = ("sweep", str(products / "sweep.toml"), "--workers", "1", "--out")
    assert "holds something else than a sweep" in run(*asked, str(foreign)).refused(2)
    assert [p.name for p in foreign.iterdir()] == ["thesis.tex"]
    (tmp_path / "file").write_text("mine")
    assert "cannot be used" in run(*asked, str(tmp_path / "file")).refused(2)
    other = tmp_path / "other.toml"
    other.write_text(PRODUCTS.replace("4096]", "2048]"))
    before = written(products / "out")
    said = run("sweep", str(other), "--out", str(products / "out")).refused(2)
    assert "holds another sweep" in said
    assert written(products / "out") == before


def test_one_process_at_a_time(products: Path, run: Run) -> None:
    store = CellStore(products / "out" / CELLS)
    try:
        said = run("sweep", str(products / "sweep.toml"), "--out", str(products / "out")).refused(2)
    finally:
        store.close()
    assert "another process works on this sweep" in said


def test_rows_of_other_tables_are_not_taken(products: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chipwise.api.sweep.installed", lambda: "another build")
    said = run("sweep", str(products / "sweep.toml"), "--out", str(products / "out")).refused(2)
    assert "another build of chipwise" in said


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"verb": "estmate"}, "unknown verb 'estmate'.*did you mean estimate"),
        ({"verb": "launch"}, "unknown verb 'launch'"),
        ({"grid": {"chpi": ["h100"]}}, "unknown field of estimate 'chpi'.*did you mean chip"),
        ({"grid": {"chip": ["h100", "h1000"]}}, "unknown chip 'h1000'.*did you mean h100"),
        ({"grid": {"chip": ["h100"], "tp": [1, "two"]}}, "--tp: cannot read 'two'"),
        ({"grid": {"chip": "h100"}}, r"\[grid\] chip: cannot use 'h100' \(a list of values"),
        ({"grid": {"chip": ["h100"], "model": ["qwen3-32b"]}}, "model stands twice"),
        ({"columns": ["plans.0.tpot.mid"]}, "unknown column 'plans.0.tpot.mid'.*plans.0.tpot_s"),
        ({"columns": ["plans.0.tpot_s"]}, r"is a record \(name a part of it: plans.0.tpot_s.mid"),
        ({"colums": ["a"]}, "unknown key of a sweep 'colums'.*did you mean columns"),
        ({"grid": {"concurrency": {"low": 1, "high": 9}}}, "concurrency is a range.*cells = 1000"),
        ({"random": {"cells": 0, "seed": 1}}, "not a whole number from 1"),
        ({"random": {"cells": 5, "sed": 1}}, r"unknown key of \[random\] 'sed'"),
    ],
)
def test_a_design_is_refused_before_any_cell(changed: Mapping[str, Any], match: str) -> None:
    with pytest.raises(ChipwiseError, match=match):
        next(cw.sweep({**SERVED, **changed}))


def test_python_gives_rows_in_order() -> None:
    rows = list(cw.sweep(SERVED))
    assert [(r["chip"], r["concurrency"]) for r in rows] == [("h100", 1), ("h100", 64), ("l4", 1), ("l4", 64)]
    first = cw.estimate("llama-3.1-8b", chip="h100", concurrency=1).best.tpot_s.mid
    assert rows[0]["plans.0.tpot_s.mid"] == pytest.approx(first, rel=1e-11)
    assert rows[0]["error"] == ""
    assert rows[3]["error"] == "infeasible"
    assert rows[3]["plans.0.tpot_s.mid"] is None


def test_a_random_design_is_that_of_its_seed() -> None:
    drawn = {
        **SERVED,
        "grid": {
            "chip": ["h100", "h200"],
            "concurrency": {"low": 1, "high": 64, "log": True, "whole": True},
            "set": {"hbm": {"low": 2, "high": 4, "unit": "TB/s"}},
        },
        "random": {"cells": 2000, "seed": 7},
    }
    one, again, other = (sweep_of({**drawn, "random": {"cells": 2000, "seed": seed}}) for seed in (7, 7, 8))
    cells = [one.cell(n) for n in range(2000)]
    assert cells == [again.cell(n) for n in range(2000)]
    assert cells != [other.cell(n) for n in range(2000)]
    assert sum(c["chip"] == "h100" for c in cells) / 2000 == pytest.approx(0.5, abs=0.05)
    loads = sorted(c["concurrency"] for c in cells)
    assert {type(n) for n in loads} == {int}
    assert loads[0] >= 1
    assert loads[-1] <= 64
    assert loads[1000] == pytest.approx(8, abs=1)  # evenly by ratio
    assert all(2 <= float(c["set"]["hbm"].removesuffix("TB/s")) <= 4 for c in cells)
    few = [dict(row) for row in cw.sweep({**drawn, "random": {"cells": 3, "seed": 7}})]
    assert [row["set.hbm"] for row in few] == [c["set"]["hbm"] for c in cells[:3]]
    assert all(row["plans.0.tpot_s.mid"] for row in few)


def test_fields_vary_together_and_chips_may_be_hypothetical(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = Path(copy_of("h200-sxm-141gb", tmp_path)).relative_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    text = own.read_text("utf-8").replace("memory_GBps = 4800", "memory_GBps = 9600")
    own.write_text(text, "utf-8")
    said = {
        "verb": "estimate",
        "columns": ["plans.0.chip", "plans.0.tpot_s.mid"],
        "fixed": {"model": "llama-3.1-8b", "concurrency": 1},
        "grid": {"place": [{"chip": "h200", "tp": 1}, {"chip": "h200", "tp": 2}, {"chip": str(own)}]},
    }
    rows = list(cw.sweep(said))
    assert [row["error"] for row in rows] == [""] * 3
    assert [row.get("tp") for row in rows] == [1, 2, None]
    one, two, hypothetical = (row["plans.0.tpot_s.mid"] for row in rows)
    assert two < one
    assert hypothetical < one
    before = work_of(said)
    with monkeypatch.context() as elsewhere:  # files go with the sweep
        (tmp_path / "elsewhere").mkdir()
        elsewhere.chdir(tmp_path / "elsewhere")
        assert json.loads(timed(before, (2,))[0][0])[0][1] == hypothetical
    own.write_text(text.replace("9600", "9700"), "utf-8")
    assert work_of(said).key(2) != before.key(2)  # another chip, although it is called the same
    kept = {**said, "grid": {"chip": [MINE]}, "fixed": {**said["fixed"], "own_chips": text}}  # type: ignore[dict-item]
    assert next(cw.sweep(kept))["plans.0.tpot_s.mid"] == hypothetical


def test_a_cell_that_kills_its_process_is_one_row() -> None:
    class Frail(SweepEngine):
        width = 2

        def start(self, block: Block) -> Any:
            return block

        def done(self, handles: Sequence[Any]) -> Sequence[Any]:
            return handles[:1]

        def rows(self, handle: Any) -> Rows:
            if 37 in handle:
                raise LostError
            return [f"row {n}" for n in handle], 0.001 * len(handle)

    found = {n: row for block, rows in flow(Frail(), iter(range(100)), 100) for n, row in zip(block, rows, strict=True)}
    assert sorted(found) == list(range(100))
    assert [n for n, row in found.items() if not row.startswith("row")] == [37]
    assert '"lost"' in found[37]


def test_a_process_that_was_killed_is_replaced() -> None:
    work = work_of({"verb": "fit", "fixed": {"model": "llama-3.1-8b"}, "grid": {"chips": ["l4", "h100"]}})
    engine = LocalEngine(work, 1)
    try:
        rows, seconds = engine.rows(engine.start((0, 1)))
        assert rows == timed(work, (0, 1))[0]
        assert seconds > 0
        engine._started[0]._ran.kill()
        lost = engine.start((0,))
        engine.done([lost])
        with pytest.raises(LostError):
            engine.rows(lost)
        assert engine.rows(engine.start((1,)))[0] == rows[1:]
    finally:
        engine.close()


def test_another_build_answers_nothing() -> None:
    work = work_of(SERVED)
    object.__setattr__(work, "installed", "another")
    with pytest.raises(UsageError, match="another build of chipwise"):
        timed(work, (0,))


@pytest.fixture(scope="module")
def answers() -> Mapping[str, Any]:
    model = {"model": "llama-3.1-8b"}
    return {
        "plan": {**model, "chips": "h100", "rate": "1/s"},
        "estimate": {**model, "chip": "h100"},
        "explain": {**model, "chip": "h100"},
        "compare": {**model, "chips": "h100,l4", "rate": "1/s"},
        "fit": {**model, "chips": "h100"},
        "train": {**model, "chips": "h100", "counts": 8, "tokens": "1B"},
        "rl": {**model, "chips": "h100", "counts": 16},
        "kernel": {"op": "gemm", "m": 64, "n": 64, "k": 64, "chips": "h100"},
        "simulate": {**model, "chip": "h100", "rate": "2/s", "requests": 50},
        "local": {"have": "rtx-4090"},
    }


@pytest.mark.parametrize("verb", sorted(DEFAULTS))
def test_what_a_verb_shows_unasked_is_there(verb: str, answers: Mapping[str, Any]) -> None:
    (row,) = cw.sweep({"verb": verb, "fixed": answers[verb]})
    assert row["error"] == ""
    of_networks = ("latency_s", "samples_per_s", "chance")
    usual = DEFAULTS[verb]
    missing = [c for c in usual.columns if row[c] is None and not any(word in c for word in of_networks)]
    assert missing == []
    assert set(usual.least) | set(usual.most) <= set(usual.columns) | {"plans.0.step_s.mid"}
    assert verb in VERBS


def test_the_report_compares_and_draws(products: Path, run: Run) -> None:
    ran = run("sweep", str(products / "sweep.toml"), "--out", str(products / "out"), "--format", "json").json
    assert ran["figure"] == "kernels.0.time_s.mid"
    best = ran["front"][0]
    times = {int(r["cell"]): float(r["kernels.0.time_s.mid"]) for r in lines(products / "out") if not r["error"]}
    assert best["figures"]["kernels.0.time_s.mid"] == times[best["cell"]] == min(times.values())
    effects = {e["name"]: (e["lesser"], e["greater"]) for e in ran["effects"]}
    assert effects["m"] == ("1", "4096")
    assert effects["chips"] == ("h100", "l4")
    assert {ran["map"]["x"], ran["map"]["y"]} == {"chips", "m"}
    assert [p["cells"] for p in ran["problems"]] == [6]
    page = (products / "out" / REPORT).read_text("utf-8")
    assert page.count('data-spec="') == 2
    assert "unusable-value" in page


def test_parquet_says_what_csv_says(products: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs the parquet extra")
    table = parquet.read_table(products / "out" / PARQUET).to_pylist()
    for one, other in zip(table, lines(products / "out"), strict=True):
        assert list(one) == list(other)
        for name, value in one.items():
            assert other[name] == ("" if value is None else str(value) if not isinstance(value, float) else repr(value))
    assert {type(row["m"]) for row in table} == {int}


def test_progress_is_said_on_standard_error(products: Path, tmp_path: Path, run: Run) -> None:
    ran = run("sweep", str(products / "sweep.toml"), "--out", str(tmp_path / "out"), "--workers", "1")
    assert ran.code == 0
    assert "24 of 24 cells, 6 without an answer" in ran.told.splitlines()
    assert f"{RESULTS}, {PARQUET if (products / 'out' / PARQUET).exists() else REPORT}" in ran.err
    assert ran.out.startswith("24 cells of kernel (2 chips, 4 m, 3 dtype); 6 have no answer.")


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (("--workers", "0"), "is too few"),
        (("--workers", "2", "--on", "ray"), "workers"),
        (("--address", "auto"), "add --on ray"),
    ],
)
def test_engines_that_cannot_be(products: Path, tmp_path: Path, run: Run, options: tuple[str, ...], match: str) -> None:
    asked = ("sweep", str(products / "sweep.toml"), "--out", str(tmp_path / "out"), *options)
    assert match in run(*asked).refused(2)


def test_a_sweep_may_be_a_file_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty.toml").write_text("")
    with pytest.raises(UsageError, match="the sweep names no verb"):
        read_sweep(str(tmp_path / "empty.toml"))
    with pytest.raises(UnknownNameError, match="unknown engine 'spark'"):
        next(cw.sweep(SERVED, on="spark"))


def test_the_front_holds_what_no_other_beats() -> None:
    columns = {"cost": [1.0, 2.0, 1.0, 3.0, math.nan, 2.0], "speed": [5.0, 9.0, 5.0, 8.0, 9.9, 7.0]}
    design = SweepDesign(
        "estimate", (SweepAxis("batch", tuple(range(6))),), tuple(columns), least=("cost",), most=("speed",)
    )
    tally = SweepTally(design)
    for number, pair in enumerate(zip(*columns.values(), strict=True)):
        values = [None if math.isnan(x) else x for x in pair]
        tally.add((number, b"", design.labels(number), values, "", ""))
    report = tally.report()
    assert [(c.cell, c.figures) for c in report.front] == [
        (1, {"cost": 1.0, "speed": 5.0}),
        (2, {"cost": 2.0, "speed": 9.0}),
    ]
    assert report.base == 2.0
    assert [(e.lesser, e.greater, e.at_lesser, e.at_greater) for e in report.effects] == [("0", "3", 1.0, 3.0)]
