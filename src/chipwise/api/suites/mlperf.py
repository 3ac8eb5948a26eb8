"""The suite `mlperf`: a row becomes the question for the best plan of its chips.

Offline asks for throughput, Server and Interactive for the highest load at which 99th percentiles keep the limits,
SingleStream for one request after the other; all of tuned software of their round. Language models and networks of
samples (pictures, sentences, scans, speech) are asked alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache

import numpy as np

from chipwise.api.loaded import find_chip, load
from chipwise.api.media_asked import own_model
from chipwise.api.media_choice import most_of
from chipwise.api.media_ways import NetworkSpace, Way
from chipwise.api.requests.command import command_line
from chipwise.api.requests.parts import SoftwareOptions
from chipwise.api.requests.planning import PlanRequest
from chipwise.api.suites.suite import Asking, Attempt
from chipwise.api.tactics import Level
from chipwise.calibrate.fit_level import LevelFit
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.catalog.media_runtime import MediaRuntime
from chipwise.catalog.runtime import runtimes_for
from chipwise.catalog.runtime_spec import Runtime
from chipwise.catalog.software import all_software
from chipwise.catalog.system import parse_have
from chipwise.errors import ChipwiseError, InfeasibleError, UsageError
from chipwise.evidence.anchors import CELL_LEFT, Anchor, correction
from chipwise.evidence.axes import chip_axes
from chipwise.evidence.discrepancy import spread_of
from chipwise.evidence.judge import judge
from chipwise.evidence.mlperf_rows import GENERATES, MlperfRun, Scenario, read_run
from chipwise.evidence.rows import Predicted, Row
from chipwise.report.media import MediaPlan
from chipwise.report.plans import PlanRecord
from chipwise.search.deployments import runtimes_that
from chipwise.values import dataclass
from chipwise.workload.workload import Task

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


@dataclass(frozen=True)
class MlperfAnswer:
    """What is predicted for a run: tokens or samples per second of all chips (`rate`, with its interval; of a latency
    scenario requests, one after the other), the question that was asked and the plan that answers it. `shift`: the
    logarithm by which anchors move the rate, None where it has none."""

    run: MlperfRun
    rate: Range
    basis: str
    plan: PlanRecord | MediaPlan
    question: PlanRequest | None = None
    shift: float | None = None

    def figures(self) -> dict[str, Range]:
        """`result` in the run's unit, and where they mean something `tokens_per_s` and percentiles in milliseconds."""
        rate = self.rate if self.shift is None else self._anchored(self.shift)
        found = {"result": _in_unit(self.run, rate)}
        if _counts_tokens(self.run) and not self.run.unit.startswith("Latency"):
            found["tokens_per_s"] = rate
        tail = self.plan.tails.get("p99") if isinstance(self.plan, PlanRecord) else None
        if tail is not None and self.run.scenario in self.run.benchmark.limits:
            assert isinstance(self.plan, PlanRecord)
            for name, seconds, mean in (
                ("ttft", tail.ttft_s, self.plan.ttft_s),
                ("tpot", tail.tpot_s, self.plan.tpot_s),
            ):
                if seconds is not None and mean is not None:
                    ms = 1e3 * seconds / mean.mid  # as uncertain as its mean
                    found[f"{name}_p99_ms"] = (ms * mean.mid, ms * mean.low, ms * mean.high)
        return found

    def _anchored(self, shift: float) -> Range:
        mid = self.rate[0] * math.exp(shift)
        spread = spread_of(
            chip_axes(self.run.chip, scenario=self.run.scenario, benchmark=self.run.benchmark.name),
            "tuned",
            "samples" if self.run.benchmark.network else "tokens",
        )
        e = judge(mid, spread.shrunk(CELL_LEFT).around(-self.slope), "measured")
        return e.mid, e.low, e.high

    @property
    def slope(self) -> float:
        """By how many per cent the rate falls where passes take one per cent longer; 1 of networks of samples."""
        return self.plan.rate_slope if isinstance(self.plan, PlanRecord) else 1.0


