"""Logs of training: a step's time, and samples or tokens per second where the log says them.

| source | what says it |
|---|---|
| Hugging Face `trainer_state.json` | `train_runtime`, `train_samples_per_second` at the end |
| Megatron-LM, Megatron-Bridge | `iteration 10/ 100 | ... elapsed time per iteration (ms): 1147.6 | ...` |
| NeMo 1 and 2 | `train_step_timing in s=3.130` (progress bar), `train_step_timing in s: 3.130 | ...` |
| torchtune | `Step 3 | loss:1.2 lr:2e-05 tokens_per_second_per_gpu:1234.5` (`StdoutLogger`, `DiskLogger`) |
| MaxText | `completed step: 7, seconds: 5.6, TFLOP/s/device: 135.1, Tokens/s/device: 8687.8` |
| MLPerf Training | `:::MLLOG {"key": "run_start", "time_ms": ...}` |

A step's time is the median over the steps after the first `WARM` and after a fifth of them: compilation and the first
readings are no training. None of them says on what it ran.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from statistics import median

from chipwise.evidence.importers.values import RowRefusedError, at, number, positive, text
from chipwise.evidence.item import Item, own_item
from chipwise.values import dataclass

STATE = "Hugging Face trainer_state.json"
MEGATRON = "Megatron log"
NEMO = "NeMo log"
TORCHTUNE = "torchtune log"
MAXTEXT = "MaxText log"
MLLOG = "MLPerf Training log"
WARM = 3
"""Steps that compile, fill caches or wait for the first data, at least."""
LEAST = 3
"""Steps after those without which a log says no speed."""

FLOAT = r"(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)"
LINES = {
    MEGATRON: re.compile(rf"iteration\s+\d+/.*?elapsed time per iteration \(ms\):\s*{FLOAT}"),
    NEMO: re.compile(rf"train_step_timing in s\s*[=:]\s*{FLOAT}"),
    TORCHTUNE: re.compile(rf"Step \d+ \|.*?tokens_per_second_per_gpu:{FLOAT}"),
    MAXTEXT: re.compile(rf"completed step: \d+, seconds: {FLOAT}"),
}
MARK = ":::MLLOG"
BATCH = re.compile(r"global batch size:\s*(\d+)|global_batch_size[:=]\s*(\d+)")
PER_DEVICE = re.compile(rf"Tokens/s/device: {FLOAT}")
MEMORY = re.compile(rf"max allocated: {FLOAT}|peak_memory_(?:active|alloc):{FLOAT}")


def recognise(content: str) -> str:
    """Which log a text is, "" for none."""
    if MARK in content:
        return MLLOG
    return next((name for name, line in LINES.items() if line.search(content)), "")


def recognise_state(data: object) -> bool:
    """Whether parsed JSON is the state of Hugging Face's trainer."""
    return isinstance(at(data, "log_history"), list) and at(data, "global_step") is not None


def read(content: str, file: str, chips: int | None = None) -> Iterator[Item | str]:
    """The one result of a log, or why it was left out. `chips`: devices that it ran on, where the user said it."""
    try:
        tool = recognise(content)
        yield _benchmark(content, file, chips) if tool == MLLOG else _log(content, tool, file, chips)
    except RowRefusedError as refusal:
        yield str(refusal)


def read_state(data: object, file: str) -> Iterator[Item | str]:
    """The result of a trainer's state, or why it was left out."""
    try:
        yield _state(data, file)
    except RowRefusedError as refusal:
        yield str(refusal)


@dataclass(frozen=True, slots=True)
class _Speed:
    """What a log says: `steps` of them, seconds of one, rates of all `chips` together; None: it does not say."""

    steps: int
    step_s: float | None = None
    tokens_per_s: float | None = None
    samples_per_s: float | None = None
    chips: int | None = None


def _training(tool: str, file: str, speed: _Speed, notes: Sequence[str] = ()) -> Item:
    """A training run: its result is tokens per second where they are known, else samples, else the step's time."""
    step_ms = (speed.step_s or 0.0) * 1e3
    figures = ((speed.tokens_per_s, "Tokens/s"), (speed.samples_per_s, "Samples/s"), (step_ms, "Latency (ms)"))
    result, unit = next((value, unit) for value, unit in figures if value)
    said = [f"{speed.steps:,} steps"] + ([f"{speed.step_s:.4g} s a step"] if speed.step_s else [])
    return own_item(
        tool,
        {
            "model": "",
            "result": result,
            "unit": unit,
            "scenario": "training",
            "runtime": tool.split()[0].lower() if tool != STATE else "transformers",
            "chips": speed.chips,
            "tokens_per_s": speed.tokens_per_s,
            "requests_per_s": speed.samples_per_s,
            "file": file,
            "notes": (*said, *notes),
        },
    )


