"""Encoders of text: BERT and its kin, CLIP, T5, and language models whose hidden states steer a generator.

Shapes: huggingface/transformers, models/bert, distilbert, roberta, mpnet, modernbert, clip, t5, umt5, bart, llama.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from chipwise.values import dataclass
from chipwise.workload.media.layers import LOSS, LOSS_PASSES, LayerBlock, Layers, join


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
            tied = LayerBlock(
                logits.ops, self.vocab, self.vocab * layers.precision.bytes, logits.peak, logits.kept
            )
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
        return replace(
            layers.pointwise(tokens, self.vocab, LOSS_PASSES, LOSS), peak=2.0 * tensor, kept=tensor
        )

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
        return join(
            layers.embed(tokens, self.vocab, self.width),
            layers.parameter(self.buckets * self.heads * (self.layers if self.every else 1)),
            self.layers * self._layer(layers, tokens),
            layers.norm(tokens, self.width, "rms"),
        )

    def _layer(self, layers: Layers, tokens: int) -> LayerBlock:
        w, inner, held = self.width, self.heads * self.head_dim, layers.bytes(tokens, self.width)
        return join(
            layers.norm(tokens, w, "rms"),
            join(
                layers.linear(tokens, w, 3 * inner, False, "qkv", 3),
                layers.attention(tokens, tokens, self.heads, self.head_dim),
                layers.linear(tokens, inner, w, False, "out"),
            ).beside(held),
            layers.residual(tokens, w),
            layers.norm(tokens, w, "rms"),
            layers.mlp(tokens, w, self.ffn, gated=self.gated, bias=False).beside(held),
            layers.residual(tokens, w),
        )


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
class SeqToSeq:
    """An encoder and a decoder that sees it, as trained or scored: all tokens of both at once (BART, WMT's big
    Transformer, T5). `tied`: one table for both ends; `gated`, `biased` as of an encoder."""

    width: int
    encoder: int
    decoder: int
    heads: int
    ffn: int
    vocab: int
    positions: int = 0
    head_dim: int = 0
    biased: bool = True
    embedding_norm: bool = False

    def block(self, layers: Layers, tokens: int, targets: int = 0) -> LayerBlock:
        """One pass over `tokens` in and `targets` out (0: as many)."""
        n, m, w, b = tokens, targets or tokens, self.width, self.biased
        size = self.head_dim or w // self.heads
        inner, kind = self.heads * size, "layer" if b else "rms"

        def attend(q: int, kv: int, causal: bool, crossed: bool) -> LayerBlock:
            ins = (
                layers.linear(q, w, inner, b, "q") + layers.linear(kv, w, 2 * inner, b, "kv", 2)
                if crossed
                else layers.linear(q, w, 3 * inner, b, "qkv", 3)
            )
            seen = layers.attention(q, kv, self.heads, size, causal=causal)
            out = join(ins, seen, layers.linear(q, inner, w, b, "out")).beside(layers.bytes(q, w))
            return join(layers.norm(q, w, kind), out, layers.residual(q, w))

        def feed(t: int) -> LayerBlock:
            return join(layers.norm(t, w, kind), layers.mlp(t, w, self.ffn, bias=b), layers.residual(t, w))

        ends = layers.norm(n, w, kind) if self.embedding_norm else LayerBlock()
        logits = layers.linear(m, w, self.vocab, False, "logits")
        return join(
            layers.embed(n, self.vocab, w),
            layers.embed(m, 0, w),
            layers.parameter(2 * self.positions * w),
            ends,
            self.encoder * join(attend(n, n, False, False), feed(n)),
            ends,
            self.decoder * join(attend(m, m, True, False), attend(m, n, False, True), feed(m)),
            LayerBlock(logits.ops, 0, 0.0, logits.peak, logits.kept),
        )
