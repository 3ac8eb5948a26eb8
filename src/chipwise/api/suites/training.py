"""The suites `training` and `mlperf_training`: a row becomes the question of a user, and takes its answer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from chipwise.api.requests.command import command_line
from chipwise.api.requests.planning import EstimateRequest
from chipwise.api.requests.training import TrainRequest
from chipwise.api.suites.media import answer_of
from chipwise.api.suites.suite import Asking, each, tried
from chipwise.api.train import situate
from chipwise.api.train_input import near
from chipwise.calibrate.fit_training import Runs
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.catalog.chips import get_chip
from chipwise.errors import ChipwiseError, UnknownNameError, UsageError
from chipwise.evidence.rows import Predicted, Row, positive, said_of
from chipwise.evidence.training_measured import SPREAD, measured_of, row_weights, target_of
from chipwise.evidence.training_rows import RULES, TrainingRun, read_run
from chipwise.predict.training.operators import TrainWork, work_of
from chipwise.predict.training.values import Cluster, Recipe, TrainSpread, Transformer
from chipwise.report.media import MediaPlan
from chipwise.report.records import Figure
from chipwise.report.training import TrainPlanRecord
from chipwise.values import dataclass

T = TypeVar("T")
STEP_ONLY = "train step"  # task of rows that time forward and backward alone
# Of a benchmark, whose clock starts with the first step and whose runs that fail are not published.
NO_FAILURES = "mtbf=100000000h,start=0s"
MINUTES = 1440.0  # of a day
NEEDED = ("row_id", "chip", "chips_total")
COUNTS = (
    "layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "seq_len", "global_batch", "micro_batch", "tp", "pp", "dp",
    "cp", "ep", "vp",
)  # fmt: skip


def request_of(run: TrainingRun) -> TrainRequest:
    """The question of a row; of a benchmark over the tokens to its target, evaluation counted as tokens too."""
    fields = dict(run.fields)
    target = target_of(run.row)
    if target is not None:
        seq = float(fields["seq"])
        fields["tokens"] = f"{target.samples * (1.0 + target.evaluation) * seq:.0f}"
        fields["failures"] = NO_FAILURES
    return TrainRequest(task="train", **fields)


def _said(run: TrainingRun, plan: TrainPlanRecord) -> Iterator[Predicted]:
    """Every measured column that the answer to a row's question says, with 80 % intervals."""
    command = f"{command_line('plan', request_of(run))} --task train"
    return (replace(line, command=command) for line in lines_of(run, plan, shipped_parameters()))


def answered(run: TrainingRun, numbers: Parameters | None = None) -> TrainPlanRecord:
    """The plan that answers the question of a row, as `plan --task train` gives it; `numbers` replace those shipped.
    Raises the errors of `ranked`."""
    first: TrainPlanRecord = request_of(run).ranked(numbers).report.plans[0]
    return first


def lines_of(run: TrainingRun, plan: TrainPlanRecord, numbers: Parameters) -> Iterator[Predicted]:
    """What a plan made with `numbers` says of the measured columns of a row; what is per chip is per one of those that
    the row counts, which may be the dies of a package."""
    name = run.row["row_id"]
    counted = positive(run.row, "chips_total") or float(plan.chips)
    share = plan.chips / counted

    def line(metric: str, figure: Figure, scale: float = 1.0) -> Predicted:
        ends = (figure.low * scale, figure.high * scale)
        return Predicted(name, metric, figure.mid * scale, *ends, figure.basis)

    if run.row.get("task") == STEP_ONLY:
        yield line("fwd_bwd_time_s", plan.step_s, 1.0 - plan.shares["optimiser"])
        return
    yield line("step_time_s", plan.step_s)
    yield line("samples_per_s", plan.tokens_per_s, 1.0 / plan.seq)
    target = target_of(run.row)
    if target is not None:
        ends = (target.samples / SPREAD, target.samples * SPREAD)
        yield Predicted(name, "samples_to_target", target.samples, *ends, "published")
        yield line("time_to_train_min", plan.days, MINUTES)
    yield line("tokens_per_s_per_chip", plan.tokens_per_s, 1.0 / counted)
    for metric, value in (
        ("tflops_per_chip", plan.tflops_per_chip * share),
        ("mfu_pct", 100.0 * plan.mfu),
        ("hfu_pct", 100.0 * plan.hfu),
    ):
        yield line(metric, plan.tokens_per_s, value / plan.tokens_per_s.mid)
    held, used = plan.memory_range, plan.memory
    state = sum(used[part] for part in ("weights", "gradients", "optimiser", "gathered"))
    for metric, value in (
        ("memory_gb", plan.memory_bytes),
        ("activation_memory_gb", used["activations"]),
        ("state_memory_gb", state),
    ):
        yield line(metric, held, value * share / held.mid / 1e9)


