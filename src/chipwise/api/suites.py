"""`predict SUITE`: the acceptance contract. Rows in, predictions out, measured columns ignored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from chipwise.catalog.configs import ModelConfig, find_config
from chipwise.errors import ChipwiseError, UnknownNameError, UsageError
from chipwise.evidence.rows import Predicted, Row, read_rows, write_predictions
from chipwise.workload.counts import count_row, kv_row

__all__ = ["SUITES", "predict_suite"]


Answer = Mapping[str, float | None]
"""A figure per metric, None where the row does not ask for it."""


def _model_params(row: Row, config: ModelConfig | None) -> Answer:
    if config is None:
        raise UsageError(
            f"{row.get('model', 'row')}: no config_file", "parameters are counted from a config.json"
        )
    return count_row(row, config)._asdict()


def _kv_cache(row: Row, config: ModelConfig | None) -> Answer:
    return kv_row(row, config)._asdict()


SUITES: dict[str, Callable[[Row, ModelConfig | None], Answer]] = {
    "model_params": _model_params,
    "kv_cache": _kv_cache,
}


def predict_suite(suite: str, rows: str, out: str) -> tuple[int, int]:
    """Predict every row of a suite into a CSV; returns (lines written, rows refused).

    A row that cannot be answered becomes a line with the reason. Raises `UnknownNameError` for an unknown
    suite, `UsageError` for unreadable rows.
    """
    if suite not in SUITES:
        raise UnknownNameError("suite", suite, SUITES, f"one of {', '.join(SUITES)}")
    if Path(out).resolve() == Path(rows).resolve():
        raise UsageError(f"{out}: --out would replace the rows", "give another file")
    answers = list(_answers(suite, rows))
    return write_predictions(answers, out), sum(1 for a in answers if a.refused)


def _answers(suite: str, rows: str) -> Iterator[Predicted]:
    folder = Path(rows).parent / "models"
    for row in read_rows(rows, ("row_id",)):
        try:
            name = row.get("config_file", "")
            config = find_config(str(folder / name)) if name else None
            found = SUITES[suite](row, config)
        except ChipwiseError as error:
            yield Predicted(row["row_id"], suite, None, refused=str(error))
            continue
        for metric, value in found.items():
            if value is not None:
                # counted, not estimated: the interval is the figure
                yield Predicted(row["row_id"], metric, value, value, value, "modelled")
