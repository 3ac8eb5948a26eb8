"""How numbers are stored: bits per element, and the scales that block formats carry beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from chipwise.catalog.parsed import names
from chipwise.errors import UnknownNameError, check_known
from chipwise.units import Real
from chipwise.values import dataclass


@dataclass(frozen=True, slots=True)
class Format:
    """A storage format of weights, activations or caches.

    `bits` per element; one scale of `scale_bits` per block of `block_rows` x `block_cols` elements of a
    matrix [rows, cols], partial blocks counting whole (0 = the whole dimension). `compute` is the data type
    that the matrix unit multiplies in when activations have this format too. `name` is the name by which
    runtimes tell formats apart: formats that differ only in the size of their groups share it.
    """

    name: str
    bits: float
    compute: str
    scale_bits: float = 0.0
    block_rows: int = 1
    block_cols: int = 1

    def scales(self, rows: Real, cols: Real) -> Real:
        """Number of scale entries of one [rows, cols] matrix."""
        if not self.scale_bits:
            return 0.0
        down: Real = np.ceil(rows / self.block_rows) if self.block_rows else 1.0
        across: Real = np.ceil(cols / self.block_cols) if self.block_cols else 1.0
        return down * across

    def bytes(self, rows: Real, cols: Real) -> Real:
        """Stored bytes of one [rows, cols] matrix, scales included."""
        return rows * cols * (self.bits / 8.0) + self.scales(rows, cols) * (self.scale_bits / 8.0)

    @property
    def mean_bits(self) -> float:
        """Bits per element of a large matrix, scales included."""
        block = self.block_rows * self.block_cols
        return self.bits + (self.scale_bits / block if block else 0.0)


SAID = names("workload/data/formats.toml")
"""What is said of formats and their names, by table."""

GGML_BITS: Mapping[str, float] = SAID["ggml_bits"]
"""Bits per weight of ggml's block types, scales included."""

FORMATS: dict[str, Format] = {name: Format(name, *row) for name, row in SAID["formats"].items()}
"""All formats by name."""


def get_format(name: str) -> Format:
    """The format of that name. Raises `UnknownNameError`."""
    check_known("number format", (name,), FORMATS)
    return FORMATS[name]


CACHES: Mapping[str, Format] = {
    name: Format(name, GGML_BITS[name], "fp16") for name in ("q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")
}
"""Blocks of ggml that a cache may be kept in, scales included (llama.cpp, --cache-type-k and --cache-type-v)."""


def get_cache(name: str) -> Format:
    """The format of that name that a cache is kept in. Raises `UnknownNameError`."""
    if name not in CACHES and name not in FORMATS:
        known = (*FORMATS, *CACHES)
        raise UnknownNameError("number format of a cache", name, known, f"one of {', '.join(known)}")
    return CACHES[name] if name in CACHES else FORMATS[name]


def grouped(name: str, bits: int, group: int, *, zero_point: bool) -> Format:
    """Integers of `bits` in groups of `group` inputs (0: a whole row), each with a 16-bit scale and, with
    `zero_point`, an offset of `bits`. Ignores GPTQ's 32-bit group index per input: under 0.3 % of a matrix.
    """
    return replace(get_format(name), bits=bits, scale_bits=16 + (bits if zero_point else 0), block_cols=group)


def mixed(name: str, bits: float) -> Format:
    """A mean over tensors of several formats: `bits` per element, scales included, multiplied in 16 bit."""
    return Format(name, bits, "fp16")


def unscaled(stored: Format) -> Format:
    """The same for a cache: a scale of the whole matrix is one number per layer, not one per token."""
    return stored if stored.block_cols else replace(stored, scale_bits=0.0)
