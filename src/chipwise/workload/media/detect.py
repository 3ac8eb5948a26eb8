"""Detectors on convolutional networks: Faster and Mask R-CNN, RetinaNet, SSD, YOLO.

Shapes: facebookresearch/detectron2, modeling/; mlcommons/inference, vision/classification_and_detection;
NVIDIA/DeepLearningExamples, Detection/SSD; ultralytics, cfg/models.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar, Literal

from chipwise.errors import UsageError
from chipwise.values import dataclass
from chipwise.workload.media.cnn import ResNet
from chipwise.workload.media.layers import Grid, LayerBlock, Layers, join, shrunk, size_of
from chipwise.workload.op import pointwise

Levels = list[tuple[Grid, int]]
# Kernels that a host starts for the regions of one picture: on each level scores are sorted, boxes decoded, clipped,
# sifted and suppressed; in training boxes are matched with the truth, sampled and encoded, twice; of every positive
# region a mask is cut, resized and drawn (facebookresearch/maskrcnn-benchmark, modeling/rpn/inference.py,
# modeling/roi_heads/mask_head/loss.py; counted in the code).
PER_LEVEL, PER_MATCH, PER_MASK = 25.0, 40.0, 6.0
KEPT_OF_LOSS = 10.0  # tensors of a focal loss that the backward pass reads (fvcore/nn/focal_loss.py)


def pyramid(layers: Layers, levels: Levels, width: int = 256) -> LayerBlock:
    """A feature pyramid: each level to `width`, added to the one above, and convolved."""
    parts = []
    for grid, entry in levels:
        n = size_of(grid)
        parts += [layers.conv(grid, entry, width, 1), layers.residual(n, width), layers.conv(grid, width, width)]
    return join(*parts)


def _shared(blocks: list[LayerBlock]) -> LayerBlock:
    """The same weights applied to several levels."""
    first, rest = blocks[0], join(*blocks[1:])
    return join(first, LayerBlock(rest.ops, 0, 0.0, rest.peak, rest.kept))


def _convs(layers: Layers, grid: Grid, width: int, count: int) -> LayerBlock:
    return count * (layers.conv(grid, width, width) + layers.act(size_of(grid), width, "relu"))


def _gather(layers: Layers, positions: int, width: int) -> LayerBlock:
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

    multiple: ClassVar[int] = 1
    """Pictures are padded to whole positions."""

    def block(self, layers: Layers, grid: Grid) -> LayerBlock:
        """One pass over pictures of `grid` pixels."""
        strides = {"FPN": (1, 2, 2, 2), "DC5": (1, 2, 2, 1), "C4": (1, 2, 2)}[self.neck]
        body, levels = self.backbone.features(layers, grid, strides)
        parts, grids, width, anchors = [body], [levels[-1][0]], levels[-1][1], 15
        if self.neck == "FPN":
            parts.append(pyramid(layers, levels))
            grids, width, anchors = [*(g for g, _ in levels), shrunk(levels[-1][0], 2)], 256, 3
        parts.append(_shared([self._propose(layers, g, width, anchors) for g in grids]))
        regions, masked = (self.sampled, self.sampled // 4) if layers.training else (self.proposals, self.detections)
        started = PER_LEVEL * len(grids) + layers.training * (2.0 * PER_MATCH + self.mask * masked * PER_MASK)
        return join(
            *parts, self._sifted(layers, regions, started), self._heads(layers.times(regions), width, masked / regions)
        )

    def _sifted(self, layers: Layers, regions: int, kernels: float) -> LayerBlock:
        """Small work on the boxes of one picture after the other, started by the host kernel by kernel."""
        op = pointwise(layers.batch * regions * 4.0, 2.0 * kernels, name="regions")
        dims = {**op.dims, "frozen": 1.0, "apart": 1.0}
        return LayerBlock(((1.0, replace(op, launches=layers.batch * kernels, dims=dims)),))

    def _propose(self, layers: Layers, grid: Grid, width: int, anchors: int) -> LayerBlock:
        return join(_convs(layers, grid, width, 1), layers.conv(grid, width, 5 * anchors, 1))

    def _heads(self, layers: Layers, width: int, masked: float) -> LayerBlock:
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

    multiple: ClassVar[int] = 1
    """Pictures are padded to whole positions."""

    def block(self, layers: Layers, grid: Grid) -> LayerBlock:
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

    def _sifted(self, layers: Layers, positions: int) -> LayerBlock:
        """Scores of every class of every anchor, written in 32 bits for what looks for the largest and reads them."""
        width = self.anchors * self.classes
        return layers.pointwise(positions, width, 2.0 * 4.0 / layers.precision.bytes, "sift")

    def _loss(self, layers: Layers, positions: int) -> LayerBlock:
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

    multiple: ClassVar[int] = 1
    """Pictures are padded to whole positions."""

    def block(self, layers: Layers, grid: Grid) -> LayerBlock:
        """One pass over pictures of `grid` pixels."""
        body, levels = self.backbone.features(layers, grid, (1, 2, 1))
        (grid, w), parts = levels[-1], [body]
        heads = [(grid, w, 4)]
        for i, (out, middle) in enumerate(((512, 256), (512, 256), (256, 128), (256, 128), (256, 128))):
            after = shrunk(grid, 2) if i < 3 else tuple(max(1, side - 2) for side in grid)
            parts += [
                layers.conv_norm(grid, (w, middle), 1),
                layers.conv_norm(grid, (middle, out), 3, 2 if i < 3 else 1),
            ]
            grid, w = after, out
            heads.append((grid, w, 6 if i < 3 else 4))
        for place, entry, anchors in heads:
            parts.append(layers.conv(place, entry, anchors * (self.classes + 4)))
        return join(*parts)


@dataclass(frozen=True, kw_only=True)
class YoloRows:
    """The layers of a YOLO at full size, a text each, as the tables of ultralytics, cfg/models: "-1 3 C2f 256 add".

    The words: layers that are read (-1: the one before; 4,6: both, concatenated), repeats, module, filters at full
    width, then what the module takes. A module and its words:

    | module | takes | is |
    |---|---|---|
    | Conv | kernel, stride | convolution, batch norm, SiLU |
    | C2f | "add": inputs are added in its bottlenecks | split, bottlenecks one after the other, all joined |
    | C3k2 | its inner width as a share; "deep": bottlenecks in branches; "attended": attention after each | C2f with \
