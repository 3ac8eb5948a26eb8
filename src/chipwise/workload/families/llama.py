"""Dense decoders with grouped-query attention and a gated feed-forward: Llama 2/3, Mistral, Qwen 2 and 3, ChatGLM,
Baichuan, StableLM.

Shapes: huggingface/transformers, models/llama, models/mistral, models/qwen2, models/qwen3, models/stablelm;
sgl-project/sglang, srt/models/chatglm.py and baichuan.py.
"""

from __future__ import annotations

from dataclasses import replace

from chipwise.workload.families.shared import (
    attention_dims,
    dense_ffn,
    heads_of,
    layer_count,
    tied,
    windows,
)
from chipwise.workload.model import Layer, SelfAttention
from chipwise.workload.reader import Reader

__all__ = [
    "read_baichuan",
    "read_chatglm",
    "read_granite",
    "read_llama",
    "read_qwen2",
    "read_qwen3",
    "read_stablelm",
]


def read_llama(r: Reader) -> tuple[list[Layer], bool]:
    """Llama and Mistral: optional biases on all four projections, optional biases in the feed-forward."""
    bias = r.flag("attention_bias", default=False)
    base = replace(attention_dims(r), qkv_bias=bias, out_bias=bias)
    return _layers(r, base, mlp_bias=r.flag("mlp_bias", default=False)), tied(r, False)


def read_granite(r: Reader) -> tuple[list[Layer], bool]:
    """Granite 3: Llama's block with fixed factors, and a tied head."""
    r.skip("attention_multiplier", "embedding_multiplier", "logits_scaling", "residual_multiplier")
    layers, _ = read_llama(r)
    return layers, tied(r, True)


def read_qwen2(r: Reader) -> tuple[list[Layer], bool]:
    """Qwen 1.5, 2 and 2.5: biases on query, key and value."""
    return _layers(r, replace(attention_dims(r), qkv_bias=True)), tied(r, False)


def read_qwen3(r: Reader) -> tuple[list[Layer], bool]:
    """Qwen 3: a norm over each query and key head."""
    bias = r.flag("attention_bias", default=False)
    base = replace(attention_dims(r), qk_norm="head", qkv_bias=bias, out_bias=bias)
    return _layers(r, base), tied(r, False)


def read_baichuan(r: Reader) -> tuple[list[Layer], bool]:
    """Baichuan and Baichuan 2: Llama's block; positions computed (7B) or by a slope per head (13B)."""
    r.skip("model_max_length", "num_key_value_heads", "z_loss_weight")
    heads = heads_of(r, bias=False)
    return [Layer(heads, dense_ffn(r))] * layer_count(r), tied(r, False)


def read_chatglm(r: Reader) -> tuple[list[Layer], bool]:
    """ChatGLM 2 and 3, GLM-4-9B: few key/value heads and biases on query, key and value."""
    r.require("rmsnorm", (True,), "the published models have RMS norms")
    r.require("post_layer_norm", (True,), "the published models have a last norm")
    r.require("add_bias_linear", (False,), "the published models have no other biases")
    r.skip("apply_query_key_layer_scaling", "apply_residual_connection_post_layernorm", "bias_dropout_fusion")
    r.skip("attention_softmax_in_fp32", "fp32_residual_connection", "multi_query_attention", "original_rope")
    r.skip("layernorm_epsilon", "rope_ratio", "pre_seq_len", "prefix_projection", "classifier_dropout")
    return _layers(r, replace(attention_dims(r), qkv_bias=r.flag("add_qkv_bias", default=True))), tied(
        r, False
    )


def read_stablelm(r: Reader) -> tuple[list[Layer], bool]:
    """StableLM: layer norms; optional biases, norms over heads, both halves in parallel after one norm."""
    r.skip("layer_norm_eps", "rotary_scaling_factor", "use_cache")
    attention = replace(attention_dims(r), qkv_bias=r.flag("use_qkv_bias", default=False))
    if r.flag("qk_layernorm", default=False):
        attention = replace(attention, qk_norm="head")
    parallel = r.flag("use_parallel_residual", default=False)
    layer = Layer(
        attention, dense_ffn(r), norm="layer", parallel=parallel, norms="shared" if parallel else "before"
    )
    return [layer] * layer_count(r), tied(r, False)


def _layers(r: Reader, attention: SelfAttention, *, mlp_bias: bool = False) -> list[Layer]:
    ffn = dense_ffn(r, bias=mlp_bias)
    return [Layer(replace(attention, window=w), ffn) for w in windows(r, layer_count(r))]
