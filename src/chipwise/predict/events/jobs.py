"""Work without tokens in the same engine: a request is one sample, a pass a batch of them, and nothing decodes."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from chipwise.predict.events.engine import QUEUE, Fleet
from chipwise.predict.events.rank import Rules
from chipwise.predict.steptable import Line
from chipwise.units import Array


@dataclass(frozen=True, eq=False)
class JobTimes:
    """Seconds of a batch by the samples in it: `seconds[n - 1]` of n, up to a full one."""

    seconds: Array

    def prompts(self, batch: float, tokens: float, pairs: float) -> float:
        """Seconds of a batch of so many samples."""
        return float(self.seconds[int(tokens) - 1])

    def line(self, batch: float, context: float) -> Line:
        """Nothing follows a batch."""
        return Line(0.0, 0.0, inf)

    def scaled(self, factor: float) -> JobTimes:
        """The same where every batch takes `factor` times as long."""
        return JobTimes(self.seconds * factor)


def job_fleet(times: JobTimes, copies: int, route: str = QUEUE) -> Fleet:
    """So many copies of a network, each of which takes what waits, up to a full batch, whenever it is free."""
    most = len(times.seconds)
    return Fleet(Rules(most, most, alone=True, static=True), times, copies, route=route)
