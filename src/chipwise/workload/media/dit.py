"""Diffusion transformers: one stream or two with joint attention, or cross-attention to text.

Sizes: latent (frames, height, width), an image has one frame; `text` tokens that are seen. Modulation (adaLN) is made
from the time step by matrices over one token. Shapes: huggingface/diffusers, models/transformers/transformer_*.py.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

from chipwise.values import dataclass
from chipwise.workload.media.layers import Grid, LayerBlock, Layers, join, shrunk, size_of


def _embedder(layers: Layers, inputs: int, width: int, out: int = 0) -> LayerBlock:
    """Two matrices over one token: of the time step, the guidance, pooled text."""
    last = layers.linear(1, width, out or width, name="time")
    return join(layers.linear(1, inputs, width, name="time"), layers.act(1, width, "silu"), last)


def _adaptive(layers: Layers, tokens: int, width: int) -> LayerBlock:
    """A norm without weights, scaled and moved by the time step."""
    return layers.norm(tokens, width, affine=False) + layers.modulate(tokens, width)


def _gated(layers: Layers, tokens: int, width: int) -> LayerBlock:
    """A residual scaled by the time step."""
    return layers.pointwise(tokens, width, 3.0, "gated_add", epilogue=True)


@dataclass(frozen=True, kw_only=True)
class JointTransformer:
    """Text and image tokens with weights of their own that attend together: SD3, FLUX, Chroma, Qwen-Image, Hunyuan.

    | field | meaning |
    |---|---|
    | double, single | blocks with two sets of weights; blocks with one set for the joined tokens |
    | patch | (frames, height, width) of latent positions in a token |
    | text_width, pooled | width of text states; of a pooled text vector (0: none) |
    | guidance | the guidance scale is an input |
    | qk_norm | queries and keys of each head are normed: "rms", or "" |
    | dual | first blocks with a second attention of image tokens alone (SD3.5 medium) |
    | text_ends | the last double block drops text: it has no matrices after the attention (SD3) |
    | text_norm | text states are normed first (Qwen-Image) |
    | refiner | blocks that text passes before (HunyuanVideo) |
    | glyphs, pictured | width and tokens of a second text and of an image that join the text (HunyuanVideo 1.5) |
    | approximator | channels, width and layers of a network that makes the modulation of all blocks (Chroma) |
    | rotary | queries and keys are rotated by their positions (SD3: no, positions are added to patches) |
    """

    heads: int
    head_dim: int
    double: int
    single: int = 0
    inputs: int
    outputs: int = 0
    patch: tuple[int, int, int] = (1, 2, 2)
    text_width: int
    pooled: int = 0
    guidance: bool = False
    qk_norm: str = "rms"
    dual: int = 0
    text_ends: bool = False
    text_norm: bool = False
    refiner: int = 0
    glyphs: tuple[int, int] = (0, 0)
    pictured: tuple[int, int] = (0, 0)
    approximator: tuple[int, int, int] = (0, 0, 0)
    rotary: bool = True

    @property
    def multiple(self) -> int:
        """The latent's height and width must be multiples of this."""
        return self.patch[1]

    def block(self, layers: Layers, grid: Grid, text: int) -> LayerBlock:
        """One pass over a latent of `grid` under `text` tokens."""
        d, tokens = self.heads * self.head_dim, size_of(shrunk(grid, self.patch))
        values = size_of(self.patch)
        parts = [layers.linear(tokens, values * self.inputs, d, name="patch"), self._conditions(layers, d)]
        if self.text_norm:
            parts.append(layers.norm(text, self.text_width, "rms"))
        parts.append(
            self._refine(layers, text, d) if self.refiner else layers.linear(text, self.text_width, d)
        )
        parts.append(self._joined(layers, d))
        text += self.glyphs[1] + self.pictured[1]
        ends = int(self.text_ends)
        parts.append(self.dual * self._double(layers, tokens, text, d, dual=True))
        parts.append((self.double - self.dual - ends) * self._double(layers, tokens, text, d))
        if ends:
            parts.append(self._double(layers, tokens, text, d, last=True))
        parts.append(self.single * self._single(layers, tokens + text, d))
        last = layers.linear(tokens, d, values * (self.outputs or self.inputs), name="patch")
        return join(*parts, self._scales(layers, 2, d), _adaptive(layers, tokens, d), last)

    def _conditions(self, layers: Layers, d: int) -> LayerBlock:
        """What the time step, the guidance and pooled text become."""
        channels, inner, depth = self.approximator
        if not depth:
            pooled = _embedder(layers, self.pooled, d) if self.pooled else LayerBlock()
            return (1 + self.guidance) * _embedder(layers, 256, d) + pooled
        sets = 3 * self.single + 12 * self.double + 2
        each = layers.norm(sets, inner, "rms") + layers.mlp(sets, inner, inner, act="silu")
        return join(
            layers.linear(sets, channels, inner, name="modulation"),
            depth * (each + layers.residual(sets, inner)),
            layers.linear(sets, inner, d, name="modulation"),
        )

    def _scales(self, layers: Layers, sets: int, d: int) -> LayerBlock:
        """The matrix behind `sets` scales and offsets, where blocks have one of their own."""
        return LayerBlock() if self.approximator[2] else layers.linear(1, d, sets * d, name="modulation")

    def _joined(self, layers: Layers, d: int) -> LayerBlock:
        """What is projected to stand beside the text; each kind has a vector that names it."""
        (wide, glyphs), (w, seen), parts = self.glyphs, self.pictured, []
        if wide:  # by way of 2,048 values, twice (HunyuanVideo15ByT5TextProjection)
            parts += [layers.norm(glyphs, wide), layers.linear(glyphs, wide, 2048), layers.act(glyphs, 2048)]
            parts += [layers.linear(glyphs, 2048, 2048), layers.act(glyphs, 2048)]
            parts += [layers.linear(glyphs, 2048, d), layers.parameter(d)]
        if w:
            parts += [layers.norm(seen, w), layers.linear(seen, w, w), layers.act(seen, w)]
            parts += [layers.linear(seen, w, d), layers.norm(seen, d), layers.parameter(d)]
        return join(*parts, layers.parameter(d if parts else 0))

    def _heads_norm(self, layers: Layers, tokens: int, streams: int) -> LayerBlock:
        """Norms of queries and keys, each of `streams` with scales of its own, and their rotation."""
        turn = layers.rotate(tokens, self.heads * self.head_dim) if self.rotary else LayerBlock()
        if not self.qk_norm:
            return turn
        norm = layers.norm(2 * tokens * self.heads, self.head_dim, self.qk_norm, False, 2 * streams)
        return norm + layers.parameter(2 * streams * self.head_dim) + turn

    def _double(
        self, layers: Layers, image: int, text: int, d: int, *, dual: bool = False, last: bool = False
    ) -> LayerBlock:
        both, held = image + text, layers.bytes(image + text, d)
        streams = ((image, 9 if dual else 6), (text, 2 if last else 6))
        parts = [self._scales(layers, sets, d) for _, sets in streams]
        parts += [_adaptive(layers, tokens, d) for tokens, _ in streams]
        parts += [layers.linear(tokens, d, 3 * d, name="qkv", parts=3) for tokens, _ in streams]
        parts.append(self._heads_norm(layers, both, 2))
        parts.append(layers.attention(both, both, self.heads, self.head_dim))
        if dual:
            parts.append(layers.linear(image, d, 3 * d, name="qkv", parts=3))
            parts.append(self._heads_norm(layers, image, 1))
            parts.append(layers.attention(image, image, self.heads, self.head_dim))
            parts += [layers.linear(image, d, d, name="out"), _gated(layers, image, d)]
        for tokens, _ in streams[: 1 if last else 2]:
            parts += [
                layers.linear(tokens, d, d, name="out"),
                _gated(layers, tokens, d),
                _adaptive(layers, tokens, d),
                layers.mlp(tokens, d, 4 * d),
                _gated(layers, tokens, d),
            ]
        return join(*parts).beside(held)

    def _single(self, layers: Layers, tokens: int, d: int) -> LayerBlock:
        return join(
            self._scales(layers, 3, d),
            _adaptive(layers, tokens, d),
            layers.linear(tokens, d, 7 * d, name="qkv_mlp", parts=4),
            self._heads_norm(layers, tokens, 1),
            layers.attention(tokens, tokens, self.heads, self.head_dim),
            layers.act(tokens, 4 * d),
            layers.linear(tokens, 5 * d, d, name="out"),
            _gated(layers, tokens, d),
        ).beside(layers.bytes(tokens, d))

    def _refine(self, layers: Layers, text: int, d: int) -> LayerBlock:
        each = layers.encoder_layer(text, d, self.heads, 4 * d) + layers.linear(
            1, d, 2 * d, name="modulation"
        )
        time = _embedder(layers, 256, d) + _embedder(layers, self.text_width, d)
        return join(time, layers.linear(text, self.text_width, d), self.refiner * each)