def level_of(run: MlperfRun) -> Level:
    """The level of software of a run."""
    return "stock" if run.untuned else "tuned"


def answer(runs: Sequence[MlperfRun], numbers: Parameters | None = None) -> list[MlperfAnswer | ChipwiseError]:
    """The answer to every run, or why there is none. Runs that ask the same are answered once."""
    priced = numbers or shipped_parameters()
    known: dict[object, PlanRecord | ChipwiseError] = {}
    found: list[MlperfAnswer | ChipwiseError] = []
    for run in runs:
        try:
            if run.benchmark.network:
                found.append(_sampled(run, priced))
                continue
            question = question_of(run, priced)
            planned, question = _planned(question, priced, known)
            t = planned.tokens_per_s
            # a beam search works on several and keeps one; alone, a pass of several costs about as much as of one
            kept = 1.0 if question.task == "local" else 1.0 / run.benchmark.beams
            rate = (t.mid * kept, t.low * kept, t.high * kept)
            # no flag says that beams are thrown away
            said = question if run.benchmark.beams == 1 else None
            found.append(MlperfAnswer(run, rate, t.basis, planned, said))
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
        first: PlanRecord = question.ranked(numbers).report.plans[0]
        return first


def _sampled(run: MlperfRun, numbers: Parameters) -> MlperfAnswer:
    """The answer to a run of a network of samples."""
    question = sample_question(run)
    plan = best_of(question, numbers).plan()
    t = plan.latency_s
    if TASKS[run.scenario][0] == "local":
        return MlperfAnswer(run, (1.0 / t.mid, 1.0 / t.high, 1.0 / t.low), t.basis, plan, question)
    r = plan.tokens_per_s if _counts_tokens(run) and plan.tokens_per_s else plan.samples_per_s
    return MlperfAnswer(run, (r.mid, r.low, r.high), r.basis, plan, question)


def best_of(question: PlanRequest, numbers: Parameters) -> Way:
    """How the chips of a question about samples are used best: what `plan` shows first, priced once however often
    fitted numbers change. Raises the errors of `plan`."""
    asked = question.generating()
    plain = replace(question, task="serve", e2e=None, percentile=None, confidence=None, level="stock")
    physics = _Physics(numbers.derived(_key), numbers)
    return most_of(_owned(plain, physics), asked, numbers)


@dataclass(frozen=True)
class _Physics:
    """Numbers as far as they price operators: equal where they differ in those of runtimes alone."""

    key: int
    numbers: Parameters = field(compare=False, repr=False)


def _key(numbers: Parameters) -> int:
    own = ("level.", "tuned.", "media.", "media_memory.", "energy.")
    return hash(frozenset((name, p.value) for name, p in numbers.table.items() if not name.startswith(own)))


@lru_cache(maxsize=2048)
def _owned(question: PlanRequest, physics: _Physics) -> NetworkSpace:
    ((name, count),) = parse_have(question.have or "")
    terms = replace(SoftwareOptions.terms(question, physics.numbers), pricing=None)
    chip = find_chip(name, terms.changes)
    return NetworkSpace.of(own_model(question.model), chip, terms, physics.numbers, have=count)


def sample_question(run: MlperfRun) -> PlanRequest:
    """The question that a run of a network of samples answers. Raises `UsageError` for a benchmark that is not
    predicted, a scenario without limits, or chips without software for it."""
    b = run.benchmark
    if b.refused or not b.network:
        raise UsageError(f"{b.name} is not predicted", b.refused)
    task, limit = TASKS[run.scenario][0], b.limits.get(run.scenario)
    if task == "serve" and (limit is None or limit.total_s is None):
        raise UsageError(f"{b.name} has no published limit for {run.scenario}")
    one = run.untuned or (task == "local" and run.scenario != "MultiStream")
    return PlanRequest(
        model=b.network,
        have=f"{run.chips}x{run.chip.id}",
        task=task,
        # code that was not tuned takes one sample after the other
        batch=1 if one else QUERY if run.scenario == "MultiStream" else None,
        e2e=f"{limit.total_s:g}s" if limit and task == "serve" else None,
        percentile="p99" if task == "serve" else None,
        confidence="50%" if limit and task == "serve" else None,  # what was measured, held its limit
        precision=_as_run(run),
        runtime=media_runtime_of(run),
        set_=_power(run),
        level=level_of(run),
        software=run.round,
        evidence="none",
        **b.asked(run.scenario),
    )


