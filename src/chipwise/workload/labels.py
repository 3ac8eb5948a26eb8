"""Labels of precisions that a user may ask for, whatever the checkpoint is stored in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from chipwise.errors import UnknownNameError
from chipwise.workload.formats import FORMATS, Format, mixed
from chipwise.workload.gguf import GGUF, gguf
from chipwise.workload.model import Model, MoE
from chipwise.workload.precision import LARGE, Precision, TensorClass, uniform

LABELS: Mapping[str, str] = {
    "fp32": "32-bit floats",
    "bf16": "16-bit floats",
    "fp16": "16-bit floats",
    "fp8": "8-bit floats, one scale per matrix",
    "fp8_row": "8-bit floats, one scale per output and per token",
    "fp8_block": "8-bit floats, one scale per 128 x 128 weights",
    "mxfp8": "8-bit floats, one exponent per 32",
    "fp8_weights": "8-bit floats, 16-bit activations",
    "int8": "8-bit integers, weights and activations",
    "int8_weights": "8-bit integers, 16-bit activations",
    "int4": "4-bit integers in groups of 128, 16-bit activations",
    "w4a8": "4-bit integers in groups of 128, 8-bit float activations",
    "mxfp4": "4-bit floats, one exponent per 32, weights and activations",
    "mxfp4_weights": "4-bit floats, one exponent per 32, 16-bit activations",
    "mxfp4_mxfp8": "4-bit floats, one exponent per 32, 8-bit activations of that kind",
    "nvfp4": "4-bit floats, one 8-bit scale per 16, weights and activations",
    "nvfp4_weights": "4-bit floats, one 8-bit scale per 16, 16-bit activations",
    "bfloat8_b": "8-bit floats, one exponent per 16 (Tenstorrent), the head too",
    "bfloat4_b": "the same with the first two products of feed-forward blocks in 4 bits",
    "nf4": "4-bit table of bitsandbytes, 16-bit activations",
    "nf4_double": "the same with its maxima in 8 bit",
    **dict.fromkeys(GGUF, "a mix of block formats of llama.cpp (GGUF)"),
    **{
        f"mlx_{bits}bit": f"{bits}-bit integers in groups of 64 (MLX), tables too"
        for bits in (2, 3, 4, 5, 6, 8)
    },
    **{
        f"exl{kind}_{bits}": f"{bits} bits per weight (EXL{kind}), or as in exl{kind}-4.25"
        for kind in (2, 3)
        for bits in (3, 4, 6)
    },
}
"""Every label and what it means."""

# Other spellings; case, "-", "." and spaces are ignored already.
SAME = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "bfp8": "fp8",
    "bfp4": "mxfp4",
    "f16": "fp16",
    "float32": "fp32",
    "f32": "fp32",
    "fp8_e4m3": "fp8",
    "fp8_dynamic": "fp8_row",
    "fp8_channel": "fp8_row",
    "w8a8_fp8": "fp8",
    "w8a16_fp8": "fp8_weights",
    "w8a8": "int8",
    "w8a8_int8": "int8",
    "smoothquant": "int8",
    "w8a16": "int8_weights",
    "w4a16": "int4",
    "awq": "int4",
    "gptq": "int4",
    "int4_awq": "int4",
    "w4a16_awq": "int4",
    "w4a8_awq": "w4a8",
    "w4afp8": "w4a8",
    "fp4": "nvfp4",
    "w4a4": "nvfp4",
    "w4a16_nvfp4": "nvfp4_weights",
    "w4a16_mxfp4": "mxfp4_weights",
    "bnb_4bit": "nf4",
    "qlora": "nf4_double",
    **{f"{bits}bit": f"mlx_{bits}bit" for bits in (2, 3, 4, 5, 6, 8)},
    # Unsloth's dynamic files: which matrix gets what differs by model; sizes are those of these mixes within a tenth
    **{
        f"{ud}{mix}_xl": same
        for ud in ("", "ud_")
        for mix, same in {
            "q2_k": "q2_k",
            "q3_k": "q3_k_m",
            "q4_k": "q4_k_m",
            "q5_k": "q5_k_m",
            "q6_k": "q6_k",
            "q8_k": "q8_0",
        }.items()
    },
    **{f"ud_{mix}": mix for mix in ("iq1_s", "iq1_m", "iq2_xxs", "iq2_m", "iq3_xxs", "iq4_xs")},
    **{f"q{bits}_k": f"q{bits}_k_m" for bits in (3, 4, 5)},
}

GROUP_BITS = 0.5  # of a weight: MLX keeps a 16-bit scale and a 16-bit offset for every 64
SHARED = 16  # weights that have one 8-bit exponent on Tenstorrent
EXL_HEAD = 6.0  # bits of the head, unless a file says otherwise (exllamav2, convert.py -hb)


def format_name(text: str) -> str:
    """The name of a format by any of its spellings; a text that is none is given back."""
    label = "_".join(text.strip().lower().replace("-", "_").replace(".", "_").split())
    return SAME.get(label, label)


def _runtime_file(label: str) -> Precision | None:
    """Files of MLX, ExLlama and Tenstorrent: mean bits of large matrices, and of the tables that they store so too."""
    base, exl = FORMATS["fp16"], re.fullmatch(r"exl([23])_(\d(?:_\d+)?)", label)
    if exl:
        inner, head = (mixed(f"exl{exl[1]}", bits) for bits in (float(exl[2].replace("_", ".")), EXL_HEAD))
        weights: dict[TensorClass, Format] = {**dict.fromkeys(LARGE, inner), "head": head}
    elif label in ("bfloat8_b", "bfloat4_b"):
        wide = replace(FORMATS["fp8"], scale_bits=8.0, block_rows=1, block_cols=SHARED)
        weights = dict.fromkeys((*LARGE, "head"), wide)
        if label == "bfloat4_b":  # the third product of a block keeps 8 bits
            narrow = replace(FORMATS["mxfp4"], bits=(2.0 * 4.0 + 8.0) / 3.0, block_cols=SHARED)
            weights |= {"ffn": narrow, "expert": narrow}
        return Precision(label, base, weights, dict.fromkeys(weights, FORMATS["fp8"]))
    elif label in LABELS and label.startswith("mlx_"):
        stored = mixed(label, float(label[4]) + GROUP_BITS)
        weights = dict.fromkeys((*LARGE, "embedding", "head"), stored)
    else:
        return None
    return Precision(label, base, weights, dict.fromkeys(weights, base))


def parse_precision(text: str, model: Model) -> Precision:
    """The precision of that label for a model: all large matrices alike, or a GGUF mix.

    Tables, router and norms stay 16 bit, except in a GGUF mix; so does attention beside experts of less than 8 bit, as
    in the published 4-bit checkpoints of mixtures of experts. The name of the model's own checkpoint gives
    that back unchanged. Raises `UnknownNameError` with the nearest labels.
    """
    label = format_name(text)
    if label == model.precision.name.lower():
        return model.precision
    own_file = _runtime_file(label)
    if own_file is not None:
        return own_file
    if label not in LABELS:
        raise UnknownNameError("precision", text, [*LABELS, *SAME], "as in fp8, int4, q8_0 or q4_k_m")
    if label in GGUF:
        return gguf(label, model)
    own = model.precision.base
    wide = own.name if own.bits == 16 else "bf16"
    stored = label.removesuffix("_weights")
    mixed = {"w4a8": ("int4", "fp8"), "mxfp4_mxfp8": ("mxfp4", "mxfp8")}.get(label)
    if mixed is not None:
        weights, activations = mixed
        found = replace(uniform(weights, base=wide), activations=dict.fromkeys(LARGE, FORMATS[activations]))
    else:
        found = uniform(stored, weights_only=stored != label, base=wide)
    experts = any(isinstance(layer.ffn, MoE) for _, layer in model.runs)
    if experts and found.weight("expert").bits < 8:
        found = found.without(("attention",))
    return replace(found, name=label)
