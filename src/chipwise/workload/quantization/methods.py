"""One reader per `quant_method`: its configuration -> rules. NVIDIA ModelOpt writes the same facts in three ways."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from chipwise.errors import UsageError, shorten
from chipwise.workload.formats import FORMATS, Format
from chipwise.workload.quantization.scheme import (
    Quantisation,
    QuantRule,
    Scheme,
    fp8_blocks,
    integers,
    patterns_of,
    scheme_of,
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
        raise UsageError(f"{origin}: kv_cache_quant_algo = {shorten(cache)!r} is not read", "FP8, NVFP4 or INT8")
    ignored = patterns_of(config, origin, "exclude_modules", "ignore")
    algo = str(config.get("quant_algo") or "").upper()
    if algo != "MIXED_PRECISION":
        return Quantisation((QuantRule(_scheme(algo, config.get("group_size"), origin)),), ignored, CACHES[cache])
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
        raise UsageError(f"{origin}: quant_algo = {shorten(algo)!r} is not read", f"one of {', '.join(known)}")
    return known[algo]


Config = Mapping[str, Any]


def read_method(config: Config, origin: str) -> Quantisation:
    """The rules of a configuration. Raises `UsageError` for a method or a number type that is not read."""
    own = "modelopt" if config.get("quant_algo") else "mlx-lm" if _is_mlx(config) else ""
    method = str(config.get("quant_method") or own).lower()
    if method not in METHODS:
        what = f"{origin}: quant_method = {shorten(method)!r} is not read yet"
        hint = f"leave quantization_config out and give --precision; read are {', '.join(METHODS)}"
        raise UsageError(what, hint)
    return METHODS[method](config, f"{origin}: quantization_config")


def _fp8(config: Config, origin: str) -> Quantisation:
    """DeepSeek's block scales, or one scale per matrix. transformers, FineGrainedFP8Config; vLLM, Fp8Config.

    NVIDIA's versions of DeepSeek V4 name another algorithm for the experts (sgl-project/sglang, pull 25820).
    """
    block = config.get("weight_block_size")
    stored = fp8_blocks(block, origin) if block else FORMATS["fp8"]
    ignored = patterns_of(config, origin, "modules_to_not_convert", "ignored_layers")
    rules: tuple[QuantRule, ...] = (QuantRule(Scheme(stored, stored)),)
    if config.get("moe_quant_algo"):
        experts = read_modelopt({"quant_algo": config["moe_quant_algo"]}, origin).rules[0].scheme
        rules = (QuantRule(experts, ("experts",)), *rules)
    return Quantisation(rules, ignored)


def _fbgemm(config: Config, origin: str) -> Quantisation:
    """One scale per output row and per token. transformers, FbgemmFp8Config."""
    stored = FORMATS["fp8_row"]
    return Quantisation((QuantRule(Scheme(stored, stored)),), patterns_of(config, origin, "modules_to_not_convert"))


def _mxfp4(config: Config, origin: str) -> Quantisation:
    """gpt-oss: the experts alone; activations stay 16 bit unless a runtime narrows them."""
    return Quantisation(
        (QuantRule(Scheme(FORMATS["mxfp4"]), ("experts",)),), patterns_of(config, origin, "modules_to_not_convert")
    )


def _awq(config: Config, origin: str) -> Quantisation:
    """transformers, AwqConfig: 16-bit scales and, with `zero_point`, offsets of the weights' width."""
    zero = bool(config.get("zero_point", True))
    stored = integers(config.get("bits", config.get("w_bit")), config.get("group_size", 128), origin, zero_point=zero)
    return Quantisation((QuantRule(Scheme(stored)),), patterns_of(config, origin, "modules_to_not_convert"))


