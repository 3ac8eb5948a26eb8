"""`evidence match` and `claim`: what published results and the user's own say about a plan, and what not."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date

from chipwise.api.loaded import describe
from chipwise.api.nearest import model_facts
from chipwise.api.suites.mlperf import predict_run
from chipwise.api.suites.mlperf_rates import full_load
from chipwise.calibrate.fit_mlperf import shipped_mlperf
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.catalog.benchmarks import Limit, load_benchmarks
from chipwise.catalog.chips import get_chip
from chipwise.catalog.published import TrainingResult, find_result, load_inference_results
from chipwise.catalog.snapshot import today as day
from chipwise.errors import ChipwiseError, UsageError
from chipwise.evidence.claim import Condition, judge_claim, rivals_of
from chipwise.evidence.item import Item, item_of
from chipwise.evidence.match import anchored, match, nearest
from chipwise.evidence.match_axes import Target
from chipwise.evidence.mlperf_features import chip_features
from chipwise.evidence.mlperf_rows import SLACK, Curve, Run, Scenario, run_of
from chipwise.evidence.mlperf_tiers import Tier, interval, tier_of
from chipwise.evidence.nearest import generates
from chipwise.evidence.store import Store
from chipwise.report.evidence_view import ClaimReport, MatchReport
from chipwise.workload.workload import Workload

__all__ = ["claim_evidence", "match_evidence"]

# Where the limits of the published curve are: no slack.
MIDDLE = len(SLACK) // 2


def match_evidence(
    model: str,
    workload: Workload,
    chip: str,
    *,
    count: int | None = None,
    precision: str | None = None,
    runtime: str | None = None,
    concurrency: float | None = None,
    most: int = 5,
    today: date | None = None,
    parameters: Parameters | None = None,
) -> MatchReport:
    """The nearest evidence for a model on a chip, and the prediction moved towards it.

    The anchor is the error that the same model makes on the matched rows, as far as they are near; its
    factors for MLPerf submissions are part of that prediction, so a lead of tuned engines does not leak into
    the user's plan. Raises `UnknownNameError` for an unknown model or chip.
    """
    numbers = parameters or shipped_parameters()
    facts = model_facts(model)
    if facts is None:
        describe(model)  # says what is wrong with it
        raise UsageError(f"{model}: cannot be read")
    hardware = get_chip(chip)
    target = Target(
        model=facts,
        chip=hardware.id,
        chips=count,
        precision=precision or describe(model).precision,
        scenario=workload.task,
        input_tokens=workload.prompt_tokens,
        output_tokens=workload.output_tokens,
        concurrency=concurrency,
        runtime=runtime or "",
        date=f"{today or day():%Y-%m}",
        power_w=hardware.tdp_w,
    )
    everything = (*Store().items(), *map(item_of, load_inference_results().values()))
    found = nearest(target, filter(generates, everything), model_facts, most)
    chips = count or (found[0].item.chips if found and found[0].item.chips else 1)
    goal = _goal(model, workload, hardware.id, chips, precision)
    try:
        curve = _full(goal, numbers, lone=workload.task == "local")
    except ChipwiseError as error:
        return MatchReport(target, found, None, "", str(error))
    alone = math.exp(float(curve.log_rate[MIDDLE]) + _chip_factor(goal, curve))
    moved = anchored(alone, found, _predictor(numbers))
    named = (("TTFT", goal.ttft_s), ("TPOT", goal.tpot_s))
    limits = [f"p99 {n} <= {x:g} s" for n, x in named if x is not None]
    fitted, run = shipped_mlperf(), _as_run(goal)
    tier: Tier = "own" if moved.used else tier_of(run, fitted.seen.get("llm", frozenset()))
    low, high = (moved.value * math.exp(x) for x in interval(run, tier, fitted.spread))
    layout = ", ".join((f"{chips} chips", curve.layout, *limits))
    note = (
        "" if curve.meets else "no batch keeps these limits: the figure is what is left when they are missed"
    )
    return MatchReport(target, found, moved, layout, note, (low, high))


def claim_evidence(
    result: str,
    model: str,
    workload: Workload,
    *,
    count: int | None = None,
    precision: str | None = None,
    runtime: str | None = None,
    against: Sequence[str] = (),
    today: date | None = None,
    parameters: Parameters | None = None,
) -> ClaimReport:
    """Whether the lead of a row over other chips carries over to the user's workload, and what reverses it.

    Targets of the workload are taken as 99th percentiles, as in the benchmarks. Raises `UnknownNameError` for
    an unknown row, model or chip, `UsageError` for a row that holds no rate or no known chip.
    """
    numbers = parameters or shipped_parameters()
    item = Store().get(result) if result.startswith("own-") else _published(result)
    if item.per_chip is None or not item.chip:
        raise UsageError(
            f"{item.id}: no tokens per second of a known chip", "choose a row of a language model"
        )
    rivals = tuple(get_chip(name).id for name in against)
    facts = model_facts(model)
    if facts is None:
        describe(model)
        raise UsageError(f"{model}: cannot be read")
    named = precision or describe(model).precision
    target = Target(
        model=facts,
        chip=item.chip,
        chips=count or item.chips,
        precision=named,
        scenario=workload.task,
        input_tokens=workload.prompt_tokens,
        output_tokens=workload.output_tokens,
        runtime=runtime or "",
        date=f"{today or day():%Y-%m}",
        power_w=get_chip(item.chip).tdp_w,
    )
    goal = _goal(model, workload, item.chip, count or item.chips or 1, named)
    others = tuple(map(item_of, load_inference_results().values()))
    nearness = match(target, item, model_facts)

    def speed(c: Condition) -> float | None:
        try:
            curve = _full(c, numbers, lone=c.scenario == "local")
        except ChipwiseError:
            return None
        reached = math.exp(float(curve.log_rate[MIDDLE]) + _chip_factor(c, curve)) / c.chips
        return reached if curve.meets else None

    claim = judge_claim(nearness, rivals_of(item, others, rivals), _condition, goal, speed)
    return ClaimReport(item, goal, claim)


def _published(name: str) -> Item:
    found = find_result(name)
    if isinstance(found, TrainingResult):
        raise UsageError(f"{found.id} is a result of training", "claims compare serving")
    return item_of(found)


def _goal(model: str, w: Workload, chip: str, chips: int, precision: str | None) -> Condition:
    served = w.task == "serve"
    return Condition(
        chip=chip,
        chips=chips,
        model=model,
        precision=precision or "",
        input_tokens=w.prompt_tokens,
        output_tokens=w.output_tokens,
        ttft_s=w.ttft_s if served else None,
        tpot_s=w.tpot_s if served else None,
        scenario=w.task,
    )


def _condition(item: Item) -> Condition | None:
    """The conditions of a published row; None where no model predicts it."""
    if item.origin != "published" or not item.chips:
        return None
    benchmark = load_benchmarks()[item.benchmark]
    if not benchmark.model:
        return None
    try:
        run = run_of(load_inference_results()[item.id])
    except ChipwiseError:
        return None
    limit = benchmark.limits.get(item.scenario, Limit())
    return Condition(
        chip=item.chip,
        chips=item.chips,
        model=benchmark.model,
        precision=run.precision or "",
        input_tokens=benchmark.input_tokens,
        output_tokens=benchmark.output_tokens,
        ttft_s=limit.ttft_s,
        tpot_s=limit.tpot_s,
        scenario=item.scenario,
        round=item.round,
    )


def _full(c: Condition, numbers: Parameters, *, lone: bool) -> Curve:
    limit = Limit(c.ttft_s, c.tpot_s) if c.ttft_s or c.tpot_s else None
    lengths = (c.input_tokens, c.output_tokens)
    own = not c.precision or c.precision == describe(c.model).precision
    return full_load(
        c.model, None if own else c.precision, c.chip, c.chips, lengths, limit, numbers, lone=lone
    )


def _chip_factor(c: Condition, curve: Curve) -> float:
    """What submissions have shown of a chip beyond physics, as a logarithm: its power, its vendor, its links."""
    fitted = shipped_mlperf()
    return sum(value * fitted.value(n) for n, value in chip_features(_as_run(c), curve).items())


def _as_run(c: Condition) -> Run:
    """Conditions as a run of a benchmark like llama2-70b without its constant."""
    own = describe(c.model).precision
    name = "gpt-oss-120b" if own == "mxfp4" and c.precision in ("", own) else ""
    scenarios: dict[str, Scenario] = {"batch": "Offline", "local": "SingleStream"}
    return Run(
        id="",
        benchmark=replace(load_benchmarks()["llama2-70b"], name=name, constant=False),
        chip=get_chip(c.chip),
        chips=c.chips,
        nodes=1,
        scenario=scenarios.get(c.scenario, "Server"),
        accuracy="",
        unit="Tokens/s",
        round="",
        age=0.0,
        precision=c.precision or own,
        precision_note="",
        framework="",
        variant="",
        power_w=None,
        untuned=False,
    )


def _predictor(numbers: Parameters) -> Callable[[Item], float | None]:
    """Tokens per second of an item by the model: published rows with the factors of submissions."""

    def predict(item: Item) -> float | None:
        try:
            if item.origin == "published":
                found = predict_run(run_of(load_inference_results()[item.id]))["tokens_per_s"]
                return found[0] if found else None
            if not (item.chip and item.chips and item.model and item.input_tokens and item.output_tokens):
                return None
            known = item.precision if item.precision else None
            lengths = (item.input_tokens, item.output_tokens)
            load = item.concurrency
            curve = full_load(
                item.model,
                known,
                item.chip,
                item.chips,
                lengths,
                None,
                numbers,
                lone=load == 1.0,
                concurrency=load,
            )
        except ChipwiseError:
            return None
        where = Condition(item.chip, item.chips, item.model, known or "", *lengths)
        return math.exp(float(curve.log_rate[MIDDLE]) + _chip_factor(where, curve))

    return predict
