"""The suite `mlperf` out of fold: fits that never saw a run's cell, answers by the code of `plan`, intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from chipwise.api.suites.mlperf import TASKS, Answer, answer, fixed_row, measured_log, software_of
from chipwise.calibrate.fit_level import (
    FACTORS,
    PREFIX,
    PROMPTS,
    SOURCE,
    LevelRows,
    fit_level,
    without_level,
)
from chipwise.calibrate.fit_mlperf import FitRow, Fitted, folds, shipped_mlperf, worth_fitting
from chipwise.calibrate.parameter import Parameter
from chipwise.calibrate.parameters import Parameters
from chipwise.errors import ChipwiseError, UsageError
from chipwise.evidence.judge import TUNED, Factors, Nearness, conformal
from chipwise.evidence.mlperf_anchors import Anchor, correction
from chipwise.evidence.mlperf_rows import Run, read_run
from chipwise.evidence.mlperf_tiers import Tier, interval, spreads
from chipwise.evidence.mlperf_tiers import tier_of as fixed_tier_of
from chipwise.evidence.rows import Row, read_rows
from chipwise.evidence.tiers import level_figure, tier_of
from chipwise.evidence.validate import Judged, Validation, summarise
from chipwise.units import Array

__all__ = [
    "FixedFolds",
    "Submissions",
    "best_rows",
    "fixed_folds",
    "level_intervals",
    "own_residuals",
    "seen_chips",
    "submissions",
    "unseen",
    "validate_mlperf",
]

KEYS: Mapping[str, Callable[[Run], Hashable]] = {
    "cell": lambda r: r.cell,
    "chip": lambda r: r.chip.id,
    "model": lambda r: r.benchmark.name,
}
"""What stays together: the split of the table, a whole chip, a whole benchmark."""

Measured = Sequence[tuple[Run, float]]
"""Runs with the logarithm of what was measured, tokens or samples per second."""


def best_rows(rows: Iterable[Row]) -> tuple[list[tuple[Run, float]], list[Row]]:
    """(runs with the logarithm of what was measured, rows that cannot be read): the best submission of each
    (chip, chips, nodes, model, scenario, round, power bin).

    The best of a cell shows what the system can do; the others, how far it was tuned.
    """
    best: dict[tuple[object, ...], tuple[Run, float]] = {}
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

    runs: Sequence[Run]
    data: LevelRows
    refused: Sequence[Run]

    @property
    def log_measured(self) -> Array:
        """Logarithm of tokens per second."""
        return np.asarray(-np.log(self.data.seconds))


def submissions(measured: Measured, numbers: Parameters) -> Submissions:
    """Runs of language models, tabulated by the product's own answers at factors on passes and on prompts."""
    found = [(run, log) for run, log in measured if run.benchmark.kind == "llm"]
    runs = [run for run, _ in found]
    # of the newest software, tuned: age and level are what is fitted
    plain = [replace(run, round="", untuned=False) for run in runs]

    limited = np.array([TASKS[run.scenario][0] == "serve" for run in runs])

    def column(pace: float, prompt: float, of: Array) -> Array:
        found = np.full(len(plain), np.nan)
        asked = np.flatnonzero(of)
        answers = answer([plain[i] for i in asked], without_level(numbers, pace, prompt))
        for i, a in zip(asked, answers, strict=True):
            found[i] = math.log(a.rate[0]) if isinstance(a, Answer) else np.nan
        return found

    every = np.ones(len(plain), dtype=bool)
    middle = column(1.0, 1.0, every)

    def paced(pace: float) -> Array:
        """Without limits a rate falls as passes take longer, whatever the batch."""
        return middle if pace == 1.0 else np.where(limited, column(pace, 1.0, limited), middle - np.log(pace))

    by_pace = np.stack([paced(f) for f in FACTORS], axis=1)
    by_prompt = np.stack([middle if p == 1.0 else column(1.0, p, every) for p in PROMPTS], axis=1)
    answered = np.isfinite(middle)
    kept = np.flatnonzero(answered)
    data = LevelRows(
        np.exp(-np.array([log for _, log in found]))[kept],
        _continued(by_pace[kept], np.log(FACTORS)),
        _continued(by_prompt[kept], np.log(PROMPTS)),
        np.array([run.age for run in runs])[kept],
        np.array([not run.untuned for run in runs])[kept],
        {
            "runtime": np.array([_runtime(run) for run in runs])[kept],
            "vendor": np.array([run.chip.software_vendor for run in runs])[kept],
            "benchmark": np.array([run.benchmark.name for run in runs])[kept],
        },
    )
    return Submissions(
        [runs[i] for i in kept], data, [run for run, a in zip(runs, answered, strict=True) if not a]
    )


