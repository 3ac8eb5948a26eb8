"""How often what was said with a chance held: rows of others against the model of error without their benchmarker."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import NormalDist

import numpy as np

from chipwise.api.suites.doors import SUITES
from chipwise.api.suites.errors import ErrorLine, lines_of, observed
from chipwise.catalog.chips import get_chip
from chipwise.errors import UsageError
from chipwise.evidence.discrepancy import Observed, Posterior, states
from chipwise.evidence.residuals import Reliable, Validation
from chipwise.evidence.rows import read_rows
from chipwise.units import Array

TABLES = (
    "published_serving.csv", "published_inferencex.csv", "published_local.csv", "published_training.csv", "media.csv",
    "rounds/round3_serving.csv", "rounds/round3_local.csv", "rounds/round3_training.csv", "rounds/round3_media.csv",
)  # fmt: skip
FAMILIES = ("serving", "desk", "training", "media")
TARGETS = np.geomspace(0.5, 2.0, 13)
"""Over the predicted time: targets that are asked about."""
MOST = 1200  # rows of a family, whose covariance is inverted
LEAST = 20  # rows of a class that is shown
CELL = ("model", "chip", "runtime", "trainer", "who")
HOW = (
    "For targets from half to twice a predicted time: the chance that is said for keeping it, in ten classes, against "
    "the share of measured rows that kept it. Each benchmarker's rows are judged by a model of error without them; "
    "cells (model, chip, software, benchmarker) count equally. Mids are those of the product, some of whose choices "
    "saw these rows."
)


def reliability(rows: Sequence[str] = (), folder: str = "") -> Validation:
    """Reliability of chances by family. Raises `UsageError` where no table is found."""
    paths = list(rows) or [str(Path(folder, name)) for name in TABLES if Path(folder, name).is_file()]
    if not paths:
        raise UsageError(
            "validate reliability: no rows", "--rows FILE, or the folder of tables in CHIPWISE_TRUTH"
        )
    lines = [line for path in paths for line in lines_of(path)]
    found = dict(_by_family(lines))
    training = os.path.join(folder, "training.csv")
    remarks = [_memory(training)] if folder and os.path.isfile(training) else []
    return Validation("reliability", HOW, {}, remarks, classes=found, command="chipwise validate reliability")


def _by_family(lines: Sequence[ErrorLine]) -> Iterator[tuple[str, Sequence[Reliable]]]:
    shipped = states()
    for family, every in observed(lines).items():
        if family not in FAMILIES or len(np.unique(every.axes["who"])) < 2:
            continue
        state = shipped[family]
        few = every.balanced(MOST, [a for a in CELL if a in every.axes])
        without = Posterior(state.family, {}, np.zeros(0), np.zeros((0, 0)), state.scales)
        mean, sd = without.left_out(few, few.axes["who"])
        for figure in np.unique(few.figure).tolist():
            at = np.flatnonzero(few.figure == figure)
            name = f"{family}, {'first token' if figure == 'first' else 'time per token, or of a step'}"
            yield name, classes(few.take(at), mean[at], sd[at])


def classes(rows: Observed, mean: Array, sd: Array) -> list[Reliable]:
    """What was said in each of ten classes, and what held, where rows lie around `mean` with deviations `sd`."""
    z = (np.log(TARGETS) - mean[:, None]) / sd[:, None]
    said = np.vectorize(NormalDist().cdf)(z)
    held = rows.y[:, None] <= np.log(TARGETS)
    axes = [rows.axes[a].tolist() for a in CELL if a in rows.axes]
    cells = np.array(["|".join(row) for row in zip(*axes, strict=True)])
    _, code, counts = np.unique(cells, return_inverse=True, return_counts=True)
    weight = np.broadcast_to((1.0 / counts[code])[:, None], said.shape)
    place = np.minimum((10.0 * said).astype(int), 9)
    found = []
    for k in range(10):
        at = place == k
        if at.any(axis=1).sum() >= LEAST:
            share = np.average(held[at], weights=weight[at])
            each = np.average(said[at], weights=weight[at])
            found.append(
                Reliable(f"{10 * k} to {10 * k + 10} %", float(each), float(share), int(at.any(axis=1).sum()))
            )
    return found


def _memory(path: str) -> str:
    """How many runs of a table of training, all of which ran, are said not to fit."""
    room = {row["row_id"]: row["chip"] for row in read_rows(path, ()) if row["chip"] and row["global_batch"]}
    counted = refused = 0
    for line in SUITES["training"].predict(path):
        if line.metric != "memory_gb" or not line.mid or line.row_id not in room:
            continue
        tier = get_chip(room[line.row_id]).tiers[0]
        bytes_ = tier.usable_bytes or tier.label_bytes
        counted += 1
        refused += bool(bytes_) and 1e9 * line.mid > float(bytes_ or 0.0)
    return (
        f"Of {counted:,} training runs that ran, {refused} ({refused / max(counted, 1):.1%}) are said not to fit their "
        "chip; no table holds runs that failed for memory, so that the other error is not known."
    )
