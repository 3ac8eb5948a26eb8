"""Labels of precisions that a user may ask for, whatever the checkpoint is stored in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from chipwise.errors import UnknownNameError
from chipwise.workload.formats import FORMATS, SAID, Format, mixed
from chipwise.workload.gguf import GGUF, gguf
from chipwise.workload.model import Model, MoE
from chipwise.workload.precision import LARGE, Precision, TensorClass, uniform

LABELS: Mapping[str, str] = {
    **SAID["labels"],
    **dict.fromkeys(GGUF, "a mix of block formats of llama.cpp (GGUF)"),
    **{f"mlx_{bits}bit": f"{bits}-bit integers in groups of 64 (MLX), tables too" for bits in (2, 3, 4, 5, 6, 8)},
    **{
        f"exl{kind}_{bits}": f"{bits} bits per weight (EXL{kind}), or as in exl{kind}-4.25"
        for kind in (2, 3)
        for bits in (3, 4, 6)
    },
}
"""Every label and what it means."""

# Other spellings; case, "-", "." and spaces are ignored already.
SAME: Mapping[str, str] = {
    **SAID["same"],
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