def _runtime(run: Run) -> str:
    try:
        return software_of(run)[0]
    except ChipwiseError:
        return ""


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


def unseen(found: Submissions, numbers: Parameters, key: str = "cell") -> tuple[Array, list[Nearness]]:
    """log(rate) of every run as the product answers it with numbers that never saw its key (NaN: refused then), and
    what such numbers know of its chip."""
    predicted = np.full(len(found.runs), np.nan)
    tiers: list[Nearness] = ["kind"] * len(found.runs)
    keys = [KEYS[key](run) for run in found.runs]
    for k in dict.fromkeys(keys):
        out = np.array([x == k for x in keys])
        kept = np.flatnonzero(~out)
        fitted = fit_level(found.data.take(kept)).parameters() | seen_chips(
            [found.runs[i] for i in kept.tolist()]
        )
        priced = replace(without_level(numbers), table={**without_level(numbers).table, **fitted})
        inside = np.flatnonzero(out).tolist()
        for i, a in zip(inside, answer([found.runs[i] for i in inside], priced), strict=True):
            run = found.runs[i]
            if isinstance(a, Answer):
                predicted[i] = math.log(a.rate[0])
            tiers[i] = tier_of(run.chip, "", priced, level="tuned")
    return predicted, tiers


def seen_chips(runs: Sequence[Run], rows_hash: str = "") -> dict[str, Parameter]:
    """How many submissions of each chip a fit has seen, to ship beside it: they decide how near a prediction is."""
    chips, counts = np.unique([run.chip.id for run in runs], return_counts=True)
    return {
        f"{PREFIX}.seen.chip={chip}": Parameter(float(n), float(n), 0.0, "rows", SOURCE, rows_hash)
        for chip, n in zip(chips, counts, strict=True)
    }


def level_intervals(
    found: Submissions, predicted: Mapping[str, tuple[Array, list[Nearness]]]
) -> dict[tuple[str, str], Factors]:
    """Conformal factors of throughput by figure and tier; `predicted` by the key that was left out: of cells for runs
    of chips that were seen, of chips for those of their vendor, and both with another row of the cell as an anchor."""
    table: dict[tuple[str, str], Factors] = {}
    figures = np.array([_figure(run) for run in found.runs])
    for figure in sorted(f for f in set(figures) if TUNED in f):
        for nearness, key in (("own", "cell"), ("chip", "cell"), ("vendor", "chip")):
            log, tiers = predicted[key]
            residual = found.log_measured - log
            rows = [i for i in np.flatnonzero(figures == figure).tolist() if np.isfinite(residual[i])]
            if nearness == "own":
                left = dict(own_residuals(found.runs, residual))
                pairs = [(i, left[i]) for i in rows if i in left]
            else:
                pairs = [(i, float(residual[i])) for i in rows if tiers[i] == nearness]
            if pairs:
                table[figure, nearness] = _factors([found.runs[i] for i, _ in pairs], [r for _, r in pairs])
    return table


def _figure(run: Run) -> str:
    return "tokens_per_s" + level_figure(TASKS[run.scenario][0], "stock" if run.untuned else "tuned")


def _factors(runs: Sequence[Run], residuals: Sequence[float]) -> Factors:
    low, high = conformal(np.exp(np.array(residuals)))
    return Factors(low, high, len(runs), len({run.cell for run in runs})).for_few()


def own_residuals(runs: Sequence[Run], residuals: Array) -> Iterator[tuple[int, float]]:
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


