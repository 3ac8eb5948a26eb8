"""Decoders whose layers differ in heads, windows or experts in ways of their family.

A transformer by its dimensions alone (`transformer:layers=40,hidden=5120,...`): no biases, RMS norms.

Falcon: both halves in parallel, one key/value head (7B) or a few (40B and later).

Shapes: huggingface/transformers, models/falcon. The head is tied; published checkpoints store it twice.

Llama 4: experts of top-1 beside a shared one, chunked attention in three layers of four. Llama 3.2 Vision: layers
that attend to an image beside those that attend to the text.

Shapes: huggingface/transformers, models/llama4 and models/mllama (text part).
A chunk bounds what is cached as a window does.

Gemma 4: sliding layers with small heads, full ones with large heads whose values are their keys.

Shapes: huggingface/transformers, models/gemma4 (read at commit 0246b4f, 2026). Each layer ends with a scalar
that is not trained.

MiMo: Qwen 2's block with a prediction module; MiMo-V2-Flash: two kinds of attention with unlike heads.

Shapes: vllm, model_executor/models/mimo.py, mimo_mtp.py, mimo_v2_flash.py and mimo_v2_mtp.py.

MiniMax-M2: full attention with one norm over all query heads, sigmoid routing with a correction bias.
MiniMax-Text-01 and M1: seven layers of lightning attention to one of softmax attention, softmax routing.

Shapes: the checkpoint's modeling_minimax_m2.py; vllm, model_executor/models/minimax_m2.py and
minimax_text_01.py; huggingface/transformers, models/minimax.

MiniMax-M3: the first layers dense with full attention, the others with experts and an index that chooses
blocks of tokens to attend to.

Shapes: huggingface/transformers, models/minimax_m3_vl. The latest blocks are among those chosen.

Step 3.5 and 3.7 Flash: sliding layers with more query heads than full ones, a gate per head, experts.

Shapes: vllm, model_executor/models/step3p5.py. Where a configuration gives neither `attention_other_setting`
nor the gate, sliding layers have the heads of full ones and no gate, as in that code; the published
Step-3.5-Flash has 96 query heads instead of 64 there and a gate, so that such a count is some percent low.

Llama-Nemotron of neural architecture search: Llama's block with its own widths per layer, halves left out.

Shapes: vllm, model_executor/models/nemotron_nas.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from chipwise.errors import UsageError, shorten
from chipwise.workload.families.latent import routed
from chipwise.workload.families.shared import (
    attention_dims,
    check_activation,
    dense_ffn,
    dense_layers,
    heads_of,
    layer_count,
    override,
    tied,
    windows,
)
from chipwise.workload.model import (
    FFN,
    MTP,
    CrossAttention,
    Dense,
    EmbeddingTable,
    Ends,
    IndexKeys,
    Layer,
    LightningAttention,
    MoE,
    NetworkModel,
    SelfAttention,
)
from chipwise.workload.reader import Reader


def read_dimensions(r: Reader) -> NetworkModel:
    """All layers alike. Raises `UsageError` for heads that do not divide."""
    hidden, heads = r.count("hidden_size", high=1_000_000), r.count("num_attention_heads", high=100_000)
    kv_heads = r.count("num_key_value_heads", high=100_000, default=heads)
    if heads % kv_heads:
        raise UsageError(f"kv_heads {kv_heads} does not divide {heads} heads", "give a divisor")
    if not r.has("head_dim") and hidden % heads:
        raise UsageError(f"{heads} heads do not divide the width of {hidden}", "give head_dim too")
    size = r.count("head_dim", high=65_536, default=hidden // heads)
    attention = SelfAttention(heads, kv_heads, size, causal=r.flag("causal"))
    gated, width = r.flag("gated"), r.count("intermediate_size")
    ffn: FFN = Dense(width, gated=gated)
    if r.has("num_experts"):
        experts = r.count("num_experts", high=100_000)
        shared = r.count("shared_expert_intermediate_size", default=0, low=0)
        top_k = r.count("num_experts_per_tok", high=experts)
        ffn = MoE(experts, top_k, width, gated=gated, shared_width=shared)
    return NetworkModel([Layer(attention, ffn)] * layer_count(r), r.flag("tied"), ends=Ends())


def read_falcon(r: Reader) -> NetworkModel:
    """The new decoder has grouped heads and, by default, a norm for each half."""
    r.skip("alibi", "apply_residual_connection_post_layernorm", "activation", "hidden_act")
    bias = r.flag("bias", default=False)
    many = heads_of(r, bias=bias)
    grouped = r.flag("new_decoder_architecture", default=False)
    one = r.flag("multi_query", default=True)
    stated = r.count("num_kv_heads", high=100_000, default=many.heads)
    kv_heads = stated if grouped else 1 if one else many.heads
    if many.heads % kv_heads:
        raise UsageError(f"{r.origin}: num_kv_heads = {kv_heads} does not divide num_attention_heads = {many.heads}")
    attention = SelfAttention(many.heads, kv_heads, many.head_dim, qkv_bias=bias, out_bias=bias)
    parallel = r.flag("parallel_attn", default=True) or grouped
    each = r.count("num_ln_in_parallel_attn", low=1, high=2, default=2 if grouped else 1)
    norms: Literal["before", "shared"] = "shared" if parallel and each == 1 else "before"
    width = r.count("ffn_hidden_size", "intermediate_size", default=4 * r.count("hidden_size", high=1_000_000))
    layer = Layer(attention, Dense(width, gated=False, bias=bias), norm="layer", parallel=parallel, norms=norms)
    return NetworkModel([layer] * layer_count(r), tied(r, True))


# Every fourth layer has no rotary embedding and sees everything (Llama4TextConfig.no_rope_layer_interval).
FULL_EVERY = 4


def read_llama4(r: Reader) -> tuple[list[Layer], bool]:
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
        r.assume(f"no_rope_layers not given: attention is full in every {interval}th layer, chunked elsewhere")
        full = [(i + 1) % interval == 0 for i in range(layers)]
    return [
        Layer(replace(attention, window=0 if full[i] else chunk), moe if i in sparse else dense) for i in range(layers)
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


def read_gemma4(r: Reader) -> NetworkModel:
    """The dense model, the mixture, and the E models with an input per layer and borrowed keys and values."""
    r.skip("use_bidirectional_attention", "vision_soft_tokens_per_image")
    count = layer_count(r)
    kinds = r.names("layer_types", length=count)
    strange = sorted(set(kinds) - {"full_attention", "sliding_attention"})
    if strange:
        raise UsageError(f"{r.origin}: layer type {strange[0]!r} is not read for this family")
    near, far = _gemma4_attention(r)
    own = count - r.count("num_kv_shared_layers", low=0, high=count, default=0)
    wide = r.flag("use_double_wide_mlp", default=False)
    feed = _gemma4_feed(r)
    side = r.count("hidden_size_per_layer_input", low=0, default=0)

    def layer(index: int, kind: str) -> Layer:
        attention = replace(near if kind == "sliding_attention" else far, borrowed=index >= own)
        mine = feed
        if wide and index >= own and isinstance(feed, Dense):
            mine = replace(feed, width=2 * feed.width)
        return Layer(attention, mine, norms="around", buffers=1, side=side)

    layers = [layer(index, kind) for index, kind in enumerate(kinds)]
    return NetworkModel(layers, tied(r, True), ends=Ends(tables=_side_tables(r, side, count)))


def _side_tables(r: Reader, side: int, layers: int) -> tuple[EmbeddingTable, ...]:
    """Of the inputs per layer: a table of tokens, a projection of the embedding (0.7 % of the FLOPs, not
    priced), a norm."""
    vocab = r.count("vocab_size_per_layer_input", low=0, high=100_000_000, default=0)
    if not side:
        return ()
    hidden = r.count("hidden_size", high=1_000_000)
    return (
        EmbeddingTable("side_embedding", vocab or r.count("vocab_size"), layers * side),
        EmbeddingTable("side_projection", layers * side, hidden),
        EmbeddingTable("side_norm", side, 1),
    )


def _gemma4_attention(r: Reader) -> tuple[SelfAttention, SelfAttention]:
    plain = attention_dims(r)
    bias = r.flag("attention_bias", default=False)
    window = r.count("sliding_window")
    alike = r.flag("attention_k_eq_v", default=False)
    kv_heads, far = plain.kv_heads, override(r, "full_attention")
    if alike:
        stated = {"default": far.count("num_key_value_heads")} if far.has("num_key_value_heads") else {}
        kv_heads = r.count("num_global_key_value_heads", high=plain.heads, **stated)
    else:
        r.skip("num_global_key_value_heads")
    usual = far.count("head_dim", high=65_536, default=plain.head_dim)
    large = r.count("global_head_dim", high=65_536, default=usual)

    def made(kv: int, dim: int, *, window: int = 0, alike: bool = False) -> SelfAttention:
        return SelfAttention(
            plain.heads, kv, dim, window, qkv_bias=bias, out_bias=bias, qk_norm="head", values_are_keys=alike
        )

    return made(plain.kv_heads, plain.head_dim, window=window), made(kv_heads, large, alike=alike)


def _gemma4_feed(r: Reader) -> FFN:
    width = r.count("intermediate_size")
    if not r.flag("enable_moe_block", default=False):
        r.skip("moe_intermediate_size", "expert_intermediate_size", "top_k_experts", "num_experts")
        return Dense(width)
    experts = r.count("num_experts", high=100_000)
    each = r.count("moe_intermediate_size", "expert_intermediate_size")
    return MoE(experts, r.count("top_k_experts", high=experts), each, shared_width=width, branches=True)


# The V2 checkpoints hold three prediction modules; their configurations do not say so.
V2_MODULES = 3


def read(r: Reader) -> NetworkModel:
    """MiMo 7B: biases on query, key and value."""
    attention = replace(attention_dims(r), qkv_bias=r.flag("attention_bias", default=True))
    r.skip("use_mrope")
    ffn = dense_ffn(r)
    stack = [Layer(replace(attention, window=w), ffn) for w in windows(r, layer_count(r))]
    modules = r.count("num_nextn_predict_layers", low=0, high=100, default=0)
    return NetworkModel(stack, tied(r, False), MTP(modules, (Layer(attention, ffn),)))


def read_mimo_v2(r: Reader) -> NetworkModel:
    """MiMo-V2: full and sliding attention by `hybrid_layer_pattern`, experts by `moe_layer_freq`."""
    check_activation(r)
    layers = layer_count(r)
    r.skip("attention_value_scale", "swa_rope_theta", "attention_chunk_size", "layernorm_epsilon", "moe_router_dtype")
    bias = r.flag("attention_bias", default=False)
    full = _mimo_attention(r, "", bias=bias, sinks=r.flag("add_full_attention_sink_bias", default=False))
    window = r.count("sliding_window_size", "sliding_window")
    r.skip("sliding_window")
    slide = replace(
        _mimo_attention(r, "swa_", bias=bias, sinks=r.flag("add_swa_attention_sink_bias", default=False)), window=window
    )
    slides = _mimo_flags(r, "hybrid_layer_pattern", "layer_types", "sliding_attention", "full_attention", layers)
    sparse = _mimo_flags(r, "moe_layer_freq", "mlp_layer_types", "sparse", "dense", layers)
    moe, dense = routed(r, correction=True), Dense(r.count("intermediate_size"))
    stack = [Layer(slide if slides[i] else full, moe if sparse[i] else dense) for i in range(layers)]
    modules = r.count("num_nextn_predict_layers", low=0, high=100, default=V2_MODULES)
    return NetworkModel(stack, tied(r, False), MTP(modules, (Layer(slide, dense),)))


def _mimo_attention(r: Reader, prefix: str, *, bias: bool, sinks: bool) -> SelfAttention:
    heads = r.count(f"{prefix}num_attention_heads", high=100_000)
    kv_heads = r.count(f"{prefix}num_key_value_heads", high=100_000)
    if heads % kv_heads:
        what = f"{r.origin}: {prefix}num_key_value_heads = {kv_heads} does not divide {heads} heads"
        raise UsageError(what, "every key/value head serves the same number of query heads")
    dim = r.count(f"{prefix}head_dim", high=65_536)
    value = r.count(f"{prefix}v_head_dim", high=65_536, default=dim)
    return SelfAttention(heads, kv_heads, dim, qkv_bias=bias, sinks=sinks, value_dim=value)


def _mimo_flags(r: Reader, numbers: str, names: str, yes: str, no: str, layers: int) -> list[bool]:
    """One flag per layer, given as zeros and ones or by name."""
    if r.has(names):
        kinds = r.names(names, length=layers)
        strange = sorted(set(kinds) - {yes, no})
        if strange:
            raise UsageError(f"{r.origin}: {names} holds {strange[0]!r}", f"{yes} or {no}")
        r.skip(numbers)
        return [kind == yes for kind in kinds]
    given = r.numbers(numbers, length=layers)
    if set(given) - {0, 1}:
        raise UsageError(f"{r.origin}: {numbers} holds {max(given)}", "0 or 1 per layer")
    return [flag == 1 for flag in given]


def read_minimax_m2(r: Reader) -> tuple[list[Layer], bool]:
    """Layers and tying. Multi-token-prediction modules are not part of the published checkpoint."""
    check_activation(r)
    r.require("attn_type_list", ([1] * layer_count(r),), "only full attention is read for this family")
    r.require("qk_norm_type", ("per_layer",), "only one norm over all heads is read")
    if r.flag("use_mtp", default=False):
        r.assume("multi-token-prediction modules are left out: the published checkpoint holds none")
    r.skip("mtp_transformer_layers", "num_mtp_modules", "layernorm_full_attention_beta")
    attention = replace(attention_dims(r), qk_norm="all" if r.flag("use_qk_norm", default=False) else "")
    experts = r.count("num_local_experts", high=100_000)
    moe = MoE(
        experts,
        r.count("num_experts_per_tok", high=experts),
        r.count("intermediate_size"),
        shared_width=r.count("shared_intermediate_size", low=0, default=0),
        router_buffer=r.flag("use_routing_bias", default=False),
    )
    return [Layer(attention, moe)] * layer_count(r), tied(r, False)


def read_text_01(r: Reader) -> tuple[list[Layer], bool]:
    """MiniMax-Text-01 and M1."""
    check_activation(r)
    layers = layer_count(r)
    factors = ("full_attention", "linear_attention", "full_attn", "linear_attn", "mlp")
    r.skip(*(f"layernorm_{name}_{end}" for name in factors for end in ("alpha", "beta")))
    r.skip(*(f"{name}_{end}_factor" for name in factors for end in ("alpha", "beta")))
    r.skip("postnorm", "max_model_len", "shared_moe_mode")
    r.require("shared_intermediate_size", (0,), "no shared expert is read for this family")
    full = attention_dims(r)
    lightning = LightningAttention(full.heads, full.head_dim, r.count("block_size", high=65_536, default=256))
    experts = r.count("num_local_experts", high=100_000)
    moe = MoE(experts, r.count("num_experts_per_tok", high=experts), r.count("intermediate_size"))
    if r.has("attn_type_list"):
        r.skip("layer_types")
        kinds = r.numbers("attn_type_list", length=layers)
        if set(kinds) - {0, 1}:
            raise UsageError(f"{r.origin}: attn_type_list holds {max(kinds)}", "0 lightning, 1 softmax attention")
        is_full = [kind == 1 for kind in kinds]
    else:
        names = r.names("layer_types", length=layers)
        if set(names) - {"full_attention", "linear_attention"}:
            raise UsageError(f"{r.origin}: layer type {max(names)!r} is not read for this family")
        is_full = [name == "full_attention" for name in names]
    return [Layer(full if flag else lightning, moe) for flag in is_full], tied(r, False)


def read_by_architecture(r: Reader) -> tuple[list[Layer], bool]:
    """The plain name stands for both: M2 where the architecture says so, Text-01 otherwise."""
    return read_minimax_m2(r) if "M2" in str(r.data.get("architectures")) else read_text_01(r)


# Keys of `sparse_attention_config`, the names that newer configurations give them, and their defaults
# (MiniMaxM3VLTextConfig).
M3_INDEX = {
    "sparse_num_index_heads": ("index_n_heads", 4),
    "sparse_index_dim": ("index_head_dim", 128),
    "sparse_block_size": ("index_block_size", 128),
    "sparse_topk_blocks": ("index_topk_blocks", 16),
}


def read_minimax_m3(r: Reader) -> tuple[list[Layer], bool]:
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
    chosen = replace(plain, index=_m3_index(r, inner))
    sparse_at = _m3_flags(r, inner, "sparse_attention_freq", "layer_types", "minimax_m3_sparse", layers)
    moe = _m3_experts(r)
    routed_at = _m3_flags(r, r, "moe_layer_freq", "mlp_layer_types", "sparse", layers)
    dense = Dense(r.count("dense_intermediate_size", default=moe.width))
    stack = [Layer(chosen if sparse_at[i] else plain, moe if routed_at[i] else dense) for i in range(layers)]
    return stack, tied(r, False)


def _m3_experts(r: Reader) -> MoE:
    experts = r.count("num_local_experts", high=100_000)
    shared = r.count("n_shared_experts", low=0, high=1000, default=1)
    return MoE(
        experts=experts,
        top_k=r.count("num_experts_per_tok", high=experts),
        width=r.count("intermediate_size"),
        shared_width=shared * r.count("shared_intermediate_size", low=0, default=0),
        router_buffer=r.flag("use_routing_bias", default=True),
    )


def _m3_index(r: Reader, inner: Reader) -> IndexKeys:
    heads, dim, block, blocks = (
        inner.count(old, high=65_536, default=r.count(new, high=65_536, default=value))
        for old, (new, value) in M3_INDEX.items()
    )
    return IndexKeys(heads, dim, top_k=block * blocks, weighted=False)


def _m3_flags(r: Reader, where: Reader, numbers: str, names: str, yes: str, layers: int) -> list[bool]:
    """One flag per layer: by name, or as zeros and ones."""
    if r.has(names):
        where.skip(numbers)
        return [name == yes for name in r.names(names, length=layers)]
    return [flag != 0 for flag in where.numbers(numbers, length=layers)]


def read_step(r: Reader) -> NetworkModel:
    """Layers; prediction modules of a sliding layer with a dense feed-forward."""
    check_activation(r)
    layers = layer_count(r)
    r.skip("moe_router_activation", "moe_router_scaling_factor", "need_fp32_gate", "norm_expert_weight")
    r.skip("swiglu_limits", "swiglu_limits_shared", "use_rope_layers", "yarn_only_types", "partial_rotary_factors")
    r.skip("max_seq_len", "att_impl_type", "n_shared_experts")
    full = _full(r)
    slide = _sliding(r, full)
    moe, dense = _step_experts(r), Dense(r.count("intermediate_size"))
    sparse = _sparse_layers(r, layers)
    spans = _step_windows(r, layers)
    stack = [
        Layer(replace(slide, window=spans[i]) if spans[i] else full, moe if i in sparse else dense)
        for i in range(layers)
    ]
    modules = r.count("num_nextn_predict_layers", low=0, high=100, default=0)
    module = Layer(replace(slide, window=max(spans)), dense)
    return NetworkModel(stack, tied(r, False), MTP(modules, (module,)))


def _step_windows(r: Reader, layers: int) -> list[int]:
    """The window of every layer, 0 for full; a list of kinds may go on with the prediction modules'."""
    kinds = r.names("layer_types")
    strange = sorted(set(kinds) - {"full_attention", "sliding_attention"})
    if strange or len(kinds) < layers:
        found = f"the kind {strange[0]!r}" if strange else f"{len(kinds)} entries"
        raise UsageError(f"{r.origin}: layer_types has {found}", f"full or sliding_attention, {layers} of them")
    window = r.count("sliding_window") if "sliding_attention" in kinds else 0
    return [window if kind == "sliding_attention" else 0 for kind in kinds[:layers]]


