"""Operators as matrix products: no work is lost, and short ones fill a tile."""

from __future__ import annotations

import numpy as np
import pytest

from chipwise.cost.products import products, stretch
from chipwise.workload.op import attention, gemm, lookup, pointwise, scan


def macs(op: object) -> float:
    return float(sum(np.asarray(p.macs) for p in products(op)))  # type: ignore[arg-type]


def test_a_product_is_itself() -> None:
    (p,) = products(gemm(3.0, 5.0, 7.0, batch=2.0))
    assert (p.m, p.n, p.k, p.batch) == (3.0, 5.0, 7.0, 2.0)
    assert 2 * p.macs == gemm(3.0, 5.0, 7.0, batch=2.0).flops


def test_heads_of_a_group_are_rows_over_shared_keys() -> None:
    op = attention(4.0, 1.0, 1000.0, 32.0, 8.0, 128.0)
    scores, sums = products(op)
    assert (float(scores.m), float(scores.n), scores.k, scores.batch) == (4.0, 1000.0, 128.0, 32.0)
    assert (float(sums.m), sums.n, float(sums.k)) == (4.0, 128.0, 1000.0)
    assert 2 * macs(op) == pytest.approx(op.flops)


def test_prompts_compute_half_a_tile_of_masked_keys() -> None:
    op = attention(1.0, 4096.0, 4096.0, 32.0, 32.0, 128.0)
    assert 2 * macs(op) / op.flops == pytest.approx(1 + 64 / 2048.5, rel=1e-3)


@pytest.mark.parametrize("op", [pointwise(1e6, 2.0), lookup(8.0, 4096.0), scan(8, 1, 32, 1e6, 1e6, 8192)])
def test_what_multiplies_nothing_has_no_products(op: object) -> None:
    assert products(op) == ()  # type: ignore[arg-type]
    assert float(np.asarray(stretch(op, 16.0))) == 1.0  # type: ignore[arg-type]


def test_rows_are_rounded_up_to_tiles() -> None:
    rows = np.array([1.0, 16.0, 17.0, 4096.0])
    found = np.asarray(stretch(gemm(rows, 4096.0, 4096.0), 16.0))
    assert found == pytest.approx([16.0, 1.0, 32 / 17, 1.0])
