"""Operators as they are asked, in columns: one row per operator and chip.

`KernelRequest` is one such row and tables of measured kernels are many, so that both are priced by the same code:
question -> `Op`, `Run` and labels -> `cost.price`. Texts and numbers are those of the options of `chipwise kernel`;
what is left out has the default of `DEFAULTS`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.cost.run import Run
from chipwise.cost.simt.routing import spread
from chipwise.units import Real
from chipwise.workload import op as ops
from chipwise.workload.formats import FORMATS, Format
from chipwise.workload.op import Op

Questions = Mapping[str, NDArray[Any]]
"""Columns by name: those of `DEFAULTS`, and what else a table has."""

DEFAULTS: Mapping[str, str | float] = {
    "op": "gemm", "chip": "", "dtype": "bf16", "compute": "", "routing": "random", "kind": "", "runtime": "vllm",
    "library": "", "launch": "graph", "fabric": "", "algorithm": "ring",
    "m": 1.0, "n": 1.0, "k": 1.0, "batch": 1.0, "q": 1.0, "kv": 1.0, "heads": 1.0, "kv_heads": 1.0,
    "head_dim": 128.0, "value_dim": 128.0, "window": 0.0, "causal": 1.0, "prompt": 0.0, "tokens": 1.0, "hidden": 1.0,
    "inter": 1.0, "experts": 1.0, "top_k": 1.0, "matrices": 3.0, "ranks": 1.0, "domain": np.inf, "bytes": np.nan,
    "copies": np.inf, "rotating": 0.0, "fetched": 0.0, "quantised": 0.0,
}  # fmt: skip
"""Columns of a question and what they are where nothing was said."""

KINDS = ("gemm", "attention", "experts", "norm", "softmax", "elementwise", "collective")
"""Operators that are priced in columns."""

_WIDE = FORMATS["bf16"]
DTYPES: Mapping[str, tuple[Format, Format]] = {
    "bf16": (_WIDE, _WIDE),
    "fp16": (FORMATS["fp16"], FORMATS["fp16"]),
    "fp32": (FORMATS["fp32"], FORMATS["fp32"]),
    "fp8": (FORMATS["fp8"], FORMATS["fp8"]),
    "fp8_block": (FORMATS["fp8_block"], FORMATS["fp8_block"]),
    "int8": (FORMATS["int8"], FORMATS["int8"]),
    "nvfp4": (FORMATS["nvfp4"], FORMATS["nvfp4"]),
    "int4": (FORMATS["int4"], _WIDE),
    "mxfp4": (FORMATS["mxfp4"], _WIDE),
    "int8_wo": (FORMATS["int8"], _WIDE),
    "mxfp4_w4a4": (FORMATS["mxfp4"], FORMATS["mxfp4"]),
    "mxfp4_w4a8": (FORMATS["mxfp4"], FORMATS["fp8"]),
    "fp16_fp32": (FORMATS["fp16"], Format("fp16", 16, "fp32")),
}
"""Data types: formats of the weights (of attention: of the cache) and of the activations."""

ROUTINGS: Mapping[str, float] = {"balanced": 0.0, "random": np.nan, "skewed": 1.2}
"""How tokens are spread over experts: see `cost.simt.routing.spread`."""
_LAW = "power_law_"

ROW_WORK: Mapping[str, tuple[float, float]] = {
    "norm": (2.0, 4.0),
    "softmax": (2.0, 5.0),
    "add": (3.0, 1.0),
    "gated": (3.0, 6.0),
    "gelu": (2.0, 8.0),
    "quantise": (1.5, 2.0),
}
"""Work on rows: 16-bit reads and writes of each value, and operations on it."""

EXCHANGES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "p2p", "expert_exchange")
"""Kinds of collectives; "expert_exchange" is dispatch or combine of routed tokens by kernels made for it."""

FABRICS = ("link", "pcie", "pairs")
"""What joins the ranks of a question: the fabric of their chips, the host's bus, or links between two with the bus
between pairs."""

_LATENT_DIM = 256.0


def questions(size: int = 1, **given: Any) -> dict[str, NDArray[Any]]:
    """Columns of `size` questions: texts, numbers or arrays, and defaults for what is not given."""
    return {name: np.array(np.broadcast_to(given.get(name, default), size)) for name, default in DEFAULTS.items()}


def taken(asked: Questions, index: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Some of the questions, with what else their table has."""
    return {name: column[index] for name, column in asked.items()}


