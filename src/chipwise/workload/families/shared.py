"""What most decoder families have in common."""

from __future__ import annotations

from collections.abc import Mapping

from chipwise.errors import UsageError, shorten
from chipwise.workload.model import Dense, SelfAttention
from chipwise.workload.reader import Reader

GATED = ("silu", "swish", "gelu", "gelu_pytorch_tanh", "gelu_new", "swiglu", "swigluoai", "situ")

KINDS = {"global": "full_attention", "local": "sliding_attention"}
"""Older names of the kinds of layers."""


def layer_count(r: Reader) -> int:
    """Number of layers."""
    return r.count("num_hidden_layers", high=10_000)


def attention_dims(r: Reader, head_dim: str = "head_dim") -> SelfAttention:
    """Heads, key/value heads and head size; without window, biases or norms.

    The head size is hidden / heads unless it is given under `head_dim`. Raises `UsageError` where heads do
    not divide.
    """
    heads = r.count("num_attention_heads", high=100_000)
    hidden = r.count("hidden_size", high=1_000_000)
    if not r.has("num_key_value_heads"):
        r.assume("num_key_value_heads not given: one per attention head")
    kv_heads = r.count("num_key_value_heads", high=100_000, default=heads)
    if heads % kv_heads:
        what = f"{r.origin}: num_key_value_heads = {kv_heads} does not divide num_attention_heads = {heads}"
        raise UsageError(what, "every key/value head serves the same number of query heads")
    if not r.has(head_dim) and hidden % heads:
        what = f"{r.origin}: num_attention_heads = {heads} does not divide hidden_size = {hidden}"
        raise UsageError(what, f"give {head_dim}")
    return SelfAttention(heads, kv_heads, r.count(head_dim, high=65_536, default=hidden // heads))


def heads_of(r: Reader, *, bias: bool) -> SelfAttention:
    """One key/value head per query head, of hidden / heads each; biases on all four projections or none."""
    heads = r.count("num_attention_heads", high=100_000)
    hidden = r.count("hidden_size", high=1_000_000)
    if hidden % heads:
        what = f"{r.origin}: num_attention_heads = {heads} does not divide hidden_size = {hidden}"
        raise UsageError(what, "every head has the same size")
    return SelfAttention(heads, heads, hidden // heads, qkv_bias=bias, out_bias=bias)


def check_activation(r: Reader) -> None:
    """A gated feed-forward is read from the activation's name; others are refused."""
    name = r.data.get("hidden_act", "silu")
    if name not in GATED:
        raise UsageError(f"{r.origin}: hidden_act = {name!r} is not read for this family", f"one of {', '.join(GATED)}")


def dense_ffn(r: Reader, key: str = "intermediate_size", *, bias: bool = False) -> Dense:
    """A gated feed-forward of the width under `key`."""
    check_activation(r)
    return Dense(r.count(key), bias=bias)


def dense_layers(r: Reader, layers: int) -> list[bool]:
    """Which layers have a dense feed-forward: those of `mlp_layer_types`, else the first
    `first_k_dense_replace`, and all between every `moe_layer_freq`-th."""
    if r.has("mlp_layer_types"):
        r.skip("first_k_dense_replace", "moe_layer_freq")
        kinds = r.names("mlp_layer_types", length=layers)
        strange = sorted(set(kinds) - {"dense", "sparse"})
        if strange:
            raise UsageError(f"{r.origin}: mlp layer type {strange[0]!r} is not read", "dense or sparse")
        return [kind == "dense" for kind in kinds]
    first = r.count("first_k_dense_replace", low=0, default=0)
    every = r.count("moe_layer_freq", default=1)
    return [i < first or i % every != 0 for i in range(layers)]


def override(r: Reader, kind: str) -> Reader:
    """What `per_layer_config` says of the first layer of a kind (the form that transformers 5 writes, keyed by the
    number of the layer); an empty object where it says nothing."""
    table = r.table("per_layer_config")
    kinds = r.names("layer_types", default=())
    found = next((i for i, name in enumerate(kinds) if name == kind), None)
    inner: object = next((v for k, v in table.items() if str(k).isdigit() and int(k) == found), {})
    return Reader(inner if isinstance(inner, Mapping) else {}, f"{r.origin}: per_layer_config")


def state_format(r: Reader, key: str) -> str:
    """Format of recurrent state; 32-bit where the key is absent, as the public kernels keep it."""
    name = r.text(key, default="float32").removeprefix("torch.")
    formats = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}
    if name not in formats:
        raise UsageError(f"{r.origin}: {key} = {shorten(name)!r} is not read", f"one of {', '.join(formats)}")
    return formats[name]


def tied(r: Reader, default: bool) -> bool:
    """Whether the head is the embedding table; a missing key takes the family's default, and says so."""
    if not r.has("tie_word_embeddings"):
        r.assume(f"tie_word_embeddings not given: {str(default).lower()}, the family's default")
    return r.flag("tie_word_embeddings", default=default)


def windows(r: Reader, layers: int) -> list[int]:
    """The attention window of every layer, 0 for full.

    `layer_types` decides where it is given; else `use_sliding_window` with `max_window_layers` (Qwen: the
    first so many layers are full), else `sliding_window` alone (Mistral: every layer).
    """
    size = r.count("sliding_window", low=0, default=0)
    if r.has("layer_types"):
        kinds = [KINDS.get(kind, kind) for kind in r.names("layer_types", length=layers)]
        r.skip("use_sliding_window", "max_window_layers")
        strange = sorted(set(kinds) - {"full_attention", "sliding_attention"})
        if strange:
            raise UsageError(f"{r.origin}: layer type {strange[0]!r} is not read for this family")
        if "sliding_attention" in kinds and not size:
            raise UsageError(f"{r.origin}: sliding layers without sliding_window", "give the window in tokens")
        return [size if kind == "sliding_attention" else 0 for kind in kinds]
    if r.data.get("use_sliding_window") is not None:
        on = r.flag("use_sliding_window")
        full = r.count("max_window_layers", low=0, default=layers)
        return [size if on and i >= full else 0 for i in range(layers)]
    r.skip("max_window_layers")
    return [size] * layers
