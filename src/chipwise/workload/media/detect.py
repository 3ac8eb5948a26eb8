"""Detectors on convolutional networks: Faster and Mask R-CNN, RetinaNet, SSD, YOLO.

Shapes: facebookresearch/detectron2, modeling/; mlcommons/inference, vision/classification_and_detection;
NVIDIA/DeepLearningExamples, Detection/SSD; ultralytics, cfg/models.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from chipwise.workload.media.cnn import ResNet, conv_norm
from chipwise.workload.media.layers import Block, Grid, Layers, join, shrunk, size_of
from chipwise.workload.op import pointwise

Levels = list[tuple[Grid, int]]
# Kernels that a host starts for the regions of one picture: on each level scores are sorted, boxes decoded, clipped,
# sifted and suppressed; in training boxes are matched with the truth, sampled and encoded, twice; of every positive
# region a mask is cut, resized and drawn (facebookresearch/maskrcnn-benchmark, modeling/rpn/inference.py,
# modeling/roi_heads/mask_head/loss.py; counted in the code).
PER_LEVEL, PER_MATCH, PER_MASK = 25.0, 40.0, 6.0
KEPT_OF_LOSS = 10.0  # tensors of a focal loss that the backward pass reads (fvcore/nn/focal_loss.py)


def pyramid(layers: Layers, levels: Levels, width: int = 256) -> Block:
    """A feature pyramid: each level to `width`, added to the one above, and convolved."""
    parts = []
    for grid, entry in levels:
        n = size_of(grid)
        parts += [
            layers.conv(grid, entry, width, 1),
            layers.residual(n, width),
            layers.conv(grid, width, width),
        ]
    return join(*parts)


def _shared(blocks: list[Block]) -> Block:
    """The same weights applied to several levels."""
    first, rest = blocks[0], join(*blocks[1:])
    return join(first, Block(rest.ops, 0, 0.0, rest.peak, rest.kept))


def _convs(layers: Layers, grid: Grid, width: int, count: int) -> Block:
    return count * (layers.conv(grid, width, width) + layers.act(size_of(grid), width, "relu"))


def _gather(layers: Layers, positions: int, width: int) -> Block:
    """Positions of regions, each a mean of four samples; the features are read in place, one tensor is made."""
    block = layers.pointwise(positions, width, 5.0, "roi_align")
    return replace(block, peak=layers.bytes(positions, width))


@dataclass(frozen=True, kw_only=True)
class RCNN:
    """Proposals from a small network, then a head on each of `proposals` regions.

    `neck`: "FPN" (a pyramid, two matrices on 7 x 7 regions), "C4" (the last level of the ResNet on 14 x 14 regions of
    the third), "DC5" (the last level without stride, two matrices); `mask`: four convolutions on 14 x 14 positions of
    `detections` regions; in training, on `sampled` regions and a quarter of them.
    """

    backbone: ResNet
    neck: Literal["FPN", "C4", "DC5"] = "FPN"
    mask: bool = False
    proposals: int = 1000
    detections: int = 100
    sampled: int = 512
    classes: int = 80

    @property
    def multiple(self) -> int:
        """Pictures are padded to whole positions."""
        return 1

    def block(self, layers: Layers, grid: Grid) -> Block:
        """One pass over pictures of `grid` pixels."""
        strides = {"FPN": (1, 2, 2, 2), "DC5": (1, 2, 2, 1), "C4": (1, 2, 2)}[self.neck]
        body, levels = self.backbone.features(layers, grid, strides)
        parts, grids, width, anchors = [body], [levels[-1][0]], levels[-1][1], 15
        if self.neck == "FPN":
            parts.append(pyramid(layers, levels))
            grids, width, anchors = [*(g for g, _ in levels), shrunk(levels[-1][0], 2)], 256, 3
        parts.append(_shared([self._propose(layers, g, width, anchors) for g in grids]))
        regions, masked = (
            (self.sampled, self.sampled // 4) if layers.training else (self.proposals, self.detections)
        )
        started = PER_LEVEL * len(grids) + layers.training * (2.0 * PER_MATCH + self.mask * masked * PER_MASK)
        return join(
            *parts,
            self._sifted(layers, regions, started),
            self._heads(layers.times(regions), width, masked / regions),
        )

    def _sifted(self, layers: Layers, regions: int, kernels: float) -> Block:
        """Small work on the boxes of one picture after the other, started by the host kernel by kernel."""
        op = pointwise(layers.batch * regions * 4.0, 2.0 * kernels, name="regions")
        dims = {**op.dims, "frozen": 1.0, "apart": 1.0}
        return Block(((1.0, replace(op, launches=layers.batch * kernels, dims=dims)),))

    def _propose(self, layers: Layers, grid: Grid, width: int, anchors: int) -> Block:
        return join(_convs(layers, grid, width, 1), layers.conv(grid, width, 5 * anchors, 1))

    def _heads(self, layers: Layers, width: int, masked: float) -> Block:
        """On every region; masks on the share `masked` of them."""
        scores = 5 * self.classes + 1
        if self.neck == "C4":
            gather = _gather(layers, 196, width)
            return join(gather, self.backbone.stage(layers, (14, 14), 3), layers.linear(1, 2 * width, scores))
        gather = _gather(layers, 49, width)
        two = layers.linear(1, 49 * width, 1024) + layers.linear(1, 1024, 1024)
        heads = join(gather, two, layers.linear(1, 1024, scores))
        if self.mask:
            few = layers.times(masked)
            spread = few.linear(196, 256, 4 * 256) + few.parameter(-3 * 256)
            last = few.linear(784, 256, self.classes)
            heads += join(_gather(few, 196, 256), _convs(few, (14, 14), 256, 4), spread, last)
        return heads


@dataclass(frozen=True, kw_only=True)
class RetinaNet:
    """A pyramid of five levels and two heads of four convolutions on each, for all anchors.

    `deep`: the fourth level is made of the network's last tensor, not of the pyramid's."""

    backbone: ResNet
    deep: bool = False
    classes: int = 80
    anchors: int = 9

    @property
    def multiple(self) -> int:
        """Pictures are padded to whole positions."""
        return 1

    def block(self, layers: Layers, grid: Grid) -> Block:
        """One pass over pictures of `grid` pixels."""
        body, levels = self.backbone.features(layers, grid)
        sixth = shrunk(levels[-1][0], 2)
        entry = levels[-1][1] if self.deep else 256
        more = layers.conv(levels[-1][0], entry, 256, 3, 2) + layers.conv(sixth, 256, 256, 3, 2)
        grids = [g for g, _ in levels[1:]] + [sixth, shrunk(sixth, 2)]
        heads = [
            join(
                2 * _convs(layers, g, 256, 4),
                layers.conv(g, 256, self.anchors * self.classes),
                layers.conv(g, 256, 4 * self.anchors),
            )
            for g in grids
        ]
        seen = sum(size_of(g) for g in grids)
        scores = self._loss(layers, seen) if layers.training else self._sifted(layers, seen)
        return join(body, pyramid(layers, levels[1:]), more, _shared(heads), scores)

    def _sifted(self, layers: Layers, positions: int) -> Block:
        """Scores of every class of every anchor, written in 32 bits for what looks for the largest and reads them."""
        width = self.anchors * self.classes
        return layers.pointwise(positions, width, 2.0 * 4.0 / layers.precision.bytes, "sift")

    def _loss(self, layers: Layers, positions: int) -> Block:
        """The focal loss on every class of every anchor, operator by operator: the scores in one row, targets,
        probabilities, cross entropy, 1 - p, 1 - t, 1 - p_t, its power, the product, alpha_t are kept."""
        width = self.anchors * self.classes
        block = layers.pointwise(positions, width, 2.0 * KEPT_OF_LOSS, "focal_loss")
        tensor = layers.bytes(positions, width)
        return replace(block, peak=2.0 * tensor, kept=KEPT_OF_LOSS * tensor)


@dataclass(frozen=True, kw_only=True)
class SSD:
    """NVIDIA's SSD300: a ResNet to its third level (stride 8 there), five shrinking levels, a head on each."""

    backbone: ResNet
    classes: int = 81

    @property
    def multiple(self) -> int:
        """Pictures are padded to whole positions."""
        return 1

    def block(self, layers: Layers, grid: Grid) -> Block:
        """One pass over pictures of `grid` pixels."""
        body, levels = self.backbone.features(layers, grid, (1, 2, 1))
        (grid, w), parts = levels[-1], [body]
        heads = [(grid, w, 4)]
        for i, (out, middle) in enumerate(((512, 256), (512, 256), (256, 128), (256, 128), (256, 128))):
            after = shrunk(grid, 2) if i < 3 else tuple(max(1, side - 2) for side in grid)
            parts += [
                conv_norm(layers, grid, (w, middle), 1),
                conv_norm(layers, grid, (middle, out), 3, 2 if i < 3 else 1),
            ]
            grid, w = after, out
            heads.append((grid, w, 6 if i < 3 else 4))
        for place, entry, anchors in heads:
            parts.append(layers.conv(place, entry, anchors * (self.classes + 4)))
        return join(*parts)


