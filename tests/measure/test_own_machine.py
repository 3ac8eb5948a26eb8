"""A machine that was probed is a chip of its own: what was timed wins over the catalogue, and says so."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from chipwise.api import measuring
from chipwise.api.probed import kept_machine, measured_chip
from chipwise.catalog.chips import get_chip
from chipwise.cost.probed import ProbedRates, terms
from chipwise.errors import UnknownNameError, UsageError
from chipwise.evidence.store import Store
from chipwise.measure import timed as timed_machine
from chipwise.measure.probe import Probe
from chipwise.measure.protocol import Timing
from chipwise.measure.task import Task, designed
from chipwise.measure.timed import UNFINISHED, TimedMachine, TimedTask, machine_of
from command_line import Run

LIKE = "epyc-9654"
RATES = ProbedRates(5e-6, 1e-11, 5e-11)  # 100 GFLOP/s
STREAM, CACHE, HELD = 20e9, 60e9, 32e6


def timed(task: Task, slower: float) -> TimedTask:
    if task.kind == "copy":
        seconds = 2e-6 + task.bytes / (CACHE if task.hot and task.bytes <= HELD else STREAM)
    else:
        flops, moved, _ = terms(task.op, 0.0)
        seconds = float(RATES.start_s + flops * RATES.flop_s + moved * RATES.byte_s)
    return TimedTask(task, Timing(seconds * slower, seconds * slower, 0.01, 9))


def machine(slower: float = 1.0, like: str = LIKE) -> TimedMachine:
    tasks = [*designed("copy", "fp32", 18, 1e10), *designed("gemm", "fp32", 30, 1e10)]
    return TimedMachine(
        "torch", "torch 9", "cpu", "x86_64", 2, "2026-11-01", tuple(timed(t, slower) for t in tasks), (), like, 64e9
    )  # fmt: skip


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("CHIPWISE_DATA_DIR", str(tmp_path))
    return Store()


def test_it_is_read_back_whole_and_older_ones_too() -> None:
    here = machine()
    assert machine_of(here.to_json()) == here
    before = {k: v for k, v in json.loads(here.to_json()).items() if k not in ("like", "memory_bytes")}
    assert machine_of(json.dumps(before)) == replace(here, like="", memory_bytes=0.0)


def test_a_kernel_takes_the_times_of_the_like(store: Store, run: Run) -> None:
    key = store.keep_probe(machine().to_json())
    asked = ("kernel", "gemm", "--m", "500", "--n", "1000", "--k", "1000", "--format", "json", "--chip")
    (own,) = run(*asked, "measured", "--dtype", "fp32").json["kernels"]
    assert own["time_s"]["basis"] == "measured"
    assert own["time_s"]["mid"] == pytest.approx(1e9 * RATES.flop_s + 7.5e6 * 4 * RATES.byte_s / 3, rel=0.08)
    assert own["chip"] == key
    assert f"30 of the like in {key} (torch 9, 2026-11-01)" in own["mapping_text"]
    (other,) = run(*asked, key, "--dtype", "bf16").json["kernels"]  # a type that was not timed
    assert other["time_s"]["basis"] == "modelled"


def test_answers_about_models_take_its_rates(store: Store, run: Run) -> None:
    store.keep_probe(machine().to_json())
    asked = ("estimate", "Qwen3-0.6B", "--task", "local", "--precision", "q8_0", "--format", "json", "--chip")
    own, whole = (run(*asked, chip).json for chip in ("measured", LIKE))
    slower = own["plans"][0]["tpot_s"]["mid"] / whole["plans"][0]["tpot_s"]["mid"]
    assert slower > 5.0
    assert any("as measured (torch 9, 2 threads, 2026-11-01)" in line for line in own["assumptions"])
    listed = run("local", "--have", "measured", "--min-tps", "1", "--models", "Qwen3-0.6B", "--format", "json").json
    assert listed["models"][0]["capacity_bytes"] == pytest.approx(64e9, rel=0.1)
    assert any("as measured" in line for line in listed["assumptions"])


def test_half_the_speed_halves_every_rate(store: Store) -> None:
    fast, slow = (measured_chip(store.keep_probe(machine(x).to_json())) for x in (1.0, 2.0))
    assert fast.memory.bytes_per_s
    assert slow.memory.bytes_per_s
    assert fast.memory.bytes_per_s / slow.memory.bytes_per_s == pytest.approx(2.0, rel=0.01)
    for name, rate in fast.matrix.items():
        assert rate / slow.matrix[name] == pytest.approx(2.0, rel=0.01)
    base = get_chip(LIKE)
    assert np.isclose(fast.matrix["bf16"] / base.matrix["bf16"], fast.matrix["int8"] / base.matrix["int8"])


def test_a_probe_that_did_not_end_stands_only_where_none_did(store: Store) -> None:
    whole, other = machine(), machine(3.0)
    part = replace(other, notes=(UNFINISHED,))
    for name, text in (
        ("probe-1", replace(part, timed=part.timed[:3])),  # too little for rates
        ("probe-2", part),
    ):
        keep(store, name, text)
    assert kept_machine("measured")[0] == "probe-2", "nothing else was measured"
    keep(store, "probe-3", whole)
    keep(store, "probe-4", part)
    assert kept_machine() == ("probe-3", whole)
    assert kept_machine("probe-4") == ("probe-4", part), "one that is named is taken"
    keep(store, "probe-5", replace(part, threads=1))  # of other threads none ended
    assert kept_machine()[0] == "probe-5"
    keep(store, "probe-6", other)
    assert kept_machine()[0] == "probe-6", "the last that ended"


def keep(store: Store, name: str, here: TimedMachine) -> None:
    """Keep a machine under a name, later ones last."""
    made = store.keep_probe(here.to_json())
    with sqlite3.connect(store.path) as base:
        base.execute("update probes set id = ?, added = ? where id = ?", (name, name, made))
    base.close()


def test_too_little_is_no_machine(store: Store) -> None:
    store.keep_probe(replace(machine(), notes=(UNFINISHED,), timed=machine().timed[:3]).to_json())
    with pytest.raises(UsageError, match="no machine was measured yet"):
        kept_machine()


def test_what_is_kept_while_a_probe_runs_is_not_fitted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fit would take its time from that of the tasks."""
    part = replace(machine(), notes=(UNFINISHED,))

    def probing(*_: object, so_far: Callable[[TimedMachine], None]) -> Probe:
        with monkeypatch.context() as during:
            during.setattr(timed_machine, "fit", lambda rows: pytest.fail("fitted within the budget"))
            so_far(part)
        assert [machine_of(text).notes for text in store.probes().values()] == [(UNFINISHED,)]
        return Probe(machine(), ())

    monkeypatch.setattr(measuring, "probe", probing)
    monkeypatch.setattr(measuring, "backend", lambda *_: SimpleNamespace(kind="cpu", threads=1))
    kept = measuring.measure_probe("torch").kept
    assert list(store.probes()) == [kept]
    assert kept_machine()[1].finished