def _full(r: Reader) -> SelfAttention:
    heads = r.count("num_attention_heads", high=100_000)
    kv_heads = r.count("num_attention_groups", "num_key_value_heads", high=100_000)
    if heads % kv_heads:
        raise UsageError(f"{r.origin}: {kv_heads} key/value heads do not divide num_attention_heads = {heads}")
    # transformers 5 writes neither the gate nor the other setting, and always builds the gate
    gate = r.flag("use_head_wise_attn_gate", default=r.has("mlp_layer_types"))
    bias = r.flag("attention_bias", default=False)
    dim = r.count("head_dim", high=65_536)
    return SelfAttention(heads, kv_heads, dim, qkv_bias=bias, qk_norm="head", gate="head" if gate else "")


def _sliding(r: Reader, full: SelfAttention) -> SelfAttention:
    other = r.table("attention_other_setting")
    if not other and r.has("num_sliding_attention_heads"):
        r.skip("per_layer_config", "mtp_layer_types", "mtp_mlp_layer_types", "query_pre_attn_scalar")
        return replace(full, heads=r.count("num_sliding_attention_heads", high=100_000))
    if not other:
        r.assume("attention_other_setting not given: sliding layers have the heads of full ones")
        return full
    inner = Reader(other, f"{r.origin}: attention_other_setting")
    inner.require("attention_type", ("sliding_attention",), "the other attention is the sliding one")
    heads = inner.count("num_attention_heads", high=100_000)
    kv_heads = inner.count("num_attention_groups", high=100_000)
    if heads % kv_heads:
        raise UsageError(f"{inner.origin}: num_attention_groups = {kv_heads} does not divide {heads} heads")
    return replace(full, heads=heads, kv_heads=kv_heads, head_dim=inner.count("head_dim", high=65_536))


