"""The suite `media`: a row of published speed or memory of a model that generates no tokens becomes the question that a
user would ask of `estimate`, and takes the figure of the same answer that its metric names.

Works on tables with the columns of `media.csv`, one figure a row.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from chipwise.api.media_asked import Sampling
from chipwise.api.media_record import levels, plan_of
from chipwise.api.media_work import Place, Work
from chipwise.api.placing import Terms
from chipwise.api.requests.command import command_line
from chipwise.api.requests.parts import SoftwareOptions
from chipwise.api.requests.planning import EstimateRequest
from chipwise.api.suites.suite import Asking, Index, Suite, Trial, each
from chipwise.calibrate.fit import Fitting
from chipwise.calibrate.fit_media import MEMORY, TIMES, MediaFit, MediaRows, fit_media, fitted_memory, fitted_times
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.catalog.chips import get_chip
from chipwise.catalog.habits import Habit, habit_of
from chipwise.catalog.media_runtime import MediaRuntime, get_media_runtime
from chipwise.catalog.software import all_software
from chipwise.errors import ChipwiseError, UsageError, shorten
from chipwise.evidence.axes import Levels
from chipwise.evidence.residuals import Residuals, Validation
from chipwise.evidence.rows import Predicted, Row, number, pairs, read_rows
from chipwise.predict.pipeline import SHOWN, Offload
from chipwise.report.media import MediaPlan
from chipwise.report.records import Figure
from chipwise.tracing.sources import is_pipeline
from chipwise.values import dataclass

NEEDED = ("model", "chip", "metric")
COUNTS = "media_models/MODEL_MAP.csv"
COUNTED = ("model", "timm_params_m", "timm_gmacs")

METRICS: Mapping[str, Callable[[MediaPlan], Figure]] = {
    "latency_s": lambda p: p.latency_s,
    "step_s": lambda p: p.step_s,
    "it_per_s": lambda p: p.it_per_s,
    "samples_per_s": lambda p: p.samples_per_s,
    "images_per_s": lambda p: p.samples_per_s,
    "peak_memory_gb": lambda p: p.memory_range,
}
"""How the figure of a row is read from an answer, in SI."""
STEPS = ("step_s", "it_per_s")
PEAK = "peak_memory_gb"
SETTINGS: Mapping[str, str] = {"seq": "tokens", "max_text_tokens": "text_tokens", "beam": "beams", "task": "head"}
"""Sizes of families by the name that a table gives them."""
PASSED = (
    "audio_s",
    "text_tokens",
    "tokens",
    "part",
    "optimizer",
    "memory_format",
    "attention",
    "beams",
    "head",
    "bias",
)
PLAIN = ("eager", "vanilla", "plain", "math", "original")  # attention that writes out its scores
FUSED = ("sdpa", "xformers", "flash", "fused", "flash_attention_2", "fa2", "fa3", "sage")
OFFLOADS: Mapping[str, Offload] = {"model": "model", "sequential": "sequential"}
HOST_TEXT = ("t5_cpu=1", "text_encoder")  # what tables say where the host encodes texts, and the parts that do it
FLASH = {"0": "plain", "1": "fused"}
STAGES = dict.fromkeys(("fp32", "bf16", "compile"), "plain")
"""Attention of the steps by which segment-anything-fast was made faster; from "SDPA" on it is fused."""
INSIDE = ("Triton", "NT", "int8", "sparse")
"""Those of them from which on attention adds its bias inside of a kernel that was written for it."""
LEFT_OUT = ("CONTEXT", "DOUBT")  # marks of rows that a fit and its test leave out
SHARED = {"sp": "ulysses", "embedding_mp": "tables"}
"""Ways to share by other names: a sequence, where a table does not say how; tables of embeddings."""
FLAGS = ("fsdp", "tables")
UNITS = "unit"  # of a row that counts something else than samples
VAGUE = re.compile(r"not.stated|\?")
TRANSFORMERS = re.compile(r"vit|swin|beit|deit|cait|xcit|tnt|former|mixer|mlp|hiera|twins|pvt|levit|volo")
VERSIONED = re.compile(r"(\d+\.\d+)")


def _precision(text: str) -> str | None:
    """A precision as tables write it, by the name that it has here; None where none is said."""
    plain = re.sub(r"\(.*\)|-(dynamic|rowwise|weights)\b", "", text.strip().lower()).strip("- ")
    mixed = re.fullmatch(r"(bf16|fp16)-(amp|mixed)", plain)
    if mixed:
        return f"amp-{mixed[1]}"
    if re.fullmatch(r"w[5-8]a16|q[5-8]_\d", plain):
        return "int8-weight-only"
    if re.fullmatch(r"w4a16|q4_\d", plain):
        return "int4-weight-only"
    if "stated" in plain or "/" in plain:
        halves = [name for name in ("bf16", "fp16", "int8") if name in plain]
        return ("amp-" if "amp" in plain else "") + (halves[0] if halves else "fp16")
    return plain or None


def _spread(row: Row, chips: int, habit: Habit) -> str | None:
    degrees = {SHARED.get(name, name): int(n) for name, n in pairs(row.get("parallel", "")).items() if n}
    degrees |= {name: 1 for name in FLAGS if name in degrees or (name == "fsdp" and habit.sharded and chips > 1)}
    if chips > 1 and not degrees:
        raise UsageError(f"how {chips} chips share the work is not said", "parallel, as in dp=8")
    return ",".join(f"{name}={n}" for name, n in degrees.items()) or None


def question_of(row: Row) -> EstimateRequest:
    """The question of a row. Raises `UsageError` for a row that leaves out what must be known."""
    detail = pairs(row.get("model_detail", ""))
    metric = row.get("metric", "")
    _check_told(detail, metric)
    chips, training = int(float(row.get("chips") or 1)), row.get("phase") == "train"
    habit = habit_of(row.get("source", ""))
    kept = {**_settings(detail), **habit.sizes(trained=training)}
    offload = row.get("offload", "").split(";")[0]
    meant = _precision(row.get("precision", ""))
    return EstimateRequest(
        model=_model(row, detail),
        chip=get_chip(row["chip"]).id,
        precision=meant and habit.precision.get(meant, meant),
        runtime=_runtime(row),
        software=row.get("runtime_version") if VERSIONED.search(row.get("runtime_version", "")) else row.get("date"),
        batch=_batch(row, detail, chips),
        resolution=habit.picture(detail.get("image_size", ""), trained=training, peak=metric == PEAK)
        or _resolution(detail),
        frames=int(detail["frames"]) if {"frames", "width"} <= set(detail) else None,
        steps=int(detail["steps"]) if "steps" in detail else None,
        guidance=_guidance(detail),
        settings=",".join(f"{name}={value}" for name, value in kept.items()) or None,
        training=training,
        spread=_spread(row, chips, habit),
        offload=OFFLOADS.get(offload, "none"),
        aside=HOST_TEXT[1] if HOST_TEXT[0] in row.get("offload", "") else None,
        evidence="none",
    )


def _check_told(detail: Mapping[str, str], metric: str) -> None:
    """Raises `UsageError` for a figure that is not read, or whose unit or size of a request is not known."""
    if metric not in METRICS:
        raise UsageError(f"{shorten(metric)} is not read", f"one of {', '.join(METRICS)}")
    if UNITS in detail:
        raise UsageError(f"its figure counts {shorten(detail[UNITS])}, not samples")
    vague = [name for name in detail if VAGUE.search(name)]
    if vague and any("frames" in name or "length" in name for name in vague):
        raise UsageError(f"{vague[0].replace('_', ' ')}", "the size of a request must be known")


def _guidance(detail: Mapping[str, str]) -> float | None:
    """The guidance scale, at least 1; None where it is not told, or distilled into the weights."""
    distilled = detail.get("distilled_guidance") == "1"
    return None if distilled or "guidance" not in detail else max(float(detail["guidance"]), 1.0)


def _batch(row: Row, detail: Mapping[str, str], chips: int) -> int:
    """Samples at once, of a step on all chips. Raises `UsageError` for a step that does not say how many."""
    if row.get("batch"):
        return int(number(row, "batch"))
    if detail.get("micro_batch"):
        return int(float(detail["micro_batch"])) * chips
    if row.get("phase") == "train":
        raise UsageError("the batch of a step is not published")
    return 1


def _settings(detail: Mapping[str, str]) -> dict[str, str]:
    """What a row says of a network, as a question does."""
    settings = {SETTINGS.get(name, name): value for name, value in detail.items()}
    attention = (
        settings.pop("attention", "")
        or FLASH.get(settings.get("flash_attn", ""), "")
        or STAGES.get(settings.get("stage", ""), "")
    )
    if attention in PLAIN or attention in FUSED:
        settings["attention"] = "plain" if attention in PLAIN else "fused"
    if detail.get("stage") in INSIDE:
        settings["bias"] = "inside"
    return {name: settings[name] for name in PASSED if settings.get(name)}


def _runtime(row: Row) -> str:
    """The software of a row; of one that runs operator by operator what its version names, where that is known, of
    another what its version names and runs as it does."""
    said = get_media_runtime(row["runtime"])
    named = row.get("runtime_version", "").partition("(")[0].strip().lower()
    host = said.pace == "host"
    own = [r for r in all_software(MediaRuntime).values() if r.attends == "own" or r.paced_as]
    known = (r.id for r in own if named in (r.id, *r.also) and (host or r.paced_as == said.id))
    return next(known, said.id)


def _resolution(detail: Mapping[str, str]) -> str | None:
    if "width" in detail:
        return f"{detail['width']}x{detail['height']}"
    size = detail.get("image_size")
    if size is None:
        return None
    height, _, width = size.partition("x")
    return f"{width or height}x{height}"


def _model(row: Row, detail: Mapping[str, str]) -> str:
    """The model; one that is not built in by its parameters and multiply-adds, where the row has them."""
    if is_pipeline(row["model"]):
        return row["model"]
    if not row.get("gmacs") or not row.get("params_m"):
        raise UsageError(f"{shorten(row['model'])} is not built in, and the row has no count of its operations")
    macts = f",macts={detail['macts']}M" if "macts" in detail else ""
    like = ",style=transformer" if TRANSFORMERS.search(row["model"]) else ""
    return f"macs:params={row['params_m']}M,gmacs={row['gmacs']}{macts}{like}"


@dataclass(frozen=True)
class _AskedMedia:
    """A row as a question."""

    id: str
    metric: str
    question: EstimateRequest
    row: Row

    @property
    def habit(self) -> Habit:
        """What its source does not say."""
        return habit_of(self.row.get("source", ""))

    @property
    def cell(self) -> str:
        """Source and model: what stays together."""
        return f"{self.row.get('source', '')} {self.row['model']}"


@lru_cache(maxsize=16)
def _counts(folder: Path) -> Mapping[str, Row]:
    """Parameters and multiply-adds of models by name, from a table beside the rows; empty where there is none."""
    file = folder / COUNTS
    return {row["model"]: row for row in read_rows(str(file), COUNTED)} if file.is_file() else {}


def _read(row: Row, folder: Path, numbers: Parameters | None) -> _AskedMedia:
    known = {} if row.get("gmacs") else _counts(folder).get(row["model"], {})
    if known.get("timm_gmacs"):
        row = {**row, "params_m": known["timm_params_m"], "gmacs": known["timm_gmacs"]}
        if known.get("timm_macts"):
            row["model_detail"] = f"{row.get('model_detail', '')};macts={known['timm_macts']}"
    return _AskedMedia(row.get("row_id", ""), row.get("metric", ""), question_of(row), row)


@lru_cache(maxsize=4096)
def _work(question: EstimateRequest) -> Work:
    """A question priced, but for a runtime's own numbers."""
    numbers = shipped_parameters()
    terms = SoftwareOptions.terms(question, None)
    asked: Sampling = replace(question.sampling(), software=question.software or "")
    place = Place.of(get_chip(question.chip), terms, numbers)
    return Work.of(place.pipeline(question.model, terms, asked), place, terms, asked)