def _gptq(config: Config, origin: str) -> Quantisation:
    """transformers, GPTQConfig. Offsets are stored even where they are symmetric. GPTQModel's `dynamic`:
    a pattern after "-:" is left out, one after "+:" has its own bits or group."""
    bits, group = config.get("bits"), config.get("group_size", 128)
    rules: list[QuantRule] = []
    ignored = list(patterns_of(config, origin, "modules_to_not_convert"))
    for pattern, own in table_of(config, origin, "dynamic").items():
        target = "re:" + pattern.removeprefix("-:").removeprefix("+:")
        if pattern.startswith("-:"):
            ignored.append(target)
        else:
            stored = integers(own.get("bits", bits), own.get("group_size", group), origin, zero_point=True)
            rules.append(QuantRule(Scheme(stored), (target,)))
    rules.append(QuantRule(Scheme(integers(bits, group, origin, zero_point=True))))
    return Quantisation(tuple(rules), tuple(ignored))


def _bitsandbytes(config: Config, origin: str) -> Quantisation:
    """transformers, BitsAndBytesConfig: 4-bit tables per 64 weights, or int8 per row with int8 products.

    Double quantisation keeps the 32-bit maxima in 8 bit, with one float32 per 256 of them.
    """
    ignored = patterns_of(config, origin, "llm_int8_skip_modules")
    if config.get("load_in_8bit") or config.get("_load_in_8bit"):
        return Quantisation((QuantRule(Scheme(FORMATS["int8"], FORMATS["int8"])),), ignored)
    kind = str(config.get("bnb_4bit_quant_type", "fp4"))
    if kind not in ("nf4", "fp4"):
        raise UsageError(f"{origin}: bnb_4bit_quant_type = {shorten(kind)!r} is not read", "nf4 or fp4")
    stored = FORMATS["nf4_double" if config.get("bnb_4bit_use_double_quant") else "nf4"]
    return Quantisation((QuantRule(Scheme(stored)),), ignored)


def _compressed(config: Config, origin: str) -> Quantisation:
    """vllm-project/compressed-tensors: groups of targets, each with numbers for weights and inputs."""
    rules: list[QuantRule] = []
    for name, group in sorted(table_of(config, origin, "config_groups").items()):
        if not isinstance(group.get("weights"), Mapping):
            continue  # a group that quantises activations alone stores nothing
        scheme = scheme_of(group["weights"], group.get("input_activations"), f"{origin}: {name}")
        rules.append(QuantRule(scheme, _targets(patterns_of(group, origin, "targets"))))
    rules.sort(key=lambda rule: not rule.targets)  # named modules before the catch-all
    return Quantisation(
        tuple(rules), patterns_of(config, origin, "ignore"), _cache(config.get("kv_cache_scheme"), origin)
    )


def _targets(targets: tuple[str, ...]) -> tuple[str, ...]:
    """Patterns; where a class of modules ("Linear") is among them, all."""
    return () if {"Linear", "LinearBase", "FusedMoE"} & set(targets) else targets


def _cache(numbers: Any, origin: str) -> str:
    if not isinstance(numbers, Mapping):
        return ""
    return scheme_of({**numbers, "strategy": "tensor"}, None, f"{origin}: kv_cache_scheme").weight.name


def _quark(config: Config, origin: str) -> Quantisation:
    """AMD Quark: a global scheme, schemes by pattern, a list of exclusions; vLLM, quantization/quark."""
    rules: list[QuantRule] = []
    for pattern, own in table_of(config, origin, "layer_quant_config").items():
        scheme = _quark_scheme(own, origin)
        if scheme:
            rules.append(QuantRule(scheme, (str(pattern),)))
    everywhere = _quark_scheme(config.get("global_quant_config"), origin)
    if everywhere:
        rules.append(QuantRule(everywhere))
    kv = "fp8" if "fp8" in str(config.get("kv_cache_quant_config") or "") else ""
    return Quantisation(tuple(rules), patterns_of(config, origin, "exclude"), kv)


