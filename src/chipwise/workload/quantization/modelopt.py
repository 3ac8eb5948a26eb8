"""NVIDIA Model Optimizer: `quant_algo` names, as in `hf_quant_config.json` beside a checkpoint's config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chipwise.errors import UsageError, shorten
from chipwise.workload.formats import FORMATS
from chipwise.workload.quantization.scheme import (
    Quantisation,
    QuantRule,
    Scheme,
    integers,
    patterns_of,
    table_of,
)

CACHES = {"": "", "NONE": "", "FP8": "fp8", "NVFP4": "nvfp4", "INT8": "int8"}


def read_modelopt(config: Mapping[str, Any], origin: str) -> Quantisation:
    """`quant_algo` for all layers, or by name under `quantized_layers` where it is MIXED_PRECISION.

    Source: NVIDIA/TensorRT-Model-Optimizer, export; TensorRT-LLM, quantization/mode.py (QuantAlgo).
    """
    # older files name the cache algorithm, newer ones describe its numbers
    cache = str(config.get("kv_cache_quant_algo") or "").upper()
    if not cache and isinstance(config.get("kv_cache_scheme"), Mapping):
        cache = "FP8"
    if cache not in CACHES:
        raise UsageError(
            f"{origin}: kv_cache_quant_algo = {shorten(cache)!r} is not read", "FP8, NVFP4 or INT8"
        )
    ignored = patterns_of(config, origin, "exclude_modules", "ignore")
    algo = str(config.get("quant_algo") or "").upper()
    if algo != "MIXED_PRECISION":
        return Quantisation(
            (QuantRule(_scheme(algo, config.get("group_size"), origin)),), ignored, CACHES[cache]
        )
    modules: dict[Scheme, list[str]] = {}
    for name, own in table_of(config, origin, "quantized_layers").items():
        scheme = _scheme(str(own.get("quant_algo", "")).upper(), own.get("group_size"), origin)
        modules.setdefault(scheme, []).append(str(name))
    rules = tuple(QuantRule(scheme, tuple(names)) for scheme, names in modules.items())
    return Quantisation(rules, ignored, CACHES[cache])


def _scheme(algo: str, group: Any, origin: str) -> Scheme:
    fp8, row, block = FORMATS["fp8"], FORMATS["fp8_row"], FORMATS["fp8_block"]
    nvfp4, mxfp8, int8 = FORMATS["nvfp4"], FORMATS["mxfp8"], FORMATS["int8"]
    known = {
        "FP8": Scheme(fp8, fp8),
        "FP8_PER_CHANNEL_PER_TOKEN": Scheme(row, row),
        "FP8_PB_WO": Scheme(block, block),
        "FP8_BLOCK_SCALES": Scheme(block, block),
        "NVFP4": Scheme(nvfp4, nvfp4),
        "NVFP4_AWQ": Scheme(nvfp4, nvfp4),
        "W4A16_NVFP4": Scheme(nvfp4),
        "MXFP8": Scheme(mxfp8, mxfp8),
        "W8A8_SQ_PER_CHANNEL": Scheme(int8, int8),
        "W8A16": Scheme(int8),
    }
    if algo in ("W4A16", "W4A16_AWQ", "INT4_AWQ"):
        return Scheme(integers(4, group or 128, origin, zero_point=False))
    if algo == "W4A8_AWQ":
        return Scheme(integers(4, group or 128, origin, zero_point=False), fp8)
    if algo not in known:
        raise UsageError(
            f"{origin}: quant_algo = {shorten(algo)!r} is not read", f"one of {', '.join(known)}"
        )
    return known[algo]