def levels_of(row: Row, folder: Path) -> Levels:
    """The levels of a row on the axes of the model of error. Raises `ChipwiseError` for a row that is not answered."""
    return levels(_work(_read(row, folder, None).question))


def answer_of(question: EstimateRequest, numbers: Parameters | None) -> MediaPlan:
    """The answer of `estimate` to a question of a measured row. Memory refuses nothing: the run exists."""
    return plan_of(_work(question), numbers or shipped_parameters(), Terms())


def _answer(asked: _AskedMedia, numbers: Parameters | None) -> MediaPlan:
    return answer_of(asked.question, numbers)


def _lines(asked: _AskedMedia, plan: MediaPlan) -> Iterator[Predicted]:
    """The figure of a row; of memory what the source's tool counts of it."""
    f, per = METRICS[asked.metric](plan), 1.0
    if asked.metric == PEAK:
        seen = sum(plan.memory[use] for use in SHOWN[asked.habit.memory])
        per = asked.habit.gigabyte * plan.memory_bytes / seen
    command = command_line("estimate", asked.question)
    yield Predicted(asked.id, asked.metric, f.mid / per, f.low / per, f.high / per, f.basis, "", command)


ASKING = Asking(NEEDED, _read, each(_answer), _lines)


# --------------------------------------------------------------- measurements


