"""The suite `mlperf` and its table: out of fold fits never saw a run's (chip, benchmark) cell, or all of its chip or
benchmark; every run is answered by the code of `plan`."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from chipwise.api.loaded import load
from chipwise.api.media_record import Doing
from chipwise.api.suites.mlperf import (
    ASKING,
    TASKS,
    MlperfAnswer,
    answer,
    best_of,
    level_of,
    measured_log,
    media_runtime_of,
    sample_question,
    software_of,
)
from chipwise.api.suites.suite import Index, Suite, Trial, readers
from chipwise.calibrate.effects import seen
from chipwise.calibrate.fit import Fitting
from chipwise.calibrate.fit_level import (
    FACTORS,
    MIDDLE,
    PREFIX,
    PROMPTS,
    SOURCE,
    STARTS,
    LevelRows,
    fit_level,
    fitted_level,
    without_level,
)
from chipwise.calibrate.fit_media import MediaRows
from chipwise.calibrate.fit_tuned import PREFIX as TUNED_PREFIX
from chipwise.calibrate.fit_tuned import TunedFit, TunedRows, fit_tuned, fitted_factors
from chipwise.calibrate.parameter import Parameter
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.benchmarks import load_benchmarks
from chipwise.catalog.media_runtime import media_runtime_for
from chipwise.catalog.published import load_inference_results
from chipwise.catalog.runtime import get_runtime
from chipwise.errors import ChipwiseError, UsageError
from chipwise.evidence.anchors import CELL_LEFT, Anchor, correction
from chipwise.evidence.axes import chip_axes
from chipwise.evidence.discrepancy import spread_of
from chipwise.evidence.judge import judge
from chipwise.evidence.mlperf_rows import MlperfRun, read_run, run_of
from chipwise.evidence.residuals import OWN, Residuals, Validation
from chipwise.evidence.rows import Row, read_rows
from chipwise.evidence.tiers import network_tier, tier_of
from chipwise.units import Array
from chipwise.values import dataclass


def best_rows(rows: Iterable[Row]) -> tuple[list[tuple[MlperfRun, float]], list[Row]]:
    """(runs with the logarithm of what was measured, rows that cannot be read): the best submission of each
    (chip, chips, nodes, model, scenario, round, power bin).

    The best of a cell shows what the system can do; the others, how far it was tuned.
    """
    best: dict[tuple[object, ...], tuple[MlperfRun, float]] = {}
    refused = []
    for row in rows:
        try:
            run = read_run(row)
            value = measured_log(run, float(row["result"]))
        except (ChipwiseError, ValueError, KeyError):
            refused.append(row)
            continue
        key = (run.cell, run.chips, run.nodes, run.accuracy, run.scenario, run.round, run.unit)
        if key not in best or value > best[key][1]:
            best[key] = (run, value)
    return list(best.values()), refused


@dataclass(frozen=True)
class Submissions:
    """Runs of language models that the product answers, as their fit reads them, and those that it refuses."""

    runs: Sequence[MlperfRun]
    data: LevelRows
    refused: Sequence[MlperfRun]

    @property
    def log_measured(self) -> Array:
        """Logarithm of tokens per second."""
        return np.asarray(-np.log(self.data.seconds))


@dataclass(frozen=True)
class RatesAt:
    """Logarithms of the rates of runs, by the product's own answers at factors on passes, prompts and starts."""

    runs: Sequence[MlperfRun]
    numbers: Parameters

    @cached_property
    def middle(self) -> Array:
        """Those at the factors in the middle, NaN where a run has no answer."""
        return self.at(np.ones(len(self.runs), dtype=bool))

    def at(self, some: Array, **factors: float) -> Array:
        """Those of some runs at other factors, NaN for the others."""
        asked, rates = np.flatnonzero(some).tolist(), np.full(len(self.runs), np.nan)
        # of the newest software, tuned: age and level are what is fitted
        plain = [replace(self.runs[i], round="", untuned=False) for i in asked]
        level = {"pace": FACTORS[MIDDLE], "prompt": PROMPTS[MIDDLE], "starts": STARTS[MIDDLE]} | factors
        for i, a in zip(asked, answer(plain, without_level(self.numbers, **level)), strict=True):
            rates[i] = math.log(a.rate[0]) if isinstance(a, MlperfAnswer) else np.nan
        return rates

    def by(self, name: str, factors: Array, some: Array | None = None) -> Array:
        """Those at every factor of a kind, [run, factor], which moves some of the runs (default: all)."""
        moved = np.ones(len(self.runs), dtype=bool) if some is None else some
        columns = (
            self.middle if f == factors[MIDDLE] else np.where(moved, self.at(moved, **{name: f}), self.middle)
            for f in factors
        )
        return np.stack(list(columns), axis=1)

    def by_pace(self) -> Array:
        """Those at factors on passes: without limits a rate falls as passes take longer, whatever the batch."""
        limited = np.array([TASKS[run.scenario][0] == "serve" for run in self.runs])
        falling = self.middle[:, None] - np.log(np.asarray(FACTORS) / FACTORS[MIDDLE])
        return np.where(limited[:, None], self.by("pace", FACTORS, limited), falling)


