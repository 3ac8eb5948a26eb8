"""A user's PyTorch module, run for real: as a whole, with a clock around every operator, and what memory it took.

What it should take is said by `tracing`, from the same module without running it; both name operators alike.
"""

from __future__ import annotations

import gc
import inspect
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from chipwise.errors import UsageError
from chipwise.measure.protocol import Timing, memory_trimmed, sampled, timing_of
from chipwise.tracing.sources import code_in
from chipwise.values import dataclass

TRAIN = "train"
"""The pass that is a forward and a backward one."""
REPEATS = 5
"""Timed passes, of which each operator's shortest counts: what another process disturbed in one it did not in all."""


@dataclass(frozen=True, slots=True)
class Example:
    """A module with what to call it with; `name` is the pass that this is: prefill, decode, train, forward."""

    name: str
    module: Any
    arguments: tuple[Any, ...] = ()
    keywords: Mapping[str, Any] = field(default_factory=dict)

    @property
    def training(self) -> bool:
        """Whether the pass goes backward too."""
        return self.name == TRAIN

    def run(self) -> None:
        """One pass. In training its results live no longer than until their loss is known, as in a trace."""
        import torch

        from chipwise.tracing.module import loss_of

        self.module.train(self.training)
        if not self.training:
            with torch.no_grad():
                self.module(*self.arguments, **self.keywords)
            return
        self.module.zero_grad()
        loss = loss_of(self.module(*self.arguments, **self.keywords), self.name)
        loss.backward()  # type: ignore[no-untyped-call]


def examples_of(place: str, train: bool = False, device: str = "cpu") -> tuple[Example, ...]:
    """What `FILE.py:function` gives, as `trace` reads it: a module, (module, example, ...) with a table of keywords
    last; or (module, {pass: arguments}) with passes such as prefill and decode. With `train` the first is also trained.

    Raises `UsageError` for a file or function that gives something else, `UnknownNameError`, `MissingExtraError`.
    """
    build = code_in(place)
    import torch
    from torch.utils._pytree import tree_map_only

    from chipwise.tracing.module import called, own_example

    found = called(build, place)
    module, *rest = found if isinstance(found, tuple) else (found,)
    if not isinstance(module, torch.nn.Module):
        hint = 'return a module, (module, example, ...), or (module, {"prefill": arguments, "decode": arguments})'
        raise UsageError(f"{place} gives {type(module).__name__}", hint)
    module = module.to(device)
    last = rest[-1] if rest and isinstance(rest[-1], Mapping) else {}
    named = set(last) <= set(inspect.signature(module.forward).parameters)
    if last and not named:
        every = [Example(str(n), module, a if isinstance(a, tuple) else (a,)) for n, a in last.items()]
    else:
        given = tuple(rest[:-1] if last else rest)
        if not given and not last:
            own, last = own_example(module, place)
            given = tuple(own)
        if len(given) == 1 and isinstance(given[0], tuple):
            given = given[0]
        every = [Example("forward", module, given, last)]
    here = [
        replace(e, arguments=a, keywords=k)
        for e in every
        for a, k in [tree_map_only(torch.Tensor, lambda t: t.to(device), (e.arguments, dict(e.keywords)))]
    ]
    return (*here, replace(here[0], name=TRAIN)) if train else tuple(here)


def time_calls(
    example: Example, synchronise: Callable[[], None], clock: Callable[[], float] = time.perf_counter
) -> list[tuple[str, float]]:
    """Name and seconds of every kernel of one pass, in order; the first pass warms up."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    from chipwise.tracing.recorder import kernel_of

    class Clock(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            synchronise()
            began = clock()
            found = func(*args, **(kwargs or {}))
            synchronise()
            seconds = clock() - began
            name = kernel_of(func)
            if name is not None and any(torch.is_tensor(t) for t in tree_leaves(found)):
                calls.append((name, seconds))
            return found

    example.run()
    best: list[tuple[str, float]] = []
    for _ in range(REPEATS):
        calls: list[tuple[str, float]] = []
        with Clock():  # type: ignore[no-untyped-call]
            example.run()
        paired = len(best) == len(calls)
        best = [min(a, b, key=lambda x: x[1]) for a, b in zip(best, calls, strict=True)] if paired else calls
    return best


def time_whole(
    example: Example, synchronise: Callable[[], None], budget_s: float, clock: Callable[[], float]
) -> Timing:
    """The pass as a whole."""
    return timing_of(sampled(lambda _: example.run(), synchronise, budget_s, clock))


def peak_of(example: Example, weight_bytes: float, device: str) -> float | None:
    """The most bytes that the tensors of a pass had at once, weights and arguments included: of the device's allocator,
    on a CPU by what its allocator reports to the profiler; None where neither says it.

    It leaves out what libraries hold beside tensors (packed weights, scratch), and what was freed and not given back.
    """
    import torch
    from torch.utils._pytree import tree_leaves

    gc.collect()
    if device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats(device)
        example.run()
        return float(torch.cuda.max_memory_allocated(device))
    if device != "cpu":
        return None
    example.module.zero_grad()
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # it says on stderr when it starts and stops
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        example.run()
    try:
        changes = sorted(_changes(profile.profiler.kineto_results.experimental_event_tree()))
    except AttributeError:  # a PyTorch that names it otherwise
        return None
    given = [t for t in tree_leaves((example.arguments, dict(example.keywords))) if torch.is_tensor(t)]
    here = weight_bytes + sum({t.data_ptr(): float(t.nbytes) for t in given}.values())
    return here + float(max(accumulate(size for _, size in changes), default=0.0))


def _changes(events: Iterable[Any]) -> Iterator[tuple[int, int]]:
    """(nanosecond, bytes) of what was allocated (> 0) and freed among a profiler's events and those within them."""
    for event in events:
        if event.name == "[memory]":
            yield event.start_time_ns, event.extra_fields.alloc_size
        yield from _changes(event.children)


def process_peak_of(example: Example, weight_bytes: float) -> float | None:
    """Weights, and what the process grew by in a pass: tensors, what libraries hold beside them, and what was freed and
    not given back to the system. None where the system does not say it."""
    gc.collect()
    reset, status = Path("/proc/self/clear_refs"), Path("/proc/self/status")
    if not reset.exists():
        return None
    example.module.zero_grad()
    memory_trimmed()
    try:
        reset.write_text("5")  # the high-water mark of resident memory starts again
    except OSError:
        return None
    before = _kilobytes(status.read_text(), "VmRSS")
    example.run()
    return weight_bytes + 1024.0 * max(_kilobytes(status.read_text(), "VmHWM") - before, 0)


def _kilobytes(text: str, name: str) -> int:
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith(name))
