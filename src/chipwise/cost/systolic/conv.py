"""A convolution as one matrix product (im2col): every output pixel is a row, every filter a column."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from chipwise.units import Real


class Gemm(NamedTuple):
    """Sizes of C[m, n] = A[m, k] x W[k, n]."""

    m: Real
    n: Real
    k: Real


def im2col(
    ifmap_h: Real,
    ifmap_w: Real,
    filter_h: Real,
    filter_w: Real,
    channels: Real,
    num_filters: Real,
    stride_h: Real = 1.0,
    stride_w: Real = 1.0,
    *,
    pad_h: Real = 0.0,
    pad_w: Real = 0.0,
    images: Real = 1.0,
    partial_windows: Literal["drop", "keep"] = "drop",
) -> Gemm:
    """m = images x out_h x out_w, n = filters, k = filter_h x filter_w x channels.

    out = floor((size + 2 pad - filter) / stride) + 1, as frameworks do. SCALE-Sim rounds up instead
    (`partial_windows="keep"`): a last window that hangs over the edge counts as a pixel.

    `pad_h` and `pad_w` are added on both sides. A grouped convolution is `groups` such products with
    channels / groups and filters / groups each. The copies that im2col makes are not counted: arrays
    gather the windows while reading.
    """
    rounded = np.floor if partial_windows == "drop" else np.ceil
    out_h = rounded((ifmap_h + 2.0 * pad_h - filter_h) / stride_h) + 1.0
    out_w = rounded((ifmap_w + 2.0 * pad_w - filter_w) / stride_w) + 1.0
    return Gemm(images * out_h * out_w, 1.0 * num_filters, filter_h * filter_w * channels)