def submissions(measured: Sequence[tuple[MlperfRun, float]], numbers: Parameters) -> Submissions:
    """Runs of language models, tabulated by the product's own answers at factors on passes and on prompts."""
    found = [(run, log) for run, log in measured if run.benchmark.kind == "llm"]
    runs = [run for run, _ in found]
    runtimes = [_runtime(run) for run in runs]
    engines = np.array([not run.untuned and _starts(r) for run, r in zip(runs, runtimes, strict=True)])
    rates = RatesAt(runs, numbers)
    answered = np.isfinite(rates.middle)
    kept = np.flatnonzero(answered)
    data = LevelRows(
        np.exp(-np.array([log for _, log in found]))[kept],
        _continued(rates.by_pace()[kept], np.log(FACTORS)),
        _continued(rates.by("prompt", PROMPTS)[kept], np.log(PROMPTS)),
        _continued(rates.by("starts", STARTS, engines)[kept], np.log(STARTS)),
        np.array([run.age for run in runs])[kept],
        np.array([not run.untuned for run in runs])[kept],
        engines[kept],
        {
            "runtime": np.array(runtimes)[kept],
            "vendor": np.array([run.chip.software_vendor for run in runs])[kept],
            "benchmark": np.array([run.benchmark.name for run in runs])[kept],
        },
    )
    return Submissions([runs[i] for i in kept], data, [run for run, a in zip(runs, answered, strict=True) if not a])


def _runtime(run: MlperfRun) -> str:
    try:
        return software_of(run)[0]
    except ChipwiseError:
        return ""


def _starts(runtime: str) -> bool:
    """Whether what is built before a run starts requests of its own."""
    return bool(runtime) and "engines" in get_runtime(runtime).features


LOST = 3.0  # exponent: how a rate falls with passes where limits are out of reach, so that a fit feels the way back


def _continued(table: Array, at: Array) -> Array:
    """Rows without their gaps: where limits are out of reach the rate falls on with a power."""
    filled = table.copy()
    for j in range(1, len(at)):
        gap = ~np.isfinite(filled[:, j])
        filled[gap, j] = filled[gap, j - 1] - LOST * (at[j] - at[j - 1])
    for j in range(len(at) - 2, -1, -1):
        gap = ~np.isfinite(filled[:, j])
        filled[gap, j] = filled[gap, j + 1]
    return filled


@dataclass(frozen=True)
class MlperfSamples:
    """Runs of networks of samples that the product answers, the logarithms of their rates, and, of tuned ones (`data`,
    at places `tuned` of the runs), what their fit reads."""

    runs: Sequence[MlperfRun]
    log_measured: Array
    tuned: Index
    data: TunedRows

    def fit(self, kept: Index) -> TunedFit:
        """The factors that some of the runs show."""
        index = np.flatnonzero(np.isin(self.tuned, kept))
        return fit_tuned(self.data.take(index), [self.runs[i].chip.software_id for i in self.tuned[index]])


def samples(measured: Sequence[tuple[MlperfRun, float]], numbers: Parameters) -> tuple[MlperfSamples, list[MlperfRun]]:
    """Runs of networks of samples, each at the batch and load that is best under `numbers`; and those refused."""
    kept: list[tuple[MlperfRun, float, Doing]] = []
    refused = []
    for run, log in measured:
        try:
            kept.append((run, log, best_of(sample_question(run), numbers).doing))
        except ChipwiseError:
            refused.append(run)
    tuned = np.array([i for i, (run, _, _) in enumerate(kept) if not run.untuned], dtype=np.intp)
    logs = np.array([log for _, log, _ in kept])
    data = _tuned([kept[i] for i in tuned], numbers)
    return MlperfSamples([run for run, _, _ in kept], logs, tuned, data), refused