QUERY = 8
"""Samples of a query of MultiStream."""


def _as_run(run: MlperfRun) -> str | None:
    """The precision by the name that networks of samples have for it: engines that read have scales for all layers,
    generators quantise products alone."""
    narrow = run.precision in ("int8", "fp8")
    return f"{run.precision}-static" if narrow and run.benchmark.name not in GENERATES else run.precision


def media_runtime_of(run: MlperfRun) -> str:
    """The software that a submitter names, of tuned submissions as it compiles a network: none of them starts operators
    one by one; else of those the first that makes one graph of folded operators, of others the usual one."""
    able = [r for r in all_software(MediaRuntime).values() if r.runs_on(run.chip)]
    named = _named_in(run.framework.lower(), able)
    built = [] if run.untuned else [r for r in able if r.pace == "graph" and r.folds]
    found = next(iter((*named, *built, *able)), None)
    if found is None:
        raise UsageError(f"{run.chip.id}: no software is known that runs pipelines", "chipwise chips list")
    if found.pace == "host" and not run.untuned:
        found = next((r for r in able if r.pace == "compiled" and r.folds), found)
    return found.id


def _named_in(said: str, able: Sequence[MediaRuntime]) -> list[MediaRuntime]:
    """The software that words name, in their order."""
    places = [(min((said.find(n) for n in (r.id, *r.also) if n in said), default=-1), r) for r in able]
    return [r for place, r in sorted(places, key=lambda p: p[0]) if place >= 0]


def question_of(run: MlperfRun, numbers: Parameters) -> PlanRequest:
    """The question that a run of a language model answers; its prompts are as long as `numbers` say.

    Raises `UsageError` for a benchmark that is not predicted, a scenario without limits, or chips that nothing known
    runs the model on.
    """
    b = run.benchmark
    if b.refused or not b.model:
        raise UsageError(f"{b.name} is not predicted", b.refused)
    task, client = TASKS[run.scenario]
    limit = b.limits.get(run.scenario) if task == "serve" else None
    if task == "serve" and limit is None:
        raise UsageError(f"{b.name} has no published limit for {run.scenario}")
    runtime, precision, kv = software_of(run)
    prompt = max(b.input_tokens * numbers.derived(LevelFit.of).prompt(b.name), 1.0)
    times = (limit.ttft_s, limit.tpot_s, limit.total_s) if limit else (None, None, None)
    ttft, tpot, e2e = (None if seconds is None else f"{seconds:.10g}s" for seconds in times)
    return PlanRequest(
        model=b.model,
        have=f"{run.chips}x{run.chip.id}",
        task=task,
        in_=f"{prompt:.10g}",
        out=f"{b.output_tokens:.10g}",
        cv=_spread(run),
        # beams of one request share its prompt, which one of them works off
        prefix_hit=f"{1.0 - 1.0 / b.beams:.10g}" if b.beams > 1 else None,
        sharers=f"{b.beams}" if b.beams > 1 else None,
        ttft=ttft,
        tpot=tpot,
        e2e=e2e,
        percentile="p99" if task == "serve" else None,
        confidence="50%" if task == "serve" else None,
        precision=precision,
        kv=kv,
        runtime=runtime,
        policy=ADMITTED,
        set_=_power(run),
        level=level_of(run),
        software=run.round,
        harness=client,
        speculate=b.speculate if run.scenario in b.speculative else None,
        evidence="none",
    )


