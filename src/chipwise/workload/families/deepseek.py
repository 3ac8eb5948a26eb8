"""DeepSeek V2, V3, R1, V3.1 and V3.2, Kimi K2, GLM-5: latent attention, fine-grained experts, shared experts.

Shapes: deepseek-ai/DeepSeek-V3 (inference/model.py), deepseek-ai/DeepSeek-V3.2-Exp (inference/model.py,
Indexer), huggingface/transformers, models/deepseek_v2, deepseek_v3, glm_moe_dsa and glm4_moe_lite. A
prediction module holds one layer of the kind that the stack ends with (vllm, deepseek_mtp.py).
"""

from __future__ import annotations

from dataclasses import replace

from chipwise.errors import UsageError
from chipwise.workload.families.decoder import families
from chipwise.workload.families.shared import check_activation, dense_ffn, dense_layers, layer_count, tied
from chipwise.workload.model import FFN, MTP, Dense, IndexKeys, LatentAttention, Layer, MoE, Network
from chipwise.workload.reader import Reader

__all__ = [
    "latent_dims",
    "prediction",
    "read_axk1",
    "read_indexed",
    "read_longcat",
    "read_v2",
    "read_v3",
    "routed",
]


def read_v2(r: Reader) -> Network:
    """DeepSeek V2: softmax routing without a correction, queries low-rank or not."""
    if r.data.get("use_mla") is False:
        return families()["deepseek"].read(r)
    return _network(r, None, correction=r.data.get("topk_method") == "noaux_tc")


def read_v3(r: Reader) -> Network:
    """DeepSeek V3 and its kin: sigmoid routing with a correction that balances the load."""
    return _network(r, None, correction=True)


def read_axk1(r: Reader) -> Network:
    """A.X-K1: DeepSeek V3 with one more norm, after the feed-forward."""
    found = read_v3(r)
    return replace(found, layers=[replace(layer, norms="third") for layer in found.layers])


def read_longcat(r: Reader) -> Network:
    """LongCat-Flash: double layers of two latent attentions and two dense feed-forwards, with experts on a shortcut
    beside both. Of the experts that a token chooses, those that do nothing cost nothing."""
    check_activation(r)
    r.skip("attention_method", "mla_scale_q_lora", "mla_scale_kv_lora", "zero_expert_type", "router_bias")
    real, idle = r.count("n_routed_experts", high=100_000), r.count("zero_expert_num", low=0, default=0)
    chosen = r.count("moe_topk", "num_experts_per_tok", high=real + idle)
    r.assume(
        f"of {chosen} experts per token {idle / (real + idle):.0%} do nothing, if all are equally likely"
    )
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
    return Network([Layer(attention, moe), Layer(attention, dense)] * pairs, tied(r, False))


def read_indexed(r: Reader) -> Network:
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


def _network(r: Reader, index: IndexKeys | None, *, correction: bool) -> Network:
    check_activation(r)
    layers = layer_count(r)
    attention = latent_dims(r, index)
    if not (r.has("n_routed_experts") or r.has("moe_intermediate_size")):
        return Network([Layer(attention, dense_ffn(r))] * layers, tied(r, False))
    moe = routed(r, correction=correction)
    follower = replace(attention, index=None, top_k=index.top_k) if index else attention
    follows = _followers(r, layers) if index else [False] * layers
    is_dense = dense_layers(r, layers)
    dense: FFN = moe
    if any(is_dense):
        dense = Dense(r.count("intermediate_size"))
    else:
        r.skip("intermediate_size")
    stack = [
        Layer(follower if follows[i] else attention, dense if is_dense[i] else moe) for i in range(layers)
    ]
    return Network(stack, tied(r, False), prediction(r, Layer(attention, moe)))


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
        every, offset = (
            r.count("index_topk_freq", default=1),
            r.count("index_skip_topk_offset", low=0, default=2),
        )
        return [max(i - offset + 1, 0) % every != 0 for i in range(layers)]
    strange = sorted(set(kinds) - {"full", "shared"})
    if strange or kinds[0] != "full":
        found = strange[0] if strange else "shared in the first layer"
        raise UsageError(
            f"{r.origin}: index kind {found!r} is not read", "full or shared, the first one full"
        )
    return [kind == "shared" for kind in kinds]
