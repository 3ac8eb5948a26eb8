"""Latent attention.

DeepSeek V2, V3, R1, V3.1 and V3.2, Kimi K2, GLM-5: latent attention, fine-grained experts, shared experts.

Shapes: deepseek-ai/DeepSeek-V3 (inference/model.py), deepseek-ai/DeepSeek-V3.2-Exp (inference/model.py,
Indexer), huggingface/transformers, models/deepseek_v2, deepseek_v3, glm_moe_dsa and glm4_moe_lite. A
prediction module holds one layer of the kind that the stack ends with (vllm, deepseek_mtp.py).

DeepSeek V4: one shared key/value head over a window and over compressed tokens, four residual streams.

Shapes: huggingface/transformers, models/deepseek_v4. Layers whose `compress_ratios` entry is 0 see the window
alone, 4 adds overlapping pools of four tokens of which an index selects, 128 pools without overlap that are
all attended to. The first `num_hash_layers` route by a table of token ids: 8 bytes per expert chosen and word
(a few MB per layer), which is not counted.

Kimi Linear and Kimi K3: three layers of delta attention with a decay per channel to one of latent
attention, experts. K3 adds gates on latent attention, experts on a narrower projection, and a mixture over
earlier blocks of layers in place of the plain residual.

Shapes: vllm, model_executor/models/kimi_linear.py and layers/kda.py; huggingface/transformers, models/kimi_k3.
Layers are numbered from one. K3 pads one vector of 96 decays to 128 in its checkpoint: 2,208 entries not counted.
"""

from __future__ import annotations

from dataclasses import replace

from chipwise.errors import UsageError
from chipwise.workload.families.decoder import families
from chipwise.workload.families.shared import check_activation, dense_ffn, dense_layers, layer_count, tied
from chipwise.workload.model import (
    FFN,
    MTP,
    CompressedAttention,
    Dense,
    IndexKeys,
    LatentAttention,
    Layer,
    LinearAttention,
    MoE,
    NetworkModel,
)
from chipwise.workload.reader import Reader


def read_v2(r: Reader) -> NetworkModel:
    """DeepSeek V2: softmax routing without a correction, queries low-rank or not."""
    if r.data.get("use_mla") is False:
        return families()["deepseek"].read(r)
    return _network(r, None, correction=r.data.get("topk_method") == "noaux_tc")


def read_v3(r: Reader) -> NetworkModel:
    """DeepSeek V3 and its kin: sigmoid routing with a correction that balances the load."""
    return _network(r, None, correction=True)


def read_axk1(r: Reader) -> NetworkModel:
    """A.X-K1: DeepSeek V3 with one more norm, after the feed-forward."""
    found = read_v3(r)
    return replace(found, layers=[replace(layer, norms="third") for layer in found.layers])


def read_longcat(r: Reader) -> NetworkModel:
    """LongCat-Flash: double layers of two latent attentions and two dense feed-forwards, with experts on a shortcut
    beside both. Of the experts that a token chooses, those that do nothing cost nothing."""
    check_activation(r)
    r.skip("attention_method", "mla_scale_q_lora", "mla_scale_kv_lora", "zero_expert_type", "router_bias")
    real, idle = r.count("n_routed_experts", high=100_000), r.count("zero_expert_num", low=0, default=0)
    chosen = r.count("moe_topk", "num_experts_per_tok", high=real + idle)
    r.assume(f"of {chosen} experts per token {idle / (real + idle):.0%} do nothing, if all are equally likely")
    dense = Dense(r.count("ffn_hidden_size", "intermediate_size"))
    moe = MoE(
        real,
        max(round(chosen * real / (real + idle)), 1),
        r.count("expert_ffn_hidden_size", "moe_intermediate_size"),
        shared_width=dense.width,
        router_buffer=True,
    )
    attention = latent_dims(r)
    pairs = r.count("num_layers", "num_hidden_layers", high=10_000)
    return NetworkModel([Layer(attention, moe), Layer(attention, dense)] * pairs, tied(r, False))


