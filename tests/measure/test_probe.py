from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from chipwise.cost.device import Device
from chipwise.cost.price import price
from chipwise.cost.probed import ProbedRates, group_of, terms
from chipwise.errors import ChipwiseError, UsageError
from chipwise.measure.backend import SMALL, expected
from chipwise.measure.probe import Probe, probe
from chipwise.measure.protocol import LEAST, MOST, Timing, sampled, timing_of
from chipwise.measure.task import WORKS, Task, designed
from chipwise.measure.timed import UNFINISHED, TimedMachine, TimedTask, machine_of

PLANTED = ProbedRates(5e-6, 1e-11, 5e-11)
STREAM, CACHE, HELD = 40e9, 100e9, 32e6


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def seconds(task: Task, odd: Callable[[Task], float] = lambda _: 1.0) -> float:
    """What a machine with the planted rates takes, by a kernel that is `odd` for some shapes."""
    if task.kind == "copy":
        rate = CACHE if task.hot and task.bytes <= HELD else STREAM
        return 2e-6 + task.bytes / rate
    flops, moved, _ = terms(task.op, 0.0)
    return odd(task) * float(PLANTED.start_s + flops * PLANTED.flop_s + moved * PLANTED.byte_s)


class Fake:
    """A backend on a clock of its own: right results, planted times, every third sample disturbed."""

    name, device, channels_last, kind, software, chip, threads = "fake", "cpu", False, "cpu", "fake 1", "x", 2

    def __init__(self, clock: Clock, wrong: float = 0.0, stop_after: int = 10**9) -> None:
        self.time, self.wrong, self.left, self.calls = clock, wrong, stop_after, itertools.count()

    works = WORKS

    def dtypes(self) -> tuple[str, ...]:
        return ("fp32",)

    def clock(self) -> float:
        return self.time.now

    def synchronise(self) -> None:
        pass

    def prepare(self, task: Task, copies: int) -> tuple[Callable[[int], Any], tuple[Any, ...]]:
        assert task.hot or copies > 1 or task in [Task(t.kind, "fp32", t.sizes) for t in SMALL]
        rng, d = np.random.default_rng(0), task.dims
        shapes: dict[str, list[tuple[int, ...]]] = {
            "gemm": [(d.get("m", 0), d.get("k", 0)), (d.get("n", 0), d.get("k", 0))],
            "copy": [(8,)],
        }
        small = task.sizes in [t.sizes for t in SMALL] and task.kind in shapes
        operands = tuple(rng.standard_normal(s) for s in shapes[task.kind]) if small else (np.ones(1),)
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt

        def call(i: int) -> Any:
            self.time.now += seconds(task) * (2.0 if next(self.calls) % 3 == 0 else 1.0)
            return expected(task, operands) * (1.0 + self.wrong) if small else None

        return call, operands

    def values(self, found: Any) -> Any:
        return found


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("chipwise.measure.backend.SMALL", (SMALL[0], SMALL[-1]))
    return clock


def test_samples_are_long_enough_and_bounded() -> None:
    clock = Clock()

    def call(i: int) -> None:
        clock.now += 1e-5

    taken = sampled(call, lambda: None, 1e9, clock)
    assert len(taken) == MOST
    assert taken == pytest.approx([1e-5] * MOST)
    assert len(sampled(call, lambda: None, 0.0, clock)) == LEAST


def test_disturbed_samples_do_not_move_the_figure() -> None:
    quiet = [1.0] * 8
    assert timing_of([*quiet, 50.0, 9.0]).seconds == 1.0
    assert timing_of([*quiet, *([4.0] * 8)]).median_s == pytest.approx(2.5)
    assert timing_of([1.0, 1.0, 3.0, 3.0]).spread == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ["gemm", "conv", "attention"])
def test_designed_tasks_are_spread_and_bounded(kind: Any) -> None:
    tasks = list(designed(kind, "bf16", 40, 1e9))
    assert len(set(tasks)) == 40
    assert all(float(t.op.flops) <= 1e9 and t.bytes <= 256e6 for t in tasks)
    assert {group_of(t.op).partition(".")[0] for t in tasks} == (
        {"conv", "depthwise", "pointwise"} if kind == "conv" else {kind}
    )
    sizes = np.log2([t.bytes for t in tasks])
    assert sizes.max() - sizes.min() > 6.0  # a factor of 64


def machine(odd: Callable[[Task], float] = lambda _: 1.0, noise: float = 0.0) -> TimedMachine:
    rng = np.random.default_rng(1)
    tasks = [*designed("copy", "fp32", 18, 1e9)]
    tasks += [t for kind in ("gemm", "conv", "attention") for t in designed(kind, "fp32", 40, 1e9)]  # type: ignore[arg-type]
    timed = [TimedTask(t, Timing(seconds(t, odd) * np.exp(noise * rng.standard_normal()), 1.0, 0.0, 9)) for t in tasks]
    return TimedMachine("fake", "fake 1", "cpu", "x", 1, "2026-01-01", tuple(timed))


