"""plan, fit, estimate, explain, compare."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from typing import Annotated

from cyclopts import Parameter

from chipwise import api
from chipwise.catalog.system import parse_have
from chipwise.cli.options import (
    Money,
    Numbers,
    Output,
    Place,
    Software,
    Use,
    adapters_of,
    limits_of,
    numbers_of,
    pairs,
    pricing_of,
    settings,
    split,
    whole,
    workload_of,
)
from chipwise.cli.training import Training, plan_training
from chipwise.errors import InfeasibleError, UsageError
from chipwise.parallel.layout import Layout
from chipwise.report.fit_view import fit_view
from chipwise.report.plan_view import breakdown_view, plan_view
from chipwise.report.records import PlanReport
from chipwise.report.table import render
from chipwise.units import parse_quantity
from chipwise.workload.workload import Workload

__all__ = ["compare", "estimate", "explain", "fit", "plan"]

Model = Annotated[str, Parameter(help="a bundled name, a config.json or its folder")]
Chips = Annotated[str | None, Parameter(help="only these, separated by commas")]


def plan(
    model: Model,
    *,
    use: Use = Use(),  # noqa: B008 - frozen
    chips: Chips = None,
    have: Annotated[str | None, Parameter(help="chips that you have, as in 2xrtx-4090,1xrtx-3090")] = None,
    max_chips: Annotated[int | None, whole("at most so many chips in all")] = None,
    max_usd_per_h: Annotated[float | None, Parameter(help="at most so many dollars per hour in all")] = None,
    software: Software = Software(),  # noqa: B008
    money: Money = Money(),  # noqa: B008
    training: Training = Training(),  # noqa: B008
    numbers: Numbers = Numbers(),  # noqa: B008
    all_: Annotated[bool, Parameter(name="--all", help="show every chip that has a plan")] = False,
    output: Output = Output(),  # noqa: B008
) -> None:
    """Rank chips, counts and layouts for a workload: time, throughput, cost, and what bounds them."""
    if use.task in ("train", "finetune"):
        changes = pairs(software.set_, "--set")
        plan_training(
            model,
            use.task,
            chips,
            software.precision,
            changes,
            training,
            pricing_of(money),
            output.format,
            everything=all_,
        )
        return
    workload = workload_of(use)
    if max_chips is not None and max_chips < 1:
        raise UsageError(f"--max-chips {max_chips}: not a count", "at least 1")
    if max_usd_per_h is not None and not 0 < max_usd_per_h < float("inf"):
        raise UsageError(f"--max-usd-per-h {max_usd_per_h:g} is out of range", "more than 0")
    if have and chips:
        raise UsageError("--have and --chips exclude each other", "--have names the chips already")
    report = api.plan(
        model,
        workload,
        chips=split(chips),
        have=dict(parse_have(have)) if have is not None else None,
        limits=limits_of(use.task, max_chips, max_usd_per_h),
        pricing=pricing_of(money),
        parameters=numbers_of(numbers),
        **settings(software),
    )
    command = _explain_command(model, report, workload, software)
    render((plan_view(report, command, everything=all_),), report, output.format, sys.stdout)


def compare(
    model: Model,
    *,
    chips: Annotated[str, Parameter(help="the chips to compare, separated by commas")],
    use: Use = Use(),  # noqa: B008
    software: Software = Software(),  # noqa: B008
    money: Money = Money(),  # noqa: B008
    numbers: Numbers = Numbers(),  # noqa: B008
    output: Output = Output(),  # noqa: B008
) -> None:
    """The best plan of each of some chips, side by side."""
    plan(
        model,
        use=use,
        chips=chips,
        software=software,
        money=money,
        numbers=numbers,
        all_=True,
        output=output,
    )


def estimate(
    model: Model,
    *,
    place: Place,
    use: Use = Use(),  # noqa: B008
    software: Software = Software(),  # noqa: B008
    money: Money = Money(),  # noqa: B008
    numbers: Numbers = Numbers(),  # noqa: B008
    output: Output = Output(),  # noqa: B008
) -> None:
    """One plan in full: its times, what they are made of, its memory."""
    report = _one(model, place, use, software, money, numbers)
    command = f"chipwise plan {model} --chips {place.chip}"
    tables = (plan_view(report, command), *breakdown_view(report.plans[0]))
    render(tables, report, output.format, sys.stdout)


def explain(
    model: Model,
    *,
    place: Place,
    use: Use = Use(),  # noqa: B008
    software: Software = Software(),  # noqa: B008
    money: Money = Money(),  # noqa: B008
    numbers: Numbers = Numbers(),  # noqa: B008
    output: Output = Output(),  # noqa: B008
) -> None:
    """What bounds a plan and what would change it: shares of time and elasticities, memory by kind."""
    report = _one(model, place, use, software, money, numbers)
    render(breakdown_view(report.plans[0]), report, output.format, sys.stdout)


def fit(
    model: Model,
    *,
    chip: Annotated[
        str | None, Parameter(name=("--chip", "--chips"), help="only these, separated by commas")
    ] = None,
    count: Annotated[int | None, whole("ask about so many chips; default: the fewest that fit")] = None,
    context: Annotated[str | None, Parameter(help="tokens of a sequence, prompt and output")] = None,
    batch: Annotated[int, whole("sequences held at once")] = 1,
    lora: Annotated[
        str | None, Parameter(help="low-rank adapters, as in rank=16,count=8,targets=q_proj+v_proj")
    ] = None,
    software: Software = Software(),  # noqa: B008
    output: Output = Output(),  # noqa: B008
) -> None:
    """Does it fit: memory by kind on every chip, smallest count, largest batch and context, what mends a no."""
    if count is not None and not 1 <= count <= 100_000:
        raise UsageError(f"--count {count}: not a count of chips", "at least 1")
    if not 1 <= batch <= 10_000_000:
        raise UsageError(f"--batch {batch}: not a count of sequences", "at least 1")
    report = api.fit(
        model,
        context=None if context is None else int(parse_quantity(context, "", "--context", low=1, high=1e9)),
        sequences=batch,
        chips=split(chip),
        count=count,
        **adapters_of(lora),
        **settings(software),
    )
    render(fit_view(report), report, output.format, sys.stdout)
    if not report.fits:
        raise InfeasibleError(f"{report.model.name}: nothing was sized", "the answer says why")
    if all(f.verdict == "no" for f in report.fits):
        raise InfeasibleError(
            f"{report.model.name} does not fit", "the answer says by how much and what would mend it"
        )


def _one(
    model: str, place: Place, use: Use, software: Software, money: Money, numbers: Numbers
) -> PlanReport:
    if place.count is not None and place.count < 1:
        raise UsageError(f"--count {place.count}: not a count of chips", "at least 1")
    degrees = {name: getattr(place, name) for name in ("tp", "pp", "dp", "ep")}
    for name, degree in degrees.items():
        if not 1 <= degree <= 100_000:
            raise UsageError(f"--{name} {degree}: not a degree of parallelism", "at least 1")
    if place.concurrency is not None and not 0 < place.concurrency < 1e7:
        raise UsageError(f"--concurrency {place.concurrency:g} is out of range", "more than 0")
    for name in ("rate", "ttft", "tpot"):
        if getattr(use, name) is not None:
            raise UsageError(
                f"--{name} is a target, and one given plan is shown as it is", "--concurrency sets its load"
            )
    workload = replace(workload_of(use), ttft_s=None, tpot_s=None)
    return api.estimate(
        model,
        workload,
        place.chip,
        Layout(**{name: float(degree) for name, degree in degrees.items()}),
        count=place.count,
        concurrency=place.concurrency,
        pricing=pricing_of(money),
        parameters=numbers_of(numbers),
        **settings(software),
    )


def _explain_command(model: str, report: PlanReport, workload: Workload, software: Software) -> str:
    """The command that shows the first plan in full."""
    first = report.plans[0]
    degrees = (
        ("tp", first.layout.tp),
        ("pp", first.layout.pp),
        ("dp", first.layout.dp),
        ("ep", first.layout.ep),
    )
    parts = ["chipwise", "explain", model, "--chip", first.chip]
    for name, degree in degrees:
        parts += [f"--{name}", str(degree)] if degree > 1 else []
    parts += ["--concurrency", f"{first.concurrency:.0f}"] if first.concurrency >= 1 else []
    parts += ["--in", f"{workload.prompt_tokens:.10g}", "--out", f"{workload.output_tokens:.10g}"]
    parts += ["--task", workload.task] if workload.task != "serve" else []
    given = {
        "precision": software.precision,
        "runtime": software.runtime,
        "policy": software.policy,
        "set": software.set_,
    }
    for name, value in given.items():
        parts += [f"--{name}", value] if value else []
    return shlex.join(parts)
