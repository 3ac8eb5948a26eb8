"""simulate."""

from __future__ import annotations

from typing import Any

from chipwise.api.requests.simulate import SimulateRequest
from chipwise.cli.options import Answer, taking


@taking(SimulateRequest)
def simulate(given: dict[str, Any], *, output: Answer = Answer()) -> None:  # noqa: B008
    """A deployment request by request: recorded arrivals, a rate, or all at once; percentiles with their interval."""
    report = output.of("simulate", SimulateRequest(**given))
    output.show(report.tables(), report)
