"""Passes: what adds up to a step, what prompts add, lengths, caches, speculation, the grid, the order of passes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.predict.tabulated import BASE_S, SEQUENCE_S, TOKEN_S, requests, table, toy

from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.chips import get_chip
from chipwise.catalog.configs import find_config
from chipwise.catalog.runtime_spec import Runtime
from chipwise.catalog.software import all_software
from chipwise.cost.cost import Cost
from chipwise.cost.device import Device
from chipwise.errors import UsageError
from chipwise.parallel.layout import Layout
from chipwise.parallel.shard import shard
from chipwise.predict.parts import PARTS
from chipwise.predict.passes import BATCHES, PassTable, Requests, tabulate
from chipwise.predict.speculative import Speculation, draft_graph, expected_tokens, verification
from chipwise.predict.step import step_cost, step_parts
from chipwise.units import Array
from chipwise.workload.build import build
from chipwise.workload.lengths import Lengths, PrefixCache
from chipwise.workload.load import load_model
from chipwise.workload.moe import busiest_rank, distinct_experts
from chipwise.workload.step import Step, decode, prefill
from chipwise.workload.workload import Workload

WORKLOAD = Workload(prompt_tokens=1000, output_tokens=200)
POLICIES = replace(all_software(Runtime)["vllm"].policies, max_batched_tokens=4000, prefill="mixed")


def pairs(step: Step) -> Iterator[tuple[str, Cost]]:
    """10 ms a pass, 10 us a token, 1 ns a pair of query and key."""
    seen = sum((s.batch * (s.q * s.kv - s.q * (s.q - 1.0) / 2.0) for s in step.segments), 0.0)
    yield "host", Cost({"memory": 10e-3, "compute": 10e-6 * step.tokens, "on-chip": 1e-9 * seen})


def passes(workload: Workload = WORKLOAD, **kind: object) -> PassTable:
    return tabulate(pairs, 1, Requests.of(workload, POLICIES), alone=False, factors={}, **kind)  # type: ignore[arg-type]


def decoding(**kind: object) -> Array:
    return passes(**kind).passes().decode_s[0]  # type: ignore[arg-type]


def added(**kind: object) -> float:
    return float(passes(**kind).passes().added_s[0, 10, 0])  # type: ignore[arg-type]


def spread(**lengths: float) -> Workload:
    return replace(WORKLOAD, lengths=Lengths(1000.0, 200.0, **lengths))


# ---------------------------------------------------------------- what passes hold


@pytest.mark.parametrize("model", ["meta-llama/Llama-3.1-8B", "Qwen/Qwen3-30B-A3B", "deepseek-ai/DeepSeek-V3"])
def test_parts_add_up_to_the_step(model: str) -> None:
    chip = get_chip("h200-sxm-141gb")
    device, numbers = Device.of(chip), shipped_parameters()
    costs = numbers.cost("simt", "vllm", [chip]).take(np.zeros((), dtype=np.intp))
    overheads = numbers.overheads("simt", "vllm")
    sharded = shard(build(load_model(find_config(model))), Layout(tp=8.0, ep=8.0 if "30B" in model else 1.0))

    def parts_of(step: Step) -> Iterator[tuple[str, Cost]]:
        return step_parts(sharded, step, device, costs, overheads)

    found = tabulate(parts_of, 1, requests(), alone=False)
    assert found.names == tuple(PARTS)
    assert found.decode.shape == (1, len(BATCHES), len(PARTS))
    assert np.all(found.decode >= 0)
    at = int(np.searchsorted(BATCHES, 16.0))
    direct = step_cost(sharded, decode(16.0, 1100.0), device, costs, overheads)
    assert found.decode[0, at].sum() == pytest.approx(float(np.asarray(direct.total_s)))
    both = step_cost(sharded, decode(8.0, 1100.0) + prefill(1.0, 1000.0), device, costs, overheads)
    before = step_cost(sharded, decode(8.0, 1100.0), device, costs, overheads)
    assert found.added[0, 1, 0].sum() == pytest.approx(float(np.asarray(both.total_s - before.total_s)))
    # factors scale what they name
    twice = np.ones((1, len(PARTS)))
    twice[0, PARTS.index("launch")] = 2.0
    more = found.decode @ twice[0] - found.decode.sum(axis=2)
    assert more == pytest.approx(found.decode[..., PARTS.index("launch")])


def test_the_host_starts_every_kernel_of_a_prompt() -> None:
    chip = get_chip("h100")
    device, numbers = Device.of(chip), shipped_parameters()
    costs = numbers.cost("simt", "sglang", [chip]).take(np.zeros((), dtype=np.intp))
    overheads = replace(numbers.overheads("simt", "sglang"), starts_s=5e-5, eager_s=1e-4)

    def seconds(model: str, step: Step, layout: Layout) -> float:
        sharded = shard(build(load_model(find_config(model))), layout)
        return float(np.asarray(step_cost(sharded, step, device, costs, overheads).total_s))

    small, dense, latent = prefill(1.0, 64.0), "meta-llama/Llama-3.1-8B", "deepseek-ai/DeepSeek-V3"
    # eight kernels a layer in pieces, more where ranks meet; models with latent attention are never captured
    assert 32 * 8 * 5e-5 < seconds(dense, small, Layout()) < seconds(dense, small, Layout(tp=2.0)) < 32 * 12 * 5e-5
    assert 61 * 20 * 1e-4 < seconds(latent, small, Layout(tp=8.0)) < 61 * 35 * 1e-4
    assert seconds(dense, decode(1.0, 64.0), Layout()) < 32 * 8 * 5e-5 + overheads.iteration_s


def test_a_toy_by_hand() -> None:
    p = table(requests(budget=4000.0)).passes()
    assert p.decode_s[0] == pytest.approx(BASE_S + SEQUENCE_S * BATCHES)
    assert p.added_s[0, :, 0] == pytest.approx(1000 * TOKEN_S)
    assert p.added_s[0, :, 1] == pytest.approx(4000 * TOKEN_S)
    assert p.prompt_s[0] == pytest.approx([BASE_S + 1000 * TOKEN_S, BASE_S + 4000 * TOKEN_S, BASE_S + 1000 * TOKEN_S])


def test_prompts_in_passes_of_their_own_pay_for_the_weights() -> None:
    p = table(alone=True).passes()
    assert p.added_s[0, :, 0] == pytest.approx(BASE_S + 1000 * TOKEN_S)


def test_a_prompt_goes_in_chunks_of_the_budget() -> None:
    asked = requests(budget=250.0)
    assert float(np.asarray(asked.chunk)) == 250
    assert table(asked).passes().added_s[0, 0, 0] == pytest.approx(250 * TOKEN_S)
    assert float(np.asarray(requests(prompt=100.0, budget=250.0).chunk)) == 100


def test_between_points_passes_are_linear_and_below_one_they_hold_one() -> None:
    p = table().passes()
    t, one, _ = p.at(np.array([[9.0, 1.0, 0.25]]), np.array([[0]]))
    assert t[0] == pytest.approx(BASE_S + SEQUENCE_S * np.array([9.0, 1.0, 1.0]))
    assert one[0] == pytest.approx(1000 * TOKEN_S)


# ------------------------------------------------------------ lengths and caches


def test_a_prompt_attends_to_half_of_its_square() -> None:
    assert added() == pytest.approx(10e-6 * 1000 + 1e-9 * 1000 * 1001 / 2)


def test_spread_prompts_attend_as_their_second_moment_says() -> None:
    found = added(workload=spread(prompt_cv=1.0))
    assert found == pytest.approx(10e-6 * 1000 + 1e-9 * 2 * 1000**2 / 2, rel=1e-3)


def test_spread_outputs_hold_more_while_they_decode() -> None:
    more = decoding(workload=spread(output_cv=1.0)) - decoding()
    assert more == pytest.approx(1e-9 * BATCHES * 100)


def test_cached_tokens_are_attended_to_but_not_worked_off() -> None:
    cached = replace(WORKLOAD, prefix=PrefixCache(0.75))
    assert added(workload=cached) == pytest.approx(10e-6 * 250 + 1e-9 * (250 * 750 + 250 * 251 / 2))
    assert decoding(workload=cached) == pytest.approx(decoding())


def test_columns_of_requests() -> None:
    many = Requests.stack([Requests.of(WORKLOAD, POLICIES), Requests.of(spread(prompt_cv=1.0), POLICIES)])
    assert np.asarray(many.spread).tolist() == [1.0, 2.0]
    assert np.asarray(many.decodes).tolist() == [199.0, 199.0]
    assert np.asarray(many.budget).tolist() == [4000.0, 4000.0]


# ------------------------------------------------------------------ speculation


def test_speculation_shares_a_pass_between_its_tokens() -> None:
    certain = Speculation(draft_tokens=3, acceptance=1.0)
    b = BATCHES
    verify = 10e-3 + 10e-6 * 4 * b + 1e-9 * b * (4 * 1104 - 6)
    assert decoding(speculation=certain) == pytest.approx(verify / 4)
    # the prompt costs what it does without
    assert added(speculation=certain) == pytest.approx(added())

    def drafts(step: Step) -> Iterator[tuple[str, Cost]]:
        yield from ((part, cost * 0.1) for part, cost in pairs(step))

    drafted = decoding(speculation=certain, draft_of=drafts)
    assert drafted - verify / 4 == pytest.approx(0.75 * 0.1 * decoding())
    assert np.all(decoding(speculation=Speculation(3, 0.0)) > decoding())


def test_the_yield_of_speculation() -> None:
    assert expected_tokens(0.0, 3) == 1
    assert expected_tokens(1.0, 3) == 4
    assert expected_tokens(0.5, 2) == pytest.approx(1 + 0.5 + 0.25)
    assert verification(8.0, 100.0, 3).tokens == 32


@pytest.mark.parametrize(("tokens", "acceptance"), [(0, 0.5), (65, 0.5), (2, -0.1), (2, 1.1), (2, float("nan"))])
def test_speculation_that_cannot_be(tokens: int, acceptance: float) -> None:
    with pytest.raises(UsageError):
        Speculation(tokens, acceptance)


def test_a_draft_is_the_models_own_module() -> None:
    graph = build(load_model(find_config("deepseek-ai/DeepSeek-V3")))
    draft = draft_graph(graph)
    assert 1 <= draft.layers < 5
    assert draft.weight_bytes < 0.1 * graph.weight_bytes
    with pytest.raises(UsageError, match="no module"):
        draft_graph(build(load_model(find_config("meta-llama/Llama-3.1-8B"))))


# ------------------------------------------------------------- tables and order


def test_tables_are_taken_and_joined() -> None:
    both = PassTable.join([table(), table(requests(500.0), parts_of=toy(2 * BASE_S))])
    assert len(both) == 2
    back = both.take(np.array([1, 0])).passes()
    assert back.decode_s[0] == pytest.approx(2 * BASE_S + SEQUENCE_S * BATCHES)
    assert back.decode_s[1] == pytest.approx(BASE_S + SEQUENCE_S * BATCHES)
    assert both.take(np.array([1])).requests.prompt.tolist() == [500.0]  # type: ignore[union-attr]


def test_shares_add_up_to_the_pass() -> None:
    found = table().shares(np.array([[10.0]]), np.ones((1, 1)), np.full((1, 1), 0.5), np.zeros((1, 1)))
    assert found["memory"][0, 0] == pytest.approx(BASE_S + 10 * SEQUENCE_S)
    assert found["compute"][0, 0] == pytest.approx(0.5 * 1000 * TOKEN_S)


columns = st.lists(st.floats(1e-4, 1.0), min_size=len(BATCHES), max_size=len(BATCHES))


@given(columns, st.floats(1e-5, 1.0), st.floats(1e-5, 1.0))
def test_any_table_becomes_passes_in_order(decode_s: list[float], chunk_s: float, budget_s: float) -> None:
    """Kernels that were priced out of order are padded and split, as an engine can."""
    plain = table()
    odd = replace(
        plain,
        decode=np.array(decode_s)[None, :, None] * np.ones((1, 1, len(plain.names))) / len(plain.names),
        added=np.broadcast_to(np.array([chunk_s, budget_s])[None, None, :, None], plain.added.shape),
        prompt=np.broadcast_to(np.array([chunk_s, budget_s, chunk_s])[None, :, None], plain.prompt.shape),
    )
    p = odd.passes()
    assert np.all(np.diff(p.decode_s[0]) >= 0)
    assert np.all(np.diff(p.decode_s[0] / BATCHES) <= 1e-12)
    assert np.all(p.decode_s[0] <= np.array(decode_s) * (1 + 1e-9))
    assert np.all(p.added_s[..., 0] <= p.added_s[..., 1])
    assert p.prompt_s[0, 0] <= p.prompt_s[0, 1] <= 8 * p.prompt_s[0, 0] * (1 + 1e-9)
    assert p.prompt_s[0, 2] <= p.prompt_s[0, 0]


# ------------------------------------------------------------------------- grid


def test_the_batch_grid() -> None:
    assert BATCHES[:13].tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20]
    assert BATCHES[-1] == 4096
    assert np.all(np.round(BATCHES) == BATCHES)
    assert np.max(BATCHES[4:] / BATCHES[3:-1]) <= 1.25


MODELS = ("meta-llama/Llama-3.1-8B", "Qwen/Qwen3-30B-A3B", "openai/gpt-oss-120b")


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("chip", "runtime", "most"),
    [
        ("h100-sxm5-80gb", "vllm", 0.15),  # kernels step by a tile
        ("mi300x", "sglang", 0.15),
        ("tpu-v6e", "vllm-tpu", 0.01),
        ("trainium2", "neuronx", 0.01),
        ("xeon-6980p", "vllm-cpu", 0.01),
        ("groq-lpu1", "groq-cloud", 0.01),
        ("wse3-cs3", "cerebras-inference", 0.01),
        ("sn40l", "sambanova", 0.01),
    ],
)
def test_between_grid_points_passes_are_close_to_linear(model: str, chip: str, runtime: str, most: float) -> None:
    numbers, hardware = shipped_parameters(), get_chip(chip)
    sharded = shard(build(load_model(find_config(model))), Layout(4.0))
    costs = numbers.cost(hardware.family, runtime, [hardware]).take(np.array(0))
    overheads, batch = numbers.overheads(hardware.family, runtime), np.arange(1.0, 1024.0)

    def seconds(b: Array) -> Array:
        cost = step_cost(sharded, decode(b, 2000.0), Device.of(hardware), costs, overheads)
        return np.asarray(cost.total_s)

    found = seconds(batch)
    assert np.all(np.diff(found) >= -1e-12)
    error = np.abs(np.interp(batch, BATCHES, seconds(BATCHES)) / found - 1)
    assert np.median(error) < 0.02
    assert error.max() < most


# ---------------------------------------------------------------------- experts


def test_the_busiest_rank_against_drawn_tokens() -> None:
    rng = np.random.default_rng(5)
    experts, top_k, ranks = 64, 4, 8
    for tokens in (4, 32, 512):
        read, rows = [], []
        for _ in range(200):
            chosen = np.argsort(rng.random((tokens, experts)), axis=1)[:, :top_k].ravel()
            loads = np.bincount(chosen, minlength=experts).reshape(ranks, -1)
            read.append((loads > 0).sum(axis=1).max() / ((loads > 0).sum() / ranks))
            rows.append(loads.sum(axis=1).max() / (tokens * top_k / ranks))
        hit = distinct_experts(float(tokens), experts, top_k, skew=1.0)
        found = busiest_rank(ranks, experts, hit, tokens * top_k)
        assert float(np.asarray(found[0])) == pytest.approx(np.mean(read), rel=0.15)
        assert float(np.asarray(found[1])) == pytest.approx(np.mean(rows), rel=0.15)


def test_one_rank_is_never_busier_than_itself() -> None:
    read, rows = busiest_rank(1.0, 64, 10.0, 16.0)
    assert (float(np.asarray(read)), float(np.asarray(rows))) == (1.0, 1.0)
