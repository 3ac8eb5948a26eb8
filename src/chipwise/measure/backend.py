"""What the room asks of a framework: the same few things of each, so that one probe measures all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

from chipwise.errors import ChipwiseError, MissingExtraError, UnknownNameError
from chipwise.measure.task import WORKS, Task
from chipwise.units import Array


class Backend(Protocol):
    """A framework on one device."""

    name: str
    device: str
    channels_last: bool
    works: Sequence[str]
    """Of `WORKS` those that it runs."""

    @property
    def kind(self) -> str:
        """The kind of device in the framework's words: cpu, cuda, rocm, mps, gpu, tpu."""

    @property
    def software(self) -> str:
        """The framework with its version."""

    @property
    def chip(self) -> str:
        """What the device calls itself."""

    @property
    def threads(self) -> int:
        """Threads that share one operator; 1 where that is no matter of threads."""

    def clock(self) -> float:
        """Seconds: of the wall, or where one thread of a CPU works those that it had, which leaves out what the system
        gave to others meanwhile."""

    def dtypes(self) -> tuple[str, ...]:
        """Types worth timing here, the one that most models run in first."""

    def synchronise(self) -> None:
        """Return when everything that was started is done."""

    def prepare(self, task: Task, copies: int) -> tuple[Callable[[int], Any], tuple[Any, ...]]:
        """`call(i)`, which runs the task on set i modulo `copies` of its operands, and the first set."""

    def values(self, found: Any) -> Array:
        """An operand or a result as NumPy's."""


BACKENDS: Mapping[str, tuple[str, str, str]] = {
    "torch": ("torch", "chipwise.measure.torch_backend", "TorchBackend"),
    "jax": ("jax", "chipwise.measure.jax_backend", "JaxBackend"),
    "onnxruntime": ("onnxruntime", "chipwise.measure.onnx_backend", "OnnxBackend"),
    "neuron": ("torch_neuronx", "chipwise.measure.neuron_backend", "NeuronBackend"),
}
"""By name: the package that must be there, the module, the class."""
OUTSIDE = {"neuron": "pip install --extra-index-url https://pip.repos.neuron.amazonaws.com torch-neuronx neuronx-cc"}
"""What installs a package that no extra can name; on PyPI its name is that of an empty one."""


def backend(name: str = "auto", device: str | None = None, threads: int | None = None) -> Backend:
    """The backend of a name; `auto`: the first that is installed, in the order of `BACKENDS`. `threads`: of a CPU, that
    share an operator; default: as many as the framework takes.

    Raises `UnknownNameError` for another name, `MissingExtraError` where it is not installed, `UsageError` for a device
    that it cannot use.
    """
    if name == "auto":
        name = next((n for n, (package, *_) in BACKENDS.items() if find_spec(package)), "torch")
    if name not in BACKENDS:
        raise UnknownNameError("backend", name, BACKENDS, f"auto, {', '.join(BACKENDS)}")
    package, module, kind = BACKENDS[name]
    if find_spec(package) is None:
        raise MissingExtraError(f"measuring with {name}", name, OUTSIDE.get(name, ""))
    made: Backend = getattr(import_module(module), kind)(device, threads)
    return made


def expected(task: Task, operands: Sequence[Array], channels_last: bool = False) -> Array:
    """The result of a small task by NumPy alone, in 64 bits: what a backend must find. `channels_last`: operands are
    laid out as JAX has them (weights [k, n], images with channels last, heads after tokens)."""
    d = task.dims
    if task.kind == "gemm":
        x, w = operands
        return np.asarray(x @ (w if channels_last else w.T))
    if task.kind == "attention":
        q, k, v = (np.moveaxis(o, 1, 2) if channels_last else o for o in operands)
        scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(d["head_dim"])
        if d["causal"] and d["q"] > 1:
            scores = np.where(np.tril(np.ones(scores.shape[-2:])) > 0, scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        found = weights / weights.sum(-1, keepdims=True) @ v
        return np.asarray(np.moveaxis(found, 1, 2) if channels_last else found)
    if task.kind == "conv":
        x, w = operands
        if channels_last:
            x, w = np.moveaxis(x, -1, 1), np.transpose(w, (3, 2, 0, 1))
        pad, kernel, stride = d["kernel"] // 2, d["kernel"], d["stride"]
        padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), (2, 3))
        windows = windows[:, :, ::stride, ::stride]
        each = d["channels"] // d["groups"]
        parts = [
            np.einsum("bchwij,fcij->bfhw", windows[:, g * each : (g + 1) * each], part)
            for g, part in enumerate(np.split(w, d["groups"]))
        ]
        found = np.concatenate(parts, 1)
        return np.asarray(np.moveaxis(found, 1, -1) if channels_last else found)
    if task.kind == "rows":
        return _rows(task, operands[0])
    return operands[0]


def _rows(task: Task, x: Array) -> Array:
    work = WORKS[task.dims["work"]]
    if work == "add":
        return x + x
    if work == "norm":
        return np.asarray((x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5))
    if work == "gelu":
        return np.asarray(0.5 * x * (1.0 + np.vectorize(math.erf)(x / math.sqrt(2.0))))
    side = math.isqrt(x.shape[-1])
    if work == "batchnorm":
        x = x.reshape(task.images, -1, side, side)
        spread = np.sqrt(x.var((0, 2, 3), keepdims=True) + 1e-5)
        return np.asarray((x - x.mean((0, 2, 3), keepdims=True)) / spread)
    padded = np.pad(x.reshape(-1, side, side), ((0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))[:, ::2, ::2]
    return np.asarray(windows.max((-1, -2)))


SMALL: Sequence[Task] = (
    Task("gemm", "", (24, 40, 72)),
    Task("attention", "", (2, 12, 12, 3, 16, 1)),
    Task("conv", "", (2, 6, 8, 9, 3, 2, 2)),
    *(Task("rows", "", (16, 64, work)) for work in range(len(WORKS))),
    Task("copy", "", (1000, 0)),
)
"""Tasks whose results are compared with NumPy's before anything is timed."""

ROUNDING: Mapping[str, float] = {"fp32": 1e-4, "fp16": 1e-2, "bf16": 5e-2}
"""Largest error of a result over the largest value in it: some roundings of the type (TF32 rounds as fp16 does)."""


def check(measured: Backend, dtype: str) -> None:
    """Raises `ChipwiseError` where a small task of any kind comes out other than NumPy says: then no time means
    anything."""
    for small in SMALL:
        if small.kind == "rows" and WORKS[small.dims["work"]] not in measured.works:
            continue
        task = replace(small, dtype=dtype)
        call, operands = measured.prepare(task, 1)
        found = measured.values(call(0))
        right = expected(task, [measured.values(x) for x in operands], measured.channels_last)
        error = float(np.max(np.abs(found - right)) / np.max(np.abs(right)))
        if not error <= ROUNDING[dtype]:
            what = f"{measured.software} on {measured.device}: {task.kind} in {dtype} is wrong by {error:.2g}"
            raise ChipwiseError(what, "times of wrong results mean nothing: try another --backend or --device")