@dataclass(frozen=True, kw_only=True)
class YOLO:
    """YOLOv8: blocks of split convolutions (C2f), a pyramid down and up, heads of boxes and classes on three levels.

    `widths` of the five levels; `depths` of the blocks of the backbone, `neck` of those of the pyramid.
    """

    widths: tuple[int, int, int, int, int]
    depths: tuple[int, int, int, int]
    neck: int
    classes: int = 80

    @property
    def multiple(self) -> int:
        """Sides must be multiples of this."""
        return 32

    def block(self, layers: Layers, grid: Grid) -> Block:
        """One pass over pictures of `grid` pixels."""
        a, b, c, d, e = self.widths
        half = shrunk(grid, 2)
        parts, w, levels = [conv_norm(layers, grid, (3, a), 3, 2, act="silu")], a, []
        grid = half
        for out, depth in zip((b, c, d, e), self.depths, strict=True):
            parts.append(conv_norm(layers, grid, (w, out), 3, 2, act="silu"))
            grid, w = shrunk(grid, 2), out
            parts.append(self._split(layers, grid, out, out, depth, True))
            levels.append(grid)
        _, eighth, sixteenth, last = levels
        parts += [
            conv_norm(layers, last, (e, e // 2), 1, act="silu"),
            conv_norm(layers, last, (2 * e, e), 1, act="silu"),
        ]
        parts += [
            self._split(layers, sixteenth, d + e, d, self.neck, False),
            self._split(layers, eighth, c + d, c, self.neck, False),
            conv_norm(layers, eighth, (c, c), 3, 2, act="silu"),
            self._split(layers, sixteenth, c + d, d, self.neck, False),
            conv_norm(layers, sixteenth, (d, d), 3, 2, act="silu"),
            self._split(layers, last, d + e, e, self.neck, False),
        ]
        boxes, names = max(16, c // 4, 64), max(c, min(self.classes, 100))
        for place, entry in ((eighth, c), (sixteenth, d), (last, e)):
            for inner, out in ((boxes, 64), (names, self.classes)):
                parts += [
                    conv_norm(layers, place, (entry, inner), act="silu"),
                    conv_norm(layers, place, (inner, inner), act="silu"),
                    layers.conv(place, inner, out, 1),
                ]
        return join(*parts)

    def _split(self, layers: Layers, grid: Grid, entry: int, out: int, depth: int, add: bool) -> Block:
        half, n = out // 2, size_of(grid)
        each = conv_norm(layers, grid, (half, half), act="silu") + conv_norm(
            layers, grid, (half, half), act="silu"
        )
        if add:
            each += layers.residual(n, half)
        ends = conv_norm(layers, grid, (entry, out), 1, act="silu")
        last = conv_norm(layers, grid, ((2 + depth) * half, out), 1, act="silu")
        return join(ends, depth * each, layers.pointwise(n, (2 + depth) * half, 2.0, "concat"), last)
