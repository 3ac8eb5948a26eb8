"""Kernels of local runtimes: streamed weights, micro-batches, few rows of experts, pipelines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chipwise.api.loaded import load_generating
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.chip import Family
from chipwise.catalog.chips import get_chip
from chipwise.catalog.runtime import get_runtime
from chipwise.cost.device import Device
from chipwise.cost.local import APART, LocalModel, LocalNumbers, local_time
from chipwise.cost.price import price
from chipwise.parallel.layout import Layout
from chipwise.parallel.shard import shard
from chipwise.units import Real
from chipwise.workload.formats import FORMATS
from chipwise.workload.op import Op, attention, gemm
from chipwise.workload.step import prefill

PLAIN = LocalNumbers(
    stream=0.5, cache=0.25, barrier_s=0.0, kernel_s=1e-5, lanes=0.5, packed=0.25, half=0.5, rows=128.0, attention=0.25,
    softmax=256.0, pipelined=1.0,
)  # fmt: skip
MODEL = LocalModel(PLAIN, 512.0)
RUNTIME = {"m4-max": "mlx"}
CHIPS = ("rtx-4090", "a100-pcie-80gb", "m2-ultra", "rx-7900-xtx", "epyc-9654", "m4-max")


def device(family: Family = "simt") -> Device:
    """100 TOP/s in 8 bits, 40 TFLOP/s in 16 and 20 on lanes, 1 TB/s."""
    plain = Device.of(get_chip("rtx-4090"))
    matrix = {**plain.matrix, "int8": 100e12, "fp16": 40e12, "bf16": 40e12}
    return replace(plain, matrix=matrix, vector_flops_per_s=20e12, memory_bytes_per_s=1e12, family=family)


def product(rows: Real, weight: str = "int4") -> Op:
    return gemm(rows, 4096.0, 4096.0, FORMATS[weight], FORMATS["fp16"])


def test_one_row_streams_packed_weights() -> None:
    op = product(1.0)
    # 8.72 MB at half of 1 TB/s: 17.45 us; 5 operations for each of 16.8 M weights at half of 20 T/s: 8.39 us
    memory, compute = float(op.bytes) / 0.5e12, 5.0 * 4096**2 / 10e12
    assert memory == pytest.approx(17.49e-6, rel=1e-2)
    assert compute == pytest.approx(8.39e-6, rel=1e-3)
    together = (memory**3 + compute**3) ** (1 / 3)
    assert local_time(op, device(), MODEL).total_s == pytest.approx(1e-5 + together)


def test_a_prompt_reads_all_weights_once_a_micro_batch() -> None:
    one, four = (local_time(product(rows), device(), MODEL) for rows in (512.0, 2048.0))
    assert four.total_s == pytest.approx(4.0 * float(one.total_s))
    wide = local_time(product(2048.0), device(), replace(MODEL, micro_batch=2048.0))
    assert float(wide.total_s) < float(four.total_s)
    # 2 x 512 x 4096^2 operations at a quarter of 100 TOP/s: 687 us, beside 26 us of traffic
    assert one.exposed["compute"] == pytest.approx(687e-6, rel=1e-2)


def test_short_prompts_and_experts_with_few_rows_fill_less_of_a_tile() -> None:
    def seconds(rows: float) -> float:
        many = replace(PLAIN, lanes=1e-6, kernel_s=0.0, stream=1.0)
        return float(local_time(product(rows), device(), replace(MODEL, numbers=many)).total_s)

    # (1 + 128 / 32) / (1 + 128 / 512) = 4 times as long for an operation as in a full micro-batch
    assert seconds(32.0) / 32.0 == pytest.approx(4.0 * seconds(512.0) / 512.0, rel=1e-2)


def test_keys_and_values_stream_at_a_rate_of_their_own() -> None:
    op = attention(1.0, 1.0, 32768.0, 32.0, 8.0, 128.0, FORMATS["fp16"])
    # 134 MB at a quarter of 1 TB/s: 537 us
    assert local_time(op, device(), MODEL).total_s == pytest.approx(547e-6, rel=0.05)


def test_attention_of_prompts_pays_for_its_exponents() -> None:
    def of(width: float) -> float:
        op = attention(1.0, 512.0, 8192.0, 16.0, 16.0, width, FORMATS["fp16"])
        tiles = replace(MODEL, numbers=replace(PLAIN, lanes=1e-6))
        return float(local_time(op, device(), tiles).exposed["compute"])

    # 2 x (64 + 64) + 256 operations a pair against 2 x (128 + 128) + 256
    assert of(128.0) / of(64.0) == pytest.approx(768.0 / 512.0, rel=2e-2)


def test_stages_work_on_micro_batches_in_turn() -> None:
    op = product(1024.0)
    alone, staged = (float(local_time(op, device(), m).total_s) for m in (MODEL, MODEL.staged(4.0)))
    assert staged / alone == pytest.approx((4 + 2 - 1) / (4 * 2))
    half = replace(MODEL, numbers=replace(PLAIN, pipelined=0.5)).staged(4.0)
    assert float(local_time(op, device(), half).total_s) / alone == pytest.approx(1.0 - 0.5 * 3 / 8)
    one = product(1.0)
    assert local_time(one, device(), MODEL.staged(4.0)).total_s == local_time(one, device(), MODEL).total_s


def test_sockets_multiply_packed_weights_by_dot_products_of_bytes() -> None:
    socket = device(family="cpu")
    packed, wide = product(8.0), product(8.0, "fp16")
    faster = replace(MODEL, numbers=replace(PLAIN, packed=1e-6, half=1e-6))
    assert (
        local_time(packed, socket, faster).exposed["compute"] < local_time(packed, device(), faster).exposed["compute"]
    )
    assert local_time(wide, socket, faster).total_s == local_time(wide, device(), faster).total_s


def of_experts(tokens: float) -> Op:
    """The routed experts of one layer of a model with 128 of which 8 work on a token."""
    graph = load_generating("Qwen/Qwen3-30B-A3B", "q4_k_m").graph
    return next(op for _, op in shard(graph, Layout()).ops(prefill(1.0, tokens)) if op.kind == "experts")


def test_processors_multiply_experts_row_by_row() -> None:
    op, socket = of_experts(512.0), device(family="cpu")
    cost = local_time(op, socket, MODEL)
    # each multiply-add takes its weight anew; half of 100 TOP/s is above the type's 40
    weights = float(op.flops) / 2.0
    assert cost.exposed["compute"] + cost.exposed["memory"] == pytest.approx(
        (float(op.flops) + 3.0 * weights) / 40e12, rel=0.1
    )
    twice = local_time(of_experts(1024.0), socket, MODEL)
    assert float(twice.exposed["compute"]) == pytest.approx(2.0 * float(cost.exposed["compute"]), rel=0.05)


def test_hosts_sort_rows_of_experts_for_every_matrix() -> None:
    def added(tokens: float) -> float:
        op = of_experts(tokens)
        both = (local_time(op, device(), replace(MODEL, sorts=s)) for s in (0.0, 1.0))
        plain, sorting = (float(cost.total_s) for cost in both)
        return sorting - plain

    # 128 experts, 8 choices of each token and 3 matrices, 2 ns each
    assert added(2048.0) == pytest.approx(128 * 2048 * 8 * 3 * 2e-9)
    assert added(1.0) == 0.0


def test_experts_that_are_products_for_themselves_are_launched_each() -> None:
    def added(tokens: float, single_from: float) -> float:
        op = of_experts(tokens)
        both = (local_time(op, device(), replace(MODEL, single_from=s)) for s in (np.inf, single_from))
        together, single = (float(cost.total_s) for cost in both)
        return single - together

    # two kernels of 1e-5 s for each of 8 experts and 3 matrices; a micro-batch of 512 finds all 128
    assert added(1.0, 1.0) == pytest.approx(2 * 8 * 3 * 1e-5)
    assert added(1.0, 2.0) == 0.0
    assert added(512.0, 2.0) == pytest.approx(2 * 128 * 3 * 1e-5, rel=0.01)
    assert added(1024.0, 2.0) == pytest.approx(2.0 * added(512.0, 2.0))


def test_experts_in_many_kernels_wait_for_each_of_them() -> None:
    op = of_experts(1.0)
    fused, apart = (float(local_time(op, device(), replace(MODEL, unfused=n)).total_s) for n in (1.0, 2.75))
    assert apart - fused == pytest.approx(1.75 * float(op.launches) * 1e-5)
    dense = product(1.0)
    assert local_time(dense, device(), replace(MODEL, unfused=2.75)).total_s == pytest.approx(
        local_time(dense, device(), MODEL).total_s
    )


def test_processors_fuse_no_kernels_of_experts() -> None:
    op, socket = of_experts(1.0), device(family="cpu")
    slow = replace(MODEL, numbers=replace(MODEL.numbers, kernel_s=1e-5 + 1e-4))
    waits = float(local_time(op, socket, slow).total_s - local_time(op, socket, MODEL).total_s)
    assert waits == pytest.approx(APART * float(op.launches) * 1e-4)


def test_threads_of_a_processor_wait_for_each_other() -> None:
    slow = replace(MODEL, numbers=replace(PLAIN, barrier_s=1e-9))
    small, large = (replace(device(family="cpu"), units=n) for n in (16.0, 192.0))
    waits = [
        float(local_time(product(1.0), d, slow).total_s - local_time(product(1.0), d, MODEL).total_s)
        for d in (small, large)
    ]
    assert waits == pytest.approx([16**2 * 1e-9, 192**2 * 1e-9])
    assert local_time(product(1.0), device(), slow).total_s == local_time(product(1.0), device(), MODEL).total_s


def shipped(chip: str, backend: str = "") -> LocalModel:
    found, runtime = get_chip(chip), get_runtime(RUNTIME.get(chip, "llama.cpp"))
    policies = runtime.policies_on(found)
    policies = replace(policies, backend=backend or policies.backend)
    model = shipped_parameters().cost(found.family, runtime.id, [found], policies=policies)
    assert isinstance(model, LocalModel)
    return model.take(np.array(0))


@pytest.mark.parametrize("chip", CHIPS)
def test_one_row_is_near_the_bandwidth_on_every_chip(chip: str) -> None:
    device = Device.of(get_chip(chip))
    op = product(1.0)
    streamed = float(op.bytes) / float(np.asarray(device.memory_bytes_per_s))
    cost = price(op, device, shipped(chip))
    busy = float(cost.total_s) - float(cost.exposed["launch"])
    assert streamed <= busy < 4.0 * streamed


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("weight", ["int4", "fp16"])
def test_more_rows_are_never_faster_and_less_a_row(chip: str, weight: str) -> None:
    rows = 2.0 ** np.arange(0.0, 13.0)
    seconds = np.asarray(price(product(rows, weight), Device.of(get_chip(chip)), shipped(chip)).total_s)
    assert np.all(np.diff(seconds) >= -1e-12)
    assert np.all(np.diff(seconds / rows) <= 1e-12)


def test_the_backend_and_the_age_of_the_software_move_the_answer() -> None:
    chip = get_chip("rtx-4090")
    vulkan = shipped("rtx-4090", backend="vulkan")
    assert vulkan.numbers != shipped("rtx-4090").numbers
    llama, numbers = get_runtime("llama.cpp"), shipped_parameters()
    old, new = (numbers.cost(chip.family, llama.id, [chip], software=when) for when in ("2024-05", ""))
    assert isinstance(old, LocalModel)
    assert isinstance(new, LocalModel)
    assert np.all(np.asarray(old.numbers.kernel_s) > np.asarray(new.numbers.kernel_s))
    assert old.numbers.stream == new.numbers.stream
