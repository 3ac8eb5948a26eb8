"""One row of training measurements as the equations want it."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.predict.training.values import Cluster, Recipe, Spread, Transformer

__all__ = ["Case"]


@dataclass(frozen=True, slots=True)
class Case:
    """One row as the equations want it. `labels` choose fitted numbers; `notes` lists what was assumed;
    `guessed` counts assumptions that widen the interval."""

    row_id: str
    network: Transformer
    spread: Spread
    cluster: Cluster
    recipe: Recipe
    labels: dict[str, str]
    devices_per_chip: float
    notes: tuple[str, ...]
    guessed: tuple[str, ...]