def _spread(run: MlperfRun) -> str | None:
    """How lengths scatter, as far as it is known."""
    b = run.benchmark
    prompts = b.input_std / b.input_tokens if b.input_std else 0.0
    outputs = b.output_std / b.output_tokens if b.output_std else 0.0
    return f"in={prompts:.4g},out={outputs:.4g}" if prompts or outputs else None


def _power(run: MlperfRun) -> str | None:
    """The power limit that a run states, where its chips are sold with another."""
    stated, usual = run.power_w, run.chip.tdp_w
    return None if stated is None or usual is None or stated == usual else f"tdp={stated:g}W"


def software_of(run: MlperfRun) -> tuple[str, str | None, str | None]:
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


def _formats(run: MlperfRun, *, narrow: bool) -> Iterator[tuple[str | None, str | None]]:
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


def _corrected(
    runs: Sequence[MlperfRun], answers: Sequence[Attempt[MlperfAnswer]], path: str, numbers: Parameters | None
) -> list[Attempt[MlperfAnswer]]:
    """The answers, moved by measured rows of the same chip and benchmark; one that cannot be predicted anchors nothing.
    Raises `UsageError` where no row has a figure."""
    table, asked = ASKING.questions(path, numbers)
    figured = [(run, float(row["result"])) for row, run in zip(table, asked, strict=True) if _has_figure(row)]
    if not figured:
        raise UsageError(f"{path}: no measured rows", "anchors need the column result")
    measured = [(run, measured_log(run, result)) for run, result in figured if isinstance(run, MlperfRun)]
    found = answer([run for run, _ in measured], numbers)
    known = [
        Anchor(run, log - math.log(a.rate[0]))
        for (run, log), a in zip(measured, found, strict=True)
        if isinstance(a, MlperfAnswer)
    ]
    moved: list[Attempt[MlperfAnswer]] = []
    for run, a in zip(runs, answers, strict=True):
        shift, used = correction(run, known)
        moved.append(replace(a, shift=shift) if used and isinstance(a, MlperfAnswer) else a)
    return moved


def _has_figure(row: Row) -> bool:
    try:
        return 0.0 < float(row.get("result") or "nan") < math.inf
    except ValueError:
        return False


def _lines(run: MlperfRun, a: MlperfAnswer) -> Iterator[Predicted]:
    """`result`, and of language models `tokens_per_s`, `ttft_p99_ms` and `tpot_p99_ms`, with 80 % intervals."""
    own = a.shift is not None
    command = "" if own or a.question is None else command_line("plan", a.question)
    for metric, value in a.figures().items():
        basis = "measured" if own and metric in ("result", "tokens_per_s") else a.basis
        yield Predicted(run.id, metric, *value, basis, "", command)


ASKING = Asking(
    ("row_id", "model_base", "scenario"), lambda row, folder, numbers: read_run(row), answer, _lines, _corrected
)


def _counts_tokens(run: MlperfRun) -> bool:
    """Whether the rate of a run counts tokens: language models and whisper."""
    return run.benchmark.kind == "llm" or run.unit == "Tokens/s"


def _tokens_per_sample(run: MlperfRun) -> float:
    b = run.benchmark
    # the tables turn samples into tokens by the figure of the rules, the logs count what came out
    return b.nominal_output_tokens if b.kind == "llm" else b.output_tokens or 1.0


def _in_unit(run: MlperfRun, rates: Range) -> Range:
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


def measured_log(run: MlperfRun, result: float) -> float:
    """The logarithm of a measured figure as a rate: tokens or samples per second."""
    if run.unit.startswith("Latency"):
        scale = 1e3 if "ms" in run.unit else 1.0
        if _counts_tokens(run):
            scale *= run.benchmark.output_tokens
        return math.log(scale / result)
    if _counts_tokens(run) and run.unit != "Tokens/s":
        return math.log(result * _tokens_per_sample(run))
    return math.log(result)