def _tuned(kept: Sequence[tuple[MlperfRun, float, Doing]], numbers: Parameters) -> TunedRows:
    """Tuned runs with the logarithms of their rates and what is predicted of them, as their fit reads them."""
    alone = [TASKS[run.scenario][0] == "local" for run, _, _ in kept]
    at_once = [1.0 if lone else _at_once(run, best) for lone, (run, _, best) in zip(alone, kept, strict=True)]
    works = [best.work for _, _, best in kept]
    each = [w.submitted for w in works]
    stock = [w.stock(numbers) for w in works]
    return TunedRows(
        {
            name: np.array([labels[name] for labels in each], dtype=np.str_)
            for name in ("compute", "vendor", "generation", "unit")
        },
        np.array([n / math.exp(log) for n, (_, log, _) in zip(at_once, kept, strict=True)]),
        MediaRows.together([w.stages for w in works]),
        {name: np.array([values[name] for values in stock]) for name in (stock[0] if stock else ())},
        np.array(alone, dtype=float),
    )


def _at_once(run: MlperfRun, best: Doing) -> float:
    """Samples that all replicas make at a time at their load; of those whose rate counts tokens, their tokens."""
    words = float(best.work.pipeline.settings.get("tokens", 1.0)) if run.unit == "Tokens/s" else 1.0
    return (best.replicas.count or 1) * best.replicas.load * best.work.pipeline.batch * words


@dataclass(frozen=True)
class MeasuredMlperf:
    """The best submissions, as the product answers them: of language models and of networks of samples. `rest`: what
    has no answer; `numbers` price the physics."""

    llm: Submissions
    fixed: MlperfSamples
    rest: Residuals
    numbers: Parameters

    @cached_property
    def runs(self) -> list[MlperfRun]:
        """All runs that are answered, in the order of the places of residuals."""
        return [*self.llm.runs, *self.fixed.runs]


def measured_submissions(paths: Sequence[str], numbers: Parameters) -> MeasuredMlperf:
    """Raises `UsageError` for tables without measured figures."""
    table = [row for path in paths for row in read_rows(path, ("row_id", "result"))]
    table = [row for row in table if row.get("chip_known", "1") != "0"]
    measured, unread = best_rows(table)
    if not measured:
        raise UsageError(f"{', '.join(paths)}: no row with a figure that is predicted", "as in mlperf_inference.csv")
    found = submissions(measured, numbers)
    of_samples = [(run, log) for run, log in measured if run.benchmark.kind != "llm"]
    fixed, unable = samples(of_samples, numbers)
    if len(fixed.tuned):  # batches and loads are those that the fit makes best
        fixed, unable = samples(of_samples, _with(numbers, fixed.fit(np.arange(len(fixed.runs)))))
    refused = [*((run, "llm") for run in found.refused), *((run, "fixed") for run in unable)]
    columns = ("chip", "chips_total", "nodes", "model", "scenario", "round")
    cells = {tuple(row.get(c, "") for c in columns): row for row in unread}
    # one unreadable row of each cell, so that the share answered is honest
    rest = [
        Residuals.of(
            -1, np.nan, np.nan, metric="result", kind="fixed", scenario=row.get("scenario", ""),
            benchmark=row.get("model_base", ""),
        )
        for row in cells.values()
    ]  # fmt: skip
    rest += [_line([run], [-1], [np.nan], [np.nan], "result", kind, ["refused"]) for run, kind in refused]
    return MeasuredMlperf(found, fixed, Residuals.join(rest), numbers)


def _with(numbers: Parameters, tuned: TunedFit) -> Parameters:
    """The same numbers with these factors of tuned software."""
    plain = {name: p for name, p in numbers.table.items() if not name.startswith(f"{TUNED_PREFIX}.")}
    return replace(numbers, table={**plain, **tuned.parameters()})


KEYS: Mapping[str, Callable[[MlperfRun], Hashable]] = {
    "cell": lambda r: r.cell,
    "chip": lambda r: r.chip.id,
    "model": lambda r: r.benchmark.name,
}
"""What stays together: the split of the table, a whole chip, a whole benchmark."""


def _each(of: Callable[[MlperfRun], Hashable]) -> Callable[[MeasuredMlperf], Sequence[Hashable]]:
    return lambda m: [of(run) for run in m.runs]


@dataclass(frozen=True)
class _Fits:
    """The level of tuned software: of language models, and of networks of samples; what rows left out do not need is
    not fitted."""

    level: Mapping[str, Parameter]
    tuned: TunedFit | None


