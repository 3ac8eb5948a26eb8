"""Phi: both halves in parallel after one norm (1 and 2); Llama's block with fused matrices (3 and 4).

Shapes: huggingface/transformers, models/phi and models/phi3.
"""

from __future__ import annotations

from dataclasses import replace

from chipwise.workload.families.shared import attention_dims, dense_ffn, heads_of, layer_count, tied, windows
from chipwise.workload.model import Dense, Ends, Layer, Network
from chipwise.workload.reader import Reader

__all__ = ["read_phi", "read_phi3"]


def read_phi(r: Reader) -> Network:
    """Phi-1, 1.5 and 2: biases everywhere, on the head too."""
    r.require("qk_layernorm", (False,), "norms over heads are not read for this family")
    r.skip("hidden_act")
    heads = heads_of(r, bias=True)
    attention = replace(heads, kv_heads=r.count("num_key_value_heads", high=heads.heads, default=heads.heads))
    feed = Dense(r.count("intermediate_size"), gated=False, bias=True)
    layer = Layer(attention, feed, norm="layer", parallel=True, norms="shared")
    return Network([layer] * layer_count(r), tied(r, False), ends=Ends(head_bias=True))


def read_phi3(r: Reader) -> Network:
    """Phi-3, 3.5 and 4."""
    r.require("attention_bias", (False,), "the published models have none")
    attention, feed = attention_dims(r), dense_ffn(r)
    layers = [Layer(replace(attention, window=w), feed) for w in windows(r, layer_count(r))]
    return Network(layers, tied(r, False))
