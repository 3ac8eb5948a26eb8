"""Language models of transformers, traced, against the graphs that are built from their configurations."""

from __future__ import annotations

import json
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from chipwise.api.loaded import load  # noqa: E402
from chipwise.tracing.module import build_and_trace  # noqa: E402
from chipwise.workload.axes import Sizes  # noqa: E402
from chipwise.workload.graph import Graph  # noqa: E402
from chipwise.workload.program import Program  # noqa: E402
from chipwise.workload.step import prefill  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

LENGTH = 64
PLAIN: dict[str, Any] = {
    "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 3, "num_attention_heads": 8, "vocab_size": 1000,
    "max_position_embeddings": 1024,
}  # fmt: skip
GROUPED = {**PLAIN, "num_key_value_heads": 2}
SIZED = {**GROUPED, "head_dim": 32}
ROUTED = {**SIZED, "num_experts_per_tok": 2}
EQUAL: dict[str, dict[str, Any]] = {
    "Llama": GROUPED, "Qwen2": GROUPED, "Qwen3": SIZED, "Mistral": {**SIZED, "sliding_window": None},
    "GPT2": {"n_embd": 256, "n_layer": 3, "n_head": 8, "vocab_size": 1000},
    "Mixtral": {**ROUTED, "num_local_experts": 8},
    "Qwen3Moe": {**ROUTED, "num_experts": 8, "moe_intermediate_size": 128},
    "Phi3": {**GROUPED, "pad_token_id": 0}, "GPTNeoX": PLAIN, "Olmo2": GROUPED, "Granite": GROUPED,
    "Starcoder2": GROUPED, "Cohere": GROUPED, "Gemma3Text": {**SIZED, "sliding_window": 16},
    "OPT": {"hidden_size": 256, "ffn_dim": 512, "num_hidden_layers": 3, "num_attention_heads": 8, "vocab_size": 1000,
            "word_embed_proj_dim": 256},
}  # fmt: skip
WRITTEN = {
    "Gemma2": {**SIZED, "sliding_window": 4096},
    "GptOss": {**ROUTED, "num_local_experts": 8, "sliding_window": 1024},
}
"""Families whose attention transformers writes out: it computes every pair, not half of them."""


def test_latent_attention_is_named_as_two_products() -> None:
    """Keys and values of different sizes have no fused kernel in torch."""
    keys = {
        **PLAIN, "num_key_value_heads": 8, "moe_intermediate_size": 128, "n_routed_experts": 8,
        "num_experts_per_tok": 2, "n_group": 2, "topk_group": 1,
        "first_k_dense_replace": 1, "q_lora_rank": 64, "kv_lora_rank": 32,
        "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 32,
    }  # fmt: skip
    found, graph = both("DeepseekV3", keys)
    assert found.parameters == graph.parameters
    assert any("different sizes" in line for line in found.assumptions)


def both(family: str, keys: dict[str, Any]) -> tuple[Program, Graph]:
    config = getattr(transformers, f"{family}Config")(**keys)

    def build() -> Any:
        module = transformers.AutoModelForCausalLM.from_config(config)
        return module, torch.zeros(2, LENGTH, dtype=torch.long), {"use_cache": False}

    known = {k: v for k, v in config.to_dict().items() if v is not None and k != "architectures"}
    return build_and_trace(build, training=False, name=family), load(
        json.dumps({**known, "torch_dtype": "float32"})
    ).graph


def traced(p: Program, *kinds: str) -> float:
    return sum(n * float(op.flops) for s in p.stages for n, op in s.ops if op.kind in kinds)


def built(graph: Graph, *kinds: str) -> float:
    """FLOPs of a prompt, logits of every token as a module gives them."""
    total = 0.0
    for repeat, block in ((1, graph.embed), *graph.runs, (1, graph.head)):
        times = repeat * (LENGTH if block is graph.head else 1)
        for node in block.nodes:
            ops = node.ops(Sizes(block.axes), prefill(2.0, float(LENGTH)))
            total += times * sum(float(op.flops) for op in ops if op.kind in kinds)
    return total


@pytest.mark.parametrize("family", EQUAL)
def test_a_traced_family_is_the_built_one(family: str) -> None:
    found, graph = both(family, EQUAL[family])
    assert found.parameters == graph.parameters
    assert traced(found, "gemm") == pytest.approx(built(graph, "gemm", "experts"), rel=1e-9)
    assert traced(found, "attention") == pytest.approx(built(graph, "attention"), rel=1e-9)


@pytest.mark.parametrize("family", WRITTEN)
def test_attention_that_is_written_out_computes_every_pair(family: str) -> None:
    found, graph = both(family, WRITTEN[family])
    assert found.parameters == graph.parameters
    halved = 2.0 * LENGTH / (LENGTH + 1)
    assert traced(found, "gemm", "attention") == pytest.approx(
        built(graph, "gemm", "experts") + halved * built(graph, "attention"), rel=1e-9
    )
