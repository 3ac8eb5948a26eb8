"""A running server held against a saved plan: the comparison as a record, a table, and metrics for Prometheus."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import field

from chipwise.report.records import SCHEMA_VERSION, Figure
from chipwise.report.table import DASH, Column, Table
from chipwise.units import format_number, format_seconds
from chipwise.values import dataclass

ALIKE = 0.25
"""Part by which load and lengths may differ from the plan's before a comparison says little."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What a saved plan says of one of its servers: times with their intervals, and the load that they are for.
    `command` asks for the same deployment, without a load."""

    title: str
    ttft_s: Figure
    tpot_s: Figure | None
    concurrency: float
    prompt_tokens: float
    output_tokens: float
    model: str = ""
    command: str = ""


@dataclass(frozen=True, slots=True)
class HeldRecord:
    """A measured mean against its predicted interval, which is to hold 80 % of outcomes; None: nothing was measured."""

    name: str
    measured_s: float | None
    predicted_s: Figure
    within: bool | None
    ratio: float | None


@dataclass(frozen=True, slots=True)
class WatchReport:
    """What a server does, held against its plan. `seconds` is None since its start. `unlike` says how its load, or its
    model, is not the plan's: the comparison is then of two different questions, and `command` asks the one that the
    server answers ("": its load is not known)."""

    url: str
    plan: str
    seconds: float | None
    requests: float
    requests_per_s: float | None
    running: float | None
    waiting: float | None
    prompt_tokens: float | None
    output_tokens: float | None
    times: tuple[HeldRecord, ...]
    unlike: tuple[str, ...]
    command: str = ""
    schema_version: str = field(default=SCHEMA_VERSION)


def held(name: str, measured_s: float, predicted: Figure) -> HeldRecord:
    """A measured mean against a predicted figure."""
    if not math.isfinite(measured_s):
        return HeldRecord(name, None, predicted, None, None)
    within = predicted.low <= measured_s <= predicted.high
    return HeldRecord(name, measured_s, predicted, within, measured_s / predicted.mid)


def unlike(expected: Expected, running: float, prompt_tokens: float, output_tokens: float) -> Iterator[str]:
    """How a load differs from the plan's, by more than `ALIKE`."""
    for what, found, wanted in (
        ("requests in flight", running, expected.concurrency),
        ("tokens in a prompt", prompt_tokens, expected.prompt_tokens),
        ("tokens of an answer", output_tokens, expected.output_tokens),
    ):
        if math.isfinite(found) and wanted > 0 and abs(found / wanted - 1.0) > ALIKE:
            yield f"{format_number(found)} {what}, the plan has {format_number(wanted)}"


TIMES = (
    Column("time", "name"),
    Column("measured", "measured_s", lambda v: DASH if v is None else format_seconds(v), right=True),
    Column("predicted", lambda h: format_seconds(h.predicted_s.mid), right=True),
    Column("80 % interval", lambda h: _span(h.predicted_s), right=True),
    Column("within", lambda h: {True: "yes", False: "no", None: DASH}[h.within]),
)
"""What is said of a time of a server."""


def watch_view(report: WatchReport) -> Table:
    """The times of a server against its plan."""
    since = "since it was started" if report.seconds is None else f"in {report.seconds:.0f} s"
    head = (report.plan, f"{report.url}: {report.requests:,.0f} requests {since}", "")
    foot = [f"note: {line}" for line in report.unlike]
    if report.unlike:
        foot.append("so this compares two different questions, whatever the last column says")
    if report.command:
        foot.append(f"what is predicted at this load: {report.command}")
    return Table.of(report.times, TIMES, head, tuple(foot))


def _span(figure: Figure) -> str:
    return f"{format_seconds(figure.low)} to {format_seconds(figure.high)}"


METRICS: Mapping[str, tuple[str, str]] = {
    "chipwise_watch_up": ("gauge", "Whether the server's metrics could be read the last time."),
    "chipwise_watch_time_seconds": ("gauge", "Mean that the server measured over the window."),
    "chipwise_watch_predicted_seconds": (
        "gauge",
        "Predicted mean of the plan; low to high is to hold 80 % of outcomes.",
    ),
    "chipwise_watch_held": ("gauge", "1 where the measured mean lies in the predicted interval, 0 where it does not."),
    "chipwise_watch_ratio": ("gauge", "Measured over predicted."),
    "chipwise_watch_requests": ("gauge", "Requests that got a first token in the window."),
    "chipwise_watch_load": ("gauge", "Requests in flight, and mean tokens, as measured and as planned."),
    "chipwise_watch_comparable": (
        "gauge",
        "1 while load and lengths are the plan's within a quarter: compare only then.",
    ),
    "chipwise_watch_plan_info": ("gauge", "The plan that the server is held against."),
}


def exposition(report: WatchReport | None, expected: Expected) -> str:
    """The comparison as Prometheus reads it (text format 0.0.4); without a report the server could not be read."""
    samples: dict[str, list[tuple[dict[str, str], float]]] = {name: [] for name in METRICS}
    samples["chipwise_watch_up"].append(({}, float(report is not None)))
    samples["chipwise_watch_plan_info"].append(({"plan": expected.title}, 1.0))
    for name, figure in (("ttft", expected.ttft_s), ("tpot", expected.tpot_s)):
        for end in ("low", "mid", "high") if figure is not None else ():
            label = {"time": name, "end": end}
            samples["chipwise_watch_predicted_seconds"].append((label, float(getattr(figure, end))))
    if report is not None:
        for metric, label, value in _measured(report, expected):
            if value is not None:
                samples[metric].append((label, float(value)))
    lines = []
    for name, (kind, said) in METRICS.items():
        lines += [f"# HELP {name} {said}", f"# TYPE {name} {kind}"]
        lines += [f"{name}{_labels(labels)} {value!r}" for labels, value in samples[name]]
    return "\n".join(lines) + "\n"


def _measured(report: WatchReport, expected: Expected) -> Iterator[tuple[str, dict[str, str], float | None]]:
    """What a report says, metric by metric."""
    for time in report.times:
        label = {"time": time.name.lower()}
        yield "chipwise_watch_time_seconds", label, time.measured_s
        yield "chipwise_watch_held", label, time.within
        yield "chipwise_watch_ratio", label, time.ratio
    yield "chipwise_watch_requests", {}, report.requests
    yield "chipwise_watch_comparable", {}, not report.unlike
    for of, measured, planned in (
        ("in_flight", report.running, expected.concurrency),
        ("prompt_tokens", report.prompt_tokens, expected.prompt_tokens),
        ("output_tokens", report.output_tokens, expected.output_tokens),
    ):
        yield "chipwise_watch_load", {"of": of, "source": "measured"}, measured
        yield "chipwise_watch_load", {"of": of, "source": "planned"}, planned


def _labels(labels: Mapping[str, str]) -> str:
    told = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{told}}}" if told else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
