"""Autoencoders between pictures or clips and latents: 2-D (Stable Diffusion, FLUX), 3-D and causal (Wan, HunyuanVideo,
CogVideoX, Mochi, LTX-2).

Sizes are those of the latent: (height, width) or (frames, height, width). A causal autoencoder makes 1 frame of the
first latent frame and as many as its temporal compression of each that follows. Implementations work through a long
clip in chunks of latent frames, or tile by tile; `peak` is that of one chunk.
Shapes: huggingface/diffusers, models/autoencoders/autoencoder_kl*.py.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

from chipwise.values import dataclass
from chipwise.workload.media.layers import Grid, LayerBlock, Layers, join, shrunk, size_of
from chipwise.workload.media.unet import resnet


def _attend(layers: Layers, size: int, width: int, *, windows: int = 1, heads: int = 1) -> LayerBlock:
    """Self-attention over all positions of each of `windows` windows, behind a norm."""
    return join(
        layers.norm(size, width, "group"),
        layers.linear(size, width, 3 * width, name="qkv", parts=3),
        layers.attention(size / windows, size / windows, heads, width // heads, windows=windows),
        layers.linear(size, width, width, name="out"),
        layers.residual(size, width),
    )


def _last(
    layers: Layers, grid: Grid, width: int, outputs: int, kernel: int | Grid = 3, kind: str = "group"
) -> LayerBlock:
    size = size_of(grid)
    return join(
        layers.norm(size, width, kind), layers.act(size, width, "silu"), layers.conv(grid, width, outputs, kernel)
    )


def _chunked(build: Callable[[Grid], LayerBlock], grid: Grid, chunk: int) -> LayerBlock:
    """The block of the whole clip with the peak of `chunk` latent frames (0: the clip is one chunk)."""
    whole = build(grid)
    if not chunk or grid[0] <= chunk:
        return whole
    return replace(whole, peak=build((chunk, *grid[1:])).peak)


def _tiled(build: Callable[[Grid], LayerBlock], grid: Grid, tile: Grid) -> LayerBlock:
    """The clip in tiles that overlap by a quarter along each axis, one after the other (no tile: in one piece)."""
    if not tile or all(side <= most for side, most in zip(grid, tile, strict=True)):
        return build(grid)
    cut = tuple(min(side, most) for side, most in zip(grid, tile, strict=True))
    count = size_of(
        tuple(-(-side // (3 * most // 4)) if side > most else 1 for side, most in zip(grid, tile, strict=True))
    )
    return build(cut).again(count)


def _later(frames: int, factor: int) -> int:
    """Frames after a causal expansion in time: the first stays one."""
    return factor * (frames - 1) + 1


@dataclass(frozen=True, kw_only=True)
class ImageVAE:
    """AutoencoderKL: levels of ResNet blocks, one attention with a single head at the bottom."""

    channels: tuple[int, ...] = (128, 256, 512, 512)
    latent: int = 4
    resnets: int = 2
    attention: bool = True
    quant: bool = True

    @property
    def spatial(self) -> int:
        """Pixels per latent position along a side."""
        return int(2 ** (len(self.channels) - 1))

    def decode(self, layers: Layers, grid: Grid) -> LayerBlock:
        """A latent of `grid` to a picture."""
        c = self.channels[-1]
        parts = [layers.conv(grid, self.latent, self.latent, 1)] if self.quant else []
        parts += [layers.conv(grid, self.latent, c), self._middle(layers, grid)]
        width = c
        for level in reversed(range(len(self.channels))):
            c = self.channels[level]
            parts += [resnet(layers, grid, width, c), self.resnets * resnet(layers, grid, c, c)]
            width = c
            if level:
                grid = tuple(2 * side for side in grid)
                parts += [layers.pointwise(size_of(grid), c, 1.25, "upsample"), layers.conv(grid, c, c)]
        return join(*parts, _last(layers, grid, width, 3))

    def encode(self, layers: Layers, grid: Grid) -> LayerBlock:
        """A picture of `grid` pixels to a latent."""
        width = self.channels[0]
        parts = [layers.conv(grid, 3, width)]
        for level, c in enumerate(self.channels):
            parts += [resnet(layers, grid, width, c), (self.resnets - 1) * resnet(layers, grid, c, c)]
            width = c
            if level < len(self.channels) - 1:
                parts.append(layers.conv(grid, c, c, 3, 2))
                grid = shrunk(grid, 2)
        parts += [self._middle(layers, grid), _last(layers, grid, width, 2 * self.latent)]
        return join(*parts, layers.conv(grid, 2 * self.latent, 2 * self.latent, 1) if self.quant else LayerBlock())

    def _middle(self, layers: Layers, grid: Grid) -> LayerBlock:
        c = self.channels[-1]
        side = resnet(layers, grid, c, c)
        return join(side, _attend(layers, size_of(grid), c) if self.attention else LayerBlock(), side)


@dataclass(frozen=True, kw_only=True)
class WanVAE:
    """Causal convolutions with RMS norms; frames are worked through one latent frame at a time, with the last inputs
    of each convolution kept. `patch`: pixels per side that are folded into channels (Wan 2.2's 5B: 2)."""

    width: int = 96
    decoder_width: int = 96
    latent: int = 16
    mult: tuple[int, ...] = (1, 2, 4, 4)
    resnets: int = 2
    time: tuple[bool, ...] = (False, True, True)
    patch: int = 1
    shortcuts: bool = False

    @property
    def spatial(self) -> int:
        """Pixels per latent position along a side."""
        return int(2 ** (len(self.mult) - 1)) * self.patch

    @property
    def temporal(self) -> int:
        """Frames per latent frame after the first."""
        return int(2 ** sum(self.time))

    def decode(self, layers: Layers, grid: Grid) -> LayerBlock:
        """A latent of (frames, height, width) to a clip."""
        return _chunked(lambda g: self._decode(layers, g), grid, 2)

    def encode(self, layers: Layers, grid: Grid) -> LayerBlock:
        """A clip of (frames, height, width) pixels to a latent."""
        return _chunked(lambda g: self._encode(layers, g), (grid[0], grid[1] // self.patch, grid[2] // self.patch), 5)

    def _decode(self, layers: Layers, grid: Grid) -> LayerBlock:
        widths = [self.decoder_width * m for m in (self.mult[-1], *reversed(self.mult))]
        parts = [layers.conv(grid, self.latent, self.latent, 1), layers.conv(grid, self.latent, widths[0])]
        parts.append(self._middle(layers, grid, widths[0]))
        later = tuple(reversed(self.time))
        for level, (c, out) in enumerate(itertools.pairwise(widths)):
            entry = c if self.shortcuts or not level else c // 2
            parts += [self._resnet(layers, grid, entry, out), self.resnets * self._resnet(layers, grid, out, out)]
            if level < len(self.mult) - 1:
                if later[level]:
                    parts.append(layers.conv(grid, out, 2 * out, (3, 1, 1)))
                    grid = (_later(grid[0], 2), *grid[1:])
                grid = (grid[0], 2 * grid[1], 2 * grid[2])
                narrow = out if self.shortcuts else out // 2
                parts += [
                    layers.pointwise(size_of(grid), out, 1.25, "upsample"),
                    layers.conv(grid, out, narrow, (1, 3, 3)),
                ]
        return join(*parts, _last(layers, grid, widths[-1], 3 * self.patch**2, 3, "rms"))

    def _encode(self, layers: Layers, grid: Grid) -> LayerBlock:
        widths = [self.width * m for m in (1, *self.mult)]
        parts = [layers.conv(grid, 3 * self.patch**2, widths[0])]
        for level, (c, out) in enumerate(itertools.pairwise(widths)):
            parts += [self._resnet(layers, grid, c, out), (self.resnets - 1) * self._resnet(layers, grid, out, out)]
            if level < len(self.mult) - 1:
                parts.append(layers.conv(grid, out, out, (1, 3, 3), (1, 2, 2)))
                grid = shrunk(grid, (1, 2, 2))
                if self.time[level]:
                    parts.append(layers.conv(grid, out, out, (3, 1, 1), (2, 1, 1)))
                    grid = (-(-grid[0] // 2), *grid[1:])
        out = 2 * self.latent
        parts += [self._middle(layers, grid, widths[-1]), _last(layers, grid, widths[-1], out, 3, "rms")]
        return join(*parts, layers.conv(grid, out, out, 1))

    def _resnet(self, layers: Layers, grid: Grid, inputs: int, outputs: int) -> LayerBlock:
        block = resnet(layers, grid, inputs, outputs)
        fewer = inputs + outputs  # scales without offsets
        less = fewer * layers.parameter(1).weight_bytes
        return replace(block, parameters=block.parameters - fewer, weight_bytes=block.weight_bytes - less)

    def _middle(self, layers: Layers, grid: Grid, c: int) -> LayerBlock:
        side = self._resnet(layers, grid, c, c)
        return join(side, _attend(layers, size_of(grid), c, windows=grid[0]), side)


@dataclass(frozen=True, kw_only=True)
class CausalVAE:
    """Causal 3-D convolutions with group norms: HunyuanVideo (`attention` over all positions at the bottom) and
    CogVideoX (`spatial_norm`: scales and offsets of each norm are convolved from the latent; convolutions after
    upsampling are per frame). `time`: which of the levels' expansions double frames too, from the latent on; `chunk`:
    latent frames worked through at a time; `tile`: latent (frames, height, width) of a tile, where clips are cut."""

    channels: tuple[int, ...] = (128, 256, 512, 512)
    latent: int = 16
    resnets: int = 2
    time: tuple[bool, ...] = (False, True, True)
    attention: bool = True
    quant: bool = True
    spatial_norm: bool = False
    chunk: int = 0
    tile: tuple[int, ...] = ()

    @property
    def spatial(self) -> int:
        """Pixels per latent position along a side."""
        return int(2 ** (len(self.channels) - 1))

    @property
    def temporal(self) -> int:
        """Frames per latent frame after the first."""
        return int(2 ** sum(self.time))

    def decode(self, layers: Layers, grid: Grid) -> LayerBlock:
        """A latent of (frames, height, width) to a clip."""
        return _tiled(lambda g: _chunked(lambda h: self._decode(layers, h), g, self.chunk), grid, self.tile)

    def encode(self, layers: Layers, grid: Grid) -> LayerBlock:
        """A clip of (frames, height, width) pixels to a latent."""
        pixels = tuple(
            n * most for n, most in zip((self.temporal, self.spatial, self.spatial), self.tile, strict=False)
        )
        chunk = self.chunk * self.temporal
        return _tiled(lambda g: _chunked(lambda h: self._encode(layers, h), g, chunk), grid, pixels)

    def _decode(self, layers: Layers, grid: Grid) -> LayerBlock:
        width, plane = self.channels[-1], (1, 3, 3) if self.spatial_norm else 3
        parts = [layers.conv(grid, self.latent, self.latent, 1)] if self.quant else []
        parts += [layers.conv(grid, self.latent, width), self._middle(layers, grid, self.spatial_norm)]
        for level, c in enumerate(reversed(self.channels)):
            parts.append(self._resnet(layers, grid, width, c, self.spatial_norm))
            parts.append(self.resnets * self._resnet(layers, grid, c, c, self.spatial_norm))
            width = c
            if level < len(self.channels) - 1:
                frames = _later(grid[0], 2) if self.time[level] else grid[0]
                grid = (frames, 2 * grid[1], 2 * grid[2])
                parts += [layers.pointwise(size_of(grid), c, 1.25, "upsample"), layers.conv(grid, c, c, plane)]
        norm = self._steered(layers, grid, width) if self.spatial_norm else LayerBlock()
        return join(*parts, norm, _last(layers, grid, width, 3))

    def _encode(self, layers: Layers, grid: Grid) -> LayerBlock:
        width, plane = self.channels[0], (1, 3, 3) if self.spatial_norm else 3
        parts = [layers.conv(grid, 3, width)]
        later = tuple(reversed(self.time))
        if self.spatial_norm:  # CogVideoX shortens time first
            later = self.time
        for level, c in enumerate(self.channels):
            parts += [self._resnet(layers, grid, width, c), (self.resnets - 1) * self._resnet(layers, grid, c, c)]
            width = c
            if level < len(self.channels) - 1:
                step = 2 if later[level] else 1
                stride = (1, 2, 2) if self.spatial_norm else (step, 2, 2)
                parts.append(layers.conv(grid, c, c, plane, stride))
                grid = shrunk(grid, (step, 2, 2))
        out = 2 * self.latent
        parts += [self._middle(layers, grid, False), _last(layers, grid, width, out)]
        return join(*parts, layers.conv(grid, out, out, 1) if self.quant else LayerBlock())

    def _resnet(self, layers: Layers, grid: Grid, inputs: int, outputs: int, steered: bool = False) -> LayerBlock:
        extra = [self._steered(layers, grid, w) for w in (inputs, outputs)] if steered else []
        return join(*extra, resnet(layers, grid, inputs, outputs))

    def _steered(self, layers: Layers, grid: Grid, width: int) -> LayerBlock:
        """Scale and offset of a norm, from the latent brought to this size."""
        return 2 * layers.conv(grid, self.latent, width, 1) + layers.modulate(size_of(grid), width)

    def _middle(self, layers: Layers, grid: Grid, steered: bool) -> LayerBlock:
        c = self.channels[-1]
        side = self._resnet(layers, grid, c, c, steered)
        return join(side, _attend(layers, size_of(grid), c) if self.attention else LayerBlock(), side)


@dataclass(frozen=True, kw_only=True)
class PackedVAE:
    """Levels of causal ResNet blocks of one width, between which a convolution packs neighbours in time and space into
    channels, or spreads them: LTX-2, HunyuanVideo 1.5.

    `encoder`, `decoder`: widths of levels in the order they are passed, `encoder_resnets`, `decoder_resnets` their
    blocks, `packs`, `spreads` (frames, height, width) between them. `moments`: values of a latent position that are
    encoded; `scaled`: norms have weights; `attention` over all positions of the level at the latent; `tile`: latent
    (frames, height, width) of a tile.
    """

    encoder: tuple[int, ...]
    encoder_resnets: tuple[int, ...]
    packs: tuple[tuple[int, int, int], ...]
    decoder: tuple[int, ...]
    decoder_resnets: tuple[int, ...]
    spreads: tuple[tuple[int, int, int], ...]
    latent: int
    moments: int
    patch: int = 1
    scaled: bool = False
    attention: bool = False
    tile: tuple[int, ...] = ()

    @property
    def spatial(self) -> int:
        """Pixels per latent position along a side."""
        return math.prod(step[1] for step in self.packs) * self.patch

    @property
    def temporal(self) -> int:
        """Frames per latent frame after the first."""
        return math.prod(step[0] for step in self.packs)

    def decode(self, layers: Layers, grid: Grid) -> LayerBlock:
        """A latent of (frames, height, width) to a clip."""
        return _tiled(lambda g: self._decode(layers, g), grid, self.tile)

    def encode(self, layers: Layers, grid: Grid) -> LayerBlock:
        """A clip of (frames, height, width) pixels to a latent."""
        steps = (self.temporal, self.spatial, self.spatial)
        pixels = tuple(n * most for n, most in zip(steps, self.tile, strict=False))
        return _tiled(lambda g: self._encode(layers, g), grid, pixels)

    def _decode(self, layers: Layers, grid: Grid) -> LayerBlock:
        parts = [layers.conv(grid, self.latent, self.decoder[0]), self._middle(layers, grid, self.decoder[0])]
        for level, (c, count) in enumerate(zip(self.decoder, self.decoder_resnets, strict=True)):
            parts.append(count * self._resnet(layers, grid, c))
            if level < len(self.spreads):
                step = self.spreads[level]
                parts.append(layers.conv(grid, c, self.decoder[level + 1] * size_of(step)))
                grid = (_later(grid[0], step[0]), step[1] * grid[1], step[2] * grid[2])
        return join(*parts, self._end(layers, grid, self.decoder[-1], 3 * self.patch**2))

    def _encode(self, layers: Layers, grid: Grid) -> LayerBlock:
        grid = (grid[0], grid[1] // self.patch, grid[2] // self.patch)
        parts = [layers.conv(grid, 3 * self.patch**2, self.encoder[0])]
        for level, (c, count) in enumerate(zip(self.encoder, self.encoder_resnets, strict=True)):
            parts.append(count * self._resnet(layers, grid, c))
            if level < len(self.packs):
                step = self.packs[level]
                parts.append(layers.conv(grid, c, self.encoder[level + 1] // size_of(step)))
                grid = shrunk(grid, step)
        c = self.encoder[-1]
        return join(*parts, self._middle(layers, grid, c), self._end(layers, grid, c, self.moments))

    def _norm(self, layers: Layers, grid: Grid, c: int) -> LayerBlock:
        return layers.norm(size_of(grid), c, "rms", affine=self.scaled) + layers.act(size_of(grid), c, "silu")

    def _end(self, layers: Layers, grid: Grid, c: int, outputs: int) -> LayerBlock:
        return self._norm(layers, grid, c) + layers.conv(grid, c, outputs)

    def _resnet(self, layers: Layers, grid: Grid, c: int) -> LayerBlock:
        half = self._norm(layers, grid, c) + layers.conv(grid, c, c)
        return (2 * half).beside(layers.bytes(size_of(grid), c)) + layers.residual(size_of(grid), c)

    def _middle(self, layers: Layers, grid: Grid, c: int) -> LayerBlock:
        return _attend(layers, size_of(grid), c) if self.attention else LayerBlock()


@dataclass(frozen=True, kw_only=True)
class MochiVAE:
    """The decoder of Mochi: no convolution for upsampling, a matrix spreads channels over time and space instead."""

    channels: tuple[int, ...] = (128, 256, 512, 768)
    latent: int = 12
    resnets: tuple[int, ...] = (3, 3, 4, 6, 3)
    time: tuple[int, ...] = (1, 2, 3)

    @property
    def spatial(self) -> int:
        """Pixels per latent position along a side."""
        return int(2 ** (len(self.channels) - 1))

    @property
    def temporal(self) -> int:
        """Frames per latent frame after the first."""
        return size_of(self.time)

    def decode(self, layers: Layers, grid: Grid) -> LayerBlock:
        """A latent of (frames, height, width) to a clip."""
        c = self.channels[-1]
        parts = [layers.conv(grid, self.latent, c, 1), self.resnets[-1] * resnet(layers, grid, c, c)]
        for step, level in enumerate(reversed(range(len(self.channels) - 1))):
            out, time = self.channels[level], self.time[len(self.time) - 1 - step]
            parts.append(self.resnets[level + 1] * resnet(layers, grid, c, c))
            parts.append(layers.linear(size_of(grid), c, out * time * 4))
            grid, c = (_later(grid[0], time), 2 * grid[1], 2 * grid[2]), out
            parts.append(layers.pointwise(size_of(grid), c, 2.0, "spread"))
        parts.append(self.resnets[0] * resnet(layers, grid, c, c))
        return join(*parts, layers.act(size_of(grid), c, "silu"), layers.linear(size_of(grid), c, 3))
