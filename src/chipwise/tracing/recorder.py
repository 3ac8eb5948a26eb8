"""A module run without memory: every operator that reaches PyTorch's dispatcher, with shapes, types and lifetimes."""

from __future__ import annotations

import ctypes
import logging
import os
import re
import resource
import sys
import sysconfig
import threading
import time
import traceback
import warnings
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import field, replace
from types import FrameType
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedOperatorException,
)
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_flatten, tree_map_only
from torch.utils.weak import WeakIdKeyDictionary

from chipwise.errors import UsageError, shorten
from chipwise.tracing.flow import ONE, Flow, OneByOne, Starts, Touch
from chipwise.tracing.operators import Call, TracedWork, work_of
from chipwise.values import dataclass

aten = torch.ops.aten
NOTHING = frozenset(
    "empty empty_strided empty_like new_empty new_empty_strided detach alias lift_fresh lift _unsafe_view "
    "_reshape_alias set_ resize_ record_stream _local_scalar_dense is_same_size item sym_size sym_stride "
    "sym_numel".split()
)
"""Operators that start no kernel."""

LOSSES = frozenset(("_log_softmax",))
"""Operators of a loss over a vocabulary, whose results have an entry for each of its logits."""
PRODUCTS = frozenset(("mm", "addmm", "bmm", "baddbmm"))
"""Operators that BLAS runs."""

MOST_KNOWN = 256_000_000  # bytes of values that are kept
MOST_VALUES, MOST_FLAGS = 2**24, 2**27  # values of one tensor that are computed: numbers, and bytes (masks)
HIDDEN = -1e4  # what is added to a score that shall not count is below
MOST_OPERATORS = 100_000  # some five times what the largest networks have
MOST_SECONDS = 120.0  # of a trace, building included; the largest networks take some 15 of a processor
MOST_GROWTH = 8 * 2**30  # bytes that the process may grow by: tensors without memory take nearly none
RECURRENT = frozenset((torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu))
"""Layers that cuDNN and MIOpen compute in one call of the framework, all steps and directions."""
WHOLE = frozenset((torch.nn.functional.rms_norm, torch.nn.functional.dropout))
"""Functions that a processor computes in several operators, whose kernels are recorded, and a GPU in one (aten's
_fused_rms_norm and native_dropout)."""
STEP_LAUNCHES = 0.4
"""kernels: of a step of such a layer in the host's time of a framework's operator. Chosen: a product and one kernel of
gates, each started by the library in about 4 us (CUDA's launch latency), where PyTorch takes about 20 us for an
operator; moves recurrent layers of few rows in proportion."""
DIGITS = re.compile(r"(?<![^.])\d+(?![^.])")


@dataclass(frozen=True, slots=True)
class _Event:
    """A buffer that begins (bytes > 0) or ends to live."""

    buffer: int
    bytes: float


