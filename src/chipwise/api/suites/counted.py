"""The suites `model_params`, `kv_cache` and `systolic`: figures that are counted, so that nothing is fitted and every
interval is the figure. Their tables come with the package: a reader repeats `validate` of them without others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path

import numpy as np

from chipwise.api.suites.suite import Asking, Index, Suite, Trial, each, tried
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.configs import ModelConfig, find_config
from chipwise.catalog.files import is_file
from chipwise.errors import ChipwiseError, UsageError, shorten
from chipwise.evidence.residuals import Residuals, Validation
from chipwise.evidence.rows import Predicted, Row, read_rows
from chipwise.evidence.systolic_rows import METRICS, systolic_row
from chipwise.values import dataclass
from chipwise.workload.counts import count_row, kv_row

Figures = Mapping[str, float | None]
"""A figure per metric, None where the row does not ask for it."""

EQUAL = 1e-6  # of a counter: six decimals


def _params(row: Row, config: ModelConfig | None) -> Figures:
    if config is None:
        raise UsageError(f"{row.get('model', 'row')}: no config_file", "parameters are counted from a config.json")
    return count_row(row, config)._asdict()


def _cache(row: Row, config: ModelConfig | None) -> Figures:
    return kv_row(row, config)._asdict()


def _counters(row: Row, _: ModelConfig | None) -> Figures:
    return systolic_row(row)


@dataclass(frozen=True)
class _Kind:
    """What is counted: figures of a row, and by metric the column that says how far apart two counts may be (percent;
    "": equal to six decimals); labels by which errors are shown; what is said of them."""

    name: str
    count: Callable[[Row, ModelConfig | None], Figures]
    tolerance: Mapping[str, str]
    said: str
    labels: Mapping[str, Callable[[Row], str]] = field(default_factory=dict)

    def read(self, row: Row, folder: Path, _: Parameters | None = None) -> tuple[Row, ModelConfig | None]:
        """A row with its configuration: the file beside the table, else the model of the catalogue."""
        if not row.get("config_file"):
            return row, None
        file = folder / "models" / row["config_file"]
        own = is_file(file)
        if not own and not row.get("model"):
            raise UsageError(f"no such file: models/{shorten(row['config_file'])}, and no model is named", "")
        return row, find_config(str(file) if own else row["model"])

    def lines(self, asked: tuple[Row, ModelConfig | None], found: Figures) -> Iterator[Predicted]:
        """What `predict` writes."""
        for metric, value in found.items():
            if value is not None:
                yield Predicted(asked[0]["row_id"], metric, value, value, value, "modelled")

    def against(self, table: _Rows, out: Index, _: None, __: str) -> Residuals:
        """Figures beside those that the rows hold."""
        return Residuals.join(line for i in out.tolist() for line in self._row(table, i))

    def _row(self, table: _Rows, i: int) -> Iterator[Residuals]:
        row, folder = table[i]
        asked = tried(self.read, row, folder)
        found = asked if isinstance(asked, ChipwiseError) else tried(self.count, *asked)
        for metric, column in self.tolerance.items():
            if not row.get(metric):
                continue
            value = None if isinstance(found, ChipwiseError) else found.get(metric)
            mid = np.nan if value is None else float(value)
            apart = mid * float(row.get(column) or 0.0) / 100.0 + EQUAL
            yield Residuals.of(
                i, mid, float(row[metric]), low=mid - apart, high=mid + apart, metric=metric,
                **{name: label(row) for name, label in self.labels.items()},
            )  # fmt: skip

    def report(self, _: _Rows, found: Residuals, __: str) -> Validation:
        """Errors, and how many figures are equal."""
        equal = int(np.sum(np.abs(found.predicted - found.measured) <= EQUAL))
        tables = {"all": found.summaries()} | {f"by {n}": found.summaries(n) for n in self.labels}
        remarks = (f"{equal:,} of {len(found):,} figures are equal",)
        first = [replace(s, name=self.name) for s in tables["all"] if s.metric == next(iter(self.tolerance))]
        return Validation(self.name, self.said, tables, remarks, first)

    def suite(self) -> Suite:
        """The suite of it."""

        def table(paths: Sequence[str], _: Parameters) -> _Rows:
            return [(row, Path(path).parent) for path in paths for row in read_rows(path, ("row_id",))]

        return Suite(
            self.name,
            (self.name,),
            Asking(("row_id",), self.read, each(lambda q, _: self.count(*q)), self.lines),
            Trial(
                f"{self.name}.csv",
                table,
                {"row": lambda rows: range(len(rows))},
                lambda rows, kept, numbers: None,
                self.against,
                self.report,
                folds={"row": 1},
            ),
        )


_Rows = list[tuple[Row, Path]]
"""Rows with the folders of their tables."""

_LENIENT = "Nothing is fitted. The last column is the share within the tolerance that the row states."

MODEL_PARAMS = _Kind(
    "model_params",
    _params,
    {
        "checkpoint_params": "params_tolerance_pct",
        "published_total_b": "active_tolerance_pct",  # rounded like it
        "published_active_b": "active_tolerance_pct",
    },
    _LENIENT,
).suite()
KV_CACHE = _Kind(
    "kv_cache", _cache, {"kv_cache_bytes": "tolerance_pct", "kv_bytes_per_token": "tolerance_pct"}, _LENIENT
).suite()
SYSTOLIC = _Kind(
    "systolic",
    _counters,
    dict.fromkeys(METRICS, ""),
    "Nothing is fitted. The last column is the share that equals SCALE-Sim v3 to 6 decimals.",
    {
        "dataflow and kind": lambda row: f"{row.get('dataflow', '')}, {row.get('kind', '')}",
        "array": lambda row: f"{row.get('array_rows', '')} x {row.get('array_cols', '')}",
    },
).suite()
