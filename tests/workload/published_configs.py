"""Dimensions of published models, as their config.json gives them, with counts that are published too.

Counts are those of the Hugging Face metadata, of the trained stack unless said otherwise. They stand here so
that a plain checkout tests the families without the validation data.
"""

from __future__ import annotations

from typing import Any

from chipwise.catalog.configs import ModelConfig
from chipwise.workload.build import build
from chipwise.workload.graph import Graph
from chipwise.workload.load import load_model
from chipwise.workload.model import Model

Config = dict[str, Any]

PLAIN: Config = {"torch_dtype": "bfloat16", "tie_word_embeddings": False, "hidden_act": "silu"}

DEEPSEEK_V3: Config = PLAIN | {
    "model_type": "deepseek_v3",
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "first_k_dense_replace": 3,
    "moe_layer_freq": 1,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 2048,
    "num_nextn_predict_layers": 1,
    "vocab_size": 129280,
    "max_position_embeddings": 163840,
}

DEEPSEEK_V32: Config = DEEPSEEK_V3 | {
    "model_type": "deepseek_v32",
    "index_head_dim": 128,
    "index_n_heads": 64,
    "index_topk": 2048,
}

DEEPSEEK_V2: Config = DEEPSEEK_V3 | {
    "model_type": "deepseek_v2",
    "hidden_size": 5120,
    "intermediate_size": 12288,
    "num_hidden_layers": 60,
    "first_k_dense_replace": 1,
    "n_routed_experts": 160,
    "n_shared_experts": 2,
    "num_experts_per_tok": 6,
    "moe_intermediate_size": 1536,
    "num_nextn_predict_layers": 0,
    "topk_method": "group_limited_greedy",
    "vocab_size": 102400,
}

DEEPSEEK_V2_LITE: Config = DEEPSEEK_V2 | {
    "hidden_size": 2048,
    "intermediate_size": 10944,
    "num_hidden_layers": 27,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "q_lora_rank": None,
    "n_routed_experts": 64,
    "moe_intermediate_size": 1408,
    "topk_method": "greedy",
}

DEEPSEEK_V4_FLASH: Config = PLAIN | {
    "model_type": "deepseek_v4",
    "hidden_size": 4096,
    "num_hidden_layers": 43,
    "num_attention_heads": 64,
    "num_key_value_heads": 1,
    "head_dim": 512,
    "qk_rope_head_dim": 64,
    "q_lora_rank": 1024,
    "o_lora_rank": 1024,
    "o_groups": 8,
    "sliding_window": 128,
    "index_head_dim": 128,
    "index_n_heads": 64,
    "index_topk": 512,
    "compress_ratios": [0, 0, *([4, 128] * 20), 4, 0],
    "hc_mult": 4,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 6,
    "moe_intermediate_size": 2048,
    "num_hash_layers": 3,
    "num_nextn_predict_layers": 1,
    "vocab_size": 129280,
}

GLM_46: Config = PLAIN | {
    "model_type": "glm4_moe",
    "hidden_size": 5120,
    "intermediate_size": 12288,
    "num_hidden_layers": 92,
    "num_attention_heads": 96,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "attention_bias": True,
    "use_qk_norm": True,
    "first_k_dense_replace": 3,
    "n_routed_experts": 160,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 1536,
    "num_nextn_predict_layers": 1,
    "vocab_size": 151552,
}

QWEN3_NEXT: Config = PLAIN | {
    "model_type": "qwen3_next",
    "hidden_size": 2048,
    "intermediate_size": 5120,
    "num_hidden_layers": 48,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_value_head_dim": 128,
    "num_experts": 512,
    "num_experts_per_tok": 10,
    "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512,
    "decoder_sparse_step": 1,
    "full_attention_interval": 4,
    "vocab_size": 151936,
}

KIMI_LINEAR: Config = PLAIN | {
    "model_type": "kimi_linear",
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 27,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "q_lora_rank": None,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "num_experts": 256,
    "num_experts_per_token": 8,
    "num_shared_experts": 1,
    "moe_intermediate_size": 1024,
    "first_k_dense_replace": 1,
    "vocab_size": 163840,
    "linear_attn_config": {
        "num_heads": 32,
        "head_dim": 128,
        "short_conv_kernel_size": 4,
        "full_attn_layers": [4, 8, 12, 16, 20, 24, 27],
        "kda_layers": [i for i in range(1, 28) if i % 4 and i != 27],
    },
}

FULL_K3 = [*range(4, 93, 4), 93]

