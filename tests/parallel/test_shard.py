"""What one rank computes and what ranks exchange, against the whole."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from chipwise.catalog.configs import find_config
from chipwise.parallel.collective import Comm
from chipwise.parallel.layout import Layout
from chipwise.parallel.shard import shard
from chipwise.workload.build import build
from chipwise.workload.graph import Graph
from chipwise.workload.load import load_model
from chipwise.workload.model import (
    FFN,
    CompressedAttention,
    Dense,
    IndexKeys,
    LatentAttention,
    Layer,
    LinearAttention,
    Mixer,
    Model,
    MoE,
    SelfAttention,
    StateSpace,
)
from chipwise.workload.precision import uniform
from chipwise.workload.step import Step, decode, prefill

M, V, L = 1024, 32_000, 10
ATTENTION = SelfAttention(32, 8, 64)
PLAIN = Dense(4096)


def network(mixer: Mixer | None = ATTENTION, ffn: FFN | None = PLAIN, **more: object) -> Graph:
    layer = Layer(mixer, ffn)
    return build(Model("toy", "llama", M, V, ((L, layer),), uniform("bf16"), **more))  # type: ignore[arg-type]


DENSE = network()
MIXTURE = network(ffn=MoE(64, 4, 512))
SHARED = network(ffn=MoE(64, 4, 512, shared_width=1024))
STEP = decode(32, 2000)


def flops(graph: Graph, layout: Layout, step: Step = STEP) -> Counter[str]:
    total: Counter[str] = Counter()
    for repeat, op in shard(graph, layout).ops(step):
        total[op.name] += float(repeat * op.flops)
    return total


def comms(graph: Graph, layout: Layout, step: Step = STEP) -> Counter[tuple[str, str, float]]:
    """Repeats of every kind of exchange by kind, axis and payload."""
    found: Counter[tuple[str, str, float]] = Counter()
    for repeat, comm in shard(graph, layout).comms(step):
        found[comm.kind, comm.axis, float(comm.payload_bytes)] += float(repeat)
    return found


# ------------------------------------------------------------------ work


@pytest.mark.parametrize("tp", [2, 4, 8])
@pytest.mark.parametrize("step", [STEP, prefill(2, 777)], ids=["decode", "prefill"])
def test_ranks_add_up_to_the_whole(tp: int, step: Step) -> None:
    whole, rank = flops(DENSE, Layout(), step), flops(DENSE, Layout(tp=float(tp)), step)
    norms = {"attention_norm", "ffn_norm", "final_norm"}
    for name, count in whole.items():
        # norms run on the whole residual stream of every rank
        assert rank[name] * (1 if name in norms else tp) == pytest.approx(count), name


def test_weights_of_ranks_add_up_to_the_whole() -> None:
    rank = shard(DENSE, Layout(tp=8.0))
    norms = DENSE.weight_bytes_by_class["norm"]
    held = sum(
        repeat * float(tensor.local_bytes(rank.sizes(block)))
        for repeat, block in DENSE.blocks()
        for tensor in block.tensors
    )
    assert 8 * (held - norms) + norms == pytest.approx(DENSE.weight_bytes)


def test_key_value_heads_are_copied_beyond_their_number() -> None:
    # 8 key/value heads on 16 ranks: one each, hence twice in all
    whole, rank = flops(DENSE, Layout()), flops(DENSE, Layout(tp=16.0))
    query, keys = 32 * 64, 2 * 8 * 64
    assert rank["qkv"] / whole["qkv"] == pytest.approx((query / 16 + keys / 8) / (query + keys))
    assert rank["attention"] * 16 == pytest.approx(whole["attention"]), "query heads are not"


@pytest.mark.parametrize("layout", [Layout(8.0, ep=8.0), Layout(8.0), Layout(8.0, ep=2.0)], ids=["ep", "tp", "both"])
def test_experts_are_shared_out_either_way(layout: Layout) -> None:
    assert flops(MIXTURE, layout)["experts"] * 8 == pytest.approx(flops(MIXTURE, Layout())["experts"])


def test_replicas_bring_their_tokens_to_the_experts() -> None:
    # 4 replicas of 32 sequences on 4 ranks do the work of 128 sequences on 4 ranks
    apart = flops(MIXTURE, Layout(dp=4.0, ep=4.0))
    together = flops(MIXTURE, Layout(tp=4.0, ep=4.0), decode(128, 2000))
    assert apart["experts"] == pytest.approx(together["experts"])
    assert apart["attention"] == pytest.approx(flops(MIXTURE, Layout())["attention"])


@pytest.mark.parametrize(
    "mixer",
    [
        LinearAttention(16, 32, 128, 128, 4),
        StateSpace(64, 64, 8, 128, 4),
        CompressedAttention(32, 128, 512, 8, 256, 128, 4),
    ],
    ids=["delta", "mamba", "compressed"],
)
def test_recurrent_and_grouped_mixers_are_cut_too(mixer: Mixer) -> None:
    graph = network(mixer)
    whole, rank = flops(graph, Layout()), flops(graph, Layout(tp=8.0))
    assert rank["o"] * 8 == pytest.approx(whole["o"])
    found = comms(graph, Layout(tp=8.0))
    assert found["all_reduce", "tp", 32 * M * 2.0] == 2 * L + 1, "their outputs are partial sums"


def test_uneven_stages_go_at_the_pace_of_the_fullest() -> None:
    assert shard(DENSE, Layout(pp=5.0)).stretch == 1
    assert shard(DENSE, Layout(pp=4.0)).stretch == pytest.approx(4 * 3 / 10)
    whole, cut = flops(DENSE, Layout()), flops(DENSE, Layout(pp=4.0))
    assert cut["qkv"] == pytest.approx(whole["qkv"] * 1.2)
    assert cut["head"] == whole["head"], "tables stand at the ends"


# --------------------------------------------------------- communication


def test_a_dense_decoder_exchanges_twice_a_layer() -> None:
    tokens = 32 * M * 2.0
    assert comms(DENSE, Layout(tp=4.0)) == {
        ("all_reduce", "tp", tokens): 2 * L + 1,  # and the embedding
        ("all_gather", "tp", 32 * V * 2.0): 1,  # logits
        ("p2p", "pp", tokens / 4): 0,
    }


def test_only_sequences_have_logits() -> None:
    found = comms(DENSE, Layout(tp=4.0), prefill(3, 500))
    assert found["all_gather", "tp", 3 * V * 2.0] == 1
    assert found["all_reduce", "tp", 1500 * M * 2.0] == 2 * L + 1


def test_a_tied_head_gathers_too() -> None:
    assert comms(network(tied=True), Layout(tp=4.0)) == comms(DENSE, Layout(tp=4.0))


def test_shared_and_routed_experts_are_reduced_together() -> None:
    for graph in (MIXTURE, SHARED):
        assert comms(graph, Layout(tp=4.0))["all_reduce", "tp", 32 * M * 2.0] == 2 * L + 1


def test_a_layer_without_a_feed_forward_exchanges_once() -> None:
    assert comms(network(ffn=None), Layout(tp=4.0))["all_reduce", "tp", 32 * M * 2.0] == L + 1


def all_to_alls(graph: Graph, layout: Layout) -> list[tuple[float, Comm]]:
    return [(float(n), c) for n, c in shard(graph, layout).comms(STEP) if c.kind == "all_to_all"]


@pytest.mark.parametrize(
    ("layout", "copies"),
    [
        (Layout(dp=8.0, ep=8.0), 4),  # as many ranks as chosen experts
        (Layout(dp=2.0, ep=2.0), 2),  # no more than there are
        (Layout(dp=8.0, ep=1.0), 8),  # experts cut in eight: every rank needs every token
        (Layout(dp=8.0, ep=4.0), 8),  # four groups of two
    ],
)
def test_replicas_send_tokens_to_experts_and_back(layout: Layout, copies: int) -> None:
    there, back = ((n, float(c.payload_bytes), float(c.ranks)) for n, c in all_to_alls(MIXTURE, layout))
    assert there == back == (L, 32 * copies * M * 2.0, layout.dp)


def test_ranks_of_a_replica_share_the_sending() -> None:
    (_, comm), _ = all_to_alls(MIXTURE, Layout(tp=2.0, dp=4.0, ep=8.0))
    assert comm.payload_bytes == 16 * 4 * M * 2.0
    assert comm.ranks == 8


def test_without_replicas_nothing_travels() -> None:
    assert {float(c.ranks) for _, c in all_to_alls(MIXTURE, Layout(tp=8.0, ep=8.0))} == {1.0}


def test_stages_hand_over_the_residual_stream() -> None:
    found = [(n, c) for n, c in shard(DENSE, Layout(2.0, 5.0)).comms(STEP) if c.axis == "pp"]
    ((hops, comm),) = found
    assert (hops, comm.kind, comm.payload_bytes, comm.ranks) == (4, "p2p", 32 * M * 2.0 / 2, 2)


# ------------------------------------------------------------ one code path


def bundled(name: str) -> Graph:
    return build(load_model(find_config(name)))


MODELS = {
    "dense": lambda: bundled("meta-llama/Llama-3.1-8B"),
    "mixture": lambda: bundled("Qwen/Qwen3-30B-A3B"),
    "windows": lambda: bundled("openai/gpt-oss-20b"),
    "latent": lambda: network(LatentAttention(32, 512, 256, 64, 32, 64), MoE(64, 4, 512, shared_width=512)),
    "index": lambda: network(LatentAttention(32, 512, 256, 64, 32, 64, index=IndexKeys(16, 64, 512))),
    "delta": lambda: network(LinearAttention(16, 32, 128, 128, 4), MoE(64, 4, 512, shared_width=512)),
    "mamba": lambda: network(StateSpace(64, 64, 8, 128, 4), None),
    "compressed": lambda: network(CompressedAttention(32, 128, 512, 8, 256, 128, 4)),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("step", [STEP, prefill(1, 300), STEP + prefill(1, 300)], ids=["decode", "prefill", "mixed"])
def test_the_list_depends_on_model_and_phase_alone(name: str, step: Step) -> None:
    graph = MODELS[name]()
    lists = [
        (
            [(op.kind, op.name) for _, op in shard(graph, layout).ops(step)],
            [(comm.kind, comm.axis) for _, comm in shard(graph, layout).comms(step)],
        )
        for layout in (Layout(), Layout(4.0), Layout(2.0, 3.0), Layout(2.0, 1.0, 4.0, 8.0))
    ]
    assert all(found == lists[0] for found in lists)


@pytest.mark.parametrize("name", MODELS)
def test_layouts_as_arrays_equal_one_by_one(name: str) -> None:
    graph = MODELS[name]()
    rows = [(1, 1, 1, 1), (2, 1, 1, 2), (4, 2, 1, 1), (2, 3, 4, 8), (8, 1, 1, 1)]
    together = shard(graph, Layout(*np.array(rows, dtype=float).T))
    ops, exchanges = list(together.ops(STEP)), list(together.comms(STEP))
    for i, row in enumerate(rows):
        alone = shard(graph, Layout(*(float(x) for x in row)))

        def at(value: object, index: int = i) -> float:
            return float(np.broadcast_to(np.asarray(value), (len(rows),))[index])

        for (n, a), (m, b) in zip(ops, alone.ops(STEP), strict=True):
            assert (at(n), at(a.flops), at(a.bytes)) == (float(m), float(b.flops), float(b.bytes))
        for (n, c), (m, d) in zip(exchanges, alone.comms(STEP), strict=True):
            assert (at(n), at(c.payload_bytes), at(c.ranks)) == (float(m), float(d.payload_bytes), float(d.ranks))


def test_ranks_with_copies_of_experts_share_the_work_evenly() -> None:
    graph = network(ffn=MoE(8, 2, 256))
    (even,) = (op for _, op in shard(graph, Layout(dp=4.0, ep=4.0)).ops(STEP) if op.kind == "experts")
    (spare,) = (op for _, op in shard(graph, Layout(dp=3.0, ep=3.0)).ops(STEP) if op.kind == "experts")
    assert float(spare.dims["local_experts"]) == 3  # one of nine is a copy
    # three replicas instead of four bring 3/4 of the tokens to 3/4 of the ranks
    assert float(spare.flops) == pytest.approx(float(even.flops))


def test_tokens_leave_for_experts_in_the_type_that_these_multiply_in() -> None:
    layer = Layer(ATTENTION, MoE(8, 2, 256))
    graph = build(Model("toy", "llama", M, V, ((L, layer),), uniform("fp8")))
    there, back = (c for _, c in shard(graph, Layout(dp=4.0, ep=4.0)).comms(STEP) if c.kind == "all_to_all")
    assert float(back.payload_bytes) == 2 * float(there.payload_bytes)
