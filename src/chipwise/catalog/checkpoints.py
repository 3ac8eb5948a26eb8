"""Published checkpoints of a model in other number formats than its configuration's, by the names of repositories."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from types import MappingProxyType

from chipwise.catalog.configs import bundled_configs
from chipwise.catalog.names import WEIGHTS, formats, tuned, weights
from chipwise.catalog.snapshot import per_snapshot, shipped_text

METHODS = ("awq", "gptq")
"""Of these the ways to make integers, whose bits another word may say: `GPTQ-Int8`."""


@per_snapshot
def load_checkpoints() -> Mapping[str, str]:
    """Published checkpoints in a narrower format whose configuration is that of a bundled one: the number format by
    repository. Facts of `data/checkpoints.csv`, each with its source."""
    rows = csv.DictReader(io.StringIO(shipped_text("catalog/data/checkpoints.csv")))
    return MappingProxyType({row["repository"]: row["format"] for row in rows})


def stored_as(name: str) -> str:
    """The number format of a published checkpoint, else what its name says, "" where it says none: what comes first
    counts (`FP8-dynamic` is fp8), bits before the way they were made (`GPTQ-Int4` is int4)."""
    said = [word for word in formats(name) if word in WEIGHTS]
    read = next((WEIGHTS[word] for word in sorted(said, key=lambda word: word in METHODS)), "")
    return load_checkpoints().get(name, read)


@per_snapshot
def published_as(model: str, number_format: str) -> str:
    """A known checkpoint of the same weights in a number format, "" where none is known: one of a base model is none of
    a model that was tuned to answer. Those of the organisation that made the model come first."""
    mine = weights(model), tuned(model)
    known = dict.fromkeys((*bundled_configs(), *load_checkpoints()))
    found = [n for n in known if stored_as(n) == number_format and (weights(n), tuned(n)) == mine]
    return min(found, key=lambda name: (not same_maker(name, model), name), default="")


def same_maker(name: str, model: str) -> bool:
    """Whether a checkpoint is of the organisation that made the model."""
    return name.lower().split("/")[0] == model.lower().split("/")[0]
