"""All kinds of golden answers, by name."""

from __future__ import annotations

from . import estimates, evidence, fits, kernels, predictions, search, training

MODULES = (estimates, search, training, kernels, fits, evidence, predictions)
KINDS = {module.KIND.name: module.KIND for module in MODULES}
