"""The suite `token_speeds`: published output speeds per user of dataflow machines and GPUs.

A speed is that of one pass with one row of the plan that a service is taken to run, priced as every other plan:
the smallest machine that holds the model, whole nodes where chips have memory of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from chipwise.api.loaded import load_generating
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.catalog.runtime import runtimes_for
from chipwise.cost.device import Device
from chipwise.cost.price import CostParameters
from chipwise.errors import ChipwiseError, UsageError
from chipwise.evidence.judge import PROVISIONAL
from chipwise.evidence.rows import Predicted, read_rows
from chipwise.evidence.speed_rows import SpeedRun, read_speed
from chipwise.parallel.layout import Layout, Reason, check_layout, illegal
from chipwise.parallel.shard import Sharded, shard
from chipwise.predict.overheads import Overheads
from chipwise.predict.step import step_cost
from chipwise.search.deployments import machine_for
from chipwise.search.memory import account_of
from chipwise.search.space import Deployment, Limits, layouts_for
from chipwise.workload.graph import Graph
from chipwise.workload.step import decode

__all__ = ["METRIC", "Case", "predict_speeds", "seconds_per_token"]

METRIC = "tokens_per_s_per_user"
GPUS = (1, 2, 4, 8)
DRAFTED = 10e9  # active parameters of models that are large enough to have others draft for them
MOST = 4096  # devices of one replica


def predict_speeds(path: str, numbers: Parameters | None = None) -> Iterator[Predicted]:
    """`tokens_per_s_per_user` of every row; measured columns are not read. A row that cannot be answered
    (speculative decoding, an unknown part or model) becomes a line with the reason."""
    parameters = numbers or shipped_parameters()
    low, high = PROVISIONAL[METRIC]
    for row in read_rows(path, ("row_id", "chip", "model_family")):
        try:
            speed = 1.0 / seconds_per_token(read_speed(row), parameters)
        except ChipwiseError as error:
            yield Predicted(row["row_id"], METRIC, None, refused=str(error))
            continue
        yield Predicted(row["row_id"], METRIC, speed, speed * low, speed * high, "modelled")


def seconds_per_token(run: SpeedRun, numbers: Parameters) -> float:
    """Seconds of one token of one user. Raises `UsageError` for a model that cannot be laid out."""
    case = Case.of(run, numbers)
    drafts = numbers.speeds.values({"kind": np.array([run.chip.kind])})["drafts"].item()
    return case.seconds(case.costs, drafts)


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
            seconds += self.eager_s * sum(
                float(np.asarray(n)) * op.launches for n, op in self.sharded.ops(step)
            )
        return seconds / drafts if self.drafted else seconds


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
    return Layout(*(np.asarray(columns.part(p))[good] for p in ("tp", "pp", "dp", "ep")))


def _parts(run: SpeedRun, graph: Graph, device: Device) -> Layout:
    sizes = [run.chips * run.chip.devices_per_package] if run.chips else GPUS
    for tp in sizes:
        layout = Layout(tp=float(tp))
        fits = graph.weight_bytes() / tp < 0.9 * float(device.memory_bytes)
        if check_layout(graph, layout) is Reason.OK and fits:
            return layout
    raise UsageError(f"{graph.model.name} does not fit on {sizes[-1]} x {run.chip.id}")
