"""The fitted numbers of host and links, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

import numpy as np

from chipwise.parallel.collective import CollectiveParameters
from chipwise.parallel.network import TREE_STEPS
from chipwise.predict.service import Service
from chipwise.units import Real
from chipwise.values import dataclass


@dataclass(frozen=True, slots=True)
class Overheads:
    """Host work per iteration, per running sequence and per request; share and latencies of the links.

    `factors` correct parts of a pass (`predict.parts`) as fitted to served workloads; absent ones are 1. `two_batches`:
    the runtime can work on two halves of a batch in turn, so that exchanges of experts over a network hide. `starts_s`:
    what the host takes to start a kernel of a pass that holds prompts, one per chip; 0 where such passes are replayed
    as decoding ones are. `eager_s`: the same of layouts and models whose passes with prompts are never captured.
    """

    iteration_s: float
    sequence_s: float
    request_s: float
    link_share: float
    link_base_s: float
    link_hop_s: float
    factors: Mapping[str, Real] = field(default_factory=dict)
    two_batches: bool = False
    starts_s: Real = 0.0
    eager_s: Real = 0.0

    @property
    def links(self) -> CollectiveParameters:
        """Numbers of exchanges of chips without measured ones: shares and latencies believed of the family, which add
        up; a doubling of ranks takes as many steps as in a tree."""
        step_s = self.link_hop_s / TREE_STEPS
        share = min(self.link_share, 1.0)
        return CollectiveParameters(share, share, self.link_base_s, step_s, 1.0, share, self.link_hop_s)

    @property
    def service(self) -> Service:
        """What a first token waits for beside passes, without any harness."""
        return Service(self.request_s)

    def take(self, index: np.ndarray) -> Overheads:
        """Of several chips: those at `index`, any shape."""
        factors = {k: np.asarray(v)[index] for k, v in self.factors.items()}
        starts, eager = (np.asarray(v)[index] if np.ndim(v) else v for v in (self.starts_s, self.eager_s))
        return replace(self, factors=factors, starts_s=starts, eager_s=eager)