def _step_experts(r: Reader) -> MoE:
    experts = r.count("moe_num_experts", "num_experts", "n_routed_experts", high=100_000)
    return MoE(
        experts=experts,
        top_k=r.count("moe_top_k", "num_experts_per_tok", high=experts),
        width=r.count("moe_intermediate_size"),
        shared_width=r.count("share_expert_dim", low=0, default=0),
        router_buffer=r.flag("use_moe_router_bias", default=r.has("mlp_layer_types")),
    )


def _sparse_layers(r: Reader, layers: int) -> frozenset[int]:
    if r.has("moe_layers_enum"):
        r.skip("first_k_dense_replace")
        text = r.text("moe_layers_enum")
        items = [item.strip() for item in text.split(",") if item.strip()]
        if not all(item.isascii() and item.isdigit() and len(item) < 7 for item in items):
            raise UsageError(f"{r.origin}: moe_layers_enum is {shorten(text, 40)!r}", "layer numbers, comma-separated")
        return frozenset(int(item) for item in items)
    if r.has("mlp_layer_types"):
        return frozenset(i for i, alone in enumerate(dense_layers(r, layers)) if not alone)
    return frozenset(range(r.count("first_k_dense_replace", low=0), layers))


# Widths are rounded up to a multiple of this.
MULTIPLE = 256


