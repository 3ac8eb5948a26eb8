"""What is believed of every fitted number before a row is seen: facts of `data/priors.toml`, whose comments say why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from chipwise.calibrate.effects import EffectLevel, Quantity
from chipwise.catalog.parsed import names

TABLE = "calibrate/data/priors.toml"


@cache
def _table() -> Mapping[str, Mapping[str, Any]]:
    """All groups: they are of this version, as the formulas that they are numbers of."""
    return names(TABLE)


@cache
def priors(group: str) -> Mapping[str, Quantity]:
    """The quantities of a group by name."""
    return {name: _quantity(said) for name, said in _table()[group].items()}


def _quantity(said: str | Sequence[Mapping[str, Any]]) -> Quantity:
    """A quantity from its effects, the overall one first; of a text that of the groups' shared ones."""
    if isinstance(said, str):
        return _quantity(_table()["shared"][said])
    overall, *levels = said
    return Quantity(**overall, levels=tuple(map(_level, levels)))


def _level(said: Mapping[str, Any]) -> EffectLevel:
    centres = {label: float(np.log(_ratio(factor))) for label, factor in said.get("factors", {}).items()}
    return EffectLevel(tuple(said["of"]), said["spread"], centres)


def _ratio(factor: float | Sequence[float]) -> float:
    """A factor; of a pair what was measured over what it is held against."""
    return factor if isinstance(factor, float) else factor[0] / factor[1]


_GEMM, _PROMPT, _DECODE, _POINTWISE = map(priors, ("gemm", "prompt", "decode", "pointwise"))

PRIORS: Mapping[str, Mapping[str, Quantity]] = {
    "simt.gemm": _GEMM,
    "simt.batched_gemm": _GEMM,
    "simt.prompt": _PROMPT,
    "simt.latent_prompt": _PROMPT,
    "simt.decode": _DECODE,
    "simt.latent_decode": _DECODE,
    "simt.experts": priors("experts"),
    "simt.norm": _POINTWISE,
    "simt.softmax": _POINTWISE,
    "simt.elementwise": _POINTWISE,
    "collective": priors("collective"),
}
"""Quantities of every group of operators that is fitted together."""

WORTH = 0.75
"""What a number of kernels must explain to ship (`fit`): the least that keeps to one number for two cells."""
