"""Diffusion transformers: one stream or two with joint attention, or cross-attention to text.

Sizes: latent (frames, height, width), an image has one frame; `text` tokens that are seen. Modulation (adaLN) is made
from the time step by matrices over one token. Shapes: huggingface/diffusers, models/transformers/transformer_*.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

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
    """Text and image tokens with weights of their own that attend together: SD3, FLUX, Qwen-Image, HunyuanVideo.

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
    rotary: bool = True

    @property
    def multiple(self) -> int:
        """The latent's height and width must be multiples of this."""
        return self.patch[1]

    def block(self, layers: Layers, grid: Grid, text: int) -> LayerBlock:
        """One pass over a latent of `grid` under `text` tokens."""
        d, tokens = self.heads * self.head_dim, size_of(shrunk(grid, self.patch))
        values = size_of(self.patch)
        time = _embedder(layers, 256, d)
        parts = [layers.linear(tokens, values * self.inputs, d, name="patch"), time]
        if self.text_norm:
            parts.append(layers.norm(text, self.text_width, "rms"))
        parts.append(
            self._refine(layers, text, d) if self.refiner else layers.linear(text, self.text_width, d)
        )
        parts += [_embedder(layers, 256, d)] * self.guidance
        parts += [_embedder(layers, self.pooled, d)] if self.pooled else []
        ends = int(self.text_ends)
        parts.append(self.dual * self._double(layers, tokens, text, d, dual=True))
        parts.append((self.double - self.dual - ends) * self._double(layers, tokens, text, d))
        if ends:
            parts.append(self._double(layers, tokens, text, d, last=True))
        parts.append(self.single * self._single(layers, tokens + text, d))
        last = layers.linear(tokens, d, values * (self.outputs or self.inputs), name="patch")
        return join(*parts, layers.linear(1, d, 2 * d, name="modulation"), _adaptive(layers, tokens, d), last)

    def _heads_norm(self, layers: Layers, tokens: int, streams: int) -> LayerBlock:
        """Norms of queries and keys, each of `streams` with scales of its own, and their rotation."""
        turn = layers.rotate(tokens, self.heads * self.head_dim) if self.rotary else LayerBlock()
        if not self.qk_norm:
            return turn
        norm = layers.norm(2 * tokens * self.heads, self.head_dim, self.qk_norm, affine=False)
        return norm + layers.parameter(2 * streams * self.head_dim) + turn

    def _double(
        self, layers: Layers, image: int, text: int, d: int, *, dual: bool = False, last: bool = False
    ) -> LayerBlock:
        both, held = image + text, layers.bytes(image + text, d)
        streams = ((image, 9 if dual else 6), (text, 2 if last else 6))
        parts = [layers.linear(1, d, sets * d, name="modulation") for _, sets in streams]
        parts += [_adaptive(layers, tokens, d) for tokens, _ in streams]
        parts += [layers.linear(tokens, d, 3 * d, name="qkv") for tokens, _ in streams]
        parts.append(self._heads_norm(layers, both, 2))
        parts.append(layers.attention(both, both, self.heads, self.head_dim))
        if dual:
            parts.append(layers.linear(image, d, 3 * d, name="qkv"))
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
            layers.linear(1, d, 3 * d, name="modulation"),
            _adaptive(layers, tokens, d),
            layers.linear(tokens, d, 7 * d, name="qkv_mlp"),
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

    @property
    def multiple(self) -> int:
        """The latent's height and width must be multiples of this."""
        return 2

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
        norm = layers.norm(2 * tokens * self.heads, self.head_dim, "rms", affine=False)
        turn = layers.rotate(tokens, self.heads * self.head_dim)
        return norm + layers.parameter(2 * streams * self.head_dim) + turn

    def _double(self, layers: Layers, image: int, text: int, d: int) -> LayerBlock:
        both, streams = image + text, (image, text)
        parts = [_adaptive(layers, n, d) + layers.linear(n, d, 3 * d, False, "qkv") for n in streams]
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

    @property
    def multiple(self) -> int:
        """The latent's height and width must be multiples of this."""
        return 2

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
            layers.linear(tokens, d, d + 2 * shared, False, "qkv"),
            layers.norm(tokens * (self.heads + self.kv_heads), self.head_dim, "rms", affine=False),
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
    | tables | each block has a table of modulation beside the shared one |
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

    @property
    def multiple(self) -> int:
        """The latent's height and width must be multiples of this."""
        return self.patch[1]

    def block(self, layers: Layers, grid: Grid, text: int) -> LayerBlock:
        """One pass over a latent of `grid` under `text` tokens."""
        d, tokens, values = self.heads * self.head_dim, size_of(shrunk(grid, self.patch)), size_of(self.patch)
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
        parts.append(self.layers * self._layer(layers, tokens, text, d))
        last = layers.linear(tokens, d, values * self.outputs, name="patch")
        return join(*parts, layers.parameter(2 * d), _adaptive(layers, tokens, d), last)

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
            layers.linear(tokens, d, 3 * d, name="qkv"),
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
            layers.linear(text, d, 2 * d, name="kv"),
            self._norms(layers, text, d),
            layers.attention(tokens, text, self.heads, self.head_dim),
        ]
        if self.image_width:
            seen = self.image_tokens
            parts += [
                layers.linear(seen, d, 2 * d, name="kv"),
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
            layers.norm(tokens, d),
            layers.modulate(tokens, d),
        )
        heads = layers.norm(2 * tokens * self.heads, self.head_dim, affine=False) + layers.parameter(
            4 * self.head_dim
        )
        return join(
            entry,
            layers.linear(tokens, d, 3 * d, name="qkv"),
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
            layers.linear(text, t, 2 * t, name="kv"),
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
        heads = layers.norm(2 * both * self.heads, self.head_dim, "rms", affine=False)
        parts = [
            layers.linear(1, d, 4 * d, name="modulation"),
            layers.linear(1, d, w if last else 4 * w, name="modulation"),
            _adaptive(layers, tokens, d),
            _adaptive(layers, text, w),
            layers.linear(tokens, d, 3 * d, False, "qkv"),
            layers.linear(text, w, 3 * d, False, "qkv"),
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
    """Linear self-attention, cross-attention to text, and a gated feed-forward with a depthwise convolution: SANA."""

    heads: int
    head_dim: int
    cross_heads: int
    layers: int
    inputs: int = 32
    caption: int = 2304
    ratio: float = 2.5

    @property
    def multiple(self) -> int:
        """Every position of the latent is a token."""
        return 1

    def block(self, layers: Layers, grid: Grid, text: int) -> LayerBlock:
        """One pass over a latent of `grid` under `text` tokens."""
        d, tokens, plane = self.heads * self.head_dim, size_of(grid), grid[-2:]
        inner = int(self.ratio * d)
        each = join(
            layers.parameter(6 * d),
            _adaptive(layers, tokens, d),
            layers.linear(tokens, d, 3 * d, False, "qkv"),
            layers.linear_attention(tokens, self.heads, self.head_dim),
            layers.linear(tokens, d, d, name="out"),
            _gated(layers, tokens, d),
            layers.linear(tokens, d, d, name="q"),
            layers.linear(text, d, 2 * d, name="kv"),
            layers.attention(tokens, text, self.cross_heads, d // self.cross_heads),
            layers.linear(tokens, d, d, name="out"),
            layers.residual(tokens, d),
            _adaptive(layers, tokens, d),
            layers.linear(tokens, d, 2 * inner),
            layers.act(tokens, 2 * inner, "silu"),
            layers.conv(plane, 2 * inner, 2 * inner, 3, 1, 2 * inner),
            layers.gate(tokens, inner),
            layers.linear(tokens, inner, d, False),
            _gated(layers, tokens, d),
        ).beside(layers.bytes(tokens, d))
        return join(
            layers.linear(tokens, self.inputs, d, name="patch"),
            _embedder(layers, 256, d),
            layers.linear(1, d, 6 * d, name="modulation"),
            layers.linear(text, self.caption, d, name="caption"),
            layers.act(text, d),
            layers.linear(text, d, d, name="caption"),
            layers.norm(text, d, "rms"),
            self.layers * each,
            layers.parameter(2 * d),
            _adaptive(layers, tokens, d),
            layers.linear(tokens, d, self.inputs, name="patch"),
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

    @property
    def multiple(self) -> int:
        """The latent's height and width must be multiples of this."""
        return 2

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
        heads = layers.norm(2 * tokens * self.heads, self.head_dim, affine=False) + layers.parameter(
            4 * self.head_dim
        )
        return join(
            layers.linear(1, d, d, name="modulation"),
            layers.norm(tokens, d),
            layers.linear(tokens, d, 3 * d, name="qkv"),
            heads,
            layers.rotate(tokens, d),
            layers.attention(tokens, tokens, self.heads, self.head_dim),
            layers.linear(tokens, d, d, name="out"),
            layers.residual(tokens, d),
            layers.norm(tokens, d),
            layers.linear(tokens, d, d, name="q"),
            layers.linear(self.text, self.text_width, 2 * d, name="kv"),
            heads,
            layers.attention(tokens, self.text, self.heads, self.head_dim),
            layers.linear(tokens, d, d, name="out"),
            layers.residual(tokens, d),
            layers.norm(tokens, d),
            layers.mlp(tokens, d, self.ffn),
            layers.residual(tokens, d),
        ).beside(layers.bytes(tokens, d))
