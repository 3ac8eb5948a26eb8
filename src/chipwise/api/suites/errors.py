"""What the model of error (`evidence.discrepancy`) is fitted to: rows of measured tables against answers that had not
seen them, with their levels on its axes.

A table is named by its file: those that a suite can leave parts out of (`FOLDED`) are answered out of fold, those of
published figures and of rounds by the product as it ships. Rows of validation tables are read here and stay there:
what ships are variances, and effects at levels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

import numpy as np

from chipwise.api.loaded import load
from chipwise.api.suites import media, serving
from chipwise.api.suites.doors import SUITES
from chipwise.api.suites.local import AskedDesk
from chipwise.api.suites.published import RULES
from chipwise.calibrate.parameter import Z80
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.catalog.chips import get_chip
from chipwise.catalog.runtime import get_runtime
from chipwise.errors import ChipwiseError, UsageError
from chipwise.evidence.axes import Levels, chip_axes, served_axes, served_family, trained_axes
from chipwise.evidence.discrepancy import Observed, states
from chipwise.evidence.residuals import Residuals
from chipwise.evidence.rows import Row, RowPart, id_of, read_rows, said_of
from chipwise.units import Array
from chipwise.values import dataclass
from chipwise.workload.graph import Graph

RATES = frozenset(
    {
        "tokens_out_per_s", "tokens_out_per_s_per_chip", "requests_per_s", "decode_tokens_out_per_s_per_chip",
        "pp_tok_s", "tg_tok_s", "samples_per_s", "images_per_s", "it_per_s",
    }
)  # fmt: skip
"""Metrics of which more is better: their errors are those of the time, turned round."""

DOUBTFUL = ("CONTEXT", "DOUBT")
QUARANTINED = 1.6
"""Of the logarithm: rows that are off by a factor of five are taken to be of something else than they say."""
ONE_WAVE = "one_wave"
"""Load of rows whose figure holds the start and the end of a run: no state that a plan describes."""


@dataclass(frozen=True)
class ErrorLine:
    """A measured figure beside its answer: family and figure of the model of error, kind of table, y of its time, and
    its levels."""

    family: str
    figure: str
    kind: str
    y: float
    levels: Levels


def may_count(row: Row) -> bool:
    """Whether a row is a measurement of what it says: of a steady state, and not marked as doubtful."""
    note = row.get("note", "")
    return row.get("load") != ONE_WAVE and not row.get("doubt") and not any(d in note for d in DOUBTFUL)


def who_of(row: Row) -> str:
    """Who measured a row: the first two words of its source, without the revision."""
    return " ".join(row.get("source", "").split()[:2]).split("@")[0]


@lru_cache(maxsize=512)
def _graph(model: str, precision: str) -> Graph:
    return load(model, precision or None).graph


def _served(row: Row, _: Mapping[str, str], __: Path) -> tuple[str, Levels]:
    said = {**row, **said_of(row, RULES)}
    runtime = get_runtime(said["runtime"]).id
    graph = _graph(said["model"], said.get("precision", ""))
    return served_family(runtime), served_axes(get_chip(said["chip"]), runtime, graph)


def _point(row: Row, _: Mapping[str, str], folder: Path) -> tuple[str, Levels]:
    q = serving.question_of(row, folder / "models")
    levels = served_axes(get_chip(q.chip), str(q.runtime), _graph(q.model, q.precision or ""), apart=bool(q.prefill))
    return "serving", levels


def _desk(row: Row, _: Mapping[str, str], __: Path) -> tuple[str, Levels]:
    asked = AskedDesk.of(row)
    runtime = get_runtime(row["runtime"]).id
    graph = _graph(row["model"], asked.precision or "")
    return served_family(runtime), served_axes(get_chip(row["chip"]), runtime, graph, lone=True)


def _network(row: Row, line: Mapping[str, str], folder: Path) -> tuple[str, Levels]:
    return "media_memory" if line["metric"] == media.PEAK else "media", media.levels_of(row, folder)


def _trained(_: Row, line: Mapping[str, str], __: Path) -> tuple[str, Levels]:
    levels = trained_axes(
        get_chip(line["chip"]),
        line["stack"],
        experts=line["experts"] == "experts",
        method=line["method"],
        precision=line["precision"],
    )
    family = "training_memory" if line["metric"] == "memory_gb" else "training"
    return family, {**levels, "model": line["model"]}


def _submitted(_: Row, line: Mapping[str, str], __: Path) -> tuple[str, Levels]:
    chip = get_chip(line["chip"])
    unit = "tokens" if line["kind"] == "llm" else "samples"
    return "tuned", chip_axes(chip, unit=unit, benchmark=line["benchmark"], scenario=line["scenario"])


def _drawn(_: Row, line: Mapping[str, str], __: Path) -> tuple[str, Levels]:
    return "energy", chip_axes(get_chip(line["chip"]), kind=line["kind"], model=line["model"])


def _spoken(_: Row, line: Mapping[str, str], __: Path) -> tuple[str, Levels]:
    return "speeds", chip_axes(get_chip(line["chip"]), model=line["cell"])


FIRST = {"ttft_ms", "ttft_osl1_ms", "ttft_s", "pp_tok_s"}
"""Metrics of the time to the first token."""


Leveled: TypeAlias = Callable[[Row, Mapping[str, str], Path], tuple[str, Levels]]
"""A row, the labels of its line and the folder of its table to the family and the levels."""


@dataclass(frozen=True)
class Folded:
    """How a table is answered out of fold: its suite, the key that is left out, the levels of its lines, which of them
    count, and whether they are `rates`, not times: all, or those whose rows have a metric of `rated`."""

    suite: str
    key: str
    levels: Leveled
    only: Callable[[Mapping[str, str]], bool] = lambda line: True
    rates: bool = False
    rated: frozenset[str] = frozenset()


FOLDED: Mapping[str, Folded] = {
    "serving_points.csv": Folded(
        "serving", "cell", _point, lambda line: line["tier"] == serving.UNSEEN and line["metric"] in serving.TIMES
    ),
    "published_local.csv": Folded("local", "model", _desk),
    "media.csv": Folded("media", "cell", _network),
    "training.csv": Folded("training", "family", _trained, lambda line: line["kind"] != "vtrain"),
    "mlperf_training.csv": Folded("mlperf_training", "family", _trained),
    "mlperf_inference.csv": Folded("mlperf", "cell", _submitted, lambda line: line["tier"] != "own", rates=True),
    "energy.csv": Folded("energy", "cell", _drawn, lambda line: "at the measured" not in line["metric"]),
    "token_speeds.csv": Folded("token_speeds", "model", _spoken, rates=True),
}


PUBLISHED = Folded("published", "benchmarker", _served, rated=RATES)
"""Published figures of serving, to which nothing is fitted."""


def lines_of(path: str) -> Iterator[ErrorLine]:
    """The lines of a table that are answered. Raises `UsageError` for a table that is none of those."""
    name, numbers = Path(path).name, shipped_parameters()
    rows = {id_of(row): row for row in read_rows(path, ())}
    first = next(iter(rows.values()))
    if name in FOLDED:
        f = FOLDED[name]
        trial = SUITES[f.suite].trial
        assert trial is not None
        found = trial.unseen(trial.read([path], numbers), numbers, f.key)
        kind = "points" if f.suite == "serving" else "published"
        signs = np.full(len(found), -1.0 if f.rates else 1.0)
        yield from _read(found, rows, f.levels, Path(path).parent, kind, signs, f.only)
        return
    suite, levels = suite_of(first)
    if suite == "training":
        found, signs = _training(path, rows, numbers), np.ones(1)
    else:
        found = _asked(suite, path, rows)
        signs = np.where(np.isin(found.label("metric"), sorted(RATES)), -1.0, 1.0)
    yield from _read(found, rows, levels, Path(path).parent, "published", np.broadcast_to(signs, len(found)))


READ: Mapping[str, tuple[str, Leveled]] = {
    "method": ("training", _trained),
    "config_file": ("serving", _point),
    "quant": ("local", _desk),
    "task": ("media", _network),
    "isl": ("published", _served),
}
"""By a column that only its tables have: the suite that a table of one figure a row is of, and how its levels are
read."""


def suite_of(row: Row) -> tuple[str, Leveled]:
    """The suite of a table by its first row. Raises `UsageError` for a table that is none of measured figures."""
    found = next((READ[column] for column in READ if column in row), None)
    if found is None:
        columns = ", ".join(f"{column} ({suite})" for column, (suite, _) in READ.items())
        raise UsageError("no table of measured figures that is read", f"its rows have one of {columns}")
    return found


def _asked(suite: str, path: str, rows: Mapping[str, Row]) -> Residuals:
    """Answers of the product to a table beside what was measured."""
    kept = [p for p in SUITES[suite].predict(path) if p.mid]
    values = [rows[p.row_id].get("value") or rows[p.row_id].get(p.metric, "") for p in kept]
    return Residuals.of(
        np.arange(len(kept)),
        [p.mid or np.nan for p in kept],
        [float(v) if v else np.nan for v in values],
        metric=[p.metric for p in kept],
        row=[p.row_id for p in kept],
    )


RENAMED = {
    "id": "row_id", "chips": "chips_total", "seq": "seq_len", "microbatch": "micro_batch",
    "optimizer_sharding": "sharding",
}  # fmt: skip
"""Columns of published training figures, and those of the suite `training`."""


def as_training(rows: Iterable[Row]) -> Iterator[Row]:
    """Published training figures as rows of the suite: what holds of a whole run becomes tokens per second of a chip.
    Rows that name no chips are left out."""
    for row in rows:
        if not row["chips"]:
            continue
        metric, value = row["metric"], row.get("value", "")
        if metric in DURATIONS:
            scale = per_chip_rate(row)
            metric, value = RATE, f"{scale / float(value):.10g}" if value else ""
        shard = "8" if row["optimizer_sharding"].startswith("HSDP") else row["optimizer_sharding"]
        yield {RENAMED.get(k, k): v for k, v in row.items() if k not in ("config", "value", "metric")} | {
            "family": "published",
            "sharding": "" if shard == "none" else shard,
            "accelerator": row["chip"],
            "task": "LoRA" if row["method"] == "lora" else "pretrain",
            metric: value,
        }


RATE = "tokens_per_s_per_chip"
DURATIONS = {"days": 86400.0, "chip_hours": 3600.0}
"""Metrics that are the time of a whole run, in seconds."""


def per_chip_rate(row: Row) -> float:
    """Tokens per second of a chip times the duration that a row of `DURATIONS` has, in the unit of its metric."""
    chips = float(row["chips"]) if row["metric"] == "days" else 1.0
    return float(row["tokens"] or "nan") / (DURATIONS[row["metric"]] * chips)


def _training(path: str, rows: Mapping[str, Row], numbers: Parameters) -> Residuals:
    """Published training figures, answered with the shipped numbers."""
    table = list(as_training(rows.values()))
    columns = dict.fromkeys(name for row in table for name in row)
    trial = SUITES["training"].trial
    assert trial is not None
    whole = [{name: row.get(name, "") for name in columns} for row in table]
    measured = trial.read([RowPart.of(path, whole)], numbers)
    return trial.answer(measured, np.arange(trial.size(measured)), numbers, "family")


def _read(
    found: Residuals,
    rows: Mapping[str, Row],
    levels: Leveled,
    folder: Path,
    kind: str,
    signs: Array,
    only: Callable[[Mapping[str, str]], bool] = lambda line: True,
) -> Iterator[ErrorLine]:
    names = list(found.labels)
    with np.errstate(invalid="ignore", divide="ignore"):
        y = found.log
    for i in np.flatnonzero(np.isfinite(y) & (np.abs(y) < QUARANTINED)):
        line = {name: str(found.labels[name][i]) for name in names}
        row = rows.get(line.get("row", ""), {})
        if not only(line) or not may_count(row):
            continue
        metric = line["metric"]
        try:
            family, at = levels(row, line, folder)
        except ChipwiseError:
            continue
        figure = _figure(family, metric, at)
        group = line.get("group", "")
        who = who_of(row) if group in ("", "published") else group
        yield ErrorLine(family, figure, kind, float(signs[i] * y[i]), {**at, "who": who})


def _figure(family: str, metric: str, levels: Levels) -> str:
    """The figure of a family that a metric is of."""
    if family == "tuned":
        return levels["unit"]
    if family == "energy":
        return "joules" if "joules" in metric else "wall" if "wall" in metric else "chip"
    return "first" if metric in FIRST else "rate"


LEFT_OUT: Mapping[str, tuple[str, ...]] = {
    "cell": ("family", "model", "benchmark"),
    "model": ("family", "model", "benchmark"),
    "model_family": ("family", "model"),
    "vendor": ("vendor", "generation", "chip"),
    "generation": ("generation", "chip"),
    "chip": ("chip",),
    "runtime": ("runtime",),
    "precision": ("precision", "format"),
}
"""By the key that folds leave out: the axes whose levels nobody has measured then."""


def _unjudged(
    fold: Folded, paths: Sequence[str], found: Residuals, key: str
) -> dict[tuple[str, str], list[tuple[int, float, Levels]]]:
    """Lines without an interval by family and figure: where each stands, the sign of its error, and the levels that are
    known where `key` is left out."""
    rows = {id_of(row): (row, Path(path).parent) for path in paths for row in read_rows(path, ())}
    groups: dict[tuple[str, str], list[tuple[int, float, Levels]]] = {}
    for i in np.flatnonzero(found.known & ~np.isfinite(found.low)):
        line = {name: str(column[i]) for name, column in found.labels.items()}
        row, folder = rows.get(line.get("row", ""), ({}, Path()))
        try:
            family, levels = fold.levels(row, line, folder)
        except ChipwiseError:
            continue
        seen = {axis: level for axis, level in levels.items() if axis not in LEFT_OUT.get(key, ())}
        sign = -1.0 if fold.rates or row.get("metric") in fold.rated else 1.0
        groups.setdefault((family, _figure(family, line["metric"], levels)), []).append((int(i), sign, seen))
    return groups


def judged(suite: str, paths: Sequence[str], found: Residuals, key: str) -> Residuals:
    """Every line without an interval with that of the model of error as it ships, where nothing was seen of what the
    folds leave out. Lines of suites that judge themselves stay as they are."""
    fold = next((f for f in (*FOLDED.values(), PUBLISHED) if f.suite == suite), None)
    if fold is None:
        return found
    kind = "points" if suite == "serving" else "published"
    low, high = found.low.copy(), found.high.copy()
    for (family, figure), lines in _unjudged(fold, paths, found, key).items():
        at, each = [i for i, _, _ in lines], [levels for _, _, levels in lines]
        axes = {name: [levels.get(name, "") for levels in each] for name in {a for x in each for a in x}}
        spread = states()[family].spread(axes, figure, kind)
        lies, half = np.array([sign for _, sign, _ in lines]) * spread.lies, Z80 * spread.sd()
        low[at] = found.predicted[at] * np.exp(np.minimum(lies - half, 0.0))
        high[at] = found.predicted[at] * np.exp(np.maximum(lies + half, 0.0))
    return replace(found, low=low, high=high)


def observed(lines: Sequence[ErrorLine]) -> Mapping[str, Observed]:
    """Lines as rows by family."""
    found = {}
    for family in dict.fromkeys(line.family for line in lines):
        mine = [line for line in lines if line.family == family]
        axes = list(dict.fromkeys(a for line in mine for a in line.levels))
        found[family] = Observed(
            np.array([line.y for line in mine]),
            {a: np.array([line.levels.get(a, "") for line in mine], dtype=np.str_) for a in axes},
            np.array([line.figure for line in mine], dtype=np.str_),
            np.array([line.kind for line in mine], dtype=np.str_),
        )
    return found
