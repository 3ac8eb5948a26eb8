"""A table of measured kernels -> questions: data types, runtimes, kernel names and timings as options of `kernel`.

Columns are arrays by name: one row per measured kernel, blanks as NaN or "". What a source says in texts of its own
(how it timed a call, which pairs of chips had a link) becomes a number or a name here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.kernel_questions import questions
from chipwise.catalog.parsed import names
from chipwise.parallel.collective import DIRECT_BYTES
from chipwise.units import Array

Columns = Mapping[str, NDArray[Any]]
_Texts = NDArray[np.str_]
_Flags = NDArray[np.bool_]

# What is read of a table; `latency_us`, the measurement, is not among it.
TEXT = ("chip", "op", "kernel", "framework", "dtype", "kv_dtype", "causal", "distribution", "timing", "notes")
NUMBERS = (
    "m", "n", "k", "batch", "heads", "kv_heads", "head_dim", "q_len", "kv_len", "window", "tokens", "hidden",
    "inter", "experts", "topk", "tp", "ep", "bytes", "ranks",
)  # fmt: skip

_NAMES = names("calibrate/data/kernel_names.toml")
"""Names in tables of measured kernels and what they are, by what they are names of."""
OPS: Mapping[str, str] = _NAMES["ops"]
"""Operators of the table -> those of a question."""
TIMED_ALONE = frozenset({*_NAMES["runtimes"].values(), "aiter", "nccl", "oneccl"})
"""Software whose operators were timed, and that serves no model."""


def asked_of(columns: Columns) -> dict[str, NDArray[Any]]:
    """The question of every row, `op` blank where it is not known.

    Beside it what a fit reads: `latency_us`, where it was measured; `source`, the operator as the table names it;
    `variant`, types and kernel by their names there.
    """
    op = text_of(columns, "op")
    size = len(op)
    types = types_of(columns)
    timing, framework, kernel = (text_of(columns, name) for name in ("timing", "framework", "kernel"))
    replay = np.char.find(timing, "cuda-graph") >= 0
    asked = questions(
        size,
        op=mapped(op, lambda o: OPS.get(o, "")),
        chip=text_of(columns, "chip"),
        dtype=mapped(types, lambda t: _NAMES["types"].get(t, (t, False))[0]),
        runtime=mapped(framework, lambda f: _NAMES["runtimes"].get(f, f)),
        launch=mapped(timing, lambda t: _first_of(t, _NAMES["timings"], "other")),
    )
    for operator, read in _READERS.items():
        at = np.flatnonzero(asked["op"] == operator)
        if len(at):
            part = {name: values[at] for name, values in columns.items()}
            for name, values in read(part, types[at], kernel[at], replay[at]).items():
                wide = asked[name]
                if wide.dtype.kind == "U":
                    wide = wide.astype(f"U{max(wide.dtype.itemsize, np.asarray(values).dtype.itemsize) // 4}")
                wide[at] = values
                asked[name] = wide
    asked["source"] = op
    asked["variant"] = np.char.add(np.char.add(types, text_of(columns, "kv_dtype")), np.char.add("|", kernel))
    if "latency_us" in columns:
        asked["latency_us"] = columns["latency_us"].astype(float)
    return asked


_Read = dict[str, Any]


def _gemm(columns: Columns, types: _Texts, kernel: _Texts, replay: _Flags) -> _Read:
    timing, framework = text_of(columns, "timing"), text_of(columns, "framework")
    # up to six copies of the weights in turn, except where the source says one
    single = (framework == "vllm") & np.isin(types, ["fp8_block", "nvfp4"])
    rotated = np.char.find(timing, "rotating") >= 0
    profiled = np.char.find(timing, "profiler") >= 0
    return {
        **{name: _number_of(columns, name, 1.0) for name in ("m", "n", "k", "batch")},
        "copies": np.where(replay & ~single, 5.0, np.where(rotated | profiled, np.inf, 1.0)),
        "rotating": rotated,
        "quantised": mapped(types, lambda t: str(int(_NAMES["types"].get(t, ("", False))[1]))).astype(float) * replay,
        # an output projection follows attention, which leaves HBM idle: its weights are fetched meanwhile
        "fetched": kernel == "o_proj",
    }


def _attention(columns: Columns, types: _Texts, kernel: _Texts, replay: _Flags) -> _Read:
    op = text_of(columns, "op")
    latent, prompt = np.char.find(op, "mla") >= 0, np.char.find(op, "prefill") >= 0
    cache, heads = text_of(columns, "kv_dtype"), _number_of(columns, "heads", 1.0)
    cache = np.where(cache == "", types, cache)
    width = _number_of(columns, "head_dim", 128.0)
    q = np.where(prompt, _number_of(columns, "q_len", 1.0), 1.0)
    # latent caches hold 512 + 64 for all heads, whose values are part of the keys; prompts expand them to full heads
    return {
        "dtype": np.where(cache == "fp8", "fp8", "bf16"),
        "compute": np.where(prompt & (types == "fp8"), "fp8", ""),
        "library": mapped(kernel, lambda k: _first_of(k, _NAMES["attention"], "other")),
        "batch": _number_of(columns, "batch", 1.0),
        "q": q,
        "kv": _number_of(columns, "kv_len", 1.0),
        "heads": heads,
        "kv_heads": np.where(latent, np.where(prompt, heads, 1.0), _number_of(columns, "kv_heads", 1.0)),
        "head_dim": np.where(latent, np.where(prompt, 192.0, 576.0), width),
        "value_dim": np.where(latent, np.where(prompt, 128.0, 512.0), width),
        "window": _number_of(columns, "window"),
        "causal": _causal_of(columns),
        "prompt": prompt & (q == 1.0),
        "copies": np.where(replay & ~prompt, 1.0, np.inf),
    }


def _experts(columns: Columns, _types: _Texts, kernel: _Texts, replay: _Flags) -> _Read:
    spread = text_of(columns, "distribution")
    named = (spread == "balanced") | (np.char.find(spread, "power_law_") >= 0)
    same = ("tokens", "hidden", "experts")
    return {
        **{name: _number_of(columns, name, 1.0) for name in same},
        "inter": _number_of(columns, "inter", 1.0) / _number_of(columns, "tp", 1.0),
        "top_k": _number_of(columns, "topk", 1.0),
        "ranks": _number_of(columns, "ep", 1.0),
        "routing": np.where(named, spread, "random"),
        "library": mapped(kernel, lambda k: _first_of(k, _NAMES["experts"], k or "other")),
        "matrices": 3.0 - (np.char.find(kernel, "nongated") >= 0),
        "copies": np.where(replay, 1.0, np.inf),
    }


def _row_work(columns: Columns, _types: _Texts, kernel: _Texts, _replay: _Flags) -> _Read:
    op = text_of(columns, "op")
    n = _number_of(columns, "n", np.nan)
    return {
        "m": _number_of(columns, "m", 1.0),
        "n": np.where(np.isnan(n), _number_of(columns, "k", 1.0), n),
        "bytes": _number_of(columns, "bytes", 1.0),
        "library": np.where(op == "elementwise", np.where(kernel == "", "other", kernel), op),
        "dtype": "bf16",
        # every source runs the kernel again and again on the same buffers
        "copies": 1.0,
    }


def _exchange(columns: Columns, _types: _Texts, kernel: _Texts, _replay: _Flags) -> _Read:
    notes, size = text_of(columns, "notes"), _number_of(columns, "bytes", 1.0)
    experts = np.char.find(kernel, "deepep/") >= 0
    kind = mapped(text_of(columns, "op"), lambda o: _NAMES["exchanges"][o])
    # larger buffers than a runtime's own kernels take go to the library, which cannot sum integers in the switch
    captured = (np.char.find(kernel, "graph") >= 0) | (np.char.find(kernel, "TRTLLM") >= 0)
    own = captured & ((size <= DIRECT_BYTES) | (np.char.find(kernel, "MNNVL") >= 0))
    library = np.where(captured & ~own, "NCCL", np.where(kernel == "", "other", kernel))
    whole = (text_of(columns, "dtype") == "int8") & np.isin(kind, ("all_reduce", "reduce_scatter"))
    # messages between hosts, and pairs of links with PCIe between them, leave the domain; the pairs of A40 ran at
    # the rate of PCIe, linked or not
    pairs, slow = np.char.find(notes, "pairwise") >= 0, np.char.find(notes, "a40_pairwise") >= 0
    ranks = np.maximum(_number_of(columns, "ranks", 2.0), 2.0)
    per_token = 2.0 * _number_of(columns, "hidden") * np.minimum(_number_of(columns, "topk", 1.0), ranks)
    return {
        "dtype": "bf16",
        "kind": np.where(experts, "expert_exchange", kind),
        "library": np.where(whole & (library == "NCCL"), "NCCL_int8", library),
        "fabric": np.where(slow, "pcie", np.where(pairs, "pairs", "link")),
        "domain": mapped(notes, _per_node).astype(float),
        "algorithm": np.where(own | (np.char.find(kernel, "eager") >= 0), "direct", "ring"),
        "bytes": np.where(experts, _number_of(columns, "tokens") * per_token, size),
        "ranks": ranks,
    }


def _per_node(notes: str) -> str:
    """Devices per node, where the notes say so."""
    tail = notes.partition("devices_per_node=")[2].split(" ")[0]
    return tail or "inf"


_READERS: Mapping[str, Callable[[Columns, _Texts, _Texts, _Flags], _Read]] = {
    "gemm": _gemm,
    "attention": _attention,
    "experts": _experts,
    "norm": _row_work,
    "softmax": _row_work,
    "elementwise": _row_work,
    "collective": _exchange,
}
"""What a row says beyond its chip, runtime and type, by operator of the question."""


def text_of(columns: Columns, name: str) -> NDArray[np.str_]:
    """A column as text, blanks as "" whatever stood for them."""
    values = columns[name].astype(str)
    blank = np.isin(values, ["nan", "None", "<NA>"])
    return np.where(blank, "", values)


def _number_of(columns: Columns, name: str, default: float = 0.0) -> Array:
    """A column as numbers, blanks as `default`."""
    values = columns[name].astype(float)
    return np.where(np.isnan(values), default, values)


def types_of(columns: Columns) -> NDArray[np.str_]:
    """Data types by the names of the table, pairs of types joined."""
    return mapped(text_of(columns, "dtype"), lambda t: _NAMES["pairs"].get(t, t))


def mapped(values: NDArray[np.str_], function: Callable[[str], str]) -> NDArray[np.str_]:
    """`function` of every text, called once for each distinct one."""
    keys, codes = np.unique(values, return_inverse=True)
    return np.array([function(str(k)) for k in keys])[codes]


def _first_of(text: str, table: tuple[tuple[str, str], ...], default: str) -> str:
    """The name beside the first piece of `table` that `text` holds."""
    return next((name for piece, name in table if piece in text), default)


def _causal_of(columns: Columns) -> NDArray[np.bool_]:
    """False for encoders, which say so; blank is true."""
    said = mapped(text_of(columns, "causal"), str.lower)
    return np.asarray(~np.isin(said, ["false", "0", "0.0"]))
