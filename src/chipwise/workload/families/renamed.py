"""Older families name the common keys in their own way (huggingface/transformers, `attribute_map`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chipwise.workload.families.gemma import GEMMA3_DEFAULTS
from chipwise.workload.reader import Reader

__all__ = ["completed", "renamed"]

GPT = {
    "n_embd": "hidden_size",
    "n_layer": "num_hidden_layers",
    "n_head": "num_attention_heads",
    "n_positions": "max_position_embeddings",
    "n_inner": "intermediate_size",
    "activation_function": "hidden_act",
}

NESTED = {
    "d_model": "hidden_size",
    "n_heads": "num_attention_heads",
    "n_layers": "num_hidden_layers",
    "max_seq_len": "max_position_embeddings",
}

RENAMED: Mapping[str, Mapping[str, str]] = {
    "gpt2": GPT,
    "gpt_bigcode": GPT,
    "gptj": GPT,
    "codegen": GPT,
    "chatglm": {
        "num_layers": "num_hidden_layers",
        "multi_query_group_num": "num_key_value_heads",
        "kv_channels": "head_dim",
        "ffn_hidden_size": "intermediate_size",
        "padded_vocab_size": "vocab_size",
        "seq_length": "max_position_embeddings",
    },
    "bloom": {
        "n_embed": "hidden_size",
        "n_layer": "num_hidden_layers",
        "n_head": "num_attention_heads",
        "seq_length": "max_position_embeddings",
    },
    "falcon": {
        "n_layer": "num_hidden_layers",
        "n_head": "num_attention_heads",
        "n_head_kv": "num_kv_heads",
    },
    "opt": {"ffn_dim": "intermediate_size"},
    "distilbert": {
        "dim": "hidden_size",
        "n_layers": "num_hidden_layers",
        "n_heads": "num_attention_heads",
        "hidden_dim": "intermediate_size",
        "activation": "hidden_act",
    },
    "mpt": NESTED,
    "dbrx": NESTED,
    "t5": {"d_model": "hidden_size", "n_positions": "max_position_embeddings"},
    "whisper": {"d_model": "hidden_size", "max_target_positions": "max_position_embeddings"},
}
"""By `model_type`: the family's key and the common one."""


def renamed(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The configuration with common keys; a common key that is given as well stands."""
    names = RENAMED.get(str(data.get("model_type")), {})
    found = {names.get(key, key): value for key, value in data.items()}
    return {**found, **{key: value for key, value in data.items() if key not in names}}


DEFAULTS: Mapping[str, Mapping[str, int]] = {"gemma3": GEMMA3_DEFAULTS, "gemma3_text": GEMMA3_DEFAULTS}
"""Dims of families whose published configurations leave out what equals the public implementation's default."""


def completed(kind: str, r: Reader) -> Reader:
    """The configuration with its family's defaults, each recorded as an assumption."""
    absent = {key: value for key, value in DEFAULTS.get(kind, {}).items() if not r.has(key)}
    if not absent:
        return r
    full = Reader({**r.data, **absent}, r.origin)
    for key, value in absent.items():
        full.assume(f"{key} not given: {value}, the family's default")
    return full