def test_times_that_cannot_be_kept_are_shown(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise UsageError("the store: cannot be used", "the disk is full")

    monkeypatch.setattr(measuring, "probe", lambda *_, so_far: Probe(machine(), ()))
    monkeypatch.setattr(measuring, "backend", lambda *_: SimpleNamespace(kind="cpu", threads=1))
    with monkeypatch.context() as during:
        during.setattr(Store, "keep_probe", full)
        report = measuring.measure_probe("torch")
    assert (report.kept, report.store) == ("", "")
    assert "not kept: the store: cannot be used (the disk is full)" in report.notes
    assert report.rates
    monkeypatch.setattr(measuring, "probe", lambda *_, so_far: pytest.fail("timed for nothing"))
    monkeypatch.setattr(Store, "ready", full)
    with pytest.raises(UsageError, match="cannot be used"):
        measuring.measure_probe("torch")


def test_what_cannot_be_asked(store: Store, run: Run) -> None:
    with pytest.raises(UsageError, match="no machine was measured yet"):
        measured_chip("measured")
    store.keep_probe(machine(like="").to_json())
    with pytest.raises(UsageError, match="like no chip"):
        measured_chip("measured")
    with pytest.raises(UnknownNameError):
        measured_chip("probe-0000")
    assert "probe-0000" in run("local", "--have", "probe-0000").refused(3)
