"""The suite `serving` out of fold: fits that never saw a row's (architecture, chip) cell, anchors, intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import NamedTemporaryFile

import numpy as np
from numpy.typing import NDArray

from chipwise.api.estimating import loads_of
from chipwise.api.suites.published import FIGURES as PUBLISHED
from chipwise.api.suites.published import predict_published
from chipwise.api.suites.serving import FIGURES, ServingRun, by_category, readable_runs
from chipwise.calibrate.fit_level import LevelFit
from chipwise.calibrate.fit_serving import ServingRows, fit_serving, fitted_count
from chipwise.calibrate.parameters import Parameters, load_parameters
from chipwise.calibrate.table import write_table
from chipwise.catalog.chips import get_chip
from chipwise.catalog.harness import get_harness
from chipwise.catalog.runtime import get_runtime
from chipwise.errors import ChipwiseError, UsageError
from chipwise.evidence.anchors import Anchors, corrections
from chipwise.evidence.judge import APART, USERS, Factors, Nearness, conformal
from chipwise.evidence.rows import Row, read_rows
from chipwise.evidence.tiers import tier_of
from chipwise.evidence.validate import Judged, Summary, Validation, leave_out, ranking, summarise
from chipwise.predict.service import Engines
from chipwise.units import Array

__all__ = [
    "Folds", "Stranger", "interval_table", "out_of_fold", "serving_rows", "stranger_coverage", "stranger_table",
    "strangers", "validate_serving",
]  # fmt: skip

KEYS: Mapping[str, Callable[[ServingRun], Hashable]] = {
    "cell": lambda r: r.cell,
    "chip": lambda r: r.asked.deployment.chip.id,
    "model": lambda r: r.architecture,
    "runtime": lambda r: r.asked.deployment.runtime.id,
    "generation": lambda r: r.asked.deployment.chip.base_generation,
    "harness": lambda r: r.question.harness,
}
"""What stays together: the split of the table, a whole chip, architecture, runtime, generation of chips or harness."""

TIERS: Mapping[Nearness, tuple[str, str]] = {
    "own": ("cell", "own"),
    "chip": ("cell", "predicted"),
    "vendor": ("chip", "predicted"),
    "runtime": ("runtime", "predicted"),
    "generation": ("generation", "predicted"),
}
"""Tiers of intervals: the key that is left out, and which of the predictions is judged."""

THROUGHPUT = "tokens_per_s"
FEW_ROWS = 20  # of a tier: below, its interval is that of the next nearer one, widened

Pairs = Mapping[str, Array]
"""Seconds by figure."""


@dataclass(frozen=True)
class Folds:
    """Scored rows with what was measured and what fits that never saw their key predicted, in seconds; `own` is
    the same with one other row of the deployment as an anchor (NaN where there is none)."""

    runs: Sequence[ServingRun]
    refused: Sequence[str]
    measured: Pairs
    predicted: Pairs
    own: Pairs


def serving_rows(path: str, numbers: Parameters) -> tuple[list[ServingRun], ServingRows, list[str]]:
    """Scored rows of a table with measured columns: what ran, their engines, and the ids of unreadable ones.

    Raises `UsageError` for a table without measured columns.
    """
    table, found = readable_runs(path, numbers)
    scored = [(row, run) for row, run in zip(table, found, strict=True) if row.get("score", "1") == "1"]
    refused = [row["row_id"] for row, run in scored if isinstance(run, ChipwiseError)]
    kept: list[tuple[Row, ServingRun]] = [(row, run) for row, run in scored if isinstance(run, ServingRun)]
    if not kept or not all(row.get(metric) for row, _ in kept for metric in FIGURES.values()):
        raise UsageError(f"{path}: no measured columns", f"needed: {', '.join(FIGURES.values())}")
    runs = [run for _, run in kept]
    tpot, ttft = (np.array([float(row[name]) / 1e3 for row, _ in kept]) for name in ("tpot_ms", "ttft_ms"))
    engines, places = _engines(runs)

    def column(of: Callable[[ServingRun], float]) -> Array:
        return np.array([of(r) for r in runs], dtype=float)

    data = ServingRows(
        engines,
        places,
        clients=column(lambda r: r.asked.concurrency or 1.0),
        burst=column(lambda r: get_harness(r.question.harness).first_wave),
        slower=column(lambda r: numbers.derived(LevelFit.of).slower(r.asked.context.tactics.software)),
        labels={
            "runtime": np.array([r.asked.deployment.runtime.id for r in runs]),
            "chip": np.array([r.asked.deployment.chip.id for r in runs]),
            "generation": np.array([r.asked.deployment.chip.base_generation for r in runs]),
            "harness": np.array([str(r.question.harness) for r in runs]),
        },
        tpot_s=tpot,
        ttft_s=ttft,
    )
    return runs, data, refused


def _engines(runs: Sequence[ServingRun]) -> tuple[tuple[Engines, ...], tuple[NDArray[np.intp], ...]]:
    """Engines of all rows by part, those with one pool and those with two, and which rows they are of."""
    found: dict[bool, list[tuple[Engines, list[int]]]] = {}
    for members in by_category(runs):
        _, loads = loads_of([runs[i].asked for i in members], by_part=True)
        found.setdefault(runs[members[0]].apart, []).append((loads.engines, members))
    engines = tuple(Engines.join([e for e, _ in parts]) for parts in found.values())
    return engines, tuple(np.array([i for _, members in parts for i in members]) for parts in found.values())


def out_of_fold(
    runs: Sequence[ServingRun], data: ServingRows, refused: Sequence[str], key: str = "cell"
) -> Folds:
    """Refit without each key in turn and predict its rows, without and with an anchor."""
    size = len(runs)
    plain = {figure: np.full(size, np.nan) for figure in FIGURES}
    own = {figure: np.full(size, np.nan) for figure in FIGURES}
    for kept, out in leave_out([KEYS[key](r) for r in runs]):
        fitted = fit_serving(data.take(kept))
        part = data.take(out)
        served = part.served(fitted.values(part.labels))
        for figure, column in plain.items():
            column[out] = getattr(served, figure)[:, 0]
        mine = [runs[i].run for i in out]
        for chosen, rows in _one_anchor_each([runs[i] for i in out]):
            known, rest = out[chosen], out[rows]
            anchors = Anchors(
                [mine[i] for i in chosen],
                plain["tpot_s"][known],
                plain["ttft_s"][known],
                data.tpot_s[known],
                data.ttft_s[known],
            )
            by = corrections([mine[i] for i in rows], anchors)
            own["tpot_s"][rest] = plain["tpot_s"][rest] * by.passes
            own["ttft_s"][rest] = plain["ttft_s"][rest] * by.passes * by.first
    return Folds(runs, refused, {"ttft_s": data.ttft_s, "tpot_s": data.tpot_s}, plain, own)


def _one_anchor_each(runs: Sequence[ServingRun]) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """(anchor, rows) such that every row of a deployment but the anchor has just that one; the anchors get the
    next row of their deployment. Chosen by a seed, not by fit."""
    groups: dict[Hashable, list[int]] = {}
    for i, r in enumerate(runs):
        groups.setdefault(r.run.deployment, []).append(i)
    first: list[int] = []
    second: list[int] = []
    rest: list[int] = []
    rng = np.random.default_rng(0)
    for members in groups.values():
        if len(members) > 1:
            mixed = [members[i] for i in rng.permutation(len(members))]
            first.append(mixed[0])
            second.append(mixed[1])
            rest += mixed[1:]
    pairs = ((first, rest), (second, first))
    return [(np.array(a, dtype=np.intp), np.array(b, dtype=np.intp)) for a, b in pairs if a and b]


def interval_table(folds: Mapping[str, Folds]) -> dict[tuple[str, str], Factors]:
    """Conformal factors by tier; `folds` by the key that they leave out, one for each that `TIERS` names."""
    table: dict[tuple[str, str], Factors] = {}
    for figure in (*FIGURES, THROUGHPUT):
        for nearness, (key, kind) in TIERS.items():
            found = folds[key]
            split = np.array([r.apart for r in found.runs])
            predicted, measured = (_figure(found, name, figure) for name in (kind, "measured"))
            for suffix, mask in (("", ~split), (APART, split)):
                rows = [int(i) for i in np.flatnonzero(mask)]
                runs = [found.runs[i] for i in rows]
                table[figure + suffix, nearness] = _factors(runs, predicted[rows], measured[rows])
    return table


@dataclass(frozen=True)
class Stranger:
    """A published figure that no fit saw: which figure, how near the fit was, who measured it, on what, and measured
    over predicted in the sense that more is a larger figure."""

    figure: str
    nearness: Nearness
    benchmarker: str
    chip: str
    ratio: float
    row: str = ""


def strangers(path: str, parameters: str) -> list[Stranger]:
    """Residuals of a table of published figures, through the answers that users get under a file of parameters; of
    runtimes some of whose numbers were chosen from such tables also without those, as one that nobody measured."""
    numbers = load_parameters(parameters)
    found = _residuals(path, parameters)
    chosen = {name: replace(numbers.table[name], value=math.nan) for name in numbers.from_benchmarks}
    with NamedTemporaryFile("w", suffix=".csv", encoding="utf-8") as file:
        file.write(Path(parameters).read_text("utf-8") + write_table(chosen).partition("\n")[2])
        file.flush()
        rest = _residuals(path, file.name, only=frozenset(s.row for s in found if s.nearness == "stack"))
    return found + rest


def _residuals(path: str, parameters: str, *, only: frozenset[str] | None = None) -> list[Stranger]:
    numbers = load_parameters(parameters)
    rows = {row.get("row_id") or row["id"]: row for row in read_rows(path, ("metric", "value"))}
    found: list[Stranger] = []
    for p in predict_published(path, parameters=parameters):
        if p.mid is None or (only is not None and p.row_id not in only):
            continue
        row = rows[p.row_id]
        chip = get_chip(row["chip"])
        near = tier_of(chip, get_runtime(row["runtime"]).id, numbers)
        who = " ".join(row["source"].split()[:2]).split("@")[0]
        found.append(
            Stranger(PUBLISHED[p.metric][0], near, who, chip.id, float(row["value"]) / p.mid, p.row_id)
        )
    return found


def stranger_table(found: Sequence[Stranger]) -> dict[tuple[str, str], Factors]:
    """Conformal factors by tier for plans without a benchmark client; tiers with few rows have none of their own."""
    groups: dict[tuple[str, str], list[Stranger]] = {}
    for s in found:
        groups.setdefault((s.figure + USERS, s.nearness), []).append(s)
    return {key: _of_strangers(members) for key, members in groups.items() if len(members) >= FEW_ROWS}


def stranger_coverage(found: Sequence[Stranger]) -> dict[tuple[str, str], tuple[float, int]]:
    """Share of rows inside intervals made without their benchmarker, by figure and tier; and how many rows."""
    inside: dict[tuple[str, str], list[bool]] = {}
    for key in {(s.figure, s.nearness) for s in found}:
        members = [s for s in found if (s.figure, s.nearness) == key]
        for who in {s.benchmarker for s in members}:
            others = [s for s in members if s.benchmarker != who]
            if others:
                f = _of_strangers(others)
                held = [f.low <= s.ratio <= f.high for s in members if s.benchmarker == who]
                inside.setdefault(key, []).extend(held)
    return {key: (float(np.mean(held)), len(held)) for key, held in inside.items()}


def _of_strangers(members: Sequence[Stranger]) -> Factors:
    low, high = conformal(np.array([s.ratio for s in members]))
    return Factors(low, high, len(members), len({(s.benchmarker, s.chip) for s in members}))


def _figure(folds: Folds, kind: str, figure: str) -> Array:
    """A column of times, or tokens per second of the closed loop: C n_o / (TTFT + (n_o - 1) TPOT)."""
    values: Pairs = getattr(folds, kind)
    if figure != THROUGHPUT:
        return values[figure]
    tokens = np.array([r.asked.context.workload.output_tokens for r in folds.runs])
    clients = np.array([r.asked.concurrency or 1.0 for r in folds.runs])
    return np.asarray(clients * tokens / (values["ttft_s"] + (tokens - 1.0) * values["tpot_s"]))


def _factors(runs: Sequence[ServingRun], predicted: Array, measured: Array) -> Factors:
    known = np.isfinite(predicted)
    low, high = conformal(measured[known] / predicted[known])
    cells = len({r.cell for r, k in zip(runs, known, strict=True) if k})
    return Factors(low, high, int(known.sum()), cells).for_few()


def _judged(folds: Folds, kind: str) -> list[Judged]:
    """Figures with intervals from the residuals of all other cells."""
    found: list[Judged] = []
    values: Pairs = getattr(folds, kind)
    cells = [r.cell for r in folds.runs]
    split = np.array([r.apart for r in folds.runs])
    for figure, metric in FIGURES.items():
        for kept, out in _tiers(cells, split):
            others = [folds.runs[i] for i in kept]
            factors = _factors(others, values[figure][kept], folds.measured[figure][kept])
            for i in out:
                mid = float(values[figure][i])
                if kind == "own" and np.isnan(mid):
                    continue
                slices = _slices(folds.runs[i])
                found.append(
                    Judged(
                        folds.runs[i].id,
                        metric,
                        mid,
                        mid * factors.low,
                        mid * factors.high,
                        float(folds.measured[figure][i]),
                        slices,
                    )
                )
    nan = float("nan")
    if kind == "predicted":
        found += [
            Judged(i, m, nan, nan, nan, nan, {"mode": "refused"})
            for i in folds.refused
            for m in FIGURES.values()
        ]
    return found


def _tiers(
    cells: Sequence[Hashable], split: NDArray[np.bool_]
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Rows of other cells and rows of one, aggregated and disaggregated apart."""
    for kept, out in leave_out(cells):
        for side in (split, ~split):
            if side[out].any():
                yield kept[side[kept]], out[side[out]]


