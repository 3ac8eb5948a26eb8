"""Published checkpoints of a model in other number formats than its configuration's, by the names of repositories."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from chipwise.catalog.configs import bundled_configs
from chipwise.catalog.names import WEIGHTS, formats, tuned, weights
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.values import dataclass

FORMATS = frozenset((*WEIGHTS.values(), "fp8_block"))
"""Formats in which a repository holds one checkpoint."""
METHODS = ("awq", "gptq")
"""Of these the ways to make integers, whose bits another word may say: `GPTQ-Int8`."""


OFFERED, TESTED = "catalog/data/checkpoints.csv", "catalog/data/quality.csv"
"""Tables that name published checkpoints: those that are offered or loaded by name, those that somebody tested."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A published checkpoint, `repository`, of a model in a narrower format than its own."""

    model: str
    format: str
    repository: str


@per_snapshot
def load_checkpoints() -> tuple[Checkpoint, ...]:
    """Published checkpoints in narrower formats, files of GGUF left out: those that are offered, and of those that
    somebody tested the ones of the model's maker, as what others packed some software cannot read. Facts, each with its
    source in its table."""

    def rows(table: str) -> Iterator[Checkpoint]:
        for row in csv.DictReader(io.StringIO(shipped_text(table))):
            yield Checkpoint(row["model"], row["format"], row["repository"])

    tested = (c for c in rows(TESTED) if same_maker(c.repository, c.model))
    return tuple(dict.fromkeys(c for c in (*rows(OFFERED), *tested) if c.format in FORMATS))


def stored_as(name: str) -> str:
    """The number format of a published checkpoint, else what its name says, "" where it says none: what comes first
    counts (`FP8-dynamic` is fp8), bits before the way they were made (`GPTQ-Int4` is int4)."""
    known = next((c.format for c in load_checkpoints() if c.repository == name), None)
    said = [word for word in formats(name) if word in WEIGHTS]
    return known or next((WEIGHTS[word] for word in sorted(said, key=lambda word: word in METHODS)), "")


@per_snapshot
def published_as(model: str, number_format: str) -> str:
    """A known checkpoint of the same weights in a number format, "" where none is known: one of a base model is none of
    a model that was tuned to answer. Those of the organisation that made the model come first."""
    mine = weights(model), tuned(model)
    bundled = (n for n in bundled_configs() if (weights(n), tuned(n)) == mine and stored_as(n) == number_format)
    others = (
        c.repository
        for c in load_checkpoints()
        if c.format == number_format and (weights(c.model), tuned(c.model)) == mine
    )
    return min((*bundled, *others), key=lambda name: not same_maker(name, model), default="")


def same_maker(name: str, model: str) -> bool:
    """Whether a checkpoint is of the organisation that made the model."""
    return name.lower().split("/")[0] == model.lower().split("/")[0]
