"""The dimensions of a trained model as launch files need them, read off its graph and its configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chipwise.api.loaded import load
from chipwise.predict.training.dims import transformer
from chipwise.report.launch.spec import Latent, LaunchNetwork, Rope, Router
from chipwise.workload.model import Dense, LatentAttention, Layer, Model, MoE, SelfAttention

# What Llama 3.1 stretches, which tools that stretch in its way have built in.
LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}


def network_of(model: str) -> LaunchNetwork:
    """The network of a bundled name, a configuration or its folder."""
    found = load(model)
    graph, keys = found.graph, found.config.data
    t = transformer(graph)
    heads, dim = float(t.heads), float(t.head_dim)
    first, last = graph.model.runs[0][1], graph.model.runs[-1][1]
    mixer, routed = first.mixer, last.ffn if isinstance(last.ffn, MoE) else None
    return LaunchNetwork(
        layers=round(float(t.layers)),
        hidden=round(float(t.hidden)),
        ffn=round(float(t.ffn) or float(t.expert_ffn)),
        heads=round(heads),
        kv_heads=mixer.kv_heads if isinstance(mixer, SelfAttention) else round(heads),
        head_dim=round(dim),
        vocabulary=round(float(t.vocab)),
        experts=routed.experts if routed else 0,
        top_k=round(float(t.top_k)),
        expert_ffn=round(float(t.expert_ffn)),
        tied=bool(t.tied),
        plain=_plain(graph.model),
        rope=_rope(keys),
        norm_epsilon=_number(keys.get("rms_norm_eps")),
        # latent attention has norms over its latents
        qk_norm=isinstance(mixer, LatentAttention) or (isinstance(mixer, SelfAttention) and mixer.qk_norm != ""),
        qkv_bias=isinstance(mixer, SelfAttention) and mixer.qkv_bias,
        latent=_latent(mixer),
        dense_layers=graph.model.runs[0][0] if routed and isinstance(first.ffn, Dense) else 0,
        shared=routed.shared_width if routed else 0,
        router=_router(keys, routed) if routed else Router(),
        causal=not isinstance(mixer, SelfAttention) or mixer.causal,
    )


def _latent(mixer: object) -> Latent | None:
    if not isinstance(mixer, LatentAttention):
        return None
    return Latent(mixer.q_rank, mixer.kv_rank, mixer.nope_dim, mixer.rope_dim, mixer.value_dim)


def _rope(keys: Mapping[str, Any]) -> Rope | None:
    """Positions of a configuration, which names them in one of two ways."""
    given = keys.get("rope_parameters") or keys.get("rope_scaling") or {}
    how: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    base = _number(keys.get("rope_theta", how.get("rope_theta")))
    if base is None:
        return None
    kind = str(how.get("rope_type", how.get("type", "")))
    if kind == "llama3" and any(how.get(name, value) != value for name, value in LLAMA3.items()):
        kind = "llama3 with other limits"
    return Rope(
        base,
        "" if kind == "default" else kind,
        _number(how.get("factor")) or 1.0,
        _number(how.get("mscale")) or 1.0,
        _number(how.get("mscale_all_dim")) or 0.0,
    )


def _router(keys: Mapping[str, Any], routed: MoE) -> Router:
    return Router(
        str(keys.get("scoring_func") or "softmax"),
        _number(keys.get("routed_scaling_factor")) or 1.0,
        round(_number(keys.get("n_group")) or 1.0),
        round(_number(keys.get("topk_group")) or 1.0),
        routed.router_buffer,
    )


def _number(value: object) -> float | None:
    """A number of a configuration, None for anything else."""
    return float(value) if isinstance(value, int | float) and value > 0 else None


def _plain(model: Model) -> bool:
    """Whether all layers have one mixer and are of the kinds that Megatron-LM's options describe: gated feed-forward
    layers, or routed experts, or one of the first kind after the other."""
    layers = [layer for _, layer in model.runs]
    kinds = [type(layer.ffn) for layer in layers]
    ordered = kinds in ([Dense], [MoE], [Dense, MoE])
    return ordered and all(_usual(layer) and layer.mixer == layers[0].mixer for layer in layers)


def _lacks(thing: object, *absent: str) -> bool:
    """Whether a part of a layer has none of these."""
    return not any(getattr(thing, name) for name in absent)


def _mixed(m: object) -> bool:
    """Whether a mixer is plain attention, of heads or of latents."""
    if isinstance(m, SelfAttention):
        plain = _lacks(m, "window", "out_bias", "sinks", "gate", "values_are_keys", "borrowed", "index")
        return plain and m.causal and m.key_bias and m.qk_norm != "all" and m.value_dim in (0, m.head_dim)
    return isinstance(m, LatentAttention) and _lacks(m, "bias", "index", "top_k", "gate")


def _usual(layer: Layer) -> bool:
    f = layer.ffn
    odd = ("bias", "shared_gate", "router_bias", "latent", "branches") if isinstance(f, MoE) else ("bias",)
    fed = isinstance(f, Dense | MoE) and f.gated and _lacks(f, *odd)
    around = layer.norms == "before" and layer.streams == 1 and _lacks(layer, "parallel", "side", "depth_mix")
    return bool(_mixed(layer.mixer) and fed and around and layer.norm == "rms" and layer.cross is None)
