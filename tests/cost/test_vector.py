"""Few rows are multiplied on the vector lanes by runtimes that do so: weights stream, tiles are not padded."""

from __future__ import annotations

import numpy as np
import pytest

from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.chips import get_chip
from chipwise.cost.cost import Cost
from chipwise.cost.device import Device
from chipwise.cost.time import time
from chipwise.units import Real
from chipwise.workload.formats import FORMATS
from chipwise.workload.op import gemm

CHIPS = ("rtx-4090", "a100-pcie-80gb", "m2-ultra", "rx-7900-xtx")


def cost(chip: str, runtime: str, rows: Real, weight: str = "int4") -> Cost:
    found = get_chip(chip)
    numbers = shipped_parameters().cost("simt", runtime, [found]).take(np.array(0))
    op = gemm(rows, 4096.0, 4096.0, FORMATS[weight], FORMATS["fp16"])
    return time(op, Device.of(found), numbers)


@pytest.mark.parametrize("chip", CHIPS)
def test_one_row_is_bound_by_streaming_or_unpacking_its_weights(chip: str) -> None:
    device = Device.of(get_chip(chip))
    streamed = FORMATS["int4"].bytes(4096.0, 4096.0) / device.memory_bytes_per_s
    busy = float(cost(chip, "llama.cpp", 1.0).total_s) - 5e-6
    assert streamed <= busy + 5e-6
    assert busy < 4.0 * streamed


@pytest.mark.parametrize("chip", CHIPS)
def test_a_tile_never_wins_where_rows_are_few(chip: str) -> None:
    rows = np.array([1.0, 2.0, 4.0, 8.0])
    few, padded = cost(chip, "llama.cpp", rows), cost(chip, "vllm", rows)
    launches = np.asarray(few.exposed["launch"]) - np.asarray(padded.exposed["launch"])
    assert np.all(np.asarray(few.total_s) - launches <= np.asarray(padded.total_s) * (1 + 1e-9))


@pytest.mark.parametrize("chip", CHIPS)
def test_more_rows_are_never_faster(chip: str) -> None:
    seconds = np.asarray(cost(chip, "llama.cpp", np.arange(1.0, 33.0)).total_s)
    assert np.all(np.diff(seconds) >= -1e-12)


def test_many_rows_are_tiled() -> None:
    many = np.array([64.0, 512.0])
    for resource, seconds in cost("rtx-4090", "llama.cpp", many).exposed.items():
        if resource != "launch":
            assert seconds == pytest.approx(cost("rtx-4090", "vllm", many).exposed[resource])
