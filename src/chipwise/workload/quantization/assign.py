"""Rules on module names -> precision by tensor class, for the model and for layers that differ.

Checkpoints name the same matrix in several ways. A layer's candidates are listed per tensor class; only the
way that a pattern actually meets counts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from chipwise.errors import UsageError, shorten
from chipwise.workload.formats import Format, get_format
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
from chipwise.workload.precision import LARGE, Precision, TensorClass
from chipwise.workload.quantization.scheme import Quantisation, Scheme
from chipwise.workload.reader import Reader

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


Chosen = Mapping[TensorClass, Scheme | None]


def assign(q: Quantisation, base: Format, layers: Sequence[Layer], r: Reader) -> tuple[Precision, tuple[Layer, ...]]:
    """The precision of most layers, and the layers, those that differ with a precision of their own.

    A class has one format per layer: where only some of its matrices are named, most decide, and that is
    recorded as an assumption. Router and norms stay in `base`, embedding and head where `q` does not say otherwise:
    runtimes leave them alone.
    """
    default, chosen = _of_layers(q, layers, r)
    common = {cls: _most([c[cls] for c in chosen if cls in c], default) for cls in LARGE}
    precision = _precision(common, base, q)
    own: dict[tuple[Layer, tuple[tuple[TensorClass, Scheme | None], ...]], Layer] = {}
    out: list[Layer] = []
    for layer, mine in zip(layers, chosen, strict=True):
        if all(common[cls] == scheme for cls, scheme in mine.items()):
            out.append(layer)
            continue
        what = (layer, tuple(mine.items()))
        if what not in own:
            own[what] = replace(layer, precision=_precision({**common, **mine}, base, q))
        out.append(own[what])
    return precision, tuple(out)


def _of_layers(q: Quantisation, layers: Sequence[Layer], r: Reader) -> tuple[Scheme | None, list[Chosen]]:
    """What the rules say of whatever they do not name, and of the classes of each layer."""
    ignored = Patterns(q.ignored, r.origin)
    rules = tuple((Patterns(rule.targets, r.origin) if rule.targets else None, rule.scheme) for rule in q.rules)
    default = next((scheme for patterns, scheme in rules if patterns is None), None)
    memo: dict[tuple[int, Layer], Chosen] = {}
    chosen: list[Chosen] = []
    lists = [ignored, *(patterns for patterns, _ in rules if patterns)]
    alike = not any(p.per_layer for p in lists)
    for index, layer in enumerate(layers):
        key = (0 if alike else index, layer)
        if key not in memo:
            memo[key] = _of_layer(index, layer, rules, ignored, default, r)
        chosen.append(memo[key])
    return default, chosen


def _of_layer(
    index: int,
    layer: Layer,
    rules: Sequence[tuple[Patterns | None, Scheme]],
    ignored: Patterns,
    default: Scheme | None,
    r: Reader,
) -> Chosen:
    def scheme(module: str) -> Scheme | None:
        if ignored.names(index, module):
            return None
        return next((s for patterns, s in rules if patterns is None or patterns.names(index, module)), None)

    found: dict[TensorClass, Scheme | None] = {}
    for cls, ways in spellings(layer).items():
        best: list[Scheme | None] = [default]
        met = 0
        for names in ways:
            schemes = [scheme(name) for name in names]
            count = sum(s != default for s in schemes)
            if count > met:
                best, met = schemes, count
        found[cls] = _most(best, None)
        if len(set(best)) > 1:
            r.assume(f"{cls} matrices are quantised in more than one way: taken as most of them are")
    return found


def _most(schemes: Sequence[Scheme | None], empty: Scheme | None) -> Scheme | None:
    """The commonest; of equals the one that comes first."""
    return Counter(schemes).most_common(1)[0][0] if schemes else empty


def _precision(chosen: Chosen, base: Format, q: Quantisation) -> Precision:
    weights = {cls: s.weight for cls, s in chosen.items() if s}
    activations = {cls: s.activation for cls, s in chosen.items() if s and s.activation}
    names = dict.fromkeys(f.name for f in sorted(weights.values(), key=lambda f: f.mean_bits))
    if q.tables is not None:
        weights |= {"embedding": q.tables, "head": q.tables}
    precision = Precision("+".join(names) or base.name, base, weights, activations)
    return precision.with_kv(get_format(q.kv).name) if q.kv else precision
