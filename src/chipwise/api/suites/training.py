"""The suites `training` and `mlperf_training`: a row becomes the question of a user, and takes its answer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from chipwise.api.requests.training import TrainRequest
from chipwise.api.suites.training_checks import impossible
from chipwise.api.train import situate
from chipwise.calibrate.fit_training import Runs, fit
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.errors import ChipwiseError, UsageError
from chipwise.evidence.rows import Predicted, Row, read_rows
from chipwise.evidence.training_measured import measured_of, row_weights
from chipwise.evidence.training_rows import Run, read_run
from chipwise.predict.training.values import Cluster, Recipe, Spread, Transformer

__all__ = ["Measured", "fitted_training", "measured_runs", "predict_training", "request_of"]

T = TypeVar("T")
ROUNDS = 2
NEEDED = ("row_id", "chip", "chips_total")


def request_of(run: Run) -> TrainRequest:
    """The question of a row."""
    return TrainRequest(task="train", **run.fields)


@dataclass(frozen=True)
class Measured:
    """Runs that were read from tables: their questions, and the columns that a fit wants."""

    runs: Sequence[Run]
    columns: Runs


def measured_runs(paths: Sequence[str], numbers: Parameters) -> Measured:
    """Rows that can be answered, of tables with measured columns, with the layouts that `numbers` choose where rows
    leave them open. Raises `UsageError` where there are none."""
    kept: list[Run] = []
    placed = []
    for path in paths:
        for row in read_rows(path, NEEDED):
            try:
                run = read_run(row, Path(path).parent)
                if not impossible(row):
                    placed.append(situate(request_of(run).arguments(), numbers))
                    kept.append(run)
            except ChipwiseError:
                continue
    if not kept:
        raise UsageError(f"{', '.join(paths)}: no row can be read", "is it a table of training runs?")
    return Measured(kept, _columns(kept, placed))


def _columns(runs: Sequence[Run], placed: Sequence[Any]) -> Runs:
    parts: dict[str, Any] = {
        "network": _stacked(Transformer, [site.job.network for site, _ in placed]),
        "spread": _stacked(Spread, [at.spread for _, at in placed]),
        "cluster": _stacked(Cluster, [site.job.cluster for site, _ in placed]),
        "recipe": _stacked(Recipe, [
            replace(site.job.recipe, optimiser=0.0) if run.row.get("fwd_bwd_time_s") else site.job.recipe
            for run, (site, _) in zip(runs, placed, strict=True)
        ]),
    }
    measured = [
        measured_of(run.row, site.job.network, at.spread, site.trainer.counts)
        for run, (site, at) in zip(runs, placed, strict=True)
    ]
    first = placed[0][0].labels
    return Runs(
        labels={key: np.array([site.labels[key] for site, _ in placed]) for key in first},
        seconds=np.array([m[0] for m in measured]),
        memory_bytes=np.array([m[1] for m in measured]),
        weight=row_weights(runs),
        **parts,
    )


def _stacked(kind: type[T], values: Sequence[T]) -> T:
    """Frozen values of numbers as one of columns."""
    return kind(**{f.name: np.array([float(getattr(v, f.name)) for v in values]) for f in fields(kind)})  # type: ignore[arg-type]


def fitted_training(paths: Sequence[str], prior: Parameters) -> Parameters:
    """`prior` with the numbers of training fitted to all rows of the tables that count. Layouts that rows leave open
    are those that the numbers choose: chosen, fitted, chosen anew, fitted."""
    numbers = prior
    for _ in range(ROUNDS):
        columns = measured_runs(paths, numbers).columns
        numbers = fit(columns.take(np.flatnonzero(columns.weight > 0)), prior)
    return numbers


def predict_training(rows: str, numbers: Parameters | None = None) -> Iterator[Predicted]:
    """x"""
    return iter(())
