"""local, simulate, fleet: machines of one's own, one deployment through time, many demands at once."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from chipwise.api.requests.desk import LocalRequest
from chipwise.api.requests.kept import SimulateRequest
from chipwise.api.requests.portfolio import FleetRequest
from chipwise.cli.options import SavedOutput, taking


@taking(LocalRequest)
def local(
    given: dict[str, Any],
    *,
    all_: Annotated[bool, Parameter(name="--all", help="show every model that runs")] = False,
    output: SavedOutput = SavedOutput(),  # noqa: B008
) -> None:
    """What a machine of your own can run, in which format and how fast, with the commands; or what to buy."""
    report = output.of("local", LocalRequest(**given))
    output.show(report.tables(everything=all_), report)


@taking(SimulateRequest)
def simulate(given: dict[str, Any], *, output: SavedOutput = SavedOutput()) -> None:  # noqa: B008
    """A deployment request by request: recorded arrivals, a rate, or all at once; percentiles with their interval."""
    report = output.of("simulate", SimulateRequest(**given))
    output.show(report.tables(), report)


@taking(FleetRequest)
def fleet(given: dict[str, Any], *, output: SavedOutput = SavedOutput()) -> None:  # noqa: B008
    """Many demands on what you own, rent and call: which runs where, at which hours, what it costs, and what one
    machine more or fewer would change."""
    report = output.of("fleet", FleetRequest(**given))
    tables = report.tables()
    output.show(tables[:1] if output.format == "csv" else tables, report)
