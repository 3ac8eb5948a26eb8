"""Errors of training predictions out of fold: workloads, publications, software, chips or vendors left out whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from chipwise.api.suites.training import measured_runs
from chipwise.calibrate.fit_training import Runs, fit, memory_of, seconds_of
from chipwise.calibrate.parameters import Parameters
from chipwise.errors import UnknownNameError
from chipwise.evidence.rows import Row
from chipwise.evidence.training_anchors import anchor_factors
from chipwise.evidence.training_answers import interval_of
from chipwise.evidence.training_case import Case
from chipwise.evidence.training_measured import row_group, workload_key
from chipwise.evidence.validate import Judged, Summary, Validation, leave_out, summarise
from chipwise.units import Array

__all__ = ["validate_training"]

FOLDS = 8
ANCHORS, DRAWS = 3, 20  # runs that a user measures, and how often they are drawn

KEYS: Mapping[str, Callable[[Row, Case], str]] = {
    "workload": lambda r, c: workload_key(r),
    "family": lambda r, c: "vtrain" if r.get("family") == "vtrain" else row_group(r),
    "stack": lambda r, c: c.labels["stack"],
    "chip": lambda r, c: c.labels["chip"],
    "vendor": lambda r, c: c.labels["vendor"],
}
"""What stays together: the split of the tables, a publication, software, chips."""

_TITLES = {
    "workload": ("training", "refit without each workload; vTrain in no fit"),
    "family": ("training of a publication never seen", "refit without each publication; vTrain in no fit"),
    "stack": (
        "training with software never seen",
        "refit without each software, where its vendor has other; vTrain in no fit",
    ),
    "chip": (
        "training on a chip never seen",
        "refit without each chip, where its vendor has others; vTrain in no fit",
    ),
    "vendor": (
        "training on a vendor never seen",
        f"refit without each vendor; anchors: {ANCHORS} of its runs, drawn {DRAWS} times, correct the others",
    ),
}
"""By key: section of the accuracy page, and what was done."""


def validate_training(rows: str, numbers: Parameters, key: str = "workload") -> Validation:
    """Refit without each key in turn (workloads: in eight groups) and report errors on what was left out.

    Software and chips count where the fit still sees others of their vendor; vendors are judged with and without
    three anchors. vTrain's rows are in no fit. Those of one node are composed from about 32 layer times: they have a
    table of their own, by (hidden, tp, micro-batch), and are in no pooled figure. Raises `UnknownNameError`.
    """
    if key not in KEYS:
        raise UnknownNameError("key", key, KEYS, f"one of {', '.join(KEYS)}")
    table, cases, runs = measured_runs([rows])
    seconds, memory = _out_of_fold(table, cases, runs, key)
    index = _with_relatives(cases, key) if key in ("stack", "chip") else list(range(len(table)))
    tier = "" if key in ("workload", "family") else "unseen"
    judged = [j for i in index for j in _judged(table[i], cases[i], runs, i, seconds[i], memory[i], tier)]
    pooled = [j for j in judged if j.slices["group"] != "vtrain_single" and j.slices["guessed"] == "no"]
    cells = [j for j in judged if j.slices["group"] == "vtrain_single"]
    title, method = _TITLES[key]
    if any(r.get("benchmark") for r in table):
        title = f"MLPerf {title}"
    tables = {
        "all": summarise(pooled, "kind"),
        "by publication": summarise(pooled, "group"),
        "by chip": summarise(pooled, "chip", 5),
    }
    if key == "vendor":
        tables |= _anchored(table, cases, runs, seconds, pooled)
    elif key == "stack":
        tables |= {"by software": summarise(pooled, "stack", 5)}
    elif key == "workload":
        tables |= {"vTrain on one node, by hidden, tp, micro-batch": summarise(cells, "cell")}
    means = _family_means([j for j in pooled if j.metric == "step_time_s"])
    return Validation(title, method, tables, means if key in ("workload", "family") else ())


def _out_of_fold(table: Sequence[Row], cases: Sequence[Case], runs: Runs, key: str) -> tuple[Array, Array]:
    """(seconds, bytes) that fits without a row's key predict for it."""
    seconds, memory = np.full(len(table), np.nan), np.full(len(table), np.nan)
    keys = [KEYS[key](r, c) for r, c in zip(table, cases, strict=True)]
    for kept, out in leave_out(keys, FOLDS if key == "workload" else 0):
        used: NDArray[np.intp] = kept[runs.weight[kept] > 0]
        if not len(used):
            continue  # a table of one vendor has nothing to leave
        numbers = fit(runs.take(used), Parameters({}))
        part = runs.take(out)
        seconds[out] = seconds_of(part, numbers).total_s
        memory[out] = memory_of(part, numbers).total_bytes
    return seconds, memory


