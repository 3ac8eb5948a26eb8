"""The door of all suites to their rows: `predict SUITE` answers them."""

from __future__ import annotations

from collections.abc import Mapping

from chipwise.api.suites.counted import KV_CACHE, MODEL_PARAMS, SYSTOLIC
from chipwise.api.suites.energy import ENERGY
from chipwise.api.suites.kernels import KERNELS
from chipwise.api.suites.local import LOCAL_SPEEDS
from chipwise.api.suites.media import MEDIA
from chipwise.api.suites.mlperf_folds import MLPERF
from chipwise.api.suites.published import PUBLISHED
from chipwise.api.suites.serving import SERVING
from chipwise.api.suites.speeds import TOKEN_SPEEDS
from chipwise.api.suites.suite import Suite
from chipwise.api.suites.training_folds import MLPERF_TRAINING, TRAINING

SUITES: Mapping[str, Suite] = {
    suite.name: suite
    for suite in (
        MODEL_PARAMS,
        KV_CACHE,
        SYSTOLIC,
        KERNELS,
        MLPERF,
        PUBLISHED,
        SERVING,
        TOKEN_SPEEDS,
        LOCAL_SPEEDS,
        TRAINING,
        MLPERF_TRAINING,
        ENERGY,
        MEDIA,
    )
}
