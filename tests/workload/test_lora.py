"""Adapters against counts that training tools print."""

from __future__ import annotations

import pytest

from chipwise.catalog.configs import find_config
from chipwise.errors import UnknownNameError, UsageError
from chipwise.workload.build import build
from chipwise.workload.formats import FORMATS
from chipwise.workload.graph import Graph
from chipwise.workload.load import load_model
from chipwise.workload.lora import Adapter, adapter_bytes, adapter_params

SEVEN = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def graph(name: str) -> Graph:
    return build(load_model(find_config(name)))


@pytest.mark.parametrize(
    ("name", "rank", "targets", "params"),
    [
        # PEFT's `print_trainable_parameters` in public logs
        ("meta-llama/Llama-2-7b-hf", 8, ("q_proj", "v_proj"), 4_194_304),
        ("meta-llama/Llama-2-7b-hf", 64, SEVEN, 159_907_840),
        ("meta-llama/Llama-3.1-8B", 16, ("all-linear",), 41_943_040),
        ("meta-llama/Llama-3.1-8B", 16, ("q_proj", "v_proj"), 6_815_744),
    ],
)
def test_published_counts(name: str, rank: int, targets: tuple[str, ...], params: int) -> None:
    assert adapter_params(graph(name), Adapter(rank, targets)) == params


def test_bytes_of_a_dense_model() -> None:
    found = graph("meta-llama/Llama-2-7b-hf")
    adapter = Adapter(8)
    assert adapter_bytes(found, adapter) == 2 * adapter_params(found, adapter)
    assert adapter_bytes(found, Adapter(8, format=FORMATS["fp32"])) == 4 * adapter_params(found, adapter)


def test_experts_are_adapted_only_when_asked() -> None:
    found = graph("Qwen/Qwen3-30B-A3B")
    plain, full = Adapter(8, ("all-linear",)), Adapter(8, ("all-linear",), experts=True)
    experts = 48 * 128 * 8 * 3 * (2048 + 768)
    assert adapter_params(found, full) - adapter_params(found, plain) == experts


def test_parameters_grow_with_rank() -> None:
    found = graph("Qwen/Qwen3-8B")
    assert adapter_params(found, Adapter(32)) == 4 * adapter_params(found, Adapter(8))


def test_fused_names_stand_for_their_parts() -> None:
    found = graph("microsoft/Phi-3-mini-4k-instruct")
    assert adapter_params(found, Adapter(8, ("qkv_proj",))) == adapter_params(
        found, Adapter(8, ("q_proj", "k_proj", "v_proj"))
    )


def test_what_cannot_be() -> None:
    with pytest.raises(UsageError, match="rank 0"):
        Adapter(0)
    with pytest.raises(UsageError, match="without targets"):
        Adapter(8, ())
    with pytest.raises(UnknownNameError, match="q_proj"):
        adapter_params(graph("Qwen/Qwen3-8B"), Adapter(8, ("q_porj",)))
