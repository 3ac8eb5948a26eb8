"""Parts of a model on several memories are the model."""

from __future__ import annotations

import pytest

from chipwise.api.loaded import load
from chipwise.errors import UsageError
from chipwise.parallel.placement import Offloaded, Placement, expert_layers, split
from chipwise.workload.graph import Graph

DENSE, ROUTED = "Qwen/Qwen3-8B", "deepseek-ai/DeepSeek-V3"


def bytes_of(graph: Graph | None) -> float:
    return 0.0 if graph is None else graph.weight_bytes


@pytest.mark.parametrize(
    ("model", "placement"),
    [
        (DENSE, Placement((36,))),
        (DENSE, Placement((20, 16))),
        (DENSE, Placement((20, 6), 10, 10)),
        (ROUTED, Placement((61,), 0, 40)),
        (ROUTED, Placement((30, 21), 10, 61)),
    ],
)
def test_nothing_is_lost_and_nothing_twice(model: str, placement: Placement) -> None:
    graph = load(model).graph
    cards, host = split(graph, placement)
    assert sum(map(bytes_of, cards)) + bytes_of(host) == pytest.approx(graph.weight_bytes, rel=1e-12)
    caches = sum(float(g.kv_bytes(1000.0)) for g in (*cards, *([host] if host else [])))
    assert caches == pytest.approx(float(graph.kv_bytes(1000.0)), rel=1e-12)
    assert [g.layers for g in cards] == list(placement.cards)


def test_experts_move_alone() -> None:
    graph = load(ROUTED).graph
    routed = sum(expert_layers(graph))
    (card,), host = split(graph, Placement((61,), 0, 61))
    assert host is not None
    assert host.layers == routed == 58
    assert set(host.weight_bytes_by_class) <= {"expert"}
    assert float(host.kv_bytes(1000.0)) == 0.0
    assert card.layers == 61


def test_a_placement_of_other_layers_is_no_placement() -> None:
    with pytest.raises(ValueError, match="36"):
        split(load(DENSE).graph, Placement((35,)))


def test_what_is_asked_for() -> None:
    dense, routed = load(DENSE).graph, load(ROUTED).graph
    assert Offloaded().placement(dense, 1) is None
    assert Offloaded(gpu_layers=30).placement(dense, 1) == Placement((30,), 6, 6)
    assert Offloaded(cpu_experts=24).placement(routed, 1) == Placement((61,), 0, 24)
    assert Offloaded(split=(3.0, 1.0)).placement(dense, 2) == Placement((27, 9), 0, 0)
    for bad, graph in (
        (Offloaded(gpu_layers=99), dense),
        (Offloaded(cpu_experts=3), dense),
        (Offloaded(gpu_layers=0), dense),
        (Offloaded(split=(1.0, 1.0)), dense),
    ):
        with pytest.raises(UsageError):
            bad.placement(graph, 1)
