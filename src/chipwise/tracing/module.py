"""A module of PyTorch as a `Program`: its forward pass, or a step of training, run without memory."""

from __future__ import annotations

import inspect
import math
import os
import re
import traceback
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

import torch
from torch.nn.utils.stateless import _reparametrize_module
from torch.utils._pytree import tree_flatten, tree_map_only

from chipwise.errors import ChipwiseError, CommandText, Sentence, UsageError, shorten
from chipwise.tracing.flow import Flow, OneByOne, counted
from chipwise.tracing.recorder import Recorder
from chipwise.values import dataclass
from chipwise.workload.backward import LOGITS, NOT_UPDATED, SAVED
from chipwise.workload.op import Op
from chipwise.workload.program import PEAK, Program, Stage


def trace_module(
    module: Callable[..., Any], example: tuple[Any, ...], keywords: Mapping[str, Any], *, training: bool, name: str = ""
) -> Program:
    """The operators of `module(*example, **keywords)`, with `training` of the backward pass too."""
    if not callable(module):
        what = f"{shorten(repr(module), 60)} is not a torch.nn.Module"
        raise UsageError(what, "pass the module itself; of a file: chipwise trace FILE.py:function")
    recorder = Recorder()
    with recorder.running():
        return _pipeline(_traced(recorder, module, example, keywords, training=training, name=name))


@dataclass(frozen=True)
class Calls:
    """(repeats, operator) of every kernel that a run without a compiler starts, in order and named as PyTorch names
    them; bytes of weights and buffers, and the most that is alive at once, weights included."""

    ops: tuple[tuple[float, Op], ...]
    weight_bytes: float
    peak_bytes: float


def trace_calls(
    module: Callable[..., Any], example: tuple[Any, ...], keywords: Mapping[str, Any], *, training: bool
) -> Calls:
    """The kernels of `module(*example, **keywords)` one by one, with `training` of the backward pass too."""
    recorder = Recorder(OneByOne())
    with recorder.running():
        run = _traced(recorder, module, example, keywords, training=training, name="")
    return Calls(tuple(run.ops), run.weights.bytes, run.weights.bytes + run.memory.total)


def build_and_trace(build: Callable[[], Any], *, training: bool, name: str) -> Program:
    """The same for what `build()` returns: a module, (module, example, ...), or a finished `Program`.

    The module is built without memory. Raises `UsageError` where it is something else, or needs example arguments.
    """
    recorder = Recorder()
    with recorder.running():
        found = called(build, name)
        if isinstance(found, Program):
            return found
        module, *example = found if isinstance(found, tuple) else (found,)
        keywords: Mapping[str, Any] = {}
        if callable(module) and example and isinstance(example[-1], Mapping) and _takes(module, example[-1]):
            keywords = example.pop()
        if len(example) == 1 and isinstance(example[0], tuple):
            example = list(example[0])
        if not callable(module):
            raise UsageError(
                f"{name}: returned {shorten(repr(module), 60)}", "return a torch.nn.Module, or (module, example, ...)"
            )
        if not example and not keywords:
            example, keywords = own_example(module, name)
        return _pipeline(_traced(recorder, module, tuple(example), keywords, training=training, name=""))


def _takes(module: Any, keywords: Mapping[str, Any]) -> bool:
    """Whether a mapping at the end of example arguments names arguments, rather than being one (PixArt's
    `added_cond_kwargs`), of which no key is an argument's name."""
    known = inspect.signature(getattr(module, "forward", module)).parameters
    return bool(set(keywords) & set(known)) or any(p.kind is p.VAR_KEYWORD for p in known.values())


