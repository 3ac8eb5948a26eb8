"""Names of modules as configurations use them, and patterns that name modules.

Checkpoints name the same matrix in several ways. A layer's candidates are listed per tensor class; only the
way that a pattern actually meets counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase

from chipwise.errors import UsageError, shorten
from chipwise.workload.model import (
    CompressedAttention,
    Dense,
    LatentAttention,
    Layer,
    LightningAttention,
    LinearAttention,
    MoE,
    StateSpace,
)
from chipwise.workload.precision import TensorClass

# What stands before "layers." in the checkpoints of the families that are read.
ROOTS = ("", "model.", "model.language_model.", "language_model.model.", "backbone.", "transformer.")

# A repeat of a group that ends in a repeat: matching may take time exponential in the length of a name.
NESTED = re.compile(r"[+*}]\)[+*{]")

# Parts with layers of their own: a pattern with one of these words does not speak of the main stack.
ELSEWHERE = ("vision", "visual", "audio", "image", "projector", "mtp", "eagle", "encoder")

PLAIN = ("gate_proj", "up_proj", "down_proj")
QKVO = ("q_proj", "k_proj", "v_proj", "o_proj")
LATENT = ("kv_a_proj_with_mqa", "kv_b_proj", "o_proj")


def _under(parents: Iterable[str], names: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    ends = tuple(names)
    return tuple(tuple(f"{parent}.{end}" for end in ends) for parent in parents)


ATTENTION = (
    *_under(("self_attn", "attn", "attention", "mixer"), QKVO),
    *_under(("self_attn",), ("qkv_proj", "o_proj")),
    *_under(("attention",), ("wq", "wk", "wv", "wo")),
)
LATENT_ATTENTION = _under(("self_attn",), ("q_a_proj", "q_b_proj", *LATENT)) + _under(
    ("self_attn",), ("q_proj", *LATENT)
)
LINEAR_ATTENTION = (
    *_under(("linear_attn",), ("in_proj_qkvz", "out_proj")),
    *_under(("linear_attn",), ("in_proj_qkv", "in_proj_z", "out_proj")),
    *_under(("self_attn",), ("qkv_proj", "output_gate", "out_proj")),
)
STATE_SPACE = _under(("mixer", "mamba"), ("in_proj", "out_proj"))
DENSE = (
    *_under(("mlp", "feed_forward"), PLAIN),
    *_under(("mixer",), ("up_proj", "down_proj")),
    *_under(("mlp",), ("gate_up_proj", "down_proj")),
    *_under(("mlp",), ("fc1", "fc2")),
)
SHARED = (
    *_under(("mlp.shared_experts", "mlp.shared_expert", "feed_forward.shared_expert"), PLAIN),
    *_under(("mixer.shared_experts",), ("up_proj", "down_proj")),
)
EXPERTS = (
    *_under(("mlp.experts.0", "block_sparse_moe.experts.0"), PLAIN),
    *_under(("mlp.experts", "feed_forward.experts"), ("gate_up_proj", "down_proj")),
    *_under(("block_sparse_moe.experts.0",), ("w1", "w2", "w3")),
    *_under(("mixer.experts.0",), ("up_proj", "down_proj")),
)


def spellings(layer: Layer) -> Mapping[TensorClass, tuple[tuple[str, ...], ...]]:
    """The ways to spell the matrices of each class that a layer has, each a tuple of names in the layer."""
    found: dict[TensorClass, tuple[tuple[str, ...], ...]] = {}
    match layer.mixer:
        case None:
            pass
        case LatentAttention() | CompressedAttention():
            found["attention"] = LATENT_ATTENTION
        case LinearAttention() | LightningAttention():
            found["attention"] = LINEAR_ATTENTION
        case StateSpace():
            found["attention"] = STATE_SPACE
        case _:
            found["attention"] = ATTENTION
    if isinstance(layer.ffn, Dense):
        found["ffn"] = DENSE
    elif isinstance(layer.ffn, MoE):
        found["expert"] = EXPERTS
        if layer.ffn.shared_width:
            found["ffn"] = SHARED
    return found


class Patterns:
    """Patterns of one list: plain names, names with wildcards, or regular expressions after "re:".

    A plain name stands for itself and all below it, wherever it begins: `mlp.gate` is not `mlp.gate_proj`.
    Raises `UsageError` for a regular expression that is none.
    """

    def __init__(self, patterns: Iterable[object], origin: str) -> None:
        self._general: list[re.Pattern[str] | str] = []
        self._by_layer: dict[int, list[re.Pattern[str] | str]] = {}
        for pattern in patterns:
            text = str(pattern)
            if text.startswith("re:"):
                if len(text) > 1000 or NESTED.search(text):
                    raise UsageError(
                        f"{origin}: '{shorten(text)}' is not read", "repeats within repeats can take forever"
                    )
                try:
                    self._general.append(re.compile(text[3:]))
                except re.error as error:
                    what = f"{origin}: '{shorten(text)}' is no regular expression"
                    raise UsageError(what, str(error)) from None
                continue
            if any(word in text for word in ELSEWHERE):
                continue
            at = re.match(r"(?:.*?\.)?(layers\.(\d+)(?:\.|$).*)", text)
            if at:
                self._by_layer.setdefault(int(at[2]), []).append(at[1])
            else:
                self._general.append(text)

    @property
    def per_layer(self) -> bool:
        """Whether layers can differ."""
        return bool(self._by_layer) or any(isinstance(p, re.Pattern) for p in self._general)

    def names(self, layer: int, module: str) -> bool:
        """Whether a module of a layer is named."""
        full = f"layers.{layer}.{module}"
        return any(_matches(p, full) for p in self._of(layer))

    def _of(self, layer: int) -> Iterator[re.Pattern[str] | str]:
        yield from self._general
        yield from self._by_layer.get(layer, ())


def _matches(pattern: re.Pattern[str] | str, name: str) -> bool:
    if isinstance(pattern, re.Pattern):
        return any(pattern.match(root + name) for root in ROOTS)
    if any(c in pattern for c in "*?["):
        options = (root + name for root in ROOTS)
        return any(fnmatchcase(o, pattern) or fnmatchcase(o, f"{pattern}.*") for o in options)
    return f".{pattern}." in f".model.{name}."