def errors(found: TimedMachine, odd: Callable[[Task], float] = lambda _: 1.0) -> np.ndarray:
    unseen = [t for k in ("gemm", "conv", "attention") for t in designed(k, "fp32", 12, 1e9, start=777)]  # type: ignore[arg-type]
    return np.array([found.seconds(t.op) / seconds(t, odd) - 1.0 for t in unseen])


def test_planted_numbers_come_back() -> None:
    numbers = machine().numbers
    rates = numbers.rates["gemm.fp32"]
    assert (rates.start_s, rates.flop_s) == pytest.approx((PLANTED.start_s, PLANTED.flop_s), rel=0.01)
    assert numbers.stream_bytes_per_s == pytest.approx(STREAM, rel=0.05)
    assert numbers.cache_bytes_per_s == pytest.approx(CACHE, rel=0.15)
    assert HELD / 4 <= numbers.cache_bytes <= 2 * HELD  # sizes are a factor of four apart
    assert np.abs(errors(machine())).max() < 0.05


def test_noise_averages_out() -> None:
    assert np.median(np.abs(errors(machine(noise=0.1)))) < 0.07


def test_shapes_alike_correct_each_other() -> None:
    def odd(task: Task) -> float:
        """One kernel is three times slower: that of products with few rows."""
        return 3.0 if task.kind == "gemm" and task.sizes[0] == 1 else 1.0

    found = machine(odd)
    rows = [t for t in designed("gemm", "fp32", 60, 1e9, start=300) if t.sizes[0] == 1]
    plain = [abs(np.log(price(t.op, DEVICE, found.numbers).total_s / seconds(t, odd))) for t in rows]
    moved = [abs(np.log(found.seconds(t.op) / seconds(t, odd))) for t in rows]
    assert np.median(moved) < 0.7 * np.median(plain)


DEVICE = Device("cpu", {}, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0)


def test_masked_scores_are_told_from_skipped_ones() -> None:
    tasks = [*designed("copy", "fp32", 18, 1e9), *designed("attention", "fp32", 40, 1e9)]

    def of(task: Task) -> float:
        return seconds(task) if task.kind == "copy" else 5e-6 + 1e-11 * float(terms(task.op, float("inf"))[0])

    found = TimedMachine("f", "f", "cpu", "x", 1, "d", tuple(TimedTask(t, Timing(of(t), 1.0, 0.0, 9)) for t in tasks))
    assert found.numbers.rates["attention.fp32"].scale >= 512.0


def test_a_machine_survives_json() -> None:
    found = machine()
    assert machine_of(found.to_json()) == found
    for text in ("", "{}", "[]", "3", found.to_json().replace('"machine":1', '"machine":9'), found.to_json()[:-9]):
        with pytest.raises(UsageError, match="measure"):
            machine_of(text)


def test_what_was_not_timed_is_refused() -> None:
    with pytest.raises(UsageError, match=r"gemm\.bf16 was not timed"):
        machine().seconds(Task("gemm", "bf16", (8, 8, 8)).op)


def test_a_probe_on_a_disturbed_machine(clock: Clock) -> None:
    states: list[TimedMachine] = []
    found = probe(Fake(clock), 60.0, now=clock, so_far=states.append)
    assert found.whole
    assert found.machine.notes == ()  # no task was refused
    assert {t.task.kind for t in found.machine.timed} == {"copy", "rows", "gemm", "conv", "attention"}
    assert [len(s.timed) for s in states] == sorted(len(s.timed) for s in states)
    assert 1 <= len(states) <= 6
    assert states[-1].notes == (UNFINISHED,)
    assert found.error is not None
    assert found.error < 0.05
    assert len(found.unseen) >= 30
    assert {t.task for t in found.unseen} & {t.task for t in found.machine.timed} == set()
    assert clock.now < 70.0


def test_a_budget_ends_a_probe(clock: Clock) -> None:
    said: list[int] = []
    found = probe(Fake(clock), 3.0, say=lambda done, tasks, left: said.append(done), now=clock)
    assert not found.whole
    assert clock.now < 4.0
    assert said == list(range(1, len(said) + 1))


def test_ctrl_c_keeps_what_is_done(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    stopping = Fake(clock, stop_after=60)
    real = stopping.prepare

    def once(task: Task, copies: int) -> Any:
        try:
            return real(task, copies)
        except KeyboardInterrupt:
            stopping.left = 10**9
            raise

    monkeypatch.setattr(stopping, "prepare", once)
    found = probe(stopping, 60.0, now=clock)
    assert not found.whole
    assert len(found.machine.timed) + len(found.unseen) > 50


def test_wrong_results_are_not_timed(clock: Clock) -> None:
    with pytest.raises(ChipwiseError, match="is wrong by"):
        probe(Fake(clock, wrong=0.01), 60.0, now=clock)


def test_the_error_is_none_without_tasks_held_out() -> None:
    assert Probe(machine(), ()).error is None
