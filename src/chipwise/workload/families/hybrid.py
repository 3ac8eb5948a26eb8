"""Layers with a state instead of a cache, beside or between attention.

State spaces and short convolutions with or beside attention: Granite 4, Bamba, Mamba-2, Falcon-H1, Jamba, LFM2.

Shapes: huggingface/transformers, models/granitemoehybrid, bamba, mamba2, falcon_h1, jamba, lfm2 and lfm3.

Nemotron-H and Nemotron 3: each layer is one of Mamba-2, attention, feed-forward or experts.

Shapes: huggingface/transformers, models/nemotron_h. Feed-forwards have no gate (squared ReLU); experts may
work on a latent projection. A prediction module runs its own pattern of layers (vllm, nemotron_h_mtp.py).

Qwen3-Next, Qwen3.5 and Qwen3.6: three gated delta nets to one gated attention layer.

Shapes: huggingface/transformers, models/qwen3_next, qwen3_5 and qwen3_5_moe. The prediction module is one
full-attention layer (vllm, qwen3_next_mtp.py and qwen3_5_mtp.py).
"""

from __future__ import annotations

from dataclasses import replace

from chipwise.errors import UsageError, shorten
from chipwise.workload.families.shared import (
    attention_dims,
    check_activation,
    dense_ffn,
    layer_count,
    state_format,
    tied,
    windows,
)
from chipwise.workload.model import (
    FFN,
    MTP,
    Dense,
    EmbeddingTable,
    Ends,
    IndexKeys,
    Layer,
    LinearAttention,
    MoE,
    NetworkModel,
    SelectiveScan,
    SelfAttention,
    ShortConvolution,
    StateSpace,
)
from chipwise.workload.reader import Reader

LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
# names that newer configurations use for the same
SAME = {"linear_attention": "mamba", "full_attention": "attention"}


def read_nemotron_h(r: Reader) -> NetworkModel:
    """Layers by pattern, and prediction modules by theirs."""
    r.require("mlp_hidden_act", ("relu2", "relu", "gelu", "silu"), "feed-forwards without a gate are read")
    r.require("sliding_window", (None,), "full attention is read for this family")
    r.skip("chunk_size", "expand", "mamba_hidden_act", "mamba_proj_bias", "mamba_ssm_cache_dtype", "n_shared_experts")
    r.skip("moe_shared_expert_overlap", "num_logits_to_keep", "rescale_prenorm_residual", "residual_in_fp32")
    r.skip(
        "time_step_floor", "time_step_limit", "time_step_max", "time_step_min", "time_step_rank", "use_mamba_kernels"
    )
    kinds = _pattern(r, "layers_block_type", "hybrid_override_pattern")
    if not kinds:
        raise UsageError(f"{r.origin}: no layers_block_type or hybrid_override_pattern", "it names every layer")
    count = r.count("num_hidden_layers", high=10_000, default=len(kinds))
    if count != len(kinds):
        what = f"{r.origin}: num_hidden_layers = {count}, but the pattern names {len(kinds)} layers"
        raise UsageError(what, "correct one of them")
    modules = r.count("num_nextn_predict_layers", low=0, high=100, default=0)
    ahead = _pattern(r, "mtp_layers_block_type", "mtp_hybrid_override_pattern")
    if modules and not ahead:
        r.assume("prediction modules without a pattern: one attention layer and one of experts")
        ahead = ("attention", "moe")
    if "mlp" not in (*kinds, *ahead):
        r.skip("intermediate_size")  # a width that no layer uses
    made = {kind: _layer(r, kind) for kind in dict.fromkeys((*kinds, *ahead))}
    mtp = MTP(modules, tuple(made[kind] for kind in ahead)) if ahead else None
    return NetworkModel([made[kind] for kind in kinds], tied(r, False), mtp)


