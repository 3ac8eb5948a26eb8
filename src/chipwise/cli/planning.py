"""plan, fit, estimate, explain, compare."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from chipwise.api.requests.command import command_line
from chipwise.api.requests.field import MISSING, ask
from chipwise.api.requests.parts import TrainOptions
from chipwise.api.requests.planning import (
    MODEL,
    SERIAL,
    TASK,
    CompareRequest,
    EstimateOptions,
    EstimateRequest,
    ExplainRequest,
    FitOptions,
    FitRequest,
    PlanOptions,
    PlanRequest,
)
from chipwise.cli.options import Answer, refuse
from chipwise.errors import InfeasibleError, UsageError
from chipwise.report.fit import fit_view
from chipwise.report.plans import breakdown_view, plan_view
from chipwise.report.table import Table, render

__all__ = ["compare", "estimate", "explain", "fit", "plan"]

TARGETS = ("ttft", "tpot")
EveryTask = Literal["serve", "batch", "local", "train", "finetune"]
# Training is read here to be pointed to where it is answered.
Served = Annotated[EveryTask, Parameter(help=TASK, show_choices=False)]

Model = Annotated[str, Parameter(help=MODEL)]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class _Plan(PlanOptions):
    task: EveryTask = ask(
        "serve many users, batch for throughput, local for one user, train or finetune", "serve"
    )


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class _Train(TrainOptions):
    pass


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class _Compare(PlanOptions):
    chips: str = ask("the chips to compare, separated by commas", MISSING)
    task: Served = "serve"


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class _Estimate(EstimateOptions):
    task: Served = "serve"  # type: ignore[assignment]
    ttft: Annotated[str | None, Parameter(show=False)] = None
    tpot: Annotated[str | None, Parameter(show=False)] = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class _Fit(FitOptions):
    chips: Annotated[str | None, Parameter(name=("--chips", "--chip"))] = ask(
        "only these, separated by commas"
    )


def plan(
    model: Model,
    *,
    options: _Plan = _Plan(),
    training: _Train = _Train(),
    all_: Annotated[bool, Parameter(name="--all", help="show every chip that has a plan")] = False,
    output: Answer = Answer(),  # noqa: B008
) -> None:
    """Rank chips, counts and layouts for a workload: time, throughput, cost, and what bounds them."""
    if options.task in ("train", "finetune"):
        from chipwise.cli.training import plan_training

        plan_training(model, options.task, options, training, output, everything=all_)
        return
    refuse(training, TrainOptions, (), options.task)
    _show_plans("plan", PlanRequest(model=model, **vars(options)), output, everything=all_)


def compare(
    model: Model,
    *,
    options: _Compare,
    output: Answer = Answer(),  # noqa: B008
) -> None:
    """The best plan of each of some chips, side by side."""
    _no_training(options.task, f"--chips {options.chips}")
    _show_plans("compare", CompareRequest(model=model, **vars(options)), output, everything=True)


def estimate(
    model: Model,
    *,
    options: _Estimate,
    output: Answer = Answer(),  # noqa: B008
) -> None:
    """One plan in full: its times, what they are made of, its memory."""
    request = EstimateRequest(model=model, **_placed(options))
    report = output.of("estimate", request)
    command = command_line("plan", request.planned())
    tables = (plan_view(report, command), *breakdown_view(report.plans[0]))
    render(tables, report, output.format, sys.stdout)


def explain(
    model: Model,
    *,
    options: _Estimate,
    serial: Annotated[str | None, Parameter(help=SERIAL)] = None,
    output: Answer = Answer(),  # noqa: B008
) -> None:
    """What bounds a plan and what would change it: shares of time and elasticities, memory by kind."""
    report = output.of("explain", ExplainRequest(model=model, serial=serial, **_placed(options)))
    tables: tuple[Table, ...] = breakdown_view(report.plans[0])
    if report.amdahl is not None:
        from chipwise.report.kernel import amdahl_view

        tables = (*tables, amdahl_view(report.amdahl))
    render(tables, report, output.format, sys.stdout)


def fit(
    model: Model,
    *,
    options: _Fit = _Fit(),
    output: Answer = Answer(),  # noqa: B008
) -> None:
    """Does it fit: memory by kind on every chip, smallest count, largest batch and context, what mends a no."""
    report = output.of("fit", FitRequest(model=model, **vars(options)))
    render(fit_view(report), report, output.format, sys.stdout)
    if not report.fits:
        raise InfeasibleError(f"{report.model.name}: nothing was sized", "the answer says why", answered=True)
    if all(f.verdict == "no" for f in report.fits):
        hint = "the answer says by how much and what would mend it"
        raise InfeasibleError(f"{report.model.name} does not fit", hint, answered=True)


def _show_plans(verb: str, request: PlanRequest, output: Answer, *, everything: bool) -> None:
    report = output.of(verb, request)
    command = command_line("explain", request.explained(report.plans[0]))
    tables = (plan_view(report, command, everything=everything),)
    render(tables, report, output.format, sys.stdout)


def _no_training(task: str, where: str) -> None:
    """Training is planned alone. Raises `UsageError` with what shows it."""
    if task in ("train", "finetune"):
        raise UsageError(
            f"--task {task} is answered by plan", f"plan --task {task} {where} shows it, one layout in full"
        )


def _placed(options: _Estimate) -> dict[str, Any]:
    """The options of one given plan; a target says nothing there."""
    given = dict(vars(options))
    _no_training(options.task, f"--chips {options.chip} --counts {options.count or 8}")
    for name in TARGETS:
        if given.pop(name) is not None:
            raise UsageError(
                f"--{name} is a target, and one given plan is shown as it is",
                "--concurrency or --rate sets its load",
            )
    return given