def _with_relatives(cases: Sequence[Case], key: str) -> list[int]:
    """Rows whose vendor has more than one value of the key."""
    seen: dict[str, set[str]] = {}
    for case in cases:
        seen.setdefault(case.labels["vendor"], set()).add(case.labels[key])
    return [i for i, case in enumerate(cases) if len(seen[case.labels["vendor"]]) > 1]


def _anchored(
    table: Sequence[Row], cases: Sequence[Case], runs: Runs, seconds: Array, pooled: Sequence[Judged]
) -> dict[str, list[Summary]]:
    """Dense rows by vendor, as predicted and after three of the vendor's other workloads have corrected them."""
    named = {r["row_id"]: i for i, r in enumerate(table)}
    rows: dict[str, list[int]] = {}
    for j in pooled:
        if j.metric == "step_time_s" and j.slices["kind"] == "dense" and np.isfinite(j.predicted):
            rows.setdefault(j.slices["vendor"], []).append(named[j.row_id])
    errors = np.log(runs.seconds / seconds)
    random = np.random.default_rng(0)
    drawn: list[Judged] = []
    for index in rows.values():
        works = sorted({workload_key(table[i]) for i in index})
        for _ in range(DRAWS if len(works) > ANCHORS else 0):
            chosen = random.choice(works, ANCHORS, replace=False)
            picks = [int(random.choice([i for i in index if workload_key(table[i]) == w])) for w in chosen]
            rest = [i for i in index if workload_key(table[i]) not in chosen]
            factors = anchor_factors(
                [table[i] for i in rest], [cases[i] for i in rest],
                [table[i] for i in picks], [cases[i] for i in picks], errors[picks],
            )  # fmt: skip
            for i, factor in zip(rest, factors, strict=True):
                drawn += _judged(table[i], cases[i], runs, i, float(seconds[i] * factor), np.nan, "unseen")
    bare = [j for j in pooled if j.metric == "step_time_s" and j.slices["kind"] == "dense"]
    corrected = [j for j in drawn if j.metric == "step_time_s"]
    return {
        "dense, by vendor": summarise(bare, "vendor"),
        "dense, by vendor, with three anchors": summarise(corrected, "vendor"),
    }


def _judged(
    row: Row, case: Case, runs: Runs, i: int, seconds: float, memory: float, tier: str
) -> Iterator[Judged]:
    """Step time and memory of a row against what was measured; `tier` names another interval than its own."""
    unknown = any(g.startswith("global batch") for g in case.guessed) and row.get("step_time_s")
    group = row_group(row)
    kind = "dense" if case.labels["moe"] == "dense" else "experts"
    slices = {
        "group": group,
        "kind": "vtrain" if group.startswith("vtrain") else kind,
        "chip": case.labels["chip"],
        "stack": case.labels["stack"],
        "vendor": case.labels["vendor"],
        "guessed": "yes" if unknown else "no",
        "cell": f"h{row.get('hidden')} tp{row.get('tp')} b{row.get('micro_batch')}",
    }
    low, high = interval_of(row, case, f"{kind}, {tier}" if tier else "")
    if np.isfinite(runs.seconds[i]):
        measured = float(runs.seconds[i])
        yield Judged(row["row_id"], "step_time_s", seconds, seconds * low, seconds * high, measured, slices)
    if np.isfinite(runs.memory_bytes[i]):
        low, high = interval_of(row, case, "memory")
        gb = memory / 1e9
        measured = float(runs.memory_bytes[i]) / 1e9
        yield Judged(row["row_id"], "memory_gb", gb, gb * low, gb * high, measured, slices)


def _family_means(judged: Sequence[Judged]) -> list[str]:
    lines = []
    for kind in ("dense", "experts", "vtrain"):
        groups: dict[str, list[float]] = {}
        for j in judged:
            if j.slices["kind"] == kind:
                groups.setdefault(j.slices["group"], []).append(abs(j.error))
        if groups:
            whole = float(np.mean([e for v in groups.values() for e in v]))
            mean = float(np.mean([np.mean(v) for v in groups.values()]))
            lines.append(
                f"{kind}: mean error {whole:.1%}; mean over {len(groups)} publications of theirs {mean:.1%}"
            )
    return lines
