"""One forward pass of a sharded graph on a device: operators, exchanges and host, added up."""

from __future__ import annotations

import numpy as np

from chipwise.cost.cost import Cost
from chipwise.cost.device import Device
from chipwise.cost.efficiency import Efficiency
from chipwise.cost.roofline import time
from chipwise.parallel.comm import Comm, Fabric, comm_time
from chipwise.parallel.shard import Sharded
from chipwise.predict.overheads import Overheads
from chipwise.workload.step import Step

__all__ = ["step_cost"]


def step_cost(
    sharded: Sharded, step: Step, device: Device, efficiency: Efficiency, overheads: Overheads
) -> Cost:
    """Seconds of one pass of one replica, by resource. Broadcasts over layout, step and device.

    Operators run one after the other; exchanges are not hidden behind them. Pipeline stages follow each
    other, so this is the time a token takes; stages work on other batches meanwhile (the caller counts
    them).
    """
    total = Cost({"compute": 0.0, "memory": 0.0, "network": 0.0, "launch": 0.0, "host": 0.0})
    for repeat, op in sharded.ops(step):
        total = total + time(op, device, efficiency) * repeat
    for repeat, comm in sharded.comms(step):
        latency, transfer = comm_time(comm, _fabric(comm, device, overheads))
        total = total + Cost({"network": (latency + transfer) * repeat})
    return total + Cost({"host": overheads.iteration_s + overheads.sequence_s * step.sequences})


def _fabric(comm: Comm, device: Device, o: Overheads) -> Fabric:
    rate = device.link_bytes_per_s
    if comm.axis == "pp":
        # stages leave the scale-up domain as soon as there is a network to leave it by
        network = device.scaleout_bytes_per_s
        rate = np.where(np.isfinite(network), np.fmin(network, rate), rate)
    # devices without a link exchange nothing; the rate only keeps the arithmetic finite
    rate = np.where(np.isfinite(rate), rate, 1.0)
    return Fabric(rate, o.link_share, o.link_base_s, o.link_hop_s)
