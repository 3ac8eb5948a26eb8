"""`validate token_speeds`, and the fit behind it:
`python -m chipwise.api.suites.speed_folds token_speeds.csv [--write]`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from chipwise.api.suites.speeds import METRIC, Case
from chipwise.calibrate.effects import Effects
from chipwise.calibrate.fit_kernels import Rows
from chipwise.calibrate.fit_speeds import ROW_WEIGHT, fit_speeds, speed_parameters
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.calibrate.table import write_table
from chipwise.cost.dataflow import DataflowModel
from chipwise.errors import ChipwiseError, UsageError
from chipwise.evidence.judge import PROVISIONAL
from chipwise.evidence.rows import Row, read_rows
from chipwise.evidence.speed_rows import read_speed
from chipwise.evidence.validate import Judged, Validation, leave_out, summarise
from chipwise.units import Array, Real
from chipwise.workload.step import decode

__all__ = ["main", "speed_table", "validate_speeds"]


def speed_table(path: str, numbers: Parameters) -> tuple[list[Row], list[Case], Rows]:
    """Rows of plain speeds on dataflow machines, laid out, and as the fit reads them. Raises `UsageError` where
    none can be read."""
    table: list[Row] = []
    cases: list[Case] = []
    for row in read_rows(path, ("row_id", "chip", "model_family", METRIC)):
        try:
            case = Case.of(read_speed(row), numbers) if row.get("use", "main") == "main" else None
        except ChipwiseError:
            continue
        if case is not None and isinstance(case.costs, DataflowModel):
            table.append(row)
            cases.append(case)
    if not table:
        raise UsageError(f"{path}: no row can be read", "is it a table of speeds per user?")
    measured = np.array([1.0 / float(row[METRIC]) for row in table])

    def model(values: Mapping[str, Real], index: NDArray[np.intp]) -> Array:
        columns = {name: np.broadcast_to(np.asarray(v), len(index)) for name, v in values.items()}
        return np.array(
            [_seconds(cases[i], {n: float(c[at]) for n, c in columns.items()}) for at, i in enumerate(index)]
        )

    labels = {"kind": np.array([case.run.chip.kind for case in cases])}
    return table, cases, Rows(labels, measured, model, np.full(len(table), ROW_WEIGHT))


def validate_speeds(path: str, numbers: Parameters, key: str) -> Validation:
    """Errors on each group of rows that share `key` (a column, or "model"), fitted without it."""
    table, cases, rows = speed_table(path, numbers)
    column = "model_family" if key == "model" else key
    if column not in table[0]:
        raise UsageError(f"token_speeds: no key '{key}'", "model, chip, or a column of the table")
    low, high = PROVISIONAL[METRIC]
    judged = []
    for kept, out in leave_out([row[column] for row in table]):
        seconds = rows.take(out).predict(fit_speeds(rows.take(kept)))
        for i, s in zip(out, seconds, strict=True):
            row, speed = table[i], 1.0 / float(s)
            slices = {"chip": row["chip"], "drafts": "assumed" if cases[i].drafted else "none"}
            measured = float(row[METRIC])
            judged.append(Judged(row["row_id"], METRIC, speed, speed * low, speed * high, measured, slices))
    factors = np.exp([abs(np.log(j.predicted / j.measured)) for j in judged])
    drafted = [
        f"{row['row_id']} ({case.run.config.name} on {row['chip']})"
        for row, case in zip(table, cases, strict=True)
        if case.drafted
    ]
    beyond = [
        row["row_id"]
        for row, case in zip(table, cases, strict=True)
        if float(row[METRIC]) * _sweep_s(case) > 1.0
    ]
    return Validation(
        "token_speeds",
        f"refit without each {key}",
        {
            "all": summarise(judged),
            "by chip": summarise(judged, "chip"),
            "by speculative decoding": summarise(judged, "drafts"),
        },
        (
            f"within a factor of {np.median(factors):.2f} (median), {np.quantile(factors, 0.9):.2f} (p90)",
            "measured faster than the weights of one token can be read, so more than one token came out of a pass: "
            + (", ".join(beyond) or "none"),
            f"a small model is taken to draft, though the rows do not say so: {', '.join(drafted) or 'none'}",
        ),
    )


def main(arguments: Sequence[str]) -> None:
    """Fit, print what moved, ship on --write."""
    paths = [a for a in arguments if not a.startswith("--")]
    if not paths:
        raise UsageError("no rows", "python -m chipwise.api.suites.speed_folds token_speeds.csv [--write]")
    _, _, rows = speed_table(paths[0], shipped_parameters())
    fitted = speed_parameters(_without_scatter(fit_speeds(rows)))
    for name, p in fitted.items():
        print(f"{name:40s} {p.value:10.4g}  prior {p.prior:8.4g}  spread {p.spread:.2f}", file=sys.stderr)
    if "--write" in arguments:
        folder = Path(str(files("chipwise.calibrate")))
        folder.joinpath("data/speeds.csv").write_text(write_table(fitted), "utf-8")


def _seconds(case: Case, values: Mapping[str, float]) -> float:
    costs = case.costs
    assert isinstance(costs, DataflowModel)
    numbers = replace(
        costs.numbers,
        layer_s=values["operation_s"],
        routed_s=values["routed_s"],
        row_share=values["row_share"],
    )
    return case.seconds(replace(costs, numbers=numbers), values["drafts"])


def _sweep_s(case: Case) -> float:
    """Seconds that reading the weights and the cache of one token takes at the full bandwidth of all devices."""
    step = decode(case.run.batch, case.run.context)
    read = sum(np.asarray(n) * (op.weight_bytes + op.kv_bytes) for n, op in case.sharded.ops(step))
    return float(np.min(np.asarray(read / case.device.memory_bytes_per_s)))


def _without_scatter(effects: Effects) -> Effects:
    """Scatter by range of time is of kernels; two dozen speeds tell none."""
    return replace(effects, scatter={})


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ChipwiseError as error:
        sys.exit(f"chipwise: {error}")
