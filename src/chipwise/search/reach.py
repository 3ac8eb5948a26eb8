"""What a chip without a plan can do at best, and which limit stands in the way."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from chipwise.search.evaluate import Evaluated
from chipwise.units import Array
from chipwise.values import dataclass
from chipwise.workload.workload import Workload


@dataclass(frozen=True, slots=True)
class Reach:
    """The best figures of candidates that are legal and fit; infinite times and a rate of 0 where there is none.

    Times are as targets bound them (`targets.held`).
    `ttft_s` and `tpot_s` are the shortest each for itself, `tpot_with_ttft_s` the shortest TPOT where TTFT is
    met. `requests_per_s` is the largest rate that is sustained within targets and limits.
    """

    ttft_s: float
    tpot_s: float
    tpot_with_ttft_s: float
    requests_per_s: float

    def binds(self, w: Workload) -> str:
        """The target that is out of reach at any batch: "TTFT", "TPOT" or both; "" where none is."""
        asked = (("TTFT", w.ttft_s, self.ttft_s), ("TPOT", w.tpot_s, self.tpot_s))
        said = [name for name, target, best in asked if target is not None and best > target]
        if w.e2e_s is not None and not said and self.ttft_s + (w.output_tokens - 1) * self.tpot_s > w.e2e_s:
            said = ["the whole answer"]
        return " and ".join(said)

    def better(self, other: Reach) -> Reach:
        """The better of both, figure by figure."""
        return Reach(
            min(self.ttft_s, other.ttft_s),
            min(self.tpot_s, other.tpot_s),
            min(self.tpot_with_ttft_s, other.tpot_with_ttft_s),
            max(self.requests_per_s, other.requests_per_s),
        )


NOWHERE = Reach(np.inf, np.inf, np.inf, 0.0)
"""seconds, seconds, requests per second: what is reached without a layout. Exact: no time is short enough, no rate
small enough."""


def reach_of(e: Evaluated, w: Workload, mine: NDArray[np.bool_], most_per_s: Array) -> Reach:
    """The reach of some candidates of a group; `most_per_s` is the rate that each sustains within the limits, 0
    where it misses a target."""
    live = mine & (e.reason == 0)
    if not live.any():
        return NOWHERE
    (ttft, tpot), allowed = e.held, e.allowed[live]

    def least(values: Array, where: NDArray[np.bool_]) -> float:
        mine = values[live]
        return float(np.min(mine, initial=np.inf, where=where & np.isfinite(mine)))

    with np.errstate(invalid="ignore"):
        prompt = allowed if w.ttft_s is None else allowed & (ttft[live] <= w.ttft_s)
    return Reach(
        least(ttft, allowed), least(tpot, allowed), least(tpot, prompt), float(np.max(most_per_s[live], initial=0.0))
    )