@dataclass(frozen=True)
class _MediaLine:
    """A measured row that was priced: the seconds of a request, or bytes."""

    asked: _AskedMedia
    work: Work
    value: float

    @property
    def memory(self) -> bool:
        """Whether it is one of memory."""
        return self.asked.metric == PEAK

    @property
    def figure(self) -> str:
        """What is judged alike."""
        return "memory" if self.memory else "step" if self.work.pipeline.trained else "request"

    @property
    def whole(self) -> bool:
        """Whether a whole request was timed."""
        return self.asked.metric not in STEPS or self.work.pipeline.trained


LABELS = (
    "chip", "core", "generation", "runtime", "pace", "folds", "attends", "dtype", "phase", "unit", "use", "layout",
    "host",
)  # fmt: skip
"""Labels of work that effects of the fit are chosen by."""


@dataclass(frozen=True)
class _MeasuredMedia:
    """Measured rows that were priced, as a fit reads them, and how many were not."""

    lines: Sequence[_MediaLine]
    asked: int

    def rows(self, index: Sequence[int]) -> MediaRows:
        """Some rows, all of times or all of memory."""
        lines = [self.lines[i] for i in index]
        each_ = [line.work.labels for line in lines]
        labels = {name: np.array([labels_[name] for labels_ in each_], dtype=np.str_) for name in LABELS}
        sizes = Counter(line.asked.cell for line in lines)
        # a source with many rows of one model says little more than one with few
        weight = np.array([sizes[line.asked.cell] ** -0.5 for line in lines])
        measured = np.array([line.value for line in lines])
        if lines and lines[0].memory:
            held = np.array([(w.tensors.of("weights"), w.tensors.of("activations")) for w in (x.work for x in lines)])
            kinds = np.array([line.asked.habit.memory for line in lines])
            reserved = np.isin(kinds, ("reserved", "device")).astype(float)
            device = (kinds == "device").astype(float)
            return MediaRows(labels, measured, (), held[:, 0], held[:, 1], reserved, device, weight)
        stages = MediaRows.together([line.work.asking(line.asked.metric) for line in lines])
        whole = np.array([float(line.whole) for line in lines])
        return MediaRows(labels, measured, stages, weight=weight, whole=whole)

    def split(self, index: Index) -> tuple[list[int], list[int]]:
        """Rows of times, and of memory."""
        times = [int(i) for i in index if not self.lines[i].memory]
        return times, [int(i) for i in index if self.lines[i].memory]