def _pattern(r: Reader, names: str, letters: str) -> tuple[str, ...]:
    if r.has(names):
        r.skip(letters)
        kinds = tuple(SAME.get(kind, kind) for kind in r.names(names))
    else:
        text = r.text(letters, default="")
        kinds = tuple(LETTERS.get(letter, letter) for letter in text)
    strange = [kind for kind in kinds if kind not in LETTERS.values()]
    if strange:
        what = f"{r.origin}: layer kind {shorten(strange[0], 20)!r} is not read for this family"
        raise UsageError(what, f"one of {', '.join(LETTERS.values())}")
    if len(kinds) > 10_000:
        raise UsageError(f"{r.origin}: a pattern of {len(kinds):,} layers", "10,000 layers at most")
    return kinds


def _layer(r: Reader, kind: str) -> Layer:
    bias = r.flag("mlp_bias", default=False)
    if kind == "mamba":
        return Layer(_nemotron_space(r), None)
    if kind == "attention":
        older = "attention_head_dim"
        dims = attention_dims(r, older if r.has(older) and not r.has("head_dim") else "head_dim")
        qkv = r.flag("attention_bias", default=False)
        return Layer(replace(dims, qkv_bias=qkv, out_bias=qkv), None)
    if kind == "mlp":
        return Layer(None, Dense(r.count("intermediate_size"), gated=False, bias=bias))
    if bias:
        raise UsageError(f"{r.origin}: mlp_bias with experts is not read yet", "mlp_bias: false")
    experts = r.count("n_routed_experts", high=100_000)
    return Layer(
        None,
        MoE(
            experts=experts,
            top_k=r.count("num_experts_per_tok", high=experts),
            width=r.count("moe_intermediate_size"),
            gated=False,
            shared_width=r.count("moe_shared_expert_intermediate_size", low=0, default=0),
            router_buffer=True,
            latent=r.count("moe_latent_size", low=0, default=0),
        ),
    )


def _nemotron_space(r: Reader) -> StateSpace:
    heads = r.count("mamba_num_heads", high=100_000)
    groups = r.count("n_groups", "mamba_n_groups", high=100_000)
    if heads % groups:
        what = f"{r.origin}: n_groups = {groups} does not divide mamba_num_heads = {heads}"
        raise UsageError(what, "every group serves the same number of heads")
    return StateSpace(
        heads=heads,
        head_dim=r.count("mamba_head_dim", high=65_536),
        groups=groups,
        state=r.count("ssm_state_size", high=65_536),
        conv_width=r.count("conv_kernel", "mamba_d_conv", high=1024),
        chunk=r.count("chunk_size", "mamba_chunk_size", high=1_000_000, default=128),
        conv_bias=r.flag("use_conv_bias", "mamba_conv_bias", default=True),
        bias=r.flag("use_bias", default=False),
        state_format=state_format(r, "mamba_ssm_cache_dtype"),
    )


# Qwen3NextConfig.full_attention_interval
FULL_EVERY = 4


def read_dense(r: Reader) -> NetworkModel:
    """Qwen3.5 with a gated feed-forward in every layer."""
    r.skip("mlp_only_layers")
    layers = layer_count(r)
    return _network(r, [dense_ffn(r)] * layers, modules=r.count("mtp_num_hidden_layers", low=0, high=100, default=0))


def read_moe(r: Reader) -> NetworkModel:
    """Qwen3.5 with experts and a gated shared expert."""
    ffns = _experts(r)
    return _network(r, ffns, modules=r.count("mtp_num_hidden_layers", low=0, high=100, default=0))


def read_olmo_hybrid(r: Reader) -> NetworkModel:
    """OLMo Hybrid: no gate on attention, a norm over all its query and key heads, a dense feed-forward."""
    r.skip(*(key for key in r.data if key.startswith(("linear_a_log", "linear_dt"))), "linear_allow_neg_eigval")
    bias = r.flag("attention_bias", default=False)
    full = replace(attention_dims(r), qkv_bias=bias, out_bias=bias, qk_norm="all")
    linear, feed = _delta_net(r), dense_ffn(r)
    return NetworkModel(
        [Layer(full if flag else linear, feed) for flag in _full_layers(r, layer_count(r))], tied(r, False)
    )


