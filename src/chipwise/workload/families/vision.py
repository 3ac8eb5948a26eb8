"""Vision towers, by the `model_type` that they come with. `workload.media.tower` says what a picture costs.

Shapes: huggingface/transformers, models/qwen2_vl, qwen2_5_vl, exaone4_5, qwen3_vl, minimax_m3_vl, siglip, siglip2,
gemma3, gemma4, pixtral, mistral3, llama4, mllama, glm4v and lfm2_vl; vllm, kimi_k25_vit.py; deepseek-ai/DeepSeek-VL2,
siglip_vit.py. A norm is a matrix of one column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from chipwise.errors import UsageError
from chipwise.workload.families.shared import heads_of
from chipwise.workload.model import Dense, EmbeddingTable, Layer, SelfAttention, Tower
from chipwise.workload.reader import MISSING, Reader


def gemma3(r: Reader, hidden: int) -> Tower:
    """SigLIP: learned positions, biases everywhere, a last norm; then a norm and a projection."""
    r.skip("vision_use_head", "attention_dropout")
    width = r.count("hidden_size", high=100_000)
    heads = heads_of(r, bias=True)
    encoder = SelfAttention(heads.heads, heads.heads, heads.head_dim, qkv_bias=True, out_bias=True, causal=False)
    layer = Layer(encoder, Dense(r.count("intermediate_size"), gated=False, bias=True), norm="layer")
    patch = r.count("patch_size", high=1024)
    side = r.count("image_size", high=100_000) // patch
    tables = (
        EmbeddingTable("patch", width, r.count("num_channels", default=3) * patch * patch, bias=True),
        EmbeddingTable("positions", side * side, width),
        EmbeddingTable("last_norm", width, 1, bias=True),
        EmbeddingTable("projector_norm", width, 1),
        EmbeddingTable("projector", hidden, width),
    )
    pooled = r.count("mm_tokens_per_image", high=100_000, default=256)
    return Tower("vision", width, ((_depth(r, "num_hidden_layers"), layer),), tables, side * side, pooled)


def gemma4(r: Reader, hidden: int) -> Tower:
    """Norms around each half and over heads, a gated feed-forward, positions per axis; mean and deviation of
    the output are stored, not trained."""
    r.skip("attention_bias", "global_head_dim", "image_seq_length", "video_seq_length")
    r.skip("max_position_embeddings", "use_clipped_linears")
    width = r.count("hidden_size", high=100_000)
    heads = r.count("num_attention_heads", high=10_000)
    kv_heads = r.count("num_key_value_heads", high=10_000, default=heads)
    size = r.count("head_dim", high=65_536, default=width // heads)
    attention = SelfAttention(heads, kv_heads, size, qk_norm="head", causal=False)
    layer = Layer(attention, Dense(r.count("intermediate_size")), norms="around")
    patch = r.count("patch_size", high=1024)
    tables: tuple[EmbeddingTable, ...] = (
        EmbeddingTable("patch", width, 3 * patch * patch),
        EmbeddingTable("positions", r.count("position_embedding_size"), width, copies=2),
        EmbeddingTable("projector", hidden, width),
    )
    if r.flag("standardize", default=False):
        tables += (EmbeddingTable("standardize", width, 1, copies=2, buffer=True),)
    tokens = r.count("default_output_length", high=100_000, default=280)
    patches = tokens * r.count("pooling_kernel_size", high=64, default=3) ** 2
    return Tower("vision", width, ((_depth(r, "num_hidden_layers"), layer),), tables, patches, tokens)


def mistral3(r: Reader, hidden: int) -> Tower:
    """Llama's block without biases; squares of patches are merged before two projections."""
    r.skip("head_dim", "image_size")  # heads divide the width; positions are rotary
    width = r.count("hidden_size", high=100_000)
    heads = heads_of(r, bias=False)
    attention = SelfAttention(heads.heads, heads.heads, heads.head_dim, causal=False)
    patch = r.count("patch_size", high=1024)
    side = r.count("spatial_merge_size", high=64, default=2)
    bias = r.flag("multimodal_projector_bias", default=False)
    tables = (
        EmbeddingTable("patch", width, r.count("num_channels", default=3) * patch * patch),
        EmbeddingTable("first_norm", width, 1),
        EmbeddingTable("projector_norm", width, 1),
        EmbeddingTable("merger", width, side * side * width),
        EmbeddingTable("projector_in", hidden, width, bias=bias),
        EmbeddingTable("projector_out", hidden, hidden, bias=bias),
    )
    layer = Layer(attention, Dense(r.count("intermediate_size")))
    return Tower("vision", width, ((r.count("num_hidden_layers", high=10_000), layer),), tables)


