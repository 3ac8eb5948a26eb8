"""How a set of matrices is quantised, and which matrices: what every method's configuration is turned into."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from chipwise.errors import UsageError, shorten
from chipwise.values import dataclass
from chipwise.workload.formats import FORMATS, Format, get_format, grouped

MOST = 1_000_000
"""The largest side of a block, of weights as wide as any that exist."""


@dataclass(frozen=True, slots=True)
class Scheme:
    """Storage of weights, and of the activations that meet them (None: they stay 16 bit)."""

    weight: Format
    activation: Format | None = None


@dataclass(frozen=True, slots=True)
class QuantRule:
    """A scheme for the modules that any of the patterns `targets` names; no pattern: for all."""

    scheme: Scheme
    targets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Quantisation:
    """The first rule that names a module holds, unless `ignored` names it. `kv`: a cache format, or "". `tables`: the
    format of embedding and head where a method packs them too."""

    rules: tuple[QuantRule, ...]
    ignored: tuple[str, ...] = ()
    kv: str = ""
    tables: Format | None = None


def patterns_of(config: Mapping[str, Any], origin: str, *keys: str) -> tuple[str, ...]:
    """The texts listed under `keys`, none where absent. Raises `UsageError` for anything but lists of texts."""
    found: list[str] = []
    for key in keys:
        value = config.get(key) or ()
        if not (isinstance(value, (list, tuple)) and all(isinstance(p, str) for p in value)):
            raise UsageError(f"{origin}: {key} is {shorten(str(value), 40)}", "expected a list of names")
        found.extend(value)
    return tuple(found)


def table_of(config: Mapping[str, Any], origin: str, key: str) -> Mapping[str, Any]:
    """The object of objects under a key, empty where absent. Raises `UsageError` for anything else."""
    value = config.get(key) or {}
    if not (isinstance(value, Mapping) and all(isinstance(v, Mapping) for v in value.values())):
        raise UsageError(f"{origin}: {key} is {shorten(str(value), 40)}", "expected an object of objects")
    return value


def fp8_blocks(block: Any, origin: str) -> Format:
    """8-bit floats with one scale per block of [outputs, inputs]."""
    pair = block if isinstance(block, (list, tuple)) and len(block) == 2 else (0, 0)
    if not all(isinstance(side, int) and 0 < side <= MOST for side in pair):
        what = f"{origin}: weight block {shorten(str(block), 40)} is not read"
        raise UsageError(what, "two whole numbers, as [128, 128]")
    return replace(FORMATS["fp8_block"], block_rows=pair[0], block_cols=pair[1])


def integers(bits: Any, group: Any, origin: str, *, zero_point: bool) -> Format:
    """4- or 8-bit integers in groups along the input; a group of -1 or none is a whole row."""
    if bits not in (4, 8):
        raise UsageError(f"{origin}: integers of {shorten(str(bits), 40)} bits are not read", "4 or 8")
    size = -1 if group is None else group
    if not isinstance(size, int) or size > MOST:
        raise UsageError(f"{origin}: group_size {shorten(str(size), 40)} is not read", "a whole number")
    return grouped("int4" if bits == 4 else "int8", int(bits), max(size, 0), zero_point=zero_point)


def scheme_of(weights: Mapping[str, Any], inputs: Any, origin: str) -> Scheme:
    """A scheme in the vocabulary of compressed-tensors: `num_bits`, `type`, `strategy`, `group_size`.

    Source: vllm-project/compressed-tensors, quantization/quant_args.py (QuantizationArgs).
    """
    stored = _stored(weights, origin)
    if not inputs:
        return Scheme(stored)
    if not isinstance(inputs, Mapping):
        raise UsageError(f"{origin}: inputs are {shorten(str(inputs), 40)}", "expected an object")
    met = _number(inputs, origin)
    same = met.compute == stored.compute
    return Scheme(stored, stored if same else met)


def _stored(numbers: Mapping[str, Any], origin: str) -> Format:
    bits, group = numbers.get("num_bits"), numbers.get("group_size")
    strategy = str(numbers.get("strategy") or ("group" if group else "tensor"))
    if numbers.get("type", "int") == "int":
        if bits == 8 and strategy in ("channel", "tensor"):
            return FORMATS["int8"]
        return integers(bits, group, origin, zero_point=not numbers.get("symmetric", True))
    if bits == 8 and strategy == "block":
        block = numbers.get("block_structure")
        named = isinstance(block, str) and all(n.isdecimal() for n in block.split("x"))
        parts = [int(n) for n in str(block).split("x")] if named else block
        return fp8_blocks(parts, origin)
    if bits == 8 and strategy == "channel":
        return FORMATS["fp8_row"]
    return _number(numbers, origin)


def _number(numbers: Mapping[str, Any], origin: str) -> Format:
    """The type of the numbers alone; one scale for all where it has no groups of its own."""
    kind, bits, group = str(numbers.get("type", "int")), numbers.get("num_bits"), numbers.get("group_size")
    known: dict[tuple[str, Any], str] = {
        ("float", 8): "mxfp8" if group == 32 else "fp8",
        ("float", 4): "mxfp4" if group == 32 else "nvfp4",
        ("int", 8): "int8",
        ("int", 4): "int4",
    }
    if not isinstance(bits, int) or (kind, bits) not in known:
        what = f"{origin}: {shorten(kind)} of {shorten(str(bits))} bits is not read"
        raise UsageError(what, "float or int, 4 or 8")
    return get_format(known[kind, bits])
