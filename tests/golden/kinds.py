"""All kinds of golden answers, by name."""

from __future__ import annotations

from . import estimates, evidence, faces, fits, kernels, predictions, search, training

MODULES = (estimates, search, training, kernels, fits, evidence, predictions, faces)
KINDS = {module.KIND.name: module.KIND for module in MODULES}
