"""Measured kernels of systolic chips: questions -> formula, priors, fit, prices.

Each operator fits the few numbers that it can tell: norms passes and start_s; products compute_share, load_rows,
memory_share and softness; new tokens cache_share and block_s; prompts pair_ops and prompt_block_s. `parameters_of` puts
them together for any operator of any such chip, and every row is priced with all of them. Effects of one chip are
kept apart from those of all, so that a chip without rows inherits and gets a wider interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.effects import Effects
from chipwise.calibrate.fit import FitRows, PricedEffect, fit
from chipwise.calibrate.kernel_questions import Questions, alike, op_of, run_of, taken
from chipwise.calibrate.parameter import Parameter
from chipwise.calibrate.priors import priors
from chipwise.catalog.chip import Chip
from chipwise.cost.device import Device
from chipwise.cost.price import price
from chipwise.cost.run import Run
from chipwise.cost.systolic.facts import Arrays
from chipwise.cost.systolic.family import SystolicModel, SystolicParameters
from chipwise.units import Array, Real
from chipwise.workload.op import Op

PRIORS = priors("systolic")
GROUPS: Mapping[str, tuple[str, ...]] = {
    "systolic.norm": ("passes", "start_s"),
    "systolic.gemm": ("compute_share", "load_rows", "memory_share", "softness"),
    "systolic.decode": ("cache_share", "block_s"),
    "systolic.prompt": ("pair_ops", "prompt_block_s"),
}
"""Operators under the name of their parameters, and what each tells: every number once, in the order of fitting."""

# Short products are mostly what the compiler put around them.
_FULL_WEIGHT_S = 100e-6
_LEAST_WEIGHT = 0.2
# Shapes that the fit did not see scatter more than those it saw (five parts by shape, left out in turn).
_UNSEEN_SHAPES = 1.2
# What a number must explain to ship: a few rows of one chip tell each of its operators one or two numbers.
_WORTH = 0.2


def calibrate_systolic(asked: Questions, chips: Mapping[str, Chip]) -> dict[str, Effects]:
    """Effects by group of every operator with measured rows of systolic chips; each group is fitted with what those
    before it told. Pure."""
    out: dict[str, Effects] = {}
    for group, names in GROUPS.items():
        index = _index(asked, chips, group)
        if len(index):
            rows = systolic_rows(taken(asked, index), chips, group, out)
            out[group] = fit(rows, {name: PRIORS[name] for name in names}, worth=_WORTH)
    return out


def systolic_effects(table: Mapping[str, Parameter]) -> dict[str, Effects]:
    """The effects among the parameters that ship; priors where there are none."""
    return {g: Effects.of(table, g, {n: PRIORS[n] for n in names}) for g, names in GROUPS.items()}


def priced_systolic(
    asked: Questions, chips: Mapping[str, Chip], effects: Mapping[str, Effects]
) -> Iterator[PricedEffect]:
    """Questions about systolic chips; calibrated is this very chip. `latency_us` is not read."""
    for group, names in GROUPS.items():
        index = _index(asked, chips, group)
        if len(index):
            found = effects.get(group) or Effects({n: PRIORS[n] for n in names}, {})
            rows = systolic_rows(taken(asked, index), chips, group, effects)
            known = np.isin(rows.labels["chip"], found.keys_of("chip"))
            yield PricedEffect(index, rows, found, _UNSEEN_SHAPES, 0.0, known)


def parameters_of(effects: Mapping[str, Effects], chip: str) -> SystolicParameters:
    """All numbers for one chip, fitted where an operator told them, else the prior."""
    labels = {"chip": np.array([chip])}
    values = {name: quantity.mid for name, quantity in PRIORS.items()}
    for group, names in GROUPS.items():
        if group in effects:
            found = effects[group].values(labels)
            values |= {n: float(found[n].item()) for n in names}
    return SystolicParameters(**values)


def systolic_model(effects: Mapping[str, Effects], chips: Sequence[Chip], *, alone: bool = False) -> SystolicModel:
    """Arrays and fitted numbers of chips that hold the same operand in their cells."""
    numbers = {name: parameters_of(effects, name) for name in {chip.software_id for chip in chips}}
    each = [numbers[chip.software_id] for chip in chips]
    columns = {f.name: np.array([getattr(e, f.name) for e in each]) for f in fields(SystolicParameters)}
    return SystolicModel(Arrays.stack(chips), SystolicParameters(**columns), 0.0 if alone else 1.0)


def systolic_rows(asked: Questions, chips: Mapping[str, Chip], group: str, told: Mapping[str, Effects]) -> FitRows:
    """Questions of one group with their formula: the numbers that `told` holds, the prior of others, and those of
    the group as they are passed. Without `latency_us` they can be priced, not fitted."""
    size = len(asked["op"])
    names = asked["chip"].astype(str)
    each, codes = np.unique(names, return_inverse=True)
    devices = Device.stack([Device.of(chips[name]) for name in each.tolist()])
    arrays = Arrays.stack([chips[name] for name in each.tolist()])
    before = [parameters_of(told, chips[name].software_id) for name in each.tolist()]
    same = {f.name: np.array([getattr(p, f.name) for p in before]) for f in fields(SystolicParameters)}
    parts = [(at, op_of(taken(asked, at)), run_of(taken(asked, at))) for at in alike(asked)]

    def model(values: Mapping[str, Real], index: NDArray[np.intp]) -> Array:
        whole = np.array_equal(index, np.arange(size))
        out = np.empty(len(index))
        mine = {name: column[codes[index]] for name, column in same.items()} | dict(values)
        for at, op, run in parts if whole else _parts(asked, index):
            here = {k: np.broadcast_to(np.asarray(v), len(index))[at] for k, v in mine.items()}
            chip = codes[index[at]]
            model = SystolicModel(arrays, SystolicParameters(**same)).take(chip)
            model = replace(model, numbers=SystolicParameters(**here))
            out[at] = price(op, devices.take(chip), model, run).total_s
        return out

    measured = asked["latency_us"] * 1e-6 if "latency_us" in asked else np.full(size, np.nan)
    weight = (
        np.clip(measured / _FULL_WEIGHT_S, _LEAST_WEIGHT, 1.0)
        if group == "systolic.gemm" and "latency_us" in asked
        else None
    )
    fitted_as = np.array([chips[name].software_id for name in names.tolist()], dtype=np.str_)
    return FitRows({"chip": fitted_as}, measured, model, weight)


def _parts(asked: Questions, index: NDArray[np.intp]) -> Iterator[tuple[NDArray[np.intp], Op, Run]]:
    some = taken(asked, index)
    return ((at, op_of(taken(some, at)), run_of(taken(some, at))) for at in alike(some))


def _index(asked: Questions, chips: Mapping[str, Chip], group: str) -> NDArray[np.intp]:
    """Questions of a group about chips with arrays; 16-bit ones, since no others were measured."""
    systolic = [c for c, chip in chips.items() if chip.family == "systolic" and chip.matrix_unit.arrays]
    usable = np.isin(asked["chip"], systolic) & np.isin(asked["dtype"], ("bf16", "fp16"))
    if group in ("systolic.prompt", "systolic.decode"):
        decoding = (asked["q"] == 1.0) & (asked["prompt"] == 0.0)
        usable &= (asked["op"] == "attention") & (decoding == (group == "systolic.decode"))
    else:
        usable &= asked["op"] == group.removeprefix("systolic.")
    return np.flatnonzero(usable)