KIMI_K3: Config = KIMI_LINEAR | {
    "model_type": "kimi_k3",
    "hidden_act": "situ",
    "attn_res_block_size": 12,
    "hidden_size": 7168,
    "intermediate_size": 33792,
    "num_hidden_layers": 93,
    "num_attention_heads": 96,
    "num_key_value_heads": 96,
    "q_lora_rank": 1536,
    "num_experts": 896,
    "num_experts_per_token": 16,
    "num_shared_experts": 2,
    "moe_intermediate_size": 3072,
    "routed_expert_hidden_size": 3584,
    "latent_moe_use_norm": True,
    "mla_use_output_gate": True,
    "linear_attn_config": {
        "num_heads": 96,
        "head_dim": 128,
        "short_conv_kernel_size": 4,
        "use_full_rank_gate": True,
        "full_attn_layers": FULL_K3,
        "kda_layers": [i for i in range(1, 94) if i not in FULL_K3],
    },
}

NEMOTRON_3_NANO: Config = PLAIN | {
    "model_type": "nemotron_h",
    "hidden_size": 2688,
    "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
    "num_hidden_layers": 52,
    "num_attention_heads": 32,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "mamba_num_heads": 64,
    "mamba_head_dim": 64,
    "n_groups": 8,
    "ssm_state_size": 128,
    "conv_kernel": 4,
    "n_routed_experts": 128,
    "n_shared_experts": 1,
    "num_experts_per_tok": 6,
    "moe_intermediate_size": 1856,
    "moe_shared_expert_intermediate_size": 3712,
    "mlp_hidden_act": "relu2",
    "time_step_limit": [0.0, float("inf")],
    "vocab_size": 131072,
}

NEMOTRON_NANO_9B: Config = PLAIN | {
    "model_type": "nemotron_h",
    "hidden_size": 4480,
    "hybrid_override_pattern": "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-",
    "intermediate_size": 15680,
    "num_attention_heads": 40,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "mamba_num_heads": 128,
    "mamba_head_dim": 80,
    "n_groups": 8,
    "ssm_state_size": 128,
    "conv_kernel": 4,
    "mlp_hidden_act": "relu2",
    "vocab_size": 131072,
}

MINIMAX_TEXT_01: Config = PLAIN | {
    "model_type": "minimax_text_01",
    "hidden_size": 6144,
    "intermediate_size": 9216,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "num_local_experts": 32,
    "num_experts_per_tok": 2,
    "attn_type_list": [1 if i % 8 == 7 else 0 for i in range(80)],
    "vocab_size": 200064,
}

MIMO_V2_FLASH: Config = PLAIN | {
    "model_type": "mimo_v2_flash",
    "hidden_size": 4096,
    "intermediate_size": 16384,
    "num_hidden_layers": 48,
    "num_attention_heads": 64,
    "num_key_value_heads": 4,
    "head_dim": 192,
    "v_head_dim": 128,
    "swa_num_attention_heads": 64,
    "swa_num_key_value_heads": 8,
    "swa_head_dim": 192,
    "swa_v_head_dim": 128,
    "sliding_window": 128,
    "sliding_window_size": 128,
    "hybrid_layer_pattern": [0, 1, 1, 1, 1, 0, *([1, 1, 1, 1, 1, 0] * 7)],
    "moe_layer_freq": [0, *([1] * 47)],
    "add_swa_attention_sink_bias": True,
    "n_routed_experts": 256,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 2048,
    "vocab_size": 152576,
}

MINIMAX_M3: Config = PLAIN | {
    "model_type": "minimax_m3",
    "hidden_size": 6144,
    "intermediate_size": 3072,
    "dense_intermediate_size": 12288,
    "shared_intermediate_size": 3072,
    "num_hidden_layers": 60,
    "num_attention_heads": 64,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "num_local_experts": 128,
    "n_shared_experts": 1,
    "num_experts_per_tok": 4,
    "moe_layer_freq": [0] * 3 + [1] * 57,
    "qk_norm_type": "per_head",
    "sparse_attention_config": {
        "sparse_num_index_heads": 4,
        "sparse_index_dim": 128,
        "sparse_block_size": 128,
        "sparse_topk_blocks": 16,
        "sparse_attention_freq": [0] * 3 + [1] * 57,
    },
    "vocab_size": 200064,
}

STEP_35: Config = PLAIN | {
    "model_type": "step3p5",
    "hidden_size": 4096,
    "intermediate_size": 11264,
    "num_hidden_layers": 45,
    "num_attention_heads": 64,
    "num_attention_groups": 8,
    "head_dim": 128,
    "use_head_wise_attn_gate": True,
    "sliding_window": 512,
    "layer_types": ["sliding_attention" if i % 4 else "full_attention" for i in range(45)],
    "attention_other_setting": {
        "attention_type": "sliding_attention",
        "num_attention_heads": 96,
        "num_attention_groups": 8,
        "head_dim": 128,
    },
    "moe_layers_enum": ",".join(str(i) for i in range(3, 45)),
    "moe_num_experts": 288,
    "moe_top_k": 8,
    "moe_intermediate_size": 1280,
    "share_expert_dim": 1280,
    "use_moe_router_bias": True,
    "vocab_size": 128896,
}

