"""A user's PyTorch module, predicted operator by operator without running it, and then run.

The prediction runs the module on tensors without data (`FakeTensorMode`) and writes down every operator that PyTorch
dispatches, with its sizes and with the storages that are alive. The measurement runs it for real, once with a clock
around every operator, and as a whole without any.
"""

from __future__ import annotations

import ctypes
import gc
import runpy
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from weakref import finalize

from chipwise.errors import ChipwiseError, MissingExtraError, UsageError, shorten
from chipwise.measure.protocol import Timing, sampled, timing_of
from chipwise.workload.formats import FORMATS
from chipwise.workload.op import Op, attention, convolution, gemm, pointwise

__all__ = ["Call", "Example", "Seen", "examples_of", "peak_of", "predicted_calls", "time_calls", "time_whole"]

TRAIN = "train"
"""The pass that is a forward and a backward one and a step of SGD."""


@dataclass(frozen=True, slots=True)
class Example:
    """A module with arguments to call it with; `name` is the pass that they are of: prefill, decode, train, forward."""

    name: str
    module: Any
    arguments: tuple[Any, ...]

    def run(self) -> Any:
        """One pass."""
        import torch

        if self.name != TRAIN:
            with torch.no_grad():
                return self.module(*self.arguments)
        self.module.zero_grad()
        found = self.module(*self.arguments)
        first = (
            found
            if torch.is_tensor(found)
            else next(iter(found.values() if isinstance(found, dict) else found))
        )
        first.float().mean().backward()
        with torch.no_grad():
            for weight in self.module.parameters():
                if weight.grad is not None:
                    weight.sub_(weight.grad, alpha=1e-6)
        return found


@dataclass(frozen=True, slots=True)
class Call:
    """An operator that was dispatched: its name in PyTorch, and what it is to a cost model (None: a view, which moves
    nothing)."""

    name: str
    op: Op | None


@dataclass(frozen=True, slots=True)
class Seen:
    """A pass without data: its operators in order, bytes of weights and buffers, and the most alive at once."""

    calls: tuple[Call, ...]
    weight_bytes: float
    peak_bytes: float


def examples_of(place: str, train: bool = False, device: str = "cpu") -> tuple[Example, ...]:
    """What `FILE.py:function` gives: (module, arguments), or (module, {pass: arguments}) with passes such as prefill
    and decode. With `train` the first is also trained.

    Raises `UsageError` for a file or function that is none, or that gives something else; `MissingExtraError`.
    """
    try:
        import torch
    except ImportError:
        raise MissingExtraError("measuring a module", "torch") from None
    file, colon, name = place.rpartition(":")
    if not colon or not Path(file).is_file():
        raise UsageError(f"{shorten(place)}: no such file and function", "as in model.py:build")
    try:
        made = runpy.run_path(file).get(name)
        given = made() if callable(made) else None
    except Exception as error:
        raise UsageError(
            f"{file}: {type(error).__name__}: {shorten(str(error))}", f"repair {name} first"
        ) from None
    if made is None:
        raise UsageError(f"{file}: has no function {name}", "the function returns (module, arguments)")
    module, arguments = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
    if not isinstance(module, torch.nn.Module) or arguments is None:
        hint = 'return (module, arguments), or (module, {"prefill": arguments, "decode": arguments})'
        raise UsageError(f"{place} gives {type(given).__name__}", hint)
    passes = arguments if isinstance(arguments, dict) else {"forward": arguments}
    module = module.to(device)

    def moved(a: Any) -> tuple[Any, ...]:
        return tuple(x.to(device) if torch.is_tensor(x) else x for x in (a if isinstance(a, tuple) else (a,)))

    every = [Example(n, module, moved(a)) for n, a in passes.items()]
    return (*every, replace(every[0], name=TRAIN)) if train else tuple(every)


