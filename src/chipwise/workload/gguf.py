"""Mixes of block formats that llama.cpp calls by one name: Q4_K_M and its kin, for local use.

A mix gives most matrices one format and some a better one, by role and by depth. The rule is that of
ggml-org/llama.cpp, src/llama-quant.cpp (llama_tensor_get_type, read at commit 5a44f27, 2025), as applied with
an importance matrix. Bits per weight of the formats: `formats.GGML_BITS`.
"""

from __future__ import annotations

from collections.abc import Mapping

from chipwise.errors import UnknownNameError
from chipwise.workload.axes import Sizes
from chipwise.workload.build import build
from chipwise.workload.formats import FORMATS, GGML_BITS, SAID, mixed
from chipwise.workload.model import Model, MoE, SelfAttention
from chipwise.workload.precision import KEPT_WIDE, Precision, TensorClass

GGUF: Mapping[str, str] = SAID["gguf"]
"""Mixes by name, each with the format of most of its matrices; of `mxfp4_moe` experts are in MXFP4."""

TINY = frozenset(("iq1_s", "iq1_m", "iq2_xxs", "iq2_xs"))
SMALLER = frozenset(("iq2_s", "iq2_m"))
"""Mixes of 1 and 2 bits, whose more important matrices take few formats, by `SMALLER` better ones."""

VALUES: Mapping[str, tuple[str, str]] = SAID["values"]
"""What values get: usually, and where four query heads and more share a head of keys."""

# Architectures whose converted files hold query, key and value as one matrix, which has a rule of its own.
FUSED = frozenset(("gpt2", "gpt_neox", "falcon", "phi", "phi3", "bloom"))

SMALL: Mapping[str, str] = SAID["small"]
"""What a matrix gets whose rows are no multiple of 256, the block of the formats by which it is found."""


def gguf(name: str, model: Model) -> Precision:
    """The mix of that name for a model. Raises `UnknownNameError`.

    A class gets the mean bits of its matrices over all layers, so that bytes add up to those of the file;
    single matrices of a class may be off by a quarter. Experts of a checkpoint in MXFP4 stay so in every mix
    that has no fewer bits for them: DeepSeek-V4-Flash in IQ3_XXS is a file of 103 GB, gpt-oss, whose rows divide into
    no block of fewer bits, stays whole. Activations stay 16 bit: that llama.cpp multiplies 8-bit integers on some
    devices is a matter of the runtime.
    """
    if name not in GGUF:
        raise UnknownNameError("GGUF mix", name, GGUF)
    weights = {cls: mixed(name, mean) for cls, mean in _mean_bits(name, model).items()}
    head, table = _tables(name)
    weights["head"] = mixed(name, _bits(head, model.hidden))
    weights["embedding"] = mixed(name, _bits(head if model.tied else table, model.hidden))
    weights["router"] = FORMATS["fp32"]
    wide = model.precision.base if model.precision.base.bits == 16 else FORMATS["fp16"]
    plain = dict.fromkeys(weights, wide)
    return Precision(name, wide, weights, plain)


def _mean_bits(name: str, model: Model) -> dict[TensorClass, float]:
    """Bits of a weight of each class, the mean over all layers."""
    graph = build(model)
    count = max(graph.layers, 1)
    experts = max((x.ffn.experts for _, x in model.runs if isinstance(x.ffn, MoE)), default=0)
    shared = max((_sharing(x.mixer) for _, x in model.runs if isinstance(x.mixer, SelfAttention)), default=1)
    bits: dict[TensorClass, float] = {}
    elements: dict[TensorClass, float] = {}
    depth = 0
    kept = "mxfp4" in (name.removesuffix("_moe"), model.precision.weight("expert").name)
    for repeat, block in graph.runs:
        sizes = Sizes(block.axes)
        tensors = [
            (t.cls, t.name.removeprefix("shared_"), float(t.params(sizes)), sizes.whole(t.cols))
            for t in block.tensors
            if t.cls not in KEPT_WIDE
        ]
        for layer in range(depth, depth + repeat):
            for cls, role, size, cols in tensors:
                if role in ("q", "k", "v") and model.architecture in FUSED:
                    role = "qkv"
                stored = _format(name, role, layer, count, shared, experts)
                each = _bits(stored, cols)
                if cls == "expert" and kept:
                    each = min(each, GGML_BITS["mxfp4"])
                bits[cls] = bits.get(cls, 0.0) + size * each
                elements[cls] = elements.get(cls, 0.0) + size
        depth += repeat
    return {cls: total / elements[cls] for cls, total in bits.items()}


