"""Numbers of pipelines: a fit finds factors that made its rows, and leaves the rest at what was believed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chipwise.calibrate.fit_media import (
    MEMORY,
    TIMES,
    MediaFit,
    MediaRows,
    fit_media,
    media_labels,
    media_numbers,
    pace_of,
)
from chipwise.calibrate.parameters import Parameters
from chipwise.cost.cost import Cost
from chipwise.predict.pipeline import StageTimes, seconds

LABELS = {
    "chip": "x", "core": "c", "generation": "g", "runtime": "r", "pace": "graph", "folds": "no", "attends": "framework",
    "dtype": "b16", "phase": "infer", "unit": "image", "use": "repeated", "layout": "nchw",
    "host": "server",
}  # fmt: skip


def request(gemm: float, conv: float, pointwise: float, calls: float) -> tuple[StageTimes, ...]:
    parts = {"gemm": gemm, "conv": conv, "pointwise": pointwise}
    main = StageTimes("main", calls, {p: Cost({"compute": s}) for p, s in parts.items()}, 100.0)  # type: ignore[misc]
    return (StageTimes("text", 1.0, {"gemm": Cost({"compute": 1e-3})}, 10.0), main)


def rows(count: int, conv: float, measured: float = 1.0, **labels: str) -> MediaRows:
    """Requests of which convolutions take `conv` times what was priced."""
    rng = np.random.default_rng(3)
    requests = [request(*rng.uniform(0.01, 0.2, 3), calls=float(rng.integers(1, 50))) for _ in range(count)]
    stages = MediaRows.together(requests)
    truth = {name: q.mid for name, q in TIMES.quantities.items()} | {"conv": conv, "host_s": 1e-7}
    names = LABELS | labels
    columns = {name: np.full(count, value) for name, value in names.items()}
    times = np.asarray(seconds(stages, pace_of(truth)).total_s)
    return MediaRows(columns, measured * times, stages, whole=np.ones(count))


def memory(count: int) -> MediaRows:
    weights, activations = np.linspace(1e8, 2e9, count), np.linspace(5e8, 9e9, count)[::-1]
    columns = {name: np.full(count, value) for name, value in LABELS.items()}
    reserved, device = (np.arange(count) % 3 > 0) * 1.0, (np.arange(count) % 3 > 1) * 1.0
    measured = weights + 1.5 * activations * (1.0 + 0.4 * reserved) + 1e9 * device
    return MediaRows(columns, measured, (), weights, activations, reserved, device)


def test_requests_side_by_side_take_what_they_take_alone() -> None:
    requests = [request(0.1, 0.2, 0.05, 20.0), request(0.01, 0.0, 0.3, 1.0), request(0.1, 0.2, 0.05, 20.0)[1:]]
    values = {name: q.mid for name, q in TIMES.quantities.items()}
    together = np.asarray(seconds(MediaRows.together(requests), pace_of(values)).total_s)
    assert together == pytest.approx([float(seconds(r, pace_of(values)).total_s) for r in requests])


def test_a_fit_finds_the_factor_of_convolutions() -> None:
    fitted = fit_media(rows(40, conv=2.4), memory(12))
    found = fitted.times.values(media_labels(**LABELS))
    product = found["product"][0] * found["conv"][0]
    truth = TIMES.quantities["product"].mid * 2.4
    assert product == pytest.approx(truth, rel=0.05)


def test_a_fit_finds_bytes_beyond_those_of_tensors() -> None:
    sized = memory(12)
    fitted = fit_media(rows(4, conv=1.2), sized)
    assert sized.predicted(fitted.memory.values(sized.labels)) == pytest.approx(sized.measured, rel=0.15)
    alone = replace(sized, reserved=np.zeros(12), device=np.zeros(12))
    assert np.all(alone.predicted(fitted.memory.values(sized.labels)) <= sized.measured * 1.15)


def test_numbers_are_shipped_and_read_again() -> None:
    fitted = fit_media(rows(40, conv=2.4), memory(12))
    shipped = media_numbers(Parameters(fitted.parameters()))
    labels = media_labels(**LABELS)
    for name, value in fitted.times.values(labels).items():
        assert shipped.times.values(labels)[name][0] == pytest.approx(value[0], rel=1e-3)
    assert "media.seen.chip=x" in shipped.seen


def test_what_no_row_tells_stays_as_believed() -> None:
    fitted = fit_media(rows(40, conv=2.4), memory(12))
    other = media_labels(**(LABELS | {"runtime": "another", "generation": "another", "chip": "another"}))
    assert fitted.times.values(other)["exchange"][0] == pytest.approx(TIMES.quantities["exchange"].mid)
    assert isinstance(fitted, MediaFit)
    assert set(fitted.memory.quantities) == set(MEMORY.quantities)


def test_a_step_is_timed_without_what_a_request_adds() -> None:
    whole = rows(10, conv=1.2)
    step = MediaRows(whole.labels, whole.measured, whole.stages, whole=np.zeros(10))
    values = {name: np.full(10, q.mid) for name, q in TIMES.quantities.items()}
    difference = whole.predicted(values) - step.predicted(values)
    assert difference == pytest.approx(TIMES.quantities["request_s"].mid)
