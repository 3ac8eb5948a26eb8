"""What a sweep costs besides its answers, what a second core gives, and what a million cells take.

`python -m bench.sweep`, with nothing else running. The overhead is that of the one process that hands out cells, keeps
rows and writes the results, on cells whose rows are made up; cells are then answered in one process and in two.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from chipwise.api.requests.sweep import sweep_of
from chipwise.api.sweep import CellStore, SweepRun
from chipwise.api.sweep_run import BLOCK_S, ENGINES, SweepEngine, SweepWork, answered, engine_of, installed, own_files
from chipwise.catalog.chips import load_chips
from chipwise.catalog.configs import bundled_configs
from chipwise.catalog.snapshot import today
from chipwise.units import duration_words

__all__ = ["answered_s", "block_s", "overhead_s", "whole_s"]

CHIPS = ["h100", "h200", "b200", "a100", "l40s", "mi300x", "l4", "rtx-4090"]
SWEEPS: Mapping[str, Mapping[str, Any]] = {
    "kernel": {
        "fixed": {"op": "gemm", "k": 4096},
        "grid": {"chips": CHIPS, "m": [2**i for i in range(10)], "n": [1024, 4096, 8192, 16384]},
    },
    "fit": {"grid": {"model": ["llama-3.1-8b", "qwen3-32b", "llama-3.1-70b"], "chips": CHIPS, "batch": [1, 4, 16, 64]}},
    "estimate": {
        "fixed": {"in": 1000, "out": 200},
        "grid": {"model": ["llama-3.1-8b", "qwen3-32b"], "chip": CHIPS, "concurrency": [1, 4, 16, 64, 256]},
    },
    "plan": {
        "fixed": {"model": "llama-3.1-8b", "chips": "h100,h200", "tpot": "40ms"},
        "grid": {"rate": ["1/s", "2/s", "5/s", "10/s", "20/s", "50/s"]},
    },
}


def _work(said: Mapping[str, Any]) -> SweepWork:
    design = sweep_of(said)
    return SweepWork(design, today(), own_files(design.tried()), installed())


def overhead_s(cells: int) -> tuple[float, float]:
    """CPU seconds a cell of handing out and keeping, and of writing the results, of a sweep of so many cells of
    `estimate`, whose rows are as long as real ones."""
    loads = [*range(1, cells // len(CHIPS) + 1)]
    whole = _work({"verb": "estimate", "grid": {"model": ["llama-3.1-8b"], "chip": CHIPS, "concurrency": loads}})
    design = whole.design
    with tempfile.TemporaryDirectory() as folder:
        store = CellStore(Path(folder, "cells.sqlite3"))
        run = SweepRun(whole, store, Path(folder))
        row = json.dumps([[1.0 + i / 7.0 for i in range(len(design.columns))], "", ""], separators=(",", ":"))
        start = time.process_time()
        block = []
        for number in run._missing():
            block.append(number)
            if len(block) == 40:  # about a block of two seconds
                store.add((whole.key(n), row) for n in block)
                block = []
        store.add((whole.key(n), row) for n in block)
        kept = time.process_time() - start
        start = time.process_time()
        run.write()
        written = time.process_time() - start
        store.close()
    return kept / design.cells, written / design.cells


def answered_s(verb: str, workers: int) -> tuple[float, float]:
    """Seconds a cell of one of `SWEEPS` in so many processes, by the clock and of all cores. They have done
    it all once before: what is timed is the middle of a long sweep."""
    work = _work({"verb": verb, **SWEEPS[verb]})
    engine = engine_of(work, "local", workers, None)
    try:
        for _ in range(2):
            run = SweepRun(work, CellStore(None), None)
            start, cpu = time.perf_counter(), _cpu_s(engine)
            run.answer(engine)
            wall, cpu = time.perf_counter() - start, _cpu_s(engine) - cpu
    finally:
        engine.close()
    return wall / work.design.cells, cpu / work.design.cells


LOADS = [2**i for i in range(10)]
"""Requests at once of a cell of the catalogue's sweep."""
DRAWN = 20, 10
"""Models, and chips next to each other of each, whose cells stand for all."""


