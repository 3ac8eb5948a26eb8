"""Passes by part: what adds up to a step, prefix caches, chunks, speculation, and the busiest rank of experts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.chips import get_chip
from chipwise.catalog.configs import find_config
from chipwise.cost.cost import Cost
from chipwise.cost.device import Device
from chipwise.errors import UsageError
from chipwise.parallel.layout import Layout
from chipwise.parallel.shard import shard
from chipwise.predict.parts import PARTS
from chipwise.predict.passes import tabulate
from chipwise.predict.speculative import Speculation, draft_graph, expected_tokens, verification
from chipwise.predict.step import step_cost, step_parts
from chipwise.workload.build import build
from chipwise.workload.load import load_model
from chipwise.workload.moe import busiest_rank, distinct_experts
from chipwise.workload.step import Step, decode


def toy(step: Step) -> Iterator[tuple[str, Cost]]:
    """1 ms a pass, 1 us a token."""
    yield "host", Cost({"launch": 1e-3, "host": 1e-6 * step.tokens})


ONE = (np.array([1000.0]), np.array([200.0]), np.array([4096.0]))


def total(table: object) -> float:
    return float(np.sum(np.asarray(table)))


@pytest.mark.parametrize(
    "model", ["meta-llama/Llama-3.1-8B", "Qwen/Qwen3-30B-A3B", "deepseek-ai/DeepSeek-V3"]
)
def test_parts_add_up_to_the_step(model: str) -> None:
    device = Device.of(get_chip("h200-sxm-141gb"))
    numbers = shipped_parameters()
    costs = numbers.cost("simt", "vllm", [get_chip("h200-sxm-141gb")]).take(np.zeros((), dtype=np.intp))
    overheads = numbers.overheads("simt", "vllm")
    sharded = shard(build(load_model(find_config(model))), Layout(tp=8.0, ep=8.0 if "30B" in model else 1.0))

    def parts_of(step: Step) -> Iterator[tuple[str, Cost]]:
        return step_parts(sharded, step, device, costs, overheads)

    table = tabulate(parts_of, *ONE, batches=np.array([1.0, 16.0]))
    assert table.decode.shape == (1, 2, len(PARTS))
    assert np.all(table.decode >= 0)
    direct = step_cost(sharded, decode(16.0, 1100.0), device, costs, overheads)
    assert table.decode[0, 1].sum() == pytest.approx(float(np.asarray(direct.total_s)))
    assert table.passes(np.ones(len(PARTS))).decode_s[0, 1] == pytest.approx(
        float(np.asarray(direct.total_s))
    )


def test_prompts_go_in_chunks_and_cached_tokens_are_not_worked_off() -> None:
    whole = tabulate(toy, *ONE)
    assert whole.chunks[0] == 1
    assert whole.alone[0].sum() == pytest.approx(1e-3 + 1000e-6)
    cut = tabulate(toy, ONE[0], ONE[1], np.array([250.0]))
    assert cut.chunks[0] == 4
    assert cut.alone[0].sum() == pytest.approx(1e-3 + 250e-6)
    cached = tabulate(toy, *ONE, cached_tokens=900.0)
    assert cached.alone[0].sum() == pytest.approx(1e-3 + 100e-6)


def test_the_yield_of_speculation() -> None:
    assert expected_tokens(0.0, 3) == 1
    assert expected_tokens(1.0, 3) == 4
    assert expected_tokens(0.5, 2) == pytest.approx(1 + 0.5 + 0.25)
    assert verification(8.0, 100.0, 3).tokens == 32


def test_speculation_divides_passes_but_not_prompts() -> None:
    plain = tabulate(toy, *ONE, batches=np.array([1.0, 8.0]))
    spec = Speculation(draft_tokens=1, acceptance=1.0)
    fast = tabulate(toy, *ONE, batches=np.array([1.0, 8.0]), speculation=spec, draft_of=toy)
    # one draft pass and one pass over two tokens give two tokens
    assert total(fast.decode[0, 0]) == pytest.approx((1e-3 + 1e-6 + 1e-3 + 2e-6) / 2)
    added = total(fast.mixed[0, 1]) - total(fast.decode[0, 1])
    assert added == pytest.approx(total(plain.mixed[0, 1]) - total(plain.decode[0, 1]))


@pytest.mark.parametrize(
    ("tokens", "acceptance"), [(0, 0.5), (65, 0.5), (2, -0.1), (2, 1.1), (2, float("nan"))]
)
def test_speculation_that_cannot_be(tokens: int, acceptance: float) -> None:
    with pytest.raises(UsageError):
        Speculation(tokens, acceptance)


def test_a_draft_is_the_models_own_module() -> None:
    graph = build(load_model(find_config("deepseek-ai/DeepSeek-V3")))
    draft = draft_graph(graph)
    assert 1 <= draft.layers < 5
    assert draft.weight_bytes() < 0.1 * graph.weight_bytes()
    with pytest.raises(UsageError, match="no module"):
        draft_graph(build(load_model(find_config("meta-llama/Llama-3.1-8B"))))


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
        hit = distinct_experts(float(tokens), experts, top_k)
        found = busiest_rank(ranks, experts, hit, tokens * top_k)
        assert float(np.asarray(found[0])) == pytest.approx(np.mean(read), rel=0.15)
        assert float(np.asarray(found[1])) == pytest.approx(np.mean(rows), rel=0.15)


def test_one_rank_is_never_busier_than_itself() -> None:
    read, rows = busiest_rank(1.0, 64, 10.0, 16.0)
    assert (float(np.asarray(read)), float(np.asarray(rows))) == (1.0, 1.0)
