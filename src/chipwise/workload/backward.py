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
UPDATED = 12.0
"""bytes per parameter: of an update besides its moments. Exact: the gradient is read, the fp32 weight is read and
written."""


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


def update_bytes(moments: Real) -> Real:
    """Bytes per parameter that an optimizer moves whose own state takes `moments` bytes: read and written."""
    return UPDATED + 2.0 * moments


def update(parameters: Real, moments: float) -> Op:
    """The optimizer's work on so many parameters."""
    return pointwise(parameters, float(update_bytes(moments)) / 2.0, name=OPTIMIZER)


def moments_of(optimizer: str) -> float | None:
    """Bytes per parameter of the state that an optimizer keeps; None of "none", which updates nothing. Raises
    `UsageError`."""
    if optimizer == "none":
        return None
    if optimizer not in OPTIMIZERS:
        known = (*OPTIMIZERS, "none")
        raise UsageError(f"optimizer '{optimizer}' is not known", f"one of {', '.join(known)}", instead=known)
    return OPTIMIZERS[optimizer]
