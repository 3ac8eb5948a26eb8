"""The kernel suite: latencies of single operators, a table at a time, as `chipwise kernel` answers them; out of fold
next to the naive roofline.

Tables are columns, not rows as values: there are too many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chipwise.api.kernel import answer
from chipwise.api.operators import OPERATORS
from chipwise.api.requests.kernel import KernelRequest
from chipwise.api.suites.suite import Index, Suite, Trial
from chipwise.calibrate.effects import Effects
from chipwise.calibrate.fit import Fitting
from chipwise.calibrate.kernel_questions import ROW_WORK, Questions, taken
from chipwise.calibrate.kernel_rows import groups_of, roofline_s
from chipwise.calibrate.kernel_table import NUMBERS, TEXT, Columns, asked_of, mapped, text_of, types_of
from chipwise.calibrate.kernels import (
    METRIC,
    calibrate_kernels,
    corrected_kernels,
    fitted_kernels,
    fitted_names,
    kernel_parameters,
    label_trials,
    price_kernels,
    price_measured,
)
from chipwise.calibrate.parameter import Parameter, write_table
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.calibrate.priors import PRIORS
from chipwise.calibrate.systolic_kernels import calibrate_systolic
from chipwise.catalog.chips import load_chips
from chipwise.catalog.files import output_file, writing
from chipwise.errors import ChipwiseError, UsageError
from chipwise.evidence.columns import read_columns
from chipwise.evidence.residuals import Residuals, Summary, Validation
from chipwise.evidence.rows import Predicted
from chipwise.values import dataclass


def _predicted(path: str, numbers: Parameters | None, commands: bool) -> Iterator[Predicted]:
    """`latency_us` of every row of a table of kernels with its 80 % interval; measured columns are not read.

    Each row is the question of `request_of`; rows of families with measured kernels are priced together, others one
    by one. "calibrated" where the formula was fitted on chips of the same generation, else "modelled". `commands`: with
    the command line of each, which asks the shipped numbers.
    Raises `UsageError` for a table that cannot be read.
    """
    refused: dict[int, str] = {}
    columns = read_columns(path, ("row_id", *TEXT), NUMBERS, ("row_id", "chip", "op"), refused)
    chips, known = load_chips(), numbers or shipped_parameters()
    asked = asked_of(columns)
    times = price_measured(asked, chips, known)
    rows = zip(
        columns["row_id"].tolist(),
        columns["chip"].tolist(),
        columns["op"].tolist(),
        asked["op"].tolist(),
        np.isfinite(times.mid_s).tolist(),
        times.calibrated.tolist(),
        *((1e6 * t).tolist() for t in (times.mid_s, times.low_s, times.high_s)),
        strict=True,
    )
    for at, (row_id, chip, op, kind, answered, calibrated, mid, low, high) in enumerate(rows):
        if at in refused:
            yield Predicted(row_id, METRIC, None, refused=refused[at])
            continue
        if chip not in chips:
            yield Predicted(row_id, METRIC, None, refused="the chip is not in the catalogue")
            continue
        if not kind:
            yield Predicted(row_id, METRIC, None, refused=f"operator {op!r} is not priced")
            continue
        basis = "calibrated" if calibrated else "modelled"
        if not answered:
            try:
                t = answer(request_of(asked, at), known).kernels[0].time_s
            except ChipwiseError as error:
                yield Predicted(row_id, METRIC, None, refused=str(error))
                continue
            mid, low, high, basis = 1e6 * t.mid, 1e6 * t.low, 1e6 * t.high, t.basis
        command = request_of(asked, at).command if commands and numbers is None else ""
        yield Predicted(row_id, METRIC, mid, low, high, basis, "", command)


# --------------------------------------------------------------- measurements

FEW = 15
"""Shapes of each operator and data type that a new chip shows before the others are predicted."""
FOLDS = 5
CELL = ("chip", "op", "dtype", "kernel", "framework")
"""What makes rows cells of their own, of which two pay for a fitted number."""
SHAPE = (
    "m", "n", "k", "batch", "heads", "kv_heads", "head_dim", "q_len", "kv_len", "causal", "window", "tokens",
    "hidden", "inter", "experts", "topk", "tp", "ep", "distribution", "bytes", "ranks",
)  # fmt: skip
"""Columns that say what is computed, whatever it runs on."""

# Ranges of measured time; short kernels are mostly launch.
SIZES = ((0.0, "under 10 us"), (10.0, "10 to 30 us"), (30.0, "30 us to 1 ms"), (1e3, "over 1 ms"))
LONG_US = 30.0
LEAST = 20
"""Rows that a slice must have to be shown."""

_METHODS = {
    "shape": ("kernels", f"{FOLDS} groups of shapes left out in turn"),
    "chip": ("kernels of a chip never measured", "each chip left out in turn"),
    "framework": ("kernels of software never measured", "each source of kernels left out in turn"),
    "few": (
        "kernels of a new chip",
        f"each chip left out in turn but for {FEW} shapes of each operator and data type, which correct the rest",
    ),
}
"""By key: section of the accuracy page, and what was done."""
_SLICES = ("by operator", "by operator and size", "by chip", "by data type")
_ACROSS = ("by operator and vendor", "products by chip", "products by vendor")
"""Slices that are shown, and those shown besides where chips are left out."""


@dataclass(frozen=True)
class MeasuredKernel:
    """Measured kernels of known chips as columns, and the numbers that price what is not refitted; `gpu`: those that
    are. Other families keep their numbers: none of their chips is left out."""

    columns: Columns
    numbers: Parameters
    gpu: NDArray[np.bool_]

    @cached_property
    def asked(self) -> Questions:
        """The question of every row."""
        return asked_of(self.columns)

    @cached_property
    def groups(self) -> NDArray[np.str_]:
        """The formula of every row."""
        return groups_of(self.asked)

    @classmethod
    def of(cls, columns: Columns, numbers: Parameters) -> MeasuredKernel:
        """Of columns that hold `latency_us`."""
        chips = load_chips()
        gpu = [c in chips and chips[c].family == "simt" for c in columns["chip"].tolist()]
        return cls(columns, numbers, np.array(gpu))


def measured_columns(paths: Sequence[str], numbers: Parameters) -> MeasuredKernel:
    """Raises `UsageError` for a table without measured rows."""
    (path,) = paths
    text = ("row_id", *TEXT)
    columns = read_columns(path, text, (*NUMBERS, METRIC, "chip_known"), ("chip", "op", METRIC))
    scored = (columns["chip_known"] != 0) & (columns["chip"] != "") & (columns[METRIC] > 0)
    if not scored.any():
        raise UsageError(f"{path}: no measured rows", f"needed: {METRIC}")
    return MeasuredKernel.of(taken(columns, scored), numbers)


def _dealt(m: MeasuredKernel) -> Sequence[Hashable]:
    """Rows of equal dims share one of a few groups, dealt out at random but always the same."""
    shape = _codes(m.columns, SHAPE)
    dealt = np.random.default_rng(0).permutation(int(shape.max()) + 1) % FOLDS
    found: list[int] = dealt[shape].tolist()
    return found


def _chip(m: MeasuredKernel) -> Sequence[Hashable]:
    """Every chip is left out, wholly or ("few") but for a few of its shapes."""
    found: list[str] = np.where(m.gpu, text_of(m.columns, "chip"), "").tolist()
    return found


def _framework(m: MeasuredKernel) -> Sequence[Hashable]:
    """The software that was timed is left out wholly."""
    found: list[str] = np.where(m.gpu, text_of(m.columns, "framework"), "").tolist()
    return found


def few_of(columns: Columns, shapes: int = FEW) -> NDArray[np.bool_]:
    """So many shapes of each chip, operator and data type, dealt out at random but always the same."""
    what = _codes(columns, ("chip", "op", "dtype"))
    chosen = np.zeros(len(what), dtype=bool)
    shape = _codes(columns, SHAPE)
    order = np.random.default_rng(1).permutation(int(shape.max()) + 1)[shape]
    for each in np.unique(what):
        at = np.flatnonzero(what == each)
        chosen[at] = np.isin(order[at], np.unique(order[at])[:shapes])
    return chosen


def _codes(columns: Columns, names: Sequence[str]) -> NDArray[np.int64]:
    """One number for every combination of these columns."""
    codes = np.zeros(len(columns["op"]), dtype=np.int64)
    for name in names:
        each = np.unique(columns[name], return_inverse=True)[1]
        codes = np.unique(codes * (int(each.max()) + 1) + each, return_inverse=True)[1]
    return codes


@dataclass(frozen=True)
class _Fitted:
    gpus: Mapping[str, Effects]
    arrays: Mapping[str, Effects]


def _fit(m: MeasuredKernel, kept: Index, _: Parameters) -> _Fitted:
    """Groups of operators that rows left out need; all of them, and those of systolic arrays, where none is."""
    chips, rows = load_chips(), taken(m.asked, kept)
    if len(kept) == len(m.gpu):
        return _Fitted(calibrate_kernels(rows, chips), calibrate_systolic(rows, chips))
    out = m.gpu.copy()
    out[kept] = False
    wanted = np.unique(m.groups[out]).tolist()
    return _Fitted(calibrate_kernels(rows, chips, only=wanted) if wanted else {}, {})


def _answer(m: MeasuredKernel, out: Index, fitted: _Fitted, key: str) -> Residuals:
    chips, start = load_chips(), tuple(f"{group}." for group in PRIORS)
    kept = {name: p for name, p in m.numbers.table.items() if not name.startswith(start)}
    numbers = Parameters({**kept, **kernel_parameters(fitted.gpus, "fold")})
    if key != "shape":
        out = out[m.gpu[out]]
    if key == "few":
        shown = np.zeros(len(m.gpu), dtype=bool)
        shown[m.gpu] = few_of(taken(m.columns, m.gpu))
        own = corrected_kernels(taken(m.asked, out[shown[out]]), chips, numbers, "few")
        numbers, out = Parameters({**numbers.table, **own}), out[~shown[out]]
    if not len(out):
        return Residuals.of([], [], [])
    times = price_measured(taken(m.asked, out), chips, numbers)
    found = _labelled(m, out, *(1e6 * t for t in (times.mid_s, times.low_s, times.high_s)))
    return found.take(found.known) if key == "few" else found


def _fitted(m: MeasuredKernel, _: Parameters) -> dict[str, tuple[Fitting, Index]]:
    """Of GPUs; the few numbers of systolic arrays are fitted each group under those before it, and are not asked."""
    return dict(fitted_kernels(m.asked, load_chips()))


def _labelled(m: MeasuredKernel, out: Index, mid: Any, low: Any, high: Any) -> Residuals:
    columns, chips = taken(m.columns, out), load_chips()
    op, chip = columns["op"].astype(str), columns["chip"].astype(str)
    size = np.array([name for _, name in SIZES])[
        np.searchsorted([us for us, _ in SIZES], columns[METRIC], side="right") - 1
    ]
    vendor = mapped(chip, lambda c: chips[c].vendor if c in chips else "")
    product = (columns[METRIC] >= LONG_US) & (op == "gemm")
    long = f"gemm of {LONG_US:.0f} us or more, "
    return Residuals.of(
        out,
        mid,
        columns[METRIC],
        low=low,
        high=high,
        metric=METRIC,
        **{
            "by operator": op,
            "by operator and size": np.char.add(np.char.add(op, ", "), size),
            "by chip": chip,
            "by data type": types_of(columns),
            "by operator and vendor": np.char.add(np.char.add(op, ", "), vendor),
            "products by chip": np.where(product, np.char.add(long, chip), ""),
            "products by vendor": np.where(product, np.char.add(long, vendor), ""),
        },
    )


def _report(m: MeasuredKernel, found: Residuals, key: str) -> Validation:
    roofline = 1e6 * roofline_s(taken(m.asked, found.place), load_chips())
    naive = _labelled(m, found.place, roofline, roofline, roofline)

    def summaries(lines: Residuals, by: str = "") -> list[Summary]:
        return [s for s in lines.summaries(by, LEAST) if s.answered]

    tables = {"all": summaries(found)}
    for title in _SLICES if key == "shape" else (*_SLICES, *_ACROSS):
        tables[title] = summaries(found, title)
        tables[f"naive roofline, {title}"] = summaries(naive, title)
    if key == "shape":
        tables["what each label buys where its own value was left out"] = _label_worth(m)
    suite, how = _METHODS[key]
    numbers, cells = len(fitted_names(m.numbers.table)), int(_codes(m.columns, CELL).max()) + 1
    said = f"{numbers} fitted numbers on {cells} cells ({', '.join(CELL)})"
    return Validation(suite, f"{how}; kernels of GPUs refitted on the rest", tables, [said])


def _label_worth(m: MeasuredKernel) -> list[Summary]:
    """Errors with and without the effects of each label, on rows whose value of it no fit saw."""
    trials = list(label_trials(m.asked, load_chips()))
    counts = Counter(
        a for n in fitted_names(m.numbers.table) if "=" in n for a in n.partition("=")[0].split(".")[-1].split("+")
    )
    found = []
    for label in sorted({t.label for t in trials}):
        mine = [t for t in trials if t.label == label]
        measured = np.concatenate([t.measured_s for t in mine])
        for kind, name in (
            ("with_s", f"{label}: with its {counts[label]} numbers"),
            ("without_s", f"{label}: without"),
        ):
            said = np.concatenate([getattr(t, kind) for t in mine])
            lines = Residuals.of(np.arange(len(said)), 1e6 * said, 1e6 * measured, metric=METRIC, by=name)
            found += lines.summaries("by")
    return found


def _gpus(fitted: _Fitted) -> Mapping[str, Parameter]:
    return kernel_parameters(fitted.gpus, _source("simt.gemm."))


def _arrays(fitted: _Fitted) -> Mapping[str, Parameter]:
    return kernel_parameters(fitted.arrays, _source("systolic.gemm."))


def _source(start: str) -> str:
    """What shipped numbers of this kind say they were fitted on."""
    return next(p.source for name, p in shipped_parameters().table.items() if name.startswith(start))


KERNELS = Suite(
    "kernels",
    (METRIC,),
    trial=Trial(
        "kernels.parquet",
        measured_columns,
        {"shape": _dealt, "chip": _chip, "framework": _framework, "few": _chip},
        _fit,
        _answer,
        _report,
        {"kernels.csv": _gpus, "systolic.csv": _arrays},
        fitted=_fitted,
    ),
    commanded=True,
    priced=True,
    stream=_predicted,
)


COLUMNS = {"bytes_": "bytes"}
"""Columns of rows by the options that they hold, where those are called otherwise."""


SWITCHES = {"rotating", "quantised", "fetched", "prompt"}


def _is_said(value: Any) -> bool:
    """Whether a row has a value there, which blanks, NaN and no limit are not."""
    return not (value is None or value == "" or value != value or value == np.inf)


def request_of(asked: Mapping[str, NDArray[Any]], at: int) -> KernelRequest:
    """The request whose question is row `at` of `asked`: what a person would type for it."""
    op = str(asked["op"][at])
    given: dict[str, Any] = {}
    for name in OPERATORS[op].options:
        if (column := COLUMNS.get(name, name)) in asked and _is_said(value := asked[column][at].item()):
            given[name] = value if isinstance(value, str) else int(value)
    given |= {name: bool(given[name]) for name in SWITCHES & given.keys()}
    if op == "attention":
        given["bidirectional"] = not asked["causal"][at]
        if given["value_dim"] == given["head_dim"]:
            del given["value_dim"]
    if op in ROW_WORK or op == "elementwise":
        given.pop("kind", None)
    if "bytes_" in given:
        given["bytes_"] = str(given["bytes_"])
    same = {name: default for name, (_, default) in OPERATORS[op].besides.items()}
    given = {n: v for n, v in given.items() if n in OPERATORS[op].needed or v != same.get(n)}
    return KernelRequest(op=op, chips=str(asked["chip"][at]), **given)  # type: ignore[arg-type]


class Calibrated(NamedTuple):
    """Rows used, parameters written, and the median error on those rows before and after (not out of fold)."""

    rows: int
    parameters: int
    before: float
    after: float


def calibrate_kernels_file(rows: str, out: str, numbers: Parameters | None = None) -> Calibrated:
    """Fit the kernel formulas to a table of measured kernels and write the parameters that changed.

    Raises `UsageError` for a table without usable rows, or a file that cannot be written.
    """
    output_file(out, rows)  # before the work is done
    known = numbers or shipped_parameters()
    columns = read_columns(rows, TEXT, (*NUMBERS, METRIC), ("chip", "op", METRIC))
    chips = load_chips()
    asked = asked_of(columns)
    before = price_kernels(asked, chips, known.kernels).mid_s
    usable = np.isfinite(before) & (columns[METRIC] > 0)
    if not usable.any():
        raise UsageError(f"{rows}: no row that a kernel formula prices", "chips and operators as in predict kernels")
    asked = taken(asked, usable)
    source = f"fitted on {int(usable.sum())} rows of {Path(rows).name}, {date.today()}"
    fitted = corrected_kernels(asked, chips, known, source)
    after = price_kernels(asked, chips, Parameters({**known.table, **fitted}).kernels).mid_s
    with writing(out, rows) as file:
        file.write(write_table(fitted))
    measured = asked[METRIC] * 1e-6

    def off(seconds: np.ndarray) -> float:
        return float(np.median(np.abs(seconds / measured - 1.0)))

    return Calibrated(int(usable.sum()), len(fitted), off(before[usable]), off(after))