def impossible(row: Row) -> str:
    """Why a row describes no run; empty where it may. Blanks are left to what they default to."""
    try:
        told = {name: float(row.get(name) or "nan") for name in (*COUNTS, "chips_total")}
    except ValueError:
        return ""  # the reader names what is no number
    given = {name: value for name, value in told.items() if not math.isnan(value)}
    for name, value in given.items():
        if math.isinf(value) or value < 0 or (value == 0 and name in COUNTS):
            return f"{name} {row[name]}: not a count (at least 1)"
    return _illegal(given, _devices(row, given.get("chips_total", 0.0)))


def _illegal(given: Mapping[str, float], devices: float) -> str:
    """Why degrees suit no such model or so many devices, each where it is known; empty where they may."""
    tp, pp, cp = (given.get(name, 1.0) for name in ("tp", "pp", "cp"))
    heads, layers = given.get("heads"), given.get("layers")
    if heads and heads % tp:
        return f"tp {tp:g} does not divide {heads:g} heads (nearest: {near(int(tp), int(heads))})"
    if layers and pp > layers:
        return f"pp {pp:g} is more than {layers:g} layers (at most {layers:g})"
    if devices and tp * pp * cp > devices:
        return f"tp x pp x cp = {tp * pp * cp:g} is more than {devices:g} devices (at most {devices:g})"
    return ""


def _devices(row: Row, chips: float) -> float:
    """Devices that a layout may count: those that software sees in the chips; 0 where that is not known."""
    try:
        return chips * get_chip(row["chip"]).devices_per_package
    except UnknownNameError:
        return 0.0


