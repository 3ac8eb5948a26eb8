"""DBRX and MPT, which keep the dims of attention and feed-forward in nested tables.

Shapes: huggingface/transformers, models/dbrx and models/mpt. Norms have a gain and no offset.
"""

from __future__ import annotations

from dataclasses import replace

from chipwise.workload.families.shared import heads_of, layer_count, tied
from chipwise.workload.model import Dense, Layer, MoE, Network
from chipwise.workload.reader import Reader

__all__ = ["read_dbrx", "read_mpt"]


def read_dbrx(r: Reader) -> Network:
    """A mixture in every layer, grouped key/value heads, no biases."""
    inner = Reader(r.table("attn_config"), f"{r.origin}: attn_config")
    feed = Reader(r.table("ffn_config"), f"{r.origin}: ffn_config")
    heads = heads_of(r, bias=False)
    attention = replace(heads, kv_heads=inner.count("kv_n_heads", high=heads.heads))
    experts = feed.count("moe_num_experts", high=100_000)
    moe = MoE(experts, feed.count("moe_top_k", high=experts), feed.count("ffn_hidden_size"))
    return Network([Layer(attention, moe)] * layer_count(r), tied(r, False))


def read_mpt(r: Reader) -> Network:
    """Positions by a slope per head, no biases anywhere, a tied head."""
    r.require("no_bias", (True,), "only models without biases are read")
    r.skip(
        "logit_scale", "norm_type", "verbose", "embedding_fraction", "init_config", "init_device", "emb_pdrop"
    )
    r.skip("learned_pos_emb", "tokenizer_name", "use_pad_tok_in_ffn", "expansion_ratio")
    inner = Reader(r.table("attn_config"), f"{r.origin}: attn_config")
    heads = heads_of(r, bias=False)
    attention = replace(heads, kv_heads=inner.count("kv_n_heads", high=heads.heads, default=heads.heads))
    width = r.count("expansion_ratio", high=64, default=4) * r.count("hidden_size", high=1_000_000)
    return Network([Layer(attention, Dense(width, gated=False))] * layer_count(r), tied(r, True))