def predicted_calls(example: Example) -> Seen:
    """The pass without data. Raises `ChipwiseError` where it reads values of tensors, which have none here."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.func import functional_call

    alive = _Alive()
    with FakeTensorMode(allow_non_fake_inputs=True) as fake:
        state = {n: fake.from_tensor(t) for n, t in example.module.state_dict(keep_vars=True).items()}
        given = tuple(fake.from_tensor(a) if torch.is_tensor(a) else a for a in example.arguments)
        for tensor in (*state.values(), *(g for g in given if torch.is_tensor(g))):
            alive.add(tensor)
        weights = alive.now
        weighed = _Bound(example.module, state, functional_call)
        watch = _watch(lambda func, args, kwargs: func(*args, **kwargs), alive)
        try:
            with watch:
                replace(example, module=weighed, arguments=given).run()
        except Exception as error:
            what = f"{example.name}: cannot be followed without data: {type(error).__name__}: {shorten(str(error))}"
            raise ChipwiseError(
                what, "a module that branches on values of tensors is measured only"
            ) from None
    return Seen(tuple(watch.calls), float(weights), float(alive.most))


class _Bound:
    """A module on other weights."""

    def __init__(self, module: Any, state: Mapping[str, Any], call: Callable[..., Any]) -> None:
        self._module, self._state, self._call = module, state, call

    def __call__(self, *args: Any) -> Any:
        return self._call(self._module, self._state, args)

    def zero_grad(self) -> None:
        for weight in self._state.values():
            weight.grad = None

    def parameters(self) -> list[Any]:
        return [w for w in self._state.values() if w.requires_grad]


def time_calls(
    example: Example, synchronise: Callable[[], None], clock: Callable[[], float] = time.perf_counter
) -> list[tuple[str, float]]:
    """Name and seconds of every operator of one pass, views left out; the first pass warms up."""
    example.run()

    def timed(func: Any, args: Any, kwargs: Any) -> Any:
        synchronise()
        began = clock()
        found = func(*args, **kwargs)
        synchronise()
        seconds.append(clock() - began)
        return found

    best: list[tuple[str, float]] = []
    for _ in range(5):  # what another process disturbed in one of them it did not in all
        seconds: list[float] = []
        watch = _watch(timed, _Alive())
        with watch:
            example.run()
        here = [(c.name, s) for c, s in zip(watch.calls, seconds, strict=True) if c.op is not None]
        best = (
            here
            if len(best) != len(here)
            else [min(a, b, key=lambda x: x[1]) for a, b in zip(best, here, strict=True)]
        )
    return best


def time_whole(
    example: Example, synchronise: Callable[[], None], budget_s: float, clock: Callable[[], float]
) -> Timing:
    """The pass as a whole."""
    return timing_of(sampled(lambda _: example.run(), synchronise, budget_s, clock))


def peak_of(example: Example, weight_bytes: float, device: str) -> float | None:
    """The most bytes that the pass had, weights included: of the device's allocator, or on a CPU what the process grew
    by; None where the system says neither."""
    import torch

    gc.collect()
    if device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats(device)
        example.run()
        return float(torch.cuda.max_memory_allocated(device))
    reset, status = Path("/proc/self/clear_refs"), Path("/proc/self/status")
    if not reset.exists():
        return None
    example.module.zero_grad()
    with suppress(
        AttributeError, OSError
    ):  # freed memory back to the system, where the allocator can do that
        ctypes.CDLL(None).malloc_trim(0)
    try:
        reset.write_text("5")  # the high-water mark of resident memory starts again
    except OSError:
        return None
    before = _kilobytes(status.read_text(), "VmRSS")
    example.run()
    return weight_bytes + 1024.0 * max(_kilobytes(status.read_text(), "VmHWM") - before, 0)


def _kilobytes(text: str, name: str) -> int:
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith(name))


class _Alive:
    """Bytes of storages that some tensor still refers to."""

    def __init__(self) -> None:
        self.now, self.most = 0, 0
        self._users: dict[int, int] = {}

    def add(self, tensor: Any) -> None:
        storage = tensor.untyped_storage()
        key, size = storage._cdata, int(storage.nbytes())
        self._users[key] = self._users.get(key, 0) + 1
        if self._users[key] == 1:
            self.now += size
            self.most = max(self.most, self.now)
        finalize(tensor, self._drop, key, size)

    def _drop(self, key: int, size: int) -> None:
        self._users[key] -= 1
        if not self._users[key]:
            del self._users[key]
            self.now -= size


def _watch(run: Callable[..., Any], alive: _Alive) -> Any:
    """A mode that writes down every operator, and runs it by `run`."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    class Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
        calls: list[Call]

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            found = run(func, args, kwargs or {})
            made = [t for t in tree_leaves(found) if torch.is_tensor(t)]
            for tensor in made:
                alive.add(tensor)
            read = [t for t in tree_leaves((args, kwargs or {})) if torch.is_tensor(t)]
            self.calls.append(Call(str(func).removeprefix("aten."), _op(func, args, read, made)))
            return found

    watch = Watch()  # type: ignore[no-untyped-call]
    watch.calls = []
    return watch


