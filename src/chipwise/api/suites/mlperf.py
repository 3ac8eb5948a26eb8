"""The suite `mlperf`: a row of a language model becomes the question for the best plan of its chips.

Offline asks for throughput, Server and Interactive for the highest load at which 99th percentiles keep the limits,
SingleStream for one request after the other; all of tuned software of their round. Samples of fixed size (pictures,
sentences, scans, speech) have a roofline of their own (`evidence.mlperf_fixed`). Nothing here reads a measured figure
but `measured_log` and `read_anchors`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from chipwise.api.loaded import load
from chipwise.api.requests.command import command_line
from chipwise.api.requests.planning import PlanRequest
from chipwise.calibrate.fit_level import LevelFit
from chipwise.calibrate.fit_mlperf import FitRow, predict, shipped_mlperf
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.catalog.runtime import Runtime, runtimes_for
from chipwise.errors import ChipwiseError, InfeasibleError, UsageError
from chipwise.evidence.judge import judge
from chipwise.evidence.mlperf_anchors import Anchor, correction
from chipwise.evidence.mlperf_features import features
from chipwise.evidence.mlperf_fixed import fixed_curve
from chipwise.evidence.mlperf_rows import Run, Scenario, read_run
from chipwise.evidence.mlperf_tiers import interval, tier_of
from chipwise.evidence.rows import Predicted, read_rows
from chipwise.evidence.tiers import level_figure
from chipwise.report.records import PlanRecord
from chipwise.search.deployments import runtimes_that
from chipwise.workload.workload import Task

__all__ = [
    "Answer",
    "answer",
    "fixed_row",
    "measured_log",
    "predict_mlperf",
    "question_of",
    "read_anchors",
    "software_of",
]

TASKS: Mapping[Scenario, tuple[Task, str]] = {
    "Offline": ("batch", "mlperf-offline"),
    "Server": ("serve", "mlperf-server"),
    "Interactive": ("serve", "mlperf-interactive"),
    "SingleStream": ("local", "mlperf-single-stream"),
    "MultiStream": ("local", "mlperf-single-stream"),
}
"""What a scenario asks, and the client that measures it."""

ADMITTED = "max_sequences=4096"
"""Submissions admit as many sequences as memory holds."""
TIGHT = f"{ADMITTED},memory_share=0.97"
"""Policies of a run that could not have run with its runtime's defaults, and ran."""

Range = tuple[float, float, float]
"""Middle, low and high of the 80 % interval."""


def predict_mlperf(
    rows: str,
    anchors: str | None = None,
    numbers: Parameters | None = None,
) -> Iterator[Predicted]:
    """`result`, and of language models `tokens_per_s`, `ttft_p99_ms` and `tpot_p99_ms`, with 80 % intervals.

    `anchors` names measured rows that the user owns; rows of the same chip and benchmark are moved towards them.
    Where a command line gives the same answer it stands beside it. A row without an answer becomes a line with the
    reason. Raises `UsageError` for anchors without a figure.
    """
    known = read_anchors(anchors, numbers) if anchors else ()
    table = list(read_rows(rows, ("row_id", "model_base", "scenario")))
    runs: list[Run | ChipwiseError] = []
    for row in table:
        try:
            runs.append(read_run(row))
        except ChipwiseError as error:
            runs.append(error)
    found = iter(answer([run for run in runs if isinstance(run, Run)], numbers))
    for row, run in zip(table, runs, strict=True):
        answered = next(found) if isinstance(run, Run) else run
        if not isinstance(run, Run) or isinstance(answered, ChipwiseError):
            yield Predicted(row["row_id"], "result", None, refused=str(answered))
            continue
        shift, used = correction(run, known)
        asked = answered.question
        command = "" if used or numbers or asked is None else command_line("plan", asked)
        for metric, value in answered.figures(shift if used else None).items():
            basis = "measured" if used and metric in ("result", "tokens_per_s") else answered.basis
            yield Predicted(row["row_id"], metric, *value, basis, "", command)


@dataclass(frozen=True)
class Answer:
    """What is predicted for a run: tokens or samples per second of all chips (`rate`, with its interval), and of
    language models the question that was asked and the plan that answers it."""

    run: Run
    rate: Range
    basis: str
    question: PlanRequest | None = None
    plan: PlanRecord | None = None

    def figures(self, shift: float | None = None) -> dict[str, Range]:
        """`result` in the run's unit, and where they mean something `tokens_per_s` and percentiles in milliseconds;
        `shift` is the logarithm by which anchors move the rate, None where it has none."""
        rate = self.rate if shift is None else self._anchored(shift)
        found = {"result": _in_unit(self.run, rate)}
        if _counts_tokens(self.run) and not self.run.unit.startswith("Latency"):
            found["tokens_per_s"] = rate
        tail = self.plan.tails.get("p99") if self.plan is not None else None
        if tail is not None and self.run.scenario in self.run.benchmark.limits:
            for name, seconds in (("ttft", tail.ttft_s), ("tpot", tail.tpot_s)):
                if seconds is not None:
                    e = judge(f"{name}_s", 1e3 * seconds)
                    found[f"{name}_p99_ms"] = (e.mid, e.low, e.high)
        return found

    def _anchored(self, shift: float) -> Range:
        mid = self.rate[0] * math.exp(shift)
        if self.plan is None:
            low, high = interval(self.run, "own", shipped_mlperf().spread)
            return mid, mid * math.exp(low), mid * math.exp(high)
        e = judge("tokens_per_s" + level_figure(TASKS[self.run.scenario][0], "tuned"), mid, "own")
        return e.mid, e.low, e.high


