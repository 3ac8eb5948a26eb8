"""Few rows are multiplied on the vector lanes by runtimes that do so: weights stream, tiles are not padded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.chips import get_chip
from chipwise.cost.cost import Cost
from chipwise.cost.device import Device
from chipwise.cost.price import price
from chipwise.cost.simt.family import SimtParameters
from chipwise.units import Real
from chipwise.workload.formats import FORMATS
from chipwise.workload.op import gemm

CHIPS = ("rtx-4090", "a100-pcie-80gb", "m2-ultra", "rx-7900-xtx")


def cost(chip: str, runtime: str, rows: Real, weight: str = "int4", **changes: object) -> Cost:
    found = get_chip(chip)
    numbers = shipped_parameters().cost("simt", runtime, [found]).take(np.array(0))
    assert isinstance(numbers, SimtParameters)
    numbers = replace(numbers, **changes)  # type: ignore[arg-type]
    op = gemm(rows, 4096.0, 4096.0, FORMATS[weight], FORMATS["fp16"])
    return price(op, Device.of(found), numbers)


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
    few, padded = cost(chip, "llama.cpp", rows), cost(chip, "llama.cpp", rows, vector=None)
    assert np.all(np.asarray(few.total_s) <= np.asarray(padded.total_s) * (1 + 1e-9))


@pytest.mark.parametrize("chip", CHIPS)
def test_more_rows_are_never_faster(chip: str) -> None:
    seconds = np.asarray(cost(chip, "llama.cpp", np.arange(1.0, 33.0)).total_s)
    assert np.all(np.diff(seconds) >= -1e-12)


@pytest.mark.parametrize(
    ("chip", "runtime", "weight", "peak", "least", "most"),
    [
        ("rtx-4090", "llama.cpp", "int4", 660.6e12, 0.18, 0.251),
        ("rtx-3090", "llama.cpp", "fp16", 142.3e12, 0.30, 0.47),
        ("m2-ultra", "llama.cpp", "int4", 27.0e12, 0.45, 0.66),
        ("m4-max", "mlx", "fp16", 17.2e12, 0.60, 0.86),
    ],
)
def test_many_rows_reach_the_share_of_the_runtimes_own_kernels(
    chip: str, runtime: str, weight: str, peak: float, least: float, most: float
) -> None:
    seconds = float(cost(chip, runtime, 2048.0, weight).total_s)
    assert least < 2.0 * 2048 * 4096**2 / seconds / peak < most


def test_launches_cost_more_where_nothing_captures_graphs() -> None:
    launches = {chip: float(cost(chip, "llama.cpp", 1.0).exposed["launch"]) for chip in CHIPS}
    assert launches["m2-ultra"] == launches["rx-7900-xtx"] > 2.0 * launches["rtx-4090"]
    assert cost("m2-ultra", "vllm", 1.0).exposed["launch"] == pytest.approx(launches["rtx-4090"])