@dataclass(frozen=True, kw_only=True)
class SharedTransformer:
    """FLUX.2: double and single blocks whose modulation is made once for all of them, no offsets, gated feed-forwards.

    `ratio`: inner width of a feed-forward over the width; `inputs`: values of a token, of 2 x 2 latent positions.
    """

    heads: int
    head_dim: int
    double: int
    single: int
    inputs: int = 128
    text_width: int
    guidance: bool = True
    ratio: int = 3

    multiple: ClassVar[int] = 2
    """The latent's height and width must be multiples of this."""

    def block(self, layers: Layers, grid: Grid, text: int) -> LayerBlock:
        """One pass over a latent of `grid` under `text` tokens."""
        d, tokens = self.heads * self.head_dim, size_of(shrunk(grid, (1, 2, 2)))
        times = 2 if self.guidance else 1
        time = layers.linear(1, 256, d, False, "time") + layers.linear(1, d, d, False, "time")
        return join(
            layers.linear(tokens, self.inputs, d, False, "patch"),
            layers.linear(text, self.text_width, d, False),
            times * time,
            layers.linear(1, d, 15 * d, False, "modulation"),
            self.double * self._double(layers, tokens, text, d),
            self.single * self._single(layers, tokens + text, d),
            layers.linear(1, d, 2 * d, False, "modulation"),
            _adaptive(layers, tokens, d),
            layers.linear(tokens, d, self.inputs, False, "patch"),
        )

    def _heads_norm(self, layers: Layers, tokens: int, streams: int) -> LayerBlock:
        norm = layers.norm(2 * tokens * self.heads, self.head_dim, "rms", False, 2 * streams)
        turn = layers.rotate(tokens, self.heads * self.head_dim)
        return norm + layers.parameter(2 * streams * self.head_dim) + turn

    def _double(self, layers: Layers, image: int, text: int, d: int) -> LayerBlock:
        both, streams = image + text, (image, text)
        parts = [_adaptive(layers, n, d) + layers.linear(n, d, 3 * d, False, "qkv", 3) for n in streams]
        parts += [self._heads_norm(layers, both, 2), layers.attention(both, both, self.heads, self.head_dim)]
        for n in streams:
            parts += [layers.linear(n, d, d, False, "out"), _gated(layers, n, d), _adaptive(layers, n, d)]
            parts += [layers.mlp(n, d, self.ratio * d, gated=True, bias=False), _gated(layers, n, d)]
        return join(*parts).beside(layers.bytes(both, d))

    def _single(self, layers: Layers, tokens: int, d: int) -> LayerBlock:
        inner = self.ratio * d
        return join(
            _adaptive(layers, tokens, d),
            layers.linear(tokens, d, 3 * d + 2 * inner, False, "qkv_mlp"),
            self._heads_norm(layers, tokens, 1),
            layers.attention(tokens, tokens, self.heads, self.head_dim),
            layers.gate(tokens, inner, "swiglu"),
            layers.linear(tokens, d + inner, d, False, "out"),
            _gated(layers, tokens, d),
        ).beside(layers.bytes(tokens, d))


