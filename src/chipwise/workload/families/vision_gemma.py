"""Vision towers of Gemma 3 and 4. Counted; images are not priced yet.

Shapes: huggingface/transformers, models/siglip, gemma3 (Gemma3MultiModalProjector), gemma4.
"""

from __future__ import annotations

from chipwise.workload.families.shared import heads_of
from chipwise.workload.model import Dense, Layer, SelfAttention, Table, Tower
from chipwise.workload.reader import Reader

__all__ = ["gemma3", "gemma4"]


def gemma3(r: Reader, hidden: int) -> Tower:
    """SigLIP: learned positions, biases everywhere, a last norm; then a norm and a projection."""
    r.skip("vision_use_head", "attention_dropout")
    width = r.count("hidden_size", high=100_000)
    heads = heads_of(r, bias=True)
    encoder = SelfAttention(
        heads.heads, heads.heads, heads.head_dim, qkv_bias=True, out_bias=True, causal=False
    )
    layer = Layer(encoder, Dense(r.count("intermediate_size"), gated=False, bias=True), norm="layer")
    patch = r.count("patch_size", high=1024)
    side = r.count("image_size", high=100_000) // patch
    tables = (
        Table("patch", width, r.count("num_channels", default=3) * patch * patch, bias=True),
        Table("positions", side * side, width),
        Table("last_norm", width, 1, bias=True),
        Table("projector_norm", width, 1),
        Table("projector", hidden, width),
    )
    return Tower("vision", width, ((r.count("num_hidden_layers", high=10_000), layer),), tables)


def gemma4(r: Reader, hidden: int) -> Tower:
    """Norms around each half and over heads, a gated feed-forward, positions per axis; mean and deviation of
    the output are stored, not trained."""
    r.skip(
        "attention_bias", "global_head_dim", "default_output_length", "image_seq_length", "video_seq_length"
    )
    r.skip("max_position_embeddings", "pooling_kernel_size", "use_clipped_linears")
    width = r.count("hidden_size", high=100_000)
    heads = r.count("num_attention_heads", high=10_000)
    kv_heads = r.count("num_key_value_heads", high=10_000, default=heads)
    size = r.count("head_dim", high=65_536, default=width // heads)
    attention = SelfAttention(heads, kv_heads, size, qk_norm="head", causal=False)
    layer = Layer(attention, Dense(r.count("intermediate_size")), norms="around")
    patch = r.count("patch_size", high=1024)
    tables: tuple[Table, ...] = (
        Table("patch", width, 3 * patch * patch),
        Table("positions", r.count("position_embedding_size"), width, copies=2),
        Table("projector", hidden, width),
    )
    if r.flag("standardize", default=False):
        tables += (Table("standardize", width, 1, copies=2, buffer=True),)
    return Tower("vision", width, ((r.count("num_hidden_layers", high=10_000), layer),), tables)
