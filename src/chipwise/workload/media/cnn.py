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
        stem = layers.conv_norm(grid, (3, 32), 3, 2) if self.deep else layers.conv_norm(grid, (3, 64), 7, 2)
        grid = shrunk(grid, 2)
        if self.deep:
            stem += layers.conv_norm(grid, (32, 32)) + layers.conv_norm(grid, (32, 64))
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
        return first + (self.depths[level] - 1) * self._residual(layers, shrunk(grid, 2), planes * expand, planes, 1)

    def _residual(self, layers: Layers, grid: Grid, inputs: int, planes: int, stride: int) -> LayerBlock:
        after = shrunk(grid, stride)
        out = planes * (4 if self.bottleneck else 1)
        middle = planes * self.group_width // 64 * self.groups
        held = layers.bytes(size_of(grid), inputs)
        early = stride if self.early else 1
        if self.bottleneck:
            convs = join(
                layers.conv_norm(grid, (inputs, middle), 1, early),
                layers.conv_norm(shrunk(grid, early), (middle, middle), 3, stride // early, self.groups),
                layers.conv_norm(after, (middle, out), 1, act=""),
            )
        else:
            convs = layers.conv_norm(grid, (inputs, out), 3, stride) + layers.conv_norm(after, (out, out), act="")
        short = LayerBlock()
        if inputs != out or stride > 1:
            near = after if self.deep else grid
            short = layers.conv_norm(near, (inputs, out), 1, 1 if self.deep else stride, act="").branch(held)
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
        parts, width = [layers.conv_norm(grid, (3, self.stem), 3, 2, act=self.act)], self.stem
        grid = shrunk(grid, 2)
        for row in self.rows:
            for i in range(row[5]):
                step = row[2] if i == 0 else 1
                parts.append(self._residual(layers, grid, width, row, step))
                grid, width = shrunk(grid, step), row[4]
        body, head = self.late or self.head, self.head
        parts.append(layers.conv_norm(grid, (width, body), 1, act=self.act))
        parts.append(layers.pointwise(size_of(grid), body, 1.0, "pool"))
        if self.late:
            parts += [layers.linear(1, body, head), layers.act(1, head, self.act)]
        return join(*parts, layers.linear(1, head, self.classes, name="head"))

    def _residual(self, layers: Layers, grid: Grid, width: int, row: tuple[int, ...], stride: int) -> LayerBlock:
        kind, kernel, _, expand, out, _, ratio = row
        inner, after = _rounded(width * expand / 10), shrunk(grid, stride)
        base = inner if self.inner_squeeze else width
        narrow = _rounded(base * ratio / 100) if self.inner_squeeze else int(base * ratio / 100)
        gate = layers.squeeze(after, inner, narrow) if ratio else LayerBlock()
        same = width == out and stride == 1
        add = layers.residual(size_of(after), out) if same else LayerBlock()
        if kind == 3:
            return layers.conv_norm(grid, (width, out), kernel, stride, act=self.act) + add
        first = LayerBlock()
        if kind == 2:
            first = layers.conv_norm(grid, (width, inner), kernel, stride, act=self.act)
        else:
            if kind == 1:
                first = layers.conv_norm(grid, (width, inner), 1, act=self.act)
            first += layers.conv_norm(grid, (inner, inner), kernel, stride, inner, self.act)
        held = layers.bytes(size_of(grid), width) if same else 0.0
        return (first + gate + layers.conv_norm(after, (inner, out), 1, act="")).beside(held) + add


def _rounded(width: float) -> int:
    """To a multiple of 8, not below 90 % of it (as the authors of MobileNet round)."""
    near = max(8, int(width + 4) // 8 * 8)
    return near + 8 if near < 0.9 * width else near


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
            layers.conv(grid, w, out, 3, stride, bias=False), tail, layers.conv(after, out, out, bias=False), tail
        )