def _steady(values: list[float], what: str) -> float:
    """The median of what comes after the first steps."""
    kept = values[max(WARM, len(values) // 5) :]
    if len(kept) < LEAST:
        raise RowRefusedError(
            f"{len(values)} {what}: too few, as the first {WARM} are warm-up and {LEAST} more are needed"
        )
    return median(kept)


def _log(content: str, tool: str, file: str, chips: int | None) -> Item:
    found = [float(value) for value in LINES[tool].findall(content)]
    middle = positive(_steady(found, "steps"), "the time of a step")
    batch = BATCH.search(content)
    samples = float(batch.group(1) or batch.group(2)) if batch else None
    notes = []
    if tool == TORCHTUNE:  # a rate of each device, and no time
        notes.append(f"{middle:,.5g} tokens/s on each GPU")
        if not chips:
            raise RowRefusedError("torchtune counts tokens of each GPU: how many were there? --count N")
        return _training(tool, file, _Speed(len(found), None, middle * chips, None, chips), notes)
    step_s = middle / 1e3 if tool == MEGATRON else middle
    each = [float(value) for value in PER_DEVICE.findall(content)]
    tokens = None
    if each:
        rate = _steady(each, "steps")
        notes.append(f"{rate:,.5g} tokens/s on each device")
        tokens = rate * chips if chips else None
    speed = _Speed(len(found), step_s, tokens, samples / step_s if samples else None, chips)
    return _training(tool, file, speed, notes)


def _state(data: object, file: str) -> Item:
    history = at(data, "log_history")
    ends = [entry for entry in history if at(entry, "train_runtime") is not None]
    if not ends:
        raise RowRefusedError("no train_runtime: the training did not end, and single steps are not timed")
    end, steps = ends[-1], int(positive(at(data, "global_step"), "global_step"))
    took = positive(at(end, "train_runtime"), "train_runtime")
    tokens = number(at(end, "train_tokens_per_second")) or None
    seen = number(at(data, "num_input_tokens_seen"))
    if not tokens and seen:
        tokens = seen / took
    rate = number(at(end, "train_steps_per_second"))
    step_s = 1.0 / rate if rate else took / steps
    notes = ["the whole run, with its first steps, evaluation and saving"]
    samples = number(at(end, "train_samples_per_second"))
    return _training(STATE, file, _Speed(steps, step_s, tokens, samples), notes)


def _benchmark(content: str, file: str, chips: int | None) -> Item:
    """A run of MLPerf Training: minutes from `run_start` to `run_stop`, samples per second while it trained."""
    events: dict[str, list[tuple[float, object, object]]] = {}
    for line in content.splitlines():
        _, mark, rest = line.partition(MARK)
        if not mark:
            continue
        try:
            event = json.loads(rest)
        except (ValueError, RecursionError):
            continue
        if key := text(at(event, "key")):
            when = number(at(event, "time_ms")) or 0.0
            events.setdefault(key, []).append((when, at(event, "value"), at(event, "metadata")))
    start, stop = events.get("run_start"), events.get("run_stop")
    if not start or not stop:
        raise RowRefusedError("no run_start and run_stop: the run was cut off, or is one of inference's detailed logs")
    if (status := text(at(stop[-1][2], "status"))) and status != "success":
        raise RowRefusedError(f"run_stop says {status}: the target was not reached")
    seconds = positive((stop[-1][0] - start[0][0]) / 1e3, "time from run_start to run_stop")
    counts = [number(at(told, "samples_count")) for _, _, told in events.get("eval_accuracy", [])]
    name = text(events["submission_benchmark"][0][1]) if events.get("submission_benchmark") else ""
    return own_item(
        MLLOG,
        {
            "model": "",
            "benchmark": name,
            "result": seconds / 60.0,
            "unit": "Minutes",
            "scenario": "training",
            "chips": chips,
            "requests_per_s": counts[-1] / seconds if counts and counts[-1] else None,
            "file": file,
            "notes": ("from run_start to run_stop, evaluation included",),
        },
    )
