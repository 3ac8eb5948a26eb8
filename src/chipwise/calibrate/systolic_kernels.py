"""Measured kernels of systolic chips: rows -> formula, priors, fit, prices.

Each operator fits the few numbers that it can tell: products compute_share, load_rows, memory_share and
softness; prompts pair_ops; new tokens cache_share and block_s; norms passes and start_s. `parameters_of` puts
them together for any operator of any such chip. Effects of one chip are kept apart from those of all, so that a
chip without rows inherits and gets a wider interval.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.effects import Effects, Level, Quantity
from chipwise.calibrate.fit_kernels import Rows, fit, log_spread
from chipwise.calibrate.kernel_labels import Columns, number_of, text_of
from chipwise.calibrate.parameter import Z80, Parameter
from chipwise.catalog.chip import Chip
from chipwise.cost.device import Device
from chipwise.cost.systolic.facts import Arrays
from chipwise.cost.systolic.family import SystolicParameters, systolic_time
from chipwise.units import Array, Real
from chipwise.workload.op import Op, attention, gemm, pointwise

__all__ = [
    "GROUPS",
    "PRIORS",
    "Priced",
    "calibrate_systolic",
    "parameters_of",
    "price_systolic",
    "systolic_effects",
    "systolic_rows",
]

GROUPS: Mapping[str, str] = {
    "gemm": "systolic.gemm",
    "attention_prefill": "systolic.prompt",
    "attention_decode": "systolic.decode",
    "layernorm": "systolic.norm",
}
"""Operators of the table and the name under which their parameters ship."""

_CHIP = (Level(("chip",), 0.2),)
_KERNEL = (Level(("chip",), 0.4),)  # of the attention kernel, not of the chip: another one may do far better

# compute_share and memory_share: sustained training on TPUs and copies; load_rows and passes: 1 by structure;
# pair_ops: a dozen vector operations, an exponential among them, several times that with masks and casts in
# fp32; block_s and cache_share: one page at a time, the latency of HBM each. Wide, as one chip was measured.
PRIORS: Mapping[str, Quantity] = {
    "compute_share": Quantity(0.85, 0.15, "share of dense peak", _CHIP, 0.01, 1.0),
    "load_rows": Quantity(1.0, 0.5, "rows per cycle", _KERNEL, 0.1, 16.0),
    "memory_share": Quantity(0.85, 0.1, "share of HBM bandwidth", _CHIP, 0.05, 1.0),
    "cache_share": Quantity(0.5, 0.5, "share of HBM bandwidth", _KERNEL, 0.02, 1.0),
    "block_s": Quantity(3e-7, 0.7, "s per sequence and kv head", _KERNEL),
    "pair_ops": Quantity(40.0, 0.7, "vector operations per query, key and head", _KERNEL),
    "passes": Quantity(1.0, 0.3, "on-chip passes", _CHIP, 0.1, 10.0),
    "start_s": Quantity(1e-6, 0.5, "s per operator of a compiled program", _KERNEL),
    "softness": Quantity(4.0, 0.3, "exponent", (), 1.0, 20.0),
}
_FITTED: Mapping[str, tuple[str, ...]] = {
    "gemm": ("compute_share", "load_rows", "memory_share", "start_s", "softness"),
    "attention_prefill": ("pair_ops", "block_s"),
    "attention_decode": ("cache_share", "block_s"),
    "layernorm": ("passes", "start_s"),
}
# Which operator tells a number where several do.
_TOLD_BY = {"block_s": "attention_decode", "start_s": "layernorm"}
# Short products are mostly what the compiler put around them.
_FULL_WEIGHT_S = 100e-6
_LEAST_WEIGHT = 0.2


class Priced(NamedTuple):
    """Seconds of every row with an 80 % interval, NaN for rows of other chips and operators; `calibrated` where
    this very chip was measured."""

    mid_s: Array
    low_s: Array
    high_s: Array
    calibrated: NDArray[np.bool_]


def calibrate_systolic(columns: Columns, chips: Mapping[str, Chip]) -> dict[str, Effects]:
    """Effects by group of every operator with measured rows of systolic chips. Pure."""
    out: dict[str, Effects] = {}
    for op, group in GROUPS.items():
        index = _index(columns, chips, op)
        if len(index):
            rows = systolic_rows({k: v[index] for k, v in columns.items()}, chips, op)
            out[group] = fit(rows, {name: PRIORS[name] for name in _FITTED[op]})
    return out


def systolic_effects(table: Mapping[str, Parameter]) -> dict[str, Effects]:
    """The effects among the parameters that ship; priors where there are none."""
    return {g: Effects.of(table, g, {n: PRIORS[n] for n in _FITTED[op]}) for op, g in GROUPS.items()}


def price_systolic(columns: Columns, chips: Mapping[str, Chip], effects: Mapping[str, Effects]) -> Priced:
    """Every row of a systolic chip priced. `latency_us` is not read."""
    size = len(columns["op"])
    log_mid, spread = np.full(size, np.nan), np.full(size, np.nan)
    calibrated = np.zeros(size, dtype=bool)
    inputs = {k: v for k, v in columns.items() if k != "latency_us"}
    for op, group in GROUPS.items():
        index = _index(inputs, chips, op)
        if not len(index):
            continue
        found = effects.get(group) or Effects({n: PRIORS[n] for n in _FITTED[op]}, {})
        rows = systolic_rows({k: v[index] for k, v in inputs.items()}, chips, op)
        log_mid[index] = np.log(rows.predict(found))
        spread[index] = Z80 * log_spread(rows, found)
        calibrated[index] = np.isin(rows.labels["chip"], [k[2] for k in found.table if k[1] == "chip"])
    return Priced(np.exp(log_mid), np.exp(log_mid - spread), np.exp(log_mid + spread), calibrated)


def parameters_of(effects: Mapping[str, Effects], chip: str) -> SystolicParameters:
    """All numbers for one chip, fitted where an operator told them, else the prior."""
    labels = {"chip": np.array([chip])}
    values = {name: quantity.mid for name, quantity in PRIORS.items()}
    for op, names in _FITTED.items():
        if GROUPS[op] in effects:
            found = effects[GROUPS[op]].values(labels)
            values |= {n: float(found[n].item()) for n in names if _TOLD_BY.get(n, op) == op}
    return SystolicParameters(**values)


def systolic_rows(columns: Columns, chips: Mapping[str, Chip], op: str) -> Rows:
    """Rows of one operator with its formula; without `latency_us` they can be priced, not fitted."""
    size = len(columns["op"])
    names = columns["chip"].astype(str)
    priced, context = _operator(columns, op)
    known = {name: (Device.of(chips[name]), Arrays.of(chips[name])) for name in np.unique(names)}
    prior = {f.name: PRIORS[f.name].mid for f in fields(SystolicParameters)}

    def model(values: Mapping[str, Real], at: NDArray[np.intp]) -> Array:
        out = np.empty(len(at))
        for name, (device, arrays) in known.items():
            mine = np.flatnonzero(names[at] == name)
            some = at[mine]
            p = {k: np.broadcast_to(np.asarray(v), len(at))[mine] for k, v in (prior | dict(values)).items()}
            cost = systolic_time(
                _take(priced, some),
                device,
                arrays,
                SystolicParameters(**p),
                **{k: v[some] for k, v in context.items()},
            )
            out[mine] = cost.total_s
        return out

    measured = (
        columns["latency_us"].astype(float) * 1e-6 if "latency_us" in columns else np.full(size, np.nan)
    )
    weight = np.clip(measured / _FULL_WEIGHT_S, _LEAST_WEIGHT, 1.0) if op == "gemm" else None
    fitted_as = np.array([chips[name].software_id for name in names], dtype=np.str_)
    return Rows({"chip": fitted_as}, measured, model, weight)


def _operator(columns: Columns, op: str) -> tuple[Op, dict[str, Array]]:
    """Rows of one operator as one operator of arrays, and where it finds its operands."""

    size = len(columns["op"])
    if op == "gemm":
        # An output projection follows attention, which leaves HBM idle: its weights are fetched meanwhile.
        after = (text_of(columns, "kernel") == "o_proj").astype(float)
        return gemm(
            number_of(columns, "m", 1.0), number_of(columns, "n", 1.0), number_of(columns, "k", 1.0)
        ), {"fetched": after}
    if op == "layernorm":
        return pointwise(number_of(columns, "m", 1.0) * number_of(columns, "n", 1.0), 2.0), {
            "resident": np.ones(size)
        }
    q = number_of(columns, "q_len", 1.0) if op == "attention_prefill" else np.ones(size)
    found = attention(
        number_of(columns, "batch", 1.0),
        q,
        number_of(columns, "kv_len", 1.0),
        number_of(columns, "heads", 1.0),
        number_of(columns, "kv_heads", 1.0),
        number_of(columns, "head_dim", 128.0),
        window=number_of(columns, "window", 0.0),
    )
    return found, {}


def _index(columns: Columns, chips: Mapping[str, Chip], op: str) -> NDArray[np.intp]:
    systolic = [c for c, chip in chips.items() if chip.family == "systolic" and chip.matrix_unit.arrays]
    usable = np.isin(columns["chip"].astype(str), systolic) & (columns["op"].astype(str) == op)
    # the tables hold 16-bit rows of these chips only
    return np.flatnonzero(usable & np.isin(columns["dtype"].astype(str), ("bfloat16", "float16")))


def _take(op: Op, at: NDArray[np.intp]) -> Op:
    """Some of the members of an operator of arrays."""

    def some(value: Real) -> Real:
        return np.asarray(value)[at] if np.ndim(value) else value

    return Op(
        kind=op.kind,
        name=op.name,
        compute=op.compute,
        flops=some(op.flops),
        weight=op.weight,
        weight_bytes=some(op.weight_bytes),
        activation_bytes=some(op.activation_bytes),
        kv_bytes=some(op.kv_bytes),
        launches=op.launches,
        dims={k: some(v) for k, v in op.dims.items()},
    )
