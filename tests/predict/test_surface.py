"""The grid of batches: how far off step times are between its points."""

from __future__ import annotations

import numpy as np
import pytest

from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.chips import get_chip
from chipwise.catalog.configs import find_config
from chipwise.cost.cost import Cost
from chipwise.cost.device import Device
from chipwise.parallel.layout import Layout
from chipwise.parallel.shard import shard
from chipwise.predict.step import step_cost
from chipwise.predict.surface import batch_grid
from chipwise.units import Array
from chipwise.workload.build import build
from chipwise.workload.load import load_model
from chipwise.workload.step import Step, decode, prefill

PROMPT = 2000.0
BATCHES = batch_grid(1024)

MODELS = ("meta-llama/Llama-3.1-8B", "Qwen/Qwen3-30B-A3B", "openai/gpt-oss-120b")
CHIPS = (("h100-sxm5-80gb", "vllm"), ("mi300x", "sglang"), ("tpu-v5e", "vllm-tpu"))


def pricing(model: str, chip: str, runtime: str, layout: Layout):  # type: ignore[no-untyped-def]
    device = Device.of(get_chip(chip))
    numbers = shipped_parameters()
    rates = numbers.efficiency(device.family, runtime), numbers.overheads(device.family, runtime)
    sharded = shard(build(load_model(find_config(model))), layout)

    def cost_of(step: Step) -> Cost:
        return step_cost(sharded, step, device, *rates)

    return cost_of


def by_family(model: str, chip: str, runtime: str):  # type: ignore[no-untyped-def]
    """Seconds of a decode pass by the mechanics of the chip's family."""
    numbers, hardware = shipped_parameters(), get_chip(chip)
    sharded = shard(build(load_model(find_config(model))), Layout(4.0))
    costs = numbers.cost(hardware.family, runtime, [hardware]).take(np.array(0))
    overheads = numbers.overheads(hardware.family, runtime)

    def seconds(batch: Array) -> Array:
        step = decode(batch, 2000.0)
        return np.asarray(step_cost(sharded, step, Device.of(hardware), costs, overheads).total_s)

    return seconds


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("chip", "runtime"), CHIPS)
def test_between_grid_points_the_error_is_under_a_hundredth(model: str, chip: str, runtime: str) -> None:
    cost_of = pricing(model, chip, runtime, Layout(4.0))
    batch = np.exp(np.random.default_rng(3).uniform(0.0, np.log(1024), 2000))
    for prompts in (0.0, 1.0):

        def seconds(b: Array, prompts: float = prompts) -> Array:
            step = decode(b, 2000.0)
            return np.asarray(cost_of(step + prefill(prompts, PROMPT) if prompts else step).total_s)

        between = np.interp(batch, BATCHES, seconds(BATCHES))
        assert np.abs(between / seconds(batch) - 1).max() < 0.01


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("chip", "runtime"),
    [
        ("tpu-v6e", "vllm-tpu"),
        ("trainium2", "neuronx"),
        ("xeon-6980p", "vllm-cpu"),
        ("groq-lpu1", "groq-cloud"),
        ("wse3-cs3", "cerebras-inference"),
        ("sn40l", "sambanova"),
    ],
)
def test_chips_other_than_gpus_are_close_to_linear_in_the_batch(model: str, chip: str, runtime: str) -> None:
    seconds = by_family(model, chip, runtime)
    batch = np.arange(1.0, 1024.0)
    assert np.all(np.diff(seconds(batch)) >= -1e-12)
    assert np.abs(np.interp(batch, BATCHES, seconds(BATCHES)) / seconds(batch) - 1).max() < 0.01


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("chip", "runtime"), CHIPS[:2])
def test_between_grid_points_kernels_step_by_a_tile(model: str, chip: str, runtime: str) -> None:
    seconds = by_family(model, chip, runtime)
    batch = np.arange(1.0, 1024.0)
    error = np.abs(np.interp(batch, BATCHES, seconds(BATCHES)) / seconds(batch) - 1)
    assert np.all(np.diff(seconds(batch)) >= 0)
    assert np.median(error) < 0.02
    assert error.max() < 0.15


def test_the_batch_grid() -> None:
    assert batch_grid(20).tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20]
    grid = batch_grid(4096)
    assert (grid[0], grid[-1]) == (1, 4096)
    assert np.all(grid == np.round(grid))
    assert np.all(np.diff(grid) > 0)
    assert np.max(grid[4:] / grid[3:-1]) <= 1.25
    assert batch_grid(1).tolist() == [1]
