"""No operator of a pass is faster than its roofline, whatever served workloads said of its part."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chipwise.calibrate.fit_serving import served_overheads
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.chips import get_chip
from chipwise.catalog.configs import find_config
from chipwise.cost.device import Device
from chipwise.cost.time import time
from chipwise.parallel.layout import Layout
from chipwise.parallel.shard import shard
from chipwise.predict.parts import PARTS
from chipwise.predict.passes import tabulate
from chipwise.predict.pieces import pieces
from chipwise.predict.step import HELD, step_cost, step_parts
from chipwise.workload.build import build
from chipwise.workload.load import load_model
from chipwise.workload.step import decode, prefill

NUMBERS = shipped_parameters()
CASES = (
    ("meta-llama/Llama-3.1-8B", "rtx-4090", 1.0),
    ("meta-llama/Llama-3.1-8B", "rtx-3090", 1.0),
    ("meta-llama/Llama-3.1-70B", "h100-sxm5-80gb", 4.0),
    ("openai/gpt-oss-120b", "h100-sxm5-80gb", 1.0),
)


@pytest.mark.parametrize("factor", [0.3, 1.0])
@pytest.mark.parametrize(("model", "chip", "tp"), CASES)
def test_no_operator_beats_its_roofline_under_factors(
    model: str, chip: str, tp: float, factor: float
) -> None:
    hardware = get_chip(chip)
    device = Device.of(hardware)
    costs = NUMBERS.cost("simt", "vllm", [hardware]).take(np.zeros((), dtype=np.intp))
    served = served_overheads(NUMBERS, "simt", "vllm", [hardware], "llama").take(np.zeros((), dtype=np.intp))
    factors = {part: factor * np.asarray(value) for part, value in served.factors.items()}
    overheads = replace(served, factors=factors)
    sharded = shard(build(load_model(find_config(model))), Layout(tp))
    for step in (decode(16.0, 1000.0), prefill(1.0, 2048.0)):
        found = pieces(sharded, step, device, costs, overheads)
        assert sum(p.seconds for p in found.values()) == pytest.approx(
            float(step_cost(sharded, step, device, costs, overheads).total_s)
        )
        bounds: dict[str, float] = {}
        for repeat, op in sharded.ops(step):
            if op.kind in HELD:  # what caches make faster is not made faster still
                alone = time(op, device, costs)
                body = float(np.asarray(alone.total_s - alone.exposed.get("launch", 0.0)))
                read = (op.weight_bytes + op.kv_bytes) / device.memory_bytes_per_s
                least = min(float(np.asarray(np.maximum(op.flops / device.matrix[op.compute], read))), body)
                bounds[op.name] = bounds.get(op.name, 0.0) + float(np.asarray(repeat)) * least
        for name, bound in bounds.items():
            assert found[name].seconds >= bound * (1 - 1e-9)


def test_tables_of_passes_keep_the_same_floors() -> None:
    hardware = get_chip("h100-sxm5-80gb")
    device = Device.of(hardware)
    costs = NUMBERS.cost("simt", "vllm", [hardware]).take(np.zeros((), dtype=np.intp))
    plain = NUMBERS.overheads("simt", "vllm")
    sharded = shard(build(load_model(find_config("meta-llama/Llama-3.1-8B"))), Layout())
    table = tabulate(
        lambda step: step_parts(sharded, step, device, costs, plain),
        np.array([1000.0]),
        np.array([200.0]),
        np.array([4096.0]),
        batches=np.array([1.0, 16.0]),
    )
    tenth = table.passes(np.full(len(PARTS), 0.1))
    assert np.all(table.passes(np.zeros(len(PARTS))).alone_s > 0)
    assert tenth.decode_s[0, 0] < tenth.mixed_s[0, 0] < table.passes(np.ones(len(PARTS))).mixed_s[0, 0]
    direct = step_cost(
        sharded, prefill(1.0, 1000.0), device, costs, replace(plain, factors=dict.fromkeys(PARTS, 0.1))
    )
    assert tenth.alone_s[0] == pytest.approx(float(np.asarray(direct.total_s)), rel=0.02)
