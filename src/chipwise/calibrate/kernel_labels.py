"""What the texts of a kernel table mean: data types, runtimes, kernel names; and reading its columns.

Columns are arrays by name; blanks are NaN or "".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.units import Array

__all__ = [
    "ATTENTION_BY_KERNEL",
    "EXPERTS_BY_KERNEL",
    "KINDS",
    "RUNTIMES",
    "TIMINGS",
    "TYPES",
    "WIDEST_GROUP",
    "Columns",
    "causal_of",
    "first_of",
    "mapped",
    "number_of",
    "text_of",
    "type_column",
    "types_of",
]

Columns = Mapping[str, NDArray[Any]]

# A data type of the table: label, type of the matrix unit, bytes per element of weights, activations and
# outputs, whether the timed call quantises its input (serving stacks only), and how often k may be split.
# Scales count: nvfp4 one byte per 16, mxfp4 one per 32, int4 a 16-bit scale and a zero per 128.
TYPES: Mapping[str, tuple[str, str, float, float, float, float, float]] = {
    "bfloat16": ("b16", "bf16", 2, 2, 2, 0, 16),
    "float16": ("b16", "fp16", 2, 2, 2, 0, 16),
    "fp16-storage-fp32-math": ("fp32", "fp32", 2, 2, 2, 0, 16),
    "float32": ("fp32", "fp32", 4, 4, 4, 0, 16),
    "fp8": ("fp8", "fp8", 1, 1, 2, 1, 1),
    "fp8_block": ("fp8_block", "fp8", 1, 1, 2, 1, 1),
    "nvfp4": ("nvfp4", "fp4", 0.5625, 0.5625, 2, 1, 1),
    "mxfp4": ("mxfp4", "fp4", 0.53125, 0.53125, 2, 0, 1),
    "int8": ("int8", "int8", 1, 1, 2, 0, 1),
    "sq": ("sq", "int8", 1, 1, 2, 1, 1),
    "int4_wo": ("int4_wo", "bf16", 0.53, 2, 2, 0, 1),
    "int8_wo": ("int8_wo", "bf16", 1, 2, 2, 0, 1),
    "w4a16_mxfp4": ("w4a16", "bf16", 0.53125, 2, 2, 0, 1),
    "w4a8_mxfp4_mxfp8": ("w4a8", "fp8", 0.53125, 1, 2, 0, 1),
    "bf16->fp8": ("b16", "bf16", 2, 2, 1, 0, 1),
}
# activation / weight types of AMD's tuner
PAIRS: Mapping[str, str] = {
    "bfloat16/bfloat16": "bfloat16",
    "bfloat16/float4_e2m1fn_x2": "w4a16_mxfp4",
    "bfloat16/int4": "int4_wo",
    "float4_e2m1fn_x2/float4_e2m1fn_x2": "mxfp4",
    "float8_e4m3fn/float4_e2m1fn_x2": "w4a8_mxfp4_mxfp8",
    "float8_e4m3fn/float8_e4m3fn": "fp8",
    "float8_e4m3fnuz/float8_e4m3fnuz": "fp8",
    "int8/int8": "int8",
}

# How a row was timed, by a piece of its text.
TIMINGS = (
    ("eager call", "eager"),
    ("cuda-graph", "graph"),
    ("tuner", "tuner"),
    ("profiler", "profiler"),
    ("nccl", "collective"),
    ("DeepBench", "loop"),
)
RUNTIMES = {
    "vidur(sarathi-serve)": "profiled",
    "HF/torch (v0 profiler)": "transformers",
    "vLLM": "vllm_profiled",
    "cuDNN/cuBLAS/MIOpen/MKL": "vendor",
    "pytorch": "eager",
    "torch.distributed NCCL": "distributed",
}
# Kernel names of serving stacks -> the library that they call.
ATTENTION_BY_KERNEL = (
    ("flashinfer_trtllm", "trtllm_mha"),
    ("trtllm_mha", "trtllm_mha"),
    ("trtllm_mla", "trtllm_mla"),
    ("flashinfer", "flashinfer"),
    ("fa4", "fa4"),
    ("attention_v4", "fa4"),
    ("fa3", "fa3"),
    ("attention_v3", "fa3"),
    ("flash_attn", "fa2"),
    ("flash_attention", "fa2"),
    ("triton", "triton"),
    ("torch_flow", "trtllm"),
    ("default", "trtllm"),
)
EXPERTS_BY_KERNEL = (
    ("marlin", "marlin"),
    ("flashinfer_trtllm", "trtllm"),
    ("cutlass", "cutlass"),
    ("cutedsl", "cutlass"),
    ("deepgemm", "deepgemm"),
    ("fused_moe_triton", "triton"),
    ("trtllm", "trtllm"),
    ("triton", "triton"),
    ("vllm_fused_moe", "vllm_triton"),
    ("nongated", "torch_flow_nongated"),
    ("torch_flow", "torch_flow"),
)
WIDEST_GROUP = 32.0  # heads per kv head that TensorRT-LLM's decode kernels pack
KINDS = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "reducescatter": "reduce_scatter",
    "alltoall": "all_to_all",
    "p2p": "p2p",
}


def text_of(columns: Columns, name: str) -> NDArray[np.str_]:
    """A column as text, blanks as "" whatever stood for them."""
    values = columns[name].astype(str)
    blank = np.isin(values, ["nan", "None", "<NA>"])
    return np.where(blank, "", values)


def number_of(columns: Columns, name: str, default: float = 0.0) -> Array:
    """A column as numbers, blanks as `default`."""
    values = columns[name].astype(float)
    return np.where(np.isnan(values), default, values)


def types_of(columns: Columns) -> NDArray[np.str_]:
    """Data types by the names of `TYPES`, pairs of types joined."""
    return mapped(text_of(columns, "dtype"), lambda t: PAIRS.get(t, t))


def mapped(values: NDArray[np.str_], function: Callable[[str], str]) -> NDArray[np.str_]:
    """`function` of every text, called once for each distinct one."""
    keys, codes = np.unique(values, return_inverse=True)
    return np.array([function(str(k)) for k in keys])[codes]


def first_of(text: str, table: tuple[tuple[str, str], ...], default: str) -> str:
    """The name beside the first piece of `table` that `text` holds."""
    return next((name for piece, name in table if piece in text), default)


def type_column(types: NDArray[np.str_], position: int) -> Array:
    """One figure of `TYPES` for every row."""
    keys, codes = np.unique(types, return_inverse=True)
    return np.array([float(TYPES[str(k)][position]) for k in keys])[codes]


def causal_of(columns: Columns) -> NDArray[np.bool_]:
    """False for encoders, which say so; blank is true."""
    said = mapped(text_of(columns, "causal"), str.lower)
    return np.asarray(~np.isin(said, ["false", "0", "0.0"]))