def _fit(m: MeasuredMlperf, kept: Index, _: Parameters) -> _Fits:
    size = len(m.llm.runs)
    out = np.setdiff1d(np.arange(len(m.runs)), kept)
    llm, fixed = kept[kept < size], kept[kept >= size] - size
    level: Mapping[str, Parameter] = {}
    if not len(out) or np.any(out < size):
        found = fit_level(m.llm.data.take(llm))
        chips = [m.llm.runs[i].chip.id for i in llm]
        mark = "" if len(out) else found.effects.rows_hash
        level = found.parameters() | seen(f"{PREFIX}.seen.chip", chips, SOURCE, mark)
    return _Fits(level, m.fixed.fit(fixed) if not len(out) or np.any(out >= size) else None)


def _fitted(m: MeasuredMlperf, _: Parameters) -> dict[str, tuple[Fitting, Index]]:
    size = len(m.llm.runs)
    return {
        PREFIX: (fitted_level(m.llm.data), np.arange(size)),
        TUNED_PREFIX: (fitted_factors(m.fixed.data), size + m.fixed.tuned),
    }


def _answer(m: MeasuredMlperf, out: Index, fitted: _Fits, key: str) -> Residuals:
    """Every run by the product's own answer; all alone, and with one other row of their cell as an anchor."""
    size = len(m.llm.runs)
    plain = without_level(m.numbers)
    priced = replace(plain, table={**plain.table, **fitted.level})
    if fitted.tuned is not None:
        priced = _with(priced, fitted.tuned)
    parts: list[Residuals] = []
    for kind, places, logs in (
        ("llm", out[out < size], m.llm.log_measured),
        ("fixed", out[out >= size], m.fixed.log_measured),
    ):
        runs = [m.runs[i] for i in places]
        answers = [a if isinstance(a, MlperfAnswer) else None for a in answer(runs, priced)]
        found = _line(
            runs,
            places,
            [a.rate[0] if a else np.nan for a in answers],
            np.exp(logs[places - (size if kind == "fixed" else 0)]),
            "tokens_per_s" if kind == "llm" else "result",
            kind,
            [_near(run, priced) for run in runs],
        )
        parts += _beside(runs, found, key)
    return Residuals.join(parts)


def _near(run: MlperfRun, numbers: Parameters) -> str:
    """The tier of an answer."""
    if run.benchmark.network:
        return network_tier(run.chip, media_runtime_for(run.chip, media_runtime_of(run)), numbers, level_of(run))
    return tier_of(run.chip, "", numbers, level="tuned")


def _beside(runs: Sequence[MlperfRun], found: Residuals, key: str) -> Iterator[Residuals]:
    """Lines of runs of one kind, and those that another row of their cell anchors as that moves them."""
    if len(runs):
        yield found.labelled(key=[repr(KEYS[key](run)) for run in runs])
    own = list(_own_residuals(runs, found.log))
    if own:
        some = found.take(np.array([i for i, _ in own]))
        moved = some.measured * np.exp(-np.array([r for _, r in own]))
        ends = [_anchored_ends(runs[i]) for i, _ in own]
        low, high = (moved * np.array(column) for column in zip(*ends, strict=True))
        yield replace(some, predicted=moved, low=low, high=high).labelled(tier=OWN)


def _anchored_ends(run: MlperfRun) -> tuple[float, float]:
    """Ends of the 80 % interval of a rate that another row of its cell moved, over its middle."""
    levels = chip_axes(run.chip, scenario=run.scenario, benchmark=run.benchmark.name)
    spread = spread_of(levels, "tuned", "samples" if run.benchmark.network else "tokens")
    e = judge(1.0, spread.shrunk(CELL_LEFT).around(-1.0), "measured")
    return e.low, e.high


def _line(
    runs: Sequence[MlperfRun],
    place: Sequence[int] | Index,
    predicted: Sequence[float] | Array,
    measured: Sequence[float] | Array,
    metric: str,
    kind: str,
    tiers: Sequence[str],
) -> Residuals:
    return Residuals.of(
        place,
        predicted,
        measured,
        metric=np.where(np.isfinite(predicted), metric, "result"),
        kind=kind,
        figure=[f"{kind} {TASKS[run.scenario][0]}" for run in runs],
        tier=np.where(np.isfinite(predicted), tiers, "refused"),
        cell=[repr(run.cell) for run in runs],
        scenario=[run.scenario for run in runs],
        benchmark=[run.benchmark.name for run in runs],
        vendor=[run.chip.vendor for run in runs],
        chip=[run.chip.id for run in runs],
        reader=[_reader(run) if kind == "llm" else "" for run in runs],
        where=[f"{run.benchmark.name} {run.scenario} on {run.chip.id}" for run in runs],
    )