def answer(runs: Sequence[Run], numbers: Parameters | None = None) -> list[Answer | ChipwiseError]:
    """The answer to every run, or why there is none. Runs that ask the same are answered once."""
    priced = numbers or shipped_parameters()
    known: dict[object, PlanRecord | ChipwiseError] = {}
    found: list[Answer | ChipwiseError] = []
    for run in runs:
        try:
            if run.benchmark.kind != "llm":
                found.append(_fixed(run))
                continue
            question = question_of(run, priced)
            planned, question = _planned(question, priced, known)
            t = planned.tokens_per_s
            # a beam search works on several and keeps one; alone, a pass of several costs about as much as of one
            kept = 1.0 if question.task == "local" else 1.0 / run.benchmark.beams
            rate = (t.mid * kept, t.low * kept, t.high * kept)
            # no flag says that beams are thrown away
            said = question if run.benchmark.beams == 1 else None
            found.append(Answer(run, rate, t.basis, said, planned))
        except ChipwiseError as error:
            found.append(error)
    return found


def _planned(
    question: PlanRequest, numbers: Parameters, known: dict[object, PlanRecord | ChipwiseError]
) -> tuple[PlanRecord, PlanRequest]:
    """The best plan for a question: the very record that `plan` shows first. Where memory stands in the way, with less
    of it left free: what was submitted ran."""
    refusal: ChipwiseError | None = None
    for asked in (question, replace(question, policy=TIGHT)):
        if asked not in known:
            try:
                known[asked] = _first(asked, numbers)
            except ChipwiseError as error:
                known[asked] = error
        found = known[asked]
        if isinstance(found, PlanRecord):
            return found, asked
        refusal = refusal or found
        if not isinstance(found, InfeasibleError) or found.see != "fit":
            break
    assert refusal is not None
    raise refusal


def _first(question: PlanRequest, numbers: Parameters) -> PlanRecord:
    # candidates that cannot be are NaN on the way, whatever a suite makes of NaN in its answers
    with np.errstate(all="ignore"):
        return question.report(numbers).plans[0]


def fixed_row(run: Run, log_measured: float = math.nan) -> FitRow:
    """A run with samples of fixed size as its fit reads it."""
    curve = fixed_curve(run)
    return FitRow(run.id, run.cell, curve.log_rate, features(run, curve), log_measured)


def _fixed(run: Run) -> Answer:
    numbers = shipped_mlperf()
    log = float(predict([fixed_row(run)], numbers)[0])
    low, high = interval(run, tier_of(run, numbers.seen), numbers.spread)
    return Answer(run, (math.exp(log), math.exp(log + low), math.exp(log + high)), "calibrated")


def question_of(run: Run, numbers: Parameters) -> PlanRequest:
    """The question that a run of a language model answers; its prompts are as long as `numbers` say.

    Raises `UsageError` for a benchmark that is not predicted, a scenario without limits, or chips that nothing known
    runs the model on.
    """
    b = run.benchmark
    if b.refused or not b.model:
        raise UsageError(f"{b.name} is not predicted", b.refused)
    task, client = TASKS[run.scenario]
    limit = b.limits.get(run.scenario)
    if task == "serve" and limit is None:
        raise UsageError(f"{b.name} has no published limit for {run.scenario}")
    runtime, precision, kv = software_of(run)
    prompt = max(b.input_tokens * numbers.derived(LevelFit.of).prompt(b.name), 1.0)

    def bound(seconds: float | None) -> str | None:
        return None if limit is None or task != "serve" or seconds is None else f"{seconds:.10g}s"

    return PlanRequest(
        model=b.model,
        have=f"{run.chips}x{run.chip.id}",
        task=task,
        in_=f"{prompt:.10g}",
        out=f"{b.output_tokens:.10g}",
        cv=_spread(run),
        # beams of one request share its prompt
        prefix_hit=f"{1.0 - 1.0 / b.beams:.10g}" if b.beams > 1 else None,
        ttft=bound(limit.ttft_s if limit else None),
        tpot=bound(limit.tpot_s if limit else None),
        e2e=bound(limit.total_s if limit else None),
        percentile="p99" if task == "serve" else None,
        precision=precision,
        kv=kv,
        runtime=runtime,
        policy=ADMITTED,
        set_=_power(run),
        level="stock" if run.untuned else "tuned",
        software=run.round,
        harness=client,
        speculate=b.speculate if run.scenario in b.speculative else None,
        evidence="none",
    )


