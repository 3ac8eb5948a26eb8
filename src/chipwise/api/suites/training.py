"""The suites `training` and `mlperf_training`: rows of measured runs -> step times, rates, memory; and their
errors out of fold."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from chipwise.api.suites.training_checks import impossible
from chipwise.calibrate.fit_training import Runs, fit, memory_of, seconds_of
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.errors import ChipwiseError, UsageError
from chipwise.evidence.rows import Predicted, Row, read_rows
from chipwise.evidence.training_answers import answer_training, interval_of
from chipwise.evidence.training_case import Case
from chipwise.evidence.training_measured import row_group, workload_key
from chipwise.evidence.training_rows import read_case, stack_cases
from chipwise.evidence.validate import Judged, Validation, leave_out, summarise
from chipwise.units import Array

__all__ = ["fitted_training", "predict_training", "validate_training"]

NEEDED = ("row_id", "chip", "chips_total")
FOLDS = 8

KEYS: Mapping[str, Callable[[Row, Case], str]] = {
    "workload": lambda r, c: workload_key(r),
    "family": lambda r, c: "vtrain" if r.get("family") == "vtrain" else row_group(r),
    "stack": lambda r, c: c.labels["stack"],
    "chip": lambda r, c: c.labels["chip"],
    "generation": lambda r, c: c.labels["generation"],
    "vendor": lambda r, c: c.labels["vendor"],
}
"""What stays together: the split of the tables, a publication, software, chips."""


def predict_training(
    rows: str, anchors: str | None = None, numbers: Parameters | None = None
) -> Iterator[Predicted]:
    """Every measured column that physics can give, with 80 % intervals; measured columns are not read.

    `anchors` is a table of the same form with measured columns, of runs that the user owns. A row that cannot
    be answered becomes a line with the reason.
    """
    table = list(read_rows(rows, NEEDED))
    own = list(read_rows(anchors, NEEDED)) if anchors else []
    wrong = [impossible(row) for row in table]
    sound = [row for row, why in zip(table, wrong, strict=True) if not why]
    lines = deque(answer_training(sound, numbers or shipped_parameters(), own))
    for row, why in zip(table, wrong, strict=True):
        if why:
            yield Predicted(row["row_id"], "step_time_s", None, refused=why)
        while lines and lines[0].row_id == row["row_id"]:
            yield lines.popleft()


def fitted_training(paths: Sequence[str], prior: Parameters) -> Parameters:
    """`prior` with the numbers of training fitted to all rows of the tables that count."""
    _, _, runs = _measured(paths)
    return fit(runs.take(np.flatnonzero(runs.weight > 0)), prior)


def validate_training(rows: str, numbers: Parameters, key: str = "workload") -> Validation:
    """Refit without each key in turn (workloads: in eight groups) and report errors on what was left out.

    vTrain's rows are in no fit. Those of one node are composed from about 32 layer times: they have a table of
    their own, by (hidden, tp, micro-batch), and are in no pooled figure.
    """
    if key not in KEYS:
        raise UsageError(f"no key '{key}'", f"one of {', '.join(KEYS)}")
    table, cases, runs = _measured([rows])
    seconds, memory = _out_of_fold(table, cases, runs, key)
    judged = [
        j for i in range(len(table)) for j in _judged(table[i], cases[i], runs, i, seconds[i], memory[i])
    ]
    pooled = [j for j in judged if j.slices["group"] != "vtrain_single" and j.slices["guessed"] == "no"]
    cells = [j for j in judged if j.slices["group"] == "vtrain_single"]
    means = _family_means([j for j in pooled if j.metric == "step_time_s"])
    return Validation(
        suite="training",
        method=f"refit without each {key}; vTrain in no fit",
        tables={
            "all": summarise(pooled, "kind"),
            "by publication": summarise(pooled, "group"),
            "by chip": summarise(pooled, "chip", 5),
            "vTrain on one node, by hidden, tp, micro-batch": summarise(cells, "cell"),
        },
        remarks=means,
    )


def _out_of_fold(table: Sequence[Row], cases: Sequence[Case], runs: Runs, key: str) -> tuple[Array, Array]:
    """(seconds, bytes) that fits without a row's key predict for it."""
    seconds, memory = np.full(len(table), np.nan), np.full(len(table), np.nan)
    keys = [KEYS[key](r, c) for r, c in zip(table, cases, strict=True)]
    for kept, out in leave_out(keys, FOLDS if key == "workload" else 0):
        used: NDArray[np.intp] = kept[runs.weight[kept] > 0]
        numbers = fit(runs.take(used), Parameters({}))
        part = runs.take(out)
        seconds[out] = seconds_of(part, numbers).total_s
        memory[out] = memory_of(part, numbers).total_bytes
    return seconds, memory


def _measured(paths: Sequence[str]) -> tuple[list[Row], list[Case], Runs]:
    """Rows that can be read, of tables with measured columns."""
    table: list[Row] = []
    cases: list[Case] = []
    for path in paths:
        for row in read_rows(path, NEEDED):
            try:
                cases.append(read_case(row))
            except ChipwiseError:
                continue
            table.append(row)
    if not table:
        raise UsageError(f"{', '.join(paths)}: no row can be read", "is it a table of training runs?")
    runs = stack_cases(cases, table)
    if not np.isfinite(runs.seconds).any():
        raise UsageError(f"{', '.join(paths)}: no measured columns", "needed: step_time_s or a rate")
    return table, cases, runs


def _judged(row: Row, case: Case, runs: Runs, i: int, seconds: float, memory: float) -> Iterator[Judged]:
    unknown = any(g.startswith("global batch") for g in case.guessed) and row.get("step_time_s")
    group = row_group(row)
    kind = "dense" if case.labels["moe"] == "dense" else "experts"
    slices = {
        "group": group,
        "kind": "vtrain" if group.startswith("vtrain") else kind,
        "chip": case.labels["chip"],
        "guessed": "yes" if unknown else "no",
        "cell": f"h{row.get('hidden')} tp{row.get('tp')} b{row.get('micro_batch')}",
    }
    low, high = interval_of(row, case)
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
            mean = float(np.mean([np.mean(v) for v in groups.values()]))
            lines.append(f"{kind}: mean over {len(groups)} publications of their mean error {mean:.1%}")
    return lines
