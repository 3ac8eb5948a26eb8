"""`evidence match` and `claim`: what published results and the user's own say about a plan, and what not.

Every prediction here is the first plan of `plan` for the same chips, workload, level and software.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace

from chipwise.api.answering import ranked
from chipwise.api.estimating import estimate
from chipwise.api.loaded import describe, load
from chipwise.api.nearest import model_facts, network_facts
from chipwise.api.placing import Given, Terms
from chipwise.api.planning import PlansAsked, limits_for
from chipwise.api.suites.mlperf import MlperfAnswer, answer
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.catalog.benchmarks import Limit, Named, benchmark_of, load_benchmarks, near_benchmarks
from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import get_chip
from chipwise.catalog.published import TrainingResult, find_result, load_inference_results
from chipwise.catalog.runtime import get_runtime
from chipwise.catalog.snapshot import today as day
from chipwise.errors import ChipwiseError, CommandText, Sentence, UsageError
from chipwise.evidence.claim import Condition, judge_claim, judge_measured, rivals_of
from chipwise.evidence.item import Item, item_of
from chipwise.evidence.match import anchored, match, nearest
from chipwise.evidence.match_axes import ModelFacts, Target
from chipwise.evidence.mlperf_rows import SCENARIOS, run_of
from chipwise.evidence.nearest import generates, predicted
from chipwise.evidence.store import Store
from chipwise.parallel.layout import Layout
from chipwise.report.evidence import ClaimReport, MatchReport
from chipwise.report.plans import PlanRecord
from chipwise.units import format_seconds
from chipwise.values import dataclass
from chipwise.workload.workload import Task, Workload

P99 = 0.99
"""What limits of benchmarks hold for."""

SCENARIO = {"serve": "Server", "batch": "Offline", "local": "SingleStream"}
"""How rows of benchmarks name the tasks of workloads."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What one sample of a plan is, by the names of its benchmark (resolution, steps, frames, audio), and the share of
    the reference's accuracy that it needs, in percent. "" = not said."""

    of: Mapping[str, str] = field(default_factory=dict)
    accuracy: str = ""


def measured_evidence(model: str, workload: Workload) -> MatchReport:
    """What was measured of a network on each chip: the best published result of every chip and scenario.

    Raises `UnknownNameError` for a name that neither a benchmark nor a model has, `UsageError` for a model that no
    benchmark runs.
    """
    named = benchmark_of(model)
    if named is None or (named.benchmark.generates and not named.own):
        facts = _facts(model)
        ran = [
            b
            for b in load_benchmarks().values()
            if b.generates and (other := model_facts(b.model)) is not None and other.name == facts.name
        ]
        if not ran:
            fit = near_benchmarks(model)
            hint = Sentence(
                "name a chip: ", CommandText(f"evidence match {shlex.quote(model)} --chip CHIP"), " shows the nearest"
            )
            raise UsageError(
                f"no benchmark runs {model}",
                Sentence(f"did you mean {' or '.join(fit)}? Else ", hint) if fit else hint,
                field="chip",
            )
        named = Named(ran[0], True)
    return replace(
        _of_benchmark(named, model, Target(network_facts(named, model), "", scenario=workload.task)), matches=()
    )


def _of_benchmark(named: Named, model: str, target: Target, most: int = 0) -> MatchReport:
    """What was measured under a benchmark, nearest to a target first, and the best of each chip."""
    benchmark = named.benchmark
    target = replace(target, benchmark=benchmark.name, own=named.own)
    rows = tuple(map(item_of, (r for r in load_inference_results().values() if r.benchmark == benchmark.name)))
    found = nearest(target, rows, model_facts, most) if most else ()
    note = "" if named.own else f"{model} was not measured; {benchmark.name} is the nearest network that was"
    if not rows:
        note = f"{benchmark.name} has no result in the published tables yet"
    elif target.chip and all(i.chip != target.chip for i in rows):
        note = "; ".join((note, f"no result on {target.chip}") if note else (f"no result on {target.chip}",))
    return MatchReport(target, found, None, "", note, benchmark=benchmark.name, measured=_best_of_each(rows))


