"""One layout of a training run at a time, for tests that know what is legal."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from chipwise.parallel.layout import REASONS, Reason
from chipwise.predict.training.values import TrainSpread
from chipwise.search.training import TrainJob, evaluate

__all__ = ["verdict"]


def verdict(job: TrainJob, spread: TrainSpread) -> Reason:
    """Why a layout is no plan, or that it is one; memory included."""
    columns = {f.name: np.atleast_1d(np.asarray(getattr(spread, f.name), float)) for f in fields(spread)}
    return REASONS[int(evaluate(job, replace(spread, **columns)).reason[0])]
