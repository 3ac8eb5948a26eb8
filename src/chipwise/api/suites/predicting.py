"""`predict SUITE`: the acceptance contract. Rows in, predictions out, measured columns ignored."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np

from chipwise.api.suites.kernels import predict_kernels
from chipwise.api.suites.mlperf import predict_mlperf
from chipwise.api.suites.published import predict_published
from chipwise.api.suites.serving import predict_serving
from chipwise.api.suites.speeds import predict_speeds
from chipwise.api.suites.training import predict_training
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.configs import ModelConfig, find_config
from chipwise.catalog.files import output_file
from chipwise.errors import ChipwiseError, UnknownNameError, UsageError, shorten
from chipwise.evidence.rows import Part, Predicted, Row, read_rows, write_commands, write_predictions
from chipwise.evidence.systolic_rows import systolic_row
from chipwise.workload.counts import count_row, kv_row

__all__ = ["SUITES", "every_row", "predict_suite"]


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


def _systolic(row: Row, _: ModelConfig | None) -> Answer:
    return systolic_row(row)


Suite = Callable[[str], Iterator[Predicted]]
"""Rows file -> predictions, in the order of the rows."""

METRICS: Mapping[str, tuple[str, ...]] = {
    "kernels": ("latency_us",),
    "mlperf": ("result",),
    "serving": ("ttft_ms", "tpot_ms"),
    "token_speeds": ("tokens_per_s_per_user",),
    "training": ("step_time_s",),
    "mlperf_training": ("step_time_s",),
}
"""What a row is refused under, where it is not the name of the suite."""

LARGEST = 1e18  # figure of a row that can be meant


def _each(suite: str, answer: Callable[[Row, ModelConfig | None], Answer]) -> Suite:
    """The suite that answers a row at a time."""
    return lambda rows: _answers(suite, answer, rows)


SUITES: dict[str, Suite] = {
    "model_params": _each("model_params", _model_params),
    "kv_cache": _each("kv_cache", _kv_cache),
    "systolic": _each("systolic", _systolic),
    "kernels": predict_kernels,
    "mlperf": predict_mlperf,
    "published": predict_published,
    "serving": predict_serving,
    "token_speeds": predict_speeds,
    "training": predict_training,
    "mlperf_training": predict_training,
}


ANCHORED: dict[str, Callable[[str, str], Iterator[Predicted]]] = {
    "serving": predict_serving,
    "mlperf": predict_mlperf,
}
"""Suites that measured rows of the user's own may correct: rows file, anchors file -> predictions."""


PRICED: dict[str, Callable[[str, Parameters], Iterator[Predicted]]] = {
    "kernels": predict_kernels,
    "mlperf": lambda rows, numbers: predict_mlperf(rows, None, numbers),
    "serving": lambda rows, numbers: predict_serving(rows, None, numbers),
}
"""Suites that other parameters than the shipped ones may price: rows file, parameters -> predictions."""


COMMANDED = ("kernels", "mlperf", "serving", "published", "training", "mlperf_training")
"""Suites whose rows are questions that a user can ask on the command line."""

SPELT: dict[str, Suite] = {"kernels": lambda rows: predict_kernels(rows, commands=True)}
"""Suites of so many rows that their commands are only put together where they are asked for."""


