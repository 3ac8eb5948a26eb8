"""Every answer as tables: which of them shows which record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from chipwise.catalog.snapshot import today
from chipwise.evidence.residuals import Validation
from chipwise.report.accuracy import accuracy_view
from chipwise.report.catalogue import (
    CHIPS,
    ChipsReport,
    EvidenceReport,
    ModelsReport,
    OffersReport,
    RuntimesReport,
    SystemsReport,
    models_view,
    offers_view,
    runtimes_view,
    systems_view,
)
from chipwise.report.diff import DiffReport, ReplayReport, diff_view, replay_view
from chipwise.report.evidence import (
    ClaimReport,
    ImportReport,
    MatchReport,
    Shown,
    claim_view,
    import_view,
    items_view,
    match_view,
    shown_view,
)
from chipwise.report.fit import fit_view
from chipwise.report.kernel import AmdahlReport, KernelReport, amdahl_view, kernel_view
from chipwise.report.operators import LoadReport, OperatorsReport, load_view, operators_view
from chipwise.report.plans import ExplainReport, breakdown_view, plan_view
from chipwise.report.records import FitReport, PlanReport
from chipwise.report.table import Table
from chipwise.report.training import TrainReport, layout_views, scaling_view, train_view

__all__ = ["table", "tables"]

SHOWN: Mapping[type, Callable[[Any], Table | tuple[Table, ...]]] = {
    FitReport: fit_view,
    KernelReport: kernel_view,
    AmdahlReport: amdahl_view,
    OperatorsReport: operators_view,
    LoadReport: load_view,
    ChipsReport: lambda report: Table.of(report.chips, CHIPS),
    ModelsReport: lambda report: models_view(report.models),
    SystemsReport: lambda report: systems_view(report.systems),
    RuntimesReport: lambda report: runtimes_view(report.runtimes),
    OffersReport: lambda report: offers_view(report.offers, today()),
    EvidenceReport: lambda report: items_view(report.items),
    MatchReport: match_view,
    ClaimReport: claim_view,
    ImportReport: import_view,
    Shown: shown_view,
    ReplayReport: replay_view,
    DiffReport: diff_view,
    Validation: accuracy_view,
}
"""Answers whose tables depend on nothing but the answer."""


def table(report: Any) -> Table:
    """The first table of an answer, with all that was found. Raises `TypeError` for what is not an answer."""
    return tables(report, everything=True)[0]


def tables(report: Any, command: str = "", *, everything: bool = False) -> tuple[Table, ...]:
    """An answer as tables, the most important first. `command` looks into the first plan, for the last line;
    `everything`: all plans instead of the first. Raises `TypeError` for what is not an answer."""
    if isinstance(report, ExplainReport):
        more = () if report.amdahl is None else (amdahl_view(report.amdahl),)
        return (*breakdown_view(report.plans[0]), *more)
    if isinstance(report, PlanReport):
        first = plan_view(report, command, everything=everything)
        return (first, *breakdown_view(report.plans[0])) if report.considered <= 1 else (first,)
    if isinstance(report, TrainReport):
        several = len(report.plans) > 1
        first = train_view(report, command if several else "", everything=everything)
        alone = layout_views(report.plans[0]) if len(report.plans) == 1 else ()
        return (first, *alone, *((scaling_view(report),) if report.scaling else ()))
    if type(report) not in SHOWN:
        raise TypeError(f"{type(report).__name__} is not an answer of chipwise")
    found = SHOWN[type(report)](report)
    return (found,) if isinstance(found, Table) else found
