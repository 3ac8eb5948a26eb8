"""Kernels as a whole: fit every formula to measured ones, correct what ships by rows of one's own, price questions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.effects import EffectLevel, Effects, Quantity
from chipwise.calibrate.fit import Fitting, PricedEffect, Times, fit, priced
from chipwise.calibrate.kernel_questions import Questions, taken
from chipwise.calibrate.kernel_rows import groups_of, kernel_rows, known
from chipwise.calibrate.parameter import Parameter
from chipwise.calibrate.parameters import Parameters
from chipwise.calibrate.priors import PRIORS, WORTH
from chipwise.calibrate.systolic_kernels import GROUPS, priced_systolic
from chipwise.catalog.chip import Chip
from chipwise.units import Array
from chipwise.values import dataclass

METRIC = "latency_us"
"""The measured column of tables of kernels."""

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
_TRIED_PER_STRATUM = 40  # where only one label is tried
_STRATA = ("chip", "source", "runtime", "variant")
# One standard deviation of log(time) beyond the parameters' own on a chip without rows, with rows of its
# generation and without: what makes 80 % intervals cover 80 % when each chip is left out in turn. Indexed by
# whether it is a collective, whose time is that of a machine and not of a chip.
_UNSEEN = ((0.10, 0.26), (0.43, 0.43))
# Shapes that the fit did not see scatter more than those it saw (two halves of shapes, fitted in turn).
_UNSEEN_SHAPES = 1.08
# A few rows move what they are about, their chip, not what thousands of rows said of all chips.
OVERALL_SPREAD = 0.01
CHIP_SPREAD = 0.3
LEVEL_SHARE = 0.2  # of the spread that an effect on more than a chip had before any row was seen
_NEGLIGIBLE = 0.035  # of log(factor), of corrections: leaving these out moves no median by 0.1 points


def calibrate_kernels(
    asked: Questions,
    chips: Mapping[str, Chip],
    priors: Mapping[str, Mapping[str, Quantity]] = PRIORS,
    only: Sequence[str] = (),
    worth: float = WORTH,
) -> dict[str, Effects]:
    """Effects of every group of operators (of `only` these) with measured rows: questions with `latency_us`. Those that
    are not `worth` a number stay at their prior.

    Pure; rows of unknown chips are passed over.
    """
    every = fitted_kernels(asked, chips, priors, only, worth)
    return {group: fitting.effects() for group, (fitting, _) in every}


def fitted_kernels(
    asked: Questions,
    chips: Mapping[str, Chip],
    priors: Mapping[str, Mapping[str, Quantity]] = PRIORS,
    only: Sequence[str] = (),
    worth: float = WORTH,
) -> Iterator[tuple[str, tuple[Fitting, NDArray[np.intp]]]]:
    """How the numbers of every group are fitted, and the places of the questions that they are fitted to."""
    sound = np.flatnonzero(known(asked, chips))
    groups = groups_of(asked)[sound]
    for group in PRIORS:
        index = sound[groups == group]
        if not len(index) or (only and group not in only):
            continue
        index = index[_sample(taken(asked, index))]
        rows = kernel_rows(taken(asked, index), chips, group)
        full = _FULL_WEIGHT_S.get(group, 0.0)
        weight = np.clip(rows.measured_s / full, _LEAST_WEIGHT, 1.0) if full else None
        yield group, (Fitting(replace(rows, weight=weight), priors[group], worth), index)


def price_kernels(
    asked: Questions, chips: Mapping[str, Chip], effects: Mapping[str, Effects], numbers: Parameters | None = None
) -> Times:
    """Every question about a SIMT chip, with fitted effects; `latency_us` is not read. `numbers` bring the own
    kernels of local runtimes."""
    return priced(len(asked["op"]), _priced(asked, chips, effects, numbers))


def price_measured(asked: Questions, chips: Mapping[str, Chip], numbers: Parameters) -> Times:
    """Every question that a family with measured kernels answers: GPUs, and systolic arrays where they have fitted
    operators. NaN for others: `api.kernel` answers them one by one."""
    gpus = _priced(asked, chips, numbers.kernels, numbers)
    return priced(len(asked["op"]), (*gpus, *priced_systolic(asked, chips, numbers.arrays)))


def _priced(
    asked: Questions, chips: Mapping[str, Chip], effects: Mapping[str, Effects], numbers: Parameters | None
) -> Iterator[PricedEffect]:
    """Questions about SIMT chips; calibrated is a generation."""
    at = np.flatnonzero(known(asked, chips))
    groups = groups_of(taken(asked, at))
    for group in np.unique(groups).tolist():
        if group not in effects:
            continue
        index, found = at[groups == group], effects[group]
        rows = kernel_rows(taken(asked, index), chips, group, numbers)
        chip_seen = np.isin(rows.labels["chip"], found.keys_of("chip"))
        generation_seen = np.isin(rows.labels["generation"], found.keys_of("generation"))
        unseen = np.where(chip_seen, 0.0, np.where(generation_seen, *_UNSEEN[group == "collective"]))
        yield PricedEffect(index, rows, found, _UNSEEN_SHAPES, unseen, generation_seen)


def kernel_parameters(effects: Mapping[str, Effects], source: str, least: float = 0.0) -> dict[str, Parameter]:
    """Fitted effects as parameters to write down, without factors nearer to 1 than `least` that rows hardly told."""
    out: dict[str, Parameter] = {}
    for group, fitted in effects.items():
        out |= fitted.parameters(group, source, least)
        out |= fitted.scatter.parameters(group, source, fitted.rows_hash)
    return out


def fitted_names(table: Mapping[str, Parameter]) -> list[str]:
    """Names of the fitted numbers of kernels among parameters; the widths of intervals, and labels that need no number,
    are none."""
    groups = tuple(f"{group}." for group in (*PRIORS, *GROUPS))
    return [n for n in table if n.startswith(groups) and ".scatter." not in n and ".label." not in n]


@dataclass(frozen=True)
class LabelTrial:
    """Rows of operators whose value of `label` a fit never saw: measured seconds, and those that it says with effects
    of that label on the values that it saw, and without any."""

    label: str
    measured_s: Array
    with_s: Array
    without_s: Array


def label_trials(asked: Questions, chips: Mapping[str, Chip]) -> Iterator[LabelTrial]:
    """What the effects of each label buy where their own value is left out: values are dealt in two, and half of them
    priced by what a sample of the rows of the others taught. Fits of what helps no other value are not worth a number.
    """
    asked = taken(asked, np.flatnonzero(known(asked, chips)))
    groups = groups_of(asked)
    for group, priors in PRIORS.items():
        index = np.flatnonzero(groups == group)
        if not len(index):
            continue
        index = index[_sample(taken(asked, index), _TRIED_PER_STRATUM)]
        rows = kernel_rows(taken(asked, index), chips, group)
        for label in sorted({a for q in priors.values() for level in q.levels for a in level.attributes}):
            values, codes = np.unique(rows.labels[label], return_inverse=True)
            dealt = np.random.default_rng(0).permutation(len(values)) % 2
            rest = {
                name: replace(q, levels=tuple(v for v in q.levels if label not in v.attributes))
                for name, q in priors.items()
            }
            for half in (0, 1) if len(values) > 1 else ():
                out = dealt[codes] == half
                kept, left = rows.take(np.flatnonzero(~out)), rows.take(np.flatnonzero(out))
                both = [left.predict(fit(kept, p, worth=WORTH)) for p in (priors, rest)]
                yield LabelTrial(label, left.measured_s, *both)


def corrected_kernels(
    asked: Questions, chips: Mapping[str, Chip], numbers: Parameters, source: str
) -> dict[str, Parameter]:
    """Parameters of the groups of operators that `asked` holds measurements of (`latency_us`), to replace those
    of `numbers`, which are their prior. Pure; rows of chips or types without a formula are passed over."""
    mine = {chips[c].generation for c in np.unique(asked["chip"]).tolist() if c in chips}
    priors = {
        group: _prior(effects, mine.isdisjoint(effects.keys_of("generation")))
        for group, effects in numbers.kernels.items()
    }
    found = calibrate_kernels(asked, chips, priors, worth=0.0)
    merged = {
        group: replace(fitted, table={**numbers.kernels[group].table, **fitted.table})
        for group, fitted in found.items()
    }
    return kernel_parameters(merged, source, _NEGLIGIBLE)


def _prior(known: Effects, fresh: bool) -> dict[str, Quantity]:
    """What is believed after the shipped fit: its values, with room to move; all of it for what belongs to a
    generation, where the rows are the first of theirs (`fresh`)."""
    return {
        name: replace(
            quantity,
            mid=_overall(known, name, quantity),
            spread=OVERALL_SPREAD,
            levels=tuple(_level(known, name, level, fresh) for level in quantity.levels),
        )
        for name, quantity in known.quantities.items()
    }


def _overall(known: Effects, name: str, quantity: Quantity) -> float:
    effect = known.table.get((name, "", ""))
    return quantity.mid if effect is None else effect.factor


def _level(known: Effects, name: str, level: EffectLevel, fresh: bool) -> EffectLevel:
    seen = {key: e.value for (q, found, key), e in known.table.items() if (q, found) == (name, level.name)}
    spread = LEVEL_SHARE * level.spread
    if "chip" in level.attributes:
        spread = CHIP_SPREAD
    elif fresh and "generation" in level.attributes:
        spread = level.spread
    return replace(level, spread=spread, centres={**level.centres, **seen})


def _sample(asked: Questions, most: int = _ROWS_PER_STRATUM) -> NDArray[np.intp]:
    """At most so many rows of each operator, chip, data type and kernel, the same every time."""
    keys = asked["op"].astype(str)
    for name in _STRATA:
        if name in asked:
            keys = np.char.add(np.char.add(keys, "|"), asked[name].astype(str))
    order = np.random.default_rng(0).permutation(len(keys))
    _, codes = np.unique(keys, return_inverse=True)
    shuffled = codes[order]
    by_stratum = np.argsort(shuffled, kind="stable")
    sorted_codes = shuffled[by_stratum]
    starts = np.r_[0, np.flatnonzero(np.diff(sorted_codes)) + 1]
    rank = np.arange(len(keys)) - np.repeat(starts, np.diff(np.r_[starts, len(keys)]))
    return np.sort(order[by_stratum[rank < most]]).astype(np.intp)
