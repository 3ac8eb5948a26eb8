"""Families of networks, chosen by `model_type`: rows of a table (`decoder.families`), and readers of their own for
those whose layers differ in kind.

A reader turns configuration keys into layers. What a family's configurations leave out is taken from the
defaults of the public implementation and recorded as an assumption.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from chipwise.workload.families import (
    deepseek,
    deepseek_v4,
    dimensions,
    encoder_decoder,
    falcon,
    gemma4,
    granite_hybrid,
    kimi_linear,
    llama4,
    mimo,
    minimax,
    minimax_m3,
    nemotron_h,
    nemotron_nas,
    qwen_next,
    step,
)
from chipwise.workload.families.decoder import Family, families
from chipwise.workload.model import Layer, Network
from chipwise.workload.reader import Reader

__all__ = ["NOT_READ_YET", "READERS", "RENAMED", "find_family", "known_types"]

Layers = tuple[list[Layer], bool] | Network
"""The layers in order and whether the head is tied to the embedding; or a network with parts beside them."""

READERS: Mapping[str, Callable[[Reader], Layers]] = {
    "transformer": dimensions.read,
    "llama4": llama4.read,
    "llama4_text": llama4.read,
    "minimax_m2": minimax.read,
    "minimax_m3": minimax_m3.read,
    "minimax_m3_vl": minimax_m3.read,
    "minimax_m3_vl_text": minimax_m3.read,
    "minimax": minimax.read_by_architecture,
    "minimax_m1": minimax.read_text_01,
    "minimax_text_01": minimax.read_text_01,
    "kimi_linear": kimi_linear.read,
    "kimi_k3": kimi_linear.read,
    "nemotron-nas": nemotron_nas.read,
    "deepseek_v2": deepseek.read_v2,
    "deepseek_v3": deepseek.read_v3,
    "deepseek_v32": deepseek.read_indexed,
    "deepseek_v4": deepseek_v4.read,
    "kimi_k2": deepseek.read_v3,
    "kimi_k25": deepseek.read_v3,
    "kimi_vl": deepseek.read_v3,
    "glm_moe_dsa": deepseek.read_indexed,
    "glm4_moe_lite": deepseek.read_v3,
    "granitemoehybrid": granite_hybrid.read,
    "mamba2": granite_hybrid.read_mamba2,
    "qwen3_next": qwen_next.read_next,
    "qwen3_5": qwen_next.read_dense,
    "qwen3_5_text": qwen_next.read_dense,
    "qwen3_5_moe": qwen_next.read_moe,
    "qwen3_5_moe_text": qwen_next.read_moe,
    "nemotron_h": nemotron_h.read,
    "mimo_v2_flash": mimo.read_v2,
    "mimo_v2": mimo.read_v2,
    "falcon": falcon.read,
    "gemma4": gemma4.read,
    "gemma4_text": gemma4.read,
    "t5": encoder_decoder.read_t5,
    "whisper": encoder_decoder.read_whisper,
    "step3p5": step.read,
    "step3p7": step.read,
}
"""Families that no row of the table describes."""

RENAMED: Mapping[str, Mapping[str, str]] = {
    "falcon": {"n_layer": "num_hidden_layers", "n_head": "num_attention_heads", "n_head_kv": "num_kv_heads"},
    "t5": {"d_model": "hidden_size", "n_positions": "max_position_embeddings"},
    "whisper": {"d_model": "hidden_size", "max_target_positions": "max_position_embeddings"},
}
"""Their keys and the common ones (huggingface/transformers, `attribute_map`)."""

NOT_READ_YET: dict[str, str] = {
    "mamba": "state-space layers",
    "jamba": "state-space layers of the first kind",
    "falcon_h1": "attention and a state space side by side",
}


def find_family(kind: str) -> Family | None:
    """The row of a family; None where it has a reader of its own, or none."""
    return families().get(kind)


def known_types() -> tuple[str, ...]:
    """Every `model_type` that is read."""
    return (*READERS, *families())
