"""Generators of 3-D shapes: a latent set of vectors, decoded at the points of a grid (Hunyuan3D); three planes of
features that points are read from (TripoSR).

Shapes: Tencent/Hunyuan3D-2, hy3dgen/shapegen/models/autoencoders/model.py and attention_blocks.py;
VAST-AI-Research/TripoSR, tsr/models.
"""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.workload.media.layers import Block, Layers, join

__all__ = ["ShapeVAE", "Triplane"]


@dataclass(frozen=True, kw_only=True)
class ShapeVAE:
    """`latents` vectors of `inputs` values through transformer layers; then every point of space asks them for its
    distance to the surface. `frequencies` of each coordinate are embedded."""

    latents: int
    inputs: int
    width: int
    layers: int
    heads: int
    frequencies: int = 8

    def decode(self, layers: Layers) -> Block:
        """Latents to the states that points ask."""
        n, w, size = self.latents, self.width, self.width // self.heads
        held = layers.bytes(n, w)
        attend = join(
            layers.linear(n, w, 3 * w, False, "qkv"),
            self._heads_norm(layers, 2 * n, size),
            layers.attention(n, n, self.heads, size),
            layers.linear(n, w, w, name="out"),
        ).beside(held)
        feed = layers.mlp(n, w, 4 * w).beside(held)
        add = layers.residual(n, w)
        each = join(layers.norm(n, w), attend, add, layers.norm(n, w), feed, add)
        return layers.linear(n, self.inputs, w) + self.layers * each

    def ask(self, layers: Layers, points: int) -> Block:
        """One call of `points` of each sample: they see all latents once."""
        n, w, size = self.latents, self.width, self.width // self.heads
        entry = 3 * (2 * self.frequencies + 1)
        return join(
            layers.linear(points, entry, w),
            layers.norm(points, w),
            layers.norm(n, w),
            layers.linear(points, w, w, False, "q"),
            layers.linear(n, w, 2 * w, False, "kv"),
            self._heads_norm(layers, points + n, size),
            layers.attention(points, n, self.heads, size),
            layers.linear(points, w, w, name="out"),
            layers.residual(points, w),
            layers.norm(points, w),
            layers.mlp(points, w, 4 * w),
            layers.residual(points, w),
            layers.norm(points, w),
            layers.linear(points, w, 1),
        ).beside(layers.bytes(n + points, w))

    def _heads_norm(self, layers: Layers, tokens: int, size: int) -> Block:
        return layers.norm(tokens * self.heads, size, affine=False) + layers.parameter(4 * size)


@dataclass(frozen=True, kw_only=True)
class Triplane:
    """A picture's tokens to three planes of features in one pass, which points of space are read from (TripoSR): a
    transformer over `side` x `side` tokens of each plane that sees the picture, a transposed convolution to twice
    the side, and for every point a small network of `deep` layers of `inner`."""

    width: int
    layers: int
    heads: int
    seen: int
    side: int
    channels: int
    inner: int
    deep: int

    @property
    def tokens(self) -> int:
        """Of all planes."""
        return 3 * self.side**2

    def planes(self, layers: Layers, pictured: int) -> Block:
        """The three planes of a picture of so many tokens."""
        n, w, size = self.tokens, self.width, self.width // self.heads
        held = layers.bytes(n, w)
        attend = join(
            layers.linear(n, w, 3 * w, False, "qkv"),
            layers.attention(n, n, self.heads, size),
            layers.linear(n, w, w, name="out"),
        ).beside(held)
        look = join(
            layers.linear(n, w, w, False, "q"),
            layers.linear(pictured, self.seen, 2 * w, False, "kv"),
            layers.attention(n, pictured, self.heads, size),
            layers.linear(n, w, w, name="out"),
        ).beside(held)
        feed = layers.mlp(n, w, 4 * w, gated=True).beside(held)
        norm, add = layers.norm(n, w), layers.residual(n, w)
        return join(
            layers.parameter(n * w),
            layers.norm(n, w, "group"),
            layers.linear(n, w, w),
            self.layers * join(norm, attend, add, norm, look, add, norm, feed, add),
            layers.linear(n, w, w),
            add,
            layers.linear(n, w, 4 * self.channels, False, "spread") + layers.parameter(self.channels),
        )

    def ask(self, layers: Layers, points: int) -> Block:
        """One call of `points`: density and colour of each."""
        entry = 3 * self.channels
        sampled = layers.pointwise(
            points, entry, 5.0, "sample"
        )  # four corners are read, one value is written
        hidden = layers.linear(points, self.inner, self.inner) + layers.act(points, self.inner, "silu")
        first = layers.linear(points, entry, self.inner) + layers.act(points, self.inner, "silu")
        return join(sampled, first, (self.deep - 1) * hidden, layers.linear(points, self.inner, 4))
