"""PyTorch on the CPU, CUDA, ROCm or Apple's MPS."""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Callable
from typing import Any

from chipwise.errors import MissingExtraError, UsageError
from chipwise.measure.task import WORKS, Task

BLOCK = 1_000_003
"""Random values that are drawn for an operand; larger ones repeat them."""


class TorchBackend:
    """Eager PyTorch; attention by `scaled_dot_product_attention`, convolutions by `conv2d`."""

    name = "torch"
    channels_last = False
    works = WORKS

    def __init__(self, device: str | None = None, threads: int | None = None) -> None:
        try:
            import torch
        except ImportError:
            raise MissingExtraError("measuring with PyTorch", "torch") from None
        if threads is not None:
            torch.set_num_threads(threads)
        self._torch: Any = torch
        self.device = self._memory = device or _best(torch)
        try:
            torch.empty(1, device=self.device)
        except (RuntimeError, AssertionError) as error:
            text = str(error).splitlines()[0]
            raise UsageError(f"--device {device}: PyTorch cannot use it", text) from None

    @property
    def kind(self) -> str:
        """`cpu`, `cuda`, `rocm` or `mps`."""
        family = self.device.partition(":")[0]
        return "rocm" if family == "cuda" and self._torch.version.hip else family

    @property
    def software(self) -> str:
        """PyTorch with its version."""
        return f"torch {self._torch.__version__}"

    @property
    def chip(self) -> str:
        """What the device calls itself."""
        if self.kind in ("cuda", "rocm"):
            return str(self._torch.cuda.get_device_name(self.device))
        return platform.processor() or platform.machine()

    @property
    def threads(self) -> int:
        """Threads that share one operator."""
        return int(self._torch.get_num_threads()) if self.kind == "cpu" else 1

    def clock(self) -> float:
        """Seconds of the wall, or of the one thread that works."""
        return time.thread_time() if self.kind == "cpu" and self.threads == 1 else time.perf_counter()

    def dtypes(self) -> tuple[str, ...]:
        """Types that run on matrix units here."""
        return ("fp32", "bf16") if self.kind == "cpu" else ("fp16", "bf16") if self.kind != "mps" else ("fp16", "fp32")

    def synchronise(self) -> None:
        """Return when everything that was started is done."""
        if self.kind in ("cuda", "rocm"):
            self._torch.cuda.synchronize(self.device)
        elif self.kind == "mps":
            self._torch.mps.synchronize()

    def prepare(self, task: Task, copies: int) -> tuple[Callable[[int], Any], tuple[Any, ...]]:
        """The task on `copies` sets of operands that take turns, and the first of them."""
        torch, d = self._torch, task.dims
        dtype = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[task.dtype]
        generator = torch.Generator().manual_seed(0)

        def drawn(shape: tuple[int, ...]) -> Any:
            size = math.prod(shape)
            block = torch.randn(min(size, BLOCK), generator=generator).to(self._memory, dtype)
            return block.repeat(-(-size // BLOCK))[:size].view(shape)

        def sets(*shapes: tuple[int, ...]) -> list[tuple[Any, ...]]:
            first = tuple(drawn(shape).contiguous() for shape in shapes)
            return [first, *(tuple(x.clone() for x in first) for _ in range(copies - 1))]

        run: Callable[..., Any]
        if task.kind == "gemm":
            operands = sets((d["m"], d["k"]), (d["n"], d["k"]))
            run = torch.nn.functional.linear
        elif task.kind == "conv":
            stride, pad, groups = d["stride"], d["kernel"] // 2, d["groups"]
            operands = sets(
                (d["images"], d["channels"], d["size"], d["size"]),
                (d["filters"], d["channels"] // groups, d["kernel"], d["kernel"]),
            )

            def run(x: Any, w: Any) -> Any:
                return torch.nn.functional.conv2d(x, w, None, stride, pad, 1, groups)
        elif task.kind == "attention":
            kept = (d["batch"], d["heads"], d["kv"], d["head_dim"])
            operands = sets((d["batch"], d["heads"], d["q"], d["head_dim"]), kept, kept)
            causal = bool(d["causal"]) and d["q"] > 1

            def run(q: Any, k: Any, v: Any) -> Any:
                return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        elif task.kind == "rows":
            operands = sets((d["rows"], d["width"]))
            side, functional = math.isqrt(d["width"]), torch.nn.functional
            works: dict[str, Callable[..., Any]] = {
                "add": lambda x: x + x,
                "norm": lambda x: functional.layer_norm(x, x.shape[-1:]),
                "gelu": functional.gelu,
                "pool": lambda x: functional.max_pool2d(x.view(-1, side, side), 3, 2, 1),
                "batchnorm": lambda x: functional.batch_norm(
                    x.view(task.images, -1, side, side), None, None, training=True
                ),
            }
            run = works[WORKS[d["work"]]]
        else:
            operands = [(x, torch.empty_like(x)) for (x,) in sets((d["elements"],))]

            def run(x: Any, y: Any) -> Any:
                return y.copy_(x)

        ready = self._ready(run, operands[0], task)
        results: list[Any] = [None] * copies  # results take turns, as in a network that reads them later

        def call(i: int) -> Any:
            with torch.inference_mode():
                found = results[i % copies] = ready(*operands[i % copies])
            return found

        return call, operands[0]

    def _ready(self, run: Callable[..., Any], operands: tuple[Any, ...], task: Task) -> Callable[..., Any]:
        """What is called: the function as it is; compiled, where a device runs nothing else."""
        return run

    def values(self, found: Any) -> Any:
        """An operand or a result as NumPy's."""
        return found.detach().to("cpu", self._torch.float64).numpy()


def _best(torch: Any) -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"
