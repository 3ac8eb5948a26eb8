"""Rows of a kernel table -> formulas: which formula, which dims, which labels.

The table has the columns of the kernel suite: one row per measured kernel, blanks as NaN or "".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.effects import Quantity
from chipwise.calibrate.fit_kernels import Rows
from chipwise.calibrate.kernel_exchanges import exchange_rows
from chipwise.calibrate.kernel_labels import (
    ATTENTION_BY_KERNEL,
    EXPERTS_BY_KERNEL,
    KINDS,
    RUNTIMES,
    TIMINGS,
    TYPES,
    WIDEST_GROUP,
    Columns,
    causal_of,
    first_of,
    mapped,
    number_of,
    text_of,
    type_column,
    types_of,
)
from chipwise.calibrate.kernel_priors import COLLECTIVE, DECODE, EXPERTS, GEMM, POINTWISE, PROMPT
from chipwise.catalog.chip import Chip
from chipwise.cost.simt import (
    DecodeParameters,
    ExpertParameters,
    GemmParameters,
    Operands,
    PointwiseParameters,
    PromptParameters,
    QuantiseParameters,
    Rates,
    Routing,
    balanced,
    decode_attention,
    experts,
    gemm,
    pointwise,
    power_law,
    prompt_attention,
    quantise,
    uniform,
)
from chipwise.units import Array, Real
from chipwise.workload.op import causal_pairs

__all__ = ["OPS", "kernel_rows", "known"]

Index = NDArray[np.intp]
Model = Callable[[Mapping[str, Real], Index], Array]


def known(columns: Columns, chips: Mapping[str, Chip]) -> NDArray[np.bool_]:
    """Rows whose chip is a SIMT chip of the catalogue and whose operator and data type have a formula."""
    simt = {c for c, chip in chips.items() if chip.family == "simt"}
    op = columns["op"].astype(str)
    good = np.isin(columns["chip"].astype(str), list(simt)) & np.isin(op, list(OPS))
    types = np.isin(types_of(columns), list(TYPES))
    free = np.isin(op, ["softmax", *KINDS])
    return np.asarray(good & (types | free))


def kernel_rows(columns: Columns, chips: Mapping[str, Chip]) -> Rows:
    """The rows of one operator (all of column `op` equal, all `known`) as a formula with labels.

    `latency_us` may be missing: measured times are NaN then.
    """
    op = str(columns["op"][0])
    size = len(columns["op"])
    model, labels = OPS[op][0](columns, chips)
    latency = columns["latency_us"].astype(float) if "latency_us" in columns else np.full(size, np.nan)
    every = {**_common(columns, chips), **labels}
    # kinds of exchange differ in how far they scatter, and so do generations of chips with their stacks
    return Rows(every, latency * 1e-6, model, alike=every["kind" if "kind" in every else "generation"])


def _common(columns: Columns, chips: Mapping[str, Chip]) -> dict[str, NDArray[np.str_]]:
    chip = text_of(columns, "chip")
    return {
        "chip": mapped(chip, lambda c: chips[c].software_id),
        "vendor": mapped(chip, lambda c: chips[c].software_vendor),
        "generation": mapped(chip, lambda c: chips[c].generation),
        "runtime": mapped(text_of(columns, "framework"), lambda f: RUNTIMES.get(f, f)),
        "launch": mapped(text_of(columns, "timing"), lambda t: first_of(t, TIMINGS, "other")),
    }


def _rates(columns: Columns, chips: Mapping[str, Chip], dtypes: NDArray[np.str_]) -> Rates:
    """Rates of every row: its chip with its data type."""
    pairs = np.char.add(np.char.add(text_of(columns, "chip"), " "), dtypes)
    keys, codes = np.unique(pairs, return_inverse=True)
    each = [Rates.of(chips[str(k).split(" ")[0]], str(k).split(" ")[1]) for k in keys]

    def column(name: str) -> Array:
        return np.array([getattr(r, name) for r in each], dtype=float)[codes]

    return Rates(**{name: column(name) for name in Rates.__slots__})


def _take(value: Any, index: Index) -> Any:
    """The rows at `index` of a value that holds arrays: dict or dataclass with slots."""
    if isinstance(value, dict):
        return {k: v[index] for k, v in value.items()}
    return type(value)(**{name: getattr(value, name)[index] for name in value.__slots__})


def _pick(parameters: type[Any], values: Mapping[str, Real], prefix: str = "") -> Any:
    return parameters(**{name: values[prefix + name] for name in parameters.__slots__})


def _gemm(columns: Columns, chips: Mapping[str, Chip]) -> tuple[Model, dict[str, NDArray[np.str_]]]:
    types = types_of(columns)
    rates = _rates(columns, chips, mapped(types, lambda t: TYPES[t][1]))
    runtime = text_of(columns, "framework")
    timing = text_of(columns, "timing")
    replay = np.char.find(timing, "cuda-graph") >= 0
    # up to six copies of the weights in turn, except where the source says one
    single = (runtime == "vllm") & np.isin(types, ["fp8_block", "nvfp4"])
    rotated = np.char.find(timing, "rotating") >= 0
    profiled = np.char.find(timing, "profiler") >= 0
    copies = np.where(replay & ~single, 5.0, np.where(rotated | profiled, np.inf, 1.0))
    operands = Operands(
        weight=type_column(types, 2),
        activation=type_column(types, 3),
        output=type_column(types, 4),
        weight_copies=copies,
        activations_cached=np.where(rotated, 0.0, 1.0),
        split_limit=type_column(types, 6),
    )
    dims = {name: number_of(columns, name, 1.0) for name in ("m", "n", "k", "batch")}
    dims["quantises"] = type_column(types, 5) * replay

    def model(values: Mapping[str, Real], i: Index) -> Array:
        d, r = _take(dims, i), _take(rates, i)
        product = gemm(
            d["m"], d["n"], d["k"], _take(operands, i), r, _pick(GemmParameters, values), batch=d["batch"]
        )
        before = quantise(d["m"], d["k"], r, _pick(QuantiseParameters, values, "quantise_"), d["quantises"])
        return np.asarray((product + before).total_s)

    return model, {"dtype": mapped(types, lambda t: TYPES[t][0])}


def _attention_labels(columns: Columns) -> dict[str, NDArray[np.str_]]:
    library = mapped(text_of(columns, "kernel"), lambda k: first_of(k, ATTENTION_BY_KERNEL, "other"))
    runtime = mapped(text_of(columns, "framework"), lambda f: RUNTIMES.get(f, f))
    cache = text_of(columns, "kv_dtype")
    types = text_of(columns, "dtype")
    encoder = ~causal_of(columns)
    library = np.where(encoder, np.char.add(library, "_encoder"), library)
    same = number_of(columns, "heads") == number_of(columns, "kv_heads")
    return {
        "library": np.char.add(np.char.add(runtime, "/"), library),
        "dtype": np.where(types == "fp8", "fp8", "b16"),
        "cache": np.where(np.where(cache == "", types, cache) == "fp8", "fp8", "b16"),
        "head_dim": number_of(columns, "head_dim").astype(int).astype(str),
        "heads": np.where(same, "mha", "gqa"),
    }


def _prompt(columns: Columns, chips: Mapping[str, Chip]) -> tuple[Model, dict[str, NDArray[np.str_]]]:
    labels = _attention_labels(columns)
    labels["library"] = np.array([x.split("/", 1)[1] for x in labels["library"].tolist()])
    latent = text_of(columns, "op") == "mla_prefill"
    rates = _rates(columns, chips, np.where(labels["dtype"] == "fp8", "fp8", "bf16"))
    causal = causal_of(columns)
    q, kv = number_of(columns, "q_len", 1.0), number_of(columns, "kv_len", 1.0)
    window = number_of(columns, "window")
    heads = number_of(columns, "heads", 1.0)
    dims = {
        "batch": number_of(columns, "batch", 1.0),
        "q": q,
        "kv": kv,
        "heads": heads,
        # prompts of latent attention expand the cache to full heads of 192 and 128
        "kv_heads": np.where(latent, heads, number_of(columns, "kv_heads", 1.0)),
        "head_dim": np.where(latent, 192.0, number_of(columns, "head_dim", 128.0)),
        "value_dim": np.where(latent, 128.0, number_of(columns, "head_dim", 128.0)),
        "pairs": np.where(causal, causal_pairs(q, kv, window), q * kv),
        "cache_bytes": np.where(labels["cache"] == "fp8", 1.0, 2.0),
        "window": window,
        "causal": causal.astype(float),
    }

    def model(values: Mapping[str, Real], i: Index) -> Array:
        cost = prompt_attention(**_take(dims, i), rates=_take(rates, i), p=_pick(PromptParameters, values))
        return np.asarray(cost.total_s)

    return model, labels


def _decode(columns: Columns, chips: Mapping[str, Chip]) -> tuple[Model, dict[str, NDArray[np.str_]]]:
    labels = _attention_labels(columns)
    latent = text_of(columns, "op") == "mla_decode"
    rates = _rates(columns, chips, np.full(len(latent), "bf16"))
    width = number_of(columns, "head_dim", 128.0)
    dims = {
        "batch": number_of(columns, "batch", 1.0),
        "kv": number_of(columns, "kv_len", 1.0),
        "heads": number_of(columns, "heads", 1.0),
        # all heads share one latent of 512 + 64, whose values are part of its keys
        "kv_heads": np.where(latent, 1.0, number_of(columns, "kv_heads", 1.0)),
        "head_dim": np.where(latent, 576.0, width),
        "value_dim": np.where(latent, 0.0, width),
        "cache_bytes": np.where(labels["cache"] == "fp8", 1.0, 2.0),
        "window": number_of(columns, "window"),
        "resident": (np.char.find(text_of(columns, "timing"), "cuda-graph") >= 0).astype(float),
    }
    wide = dims["heads"] > WIDEST_GROUP * dims["kv_heads"]
    dims["packed"] = np.where(wide & (labels["library"] == "trtllm/trtllm") & ~latent, 0.0, 1.0)

    def model(values: Mapping[str, Real], i: Index) -> Array:
        cost = decode_attention(**_take(dims, i), rates=_take(rates, i), p=_pick(DecodeParameters, values))
        return np.asarray(cost.total_s)

    return model, labels


def _experts(columns: Columns, chips: Mapping[str, Chip]) -> tuple[Model, dict[str, NDArray[np.str_]]]:
    types = types_of(columns)
    rates = _rates(columns, chips, mapped(types, lambda t: TYPES[t][1]))
    kernel = text_of(columns, "kernel")
    spread = text_of(columns, "distribution")
    law = np.char.find(spread, "power_law_") >= 0
    exponent = np.array([float(s[10:]) if found else 1.1 for s, found in zip(spread, law, strict=True)])
    dims = {
        "tokens": number_of(columns, "tokens", 1.0),
        "hidden": number_of(columns, "hidden", 1.0),
        "inter": number_of(columns, "inter", 1.0) / number_of(columns, "tp", 1.0),
        "num_experts": number_of(columns, "experts", 1.0),
        "weight": type_column(types, 2),
        "activation": type_column(types, 3),
        "gated": 1.0 - (np.char.find(kernel, "nongated") >= 0),
        "resident": (np.char.find(text_of(columns, "timing"), "cuda-graph") >= 0).astype(float),
    }
    top_k, ranks = number_of(columns, "topk", 1.0), number_of(columns, "ep", 1.0)
    even, law_f = (spread == "balanced"), law

    def model(values: Mapping[str, Real], i: Index) -> Array:
        d = _take(dims, i)
        where = (d["tokens"], d["num_experts"], top_k[i], ranks[i])
        options = (
            balanced(*where),
            uniform(*where),
            power_law(*where, exponent=exponent[i], crowding=values["crowding"]),
        )
        choice = np.where(even[i], 0, np.where(law_f[i], 2, 1))
        routing = Routing(
            np.choose(choice, [o.distinct for o in options]), np.choose(choice, [o.rows for o in options])
        )
        cost = experts(routing, **d, rates=_take(rates, i), p=_pick(ExpertParameters, values))
        return np.asarray(cost.total_s)

    library = mapped(kernel, lambda k: first_of(k, EXPERTS_BY_KERNEL, k or "other"))
    return model, {"dtype": mapped(types, lambda t: TYPES[t][0]), "library": library}


def _pointwise(columns: Columns, chips: Mapping[str, Chip]) -> tuple[Model, dict[str, NDArray[np.str_]]]:
    op = text_of(columns, "op")
    rates = _rates(columns, chips, np.full(len(op), "bf16"))
    # every source runs the kernel again and again on the same buffers
    dims = {"num_bytes": number_of(columns, "bytes", 1.0), "resident": np.ones(len(op))}

    def model(values: Mapping[str, Real], i: Index) -> Array:
        cost = pointwise(**_take(dims, i), rates=_take(rates, i), p=_pick(PointwiseParameters, values))
        return np.asarray(cost.total_s)

    return model, {"library": np.where(op == "elementwise", text_of(columns, "kernel"), op)}


Adapter = Callable[[Columns, Mapping[str, Chip]], tuple[Model, dict[str, NDArray[np.str_]]]]

OPS: Mapping[str, tuple[Adapter, Mapping[str, Quantity]]] = {
    "gemm": (_gemm, GEMM),
    "batched_gemm": (_gemm, GEMM),
    "attention_prefill": (_prompt, PROMPT),
    "mla_prefill": (_prompt, PROMPT),
    "attention_decode": (_decode, DECODE),
    "mla_decode": (_decode, DECODE),
    "moe": (_experts, EXPERTS),
    "layernorm": (_pointwise, POINTWISE),
    "softmax": (_pointwise, POINTWISE),
    "elementwise": (_pointwise, POINTWISE),
    "allreduce": (exchange_rows, COLLECTIVE),
    "allgather": (exchange_rows, COLLECTIVE),
    "reducescatter": (exchange_rows, COLLECTIVE),
    "alltoall": (exchange_rows, COLLECTIVE),
    "p2p": (exchange_rows, COLLECTIVE),
}
"""Formula and priors of each operator of the kernel suite."""