def _op(func: Any, args: Sequence[Any], read: Sequence[Any], made: Sequence[Any]) -> Op | None:
    """What an operator of PyTorch is to a cost model: a product, a convolution, attention, or work on rows."""
    name = str(func).removeprefix("aten.").partition(".")[0]
    shared = {t.untyped_storage()._cdata for t in read}
    if (
        not made
        or (name not in _IN_PLACE and func.is_view)
        or name in ("detach", "empty", "empty_like", "alias")
    ):
        return None
    if not name.endswith("_") and all(t.untyped_storage()._cdata in shared for t in made):
        return None
    kinds = {"torch.float32": "fp32", "torch.bfloat16": "bf16", "torch.float16": "fp16"}
    dtype = kinds.get(str(made[0].dtype), "fp32")
    form = FORMATS[dtype]
    if name in ("mm", "addmm", "bmm", "baddbmm"):
        a, b = (args[1], args[2]) if "add" in name else (args[0], args[1])
        batch = float(a.shape[0]) if a.dim() == 3 else 1.0
        return gemm(float(a.shape[-2]), float(b.shape[-1]), float(a.shape[-1]), form, form, batch=batch)
    if name in ("convolution", "convolution_backward"):
        x, w, groups = (args[0], args[1], args[8]) if name == "convolution" else (args[1], args[2], args[9])
        out = made[0] if name == "convolution" else args[0]
        op = convolution(
            float(x.shape[0]),
            float(x.shape[1]),
            float(w.shape[0]),
            float(x.shape[2:].numel()),
            float(out.shape[2:].numel()),
            float(w.shape[2:].numel()),
            form,
            form,
            groups=float(groups),
        )
        times = 1.0 if name == "convolution" else float(len(made))
        return replace(
            op,
            flops=op.flops * times,
            weight_bytes=op.weight_bytes * times,
            activation_bytes=op.activation_bytes * times,
        )
    if name.startswith("_scaled_dot_product"):
        back = "backward" in name  # whose first argument is the gradient; five products in place of two
        q, k, v = args[1:4] if back else args[:3]
        causal = any(x is True for x in args)
        op = attention(
            float(q.shape[0]), float(q.shape[2]), float(k.shape[2]), float(q.shape[1]), float(k.shape[1]),
            float(q.shape[3]), form, causal=causal, value_dim=float(v.shape[3]),
        )  # fmt: skip
        moved = op.activation_bytes * form.bits / 16.0
        return replace(op, compute=dtype, activation_bytes=moved, flops=op.flops * (2.5 if back else 1.0))
    moved = float(sum(t.numel() * t.element_size() for t in (*read, *made)))
    op = pointwise(float(made[0].numel()), 0.0, name=name, flops_each=1.0)
    return replace(op, activation_bytes=moved)


_IN_PLACE = ("copy", "clone", "contiguous")
