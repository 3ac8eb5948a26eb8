"""A network of which only totals are known: parameters, multiply-adds, values that are written out."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar, Literal

from chipwise.values import dataclass
from chipwise.workload.media.layers import Grid, LayerBlock, Layers, join, size_of
from chipwise.workload.op import convolution, gemm

COUNT = 112.0
"""products: of a network of which nothing else is known. Source: the median of the 127 networks of pictures that are
built in, 50 of a ViT to 400 of a detector; values written follow it within 1.4 times, in the median."""


@dataclass(frozen=True, kw_only=True)
class Sized:
    """As equal layers, each a square product followed by a norm and an activation.

    `params_m` and `gmacs` as published for pictures of side `native`; `macts_m`: millions of values that products
    write (0: those of as many layers as networks usually have). With L layers of m rows and n features both ways:
    L n^2 = parameters, L m n^2 = multiply-adds, L m n = values. So m = multiply-adds / parameters, L = `products`, or
    where nobody counted them values^2 / (m multiply-adds). Multiply-adds and values grow with the positions of a
    picture, with seconds or tokens where `native` is a number of those; parameters do not.
    """

    params_m: float
    gmacs: float
    macts_m: float = 0.0
    products: int = 0
    style: Literal["conv", "transformer"] = "conv"
    native: int = 224

    multiple: ClassVar[int] = 1
    """Any side is taken."""

    def block(self, layers: Layers, grid: Grid | float) -> LayerBlock:
        """One pass over pictures of `grid` pixels, or over so many seconds or tokens."""
        scale = size_of(grid) / self.native ** len(grid) if isinstance(grid, tuple) else grid / self.native
        params, macs = 1e6 * self.params_m, 1e9 * self.gmacs
        values = 1e6 * self.macts_m or macs * math.sqrt(COUNT / params)
        m = macs / params
        count = self.products or min(max(round(values**2 / (m * macs)), 4), 400)
        n = math.sqrt(params / count)
        p, b, conv = layers.precision, layers.batch, self.style == "conv"
        rows, live = m * scale, values / count * scale
        product = (
            convolution(b, n, n, live / n, rows, 1.0, p.plain, p.plain)
            if conv
            else gemm(b * rows, n, n, p.weight, p.activation)
        )
        moved = layers.bytes(live, 2.0)
        product = replace(product, activation_bytes=moved)
        norm = layers.norm(live, 1, "batch" if conv else "layer", affine=False)
        each = join(
            LayerBlock(((1.0, product),), peak=moved, kept=moved / 2.0),
            norm,
            layers.act(live, 1, "relu" if conv else "gelu"),
        )
        total = each.again(count)
        stored = layers.parameter(round(params))
        return total + stored
