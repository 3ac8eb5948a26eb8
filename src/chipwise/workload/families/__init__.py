"""Families of networks, chosen by `model_type`: rows of a table (`decoder.families`), and readers of their own for
those whose layers differ in kind.

A reader turns configuration keys into layers. What a family's configurations leave out is taken from the
defaults of the public implementation and recorded as an assumption.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from chipwise.catalog.parsed import names
from chipwise.workload.families import encoder_decoder, hybrid, latent, layered
from chipwise.workload.families.decoder import Family, families
from chipwise.workload.model import Layer, NetworkModel
from chipwise.workload.reader import Reader

__all__ = ["NOT_READ_YET", "READERS", "RENAMED", "find_family", "known_types"]

Layers = tuple[list[Layer], bool] | NetworkModel
"""The layers in order and whether the head is tied to the embedding; or a network with parts beside them."""

READERS: Mapping[str, Callable[[Reader], Layers]] = {
    "transformer": layered.read_dimensions,
    "llama4": layered.read_llama4,
    "llama4_text": layered.read_llama4,
    "mllama_text_model": layered.read_mllama,
    "minimax_m2": layered.read_minimax_m2,
    "minimax_m3": layered.read_minimax_m3,
    "minimax_m3_vl": layered.read_minimax_m3,
    "minimax_m3_vl_text": layered.read_minimax_m3,
    "minimax": layered.read_by_architecture,
    "minimax_m1": layered.read_text_01,
    "minimax_text_01": layered.read_text_01,
    "kimi_linear": latent.read_kimi,
    "bailing_hybrid": latent.read_kimi,
    "glm5_next_text": latent.read_kimi,
    "kimi_k3": latent.read_kimi,
    "nemotron-nas": layered.read_nemotron_nas,
    "deepseek_v2": latent.read_v2,
    "deepseek_v3": latent.read_v3,
    "deepseek_v32": latent.read_indexed,
    "deepseek_v4": latent.read_v4,
    "deepseek_ref": latent.read_v4,
    "kimi_k2": latent.read_v3,
    "kimi_k25": latent.read_v3,
    "kimi_vl": latent.read_v3,
    "glm_moe_dsa": latent.read_indexed,
    "glm4_moe_lite": latent.read_v3,
    "mistral4": latent.read_v3,
    "youtu": latent.read_v2,
    "minicpm3": latent.read_v2,
    "axk1": latent.read_axk1,
    "longcat_flash": latent.read_longcat,
    "mistral_large4_text": latent.read_indexed,
    "granitemoehybrid": hybrid.read_granite,
    "bamba": hybrid.read_bamba,
    "falcon_h1": hybrid.read_falcon_h1,
    "jamba": hybrid.read_jamba,
    "lfm2": hybrid.read_lfm2,
    "lfm2_moe": hybrid.read_lfm2,
    "lfm3": hybrid.read_lfm2,
    "mamba2": hybrid.read_mamba2,
    "qwen3_next": hybrid.read_next,
    "qwen4_exp_text": hybrid.read_next_exp,
    "olmo_hybrid": hybrid.read_olmo_hybrid,
    "qwen3_5": hybrid.read_dense,
    "qwen3_5_text": hybrid.read_dense,
    "qwen3_5_moe": hybrid.read_moe,
    "qwen3_5_moe_text": hybrid.read_moe,
    "nemotron_h": hybrid.read_nemotron_h,
    "mimo_v2_flash": layered.read_mimo_v2,
    "mimo_v2": layered.read_mimo_v2,
    "falcon": layered.read_falcon,
    "gemma4": layered.read_gemma4,
    "gemma4_text": layered.read_gemma4,
    "gemma4_unified": layered.read_gemma4,
    "gemma4_unified_text": layered.read_gemma4,
    "t5": encoder_decoder.read_t5,
    "whisper": encoder_decoder.read_whisper,
    "step3p5": layered.read_step,
    "step3p7": layered.read_step,
}
"""Families that no row of the table describes."""

_SAID = names("workload/data/other_families.toml")
RENAMED: Mapping[str, Mapping[str, str]] = _SAID["renamed"]
"""Their keys and the common ones (huggingface/transformers, `attribute_map`)."""

NOT_READ_YET: Mapping[str, str] = _SAID["not_read"]
"""Types that are known and not read, and what they are."""


def find_family(kind: str) -> Family | None:
    """The row of a family; None where it has a reader of its own, or none."""
    return families().get(kind)


def known_types() -> tuple[str, ...]:
    """Every `model_type` that is read."""
    return (*READERS, *families())
