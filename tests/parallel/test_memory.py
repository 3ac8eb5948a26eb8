"""The memory of one device, worked by hand under the three policies of runtimes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from chipwise.catalog.runtime_spec import Policies, Runtime
from chipwise.catalog.software import all_software
from chipwise.parallel.layout import Layout
from chipwise.parallel.memory import (
    KEPT_FREE,
    MemoryAccount,
    MemoryItem,
    Verdict,
    account,
    kv_sequence_bytes,
    weight_items,
    workspace_bytes,
)
from chipwise.parallel.shard import shard
from chipwise.workload.build import build
from chipwise.workload.graph import Graph
from chipwise.workload.model import Dense, Layer, Model, MoE, SelfAttention
from chipwise.workload.precision import uniform

M, F, V, L = 1024, 4096, 32_000, 10
PLAIN = Dense(F)


def network(*, tied: bool = False, ffn: Dense | MoE = PLAIN, window: int = 0) -> Graph:
    layer = Layer(SelfAttention(16, 4, 64, window=window), ffn)
    return build(Model("toy", "llama", M, V, ((L, layer),), uniform("bf16"), tied=tied))


PER_LAYER = 2 * (M * (16 + 8) * 64 + 16 * 64 * M + 3 * M * F + 2 * M)
TABLE = 2 * V * M
HEAD = TABLE + 2 * M
WEIGHTS = L * PER_LAYER + TABLE + HEAD
PER_TOKEN = L * 2 * 4 * 64 * 2

GB = 1e9
POLICIES = Policies(
    memory_base="total",
    memory_share=0.9,
    reserved_bytes=0.0,
    context_bytes=0.5 * GB,
    collective_bytes=0.25 * GB,
    graph_bytes=0.125 * GB,
    workspace="reserved",
    workspace_bytes=0.0,
    kv_block_tokens=16,
    kv_reservation="growing",
    kv_reserved_share=1.0,
    kv_format="model",
    max_batched_tokens=2048,
    max_sequences=256,
    prefill="mixed",
)


def held(layout: Layout | None = None, context: float = 1600, capacity: Any = 10 * GB, **changes: Any) -> MemoryAccount:
    policies = replace(POLICIES, **changes)
    return account(shard(network(), layout or Layout()), policies, capacity, context)


# ------------------------------------------------------ the three policies


def test_a_share_of_the_whole_memory() -> None:
    a = held()
    assert a.cache_bytes == pytest.approx(9 * GB - WEIGHTS - 0.125 * GB)
    assert a.of(KEPT_FREE) == pytest.approx(1 * GB - 0.5 * GB), "the context lives in what is kept back"


def test_a_share_of_the_whole_memory_cannot_push_the_context_out() -> None:
    a = held(memory_share=0.99)
    assert a.cache_bytes == pytest.approx(9.5 * GB - WEIGHTS - 0.125 * GB)
    assert a.of(KEPT_FREE) == pytest.approx(0, abs=1)


def test_a_share_of_what_is_free_before_loading() -> None:
    a = held(memory_base="free_before_load", reserved_bytes=0.3 * GB)
    assert a.cache_bytes == pytest.approx(0.9 * 9.5 * GB - 0.3 * GB - WEIGHTS - 0.125 * GB)


def test_a_share_of_what_is_free_after_loading() -> None:
    a = held(memory_base="free_after_load")
    free = 9.5 * GB - WEIGHTS - 0.125 * GB
    assert a.cache_bytes == pytest.approx(0.9 * free)
    assert a.of(KEPT_FREE) == pytest.approx(0.1 * free)


def test_what_is_missing_is_missing_in_full() -> None:
    a = held(memory_base="free_after_load", capacity=0.5 * WEIGHTS)
    assert a.cache_bytes == pytest.approx(0.5 * WEIGHTS - 0.625 * GB - WEIGHTS)
    assert a.sequences == 0
    assert a.of(KEPT_FREE) == 0
    assert a.verdict() is Verdict.SHORT


@pytest.mark.parametrize("base", ["total", "free_before_load", "free_after_load"])
@pytest.mark.parametrize("layout", [Layout(), Layout(4.0), Layout(2.0, 5.0)], ids=lambda x: x.label())
def test_items_cache_and_withheld_are_the_capacity(base: str, layout: Layout) -> None:
    a = held(layout, memory_base=base, workspace="profiled")
    assert a.cache_bytes > 0
    assert a.total_bytes + a.cache_bytes == pytest.approx(a.capacity_bytes)


def test_every_shipped_runtime_adds_up() -> None:
    for runtime in all_software(Runtime).values():
        a = account(shard(network(), Layout(2.0)), runtime.policies, 64 * GB, 1000)
        assert a.cache_bytes > 0, runtime.id
        assert a.total_bytes + a.cache_bytes == pytest.approx(64 * GB), runtime.id


def test_buffers_of_collectives_come_with_the_second_device() -> None:
    def buffers(layout: Layout) -> float:
        return float(next(i.bytes for i in held(layout).items if i.name == "collectives"))

    assert (buffers(Layout()), buffers(Layout(2.0)), buffers(Layout(pp=2.0))) == (0, 0.25 * GB, 0)


def test_display_and_system_take_their_part() -> None:
    policies = replace(POLICIES, memory_base="free_after_load")
    plain = account(shard(network(), Layout()), policies, 10 * GB, 1000)
    shown = account(shard(network(), Layout()), policies, 10 * GB, 1000, 1 * GB)
    assert plain.cache_bytes - shown.cache_bytes == pytest.approx(0.9 * GB)


def test_adapters_are_held_whole_by_every_rank_of_a_stage() -> None:
    for layout, part in ((Layout(), 1.0), (Layout(4.0), 1.0), (Layout(pp=2.0), 0.5)):
        plain = account(shard(network(), layout), POLICIES, 10 * GB, 1000)
        adapted = account(shard(network(), layout), POLICIES, 10 * GB, 1000, adapter_bytes=0.2 * GB)
        assert plain.cache_bytes - adapted.cache_bytes == pytest.approx(0.2 * GB * part)
        total = adapted.total_bytes + adapted.cache_bytes
        assert total == pytest.approx(adapted.capacity_bytes)


# ---------------------------------------------------------------- weights


def weights(layout: Layout, graph: Graph | None = None) -> dict[str, float]:
    return {i.name.removeprefix("weights: "): float(i.bytes) for i in weight_items(shard(graph or network(), layout))}


def test_weights_of_one_device_are_the_model() -> None:
    assert sum(weights(Layout()).values()) == WEIGHTS == network().weight_bytes
    assert sum(weights(Layout(), network(tied=True)).values()) == network(tied=True).weight_bytes


def test_tensor_parallelism_divides_all_but_the_norms() -> None:
    found = weights(Layout(4.0))
    assert found["ffn"] == L * 2 * 3 * M * F / 4
    assert found["norm"] == L * 2 * 2 * M
    assert found["tables"] == (TABLE + TABLE) / 4 + 2 * M


def test_a_stage_holds_its_layers_and_the_larger_end() -> None:
    found = weights(Layout(pp=5.0))
    assert found["ffn"] == 2 * 2 * 3 * M * F
    assert found["tables"] == HEAD
    assert weights(Layout(pp=4.0))["ffn"] == pytest.approx(3 * 2 * 3 * M * F), "three of ten in the fullest"
    assert weights(Layout(pp=10.0))["ffn"] == pytest.approx(1 * 2 * 3 * M * F)


def test_the_larger_end_may_be_the_first() -> None:
    """Ends changed round: an embedding with a norm behind it, a head without."""
    graph = network()
    turned = graph.holding(graph.runs, (graph.head, graph.embed))
    assert weights(Layout(pp=5.0), turned)["tables"] == HEAD


def test_a_tied_table_is_needed_at_both_ends() -> None:
    graph = network(tied=True)
    assert weights(Layout(), graph)["tables"] == HEAD
    assert weights(Layout(pp=2.0), graph)["tables"] == HEAD


def test_experts_are_divided_over_the_ranks_of_all_replicas() -> None:
    graph = network(ffn=MoE(32, 4, 256))
    whole = weights(Layout(), graph)
    for layout in (Layout(dp=8.0, ep=8.0), Layout(4.0, 1.0, 2.0, 8.0), Layout(4.0, 1.0, 2.0, 2.0), Layout(8.0)):
        assert weights(layout, graph)["expert"] == pytest.approx(whole["expert"] / 8)
    assert weights(Layout(dp=8.0, ep=8.0), graph)["attention"] == whole["attention"], "replicated"


# ------------------------------------------------------------------ cache


def test_a_sequence_takes_whole_pages() -> None:
    assert held(context=1600).sequence_bytes == 1600 * PER_TOKEN
    assert held(context=1601).sequence_bytes == 1616 * PER_TOKEN
    assert held(context=1, kv_block_tokens=256).sequence_bytes == 256 * PER_TOKEN


def test_the_cache_is_cut_by_heads_and_stages_but_not_below_a_head() -> None:
    one = 1600 * PER_TOKEN

    def sequence(layout: Layout) -> float:
        return float(kv_sequence_bytes(shard(network(), layout), POLICIES, 1600))

    assert sequence(Layout(4.0)) == one / 4
    assert sequence(Layout(8.0)) == one / 4, "four key/value heads"
    assert sequence(Layout(pp=5.0)) == pytest.approx(one / 5)
    assert sequence(Layout(pp=4.0)) == pytest.approx(one * 3 / 10)
    assert sequence(Layout(dp=8.0)) == one


def test_windows_bound_the_cache() -> None:
    sharded = shard(network(window=128), Layout())
    assert kv_sequence_bytes(sharded, POLICIES, 1600) == 128 * PER_TOKEN


def test_whole_sequences_and_tokens_that_fit() -> None:
    a = held()
    room, one = float(a.cache_bytes), 1600 * PER_TOKEN
    assert a.sequences == room // one
    assert a.tokens == pytest.approx(room / PER_TOKEN)
    assert bool(a.fits(room // one))
    assert not bool(a.fits(room // one + 1))


def test_verdicts_and_their_edges() -> None:
    one = 1 * GB
    exact = MemoryAccount((MemoryItem("weights", 9 * GB),), 10 * GB, one, 1000)
    assert exact.fits()
    assert exact.verdict() is Verdict.FITS, "a tenth is enough"
    assert exact.also(MemoryItem("more", 1 * GB, where="host")).verdict() is Verdict.FITS, "the host's is its own"
    assert exact.verdict(0, 0.8) is Verdict.TIGHT
    assert exact.verdict(0, 0.8, 0.85) is Verdict.SHORT
    assert replace(exact, items=(MemoryItem("weights", 9.1 * GB),), sequence_bytes=0.5 * GB).verdict() is Verdict.TIGHT
    assert exact.verdict(2) is Verdict.SHORT
    assert exact.short_bytes(2) == 1 * GB
    assert exact.also(MemoryItem("more", 1)).verdict() is Verdict.SHORT
    over = exact.also(MemoryItem("more", 3 * GB))
    assert (over.sequences, over.tokens) == (0, 0)
    assert over.of("weights") == 9 * GB


# -------------------------------------------------------------- workspace


def test_the_workspace_by_hand() -> None:
    # the residual twice and, at the widest place, gate and up beside their product
    widest = 2 * F + F
    expected = 2 * 2048 * (2 * M + widest) + 4 * 256 * V
    assert workspace_bytes(shard(network(), Layout()), POLICIES) == expected
    four = 2 * 2048 * (2 * M + widest / 4) + 4 * 256 * V
    assert workspace_bytes(shard(network(), Layout(4.0)), POLICIES) == four


def test_a_sampler_runs_after_the_layers() -> None:
    """vLLM's logs of 256 sequences that are sorted (pull request 10511 and others): 1.26 GiB of a vocabulary of
    128,256, 1.45 GiB of one of 151,936."""
    for vocab, logged in ((128_256, 1.26), (151_936, 1.45)):
        model = Model("toy", "llama", M, vocab, ((L, Layer(SelfAttention(16, 4, 64), PLAIN)),), uniform("bf16"))
        whole = shard(build(model), Layout())
        told = replace(POLICIES, max_batched_tokens=2048, max_sequences=256, sampler_bytes=40.0)
        assert float(workspace_bytes(whole, told)) / 2**30 == pytest.approx(logged, rel=0.03)
        few = replace(told, max_sequences=1)  # activations alone, the logits beside them
        bare = workspace_bytes(whole, replace(few, sampler_bytes=0.0))
        assert workspace_bytes(whole, few) == bare


def test_a_reserved_workspace_is_not_counted_twice() -> None:
    profiled, reserved = held(workspace="profiled"), held()
    difference = float(reserved.cache_bytes) - float(profiled.cache_bytes)
    assert difference == pytest.approx(workspace_bytes(shard(network(), Layout()), POLICIES))


# -------------------------------------------------------- one code path


@pytest.mark.parametrize("base", ["total", "free_before_load", "free_after_load"])
def test_arrays_equal_one_by_one(base: str) -> None:
    tp, pp = np.array([1.0, 2.0, 4.0, 8.0]), np.array([1.0, 3.0, 5.0, 10.0])
    capacity = np.array([0.1, 1.0, 10.0, 100.0]) * GB
    changes: dict[str, Any] = {"memory_base": base, "workspace": "profiled"}
    together = held(Layout(tp, pp, 1.0, 1.0), capacity=capacity, **changes)
    for i in range(4):
        alone = held(Layout(float(tp[i]), float(pp[i])), capacity=float(capacity[i]), **changes)
        for name in ("cache_bytes", "sequence_bytes", "sequences", "total_bytes"):
            assert np.asarray(getattr(together, name))[i] == pytest.approx(float(getattr(alone, name))), name
        assert bool(together.fits()[i]) == bool(alone.fits())