@dataclass(frozen=True)
class FixedFolds:
    """Runs with samples of fixed size, log(rate) as fits without their key predict it, and what such a fit knows."""

    runs: Sequence[Run]
    log_measured: Array
    predicted: Array
    tiers: Sequence[Tier]

    @property
    def residuals(self) -> Array:
        """log(measured / predicted)."""
        return self.log_measured - self.predicted


def fixed_folds(measured: Measured, prior: Fitted, key: str = "cell") -> tuple[FixedFolds, list[FitRow]]:
    """Refit samples of fixed size without each key in turn; and the rows of the fit."""
    runs: list[Run] = []
    rows: list[FitRow] = []
    for run, log in measured:
        if run.benchmark.kind == "llm":
            continue
        try:
            row = fixed_row(run, log)
        except UsageError:
            continue
        if worth_fitting(row):
            runs.append(run)
            rows.append(row)
    keys = {row.id: KEYS[key](run) for run, row in zip(runs, rows, strict=True)}
    predicted = folds(rows, prior, lambda row: keys[row.id])
    tiers = []
    for run in runs:
        others = frozenset(r.chip.id for r in runs if KEYS[key](r) != KEYS[key](run))
        tiers.append(fixed_tier_of(run, others))
    return FixedFolds(runs, np.array([r.log_measured for r in rows]), predicted, tiers), rows


def validate_mlperf(rows: str, numbers: Parameters, key: str = "cell") -> Validation:
    """Refit without each key in turn and report errors and coverage on what was left out.

    Intervals of a run come from residuals of other keys in its tier. `numbers` price the physics. Raises
    `UsageError` for an unknown key or rows without measured figures.
    """
    if key not in KEYS:
        raise UsageError(f"no key '{key}'", f"one of {', '.join(KEYS)}")
    table = [r for r in read_rows(rows, ("row_id", "result")) if r.get("chip_known", "1") != "0"]
    measured, _ = best_rows(table)
    if not measured:
        raise UsageError(f"{rows}: no row with a figure that is predicted", "as in mlperf_inference.csv")
    found = submissions(measured, numbers)
    log, tiers = unseen(found, numbers, key)
    llm = list(_judged(found, log, tiers, key))
    own = list(_judged_own(found, log))
    kept, _ = fixed_folds(measured, shipped_mlperf().unfitted(), key)
    fixed = [*_judged_fixed(kept, key), *_unanswered(table)]
    refused = [run for run, _ in measured if run.benchmark.kind != "llm" and run not in kept.runs]
    fixed += [_none(run, "fixed") for run in refused]
    return Validation(
        suite="mlperf",
        method=f"Best submission of each (chip, count, nodes, model, scenario, round); every row predicted by a fit "
        f"that never saw its {'(chip, benchmark) cell' if key == 'cell' else key}, language models by the answer of "
        f"`plan` to the same question. Intervals come from the residuals of all others in the same tier.",
        tables={
            "language models": summarise(llm, "scenario"),
            "language models, by what a fit had seen": summarise(llm, "tier"),
            "language models, with one other row of the cell as an anchor": summarise(own, "scenario"),
            "language models, by benchmark": summarise(llm, "benchmark", 5),
            "language models, by vendor": summarise(llm, "vendor", 5),
            "samples of fixed size": summarise(fixed, "scenario"),
            "samples of fixed size, with one other row of the cell as an anchor": summarise(
                list(_judged_fixed_own(kept)), "scenario"
            ),
            "samples of fixed size, by benchmark": summarise(fixed, "benchmark", 5),
        },
    )


def _judged(found: Submissions, log: Array, tiers: Sequence[Nearness], key: str) -> Iterator[Judged]:
    """Rates of language models with intervals from residuals of other keys."""
    residual = found.log_measured - log
    keys = [KEYS[key](run) for run in found.runs]
    figures = [_figure(run) for run in found.runs]
    known: dict[object, Factors] = {}
    for i, run in enumerate(found.runs):
        if not np.isfinite(log[i]):
            yield _none(run, "llm")
            continue
        group = (keys[i], figures[i], tiers[i])
        if group not in known:
            others = [
                j
                for j in range(len(keys))
                if keys[j] != keys[i] and figures[j] == figures[i] and np.isfinite(residual[j])
            ]
            near = [j for j in others if tiers[j] == tiers[i]] or others
            known[group] = _factors([found.runs[j] for j in near], [float(residual[j]) for j in near])
        f, mid = known[group], math.exp(log[i])
        slices = _slices(run, "llm", tiers[i])
        yield Judged(
            run.id, "tokens_per_s", mid, mid * f.low, mid * f.high, math.exp(found.log_measured[i]), slices
        )
    for run in found.refused:
        yield _none(run, "llm")


