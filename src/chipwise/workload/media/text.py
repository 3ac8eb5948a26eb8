"""Encoders of text: BERT and its kin, CLIP, T5, and language models whose hidden states steer a generator.

Shapes: huggingface/transformers, models/bert, distilbert, roberta, mpnet, modernbert, clip, t5, umt5, bart, llama.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from chipwise.values import dataclass
from chipwise.workload.backward import LOSS, LOSS_PASSES
from chipwise.workload.media.layers import LayerBlock, Layers, join


@dataclass(frozen=True, kw_only=True)
class TextEncoder:
    """BERT, RoBERTa, DistilBERT, MPNet, ELECTRA, ALBERT, E5, BGE, MiniLM, ModernBERT, and the text towers of CLIP.

    `types`: rows of a table of segments; `buckets`: of relative positions, one table for all layers; `pooler`: a matrix
    over the first token; `projection`: width of a last matrix over one token (CLIP); `narrow`: width of embeddings that
    are projected up (ALBERT); `shared`: all layers have the same weights; `window`: positions that tokens see outside
    of every `full_every`-th layer; `head`: "mlm" predicts every token, "qa" two numbers per token, "score" one number.
    """

    width: int
    layers: int
    heads: int
    ffn: int
    vocab: int
    positions: int = 512
    types: int = 0
    buckets: int = 0
    pooler: bool = False
    projection: int = 0
    narrow: int = 0
    shared: bool = False
    gated: bool = False
    biased: bool = True
    final_norm: bool = False
    causal: bool = False
    window: int = 0
    full_every: int = 1
    head: Literal["", "mlm", "qa", "score"] = ""

    def block(self, layers: Layers, tokens: int) -> LayerBlock:
        """One pass over `tokens` of each sample."""
        entry = self.narrow or self.width
        parts = [layers.embed(tokens, self.vocab, entry)]
        parts.append(layers.parameter(entry * (self.positions + self.types) + self.heads * self.buckets))
        if not self.causal:
            parts.append(self._norm(layers, tokens, entry))
        if self.narrow:
            parts.append(layers.linear(tokens, entry, self.width))
        if self.window and self.window < tokens:
            full = -(-self.layers // self.full_every)
            parts += [
                full * self._layer(layers, tokens, 0),
                (self.layers - full) * self._layer(layers, tokens, self.window),
            ]
        elif self.shared:
            one = self._layer(layers, tokens, 0)
            parts.append(one.again(self.layers))
        else:
            parts.append(self.layers * self._layer(layers, tokens, 0))
        if self.final_norm:
            parts.append(self._norm(layers, tokens, self.width))
        if self.pooler:
            parts.append(layers.linear(1, self.width, self.width, name="pooler"))
        if self.projection:
            parts.append(layers.linear(1, self.width, self.projection, False, "projection"))
        return join(*parts, self._head(layers, tokens))

    def _norm(self, layers: Layers, tokens: int, width: int) -> LayerBlock:
        return layers.norm(tokens, width, "layer" if self.biased else "rms")

    def _head(self, layers: Layers, tokens: int) -> LayerBlock:
        if self.head == "mlm":  # the last matrix is the table of embeddings
            entry = self.narrow or self.width
            logits = layers.linear(tokens, entry, self.vocab, name="logits")
            tied = LayerBlock(logits.ops, self.vocab, self.vocab * layers.precision.bytes, logits.peak, logits.kept)
            return join(
                layers.linear(tokens, self.width, entry),
                layers.act(tokens, entry),
                layers.norm(tokens, entry),
                tied,
                self._loss(layers, tokens),
            )
        return (
            layers.linear(tokens if self.head == "qa" else 1, self.width, 2 if self.head == "qa" else 1)
            if self.head
            else LayerBlock()
        )

    def _loss(self, layers: Layers, tokens: int) -> LayerBlock:
        """Logarithms of probabilities, kept for the backward pass, which begins with their gradient while the logits
        are still there."""
        if not layers.training:
            return LayerBlock()
        tensor = layers.bytes(tokens, self.vocab)
        return replace(layers.pointwise(tokens, self.vocab, LOSS_PASSES, LOSS), peak=2.0 * tensor, kept=tensor)

    def _layer(self, layers: Layers, tokens: int, window: int) -> LayerBlock:
        w, seen = self.width, min(tokens, window or tokens)
        windows = tokens / seen
        attend = layers.attention(
            tokens / windows, seen, self.heads, w // self.heads, windows=windows, causal=self.causal
        )
        held = layers.bytes(tokens, w)
        return join(
            self._norm(layers, tokens, w),
            join(
                layers.linear(tokens, w, 3 * w, self.biased, "qkv", 3),
                attend,
                layers.linear(tokens, w, w, self.biased, "out"),
            ).beside(held),
            layers.residual(tokens, w),
            self._norm(layers, tokens, w),
            layers.mlp(tokens, w, self.ffn, gated=self.gated, bias=self.biased).beside(held),
            layers.residual(tokens, w),
        )


@dataclass(frozen=True, kw_only=True)
class T5:
    """The encoder of T5 v1.1 and UMT5: no biases, relative positions in the first layer (UMT5: in `every` layer)."""

    width: int
    layers: int
    heads: int
    ffn: int
    vocab: int
    head_dim: int = 64
    buckets: int = 32
    gated: bool = True
    every: bool = False

    def block(self, layers: Layers, tokens: int) -> LayerBlock:
        """One pass over `tokens` of each sample."""
        more = (self.layers - 1) * self.buckets * self.heads if self.every else 0
        return layers.parameter(more) + SeqToSeq(
            width=self.width,
            encoder=self.layers,
            decoder=0,
            heads=self.heads,
            ffn=self.ffn,
            vocab=self.vocab,
            head_dim=self.head_dim,
            buckets=self.buckets,
            biased=False,
            gated=self.gated,
            final_norm=True,
        ).encode(layers, tokens)


@dataclass(frozen=True, kw_only=True)
class TextDecoder:
    """A language model that reads a prompt once: grouped heads, RMS norms, a gated feed-forward, no last matrix.

    `vision`: parameters of a tower that a prompt of text does not run. `sandwich`: norms after each half too. `entry`:
    width of states that are projected in, where there is no table of words.
    """

    width: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    qkv_bias: bool = False
    sandwich: bool = False
    vision: int = 0
    entry: int = 0

    def block(self, layers: Layers, tokens: int, seen: float = 0.0) -> LayerBlock:
        """One pass over `tokens` of each sample, which then has `seen` (0: these alone)."""
        w, q, kv = self.width, self.heads * self.head_dim, self.kv_heads * self.head_dim
        size, shared, causal = self.head_dim, self.kv_heads, tokens > 1 or not seen
        wide = max(seen, tokens)
        norm, held = layers.norm(tokens, w, "rms"), layers.bytes(tokens, w)
        after = norm if self.sandwich else LayerBlock()
        each = join(
            norm,
            join(
                layers.linear(tokens, w, q + 2 * kv, self.qkv_bias, "qkv", 3),
                layers.attention(tokens, wide, self.heads, size, kv_heads=shared, causal=causal),
                layers.linear(tokens, q, w, False, "out"),
                after,
            ).beside(held),
            layers.residual(tokens, w),
            norm,
            join(layers.mlp(tokens, w, self.ffn, gated=True, bias=False), after).beside(held),
            layers.residual(tokens, w),
        )
        table = layers.linear(tokens, self.entry, w) if self.entry else layers.embed(tokens, self.vocab, w)
        return join(table, layers.parameter(self.vision), self.layers * each, norm)


@dataclass(frozen=True, kw_only=True)
class Connector:
    """What stands between a language model and a generator: `inputs` values a token, the states of all its layers side
    by side, projected, and `streams` encoders over them, with vectors that fill a prompt up (LTX-2). `gated`: heads are
    weighed, the projection has an offset (LTX-2.3)."""

    inputs: int
    width: int
    layers: int
    heads: int
    streams: int = 1
    fillers: int = 128
    gated: bool = False

    def block(self, layers: Layers, tokens: int) -> LayerBlock:
        """One pass over `tokens` of each sample."""
        w = self.width
        norms = layers.norm(2 * tokens, w, "rms", affine=False) + layers.parameter(2 * w)
        gate = layers.linear(tokens, w, self.heads, name="gate") + layers.pointwise(tokens, w, 2.0, "gate")
        each = layers.encoder_layer(tokens, w, self.heads, 4 * w) + norms
        return join(
            layers.linear(tokens, self.inputs, w, self.gated, "projection"),
            layers.parameter(self.streams * self.fillers * w),
            self.streams * self.layers * (each + gate if self.gated else each),
        )


@dataclass(frozen=True, kw_only=True)
class CrossDecoder:
    """A decoder of `depth` layers that sees what it has said, and the states of an encoder; `keyed`: keys have an
    offset where the rest is `biased`. The last matrix is the table of words (`tied`), or one of its own."""

    depth: int
    width: int
    heads: int
    head_dim: int
    ffn: int
    vocab: int
    biased: bool = True
    keyed: bool = True
    gated: bool = False
    tied: bool = True
    final_norm: bool = True

    def states(self, layers: Layers, source: float) -> LayerBlock:
        """Keys and values of `source` states of the encoder for every layer, once a sample."""
        inner, b = self.heads * self.head_dim, self.biased
        each = layers.linear(source, self.width, 2 * inner, b, "cross_kv")
        return self.depth * (each + self._no_key(layers, inner))

    def step(self, layers: Layers, seen: float, source: float, tokens: int = 1, scored: int = 1) -> LayerBlock:
        """`tokens` new tokens of each sequence, which then has `seen`; the last `scored` of them get logits."""
        w, heads, size, b = self.width, self.heads, self.head_dim, self.biased
        inner, norm = heads * size, layers.norm(tokens, w, "layer" if b else "rms")
        each = join(
            norm,
            layers.linear(tokens, w, 3 * inner, b, "qkv", parts=3),
            self._no_key(layers, inner),
            layers.attention(tokens, max(seen, tokens), heads, size, causal=tokens > 1),
            layers.linear(tokens, inner, w, b, "out"),
            layers.residual(tokens, w),
            norm,
            layers.linear(tokens, w, inner, b, "q"),
            layers.attention(tokens, source, heads, size),
            layers.linear(tokens, inner, w, b, "out"),
            layers.residual(tokens, w),
            norm,
            layers.mlp(tokens, w, self.ffn, gated=self.gated, bias=b),
            layers.residual(tokens, w),
        ).beside(layers.bytes(tokens, w))
        logits = layers.linear(scored, w, self.vocab, False, "logits")
        last = LayerBlock(logits.ops, 0, 0.0, logits.peak, logits.kept) if self.tied else logits
        return join(self.depth * each, norm if self.final_norm else LayerBlock(), last)

    def _no_key(self, layers: Layers, inner: int) -> LayerBlock:
        return layers.parameter(-inner) if self.biased and not self.keyed else LayerBlock()


@dataclass(frozen=True, kw_only=True)
class SeqToSeq:
    """An encoder, and a decoder that sees it (BART, NLLB, Marian, T5). `positions`: learned ones of each end;
    `buckets`: of relative positions, a table in the first layer of each; `final_norm`: one behind each (post-norm has
    none); `gated`, `biased` as of an encoder; both ends have one table, which is the last matrix too where `tied`."""

    width: int
    encoder: int
    decoder: int
    heads: int
    ffn: int
    vocab: int
    positions: int = 0
    head_dim: int = 0
    buckets: int = 0
    biased: bool = True
    gated: bool = False
    tied: bool = True
    embedding_norm: bool = False
    final_norm: bool = False

    @property
    def ahead(self) -> CrossDecoder:
        """The layers of the decoder."""
        return CrossDecoder(
            depth=self.decoder,
            width=self.width,
            heads=self.heads,
            head_dim=self._size,
            ffn=self.ffn,
            vocab=self.vocab,
            biased=self.biased,
            gated=self.gated,
            tied=self.tied,
            final_norm=self.final_norm,
        )

    def block(self, layers: Layers, tokens: int, targets: int = 0) -> LayerBlock:
        """A step of training: `tokens` in and `targets` out (0: as many) at once."""
        m = targets or tokens
        states = self.ahead.states(layers, tokens)
        return join(self.encode(layers, tokens), states, self.step(layers, m, tokens, m, m))

    def encode(self, layers: Layers, tokens: int) -> LayerBlock:
        """The encoder over `tokens` of each sample."""
        w, b, inner = self.width, self.biased, self.heads * self._size
        norm, held = layers.norm(tokens, w, self._norm), layers.bytes(tokens, w)
        each = join(
            norm,
            join(
                layers.linear(tokens, w, 3 * inner, b, "qkv", 3),
                layers.attention(tokens, tokens, self.heads, self._size),
                layers.linear(tokens, inner, w, b, "out"),
            ).beside(held),
            layers.residual(tokens, w),
            norm,
            layers.mlp(tokens, w, self.ffn, gated=self.gated, bias=b).beside(held),
            layers.residual(tokens, w),
        )
        return join(
            self._entry(layers, tokens, self.vocab), self.encoder * each, norm if self.final_norm else LayerBlock()
        )

    def step(self, layers: Layers, seen: float, source: float, tokens: int = 1, scored: int = 1) -> LayerBlock:
        """`tokens` new tokens behind `source` of the encoder, as `CrossDecoder` has it."""
        return self._entry(layers, tokens, 0) + self.ahead.step(layers, seen, source, tokens, scored)

    @property
    def _size(self) -> int:
        return self.head_dim or self.width // self.heads

    @property
    def _norm(self) -> str:
        return "layer" if self.biased else "rms"

    def _entry(self, layers: Layers, tokens: int, rows: int) -> LayerBlock:
        """Tokens by a table of `rows` (0: that of the other end), with what is learned of their positions."""
        return join(
            layers.embed(tokens, rows, self.width),
            layers.parameter(self.positions * self.width + self.buckets * self.heads),
            layers.norm(tokens, self.width, self._norm) if self.embedding_norm else LayerBlock(),
        )
