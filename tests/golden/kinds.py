"""All kinds of golden answers, by name."""

from __future__ import annotations

from . import estimates

KINDS = {module.KIND.name: module.KIND for module in (estimates,)}
