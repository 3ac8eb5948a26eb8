"""Generators of 3-D shapes: a latent set of vectors, decoded at the points of a grid (Hunyuan3D); three planes of
features that points are read from (TripoSR); latents of the voxels that a surface crosses (TRELLIS).

Shapes: Tencent/Hunyuan3D-2, hy3dgen/shapegen/models/autoencoders/model.py and attention_blocks.py; Comfy-Org/ComfyUI,
comfy/ldm/hunyuan3dv2_1/hunyuandit.py;
VAST-AI-Research/TripoSR, tsr/models; microsoft/TRELLIS, trellis/models.
"""

from __future__ import annotations

from typing import ClassVar

from chipwise.values import dataclass
from chipwise.workload.media.layers import Grid, LayerBlock, Layers, join, size_of

NEIGHBOURS = (3, 3, 3)
"""Filter of a convolution over voxels; where they are sparse, absent neighbours are counted too."""

DENSE = 1 + 3 + 6 + 21
"""Numbers of a cell of the dense volume that a mesh is taken from, in 32 bits: distance, offset, colour and weights
(FlexiCubes; microsoft/TRELLIS, trellis/representations/mesh/cube2mesh.py)."""


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

    def decode(self, layers: Layers) -> LayerBlock:
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

    def ask(self, layers: Layers, points: int) -> LayerBlock:
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

    def _heads_norm(self, layers: Layers, tokens: int, size: int) -> LayerBlock:
        return layers.norm(tokens * self.heads, size, affine=False) + layers.parameter(4 * size)


@dataclass(frozen=True, kw_only=True)
class SkippingTransformer:
    """A denoiser of latent vectors that sees an image by an attention of its own; the time step is one more vector, the
    second half of its layers is fed by the first. The last `sparse` layers have `experts`, of which each vector takes
    `active`, and one more that all take (Hunyuan3D 2.1)."""

    width: int
    layers: int
    heads: int
    inputs: int
    seen_width: int
    sparse: int = 0
    experts: int = 8
    active: int = 2

    multiple: ClassVar[int] = 1
    """Every vector is a token."""

    def block(self, layers: Layers, grid: Grid, seen: int) -> LayerBlock:
        """One pass over as many vectors as `grid` has, under `seen` states of the image."""
        n, w, skips = size_of(grid) + 1, self.width, (self.layers - 1) // 2
        skip = layers.linear(n, 2 * w, w, name="skip") + layers.norm(n, w)
        return join(
            layers.linear(n, self.inputs, w, name="patch"),
            layers.mlp(1, w, 4 * w),
            self.layers * self._attend(layers, n, seen),
            skips * skip,
            (self.layers - self.sparse) * layers.mlp(n, w, 4 * w),
            self.sparse * self._mixed(layers, n),
            layers.norm(n, w),
            layers.linear(n, w, self.inputs, name="patch"),
        ).beside(skips * layers.bytes(n, w))

    def _attend(self, layers: Layers, n: int, seen: int) -> LayerBlock:
        w, size, norm, add = self.width, self.width // self.heads, layers.norm, layers.residual(n, self.width)
        heads = norm(2 * n * self.heads, size, "rms", affine=False) + layers.parameter(2 * size)
        return join(
            norm(n, w) + layers.linear(n, w, 3 * w, False, "qkv") + heads,
            layers.attention(n, n, self.heads, size) + layers.linear(n, w, w, name="out") + add,
            norm(n, w) + layers.linear(n, w, w, False, "q"),
            layers.linear(seen, self.seen_width, 2 * w, False, "kv") + heads,
            layers.attention(n, seen, self.heads, size) + layers.linear(n, w, w, name="out") + add,
            norm(n, w) + add,
        )

    def _mixed(self, layers: Layers, n: int) -> LayerBlock:
        w = self.width
        expert = self.experts * layers.mlp(n * self.active / self.experts, w, 4 * w)
        scatter = layers.pointwise(n * self.active, w, 4.0, "scatter")
        return join(
            layers.linear(n, w, self.experts, False, "router"), expert, scatter, layers.mlp(n, w, 4 * w)
        )


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

    def planes(self, layers: Layers, pictured: int) -> LayerBlock:
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

    def ask(self, layers: Layers, points: int) -> LayerBlock:
        """One call of `points`: density and colour of each."""
        entry = 3 * self.channels
        sampled = layers.pointwise(
            points, entry, 5.0, "sample"
        )  # four corners are read, one value is written
        hidden = layers.linear(points, self.inner, self.inner) + layers.act(points, self.inner, "silu")
        first = layers.linear(points, entry, self.inner) + layers.act(points, self.inner, "silu")
        return join(sampled, first, (self.deep - 1) * hidden, layers.linear(points, self.inner, 4))


