"""`train_plan` of a run by the fields that differ from their defaults."""

from __future__ import annotations

from typing import Any

from chipwise.api import train
from chipwise.report.training import TrainReport

__all__ = ["train_plan"]


def train_plan(model: str, **asked: Any) -> TrainReport:
    """The answer about a run."""
    return train.train_plan(train.Training(model, **asked))
