"""The numbers of CPUs and dataflow machines as the cost models ask for them, one per chip where they differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from chipwise.calibrate.effects import EffectGroup, Effects
from chipwise.calibrate.priors import priors
from chipwise.catalog.chip import Chip
from chipwise.cost.cpu import PRIORS as CPU_ALONE
from chipwise.cost.cpu import Cores, CpuModel, CpuParameters
from chipwise.cost.dataflow import PRIORS as STAGE_ALONE
from chipwise.cost.dataflow import DataflowModel, Fabric, StageNumbers

SPEEDS = EffectGroup(
    "speeds", priors("speeds"), "published speeds per user of Groq, Cerebras and SambaNova services; fitted (2026-11)"
)
"""What one token waits for on dataflow machines, shared over kinds of them (lpu, wafer, rdu)."""

Value = Callable[..., float]
"""The first of some names that a table of parameters holds."""


def cpu_model(value: Value, runtime: str, chips: Sequence[Chip], *, alone: bool = False) -> CpuModel:
    """Sockets and what code reaches of them: the priors of one operator, or what served models reached."""
    if alone:
        return CpuModel(Cores.stack(chips), CPU_ALONE)
    numbers = CpuParameters(
        compute_share=value("cpu.compute.bf16"),
        vector_share=value("cpu.vector"),
        memory_share=value("cpu.memory"),
        cache_share=value("cpu.cache"),
        sockets=1.0,  # a device is a socket
        remote_share=0.0,
        remote_slowdown=value("cpu.remote_slowdown"),
        start_s=value(f"runtime.{runtime}.launch", "cpu.launch"),
        softness=value("cpu.softness", "any.softness"),
        narrow_share=value("cpu.compute.int8"),
    )
    return CpuModel(Cores.stack(chips), numbers)


def dataflow_model(value: Value, speeds: Effects, chips: Sequence[Chip], *, alone: bool = False) -> DataflowModel:
    """Chips and what their compilers reach: of one operator, or (the token's way included) of one in a model."""
    fabric = Fabric.stack(chips)
    if alone:
        return DataflowModel(fabric, STAGE_ALONE)
    waits = speeds.values({"kind": np.array([chip.kind for chip in chips])})
    each = np.ones(len(chips))
    numbers = StageNumbers(
        compute_share=value("dataflow.compute_share") * each,
        row_share=waits["row_share"] * each,
        sram_share=value("dataflow.sram_share") * each,
        tier_share=value("dataflow.tier_share") * each,
        layer_s=waits["operation_s"] * each,
        routed_s=waits["routed_s"] * each,
    )
    return DataflowModel(fabric, numbers)
