"""Where the operators of training jobs run in tests of the search: an H100."""

from __future__ import annotations

import numpy as np

from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.chips import get_chip
from chipwise.cost.device import Device
from chipwise.predict.training.operators import TrainKernels

__all__ = ["KERNELS"]

_CHIP = get_chip("h100-sxm5-80gb")
KERNELS = TrainKernels(
    Device.of(_CHIP), shipped_parameters().cost("simt", "any", [_CHIP]).take(np.zeros((), dtype=np.intp))
)
