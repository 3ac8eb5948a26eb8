"""Token mixers by their dimensions: what a layer does across tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = [
    "CompressedAttention",
    "CrossAttention",
    "IndexKeys",
    "LatentAttention",
    "LightningAttention",
    "LinearAttention",
    "Mixer",
    "SelectiveScan",
    "SelfAttention",
    "ShortConvolution",
    "StateSpace",
]


@dataclass(frozen=True, slots=True)
class IndexKeys:
    """A light scorer (sparse attention): `heads` of `head_dim` score every cached token, the best `top_k` of
    which are attended to; one key is kept for every `pool` tokens. With `weighted` a learned weight per head sums the scores to one choice for all
    heads; without, index heads choose each for their own group."""

    heads: int
    head_dim: int
    top_k: int
    weighted: bool = True
    pool: int = 1


@dataclass(frozen=True, slots=True)
class SelfAttention:
    """Softmax attention with `heads` query and `kv_heads` key/value heads of `head_dim`.

    `window` > 0 limits what a token sees, and what is cached, to that many tokens. `qk_norm`: a norm over
    each head ("head") or over all heads ("all"). `sinks`: one learned logit per head. `value_dim`: size of
    value heads where it differs. `gate`: the output is weighed by a projection of the input, one value per
    head ("head") or per element ("element"). Not `causal`: every token sees all, as in an encoder. Without
    `key_bias` keys have none where queries and values do. `values_are_keys`: one projection makes both,
    though both are cached. `borrowed`: keys and values are those of an earlier layer, which caches them.
    `index` chooses the tokens that are attended to.
    """

    heads: int
    kv_heads: int
    head_dim: int
    window: int = 0
    qkv_bias: bool = False
    out_bias: bool = False
    qk_norm: Literal["", "head", "all"] = ""
    sinks: bool = False
    value_dim: int = 0
    gate: Literal["", "head", "element"] = ""
    causal: bool = True
    key_bias: bool = True
    values_are_keys: bool = False
    borrowed: bool = False
    index: IndexKeys | None = None


@dataclass(frozen=True, slots=True)
class CrossAttention:
    """Attention over the output of an encoder of width `source_hidden` and `source` tokens; 0 tokens: as
    many as the context holds, for the prompt is what the encoder reads."""

    heads: int
    kv_heads: int
    head_dim: int
    source: int
    source_hidden: int
    qkv_bias: bool = False
    out_bias: bool = False
    key_bias: bool = True


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """Multi-head latent attention: keys and values are rebuilt from one latent of `kv_rank` per token, beside
    `rope_dim` shared rotary values. `q_rank` 0: queries are projected directly. `index` chooses the tokens
    that are attended to; `top_k` > 0 without it: as many as an earlier layer has chosen. `gate`: the output
    is weighed by a projection of the input, one value per head or per element."""

    heads: int
    q_rank: int
    kv_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int
    bias: bool = False
    index: IndexKeys | None = None
    top_k: int = 0
    gate: Literal["", "head", "element"] = ""


@dataclass(frozen=True, slots=True)
class CompressedAttention:
    """Attention with one shared key = value head over a window and over compressed older tokens.

    One entry per `ratio` tokens (0: window alone), pooled from twice as many where `overlap`. With `index`
    the best `top_k` entries are attended to, else all. The output projection is low-rank per group of heads.
    """

    heads: int
    head_dim: int
    q_rank: int
    out_groups: int
    out_rank: int
    window: int
    ratio: int = 0
    overlap: bool = False
    index: IndexKeys | None = None


@dataclass(frozen=True, slots=True)
class LinearAttention:
    """Gated delta net: a state of key_dim x value_dim per value head instead of a growing cache.

    A depthwise convolution of `conv_width` runs before it. Key heads are shared by value heads. With
    `gate_rank` the state decays per key channel (Kimi delta attention): decay and output gate come from
    projections of that rank, or from full ones with `full_decay` and `full_gate`.
    """

    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    conv_width: int
    state_format: str = "fp32"
    gate_rank: int = 0
    full_gate: bool = False
    full_decay: bool = False


@dataclass(frozen=True, slots=True)
class LightningAttention:
    """Linear attention with a fixed decay per head: a state of head_dim x head_dim per head; gated output."""

    heads: int
    head_dim: int
    block: int = 256


@dataclass(frozen=True, slots=True)
class StateSpace:
    """Mamba-2: a state of head_dim x state per head; inputs and outputs of the state are shared per group.
    `normed`: a gated norm before the output projection."""

    heads: int
    head_dim: int
    groups: int
    state: int
    conv_width: int
    chunk: int = 128
    conv_bias: bool = True
    bias: bool = False
    state_format: str = "fp32"
    normed: bool = True


@dataclass(frozen=True, slots=True)
class SelectiveScan:
    """Mamba-1: a state of `state` values per channel; step, input and output of the state come from a projection of
    `rank` + 2 `state` values, each with a norm of its own where `normed` (Jamba)."""

    channels: int
    state: int
    rank: int
    conv_width: int
    conv_bias: bool = True
    bias: bool = False
    normed: bool = False


@dataclass(frozen=True, slots=True)
class ShortConvolution:
    """A gated depthwise convolution over `width` tokens between two projections (LFM2); no cache that grows. Its
    channels are `heads` x `head_dim`, which are split as heads of attention are."""

    heads: int
    head_dim: int
    width: int
    bias: bool = False


Mixer = (
    SelfAttention
    | CrossAttention
    | LatentAttention
    | CompressedAttention
    | LinearAttention
    | LightningAttention
    | StateSpace
    | SelectiveScan
    | ShortConvolution
)