def _measured(paths: Sequence[str], numbers: Parameters) -> _MeasuredMedia:
    """Raises `UsageError` for tables without a row that is answered."""
    lines: list[_MediaLine] = []
    total = 0
    for path in paths:
        for row, one in zip(*ASKING.questions(path, None), strict=True):
            if not row.get("value") or any(mark in row.get("note", "") for mark in LEFT_OUT):
                continue
            total += 1
            if isinstance(one, ChipwiseError):
                continue
            try:
                work = _work(one.question)
            except (ChipwiseError, ArithmeticError, LookupError):
                continue
            value = float(row["value"])
            batch = float(work.pipeline.samples)
            seconds = {"samples_per_s": batch / value, "images_per_s": batch / value, "it_per_s": 1.0 / value}
            measured = value * one.habit.gigabyte if one.metric == PEAK else seconds.get(one.metric, value)
            lines.append(_MediaLine(one, work, measured))
    if not lines:
        raise UsageError(f"{', '.join(paths)}: no row can be read", "is it a table of measured pipelines?")
    return _MeasuredMedia(lines, total)


KEYS: Mapping[str, Callable[[_MeasuredMedia], Sequence[Hashable]]] = {
    "cell": lambda m: [line.asked.cell for line in m.lines],
    "source": lambda m: [line.asked.row.get("source", "") for line in m.lines],
    "chip": lambda m: [line.asked.question.chip for line in m.lines],
    "runtime": lambda m: [line.asked.question.runtime for line in m.lines],
}
"""What stays together: a source's rows of a model, a source, a chip, a runtime."""

