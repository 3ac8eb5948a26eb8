from __future__ import annotations

import numpy as np
import pytest

from chipwise.calibrate.fit_media import TIMES, media_labels
from chipwise.calibrate.fit_tuned import TUNED, TunedRows, fit_tuned, tuned_numbers
from chipwise.calibrate.parameters import Parameters
from chipwise.cost.cost import Cost
from chipwise.predict.pipeline import StageTimes

SIZE = 60


def rows(product: float, request: float = 1.0) -> TunedRows:
    """Networks of products and element-wise work, a third of them timed alone, faster than stock by a factor."""
    rng = np.random.default_rng(3)
    gemm, work = rng.uniform(0.5, 2.0, SIZE), rng.uniform(0.1, 0.5, SIZE)
    stage = StageTimes(
        "", np.ones(SIZE), {"gemm": Cost({"compute": gemm}), "pointwise": Cost({"memory": work})}, np.zeros(SIZE)
    )
    plain = {name: np.full(SIZE, 1.0) for name in TIMES.quantities}
    stock = {**plain, "energy": np.zeros(SIZE), "host_s": np.zeros(SIZE), "call_s": np.zeros(SIZE)}
    labels = {
        name: np.full(SIZE, value)
        for name, value in {"compute": "b16", "vendor": "v", "generation": "g", "unit": "image"}.items()
    }
    alone = (np.arange(SIZE) % 3 == 0).astype(float)
    whole = product * gemm + work + request * alone
    return TunedRows(labels, whole, (stage,), stock, alone)


def test_the_fit_finds_the_factor_that_made_the_rows() -> None:
    made = rows(0.4)
    fitted = fit_tuned(made, ["c"] * SIZE)
    assert np.allclose(made.predicted(fitted.effects.values(made.labels)), made.measured, rtol=0.1)
    assert fitted.chips == {"c"}


def test_at_full_load_what_a_host_adds_is_hidden() -> None:
    made = rows(0.5)
    factors = {name: np.full(SIZE, 1.0) for name in TUNED.quantities}
    loaded = made.predicted(factors)
    more = {**factors, "request_s": np.full(SIZE, 5.0)}
    slower = made.predicted(more) > loaded
    assert np.array_equal(slower, made.alone > 0.0)


def test_what_is_shipped_comes_back() -> None:
    made = rows(0.4)
    fitted = fit_tuned(made, ["c"] * SIZE)
    again = tuned_numbers(Parameters(fitted.parameters()))
    labels = media_labels(compute="b16", vendor="v", generation="g", unit="image")
    for name, value in fitted.effects.values(labels).items():
        assert again.effects.values(labels)[name][0] == pytest.approx(value[0], rel=0.02), name