def _quark_scheme(config: Any, origin: str) -> Scheme | None:
    def numbers(spec: Any) -> dict[str, Any] | None:
        if isinstance(spec, list):
            spec = spec[0] if spec else None
        if not isinstance(spec, Mapping):
            return None
        kinds = {
            "fp8_e4m3": ("float", 8),
            "fp4": ("float", 4),
            "int8": ("int", 8),
            "int4": ("int", 4),
            "uint4": ("int", 4),
        }
        dtype = str(spec.get("dtype"))
        if dtype not in kinds:
            raise UsageError(f"{origin}: dtype = {shorten(dtype)!r} is not read", f"one of {', '.join(kinds)}")
        strategies = {"per_tensor": "tensor", "per_channel": "channel", "per_group": "group"}
        return {
            "type": kinds[dtype][0],
            "num_bits": kinds[dtype][1],
            "strategy": strategies.get(str(spec.get("qscheme")), "tensor"),
            "group_size": spec.get("group_size"),
            "symmetric": dtype != "uint4",
        }

    weights = numbers(config.get("weight")) if isinstance(config, Mapping) else None
    if weights is None:
        return None
    return scheme_of(weights, numbers(config.get("input_tensors")), origin)


def _modelopt(config: Config, origin: str) -> Quantisation:
    """NVIDIA Model Optimizer, in either of its two forms."""
    if config.get("config_groups"):
        return _compressed(config, origin)
    return read_modelopt(config, origin)


def _is_mlx(config: Config) -> bool:
    """mlx-lm names no method: what it writes is a width and a group, and perhaps a mode."""
    return "bits" in config and "group_size" in config


def _mlx(config: Config, origin: str) -> Quantisation:
    """mlx-lm (mlx_lm/utils.py, quantize_model), which packs the embedding and the head too: groups with a
    16-bit scale and a 16-bit offset, or, as `mode` says, OCP's formats; a module has its own, or false, under its name.
    """
    everywhere = _mlx_format(config, origin)
    rules: list[QuantRule] = []
    ignored: list[str] = []
    for name, own in config.items():
        if own is False:
            ignored.append(name)
        elif isinstance(own, Mapping):
            rules.append(QuantRule(Scheme(_mlx_format({**config, **own}, origin)), (name,)))
    return Quantisation((*rules, QuantRule(Scheme(everywhere))), tuple(ignored), tables=everywhere)


def _mlx_format(config: Config, origin: str) -> Format:
    mode, bits, group = str(config.get("mode") or "affine"), config.get("bits"), config.get("group_size")
    if mode in ("mxfp4", "mxfp8", "nvfp4"):
        return FORMATS[mode]
    if mode != "affine" or bits not in (2, 3, 4, 5, 6, 8):
        what = f"{origin}: {shorten(str(bits), 40)} bits of mode {shorten(mode, 40)!r} are not read"
        raise UsageError(what, "affine of 2, 3, 4, 5, 6 or 8, mxfp4, mxfp8 or nvfp4")
    stored = integers(8 if bits == 8 else 4, group, origin, zero_point=False)
    return replace(stored, bits=bits, scale_bits=32)


def _auto_round(config: Config, origin: str) -> Quantisation:
    """Intel AutoRound: integers in groups; `extra_config` has modules of their own, 16 bits for those left alone
    (intel/auto-round, auto_round/export; transformers, AutoRoundConfig)."""
    if str(config.get("data_type", "int")) not in ("int", "uint"):
        what = f"{origin}: data_type = {shorten(str(config.get('data_type')), 40)!r} is not read"
        raise UsageError(what, "int")
    zero = not config.get("sym", True)
    rules: list[QuantRule] = []
    ignored: list[str] = []
    for pattern, own in table_of(config, origin, "extra_config").items():
        if own.get("bits", 4) in (16, 32):
            ignored.append(pattern)
            continue
        bits, group = own.get("bits", config.get("bits")), own.get("group_size", config.get("group_size"))
        rules.append(QuantRule(Scheme(integers(bits, group, origin, zero_point=zero)), (pattern,)))
    stored = integers(config.get("bits"), config.get("group_size", 128), origin, zero_point=zero)
    return Quantisation((*rules, QuantRule(Scheme(stored))), tuple(ignored))


