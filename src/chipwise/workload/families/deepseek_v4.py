"""DeepSeek V4: one shared key/value head over a window and over compressed tokens, four residual streams.

Shapes: huggingface/transformers, models/deepseek_v4. Layers whose `compress_ratios` entry is 0 see the window
alone, 4 adds overlapping pools of four tokens of which an index selects, 128 pools without overlap that are
all attended to. The first `num_hash_layers` route by a table of token ids: 8 bytes per expert chosen and word
(a few MB per layer), which is not counted.
"""

from __future__ import annotations

from chipwise.errors import UsageError
from chipwise.workload.families.deepseek import routed
from chipwise.workload.families.shared import check_activation, layer_count, tied
from chipwise.workload.model import MTP, CompressedAttention, IndexKeys, Layer, MoE, Network
from chipwise.workload.reader import Reader

__all__ = ["read"]

SELECTED = 4
"""The ratio whose pools overlap and are selected from."""

KINDS = {"sliding_attention": 0, "compressed_sparse_attention": SELECTED, "heavily_compressed_attention": 128}


def read(r: Reader) -> Network:
    """Layers, and the prediction module, which sees the window alone."""
    check_activation(r)
    layers = layer_count(r)
    r.require("num_key_value_heads", (1,), "one head is shared by all queries")
    r.skip("qk_rope_head_dim", "hc_eps", "hc_sinkhorn_iters", "compress_rope_theta")
    r.require("attention_bias", (False,), "no bias is read for this family")
    heads, groups = r.count("num_attention_heads", high=100_000), r.count("o_groups", high=100_000)
    if heads % groups:
        raise UsageError(f"{r.origin}: o_groups = {groups} does not divide num_attention_heads = {heads}")
    index = IndexKeys(
        heads=r.count("index_n_heads", high=100_000),
        head_dim=r.count("index_head_dim", high=65_536),
        top_k=r.count("index_topk"),
    )
    streams = r.count("hc_mult", high=64, default=4)
    head_dim = r.count("head_dim", high=65_536)
    q_rank, out_rank = r.count("q_lora_rank"), r.count("o_lora_rank")
    window = r.count("sliding_window")

    def attention(ratio: int) -> CompressedAttention:
        selected = ratio == SELECTED
        return CompressedAttention(
            heads, head_dim, q_rank, groups, out_rank, window, ratio, selected, index if selected else None
        )

    hashed = r.count("num_hash_layers", low=0, default=3)
    stack = [
        Layer(attention(ratio), _experts(r, by_hash=i < hashed), streams=streams)
        for i, ratio in enumerate(_ratios(r, layers))
    ]
    module = Layer(attention(0), _experts(r, by_hash=False), streams=streams)
    mtp = MTP(r.count("num_nextn_predict_layers", low=0, high=100, default=0), (module,), tables=2)
    return Network(stack, tied(r, False), mtp)


def _experts(r: Reader, *, by_hash: bool) -> MoE:
    return routed(r, correction=not by_hash)


def _ratios(r: Reader, layers: int) -> tuple[int, ...]:
    """Tokens per compressed entry of every layer; a list may go on with the prediction modules'."""
    if r.has("layer_types"):
        kinds = r.names("layer_types", length=layers)
        strange = sorted(set(kinds) - set(KINDS))
        if strange:
            raise UsageError(f"{r.origin}: layer type {strange[0]!r} is not read for this family")
        return tuple(KINDS[kind] for kind in kinds)
    ratios = r.numbers("compress_ratios")
    if len(ratios) < layers:
        what = f"{r.origin}: compress_ratios has {len(ratios)} entries"
        raise UsageError(what, f"expected {layers}, one per layer")
    if any(ratio < 0 or ratio > 1_000_000 for ratio in ratios):
        raise UsageError(
            f"{r.origin}: compress_ratios holds {min(ratios)} to {max(ratios)}", "0 or more tokens"
        )
    return ratios[:layers]
