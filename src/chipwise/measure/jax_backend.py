"""JAX on the CPU, GPUs or TPUs."""

from __future__ import annotations

import math
import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from chipwise.errors import MissingExtraError, UsageError
from chipwise.measure.task import WORKS, Task

BLOCK = 1_000_003
"""Random values that are drawn for an operand; larger ones repeat them."""


class JaxBackend:
    """Jitted JAX; attention by `jax.nn.dot_product_attention`, convolutions by `lax.conv_general_dilated`."""

    name = "jax"
    channels_last = True
    works = WORKS

    def __init__(self, device: str | None = None, threads: int | None = None) -> None:
        try:
            import jax
        except ImportError:
            raise MissingExtraError("measuring with JAX", "jax") from None
        self._jax: Any = jax
        # on a CPU calls on different buffers would run at once, out of sight of the caller's clock
        self._jax.config.update("jax_cpu_enable_async_dispatch", False)
        kind, _, index = (device or "").partition(":")
        try:
            with _cores(threads):  # the first look at devices starts the threads of the CPU
                self._device: Any = jax.devices(kind or None)[int(index or 0)]
        except (RuntimeError, IndexError, ValueError) as error:
            text = str(error).splitlines()[0]
            raise UsageError(f"--device {device}: JAX cannot use it", text) from None
        self._threads = threads or (len(os.sched_getaffinity(0)) if _PINS else os.cpu_count() or 1)
        self.device = f"{self._device.platform}:{self._device.id}"
        self._last: Any = None
        self._compiled: dict[Task, Any] = {}

    @property
    def kind(self) -> str:
        """`cpu`, `gpu` or `tpu`."""
        return str(self._device.platform)

    @property
    def software(self) -> str:
        """JAX with its version."""
        return f"jax {self._jax.__version__}"

    @property
    def chip(self) -> str:
        """What the device calls itself."""
        return (platform.processor() or platform.machine()) if self.kind == "cpu" else str(self._device.device_kind)

    @property
    def threads(self) -> int:
        """Threads that share one operator."""
        return self._threads if self.kind == "cpu" else 1

    def clock(self) -> float:
        """Seconds of the wall, or of the processor where one thread works: XLA hands copies to a thread of its own,
        whose time the caller's clock leaves out."""
        return time.process_time() if self.kind == "cpu" and self.threads == 1 else time.perf_counter()

    def dtypes(self) -> tuple[str, ...]:
        """Types that run on matrix units here."""
        return ("fp32",) if self.kind == "cpu" else ("bf16",) if self.kind == "tpu" else ("fp16", "bf16")

    def synchronise(self) -> None:
        """Return when the last call is done; a device runs its calls one after the other."""
        if self._last is not None:
            self._last.block_until_ready()

    def prepare(self, task: Task, copies: int) -> tuple[Callable[[int], Any], tuple[Any, ...]]:
        """The task on `copies` sets of operands that take turns, and the first of them."""
        jax, d = self._jax, task.dims
        np_ = jax.numpy
        dtype = {"fp32": np_.float32, "bf16": np_.bfloat16, "fp16": np_.float16}[task.dtype]
        random = np.random.default_rng(0)

        def drawn(shape: tuple[int, ...]) -> Any:
            block = random.standard_normal(min(math.prod(shape), BLOCK), dtype=np.float32)
            return np.resize(block.astype(dtype), shape)

        def sets(*shapes: tuple[int, ...]) -> list[tuple[Any, ...]]:
            first = tuple(drawn(shape) for shape in shapes)
            every = (tuple(np.copy(x) for x in first) for _ in range(copies))
            return [tuple(jax.device_put(x, self._device) for x in each) for each in every]

        run: Callable[..., Any]
        if task.kind == "gemm":
            operands = sets((d["m"], d["k"]), (d["k"], d["n"]))
            run = np_.matmul
        elif task.kind == "conv":
            stride, pad, groups = d["stride"], d["kernel"] // 2, d["groups"]
            operands = sets(
                (d["images"], d["size"], d["size"], d["channels"]),
                (d["kernel"], d["kernel"], d["channels"] // groups, d["filters"]),
            )

            def run(x: Any, w: Any) -> Any:
                return jax.lax.conv_general_dilated(
                    x, w, (stride, stride), [(pad, pad)] * 2,
                    dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=groups,
                )  # fmt: skip
        elif task.kind == "attention":
            kept = (d["batch"], d["kv"], d["heads"], d["head_dim"])
            operands = sets((d["batch"], d["q"], d["heads"], d["head_dim"]), kept, kept)
            causal = bool(d["causal"]) and d["q"] > 1

            def run(q: Any, k: Any, v: Any) -> Any:
                return jax.nn.dot_product_attention(q, k, v, is_causal=causal)
        elif task.kind == "rows":
            operands = sets((d["rows"], d["width"]))
            side = math.isqrt(d["width"])

            def norm(x: Any) -> Any:
                return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

            def pool(x: Any) -> Any:
                least = np.asarray(-np.inf, dtype)
                square, around = x.reshape(-1, side, side), ((0, 0), (1, 1), (1, 1))
                return jax.lax.reduce_window(square, least, jax.lax.max, (1, 3, 3), (1, 2, 2), around)

            def batchnorm(x: Any) -> Any:
                x = x.reshape(task.images, -1, side, side)
                mean, square = x.mean((0, 2, 3), keepdims=True), x.var((0, 2, 3), keepdims=True)
                return (x - mean) * jax.lax.rsqrt(square + 1e-5)

            works: dict[str, Callable[..., Any]] = {
                "add": lambda x: x + x,
                "norm": norm,
                "gelu": lambda x: jax.nn.gelu(x, approximate=False),
                "pool": pool,
                "batchnorm": batchnorm,
            }
            run = works[WORKS[d["work"]]]
        else:
            operands = sets((d["elements"],))

            def run(x: Any) -> Any:
                return np_.copy(x)

        if task not in self._compiled:
            self._compiled[task] = jax.jit(run).lower(*operands[0]).compile()
        compiled = self._compiled[task]

        results: list[Any] = [None] * copies  # results take turns, as in a network that reads them later

        def call(i: int) -> Any:
            self._last = results[i % copies] = compiled(*operands[i % copies])
            return self._last

        return call, operands[0]

    def values(self, found: Any) -> Any:
        """An operand or a result as NumPy's."""
        return np.asarray(found).astype(float)


_PINS = hasattr(os, "sched_setaffinity")


@contextmanager
def _cores(threads: int | None) -> Iterator[None]:
    """So many cores for the threads that start meanwhile, where the system can do that; JAX has no option for it."""
    if threads is None or not _PINS:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[-threads:])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
