"""`predict SUITE`: the acceptance contract. Rows in, predictions out, measured columns ignored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from chipwise.api.suites.kernels import kernel_commands, predict_kernels
from chipwise.api.suites.mlperf import predict_mlperf
from chipwise.api.suites.serving import predict_serving
from chipwise.api.suites.speeds import predict_speeds
from chipwise.api.suites.training import predict_training
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.configs import ModelConfig, find_config
from chipwise.errors import ChipwiseError, UnknownNameError, UsageError
from chipwise.evidence.rows import Predicted, Row, read_rows, write_predictions, write_table
from chipwise.evidence.systolic_rows import systolic_row
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


def _systolic(row: Row, _: ModelConfig | None) -> Answer:
    return systolic_row(row)


Suite = Callable[[str], Iterator[Predicted]]
"""Rows file -> predictions, in the order of the rows."""


def _each(suite: str, answer: Callable[[Row, ModelConfig | None], Answer]) -> Suite:
    """The suite that answers a row at a time."""
    return lambda rows: _answers(suite, answer, rows)


SUITES: dict[str, Suite] = {
    "model_params": _each("model_params", _model_params),
    "kv_cache": _each("kv_cache", _kv_cache),
    "systolic": _each("systolic", _systolic),
    "kernels": predict_kernels,
    "mlperf": predict_mlperf,
    "serving": predict_serving,
    "token_speeds": predict_speeds,
    "training": predict_training,
    "mlperf_training": predict_training,
}


ANCHORED: dict[str, Callable[[str, str], Iterator[Predicted]]] = {
    "serving": predict_serving,
    "mlperf": predict_mlperf,
    "training": predict_training,
    "mlperf_training": predict_training,
}
"""Suites that measured rows of the user's own may correct: rows file, anchors file -> predictions."""


PRICED: dict[str, Callable[[str, Parameters], Iterator[Predicted]]] = {
    "kernels": predict_kernels,
    "serving": lambda rows, numbers: predict_serving(rows, None, numbers),
}
"""Suites that other parameters than the shipped ones may price: rows file, parameters -> predictions."""


COMMANDED: dict[str, Callable[[str, list[Predicted]], Iterator[tuple[str, str]]]] = {
    "kernels": kernel_commands,
}
"""Suites whose rows are questions one can type: rows file, answers -> row_id and command of every answered row."""


def predict_suite(
    suite: str,
    rows: str,
    out: str,
    anchors: str | None = None,
    parameters: Parameters | None = None,
    commands: str | None = None,
) -> tuple[int, int]:
    """Predict every row of a suite into a CSV; returns (lines written, rows refused).

    `anchors` names measured rows that the user owns; `parameters` replace the shipped ones;
    `commands` names a CSV for row_id and the command line that gives the same figures. A row that cannot be
    answered becomes a line with the reason. Raises `UnknownNameError` for an unknown suite, `UsageError` for
    unreadable rows.
    """
    if suite not in SUITES:
        raise UnknownNameError("suite", suite, SUITES, f"one of {', '.join(SUITES)}")
    if Path(out).resolve() == Path(rows).resolve():
        raise UsageError(f"{out}: --out would replace the rows", "give another file")
    if anchors is not None and suite not in ANCHORED:
        raise UsageError(f"{suite} takes no anchors", f"--anchors is for {', '.join(ANCHORED)}")
    if commands is not None and suite not in COMMANDED:
        raise UsageError(f"{suite} has no command lines", f"--commands is for {', '.join(COMMANDED)}")
    if parameters is not None and (anchors is not None or suite not in PRICED):
        raise UsageError(
            f"{suite} takes no parameters here", f"--parameters is for {', '.join(PRICED)}, without anchors"
        )
    if parameters is not None:
        answers = list(PRICED[suite](rows, parameters))
    else:
        answers = list(SUITES[suite](rows) if anchors is None else ANCHORED[suite](rows, anchors))
    if commands is not None:
        write_table(("row_id", "command"), COMMANDED[suite](rows, answers), commands)
    return write_predictions(answers, out), sum(1 for a in answers if a.refused)


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
