"""`measure`: this machine, timed; what it gives goes to the user's store and to whoever asked."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from chipwise.api.probed import kept_machine
from chipwise.catalog.chips import get_chip, load_chips
from chipwise.catalog.files import output_file, read_text, writing
from chipwise.cost.probed import group_of
from chipwise.errors import CommandText, Sentence, UsageError, check_known
from chipwise.evidence.importers import ImportTerms
from chipwise.evidence.item import own_item
from chipwise.evidence.store import Store
from chipwise.measure.asking import this_machine
from chipwise.measure.backend import backend
from chipwise.measure.endpoint import loaded
from chipwise.measure.probe import Probe, probe
from chipwise.measure.protocol import memory_kept
from chipwise.measure.timed import TimedMachine, machine_of
from chipwise.report.measured import (
    MeasuredOperatorRecord,
    ModelRun,
    PassRecord,
    ProbeReport,
    RateRecord,
    ServeReport,
    TaskRecord,
)
from chipwise.report.saved import MOST_BYTES

if TYPE_CHECKING:
    from chipwise.measure.endpoint import EndpointRequest, Load

BUDGET_S = (5.0, 3600.0)
"""Seconds that a probe may be given."""
RUN_AS = dict.fromkeys(("_native_batch_norm_legit", "_native_batch_norm_legit_no_training"), "native_batch_norm")
"""Operators of a trace by the names of those that run for them."""
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
    _allowed(budget_s, threads)
    if out is not None:
        output_file(out)  # before the work is done
    measured = backend(framework, device, threads)
    check_known("data type", dtypes, ("fp32", "bf16", "fp16"))
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    like, memory = _catalogued(measured.kind)
    store, kept = Store(), ""
    if keep:
        store.ready()

    def so_far(machine: TimedMachine) -> None:
        nonlocal kept
        with suppress(UsageError):  # a full disk, which the end says; whether it says enough is seen when it is read
            kept = store.keep_probe(replace(machine, like=like, memory_bytes=memory).to_json(), kept)

    found = probe(measured, budget_s, dtypes, say, so_far=so_far if keep else lambda machine: None)
    notes = _crowded(busy) if measured.kind == "cpu" and measured.threads > 1 else []
    found = replace(found, machine=replace(found.machine, like=like, memory_bytes=memory))
    text = found.machine.to_json()
    if out is not None:
        with writing(out) as file:
            file.write(text + "\n")
    if keep:
        try:
            kept = store.keep_probe(text, kept)
        except UsageError as error:  # the times are not lost: they are shown
            kept, notes = "", [*notes, _lost(error)]
    return _report(found, kept, str(store.path), notes)


def _allowed(budget_s: float, threads: int | None) -> None:
    """Raises `UsageError` for more than a probe or this machine can be given."""
    least, most = BUDGET_S
    if not least <= budget_s <= most:
        raise UsageError(f"--budget {budget_s:g} s is out of range", f"{least:g}s to {most / 3600:g}h")
    if threads is not None and not 1 <= threads <= (os.cpu_count() or 1):
        raise UsageError(f"--threads {threads}: this machine has {os.cpu_count()}", f"1 to {os.cpu_count()}")


def _crowded(busy: float) -> list[str]:
    """What is said of times of several threads where others keep so many cores busy."""
    if busy <= BUSY * (os.cpu_count() or 1):
        return []
    said = f"others kept {busy:.1f} of {os.cpu_count()} cores busy, and threads wait for each other: --threads 1 "
    return [said + "has a clock that leaves others out"]


def measure_endpoint(
    url: str,
    model: str,
    load: Load,
    *,
    runs_on: ImportTerms = ImportTerms(),  # noqa: B008
    keep: bool = True,
    say: Callable[[int, int], None] = lambda done, of: None,
) -> ServeReport:
    """Load an OpenAI-compatible endpoint, and keep what it did as a run of the user's own: with `runs_on` (chip, count,
    precision, software, layout) it corrects what is predicted for that deployment.

    Raises `UsageError` for an address that is none, or an endpoint that answers nothing.
    """
    chip = get_chip(runs_on.chip).id if runs_on.chip else ""
    store, kept = Store(), ""
    if keep:
        store.ready()
    sent, seconds = loaded(url, model, load, say)
    good = [r for r in sent if not r.failed]
    if not good:
        raise UsageError(f"{url} answered nothing: {sent[0].failed if sent else 'no request'}", "is the server up?")
    figures = _figures(good, seconds)
    values = {
        "model": model,
        "result": figures["tokens_per_s"],
        "unit": "Tokens/s",
        "chip": chip,
        "chips": runs_on.chips,
        "precision": runs_on.precision,
        "scenario": "closed loop" if load.concurrency else "open loop",
        "date": dt.date.today().isoformat(),
        "runtime": runs_on.runtime,
        "layout": runs_on.layout,
        "concurrency": float(load.concurrency) if load.concurrency else None,
        **figures,
        "notes": tuple([f"{len(sent) - len(good)} requests failed"] if len(good) < len(sent) else []),
    }
    notes = []
    if keep:
        item = own_item("chipwise measure serve", values)
        try:
            store.add([item])
            kept = item.id
        except UsageError as error:  # the run is not lost: it is shown
            notes.append(_lost(error))
    hint = "say what it runs on (--chip, --count, --runtime) and it corrects estimates of that deployment"
    return ServeReport(
        url=url,
        model=model,
        concurrency=load.concurrency,
        rate_per_s=load.rate_per_s,
        requests=len(sent),
        failed=len(sent) - len(good),
        seconds=seconds,
        kept=kept,
        store=str(store.path) if kept else "",
        notes=(*notes, *(() if chip else (hint,))),
        **figures,  # type: ignore[arg-type]
    )


def _figures(good: Sequence[EndpointRequest], seconds: float) -> dict[str, float | None]:
    """What requests that were answered in so many seconds say of an endpoint."""
    first = np.array([r.first_s for r in good])
    further = np.array([(r.last_s - r.first_s) / (r.output_tokens - 1.0) for r in good if r.output_tokens > 1.0])
    tokens = sum(r.output_tokens for r in good)
    return {
        "requests_per_s": len(good) / seconds,
        "input_tokens": float(np.mean([r.prompt_tokens for r in good])),
        "output_tokens": tokens / len(good),
        "tokens_per_s": tokens / seconds,
        "ttft_mean_s": float(first.mean()),
        "ttft_p99_s": float(np.quantile(first, 0.99)),
        "tpot_mean_s": float(further.mean()) if len(further) else None,
        "tpot_p99_s": float(np.quantile(further, 0.99)) if len(further) else None,
    }


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
    from chipwise.measure.torch_model import examples_of, peak_of, process_peak_of, time_calls, time_whole
    from chipwise.tracing.module import trace_calls

    here = machine(known)
    measured = backend("torch", device or (here.device if here.backend == "torch" else None), threads or here.threads)
    if (here.backend, here.threads) != ("torch", measured.threads):
        what = f"the machine was measured with {here.backend} and {here.threads} threads"
        raise UsageError(what, Sentence(CommandText(f"measure probe --backend torch --threads {measured.threads}")))
    passes, weight = [], 0.0
    for example in examples_of(place, train, measured.device):
        seen = trace_calls(example.module, example.arguments, example.keywords, training=example.training)
        weight = seen.weight_bytes
        operators: dict[str, list[tuple[float, float]]] = {}
        on_cpu = measured.kind == "cpu"
        peak = peak_of(example, seen.weight_bytes, measured.device)
        process = process_peak_of(example, seen.weight_bytes) if on_cpu else None
        clocked = measured.synchronise, budget_s / 10.0, measured.clock
        returned = time_whole(example, *clocked).seconds if on_cpu else None
        with memory_kept():
            timed = time_calls(example, measured.synchronise, measured.clock)
            whole = time_whole(example, *clocked)
        expected = [(op.name, repeats * here.seconds(op)) for repeats, op in seen.ops]
        for name, seconds in timed:
            operators.setdefault(name, []).append((0.0, seconds))
        for name, seconds in expected:
            operators.setdefault(RUN_AS.get(name, name), []).append((seconds, 0.0))
        rows = [
            MeasuredOperatorRecord(n, sum(s > 0.0 for _, s in each), *map(sum, zip(*each, strict=True)))
            for n, each in operators.items()
        ]
        passes.append(
            PassRecord(
                example.name,
                sum(s for _, s in expected),
                whole.seconds,
                whole.spread,
                seen.peak_bytes,
                peak,
                tuple(sorted(rows, key=lambda o: -o.measured_s)),
                returned,
                process,
            )
        )
    return ModelRun(place, measured.software, measured.device, measured.threads, weight, tuple(passes), here.notes)


def _lost(error: UsageError) -> str:
    return f"not kept: {error}"


def _catalogued(kind: str) -> tuple[str, float]:
    """The catalogue's chip that the tools of this machine say that it is or is next to, and bytes of its memory."""
    report, shelf = this_machine(), load_chips()
    for m in report.machines:
        named = next(iter((*((m.chip,) if m.chip else ()), *m.ambiguous, *m.nearest)), "")
        if named and (shelf[named].kind == "cpu") is (kind == "cpu"):
            return named, (m.memory_gb or 0.0) * 1e9
    return "", (report.host.memory or 0.0) if kind == "cpu" else 0.0


def machine(name: str = "") -> TimedMachine:
    """A machine of the user's store by its id or the beginning of one, or of a file that `measure probe --out` wrote;
    without a name the one that was measured last. Raises `UsageError` where there is none, `UnknownNameError`."""
    if name and Path(name).is_file():
        return machine_of(read_text(Path(name), MOST_BYTES, "a machine that measure probe --out wrote"))
    return kept_machine(name)[1]


def _report(found: Probe, kept: str, store: str, notes: Sequence[str]) -> ProbeReport:
    m, numbers = found.machine, found.machine.numbers
    unseen = tuple(
        (group_of(t.task.op), TaskRecord(t.task.name, m.seconds(t.task.op), t.timing.seconds, t.timing.spread))
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