def read_nemotron_nas(r: Reader) -> tuple[list[Layer], bool]:
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
        raise UsageError(f"{r.origin}: block_configs is not a list of {layers} entries", "one object per layer")
    bias, mlp_bias = r.flag("attention_bias", default=False), r.flag("mlp_bias", default=False)
    stack: list[Layer] = []
    for i, block in enumerate(blocks):
        if not isinstance(block, Mapping):
            raise UsageError(f"{r.origin}: block_configs[{i}] is {shorten(str(block), 40)}", "expected an object")
        b = Reader(block, f"{r.origin}: block_configs[{i}]")
        mixer = _nas_attention(b, heads, hidden // heads, bias)
        ffn = _nas_ffn(b, hidden, mlp_bias)
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


def _nas_attention(b: Reader, heads: int, head_dim: int, bias: bool) -> SelfAttention | None:
    half = _half(b, "attention")
    if half is None:
        return None
    group = half.count("n_heads_in_group", high=heads)
    if heads % group:
        raise UsageError(f"{half.origin}: n_heads_in_group = {group} does not divide {heads} heads")
    window = half.count("window_length", low=0, default=0)
    return SelfAttention(heads, heads // group, head_dim, window=window, qkv_bias=bias, out_bias=bias)


def _nas_ffn(b: Reader, hidden: int, bias: bool) -> Dense | None:
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
