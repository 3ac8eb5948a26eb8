"""Every answer as tables: which of them shows which record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from chipwise.catalog.snapshot import today
from chipwise.evidence.residuals import Validation
from chipwise.report import (
    catalogue,
    desk,
    diff,
    evidence,
    fit,
    frontier,
    kernel,
    media,
    operators,
    plans,
    reinforce,
    sensitivity,
    simulated,
    statements,
    training,
)
from chipwise.report.accuracy import accuracy_view
from chipwise.report.launch.spec import LaunchReport
from chipwise.report.records import FitReport, PlanReport
from chipwise.report.table import Column, Table

FILES = (Column("file", "name"), Column("text", "text", prose=True))
"""What is said of a file that starts a plan."""

SHOWN: Mapping[type, Callable[[Any], Table | tuple[Table, ...]]] = {
    FitReport: fit.fit_view,
    desk.LocalReport: desk.local_view,
    kernel.KernelReport: kernel.kernel_view,
    kernel.AmdahlReport: kernel.amdahl_view,
    operators.OperatorsReport: operators.operators_view,
    operators.LoadReport: operators.load_view,
    simulated.SimulationReport: simulated.simulation_view,
    sensitivity.SensitivityReport: sensitivity.sensitivity_view,
    frontier.FrontierReport: frontier.frontier_view,
    catalogue.ChipsReport: lambda report: Table.of(report.chips, catalogue.CHIPS),
    catalogue.ModelsReport: catalogue.known_views,
    catalogue.SystemsReport: lambda report: catalogue.systems_view(report.systems),
    catalogue.RuntimesReport: catalogue.runtimes_view,
    catalogue.OffersReport: lambda report: catalogue.offers_view(report.offers, today()),
    catalogue.EvidenceReport: lambda report: evidence.items_view(report.items),
    evidence.MatchReport: evidence.match_view,
    evidence.ClaimReport: evidence.claim_view,
    statements.StatementsReport: statements.statements_view,
    reinforce.RlReport: reinforce.rl_view,
    LaunchReport: lambda report: Table.of(report.files, FILES),
    evidence.ImportReport: evidence.import_view,
    evidence.Shown: evidence.shown_view,
    diff.ReplayReport: diff.replay_view,
    diff.DiffReport: diff.diff_view,
    Validation: accuracy_view,
}
"""Answers whose tables depend on nothing but the answer."""


def table(report: Any) -> Table:
    """The first table of an answer, with all that was found. Raises `TypeError` for what is not an answer."""
    return tables(report, everything=True)[0]


def tables(report: Any, command: str = "", *, everything: bool = False) -> tuple[Table, ...]:
    """An answer as tables, the most important first. `command` looks into the first plan, for the last line;
    `everything`: all plans instead of the first. Raises `TypeError` for what is not an answer."""
    if isinstance(report, plans.ExplainReport):
        more = () if report.amdahl is None else (kernel.amdahl_view(report.amdahl),)
        return (*plans.breakdown_view(report.plans[0]), *more)
    if isinstance(report, media.MediaReport):
        return media.media_view(report, everything=everything)
    if isinstance(report, PlanReport):
        first = plans.plan_view(report, command, everything=everything)
        return (first, *plans.breakdown_view(report.plans[0])) if report.considered <= 1 else (first,)
    if isinstance(report, training.TrainReport):
        several = len(report.plans) > 1
        first = training.train_view(report, command if several else "", everything=everything)
        alone = training.layout_views(report.plans[0]) if len(report.plans) == 1 else ()
        return (first, *alone, *((training.scaling_view(report),) if report.scaling else ()))
    if type(report) not in SHOWN:
        raise TypeError(f"{type(report).__name__} is not an answer of chipwise")
    found = SHOWN[type(report)](report)
    return (found,) if isinstance(found, Table) else found
