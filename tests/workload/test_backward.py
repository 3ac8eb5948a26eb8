"""The backward pass and the update, once for all that trains."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.chips import get_chip
from chipwise.cost.device import Device
from chipwise.cost.price import price
from chipwise.errors import UsageError
from chipwise.workload.backward import backward, gradients, update
from chipwise.workload.formats import FORMATS
from chipwise.workload.op import Op, attention, convolution, gemm, pointwise
from chipwise.workload.program import Program, Stage


def _seconds(op: Op, name: str) -> float:
    chip = get_chip(name)
    costs = shipped_parameters().cost(chip.family, "any", [chip]).take(np.zeros((), dtype=np.intp))
    return float(np.asarray(price(op, Device.of(chip), costs).total_s))


@pytest.mark.parametrize("chip", ["h100-sxm5-80gb", "a100-sxm4-80gb", "mi300x", "l4"])
@pytest.mark.parametrize("form", ["bf16", "fp32"])
@pytest.mark.parametrize(("m", "n", "k"), [(32.0, 6144.0, 4096.0), (4096.0, 14336.0, 4096.0)])
def test_gradients_cost_what_products_of_their_size_cost(chip: str, form: str, m: float, n: float, k: float) -> None:
    f = FORMATS[form]
    (_, inputs), (_, weights) = gradients(gemm(m, n, k, f, f))
    assert _seconds(inputs, chip) == pytest.approx(_seconds(gemm(m, k, n, f, f), chip), rel=1e-3)
    assert _seconds(weights, chip) == pytest.approx(_seconds(gemm(n, k, m, f, f), chip), rel=1e-3)


def test_operations_and_bytes_of_a_backward_pass() -> None:
    product = gemm(64.0, 256.0, 128.0)
    for op in (product, convolution(8, 64, 128, 3136, 784, 9)):
        assert sum(n * float(x.flops) for n, x in gradients(op)) == 2.0 * float(op.flops)
        assert all(float(x.bytes) == pytest.approx(float(op.bytes)) for _, x in gradients(op))
    core = attention(1, 2048, 2048, 16, 16, 128)
    whole = Stage("model", ((3.0, core), (2.0, product), (1.0, pointwise(1e6, 2.0))), kept_bytes=7.0)
    step = backward(Program("a network", (whole,)))
    assert [n for n, _ in step.stages[0].ops] == [3.0, 2.0, 1.0, 1.5, 2.0, 2.0, 7.5]
    assert step.trained
    assert step.settings == {"saved_bytes": 7.0}
    assert gradients(replace(product, dims={**product.dims, "frozen": 1.0})) == ()


def _step(bytes_each: float) -> Program:
    product = gemm(64.0, 500.0, 2000.0)
    weights = Stage("model", ((1.0, product),), parameters=1_000_000, weight_bytes=1e6 * bytes_each)
    return backward(Program("a network", (weights,)))


def test_an_update_reads_the_gradient_and_reads_and_writes_all_else() -> None:
    for optimizer, width, moved in (
        ("adamw", 4.0, 28.0),
        ("adamw", 2.0, 14.0),
        ("sgd", 4.0, 20.0),
        ("adamw-8bit", 4.0, 16.06),
        ("adamw-8bit", 2.0, 10.06),
    ):
        (_, op), *rest = update(_step(width), optimizer).stages[-1].ops
        assert not rest
        assert float(op.bytes) == pytest.approx(1e6 * moved)
    assert [stage.name for stage in update(_step(2.0), "none").stages] == ["model"]
    with pytest.raises(UsageError, match=r"'adam' is not known \(one of adamw"):
        update(_step(2.0), "adam")


def test_an_update_that_makes_matrices_orthogonal_multiplies_for_each_row_of_their_shorter_side() -> None:
    (_, _), (_, products) = update(_step(2.0), "muon").stages[-1].ops
    assert float(products.flops) == pytest.approx(30.0 * 500.0 * 1e6)
