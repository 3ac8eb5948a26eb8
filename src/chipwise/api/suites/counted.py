"""The suites `model_params`, `kv_cache` and `systolic`: figures that are counted, so that nothing is fitted and every
interval is the figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from chipwise.api.suites.suite import Asking, Index, Suite, Tested, each, tried
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.configs import ModelConfig, find_config
from chipwise.errors import ChipwiseError, UsageError
from chipwise.evidence.residuals import Residuals, Validation
from chipwise.evidence.rows import Predicted, Row, read_rows
from chipwise.evidence.systolic_rows import METRICS, systolic_row
from chipwise.workload.counts import count_row, kv_row

__all__ = ["KV_CACHE", "MODEL_PARAMS", "SYSTOLIC"]

Figures = Mapping[str, float | None]
"""A figure per metric, None where the row does not ask for it."""

EQUAL = 1e-6  # of a counter: six decimals


def _params(row: Row, config: ModelConfig | None) -> Figures:
    if config is None:
        raise UsageError(
            f"{row.get('model', 'row')}: no config_file", "parameters are counted from a config.json"
        )
    return count_row(row, config)._asdict()


def _cache(row: Row, config: ModelConfig | None) -> Figures:
    return kv_row(row, config)._asdict()


def _counters(row: Row, _: ModelConfig | None) -> Figures:
    return systolic_row(row)


def _counted(
    name: str,
    count: Callable[[Row, ModelConfig | None], Figures],
    tested: Tested[list[Row], None] | None = None,
) -> Suite:
    def read(row: Row, folder: Path, _: Parameters | None) -> tuple[Row, ModelConfig | None]:
        config = row.get("config_file", "")
        return row, find_config(str(folder / "models" / config)) if config else None

    def lines(asked: tuple[Row, ModelConfig | None], found: Figures) -> Iterator[Predicted]:
        for metric, value in found.items():
            if value is not None:
                yield Predicted(asked[0]["row_id"], metric, value, value, value, "modelled")

    return Suite(name, (name,), Asking(("row_id",), read, each(lambda q, _: count(*q)), lines), tested)


def _table(paths: Sequence[str], _: Parameters) -> list[Row]:
    rows: list[Row] = [row for path in paths for row in read_rows(path, ("row_id", *METRICS))]
    return rows


def _against(table: list[Row], out: Index, _: None, __: str) -> Residuals:
    def line(i: int, metric: str) -> Residuals:
        row = table[i]
        found = tried(systolic_row, row)
        mid = np.nan if isinstance(found, ChipwiseError) else found.get(metric, np.nan)
        return Residuals.of(
            i,
            mid,
            float(row[metric]),
            low=mid - EQUAL,
            high=mid + EQUAL,
            metric=metric,
            flow=f"{row.get('dataflow', '')}, {row.get('kind', '')}",
            array=f"{row.get('array_rows', '')} x {row.get('array_cols', '')}",
        )

    return Residuals.join(line(i, metric) for i in out.tolist() for metric in METRICS)


def _report(table: list[Row], found: Residuals, _: str) -> Validation:
    exact = int(np.sum((found.low <= found.measured) & (found.measured <= found.high)))
    return Validation(
        "systolic",
        "Nothing is fitted. The last column is the share that equals SCALE-Sim v3 to 6 decimals.",
        {
            "all": found.summaries(),
            "by dataflow and kind": found.summaries("flow"),
            "by array": found.summaries("array"),
        },
        (f"{exact:,} of {len(found):,} counters are equal",),
    )


MODEL_PARAMS = _counted("model_params", _params)
KV_CACHE = _counted("kv_cache", _cache)
SYSTOLIC = _counted(
    "systolic",
    _counters,
    Tested(
        "systolic.csv",
        _table,
        {"row": lambda table: range(len(table))},
        lambda table, kept, numbers: None,
        _against,
        _report,
        folds={"row": 1},
    ),
)
