"""The serving fit: pure, recovers what made the rows, leaves what was never seen at its prior, and ships."""

from __future__ import annotations

import numpy as np
import pytest

from chipwise.calibrate.fit_serving import ServingFit, ServingRows, fit_serving, served_overheads
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.calibrate.table import read_table, write_table
from chipwise.catalog.chips import get_chip
from chipwise.predict.engines import Engines
from chipwise.predict.parts import PARTS
from chipwise.predict.passes import BATCHES, PassTable

ROWS = 60


def made() -> tuple[Engines, dict[str, np.ndarray]]:
    """Engines of two runtimes whose passes are one part that reads weights and one that starts kernels."""
    rng = np.random.default_rng(2)
    decode = np.zeros((ROWS, len(BATCHES), len(PARTS)))
    weights = rng.uniform(2e-3, 2e-2, ROWS)
    decode[:, :, PARTS.index("gemm.w8.memory")] = weights[:, None]
    decode[:, :, PARTS.index("launch")] = rng.uniform(1e-3, 8e-3, ROWS)[:, None]
    decode[:, :, PARTS.index("decode.memory")] = 2e-5 * BATCHES
    mixed = decode.copy()
    mixed[:, :, PARTS.index("gemm.fp8.compute")] += rng.uniform(1e-2, 1e-1, ROWS)[:, None]
    table = PassTable(BATCHES, decode, mixed, mixed[:, 0], np.ones(ROWS), mixed[:, 0])
    one, zero = np.ones(ROWS), np.zeros(ROWS)
    engines = Engines(
        table, table, 2.0 ** rng.integers(0, 8, ROWS), 500 * one, 1e9 * one, one, zero, zero, zero, zero
    )
    runtime = np.where(np.arange(ROWS) % 2, "vllm", "trtllm")
    labels = {
        name: np.full(ROWS, name) for name in ("generation", "family", "period", "harness", "mode", "chip")
    }
    return engines, {**labels, "runtime": runtime, "stack": runtime}


@pytest.fixture(scope="module")
def rows() -> ServingRows:
    engines, labels = made()
    slow = np.where(labels["runtime"] == "vllm", 1.6, 1.0)
    served = engines.served({"launch": slow, "request_s": 0.08, "stream_tokens": 10.0})
    return ServingRows(engines, labels, served.tpot_s, served.ttft_s)


@pytest.fixture(scope="module")
def fitted(rows: ServingRows) -> ServingFit:
    return fit_serving(rows)


def test_the_fit_explains_what_made_the_rows(rows: ServingRows, fitted: ServingFit) -> None:
    served = rows.engines.served(fitted.values(rows.labels))
    assert np.median(np.abs(served.tpot_s / rows.tpot_s - 1)) < 0.02
    assert np.median(np.abs(served.ttft_s / rows.ttft_s - 1)) < 0.05
    launch = fitted.passes.values(rows.labels)["launch"]
    assert np.mean(launch[rows.labels["runtime"] == "vllm"]) > 1.2 * np.mean(
        launch[rows.labels["runtime"] == "trtllm"]
    )


def test_it_is_pure(rows: ServingRows, fitted: ServingFit) -> None:
    again = fit_serving(rows)
    assert {k: e.value for k, e in again.passes.table.items()} == {
        k: e.value for k, e in fitted.passes.table.items()
    }


def test_parts_without_rows_keep_their_prior(fitted: ServingFit, rows: ServingRows) -> None:
    values = fitted.passes.values(rows.labels)
    assert values["experts.fp4.compute"] == pytest.approx(np.ones(ROWS), abs=1e-6)


def test_parameters_are_written_and_read_back(rows: ServingRows, fitted: ServingFit) -> None:
    numbers = Parameters(read_table(write_table(fitted.parameters()), "serving.csv"))
    read = ServingFit.of(numbers).values(rows.labels)
    for name, column in fitted.values(rows.labels).items():
        assert np.broadcast_to(read[name], (ROWS,)) == pytest.approx(
            np.broadcast_to(column, (ROWS,)), rel=0.02
        )


def test_nothing_fitted_is_all_priors(rows: ServingRows) -> None:
    values = ServingFit.of(Parameters({})).values(rows.labels)
    assert float(np.max(np.asarray(values["whole"]))) == 1
    assert float(np.max(np.asarray(values["request_s"]))) == pytest.approx(0.02)


def test_plans_get_the_factors_of_their_runtime() -> None:
    numbers = shipped_parameters()
    chips = [get_chip("h100-sxm5-80gb"), get_chip("b200-sxm")]
    served = served_overheads(numbers, "simt", "vllm", chips, "llama")
    assert set(served.factors) == set(PARTS)
    assert all(np.shape(v) == (2,) and np.all(np.asarray(v) > 0) for v in served.factors.values())
    at = served.take(np.array([[1], [0], [0]]))
    assert all(np.shape(v) == (3, 1) for v in at.factors.values())
    for family, runtime in (("systolic", "vllm-tpu"), ("simt", "llama.cpp"), ("cpu", "vllm-cpu")):
        assert not served_overheads(numbers, family, runtime, chips[:1], "llama").factors


def test_everything_shipped_is_read_back() -> None:
    """A name that is shipped and not read would be a factor lost: those of parts of a pass hold dots."""
    table = shipped_parameters().table
    shipped = {name for name in table if name.startswith("serving.") and ".seen." not in name}
    assert any(name.count(".") > 4 for name in shipped)
    read = ServingFit.of(shipped_parameters()).parameters()
    assert {name for name in shipped if ".scatter." not in name} <= set(read)
    assert all(read[name].value == pytest.approx(table[name].value) for name in read if name in table)
