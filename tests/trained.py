"""`train_plan` of a run by the fields that differ from their defaults."""

from __future__ import annotations

from typing import Any

from chipwise.api.answering import ranked
from chipwise.api.train import Training, TrainingAsked
from chipwise.report.training import TrainReport

__all__ = ["train_plan"]


def train_plan(model: str, **asked: Any) -> TrainReport:
    """The answer about a run."""
    return ranked(TrainingAsked.of(Training(model, **asked))).whole()
