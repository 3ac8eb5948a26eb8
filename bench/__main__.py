"""All benchmarks as one table: the figure, what was aimed at, and their ratio.

`python -m bench pairs [COUNT] [SEED]` asks pairs of questions instead (`bench/pairs.py`), `python -m bench cold` times
whole commands alone.
"""

from __future__ import annotations

import os

os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

import platform
import sys
from collections.abc import Iterator

from bench import pairs
from bench.assignment import seconds_to_gap
from bench.cold import cold_seconds
from bench.kernels import gemms_per_s
from bench.page import answer_seconds
from bench.plans import plans_per_s
from bench.scalesim import scalesim_ratio
from bench.serving import loops_per_s, rows_per_s
from bench.steps import predictions_per_s
from bench.timing import Result, median_s, one_core
from bench.training import layouts_per_s

MODEL = "meta-llama/Llama-3.1-70B"
COMMANDS = (
    (0.2, "--help"),
    (0.5, f"estimate {MODEL} --chip h100-sxm5-80gb --count 8 --tp 8"),
    (1.0, f"fit {MODEL}"),
    (1.0, f"plan {MODEL} --rate 10/s --in 2000 --out 300 --ttft 1s --tpot 40ms"),
    (2.0, "plan Qwen/Qwen3-32B --rate 2 --tpot 40ms"),
    (2.0, "plan deepseek-ai/DeepSeek-V3 --task train"),
    (4.0, "plan flux.1-dev --rate 1/s"),
    (4.0, "plan openai/whisper-large-v3 --rate 5/s"),
    (4.0, "local --max-usd 3000 --min-tps 10"),
)
"""Seconds that are aimed at, and commands."""


def cold() -> Iterator[Result]:
    """Processor seconds of whole commands."""
    for aim, command in COMMANDS:
        taken = cold_seconds("-m", "chipwise", *command.split(), times=5)
        yield Result(f"chipwise {command[:38]}", taken, "s", aim, lower_is_better=True)


def results() -> Iterator[Result]:
    """Cold starts first, so that nothing of them is cached by what comes later."""
    yield from cold()
    yield Result("import chipwise", cold_seconds("-c", "import chipwise"), "s", 0.15, lower_is_better=True)
    yield Result("page: form to answer", answer_seconds(), "s", 0.5, lower_is_better=True)
    yield Result("loading all chips", median_s(_load_chips), "s", 0.1, lower_is_better=True)
    for name, (search, whole) in plans_per_s().items():
        yield Result(f"candidate plans, {name}: search", search, "1/s", 100_000.0)
        yield Result(f"candidate plans, {name}: api.plan", whole, "1/s", 100_000.0)

    for chip in ("h100-sxm5-80gb", "tpu-v5e"):
        yield Result(f"matrix products, {chip}", gemms_per_s(chip), "1/s", 1_000_000.0)
    source, ratio = scalesim_ratio()
    yield Result(f"faster than SCALE-Sim, {source}", ratio, "x", 10_000.0)
    yield Result("closed loops, passes priced before", loops_per_s(), "1/s", 4_400_000.0)
    # of some three thousand measured rows none should be waited for
    yield Result("served rows, passes and loads", rows_per_s(), "1/s", 3_000.0)
    for name, (each, arrays) in predictions_per_s().items():
        yield Result(f"passes, {name}: one by one", each, "1/s", 100_000.0)
        yield Result(f"passes, {name}: arrays", arrays, "1/s", 1_000_000.0)
    assigned = "30 demands on 40 supplies, 24 hours, to 1 %"
    yield Result(assigned, seconds_to_gap(), "s", 60.0, lower_is_better=True)
    yield Result("training layouts, step time and memory", layouts_per_s(), "1/s", 1_000_000.0)


def _load_chips() -> None:
    from chipwise.catalog.chips import load_chips
    from chipwise.catalog.snapshot import Snapshot, use

    with use(Snapshot()):  # tables are remembered by snapshot: a new one reads them again
        load_chips()


def main() -> None:
    one_core()
    if sys.argv[1:2] == ["pairs"]:
        sys.exit(1 if pairs.main(*map(int, sys.argv[2:4])) else 0)
    print(f"{platform.machine()}, Python {platform.python_version()}, one core, medians", file=sys.stderr)
    print(f"{'what':<48}{'figure':>16}{'aim':>14}{'ratio':>9}")
    for r in cold() if sys.argv[1:2] == ["cold"] else results():
        print(f"{r.name:<48}{r.shown(r.value):>16}{r.shown(r.aim):>14}{r.ratio:>8.2f}x", flush=True)


if __name__ == "__main__":
    main()
