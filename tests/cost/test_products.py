"""Operators as matrix products: no work is lost, and short ones fill a tile."""

from __future__ import annotations

import numpy as np
import pytest

from chipwise.cost.products import every_expert, products, stretch
from chipwise.workload.moe import distinct_experts
from chipwise.workload.op import Op, attention, gemm, lookup, pointwise, scan


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


def test_every_expert_for_every_token_is_all_weights_and_more_work() -> None:
    op = Op(
        kind="experts", name="experts", compute="bf16", flops=2.0 * 4 * 2 * 64 * 32 * 3, weight_bytes=1000.0,
        activation_bytes=50.0,
        dims={"tokens": 4.0, "top_k": 2.0, "experts": 16.0, "local_experts": 8.0, "hidden": 64.0, "inner": 32.0,
              "matrices": 3.0},
    )  # fmt: skip
    dense = every_expert(op, np.array([0.0, 3.0]))
    assert dense.flops[0] == op.flops
    assert dense.flops[1] == op.flops * 16 / 2
    assert dense.weight_bytes[0] == 1000.0
    hit = distinct_experts(4.0, 16.0, 2.0) / 2
    assert np.isclose(dense.weight_bytes[1], 1000.0 * 8 / hit)
    assert np.allclose(dense.activation_bytes, [50.0, 50.0 + 2 * 3 * 8 * 4 * 64])
    up, _ = products(dense)
    assert np.isclose(up.batch[1], 8.0)
    assert np.isclose(up.m[1], 4.0), "every local expert sees every token"