def read_indexed(r: Reader) -> NetworkModel:
    """DeepSeek V3.2 and GLM-5: index keys choose which tokens are attended to. In GLM-5.2 most layers take
    over the choice of an earlier one and have no index of their own."""
    r.skip("indexer_rope_interleave", "index_share_for_mtp_iteration", "layer_types")
    if not r.count("q_lora_rank", low=0, default=0) and r.data.get("model_type") != "mistral_large4_text":
        raise UsageError(f"{r.origin}: no q_lora_rank", "index queries are projected from the query latent")
    index = IndexKeys(
        heads=r.count("index_n_heads", high=100_000),
        head_dim=r.count("index_head_dim", high=65_536),
        top_k=r.count("index_topk"),
    )
    found = _network(r, index, correction=True)
    if found.mtp is not None and r.data.get("model_type") == "glm_moe_dsa":
        found = replace(found, mtp=replace(found.mtp, tables=0))
    return found


def latent_dims(r: Reader, index: IndexKeys | None = None) -> LatentAttention:
    """Heads and ranks of latent attention. Raises `UsageError` where `qk_head_dim` contradicts its parts."""
    nope = r.count("qk_nope_head_dim", high=65_536)
    rope = r.count("qk_rope_head_dim", low=0, high=65_536)
    whole = r.count("qk_head_dim", high=200_000, default=nope + rope)
    if whole != nope + rope:
        what = f"{r.origin}: qk_head_dim = {whole} is not qk_nope_head_dim + qk_rope_head_dim = {nope + rope}"
        raise UsageError(what, "correct one of them")
    # the latent is shared by all heads; these keys of the common layout say nothing here
    r.skip("num_key_value_heads", "head_dim", "rope_interleave")
    return LatentAttention(
        heads=r.count("num_attention_heads", high=100_000),
        q_rank=r.count("q_lora_rank", low=0, default=0),
        kv_rank=r.count("kv_lora_rank"),
        nope_dim=nope,
        rope_dim=rope,
        value_dim=r.count("v_head_dim", high=65_536),
        bias=r.flag("attention_bias", default=False),
        index=index,
    )


def routed(r: Reader, *, correction: bool) -> MoE:
    """The routed and shared experts."""
    experts = r.count("n_routed_experts", "num_experts", "num_local_experts", high=100_000)
    width = r.count("moe_intermediate_size")
    shared = r.count("n_shared_experts", low=0, high=1000, default=0)
    return MoE(
        experts=experts,
        top_k=r.count("num_experts_per_tok", high=experts),
        width=width,
        shared_width=shared * width,
        router_buffer=correction,
    )


def prediction(r: Reader, layer: Layer) -> MTP:
    """Prediction modules of one layer each, as many as `num_nextn_predict_layers` says."""
    return MTP(r.count("num_nextn_predict_layers", low=0, high=100, default=0), (layer,), tables=2)


def _network(r: Reader, index: IndexKeys | None, *, correction: bool) -> NetworkModel:
    check_activation(r)
    layers = layer_count(r)
    attention = latent_dims(r, index)
    if not (r.has("n_routed_experts") or r.has("moe_intermediate_size")):
        return NetworkModel([Layer(attention, dense_ffn(r))] * layers, tied(r, False))
    moe = routed(r, correction=correction)
    follower = replace(attention, index=None, top_k=index.top_k) if index else attention
    follows = _followers(r, layers) if index else [False] * layers
    is_dense = dense_layers(r, layers)
    dense: FFN = moe
    if any(is_dense):
        dense = Dense(r.count("intermediate_size"))
    else:
        r.skip("intermediate_size")
    stack = [Layer(follower if follows[i] else attention, dense if is_dense[i] else moe) for i in range(layers)]
    return NetworkModel(stack, tied(r, False), prediction(r, Layer(attention, moe)))


