"""What is believed about kernels before a row is seen, and along which lines numbers are shared.

Labels: chip, vendor, generation; dtype (of the product: fp32, b16, fp8, fp8_block, nvfp4, ...), cache (of the
KV cache), runtime (vllm, sglang, trtllm, eager, ...), library (the kernel family a runtime calls), launch
(how it was timed: graph, eager, profiler, tuner), heads (mha or gqa), kind and fabric (of collectives).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from chipwise.calibrate.effects import EffectLevel, Quantity


def _level(*attributes: str, spread: float, **factors: float) -> EffectLevel:
    return EffectLevel(attributes, spread, {key: float(np.log(f)) for key, f in factors.items()})


_SHARE = "share of peak"
_RATE = "B per clock and unit"
_SOFT = Quantity(3.0, 0.3, "exponent", (), 1.0, 20.0)
_WAVE = Quantity(0.5, 0.3, "0..1", (), 0.0, 1.0)

# Energy of a 16-bit operation on a 4 nm chip of 2022; older processes and wider types take more. Only chips
# with a low power limit feel it (T4, L4). The mid comes from H100 at 700 W, factors from process scaling.
_ENERGY = Quantity(
    0.8e-12,
    0.15,
    "J per operation",
    (
        _level("generation", spread=0.2, volta=2.2, turing=2.2, ampere=1.4, ada=1.0, hopper=0.95,
               blackwell=0.6, blackwell_ultra=0.6, cdna1=1.6, cdna2=1.5),
        _level("dtype", spread=0.2, fp32=10.0, fp8=0.55, fp8_block=0.55, int8=0.45, sq=0.45, nvfp4=0.3,
               mxfp4=0.3),
    ),
)  # fmt: skip

# Intel's stack cannot replay a graph: the host launches each call while the one before still runs.
_AHEAD = Quantity(1e-3, 0.1, "share", (_level("vendor", spread=0.3, intel=700.0),), 0.0, 1.0)

GEMM: Mapping[str, Quantity] = {
    "compute_share": Quantity(
        0.75,
        0.2,
        _SHARE,
        (
            # ROCm libraries reach less of a higher peak
            _level("vendor", spread=0.2, amd=0.75),
            _level("dtype", spread=0.3),
            # what a vendor's libraries reach with a type carries over to its next generation; 16-bit products on MI300X
            # reach about 620 of 1,307 TFLOP/s (SemiAnalysis, MI300X vs H100 vs H200, 2024-12, as remembered)
            _level("vendor", "dtype", spread=0.4, **{"amd+b16": 0.78}),
            _level("generation", "dtype", spread=0.1),
            _level("runtime", "dtype", spread=0.15),
            _level("chip", "dtype", spread=0.1),
        ),
        0.01,
        1.0,
    ),
    "memory_share": Quantity(
        0.8,
        0.1,
        "share of bandwidth",
        (
            _level("generation", spread=0.07),
            _level("runtime", "dtype", spread=0.07),
            _level("chip", spread=0.05),
        ),
        0.05,
        1.0,
    ),
    "load_bytes_per_clock": Quantity(40.0, 0.5, _RATE, (_level("generation", spread=0.3),), 1.0, 256.0),
    "prologue": Quantity(200.0, 0.5, "elements of k", (_level("generation", "dtype", spread=0.3),)),
    "start_s": Quantity(
        2e-6, 0.4, "s", (_level("launch", spread=0.7), _level("runtime", "dtype", spread=0.4))
    ),
    "joule_per_flop": _ENERGY,
    "throttle": Quantity(0.1, 0.5, "share", (), 0.0, 1.0),
    "quantisation": _WAVE,
    "cache_share": Quantity(0.6, 0.3, "share of cache"),
    "softness": Quantity(3.0, 0.2, "exponent", (_level("generation", spread=0.15),), 1.5, 20.0),
    "ahead": _AHEAD,
    "quantise_start_s": Quantity(3e-6, 0.5, "s", (_level("runtime", "dtype", spread=0.5),)),
    "quantise_row_unit_s": Quantity(5e-8, 0.7, "s of a unit", (_level("runtime", "dtype", spread=1.0),)),
    "quantise_memory_share": Quantity(
        0.5, 0.3, "share of bandwidth", (_level("runtime", "dtype", spread=0.4),), 0.05, 1.0
    ),
}

PROMPT: Mapping[str, Quantity] = {
    "compute_share": Quantity(
        0.6,
        0.2,
        _SHARE,
        (
            _level("generation", "dtype", spread=0.3),
            _level("library", "dtype", "cache", spread=0.3),
            _level("library", "generation", spread=0.2),
            _level("chip", spread=0.1),
            _level("library", "head_dim", spread=0.2),
            # libraries ship a kernel of its own for each type and head dimension of a generation, or fall back
            _level("library", "generation", "dtype", "cache", spread=0.2),
            _level("library", "generation", "dtype", "head_dim", spread=0.3),
        ),
        0.01,
        1.0,
    ),
    "exponential_share": Quantity(
        0.7, 0.4, "ratio", (_level("generation", spread=0.3, blackwell_ultra=0.6),), 0.05, 20.0
    ),
    "edge_blocks": Quantity(1.0, 0.5, "32 keys", (_level("library", spread=0.5),)),
    "tile_s": Quantity(
        1e-6,
        0.5,
        "s of a unit",
        (_level("library", spread=0.5), _level("library", "generation", spread=0.4)),
    ),
    "tail": Quantity(0.6, 0.15, "0..1", (), 0.0, 1.0),
    "memory_share": Quantity(0.85, 0.03, "share of bandwidth", (), 0.05, 1.0),
    "passes": Quantity(
        0.5,
        0.7,
        "ratio",
        (
            _level("runtime", "library", "dtype", "cache", spread=0.7),
            _level("library", "generation", spread=0.5),
        ),
    ),
    "start_s": Quantity(
        8e-6,
        0.5,
        "s",
        (_level("runtime", "library", "dtype", "cache", spread=0.5), _level("generation", spread=0.2)),
    ),
    "softness": _SOFT,
}

DECODE: Mapping[str, Quantity] = {
    "memory_share": Quantity(
        0.85,
        0.05,
        "share of bandwidth",
        (
            _level("library", "cache", spread=0.1),
            _level("library", "generation", "cache", spread=0.1),
            _level("chip", spread=0.15),
        ),
        0.05,
        1.0,
    ),
    "compute_share": Quantity(
        0.5, 0.5, _SHARE, (_level("generation", spread=0.3), _level("library", spread=0.3)), 0.01, 1.0
    ),
    "load_bytes_per_clock": Quantity(
        30.0,
        0.5,
        _RATE,
        (
            _level("generation", spread=0.3),
            _level("library", "cache", spread=0.3),
            _level("library", "generation", "cache", spread=0.3),
            _level("library", "head_dim", spread=0.3),
        ),
        0.5,
        256.0,
    ),
    "slice": Quantity(
        256.0,
        0.5,
        "tokens",
        (_level("library", spread=0.7), _level("library", "generation", spread=0.4)),
        16.0,
        1e5,
    ),
    "occupancy": Quantity(
        1.0,
        0.3,
        "blocks per unit",
        (
            _level("library", spread=0.5),
            _level("library", "generation", "heads", spread=2.0),
        ),
        1e-4,
        8.0,
    ),
    "block_s": Quantity(
        1e-6,
        0.5,
        "s of a unit",
        (
            _level("library", spread=0.5),
            _level("library", "generation", "heads", spread=0.4),
            _level("library", "generation", "head_dim", spread=0.3),
        ),
    ),
    "quantisation": Quantity(0.5, 0.3, "0..1", (_level("library", "generation", spread=0.5),), 0.0, 1.0),
    "cache_full": Quantity(0.6, 0.3, "share of cache", (), 0.0, 1.0),
    "cache_empty": Quantity(1.5, 0.3, "share of cache", (_level("generation", spread=0.3),), 1.01, 4.0),
    "passes": Quantity(0.5, 0.7, "ratio", (_level("runtime", "library", "cache", spread=0.5),)),
    "start_s": Quantity(
        6e-6,
        0.5,
        "s",
        (
            _level("runtime", "library", "cache", spread=0.5),
            _level("library", "generation", spread=0.3),
        ),
    ),
    "softness": _SOFT,
    "ahead": _AHEAD,
}

EXPERTS: Mapping[str, Quantity] = {
    "compute_share": Quantity(
        0.6,
        0.2,
        _SHARE,
        (
            _level("dtype", spread=0.3),
            # what a chip makes of a type is its peak; the rest is a library's own kernel for that chip and type
            _level("library", "dtype", spread=0.3),
            _level("library", "generation", spread=0.2),
            _level("library", "generation", "dtype", spread=0.2),
        ),
        0.01,
        1.0,
    ),
    "memory_share": Quantity(
        0.75,
        0.1,
        "share of bandwidth",
        (
            _level("library", "generation", "dtype", spread=0.15),
            _level("chip", spread=0.07),
        ),
        0.05,
        1.0,
    ),
    "load_bytes_per_clock": Quantity(
        40.0,
        0.5,
        _RATE,
        (_level("generation", spread=0.4), _level("library", "dtype", spread=0.3)),
        1.0,
        256.0,
    ),
    "prologue": Quantity(300.0, 0.5, "elements of k", (_level("library", "dtype", spread=0.4),)),
    "partial": Quantity(0.5, 0.3, "tiles per expert", (_level("library", spread=0.3),)),
    "quantisation": _WAVE,
    "row_passes": Quantity(
        3.0,
        0.5,
        "ratio",
        (_level("library", "dtype", spread=0.5), _level("runtime", "library", spread=0.4)),
    ),
    "token_passes": Quantity(1.0, 0.7, "ratio", (_level("library", "dtype", spread=0.5),)),
    "expert_s": Quantity(1e-8, 1.0, "s"),
    "start_s": Quantity(
        12e-6,
        0.5,
        "s",
        (_level("library", "dtype", spread=0.5), _level("runtime", "library", spread=0.4)),
    ),
    "softness": _SOFT,
    "crowding": Quantity(0.7, 0.5, "ratio", (), 0.0, 3.0),
}

POINTWISE: Mapping[str, Quantity] = {
    "memory_share": Quantity(
        0.8,
        0.1,
        "share of bandwidth",
        (_level("generation", spread=0.1), _level("chip", spread=0.1)),
        0.05,
        1.0,
    ),
    "passes": Quantity(1.0, 0.05, "ratio", (_level("runtime", "library", spread=0.4),), 1.0, 50.0),
    "load_bytes_per_clock": Quantity(20.0, 0.4, _RATE, (_level("generation", spread=0.3),), 1.0, 256.0),
    "cache_empty": Quantity(1.2, 0.3, "share of cache", (), 0.4, 4.0),
    "start_s": Quantity(
        3e-6,
        0.5,
        "s",
        (
            _level("launch", spread=0.7),
            _level("runtime", "library", spread=0.5),
            _level("chip", spread=0.3),
        ),
    ),
    "softness": _SOFT,
}

COLLECTIVE: Mapping[str, Quantity] = {
    "link_share": Quantity(
        0.75,
        0.2,
        "share of link, many ranks",
        (
            _level("fabric", spread=0.5),
            _level("library", spread=0.2),
            _level("generation", "fabric", spread=0.2),
            _level("routed", spread=0.2),
        ),
        0.01,
        1.0,
    ),
    "pair_share": Quantity(
        0.6,
        0.2,
        "share of link, two ranks",
        (_level("kind", "fabric", spread=0.2), _level("library", spread=0.2)),
        0.01,
        1.0,
    ),
    "base_s": Quantity(
        5e-6,
        0.5,
        "s",
        (
            _level("fabric", spread=0.5),
            _level("library", spread=0.5),
            _level("generation", "fabric", spread=0.2),
            _level("routed", spread=0.2),
        ),
    ),
    "step_s": Quantity(
        1e-6,
        0.5,
        "s",
        (
            _level("fabric", spread=0.5),
            _level("library", spread=0.3),
            _level("generation", "fabric", spread=0.3),
            _level("kind", spread=0.3),
        ),
    ),
    "direct_s": Quantity(
        4e-6,
        0.5,
        "s",
        (
            _level("library", spread=1.0),
            _level("generation", spread=0.3),
            _level("library", "chip", spread=0.3),
        ),
    ),
    "sharpness": Quantity(0.7, 0.2, "exponent", (_level("library", spread=0.2),), 0.4, 5.0),
    # what was measured between hosts ran over misconfigured cards or buses: it says little of others
    "net_share": Quantity(0.8, 0.1, "share of network card", (_level("library", spread=1.0),), 0.01, 1.0),
    "net_s": Quantity(8e-6, 0.3, "s", (_level("library", spread=1.0),)),
}

PRIORS: Mapping[str, Mapping[str, Quantity]] = {
    "simt.gemm": GEMM,
    "simt.batched_gemm": GEMM,
    "simt.prompt": PROMPT,
    "simt.latent_prompt": PROMPT,
    "simt.decode": DECODE,
    "simt.latent_decode": DECODE,
    "simt.experts": EXPERTS,
    "simt.norm": POINTWISE,
    "simt.softmax": POINTWISE,
    "simt.elementwise": POINTWISE,
    "collective": COLLECTIVE,
}
"""Quantities of every group of operators that is fitted together."""

WORTH = 0.75
"""What a number must explain to ship (`fit`): the least that keeps to one number for two cells."""
