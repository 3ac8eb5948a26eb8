"""The suite `token_speeds`: published output speeds per user of dataflow machines and GPUs.

A speed is that of one pass with one row of the plan that a service is taken to run, priced as every other plan:
the smallest machine that holds the model, whole nodes where chips have memory of their own. What a token waits for on
dataflow machines is fitted to these speeds.

Such chips are hardly sold: who names one means the vendor's service (`served_alone`). It stores models in formats of
its own and may let a small model draft; both are facts of its runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from chipwise.api.loaded import load_generating
from chipwise.api.suites.suite import Asking, Index, Suite, Trial, each, kept_rows, readers
from chipwise.calibrate.effects import Effects
from chipwise.calibrate.families import SPEEDS
from chipwise.calibrate.fit import FitRows, Fitting
from chipwise.calibrate.parameter import Parameter
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.catalog.chips import get_chip
from chipwise.catalog.configs import named_config
from chipwise.catalog.runtime import runtimes_for
from chipwise.cost.dataflow import DataflowModel
from chipwise.cost.device import Device
from chipwise.cost.price import CostParameters
from chipwise.errors import UsageError
from chipwise.evidence.axes import chip_axes
from chipwise.evidence.discrepancy import spread_of
from chipwise.evidence.judge import Estimate, judge
from chipwise.evidence.residuals import Residuals, Validation
from chipwise.evidence.rows import Predicted, Row, read_rows
from chipwise.evidence.speed_rows import CONTEXT, SpeedRun, read_speed
from chipwise.parallel.layout import Layout, Reason, check_layout, illegal
from chipwise.parallel.shard import Sharded, shard
from chipwise.predict.overheads import Overheads
from chipwise.predict.step import step_cost
from chipwise.report.records import Figure, figure
from chipwise.search.deployments import machine_for
from chipwise.search.memory import account_of
from chipwise.search.space import Deployment, Limits, layouts_for
from chipwise.units import Array, Real
from chipwise.values import dataclass
from chipwise.workload.graph import Graph
from chipwise.workload.step import decode

METRIC = "tokens_per_s_per_user"
NEEDED = ("row_id", "chip", "model_family")
GPUS = (1, 2, 4, 8)
DRAFTED = 10e9  # active parameters of models that are large enough to have others draft for them
MOST = 4096  # devices of one replica
ROW_WEIGHT = 0.25
"""Published speeds of one model on one service scatter by a quarter (840 and 560 tokens/s on one card), twice the
scatter of kernels that the fit assumes."""


def seconds_per_token(run: SpeedRun, numbers: Parameters | None) -> float:
    """Seconds of one token of one user. Raises `UsageError` for a model that cannot be laid out."""
    known = numbers or shipped_parameters()
    case = Case.of(run, known)
    drafts = known.speeds.values({"kind": np.array([run.chip.kind])})["drafts"].item()
    return case.seconds(case.costs, drafts)


def _read(row: Row, _: Path, __: Parameters | None) -> SpeedRun:
    return read_speed(row)


def _lines(run: SpeedRun, seconds: float) -> Iterator[Predicted]:
    e = judged(run, 1.0 / seconds)
    yield Predicted(run.id, METRIC, e.mid, e.low, e.high, e.basis)


def judged(run: SpeedRun, per_s: float) -> Estimate:
    """Tokens per second of one user with their interval."""
    return judge(per_s, spread_of(chip_axes(run.chip), "speeds").around(-1.0), "modelled")


@dataclass(frozen=True)
class Case:
    """A row laid out: what a pass with one row needs, but for the numbers that are fitted to such rows."""

    run: SpeedRun
    device: Device
    sharded: Sharded
    costs: CostParameters
    overheads: Overheads
    eager_s: float

    @classmethod
    def of(cls, run: SpeedRun, numbers: Parameters) -> Case:
        """Raises `UsageError` for a model that cannot be laid out."""
        graph = load_generating(run.config.name, run.precision or None).graph
        if not run.precision and run.stored and graph.model.precision.weight("ffn").bits == 16:
            graph = load_generating(run.config.name, run.stored).graph
        runtime = next(iter(runtimes_for(run.chip)), None)
        if runtime is None:
            raise UsageError(f"no runtime is known for {run.chip.id}")
        dataflow = run.chip.family == "dataflow"
        system = machine_for(run.chip) if dataflow else None
        device = Device.of(run.chip, system=system)
        if not np.isfinite(float(device.memory_bytes_per_s)):
            raise UsageError(f"{run.chip.id}: bandwidth is not published")
        d = Deployment(run.chip, device, runtime, runtime.policies_on(run.chip), system=system)
        return cls(
            run,
            device,
            shard(graph, _laid_out(run, graph, d) if dataflow else _parts(run, graph, device)),
            numbers.cost(device.family, runtime.id, (run.chip,)).take(np.zeros((), dtype=np.intp)),
            numbers.overheads(device.family, runtime.id),
            numbers.value("runtime.eager.launch") if run.eager and device.family == "simt" else 0.0,
        )

    @property
    def drafted(self) -> bool:
        """Whether a small model is taken to draft for this one."""
        return self.run.drafts and self.sharded.graph.active_params() >= DRAFTED

    def seconds(self, costs: CostParameters, drafts: float) -> float:
        """Seconds of a token on the fastest of the layouts, `drafts` times as fast where others draft."""
        step = decode(self.run.batch, self.run.context)
        cost = step_cost(self.sharded, step, self.device, costs, self.overheads)
        seconds = float(np.min(np.asarray(cost.total_s)))
        if self.eager_s:
            seconds += self.eager_s * sum(float(np.asarray(n)) * op.launches for n, op in self.sharded.ops(step))
        return seconds / drafts if self.drafted else seconds

    def under(self, values: Mapping[str, float]) -> float:
        """The same with these fitted numbers, on a dataflow machine."""
        assert isinstance(self.costs, DataflowModel)
        numbers = replace(
            self.costs.numbers,
            layer_s=values["operation_s"],
            routed_s=values["routed_s"],
            row_share=values["row_share"],
        )
        return self.seconds(replace(self.costs, numbers=numbers), values["drafts"])

    @property
    def sweep_s(self) -> float:
        """Seconds that reading the weights and the cache of one token takes at the full bandwidth of all devices."""
        step = decode(self.run.batch, self.run.context)
        read = sum(np.asarray(n) * (op.weight_bytes + op.kv_bytes) for n, op in self.sharded.ops(step))
        return float(np.min(np.asarray(read / self.device.memory_bytes_per_s)))


def _laid_out(run: SpeedRun, graph: Graph, d: Deployment) -> Layout:
    """Every layout of the chips that are given; else of a node, or of the fewest chips that hold the model."""
    node = d.system.chips_per_host if d.system and run.chip.memory.kind != "sram" else 0
    columns = Layout(*np.array(list(layouts_for(graph, d, Limits(max_devices=MOST))), dtype=float).T)
    devices = np.asarray(columns.devices)
    fits = account_of(graph, d, columns, run.context).fits(run.batch) & (illegal(graph, columns) == 0)
    for chips in dict.fromkeys((run.chips, node)):
        good = fits & (devices == chips * run.chip.devices_per_package)
        if good.any():
            break
    else:
        if not fits.any():
            raise UsageError(f"{graph.model.name} cannot be laid out on {run.chip.id}", "see chipwise fit")
        good = fits & (devices == devices[fits].min())
    return columns.take(good)


def _parts(run: SpeedRun, graph: Graph, device: Device) -> Layout:
    sizes = [run.chips * run.chip.devices_per_package] if run.chips else GPUS
    for tp in sizes:
        layout = Layout(tp=float(tp))
        fits = graph.weight_bytes / tp < 0.9 * float(device.memory_bytes)
        if check_layout(graph, layout) is Reason.OK and fits:
            return layout
    raise UsageError(f"{graph.model.name} does not fit on {sizes[-1]} x {run.chip.id}")


# --------------------------------------------------------------- measurements


@dataclass(frozen=True)
class _Speeds:
    """Rows of plain speeds on dataflow machines, laid out, and as the fit reads them."""

    table: Sequence[Row]
    cases: Sequence[Case]
    rows: FitRows


def _measured(paths: Sequence[str], numbers: Parameters) -> _Speeds:
    """Raises `UsageError` where no row can be read."""
    read = (row for path in paths for row in read_rows(path, (*NEEDED, METRIC)))
    main = (row for row in read if row.get("use", "main") == "main")

    def made(row: Row) -> Case:
        case = Case.of(read_speed(row), numbers)
        if not isinstance(case.costs, DataflowModel):
            raise UsageError(f"{case.run.chip.id} is no dataflow machine")
        return case

    table, cases = kept_rows(main, made, paths, "speeds per user")
    measured = np.array([1.0 / float(row[METRIC]) for row in table])

    def model(values: Mapping[str, Real], index: NDArray[np.intp]) -> Array:
        columns = {name: np.broadcast_to(np.asarray(v), len(index)) for name, v in values.items()}
        return np.array([cases[i].under({n: float(c[at]) for n, c in columns.items()}) for at, i in enumerate(index)])

    labels = {"kind": np.array([case.run.chip.kind for case in cases])}
    rows = FitRows(labels, measured, model, np.full(len(table), ROW_WEIGHT))
    return _Speeds(table, cases, rows)


def _column(name: str) -> Callable[[_Speeds], Sequence[Hashable]]:
    return lambda m: [row.get(name, "") for row in m.table]


KEYS = {"model": _column("model_family")} | {
    name: _column(name) for name in ("chip", "vendor", "model_family", "precision", "source", "date")
}


def _fit(m: _Speeds, kept: Index, _: Parameters) -> Effects:
    return Fitting(m.rows.take(kept), SPEEDS.quantities).effects()


def _answer(m: _Speeds, out: Index, fitted: Effects, key: str) -> Residuals:
    left, models = KEYS[key](m), KEYS["model"](m)
    return Residuals.of(
        out,
        1.0 / m.rows.take(out).predict(fitted),
        [float(m.table[i][METRIC]) for i in out],
        metric=METRIC,
        figure=METRIC,
        tier="chip",
        key=[str(left[i]) for i in out],
        cell=[str(models[i]) for i in out],
        chip=[m.table[i]["chip"] for i in out],
        reader=[readers(m.cases[i].run.chip, m.cases[i].sharded.graph, "service") for i in out],
        where=[f"{m.cases[i].run.config.name} on {m.table[i]['chip']}" for i in out],
        drafts=["assumed" if m.cases[i].drafted else "none" for i in out],
    )


def _report(m: _Speeds, found: Residuals, key: str) -> Validation:
    off = np.exp(np.abs(found.log))
    both = list(zip(m.table, m.cases, strict=True))
    drafted = [f"{row['row_id']} ({c.run.config.name} on {row['chip']})" for row, c in both if c.drafted]
    beyond = [row["row_id"] for row, c in both if float(row[METRIC]) * c.sweep_s > 1.0]
    return Validation(
        "token_speeds",
        f"refit without each {key}",
        {
            "all": found.summaries(),
            "by chip": found.summaries("chip"),
            "by speculative decoding": found.summaries("drafts"),
        },
        (
            f"within a factor of {np.median(off):.2f} (median), {np.quantile(off, 0.9):.2f} (p90)",
            "measured faster than the weights of one token can be read, so more than one token came out of a pass: "
            + (", ".join(beyond) or "none"),
            f"a small model is taken to draft, though the rows do not say so: {', '.join(drafted) or 'none'}",
        ),
    ).shown(found)


def _shipped(fitted: Effects) -> Mapping[str, Parameter]:
    return SPEEDS.parameters(fitted)


TOKEN_SPEEDS = Suite(
    "token_speeds",
    (METRIC,),
    Asking(NEEDED, _read, each(seconds_per_token), _lines),
    Trial(
        "token_speeds.csv",
        _measured,
        KEYS,
        _fit,
        _answer,
        _report,
        {"speeds.csv": _shipped},
        fitted=lambda m, _: {SPEEDS.prefix: (Fitting(m.rows, SPEEDS.quantities), np.arange(len(m.rows)))},
    ),
)


@dataclass(frozen=True, slots=True)
class Served:
    """What one user of a vendor's service is predicted to see: tokens/s `plain`, and `drafted` since the date `since`
    for a model that is large enough for a small one to draft for it (None: no draft is known). `chips` serve one
    replica in `precision`; `asked` is the format as a question names it, "" for the checkpoint's own."""

    chips: int
    precision: str
    asked: str
    plain: Figure
    drafted: Figure | None
    since: str


