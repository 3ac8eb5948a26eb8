"""local."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from chipwise.api.requests.desk import LocalRequest
from chipwise.cli.options import SavedOutput, taking
from chipwise.report.desk import local_view


@taking(LocalRequest)
def local(
    given: dict[str, Any],
    *,
    all_: Annotated[bool, Parameter(name="--all", help="show every model that runs")] = False,
    output: SavedOutput = SavedOutput(),  # noqa: B008
) -> None:
    """What a machine of your own can run, in which format and how fast, with the commands; or what to buy."""
    report = output.of("local", LocalRequest(**given))
    output.show((local_view(report, everything=all_),), report)
