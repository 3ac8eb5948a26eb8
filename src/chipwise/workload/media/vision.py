"""Transformers that see: ViT and its kin (DINO, CLIP, SigLIP, BEiT, DeiT), Swin, SAM and SAM 2, SegFormer, DETR, DPT.

Shapes: huggingface/pytorch-image-models, timm/models/vision_transformer.py, swin_transformer.py; huggingface/
transformers, models/vit, sam, segformer, detr, depth_anything; facebookresearch/segment-anything,
modeling/image_encoder.py; facebookresearch/sam2, sam2/modeling.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import ClassVar

from chipwise.errors import UsageError
from chipwise.values import dataclass
from chipwise.workload.media.cnn import ResNet
from chipwise.workload.media.layers import Grid, LayerBlock, Layers, join, shrunk, size_of


@dataclass(frozen=True, kw_only=True)
class ViT:
    """Patches as tokens through transformer layers.

    | field | meaning |
    |---|---|
    | extra | tokens beside the patches: class token, registers |
    | placed | extra tokens that have a learned position |
    | gated | a gated feed-forward of inner width `ffn` |
    | scaled | a learned scale after each half (DINOv2, BEiT) |
    | rotary | queries and keys are rotated by their places, which are not learned (DINOv3) |
    | relative | a table of relative positions in each layer instead of one of places (BEiT) |
    | key_bias | keys have an offset (BEiT: no) |
    | pre_norm, final_norm, patch_bias | a norm before the layers, after them; an offset of patches |
    | pool | attention with one learned query and a feed-forward at the end (SigLIP) |
    | classes | outputs of a last matrix (0: none); `biased`: with an offset |
    | native | side of the pictures it was trained on: positions of that many patches are stored |
    """

    width: int
    layers: int
    heads: int
    ffn: int
    patch: int
    native: int = 224
    extra: int = 1
    placed: int = 1
    gated: bool = False
    scaled: bool = False
    rotary: bool = False
    relative: bool = False
    key_bias: bool = True
    pre_norm: bool = False
    final_norm: bool = True
    patch_bias: bool = True
    pool: bool = False
    classes: int = 1000
    biased: bool = True

    multiple: ClassVar[int] = 1
    """Any side is taken: pixels beyond the last whole patch are not seen."""

    def block(self, layers: Layers, grid: Grid) -> LayerBlock:
        """One pass over pictures of `grid` pixels."""
        if min(grid) < self.patch:
            raise UsageError(
                f"pictures of {grid[1]}x{grid[0]} are smaller than a patch", f"at least {self.patch} pixels"
            )
        grid = tuple(side // self.patch * self.patch for side in grid)
        w, n = self.width, size_of(grid) // self.patch**2 + self.extra
        side = self.native // self.patch
        parts = [
            layers.conv(grid, 3, w, self.patch, self.patch, bias=self.patch_bias),
            layers.parameter(self.extra * w),
        ]
        if not self.relative and not self.rotary:
            parts += [layers.parameter((side * side + self.placed) * w), layers.residual(n, w)]
        if self.pre_norm:
            parts.append(layers.norm(n, w))
        parts.append(self.layers * self._layer(layers, n, side))
        if self.final_norm:
            parts.append(layers.norm(n, w))
        if self.pool:
            parts += [layers.parameter(w), layers.linear(1, w, w, name="q"), layers.linear(n, w, 2 * w, name="kv")]
            parts += [layers.attention(1, n, self.heads, w // self.heads), layers.linear(1, w, w, name="out")]
            parts += [layers.norm(1, w), layers.mlp(1, w, self.ffn)]
        if self.classes:
            parts.append(layers.linear(1, w, self.classes, self.biased, "head"))
        return join(*parts)

    def _layer(self, layers: Layers, n: int, side: int) -> LayerBlock:
        w = self.width
        block = layers.encoder_layer(n, w, self.heads, self.ffn, gated=self.gated)
        more = (2 * w if self.scaled else 0) + (((2 * side - 1) ** 2 + 3) * self.heads if self.relative else 0)
        less = layers.parameter(-w) if not self.key_bias else LayerBlock()
        turn = layers.rotate(n, w) if self.rotary else LayerBlock()
        return join(block, turn, layers.parameter(more), less)


@dataclass(frozen=True, kw_only=True)
class DPT:
    """Depth of every pixel: states of four layers of a ViT as pictures of four sizes, merged from the coarse one up
    (Depth Anything). `necks`: widths of the four, `fusion` of what merges them."""

    backbone: ViT
    necks: tuple[int, int, int, int]
    fusion: int

    @property
    def multiple(self) -> int:
        """Sides must be multiples of this."""
        return self.backbone.patch

    def block(self, layers: Layers, grid: Grid) -> LayerBlock:
        """One pass over pictures of `grid` pixels."""
        cells, w, f = shrunk(grid, self.backbone.patch), self.backbone.width, self.fusion
        parts, grids, n = [self.backbone.block(layers, grid)], [], size_of(cells)
        for width, times in zip(self.necks, (4, 2, 1, 0), strict=True):
            place = tuple(times * side for side in cells) if times else shrunk(cells, 2)
            parts.append(layers.conv(cells, w, width, 1))
            if times > 1:  # kernel and stride are the same: a matrix that spreads
                parts += [layers.linear(n, width, times**2 * width, False), layers.parameter(width)]
            elif not times:
                parts.append(layers.conv(cells, width, width, 3, 2))
            parts.append(layers.conv(place, width, f, bias=False))
            grids.append(place)
        for level in (3, 2, 1, 0):
            place = grids[level]
            unit = 2 * (layers.act(size_of(place), f, "relu") + layers.conv(place, f, f))
            unit += layers.residual(size_of(place), f)
            after = grids[level - 1] if level else tuple(2 * side for side in place)
            # the coarsest has nothing to be added to: its first unit is stored alone
            parts += [unit if level < 3 else layers.parameter(unit.parameters), unit]
            parts += [layers.pointwise(size_of(after), f, 1.25, "upsample"), layers.conv(after, f, f, 1)]
        after = tuple(8 * side for side in cells)
        last = [layers.conv(after, f, f // 2), layers.pointwise(size_of(grid), f // 2, 1.25, "upsample")]
        return join(*parts, *last, layers.conv(grid, f // 2, 32), layers.conv(grid, 32, 1, 1))


@dataclass(frozen=True, kw_only=True)
class SAM:
    """Segment Anything's image encoder: windows in most layers, all positions in `full` of them, two convolutions at
    the end; its mask decoder works on 64 x 64 positions and `prompts` points or boxes, picture by picture. `inside`: a
    kernel of attention that adds the bias of positions itself."""

    width: int
    layers: int
    heads: int
    full: int = 4
    window: int = 14
    patch: int = 16
    native: int = 1024
    out: int = 256
    prompts: int = 1
    inside: bool = False

    @property
    def multiple(self) -> int:
        """Sides must be multiples of this."""
        return self.patch

    def block(self, layers: Layers, grid: Grid) -> LayerBlock:
        """The encoder of pictures of `grid` pixels, and the decoder for the prompts of each."""
        return join(*self.halves(layers, grid))

    def halves(self, layers: Layers, grid: Grid) -> tuple[LayerBlock, LayerBlock]:
        """The encoder of a batch; the decoder for the prompts of each picture, one after the other: few numbers in many
        kernels, which a host starts while nothing else runs."""
        cells = shrunk(grid, self.patch)
        masks = _masks(replace(layers, batch=float(self.prompts)), cells, self.out, self.patch)
        return self._encoder(layers, grid), masks.again(layers.batch)

    def _encoder(self, layers: Layers, grid: Grid) -> LayerBlock:
        w, cells = self.width, shrunk(grid, self.patch)
        n, side = size_of(cells), self.native // self.patch
        return join(
            layers.conv(grid, 3, w, self.patch, self.patch),
            layers.parameter(side * side * w),
            layers.residual(n, w),
            (self.layers - self.full) * self._layer(layers, cells, self.window),
            self.full * self._layer(layers, cells, 0),
            layers.conv(cells, w, self.out, 1, bias=False),
            layers.norm(n, self.out),
            layers.conv(cells, self.out, self.out, bias=False),
            layers.norm(n, self.out),
        )

    def _layer(self, layers: Layers, cells: Grid, window: int) -> LayerBlock:
        w, n, size = self.width, size_of(cells), self.width // self.heads
        side = window or self.native // self.patch
        padded = size_of(tuple(-(-c // side) * side for c in cells)) if window else n
        seen = side * side if window else n
        held = layers.bytes(n, w)
        bias = 0.0 if layers.scores or self.inside else layers.bytes(padded, seen * self.heads)
        attend = join(
            layers.linear(padded, w, 3 * w, name="qkv"),
            layers.parameter(2 * (2 * side - 1) * size),
            layers.relative_positions(padded, seen, self.heads, size, inside=self.inside),
            layers.attention(seen, seen, self.heads, size, windows=padded / seen).beside(bias),
            layers.linear(padded, w, w, name="out"),
        ).beside(held)
        return join(
            layers.norm(n, w),
            attend,
            layers.residual(n, w),
            layers.norm(n, w),
            layers.mlp(n, w, 4 * w).beside(held),
            layers.residual(n, w),
        )


def _masks(layers: Layers, cells: Grid, w: int, patch: int) -> LayerBlock:
    """Masks of width `w`: two layers of attention both ways between 7 tokens and the picture, two upsampling
    convolutions, heads."""
    n, t = size_of(cells), 7

    def attend(q: int, kv: int, inner: int) -> LayerBlock:
        """Queries and keys have their places added, values have not; the result is added to what asked."""
        placed = layers.residual(q, w) + layers.residual(kv, w)
        ins = layers.linear(q, w, inner, name="q") + 2 * layers.linear(kv, w, inner, name="kv")
        seen = layers.attention(q, kv, 8, inner // 8)
        return join(placed, ins, seen, layers.linear(q, inner, w, name="out"), layers.residual(q, w))

    norm = layers.norm(t, w)
    each = join(
        attend(t, t, w),
        norm,
        attend(t, n, w // 2),
        norm,
        layers.mlp(t, w, 2048, act="relu"),
        layers.residual(t, w),
        norm,
        attend(n, t, w // 2),
        layers.norm(n, w),
    )
    # a transposed convolution of stride 2 with kernel 2 is a matrix that spreads
    up = [layers.linear(n, w, w, False), layers.parameter(w // 4), layers.norm(4 * n, w // 4)]
    up += [layers.act(4 * n, w // 4), layers.linear(4 * n, w // 4, w // 2, False), layers.parameter(w // 8)]
    up += [layers.act(16 * n, w // 8)]
    hidden = 2 * (layers.linear(1, w, w) + layers.act(1, w, "relu"))
    heads = 4 * (hidden + layers.linear(1, w, w // 8))
    score = hidden + layers.linear(1, w, 4)
    scores = layers.linear(16 * n, w // 8, 4, False, "masks")
    product = LayerBlock(scores.ops, peak=scores.peak, kept=scores.kept)
    prompt = layers.parameter(w * (5 + 2 + 5) + 4684)  # tables of points and masks, a small encoder of masks
    # three masks are brought to the size of the picture
    large = layers.pointwise(n * patch**2, 3, 4.0, "upsample")
    return join(prompt, 2 * each, attend(t, n, w // 2), norm, *up, heads, score, product, large)


@dataclass(frozen=True, kw_only=True)
class SAM2:
    """Segment Anything 2 on a frame of a video: Hiera (windows of `windows`, all positions in `full` blocks, queries
    halved along both sides between stages), a pyramid, attention of four layers to `frames` remembered frames, the
    decoder of masks, and the encoder of what is remembered. `background`: side of the stored positions."""

    width: int
    heads: int
    stages: tuple[int, ...]
    full: tuple[int, ...]
    windows: tuple[int, ...] = (8, 4, 14, 7)
    background: int = 7
    out: int = 256
    memory: int = 64
    frames: int = 7
    prompts: int = 1

    multiple: ClassVar[int] = 32
    """Sides must be multiples of this: the patch of 4 and three halvings."""

    def block(self, layers: Layers, grid: Grid) -> LayerBlock:
        """A frame of `grid` pixels once all remembered frames are there, with the masks of its prompts."""
        w, cells = self.out, shrunk(grid, 16)
        masks = _masks(replace(layers, batch=float(self.prompts)), cells, w, 16)
        more = layers.linear(1, w, w) + layers.linear(1, w, w) + layers.linear(1, w, 1)  # is an object seen at all
        more += 3 * layers.linear(1, w, w) + layers.linear(1, w, self.memory)  # the object's own token
        # tokens and places of memory, a small convolution of masks
        stored = layers.parameter(4 * w + (self.frames + 1) * self.memory + 17)
        return join(
            self._trunk(layers, grid),
            self._remembered(layers, size_of(cells)),
            masks.again(layers.batch),
            more,
            self._remember(layers, grid),
            stored,
        )

    def _trunk(self, layers: Layers, grid: Grid) -> LayerBlock:
        """Hiera and the matrices of its pyramid."""
        w, heads, side = self.width, self.heads, self.windows[0]
        cells, place = shrunk(grid, 4), 0
        parts = [
            layers.conv(grid, 3, w, 7, 4),
            layers.parameter(w * (self.background**2 + side**2)),
            layers.residual(size_of(cells), w),
        ]
        for stage, depth in enumerate(self.stages):
            for i in range(depth):
                grows = stage > 0 and i == 0
                out, heads = (2 * w, 2 * heads) if grows else (w, heads)
                side = 0 if place in self.full else self.windows[stage - grows]
                parts.append(self._layer(layers, cells, w, out, heads, side))
                cells, w, place = shrunk(cells, 2) if grows else cells, out, place + 1
            parts.append(layers.conv(cells, w, self.out, 1))
            if stage < 2:  # finer levels go to the decoder of masks
                parts.append(layers.conv(cells, self.out, self.out // (8 >> stage), 1))
        return join(*parts)

    def _layer(self, layers: Layers, cells: Grid, w: int, out: int, heads: int, side: int) -> LayerBlock:
        n, step = size_of(cells), 2 if out > w else 1
        padded = size_of(tuple(-(-c // side) * side for c in cells)) if side else n
        seen, after = side * side or n, n // step**2
        short = layers.linear(n, w, out) if out > w else LayerBlock()
        return join(
            layers.norm(n, w),
            short,
            layers.linear(padded, w, 3 * out, name="qkv"),
            layers.attention(seen / step**2, seen, heads, out // heads, windows=padded / seen),
            layers.linear(padded / step**2, out, out, name="out"),
            layers.residual(after, out),
            layers.norm(after, out),
            layers.mlp(after, out, 4 * out),
            layers.residual(after, out),
        ).beside(layers.bytes(n, w))

    def _remembered(self, layers: Layers, n: int) -> LayerBlock:
        """Positions see each other, then those of the remembered frames and a token of each object there."""
        w, seen = self.out, self.frames * n + 64
        norm, add = layers.norm(n, w), layers.residual(n, w)
        each = join(
            norm,
            layers.linear(n, w, 3 * w, name="qkv"),
            layers.rotate(n, w),
            layers.attention(n, n, 1, w),
            layers.linear(n, w, w, name="out"),
            add,
            norm,
            layers.linear(n, w, w, name="q"),
            layers.linear(seen, self.memory, 2 * w, name="kv"),
            layers.attention(n, seen, 1, w),
            layers.linear(n, w, w, name="out"),
            add,
            norm,
            layers.mlp(n, w, 2048, act="relu"),
            add,
        )
        return 4 * each + norm

    def _remember(self, layers: Layers, grid: Grid) -> LayerBlock:
        """A mask brought to the size of the features, added to them, and two blocks of depthwise convolutions."""
        parts, w, entry = [], self.out, 1
        for out in (4, 16, 64, 256):
            parts.append(layers.conv(grid, entry, out, 3, 2))
            grid, entry = shrunk(grid, 2), out
            parts += [layers.norm(size_of(grid), out), layers.act(size_of(grid), out)]
        n = size_of(grid)
        each = join(
            layers.conv(grid, w, w, 7, 1, w),
            layers.norm(n, w),
            layers.mlp(n, w, 4 * w),
            layers.parameter(w),
            layers.residual(n, w),
        )
        ends = layers.conv(grid, w, w, 1) + layers.conv(grid, w, w, 1) + layers.residual(n, w)
        return join(*parts, ends, 2 * each, layers.conv(grid, w, self.memory, 1))


@dataclass(frozen=True, kw_only=True)
class DETR:
    """A ResNet, an encoder over its last level, a decoder of object queries, and heads."""

    backbone: ResNet
    width: int = 256
    encoder: int = 6
    decoder: int = 6
    heads: int = 8
    ffn: int = 2048
    queries: int = 100
    classes: int = 92

    multiple: ClassVar[int] = 1
    """Sides are padded to whole positions."""

    def block(self, layers: Layers, grid: Grid) -> LayerBlock:
        """One pass over pictures of `grid` pixels."""
        body, levels = self.backbone.features(layers, grid)
        (cells, wide), w, q = levels[-1], self.width, self.queries
        n = size_of(cells)
        cross = join(
            layers.norm(q, w),
            layers.linear(q, w, w, name="q"),
            layers.linear(n, w, 2 * w, name="kv"),
            layers.attention(q, n, self.heads, w // self.heads),
            layers.linear(q, w, w, name="out"),
            layers.residual(q, w),
        )
        boxes = 2 * layers.linear(q, w, w) + layers.linear(q, w, 4)
        return join(
            body,
            layers.conv(cells, wide, w, 1),
            self.encoder * layers.encoder_layer(n, w, self.heads, self.ffn),
            layers.parameter(q * w),
            self.decoder * (layers.encoder_layer(q, w, self.heads, self.ffn) + cross),
            layers.norm(q, w),
            layers.linear(q, w, self.classes),
            boxes,
        )


@dataclass(frozen=True, kw_only=True)
class RTDETR:
    """RT-DETR: three levels of a ResNet, the last through an encoder layer, all merged top down and bottom up, and a
    decoder whose queries, chosen among all positions, see `points` places of each level instead of every position.

    `width`, `ffn`: of encoder and merging; `expansion`: inner channels of a merging block over `width`.
    """

    backbone: ResNet
    width: int = 256
    ffn: int = 1024
    expansion: float = 1.0
    decoder_width: int = 256
    decoder_ffn: int = 1024
    decoder: int = 6
    heads: int = 8
    points: int = 4
    queries: int = 300
    classes: int = 80

    multiple: ClassVar[int] = 32
    """Sides are padded to whole positions."""

    def block(self, layers: Layers, grid: Grid) -> LayerBlock:
        """One pass over pictures of `grid` pixels."""
        body, levels = self.backbone.features(layers, grid)
        levels, w, parts = levels[1:], self.width, [body]
        cells = [cell for cell, _ in levels]
        parts += [layers.conv_norm(cell, (wide, w), 1, act="") for cell, wide in levels]
        parts.append(layers.encoder_layer(size_of(cells[-1]), w, self.heads, self.ffn))
        for fine in (cells[1], cells[0]):
            parts.append(layers.conv_norm(shrunk(fine, 2), (w, w), 1, act="silu"))
            parts.append(layers.pointwise(size_of(fine), w, 1.25, "upsample") + self._merge(layers, fine))
        for fine, coarse in pairwise(cells):
            parts += [layers.conv_norm(fine, (w, w), 3, 2, act="silu"), self._merge(layers, coarse)]
        parts += [layers.conv_norm(cell, (w, self.decoder_width), 1, act="") for cell in cells]
        return join(*parts, self._decode(layers, sum(size_of(cell) for cell in cells), len(cells)))

    def _merge(self, layers: Layers, cell: Grid) -> LayerBlock:
        """Two halves, one of which passes three blocks of a wide and a narrow filter."""
        w, inner = self.width, int(self.width * self.expansion)
        near = layers.conv_norm(cell, (inner, inner), 3, act="silu") + layers.conv_norm(cell, (inner, inner), 1, act="")
        last = layers.conv_norm(cell, (inner, w), 1, act="silu") if inner != w else LayerBlock()
        return join(2 * layers.conv_norm(cell, (2 * w, inner), 1, act="silu"), 3 * near, last)

    def _boxes(self, layers: Layers, n: int) -> LayerBlock:
        w = self.decoder_width
        return 2 * layers.linear(n, w, w) + layers.linear(n, w, 4) + layers.linear(n, w, self.classes)

    def _decode(self, layers: Layers, n: int, levels: int) -> LayerBlock:
        w, q, places = self.decoder_width, self.queries, self.heads * levels * self.points
        cross = join(
            layers.linear(n, w, w, name="kv"),
            layers.linear(q, w, 3 * places, name="places"),
            layers.pointwise(q * places, w // self.heads, 5.0, "sample"),  # four neighbours each, and what comes out
            layers.linear(q, w, w, name="out"),
            layers.norm(q, w),
        )
        each = layers.encoder_layer(q, w, self.heads, self.decoder_ffn) + cross + self._boxes(layers, q)
        return join(
            layers.linear(n, w, w) + layers.norm(n, w) + self._boxes(layers, n),
            layers.linear(q, 4, 2 * w) + layers.act(q, 2 * w, "relu") + layers.linear(q, 2 * w, w),
            self.decoder * each,
        )