def _judged_own(found: Submissions, log: Array) -> Iterator[Judged]:
    """The same with an anchor, intervals from anchored rows of other cells."""
    left = dict(own_residuals(found.runs, found.log_measured - log))
    for i, residual in left.items():
        run = found.runs[i]
        others = [
            j for j in left if found.runs[j].cell != run.cell and _figure(found.runs[j]) == _figure(run)
        ]
        if not others:
            continue
        f = _factors([found.runs[j] for j in others], [left[j] for j in others])
        mid = math.exp(found.log_measured[i] - residual)
        slices = _slices(run, "llm", "own")
        yield Judged(
            run.id, "tokens_per_s", mid, mid * f.low, mid * f.high, math.exp(found.log_measured[i]), slices
        )


def _judged_fixed(found: FixedFolds, key: str) -> Iterator[Judged]:
    """Rates of samples of fixed size with intervals from residuals of other keys."""
    keys = np.array([repr(KEYS[key](run)) for run in found.runs])
    for k in dict.fromkeys(keys):
        kept = np.flatnonzero(keys != k).tolist()
        table = spreads([found.runs[i] for i in kept], [found.tiers[i] for i in kept], found.residuals[kept])
        for i in np.flatnonzero(keys == k).tolist():
            ends = interval(found.runs[i], found.tiers[i], table)
            yield _rate(found, i, float(found.predicted[i]), ends, found.tiers[i])


def _judged_fixed_own(found: FixedFolds) -> Iterator[Judged]:
    """The same with an anchor, intervals from anchored rows of other cells."""
    rows = list(own_residuals(found.runs, found.residuals))
    left = np.array([r for _, r in rows])
    cells = np.array([repr(found.runs[i].cell) for i, _ in rows])
    known: dict[str, Mapping[str, tuple[float, float]]] = {}
    for place, (i, residual) in enumerate(rows):
        cell = str(cells[place])
        if cell not in known:
            kept = np.flatnonzero(cells != cell).tolist()
            known[cell] = spreads([found.runs[rows[j][0]] for j in kept], ["own"] * len(kept), left[kept])
        ends = interval(found.runs[i], "own", known[cell])
        yield _rate(found, i, float(found.log_measured[i]) - residual, ends, "own")


def _rate(found: FixedFolds, i: int, log_rate: float, ends: tuple[float, float], tier: str) -> Judged:
    run = found.runs[i]
    mid, low, high = (math.exp(log_rate + shift) for shift in (0.0, *ends))
    slices = _slices(run, "fixed", tier)
    return Judged(run.id, "result", mid, low, high, math.exp(found.log_measured[i]), slices)


def _slices(run: Run, kind: str, tier: str) -> Mapping[str, str]:
    return {
        "kind": kind,
        "scenario": run.scenario,
        "tier": tier,
        "benchmark": run.benchmark.name,
        "vendor": run.chip.vendor,
        "chip": run.chip.id,
    }


def _none(run: Run, kind: str) -> Judged:
    nan = float("nan")
    return Judged(run.id, "result", nan, nan, nan, nan, _slices(run, kind, "refused"))


def _unanswered(table: Iterable[Row]) -> Iterator[Judged]:
    """One unreadable row of each cell, so that the share answered is honest."""
    columns = ("chip", "chips_total", "nodes", "model", "scenario", "round")
    cells = {tuple(row.get(c, "") for c in columns): row for row in best_rows(table)[1]}
    nan = float("nan")
    for row in cells.values():
        slices = {
            "kind": "fixed",
            "scenario": row.get("scenario", ""),
            "benchmark": row.get("model_base", ""),
        }
        yield Judged(row["row_id"], "result", nan, nan, nan, nan, slices)