def _best_of_each(rows: Iterable[Item]) -> tuple[Item, ...]:
    """The fastest result of every chip and scenario, scenarios apart, fast chips first."""
    best: dict[tuple[str, str], Item] = {}
    for i in rows:
        key = (i.scenario, i.chip or i.part)
        if i.speed and (key not in best or i.speed > (best[key].speed or 0.0)):
            best[key] = i
    order = tuple(SCENARIOS)
    return tuple(sorted(best.values(), key=lambda i: (order.index(i.scenario), -(i.speed or 0.0), i.id)))


def _facts(model: str) -> ModelFacts:
    """What decides a model's speed. Raises what is wrong with one that cannot be read."""
    facts = model_facts(model)
    if facts is None:
        describe(model)
        raise UsageError(f"{model}: cannot be read")
    return facts


def _check(model: str, terms: Terms) -> None:
    """Raises `UnknownNameError` for a precision or a runtime that no language model runs in; a version may follow."""
    load(model, terms.precision)
    if terms.named is not None:
        get_runtime((terms.named.split() or [""])[0])


def _sampled(model: str) -> Named | None:
    """The benchmark of a network that is measured by samples, None of one that generates tokens."""
    named = benchmark_of(model)
    return named if named is not None and not named.benchmark.generates else None


def _generating(model: str) -> str:
    """The language model that a benchmark of this name runs, else the name."""
    named = benchmark_of(model)
    return named.benchmark.model if named is not None and named.own else model


def _target(
    facts: ModelFacts,
    chip: Chip,
    chips: int | None,
    workload: Workload,
    terms: Terms,
    sample: Sample = Sample(),  # noqa: B008
) -> Target:
    """What is asked, on the axes that evidence is matched on."""
    return Target(
        model=facts,
        chip=chip.id,
        chips=chips,
        precision=terms.precision or "",
        scenario=workload.task,
        runtime=terms.runtime or "",
        date=f"{terms.today or day():%Y-%m}",
        power_w=chip.tdp_w,
        sample=sample.of,
        accuracy=sample.accuracy,
    )


def _generated(model: str, chip: Chip, chips: int | None, workload: Workload, terms: Terms) -> Target:
    """The same of a language model, by its tokens. Raises the errors of `_facts` and `_check`."""
    facts = _facts(model)
    _check(model, terms)
    return replace(
        _target(facts, chip, chips, workload, terms),
        precision=terms.precision or describe(model).precision,
        input_tokens=workload.prompt_tokens,
        output_tokens=workload.output_tokens,
    )


def match_evidence(
    model: str,
    workload: Workload,
    given: Given,
    terms: Terms | None = None,
    *,
    most: int = 5,
    sample: Sample = Sample(),  # noqa: B008
) -> MatchReport:
    """The nearest evidence for a model on a chip, beside what `plan` predicts for these chips.

    `anchored` says what correcting by the matched rows would give: by the error of the same prediction on them, as far
    as they are near; the level and age of their software are part of it, so that a lead of tuned engines does not leak
    into the user's plan. It moves nothing. A network that is measured by samples is not predicted: its own rows are
    shown, on axes of its own. Raises `UnknownNameError` for an unknown model or chip.
    """
    terms, count = terms or Terms(), given.count
    numbers = terms.numbers
    hardware = get_chip(given.chip)
    if (named := _sampled(model)) is not None:
        facts = network_facts(named, model)
        return _of_benchmark(named, model, _target(facts, hardware, count, workload, terms, sample), most)
    model = _generating(model)
    target = replace(_generated(model, hardware, count, workload, terms), concurrency=given.concurrency)
    everything = (*Store().items(), *map(item_of, load_inference_results().values()))
    found = nearest(target, filter(generates, everything), model_facts, most)
    chips = count or (found[0].item.chips if found else None) or 1
    try:
        best = _best(model, workload, hardware.id, chips, replace(terms, parameters=numbers))
    except ChipwiseError as error:
        return MatchReport(target, found, None, "", str(error))
    t = best.tokens_per_s
    moved = anchored(t.mid, found, _predictor(numbers))
    of = "mean" if workload.percentile is None else f"p{workload.percentile * 100:g}"
    targets = (("TTFT", workload.ttft_s), ("TPOT", workload.tpot_s))
    limits = [f"{of} {n} <= {x:g} s" for n, x in targets if x is not None]
    layout = ", ".join((f"{chips} chips", f"{best.replicas} x {best.layout.label}", *limits))
    return MatchReport(target, found, moved, layout, "", (t.low, t.high))