def _followers(r: Reader, layers: int) -> list[bool]:
    """Layers that take over an earlier layer's choice: by list, by letters, or all but every n-th from an
    offset on (transformers, configuration_glm_moe_dsa.py)."""
    schedule = ("index_topk_freq", "index_skip_topk_offset")
    kinds: tuple[str, ...]
    if r.has("indexer_types"):
        r.skip("index_topk_pattern", *schedule)
        kinds = r.names("indexer_types", length=layers)
    elif r.has("index_topk_pattern"):
        r.skip(*schedule)
        letters = {"F": "full", "S": "shared"}
        kinds = tuple(letters.get(letter, letter) for letter in r.text("index_topk_pattern"))
        if len(kinds) != layers:
            raise UsageError(f"{r.origin}: index_topk_pattern has {len(kinds)} letters", f"expected {layers}")
    else:
        every, offset = (r.count("index_topk_freq", default=1), r.count("index_skip_topk_offset", low=0, default=2))
        return [max(i - offset + 1, 0) % every != 0 for i in range(layers)]
    strange = sorted(set(kinds) - {"full", "shared"})
    if strange or kinds[0] != "full":
        found = strange[0] if strange else "shared in the first layer"
        raise UsageError(f"{r.origin}: index kind {found!r} is not read", "full or shared, the first one full")
    return [kind == "shared" for kind in kinds]


SELECTED = 4
"""The ratio whose pools overlap and are selected from."""

V4_KINDS = {"sliding_attention": 0, "compressed_sparse_attention": SELECTED, "heavily_compressed_attention": 128}


def read_v4(r: Reader) -> NetworkModel:
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
        Layer(attention(ratio), _v4_experts(r, by_hash=i < hashed), streams=streams)
        for i, ratio in enumerate(_ratios(r, layers))
    ]
    module = Layer(attention(0), _v4_experts(r, by_hash=False), streams=streams)
    modules = r.count("num_nextn_predict_layers", low=0, high=100, default=0)
    # DSpark: a module for each layer that it reads, without tables
    spark = [key for key in r.data if key.startswith("dspark")]
    r.skip(*spark)
    targets = [r.data[key] for key in spark if "layer" in key and isinstance(r.data[key], list)]
    mtp = MTP(max([modules, *map(len, targets)]), (module,), tables=0 if targets else 2)
    return NetworkModel(stack, tied(r, False), mtp)


def _v4_experts(r: Reader, *, by_hash: bool) -> MoE:
    return routed(r, correction=not by_hash)


def _ratios(r: Reader, layers: int) -> tuple[int, ...]:
    """Tokens per compressed entry of every layer; a list may go on with the prediction modules'."""
    if r.has("layer_types"):
        kinds = r.names("layer_types", length=layers)
        strange = sorted(set(kinds) - set(V4_KINDS))
        if strange:
            raise UsageError(f"{r.origin}: layer type {strange[0]!r} is not read for this family")
        return tuple(V4_KINDS[kind] for kind in kinds)
    ratios = r.numbers("compress_ratios")
    if len(ratios) < layers:
        what = f"{r.origin}: compress_ratios has {len(ratios)} entries"
        raise UsageError(what, f"expected {layers}, one per layer")
    if any(ratio < 0 or ratio > 1_000_000 for ratio in ratios):
        raise UsageError(f"{r.origin}: compress_ratios holds {min(ratios)} to {max(ratios)}", "0 or more tokens")
    return ratios[:layers]