def _slices(run: ServingRun) -> dict[str, str]:
    d, precision = run.asked.deployment, run.asked.context.found.graph.model.precision.name
    return {
        "mode": "disaggregated" if run.apart else "aggregated",
        "chip": d.chip.id,
        "runtime": d.runtime.id,
        "precision": precision,
        "model": run.architecture,
        "llama fp8": "Llama-70B fp8"
        if run.architecture.startswith("llama-80") and precision == "fp8"
        else "",
    }


def validate_serving(path: str, numbers: Parameters, key: str = "cell") -> Validation:
    """Errors on keys that no fit had seen, by slice; anchored rows apart. Raises `UsageError` for other keys."""
    if key not in KEYS:
        raise UsageError(f"serving is not split by '{key}'", f"one of {', '.join(KEYS)}")
    runs, data, refused = serving_rows(path, numbers)
    folds = out_of_fold(runs, data, refused, key)
    count, cells = fitted_count(fit_serving(data)), len({r.run.deployment for r in runs})
    plain, own = _judged(folds, "predicted"), _judged(folds, "own")
    together = [j for j in plain if j.slices.get("mode") == "aggregated"]
    tables: dict[str, list[Summary]] = {"by mode": summarise(plain, "mode")}
    tables["with one measured row of the same deployment as an anchor"] = summarise(own, "mode")
    for name in ("llama fp8", "chip", "runtime", "precision", "model"):
        tables[f"aggregated, by {name}"] = summarise(together, name, least=10)
    what = {"cell": "(architecture, chip) cell", "model": "architecture"}.get(key, key)
    return Validation(
        "serving",
        f"Rows with score = 1; every row predicted by a fit that never saw its {what}. Intervals come from the "
        "residuals of all other cells. Means of a run; ttft of harnesses that are not documented.",
        tables,
        [f"{count} fitted numbers, {cells} deployments in the rows", *_rankings(folds)],
    )


