"""GLM-4.5, 4.6 and 4.7: grouped-query attention with DeepSeek's experts. GLM-4: dense, biases on query, key and
value; the 0414 series with a norm after each half as well.

Shapes: huggingface/transformers, models/glm, glm4 and glm4_moe.
"""

from __future__ import annotations

from dataclasses import replace

from chipwise.workload.families.deepseek import dense_layers, prediction, routed
from chipwise.workload.families.shared import attention_dims, check_activation, dense_ffn, layer_count, tied
from chipwise.workload.model import Dense, Layer, Network, SelfAttention
from chipwise.workload.reader import Reader

__all__ = ["read_dense", "read_dense_0414", "read_moe"]


def read_dense(r: Reader) -> Network:
    """GLM-4 in its first form."""
    layer = Layer(_attention(r), dense_ffn(r))
    return Network([layer] * layer_count(r), tied(r, False))


def read_dense_0414(r: Reader) -> Network:
    """GLM-4-0414 and GLM-Z1."""
    layer = Layer(_attention(r), dense_ffn(r), norms="around")
    return Network([layer] * layer_count(r), tied(r, False))


def read_moe(r: Reader) -> Network:
    """Layers, and prediction modules of one layer each."""
    check_activation(r)
    layers = layer_count(r)
    attention = replace(_attention(r), qk_norm="head" if r.flag("use_qk_norm", default=False) else "")
    moe, is_dense = routed(r, correction=True), dense_layers(r, layers)
    dense = Dense(r.count("intermediate_size"))
    stack = [Layer(attention, dense if is_dense[i] else moe) for i in range(layers)]
    return Network(stack, tied(r, False), prediction(r, Layer(attention, moe)))


def _attention(r: Reader) -> SelfAttention:
    return replace(attention_dims(r), qkv_bias=r.flag("attention_bias", default=False))
