"""evidence: published results and your own; what they say about a plan, and what they do not."""

from __future__ import annotations

import sys
from typing import Annotated, Any

from cyclopts import App, Parameter

from chipwise.api import evidence as api
from chipwise.api.requests.evidence import CheckClaimRequest, EvidenceMatchRequest, EvidenceRequest
from chipwise.api.suites.round import registered
from chipwise.cli.options import Output, taking, whole
from chipwise.errors import UsageError
from chipwise.evidence.importers import ImportTerms
from chipwise.report.accuracy import accuracy_view
from chipwise.report.evidence import claim_view, import_view, items_view, match_view, shown_view, synced_view
from chipwise.values import dataclass

evidence = App(
    name="evidence",
    help="Published results and your own: list, show, search, match, claim, import, sync, round, export.",
    help_format="plaintext",
)


Limit = Annotated[int, whole("lines to show")]


@evidence.command(name="list")
@taking(EvidenceRequest, search=None, limit=None)
def list_results(given: dict[str, Any], *, limit: Limit = 40, output: Output = Output()) -> None:  # noqa: B008
    """Results of MLPerf Inference, or with --own what you imported."""
    asked = EvidenceRequest(**given)
    found = api.list_evidence(asked.wanted(), own=asked.own, best=asked.best)
    most = _lines(limit) if output.format in ("table", "md") else None
    output.show((items_view(found, most=most),), found)


@evidence.command
def show(result: str, *, output: Output = Output()) -> None:  # noqa: B008
    """Everything known of one result, and what would have been predicted for it."""
    found = api.show_evidence(result)
    output.show(shown_view(found), found)


@evidence.command
def search(*words: str, limit: Limit = 40, output: Output = Output()) -> None:  # noqa: B008
    """Results whose text holds all words: models, chips, submitters, software, notes."""
    found = api.search_evidence(words)
    most = _lines(limit) if output.format in ("table", "md") else None
    output.show((items_view(found, most=most),), found)


@evidence.command
@taking(EvidenceMatchRequest)
def match(given: dict[str, Any], *, output: Output = Output()) -> None:  # noqa: B008
    """The nearest results for a plan on eight axes, and the prediction moved towards them."""
    report = output.of("match", EvidenceMatchRequest(**given))
    output.show(match_view(report), report)


@evidence.command
@taking(CheckClaimRequest, model=None)
def claim(
    given: dict[str, Any],
    *,
    for_: Annotated[str, Parameter(name="--for", help="your model")],
    output: Output = Output(),  # noqa: B008
) -> None:
    """Does a benchmark lead carry over to your workload, and what reverses it."""
    report = output.of("claim", CheckClaimRequest(model=for_, **given))
    output.show(claim_view(report), report)


@Parameter(name="*")
@dataclass(frozen=True)
class Unsaid:
    """What files do not say of what ran."""

    chip: Annotated[str | None, Parameter(help="the chip, where the files do not say")] = None
    count: Annotated[int | None, whole("total chips, where the files do not say")] = None
    model: Annotated[str | None, Parameter(help="the model, where the files do not say")] = None
    precision: Annotated[str | None, Parameter(help="the number format, where the files do not say")] = None
    runtime: Annotated[str | None, Parameter(help="the software, where the files do not say")] = None
    date: Annotated[str | None, Parameter(help="the day, where the files do not say, e.g. 2026-11-02")] = None
    layout: Annotated[
        str | None, Parameter(help="degrees of a replica, where the files do not say, e.g. tp=4; default: tp = count")
    ] = None

    def given(self) -> ImportTerms:
        """As importers take them. Raises `UsageError`."""
        degrees = api.layout_of(self.layout) if self.layout else ""
        return ImportTerms(
            self.chip or "",
            _count(self.count),
            self.model or "",
            self.precision or "",
            self.runtime or "",
            self.date or "",
            degrees,
        )


@evidence.command(name="import")
def import_files(
    *paths: Annotated[
        str, Parameter(help="files or folders: vLLM, AIPerf, GuideLLM, llama-bench, MLPerf, logs of trainers, ...")
    ],
    terms: Unsaid = Unsaid(),  # noqa: B008
    output: Output = Output(),  # noqa: B008
) -> None:
    """Read results of vLLM, SGLang, AIPerf, GuideLLM, llama-bench, MLPerf, trainers and exports into your store."""
    report = api.import_evidence(paths, terms.given())
    output.show((import_view(report),), report)


@evidence.command
def sync(
    *paths: Annotated[
        str,
        Parameter(
            help="files, or a checkout: InferenceX, LocalScore, vLLM, SGLang, GuideLLM, llama-bench, performance pages"
        ),
    ],
    into: Annotated[str, Parameter(help="the folder of tables that rows are added to")],
    terms: Unsaid = Unsaid(),  # noqa: B008
    output: Output = Output(),  # noqa: B008
) -> None:
    """Read benchmarks of others into tables, set impossible rows apart, compare them with answers, propose a refit."""
    report = api.sync_evidence(paths, into, terms.given())
    output.show(synced_view(report), report)


@evidence.command(name="round")
def score_round(
    rows: Annotated[str, Parameter(help="measurements of others, in the form of predict SUITE --rows")],
    *,
    frozen: Annotated[
        str | None, Parameter(help="the file of frozen answers; default: next to the rows, .frozen.csv")
    ] = None,
    register: Annotated[
        int | None, whole("the number of the round: prints its lines of evidence/data/rounds.csv")
    ] = None,
    output: Output = Output(),  # noqa: B008
) -> None:
    """Predict strangers' measurements and freeze the answers; run again with measured values to score them."""
    file, found = api.round_of(rows, frozen)
    if found is None:
        again = f"fill the column value, then run again: chipwise evidence round {rows}"
        print(f"answers are frozen in {file}; {again}", file=sys.stderr)
    elif register is not None:
        sys.stdout.write(registered(found, file, register))
    else:
        output.show(accuracy_view(found), found)


@evidence.command(name="export")
def export_file(out: Annotated[str, Parameter(help="the file to write, a line of JSON for each result")]) -> None:
    """Write your store to a file that evidence import reads, for another machine or person."""
    print(f"{api.export_evidence(out)} results: {out}", file=sys.stderr)


def _count(count: int | None) -> int | None:
    if count is not None and not 1 <= count <= 1_000_000:
        raise UsageError(f"--count {count}: it must be at least 1")
    return count


def _lines(limit: int) -> int:
    if limit < 1:
        raise UsageError(f"--limit {limit}: not a count of lines", "at least 1")
    return limit