def _qwen2_vl(r: Reader, hidden: int) -> Tower:
    """Qwen2-VL: no learned positions; patches are merged in squares into the model width."""
    width = r.count("embed_dim", high=100_000)
    out = r.count("hidden_size", high=1_000_000, default=hidden)
    ratio = r.count("mlp_ratio", high=64)
    heads = _heads(r, "num_heads", width)
    layer = Layer(heads, Dense(ratio * width, gated=False, bias=True), norm="layer")
    patch = EmbeddingTable("patch", width, _patch_values(r))
    tables = (patch, *_merger("merger", width, width * _square(r), out, bias=True))
    return Tower("vision", width, ((_depth(r, "depth"), layer),), tables)


def _qwen2_5_vl(r: Reader, hidden: int) -> Tower:
    """Qwen2.5-VL and EXAONE 4.5: norms without offset, a gated feed-forward, attention in windows but in a few layers.
    EXAONE shares keys and values between heads."""
    r.skip("tokens_per_second")
    width = r.count("hidden_size", high=100_000, default=1280)
    out = r.count("out_hidden_size", high=1_000_000, default=hidden)
    heads, feed = _heads(r, "num_heads", width), Dense(r.count("intermediate_size"), bias=True)
    heads = replace(heads, kv_heads=r.count("num_key_value_heads", high=10_000, default=heads.kv_heads))
    seen = r.count("window_size", high=100_000, default=112) // r.count("patch_size", high=1024, default=14)
    full, local = Layer(heads, feed), Layer(replace(heads, window=seen * seen), feed)
    tables = (
        EmbeddingTable("patch", width, _patch_values(r)),
        *_merger("merger", width, width * _square(r), out, bias=False),
    )
    depth, whole = _depth(r, "depth"), len(r.numbers("fullatt_block_indexes", default=(7, 15, 23, 31)))
    return Tower("vision", width, ((whole, full), (depth - whole, local)), tables)


def _qwen3_vl(r: Reader, hidden: int) -> Tower:
    """Qwen3-VL and Qwen3.5: learned positions, a merger, and one more for every layer tapped on the way."""
    width = r.count("hidden_size", high=100_000)
    out = r.count("out_hidden_size", high=1_000_000, default=hidden)
    feed = Dense(r.count("intermediate_size"), gated=False, bias=True)
    layer = Layer(_heads(r, "num_heads", width), feed, norm="layer")
    square = width * _square(r)
    tables = (
        EmbeddingTable("patch", width, _patch_values(r), bias=True),
        EmbeddingTable("positions", r.count("num_position_embeddings"), width),
        *_merger("merger", width, square, out, bias=True),
    )
    taps = r.numbers("deepstack_visual_indexes", default=())
    for i in range(len(taps)):
        tables += _merger(f"tap{i}", square, square, out, bias=True)
    return Tower("vision", width, ((_depth(r, "depth"), layer),), tables)