def alike(asked: Questions) -> Iterator[NDArray[np.intp]]:
    """Questions that the same formula answers, numbers aside: positions of one operator, its
    types, phase, kind and algorithm at a time."""
    key = asked["op"].astype(str)
    if not len(key):
        return
    phase = (asked["prompt"] > 0) + 2 * (asked["q"] == 1.0) + 4 * (asked["batch"] > 1.0)
    phase = phase + 8 * (asked["value_dim"] != asked["head_dim"]) + 16 * _latent(asked)
    more = (
        asked["dtype"], asked["compute"], phase.astype(int).astype(str), asked["causal"].astype(str),
        np.where(np.isin(key, ("elementwise", "norm", "softmax", "collective")), asked["kind"], ""), asked["algorithm"],
    )  # fmt: skip
    for column in more:
        key = np.char.add(np.char.add(key, "|"), column.astype(str))
    _, codes = np.unique(key, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)


def exponent_of(routing: str) -> float:
    """The exponent of a routing by name: of `ROUTINGS`, or `power_law_1.01`. Raises `ValueError`."""
    if routing in ROUTINGS:
        return ROUTINGS[routing]
    exponent = float(routing.removeprefix(_LAW)) if routing.startswith(_LAW) else np.nan
    if not 0.0 < exponent < 10.0:
        raise ValueError(routing)
    return exponent


def op_of(asked: Questions, crowding: float = 0.7) -> Op:
    """The operator of questions that are `alike`; `crowding` of routed rows on the busiest rank.

    Raises `KeyError` for an operator or type that is not known.
    """
    op, dtype = str(asked["op"][0]), str(asked["dtype"][0])
    weight, activation = DTYPES[dtype]
    d = {name: asked[name] for name in asked if name in DEFAULTS and asked[name].dtype.kind == "f"}
    if op == "gemm":
        return ops.gemm(d["m"], d["n"], d["k"], weight, activation, batch=d["batch"])
    if op == "attention":
        return _attention(asked, d, weight)
    if op == "experts":
        return _experts(asked, d, weight, activation, crowding)
    kind = op if op in ROW_WORK else str(asked["kind"][0])
    passes, flops = ROW_WORK[kind if kind in ROW_WORK else "add"]
    name = {"norm": "layernorm"}.get(op, op)
    found = ops.pointwise(d["m"] * d["n"], passes, name=name, flops_each=flops)
    return replace(found, activation_bytes=np.where(np.isnan(d["bytes"]), found.activation_bytes, d["bytes"]))


def run_of(asked: Questions) -> Run:
    """Where the operators find their operands."""
    return Run(asked["copies"], 1.0 - asked["rotating"], asked["fetched"])


def _latent(asked: Questions) -> NDArray[np.bool_]:
    """Attention over one latent for all heads, whose values are a part of the keys."""
    wide = (asked["head_dim"] > _LATENT_DIM) & (asked["value_dim"] != asked["head_dim"])
    return np.asarray((asked["op"] == "attention") & wide & (asked["kv_heads"] == 1.0))


def _attention(asked: Questions, d: Mapping[str, Real], cache: Format) -> Op:
    latent = bool(_latent(asked)[0])
    causal = bool(asked["causal"][0])
    found = ops.attention(
        d["batch"], d["q"], d["kv"], d["heads"], d["kv_heads"], d["head_dim"], cache, window=d["window"],
        causal=causal, value_dim=d["value_dim"], latent=latent,
    )  # fmt: skip
    compute = str(asked["compute"][0])
    return replace(found, compute=compute or found.compute, dims={**found.dims, "prompt": float(asked["prompt"][0])})


def _experts(asked: Questions, d: Mapping[str, Real], weight: Format, activation: Format, crowding: float) -> Op:
    """Gate, up and down of the experts of the busiest rank that tokens hit."""
    exponent = np.array([exponent_of(str(r)) for r in asked["routing"].tolist()])
    hidden, inner, matrices = d["hidden"], d["inter"], d["matrices"]
    routing = spread(d["tokens"], d["experts"], d["top_k"], d["ranks"], exponent=exponent, crowding=crowding)
    return Op(
        kind="experts",
        name="experts",
        compute=activation.compute,
        weight=weight.name,
        flops=2.0 * routing.rows * hidden * inner * matrices,
        weight_bytes=routing.distinct * matrices * hidden * inner * weight.mean_bits / 8.0,
        activation_bytes=routing.rows * (2.0 * hidden + matrices * inner) * 2.0,
        launches=4.0,
        dims={
            "tokens": d["tokens"],
            "top_k": d["top_k"],
            "experts": d["experts"],
            "local_experts": d["experts"] / d["ranks"],
            "hidden": hidden,
            "inner": inner,
            "matrices": matrices,
            "exponent": exponent,
            "hit": routing.distinct,
            "rows": routing.rows,
        },
    )
