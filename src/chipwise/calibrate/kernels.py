"""The kernel suite as a whole: fit every formula to a table of measured kernels, price another table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.effects import Effects, Quantity
from chipwise.calibrate.fit_kernels import fit, log_spread
from chipwise.calibrate.kernel_other import LOG_SPREAD, price_others
from chipwise.calibrate.kernel_priors import PRIORS
from chipwise.calibrate.kernel_rows import kernel_rows, known
from chipwise.calibrate.parameter import Z80, Parameter
from chipwise.calibrate.parameters import Parameters
from chipwise.calibrate.systolic_kernels import price_systolic, systolic_effects
from chipwise.catalog.chip import Chip
from chipwise.units import Array

__all__ = [
    "GROUPS",
    "NUMBERS",
    "TEXT",
    "KernelTimes",
    "calibrate_kernels",
    "kernel_parameters",
    "price_all",
    "price_kernels",
]

Columns = Mapping[str, NDArray[Any]]

# What is read of a table; `latency_us`, the measurement, is not among it.
TEXT = ("chip", "op", "kernel", "framework", "dtype", "kv_dtype", "causal", "distribution", "timing", "notes")
NUMBERS = (
    "m", "n", "k", "batch", "heads", "kv_heads", "head_dim", "q_len", "kv_len", "window", "tokens", "hidden",
    "inter", "experts", "topk", "tp", "ep", "bytes", "ranks",
)  # fmt: skip

# Operators fitted together, under the name of their parameters.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "simt.gemm": ("gemm",),
    "simt.batched_gemm": ("batched_gemm",),
    "simt.prompt": ("attention_prefill",),
    "simt.latent_prompt": ("mla_prefill",),
    "simt.decode": ("attention_decode",),
    "simt.latent_decode": ("mla_decode",),
    "simt.experts": ("moe",),
    "simt.norm": ("layernorm",),
    "simt.softmax": ("softmax",),
    "simt.elementwise": ("elementwise",),
    "collective": ("allreduce", "allgather", "reducescatter", "alltoall", "p2p"),
}

# Short kernels are mostly launch and scatter; they count for less than long ones, down to a floor.
_FULL_WEIGHT_S: Mapping[str, float] = {
    "simt.gemm": 30e-6,
    "simt.prompt": 50e-6,
    "simt.decode": 50e-6,
    "simt.experts": 50e-6,
    "simt.norm": 10e-6,
    "simt.elementwise": 10e-6,
}
_LEAST_WEIGHT = 0.2
# Chips that were measured ten times as often are not ten times as right.
_ROWS_PER_STRATUM = 400
# One standard deviation of log(time) beyond the parameters' own on a chip without rows, with rows of its
# generation and without: what makes 80 % intervals cover 80 % when each chip is left out in turn. Indexed by
# whether it is a collective, whose time is that of a machine and not of a chip.
_UNSEEN = ((0.10, 0.26), (0.43, 0.43))
# Shapes that the fit did not see scatter more than those it saw (two halves of shapes, fitted in turn).
_UNSEEN_SHAPES = 1.08
_NEGLIGIBLE = 0.035  # of log(factor): leaving these out moves no median by 0.1 points


@dataclass(frozen=True)
class KernelTimes:
    """Seconds of every row with an 80 % interval, NaN where no formula applies; `calibrated` where the formula
    was fitted on chips of the same generation."""

    mid_s: Array
    low_s: Array
    high_s: Array
    calibrated: NDArray[np.bool_]


def calibrate_kernels(
    columns: Columns,
    chips: Mapping[str, Chip],
    priors: Mapping[str, Mapping[str, Quantity]] = PRIORS,
) -> dict[str, Effects]:
    """Effects of every group of operators with measured rows. Pure; rows of unknown chips are passed over."""
    out: dict[str, Effects] = {}
    usable = known(columns, chips)
    for group, ops in GROUPS.items():
        index = np.flatnonzero(usable & np.isin(columns["op"].astype(str), ops))
        if not len(index):
            continue
        index = index[_sample({k: v[index] for k, v in columns.items()})]
        rows = kernel_rows({k: v[index] for k, v in columns.items()}, chips)
        full = _FULL_WEIGHT_S.get(group, 0.0)
        weight = np.clip(rows.measured_s / full, _LEAST_WEIGHT, 1.0) if full else None
        out[group] = fit(replace(rows, weight=weight), priors[group])
    return out


def price_kernels(columns: Columns, chips: Mapping[str, Chip], effects: Mapping[str, Effects]) -> KernelTimes:
    """Every row priced by its formula with fitted effects; `latency_us` is not read."""
    size = len(columns["op"])
    log_mid, spread = np.full(size, np.nan), np.full(size, np.nan)
    calibrated = np.zeros(size, dtype=bool)
    inputs = {k: v for k, v in columns.items() if k != "latency_us"}
    usable = known(inputs, chips)
    for group, ops in GROUPS.items():
        index = np.flatnonzero(usable & np.isin(inputs["op"].astype(str), ops))
        if not len(index) or group not in effects:
            continue
        rows = kernel_rows({k: v[index] for k, v in inputs.items()}, chips)
        log_mid[index] = np.log(rows.predict(effects[group]))
        chip_seen = np.isin(rows.labels["chip"], effects[group].keys_of("chip"))
        generation_seen = np.isin(rows.labels["generation"], effects[group].keys_of("generation"))
        unseen = np.where(chip_seen, 0.0, np.where(generation_seen, *_UNSEEN[group == "collective"]))
        spread[index] = Z80 * np.hypot(_UNSEEN_SHAPES * log_spread(rows, effects[group]), unseen)
        calibrated[index] = generation_seen
    return KernelTimes(np.exp(log_mid), np.exp(log_mid - spread), np.exp(log_mid + spread), calibrated)


def price_all(columns: Columns, chips: Mapping[str, Chip], numbers: Parameters) -> KernelTimes:
    """Every row of a chip of the catalogue: by the formulas of its family where it has any, else by the
    roofline of `cost.time` with a wide interval. NaN for other chips and operators."""
    times = price_kernels(columns, chips, numbers.kernels)
    mid, low, high = times.mid_s.copy(), times.low_s.copy(), times.high_s.copy()
    calibrated = times.calibrated.copy()
    arrays = price_systolic(columns, chips, systolic_effects(numbers.table))
    found = np.isfinite(arrays.mid_s)
    mid[found], low[found], high[found] = (t[found] for t in arrays[:3])
    calibrated[found] = arrays.calibrated[found]
    left = np.flatnonzero(np.isnan(mid))
    if len(left):
        mid[left] = price_others({k: v[left] for k, v in columns.items()}, chips, numbers)
    wide = np.exp(Z80 * LOG_SPREAD)
    low[left], high[left] = mid[left] / wide, mid[left] * wide
    return KernelTimes(mid, low, high, calibrated)


def kernel_parameters(effects: Mapping[str, Effects], source: str) -> dict[str, Parameter]:
    """Fitted effects as parameters to write down; factors that the rows hardly told are left out."""
    out: dict[str, Parameter] = {}
    for group, fitted in effects.items():
        out |= fitted.parameters(group, source, _NEGLIGIBLE)
    return out


def _sample(columns: Columns) -> NDArray[np.intp]:
    """At most `_ROWS_PER_STRATUM` rows of each operator, chip, data type and kernel, the same every time."""
    keys = columns["op"].astype(str)
    for name in ("chip", "dtype", "kv_dtype", "framework", "kernel"):
        keys = np.char.add(np.char.add(keys, "|"), columns[name].astype(str))
    order = np.random.default_rng(0).permutation(len(keys))
    _, codes = np.unique(keys, return_inverse=True)
    shuffled = codes[order]
    by_stratum = np.argsort(shuffled, kind="stable")
    sorted_codes = shuffled[by_stratum]
    starts = np.r_[0, np.flatnonzero(np.diff(sorted_codes)) + 1]
    rank = np.arange(len(keys)) - np.repeat(starts, np.diff(np.r_[starts, len(keys)]))
    return np.sort(order[by_stratum[rank < _ROWS_PER_STRATUM]]).astype(np.intp)