def _reader(run: MlperfRun) -> str:
    return readers(run.chip, load(run.benchmark.model).graph, "stock" if run.untuned else "tuned")


def _own_residuals(runs: Sequence[MlperfRun], residuals: Array) -> Iterator[tuple[int, float]]:
    """(index, log(measured / predicted)) of runs with the other rows of their cell as anchors, one at a time:
    the next row that can anchor them."""
    by_cell: dict[tuple[str, str], list[int]] = {}
    for i, run in enumerate(runs):
        if np.isfinite(residuals[i]):
            by_cell.setdefault(run.cell, []).append(i)
    for members in by_cell.values():
        for place, i in enumerate(members):
            for other in (*members[place + 1 :], *members[:place]):
                shift, used = correction(runs[i], [Anchor(runs[other], float(residuals[other]))])
                if used:
                    yield i, float(residuals[i]) - shift
                    break


def _report(m: MeasuredMlperf, found: Residuals, key: str) -> Validation:
    llm, fixed = found.where(kind="llm"), found.where(kind="fixed")
    rows = llm.label("tier") == OWN
    llm, anchored = (llm.take(x) for x in (~rows, rows))
    none = m.rest.label("kind")
    llm = Residuals.join([llm, m.rest.take(none == "llm")])
    rows = fixed.label("tier") == OWN
    its_own = fixed.take(rows)
    fixed = Residuals.join([fixed.take(~rows), m.rest.take(none == "fixed")])
    return Validation(
        suite="mlperf",
        method=f"Best submission of each (chip, count, nodes, model, scenario, round); every row predicted by a fit "
        f"that never saw its {'(chip, benchmark) cell' if key == 'cell' else key}, by the answer of `plan` to the "
        f"same question. Intervals are those of a plan of which nobody measured that.",
        tables={
            "language models": llm.summaries("scenario"),
            "language models, by what a fit had seen": llm.summaries("tier"),
            "language models, with one other row of the cell as an anchor": anchored.summaries("scenario"),
            "language models, by benchmark": llm.summaries("benchmark", 5),
            "language models, by vendor": llm.summaries("vendor", 5),
            "samples of fixed size": fixed.summaries("scenario"),
            "samples of fixed size, with one other row of the cell as an anchor": its_own.summaries("scenario"),
            "samples of fixed size, by benchmark": fixed.summaries("benchmark", 5),
        },
    ).shown(llm)


def _more(m: MeasuredMlperf, fitted: _Fits, unseen: Callable[[str], Residuals]) -> Mapping[str, str]:
    """What is left of every published row of a language model."""
    bare = {n: p for n, p in without_level(m.numbers).table.items() if not n.startswith(f"{PREFIX}.")}
    lines = _residuals(replace(m.numbers, table={**bare, **fitted.level}))
    return {"evidence/data/mlperf_residuals.csv": "\n".join(lines) + "\n"}


def _residuals(numbers: Parameters) -> Iterable[str]:
    """id, log(measured / predicted) of the published results of language models that are predicted."""
    yield "id,log_residual"
    kept: list[tuple[str, float]] = []
    runs: list[MlperfRun] = []
    for result in load_inference_results().values():
        if result.tokens_per_s is None or not result.chip or load_benchmarks()[result.benchmark].kind != "llm":
            continue
        try:
            runs.append(run_of(result))
        except ChipwiseError:
            continue
        kept.append((result.id, result.tokens_per_s))
    for (name, tokens_per_s), a in zip(kept, answer(runs, numbers), strict=True):
        if isinstance(a, MlperfAnswer):
            yield f"{name},{math.log(tokens_per_s / a.rate[0]):.3f}"


MLPERF = Suite(
    "mlperf",
    ("result",),
    ASKING,
    Trial(
        "mlperf_inference.csv",
        measured_submissions,
        {name: _each(of) for name, of in KEYS.items()},
        _fit,
        _answer,
        _report,
        {"level.csv": lambda f: f.level, "tuned.csv": lambda f: f.tuned.parameters() if f.tuned else {}},
        more=_more,
        fitted=_fitted,
    ),
    commanded=True,
    priced=True,
)