@dataclass(frozen=True, kw_only=True)
class StreamTransformer:
    """One stream of text and image tokens with one set of weights, which each pass `refine` layers of their own before:
    Lumina-Image 2.0, Z-Image. A norm stands before and after each half of a layer, no product has an offset.

    `condition`: width of what scales a layer, made by matrices over one token by way of `middle`; `pads`: vectors that
    fill tokens up to whole multiples.
    """

    heads: int
    head_dim: int
    kv_heads: int
    layers: int
    refine: int = 2
    ffn: int
    inputs: int = 16
    text_width: int
    condition: int
    middle: int
    pads: int = 0

    multiple: ClassVar[int] = 2
    """The latent's height and width must be multiples of this."""

    def block(self, layers: Layers, grid: Grid, text: int) -> LayerBlock:
        """One pass over a latent of `grid` under `text` tokens."""
        d, tokens = self.heads * self.head_dim, size_of(shrunk(grid, (1, 2, 2)))
        return join(
            layers.linear(tokens, 4 * self.inputs, d, name="patch"),
            _embedder(layers, 256, self.middle, self.condition),
            layers.norm(text, self.text_width, "rms"),
            layers.linear(text, self.text_width, d),
            layers.parameter(self.pads * d),
            self.refine * self._layer(layers, tokens, d),
            self.refine * self._layer(layers, text, d, modulated=False),
            self.layers * self._layer(layers, tokens + text, d),
            layers.linear(1, self.condition, d, name="modulation"),
            _adaptive(layers, tokens, d),
            layers.linear(tokens, d, 4 * self.inputs, name="patch"),
        )

    def _layer(self, layers: Layers, tokens: int, d: int, *, modulated: bool = True) -> LayerBlock:
        shared = self.kv_heads * self.head_dim
        norm = layers.norm(tokens, d, "rms")
        before = norm + layers.modulate(tokens, d) if modulated else norm
        after = norm + (_gated(layers, tokens, d) if modulated else layers.residual(tokens, d))
        scales = layers.linear(1, self.condition, 4 * d, name="modulation") if modulated else LayerBlock()
        return join(
            scales,
            before,
            layers.linear(tokens, d, d + 2 * shared, False, "qkv", 3),
            layers.norm(tokens * (self.heads + self.kv_heads), self.head_dim, "rms", False, 2),
            layers.parameter(2 * self.head_dim),
            layers.rotate(tokens, (d + shared) // 2),
            layers.attention(tokens, tokens, self.heads, self.head_dim, kv_heads=self.kv_heads),
            layers.linear(tokens, d, d, False, "out"),
            after,
            before,
            layers.mlp(tokens, d, self.ffn, gated=True, bias=False),
            after,
        ).beside(layers.bytes(tokens, d))


@dataclass(frozen=True, kw_only=True)
class CrossTransformer:
    """Self-attention of latent tokens, cross-attention to text, one modulation for all blocks and a table in each:
    Wan, LTX, PixArt; HunyuanDiT with `skips`.

    | field | meaning |
    |---|---|
    | caption | width of text states before they are projected by two matrices |
    | qk_norm | norms of queries and keys: over all heads ("rms"), per head ("head"), or "" |
    | cross_norm | the norm before cross-attention has weights |
    | image_width, image_tokens | an image's states, which a second cross-attention sees (Wan 2.1 image to video) |
    | sizes | resolution and aspect are embedded too (PixArt at 1,024 pixels) |
    | rotary | queries and keys are rotated by their positions (PixArt: no) |
    | wide_rotary | they are in 64 bits (Wan) |
    | control_blocks, control_inputs | blocks over a clip that steers, and values of its latent (VACE) |
    | pose | the latent of a pose is added to the first tokens (Wan Animate, S2V) |
    | face_layers, face_encoder | layers after which the tokens of a frame see those of a face or of sound in it; \
parameters of what encodes these, whose work is left out (below 1 % of a step's) |
    | before | frames' worth of tokens of what was made before, packed (Wan S2V) |
    """

    heads: int
    head_dim: int
    ffn: int
    layers: int
    inputs: int
    outputs: int
    patch: tuple[int, int, int] = (1, 2, 2)
    caption: int
    qk_norm: str = "rms"
    cross_norm: bool = False
    image_width: int = 0
    image_tokens: int = 257
    sizes: bool = False
    rotary: bool = True
    wide_rotary: bool = False
    control_blocks: int = 0
    control_inputs: int = 0
    pose: bool = False
    face_layers: int = 0
    face_encoder: int = 0
    before: float = 0.0

    @property
    def multiple(self) -> int:
        """The latent's height and width must be multiples of this."""
        return self.patch[1]

    def block(self, layers: Layers, grid: Grid, text: int) -> LayerBlock:
        """One pass over a latent of `grid` under `text` tokens."""
        d, tokens, values = self.heads * self.head_dim, size_of(shrunk(grid, self.patch)), size_of(self.patch)
        faced = self.face_layers * self._faced(layers, tokens, grid[0], d)
        tokens += round(self.before * tokens / grid[0])
        parts = [
            layers.linear(tokens, values * self.inputs, d, name="patch"),
            _embedder(layers, 256, d),
            layers.linear(1, d, 6 * d, name="modulation"),
            layers.mlp(text, self.caption, d, act="gelu")
            if self.caption == d
            else self._caption(layers, text, d),
        ]
        if self.sizes:
            parts += [2 * _embedder(layers, 256, d // 3)]
        if self.image_width:
            w, seen = self.image_width, self.image_tokens
            image = [
                layers.norm(seen, w),
                layers.linear(seen, w, w),
                layers.act(seen, w),
                layers.linear(seen, w, d),
            ]
            parts += [*image, layers.norm(seen, d)]
        each = self._layer(layers, tokens, text, d)
        parts += [self.layers * each, self._steered(layers, tokens, d, each), faced]
        last = layers.linear(tokens, d, values * self.outputs, name="patch")
        return join(*parts, layers.parameter(2 * d + self.face_encoder), _adaptive(layers, tokens, d), last)

    def _steered(self, layers: Layers, tokens: int, d: int, each: LayerBlock) -> LayerBlock:
        """Blocks like the others over a clip that steers, whose outcomes are added; the latent of a pose."""
        values, n = size_of(self.patch), self.control_blocks
        if self.pose:
            return layers.linear(tokens, values * self.outputs, d, name="patch") + layers.residual(tokens, d)
        if not n:
            return LayerBlock()
        added = layers.linear(tokens, d, d, name="out") + layers.residual(tokens, d)
        entry = layers.linear(tokens, values * self.control_inputs, d, name="patch")
        return join(entry, layers.linear(tokens, d, d, name="patch"), n * (each + added))

    def _faced(self, layers: Layers, tokens: int, frames: int, d: int) -> LayerBlock:
        """The tokens of each frame see five of the face in it: four that encode it and one that fills."""
        seen, size = 5 * frames, self.head_dim
        attend = layers.attention(tokens / frames, 5, self.heads, size, windows=frames)
        norms = layers.norm((tokens + seen) * self.heads, size, "rms", False, 2)
        return join(
            layers.norm(tokens, d, affine=False) + layers.norm(seen, d, affine=False),
            layers.linear(tokens, d, d, name="q") + layers.linear(seen, d, 2 * d, name="kv", parts=2),
            norms + layers.parameter(2 * size) + attend,
            layers.linear(tokens, d, d, name="out") + layers.residual(tokens, d),
        )

    def _caption(self, layers: Layers, text: int, d: int) -> LayerBlock:
        first = layers.linear(text, self.caption, d, name="caption")
        return join(first, layers.act(text, d), layers.linear(text, d, d, name="caption"))

    def _rotated(self, layers: Layers, tokens: int, d: int) -> LayerBlock:
        """Queries and keys rotated. In 64 bits are alive meanwhile: the stream in fp32, the three of attention, the
        tensor twice in 64 bits and once in 32 (wan/modules/model.py rope_apply)."""
        if not self.rotary:
            return LayerBlock()
        wide = 4.0 * layers.bytes(tokens, d) + 24.0 * layers.batch * tokens * d if self.wide_rotary else 0.0
        turn = layers.rotate(tokens, d)
        return replace(turn, peak=max(wide, turn.peak))

    def _norms(self, layers: Layers, tokens: int, d: int) -> LayerBlock:
        if not self.qk_norm:
            return LayerBlock()
        return layers.norm(tokens, d, "rms", affine=False) + layers.parameter(
            d if self.qk_norm == "rms" else self.head_dim
        )

    def _layer(self, layers: Layers, tokens: int, text: int, d: int) -> LayerBlock:
        parts = [
            layers.parameter(6 * d),
            _adaptive(layers, tokens, d),
            layers.linear(tokens, d, 3 * d, name="qkv", parts=3),
            self._norms(layers, tokens, d),
            self._norms(layers, tokens, d),
            self._rotated(layers, tokens, d),
            layers.attention(tokens, tokens, self.heads, self.head_dim),
            layers.linear(tokens, d, d, name="out"),
            _gated(layers, tokens, d),
        ]
        if self.cross_norm:
            parts.append(layers.norm(tokens, d))
        parts += [
            layers.linear(tokens, d, d, name="q"),
            self._norms(layers, tokens, d),
            layers.linear(text, d, 2 * d, name="kv", parts=2),
            self._norms(layers, text, d),
            layers.attention(tokens, text, self.heads, self.head_dim),
        ]
        if self.image_width:
            seen = self.image_tokens
            parts += [
                layers.linear(seen, d, 2 * d, name="kv", parts=2),
                self._norms(layers, seen, d),
                layers.attention(tokens, seen, self.heads, self.head_dim),
                layers.residual(tokens, d),
            ]
        parts += [
            layers.linear(tokens, d, d, name="out"),
            layers.residual(tokens, d),
            _adaptive(layers, tokens, d),
            layers.mlp(tokens, d, self.ffn),
            _gated(layers, tokens, d),
        ]
        return join(*parts).beside(layers.bytes(tokens, d))


@dataclass(frozen=True, kw_only=True)
class PairedTransformer:
    """A wide stream of video and a narrow one of sound, each with attention of its own and to text, which then see each
    other by the heads of the narrow one: LTX-2. `sound`: tokens of sound for a latent frame; `caption`: width of text
    states that are projected (0: they have those of the streams); `gated`: heads are weighed, text is modulated."""

    heads: int
    head_dim: int
    sound_heads: int
    sound_head_dim: int
    sound: float
    layers: int
    inputs: int = 128
    sound_inputs: int = 128
    caption: int = 0
    gated: bool = False

    multiple: ClassVar[int] = 1
    """Every position of the latent is a token."""

    def block(self, layers: Layers, grid: Grid, text: int) -> LayerBlock:
        """One pass over a latent of `grid` and the sound beside it under `text` tokens."""
        d, a = self.heads * self.head_dim, self.sound_heads * self.sound_head_dim
        tokens, heard = size_of(grid), math.ceil(self.sound * grid[0])
        ends = []
        for n, w, inputs in ((tokens, d, self.inputs), (heard, a, self.sound_inputs)):
            ends += [layers.linear(n, inputs, w, name="patch"), layers.linear(n, w, inputs, name="patch")]
            if self.caption:
                ends += [layers.linear(text, self.caption, w, name="caption"), layers.act(text, w)]
                ends.append(layers.linear(text, w, w, name="caption"))
            sets = (9, 4, 1, 2) if self.gated else (6, 4, 1)
            ends += [_embedder(layers, 256, w) + layers.linear(1, w, k * w, name="modulation") for k in sets]
            ends += [layers.parameter(2 * w), _adaptive(layers, n, w)]
        return join(*ends, self.layers * self._layer(layers, tokens, heard, text))

    def _layer(self, layers: Layers, tokens: int, heard: int, text: int) -> LayerBlock:
        d, a = self.heads * self.head_dim, self.sound_heads * self.sound_head_dim
        wide, narrow = (self.heads, self.head_dim), (self.sound_heads, self.sound_head_dim)
        parts = [layers.parameter((16 if self.gated else 11) * (d + a))]
        for n, w, heads in ((tokens, d, wide), (heard, a, narrow)):
            parts += [_adaptive(layers, n, w), self._attend(layers, (n, w), None, heads, rotary=True)]
            parts += [_gated(layers, n, w), layers.norm(n, w, "rms", affine=False)]
            parts.append(layers.modulate(n, w) + layers.modulate(text, w) if self.gated else LayerBlock())
            parts += [self._attend(layers, (n, w), (text, w), heads), layers.residual(n, w)]
        for (n, w), (m, v) in (((tokens, d), (heard, a)), ((heard, a), (tokens, d))):
            parts += [_adaptive(layers, n, w), _adaptive(layers, m, v)]
            parts += [self._attend(layers, (n, w), (m, v), narrow, rotary=True), _gated(layers, n, w)]
        for n, w in ((tokens, d), (heard, a)):
            parts += [_adaptive(layers, n, w), layers.mlp(n, w, 4 * w), _gated(layers, n, w)]
        return join(*parts).beside(layers.bytes(tokens, d) + layers.bytes(heard, a))

    def _attend(
        self,
        layers: Layers,
        asking: tuple[int, int],
        asked: tuple[int, int] | None,
        heads: tuple[int, int],
        *,
        rotary: bool = False,
    ) -> LayerBlock:
        """Tokens of a width that see others (None: each other), by heads of a size."""
        (n, w), inner = asking, heads[0] * heads[1]
        m = asked[0] if asked else n
        norms = [layers.norm(k, inner, "rms") for k in (n, m)]
        entry = (
            [layers.linear(n, w, inner, name="q"), layers.linear(m, asked[1], 2 * inner, name="kv", parts=2)]
            if asked
            else [layers.linear(n, w, 3 * inner, name="qkv", parts=3)]
        )
        turn = layers.rotate((n + m) / 2.0, inner) if rotary else LayerBlock()
        out = layers.linear(n, inner, w, name="out")
        if self.gated:
            out += layers.linear(n, w, heads[0], name="gate") + layers.pointwise(n, inner, 2.0, "gate")
        return join(*entry, *norms, turn, layers.attention(n, m, *heads), out)


@dataclass(frozen=True, kw_only=True)
class CogTransformer:
    """One sequence of text and video tokens with one set of weights, modulated apart: CogVideoX. `rotary`: queries and
    keys are rotated by their positions (5B), else positions are added to patches (2B)."""

    heads: int
    head_dim: int
    layers: int
    inputs: int = 16
    outputs: int = 16
    patch: tuple[int, int, int] = (1, 2, 2)
    text_width: int = 4096
    time: int = 512
    rotary: bool = False

    @property
    def multiple(self) -> int:
        """The latent's height and width must be multiples of this."""
        return self.patch[1]

    def block(self, layers: Layers, grid: Grid, text: int) -> LayerBlock:
        """One pass over a latent of `grid` under `text` tokens."""
        d, tokens, values = self.heads * self.head_dim, size_of(shrunk(grid, self.patch)), size_of(self.patch)
        both, last = tokens + text, layers.linear(tokens, d, values * self.outputs, name="patch")
        return join(
            layers.linear(tokens, values * self.inputs, d, name="patch"),
            layers.linear(text, self.text_width, d),
            _embedder(layers, d, self.time),
            self.layers * self._layer(layers, both, d),
            layers.norm(both, d),
            layers.linear(1, self.time, 2 * d, name="modulation"),
            layers.norm(tokens, d),
            layers.modulate(tokens, d),
            last,
        )

    def _layer(self, layers: Layers, tokens: int, d: int) -> LayerBlock:
        entry = join(
            layers.linear(1, self.time, 6 * d, name="modulation"),
            layers.norm(tokens, d, parts=2),
            layers.modulate(tokens, d),
        )
        heads = layers.norm(2 * tokens * self.heads, self.head_dim, "layer", False, 2) + layers.parameter(
            4 * self.head_dim
        )
        return join(
            entry,
            layers.linear(tokens, d, 3 * d, name="qkv", parts=3),
            heads,
            layers.rotate(tokens, d) if self.rotary else LayerBlock(),
            layers.attention(tokens, tokens, self.heads, self.head_dim),
            layers.linear(tokens, d, d, name="out"),
            _gated(layers, tokens, d),
            entry,
            layers.mlp(tokens, d, 4 * d),
            _gated(layers, tokens, d),
        ).beside(layers.bytes(tokens, d))


@dataclass(frozen=True, kw_only=True)
class KandinskyTransformer:
    """Kandinsky 5: `text_layers` over text alone, then layers of self-attention, cross-attention to text and a
    feed-forward, each with a modulation of its own from a vector of width `time`, which pooled text joins."""

    heads: int
    head_dim: int = 64
    ffn: int
    layers: int
    text_layers: int
    inputs: int = 16
    outputs: int = 16
    patch: tuple[int, int, int] = (1, 2, 2)
    text_width: int = 3584
    pooled: int = 768
    time: int = 512

    @property
    def multiple(self) -> int:
        """The latent's height and width must be multiples of this."""
        return self.patch[1]

    def block(self, layers: Layers, grid: Grid, text: int) -> LayerBlock:
        """One pass over a latent of `grid` under `text` tokens."""
        d, tokens, values = self.heads * self.head_dim, size_of(shrunk(grid, self.patch)), size_of(self.patch)
        return join(
            layers.linear(tokens, values * self.inputs, d, name="patch"),
            _embedder(layers, d, self.time),
            layers.linear(1, self.pooled, self.time) + layers.norm(1, self.time),
            layers.linear(text, self.text_width, d) + layers.norm(text, d),
            self.text_layers * self._layer(layers, text, 0),
            self.layers * self._layer(layers, tokens, text),
            layers.linear(1, self.time, 2 * d, name="modulation"),
            _adaptive(layers, tokens, d),
            layers.linear(tokens, d, values * self.outputs, name="patch"),
        )

    def _layer(self, layers: Layers, tokens: int, text: int) -> LayerBlock:
        """`text` 0: without cross-attention."""
        d = self.heads * self.head_dim
        parts = [layers.linear(1, self.time, (9 if text else 6) * d, name="modulation")]
        for crossed in (False, True) if text else (False,):
            seen = text if crossed else tokens
            entry = layers.linear(tokens, d, 3 * d, name="qkv", parts=3)
            if crossed:
                entry = layers.linear(tokens, d, d, name="q") + layers.linear(
                    seen, d, 2 * d, name="kv", parts=2
                )
            heads = layers.norm((tokens + seen) * self.heads, self.head_dim, "rms", False, 2)
            parts += [_adaptive(layers, tokens, d), entry, heads + layers.parameter(2 * self.head_dim)]
            parts.append(LayerBlock() if crossed else layers.rotate(tokens, d))
            parts.append(layers.attention(tokens, seen, self.heads, self.head_dim))
            parts += [layers.linear(tokens, d, d, name="out"), _gated(layers, tokens, d)]
        feed = layers.mlp(tokens, d, self.ffn, bias=False)
        return join(*parts, _adaptive(layers, tokens, d), feed, _gated(layers, tokens, d)).beside(
            layers.bytes(tokens, d)
        )


@dataclass(frozen=True, kw_only=True)
class WindowTransformer:
    """Video and text tokens that attend together in windows of a clip, each with all of the text: SeedVR2, which makes
    a clip sharper in one step. The first `apart` layers have weights for text of its own, the others share them.

    `window`: positions of a window in a frame, `cuts` of the frames (of 30 at most); `gated`: a gated feed-forward
    without offsets; `scaled`: what leaves the layers is normed and scaled.
    """

    heads: int
    head_dim: int = 128
    ffn: int
    layers: int
    apart: int
    inputs: int = 33
    outputs: int = 16
    text_width: int = 5120
    window: int = 400
    cuts: int = 4
    gated: bool = False
    scaled: bool = False

    multiple: ClassVar[int] = 2
    """The latent's height and width must be multiples of this."""

    def block(self, layers: Layers, grid: Grid, text: int) -> LayerBlock:
        """One pass over a latent of `grid` under `text` tokens."""
        d, cells = self.heads * self.head_dim, shrunk(grid, (1, 2, 2))
        tokens, ends = size_of(cells), self.scaled
        return join(
            layers.linear(tokens, 4 * self.inputs, d, name="patch"),
            layers.linear(text, self.text_width, d),
            _embedder(layers, 256, d),
            layers.linear(1, d, 6 * d, name="modulation"),
            self.apart * self._layer(layers, cells, text, True),
            (self.layers - self.apart) * self._layer(layers, cells, text, False),
            layers.norm(tokens, d, "rms") if ends else LayerBlock(),
            layers.parameter(2 * d if ends else 0),
            layers.linear(tokens, d, 4 * self.outputs, name="patch"),
        )

    def _layer(self, layers: Layers, cells: Grid, text: int, apart: bool) -> LayerBlock:
        d, tokens = self.heads * self.head_dim, size_of(cells)
        frames = math.ceil(min(cells[0], 30) / self.cuts)
        here = min(frames * self.window, tokens)
        windows, both = tokens / here, tokens + text
        norm = layers.norm(2 * both * self.heads, self.head_dim, "rms", False, 2)
        attend = layers.attention(here + text, here + text, self.heads, self.head_dim, windows=windows)
        parts = [layers.rotate(tokens, d), norm, attend]
        for n in (tokens, text) if apart else (both,):
            parts += [layers.parameter(6 * d + 2 * self.head_dim), layers.norm(n, d, "rms", affine=False)]
            parts += [layers.modulate(n, d), layers.linear(n, d, 3 * d, False, "qkv")]
            parts += [layers.linear(n, d, d, name="out"), _gated(layers, n, d)]
            parts += [layers.norm(n, d, "rms", affine=False), layers.modulate(n, d)]
            parts.append(layers.mlp(n, d, self.ffn, gated=self.gated, bias=not self.gated))
            parts.append(_gated(layers, n, d))
        return join(*parts).beside(layers.bytes(both, d))


@dataclass(frozen=True, kw_only=True)
class MochiTransformer:
    """Joint attention of a wide stream of video and a narrow one of text: Mochi."""

    heads: int
    head_dim: int
    layers: int
    text_inner: int
    inputs: int = 12
    patch: tuple[int, int, int] = (1, 2, 2)
    text_width: int = 4096

    @property
    def multiple(self) -> int:
        """The latent's height and width must be multiples of this."""
        return self.patch[1]

    def block(self, layers: Layers, grid: Grid, text: int) -> LayerBlock:
        """One pass over a latent of `grid` under `text` tokens."""
        d, w, t = self.heads * self.head_dim, self.text_inner, self.text_width
        tokens, values = size_of(shrunk(grid, self.patch)), size_of(self.patch)
        pool = join(
            layers.linear(text, t, 2 * t, name="kv", parts=2),
            layers.linear(1, t, t, name="q"),
            layers.attention(1, text, 8, t // 8),
            layers.linear(1, t, d, name="out"),
        )
        return join(
            layers.linear(tokens, values * self.inputs, d, name="patch"),
            _embedder(layers, 256, d),
            pool,
            layers.linear(text, t, w, name="caption"),
            (self.layers - 1) * self._layer(layers, tokens, text, False),
            self._layer(layers, tokens, text, True),
            layers.linear(1, d, 2 * d, name="modulation"),
            _adaptive(layers, tokens, d),
            layers.linear(tokens, d, values * self.inputs, name="patch"),
        )

    def _layer(self, layers: Layers, tokens: int, text: int, last: bool) -> LayerBlock:
        d, w, both = self.heads * self.head_dim, self.text_inner, tokens + text
        heads = layers.norm(2 * both * self.heads, self.head_dim, "rms", False, 4)
        parts = [
            layers.linear(1, d, 4 * d, name="modulation"),
            layers.linear(1, d, w if last else 4 * w, name="modulation"),
            _adaptive(layers, tokens, d),
            _adaptive(layers, text, w),
            layers.linear(tokens, d, 3 * d, False, "qkv", 3),
            layers.linear(text, w, 3 * d, False, "qkv", 3),
            heads + layers.parameter(4 * self.head_dim),
            layers.rotate(both, d),
            layers.attention(both, both, self.heads, self.head_dim),
        ]
        for size, width in ((tokens, d),) if last else ((tokens, d), (text, w)):
            parts += [
                layers.linear(size, d, width, name="out"),
                _gated(layers, size, width),
                _adaptive(layers, size, width),
                layers.mlp(size, width, 8 * width // 3, gated=True, bias=False),
                _gated(layers, size, width),
            ]
        return join(*parts).beside(layers.bytes(tokens, d) + layers.bytes(text, w))


@dataclass(frozen=True, kw_only=True)
class SanaTransformer:
    """Linear self-attention, cross-attention to text, and a gated feed-forward with a depthwise convolution: SANA.
    `normed`: queries and keys are; `guidance`: it is an input (SANA 1.5, SANA-Sprint); `moving`: a convolution of three
    frames ends a feed-forward (SANA-Video)."""

    heads: int
    head_dim: int
    cross_heads: int
    layers: int
    inputs: int = 32
    caption: int = 2304
    ratio: float = 2.5
    normed: bool = False
    guidance: bool = False
    moving: bool = False
    patch: tuple[int, int, int] = (1, 1, 1)

    @property
    def multiple(self) -> int:
        """The latent's height and width must be multiples of this."""
        return self.patch[1]

    def block(self, layers: Layers, grid: Grid, text: int) -> LayerBlock:
        """One pass over a latent of `grid` under `text` tokens."""
        cells, values = shrunk(grid, self.patch), size_of(self.patch)
        d, tokens, inner = (
            self.heads * self.head_dim,
            size_of(cells),
            int(self.ratio * self.heads * self.head_dim),
        )
        near = layers.conv(cells, 2 * inner, 2 * inner, (1, 3, 3), 1, 2 * inner)
        moving = layers.conv(cells, d, d, (3, 1, 1), bias=False) if self.moving else LayerBlock()
        norm = [layers.norm(n, d, "rms") if self.normed else LayerBlock() for n in (tokens, text)]
        each = join(
            layers.parameter(6 * d),
            3 * norm[0] + norm[1],
            _adaptive(layers, tokens, d),
            layers.linear(tokens, d, 3 * d, False, "qkv", 3),
            layers.linear_attention(tokens, self.heads, self.head_dim),
            layers.linear(tokens, d, d, name="out"),
            _gated(layers, tokens, d),
            layers.linear(tokens, d, d, name="q"),
            layers.linear(text, d, 2 * d, name="kv", parts=2),
            layers.attention(tokens, text, self.cross_heads, d // self.cross_heads),
            layers.linear(tokens, d, d, name="out"),
            layers.residual(tokens, d),
            _adaptive(layers, tokens, d),
            layers.linear(tokens, d, 2 * inner),
            layers.act(tokens, 2 * inner, "silu"),
            near,
            layers.gate(tokens, inner),
            layers.linear(tokens, inner, d, False),
            moving,
            _gated(layers, tokens, d),
        ).beside(layers.bytes(tokens, d))
        return join(
            layers.linear(tokens, values * self.inputs, d, name="patch"),
            (1 + self.guidance) * _embedder(layers, 256, d),
            layers.linear(1, d, 6 * d, name="modulation"),
            layers.linear(text, self.caption, d, name="caption"),
            layers.act(text, d),
            layers.linear(text, d, d, name="caption"),
            layers.norm(text, d, "rms"),
            self.layers * each,
            layers.parameter(2 * d),
            _adaptive(layers, tokens, d),
            layers.linear(tokens, d, values * self.inputs, name="patch"),
        )


@dataclass(frozen=True, kw_only=True)
class HunyuanDiT:
    """Self- and cross-attention, the second half of the blocks fed by the first (long skips): HunyuanDiT 1.x.

    Text is that of two encoders, padded to `text` positions of `text_width`; `t5_width` is the second's own width.
    """

    heads: int
    head_dim: int
    ffn: int
    layers: int
    inputs: int = 4
    outputs: int = 8
    text: int = 333
    text_width: int = 1024
    t5_width: int = 2048
    t5_tokens: int = 256
    style: bool = True

    multiple: ClassVar[int] = 2
    """The latent's height and width must be multiples of this."""

    def block(self, layers: Layers, grid: Grid, text: int) -> LayerBlock:
        """One pass over a latent of `grid`; all text positions are seen."""
        d, tokens, w = self.heads * self.head_dim, size_of(grid) // 4, self.text_width
        extra = w + 6 * 256 + d if self.style else w
        t5 = self.t5_width
        pool = join(
            layers.parameter((self.t5_tokens + 1) * t5 + d * self.style),
            layers.linear(self.t5_tokens + 1, t5, 2 * t5, name="kv"),
            layers.linear(1, t5, t5, name="q"),
            layers.attention(1, self.t5_tokens + 1, 8, t5 // 8),
            layers.linear(1, t5, w, name="out"),
        )
        half = self.layers // 2
        plain = self._layer(layers, tokens)
        skip = join(layers.norm(tokens, 2 * d), layers.linear(tokens, 2 * d, d, name="skip"))
        held = half * layers.bytes(tokens, d)
        return join(
            layers.linear(tokens, 4 * self.inputs, d, name="patch"),
            layers.linear(self.t5_tokens, t5, 4 * t5),
            layers.linear(self.t5_tokens, 4 * t5, w),
            layers.parameter(self.text * w),
            pool,
            _embedder(layers, 256, d),
            layers.linear(1, extra, 4 * d, name="time"),
            layers.linear(1, 4 * d, d, name="time"),
            ((self.layers - half + 1) * plain + (half - 1) * (skip + plain)).beside(held),
            layers.linear(1, d, 2 * d, name="modulation"),
            _adaptive(layers, tokens, d),
            layers.linear(tokens, d, 4 * self.outputs, name="patch"),
        )

    def _layer(self, layers: Layers, tokens: int) -> LayerBlock:
        d = self.heads * self.head_dim
        heads = layers.norm(2 * tokens * self.heads, self.head_dim, "layer", False, 2) + layers.parameter(
            4 * self.head_dim
        )
        return join(
            layers.linear(1, d, d, name="modulation"),
            layers.norm(tokens, d),
            layers.linear(tokens, d, 3 * d, name="qkv", parts=3),
            heads,
            layers.rotate(tokens, d),
            layers.attention(tokens, tokens, self.heads, self.head_dim),
            layers.linear(tokens, d, d, name="out"),
            layers.residual(tokens, d),
            layers.norm(tokens, d),
            layers.linear(tokens, d, d, name="q"),
            layers.linear(self.text, self.text_width, 2 * d, name="kv", parts=2),
            heads,
            layers.attention(tokens, self.text, self.heads, self.head_dim),
            layers.linear(tokens, d, d, name="out"),
            layers.residual(tokens, d),
            layers.norm(tokens, d),
            layers.mlp(tokens, d, self.ffn),
            layers.residual(tokens, d),
        ).beside(layers.bytes(tokens, d))
