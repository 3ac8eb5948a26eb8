"""Graphs: runs, sums over blocks, caches, tied tables."""

from __future__ import annotations

import numpy as np
import pytest

from chipwise.workload.axes import Axis, Sizes
from chipwise.workload.build import build
from chipwise.workload.cache import KVSpec
from chipwise.workload.formats import FORMATS
from chipwise.workload.graph import Graph
from chipwise.workload.model import Dense, Layer, Model, MoE, SelfAttention
from chipwise.workload.precision import uniform

M, F, V, L = 512, 1024, 4000, 6
LAYER = Layer(SelfAttention(8, 2, 64), Dense(F))


def network(runs: tuple[tuple[int, Layer], ...] = ((L, LAYER),), *, tied: bool = False, fmt: str = "bf16") -> Graph:
    return build(Model("toy", "llama", M, V, runs, uniform(fmt), tied=tied))


ATTENTION = M * (8 + 2 + 2) * 64 + 8 * 64 * M
FFN = 3 * M * F
PER_LAYER = ATTENTION + FFN + 2 * M


def test_parameters_by_hand() -> None:
    assert network().parameters == L * PER_LAYER + 2 * V * M + M
    assert network(tied=True).parameters == L * PER_LAYER + V * M + M


def test_a_token_touches_all_but_the_table() -> None:
    assert network().active_params() == L * PER_LAYER + V * M + M
    assert network().active_params(embedding=True) == network().parameters
    assert network(tied=True).active_params() == L * PER_LAYER + V * M + M, "a tied table is the head"


def test_a_token_touches_the_chosen_experts() -> None:
    layer = Layer(SelfAttention(8, 2, 64), MoE(16, 2, 256))
    found = network(((L, layer),))
    expert = 3 * M * 256
    assert found.parameters - found.active_params(embedding=True) == L * 14 * expert


def test_equal_layers_share_a_block_wherever_they_stand() -> None:
    other = Layer(SelfAttention(8, 2, 64, window=128), Dense(F))
    found = network(((2, LAYER), (1, other), (3, LAYER)))
    assert found.layers == 6
    assert len(found.runs) == 3
    assert sorted(repeat for repeat, _ in found.distinct()) == [1, 5]
    assert found.parameters == network().parameters


def test_weight_bytes_follow_the_format_of_the_class() -> None:
    wide, narrow = network().weight_bytes_by_class, network(fmt="fp8").weight_bytes_by_class
    assert wide["ffn"] == 2 * L * FFN
    assert narrow["ffn"] == pytest.approx(L * FFN, rel=1e-4)
    assert (narrow["embedding"], narrow["head"]) == (2 * V * M, 2 * V * M), "tables stay 16 bit"
    assert sum(wide.values()) == network().weight_bytes


def test_cache_of_one_sequence() -> None:
    per_token = L * 2 * 2 * 64 * 2
    assert network().kv_bytes(1000) == 1000 * per_token
    assert network().kv_bytes_per_token() == per_token
    assert network().kv_bytes(1000, page=16) == 1008 * per_token
    assert network().kv_bytes(0) == 0


def test_a_window_stops_growing() -> None:
    windowed = Layer(SelfAttention(8, 2, 64, window=128), Dense(F))
    found = network(((3, LAYER), (3, windowed)))
    per_layer = 2 * 2 * 64 * 2
    assert found.kv_bytes(1000) == per_layer * 3 * (1000 + 128)
    assert found.kv_bytes(100) == per_layer * 3 * (100 + 100)
    assert found.kv_bytes_per_token() == per_layer * 3


@pytest.mark.parametrize(
    ("context", "page", "tokens"), [(0, 16, 0), (1, 16, 16), (16, 16, 16), (17, 16, 32), (17, 1, 17)]
)
def test_pages_are_whole(context: int, page: int, tokens: int) -> None:
    spec = KVSpec("full", Axis("K"), FORMATS["bf16"])
    assert spec.tokens(context, page) == tokens


def test_kinds_of_cache() -> None:
    sizes, per_token = Sizes({"K": 10}), Axis("K")
    bf16 = FORMATS["bf16"]
    assert KVSpec("state", per_token, bf16).bytes(sizes, 10_000, 256) == 20, "one, in no pages"
    assert KVSpec("cross", per_token, bf16, window=64).bytes(sizes, 10_000) == 64 * 20
    assert KVSpec("latent", per_token, bf16, every=4).bytes(sizes, 1003) == 250 * 20
    assert KVSpec("window", per_token, bf16, window=64).growth_bytes(sizes) == 0
    contexts = np.array([1.0, 64.0, 1000.0])
    assert KVSpec("window", per_token, bf16, window=64).tokens(contexts).tolist() == [1, 64, 64]


def test_a_cache_may_be_narrower_than_the_weights() -> None:
    model = Model("toy", "llama", M, V, ((L, LAYER),), uniform("bf16").with_kv("fp8"))
    assert build(model).kv_bytes(1000) == network().kv_bytes(1000) / 2