def narrow(name: str) -> bool:
    """Whether most weights of a mix have fewer than 4 bits."""
    return name in GGUF and GGML_BITS[GGUF[name]] < 4.0


def _sharing(a: SelfAttention) -> int:
    return a.heads // a.kv_heads


def _bits(stored: str, cols: int) -> float:
    """Bits per weight, with the formats for rows that do not divide into blocks."""
    if cols % 256 and stored in SMALL:
        stored = SMALL[stored]
    return GGML_BITS["f16" if cols % 32 else stored]


def _tables(name: str) -> tuple[str, str]:
    """Formats of the head and of the embedding table."""
    base = GGUF[name]
    if name in TINY:
        return "q5_k", "q2_k"
    if name in SMALLER or name == "iq3_xxs":
        return "q5_k", "iq3_s"
    return ("q8_0" if base == "q8_0" else "q6_k"), base


def _better(layer: int, layers: int) -> bool:
    """The first and last eighth of the layers and every third between."""
    eighth = layers // 8
    return layer < eighth or layer >= 7 * layers // 8 or (layer - eighth) % 3 == 2


def _format(name: str, role: str, layer: int, layers: int, shared: int, experts: int) -> str:
    """The block format of one matrix. `shared`: query heads per key/value head."""
    base = GGUF[name]
    many, eight = shared >= 4, experts == 8
    match role:
        case "v":
            return _value(name, layer, layers, many, eight)
        case "k" if eight:
            return "q4_k" if name in TINY | SMALLER else "q8_0"
        case "q" | "k" if name in ("iq3_xxs", "iq3_xs"):
            return "iq2_s" if name == "iq3_xxs" else "iq3_xxs"
        case "o":
            if eight:
                return base if name in ("q4_0", "q4_1", "q5_0", "q5_1", "q5_k_s", "q5_k_m", "q6_k", "q8_0") else "q5_k"
            if name in SMALLER or name == "iq3_xxs":
                return "iq3_s"
            if name in ("iq1_s", "iq1_m"):
                return "iq2_xxs"
            return {"q2_k": "q3_k", "q3_k_m": "q4_k", "q3_k_l": "q5_k", "iq3_m": "q4_k"}.get(name, base)
        case "qkv":
            return {"q3_k_m": "q4_k", "q3_k_l": "q4_k", "iq3_m": "q4_k", "q4_k_m": "q5_k", "q5_k_m": "q6_k"}.get(
                name, base
            )
        case "down":
            return _down(name, layer, layers, eight)
    return base


def _value(name: str, layer: int, layers: int, many: bool, eight: bool) -> str:
    if name in TINY | SMALLER:
        return "q4_k" if many or eight else "iq3_s" if name in SMALLER else "q2_k"
    found = VALUES.get(name, (GGUF[name], GGUF[name]))[many]
    if (name == "q3_k_m" and layer < 2) or (name == "q4_k_s" and layer < 4):
        found = "q5_k"
    elif name in ("q4_k_m", "q5_k_m") and _better(layer, layers):
        found = "q6_k"
    if layers == 80 and found in ("q3_k", "q4_k"):
        found = "q5_k"  # llama.cpp tells its "70B" type by 80 layers
    return "q8_0" if eight else found


def _down(name: str, layer: int, layers: int, eight: bool) -> str:
    early = layer < layers // 8
    match name:
        case "q3_k_m":
            return "q5_k" if layer < layers // 16 else "q4_k"
        case "q4_k_m" | "q5_k_m" if _better(layer, layers):
            return "q6_k"
        case "q4_k_s" if early:
            return "q5_k"
        case "iq3_m" if early or (eight and _better(layer, layers)):
            return "q4_k"
        case _ if early and name in TINY | SMALLER:
            return "iq3_s" if name in SMALLER else "q2_k"
        case "iq3_xxs" if early:
            return "q4_k"
        case "q4_0" | "q5_0" if early:
            return "q4_1" if name == "q4_0" else "q5_1"
    return {"q2_k": "q3_k", "q3_k_l": "q5_k"}.get(name, GGUF[name])
