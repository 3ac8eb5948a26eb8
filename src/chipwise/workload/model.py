"""A network by its dimensions, before it is turned into operators: what layers do across tokens, layers, ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from chipwise.values import dataclass
from chipwise.workload.precision import Precision


@dataclass(frozen=True, slots=True)
class IndexKeys:
    """A light scorer (sparse attention): `heads` of `head_dim` score every cached token, the best `top_k` of
    which are attended to; one key is kept for every `pool` tokens. With `weighted` a learned weight per head sums
    the scores to one choice for all heads; without, index heads choose each for their own group."""

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


@dataclass(frozen=True, slots=True)
class Dense:
    """A feed-forward of `width`; `gated` has a third matrix (SwiGLU and its kin)."""

    width: int
    gated: bool = True
    bias: bool = False


@dataclass(frozen=True, slots=True)
class MoE:
    """`top_k` of `experts` routed feed-forwards of `width` per token, and shared ones, `shared_width` in all.

    `shared_gate` weighs the shared output by a learned gate. `router_bias` is trained; `router_buffer` is the
    load-balancing correction, stored but not trained. `latent` > 0: experts work on a projection of that
    width instead of the model's, after a norm with `latent_norm`. `branches`: routed and shared experts stand
    between norms of their own, and the router has a gain per input and per expert (Gemma 4).
    """

    experts: int
    top_k: int
    width: int
    gated: bool = True
    bias: bool = False
    shared_width: int = 0
    shared_gate: bool = False
    router_bias: bool = False
    router_buffer: bool = False
    latent: int = 0
    branches: bool = False
    latent_norm: bool = False


FFN = Dense | MoE


@dataclass(frozen=True, slots=True)
class Layer:
    """One residual layer: a token mixer and a feed-forward, either of which may be missing, with a norm
    before each. A decoder beside an encoder has `cross` between them, with a norm of its own. `beside`: a second
    mixer that reads what the first reads and adds to the same output (Falcon-H1).

    `parallel`: both halves read the same input and are added together, so that ranks meet once. `norms`:
    one before each half, one shared by both ("shared"), one before and one after each ("around"), or one before
    each and one after the feed-forward ("third"); norms that stand only after a half cost the same as before it.
    `buffers`: entries that are stored, not trained. `side` > 0: an input of that width per token and layer, gated,
    projected and added at the end (Gemma 4).

    `norm`: "rms" has a gain, "layer" a gain and a bias, "plain" no weights. `streams` > 1: so many residual streams,
    mixed before and after each half (hyper-connections). `depth_mix`: each half reads a learned mixture of the
    outputs of earlier blocks of layers (attention residuals). `precision`: its own, where it is quantised in
    another way than the rest of the model.
    """

    mixer: Mixer | None
    ffn: FFN | None
    norm: Literal["rms", "layer", "plain"] = "rms"
    streams: int = 1
    depth_mix: bool = False
    precision: Precision | None = None
    cross: CrossAttention | None = None
    parallel: bool = False
    norms: Literal["before", "shared", "around", "third"] = "before"
    buffers: int = 0
    side: int = 0
    beside: StateSpace | None = None


@dataclass(frozen=True, slots=True)
class EmbeddingTable:
    """A matrix outside the layers, `copies` alike: a patch embedding, learned positions, a projector."""

    name: str
    rows: int
    cols: int
    bias: bool = False
    copies: int = 1
    buffer: bool = False


@dataclass(frozen=True, slots=True)
class MTP:
    """A multi-token-prediction module: two norms over embedding and hidden state, a projection of both to
    the model width, `layers`, a last norm. The configuration asks for `modules` of them. `tables`: copies of
    embedding and head that published checkpoints store with each, and that runtimes do not load."""

    modules: int
    layers: tuple[Layer, ...]
    tables: int = 0


@dataclass(frozen=True, slots=True)
class Tower:
    """An encoder beside the language model (vision): its width, its layers, and what surrounds them.

    `patches` of every picture, which is resized (0: as many as it has); `tokens` that they are pooled to (0: as many as
    the tables merge them to). A mixer with a window sees separate windows of that many patches. A picture larger than
    `side` pixels is cut into up to `tiles` squares, each a pass, and seen once more as a whole (0: it is not cut).
    """

    name: str
    hidden: int
    runs: tuple[tuple[int, Layer], ...]
    tables: tuple[EmbeddingTable, ...]
    patches: int = 0
    tokens: int = 0
    tiles: int = 0
    side: int = 0


@dataclass(frozen=True, slots=True)
class Ends:
    """What stands before and after the layers, beside the table of tokens.

    `tables` are looked up or added (learned positions, token types). Without `head` there are no logits: an
    encoder, whose `pooler` projects one row per sequence.
    """

    tables: tuple[EmbeddingTable, ...] = ()
    embedding_norm: bool = False
    final_norm: bool = True
    head: bool = True
    head_bias: bool = False
    pooler: bool = False


@dataclass(frozen=True, slots=True)
class NetworkModel:
    """What a family's reader finds: the layers in order, tying of head and embedding, parts beside them.

    `encoder` runs once per request; its output is what `cross` attention of the layers reads.
    """

    layers: Sequence[Layer]
    tied: bool
    mtp: MTP | None = None
    towers: tuple[Tower, ...] = ()
    ends: Ends = Ends()
    encoder: Tower | None = None


@dataclass(frozen=True)
class Model:
    """A decoder: its layers in order as runs of (repeat, layer), its tables, its precision. Or an encoder
    alone, where `ends` has no head; or both, where there is an `encoder`.

    `assumptions` lists what the configuration did not say, in words; `max_context` is 0 where unknown.
    """

    name: str
    architecture: str
    hidden: int
    vocab: int
    runs: tuple[tuple[int, Layer], ...]
    precision: Precision
    tied: bool = False
    max_context: int = 0
    assumptions: tuple[str, ...] = ()
    mtp: MTP | None = None
    towers: tuple[Tower, ...] = ()
    ends: Ends = Ends()
    encoder: Tower | None = None

    @property
    def layers(self) -> int:
        """Number of layers."""
        return sum(repeat for repeat, _ in self.runs)

    def at_precision(self, precision: Precision) -> Model:
        """The same network stored and computed in another precision."""
        runs = runs_of([replace(layer, precision=None) for repeat, layer in self.runs for _ in range(repeat)])
        return replace(self, precision=precision, runs=runs)

    def with_kv(self, name: str) -> Model:
        """The same network with its cache in another format. Raises `UnknownNameError`."""
        runs = tuple(
            (repeat, replace(layer, precision=layer.precision.with_kv(name)) if layer.precision else layer)
            for repeat, layer in self.runs
        )
        return replace(self, precision=self.precision.with_kv(name), runs=runs)


def runs_of(layers: Sequence[Layer]) -> tuple[tuple[int, Layer], ...]:
    """Run-length encoding of a list of layers."""
    runs: list[tuple[int, Layer]] = []
    for layer in layers:
        if runs and runs[-1][1] == layer:
            runs[-1] = (runs[-1][0] + 1, layer)
        else:
            runs.append((1, layer))
    return tuple(runs)
