"""The price of an operator: operator x device -> seconds, by the formulas of the device's family.

The type of the numbers says which family: `Efficiency` the roofline that every family has, `SimtParameters` the
kernels of GPUs, `SystolicModel` matrix units of TPUs and their like, `CpuModel` sockets, `DataflowModel` a stage
of a dataflow chip, `LocalModel` the kernels that local runtimes bring, on GPUs and sockets alike, `Probed` a device
that was timed where it stands, whatever it is. Served models, the `kernel` verb, tables of measured kernels and their
fits all ask here.
"""

from __future__ import annotations

import numpy as np

from chipwise.cost.cost import Cost
from chipwise.cost.cpu import CpuModel, cpu_time
from chipwise.cost.dataflow import DataflowModel, stage_time
from chipwise.cost.device import Device
from chipwise.cost.local import LocalModel, local_time
from chipwise.cost.probed import Probed, probed_time
from chipwise.cost.roofline import Efficiency
from chipwise.cost.roofline import time as roofline_time
from chipwise.cost.run import AMONG, Run
from chipwise.cost.simt.family import SimtParameters, narrowing, simt_time
from chipwise.cost.systolic.family import SystolicModel, systolic_time
from chipwise.workload.op import Op, pointwise

CostParameters = Efficiency | SimtParameters | SystolicModel | CpuModel | DataflowModel | LocalModel | Probed


def price(op: Op, device: Device, numbers: CostParameters, run: Run = AMONG) -> Cost:
    """Seconds of one operator on one device, by resource; shapes broadcast over operator, device, numbers and run.

    Families without caches of their own take no notice of `run`.
    """
    if isinstance(numbers, Efficiency):
        return roofline_time(op, device, numbers)
    if isinstance(numbers, SystolicModel):
        # rows that a vector unit works on follow each other on chip, whatever runs them
        resident = np.maximum(numbers.resident, run.hot)
        return systolic_time(op, device, numbers.arrays, numbers.numbers, resident=resident, fetched=run.fetched)
    if isinstance(numbers, CpuModel):
        return cpu_time(op, device, numbers.cores, numbers.numbers)
    if isinstance(numbers, DataflowModel):
        return stage_time(op, device, numbers)
    if isinstance(numbers, LocalModel):
        return local_time(op, device, numbers)
    if isinstance(numbers, Probed):
        return probed_time(op, numbers)
    found = simt_time(op, device, numbers, run)
    return roofline_time(op, device, numbers.rest) if found is None else found


def narrow(op: Op, device: Device, numbers: CostParameters) -> Cost:
    """Seconds of the kernel that writes the input of the product `op` in its narrow type, where one runs."""
    rows, columns = op.dims["m"], op.dims["k"]
    if isinstance(numbers, SimtParameters):
        return narrowing(rows, columns, op, device, numbers)
    # 2 bytes read, 1 written
    return price(pointwise(rows * columns, 1.5, name="quantise"), device, numbers)