def served_alone(model: str, chip: str, precision: str = "", chips: int = 0) -> Served | None:
    """One user's speed at the vendor's own service, at a short prompt; `chips` 0: the vendor's own number.

    None for chips that users run themselves. Raises `UsageError` for a model that cannot be laid out there.
    """
    part = get_chip(chip)
    runtime = next(iter(runtimes_for(part)), None)
    if runtime is None or runtime.access != "vendor" or runtime.service is None:
        return None
    service = runtime.service
    run = SpeedRun(
        "", named_config(model), part, chips, precision, CONTEXT, 1.0, False, service.stored, bool(service.drafts_since)
    )
    known = shipped_parameters()
    case = Case.of(run, known)
    speed = partial(_speed, case)
    drafts = known.speeds.values({"kind": np.array([part.kind])})["drafts"].item()
    return Served(
        round(float(np.min(np.asarray(case.sharded.layout.devices))) / part.devices_per_package),
        (held := case.sharded.graph.model.precision.name),
        precision or (service.stored if held == service.stored else ""),
        speed(1.0),
        speed(drafts) if case.drafted else None,
        service.drafts_since,
    )


def _speed(case: Case, drafts: float) -> Figure:
    return figure(judged(case.run, 1.0 / case.seconds(case.costs, drafts)))
