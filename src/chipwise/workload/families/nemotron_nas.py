"""Llama-Nemotron of neural architecture search: Llama's block with its own widths per layer, halves left out.

Shapes: vllm, model_executor/models/nemotron_nas.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from chipwise.errors import UsageError, shorten
from chipwise.workload.families.shared import check_activation, layer_count, tied
from chipwise.workload.model import Dense, Layer, SelfAttention
from chipwise.workload.reader import Reader

__all__ = ["read"]

# Widths are rounded up to a multiple of this.
MULTIPLE = 256


def read(r: Reader) -> tuple[list[Layer], bool]:
    """Layers and tying. A layer that holds neither half is left out."""
    check_activation(r)
    r.skip("num_key_value_heads", "intermediate_size", "head_dim")
    layers = layer_count(r)
    heads = r.count("num_attention_heads", high=100_000)
    hidden = r.count("hidden_size", high=1_000_000)
    if hidden % heads:
        raise UsageError(f"{r.origin}: num_attention_heads = {heads} does not divide hidden_size = {hidden}")
    blocks = r.data.get("block_configs")
    r.skip("block_configs")
    if not isinstance(blocks, list) or len(blocks) != layers:
        raise UsageError(
            f"{r.origin}: block_configs is not a list of {layers} entries", "one object per layer"
        )
    bias, mlp_bias = r.flag("attention_bias", default=False), r.flag("mlp_bias", default=False)
    stack: list[Layer] = []
    for i, block in enumerate(blocks):
        if not isinstance(block, Mapping):
            raise UsageError(
                f"{r.origin}: block_configs[{i}] is {shorten(str(block), 40)}", "expected an object"
            )
        b = Reader(block, f"{r.origin}: block_configs[{i}]")
        mixer = _attention(b, heads, hidden // heads, bias)
        ffn = _ffn(b, hidden, mlp_bias)
        if mixer or ffn:
            stack.append(Layer(mixer, ffn))
    if not stack:
        raise UsageError(f"{r.origin}: every block is left out", "give block_configs with attention or ffn")
    return stack, tied(r, False)


def _half(b: Reader, key: str) -> Reader | None:
    half = Reader(b.table(key), f"{b.origin}.{key}")
    if half.flag("replace_with_linear", default=False):
        raise UsageError(f"{half.origin}: replace_with_linear is not read yet", "replace_with_linear: false")
    return None if half.flag("no_op", default=False) else half


def _attention(b: Reader, heads: int, head_dim: int, bias: bool) -> SelfAttention | None:
    half = _half(b, "attention")
    if half is None:
        return None
    group = half.count("n_heads_in_group", high=heads)
    if heads % group:
        raise UsageError(f"{half.origin}: n_heads_in_group = {group} does not divide {heads} heads")
    window = half.count("window_length", low=0, default=0)
    return SelfAttention(heads, heads // group, head_dim, window=window, qkv_bias=bias, out_bias=bias)


def _ffn(b: Reader, hidden: int, bias: bool) -> Dense | None:
    half = _half(b, "ffn")
    if half is None:
        return None
    if half.has("intermediate_size"):
        return Dense(half.count("intermediate_size"), bias=bias)
    ratio: Any = half.data.get("ffn_mult")
    if isinstance(ratio, bool) or not isinstance(ratio, (int, float)) or not 0 < ratio <= 1000:
        raise UsageError(f"{half.origin}: ffn_mult is {shorten(str(ratio), 40)}", "a number above 0")
    width = int(2 * ratio * hidden / 3)
    return Dense(max(math.ceil(width / MULTIPLE), 1) * MULTIPLE, bias=bias)
