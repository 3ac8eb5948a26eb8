"""simulate."""

from __future__ import annotations

from typing import Any

from chipwise.api.requests.kept import SimulateRequest
from chipwise.cli.options import SavedOutput, taking


@taking(SimulateRequest)
def simulate(given: dict[str, Any], *, output: SavedOutput = SavedOutput()) -> None:  # noqa: B008
    """A deployment request by request: recorded arrivals, a rate, or all at once; percentiles with their interval."""
    report = output.of("simulate", SimulateRequest(**given))
    output.show(report.tables(), report)
