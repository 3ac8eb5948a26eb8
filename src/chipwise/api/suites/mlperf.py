"""MLPerf runs predicted: physics of `mlperf_rates`, factors of `calibrate.fit_mlperf`, intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator

from chipwise.api.suites.mlperf_rates import language_curve
from chipwise.calibrate.fit_mlperf import (
    FitRow,
    Fitted,
    predict,
    shipped_mlperf,
)
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.errors import ChipwiseError, UsageError
from chipwise.evidence.mlperf_anchors import Anchor, correction
from chipwise.evidence.mlperf_features import features
from chipwise.evidence.mlperf_fixed import fixed_curve
from chipwise.evidence.mlperf_rows import SLACK, Curve, Run, read_run
from chipwise.evidence.mlperf_tiers import Tier, group_of, interval, tier_of
from chipwise.evidence.rows import Predicted, read_rows

__all__ = [
    "fit_row",
    "measured_log",
    "predict_mlperf",
    "predict_run",
    "read_anchors",
    "run_curve",
]

# LoadGen's percentiles end close to the limit that binds and well inside the other: shares of the limit that
# 300 logged runs ended at, median and 80 % (TPOT), and the factor of 80 % around the TTFT estimate.
TPOT_OF_LIMIT = (0.60, 0.90, 0.99)
TTFT_FACTOR = (0.4, 2.2)


def run_curve(run: Run, parameters: Parameters | None = None) -> Curve:
    """What physics reaches for a run. Raises `UsageError` where it has no answer."""
    if run.benchmark.kind == "llm":
        return language_curve(run, parameters or shipped_parameters())
    return fixed_curve(run)


def fit_row(run: Run, parameters: Parameters | None = None, log_measured: float = math.nan) -> FitRow:
    """A run as the fit reads it."""
    curve = run_curve(run, parameters)
    speed, limit = features(run, curve)
    return FitRow(run.id, run.cell, SLACK, curve.log_rate, speed, limit, log_measured)


Range = tuple[float, float, float]
"""Middle, low and high of the 80 % interval."""


def predict_mlperf(rows: str, anchors: str | None = None) -> Iterator[Predicted]:
    """The suite `mlperf`: rows of mlperf_inference.csv -> `result`, `tokens_per_s`, `ttft_p99_ms`, `tpot_p99_ms`.

    `anchors` names measured rows that the user owns; rows of the same chip and benchmark are moved towards them.
    A row without an answer becomes a line with the reason. Raises `UsageError` for anchors without a figure.
    """
    known = read_anchors(anchors) if anchors else ()
    for row in read_rows(rows, ("row_id", "model_base", "scenario")):
        try:
            run = read_run(row)
            shift, used = correction(run, known)
            found = predict_run(run, None, shift if used else None)
        except ChipwiseError as error:
            yield Predicted(row["row_id"], "result", None, refused=str(error))
            continue
        for metric, value in found.items():
            if value is not None:
                basis = "measured" if used and metric in ("result", "tokens_per_s") else "calibrated"
                yield Predicted(row["row_id"], metric, *value, basis)


def read_anchors(path: str, fitted: Fitted | None = None) -> tuple[Anchor, ...]:
    """Rows with measured figures and how they differ from what is predicted for them.

    Rows that cannot be predicted anchor nothing. Raises `UsageError` where no row has a figure.
    """
    found, measured = [], 0
    for row in read_rows(path, ("row_id", "model_base", "scenario")):
        try:
            result = float(row.get("result") or "nan")
        except ValueError:
            continue
        if not (math.isfinite(result) and result > 0):
            continue
        measured += 1
        try:
            run = read_run(row)
            found.append(Anchor(run, measured_log(run, result) - _log_rate(run, fitted)[0]))
        except ChipwiseError:
            continue
    if not measured:
        raise UsageError(f"{path}: no measured rows", "anchors need the column result")
    return tuple(found)


def predict_run(
    run: Run, fitted: Fitted | None = None, shift: float | None = None
) -> dict[str, Range | None]:
    """`result` in the run's unit, and where they mean something `tokens_per_s` and the percentiles; `shift` is the
    logarithm by which anchors move it, None where it has none. Raises `ChipwiseError` where there is no answer.
    """
    log_rate, curve = _log_rate(run, fitted)
    numbers = fitted or shipped_mlperf()
    tier: Tier = "own" if shift is not None else tier_of(run, numbers.seen.get(group_of(run), frozenset()))
    low, high = interval(run, tier, numbers.spread)
    log_rate += shift or 0.0
    rates = (math.exp(log_rate), math.exp(log_rate + low), math.exp(log_rate + high))
    tokens = rates if _counts_tokens(run) and not run.unit.startswith("Latency") else None
    return {"result": _in_unit(run, rates), "tokens_per_s": tokens} | _percentiles(run, curve)


def _log_rate(run: Run, fitted: Fitted | None) -> tuple[float, Curve]:
    curve = run_curve(run)
    speed, limit = features(run, curve)
    row = FitRow(run.id, run.cell, SLACK, curve.log_rate, speed, limit)
    return float(predict([row], fitted or shipped_mlperf())[0]), curve


def _percentiles(run: Run, curve: Curve) -> dict[str, Range | None]:
    """99th percentiles in milliseconds of a served run: submitters load a system until a limit is close."""
    limit = run.benchmark.limits.get(run.scenario)
    if run.benchmark.kind != "llm" or limit is None or limit.ttft_s is None or limit.tpot_s is None:
        return {}
    low, mid, high = (1e3 * limit.tpot_s * share for share in TPOT_OF_LIMIT)
    # between what the prompt alone takes and the limit
    first = 1e3 * math.sqrt(min(curve.ttft_s, limit.ttft_s) * limit.ttft_s)
    ttft = (first, first * TTFT_FACTOR[0], min(first * TTFT_FACTOR[1], 1e3 * limit.ttft_s))
    return {"ttft_p99_ms": ttft, "tpot_p99_ms": (mid, low, high)}


def _counts_tokens(run: Run) -> bool:
    """Whether the curve of a run counts tokens: language models and whisper."""
    return run.benchmark.kind == "llm" or run.unit == "Tokens/s"


def _tokens_per_sample(run: Run) -> float:
    b = run.benchmark
    # the tables turn samples into tokens by the figure of the rules, the logs count what came out
    return b.nominal_output_tokens if b.kind == "llm" else b.output_tokens or 1.0


def _in_unit(run: Run, rates: tuple[float, float, float]) -> tuple[float, float, float]:
    mid, low, high = rates
    if run.unit.startswith("Latency"):
        scale = 1e3 if "ms" in run.unit else 1.0
        if _counts_tokens(run):
            scale *= run.benchmark.output_tokens
        return scale / mid, scale / high, scale / low
    if _counts_tokens(run) and run.unit != "Tokens/s":
        each = _tokens_per_sample(run)
        return mid / each, low / each, high / each
    return mid, low, high


def measured_log(run: Run, result: float) -> float:
    """The logarithm of a measured figure in the terms of the curve."""
    if run.unit.startswith("Latency"):
        scale = 1e3 if "ms" in run.unit else 1.0
        if _counts_tokens(run):
            scale *= run.benchmark.output_tokens
        return math.log(scale / result)
    if _counts_tokens(run) and run.unit != "Tokens/s":
        return math.log(result * _tokens_per_sample(run))
    return math.log(result)
