"""evidence: published results and your own; what they say about a plan, and what they do not."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated, Literal  # noqa: F401  Literal: annotations of inherited fields

from cyclopts import App, Parameter

from chipwise.api import evidence as api
from chipwise.api.requests.evidence import (
    CheckClaimRequest,
    ClaimOptions,
    EvidenceMatchRequest,
    MatchOptions,
)
from chipwise.api.requests.field import ask
from chipwise.api.requests.planning import MODEL, TASK
from chipwise.cli.options import Output, whole
from chipwise.errors import UsageError
from chipwise.evidence.importers import Given
from chipwise.report.evidence import claim_view, import_view, items_view, match_view, shown_view
from chipwise.report.table import render
from chipwise.workload.workload import Task

__all__ = [
    "claim",
    "evidence",
    "import_files",
    "list_results",
    "match",
    "search",
    "show",
]

evidence = App(
    name="evidence",
    help="Published results and your own: list, show, search, match, claim, import.",
    help_format="plaintext",
)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class _Match(MatchOptions):
    task: Task = ask(TASK, "serve")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class _Claim(ClaimOptions):
    pass


Limit = Annotated[int, whole("lines to show")]


@evidence.command(name="list")
def list_results(
    *,
    benchmark: Annotated[str | None, Parameter(help="as in llama2-70b")] = None,
    chip: Annotated[str | None, Parameter(help="a chip")] = None,
    scenario: Annotated[
        str | None, Parameter(help="Offline, Server, Interactive, SingleStream, MultiStream")
    ] = None,
    round_: Annotated[str | None, Parameter(name="--round", help="as in v5.1")] = None,
    submitter: Annotated[str | None, Parameter(help="as in NVIDIA")] = None,
    own: Annotated[bool, Parameter(help="your imported measurements", negative=())] = False,
    best: Annotated[bool, Parameter(help="the best of each chip, count and round", negative=())] = False,
    limit: Limit = 40,
    output: Output = Output(),  # noqa: B008
) -> None:
    """Results of MLPerf Inference, or with --own what you imported."""
    found = api.list_evidence(api.Filter(benchmark, chip, scenario, round_, submitter), own=own, best=best)
    most = _lines(limit) if output.format in ("table", "md") else None
    render((items_view(found, most=most),), found, output.format, sys.stdout)


@evidence.command
def show(result: str, *, output: Output = Output()) -> None:  # noqa: B008
    """Everything known of one result, and what would have been predicted for it."""
    found = api.show_evidence(result)
    render(shown_view(found), found, output.format, sys.stdout)


@evidence.command
def search(*words: str, limit: Limit = 40, output: Output = Output()) -> None:  # noqa: B008
    """Results whose text holds all words: models, chips, submitters, software, notes."""
    found = api.search_evidence(words)
    most = _lines(limit) if output.format in ("table", "md") else None
    render((items_view(found, most=most),), found, output.format, sys.stdout)


@evidence.command
def match(
    model: Annotated[str, Parameter(help=MODEL)],
    *,
    options: _Match,
    output: Output = Output(),  # noqa: B008
) -> None:
    """The nearest results for a plan on eight axes, and the prediction moved towards them."""
    report = EvidenceMatchRequest(model=model, **vars(options)).run()
    render(match_view(report), report, output.format, sys.stdout)


@evidence.command
def claim(
    *,
    for_: Annotated[str, Parameter(name="--for", help="your model")],
    options: _Claim,
    output: Output = Output(),  # noqa: B008
) -> None:
    """Does a benchmark lead carry over to your workload, and what reverses it."""
    report = CheckClaimRequest(model=for_, **vars(options)).run()
    render(claim_view(report), report, output.format, sys.stdout)


@evidence.command(name="import")
def import_files(
    *paths: Annotated[str, Parameter(help="files or folders of results")],
    chip: Annotated[str | None, Parameter(help="the chip, where the files do not say")] = None,
    count: Annotated[int | None, whole("chips in all, where the files do not say")] = None,
    model: Annotated[str | None, Parameter(help="the model, where the files do not say")] = None,
    precision: Annotated[str | None, Parameter(help="the number format, where the files do not say")] = None,
    runtime: Annotated[str | None, Parameter(help="the software, where the files do not say")] = None,
    date: Annotated[
        str | None, Parameter(help="the day, where the files do not say, as in 2026-11-02")
    ] = None,
    output: Output = Output(),  # noqa: B008
) -> None:
    """Read MLCommons, LoadGen, vLLM, SGLang, GuideLLM and inference-perf results into your own store."""
    given = Given(chip or "", _count(count), model or "", precision or "", runtime or "", date or "")
    report = api.import_evidence(paths, given)
    render((import_view(report),), report, output.format, sys.stdout)


def _count(count: int | None) -> int | None:
    if count is not None and not 1 <= count <= 1_000_000:
        raise UsageError(f"--count {count}: not a count of chips", "at least 1")
    return count


def _lines(limit: int) -> int:
    if limit < 1:
        raise UsageError(f"--limit {limit}: not a count of lines", "at least 1")
    return limit