def whole_s() -> tuple[float, int]:
    """CPU seconds a cell of `estimate` over all models and chips of the catalogue at ten loads, by a sample of it, and
    how many cells all are."""
    models, chips = list(bundled_configs()), sorted(load_chips().market())
    work = _work({"verb": "estimate", "grid": {"model": models, "chip": chips, "concurrency": LOADS}})
    of_model, draws = len(chips) * len(LOADS), random.Random(0)
    first = [
        m * of_model + len(LOADS) * draws.randrange(len(chips) - DRAWN[1])
        for m in draws.sample(range(len(models)), DRAWN[0])
    ]
    answered(work, range(first[0], first[0] + len(LOADS)))
    start = time.process_time()
    for cell in first:
        answered(work, range(cell, cell + DRAWN[1] * len(LOADS)))
    return (time.process_time() - start) / (DRAWN[0] * DRAWN[1] * len(LOADS)), work.design.cells


def block_s(on: str, blocks: int = 40) -> float:
    """Median seconds that a block of 40 cells of `kernel` takes more than its answers: sent to a process (`local`) or
    a task (`ray`), and its rows brought back."""
    work = _work({"verb": "kernel", **SWEEPS["kernel"]})
    engine = engine_of(work, on, None if on == "ray" else 2, None)
    more = []
    try:
        for i in range(blocks + WARM):
            start = time.perf_counter()
            handle = engine.start(tuple(range(40)))
            engine.done([handle])
            _, inside = engine.rows(handle)
            more += [time.perf_counter() - start - inside] if i >= WARM else []
    finally:
        engine.close()
    return statistics.median(more)


WARM = 6
"""Blocks before those that are counted: processes start, and read what they need."""


def _cpu_s(engine: SweepEngine) -> float:
    """CPU seconds of this process and of those of an engine."""
    ticks = 0
    for process in getattr(engine, "_started", ()):
        ticks += sum(map(int, Path(f"/proc/{process._ran.pid}/stat").read_text().rpartition(")")[2].split()[11:13]))
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def main() -> int:
    """All figures as tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cells", type=int, default=100_000, help="of the overhead (default 100000)")
    parser.add_argument("--verbs", default=",".join(SWEEPS), help="of the answers, by commas")
    given = parser.parse_args()
    kept, written = overhead_s(given.cells)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", file=sys.stderr)
    print(f"{given.cells:,} cells: handed out and kept in {1e6 * kept:.0f} us, written in {1e6 * written:.0f} us each")
    each, cells = whole_s()
    print(
        f"all models and chips at ten loads: {1e3 * each:.1f} CPU ms each of {cells:,} cells, "
        f"{duration_words(cells * each)}"
    )
    for on in ENGINES if find_spec("ray") else ENGINES[:1]:
        more = block_s(on)
        print(f"a block on {on}: {1e3 * more:.1f} ms more than its answers, {more / BLOCK_S:.2%} of {BLOCK_S:g} s")
    print("| verb | CPU ms a cell | in two processes | faster by the clock | 1 M on 1 core | 100 M on 1,000 cores |")
    print("|---|---:|---:|---:|---:|---:|")
    for verb in given.verbs.split(","):
        (alone, cpu), (both, cpu_both) = answered_s(verb, 1), answered_s(verb, 2)
        million = duration_words(1e6 * (cpu + kept + written))
        many = duration_words(1e8 * (max(cpu / 1000.0, kept) + written))
        figures = (f"{1e3 * cpu:.1f}", f"{1e3 * cpu_both:.1f}", f"{alone / both:.2f} x")
        print(f"| `{verb}` | {' | '.join(figures)} | {million} | {many} |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
