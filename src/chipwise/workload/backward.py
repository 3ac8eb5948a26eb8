"""A training step of any program: the backward pass of its operators, and the update of its parameters.

Whoever asks for a step asks here: networks by layers, modules that were traced where their own backward pass is not
recorded, the mean layer of `predict.training`, and the chart of a pipeline's passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from chipwise.catalog.trainer import OPTIMIZERS
from chipwise.errors import UsageError
from chipwise.units import Real
from chipwise.workload.op import Kind, Op, pointwise
from chipwise.workload.pipeline import Pipeline, Stage

SAVED, LOGITS = "saved_bytes", "logits"
"""Settings of a step: bytes that its layers keep for the backward pass where kernels join what works on elements, and
entries of the vocabulary's logits, whose loss is taken."""
NOT_UPDATED = "a step is forward and backward; the optimizer's update is not part of the trace"
"""What is said of a step that was recorded, before it is `updated`."""
STATES = "state_bytes"
"""Setting of a step: bytes of gradients and of the optimizer's states."""
PARTS = "accumulate"
"""Setting of a step: parts of a batch that follow each other."""
Counted = tuple[float, Op]
"""(repeats, operator)."""
OPTIMIZER = "optimizer"
"""Name of the operator that updates parameters."""
GRADIENTS = 2.0
"""count: products of a backward pass for each of the forward pass. Exact: gradients of inputs and of weights."""
AGAIN: Mapping[Kind, float] = {"attention": 2.5, "pointwise": 1.5, "scan": 2.0}
"""ratio: work of an operator's backward pass over its forward pass, 1 where nothing is said. Attention: seven products
for two as scores are computed again, of which five run in the backward pass (Dao et al., 2022, algorithm 4). Work on
elements: reads a gradient besides (exact). Scans run once for inputs and once for coefficients (exact)."""
FULL = 4.0
"""bytes: of a parameter in fp32. Exact."""
UPDATED = 3.0
"""count: of a parameter's bytes that an update moves besides its moments. Exact: the gradient is read, the weight is
read and written."""
ALIKE = ("adamw", "sgd", "muon")
"""Optimizers whose moments have the type of the parameters that they are given (torch.optim: state is
`zeros_like(param)`, or a copy of the gradient); others keep a type of their own."""


def backward(op: Op) -> tuple[Counted, ...]:
    """The backward pass of an operator; numbers may be arrays.

    A product [m, k] x [k, n] gives the gradients of its input, [m, n] x [n, k], and of its weights, [n, m] x [m, k],
    which reads no weights. What is frozen (`dims["frozen"]`) has none.
    """
    dims = op.dims
    if dims.get("frozen"):
        return ()
    if op.kind not in ("gemm", "conv"):
        return ((AGAIN.get(op.kind, 1.0), op),)
    spread = dims.get("kernel", 1.0)
    inputs = {**dims, "n": dims["k"] / spread, "k": dims["n"] * spread}
    weights = {**dims, "m": dims["n"], "n": dims["k"], "k": dims["m"]}
    # of a convolution's windows none is written; a product reads its input as the second operand
    read = op.activation_bytes * dims["k"] / (dims["k"] + dims["n"]) if op.kind == "gemm" else 0.0
    return (
        (1.0, replace(op, name=f"{op.name}_dx", dims=inputs)),
        (
            1.0,
            replace(
                op,
                name=f"{op.name}_dw",
                weight=op.compute,
                weight_bytes=read,
                activation_bytes=op.bytes - read,
                dims=weights,
            ),
        ),
    )


def backwards(ops: Iterable[Counted]) -> tuple[Counted, ...]:
    """The backward pass of operators that follow each other: theirs, the last first."""
    return tuple((n * times, part) for n, op in reversed(tuple(ops)) for times, part in backward(op))


def update_bytes(moments: Real, width: Real = FULL) -> Real:
    """Bytes per parameter of `width` bytes that an optimizer moves whose own state takes `moments` bytes: read and
    written."""
    return UPDATED * width + 2.0 * moments


def update(parameters: Real, moments: float, width: float = FULL) -> Op:
    """The optimizer's work on so many parameters of so many bytes."""
    return pointwise(parameters, float(update_bytes(moments, width)) / 2.0, name=OPTIMIZER)


def updated(step: Pipeline, optimizer: str) -> Pipeline:
    """A step that was recorded, forward and backward, with the update of its parameters in the type that they are in.
    Raises `UsageError`."""
    width = min(step.weight_bytes / step.parameters, FULL) if step.parameters else FULL
    moments = moments_of(optimizer, width)
    gradients = {STATES: step.weight_bytes + (moments or 0.0) * step.parameters}
    settings = {**step.settings, **gradients}
    if moments is None:
        return replace(step, settings=settings)
    stage = Stage(OPTIMIZER, ((1.0, update(float(step.parameters), moments, width)),))
    known = tuple(line for line in step.assumptions if line != NOT_UPDATED)
    said = f"{optimizer} updates all parameters (--settings optimizer=NAME), {moments:g} bytes of moments for each"
    return replace(step, stages=(*step.stages, stage), settings=settings, assumptions=(*known, said))


def moments_of(optimizer: str, width: float = FULL) -> float | None:
    """Bytes that an optimizer keeps of a parameter of `width` bytes; None of "none", which updates nothing. Raises
    `UsageError`."""
    if optimizer == "none":
        return None
    if optimizer not in OPTIMIZERS:
        known = (*OPTIMIZERS, "none")
        raise UsageError(f"optimizer '{optimizer}' is not known", f"one of {', '.join(known)}", instead=known)
    return OPTIMIZERS[optimizer] * (width / FULL if optimizer in ALIKE else 1.0)
