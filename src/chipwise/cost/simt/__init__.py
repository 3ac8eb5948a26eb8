"""Kernels on SIMT chips (GPUs): what one operator costs on one device, from tiles, waves and caches.

One noun per file: `gemm`, `prompt` and `decode` (attention), `experts` (with `routing`), `pointwise`,
`quantise`; `tiles` and `residency` are what they share, `rates` is what they read of a chip.
"""

from chipwise.cost.simt.attention import DecodeParameters, PromptParameters, decode_attention, prompt_attention
from chipwise.cost.simt.experts import ExpertParameters, experts
from chipwise.cost.simt.family import SimtParameters, dtype_label, group_of, narrowing, simt_time
from chipwise.cost.simt.gemm import GemmParameters, Operands, gemm
from chipwise.cost.simt.pointwise import PointwiseParameters, QuantiseParameters, pointwise, quantise
from chipwise.cost.simt.rates import Rates
from chipwise.cost.simt.routing import Routing, balanced, power_law, spread, uniform

__all__ = [
    "DecodeParameters",
    "ExpertParameters",
    "GemmParameters",
    "Operands",
    "PointwiseParameters",
    "PromptParameters",
    "QuantiseParameters",
    "Rates",
    "Routing",
    "SimtParameters",
    "balanced",
    "decode_attention",
    "dtype_label",
    "experts",
    "gemm",
    "group_of",
    "narrowing",
    "pointwise",
    "power_law",
    "prompt_attention",
    "quantise",
    "simt_time",
    "spread",
    "uniform",
]
