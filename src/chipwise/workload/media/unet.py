"""Convolutional denoisers: U-Nets with attention (Stable Diffusion 1, 2, XL) and their ControlNets.

Shapes: huggingface/diffusers, models/unets/unet_2d_condition.py, unet_2d_blocks.py, transformers/transformer_2d.py,
controlnets/controlnet.py.
"""

from __future__ import annotations

from chipwise.values import dataclass
from chipwise.workload.media.layers import Grid, LayerBlock, Layers, join, shrunk, size_of


def resnet(layers: Layers, grid: Grid, inputs: int, outputs: int, time: int = 0, kernel: int | Grid = 3) -> LayerBlock:
    """Norm, activation, convolution, twice; `time` is the width of an embedding added in between (0: none)."""
    size = size_of(grid)
    middle = (
        join(layers.linear(1, time, outputs, name="time"), layers.residual(size, outputs)) if time else LayerBlock()
    )
    short = layers.conv(grid, inputs, outputs, 1) if inputs != outputs else LayerBlock()
    return join(
        layers.norm(size, inputs, "group"),
        join(
            layers.act(size, inputs, "silu"),
            layers.conv(grid, inputs, outputs, kernel),
            middle,
            layers.norm(size, outputs, "group"),
            layers.act(size, outputs, "silu"),
            layers.conv(grid, outputs, outputs, kernel),
        ).beside(layers.bytes(size, inputs)),
        short.beside(layers.bytes(size, outputs)).branch(layers.bytes(size, inputs)),
        layers.residual(size, outputs),
    )


