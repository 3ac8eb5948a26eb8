"""`measure`: this machine, timed; what it gives goes to the user's store and to whoever asked."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from chipwise.catalog.files import output_file, writing
from chipwise.cost.probed import group_of
from chipwise.errors import UnknownNameError, UsageError
from chipwise.evidence.store import Store
from chipwise.measure.backend import backend
from chipwise.measure.machine import Machine, machine_of
from chipwise.measure.probe import Probe, probe
from chipwise.report.measured import ModelRun, OperatorRecord, PassRecord, ProbeReport, RateRecord, TaskRecord

__all__ = ["BUDGET_S", "machine", "measure_model", "measure_probe"]

BUDGET_S = (5.0, 3600.0)
"""Seconds that a probe may be given."""
BUSY = 0.5
"""Of the cores at work for others, from which on times of several threads say little: they wait for each other."""


def measure_probe(
    framework: str = "auto",
    *,
    budget_s: float = 60.0,
    device: str | None = None,
    threads: int | None = None,
    dtypes: Sequence[str] = (),
    out: str | None = None,
    keep: bool = True,
    say: Callable[[int, int, float], None] = lambda done, tasks, left: None,
) -> ProbeReport:
    """Time products, attention, convolutions and copies on this machine, and fit what prices such operators here.

    `out` takes the machine as a line of JSON; with `keep` it goes to the user's store too. Raises `UsageError` for
    options that cannot be used, `MissingExtraError` for a framework that is not installed, `ChipwiseError` where it
    computes wrong results.
    """
    least, most = BUDGET_S
    if not least <= budget_s <= most:
        raise UsageError(f"--budget {budget_s:g} s is out of range", f"{least:g}s to {most / 3600:g}h")
    if threads is not None and not 1 <= threads <= (os.cpu_count() or 1):
        raise UsageError(f"--threads {threads}: this machine has {os.cpu_count()}", f"1 to {os.cpu_count()}")
    if out is not None:
        output_file(out)  # before the work is done
    measured = backend(framework, device, threads)
    for dtype in dtypes:
        if dtype not in ("fp32", "bf16", "fp16"):
            raise UnknownNameError("data type", dtype, ("fp32", "bf16", "fp16"), "one of fp32, bf16, fp16")
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    found = probe(measured, budget_s, dtypes, say)
    notes = []
    if measured.kind == "cpu" and measured.threads > 1 and busy > BUSY * (os.cpu_count() or 1):
        notes.append(
            f"others kept {busy:.1f} of {os.cpu_count()} cores busy, and threads wait for each other: --threads 1 "
            "has a clock that leaves others out"
        )
    text = found.machine.to_json()
    if out is not None:
        with writing(out) as file:
            file.write(text + "\n")
    store = Store()
    return _report(found, store.keep_probe(text) if keep else "", str(store.path), notes)


def measure_model(
    place: str,
    *,
    train: bool = False,
    device: str | None = None,
    threads: int | None = None,
    known: str = "",
    budget_s: float = 60.0,
) -> ModelRun:
    """The module that `FILE.py:function` gives, predicted from what was measured of the machine `known` (default: the
    last one of the store) and measured, pass by pass and operator by operator.

    Raises `UsageError` for a file that gives no module or a machine of another framework, `MissingExtraError`.
    """
    from chipwise.measure.torch_model import examples_of, peak_of, predicted_calls, time_calls, time_whole

    here = machine(known)
    measured = backend(
        "torch", device or (here.device if here.backend == "torch" else None), threads or here.threads
    )
    if (here.backend, here.threads) != ("torch", measured.threads):
        what = f"the machine was measured with {here.backend} and {here.threads} threads"
        raise UsageError(what, f"chipwise measure probe --backend torch --threads {measured.threads}")
    passes, weight = [], 0.0
    for example in examples_of(place, train, measured.device):
        seen = predicted_calls(example)
        weight = seen.weight_bytes
        operators: dict[str, list[tuple[float, float]]] = {}
        timed = time_calls(example, measured.synchronise, measured.clock)
        expected = [(c.name, here.seconds(c.op)) for c in seen.calls if c.op is not None]
        for name, seconds in timed:
            operators.setdefault(name, []).append((0.0, seconds))
        for name, seconds in expected:
            operators.setdefault(name, []).append((seconds, 0.0))
        whole = time_whole(example, measured.synchronise, budget_s / 10.0, measured.clock)
        rows = [
            OperatorRecord(n, sum(s > 0.0 for _, s in each), *map(sum, zip(*each, strict=True)))
            for n, each in operators.items()
        ]
        passes.append(
            PassRecord(
                example.name,
                sum(s for _, s in expected),
                whole.seconds,
                whole.spread,
                seen.peak_bytes,
                peak_of(example, seen.weight_bytes, measured.device),
                tuple(sorted(rows, key=lambda o: -o.measured_s)),
            )
        )
    return ModelRun(
        place, measured.software, measured.device, measured.threads, weight, tuple(passes), here.notes
    )


def machine(name: str = "") -> Machine:
    """A machine of the user's store by its id or the beginning of one, or of a file that `measure probe --out` wrote;
    without a name the one that was measured last. Raises `UsageError` where there is none, `UnknownNameError`."""
    if name and Path(name).is_file():
        return machine_of(Path(name).read_text("utf-8"))
    known = Store().probes()
    if not known:
        raise UsageError("no machine was measured yet", "chipwise measure probe --budget 60s")
    found = [text for key, text in known.items() if key.startswith(name or "")]
    if not found or (name and len(found) > 1):
        raise UnknownNameError("machine", name, known, "chipwise measure list")
    return machine_of(found[-1])


def _report(found: Probe, kept: str, store: str, notes: Sequence[str]) -> ProbeReport:
    m, numbers = found.machine, found.machine.numbers
    unseen = tuple(
        (
            group_of(t.task.op),
            TaskRecord(t.task.name, m.seconds(t.task.op), t.timing.seconds, t.timing.spread),
        )
        for t in found.unseen
        if group_of(t.task.op) in numbers.rates
    )
    groups = [group_of(t.task.op) for t in m.timed]
    rates = []
    for name, r in numbers.rates.items():
        operator, _, dtype = name.partition(".")
        off = [abs(t.predicted_s / t.timed_s - 1.0) for group, t in unseen if group == name]
        rates.append(
            RateRecord(
                operator,
                dtype,
                1.0 / r.flop_s if r.flop_s else None,
                1.0 / r.byte_s if r.byte_s else None,
                r.start_s,
                groups.count(name),
                float(np.median(off)) if off else None,
            )
        )
    return ProbeReport(
        m.backend,
        m.software,
        m.device,
        m.chip,
        m.threads,
        m.date,
        tuple(rates),
        numbers.stream_bytes_per_s,
        numbers.cache_bytes_per_s,
        numbers.cache_bytes,
        numbers.copy_s,
        len(m.timed) + len(found.unseen),
        found.error,
        tuple(t for _, t in unseen),
        found.whole,
        kept,
        store if kept else "",
        (*m.notes, *notes),
    )