UNSEEN = "unseen"


def _fit(m: _MeasuredMedia, kept: Index, _: Parameters) -> MediaFit:
    times, memory = m.split(kept)
    return fit_media(m.rows(times), m.rows(memory))


def _fitted(m: _MeasuredMedia, _: Parameters) -> dict[str, tuple[Fitting, Index]]:
    times, memory = m.split(np.arange(len(m.lines)))
    return {
        TIMES.prefix: (fitted_times(m.rows(times)), np.array(times)),
        MEMORY.prefix: (fitted_memory(m.rows(memory)), np.array(memory)),
    }


TOLD: Mapping[str, Callable[[_MediaLine], str]] = {
    "cell": lambda line: line.asked.cell,
    "chip": lambda line: line.asked.question.chip,
    "task": lambda line: f"{line.asked.row.get('task', '')} {line.asked.row.get('phase', '')}",
    "runtime": lambda line: str(line.asked.question.runtime),
    "model": lambda line: line.asked.row["model"],
    "kind": lambda line: "memory" if line.memory else "time",
}
"""What is told of a row, by the name that its residual carries it under."""


def _compared(m: _MeasuredMedia, out: Index, fitted: MediaFit, _: str) -> Residuals:
    """Every row against what a fit says that did not see it, in the unit of its metric."""
    parts = []
    for index, effects in zip(m.split(out), (fitted.times, fitted.memory), strict=True):
        if not index:
            continue
        rows = m.rows(index)
        said = rows.predicted(effects.values(rows.labels))
        lines = [m.lines[i] for i in index]
        parts.append(
            Residuals.of(
                np.array(index),
                said,
                rows.measured,
                metric=[line.asked.metric for line in lines],
                row=[line.asked.id for line in lines],
                figure=[line.figure for line in lines],
                tier=UNSEEN,
                **{name: [told(line) for line in lines] for name, told in TOLD.items()},
                host=["host" if not line.memory and line.work.hosted(fitted) else "device" for line in lines],
            )
        )
    return Residuals.join(parts)


def _report(m: _MeasuredMedia, found: Residuals, key: str) -> Validation:
    """Errors on what no fit had seen; seconds stand for rates."""
    what = {"cell": "source's rows of the model"}.get(key, key)
    cells = len(set(found.label("cell")))
    fitted = _fit(m, np.arange(len(m.lines)), shipped_parameters())
    count = len(fitted.times.table) + len(fitted.memory.table)
    return Validation(
        "media" if key == "cell" else f"media with a {key} never seen",
        f"Every row predicted by a fit that never saw its {what}; rates are compared as seconds, and rows marked as "
        "context or doubtful are left out. Intervals are those of a plan of which nobody measured that.",
        {
            "all": found.summaries("kind"),
            "where a host or a device sets the time": found.summaries("host"),
            "by task": found.summaries("task", least=4),
            "by runtime": found.summaries("runtime", least=4),
            "by chip": found.summaries("chip", least=4),
            "by model": found.summaries("model", least=4),
        },
        [
            f"{len(m.lines)} of {m.asked} rows are answered",
            f"{count} fitted numbers, {cells} cells (source, model) in the rows",
        ],
    )


MEDIA = Suite(
    "media",
    (),
    ASKING,
    Trial(
        "media.csv",
        _measured,
        KEYS,
        _fit,
        _compared,
        _report,
        {"media.csv": MediaFit.parameters},
        folds={"cell": 24, "source": 24},
        fitted=_fitted,
    ),
    commanded=True,
)