@dataclass(frozen=True)
class Clips:
    """A row about a generator of video, and its question: a step of so many clips on chips that share them."""

    row: Row
    question: EstimateRequest

    @classmethod
    def of(cls, row: Row, said: Mapping[str, str]) -> Clips:
        """The question of a row of which a publication's rules say network and size of a clip."""
        chips, batch = (int(positive(row, name) or 0) for name in ("chips_total", "global_batch"))
        cut = {name: int(positive(row, column) or 1) for name, column in (("ulysses", "cp"), ("tp", "tp"))}
        dp, left = divmod(chips, cut["ulysses"] * cut["tp"])
        if left or not dp or not batch or batch % dp:
            raise UsageError(f"{batch} clips do not spread over {chips} chips, cut by {cut}")
        # without FSDP Megatron's distributed optimizer still cuts the states, without which 14B parameters do not fit
        spread = {"dp": dp, **cut, "fsdp": 1}
        settings = {"recompute": said["recompute"], "accumulate": batch // dp}
        return cls(
            row,
            EstimateRequest(
                model=said["network"],
                chip=get_chip(row["chip"]).id,
                runtime=said["runtime"],
                batch=batch,
                resolution=said["resolution"],
                frames=int(said["frames"]),
                settings=",".join(f"{name}={value}" for name, value in settings.items()),
                training=True,
                spread=",".join(f"{name}={n}" for name, n in spread.items()),
                evidence="none",
            ),
        )

    def lines(self, plan: MediaPlan) -> Iterator[Predicted]:
        """What a plan says of the measured columns; FLOP/s count no forward pass twice."""
        plain = answer_of(replace(self.question, settings=None), None)
        work = plain.flops_per_s * plain.latency_s.mid / (1e12 * plan.chips)  # TFLOP of a chip
        batch, command = plan.batch, command_line("estimate", self.question)
        held, step = plan.memory_range, plan.latency_s
        for metric, mid, low, high in (
            ("step_time_s", step.mid, step.low, step.high),
            ("samples_per_s", batch / step.mid, batch / step.high, batch / step.low),
            ("tflops_per_chip", work / step.mid, work / step.high, work / step.low),
            ("memory_gb", held.mid / 1e9, held.low / 1e9, held.high / 1e9),
        ):
            yield Predicted(self.row["row_id"], metric, mid, low, high, step.basis, "", command)


def _read(row: Row, folder: Path, _: Parameters | None) -> TrainingRun | Clips:
    """The question of a row of a file. Raises `UsageError` for one that describes no run."""
    wrong = impossible(row)
    if wrong:
        raise UsageError(wrong)
    said = said_of(row, RULES)
    return Clips.of(row, said) if "network" in said else read_run(row, folder)


def _answer(asked: TrainingRun | Clips, numbers: Parameters | None) -> TrainPlanRecord | MediaPlan:
    return answer_of(asked.question, numbers) if isinstance(asked, Clips) else answered(asked, numbers)


def _lines(asked: TrainingRun | Clips, plan: Any) -> Iterator[Predicted]:
    return asked.lines(plan) if isinstance(asked, Clips) else _said(asked, plan)


ASKING = Asking(NEEDED, _read, each(_answer), _lines)


@dataclass(frozen=True)
class MeasuredTraining:
    """Runs that were read from tables: their questions, and the columns that a fit wants."""

    runs: Sequence[TrainingRun]
    columns: Runs


def measured_runs(paths: Sequence[str], numbers: Parameters) -> MeasuredTraining:
    """Rows that can be answered, of tables with measured columns, with the layouts that `numbers` choose where rows
    leave them open. Raises `UsageError` where there are none."""
    kept: list[TrainingRun] = []
    placed: list[Any] = []
    for run in (run for path in paths for run in ASKING.questions(path, None)[1]):
        if isinstance(run, Clips):  # the suite `media` fits its software
            continue
        site = run if isinstance(run, ChipwiseError) else tried(_situated, run, numbers)
        if not isinstance(run, ChipwiseError) and not isinstance(site, ChipwiseError):
            placed.append(site)
            kept.append(run)
    if not kept:
        raise UsageError(f"{', '.join(paths)}: no row can be read", "is it a table of training runs?")
    return MeasuredTraining(kept, _columns(kept, placed))


def _situated(run: TrainingRun, numbers: Parameters) -> Any:
    return situate(request_of(run).asked(), numbers)


def _columns(runs: Sequence[TrainingRun], placed: Sequence[Any]) -> Runs:
    parts: dict[str, Any] = {
        "network": _stacked(Transformer, [site.job.network for site, _ in placed]),
        "spread": _stacked(TrainSpread, [at.spread for _, at in placed]),
        "work": _stacked(
            TrainWork, [work_of(site.job.network, at.spread, site.job.recipe, site.job.kernels) for site, at in placed]
        ),
        "cluster": _stacked(Cluster, [site.job.cluster for site, _ in placed]),
        "recipe": _stacked(
            Recipe,
            [
                replace(site.job.recipe, optimiser=0.0) if run.row.get("task") == STEP_ONLY else site.job.recipe
                for run, (site, _) in zip(runs, placed, strict=True)
            ],
        ),
    }
    measured = [
        measured_of(run.row, site.job.network, at.spread, site.trainer.counts)
        for run, (site, at) in zip(runs, placed, strict=True)
    ]
    first = placed[0][0].labels
    return Runs(
        labels={key: np.array([site.labels[key] for site, _ in placed]) for key in first}
        | {
            "vendor": np.array([site.chip.vendor for site, _ in placed]),
            "chip": np.array([site.chip.software_id for site, _ in placed]),
        },
        seconds=np.array([m[0] for m in measured]),
        memory_bytes=np.array([m[1] for m in measured]),
        weight=row_weights(runs),
        **parts,
    )


def _stacked(kind: type[T], values: Sequence[T]) -> T:
    """Frozen values of numbers as one of columns."""
    return kind(**{f.name: np.array([float(getattr(v, f.name)) for v in values]) for f in fields(kind)})  # type: ignore[arg-type]
