"""How many experts a batch of tokens reaches, and what a rank of a mixture computes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.workload.axes import Axis, Sizes, Tensor
from chipwise.workload.formats import FORMATS
from chipwise.workload.moe import distinct_experts
from chipwise.workload.nodes import Experts
from chipwise.workload.step import decode

BF16 = FORMATS["bf16"]
M, E, X = Axis("M"), Axis("E"), Axis("X")


def test_one_token_reaches_its_own() -> None:
    assert distinct_experts(1, 256, 8) == pytest.approx(8)
    assert distinct_experts(0, 256, 8) == 0


def test_many_tokens_reach_all() -> None:
    assert distinct_experts(1e6, 256, 8) == pytest.approx(256)
    assert distinct_experts(3, 8, 8) == 8, "choosing all"
    assert distinct_experts(0, 8, 8) == 0


def test_two_tokens() -> None:
    # the second misses the first one's choice with probability 1 - k / E per expert
    assert distinct_experts(2, 10, 3, skew=1.0) == pytest.approx(3 + 3 * 7 / 10)


def test_tokens_of_one_batch_choose_alike() -> None:
    few, some, many = (distinct_experts(n, 256, 8) / distinct_experts(n, 256, 8, skew=1.0) for n in (1, 32, 4096))
    assert few == pytest.approx(1.0)
    assert 0.75 < some < 0.9
    assert many == pytest.approx(1.0)


@pytest.mark.parametrize(("tokens", "experts", "top_k"), [(4, 16, 2), (20, 64, 4), (100, 128, 8)])
def test_as_many_as_drawing_at_random(tokens: int, experts: int, top_k: int) -> None:
    rng = np.random.default_rng(5)
    trials = 2000
    keys = rng.random((trials, tokens, experts))
    chosen = np.argpartition(keys, top_k, axis=-1)[..., :top_k].reshape(trials, -1)
    hit = np.array([len(np.unique(row)) for row in chosen])
    error = hit.std() / np.sqrt(trials)
    assert distinct_experts(tokens, experts, top_k, skew=1.0) == pytest.approx(hit.mean(), abs=4 * error)


@given(st.integers(1, 500), st.integers(2, 256), st.integers(1, 16), st.floats(0.5, 1.0))
def test_bounds_and_skew(tokens: int, experts: int, top_k: int, skew: float) -> None:
    top_k = min(top_k, experts)
    even = distinct_experts(tokens, experts, top_k, skew=1.0)
    assert top_k * (1 - 1e-9) <= even <= min(experts, tokens * top_k) * (1 + 1e-9)
    assert distinct_experts(tokens, experts, top_k, skew) <= even * (1 + 1e-12)
    assert distinct_experts(tokens + 1, experts, top_k, skew) >= distinct_experts(tokens, experts, top_k, skew)


def mixture(experts: int = 64, top_k: int = 4) -> tuple[Experts, dict[str, int]]:
    def tensor(name: str, rows: object, cols: object) -> Tensor:
        return Tensor(name, "expert", rows, cols, BF16, copies=E)  # type: ignore[arg-type]

    node = Experts((tensor("gate", X, M), tensor("up", X, M)), tensor("down", M, X), top_k, BF16)
    return node, {"M": 1024, "E": experts, "X": 512}


def test_flops_of_the_chosen_and_bytes_of_the_hit() -> None:
    node, axes = mixture()
    (op,) = node.ops(Sizes(axes), decode(10, 100))
    one = 3 * 1024 * 512
    assert op.flops == 2 * 10 * 4 * one
    assert op.weight_bytes == pytest.approx(2 * one * distinct_experts(10, 64, 4))


@pytest.mark.parametrize("cut", [{"E": 8.0}, {"X": 8.0}, {"E": 2.0, "X": 4.0}])
def test_ranks_add_up_to_the_whole(cut: dict[str, float]) -> None:
    node, axes = mixture()
    (whole,) = node.ops(Sizes(axes), decode(10, 100))
    (rank,) = node.ops(Sizes(axes, cut), decode(10, 100))
    assert 8 * rank.flops == pytest.approx(whole.flops)
    assert 8 * rank.weight_bytes == pytest.approx(whole.weight_bytes)


def test_tokens_of_all_replicas_meet_at_the_experts() -> None:
    node, axes = mixture()
    (together,) = node.ops(Sizes(axes, {"E": 4.0}, replicas=4.0), decode(10, 100))
    (forty,) = node.ops(Sizes(axes, {"E": 4.0}), decode(40, 100))
    assert together.flops == forty.flops
    assert together.weight_bytes == pytest.approx(forty.weight_bytes)