def _spread(run: Run) -> str | None:
    """How lengths scatter, as far as it is known."""
    b = run.benchmark
    prompts = b.input_std / b.input_tokens if b.input_std else 0.0
    outputs = b.output_std / b.output_tokens if b.output_std else 0.0
    return f"in={prompts:.4g},out={outputs:.4g}" if prompts or outputs else None


def _power(run: Run) -> str | None:
    """The power limit that a run states, where its chips are sold with another."""
    stated, usual = run.power_w, run.chip.tdp_w
    return None if stated is None or usual is None or stated == usual else f"tdp={stated:g}W"


def software_of(run: Run) -> tuple[str, str | None, str | None]:
    """Runtime, precision and format of the cache of a run: the runtime that its submitter names, else the first that
    can; the declared precision in the form that the chip has. What was submitted ran: a format that no known runtime
    supports is that of the checkpoint."""
    said = run.framework.lower()

    def named(r: Runtime) -> bool:
        return any(name and name.lower() in said for name in (r.id, r.published_as))

    options = sorted(runtimes_for(run.chip), key=lambda r: not named(r))
    narrow = "fp4" in run.chip.matrix
    for precision, kv in _formats(run, narrow=narrow):
        try:
            model = load(run.benchmark.model, precision, kv).graph.model
        except ChipwiseError:
            continue
        for runtime in options:
            if runtimes_that(model, run.chip, runtime)[0]:
                return runtime.id, precision, kv
    raise UsageError(f"{run.chip.id}: no known runtime runs {run.benchmark.model}", "chipwise runtimes list")


def _formats(run: Run, *, narrow: bool) -> Iterator[tuple[str | None, str | None]]:
    """Formats of weights and cache, the likeliest first. Products of 8 or 4 bits come with a cache of 8."""
    wanted = run.precision
    if wanted is None:
        if narrow:
            yield "mxfp4_mxfp8", "fp8"
        yield None, "fp8"
    elif wanted in ("bf16", "fp16"):
        yield wanted, None
    else:
        yield wanted, "fp8"
        yield wanted, None
    yield None, None


def read_anchors(path: str, numbers: Parameters | None = None) -> tuple[Anchor, ...]:
    """Rows with measured figures and how they differ from what is predicted for them.

    Rows that cannot be predicted anchor nothing. Raises `UsageError` where no row has a figure.
    """
    measured: list[tuple[Run, float]] = []
    seen = 0
    for row in read_rows(path, ("row_id", "model_base", "scenario")):
        try:
            result = float(row.get("result") or "nan")
        except ValueError:
            continue
        if not (math.isfinite(result) and result > 0):
            continue
        seen += 1
        try:
            run = read_run(row)
        except ChipwiseError:
            continue
        measured.append((run, measured_log(run, result)))
    if not seen:
        raise UsageError(f"{path}: no measured rows", "anchors need the column result")
    answers = answer([run for run, _ in measured], numbers)
    return tuple(
        Anchor(run, log - math.log(a.rate[0]))
        for (run, log), a in zip(measured, answers, strict=True)
        if isinstance(a, Answer)
    )


def _counts_tokens(run: Run) -> bool:
    """Whether the rate of a run counts tokens: language models and whisper."""
    return run.benchmark.kind == "llm" or run.unit == "Tokens/s"


def _tokens_per_sample(run: Run) -> float:
    b = run.benchmark
    # the tables turn samples into tokens by the figure of the rules, the logs count what came out
    return b.nominal_output_tokens if b.kind == "llm" else b.output_tokens or 1.0


def _in_unit(run: Run, rates: Range) -> Range:
    mid, low, high = rates
    if run.unit.startswith("Latency"):
        scale = 1e3 if "ms" in run.unit else 1.0
        if _counts_tokens(run):
            scale *= run.benchmark.output_tokens
        return scale / mid, scale / high, scale / low
    if _counts_tokens(run) and run.unit != "Tokens/s":
        each = _tokens_per_sample(run)
        return mid / each, low / each, high / each
    return mid, low, high


def measured_log(run: Run, result: float) -> float:
    """The logarithm of a measured figure as a rate: tokens or samples per second."""
    if run.unit.startswith("Latency"):
        scale = 1e3 if "ms" in run.unit else 1.0
        if _counts_tokens(run):
            scale *= run.benchmark.output_tokens
        return math.log(scale / result)
    if _counts_tokens(run) and run.unit != "Tokens/s":
        return math.log(result * _tokens_per_sample(run))
    return math.log(result)