def predict_suite(
    suite: str,
    rows: str,
    out: str,
    anchors: str | None = None,
    parameters: Parameters | None = None,
    commands: str | None = None,
) -> tuple[int, int]:
    """Predict every row of a suite into a CSV; returns (lines written, rows refused).

    `anchors` names measured rows that the user owns; `parameters` replace the shipped ones; `commands` names a CSV
    for the command line of each answered row that gives the same figures. A row that cannot be answered becomes a
    line with the reason. Raises `UnknownNameError` for an unknown suite, `UsageError` for unreadable rows.
    """
    if suite not in SUITES:
        raise UnknownNameError("suite", suite, SUITES, f"one of {', '.join(SUITES)}")
    output_file(out, rows, anchors)  # before the work is done
    if commands is not None:
        output_file(commands, rows, anchors)
        if suite not in COMMANDED:
            raise UsageError(f"{suite} has no command lines", f"--commands is for {', '.join(COMMANDED)}")
    if anchors is not None and suite not in ANCHORED:
        raise UsageError(f"{suite} takes no anchors", f"--anchors is for {', '.join(ANCHORED)}")
    if parameters is not None and (anchors is not None or suite not in PRICED):
        raise UsageError(
            f"{suite} takes no parameters here", f"--parameters is for {', '.join(PRICED)}, without anchors"
        )
    if parameters is not None:
        answers = every_row(suite, lambda part: PRICED[suite](part, parameters), rows)
    elif anchors is None:
        spelt = SPELT if commands is not None else {}
        answers = every_row(suite, spelt.get(suite, SUITES[suite]), rows)
    else:
        answers = _anchored(suite, rows, anchors)
    written = write_predictions(answers, out)
    if commands is not None:
        write_commands(answers, commands)
    return written, sum(1 for a in answers if a.refused)


def every_row(suite: str, answer: Suite, rows: str) -> list[Predicted]:
    """The lines of every row of a table, whatever the others hold: where an answer cannot be computed the table is
    halved until the row that is the cause stands alone, and that row is refused.

    A figure that overflows, divides by zero or is not finite is no answer. Raises `UsageError` for a table that cannot
    be read.
    """
    try:
        with warnings.catch_warnings(), np.errstate(divide="raise", over="raise", invalid="raise"):
            warnings.simplefilter("error", RuntimeWarning)
            return [_finite(line) for line in answer(rows)]
    except ChipwiseError:
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError, RuntimeWarning) as error:
        table = rows.rows if isinstance(rows, Part) else tuple(read_rows(rows, ()))
        if len(table) == 1:
            why = f"it cannot be computed: {shorten(str(error) or type(error).__name__, 200)} ({_check(table[0])})"
            return [
                Predicted(table[0]["row_id"], name, None, refused=why)
                for name in METRICS.get(suite, (suite,))
            ]
    half = len(table) // 2
    parts = (Part.of(rows, table[:half]), Part.of(rows, table[half:]))
    return [line for part in parts for line in every_row(suite, answer, part)]


def _anchored(suite: str, rows: str, anchors: str) -> list[Predicted]:
    """The lines of every row with anchors; an anchor that itself has no answer anchors nothing."""
    found = every_row(suite, SUITES[suite], anchors)
    refused = {line.row_id for line in found if line.refused}
    own = [row for row in read_rows(anchors, ("row_id",)) if row["row_id"] not in refused]
    sound = Part.of(anchors, own) if own and refused else anchors
    return every_row(suite, lambda part: ANCHORED[suite](part, sound), rows)


def _check(row: Row) -> str:
    """Which figures of a row to look at: those that no machine and no measurement has."""
    odd = []
    for name, cell in row.items():
        with contextlib.suppress(ValueError):
            if not 0.0 <= float(cell) < LARGEST:
                odd.append(f"{name} {shorten(cell, 20)}")
    return f"check {', '.join(odd[:4])}" if odd else "check its figures"


def _finite(line: Predicted) -> Predicted:
    """A line whose figures can be; otherwise its refusal."""
    figures = (line.mid, line.low, line.high)
    if all(x is None or 0.0 <= x < LARGEST**2 for x in figures):
        return line
    return Predicted(
        line.row_id, line.metric, None, refused="its answer is beyond all bounds (check its figures)"
    )


def _answers(
    suite: str, answer: Callable[[Row, ModelConfig | None], Answer], rows: str
) -> Iterator[Predicted]:
    folder = Path(rows).parent / "models"
    for row in read_rows(rows, ("row_id",)):
        try:
            name = row.get("config_file", "")
            config = find_config(str(folder / name)) if name else None
            found = answer(row, config)
        except ChipwiseError as error:
            yield Predicted(row["row_id"], suite, None, refused=str(error))
            continue
        for metric, value in found.items():
            if value is not None:
                # counted, not estimated: the interval is the figure
                yield Predicted(row["row_id"], metric, value, value, value, "modelled")
