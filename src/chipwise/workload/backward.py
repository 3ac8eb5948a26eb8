"""A training step of any program: the backward pass of its operators, and the update of its parameters.

Whoever asks for a step asks here: networks by layers, modules that were traced where their own backward pass is not
recorded, the mean layer of `predict.training`, and the chart of a pipeline's passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from chipwise.catalog.trainer import FULL, OPTIMIZERS
from chipwise.errors import UsageError
from chipwise.units import Real
from chipwise.workload.op import Kind, Op, gemm, pointwise
from chipwise.workload.program import Counted, Program, Stage

SAVED, LOGITS = "saved_bytes", "logits"
"""Settings of a step: bytes that its layers keep for the backward pass where kernels join what works on elements, and
entries of the vocabulary's logits, whose loss is taken."""
NOT_UPDATED = "a step is forward and backward; the optimizer's update is not part of the trace"
"""What is said of a step that was recorded, before `update`."""
STATES = "state_bytes"
"""Setting of a step: bytes of gradients and of the optimizer's states."""
PARTS = "accumulate"
"""Setting of a step: parts of a batch that follow each other."""
OPTIMIZER = "optimizer"
"""Name of the operator that updates parameters, and of its stage."""
WEIGHTS = "_dw"
"""What ends the name of the product that gives gradients of weights."""
LOSS, LOSS_PASSES = "loss", 3.0
"""Name of the operator of a loss over a vocabulary, and count: tensors of logits that it reads or writes, one of which
is kept. Exact: logits twice, and logarithms of probabilities."""
GRADIENTS = 2.0
"""count: products of a backward pass for each of the forward pass. Exact: gradients of inputs and of weights."""
AGAIN: Mapping[Kind, float] = {"attention": 2.5, "pointwise": 1.5, "scan": 2.0}
"""ratio: work of an operator's backward pass over its forward pass, 1 where nothing is said. Attention: seven products
for two as scores are computed again, of which five run in the backward pass (Dao et al., 2022, algorithm 4). Work on
elements: reads a gradient besides (exact). Scans run once for inputs and once for coefficients (exact)."""
UPDATED = 3.0
"""count: of a parameter's bytes that an update moves besides its moments. Exact: the gradient is read, the weight is
read and written."""


def gradients(op: Op) -> tuple[Counted, ...]:
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
                name=f"{op.name}{WEIGHTS}",
                weight=op.compute,
                weight_bytes=read,
                activation_bytes=op.bytes - read,
                dims=weights,
            ),
        ),
    )


def backward(program: Program, recompute: str = "none", parts: int = 1) -> Program:
    """Forward and backward of a program, stage by stage, done `parts` times before weights are updated, with the
    settings that say what it keeps: bytes that layers save, entries of logits.

    With `recompute` "full", layers of transformers keep their input alone and the forward pass is computed twice.
    Raises `UsageError`.
    """
    if recompute not in ("none", "full"):
        raise UsageError(f"recompute '{recompute}' is not known", "none or full", instead=("none", "full"))
    full = recompute == "full"
    ops = [counted for stage in program.stages for counted in stage.ops]
    losses = sum(n * float(op.bytes) / LOSS_PASSES for n, op in ops if op.name == LOSS)
    found = {
        SAVED: 0.0 if full else sum(stage.kept_bytes for stage in program.stages) - losses,
        LOGITS: sum(n * float(op.dims["m"] * op.dims["n"]) for n, op in ops if op.name == LOGITS),
        PARTS: float(parts) if parts > 1 else 0.0,
    }
    settings = {**program.settings, **{name: x for name, x in found.items() if x}}
    stages = tuple(_both_ways(stage, parts, full=full) for stage in program.stages)
    return replace(program, stages=stages, trained=True, settings=settings)


def _both_ways(stage: Stage, parts: int, *, full: bool) -> Stage:
    """A stage forward and backward."""
    forward = tuple((2.0 * n, op) for n, op in stage.ops) if full else stage.ops
    back = ((n * m, part) for n, op in reversed(stage.ops) for m, part in gradients(op))
    kept = stage.again_bytes if full else stage.kept_bytes
    passes = tuple((parts * n, op) for n, op in (*forward, *back))
    return replace(stage, ops=passes, activation_bytes=kept + stage.activation_bytes)


def update_bytes(moments: Real, width: Real = FULL) -> Real:
    """Bytes per parameter of `width` bytes that an optimizer moves whose own state takes `moments` bytes: read and
    written."""
    return UPDATED * width + 2.0 * moments


def orthogonal(parameters: Real, side: Real, each: float) -> Op:
    """The products of an update that makes matrices orthogonal, `each` FLOPs of a parameter and row of the shorter
    side: [side, side] x [side, n] over and over."""
    return gemm(side, each * parameters / (2.0 * side), side, name=OPTIMIZER)


def update(step: Program, optimizer: str) -> Program:
    """A step forward and backward, written out or recorded, with the update of its parameters in the type that they
    are in: one of `catalog.trainer.OPTIMIZERS`, "none" without. Raises `UsageError`."""
    known = (*OPTIMIZERS, "none")
    if optimizer not in known:
        raise UsageError(f"optimizer '{optimizer}' is not known", f"one of {', '.join(known)}", instead=known)
    if optimizer == "none" or not step.parameters:
        return replace(step, settings={**step.settings, STATES: step.weight_bytes})
    o, count = OPTIMIZERS[optimizer], float(step.parameters)
    width = min(step.weight_bytes / count, FULL)
    moments = o.bytes(width)
    passes = float(update_bytes(moments, width)) / 2.0
    ops = [(1.0, pointwise(count, passes, name=OPTIMIZER, flops_each=o.flops))]
    if o.products:
        ops.append((1.0, orthogonal(count, _shorter_side(step), o.products)))
    said = step.assumptions
    if NOT_UPDATED in said:
        own = f"{optimizer} updates all parameters (--settings optimizer=NAME), {moments:g} bytes of moments for each"
        said = (*(line for line in said if line != NOT_UPDATED), own)
    stages = (*step.stages, Stage(OPTIMIZER, tuple(ops)))
    settings = {**step.settings, STATES: step.weight_bytes + moments * count}
    return replace(step, stages=stages, settings=settings, assumptions=said)


def _shorter_side(step: Program) -> float:
    """The shorter side of a mean matrix of weights, of a parameter's mean."""
    found = [
        (n * float(op.weight_bytes), min(float(op.dims["n"]), float(op.dims["k"])))
        for stage in step.stages
        for n, op in stage.ops
        if op.kind == "gemm" and not op.name.endswith(WEIGHTS)
    ]
    total = sum(size for size, _ in found)
    return sum(size * side for size, side in found) / total if total else 1.0
