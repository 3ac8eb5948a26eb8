"""MiniMax-M3: the first layers dense with full attention, the others with experts and an index that chooses
blocks of tokens to attend to.

Shapes: huggingface/transformers, models/minimax_m3_vl. The latest blocks are among those chosen.
"""

from __future__ import annotations

from dataclasses import replace

from chipwise.workload.families.shared import attention_dims, check_activation, layer_count, tied
from chipwise.workload.model import Dense, IndexKeys, Layer, MoE
from chipwise.workload.reader import Reader

__all__ = ["read"]

# Keys of `sparse_attention_config`, the names that newer configurations give them, and their defaults
# (MiniMaxM3VLTextConfig).
INDEX = {
    "sparse_num_index_heads": ("index_n_heads", 4),
    "sparse_index_dim": ("index_head_dim", 128),
    "sparse_block_size": ("index_block_size", 128),
    "sparse_topk_blocks": ("index_topk_blocks", 16),
}


def read(r: Reader) -> tuple[list[Layer], bool]:
    """Layers and tying."""
    check_activation(r)
    layers = layer_count(r)
    r.require("qk_norm_type", ("per_head",), "only a norm over each head is read")
    r.require("attention_output_gate", (False,), "no output gate is read")
    r.skip("use_gemma_norm", "swiglu_alpha", "rotary_dim", "shared_moe_mode", "index_local_blocks")
    r.skip("num_nextn_predict_layers", "num_mtp_modules", "mtp_transformer_layers", "use_mtp")
    r.assume("prediction modules are left out: the public code does not build them")
    plain = replace(attention_dims(r), qk_norm="head" if r.flag("use_qk_norm", default=True) else "")
    inner = Reader(r.table("sparse_attention_config"), f"{r.origin}: sparse_attention_config")
    chosen = replace(plain, index=_index(r, inner))
    sparse_at = _flags(r, inner, "sparse_attention_freq", "layer_types", "minimax_m3_sparse", layers)
    moe = _experts(r)
    routed_at = _flags(r, r, "moe_layer_freq", "mlp_layer_types", "sparse", layers)
    dense = Dense(r.count("dense_intermediate_size", default=moe.width))
    stack = [Layer(chosen if sparse_at[i] else plain, moe if routed_at[i] else dense) for i in range(layers)]
    return stack, tied(r, False)


def _experts(r: Reader) -> MoE:
    experts = r.count("num_local_experts", high=100_000)
    shared = r.count("n_shared_experts", low=0, high=1000, default=1)
    return MoE(
        experts=experts,
        top_k=r.count("num_experts_per_tok", high=experts),
        width=r.count("intermediate_size"),
        shared_width=shared * r.count("shared_intermediate_size", low=0, default=0),
        router_buffer=r.flag("use_routing_bias", default=True),
    )


def _index(r: Reader, inner: Reader) -> IndexKeys:
    heads, dim, block, blocks = (
        inner.count(old, high=65_536, default=r.count(new, high=65_536, default=value))
        for old, (new, value) in INDEX.items()
    )
    return IndexKeys(heads, dim, top_k=block * blocks, weighted=False)


def _flags(r: Reader, where: Reader, numbers: str, names: str, yes: str, layers: int) -> list[bool]:
    """One flag per layer: by name, or as zeros and ones."""
    if r.has(names):
        where.skip(numbers)
        return [name == yes for name in r.names(names, length=layers)]
    return [flag != 0 for flag in where.numbers(numbers, length=layers)]