def _hqq(config: Config, origin: str) -> Quantisation:
    """Half-quadratic quantisation: integers in groups with scales and offsets of 16 bits (transformers, HqqConfig)."""
    inner = config.get("quant_config")
    numbers = inner.get("weight_quant_params") if isinstance(inner, Mapping) else None
    if not isinstance(numbers, Mapping):
        raise UsageError(f"{origin}: no weight_quant_params", "as in HqqConfig(nbits=4, group_size=64)")
    stored = integers(numbers.get("nbits"), numbers.get("group_size"), origin, zero_point=False)
    return Quantisation(
        (QuantRule(Scheme(replace(stored, scale_bits=32))),), patterns_of(config, origin, "skip_modules")
    )


def _torchao(config: Config, origin: str) -> Quantisation:
    """torchao by the short names that transformers' TorchAoConfig takes; their groups are of 128."""
    kind = config.get("quant_type")
    if isinstance(kind, Mapping):  # since 0.10 an object {"default": {"_type": "Int4WeightOnlyConfig", ...}}
        first: Any = next(iter(kind.values()), None)
        kind = first.get("_type") if isinstance(first, Mapping) else None
    name = re.sub(r"[^a-z0-9]", "", str(kind).lower()).removesuffix("config")
    if name not in TORCHAO:
        what = f"{origin}: quant_type = {shorten(str(kind), 60)!r} is not read"
        raise UsageError(what, f"one of {', '.join(TORCHAO)}")
    weight, activation = TORCHAO[name]
    scheme = Scheme(FORMATS[weight], FORMATS[activation] if activation else None)
    return Quantisation((QuantRule(scheme),), patterns_of(config, origin, "modules_to_not_convert"))


TORCHAO: Mapping[str, tuple[str, str]] = {
    "int4weightonly": ("int4", ""), "int8weightonly": ("int8", ""), "int8dynamicactivationint8weight": ("int8", "int8"),
    "int8dynamicactivationint4weight": ("int4", "int8"), "float8weightonly": ("fp8_row", ""),
    "float8dynamicactivationfloat8weight": ("fp8_row", "fp8_row"),
}  # fmt: skip
"""Schemes of torchao by name: formats of weights, and of activations where they are narrowed."""


def _int8(config: Config, origin: str) -> Quantisation:
    """EETQ: int8 per output row, multiplied in 16 bit (transformers, EetqConfig)."""
    return Quantisation((QuantRule(Scheme(FORMATS["int8"])),), patterns_of(config, origin, "modules_to_not_convert"))


def _quanto(config: Config, origin: str) -> Quantisation:
    """optimum-quanto: weights in 8-bit floats or integers, or 4-bit integers in groups of 128 (QuantoConfig)."""
    known = {"int8": "int8", "float8": "fp8_row", "int4": "int4"}
    kind = str(config.get("weights"))
    if kind not in known:
        raise UsageError(f"{origin}: weights = {shorten(kind, 40)!r} is not read", f"one of {', '.join(known)}")
    return Quantisation(
        (QuantRule(Scheme(FORMATS[known[kind]])),), patterns_of(config, origin, "modules_to_not_convert")
    )


METHODS: dict[str, Callable[[Config, str], Quantisation]] = {
    "fp8": _fp8,
    "fbgemm_fp8": _fbgemm,
    "mxfp4": _mxfp4,
    "awq": _awq,
    "gptq": _gptq,
    "bitsandbytes": _bitsandbytes,
    "compressed-tensors": _compressed,
    "modelopt": _modelopt,
    "modelopt_fp4": _modelopt,
    "quark": _quark,
    "mlx-lm": _mlx,
    "auto-round": _auto_round,
    "intel/auto-round": _auto_round,
    "hqq": _hqq,
    "torchao": _torchao,
    "eetq": _int8,
    "quanto": _quanto,
}
