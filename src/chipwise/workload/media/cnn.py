"""Convolutional networks: classifiers, detectors on them, U-Nets that segment, and networks that enlarge pictures.

Shapes: huggingface/pytorch-image-models, timm/models/resnet.py, efficientnet.py, mobilenetv3.py, convnext.py, vgg.py,
densenet.py, regnet.py; facebookresearch/detectron2, modeling; mlcommons/inference, vision; ultralytics, cfg/models;
xinntao/Real-ESRGAN, basicsr/archs/rrdbnet_arch.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from chipwise.values import dataclass
from chipwise.workload.media.layers import Grid, LayerBlock, Layers, join, shrunk, size_of


def conv_norm(
    layers: Layers,
    grid: Grid,
    channels: tuple[int, int],
    kernel: int = 3,
    stride: int = 1,
    groups: int = 1,
    act: str = "relu",
) -> LayerBlock:
    """A convolution of (inputs, filters) without offset, a batch norm and an activation ("": none)."""
    inputs, filters = channels
    size = size_of(shrunk(grid, stride))
    last = layers.act(size, filters, act) if act else LayerBlock()
    return join(
        layers.conv(grid, inputs, filters, kernel, stride, groups, False),
        layers.norm(size, filters, "batch"),
        last,
    )


def squeeze(layers: Layers, grid: Grid, width: int, inner: int) -> LayerBlock:
    """A mean over positions, two matrices on it, and every channel scaled by the outcome."""
    size = size_of(grid)
    pool = layers.pointwise(size, width, 1.0, "pool")
    matrices = layers.linear(1, width, inner) + layers.linear(1, inner, width)
    return join(pool, matrices, layers.pointwise(size, width, 2.0, "scale"))


@dataclass(frozen=True, kw_only=True)
class ResNet:
    """ResNet, ResNeXt and wide ones: four levels of residual blocks.

    `bottleneck`: three convolutions a block (1, 3, 1) and four times the width outside, else two; `groups` of
    `group_width` channels in the middle one; `early`: strides are in the first convolution (the first ResNet); `deep`:
    three convolutions in the stem, a mean before a shorter path (ResNet-D);
    `classes` 0: no head; `frozen`: in training, batch norms are constants and the stem and all levels but the last
    `frozen` are left as they are (0: all is trained; detectors: 3).
    """

    depths: tuple[int, ...]
    bottleneck: bool = True
    groups: int = 1
    group_width: int = 64
    early: bool = False
    deep: bool = False
    classes: int = 1000
    frozen: int = 0

    multiple: ClassVar[int] = 1
    """Sides are padded to whole positions."""

    def features(
        self, layers: Layers, grid: Grid, strides: tuple[int, ...] = (1, 2, 2, 2)
    ) -> tuple[LayerBlock, list[tuple[Grid, int]]]:
        """All but the head, with as many levels as `strides`, and (grid, width) after each level."""
        layers = replace(layers, training=layers.training and not self.frozen)
        stem = conv_norm(layers, grid, (3, 32), 3, 2) if self.deep else conv_norm(layers, grid, (3, 64), 7, 2)
        grid = shrunk(grid, 2)
        if self.deep:
            stem += conv_norm(layers, grid, (32, 32)) + conv_norm(layers, grid, (32, 64))
        stem += layers.pointwise(size_of(grid), 64, 1.25, "max_pool")
        grid, width, levels = shrunk(grid, 2), 64, []
        parts = [stem.frozen() if self.frozen else stem]
        for level, (depth, stride) in enumerate(zip(self.depths, strides, strict=False)):
            planes = 64 * 2**level
            first = self._residual(layers, grid, width, planes, stride)
            grid, width = shrunk(grid, stride), planes * (4 if self.bottleneck else 1)
            block = first + (depth - 1) * self._residual(layers, grid, width, planes, 1)
            parts.append(block.frozen() if self.frozen and level < len(self.depths) - self.frozen else block)
            levels.append((grid, width))
        return join(*parts), levels

    def block(self, layers: Layers, grid: Grid) -> LayerBlock:
        """One pass over pictures of `grid` pixels."""
        body, levels = self.features(layers, grid)
        last, width = levels[-1]
        pool = layers.pointwise(size_of(last), width, 1.0, "pool")
        head = layers.linear(1, width, self.classes, name="head") if self.classes else LayerBlock()
        return join(body, pool, head)

    def stage(self, layers: Layers, grid: Grid, level: int) -> LayerBlock:
        """One level alone, entered from the level before (heads of detectors that reuse the last)."""
        layers = replace(layers, training=layers.training and not self.frozen)
        planes, expand = 64 * 2**level, 4 if self.bottleneck else 1
        first = self._residual(layers, grid, planes * expand // 2, planes, 2)
        return first + (self.depths[level] - 1) * self._residual(
            layers, shrunk(grid, 2), planes * expand, planes, 1
        )

    def _residual(self, layers: Layers, grid: Grid, inputs: int, planes: int, stride: int) -> LayerBlock:
        after = shrunk(grid, stride)
        out = planes * (4 if self.bottleneck else 1)
        middle = planes * self.group_width // 64 * self.groups
        held = layers.bytes(size_of(grid), inputs)
        early = stride if self.early else 1
        if self.bottleneck:
            convs = join(
                conv_norm(layers, grid, (inputs, middle), 1, early),
                conv_norm(layers, shrunk(grid, early), (middle, middle), 3, stride // early, self.groups),
                conv_norm(layers, after, (middle, out), 1, act=""),
            )
        else:
            convs = conv_norm(layers, grid, (inputs, out), 3, stride) + conv_norm(
                layers, after, (out, out), act=""
            )
        short = LayerBlock()
        if inputs != out or stride > 1:
            near = after if self.deep else grid
            short = conv_norm(layers, near, (inputs, out), 1, 1 if self.deep else stride, act="").branch(held)
        size = size_of(after)
        return join(convs.beside(held), short, layers.residual(size, out), layers.act(size, out, "relu"))


@dataclass(frozen=True, kw_only=True)
class Mobile:
    """Inverted residuals with depthwise convolutions: MobileNet V2 and V3, EfficientNet and its second version.

    A row of `rows`: (kind, kernel, stride, expansion in tenths, width, repeats, squeeze in hundredths of the block's
    input, or of its inner width for V3); kinds: 0 depthwise then point, 1 inverted residual, 2 fused (a full
    convolution instead of the first two), 3 a plain convolution. `head`: width of the last convolution; `inner_squeeze`
    as said; `late`: a matrix before the head instead of a norm (V3).
    """

    stem: int
    rows: tuple[tuple[int, ...], ...]
    head: int
    late: int = 0
    inner_squeeze: bool = False
    act: str = "silu"
    classes: int = 1000

    multiple: ClassVar[int] = 1
    """Sides are padded to whole positions."""

    def block(self, layers: Layers, grid: Grid) -> LayerBlock:
        """One pass over pictures of `grid` pixels."""
        parts, width = [conv_norm(layers, grid, (3, self.stem), 3, 2, act=self.act)], self.stem
        grid = shrunk(grid, 2)
        for row in self.rows:
            for i in range(row[5]):
                step = row[2] if i == 0 else 1
                parts.append(self._residual(layers, grid, width, row, step))
                grid, width = shrunk(grid, step), row[4]
        body, head = self.late or self.head, self.head
        parts.append(conv_norm(layers, grid, (width, body), 1, act=self.act))
        parts.append(layers.pointwise(size_of(grid), body, 1.0, "pool"))
        if self.late:
            parts += [layers.linear(1, body, head), layers.act(1, head, self.act)]
        return join(*parts, layers.linear(1, head, self.classes, name="head"))

    def _residual(
        self, layers: Layers, grid: Grid, width: int, row: tuple[int, ...], stride: int
    ) -> LayerBlock:
        kind, kernel, _, expand, out, _, ratio = row
        inner, after = _rounded(width * expand / 10), shrunk(grid, stride)
        base = inner if self.inner_squeeze else width
        narrow = _rounded(base * ratio / 100) if self.inner_squeeze else int(base * ratio / 100)
        gate = squeeze(layers, after, inner, narrow) if ratio else LayerBlock()
        same = width == out and stride == 1
        add = layers.residual(size_of(after), out) if same else LayerBlock()
        if kind == 3:
            return conv_norm(layers, grid, (width, out), kernel, stride, act=self.act) + add
        first = LayerBlock()
        if kind == 2:
            first = conv_norm(layers, grid, (width, inner), kernel, stride, act=self.act)
        else:
            if kind == 1:
                first = conv_norm(layers, grid, (width, inner), 1, act=self.act)
            first += conv_norm(layers, grid, (inner, inner), kernel, stride, inner, self.act)
        held = layers.bytes(size_of(grid), width) if same else 0.0
        return (first + gate + conv_norm(layers, after, (inner, out), 1, act="")).beside(held) + add


def _rounded(width: float) -> int:
    """To a multiple of 8, not below 90 % of it (as the authors of MobileNet round)."""
    near = max(8, int(width + 4) // 8 * 8)
    return near + 8 if near < 0.9 * width else near


@dataclass(frozen=True, kw_only=True)
class ConvNeXt:
    """Depthwise 7 x 7 convolutions and matrices over channels. `second`: a response norm instead of learned scales."""

    widths: tuple[int, ...]
    depths: tuple[int, ...]
    second: bool = False
    classes: int = 1000

    multiple: ClassVar[int] = 1
    """Sides are padded to whole positions."""

    def block(self, layers: Layers, grid: Grid) -> LayerBlock:
        """One pass over pictures of `grid` pixels."""
        w, parts = 3, []
        for level, (out, depth) in enumerate(zip(self.widths, self.depths, strict=True)):
            step = 2 if level else 4
            norm = layers.norm(size_of(grid), w) if level else LayerBlock()
            parts += [norm, layers.conv(grid, w, out, step, step)]
            grid, w = shrunk(grid, step), out
            n = size_of(grid)
            parts += (
                [depth * self._layer(layers, grid, w)]
                if level
                else [layers.norm(n, w), depth * self._layer(layers, grid, w)]
            )
        pool = layers.pointwise(size_of(grid), w, 1.0, "pool")
        return join(*parts, pool, layers.norm(1, w), layers.linear(1, w, self.classes, name="head"))

    def _layer(self, layers: Layers, grid: Grid, w: int) -> LayerBlock:
        n = size_of(grid)
        scale = (
            layers.parameter(8 * w) + layers.pointwise(n, 4 * w, 3.0, "response_norm")
            if self.second
            else LayerBlock()
        )
        return join(
            layers.conv(grid, w, w, 7, 1, w),
            layers.norm(n, w),
            layers.linear(n, w, 4 * w),
            layers.act(n, 4 * w),
            scale,
            layers.linear(n, 4 * w, w),
            LayerBlock()
            if self.second
            else layers.parameter(w) + layers.pointwise(n, w, 2.0, "scale", epilogue=True),
            layers.residual(n, w),
        ).beside(layers.bytes(n, w))


@dataclass(frozen=True, kw_only=True)
class VGG:
    """Plain convolutions of width 64 to 512 between five halvings, three large matrices. `depths` per level."""

    depths: tuple[int, ...]
    classes: int = 1000

    multiple: ClassVar[int] = 32
    """Five halvings."""

    def block(self, layers: Layers, grid: Grid) -> LayerBlock:
        """One pass over pictures of `grid` pixels."""
        parts, w = [], 3
        for out, depth in zip((64, 128, 256, 512, 512), self.depths, strict=True):
            for _ in range(depth):
                parts += [layers.conv(grid, w, out), layers.act(size_of(grid), out, "relu")]
                w = out
            parts.append(layers.pointwise(size_of(grid), out, 1.25, "max_pool"))
            grid = shrunk(grid, 2)
        # the first matrix is a convolution that covers 7 x 7 positions
        places = max(1, size_of(tuple(side - 6 for side in grid)))
        first = layers.linear(places, 49 * w, 4096) + layers.act(places, 4096, "relu")
        second = layers.linear(places, 4096, 4096) + layers.act(places, 4096, "relu")
        return join(*parts, first, second, layers.linear(1, 4096, self.classes, name="head"))


@dataclass(frozen=True, kw_only=True)
class DenseNet:
    """Each layer sees all before it in its level: 1 x 1 to four times `growth`, then 3 x 3 to `growth`."""

    depths: tuple[int, ...]
    growth: int = 32
    stem: int = 64
    classes: int = 1000

    multiple: ClassVar[int] = 1
    """Sides are padded to whole positions."""

    def block(self, layers: Layers, grid: Grid) -> LayerBlock:
        """One pass over pictures of `grid` pixels."""
        parts, w, g = [conv_norm(layers, grid, (3, self.stem), 7, 2)], self.stem, self.growth
        grid = shrunk(grid, 2)
        parts.append(layers.pointwise(size_of(grid), w, 1.25, "max_pool"))
        grid = shrunk(grid, 2)
        for level, depth in enumerate(self.depths):
            n = size_of(grid)
            for _ in range(depth):
                parts += [
                    layers.norm(n, w, "batch"),
                    layers.act(n, w, "relu"),
                    conv_norm(layers, grid, (w, 4 * g), 1),
                    layers.conv(grid, 4 * g, g, bias=False).beside(layers.bytes(n, w)),
                    layers.pointwise(n, w + g, 2.0, "concat"),
                ]
                w += g
            parts += [layers.norm(n, w, "batch"), layers.act(n, w, "relu")]
            if level < len(self.depths) - 1:
                parts += [
                    layers.conv(grid, w, w // 2, 1, bias=False),
                    layers.pointwise(n, w // 2, 1.25, "pool"),
                ]
                grid, w = shrunk(grid, 2), w // 2
        return join(
            *parts,
            layers.pointwise(size_of(grid), w, 1.0, "pool"),
            layers.linear(1, w, self.classes, name="head"),
        )


@dataclass(frozen=True, kw_only=True)
class RegNet:
    """RegNetY: bottlenecks of one width with groups of `group` channels and a squeeze of a quarter of the input."""

    widths: tuple[int, ...]
    depths: tuple[int, ...]
    group: int
    stem: int = 32
    squeezed: bool = True
    classes: int = 1000

    multiple: ClassVar[int] = 1
    """Sides are padded to whole positions."""

    def block(self, layers: Layers, grid: Grid) -> LayerBlock:
        """One pass over pictures of `grid` pixels."""
        parts, w = [conv_norm(layers, grid, (3, self.stem), 3, 2)], self.stem
        grid = shrunk(grid, 2)
        for out, depth in zip(self.widths, self.depths, strict=True):
            parts.append(self._residual(layers, grid, w, out, 2))
            grid, w = shrunk(grid, 2), out
            parts.append((depth - 1) * self._residual(layers, grid, w, w, 1))
        return join(
            *parts,
            layers.pointwise(size_of(grid), w, 1.0, "pool"),
            layers.linear(1, w, self.classes, name="head"),
        )

    def _residual(self, layers: Layers, grid: Grid, w: int, out: int, stride: int) -> LayerBlock:
        after = shrunk(grid, stride)
        gate = squeeze(layers, after, out, round(w / 4)) if self.squeezed else LayerBlock()
        short = (
            conv_norm(layers, grid, (w, out), 1, stride, act="") if stride > 1 or w != out else LayerBlock()
        )
        n = size_of(after)
        return join(
            conv_norm(layers, grid, (w, out), 1),
            conv_norm(layers, grid, (out, out), 3, stride, out // self.group),
            gate,
            conv_norm(layers, after, (out, out), 1, act=""),
            short,
            layers.residual(n, out),
            layers.act(n, out, "relu"),
        ).beside(layers.bytes(size_of(grid), w))


@dataclass(frozen=True, kw_only=True)
class RRDB:
    """ESRGAN, Real-ESRGAN: `blocks` of three dense groups, in which four convolutions of `growth` filters each see all
    before them, then two doublings of both sides. `fold`: pixels along a side that become channels first."""

    blocks: int = 23
    width: int = 64
    growth: int = 32
    fold: int = 1

    @property
    def multiple(self) -> int:
        """Sides must be multiples of this."""
        return self.fold

    def block(self, layers: Layers, grid: Grid) -> LayerBlock:
        """One pass over pictures of `grid` pixels."""
        grid, w, g = shrunk(grid, self.fold), self.width, self.growth
        n, dense = size_of(grid), []
        for entry in range(w, w + 4 * g, g):
            dense += [layers.conv(grid, entry, g), layers.act(n, g, "leaky")]
            dense.append(layers.pointwise(n, entry + g, 2.0, "concat"))
        group = join(*dense, layers.conv(grid, w + 4 * g, w), layers.residual(n, w)).beside(
            layers.bytes(n, w)
        )
        parts = [
            layers.conv(grid, 3 * self.fold**2, w),
            self.blocks * (3 * group + layers.residual(n, w)),
            layers.conv(grid, w, w),
            layers.residual(n, w),
        ]
        for _ in range(2):
            grid = tuple(2 * side for side in grid)
            parts.append(layers.pointwise(size_of(grid), w, 1.25, "upsample"))
            parts += [layers.conv(grid, w, w), layers.act(size_of(grid), w, "leaky")]
        return join(
            *parts, layers.conv(grid, w, w), layers.act(size_of(grid), w, "leaky"), layers.conv(grid, w, 3)
        )


@dataclass(frozen=True, kw_only=True)
class UNet3D:
    """Segmentation by an encoder and a decoder of paired convolutions, over 2 or 3 axes: 3D-UNet, nnU-Net.

    `widths` from the picture down; going up, a transposed convolution of stride 2 and two convolutions on both
    tensors. `norm` "group" stands for instance norms."""

    widths: tuple[int, ...]
    inputs: int = 1
    classes: int = 3
    axes: int = 3

    @property
    def multiple(self) -> int:
        """Sides must be multiples of this."""
        return int(2 ** (len(self.widths) - 1))

    def block(self, layers: Layers, grid: Grid) -> LayerBlock:
        """One pass over pictures of `grid` voxels."""
        parts, w = [], self.inputs
        skips: list[tuple[Grid, int]] = []
        for level, out in enumerate(self.widths):
            step = 2 if level else 1
            held = sum(layers.bytes(size_of(g), c) for g, c in skips)
            parts.append(self._pair(layers, grid, w, out, step).beside(held))
            grid, w = shrunk(grid, step), out
            skips.append((grid, w))
        for out in reversed(self.widths[:-1]):
            skips.pop()
            held = sum(layers.bytes(size_of(g), c) for g, c in skips[:-1])
            n = size_of(grid)  # kernel and stride 2: a matrix that spreads
            parts.append(layers.linear(n, w, out * 2**self.axes, False).beside(held))
            parts.append(layers.parameter(out))
            grid = tuple(2 * side for side in grid)
            parts.append(self._pair(layers, grid, 2 * out, out, 1).beside(held))
            w = out
        return join(*parts, layers.linear(size_of(grid), w, self.classes))

    def _pair(self, layers: Layers, grid: Grid, w: int, out: int, stride: int) -> LayerBlock:
        after = shrunk(grid, stride)
        n = size_of(after)
        tail = layers.norm(n, out, "group") + layers.act(n, out, "relu")
        return join(
            layers.conv(grid, w, out, 3, stride, bias=False),
            tail,
            layers.conv(after, out, out, bias=False),
            tail,
        )