def read_next_exp(r: Reader) -> NetworkModel:
    """Qwen4-Exp (Qwen3.8-Flash-Next): attention on tokens that an index chooses, gated residual streams, and tables
    of n-grams that are looked up."""
    r.skip("ple_layer_ids", "ple_conv_kernel_size", "make_ngram_vocab_size_divisible_by", "seed", "split_ngram_parts")
    r.skip(
        "ple_offload_embedding",
        "indexer_compress_ratio",
        "number_of_conv_states",
        "indexer_kv_heads",
        "mlp_only_layers",
    )
    network = _network(r, _experts(r), modules=0)
    hidden, streams, rank = (r.count("hidden_size"), r.count("hc_count", default=1), r.count("hc_lowrank", default=1))
    size = r.count("ple_embed_dim", default=hidden)
    heads = r.count("heads_per_ngram", default=1) * (r.count("ngram_size", low=2, default=2) - 1)
    table = EmbeddingTable("ngrams", r.count("ngram_vocab_size_base", high=10**9), max(size // heads, 1), copies=heads)
    mixing = EmbeddingTable("stream_gates", streams * hidden, 2 * rank + streams, copies=2 * len(network.layers))
    r.assume("n-gram tables and gates of residual streams are held in memory, not timed; no checkpoint was compared")
    if not r.has("indexer_n_heads"):
        r.assume("indexer_n_heads not given: attention is read as full")
        return replace(network, ends=Ends(tables=(table, mixing)))
    index = IndexKeys(
        r.count("indexer_n_heads", high=100_000),
        r.count("indexer_head_dim", high=65_536),
        r.count("indexer_budget"),
        weighted=False,
    )
    layers = [
        replace(x, mixer=replace(x.mixer, index=index)) if isinstance(x.mixer, SelfAttention) else x
        for x in network.layers
    ]
    return replace(network, layers=layers, ends=Ends(tables=(table, mixing)))


def read_next(r: Reader) -> NetworkModel:
    """Qwen3-Next, whose configuration does not name the module that its checkpoints hold."""
    ffns = _experts(r)
    return _network(r, ffns, modules=r.count("num_nextn_predict_layers", low=0, high=100, default=0))


def _network(r: Reader, ffns: list[FFN], *, modules: int) -> NetworkModel:
    check_activation(r)
    bias = r.flag("attention_bias", default=False)
    full = replace(
        attention_dims(r),
        qkv_bias=bias,
        out_bias=bias,
        qk_norm="head",
        gate="element" if r.flag("attn_output_gate", default=True) else "",
    )
    linear = _delta_net(r)
    is_full = _full_layers(r, len(ffns))
    mixers: list[SelfAttention | LinearAttention] = [full if flag else linear for flag in is_full]
    stack = [Layer(mixer, ffn) for mixer, ffn in zip(mixers, ffns, strict=True)]
    if r.flag("mtp_use_dedicated_embeddings", default=False):
        r.assume("mtp_use_dedicated_embeddings: the module's own embedding is left out of its count")
    return NetworkModel(stack, tied(r, False), MTP(modules, (Layer(full, ffns[-1]),)))


def _experts(r: Reader) -> list[FFN]:
    """The feed-forward of every layer: experts, but dense in `mlp_only_layers` and between every
    `decoder_sparse_step`-th."""
    layers = layer_count(r)
    shared = r.count("shared_expert_intermediate_size", low=0)
    experts = r.count("num_experts", "num_local_experts", high=100_000)
    moe = MoE(
        experts,
        r.count("num_experts_per_tok", high=experts),
        r.count("moe_intermediate_size"),
        shared_width=shared,
        shared_gate=shared > 0,
    )
    every = r.count("decoder_sparse_step", low=1, default=1)
    dense_at = set(r.numbers("mlp_only_layers", default=()))
    is_dense = [i in dense_at or (i + 1) % every != 0 for i in range(layers)]
    if not any(is_dense):
        r.skip("intermediate_size")
        return [moe] * layers
    dense = Dense(r.count("intermediate_size"))
    return [dense if flag else moe for flag in is_dense]


def _delta_net(r: Reader) -> LinearAttention:
    keys = r.count("linear_num_key_heads", high=100_000)
    values = r.count("linear_num_value_heads", high=100_000)
    if values % keys:
        what = f"{r.origin}: linear_num_key_heads = {keys} does not divide linear_num_value_heads = {values}"
        raise UsageError(what, "every key head serves the same number of value heads")
    return LinearAttention(
        key_heads=keys,
        value_heads=values,
        key_dim=r.count("linear_key_head_dim", high=65_536),
        value_dim=r.count("linear_value_head_dim", high=65_536),
        conv_width=r.count("linear_conv_kernel_dim", high=1024),
        state_format=state_format(r, "mamba_ssm_dtype"),
    )


def _full_layers(r: Reader, layers: int) -> list[bool]:
    if r.has("layer_types"):
        r.skip("full_attention_interval")
        kinds = r.names("layer_types", length=layers)
        strange = sorted(set(kinds) - {"full_attention", "indexed_attention", "linear_attention"})
        if strange:
            raise UsageError(f"{r.origin}: layer type {strange[0]!r} is not read for this family")
        return [kind != "linear_attention" for kind in kinds]
    if not r.has("full_attention_interval"):
        r.assume(f"layer_types not given: every {FULL_EVERY}th layer has full attention")
    every = r.count("full_attention_interval", default=FULL_EVERY)
    return [(i + 1) % every == 0 for i in range(layers)]


MIXERS = {"mamba": True, "linear_attention": True, "attention": False, "full_attention": False}


def read_granite(r: Reader) -> tuple[list[Layer], bool]:
    """Granite 4."""
    check_activation(r)
    layers = layer_count(r)
    r.skip("attention_multiplier", "embedding_multiplier", "logits_scaling", "residual_multiplier")
    r.skip("position_embedding_type", "mamba_expand", "mamba_chunk_size", "normalization_function", "rms_norm_eps")
    bias = r.flag("attention_bias", default=False)
    attention = replace(attention_dims(r), qkv_bias=bias, out_bias=bias)
    ffn = _ffn(r)
    kinds = r.names("layer_types" if r.has("layer_types") else "layers_block_type", length=layers)
    strange = sorted(set(kinds) - set(MIXERS))
    if strange:
        raise UsageError(f"{r.origin}: layer type {strange[0]!r} is not read", f"one of {', '.join(MIXERS)}")
    if not any(MIXERS[kind] for kind in kinds):
        return [Layer(attention, ffn)] * layers, tied(r, True)
    space = _mamba(r)
    return [Layer(space if MIXERS[kind] else attention, ffn) for kind in kinds], tied(r, True)


def read_bamba(r: Reader) -> tuple[list[Layer], bool]:
    """Bamba: Mamba-2, attention in the layers of `attn_layer_indices`, a dense feed-forward in each."""
    r.skip("mamba_expand", "mamba_chunk_size", "time_step_limit", "z_loss_coefficient", "num_logits_to_keep")
    layers, bias = layer_count(r), r.flag("attention_bias", default=False)
    attention = replace(attention_dims(r), qkv_bias=bias, out_bias=bias)
    ffn, space = dense_ffn(r, bias=r.flag("mlp_bias", default=False)), _mamba(r)
    full = set(r.numbers("attn_layer_indices", default=()))
    if not full:
        r.assume("attn_layer_indices not given: no layer has attention")
    return [Layer(attention if i in full else space, ffn) for i in range(layers)], tied(r, False)


def read_falcon_h1(r: Reader) -> tuple[list[Layer], bool]:
    """Falcon-H1: attention and Mamba-2 side by side in every layer, so that each keeps a cache and a state."""
    r.skip(*(key for key in r.data if key.endswith(("_multiplier", "_multipliers"))))
    r.skip("mamba_expand", "mamba_chunk_size", "mamba_use_mlp", "time_step_limit", "num_logits_to_keep")
    r.skip("time_step_floor", "time_step_max", "time_step_min", "projectors_bias", "mamba_norm_before_gate")
    bias = r.flag("attention_bias", default=False)
    attention = replace(attention_dims(r), qkv_bias=bias, out_bias=bias)
    space = replace(_mamba(r), normed=r.flag("mamba_rms_norm", default=False))
    inner = r.count("mamba_d_ssm", default=space.heads * space.head_dim)
    if inner != space.heads * space.head_dim:
        what = f"{r.origin}: mamba_d_ssm = {inner} is not mamba_n_heads x mamba_d_head"
        raise UsageError(what, "correct one of them")
    ffn = dense_ffn(r, bias=r.flag("mlp_bias", default=False))
    return [Layer(attention, ffn, beside=space)] * layer_count(r), tied(r, False)


def read_jamba(r: Reader) -> tuple[list[Layer], bool]:
    """Jamba: Mamba-1, attention without positions in one layer of `attn_layer_period`, experts in every second."""
    r.skip("use_mamba_kernels", "use_mambapy", "use_associative_scan", "num_logits_to_keep")
    layers, hidden = layer_count(r), r.count("hidden_size", high=1_000_000)
    space = SelectiveScan(
        channels=r.count("mamba_expand", high=64, default=2) * hidden,
        state=r.count("mamba_d_state", high=65_536, default=16),
        rank=r.count("mamba_dt_rank", default=-(-hidden // 16)),
        conv_width=r.count("mamba_d_conv", high=1024, default=4),
        conv_bias=r.flag("mamba_conv_bias", default=True),
        bias=r.flag("mamba_proj_bias", default=False),
        normed=True,
    )
    attention, dense = attention_dims(r), dense_ffn(r)
    full = _every(r, "attn_layer", layers, (8, 4))
    experts = r.count("num_experts", high=100_000, default=1)
    top_k = r.count("num_experts_per_tok", high=max(experts, 2), default=2)
    sparse = _every(r, "expert_layer", layers, (2, 1)) if experts > 1 else [False] * layers
    moe = MoE(experts, min(top_k, experts), dense.width)
    return [Layer(attention if full[i] else space, moe if sparse[i] else dense) for i in range(layers)], tied(r, False)


def read_lfm2(r: Reader) -> tuple[list[Layer], bool]:
    """LFM2 and LFM3: short convolutions, attention with norms over heads in the layers that `layer_types` names."""
    r.skip(*(key for key in r.data if key.startswith(("block_", "conv_dim")) or key == "conv_use_xavier_init"))
    r.skip("num_heads", "use_pos_enc", "norm_eps")
    layers, hidden = layer_count(r), r.count("hidden_size", high=1_000_000)
    gate = r.flag("use_attention_gate", default=False)
    attention = replace(attention_dims(r), qk_norm="head", gate="element" if gate else "")
    convolution = ShortConvolution(
        heads=attention.heads,
        head_dim=hidden // attention.heads,
        width=r.count("conv_L_cache", high=1024, default=3),
        bias=r.flag("conv_bias", default=False),
    )
    if hidden % attention.heads:
        raise UsageError(f"{r.origin}: num_attention_heads = {attention.heads} does not divide {hidden}")
    feeds = _lfm2_feeds(r, layers)
    listed = r.numbers("full_attn_idxs", default=())
    kinds = (
        r.names("layer_types", length=layers)
        if r.has("layer_types")
        else tuple("full_attention" if i in listed else "conv" for i in range(layers))
    )
    spans = windows(
        Reader({**r.data, "layer_types": ["full_attention" if k == "conv" else k for k in kinds]}, r.origin), layers
    )
    r.skip("sliding_window")
    around = r.flag("use_sandwich_norm", default=False)
    mixers: list[SelfAttention | ShortConvolution] = [
        convolution if kind == "conv" else replace(attention, window=spans[i]) for i, kind in enumerate(kinds)
    ]
    return [
        Layer(mixer, feed, norms="around" if around else "before") for mixer, feed in zip(mixers, feeds, strict=True)
    ], tied(r, True)


def _lfm2_feeds(r: Reader, layers: int) -> list[FFN]:
    """Two thirds of `intermediate_size`, rounded up, where `block_auto_adjust_ff_dim`; with experts after the first
    `num_dense_layers`."""
    width = r.count("intermediate_size", "block_ff_dim")
    if r.flag("block_auto_adjust_ff_dim", default=False):
        multiple = r.count("block_multiple_of", default=256)
        width = -(-(2 * width // 3) // multiple) * multiple
    dense = Dense(width)
    if not r.has("num_experts"):
        return [dense] * layers
    experts = r.count("num_experts", high=100_000)
    moe = MoE(
        experts,
        r.count("num_experts_per_tok", high=experts),
        r.count("moe_intermediate_size"),
        router_buffer=r.flag("use_expert_bias", default=True),
    )
    first = r.count("num_dense_layers", low=0, default=0)
    return [dense if i < first else moe for i in range(layers)]


def _every(r: Reader, what: str, layers: int, usual: tuple[int, int]) -> list[bool]:
    period, offset = (r.count(f"{what}_period", default=usual[0]), r.count(f"{what}_offset", low=0, default=usual[1]))
    return [i % period == offset for i in range(layers)]


def _mamba(r: Reader) -> StateSpace:
    """Mamba-2 under the names that hybrids give its dims."""
    names = ("n_heads", "d_head", "n_groups", "d_state", "d_conv", "conv_bias")
    space = _state_space(r, *(f"mamba_{name}" for name in names))
    return replace(space, bias=r.flag("mamba_proj_bias", default=False))


def read_mamba2(r: Reader) -> tuple[list[Layer], bool]:
    """Mamba-2."""
    r.skip("expand", "time_step_floor", "time_step_limit", "time_step_max", "time_step_min", "time_step_rank")
    r.skip("chunk_size", "residual_in_fp32", "rescale_prenorm_residual", "rms_norm", "norm_before_gate")
    space = _state_space(r, "num_heads", "head_dim", "n_groups", "state_size", "conv_kernel", "use_conv_bias")
    space = replace(space, bias=r.flag("use_bias", default=False))
    return [Layer(space, None)] * layer_count(r), tied(r, False)


def _ffn(r: Reader) -> FFN:
    shared = r.count("shared_intermediate_size", low=0, default=0)
    experts = r.count("num_local_experts", low=0, high=100_000, default=0)
    if not experts:
        r.skip("num_experts_per_tok", "intermediate_size")
        return Dense(r.count("shared_intermediate_size"))
    top_k = r.count("num_experts_per_tok", high=experts)
    return MoE(experts, top_k, r.count("intermediate_size"), shared_width=shared)


def _state_space(r: Reader, heads: str, dim: str, groups: str, state: str, conv: str, bias: str) -> StateSpace:
    """The state space under a family's names of its dims."""
    count, shared = r.count(heads, high=100_000), r.count(groups, high=100_000, default=1)
    if count % shared:
        raise UsageError(f"{r.origin}: {groups} = {shared} does not divide {heads} = {count}")
    return StateSpace(
        heads=count,
        head_dim=r.count(dim, high=65_536),
        groups=shared,
        state=r.count(state, high=65_536),
        conv_width=r.count(conv, high=1024),
        chunk=256,
        conv_bias=r.flag(bias, default=True),
    )
