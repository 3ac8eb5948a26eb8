"""Generators of 3-D shapes: a latent set of vectors, decoded at the points of a grid (Hunyuan3D).

Shapes: Tencent/Hunyuan3D-2, hy3dgen/shapegen/models/autoencoders/model.py and attention_blocks.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.workload.media.layers import Block, Layers, join

__all__ = ["ShapeVAE"]


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