def claim_evidence(
    result: str,
    model: str,
    workload: Workload,
    terms: Terms | None = None,
    *,
    count: int | None = None,
    against: Sequence[str] = (),
    sample: Sample = Sample(),  # noqa: B008
) -> ClaimReport:
    """Whether the lead of a row over other chips carries over to the user's workload, and what reverses it.

    Targets of the workload are taken as 99th percentiles, as in the benchmarks, unless it says another. Raises
    `UnknownNameError` for an unknown row, model or chip, `UsageError` for a row that holds no rate or no known chip.
    """
    terms = terms or Terms()
    terms = replace(terms, parameters=terms.numbers)
    item = Store().get(result) if result.startswith("own-") else _published(result)
    if item.speed is None or not item.chip:
        raise UsageError(f"{item.id}: no speed of a known chip", "choose a row whose chip has an id")
    rivals = tuple(get_chip(name).id for name in against)
    others = tuple(map(item_of, load_inference_results().values()))
    ran, chips = load_benchmarks().get(item.benchmark), count or item.chips
    if _sampled(model) or (ran and not ran.generates):
        return _measured_claim(item, model, workload, rivals, others, chips or 1, terms, sample)
    model = _generating(model)
    target = _generated(model, get_chip(item.chip), chips, workload, terms)
    goal = _goal(model, workload, item.chip, chips or 1, target.precision)
    nearness = match(target, item, model_facts)
    speeds = _PlannedSpeeds(workload, terms, item.chip)
    claim = judge_claim(nearness, rivals_of(item, others, rivals), _condition, goal, speeds.best, speeds.again)
    asked = (
        f"{workload.prompt_tokens:,.0f} tokens in, {workload.output_tokens:,.0f} out (--in, --out)",
        *_targets(workload),
        f"each chip in its best layout with {terms.runtime or 'the software that is best there'} (--runtime)",
    )
    return ClaimReport(item, goal, claim, (*_asked(goal, target.precision), *asked))


@dataclass(frozen=True)
class _PlannedSpeeds:
    """Tokens per second and chip under conditions: with all software that `terms` allow (a runtime holds for one chip),
    or with that which a chip had under what was asked last. Each is predicted once."""

    workload: Workload
    terms: Terms
    chip: str
    known: dict[tuple[Condition, str | None], PlanRecord | None] = field(default_factory=dict)
    had: dict[str, str] = field(default_factory=dict)

    def best(self, c: Condition) -> float | None:
        """With all software."""
        found = self._planned(c, self.terms.runtime if c.chip == self.chip else None)
        if found is not None:
            self.had[c.chip] = found.runtime
        return found.tokens_per_s.mid / c.chips if found else None

    def again(self, c: Condition) -> float | None:
        """With the software that the chip had last."""
        found = self._planned(c, self.had.get(c.chip))
        return found.tokens_per_s.mid / c.chips if found else None

    def _planned(self, c: Condition, software: str | None) -> PlanRecord | None:
        key = replace(c, round=""), software  # software of one age for both
        if key not in self.known:
            task: Task = "local" if c.scenario == "local" else "serve" if c.ttft_s or c.tpot_s else "batch"
            asked = Workload(task, c.input_tokens, c.output_tokens)
            if task == "serve":
                percentile = self.workload.percentile or P99
                asked = replace(asked, ttft_s=c.ttft_s, tpot_s=c.tpot_s, percentile=percentile)
            under = replace(self.terms, precision=c.precision or None, runtime=software)
            try:
                self.known[key] = _best(c.model, asked, c.chip, c.chips, under)
            except ChipwiseError:
                self.known[key] = None
        return self.known[key]


