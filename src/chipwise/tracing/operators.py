"""Operators of PyTorch (ATen) as ours: products, convolutions, attention, lookups, scans; all else moves bytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Literal

from chipwise.values import dataclass
from chipwise.workload.backward import AGAIN
from chipwise.workload.formats import FORMATS, Format
from chipwise.workload.op import Op, attention, convolution, gemm, lookup, scan

WIDTHS: Mapping[str, str] = {
    "float32": "fp32", "float64": "fp32", "bfloat16": "bf16", "float16": "fp16", "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8", "float8_e4m3fnuz": "fp8", "float8_e5m2fnuz": "fp8", "int8": "int8", "uint8": "int8",
}  # fmt: skip
"""Types of torch as formats; scales are tensors of their own here."""


def format_of(dtype: str, itemsize: float) -> Format:
    """The format of a type by its name, without scales: every tensor of a trace counts itself."""
    known = FORMATS[WIDTHS.get(dtype, "fp32")]
    return replace(known, bits=8.0 * itemsize, scale_bits=0.0)


@dataclass(frozen=True)
class Call:
    """One operator as it was called, by the names of its schema; `tensors` are what shapes are read from.

    `visible`: the share of (query, key) pairs that a mask leaves, None where its values are not known. `weights` are
    the names of operands that are parameters.
    """

    name: str
    given: Mapping[str, Any]
    outputs: Sequence[Any]
    weights: frozenset[str] = frozenset()
    visible: float | None = None

    def shape(self, name: str) -> tuple[int, ...]:
        """Sizes of an operand."""
        return tuple(int(n) for n in self.given[name].shape)

    def format(self, name: str) -> Format:
        """The format of an operand."""
        tensor = self.given[name]
        return format_of(str(tensor.dtype).removeprefix("torch."), tensor.element_size())


@dataclass(frozen=True)
class TracedWork:
    """What a call is: an operator that stays alone (`ops`), or element-wise work (`way` says how it fuses).

    `flops` are operations per element of the largest operand. In "two passes" operands are read twice, as a sum over
    more than rows has to be complete before it is used.
    """

    ops: tuple[tuple[float, Op], ...] = ()
    way: Literal["fused", "ends", "alone", "two passes"] = "fused"
    flops: float = 1.0
    notes: tuple[str, ...] = field(default=())


def work_of(call: Call) -> TracedWork:
    """What a call computes."""
    if call.name in PRODUCTS:
        return TracedWork(_product(call))
    if call.name in ATTENTION:
        return _attention(call, backward="backward" in call.name)
    rule = RULES.get(call.name)
    if rule is not None:
        return rule(call)
    plain = call.name.rstrip("_")
    if plain in COSTLY:
        return TracedWork(flops=COSTLY[plain])
    if plain in REDUCTIONS:
        return TracedWork(way="fused" if _of_rows(call) else "ends")
    if plain in ALONE:
        return TracedWork(way="alone")
    return TracedWork()


# Both operands by name; the second is the one whose columns are the result's.
PRODUCTS: Mapping[str, tuple[str, str]] = {
    "mm": ("self", "mat2"), "addmm": ("mat1", "mat2"), "bmm": ("self", "mat2"), "baddbmm": ("batch1", "batch2"),
    "addbmm": ("batch1", "batch2"), "_int_mm": ("self", "mat2"), "_scaled_mm": ("self", "mat2"),
    "_grouped_mm": ("self", "mat2"), "_scaled_grouped_mm": ("self", "mat2"), "mv": ("self", "vec"),
    "addmv": ("mat", "vec"), "dot": ("self", "tensor"), "vdot": ("self", "other"),
    "_addmm_activation": ("mat1", "mat2"),
}  # fmt: skip


def _product(call: Call) -> tuple[tuple[float, Op], ...]:
    first, second = PRODUCTS[call.name]
    a, b = call.shape(first), call.shape(second)
    m: float
    n: float
    k: float
    batch = 1
    if call.name.endswith("grouped_mm") and {len(a), len(b)} == {2, 3}:  # rows dealt to experts
        experts = b[0] if len(b) == 3 else a[0]
        (m, k), n, batch = (a[-2:]), b[-1], experts
        m, n = (m / experts, n) if len(a) == 2 else (m, n / experts)
    elif call.name.endswith("grouped_mm") and len(a) == 2:  # gradients of weights: columns dealt to experts
        batch = call.outputs[0].shape[0]
        m, k, n = a[0], a[1] / batch, b[1]
    elif len(b) == 1:
        m, n, k = (a[0] if len(a) == 2 else 1), 1, b[0]
    else:
        (m, k), n = a[-2:], b[-1]
        batch = a[0] if len(a) == 3 else 1
    stored, moved = call.format(second), call.format(first)
    weight = second in call.weights
    if first in call.weights and not weight:  # W x: the same product on its side
        m, n, stored, moved, weight = n, m, moved, stored, True
    op = gemm(m, n, k, stored, moved, batch=batch, name=call.name)
    out = call.outputs[0].element_size() * 8.0
    op = replace(op, activation_bytes=batch * (m * k * moved.bits + m * n * out) / 8.0)
    return ((1.0, op if weight else _moved(op)),)


def _moved(op: Op) -> Op:
    """The same where neither operand is a parameter."""
    return replace(op, weight="", weight_bytes=0.0, activation_bytes=op.activation_bytes + op.weight_bytes)


def _convolution(call: Call) -> TracedWork:
    """Forward, or (`convolution_backward`) once for inputs and once for weights."""
    backward = call.name.endswith("backward")
    weight, x = call.shape("weight"), call.shape("input")
    y = call.shape("grad_output") if backward else tuple(call.outputs[0].shape)
    groups, transposed = int(call.given["groups"]), bool(call.given["transposed"])
    kernel, inputs, outputs = math.prod(weight[2:]), math.prod(x[2:]), math.prod(y[2:])
    stored = call.format("weight")

    def one(name: str) -> Op:
        # of a transposed one every input meets every tap, so that an output meets inputs / outputs of them
        taps = kernel * inputs / outputs if transposed else kernel
        op = convolution(
            x[0], x[1], y[1], inputs, outputs, taps, stored, call.format("input"), groups=groups, name=name
        )
        moved = x[0] * (inputs * x[1] + outputs * y[1]) * call.format("input").bits / 8.0
        return replace(op, weight_bytes=math.prod(weight) * stored.bits / 8.0, activation_bytes=moved)

    if not backward:
        return TracedWork(((1.0, one("conv")),))
    asked = call.given["output_mask"]
    dims = {"n": x[1] / groups, "k": kernel * y[1] / groups, "m": x[0] * inputs}
    forward = one("conv")
    back = forward.flops / (2.0 * groups * dims["n"] * dims["k"])
    found: list[tuple[float, Op]] = []
    if asked[0]:
        found.append((1.0, replace(forward, name="conv inputs", dims={**forward.dims, **dims, "m": back})))
    if asked[1]:
        d = forward.dims
        turned = {**d, "m": d["n"], "n": d["k"], "k": d["m"]}
        moved = forward.activation_bytes + forward.weight_bytes
        found.append(
            (
                1.0,
                replace(forward, name="conv weights", weight="", weight_bytes=0.0, activation_bytes=moved, dims=turned),
            )
        )
    return TracedWork(tuple(found))


ATTENTION = frozenset(
    f"_scaled_dot_product_{kind}_attention{rest}"
    for kind in ("flash", "efficient", "cudnn", "fused")
    for rest in ("", "_backward", "_for_cpu", "_for_cpu_backward", "_overrideable", "_overrideable_backward")
)


def _attention(call: Call, *, backward: bool) -> TracedWork:
    q, k, v = (call.shape(name) for name in ("query", "key", "value"))
    causal = bool(call.given.get("is_causal"))
    masked = next((call.given[n] for n in ("attn_mask", "attn_bias") if call.given.get(n) is not None), None)
    stored = call.format("query")
    op = attention(
        q[0], q[2], k[2], q[1], k[1], q[3], stored, causal=causal and q[2] == k[2], value_dim=v[3], name="attention"
    )
    notes: tuple[str, ...] = ()
    full = 2.0 * q[0] * q[2] * k[2] * q[1] * (q[3] + v[3])
    if masked is not None:
        if call.visible is None:
            notes = ("masks whose values are not known are taken to hide nothing",)
        op = replace(op, flops=full * (1.0 if call.visible is None else call.visible))
    elif causal and q[2] != k[2]:  # aligned at the first key, as torch has it
        seen = sum(min(i + 1, k[2]) for i in range(q[2]))
        op = replace(op, flops=full * seen / (q[2] * k[2]))
    out = q[0] * q[2] * q[1] * (q[3] + v[3]) * stored.bits / 8.0
    mask = masked.numel() * masked.element_size() if masked is not None else 0.0
    op = replace(op, compute=stored.compute, activation_bytes=out + mask)
    if backward:
        op = replace(op, name="attention backward", launches=op.launches / AGAIN["attention"])
    return TracedWork(((AGAIN["attention"] if backward else 1.0, op),), notes=notes)


def _embedding(call: Call) -> TracedWork:
    rows = float(call.given["indices"].numel())
    width = float(call.shape("weight")[1])
    stored = call.format("weight")
    op = lookup(rows, width, stored)
    return TracedWork(((1.0, replace(op, activation_bytes=_bytes(call.outputs[0]) + _bytes(call.given["indices"]))),))


def _scattered(call: Call) -> TracedWork:
    """Rows gathered by, or added at, places that are data: read and written once, a whole table where it is zeroed."""
    moved = sum(map(_bytes, call.outputs[:1]))
    source = next((call.given[n] for n in ("source", "src", "grad_output", "grad", "values") if n in call.given), None)
    rows, width = _rows(source if hasattr(source, "shape") else call.outputs[0])
    if source is not None and hasattr(source, "numel"):
        moved += _bytes(source)
    return TracedWork(((1.0, _lookup(rows, width, moved)),))


def _gathered(call: Call) -> TracedWork:
    rows, width = _rows(call.outputs[0])
    table = "self" in call.weights
    op = _lookup(rows, width, (1.0 if table else 2.0) * _bytes(call.outputs[0]))
    return TracedWork(((1.0, replace(op, weight_bytes=_bytes(call.outputs[0]) if table else 0.0)),))


def _lookup(rows: float, width: float, moved: float) -> Op:
    op = lookup(rows, width)
    return replace(op, weight="", weight_bytes=0.0, activation_bytes=moved)


def _scan(call: Call) -> TracedWork:
    x = call.outputs[0]
    length = float(x.shape[int(call.given.get("dim", -1))]) if x.ndim else 1.0
    rows = x.numel() / length if length else 0.0
    op = scan(rows, length, 1.0, 1.0, 0.0, 2.0)
    return TracedWork(((1.0, replace(op, activation_bytes=2.0 * _bytes(x))),))


def _fourier(call: Call) -> TracedWork:
    """5 n log2 n operations per transform of n (Cooley and Tukey)."""
    x = call.given["self"]
    n = math.prod(int(x.shape[d]) for d in call.given["dim"])
    return TracedWork(way="alone", flops=5.0 * math.log2(max(n, 2)))


def _batch_norm(call: Call) -> TracedWork:
    trains = bool(call.given.get("training", call.given.get("train", "no_training" not in call.name)))
    return TracedWork(way="two passes" if trains else "fused", flops=4.0)


def _bytes(tensor: Any) -> float:
    return float(tensor.numel() * tensor.element_size()) if hasattr(tensor, "numel") else 0.0


def _rows(tensor: Any) -> tuple[float, float]:
    width = float(tensor.shape[-1]) if tensor.ndim else 1.0
    return tensor.numel() / max(width, 1.0), width


def _of_rows(call: Call) -> bool:
    """Whether a reduction is over the last dimensions alone, so that a kernel can use its result at once."""
    x, dims = call.given.get("self"), call.given.get("dim")
    if x is None or dims is None or not hasattr(x, "ndim"):
        return False
    over = {int(d) % max(x.ndim, 1) for d in (dims if isinstance(dims, (list, tuple)) else (dims,))}
    return bool(over) and over == set(range(x.ndim - len(over), x.ndim))


RULES: Mapping[str, Callable[[Call], TracedWork]] = {
    **dict.fromkeys(
        ("convolution", "_convolution", "convolution_overrideable", "mkldnn_convolution", "convolution_backward"),
        _convolution,
    ),
    **dict.fromkeys(("embedding", "_embedding_bag", "_embedding_bag_forward_only"), _embedding),
    **dict.fromkeys(("index_select", "gather", "take", "index", "_unsafe_index"), _gathered),
    **dict.fromkeys(
        (
            "embedding_dense_backward", "_embedding_bag_dense_backward", "index_put", "index_put_", "index_add",
            "index_add_", "scatter", "scatter_", "scatter_add", "scatter_add_", "scatter_reduce", "scatter_reduce_",
            "index_copy", "index_copy_", "_index_put_impl_", "index_fill", "index_fill_", "_unsafe_index_put",
        ),
        _scattered,
    ),
    **dict.fromkeys(("cumsum", "cumsum_", "cumprod", "logcumsumexp", "cummax", "cummin"), _scan),
    **dict.fromkeys(("_fft_r2c", "_fft_c2c", "_fft_c2r"), _fourier),
    **dict.fromkeys(
        (
            "native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training",
            "_batch_norm_with_update", "cudnn_batch_norm", "native_batch_norm_backward", "batch_norm_backward",
        ),
        _batch_norm,
    ),
    **dict.fromkeys(
        ("native_group_norm", "native_group_norm_backward"), lambda call: TracedWork(way="two passes", flops=6.0)
    ),
}  # fmt: skip

# Operations per element, a transcendental as four.
COSTLY: Mapping[str, float] = {
    **dict.fromkeys(
        ("exp", "log", "tanh", "sigmoid", "silu", "gelu", "erf", "sin", "cos", "rsqrt", "sqrt", "pow", "softplus",
         "mish", "_softmax", "_log_softmax", "silu_backward", "gelu_backward", "tanh_backward", "sigmoid_backward",
         "_softmax_backward_data", "_log_softmax_backward_data"),
        4.0,
    ),
    **dict.fromkeys(("native_layer_norm", "_fused_rms_norm"), 6.0),
    **dict.fromkeys(("native_layer_norm_backward", "_fused_rms_norm_backward"), 12.0),
}  # fmt: skip
REDUCTIONS = frozenset(
    "sum mean amax amin max min prod var std var_mean std_mean argmax argmin any all logsumexp norm linalg_vector_norm "
    "nll_loss_forward nll_loss2d_forward mse_loss binary_cross_entropy".split()
)
ALONE = frozenset(
    "sort topk kthvalue median unique_dim _unique2 nonzero bincount histc searchsorted bucketize multinomial roll "
    "max_pool2d_with_indices max_pool2d_with_indices_backward max_pool3d_with_indices avg_pool2d avg_pool2d_backward "
    "avg_pool3d adaptive_avg_pool2d _adaptive_avg_pool2d _adaptive_avg_pool2d_backward upsample_bilinear2d "
    "upsample_bicubic2d upsample_trilinear3d grid_sampler_2d grid_sampler_3d _cdist_forward linalg_inv_ex".split()
)
