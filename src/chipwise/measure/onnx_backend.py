"""ONNX Runtime, under the execution provider of a device.

Weights are initialisers of the model, as in models that people run: the runtime lays them out anew once, before
anything is timed. Every set of operands is a session of its own.
"""

from __future__ import annotations

import math
import os
import platform
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from chipwise.errors import MissingExtraError, UsageError
from chipwise.measure.task import WORKS, Task
from chipwise.units import Array

PROVIDER = "ExecutionProvider"
"""What names of providers end in; a device is called by what stands before it, in small letters."""
IN_DEVICE = ("cuda", "rocm", "migraphx")
"""Providers whose operands are kept in the device's own memory: others take them from the host's."""
OPSET, CONTRIB = 20, 1
TYPES = {"fp32": (np.float32, 1), "fp16": (np.float16, 10)}  # NumPy's, and the number in onnx.TensorProto
BLOCK = 1_000_003
"""Random values that are drawn for an operand; larger ones repeat them."""


class OnnxBackend:
    """Models of one operator each; attention by the contributed `MultiHeadAttention`, which is fused."""

    name = "onnxruntime"
    channels_last = False
    works = tuple(work for work in WORKS if work != "batchnorm")  # its builds for inference do not train

    def __init__(self, device: str | None = None, threads: int | None = None) -> None:
        try:
            onnx, onnxruntime = import_module("onnx"), import_module("onnxruntime")
        except ImportError:
            raise MissingExtraError("measuring with ONNX Runtime", "onnxruntime") from None
        self._onnx: Any = onnx
        self._ort: Any = onnxruntime
        self._threads = threads
        able = {p.removesuffix(PROVIDER).lower(): p for p in onnxruntime.get_available_providers()}
        family, _, index = (device or next((n for n in able if n in IN_DEVICE), "cpu")).partition(":")
        if family not in able or not (index or "0").isdigit():
            what = f"--device {device}: ONNX Runtime cannot use it"
            raise UsageError(what, f"this build has {', '.join(able)}")
        self._provider = able[family]
        self._family, self._index = family, int(index or 0)
        self.device = f"{family}:{self._index}" if index else family

    @property
    def kind(self) -> str:
        """The provider in short: `cpu`, `cuda`, `openvino`, ..."""
        return self._family

    @property
    def software(self) -> str:
        """ONNX Runtime with its version."""
        return f"onnxruntime {self._ort.__version__}"

    @property
    def chip(self) -> str:
        """What the processor calls itself; ONNX Runtime names no other device."""
        return (platform.processor() or platform.machine()) if self.kind == "cpu" else self.device

    @property
    def threads(self) -> int:
        """Threads that share one operator; 0 in the runtime's options is one for each core."""
        return (self._threads or os.cpu_count() or 1) if self.kind == "cpu" else 1

    def clock(self) -> float:
        """Seconds of the wall, or of the one thread that works."""
        return time.thread_time() if self.kind == "cpu" and self.threads == 1 else time.perf_counter()

    def dtypes(self) -> tuple[str, ...]:
        """Types whose kernels every build has: the CPU's are of fp32."""
        return ("fp32",) if self.kind == "cpu" else ("fp16", "fp32")

    def synchronise(self) -> None:
        """Nothing: a session returns when its outputs are there."""

    def prepare(self, task: Task, copies: int) -> tuple[Callable[[int], Any], tuple[Any, ...]]:
        """The task as `copies` sessions that take turns, and the first set of operands.

        Raises `UsageError` for a type that has no kernels here.
        """
        if task.dtype not in TYPES:
            raise UsageError(f"ONNX Runtime has no {task.dtype} kernels here", f"one of {', '.join(TYPES)}")
        operands, proto = self._model(task)
        ort = self._ort
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self._threads or 0, 1
        options.log_severity_level = 3
        providers: list[Any] = [self._provider]
        if self._family in IN_DEVICE:
            providers = [(self._provider, {"device_id": self._index})]
        where = (self._family, self._index) if self._family in IN_DEVICE else ("cpu", 0)
        fed = {i.name: x for i, x in zip(proto.graph.input, self._inputs(task, operands), strict=True)}
        bound = []
        for _ in range(copies):
            session = ort.InferenceSession(proto.SerializeToString(), options, providers=providers)
            binding = session.io_binding()
            values = {n: ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(x), *where) for n, x in fed.items()}
            for name, value in values.items():
                binding.bind_ortvalue_input(name, value)
            binding.bind_output("y", where[0], where[1])
            bound.append((session, binding, values))

        def call(i: int) -> Any:
            session, binding, _ = bound[i % copies]
            session.run_with_iobinding(binding)
            return task, binding

        return call, operands

    def values(self, found: Any) -> Array:
        """An operand or a result as NumPy's, heads before tokens."""
        if not isinstance(found, tuple):
            return np.asarray(found, dtype=float)
        task, binding = found
        y = np.asarray(binding.copy_outputs_to_cpu()[0], dtype=float)
        if task.kind == "attention":
            d = task.dims
            return np.moveaxis(y.reshape(d["batch"], d["q"], d["heads"], d["head_dim"]), 2, 1)
        return y.reshape(-1, *y.shape[2:]) if task.kind == "rows" and y.ndim == 4 else y

    def _inputs(self, task: Task, operands: tuple[Array, ...]) -> tuple[Array, ...]:
        """What a session is fed: operands without weights, attention's with heads and their width as one axis."""
        if task.kind == "attention":
            return tuple(np.moveaxis(x, 1, 2).reshape(x.shape[0], x.shape[2], -1) for x in operands)
        if task.kind == "rows" and WORKS[task.dims["work"]] == "pool":
            side = math.isqrt(task.dims["width"])
            return (operands[0].reshape(-1, 1, side, side),)
        return operands[:1]

    def _model(self, task: Task) -> tuple[tuple[Array, ...], Any]:
        """A set of operands and the model of one operator that takes the first, or all, of them as inputs."""
        d, (kind, number) = task.dims, TYPES[task.dtype]
        random = np.random.default_rng(0)

        def drawn(*shape: int) -> Array:
            block = random.standard_normal(min(math.prod(shape), BLOCK), dtype=np.float32).astype(kind)
            return np.resize(block, shape)

        weights: tuple[str, ...] = ()
        operands: tuple[Array, ...]
        attributes: dict[str, Any] = {}
        if task.kind == "gemm":
            operands, name, weights = (drawn(d["m"], d["k"]), drawn(d["n"], d["k"])), "Gemm", ("w",)
            attributes = {"transB": 1}
        elif task.kind == "conv":
            operands = (
                drawn(d["images"], d["channels"], d["size"], d["size"]),
                drawn(d["filters"], d["channels"] // d["groups"], d["kernel"], d["kernel"]),
            )
            name, weights, pad = "Conv", ("w",), d["kernel"] // 2
            attributes = {"strides": [d["stride"]] * 2, "pads": [pad] * 4, "group": d["groups"]}
        elif task.kind == "attention":
            kept = (d["batch"], d["heads"], d["kv"], d["head_dim"])
            operands, name = (
                (drawn(d["batch"], d["heads"], d["q"], d["head_dim"]), drawn(*kept), drawn(*kept)),
                "MultiHeadAttention",
            )
            attributes = {"num_heads": d["heads"], "unidirectional": int(bool(d["causal"]) and d["q"] > 1)}
        elif task.kind == "rows":
            operands, work = (drawn(d["rows"], d["width"]),), WORKS[d["work"]]
            name = {"add": "Add", "norm": "LayerNormalization", "gelu": "Gelu", "pool": "MaxPool"}[work]
            if work == "pool":
                attributes = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
            weights = ("w",) if work == "norm" else ()
        else:
            operands, name = (drawn(d["elements"]),), "Identity"
        return operands, self._proto(task, operands, name, weights, attributes, number)

    def _proto(
        self, task: Task, operands: tuple[Array, ...], name: str, weights: tuple[str, ...], attributes: dict[str, Any],
        number: int,
    ) -> Any:  # fmt: skip
        helper = self._onnx.helper
        fed = self._inputs(task, operands)
        inputs = [f"x{i}" for i in range(len(fed))]
        held = []
        if weights:
            w = operands[1] if len(operands) > 1 else np.ones(operands[0].shape[-1:], operands[0].dtype)
            held = [self._onnx.numpy_helper.from_array(np.ascontiguousarray(w), "w")]
        names = [*inputs, *inputs] if name == "Add" else [*inputs, *weights]
        domain = "com.microsoft" if name == "MultiHeadAttention" else ""
        node = helper.make_node(name, names, ["y"], domain=domain, **attributes)
        told = [helper.make_tensor_value_info(n, number, list(x.shape)) for n, x in zip(inputs, fed, strict=True)]
        graph = helper.make_graph([node], "task", told, [helper.make_tensor_value_info("y", number, None)], held)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", CONTRIB)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=9)