@dataclass(frozen=True, kw_only=True)
class VoxelFlow:
    """A denoiser of `inputs` values in voxels: a transformer that sees a picture's states of `seen` values.

    `narrow`: residual convolutions of that width bring voxels into blocks of eight and back, joined to what came in;
    a surface crosses a quarter as many blocks as voxels. 0: every voxel is a token.
    """

    width: int
    layers: int
    heads: int
    seen: int
    inputs: int = 8
    narrow: int = 0

    def block(self, layers: Layers, voxels: int, pictured: int) -> LayerBlock:
        """One call over so many voxels with a picture of so many tokens."""
        w, size = self.width, self.width // self.heads
        n = -(-voxels // 4) if self.narrow else voxels
        held, entry = layers.bytes(n, w), self.narrow or w
        heads_norm = layers.norm(2 * n * self.heads, size, affine=False) + layers.parameter(2 * w)
        attend = join(
            layers.norm(n, w, affine=False) + layers.modulate(n, w),
            layers.linear(n, w, 3 * w, name="qkv"),
            heads_norm,
            layers.attention(n, n, self.heads, size),
            layers.linear(n, w, w, name="out"),
            layers.pointwise(n, w, 3.0, "gated_add"),
        )
        look = join(
            layers.norm(n, w),
            layers.linear(n, w, w, name="q"),
            layers.linear(pictured, self.seen, 2 * w, name="kv"),
            layers.attention(n, pictured, self.heads, size),
            layers.linear(n, w, w, name="out"),
            layers.residual(n, w),
        )
        feed = join(
            layers.norm(n, w, affine=False) + layers.modulate(n, w),
            layers.mlp(n, w, 4 * w),
            layers.pointwise(n, w, 3.0, "gated_add"),
        )
        each = join(layers.linear(1, w, 6 * w, name="modulation"), attend, look, feed).beside(held)
        return join(
            layers.linear(voxels, self.inputs, entry),
            layers.linear(1, 256, w) + layers.linear(1, w, w),
            self._into(layers, voxels, n) if self.narrow else LayerBlock(),
            layers.residual(n, w),
            self.layers * each,
            self._back(layers, voxels, n) if self.narrow else LayerBlock(),
            layers.norm(voxels, entry, affine=False),
            layers.linear(voxels, entry, self.inputs),
        )

    def _into(self, layers: Layers, voxels: int, n: int) -> LayerBlock:
        c, w = self.narrow, self.width
        pool = layers.pointwise(voxels, c, 1.25, "pool")
        return self._residual(layers, voxels, c, c) + pool + self._residual(layers, n, c, w)

    def _back(self, layers: Layers, voxels: int, n: int) -> LayerBlock:
        c, w = self.narrow, self.width
        spread = layers.pointwise(n, 2 * w, 2.0, "concatenate") + layers.pointwise(
            voxels, 2 * w, 1.25, "spread"
        )
        joined = layers.pointwise(voxels, 2 * c, 2.0, "concatenate")
        return join(
            spread, self._residual(layers, voxels, 2 * w, c), joined, self._residual(layers, voxels, 2 * c, c)
        )

    def _residual(self, layers: Layers, n: int, entry: int, out: int) -> LayerBlock:
        """Two convolutions, the second behind a norm that the step scales."""
        return join(
            layers.linear(1, self.width, 2 * out, name="modulation"),
            layers.norm(n, entry) + layers.act(n, entry, "silu"),
            layers.conv((1, 1, n), entry, out, NEIGHBOURS),
            layers.norm(n, out, affine=False) + layers.modulate(n, out) + layers.act(n, out, "silu"),
            layers.conv((1, 1, n), out, out, NEIGHBOURS),
            layers.linear(n, entry, out, name="shortcut") if entry != out else LayerBlock(),
            layers.residual(n, out),
        )


@dataclass(frozen=True, kw_only=True)
class VoxelGrid:
    """Latents of `inputs` values on a coarse grid to whether each voxel of a fine one is crossed: residual convolutions
    of `channels`, each level twice as fine as the one before."""

    channels: tuple[int, ...]
    inputs: int = 8
    resnets: int = 2

    def block(self, layers: Layers, side: int) -> LayerBlock:
        """A coarse grid of `side` to a fine one."""
        grid: Grid = (side,) * 3
        parts = [layers.conv(grid, self.inputs, self.channels[0])]
        parts.append(self.resnets * self._residual(layers, grid, self.channels[0]))
        for i, width in enumerate(self.channels):
            parts.append(self.resnets * self._residual(layers, grid, width))
            if i + 1 < len(self.channels):
                after = self.channels[i + 1]
                parts += [
                    layers.conv(grid, width, 8 * after),
                    layers.pointwise(size_of(grid), 8 * after, 2.0, "shuffle"),
                ]
                grid = tuple(2 * n for n in grid)
        last = self.channels[-1]
        n = size_of(grid)
        return join(*parts, layers.norm(n, last) + layers.act(n, last, "silu"), layers.conv(grid, last, 1))

    def _residual(self, layers: Layers, grid: Grid, width: int) -> LayerBlock:
        n = size_of(grid)
        half = layers.norm(n, width) + layers.act(n, width, "silu") + layers.conv(grid, width, width)
        return half + half + layers.residual(n, width)


@dataclass(frozen=True, kw_only=True)
class VoxelDecoder:
    """Latents of voxels to `outputs` numbers of each: a transformer in windows of `window` voxels a side, of which a
    surface crosses the square. `finer`: levels that cut each voxel into eight and convolve them (meshes), `cells` a
    side of the volume that the surface is taken from."""

    width: int
    layers: int
    heads: int
    outputs: int
    inputs: int = 8
    window: int = 8
    finer: tuple[int, ...] = ()
    cells: int = 0

    def block(self, layers: Layers, voxels: int) -> LayerBlock:
        """Numbers of so many voxels."""
        n, w, size, seen = voxels, self.width, self.width // self.heads, self.window**2
        held = layers.bytes(n, w)
        each = join(
            layers.norm(n, w, affine=False),
            layers.linear(n, w, 3 * w, name="qkv"),
            layers.attention(seen, seen, self.heads, size, windows=n / seen),
            layers.linear(n, w, w, name="out"),
            layers.residual(n, w),
            layers.norm(n, w, affine=False),
            layers.mlp(n, w, 4 * w),
            layers.residual(n, w),
        ).beside(held)
        parts = [layers.linear(n, self.inputs, w), self.layers * each, layers.norm(n, w, affine=False)]
        for after in self.finer:
            parts.append(layers.norm(n, w, "group") + layers.act(n, w, "silu"))
            n *= 8
            parts += [
                2 * layers.pointwise(n, w, 1.125, "subdivide"),
                layers.conv((1, 1, n), w, after, NEIGHBOURS),
                layers.norm(n, after, "group") + layers.act(n, after, "silu"),
                layers.conv((1, 1, n), after, after, NEIGHBOURS),
                layers.linear(n, w, after, name="shortcut"),
                layers.residual(n, after),
            ]
            w = after
        parts.append(layers.linear(n, w, self.outputs))
        if self.cells:
            parts.append(layers.pointwise(self.cells**3, DENSE, 2.0, "volume"))
        return join(*parts)