def _measured_claim(
    item: Item,
    model: str,
    workload: Workload,
    rivals: Sequence[str],
    others: Sequence[Item],
    chips: int,
    terms: Terms,
    sample: Sample,
) -> ClaimReport:
    """A claim where the row or the user's network is measured by samples: held against other measured rows."""
    network, hardware = benchmark_of(model), get_chip(item.chip)
    if (named := _sampled(model)) is not None:
        target = _target(network_facts(named, model), hardware, chips, workload, terms, sample)
        target = replace(target, benchmark=named.benchmark.name)
    else:
        target = _target(_facts(model), hardware, chips, workload, terms, sample)
    target = replace(target, own=network is None or network.own)
    nearness = match(target, item, model_facts)
    goal = _goal(model, workload, item.chip, chips, terms.precision)
    alike = [o for o in others if o.accuracy == item.accuracy]
    claim = judge_measured(nearness, rivals_of(item, alike, rivals), others, SCENARIO[workload.task])
    return ClaimReport(item, goal, claim, _asked(goal, terms.precision or "any precision"))


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


def _asked(goal: Condition, precision: str) -> tuple[str, ...]:
    """The user's side of a claim, with the options that set it."""
    return (
        f"{goal.model} on {goal.chips}x {goal.chip} (--count)",
        f"{precision} (--precision)",
        f"task {goal.scenario} (--task)",
    )


def _targets(w: Workload) -> tuple[str, ...]:
    if w.task != "serve":
        return ()
    limits = [
        f"{name} within {format_seconds(limit)} ({option})"
        for name, limit, option in (("TTFT", w.ttft_s, "--ttft"), ("TPOT", w.tpot_s, "--tpot"))
        if limit is not None
    ]
    return (*limits, f"limits hold for {w.percentile or P99:.3g} of requests (--percentile)") if limits else ()


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


def _best(model: str, workload: Workload, chip: str, chips: int, terms: Terms) -> PlanRecord:
    """The plan that `plan` shows first for these chips. Raises its errors."""
    limits = replace(limits_for(workload.task), have={chip: chips})
    return ranked(PlansAsked.of(model, workload, terms, limits=limits, published=False)).report.plans[0]


def _predictor(numbers: Parameters) -> Callable[[Item], float | None]:
    """Tokens per second of an item as the product predicts it: published rows as tuned software of their round, runs of
    the user's own as stock software, at their load. Of published rows the shipped numbers' answers are kept."""
    shipped = numbers is shipped_parameters()

    def predict(item: Item) -> float | None:
        kept = predicted(item) if shipped else None
        if kept is not None:
            return kept
        try:
            if item.origin == "published":
                (found,) = answer([run_of(load_inference_results()[item.id])], numbers)
                return found.rate[0] if isinstance(found, MlperfAnswer) else None
            return _own(item, numbers)
        except ChipwiseError:
            return None

    return predict


def _own(item: Item, numbers: Parameters) -> float | None:
    if not (item.chip and item.chips and item.model and item.input_tokens and item.output_tokens):
        return None
    lone = item.concurrency == 1.0
    workload = Workload("local" if lone else "batch", item.input_tokens, item.output_tokens)
    terms = Terms(precision=item.precision or None, parameters=numbers)
    best = _best(item.model, workload, item.chip, item.chips, terms)
    if lone or item.concurrency is None:
        return best.tokens_per_s.mid
    x = best.layout
    layout = Layout(float(x.tp), float(x.pp), float(x.dp), float(x.ep))
    given = Given(item.chip, layout, replicas=best.replicas, concurrency=item.concurrency)
    found = estimate(item.model, workload, given, replace(terms, runtime=best.runtime), evidence=False)
    return found.plans[0].tokens_per_s.mid
