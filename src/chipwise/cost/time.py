"""Operator x device -> seconds, by the formulas of the device's family.

The type of the parameters says which: `Efficiency` the roofline that every family has, `SimtParameters` the
kernels of GPUs, `SystolicModel` matrix units of TPUs and their like, `CpuModel` sockets, `DataflowModel` a stage
of a dataflow chip.
"""

from __future__ import annotations

from chipwise.cost.cost import Cost
from chipwise.cost.cpu import CpuModel, cpu_time
from chipwise.cost.dataflow import DataflowModel, stage_time
from chipwise.cost.device import Device
from chipwise.cost.efficiency import Efficiency
from chipwise.cost.roofline import time as roofline_time
from chipwise.cost.simt.family import SimtParameters, narrowing, simt_time
from chipwise.cost.systolic.family import SystolicModel, systolic_time
from chipwise.workload.op import Op, pointwise

__all__ = ["CostParameters", "narrow", "time"]

CostParameters = Efficiency | SimtParameters | SystolicModel | CpuModel | DataflowModel


def time(op: Op, device: Device, parameters: CostParameters) -> Cost:
    """Seconds of one operator on one device, by resource; shapes broadcast over operator and device."""
    if isinstance(parameters, Efficiency):
        return roofline_time(op, device, parameters)
    if isinstance(parameters, SystolicModel):
        return systolic_time(op, device, parameters.arrays, parameters.numbers, resident=parameters.resident)
    if isinstance(parameters, CpuModel):
        return cpu_time(op, device, parameters.cores, parameters.numbers)
    if isinstance(parameters, DataflowModel):
        return stage_time(op, device, parameters)
    found = simt_time(op, device, parameters)
    return roofline_time(op, device, parameters.rest) if found is None else found


def narrow(op: Op, device: Device, parameters: CostParameters) -> Cost:
    """Seconds of the kernel that writes the input of the product `op` in its narrow type, where one runs."""
    rows, columns = op.dims["m"], op.dims["k"]
    if isinstance(parameters, SimtParameters):
        return narrowing(rows, columns, op, device, parameters)
    # 2 bytes read, 1 written
    return time(pointwise(rows * columns, 1.5, name="quantise"), device, parameters)
