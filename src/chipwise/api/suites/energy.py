"""The suite `energy`: a row of measured power or energy becomes the question that a user would ask, and takes the
energy of the same answer.

Works on tables with the columns of `energy.csv`, one figure a row, and on those of `published_inferencex.csv`. Served
language models and generators of images and videos are asked through `estimate`, submissions to MLPerf as the suite
`mlperf` asks them. A benchmark that publishes no prompts has a mean prompt of its own (`energy.prompt` of the
parameters).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from chipwise.api.requests.command import command_line
from chipwise.api.requests.planning import EstimateRequest, PlanRequest
from chipwise.api.suites import mlperf, serving
from chipwise.api.suites.published import answered
from chipwise.api.suites.suite import Asking, Index, Suite, Trial, each, tried
from chipwise.calibrate.energy import PREFIX, QUANTITIES, EnergyFit, EnergyRows, fit_energy, fitted_power, prompt_of
from chipwise.calibrate.fit import Fitting
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.catalog.chips import get_chip
from chipwise.catalog.configs import find_config
from chipwise.catalog.media_runtime import get_media_runtime
from chipwise.catalog.published import ROUNDS
from chipwise.catalog.runtime import get_runtime
from chipwise.errors import ChipwiseError, UsageError, shorten
from chipwise.evidence.mlperf_rows import MlperfRun, read_run
from chipwise.evidence.residuals import Residuals, Validation
from chipwise.evidence.rows import Predicted, Row, id_of, number, said_of
from chipwise.predict.energy import Use
from chipwise.report.energy import SAMPLES, SUBMITTED, TOKENS, form_of
from chipwise.report.media import MediaPlan, MediaReport
from chipwise.report.plans import PlanRecord
from chipwise.report.records import EnergyRecord, Figure
from chipwise.units import Array
from chipwise.values import dataclass

NEEDED = ("model", "chip")

Read = Callable[[EnergyRecord], Figure | None]

FIGURES: Mapping[str, Mapping[str, tuple[str, Read]]] = {
    "chip": {
        "avg_power_w_per_chip": ("chip_w", lambda e: e.chip_w),
        "avg_power_w": ("chip_w", lambda e: e.chip_w),
        "joules_per_output_token": ("joules_per_token", lambda e: e.joules_per_token),
        "joules_per_request": ("joules_per_token", lambda e: e.joules_per_request),
    },
    "wall": {
        "system_power_w": ("wall_w", lambda e: e.wall_w),
        "joules_per_output_token": ("joules_per_token wall", lambda e: e.joules_per_token_wall),
        "joules_per_request": ("joules_per_token wall", lambda e: e.joules_per_request_wall),
    },
}
"""By scope and metric of a row: which figure it is, and how it is read from an answer."""

AT_RATE = " at the measured rate"
"""Suffix of watts of what chips did at the rate that was measured, which say what the model of power errs by itself."""

RULES = "energy_runs"


@dataclass(frozen=True)
class _AskedEnergy:
    """A row as a question: of the product, or of a run of MLPerf; `metrics` are the figures that it asks for,
    `measured_in` names the run that they were measured in."""

    id: str
    model: str
    chip: str
    scope: str
    metrics: tuple[str, ...]
    question: EstimateRequest | None = None
    run: MlperfRun | None = None
    tuned: bool = False
    measured_in: str = ""

    @property
    def together(self) -> Hashable:
        """Equal for figures of one run."""
        run = self.run and (self.run.chips, self.run.scenario, self.run.accuracy)
        return self.model, self.chip, self.scope, self.question, run, self.measured_in

    @property
    def kind(self) -> str:
        """What ran, in words."""
        if self.run is not None:
            return SUBMITTED
        return SAMPLES if self.question and self.question.steps else TOKENS


@dataclass(frozen=True)
class _Found:
    """Energy of so many chips in machines of a form, and what was asked."""

    energy: EnergyRecord
    chips: int
    form: str = ""
    question: EstimateRequest | PlanRequest | None = None


def _read(row: Row, folder: Path, numbers: Parameters | None) -> _AskedEnergy:
    known = numbers or shipped_parameters()
    if not row["chip"]:
        raise UsageError("the chip is not in the catalogue", "chipwise chips list")
    chip = get_chip(row["chip"])
    if chip.tdp_w is None and not row.get("power_limit_w"):
        raise UsageError(f"{chip.id}: its power limit is not published")
    if "backend" in row:
        metrics = ("avg_power_w", "joules_per_output_token")
        asked = serving.question_of(row, folder / "models")
        return _AskedEnergy(row["row_id"], row["model"], chip.id, "chip", metrics, asked, measured_in=row["row_id"])
    scope, metric = row.get("scope", ""), row.get("metric", "")
    if metric not in FIGURES.get(scope, {}):
        named = ", ".join(f"{m} at {s}" for s, each in FIGURES.items() for m in each)
        raise UsageError(f"{shorten(metric)} at {shorten(scope)} scope is not read", f"one of {named}")
    name = id_of(row)
    said = said_of(row, RULES)
    if "refuse" in said:
        raise UsageError(shorten(said["refuse"]))
    where = said.get("run", name)
    if "round" in said:
        run = _run(row, said, known.derived(EnergyFit.of).tuned(form_of(chip, 1)), chip.tdp_w)
        tuned = "tuned" in said
        return _AskedEnergy(name, run.benchmark.name, chip.id, scope, (metric,), None, run, tuned, where)
    question = _sampled(row, said) if "resolution" in said else _question(row, said, known)
    return _AskedEnergy(name, row["model"], chip.id, scope, (metric,), question, measured_in=where)


def _run(row: Row, said: Mapping[str, str], tuned: float, tdp_w: float | None) -> MlperfRun:
    """A submission with measured power as a run of the suite `mlperf`; a limit that is not stated is that which
    power-tuned ones have."""
    scenario = row.get("batch_or_concurrency", "")
    units = {"Offline": "Samples/s", "Server": "Queries/s"}
    run = read_run(
        {
            "row_id": id_of(row),
            "chip": row["chip"],
            "chips_total": row.get("chips") or "1",
            "model_base": said.get("benchmark", row["model"]),
            "model": row["model"],
            "scenario": scenario,
            "unit": units.get(scenario, "Latency (ms)"),
            "round": said["round"] if said["round"] in ROUNDS else next(iter(ROUNDS)),
            "weight_precision": row.get("precision") or said.get("precision", ""),
            "framework": row.get("runtime", ""),
            "variant": "maxq" if "tuned" in said else "",
            "power_limit_w": row.get("power_limit_w", ""),
        }
    )
    if "tuned" in said and tdp_w is not None and run.power_w is None:
        run = replace(run, power_w=float(f"{tuned * tdp_w:.3g}"))
    return replace(run, precision=said["ran"]) if "ran" in said else run


def _sampled(row: Row, said: Mapping[str, str]) -> EstimateRequest:
    """The question of a row about a generator of images or videos."""
    shared = {name: int(n) for name, n in (part.split("=") for part in said["spread"].split(","))}
    spread = ",".join(f"{name}={n}" for name, n in shared.items() if n > 1)
    return EstimateRequest(
        model=row["model"],
        chip=get_chip(row["chip"]).id,
        batch=int(number(row, "batch_or_concurrency", 1.0)),
        resolution=said["resolution"],
        frames=int(said["frames"]) if "frames" in said else None,
        steps=int(said["steps"]),
        spread=spread or None,
        precision=row.get("precision") or None,
        runtime=get_media_runtime(said["runtime"]).id,
        software=row["date"][:7] if row.get("date") else None,
        evidence="none",
    )


def _question(row: Row, said: Mapping[str, str], numbers: Parameters) -> EstimateRequest:
    """The question of a row about a served model."""
    prompt = row.get("isl") or ("task" in said and prompt_of(said["task"], numbers))
    if not prompt:
        raise UsageError("the length of its prompts is not published")
    chips = int(number(row, "chips"))
    dp, ep = (int(said.get(name, 1)) for name in ("dp", "ep"))
    model, precision = row["model"], None
    try:
        find_config(model)
    except ChipwiseError:
        # a checkpoint in another format of a model that is known
        model = re.sub(r"-(FP8|BF16)$", "", model)
        find_config(model)
        precision = row.get("precision") or None
    devices = chips * get_chip(row["chip"]).devices_per_package
    return EstimateRequest(
        model=model,
        chip=get_chip(row["chip"]).id,
        tp=max(devices // dp, 1),
        dp=dp,
        ep=ep,
        concurrency=number(row, "batch_or_concurrency", 1.0),
        in_=f"{float(prompt):.10g}",
        out=f"{number(row, 'osl', 1.0):.10g}",
        precision=precision,
        runtime=get_runtime(row["runtime"]).id,
        software=row["date"][:7] if row.get("date") else None,
        evidence="none",
    )


def _answer(asked: _AskedEnergy, _: Parameters | None) -> _Found:
    question: EstimateRequest | PlanRequest | None
    plan: PlanRecord | MediaPlan
    if asked.run is not None:
        (found,) = mlperf.answer([asked.run])
        if isinstance(found, ChipwiseError):
            raise found
        question, plan = found.question, found.plan
    elif asked.question is not None and asked.question.media(asked.question.model):
        report = asked.question.run()
        assert isinstance(report, MediaReport)
        question, plan = asked.question, report.plans[0]
    else:
        assert asked.question is not None
        question, plan = answered(asked.question)
    if plan.energy is None:
        raise UsageError(f"{plan.chip}: its power limit is not published")
    return _Found(plan.energy, plan.chips, form_of(get_chip(plan.chip), plan.chips), question)


def _lines(asked: _AskedEnergy, found: _Found) -> Iterator[Predicted]:
    """The figures of a row."""
    verb = "plan" if isinstance(found.question, PlanRequest) else "estimate"
    command = "" if found.question is None else command_line(verb, found.question)
    for metric in asked.metrics:
        f = FIGURES[asked.scope][metric][1](found.energy)
        assert f is not None
        yield Predicted(asked.id, metric, f.mid, f.low, f.high, f.basis, "", command)


ASKING = Asking(NEEDED, _read, each(_answer), _lines)


# --------------------------------------------------------------- measurements


@dataclass(frozen=True)
class _EnergyLine:
    """A measured figure of a row that was answered."""

    asked: _AskedEnergy
    found: _Found
    metric: str
    value: float

    @property
    def figure(self) -> str:
        """The figure that it is, of samples apart: their speeds are known otherwise."""
        made = self.asked.kind == SAMPLES and self.asked.scope == "chip"
        return FIGURES[self.asked.scope][self.metric][0] + " samples" * made

    @property
    def per_watt(self) -> float:
        """What is answered over the watts of one chip, or of all machines."""
        e = self.found.energy
        said = FIGURES[self.asked.scope][self.metric][1](e)
        watts = e.wall_w if self.asked.scope == "wall" else e.chip_w
        return math.nan if said is None else said.mid / watts.mid

    @property
    def power(self) -> bool:
        """Whether it is in watts."""
        return self.metric.removesuffix("_per_chip").endswith("_w")


@dataclass(frozen=True)
class _MeasuredEnergy:
    """Measured figures that were answered, and the same as the fit of power reads them: chips do what they are
    predicted to (`data`), or where a run tells joules too (`paced`), what they did at the rate measured (`done`)."""

    lines: Sequence[_EnergyLine]
    data: EnergyRows
    done: EnergyRows
    paced: NDArray[np.bool_]


def _measured(paths: Sequence[str], numbers: Parameters) -> _MeasuredEnergy:
    """Raises `UsageError` for tables without a row that is answered."""
    lines = list(_lines_of(paths))
    if not lines:
        raise UsageError(f"{', '.join(paths)}: no row can be read", "is it a table of measured energy?")
    tuned = numbers.derived(EnergyFit.of).tuned
    found_ = [line.found for line in lines]
    power = np.array([line.asked.tuned for line in lines])
    limit = np.array([f.energy.limit_w for f in found_])
    data = EnergyRows(
        np.array([line.value for line in lines]),
        Use(*(np.array([f.energy.use[x.name] for f in found_]) for x in fields(Use))),
        np.where(power, limit / np.array([tuned(f.form) for f in found_]), limit),
        np.array([line.asked.scope == "wall" for line in lines]),
        np.array([float(f.chips) for f in found_]),
        np.array([float(f.energy.machines) for f in found_]),
        power,
        np.array([f.form for f in found_]),
        np.array([get_chip(line.asked.chip).software_id for line in lines]),
    )
    pace = _paces(lines)
    paced = np.isfinite(pace)
    use = data.use * np.where(paced, pace, 1.0)
    real = Use(*(np.minimum(getattr(use, f.name), 1.0) for f in fields(Use)))
    return _MeasuredEnergy(lines, data, replace(data, use=real), paced)


def _lines_of(paths: Sequence[str]) -> Iterator[_EnergyLine]:
    """The measured figures of tables that are answered."""
    for row, one in chain.from_iterable(zip(*ASKING.questions(path, None), strict=True) for path in paths):
        if isinstance(one, ChipwiseError):
            continue
        values = {m: row.get("value" if "value" in row else m, "") for m in one.metrics}
        found = tried(_answer, one, None) if any(values.values()) else None
        if isinstance(found, _Found):
            yield from (_EnergyLine(one, found, metric, float(v)) for metric, v in values.items() if v)


def _paces(lines: Sequence[_EnergyLine]) -> Array:
    """Measured rate over the predicted one of every line, NaN where its run does not tell both watts and joules."""
    runs: dict[Hashable, dict[bool, list[_EnergyLine]]] = {}
    for line in lines:
        runs.setdefault(line.asked.together, {}).setdefault(line.power, []).append(line)
    pace = {}
    for run, told in runs.items():
        if told.keys() == {True, False}:
            watts, joules = told[True][0], told[False][0]
            pace[run] = joules.per_watt * watts.value / joules.value
    return np.array([pace.get(line.asked.together, math.nan) for line in lines])


KEYS: Mapping[str, Callable[[_MeasuredEnergy], Sequence[Hashable]]] = {
    "cell": lambda m: [(a.model, a.chip) for a in _asked(m)],
    "chip": lambda m: [a.chip for a in _asked(m)],
    "model": lambda m: [a.model for a in _asked(m)],
}
"""What stays together: a model on a chip, a chip, a model."""

UNSEEN = "unseen"


def _asked(m: _MeasuredEnergy) -> list[_AskedEnergy]:
    return [line.asked for line in m.lines]


def _fit(m: _MeasuredEnergy, kept: Index, _: Parameters) -> EnergyFit:
    """Power is fitted to measured power at the rate that was measured, so that no error of a speed passes for one of
    watts; joules are power over a speed that was fitted elsewhere."""
    power = [i for i in kept if m.lines[i].power]
    return fit_energy(m.done.take(np.array(power, dtype=np.intp)))


def _fitted(m: _MeasuredEnergy, _: Parameters) -> dict[str, tuple[Fitting, Index]]:
    power = np.array([i for i, line in enumerate(m.lines) if line.power], dtype=np.intp)
    return {PREFIX: (fitted_power(m.done.take(power)), power)}


def _compared(m: _MeasuredEnergy, out: Index, fitted: EnergyFit, _: str) -> Residuals:
    """Every row against what a fit says that did not see it, and its watts again at the rate that was measured."""

    def against(place: Index, data: EnergyRows, given: str) -> Residuals:
        lines = [m.lines[i] for i in place]
        figures = [line.figure + given for line in lines]
        return Residuals.of(
            place,
            data.take(place).predicted(fitted.values) * np.array([line.per_watt for line in lines]),
            [line.value for line in lines],
            metric=figures,
            figure=figures,
            tier=UNSEEN,
            cell=[f"{line.asked.model} {line.asked.chip}" for line in lines],
            chip=[line.asked.chip for line in lines],
            model=[line.asked.model for line in lines],
            kind=[line.asked.kind for line in lines],
        )

    told = np.array([i for i in out if m.lines[i].power and m.paced[i]], dtype=np.intp)
    return Residuals.join([against(out, m.data, ""), against(told, m.done, AT_RATE)])


def _report(m: _MeasuredEnergy, found: Residuals, key: str) -> Validation:
    """Errors of power and energy on what no fit of power had seen."""
    what = {"cell": "(model, chip) cell"}.get(key, key)
    cells = len({(a.model, a.chip) for a in _asked(m)})
    count = len(QUANTITIES) + CHOSEN
    return Validation(
        "energy" if key == "cell" else f"energy with a {key} never seen",
        f"Every row predicted by a fit of power that never saw its {what}; speeds are those of plans, but for watts at "
        "the measured rate. Intervals are those of a plan of which nobody measured that."
        "",
        {
            "all": found.summaries(),
            "by what ran": found.summaries("kind", least=4),
            "by chip": found.summaries("chip", least=4),
            "by model": found.summaries("model", least=4),
        },
        [f"{count} fitted numbers, {cells} cells (model, chip) in the rows"],
    )


CHOSEN = 7  # by hand: a mean prompt of each benchmark that publishes none, the exponents of operations and of the limit

ENERGY = Suite(
    "energy",
    (),
    ASKING,
    Trial(
        "energy.csv", _measured, KEYS, _fit, _compared, _report, {"energy.csv": EnergyFit.parameters}, fitted=_fitted
    ),
    commanded=True,
)
