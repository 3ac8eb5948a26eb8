"""The suite `published`: figures of vendors, runtimes and users, asked through `estimate` as a user would ask.

Works on tables with the columns of `published_serving.csv`: one figure a row, of the metric that the row names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from chipwise.api.loaded import load
from chipwise.api.requests.command import command_line
from chipwise.api.requests.planning import EstimateRequest
from chipwise.api.suites.suite import Asking, Index, Suite, Trial, each, readers, tried
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import get_chip
from chipwise.catalog.runtime import get_runtime
from chipwise.errors import ChipwiseError, InfeasibleError, UsageError, shorten
from chipwise.evidence.residuals import Residuals, Validation
from chipwise.evidence.rows import Predicted, Row, id_of, number, said_of
from chipwise.report.plans import PlanRecord
from chipwise.report.records import Figure
from chipwise.values import dataclass

NEEDED = ("model", "chip", "tp", "runtime", "isl", "osl", "metric")
DATE = re.compile(r"\d{4}-\d\d")
RULES = "published_runs"

Read = Callable[[PlanRecord, float, float], Figure | None]
"""Plan, chips and output tokens -> the figure in the unit of its metric."""


def _times(figure: Figure | None, factor: float) -> Figure | None:
    if figure is None:
        return None
    low, high = figure.low * factor, figure.high * factor
    return Figure(figure.mid * factor, low, high, figure.basis, figure.provisional)


def _latency(p: PlanRecord, _: float, output: float) -> Figure | None:
    if p.tpot_s is None:
        return p.ttft_s
    rest, first = _times(p.tpot_s, output - 1.0), p.ttft_s
    if rest is None:
        return None
    return Figure(first.mid + rest.mid, first.low + rest.low, first.high + rest.high, rest.basis, rest.provisional)


def _pass(p: PlanRecord, _: float, __: float) -> Figure | None:
    """A pass that decodes alone, as uncertain as the time per token."""
    return None if p.tpot_s is None else _times(p.tpot_s, 1e3 * p.decode_s / p.tpot_s.mid)


def _decoded(p: PlanRecord, chips: float, _: float) -> Figure | None:
    if p.tpot_s is None:
        return None
    t, rate = p.tpot_s, p.batch * p.replicas / p.decode_s / chips
    return Figure(rate, rate * t.mid / t.high, rate * t.mid / t.low, t.basis, t.provisional)


FIGURES: Mapping[str, tuple[str, Read]] = {
    "tokens_out_per_s": ("tokens_per_s", lambda p, _, __: p.tokens_per_s),
    "tokens_out_per_s_per_chip": ("tokens_per_s", lambda p, chips, _: _times(p.tokens_per_s, 1.0 / chips)),
    "requests_per_s": ("tokens_per_s", lambda p, _, out: _times(p.tokens_per_s, 1.0 / out)),
    "ttft_ms": ("ttft_s", lambda p, _, __: _times(p.ttft_s, 1e3)),
    "ttft_osl1_ms": ("ttft_s", lambda p, _, __: _times(p.ttft_s, 1e3)),
    "tpot_ms": ("tpot_s", lambda p, _, __: _times(p.tpot_s, 1e3)),
    "latency_s": ("tpot_s", _latency),
    "decode_pass_ms": ("tpot_s", _pass),
    "decode_tokens_out_per_s_per_chip": ("tpot_s", _decoded),
}
"""By metric of a row: which figure's interval it takes, and how it is read from a plan."""


def _read(row: Row, _: Path, __: Parameters | None) -> tuple[Row, EstimateRequest]:
    return row, published_question(row)


def _answer(asked: tuple[Row, EstimateRequest], _: Parameters | None) -> tuple[EstimateRequest, Figure]:
    question, plan = answered(asked[1])
    return question, figure_of(asked[0], plan)


def _lines(asked: tuple[Row, EstimateRequest], found: tuple[EstimateRequest, Figure]) -> Iterator[Predicted]:
    """The figure of a row in the unit of its metric."""
    (row, _), (question, f) = asked, found
    command = command_line("estimate", question)
    yield Predicted(id_of(row), row["metric"], f.mid, f.low, f.high, f.basis, "", command)


def figure_of(row: Row, plan: PlanRecord) -> Figure:
    """The figure that a row asks for. Raises `UsageError` for a metric that no plan has."""
    if row["metric"] not in FIGURES:
        raise UsageError(f"metric {shorten(row['metric'])} is not read", f"one of {', '.join(FIGURES)}")
    found = FIGURES[row["metric"]][1](plan, number(row, "chips"), number(row, "osl"))
    if found is None:
        raise UsageError("one token: there is no time per further one")
    return found