@dataclass(slots=True)
class _LibraryCall:
    """A call that a library computes whole, by a kernel that moves so many bytes (`moved`, None: products that each
    start one) in a pass; the first node of autograd that may be its own, and in which passes it has begun, forward and
    backward."""

    moved: float | None
    node: int
    begun: set[bool] = field(default_factory=set)

    def starts(self, *, backward: bool) -> Starts:
        """What a framework starts for one more of its operators."""
        if self.moved is None or backward in self.begun:
            return Starts(0.0, 0.0)
        self.begun.add(backward)
        return Starts(1.0, self.moved * (1.5 if backward else 1.0))  # a gradient is read besides


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records what runs within it. Tensors have shapes and types, and no memory.

    Values are kept where they are cheap and depend on no weight or input: positions, masks, sizes. Code that asks for
    them gets them, masks say what attention sees. What depends on values that are not there raises `UsageError`.
    """

    def __init__(self, flow: Flow | OneByOne | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.fake = FakeTensorMode(allow_non_fake_inputs=True)
        self.flow = flow or Flow()
        self.notes: dict[str, None] = {}
        self.recording = False
        self.weights: set[int] = set()
        self.events: list[_Event] = []
        self._values: Any = WeakIdKeyDictionary()
        self._known_bytes = 0
        self._buffers: Any = WeakIdKeyDictionary()
        self._made = 0
        self._count = 0
        self._converted: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._path: list[str] = []
        self._paths: dict[int, str] = {}
        self._looking = True
        self._shares: Any = WeakIdKeyDictionary()
        self._visible: float | None = None
        self._seen: dict[int, float] = {}
        self.logits = 0.0
        self._library: _LibraryCall | None = None
        self._libraries: dict[int, _LibraryCall] = {}

    # -- what stands around a run

    @contextmanager
    def running(self) -> Iterator[None]:
        """Everything below is run without memory; nothing is left changed."""
        mha = torch.backends.mha.get_fastpath_enabled()
        onednn = torch._C._get_mkldnn_enabled()
        with ExitStack() as stack:
            stack.enter_context(_bounded())
            stack.callback(torch.backends.mha.set_fastpath_enabled, mha)
            torch.backends.mha.set_fastpath_enabled(False)
            stack.callback(torch._C._set_mkldnn_enabled, onednn)
            stack.enter_context(warnings.catch_warnings())
            # torch's own classes look at pointers (its encoder layers do): nothing that the user can change
            warnings.filterwarnings("ignore", "Accessing the data pointer of FakeTensor")
            logger = logging.getLogger("torch._subclasses.fake_tensor")
            stack.callback(setattr, logger, "disabled", logger.disabled)
            logger.disabled = True  # what it says is raised as well
            torch._C._set_mkldnn_enabled(False)  # its kernels of recurrent networks hide what they compute
            stack.enter_context(mock.patch.object(torch.autocast, "__init__", _autocast))
            stack.enter_context(mock.patch.object(torch.nn.Module, "_apply", _Conversion()))
            stack.enter_context(self.fake)
            stack.enter_context(self)
            stack.enter_context(_RecordedCalls(self))
            yield

    @contextmanager
    def named(self, module: torch.nn.Module) -> Iterator[None]:
        """Operators are called by the part of the module that runs them, numbers of layers left out."""
        names = {
            part: DIGITS.sub("*", name)
            for name, part in module.named_modules()
            if not isinstance(part, torch.jit.ScriptModule)  # they take no hooks
        }
        handles = [
            part.register_forward_pre_hook(self._enter(name), with_kwargs=True) for part, name in names.items()
        ] + [part.register_forward_hook(self._leave, always_call=True) for part in names]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _enter(self, name: str) -> Any:
        def hook(*_: Any) -> None:
            self._path.append(name)

        return hook

    def _leave(self, *_: Any) -> None:
        if self._path:
            self._path.pop()

    # -- tensors

    def hold(self, tensor: torch.Tensor, *, weight: bool = False, value: torch.Tensor | None = None) -> None:
        """A tensor that is there before the run; of its values, where they are given, a copy is kept."""
        number = self._buffer(tensor, weight=weight)
        if weight:
            self.weights.add(number)
        if value is not None:
            with _disable_current_modes():
                self._keep(tensor, value.detach().clone())

    def like(self, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor of this shape and type without memory, on the device where all run. Raises `UsageError` for one that
        has no places in memory of its own, as sparse ones."""
        if tensor.layout != torch.strided or tensor.is_quantized:
            kind = "quantised" if tensor.is_quantized else str(tensor.layout).removeprefix("torch.")
            raise UsageError(f"a {kind} tensor cannot be traced", "use a dense one, e.g. tensor.to_dense()")
        made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
        return made.requires_grad_(tensor.requires_grad) if tensor.is_leaf else made

    def value(self, tensor: Any) -> torch.Tensor | None:
        """The values of a tensor where they are known."""
        if not isinstance(tensor, FakeTensor):
            return tensor if isinstance(tensor, torch.Tensor) and tensor.device.type == "cpu" else None
        found: torch.Tensor | None = self._values.get(tensor)
        return found

    def bytes_of(self, tensor: torch.Tensor) -> tuple[int, float]:
        """The buffer behind a tensor, and its bytes."""
        storage = tensor.untyped_storage()
        return self._buffer(tensor), float(storage.nbytes())

    def _buffer(self, tensor: torch.Tensor, *, weight: bool = False) -> int:
        storage = tensor.untyped_storage()
        number: int | None = self._buffers.get(storage)
        if number is None:
            self._made += 1
            number = self._made
            self._buffers[storage] = number
            if not weight and self.recording:
                size = float(storage.nbytes())
                self.events.append(_Event(number, size))
                weakref.finalize(storage, self.events.append, _Event(number, -size)).atexit = False
        return number

    def _keep(self, tensor: torch.Tensor, value: torch.Tensor) -> None:
        size = value.numel() * value.element_size()
        most = MOST_FLAGS if value.element_size() == 1 else MOST_VALUES
        if value.numel() > most or self._known_bytes + size > MOST_KNOWN:
            return
        self._known_bytes += size
        self._values[tensor] = value
        weakref.finalize(tensor, self._forget, size).atexit = False

    def _forget(self, size: int) -> None:
        self._known_bytes -= size

    @contextmanager
    def attending(self, mask: torch.Tensor | None) -> Iterator[None]:
        """Within a call of attention; its mask says what is seen, what else is made of it is not looked at."""
        value = self.value(mask)
        if mask is not None and value is not None:
            if mask not in self._shares:
                with _disable_current_modes():
                    seen = value if value.dtype == torch.bool else value > HIDDEN
                    self._shares[mask] = np.count_nonzero(seen.numpy()) / max(seen.numel(), 1)
            self._visible = self._shares[mask]
        self._looking = False
        try:
            yield
        finally:
            self._visible, self._looking = None, True

    @contextmanager
    def in_library(self, moved: float | None = None) -> Iterator[None]:
        """Within what one call of a library computes, by a kernel that moves so many bytes, None: by several; no
        framework starts those of its operators, forward or backward."""
        before = self._library
        self._library = before or _LibraryCall(moved, torch._C._autograd._get_sequence_nr())
        try:
            yield
        finally:
            self._library = before

    def _called_library(self) -> tuple[_LibraryCall | None, bool]:
        """The call of a library at work, and whether in its backward pass."""
        node = torch._C._current_autograd_node()
        if node is not None:
            return self._libraries.get(node._sequence_nr()), True
        made = torch._C._autograd._get_sequence_nr() - 1
        if self._library is not None and made >= self._library.node:
            self._libraries[made] = self._library
        return self._library, False

    # -- operators

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """One operator."""
        kwargs = kwargs or {}
        if func.namespace == "prim":
            return func(*args, **kwargs)
        if func._can_decompose() and func is not aten.detach.default:
            with self:
                found = func.decompose(*args, **kwargs)
            if found is not NotImplemented:
                return found
        given = self._named(func, args, kwargs)
        tensors = _tensors((args, kwargs))
        values = [self.value(t) for t in tensors]
        mutated = self._mutated(func, given)
        # the user's own stay as they are
        known = self._looking and all(v is not None for v in values)
        known = known and all(isinstance(t, FakeTensor) for t in mutated)
        real = self._real(func, args, kwargs, tensors, values) if known else None
        if func in ASKS and real is not None:
            return real if not isinstance(real, torch.Tensor) else self._fresh(real)
        if func in INDEXED:
            args = self._without_masks(args)
        wrapped_args, wrapped_kwargs = tree_map_only(torch.Tensor, self._converted_once, (args, kwargs))
        try:
            out = RESULTS.get(_plain(func), func)(*wrapped_args, **wrapped_kwargs)
        except RuntimeError as error:  # what depends on data and unsupported operators are some
            return self._instead(func, error, real, tensors)
        for tensor in mutated:
            self._changed(tensor, known)
        if real is not None and not mutated:
            for made, value in zip(tree_flatten(out)[0], tree_flatten(real)[0], strict=True):
                if isinstance(made, torch.Tensor) and isinstance(value, torch.Tensor):
                    self._keep(made, value)
        if self.recording:
            self._record(func, self._named(func, wrapped_args, wrapped_kwargs), out, mutated)
        return out

    def _instead(self, func: Any, error: RuntimeError, real: Any, tensors: Sequence[torch.Tensor]) -> Any:
        """What an operator gives that cannot run without data: its real result where that is known. Raises `UsageError`
        where it is not, or a custom operator does not say what it returns, and `error` where it is another."""
        if isinstance(error, (DataDependentOutputException, DynamicOutputShapeException)):
            if real is not None:
                return tree_map_only(torch.Tensor, self._fresh, real)
            if not self.recording and func is aten._local_scalar_dense.default and _initialising():
                return False if tensors[0].dtype == torch.bool else 0.0
            raise self._refusal(
                f"{_called(func)} needs values that depend on the data",
                "replace the branch or the indexing by torch.where or a fixed size; for experts choose one without "
                "loops, e.g. config._experts_implementation = 'grouped_mm'",
            ) from None
        if not isinstance(error, UnsupportedOperatorException) and "no fake impl" not in str(error):
            raise error
        raise self._refusal(
            f"custom operator {_called(func)} does not say what it returns",
            f"add torch.library.register_fake('{func.namespace}::{_plain(func)}', ...)",
        ) from None

    def _named(self, func: Any, args: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        schema = func._schema.arguments
        found = {a.name: a.default_value for a in schema if a.has_default_value()}
        found |= {a.name: value for a, value in zip(schema, args, strict=False)}
        return found | dict(kwargs)

    def _mutated(self, func: Any, given: Mapping[str, Any]) -> list[torch.Tensor]:
        if not func._schema.is_mutable:
            return []
        names = [a.name for a in func._schema.arguments if a.alias_info is not None and a.alias_info.is_write]
        return [t for n in names for t in tree_flatten(given.get(n))[0] if isinstance(t, torch.Tensor)]

    def _real(self, func: Any, args: Any, kwargs: Any, tensors: list[Any], values: list[Any]) -> Any:
        """The same on values, where it is cheap and certain; None elsewhere. One number drawn at random is its mean, so
        that code which drops layers at random keeps those that it mostly keeps."""
        if func is aten.rand.default and _size_of(args, {}) == 1.0:
            with _disable_current_modes():
                self.notes["a number drawn at random, as to drop layers, is taken to be its mean"] = None
                return torch.full(args[0], 0.5)
        if torch.Tag.nondeterministic_seeded in func.tags or _plain(func) in NOT_COMPUTED:
            return None
        if any(v.numel() > (MOST_FLAGS if v.element_size() == 1 else MOST_VALUES) for v in values):
            return None
        asked = [given for given in tree_flatten((args, kwargs))[0] if isinstance(given, int)]
        if not tensors and _size_of(args, kwargs) > MOST_VALUES and asked:
            return None
        table = {id(t): v for t, v in zip(tensors, values, strict=True)}
        swapped_args, swapped_kwargs = tree_map_only(torch.Tensor, lambda t: table[id(t)], (args, kwargs))
        if "device" in swapped_kwargs:
            swapped_kwargs = {**swapped_kwargs, "device": torch.device("cpu")}
        with _disable_current_modes(), torch.no_grad():
            try:
                return func(*swapped_args, **swapped_kwargs)
            except (RuntimeError, NotImplementedError, TypeError, MemoryError):
                return None

    def _changed(self, tensor: torch.Tensor, known: bool) -> None:
        """Values of what was written over by unknown ones are not known any more, nor those of its views."""
        value = self._values.get(tensor)
        if value is None or known:
            return
        place = value.untyped_storage().data_ptr()
        for other in [t for t, v in self._values.items() if v.untyped_storage().data_ptr() == place]:
            del self._values[other]

    def _fresh(self, value: torch.Tensor) -> torch.Tensor:
        made = self.fake.from_tensor(value)
        self._keep(made, value)
        return made

    def _converted_once(self, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor with memory that code holds outside of its parameters, without it."""
        if isinstance(tensor, FakeTensor):
            return tensor
        if id(tensor) not in self._converted:
            plain = tensor.device.type == "cpu" and tensor.layout == torch.strided
            made = self.fake.from_tensor(tensor) if plain else self.like(tensor)
            self.hold(made, weight=tensor.numel() > 1)
            self._converted[id(tensor)] = (tensor, made)
        return self._converted[id(tensor)][1]

    def _without_masks(self, args: Any) -> Any:
        """Indices with masks as the places that they name, where those are known."""
        first, indices, *rest = args
        found: list[Any] = []
        for index in indices:
            mask = self.value(index) if index is not None and index.dtype in (torch.bool, torch.uint8) else None
            if mask is None:
                found.append(index)
            else:
                with _disable_current_modes():
                    places = mask.nonzero(as_tuple=True)
                found += [self._fresh(p) for p in places]
        return (first, found, *rest)

    def _record(self, func: Any, given: Mapping[str, Any], out: Any, mutated: list[torch.Tensor]) -> None:
        """One operator in the flow of the trace, as what prices it takes it."""
        name = _plain(func)
        outputs = _tensors(out)
        for tensor in outputs:
            self._buffer(tensor)
        if kernel_of(func) is None or not outputs:
            return
        self._counted()
        tensors = [(n, t) for n, v in given.items() for t in _tensors(v)]
        overwritten = {id(t) for t in mutated} if name in OVERWRITTEN else set()
        reads = [self._touch(t) for _, t in tensors if id(t) not in overwritten]
        own = {id(t) for t in outputs}
        writes = [self._touch(t) for t in (*outputs, *(t for t in mutated if id(t) not in own))]
        weights = frozenset(n for n, t in tensors if self._buffer(t) in self.weights)
        path = self._where(func) if isinstance(self.flow, Flow) else name
        self._remembered(name, tensors, outputs)
        work = work_of(Call(name, given, outputs, weights, self._mask()))
        self.notes |= dict.fromkeys((*work.notes, *_unknown(func)))
        elements = float(max((t.numel() for t in (*outputs, *(t for _, t in tensors))), default=0))
        self._placed(work, name, path or name, elements, reads, writes)

    def _counted(self) -> None:
        """Counts an operator. Raises `UsageError` where a trace has too many."""
        self._count += 1
        if self._count > MOST_OPERATORS:
            raise UsageError(
                f"the trace has more than {MOST_OPERATORS:,} operators", "trace one layer, or a shorter input"
            )

    def _remembered(
        self, name: str, tensors: Sequence[tuple[str, torch.Tensor]], outputs: Sequence[torch.Tensor]
    ) -> None:
        """What a product copies before it multiplies, and the largest input of a loss."""
        if name in PRODUCTS:
            read = [t for n, t in tensors if n != "self" or name in ("mm", "bmm")]
            copied = sum(float(t.numel() * t.element_size()) for t in read if _copied(t))
            self._made += 1
            self.events += (_Event(self._made, copied), _Event(self._made, -copied)) if copied else ()
        if name in LOSSES:
            self.logits = max(self.logits, float(outputs[0].numel()))

    def _placed(
        self, work: TracedWork, name: str, label: str, elements: float, reads: list[Touch], writes: list[Touch]
    ) -> None:
        """An operator's work in the flow: operators of their own, two passes over what it reads, or a part of what is
        fused around it."""
        library, backward = self._called_library()
        if work.ops:
            for n, (repeats, op) in enumerate(work.ops):
                last = n == len(work.ops) - 1
                said = isinstance(self.flow, OneByOne) or op.name in (name, "conv")
                own = replace(op, name=label if said else f"{label} ({op.name})")
                own = replace(own, launches=STEP_LAUNCHES) if library is not None else own
                self.flow.alone(own, reads, writes if last else (), repeats=repeats)
        elif work.way == "two passes":
            stage = Touch(("sums", self._count), 8.0)
            self.flow.fused(label, elements, reads, (stage,), flops=work.flops / 2, way="ends")
            self.flow.fused(label, elements, (*reads, stage), writes, flops=work.flops / 2)
        else:
            starts = ONE if library is None else library.starts(backward=backward)
            self.flow.fused(label, elements, reads, writes, flops=work.flops, way=work.way, starts=starts)

    def _touch(self, tensor: torch.Tensor) -> Touch:
        number, most = self.bytes_of(tensor)
        count = 1
        for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
            count *= size if stride or not size else 1
        return Touch(number, min(float(count * tensor.element_size()), most), number in self.weights)

    def _where(self, func: Any) -> str:
        """The part of the module at work; of a backward operator that of the forward one."""
        node = torch._C._current_autograd_node()
        if node is not None:
            path = self._paths.get(node._sequence_nr(), "")
            return f"{path} backward" if path else f"{_plain(func)} backward"
        path = self._path[-1] if self._path else ""
        self._paths[torch._C._autograd._get_sequence_nr() - 1] = path
        return path

    def _mask(self) -> float | None:
        """What the mask at hand leaves visible: that of the call, or of the forward call."""
        node = torch._C._current_autograd_node()
        if node is not None:
            return self._seen.get(node._sequence_nr())
        if self._visible is not None:
            self._seen[torch._C._autograd._get_sequence_nr() - 1] = self._visible
        return self._visible

    def _refusal(self, what: str, hint: str) -> UsageError:
        return UsageError(f"{_place()}{what}", hint)


class _RecordedCalls(TorchFunctionMode):
    """Functions as users call them: attention's mask and dropout, devices that are not there."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """One function."""
        kwargs = dict(kwargs or {})
        if func is torch.nn.functional.scaled_dot_product_attention:
            return self._attended(func, args, kwargs)
        if func in (torch.Tensor.cuda, torch.Tensor.pin_memory):
            return args[0]
        if func in RECURRENT:
            with self.recorder.in_library():
                return func(*args, **kwargs)
        if func in WHOLE and args and isinstance(args[0], torch.Tensor):
            with self.recorder.in_library(2.0 * args[0].numel() * args[0].element_size()):
                return func(*args, **kwargs)
        if "device" in kwargs and _elsewhere(kwargs["device"]):
            kwargs["device"] = torch.device("cpu")
        if func is torch.Tensor.to:
            args = tuple(torch.device("cpu") if _elsewhere(a) else a for a in args)
        return func(*args, **kwargs)

    def _attended(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Attention with dropout in its kernel, as GPUs have it; its mask is looked at."""
        names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
        given = {**dict(zip(names, args, strict=False)), **kwargs, "dropout_p": 0.0}
        if given["key"].shape[-1] != given["value"].shape[-1]:
            what = "attention whose keys and values have different sizes is counted as two products over all pairs"
            self.recorder.notes[what] = None
        with self.recorder.attending(given.get("attn_mask")):
            return func(**given)


class _Conversion:
    """`Module._apply`, which `.to`, `.half` and the like call, for tensors without memory: torch's own cannot replace
    them. What was one parameter under two names stays one."""

    def __init__(self) -> None:
        self.made: dict[int, tuple[Any, Any]] = {}

    def __get__(self, module: torch.nn.Module, _: type | None = None) -> Any:
        """Bound to a module."""
        return lambda change, recurse=True: self._changed(module, change, recurse=recurse)

    def _changed(self, module: torch.nn.Module, change: Any, *, recurse: bool) -> torch.nn.Module:
        for child in module.children() if recurse else ():
            child._apply(change)  # type: ignore[no-untyped-call]
        for table in (module._parameters, module._buffers):
            for name, tensor in table.items():
                if tensor is not None:
                    table[name] = self._one(tensor, change)  # type: ignore[assignment]
        return module

    def _one(self, tensor: torch.Tensor, change: Any) -> torch.Tensor:
        if id(tensor) not in self.made:
            with torch.no_grad():
                found = change(tensor)
            if isinstance(tensor, torch.nn.Parameter) and found is not tensor:
                found = torch.nn.Parameter(found, tensor.requires_grad)
            self.made[id(tensor)] = (tensor, found)
        made: torch.Tensor = self.made[id(tensor)][1]
        return made


ASKS = (
    aten._local_scalar_dense.default, aten.nonzero.default, aten.equal.default, aten.masked_select.default,
    aten._unique2.default, aten.unique_dim.default, aten.bincount.default, aten.repeat_interleave.Tensor,
)  # fmt: skip
INDEXED = (aten.index.Tensor, aten.index_put.default, aten.index_put_.default, aten._unsafe_index.Tensor)
NOT_COMPUTED = frozenset("empty empty_strided empty_like new_empty new_empty_strided mm bmm addmm convolution".split())
OVERWRITTEN = frozenset("copy_ fill_ zero_ normal_ uniform_ bernoulli_ random_ exponential_".split())
PLAIN = torch.autocast.__init__


def _autocast(self: Any, device_type: str, dtype: Any = None, *rest: Any, **more: Any) -> None:
    """Autocast of any device as that of the one where all run; without a type that of the device that was named."""
    usual = torch.float16 if device_type == "cuda" else torch.bfloat16
    PLAIN(self, "cpu", usual if dtype is None else dtype, *rest, **more)


def _grouped(a: torch.Tensor, b: torch.Tensor, offsets: Any = None, *_: Any) -> torch.Tensor:
    """The result of a grouped product, of any type: torch's own rule knows bfloat16 alone."""
    if a.dim() == 2 and b.dim() == 2:
        return a.new_empty((offsets.shape[0], a.shape[0], b.shape[1]))
    lead = a.shape[:1] if a.dim() == 3 and b.dim() == 3 else ()
    return a.new_empty((*lead, a.shape[-2], b.shape[-1]))


def _ctc(log_probs: torch.Tensor, targets: torch.Tensor, *_: Any, **__: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Results of the CTC loss at the longest targets, whose lengths torch's own rule would have to know: losses, and
    forward scores of every label with blanks between (Graves et al. 2006)."""
    steps, batch = log_probs.shape[0], log_probs.shape[1] if log_probs.ndim == 3 else 1
    longest = targets.shape[-1] if targets.ndim == 2 else -(-targets.shape[0] // batch)
    return log_probs.new_empty(batch), log_probs.new_empty((batch, steps, 2 * longest + 1))


def _ctc_gradient(grad: torch.Tensor, log_probs: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    """The gradient of the same."""
    return torch.empty_like(log_probs)


RESULTS: Mapping[str, Any] = {
    "_grouped_mm": _grouped, "_ctc_loss": _ctc, "_ctc_loss_backward": _ctc_gradient,
}  # fmt: skip
"""What operators return whose rules in torch want values, or know one type alone."""


def _elsewhere(device: Any) -> bool:
    if isinstance(device, (str, torch.device)):
        return str(device).partition(":")[0] in ("cuda", "mps", "xpu", "hpu", "npu", "tpu", "xla")
    return isinstance(device, int) and not isinstance(device, bool)


def _copied(tensor: torch.Tensor) -> bool:
    """Whether a product copies an operand first: BLAS reads matrices whose rows or columns are contiguous and do not
    overlap, so not the gradient of a sum, one number that is every entry."""
    if tensor.ndim < 2 or not tensor.numel():
        return False
    (rows, columns), (down, across) = tensor.shape[-2:], tensor.stride()[-2:]
    by_rows = across == 1 and down >= max(columns, 1)
    by_columns = down == 1 and across >= max(rows, 1)
    return not (by_rows or by_columns)


def kernel_of(func: Any) -> str | None:
    """The name of an operator without its overload; None where it starts no kernel."""
    name = _plain(func)
    return None if func.is_view or name in NOTHING else name


def _plain(func: Any) -> str:
    return str(func._schema.name.partition("::")[2])


def _unknown(func: Any) -> tuple[str, ...]:
    """That nothing is known of a custom operator."""
    if func.namespace in ("aten", "prims"):
        return ()
    what = f"{func.namespace}::{_plain(func)}"
    return (f"custom operator {what}: counted by the bytes that it moves, its operations are not known",)


def _tensors(values: Any) -> list[torch.Tensor]:
    """All tensors in what an operator takes or gives."""
    return [t for t in tree_flatten(values)[0] if isinstance(t, torch.Tensor)]


def _called(func: Any) -> str:
    name = _plain(func)
    return {"_local_scalar_dense": ".item()"}.get(name, f"{func.namespace}::{name}")


def _size_of(args: Any, kwargs: Any) -> float:
    """Values that a factory makes, from the sizes among its arguments: their product."""
    size = 1.0
    for number in tree_flatten((args, kwargs))[0]:
        if isinstance(number, int) and not isinstance(number, bool):
            size *= max(abs(number), 1)
    return size


def _initialising() -> bool:
    """Whether torch draws initial weights, which nobody will see: it draws again what lies outside of bounds."""
    frame = sys._getframe()
    while frame is not None and frame.f_code.co_filename != torch.nn.init.__file__:
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None


class _OverrunError(UsageError):
    """Raised in the thread of code that runs too long or takes too much."""

    def __init__(self) -> None:
        super().__init__("stopped")


@contextmanager
def _bounded() -> Iterator[None]:
    """What runs within ends after `MOST_SECONDS`, or once the process has grown by `MOST_GROWTH` bytes, with
    `UsageError`: also a loop without operators, which nothing else would stop. One call into C is not interrupted."""
    thread, lock, done = threading.get_ident(), threading.Lock(), threading.Event()
    start, size = time.monotonic(), _peak_bytes()
    said: list[str] = []

    def watch() -> None:
        pause = min(MOST_SECONDS / 4, 0.5)
        while not done.wait(pause):
            grown = _peak_bytes() - size > MOST_GROWTH
            if time.monotonic() - start < MOST_SECONDS and not grown:
                continue
            with lock:
                if done.is_set():
                    return
                limit = f"{MOST_GROWTH / 2**30:.3g} GiB" if grown else f"{MOST_SECONDS:g} s"
                said.append(f"{_place(sys._current_frames().get(thread))}the trace takes more than {limit}")
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(_OverrunError))
            pause = 5.0  # again, should the code have caught it

    watcher = threading.Thread(target=watch, daemon=True, name="chipwise-trace-limit")
    watcher.start()
    try:
        yield
    except _OverrunError:
        hint = "does its forward pass end? trace one layer, or a shorter input"
        raise UsageError(said[0], hint) from None
    finally:
        with lock:
            done.set()
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), None)  # what is still to come


def _peak_bytes() -> int:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _place(frame: FrameType | None = None) -> str:
    """FILE:LINE of the user's code that is running (at `frame`, or here), as far as there is any."""
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    inside = (own, os.path.dirname(torch.__file__), "<")
    for line in reversed(traceback.extract_stack(frame or sys._getframe())):
        library = line.filename.startswith(sysconfig.get_path("stdlib")) and "site-packages" not in line.filename
        library = library or line.filename.endswith("typing_extensions.py")  # its decorators stand in between
        if not library and not line.filename.startswith(inside):
            return f"{shorten(line.filename, 80)}:{line.lineno}: "
    return ""
