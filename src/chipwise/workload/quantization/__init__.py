"""Precision of a checkpoint, by tensor class and where needed by layer, from its `quantization_config`.

A method's configuration is read into rules on module names (`methods`), which are then matched with the
names of the matrices in each layer (`modules`, `assign`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chipwise.errors import UsageError, shorten
from chipwise.workload.formats import FORMATS
from chipwise.workload.model import Layer
from chipwise.workload.precision import Precision, uniform
from chipwise.workload.quantization.assign import assign
from chipwise.workload.quantization.methods import read_method
from chipwise.workload.quantization.scheme import QuantRule, Scheme
from chipwise.workload.reader import Reader

__all__ = ["read_precision"]

NAMES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}


def read_precision(r: Reader, layers: Sequence[Layer]) -> tuple[Precision, tuple[Layer, ...]]:
    """Formats of the checkpoint: its 16-bit type, or what `quantization_config` says; and the layers, those
    that differ from the rest with a precision of their own.

    Raises `UsageError` for a method or a number type that is not read.
    """
    base = r.text("torch_dtype", "dtype", default="bfloat16").removeprefix("torch.")
    if base not in NAMES:
        raise UsageError(f"{r.origin}: torch_dtype = {shorten(base)!r} is not read", f"one of {', '.join(NAMES)}")
    r.skip("expert_dtype")
    config = r.table("quantization_config") or r.table("compression_config")
    packed = r.table("quantization")  # mlx-lm writes this, and since 2025 the same under the usual key as well
    if packed:
        config = packed if config.get("quant_method") is None else config
    if not config:
        if not (r.has("torch_dtype") or r.has("dtype")):
            r.assume("torch_dtype not given: bfloat16")
        return uniform(NAMES[base]), tuple(layers)
    found = read_method(config, r.origin)
    if r.has("expert_dtype") and not any(rule.targets for rule in found.rules):
        found = replace(found, rules=(_experts(r), *found.rules))
    # the type of what is not quantised: 32-bit files are loaded in 16 bit with quantised weights
    wide = uniform("bf16" if base == "float32" else NAMES[base]).base
    return assign(found, wide, layers, r)


def _experts(r: Reader) -> QuantRule:
    """DeepSeek V4: experts of another type than `quantization_config` says (its inference/model.py)."""
    kind = r.text("expert_dtype")
    if kind not in ("fp4", "fp8"):
        raise UsageError(f"{r.origin}: expert_dtype = {shorten(kind)!r} is not read", "fp4 or fp8")
    stored = FORMATS["mxfp4" if kind == "fp4" else "fp8_block"]
    return QuantRule(Scheme(stored, FORMATS["fp8_block"]), ("experts",))