def _rankings(folds: Folds) -> list[str]:
    """Layouts of one workload: of equal chip counts by TPOT, of unequal ones by tokens per second and chip."""
    equal: dict[Hashable, dict[Hashable, list[tuple[float, float]]]] = {}
    unequal: dict[Hashable, dict[Hashable, list[tuple[float, float]]]] = {}
    for i, r in enumerate(folds.runs):
        if r.apart:
            continue
        p, m = float(folds.predicted["tpot_s"][i]), float(folds.measured["tpot_s"][i])
        run, output = r.run, r.asked.context.workload.output_tokens
        devices = float(r.asked.layout.devices)
        load = (run.deployment, run.load)
        equal.setdefault((load, devices), {}).setdefault(run.layout, []).append((p, m))
        total = [
            output * run.load[0] / (t + output * s) / devices
            for t, s in ((float(folds.predicted["ttft_s"][i]), p), (float(folds.measured["ttft_s"][i]), m))
        ]
        unequal.setdefault(load, {}).setdefault(run.layout, []).append((total[0], total[1]))
    said = []
    for name, groups in (("equal chip counts, by TPOT", equal), ("by tokens/s per chip", unequal)):
        # a layout that was measured in several versions counts once, with their mean
        means = [
            [
                (float(np.mean(p)), float(np.mean(m)))
                for p, m in (zip(*found, strict=True) for found in g.values())
            ]
            for g in groups.values()
        ]
        pairs, share = ranking(means)
        said.append(f"layouts of one workload, {name}: {share:.1%} of {pairs:,} pairs in the right order")
    return said
