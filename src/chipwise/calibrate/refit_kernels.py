"""The shipped numbers of kernels, corrected by rows that someone measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from chipwise.calibrate.effects import Effects, Level, Quantity
from chipwise.calibrate.kernel_questions import Questions
from chipwise.calibrate.kernels import calibrate_kernels, kernel_parameters
from chipwise.calibrate.parameter import Parameter
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.chip import Chip

__all__ = ["refit_kernels"]

# A few rows move what they are about, their chip, not what thousands of rows said of all chips.
OVERALL_SPREAD = 0.01
CHIP_SPREAD = 0.3
LEVEL_SHARE = 0.2  # of the spread that an effect on more than a chip had before any row was seen


def refit_kernels(
    asked: Questions, chips: Mapping[str, Chip], numbers: Parameters, source: str
) -> dict[str, Parameter]:
    """Parameters of the groups of operators that `asked` holds measurements of (`latency_us`), to replace those
    of `numbers`, which are their prior. Pure; rows of chips or types without a formula are passed over."""
    mine = {chips[c].generation for c in np.unique(asked["chip"]).tolist() if c in chips}
    priors = {
        group: _prior(effects, mine.isdisjoint(effects.keys_of("generation")))
        for group, effects in numbers.kernels.items()
    }
    found = calibrate_kernels(asked, chips, priors)
    merged = {
        group: replace(fitted, table={**numbers.kernels[group].table, **fitted.table})
        for group, fitted in found.items()
    }
    return kernel_parameters(merged, source)


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


def _level(known: Effects, name: str, level: Level, fresh: bool) -> Level:
    seen = {key: e.value for (q, found, key), e in known.table.items() if (q, found) == (name, level.name)}
    spread = LEVEL_SHARE * level.spread
    if "chip" in level.attributes:
        spread = CHIP_SPREAD
    elif fresh and "generation" in level.attributes:
        spread = level.spread
    return replace(level, spread=spread, centres={**level.centres, **seen})