GRANITE_4_SMALL: Config = PLAIN | {
    "model_type": "granitemoehybrid",
    "tie_word_embeddings": True,
    "hidden_size": 4096,
    "num_hidden_layers": 40,
    "layer_types": ["attention" if i in (5, 15, 25, 35) else "mamba" for i in range(40)],
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_local_experts": 72,
    "num_experts_per_tok": 10,
    "intermediate_size": 768,
    "shared_intermediate_size": 1536,
    "mamba_n_heads": 128,
    "mamba_d_head": 64,
    "mamba_n_groups": 1,
    "mamba_d_state": 128,
    "mamba_d_conv": 4,
    "vocab_size": 100352,
}

MAMBA2: Config = {
    "model_type": "mamba2",
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": True,
    "hidden_size": 2560,
    "num_hidden_layers": 64,
    "num_heads": 80,
    "head_dim": 64,
    "n_groups": 1,
    "state_size": 128,
    "conv_kernel": 4,
    "vocab_size": 50288,
}

GLM_4_9B: Config = PLAIN | {
    "model_type": "glm4",
    "hidden_size": 4096,
    "intermediate_size": 13696,
    "num_hidden_layers": 40,
    "num_attention_heads": 32,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "attention_bias": True,
    "vocab_size": 151552,
}

ERNIE_21B: Config = PLAIN | {
    "model_type": "ernie4_5_moe",
    "tie_word_embeddings": True,
    "hidden_size": 2560,
    "intermediate_size": 12288,
    "num_hidden_layers": 28,
    "num_attention_heads": 20,
    "num_key_value_heads": 4,
    "moe_num_experts": 64,
    "moe_k": 6,
    "moe_intermediate_size": 1536,
    "moe_num_shared_experts": 2,
    "moe_layer_start_index": 1,
    "moe_layer_end_index": 27,
    "moe_layer_interval": 1,
    "vocab_size": 103424,
}

QWEN2_VL_7B: Config = PLAIN | {
    "model_type": "qwen2_vl",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "vocab_size": 152064,
    "vision_config": {
        "depth": 32,
        "embed_dim": 1280,
        "mlp_ratio": 4,
        "num_heads": 16,
        "in_chans": 3,
        "hidden_size": 3584,
        "patch_size": 14,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
    },
}

QWEN25_VL_7B: Config = QWEN2_VL_7B | {
    "model_type": "qwen2_5_vl",
    "vision_config": {
        "depth": 32,
        "hidden_size": 1280,
        "intermediate_size": 3420,
        "num_heads": 16,
        "in_chans": 3,
        "out_hidden_size": 3584,
        "patch_size": 14,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
    },
}

LATENT: dict[str, Config] = {
    "deepseek-v3": DEEPSEEK_V3,
    "deepseek-v3.2": DEEPSEEK_V32,
    "deepseek-v2": DEEPSEEK_V2,
    "deepseek-v2-lite": DEEPSEEK_V2_LITE,
    "deepseek-v4-flash": DEEPSEEK_V4_FLASH,
}

HYBRID: dict[str, Config] = {
    "qwen3-next": QWEN3_NEXT,
    "kimi-linear": KIMI_LINEAR,
    "kimi-k3": KIMI_K3,
    "nemotron-3-nano": NEMOTRON_3_NANO,
    "nemotron-nano-9b": NEMOTRON_NANO_9B,
    "minimax-text-01": MINIMAX_TEXT_01,
    "granite-4-small": GRANITE_4_SMALL,
    "mamba2": MAMBA2,
}

OTHER: dict[str, Config] = {
    "glm-4.6": GLM_46,
    "glm-4-9b": GLM_4_9B,
    "ernie-21b": ERNIE_21B,
    "mimo-v2-flash": MIMO_V2_FLASH,
    "step-3.5": STEP_35,
    "minimax-m3": MINIMAX_M3,
    "qwen2-vl-7b": QWEN2_VL_7B,
    "qwen2.5-vl-7b": QWEN25_VL_7B,
}

EVERY = LATENT | HYBRID | OTHER


def as_config(data: Config, name: str = "model") -> ModelConfig:
    return ModelConfig(name, data, "config.json")


def model_of(data: Config) -> Model:
    return load_model(as_config(data))


def graph_of(data: Config) -> Graph:
    return build(model_of(data))
