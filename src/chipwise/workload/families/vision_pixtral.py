"""The vision tower of Mistral Small 3.1 and later (Pixtral). Counted; images are not priced yet.

Shapes: huggingface/transformers, models/pixtral and models/mistral3 (Mistral3MultiModalProjector).
"""

from __future__ import annotations

from chipwise.workload.families.shared import heads_of
from chipwise.workload.model import Dense, Layer, SelfAttention, Table, Tower
from chipwise.workload.reader import Reader

__all__ = ["mistral3"]


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
        Table("patch", width, r.count("num_channels", default=3) * patch * patch),
        Table("first_norm", width, 1),
        Table("projector_norm", width, 1),
        Table("merger", width, side * side * width),
        Table("projector_in", hidden, width, bias=bias),
        Table("projector_out", hidden, hidden, bias=bias),
    )
    layer = Layer(attention, Dense(r.count("intermediate_size")))
    return Tower("vision", width, ((r.count("num_hidden_layers", high=10_000), layer),), tables)
