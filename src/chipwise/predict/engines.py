"""Many engines under closed loops, aggregated and disaggregated side by side, priced under fitted numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from chipwise.predict.disaggregated import Pools, disaggregated
from chipwise.predict.parts import PARTS
from chipwise.predict.passes import PassTable
from chipwise.predict.serving import Load, Served, Service, closed_loop
from chipwise.units import Array, Real

__all__ = ["SERVICE", "Engines"]

SERVICE = tuple(f.name for f in fields(Service))
"""Names of the fitted numbers of a stack; `PARTS` are those of its passes, and `whole` multiplies them all."""


@dataclass(frozen=True)
class Engines:
    """Columns [row]. `decode` are the passes of an aggregated engine, or of the decode pool; `prefill` those of
    the prefill pool (any passes where `prefill_servers` is 0: an aggregated row).

    `clients` is the load of all replicas; `servers` counts the ranks that decode requests of their own (workers
    x attention replicas x stages in flight), `limit` the requests that fit in each.
    """

    decode: PassTable
    prefill: PassTable
    clients: Array
    output_tokens: Array
    limit: Array
    servers: Array
    prefill_servers: Array
    transfer_s: Array
    alone: Array
    lockstep: Array

    def __len__(self) -> int:
        return len(self.clients)

    def take(self, index: NDArray[np.intp]) -> Engines:
        """Some of the rows."""
        columns = (getattr(self, f.name)[index] for f in fields(self) if f.name not in ("decode", "prefill"))
        return Engines(self.decode.take(index), self.prefill.take(index), *columns)

    @classmethod
    def join(cls, parts: list[Engines]) -> Engines:
        """Rows of several, one after the other."""
        names = [f.name for f in fields(cls) if f.name not in ("decode", "prefill")]
        return cls(
            PassTable.join(p.decode for p in parts),
            PassTable.join(p.prefill for p in parts),
            *(np.concatenate([getattr(p, name) for p in parts]) for name in names),
        )

    def served(self, values: Mapping[str, Real]) -> Served:
        """Means of every row under factors on parts and numbers of the stack; absent ones are the defaults."""
        size = len(self)
        factors = np.stack([np.broadcast_to(values.get(p, 1.0), (size,)) for p in PARTS], axis=1)
        factors = factors * np.broadcast_to(values.get("whole", 1.0), (size,))[:, None]
        numbers = {
            name: np.broadcast_to(
                np.asarray(values.get(name, getattr(Service(), name)), dtype=float), (size,)
            )
            for name in SERVICE
        }
        found = {f.name: np.full(size, np.nan) for f in fields(Served)}
        split = self.prefill_servers > 0
        for rows, priced in ((np.flatnonzero(~split), self._together), (np.flatnonzero(split), self._apart)):
            if len(rows):
                part = self.take(rows)
                service = Service(**{name: column[rows] for name, column in numbers.items()})
                answer = priced(part, factors[rows], service)
                for name, column in found.items():
                    column[rows] = getattr(answer, name)
        return Served(**found)

    @staticmethod
    def _together(e: Engines, factors: Array, service: Service) -> Served:
        load = Load(e.clients / e.servers, e.output_tokens, e.limit, e.alone, e.lockstep)
        return closed_loop(e.decode.passes(factors), load, service)

    @staticmethod
    def _apart(e: Engines, factors: Array, service: Service) -> Served:
        pools = Pools(e.clients, e.output_tokens, e.prefill_servers, e.servers, e.limit, e.transfer_s)
        return disaggregated(e.prefill.passes(factors), e.decode.passes(factors), pools, service)
