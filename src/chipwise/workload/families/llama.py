"""Dense decoders with grouped-query attention and a gated feed-forward: Llama 2/3, Mistral, Qwen 2 and 3.

Shapes: huggingface/transformers, models/llama, models/mistral, models/qwen2, models/qwen3.
"""

from __future__ import annotations

from dataclasses import replace

from chipwise.workload.families.shared import attention_dims, dense_ffn, layer_count, tied, windows
from chipwise.workload.model import Layer, SelfAttention
from chipwise.workload.reader import Reader

__all__ = ["read_granite", "read_llama", "read_qwen2", "read_qwen3"]


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


def _layers(r: Reader, attention: SelfAttention, *, mlp_bias: bool = False) -> list[Layer]:
    ffn = dense_ffn(r, bias=mlp_bias)
    return [Layer(replace(attention, window=w), ffn) for w in windows(r, layer_count(r))]
