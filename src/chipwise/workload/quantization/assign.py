"""Rules on module names -> precision by tensor class, for the model and for layers that differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from chipwise.workload.formats import Format, get_format
from chipwise.workload.model import Layer
from chipwise.workload.precision import LARGE, Precision, TensorClass
from chipwise.workload.quantization.modules import Patterns, spellings
from chipwise.workload.quantization.scheme import Quantisation, Scheme
from chipwise.workload.reader import Reader

Chosen = Mapping[TensorClass, Scheme | None]


def assign(
    q: Quantisation, base: Format, layers: Sequence[Layer], r: Reader
) -> tuple[Precision, tuple[Layer, ...]]:
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
    rules = tuple(
        (Patterns(rule.targets, r.origin) if rule.targets else None, rule.scheme) for rule in q.rules
    )
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