def _kimi(r: Reader, hidden: int) -> Tower:
    """Kimi K2.5 and K3 (MoonViT): learned positions on a grid, a last norm, a projector on merged patches.
    K3 has no offsets anywhere, wider heads, and the projector's norm at its end."""
    r.skip("_attn_implementation", "activation_func", "init_pos_emb_time", "merge_type", "pos_emb_type")
    r.skip("pos_emb_interpolation_mode", "projector_hidden_act", "projector_ln_eps", "video_attn_type")
    r.require("mlp_type", ("mlp2",), "two matrices are read")
    r.require("norm_type", ("layernorm", "rmsnorm"), "one of the two is read")
    width, heads = r.count("vt_hidden_size", high=100_000), r.count("vt_num_attention_heads", high=10_000)
    inner = r.count("qkv_hidden_size", high=1_000_000, default=width)
    if inner % heads:
        raise UsageError(f"{r.origin}: vt_num_attention_heads = {heads} does not divide the width {inner}")
    bias, plain = r.flag("attn_bias", default=True), r.data.get("norm_type") == "rmsnorm"
    attention = SelfAttention(heads, heads, inner // heads, qkv_bias=bias, out_bias=bias, causal=False)
    feed = Dense(r.count("vt_intermediate_size"), gated=False, bias=r.flag("linear_bias", default=True))
    layer = Layer(attention, feed, norm="rms" if plain else "layer")
    patch = r.count("patch_size", high=1024)
    grid = r.count("init_pos_emb_height", high=10_000) * r.count("init_pos_emb_width", high=10_000)
    kernel = r.numbers("merge_kernel_size", length=2)
    joined = r.count("mm_hidden_size", high=1_000_000, default=width) * abs(kernel[0] * kernel[1])
    out = r.count("text_hidden_size", high=1_000_000, default=hidden)
    last = r.text("mm_projector_type", default="patchmerger") == "patchmergerv2"
    projector = (
        EmbeddingTable("projector_norm", out if last else width, 1, bias=not last),
        EmbeddingTable("projector_in", joined, joined, bias=not last),
        EmbeddingTable("projector_out", out, joined, bias=not last),
    )
    tables = (
        EmbeddingTable("patch", width, 3 * patch * patch, bias=r.flag("patch_embed_proj_bias", default=True)),
        EmbeddingTable("positions", grid, width),
        EmbeddingTable("last_norm", width, 1, bias=not plain),
        *projector,
    )
    return Tower("vision", width, ((_depth(r, "vt_num_hidden_layers"), layer),), tables)


def _minimax_m3(r: Reader, hidden: int) -> Tower:
    """MiniMax-M3: a norm before the layers; patches are projected, merged in squares and projected again.
    Both projections pass through the width of the language model."""
    r.skip("image_size")
    width = r.count("hidden_size", high=100_000)
    feed = Dense(r.count("intermediate_size"), gated=False, bias=True)
    layer = Layer(_heads(r, "num_attention_heads", width), feed, norm="layer")
    side, frames = r.count("patch_size", high=1024), r.count("temporal_patch_size", high=64, default=2)
    tables = (
        EmbeddingTable("patch", width, r.count("num_channels", high=1024, default=3) * frames * side * side),
        EmbeddingTable("first_norm", width, 1, bias=True),
        EmbeddingTable("projector_in", hidden, width, bias=True),
        EmbeddingTable("projector_out", hidden, hidden, bias=True),
        EmbeddingTable("merger_in", hidden, hidden * _square(r), bias=True),
        EmbeddingTable("merger_out", hidden, hidden, bias=True),
    )
    return Tower("vision", width, ((_depth(r, "num_hidden_layers"), layer),), tables)


def _llama4(r: Reader, hidden: int) -> Tower:
    """Llama 4: norms before and after the layers; squares of patches are merged, projected twice and once more. Its
    processor cuts a picture into up to 16 tiles (huggingface/transformers, image_processing_llama4_fast.py)."""
    r.skip("pixel_shuffle_ratio", "projector_dropout", "attention_dropout", "multi_modal_projector_bias")
    width, inner = r.count("hidden_size", high=100_000), r.count("intermediate_size")
    layer = _encoder(r, "num_attention_heads", width, inner)
    patch, grid = _grid(r)
    middle, out = r.count("projector_input_dim"), r.count("projector_output_dim")
    tables = (
        EmbeddingTable("patch", width, r.count("num_channels", default=3) * patch * patch),
        EmbeddingTable("class", width, 1),
        EmbeddingTable("positions", grid + 1, width),
        EmbeddingTable("outer_norms", width, 1, bias=True, copies=2),
        EmbeddingTable("adapter_in", middle, inner),
        EmbeddingTable("adapter_out", out, middle),
        EmbeddingTable("projector", hidden, r.count("vision_output_dim")),
    )
    depth, side = _depth(r, "num_hidden_layers"), round(grid**0.5) * patch
    return Tower("vision", width, ((depth, layer),), tables, grid + 1, grid // 4, tiles=16, side=side)


def _mllama(r: Reader, hidden: int) -> Tower:
    """Llama 3.2 Vision: layers on tiles of a picture, then gated ones on all of them; tables of positions by the shapes
    that tiles can be laid out in. Layers tapped on the way are projected with the last. Saved configurations leave out
    what is as in transformers' class: 16 heads, pictures of 448, patches of 14, 4 tiles in 8 shapes, 8 last layers."""
    r.skip("intermediate_layers_indices")
    width = r.count("hidden_size", high=100_000)
    inner = r.count("intermediate_size")
    plain = Dense(inner, gated=False, bias=True)
    heads = replace(_heads(r, "attention_heads", width, 16), qkv_bias=False, out_bias=False)
    layer = Layer(heads, plain, norm="layer")
    patch = r.count("patch_size", high=1024, default=14)
    grid = (r.count("image_size", high=100_000, default=448) // patch) ** 2
    tiles = r.count("max_num_tiles", high=1024, default=4)
    shapes = len(r.data.get("supported_aspect_ratios") or range(8)) + 1
    r.skip("supported_aspect_ratios")
    whole = r.count("num_global_layers", high=1024, default=8)
    tables = (
        EmbeddingTable("patch", width, r.count("num_channels", default=3) * patch * patch),
        EmbeddingTable("class", width, 1),
        EmbeddingTable("positions", grid + 1, width),
        EmbeddingTable("tile_positions", shapes, tiles * (grid + 1) * width),
        EmbeddingTable("tiles", shapes, tiles * width, copies=2),
        EmbeddingTable("gates", 2 * whole + 3, 1),
        EmbeddingTable("outer_norms", width, 1, bias=True, copies=2),
        EmbeddingTable("projector", hidden, r.count("vision_output_dim", default=7680), bias=True),
    )
    return Tower("vision", width, ((_depth(r, "num_hidden_layers") + whole, layer),), tables)


def _glm4v(r: Reader, hidden: int) -> Tower:
    """GLM-4.1V: norms without offset, a gated feed-forward of the language model's width, a convolution that merges
    squares of patches, and a gated merger."""
    r.skip("attention_dropout")
    width, out = r.count("hidden_size", high=100_000), r.count("out_hidden_size", default=hidden)
    bias = r.flag("attention_bias", default=False)
    heads = replace(_heads(r, "num_heads", width), qkv_bias=bias, out_bias=bias)
    _, grid = _grid(r)
    context = r.count("intermediate_size")
    tables = (
        EmbeddingTable("patch", width, _patch_values(r), bias=True),
        EmbeddingTable("positions", grid, width),
        EmbeddingTable("outer_norms", width, 1, copies=2),
        EmbeddingTable("downsample", out, width * _square(r), bias=True),
        EmbeddingTable("merger", out, out),
        EmbeddingTable("merger_norm", out, 1, bias=True),
        EmbeddingTable("merger_in", context, out, copies=2),
        EmbeddingTable("merger_out", out, context),
    )
    return Tower("vision", width, ((_depth(r, "depth"), Layer(heads, Dense(out))),), tables)


def _lfm2(r: Reader, hidden: int) -> Tower:
    """LFM2-VL: SigLIP 2 without its head; squares of patches are merged and projected twice."""
    r.skip("vision_use_head", "attention_dropout", "projector_use_layernorm")
    width = r.count("hidden_size", high=100_000)
    layer = _encoder(r, "num_attention_heads", width, r.count("intermediate_size"))
    patch, grid = r.count("patch_size", high=1024), r.count("num_patches", high=1_000_000)
    inner, bias = r.count("projector_hidden_size", default=hidden), r.flag("projector_bias", default=True)
    tables: tuple[EmbeddingTable, ...] = (
        EmbeddingTable("patch", width, r.count("num_channels", default=3) * patch * patch, bias=True),
        EmbeddingTable("positions", grid, width),
        EmbeddingTable("last_norm", width, 1, bias=True),
        EmbeddingTable("projector_in", inner, 4 * width, bias=bias),
        EmbeddingTable("projector_out", hidden, inner, bias=bias),
    )
    if r.data.get("projector_use_layernorm"):
        tables += (EmbeddingTable("projector_norm", 4 * width, 1, bias=True),)
    return Tower("vision", width, ((_depth(r, "num_hidden_layers"), layer),), tables)


def _deepseek_vl2(r: Reader, hidden: int) -> Tower:
    """DeepSeek-VL2: SigLIP with the pooling head that it does not use; squares of patches are projected twice, and rows
    and views of a picture are told apart by learned vectors."""
    r.skip("mlp_ratio", "model_type")
    r.require("model_name", ("siglip_so400m_patch14_384",), "its heads and picture are those of that name")
    width = r.count("width", high=100_000)
    inner = int(width * float(r.data.get("mlp_ratio", 4.0)))
    side = r.count("patch_size", high=1024)
    attention = SelfAttention(16, 16, width // 16, qkv_bias=True, out_bias=True, causal=False)
    layer = Layer(attention, Dense(inner, gated=False, bias=True), norm="layer")
    grid = (384 // side) ** 2
    tables = (
        EmbeddingTable("patch", width, 3 * side * side, bias=True),
        EmbeddingTable("positions", grid, width),
        EmbeddingTable("last_norm", width, 1, bias=True),
        EmbeddingTable("pool", width, 1),
        EmbeddingTable("pool_attention", width, width, bias=True, copies=4),
        EmbeddingTable("pool_norm", width, 1, bias=True),
        EmbeddingTable("pool_in", inner, width, bias=True),
        EmbeddingTable("pool_out", width, inner, bias=True),
        EmbeddingTable("projector_in", hidden, 4 * width, bias=True),
        EmbeddingTable("projector_out", hidden, hidden, bias=True),
        EmbeddingTable("separators", hidden, 1, copies=2),
    )
    return Tower("vision", width, ((_depth(r, "layers"), layer),), tables, grid)


TOWERS: Mapping[str, Callable[[Reader, int], Tower]] = {
    "qwen2_vl": _qwen2_vl,
    "qwen2_5_vl": _qwen2_5_vl,
    "qwen3_vl": _qwen3_vl,
    "qwen3_vl_moe": _qwen3_vl,
    "qwen3_5": _qwen3_vl,
    "qwen3_5_moe": _qwen3_vl,
    "kimi_k25": _kimi,
    "kimi_k3": _kimi,
    "minimax_m3_vl": _minimax_m3,
    "gemma3": gemma3,
    "gemma4": gemma4,
    "mistral3": mistral3,
    "llama4": _llama4,
    "mllama": _mllama,
    "glm4v": _glm4v,
    "lfm2_vl": _lfm2,
    "deepseek_vl_v2": _deepseek_vl2,
    "exaone4_5": _qwen2_5_vl,
}
"""Readers of `vision_config` by the `model_type` of the whole, given the width of the language model."""


def _heads(r: Reader, key: str, width: int, default: Any = MISSING) -> SelfAttention:
    heads = r.count(key, high=10_000, default=default)
    if width % heads:
        raise UsageError(f"{r.origin}: {key} = {heads} does not divide the width {width}")
    return SelfAttention(heads, heads, width // heads, qkv_bias=True, out_bias=True, causal=False)


def _encoder(r: Reader, key: str, width: int, inner: int) -> Layer:
    """A layer of ViT: norms, projections and a plain feed-forward, all with offsets."""
    return Layer(_heads(r, key, width), Dense(inner, gated=False, bias=True), norm="layer")


def _grid(r: Reader) -> tuple[int, int]:
    """The side of a patch, and how many a picture of the size that positions were learned for has."""
    patch = r.count("patch_size", high=1024)
    return patch, (r.count("image_size", high=100_000) // patch) ** 2


def _depth(r: Reader, key: str) -> int:
    return r.count(key, high=10_000)


def _square(r: Reader) -> int:
    """Patches that are merged into one token."""
    side = r.count("spatial_merge_size", high=64, default=2)
    return side * side


def _patch_values(r: Reader) -> int:
    """Values of one patch: channels x frames x height x width."""
    channels = r.count("in_channels", "in_chans", high=1024, default=3)
    side = r.count("patch_size", "spatial_patch_size", high=1024)
    r.skip("spatial_patch_size")
    return channels * r.count("temporal_patch_size", high=64, default=2) * side * side


def _merger(name: str, norm: int, inner: int, out: int, *, bias: bool) -> tuple[EmbeddingTable, ...]:
    """A norm and two matrices with offsets; the norm has one where `bias`."""
    return (
        EmbeddingTable(f"{name}_norm", norm, 1, bias=bias),
        EmbeddingTable(f"{name}_in", inner, inner, bias=True),
        EmbeddingTable(f"{name}_out", out, inner, bias=True),
    )
