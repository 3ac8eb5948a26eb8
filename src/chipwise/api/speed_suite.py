"""The suite `token_speeds`: published output speeds per user of dataflow machines and GPUs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from chipwise.api.loaded import load_generating
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.catalog.runtime import runtimes_for
from chipwise.cost.device import Device
from chipwise.cost.single_stream import DataflowParameters
from chipwise.errors import ChipwiseError, UsageError
from chipwise.evidence.judge import PROVISIONAL
from chipwise.evidence.rows import Predicted, read_rows
from chipwise.evidence.speed_rows import SpeedRun, read_speed
from chipwise.parallel.layers import chips_for
from chipwise.parallel.layout import Layout, Reason, check_layout
from chipwise.parallel.shard import shard
from chipwise.predict.step import step_cost
from chipwise.predict.token_speed import DataflowSystem, token_cost
from chipwise.workload.graph import Graph
from chipwise.workload.step import decode

__all__ = ["METRIC", "predict_speeds", "seconds_per_token"]

METRIC = "tokens_per_s_per_user"
MEMORY_NODE = {"rdu": 16.0}
"""Sockets of the smallest machine that a service runs a model on."""


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
    graph = load_generating(run.config.name, run.precision or None).graph
    if run.chip.family == "dataflow":
        return _dataflow(run, graph, numbers)
    if run.chip.family == "simt":
        return _gpu(run, graph, numbers)
    raise UsageError(f"{run.chip.id}: no model of a single user's stream for this kind of chip yet")


def _dataflow(run: SpeedRun, graph: Graph, numbers: Parameters) -> float:
    chip, kind = run.chip, run.chip.kind
    device = Device.of(chip)
    rate = float(device.memory_bytes_per_s)
    if not np.isfinite(rate) or not np.isfinite(float(device.matrix["bf16"])):
        raise UsageError(f"{chip.id}: bandwidth or peak is not published")

    def of(name: str) -> float:
        return numbers.value(f"dataflow.{kind}.{name}", f"dataflow.{name}")

    least = MEMORY_NODE.get(kind, 1.0)
    chips = run.chips or float(chips_for(graph.weight_bytes(), float(device.memory_bytes), least))
    dtype = "int8" if run.precision == "fp8" and "int8" in chip.matrix else "bf16"
    system = DataflowSystem(
        chips, rate, float(device.matrix[dtype]), chip.memory.kind == "sram", of("crossing")
    )
    p = DataflowParameters(of("memory_share"), of("compute_share"), of("operation"), of("routed"))
    return float(np.asarray(token_cost(graph, run.context, system, p).total_s)) * run.batch


def _gpu(run: SpeedRun, graph: Graph, numbers: Parameters) -> float:
    runtime = next(iter(runtimes_for(run.chip)), None)
    if runtime is None:
        raise UsageError(f"no runtime is known for {run.chip.id}")
    device = Device.of(run.chip)
    sizes = [run.chips * run.chip.devices_per_package] if run.chips else [1, 2, 4, 8]
    for tp in sizes:
        layout = Layout(tp=float(tp))
        fits = graph.weight_bytes() / tp < 0.9 * float(device.memory_bytes)
        if check_layout(graph, layout) is Reason.OK and fits:
            break
    else:
        raise UsageError(f"{graph.model.name} does not fit on {sizes[-1]} x {run.chip.id}")
    costs = numbers.cost(device.family, runtime.id, (run.chip,)).take(np.zeros((), dtype=np.intp))
    sharded, step = shard(graph, layout), decode(run.batch, run.context)
    seconds = float(
        np.asarray(
            step_cost(sharded, step, device, costs, numbers.overheads(device.family, runtime.id)).total_s
        )
    )
    if run.eager:
        kernels = sum(float(np.asarray(repeat)) * op.launches for repeat, op in sharded.ops(step))
        seconds += kernels * numbers.value("runtime.eager.launch")
    return seconds
