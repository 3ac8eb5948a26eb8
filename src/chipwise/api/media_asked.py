"""What is asked of a model that generates no tokens, and the pipeline that it is: a built-in network by name, one of
which only totals are known, or a module, file or folder of the user's own.

A name and sizes become a pipeline (`Sampling.pipeline`), files theirs (`Files.pipeline`); from there on all are alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from chipwise.api.placing import Terms
from chipwise.api.tactics import Level
from chipwise.catalog.names import holding
from chipwise.catalog.networks import BY_COUNTS
from chipwise.errors import UsageError, shorten
from chipwise.parallel.layout import ONE, Spread
from chipwise.predict.pipeline import Offload
from chipwise.report.records import NetworkRecord
from chipwise.tracing.sources import TracedSource, own_source
from chipwise.units import parse_quantity
from chipwise.values import dataclass
from chipwise.workload import media
from chipwise.workload.backward import OPTIMIZER, update
from chipwise.workload.curve import RateCurve
from chipwise.workload.program import Program
from chipwise.workload.workload import CONFIDENCE, UTILISATION, Job, Task

DEFAULT = "bf16"  # precision where none is said
LAYOUT, ATTENTION = "memory_format", "attention"  # settings of the software, not of a family


@dataclass(frozen=True)
class Sampling:
    """What is asked of a model that generates no tokens, and how devices share it; None: the model's own default.

    `resolution` is (width, height); `settings` are further sizes of a family, by name; `training` asks about one step
    of an optimizer. `aside`: parts that the host computes. `software`: a date, or a version of what the runtime comes
    with ("": the newest). `level`: what the runtime's defaults give, or what a benchmark submission reaches with it.
    Targets of a plan: `rate_per_s` of samples, and `latency_s` of a request with what it waits at that rate, of the
    mean request or of a share of them (`percentile`), with a probability of `confidence`; a `job` of samples (its
    `tokens`) with its deadline and budget, of which no batch holds more than there are; replicas are loaded to
    `utilisation` at most, `spare` ones stand by. Where a `curve` is given, the rate is the peak of that day. `task`
    says what the chips are for. `host_memory` are bytes of one host, for what waits there (None: as the catalogue says
    of the machine).
    """

    batch: int | None = None
    resolution: tuple[int, int] | None = None
    frames: int | None = None
    steps: int | None = None
    guidance: float | None = None
    settings: Mapping[str, float | str] = field(default_factory=dict)
    training: bool = False
    spread: Spread = ONE
    offload: Offload = "none"
    aside: tuple[str, ...] = ()
    software: str = ""
    level: Level = "stock"
    task: Task = "serve"
    latency_s: float | None = None
    rate_per_s: float | None = None
    percentile: float | None = None
    job: Job | None = None
    confidence: float = CONFIDENCE
    utilisation: float = UTILISATION
    spare: int = 0
    curve: RateCurve | None = None
    host_memory: float | None = None

    @property
    def unbound(self) -> Sampling:
        """The same samples at full load, without a target."""
        return replace(self, latency_s=None, rate_per_s=None, percentile=None, job=None, spare=0, curve=None)

    @property
    def due_per_s(self) -> float | None:
        """Samples per second that finish its job by the deadline, None where nothing is due."""
        job = self.job
        return None if job is None or job.deadline_s is None else job.tokens / job.deadline_s

    def pipeline(self, model: str, precision: str | None, *, scores: bool = False) -> Program:
        """The model at these sizes; `scores`: attention writes its scores to memory. Raises `UsageError` and
        `UnknownNameError`."""

        if model.startswith(BY_COUNTS):
            return _counted(model, self, precision or DEFAULT)
        return media.pipeline(
            model,
            batch=self.batch or 1,
            precision=precision or DEFAULT,
            trained=self.training,
            **self.sizes(scores=scores),
        )

    def sizes(self, *, scores: bool = False) -> dict[str, Any]:
        """The sizes that were said, and how attention is written out."""
        found: dict[str, Any] = {
            name: value
            for name in ("resolution", "frames", "steps", "guidance")
            if (value := getattr(self, name)) is not None
        }
        found |= {name: value for name, value in self.settings.items() if name not in (LAYOUT, ATTENTION)}
        attention = self.settings.get(ATTENTION, "plain" if scores else "fused")
        if attention not in ("plain", "fused"):
            what = f"--settings attention={shorten(str(attention))}: not a way to compute it"
            raise UsageError(what, "fused, or plain, which writes scores to memory", field="settings")
        if attention == "plain":
            found[ATTENTION] = attention
        return found


@dataclass(frozen=True)
class Files:
    """A model of the user's own files for as long as a question takes: every size of it is read or traced once."""

    source: TracedSource
    made: dict[str, Program] = field(default_factory=dict, compare=False)

    def pipeline(self, asked: Sampling, precision: str | None, *, scores: bool = False) -> Program:
        """It at these sizes. Raises `UsageError` for sizes and formats of what has its own."""
        sizes = asked.sizes(scores=scores and self.source.sized)
        # what was recorded has layers of its own choice, but no optimizer
        recorded = asked.training and not self.source.sized
        optimizer = str(sizes.pop(OPTIMIZER, "adamw")) if recorded else "none"
        if precision is not None:
            sizes["precision"] = precision
        if asked.batch not in (None, 1):
            sizes["batch"] = asked.batch
        key = repr((sorted(sizes.items()), asked.training, optimizer))
        if key not in self.made:
            found = self.source.pipeline(training=asked.training, sizes=sizes)
            self.made[key] = update(found, optimizer) if recorded else found
        return self.made[key]


