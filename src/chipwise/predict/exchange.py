"""One exchange between ranks with the numbers of the chips' family: where `cost` and `parallel` meet."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from chipwise.cost.price import CostParameters
from chipwise.cost.simt.family import SimtParameters
from chipwise.parallel.collective import CollectiveParameters, Transfer, collective
from chipwise.parallel.comm import Comm, Fabric, comm_time
from chipwise.units import Real

__all__ = ["exchange_time"]

# Exchanges of experts and between stages have kernels of their own, which were not measured inside one domain.
_MEASURED = frozenset(("all_reduce", "all_gather", "reduce_scatter"))


def exchange_time(comm: Comm, fabric: Fabric, costs: CostParameters) -> tuple[Real, Real]:
    """(latency seconds, transfer seconds) of one exchange inside a domain; both zero for a single rank.

    GPUs: the collectives fitted to measured ones, all-reduce by the better of the runtime's own kernel and the
    ring; the share of the link and the latencies of `fabric` are not read. Else `comm_time`.
    """
    if not isinstance(costs, SimtParameters) or comm.kind not in _MEASURED:
        return comm_time(comm, fabric)
    ring = _priced(comm, fabric, costs, "ring")
    if comm.kind != "all_reduce":
        return ring.latency_s, ring.transfer_s
    direct = _priced(comm, fabric, costs, "direct")
    better = np.asarray(direct.total_s < ring.total_s)
    return (
        np.where(better, direct.latency_s, ring.latency_s),
        np.where(better, direct.transfer_s, ring.transfer_s),
    )


def _priced(comm: Comm, fabric: Fabric, costs: SimtParameters, algorithm: str) -> Transfer:
    values = costs.find("collective", (("kind", comm.kind), ("algorithm", algorithm)))
    found = CollectiveParameters(**{f.name: values[f.name] for f in fields(CollectiveParameters)})
    direct = algorithm == "direct"
    return collective(
        comm.kind,
        comm.payload_bytes,
        comm.ranks,
        fabric.bytes_per_s,
        found,
        algorithm="direct" if direct else "ring",
    )