def own_example(module: Any, name: str) -> tuple[list[Any], Mapping[str, Any]]:
    """Example arguments that a module brings: Lightning's, transformers', timm's. Raises `UsageError` without any."""
    own = getattr(module, "example_input_array", None)
    if own is not None:
        return (list(own), {}) if isinstance(own, tuple) else ([own], {})
    own = getattr(module, "dummy_inputs", None)
    if isinstance(own, Mapping):
        return [], own
    size = (getattr(module, "default_cfg", None) or {}).get("input_size")
    if size:
        return [torch.empty(1, *size)], {}
    needed = [
        p.name
        for p in inspect.signature(getattr(module, "forward", module)).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if not needed:
        return [], {}
    say = ", ".join(needed)
    raise UsageError(
        f"{name}: the module needs example arguments ({say})",
        f"return (module, {say}), tensors of the shapes that you run, as in torch.empty(1, 3, 224, 224)",
    )


@dataclass(frozen=True)
class _Weights:
    """What a module holds: tensors without memory by name, and how many entries and bytes they are."""

    tensors: Mapping[str, torch.Tensor]
    parameters: int
    bytes: float
    leaves: tuple[torch.Tensor, ...]


def _traced(
    recorder: Recorder,
    module: Callable[..., Any],
    example: tuple[Any, ...],
    keywords: Mapping[str, Any],
    *,
    training: bool,
    name: str,
) -> _TracedRun:
    recorder.recording = False
    while isinstance(module, (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)):
        recorder.notes["one copy of a data-parallel module is traced, its exchanges are not part of it"] = None
        module = module.module
    if training and not isinstance(module, torch.nn.Module):
        raise UsageError("only a torch.nn.Module can be trained", "pass the module itself")
    weights = _held(recorder, module)
    args, kwargs = tree_map_only(torch.Tensor, lambda t: _example(recorder, t), (example, dict(keywords)))
    title = name or type(module).__name__
    shapes = [list(t.shape) for t in tree_flatten((args, kwargs))[0] if isinstance(t, torch.Tensor)]
    with ExitStack() as stack:
        if isinstance(module, torch.nn.Module):
            stack.enter_context(recorder.named(module))
            was = {part: part.training for part in module.modules()}
            for part, mode in was.items():
                stack.callback(setattr, part, "training", mode)
            _set_mode(module, title, training=training)
            # for the backward pass too: what is computed again there reads the parameters once more
            stack.enter_context(_reparametrize_module(module, dict(weights.tensors)))
        recorder.recording = True
        for tensor in tree_flatten((args, kwargs))[0]:
            if isinstance(tensor, torch.Tensor):
                recorder.hold(tensor)
        with torch.set_grad_enabled(training):
            out = called(module, title, args, kwargs, shapes)
        results = [t for t in tree_flatten(_plain(out))[0] if isinstance(t, torch.Tensor)]
        kept = {recorder.bytes_of(t)[0] for t in results}
        grads: set[int] = set()
        forward = len(recorder.events)
        saved = _saved(recorder, kept) if training else 0.0
        loss = None
        if training:
            loss = loss_of(out, title)
            del out, results
            called(loss.backward, title, shapes=shapes)
            held = [leaf.grad for leaf in weights.leaves if leaf.grad is not None]
            grads = {recorder.bytes_of(grad)[0] for grad in held}
            kept |= grads
    alive, peak = _peak(recorder, grads)
    before, _ = _peak(recorder, grads, forward)
    tensors = [t for t in tree_flatten((args, kwargs))[0] if isinstance(t, torch.Tensor)]
    memory = _Memory(alive, peak, before, training, saved, recorder.logits)
    return _TracedRun(title, recorder.flow.ops(kept), weights, tensors, memory, tuple(recorder.notes))


def _set_mode(module: torch.nn.Module, title: str, *, training: bool) -> None:
    """Training or inference, as far as the module knows both: what `torch.export` wrote is for inference."""
    try:
        module.train(training)
    except NotImplementedError:
        if training:
            raise UsageError(
                f"{title}: an exported program has no training mode", "trace the module that it was made of"
            ) from None


@dataclass(frozen=True)
class _Memory:
    """Most bytes alive: of activations, of activations and gradients together, of activations in the forward pass.
    `saved`, `logits`: as `workload.backward` names them."""

    activations: float
    total: float
    forward: float
    training: bool
    saved: float
    logits: float


@dataclass(frozen=True)
class _TracedRun:
    """What was recorded: (repeats, operator) in order, what the module holds, its example tensors, and memory."""

    title: str
    ops: list[tuple[float, Op]]
    weights: _Weights
    tensors: list[torch.Tensor]
    memory: _Memory
    notes: tuple[str, ...]


def _pipeline(run: _TracedRun) -> Program:
    weights, memory = run.weights, run.memory
    backward = [(n, op) for n, op in run.ops if " backward" in op.name]
    forward = [(n, op) for n, op in run.ops if " backward" not in op.name]
    parts = [("forward", forward, memory.forward), ("backward", backward, memory.activations)]
    stages = tuple(
        Stage(
            part if memory.training else run.title,
            counted(own),
            parameters=weights.parameters if part == "forward" else 0,
            weight_bytes=weights.bytes if part == "forward" else 0.0,
            activation_bytes=alive,
        )
        for part, own, alive in parts
        if memory.training or part == "forward"
    )
    settings = {PEAK: memory.total + weights.bytes}
    settings |= {SAVED: memory.saved} if memory.training else {}
    settings |= {LOGITS: memory.logits} if memory.logits else {}
    first = next((t for t in run.tensors if t.ndim), None)
    batch = int(first.shape[0]) if first is not None else 1
    said = [
        f"traced at {', '.join(map(_shape, run.tensors))}",
        "element-wise work is joined where the software compiles, else every call is a kernel",
    ]
    if memory.training:
        said.append(NOT_UPDATED)
    if first is not None:
        said.append(f"the first dimension of the first tensor is taken for the batch, {batch}")
    return Program(
        run.title, stages, batch=batch, trained=memory.training, settings=settings, assumptions=(*said, *run.notes)
    )


def _shape(tensor: torch.Tensor) -> str:
    return f"{'x'.join(map(str, tensor.shape)) or 'scalar'} {str(tensor.dtype).removeprefix('torch.')}"


def _held(recorder: Recorder, module: Any) -> _Weights:
    """Parameters and buffers without memory; those that are one tensor under two names stay one."""
    if not isinstance(module, torch.nn.Module):
        return _Weights({}, 0, 0.0, ())
    made: dict[int, torch.Tensor] = {}
    entries, size = 0, 0.0
    tensors: dict[str, torch.Tensor] = {}
    leaves: list[torch.Tensor] = []
    named = [
        *((n, p, True) for n, p in module.named_parameters(remove_duplicate=False)),
        *((n, b, False) for n, b in module.named_buffers(remove_duplicate=False)),
    ]
    for name, tensor, is_parameter in named:
        if hasattr(tensor, "_local_tensor"):
            what = f"{type(module).__name__}: parameter {shorten(name, 60)} is a part of one that several devices hold"
            raise UsageError(what, ALONE)
        if id(tensor) not in made:
            fresh = recorder.like(tensor.detach())
            recorder.hold(fresh, weight=True, value=None if is_parameter else recorder.value(tensor))
            if is_parameter:
                fresh = torch.nn.Parameter(fresh, requires_grad=tensor.requires_grad)
                leaves.append(fresh)
                entries += tensor.numel()
            size += tensor.numel() * tensor.element_size()
            made[id(tensor)] = fresh
        tensors[name] = made[id(tensor)]
    return _Weights(tensors, entries, float(size), tuple(leaves))


def _example(recorder: Recorder, tensor: torch.Tensor) -> torch.Tensor:
    """An example argument without memory; whole numbers keep their values, which say places and masks."""
    made = recorder.like(tensor.detach())
    value = recorder.value(tensor)
    if value is not None and not (tensor.is_floating_point() or tensor.is_complex()):
        recorder.hold(made, value=value)
    return made


def called(code: Callable[..., Any], title: str, args: Any = (), kwargs: Any = None, shapes: Any = None) -> Any:
    """The user's code; whatever it raises is one line with the next step."""
    try:
        return code(*args, **(kwargs or {}))
    except ChipwiseError:
        raise
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        refused = _cause(error)
        if refused is not None:
            raise refused from None
        said = shorten(" ".join(str(error).split()) or type(error).__name__, 200)
        if ".numpy()" in said:
            hint = "a trace has shapes without values: compute it with torch"
            raise UsageError(f"{title}: .numpy() needs values that depend on the data", hint) from None
        own = OPERATOR.search(str(error))
        if own is not None:
            what = f"{title}: the operator {own[1]} is compiled, not dispatched, so that it cannot be traced"
            hint = "for attention use scaled_dot_product_attention, in transformers attn_implementation='sdpa'"
            raise UsageError(what, hint) from None
        if isinstance(error, ImportError):
            hint = "install it where chipwise is installed"
        elif _spreads(error):
            hint = ALONE
        elif shapes:
            hint = f"with example arguments of {shapes}: do they have the shapes and types that it takes?"
        else:
            hint = "build the module from its configuration, not from files: it may be run without memory"
        raise UsageError(f"{title}: {type(error).__name__}: {said}", hint) from None


ALONE = Sentence(
    "give the module itself, before it is spread: ", CommandText("plan --task train"), " plans how devices share it"
)
OPERATOR = re.compile(r"HigherOrderOperator (\w+)")
"""An operator that takes functions (flex_attention, scan, cond) in what torch says of one."""


def _spreads(error: BaseException) -> bool:
    """Whether it comes from code that spreads a module over devices."""
    frames = traceback.extract_tb(error.__traceback__)
    home = os.path.dirname(torch.__file__)
    return any(f.filename.startswith((f"{home}/distributed/", f"{home}/nn/parallel/")) for f in frames)


def _cause(error: BaseException | None) -> ChipwiseError | None:
    while error is not None:
        if isinstance(error, ChipwiseError):
            return error
        error = error.__cause__ or error.__context__
    return None


def _plain(out: Any) -> Any:
    """Results as containers that torch looks into."""
    if hasattr(out, "to_tuple"):
        return out.to_tuple()
    if isinstance(out, Mapping):
        return list(out.values())
    return out


def loss_of(out: Any, title: str) -> torch.Tensor:
    """The loss that a module returns, else the sum of its results. Raises `UsageError` where none depends on a
    parameter."""
    results = [t for t in tree_flatten(_plain(out))[0] if isinstance(t, torch.Tensor)]
    own = out.get("loss") if isinstance(out, Mapping) else getattr(out, "loss", None)
    if isinstance(own, torch.Tensor) and own.requires_grad:
        return own
    grown = [t for t in results if t.requires_grad and (t.is_floating_point() or t.is_complex())]
    if not grown:
        raise UsageError(f"{title}: no result depends on a parameter", "without --training its forward pass is traced")
    if len(grown) == 1 and grown[0].ndim == 0:
        return grown[0]
    total = grown[0].sum()
    for other in grown[1:]:
        total = total + other.sum()
    return total


def _saved(recorder: Recorder, results: set[int]) -> float:
    """Bytes that layers hold when the forward pass ends, less what joined kernels compute again, and less results,
    logits and what a loss makes of them."""
    alive: dict[int, float] = {}
    for event in recorder.events:
        alive[event.buffer] = alive.get(event.buffer, 0.0) + event.bytes
    held: Mapping[Any, float] = {b: size for b, size in alive.items() if size > 0.0 and b not in results}
    if isinstance(recorder.flow, Flow):
        held = recorder.flow.kept(held)
    lost = {width * recorder.logits for width in (2.0, 4.0)} if recorder.logits else set()
    return sum(size for size in held.values() if size not in lost)


def _peak(recorder: Recorder, grads: set[int], events: int | None = None) -> tuple[float, float]:
    """Most bytes alive at a time: of activations alone, and with gradients of parameters."""
    alive = total = most = most_total = 0.0
    for event in recorder.events[:events]:
        total += event.bytes
        if event.buffer not in grads:
            alive += event.bytes
        most, most_total = max(most, alive), max(most_total, total)
    return (most, most_total) if math.isfinite(most) else (0.0, 0.0)