FAMILIES = {
    "diffusion": "generator of images or video",
    "shape": "generator of shapes",
    "voxels": "generator of shapes",
    "reconstruction": "generator of shapes",
    "structure": "structure of molecules",
    "vision": "images read: classes, boxes, masks",
    "text": "text read: embeddings, encoders",
    "speech": "speech recognition",
    "voice": "text to speech",
    "recommend": "recommender",
}
"""What a request of a built-in network is, by the task that its table names."""


def networks(search: str | None = None) -> tuple[str, ...]:
    """Built-in networks by their own names: all, or those whose names or family hold all words."""

    if search is None:
        return media.names()
    known = {
        name: " ".join((name, *media.entry(name).names, FAMILIES[media.entry(name).task])) for name in media.names()
    }
    return tuple(name for name, words in known.items() if holding(search, (words,)))


def network(name: str) -> NetworkRecord:
    """A built-in network in figures, at its own sizes. Raises `UnknownNameError`."""

    entry = media.entry(name)
    found = record_of(media.pipeline(name))
    return replace(found, name=entry.name, names=entry.called[1:], family=FAMILIES[entry.task], origin=entry.source)


def record_of(pipeline: Program) -> NetworkRecord:
    """Any network in figures, at the sizes that were asked."""
    return NetworkRecord(
        name=pipeline.name,
        names=(),
        family="",
        unit=pipeline.unit,
        params=pipeline.parameters,
        parts={stage.name: stage.parameters for stage in pipeline.stages},
        flops=pipeline.flops,
        settings=dict(pipeline.settings),
        origin="",
    )


def one_size(model: str | Files) -> bool:
    """Whether a model has no sizes but its own: a traced module, an ONNX file."""
    return isinstance(model, Files) and not model.source.sized


def own_model(model: str) -> str | Files:
    """A model by name as it is, one of the user's own with its files."""
    source = own_source(model)
    return model if source is None else Files(source)


def made(model: str | Files, terms: Terms, asked: Sampling, *, scores: bool = False, timed: bool = True) -> Program:
    """The model at these sizes. Raises `UsageError`, where it is to be `timed` for one of which only weights are
    known."""
    if isinstance(model, str):
        return asked.pipeline(model, terms.precision, scores=scores)
    found = model.pipeline(asked, terms.precision, scores=scores)
    if timed and not any(stage.ops for stage in found.stages):
        raise UsageError(
            f"{found.name}: only its weights are known, not what it computes",
            "chipwise fit says where they fit; FILE.py:function or FILE.onnx says what it computes",
            field="model",
        )
    return found


def _counted(model: str, asked: Sampling, precision: str) -> Program:
    """`macs:params=25.6M,gmacs=4.1`: a network of which only totals are known. Raises `UsageError`."""

    hint = f"as in {BY_COUNTS}params=25.6M,gmacs=4.1,macts=11.1M,style=conv"
    given = dict(part.partition("=")[::2] for part in model.removeprefix(BY_COUNTS).split(","))
    strange = sorted(set(given) - {"params", "gmacs", "macts", "style"})
    strange += [said for said in (given.get("style", "conv"),) if said not in ("conv", "transformer")]
    if strange or not {"params", "gmacs"} <= set(given):
        raise UsageError(f"cannot read {shorten(model)}", hint, field="model")
    figures = {name: parse_quantity(given.get(name, "0"), "", name) for name in ("params", "gmacs", "macts")}
    return media.from_macs(
        model,
        figures["params"] / 1e6,
        figures["gmacs"],
        macts_m=figures["macts"] / 1e6,
        style="transformer" if given.get("style") == "transformer" else "conv",
        batch=asked.batch or 1,
        precision=precision,
        trained=asked.training,
    )
