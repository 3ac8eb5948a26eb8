"""Llama 4: experts of top-1 beside a shared one, chunked attention in three layers of four. Llama 3.2 Vision: layers
that attend to an image beside those that attend to the text.

Shapes: huggingface/transformers, models/llama4 and models/mllama (text part).
A chunk bounds what is cached as a window does.
"""

from __future__ import annotations

from dataclasses import replace

from chipwise.workload.families.shared import attention_dims, check_activation, dense_ffn, layer_count, tied
from chipwise.workload.model import CrossAttention, Dense, Layer, MoE
from chipwise.workload.reader import Reader

__all__ = ["read", "read_mllama"]

# Every fourth layer has no rotary embedding and sees everything (Llama4TextConfig.no_rope_layer_interval).
FULL_EVERY = 4


def read(r: Reader) -> tuple[list[Layer], bool]:
    """Layers and tying."""
    check_activation(r)
    layers = layer_count(r)
    r.skip("use_qk_norm", "attn_temperature_tuning", "attn_scale", "floor_scale")  # a norm without weights
    bias = r.flag("attention_bias", default=False)
    attention = replace(attention_dims(r), qkv_bias=bias, out_bias=bias)
    width = r.count("intermediate_size")
    experts = r.count("num_local_experts", high=100_000)
    moe = MoE(experts, r.count("num_experts_per_tok", high=experts), width, shared_width=width)
    dense = Dense(r.count("intermediate_size_mlp", default=width))
    every = r.count("interleave_moe_layer_step", default=1)
    sparse = r.numbers("moe_layers", default=tuple(range(every - 1, layers, every)))
    chunk = r.count("attention_chunk_size", low=0, default=0)
    rope = r.numbers("no_rope_layers", default=())
    if rope:
        full = [flag == 0 for flag in r.numbers("no_rope_layers", length=layers)]
    else:
        interval = r.count("no_rope_layer_interval", default=FULL_EVERY)
        r.assume(
            f"no_rope_layers not given: attention is full in every {interval}th layer, chunked elsewhere"
        )
        full = [(i + 1) % interval == 0 for i in range(layers)]
    return [
        Layer(replace(attention, window=0 if full[i] else chunk), moe if i in sparse else dense)
        for i in range(layers)
    ], tied(r, False)


# Four tiles of 560 x 560 pixels in patches of 14, and one token for each tile (MllamaVisionConfig).
IMAGE_TOKENS = 4 * (40 * 40 + 1)


def read_mllama(r: Reader) -> tuple[list[Layer], bool]:
    """Llama 3.2 Vision: `num_hidden_layers` counts the cross-attention layers too; their keys and values are those of
    one image in four tiles."""
    attention, feed = attention_dims(r), dense_ffn(r)
    crossing = set(r.numbers("cross_attention_layers"))
    hidden = r.count("hidden_size", high=1_000_000)
    cross = CrossAttention(attention.heads, attention.kv_heads, attention.head_dim, IMAGE_TOKENS, hidden)
    r.assume(f"one image of {IMAGE_TOKENS:,} tokens per request; the vision tower is left out")
    r.skip("dropout")
    return [Layer(cross if i in crossing else attention, feed) for i in range(layer_count(r))], tied(r, False)
