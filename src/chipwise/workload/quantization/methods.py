"""One reader per `quant_method`: its configuration -> rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from chipwise.errors import UsageError, shorten
from chipwise.workload.formats import FORMATS
from chipwise.workload.quantization.modelopt import read_modelopt
from chipwise.workload.quantization.scheme import (
    Quantisation,
    Rule,
    Scheme,
    fp8_blocks,
    integers,
    patterns_of,
    scheme_of,
    table_of,
)

__all__ = ["read_method"]

Config = Mapping[str, Any]


def read_method(config: Config, origin: str) -> Quantisation:
    """The rules of a configuration. Raises `UsageError` for a method or a number type that is not read."""
    method = str(config.get("quant_method") or ("modelopt" if config.get("quant_algo") else "")).lower()
    if method not in METHODS:
        what = f"{origin}: quant_method = {shorten(method)!r} is not read yet"
        raise UsageError(what, f"one of {', '.join(METHODS)}")
    return METHODS[method](config, f"{origin}: quantization_config")


def _fp8(config: Config, origin: str) -> Quantisation:
    """DeepSeek's block scales, or one scale per matrix. transformers, FineGrainedFP8Config; vLLM, Fp8Config.

    NVIDIA's versions of DeepSeek V4 name another algorithm for the experts (sgl-project/sglang, pull 25820).
    """
    block = config.get("weight_block_size")
    stored = fp8_blocks(block, origin) if block else FORMATS["fp8"]
    ignored = patterns_of(config, origin, "modules_to_not_convert", "ignored_layers")
    rules: tuple[Rule, ...] = (Rule(Scheme(stored, stored)),)
    if config.get("moe_quant_algo"):
        experts = read_modelopt({"quant_algo": config["moe_quant_algo"]}, origin).rules[0].scheme
        rules = (Rule(experts, ("experts",)), *rules)
    return Quantisation(rules, ignored)


def _fbgemm(config: Config, origin: str) -> Quantisation:
    """One scale per output row and per token. transformers, FbgemmFp8Config."""
    stored = FORMATS["fp8_row"]
    return Quantisation(
        (Rule(Scheme(stored, stored)),), patterns_of(config, origin, "modules_to_not_convert")
    )


def _mxfp4(config: Config, origin: str) -> Quantisation:
    """gpt-oss: the experts alone; activations stay 16 bit unless a runtime narrows them."""
    return Quantisation(
        (Rule(Scheme(FORMATS["mxfp4"]), ("experts",)),), patterns_of(config, origin, "modules_to_not_convert")
    )


def _awq(config: Config, origin: str) -> Quantisation:
    """transformers, AwqConfig: 16-bit scales and, with `zero_point`, offsets of the weights' width."""
    zero = bool(config.get("zero_point", True))
    stored = integers(
        config.get("bits", config.get("w_bit")), config.get("group_size", 128), origin, zero_point=zero
    )
    return Quantisation((Rule(Scheme(stored)),), patterns_of(config, origin, "modules_to_not_convert"))


def _gptq(config: Config, origin: str) -> Quantisation:
    """transformers, GPTQConfig. Offsets are stored even where they are symmetric. GPTQModel's `dynamic`:
    a pattern after "-:" is left out, one after "+:" has its own bits or group."""
    bits, group = config.get("bits"), config.get("group_size", 128)
    rules: list[Rule] = []
    ignored = list(patterns_of(config, origin, "modules_to_not_convert"))
    for pattern, own in table_of(config, origin, "dynamic").items():
        target = "re:" + pattern.removeprefix("-:").removeprefix("+:")
        if pattern.startswith("-:"):
            ignored.append(target)
        else:
            stored = integers(own.get("bits", bits), own.get("group_size", group), origin, zero_point=True)
            rules.append(Rule(Scheme(stored), (target,)))
    rules.append(Rule(Scheme(integers(bits, group, origin, zero_point=True))))
    return Quantisation(tuple(rules), tuple(ignored))


def _bitsandbytes(config: Config, origin: str) -> Quantisation:
    """transformers, BitsAndBytesConfig: 4-bit tables per 64 weights, or int8 per row with int8 products.

    Double quantisation keeps the 32-bit maxima in 8 bit, with one float32 per 256 of them.
    """
    ignored = patterns_of(config, origin, "llm_int8_skip_modules")
    if config.get("load_in_8bit") or config.get("_load_in_8bit"):
        return Quantisation((Rule(Scheme(FORMATS["int8"], FORMATS["int8"])),), ignored)
    kind = str(config.get("bnb_4bit_quant_type", "fp4"))
    if kind not in ("nf4", "fp4"):
        raise UsageError(f"{origin}: bnb_4bit_quant_type = {shorten(kind)!r} is not read", "nf4 or fp4")
    stored = FORMATS["nf4_double" if config.get("bnb_4bit_use_double_quant") else "nf4"]
    return Quantisation((Rule(Scheme(stored)),), ignored)


def _compressed(config: Config, origin: str) -> Quantisation:
    """vllm-project/compressed-tensors: groups of targets, each with numbers for weights and inputs."""
    rules: list[Rule] = []
    for name, group in sorted(table_of(config, origin, "config_groups").items()):
        if not isinstance(group.get("weights"), Mapping):
            continue  # a group that quantises activations alone stores nothing
        scheme = scheme_of(group["weights"], group.get("input_activations"), f"{origin}: {name}")
        rules.append(Rule(scheme, _targets(patterns_of(group, origin, "targets"))))
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
    rules: list[Rule] = []
    for pattern, own in table_of(config, origin, "layer_quant_config").items():
        scheme = _quark_scheme(own, origin)
        if scheme:
            rules.append(Rule(scheme, (str(pattern),)))
    everywhere = _quark_scheme(config.get("global_quant_config"), origin)
    if everywhere:
        rules.append(Rule(everywhere))
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
            raise UsageError(
                f"{origin}: dtype = {shorten(dtype)!r} is not read", f"one of {', '.join(kinds)}"
            )
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
}
