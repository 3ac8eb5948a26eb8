"""Step times on a grid: what is tabulated, and how far off it is in between."""

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
from chipwise.predict.surface import StepSurface, batch_grid, step_surface
from chipwise.units import Array
from chipwise.workload.build import build
from chipwise.workload.load import load_model
from chipwise.workload.step import Step, decode, prefill

PROMPT = 2000.0
BATCHES, CONTEXTS = batch_grid(1024), 2.0 ** np.arange(8, 18)
PROMPTS = np.concatenate([[0.0], batch_grid(8192)])

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


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("chip", "runtime"), CHIPS)
def test_between_grid_points_the_error_is_under_a_hundredth(model: str, chip: str, runtime: str) -> None:
    cost_of = pricing(model, chip, runtime, Layout(4.0))
    surface = step_surface(cost_of, BATCHES, PROMPTS, CONTEXTS, PROMPT)
    rng = np.random.default_rng(3)

    def between(low: float, high: float) -> Array:
        return np.exp(rng.uniform(np.log(low), np.log(high), 2000))

    batch, prompt, context = between(1, 1024), between(1, 8192), between(256, 131072)
    mixed = cost_of(decode(batch, context) + prefill(prompt / PROMPT, PROMPT)).total_s
    plain = cost_of(decode(batch, context)).total_s
    assert np.abs(surface.time_s(batch, prompt, context) / mixed - 1).max() < 0.01
    assert np.abs(surface.time_s(batch, 0.0, context) / plain - 1).max() < 0.01


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("chip", "runtime"), CHIPS[:2])
def test_between_grid_points_kernels_step_by_a_tile(model: str, chip: str, runtime: str) -> None:
    numbers, hardware = shipped_parameters(), get_chip(chip)
    sharded = shard(build(load_model(find_config(model))), Layout(4.0))
    costs = numbers.cost("simt", runtime, [hardware]).take(np.array(0))
    overheads = numbers.overheads("simt", runtime)

    def seconds(batch: Array) -> Array:
        step = decode(batch, 2000.0)
        return np.asarray(step_cost(sharded, step, Device.of(hardware), costs, overheads).total_s)

    batch = np.arange(1.0, 1024.0)
    error = np.abs(np.interp(batch, BATCHES, seconds(BATCHES)) / seconds(batch) - 1)
    assert np.all(np.diff(seconds(batch)) >= 0)
    assert np.median(error) < 0.02
    assert error.max() < 0.15


def test_grid_points_are_exact() -> None:
    cost_of = pricing(*("meta-llama/Llama-3.1-8B", "h100-sxm5-80gb", "vllm"), Layout())
    surface = step_surface(cost_of, BATCHES, PROMPTS, CONTEXTS, PROMPT)
    assert surface.total_s().shape == (len(BATCHES), len(PROMPTS), len(CONTEXTS))
    for i, j, k in ((0, 0, 0), (7, 0, 3), (20, 25, 9), (-1, -1, -1)):
        step = decode(BATCHES[i], CONTEXTS[k])
        if PROMPTS[j]:
            step = step + prefill(PROMPTS[j] / PROMPT, PROMPT)
        direct = float(np.asarray(cost_of(step).total_s))
        assert surface.total_s()[i, j, k] == pytest.approx(direct, rel=1e-12)
        assert surface.time_s(BATCHES[i], PROMPTS[j], CONTEXTS[k]) == pytest.approx(direct, rel=1e-12)


def test_a_pass_without_a_prompt_launches_no_kernels_for_one() -> None:
    cost_of = pricing("meta-llama/Llama-3.1-8B", "h100-sxm5-80gb", "vllm", Layout())
    surface = step_surface(cost_of, np.array([1.0]), np.array([0.0, 1.0]), np.array([100.0]), 1.0)
    without, with_one = np.asarray(surface.cost.exposed["launch"])[0, :, 0]
    launch_s = shipped_parameters().efficiency("simt", "vllm").launch_s
    assert with_one - without == pytest.approx(32 * launch_s), "attention of the prompt, in each of 32 layers"
    assert without == pytest.approx(float(np.asarray(cost_of(decode(1.0, 100.0)).exposed["launch"])))


def toy(step: Step) -> Cost:
    """Bilinear in batch and context, so that interpolation is exact; 1 ms per prompt token."""
    first, *rest = step.segments
    prompt = rest[0].batch * rest[0].q if rest else 0.0
    return Cost(
        {"memory": 1.0 + 0.1 * first.batch + 1e-3 * first.batch * (first.kv - 1), "compute": 1e-3 * prompt}
    )


GRID = (np.array([1.0, 4.0, 8.0]), np.array([0.0, 100.0]), np.array([10.0, 1000.0]))


@pytest.fixture
def surface() -> StepSurface:
    return step_surface(toy, *GRID, prompt_length=50.0)


def test_linear_functions_are_interpolated_exactly(surface: StepSurface) -> None:
    assert surface.time_s(3.0, 30.0, 400.0) == pytest.approx(1 + 0.3 + 1e-3 * 3 * 400 + 0.03)


def test_outside_the_grid_the_edge_holds(surface: StepSurface) -> None:
    assert surface.time_s(0.0, 0.0, 10.0) == surface.time_s(1.0, 0.0, 10.0)
    assert surface.time_s(99.0, 1e9, 1e9) == surface.time_s(8.0, 100.0, 1000.0)
    assert surface.time_s(2.0) == surface.time_s(2.0, 0.0, 10.0), "by default no prompt, the first context"


def test_arguments_broadcast(surface: StepSurface) -> None:
    batch, context = np.array([[1.0], [3.0], [7.0]]), np.array([20.0, 500.0])
    found = surface.time_s(batch, 10.0, context)
    assert found.shape == (3, 2)
    assert found[2, 1] == pytest.approx(float(surface.time_s(7.0, 10.0, 500.0)))


def test_a_grid_of_one_point_is_constant() -> None:
    one = step_surface(toy, np.array([4.0]), np.array([0.0]), np.array([10.0]), 50.0)
    assert one.time_s(1.0, 5.0, 99.0) == one.time_s(4.0, 0.0, 10.0) == pytest.approx(1 + 0.4 + 0.04)


def test_leading_axes_are_deployments() -> None:
    speed = np.array([1.0, 2.0, 5.0])[:, None, None, None]
    many = step_surface(lambda step: toy(step) * (1 / speed), *GRID, prompt_length=50.0)
    one = step_surface(toy, *GRID, prompt_length=50.0)
    assert many.total_s().shape == (3, 3, 2, 2)
    batch = np.array([2.0, 3.0, 6.0])
    found = many.time_s(batch, 20.0, 300.0)
    for i in range(3):
        assert found[i] == pytest.approx(float(one.time_s(float(batch[i]), 20.0, 300.0)) / speed.flat[i])


def test_hidden_time_is_tabulated_too() -> None:
    found = step_surface(
        lambda step: Cost({"memory": step.tokens}, {"compute": 0.5 * step.tokens}), *GRID, prompt_length=50.0
    )
    assert np.array_equal(2 * np.asarray(found.cost.hidden["compute"]), found.cost.exposed["memory"])
    assert found.cost.exposed["memory"].shape == (3, 2, 2)  # type: ignore[union-attr]


def test_the_batch_grid() -> None:
    assert batch_grid(20).tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20]
    grid = batch_grid(4096)
    assert (grid[0], grid[-1]) == (1, 4096)
    assert np.all(grid == np.round(grid))
    assert np.all(np.diff(grid) > 0)
    assert np.max(grid[4:] / grid[3:-1]) <= 1.25
    assert batch_grid(1).tolist() == [1]