@dataclass(frozen=True, kw_only=True)
class UNet:
    """`depths`: transformer blocks at each level, 0 where a level has none; `heads` at each level; `added`: width of
    pooled text and sizes that are embedded beside the time step (0: none)."""

    channels: tuple[int, ...]
    depths: tuple[int, ...]
    heads: tuple[int, ...]
    text_width: int
    middle_depth: int = 1
    resnets: int = 2
    inputs: int = 4
    outputs: int = 4
    added: int = 0

    @property
    def multiple(self) -> int:
        """The latent's height and width must be multiples of this."""
        return int(2 ** (len(self.channels) - 1))

    def block(self, layers: Layers, grid: Grid, text: int) -> LayerBlock:
        """One pass over a latent of `grid` under `text` tokens."""
        down, skips, inner = self._down(layers, grid, text)
        parts = [self._time(layers), down]
        width, held = self.channels[-1], sum(layers.bytes(size, c) for size, c in skips)
        parts.append(self._middle(layers, inner, text).beside(held))
        for level in reversed(range(len(self.channels))):
            c = self.channels[level]
            for _ in range(self.resnets + 1):
                size, skip = skips.pop()
                held = sum(layers.bytes(s, w) for s, w in skips)
                joined = layers.pointwise(size, width + skip, 2.0, "concat")
                up = resnet(layers, inner, width + skip, c, 4 * self.channels[0])
                parts.append(join(joined, up, self._transformer(layers, inner, level, text)).beside(held))
                width = c
            if level:
                inner = tuple(2 * side for side in inner)
                enlarged = layers.pointwise(size_of(inner), c, 1.25, "upsample")
                parts.append(join(enlarged, layers.conv(inner, c, c)).beside(held))
        size, c = size_of(grid), self.channels[0]
        last = layers.conv(grid, c, self.outputs)
        parts.append(join(layers.norm(size, c, "group"), layers.act(size, c, "silu"), last))
        return join(*parts)

    def _time(self, layers: Layers) -> LayerBlock:
        first, wide = self.channels[0], 4 * self.channels[0]
        time = layers.linear(1, first, wide, name="time") + layers.linear(1, wide, wide, name="time")
        if self.added:
            time += layers.linear(1, self.added, wide, name="time") + layers.linear(1, wide, wide, name="time")
        return time

    def _down(self, layers: Layers, grid: Grid, text: int) -> tuple[LayerBlock, list[tuple[int, int]], Grid]:
        """The way down, the tensors (positions, width) kept for the way up, and the grid at the bottom."""
        c = self.channels[0]
        parts, skips, width = [layers.conv(grid, self.inputs, c)], [(size_of(grid), c)], c
        for level, c in enumerate(self.channels):
            for _ in range(self.resnets):
                held = sum(layers.bytes(size, w) for size, w in skips[:-1])
                step = resnet(layers, grid, width, c, 4 * self.channels[0])
                parts.append(join(step, self._transformer(layers, grid, level, text)).beside(held))
                width = c
                skips.append((size_of(grid), c))
            if level < len(self.channels) - 1:
                parts.append(layers.conv(grid, c, c, 3, 2))
                grid = shrunk(grid, 2)
                skips.append((size_of(grid), c))
        return join(*parts), skips, grid

    def _middle(self, layers: Layers, grid: Grid, text: int) -> LayerBlock:
        c, time = self.channels[-1], 4 * self.channels[0]
        side = resnet(layers, grid, c, c, time)
        return join(side, self._attend(layers, grid, c, self.heads[-1], text, self.middle_depth), side)

    def _transformer(self, layers: Layers, grid: Grid, level: int, text: int) -> LayerBlock:
        depth = self.depths[level]
        return (
            self._attend(layers, grid, self.channels[level], self.heads[level], text, depth) if depth else LayerBlock()
        )

    def _attend(self, layers: Layers, grid: Grid, width: int, heads: int, text: int, depth: int) -> LayerBlock:
        """A projection in, `depth` blocks of self-attention, attention to text and a gated feed-forward, and out."""
        size = size_of(grid)
        held = layers.bytes(size, width)
        each = join(
            layers.norm(size, width),
            layers.linear(size, width, 3 * width, False, "qkv", 3),
            layers.attention(size, size, heads, width // heads),
            layers.linear(size, width, width, name="out"),
            layers.residual(size, width),
            layers.norm(size, width),
            layers.linear(size, width, width, False, "q"),
            layers.linear(text, self.text_width, 2 * width, False, "kv", 2),
            layers.attention(size, text, heads, width // heads),
            layers.linear(size, width, width, name="out"),
            layers.residual(size, width),
            layers.norm(size, width),
            layers.linear(size, width, 8 * width),
            layers.gate(size, 4 * width, "geglu"),
            layers.linear(size, 4 * width, width),
            layers.residual(size, width),
        ).beside(held)
        return join(
            layers.norm(size, width, "group"),
            layers.linear(size, width, width, name="in"),
            (depth * each).beside(held),
            layers.linear(size, width, width, name="out"),
            layers.residual(size, width),
        )


@dataclass(frozen=True, kw_only=True)
class ControlNet:
    """The way down and the middle of a U-Net, an encoder of the picture that steers, and a projection of every tensor
    that is handed over. `picture`: widths of the encoder, which halves the picture three times."""

    unet: UNet
    picture: tuple[int, ...] = (16, 32, 96, 256)

    @property
    def multiple(self) -> int:
        """As of its U-Net."""
        return self.unet.multiple

    def block(self, layers: Layers, grid: Grid, text: int) -> LayerBlock:
        """One pass over a latent of `grid` under `text` tokens; the picture has 8 times its height and width."""
        down, skips, inner = self.unet._down(layers, grid, text)
        parts = [self.unet._time(layers), down, self.unet._middle(layers, inner, text)]
        wide = tuple(8 * side for side in grid)
        width = self.picture[0]
        parts.append(layers.conv(wide, 3, width))
        for following in self.picture[1:]:
            parts += [layers.conv(wide, width, width), layers.conv(wide, width, following, 3, 2)]
            wide, width = shrunk(wide, 2), following
        parts.append(layers.conv(grid, width, self.unet.channels[0]))
        last = (size_of(inner), self.unet.channels[-1])
        parts += [layers.linear(size, c, c, name="zero") for size, c in [*skips, last]]
        return join(*parts)