def answered(question: EstimateRequest) -> tuple[EstimateRequest, PlanRecord]:
    """The answer; what ran ran, so that a load above the runtime's default of sequences asks for more of them, and
    above what memory holds for as many as fit."""
    wide = f"max_sequences={question.concurrency:.0f}" if question.concurrency else None
    tries = [question]
    if wide:
        tries += [replace(question, policy=wide), replace(question, policy=wide, concurrency=None)]
    first: InfeasibleError | None = None
    for one in tries:
        try:
            return one, one.report().plans[0]
        except InfeasibleError as error:
            first = first or error
    raise first or UsageError("nothing was asked")


def published_question(row: Row) -> EstimateRequest:
    """The question of a row, with the layout that its publication tells elsewhere (`published_runs.toml`). Raises
    `UsageError` or `UnknownNameError` for what no plan has."""
    row = {**row, **said_of(row, RULES)}
    if not row["chip"]:
        raise UsageError("the chip is not in the catalogue", "chipwise chips list")
    chip, runtime = get_chip(row["chip"]), get_runtime(row["runtime"])
    tp, pp, dp, ep = (int(number(row, name)) if row.get(name) else 1 for name in ("tp", "pp", "dp", "ep"))
    load = row.get("concurrency_or_batch", "")
    date = DATE.match(row.get("date", ""))
    rate = row.get("request_rate", "")
    return EstimateRequest(
        model=row["model"],
        chip=chip.id,
        tp=_devices(chip, number(row, "chips"), tp, pp * dp),
        pp=pp,
        dp=dp,
        ep=ep,
        concurrency=float(load) if load and not rate else None,
        rate=f"{number(row, 'request_rate', 1e-9):.10g}/s" if rate else None,
        in_=f"{number(row, 'isl'):.10g}",
        out=f"{number(row, 'osl'):.10g}",
        precision=row.get("precision") or None,
        kv=row.get("kv_precision") or None,
        runtime=runtime.id,
        software=date[0] if date else None,
        evidence="none",
    )


def _devices(chip: Chip, chips: float, tp: int, others: int) -> int:
    """Tensor parallelism in devices of the catalogue; sources count cores or dies of some chips."""
    devices = chips * chip.devices_per_package
    if tp * others > devices and devices / others >= 1:
        return int(devices / others)
    return tp


# --------------------------------------------------------------- measurements

ASKING = Asking(NEEDED, _read, each(_answer), _lines)


@dataclass(frozen=True)
class _MeasuredPublished:
    """Published figures that were answered."""

    rows: Sequence[Row]
    figures: Sequence[Figure]


def _measured(paths: Sequence[str], _: Parameters) -> _MeasuredPublished:
    kept = []
    for path in paths:
        for row, asked in zip(*ASKING.questions(path, None), strict=True):
            found = asked if isinstance(asked, ChipwiseError) else tried(_answer, asked, None)
            if not isinstance(found, ChipwiseError):
                kept.append((row, found[1]))
    if not kept:
        raise UsageError(f"{', '.join(paths)}: no row can be read", "is it a table of published figures?")
    rows, figures = zip(*kept, strict=True)
    return _MeasuredPublished(rows, figures)


def _who(m: _MeasuredPublished) -> list[str]:
    """Who measured a row."""
    return [" ".join(row["source"].split()[:2]).split("@")[0] for row in m.rows]


def _compared(m: _MeasuredPublished, out: Index, _: None, __: str) -> Residuals:
    """Every row against the answer that users get; nothing is fitted to it."""
    every = _who(m)
    rows, who = [m.rows[i] for i in out], [every[i] for i in out]
    figures = [FIGURES[row["metric"]][0] for row in rows]
    return Residuals.of(
        out,
        [m.figures[i].mid for i in out],
        [float(row["value"]) for row in rows],
        metric=figures,
        row=[id_of(row) for row in rows],
        figure=figures,
        tier=[m.figures[i].basis for i in out],
        key=who,
        chip=[row["chip"] for row in rows],
        reader=[readers(get_chip(row["chip"]), load(row["model"]).graph) for row in rows],
        where=[f"{row['model'].split('/')[-1]} on {row['chip']}, {w}" for w, row in zip(who, rows, strict=True)],
        cell=[f"{w} {row['chip']}" for w, row in zip(who, rows, strict=True)],
    )


def _report(_: _MeasuredPublished, found: Residuals, key: str) -> Validation:
    """What intervals hold that are made without the benchmarker of a row."""
    return Validation(
        "published",
        "Nothing is fitted; intervals are those of a plan: who measures it is always new to them.",
        {
            "all": found.summaries(),
            "by what a figure rests on": found.summaries("tier"),
            "by benchmarker": found.summaries("key", 5),
            "by chip": found.summaries("chip", 5),
        },
    ).shown(found)


PUBLISHED = Suite(
    "published",
    (),
    ASKING,
    Trial(
        "published_serving.csv",
        _measured,
        {"benchmarker": _who},
        lambda table, kept, numbers: None,
        _compared,
        _report,
        folds={"benchmarker": 1},
    ),
    commanded=True,
)
