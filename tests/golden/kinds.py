"""All kinds of golden answers, by name."""

from __future__ import annotations

from . import (
    claims,
    desk,
    estimates,
    evidence,
    faces,
    fits,
    kernels,
    launches,
    loops,
    modules,
    networks,
    own_runs,
    predictions,
    search,
    through_time,
    training,
)

MODULES = (
    estimates,
    search,
    training,
    kernels,
    fits,
    evidence,
    networks,
    desk,
    loops,
    claims,
    launches,
    modules,
    own_runs,
    predictions,
    through_time,
    faces,
)
KINDS = {module.KIND.name: module.KIND for module in MODULES}