narrow bottlenecks |
    | C2fCIB | "large": a filter of 7 x 7 | C2f of depthwise convolutions |
    | A2C2f | areas that see themselves (0: no attention) | attention and feed-forward, twice each, or bottlenecks |
    | SCDown | kernel, stride | a matrix, then a depthwise convolution |
    | SPPF | - | three pools of 5 x 5 one after the other, all joined |
    | C2PSA | - | half of the width through attention and feed-forward |
    | Upsample | - | both sides doubled |
    | Detect | "light": classes by depthwise convolutions; "direct": sides of boxes as numbers | boxes and classes on \
every level that is read |
    """

    rows: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class YOLO:
    """YOLOv8 to YOLO26: a table of layers, scaled.

    `depth` scales repeats, `width` filters, of which a layer has at most `most` before; `deep`: all C3k2 are deep;
    `feed`: inner width of a feed-forward of A2C2f over its width (below 2: what comes out is scaled and added to what
    went in); `more`: values of a position beside its box and classes (points of a pose, weights of masks), `masks`:
    filters of a network of which masks are made.
    Source of modules and scaling: ultralytics, nn/tasks.py (parse_model), nn/modules.
    """

    graph: YoloRows
    depth: float
    width: float
    most: int = 1024
    deep: bool = False
    feed: float = 2.0
    more: int = 0
    masks: int = 0
    classes: int = 80

    multiple: ClassVar[int] = 32
    """Sides must be multiples of this."""

    def block(self, layers: Layers, grid: Grid) -> LayerBlock:
        """One pass over pictures of `grid` pixels. Raises `UsageError` for a module that is not known."""
        parts: list[LayerBlock] = []
        made: Levels = []
        for row in self.graph.rows:
            read, count, module, *words = row.split()
            seen = [made[int(i)] if made else (grid, 3) for i in read.split(",")]
            repeats = max(round(int(count) * self.depth), 1) if int(count) > 1 else 1
            if module == "Detect":
                parts.append(self._detect(layers, seen, words))
                continue
            place, entry = seen[0][0], sum(width for _, width in seen)
            if len(seen) > 1:
                parts.append(layers.pointwise(size_of(place), entry, 2.0, "concat"))
            out = self._filters(int(words[0])) if words else entry
            parts.append(self._module(layers, place, module, (entry, out), repeats, words[1:]))
            if module in ("Conv", "SCDown"):
                place = shrunk(place, int(words[2]))
            elif module == "Upsample":
                place = tuple(2 * side for side in place)
            made.append((place, out))
        return join(*parts)

    def _module(
        self, layers: Layers, grid: Grid, module: str, widths: tuple[int, int], depth: int, words: list[str]
    ) -> LayerBlock:
        """One layer of (inputs, outputs) on a grid."""
        entry, out = widths
        match module:
            case "Conv":
                return layers.conv_norm(grid, widths, int(words[0]), int(words[1]), act="silu")
            case "C2f":
                each = _bottleneck(layers, grid, out // 2, out // 2, "add" in words)
                return _split(layers, grid, (entry, out // 2, out), depth, each)
            case "C3k2":
                half = int(out * float(words[0]))
                deep = self.deep or "deep" in words
                each = _c3k(layers, grid, half) if deep else _bottleneck(layers, grid, half, half // 2)
                if "attended" in words:
                    each = _bottleneck(layers, grid, half, half // 2) + _psa(layers, grid, half)
                return _split(layers, grid, (entry, half, out), depth, each)
            case "C2fCIB":
                each = _compact(layers, grid, out // 2, "large" in words)
                return _split(layers, grid, (entry, out // 2, out), depth, each)
            case "A2C2f":
                return self._areas(layers, grid, widths, depth, int(words[0]))
            case "SCDown":
                first, second = (int(word) for word in words)
                down = layers.conv_norm(grid, (out, out), first, second, out, act="")
                return layers.conv_norm(grid, widths, 1, act="silu") + down
            case "SPPF":
                return join(
                    layers.conv_norm(grid, (entry, entry // 2), 1, act="silu"),
                    3 * layers.pointwise(size_of(grid), entry // 2, 2.0, "max_pool"),
                    layers.pointwise(size_of(grid), 2 * entry, 2.0, "concat"),
                    layers.conv_norm(grid, (2 * entry, out), 1, act="silu"),
                )
            case "C2PSA":  # with one block: PSA of YOLOv10
                return _attended(layers, grid, out, depth)
            case "Upsample":
                return layers.pointwise(4 * size_of(grid), entry, 1.25, "upsample")
        raise UsageError(f"'{module}' is no module of a YOLO", "see workload/media/detect.py: YoloRows")

    def _areas(self, layers: Layers, grid: Grid, widths: tuple[int, int], depth: int, areas: int) -> LayerBlock:
        """Blocks one after the other on half of the width, all of them joined; with heads of 32, where there are
        areas."""
        (entry, out), n = widths, size_of(grid)
        half = out // 2
        inner, added = int(self.feed * half), self.feed < 2.0
        attended = join(
            layers.conv_norm(grid, (half, 3 * half), 1, act=""),
            layers.attention(n / max(areas, 1), n / max(areas, 1), half // 32, 32, windows=max(areas, 1)),
            layers.conv_norm(grid, (half, half), 7, groups=half, act=""),
            layers.conv_norm(grid, (half, half), 1, act=""),
            2 * layers.residual(n, half),
            layers.conv_norm(grid, (half, inner), 1, act="silu"),
            layers.conv_norm(grid, (inner, half), 1, act=""),
            layers.residual(n, half),
        )
        both = layers.parameter(out) + layers.residual(n, out) if added and areas else LayerBlock()
        return join(
            layers.conv_norm(grid, (entry, half), 1, act="silu"),
            depth * (2 * attended if areas else _c3k(layers, grid, half)),
            layers.pointwise(n, (1 + depth) * half, 2.0, "concat"),
            layers.conv_norm(grid, ((1 + depth) * half, out), 1, act="silu"),
            both,
        )

    def _filters(self, full: int) -> int:
        return math.ceil(min(full, self.most) * self.width / 8) * 8

    def _detect(self, layers: Layers, levels: Levels, words: list[str]) -> LayerBlock:
        """Boxes as distributions over 16 distances to each side, or as the four distances; classes; a softmax and a
        sigmoid decode them."""
        first, light, sides = levels[0][1], "light" in words, 4 if "direct" in words else 64
        boxes, names = max(16, first // 4, sides), max(first, min(self.classes, 100))
        heads = [(boxes, sides)] + ([(max(first // 4, self.more), self.more)] if self.more else [])
        parts: list[LayerBlock] = [layers.parameter(16 if sides > 4 else 0)]
        for place, entry in levels:
            for inner, values in heads:
                parts += [
                    layers.conv_norm(place, (entry, inner), act="silu"),
                    layers.conv_norm(place, (inner, inner), act="silu"),
                    layers.conv(place, inner, values, 1),
                ]
            for inner in (entry, names):
                if light:
                    parts.append(layers.conv_norm(place, (inner, inner), groups=inner, act="silu"))
                parts.append(layers.conv_norm(place, (inner, names), 1 if light else 3, act="silu"))
            parts.append(layers.conv(place, names, self.classes, 1))
        seen = sum(size_of(place) for place, _ in levels)
        parts += [
            layers.pointwise(seen, sides + self.classes + self.more, 2.0, "concat"),
            layers.pointwise(seen, sides, 2.0, "softmax"),
            layers.pointwise(seen, self.classes, 2.0, "sigmoid"),
        ]
        return join(*parts, self._masks(layers, *levels[0]) if self.masks else LayerBlock())

    def _masks(self, layers: Layers, place: Grid, entry: int) -> LayerBlock:
        """32 masks of twice the sides, of which each object takes a sum."""
        w, twice = self._filters(self.masks), tuple(2 * side for side in place)
        return join(
            layers.conv_norm(place, (entry, w), act="silu"),
            layers.linear(size_of(place), w, 4 * w, False) + layers.parameter(w),  # kernel 2, stride 2
            layers.conv_norm(twice, (w, w), act="silu"),
            layers.conv_norm(twice, (w, self.more), 1, act="silu"),
        )


def _bottleneck(layers: Layers, grid: Grid, width: int, middle: int, add: bool = True) -> LayerBlock:
    """Two convolutions of 3 x 3 through `middle` channels; `add`: the input is added to what comes out."""
    both = join(
        layers.conv_norm(grid, (width, middle), act="silu"), layers.conv_norm(grid, (middle, width), act="silu")
    )
    return both + layers.residual(size_of(grid), width) if add else both


def _split(layers: Layers, grid: Grid, widths: tuple[int, int, int], depth: int, each: LayerBlock) -> LayerBlock:
    """(inputs, inner, outputs): two halves of the inner width, `depth` blocks on the second, all of them joined."""
    entry, half, out = widths
    return join(
        layers.conv_norm(grid, (entry, 2 * half), 1, act="silu"),
        depth * each,
        layers.pointwise(size_of(grid), (2 + depth) * half, 2.0, "concat"),
        layers.conv_norm(grid, ((2 + depth) * half, out), 1, act="silu"),
    )


def _c3k(layers: Layers, grid: Grid, width: int) -> LayerBlock:
    """Two bottlenecks on one of two halves, which are joined."""
    half = width // 2
    return join(
        2 * layers.conv_norm(grid, (width, half), 1, act="silu"),
        2 * _bottleneck(layers, grid, half, half),
        layers.pointwise(size_of(grid), width, 2.0, "concat"),
        layers.conv_norm(grid, (width, width), 1, act="silu"),
    )


def _compact(layers: Layers, grid: Grid, width: int, large: bool) -> LayerBlock:
    """A matrix to twice the width and one back, depthwise convolutions before, between and after."""
    twice = 2 * width
    middle = layers.conv_norm(grid, (twice, twice), groups=twice, act="silu")
    if large:
        middle += layers.conv_norm(grid, (twice, twice), 7, groups=twice, act="")
        middle += layers.residual(size_of(grid), twice)
    near = layers.conv_norm(grid, (width, width), groups=width, act="silu")
    return join(
        2 * near,
        layers.conv_norm(grid, (width, twice), 1, act="silu"),
        middle,
        layers.conv_norm(grid, (twice, width), 1, act="silu"),
        layers.residual(size_of(grid), width),
    )


def _psa(layers: Layers, grid: Grid, half: int) -> LayerBlock:
    """Attention (keys of 32, values of 64 a head) and a feed-forward."""
    n, heads = size_of(grid), max(half // 64, 1)
    keys = half // heads // 2
    return join(
        layers.conv_norm(grid, (half, 2 * heads * keys + half), 1, act=""),
        # scores of `keys` and sums of twice that: as one and a half times `keys` both ways
        layers.attention(n, n, heads, 3 * keys // 2),
        layers.conv_norm(grid, (half, half), groups=half, act=""),
        layers.conv_norm(grid, (half, half), 1, act=""),
        2 * layers.residual(n, half),
        layers.conv_norm(grid, (half, 2 * half), 1, act="silu"),
        layers.conv_norm(grid, (2 * half, half), 1, act=""),
        layers.residual(n, half),
    )


def _attended(layers: Layers, grid: Grid, width: int, depth: int) -> LayerBlock:
    """Half of the width through `depth` times attention and a feed-forward."""
    n = size_of(grid)
    return join(
        layers.conv_norm(grid, (width, width), 1, act="silu"),
        depth * _psa(layers, grid, width // 2),
        layers.pointwise(n, width, 2.0, "concat"),
        layers.conv_norm(grid, (width, width), 1, act="silu"),
    )