def read_kimi(r: Reader) -> NetworkModel:
    """Layers of delta and of latent attention."""
    check_activation(r)
    r.skip(
        "mla_use_nope",
        "moe_renormalize",
        "moe_router_activation_func",
        "num_expert_group",
        "use_grouped_topk",
        "activation_situ_beta",
        "activation_situ_linear_beta",
    )
    layers = layer_count(r)
    if not r.has("linear_attn_config"):
        return _flat(r, layers)
    inner = Reader(r.table("linear_attn_config"), f"{r.origin}: linear_attn_config")
    heads, dim = inner.count("num_heads", high=100_000), inner.count("head_dim", high=65_536)
    delta = LinearAttention(
        key_heads=heads,
        value_heads=heads,
        key_dim=dim,
        value_dim=dim,
        conv_width=inner.count("short_conv_kernel_size", high=1024),
        gate_rank=dim,
        full_gate=inner.flag("use_full_rank_gate", default=False),
    )
    full, linear = set(inner.numbers("full_attn_layers")), set(inner.numbers("kda_layers"))
    if full & linear or full | linear != set(range(1, layers + 1)):
        what = f"{inner.origin}: full_attn_layers and kda_layers do not name every layer once"
        raise UsageError(what, f"1 to {layers}")
    latent = replace(latent_dims(r), gate="element" if r.flag("mla_use_output_gate", default=False) else "")
    moe = _kimi_experts(r)
    depth_mix = r.count("attn_res_block_size", low=0, default=0) > 0
    dense, is_dense = Dense(r.count("intermediate_size")), dense_layers(r, layers)
    stack = [
        Layer(latent if i + 1 in full else delta, dense if is_dense[i] else moe, depth_mix=depth_mix)
        for i in range(layers)
    ]
    return NetworkModel(stack, tied(r, False), prediction(r, Layer(latent, moe)))


def _kimi_experts(r: Reader) -> MoE:
    experts = r.count("num_experts", "n_routed_experts", high=100_000)
    width = r.count("moe_intermediate_size")
    return MoE(
        experts=experts,
        top_k=r.count("num_experts_per_token", "num_experts_per_tok", high=experts),
        width=width,
        shared_width=r.count("num_shared_experts", "n_shared_experts", low=0, high=1000, default=0) * width,
        router_buffer=True,
        latent=r.count("routed_expert_hidden_size", low=0, default=0),
        latent_norm=r.flag("latent_moe_use_norm", default=False),
    )


def _flat(r: Reader, layers: int) -> NetworkModel:
    """The form that transformers 5 writes, of Kimi Linear and its kin: keys `linear_*`, layers by name.

    Ling 3.0 has full-rank decays and gates, and a gate per head on latent attention; GLM-5.3 has four residual
    streams and index keys, one for every `index_kpool` tokens.
    """
    kind = r.data.get("model_type")
    r.skip("short_conv_kernel_size", "layer_group_size", "kda_safe_gate", "kda_lower_bound", "mtp_loss_scaling_factor")
    r.skip("indexer_types", "index_kpool_always_select_tail", "linear_lower_bound", "hc_eps", "hc_sinkhorn_iters")
    heads, dim = r.count("linear_num_heads", high=100_000), r.count("linear_head_dim", high=65_536)
    ling = kind == "bailing_hybrid"
    delta = LinearAttention(
        key_heads=heads,
        value_heads=heads,
        key_dim=dim,
        value_dim=dim,
        conv_width=r.count("linear_conv_kernel_dim", high=1024),
        gate_rank=dim,
        full_gate=ling,
        full_decay=ling,
    )
    index = None
    if r.has("index_topk"):
        index = IndexKeys(
            heads=r.count("index_n_heads", high=100_000),
            head_dim=r.count("index_head_dim", high=65_536),
            top_k=r.count("index_topk"),
            pool=r.count("index_kpool", default=1),
        )
    latent = replace(latent_dims(r, index), gate="head" if ling else "")
    kinds = r.names("layer_types", length=layers)
    strange = sorted(set(kinds) - {"linear_attention", "full_attention", "indexed_attention"})
    if strange:
        raise UsageError(f"{r.origin}: layer type {strange[0]!r} is not read for this family")
    streams = r.count("hc_mult", high=64, default=1)
    moe, dense, is_dense = _kimi_experts(r), Dense(r.count("intermediate_size")), dense_layers(r, layers)
    stack = [
        Layer(delta if kind == "linear_attention" else latent, dense if is_dense[i] else moe, streams=streams)
        for i, kind in enumerate(kinds)
    ]
    module = prediction(r, Layer(latent, moe, streams=streams))
    return NetworkModel(stack, tied(r, False), replace(module, tables=0))
