"""One pass: operators, exchanges and host, added up."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.chips import get_chip
from chipwise.catalog.configs import find_config
from chipwise.cost.cost import RESOURCES
from chipwise.cost.device import Device
from chipwise.cost.roofline import roofline, time
from chipwise.cost.simt.family import SimtParameters
from chipwise.parallel.layout import Layout
from chipwise.parallel.shard import shard
from chipwise.predict.speculative import verification
from chipwise.predict.step import step_cost
from chipwise.workload.build import build
from chipwise.workload.load import load_model
from chipwise.workload.precision import uniform
from chipwise.workload.step import Step, decode, prefill

LLAMA = build(load_model(find_config("meta-llama/Llama-3.1-8B")))
MIXTURE = build(load_model(find_config("Qwen/Qwen3-30B-A3B")))
H100 = Device.of(get_chip("h100-sxm5-80gb"))
EFFICIENCY = shipped_parameters().efficiency("simt", "vllm")
OVERHEADS = shipped_parameters().overheads("simt", "vllm")


def seconds(layout: Layout, step, device=H100, graph=LLAMA) -> float:  # type: ignore[no-untyped-def]
    return float(step_cost(shard(graph, layout), step, device, EFFICIENCY, OVERHEADS).total_s)


def test_one_device_is_operators_and_host() -> None:
    step = decode(16, 1000)
    cost = step_cost(shard(LLAMA, Layout()), step, H100, EFFICIENCY, OVERHEADS)
    operators = sum(float(n * time(op, H100, EFFICIENCY).total_s) for n, op in shard(LLAMA, Layout()).ops(step))
    host = OVERHEADS.iteration_s + 16 * OVERHEADS.sequence_s
    assert cost.exposed["network"] == 0
    assert cost.exposed["host"] == pytest.approx(host)
    assert cost.total_s == pytest.approx(operators + host)
    assert set(cost.exposed) <= set(RESOURCES)


def test_a_decode_step_takes_at_least_as_long_as_reading_the_weights() -> None:
    # 15 GB of layers and head at 3.35 TB/s: 4.5 ms, and at most twice that for one sequence
    read_s = (LLAMA.weight_bytes - LLAMA.weight_bytes_by_class["embedding"]) / 3.35e12
    assert read_s < seconds(Layout(), decode(1, 0)) < 2 * read_s


def test_no_pass_beats_the_roofline_of_its_operators() -> None:
    for step in (decode(1, 100), decode(256, 4000), prefill(1, 4000)):
        bound = sum(float(n * roofline(op, H100)) for n, op in shard(LLAMA, Layout()).ops(step))
        assert seconds(Layout(), step) > bound


def test_a_prompt_is_bound_by_its_products() -> None:
    flops = 2 * 4096 * (LLAMA.active_params() - 128256 * 4096)
    ideal = flops / H100.matrix["bf16"]
    assert ideal < seconds(Layout(), prefill(1, 4096)) < 2.5 * ideal


def test_exchanges_are_paid_and_not_hidden() -> None:
    step = decode(16, 1000)
    cost = step_cost(shard(LLAMA, Layout(4.0)), step, H100, EFFICIENCY, OVERHEADS)
    # once round the ring of four to gather, twice to sum
    links = OVERHEADS.links
    sums, gathers = (float(links.base_s + trips * 3 * links.step_s) for trips in (2, 1))
    rate = OVERHEADS.link_share * H100.link_bytes_per_s
    reduce_s = 1.5 * 16 * 4096 * 2 / rate
    gather_s = 0.75 * 16 * 128256 * 2 / rate
    assert cost.exposed["network"] == pytest.approx(65 * reduce_s + gather_s)
    assert "network" not in cost.hidden
    # starting an exchange is no matter of the links: it counts with the launch of kernels
    kernels = sum(float(r) * op.launches for r, op in shard(LLAMA, Layout(4.0)).ops(step))
    assert cost.exposed["launch"] == pytest.approx(65 * sums + gathers + kernels * EFFICIENCY.launch_s)


def test_stages_are_passed_one_after_the_other() -> None:
    step = decode(16, 1000)
    one = step_cost(shard(LLAMA, Layout()), step, H100, EFFICIENCY, OVERHEADS)
    four = step_cost(shard(LLAMA, Layout(pp=4.0)), step, H100, EFFICIENCY, OVERHEADS)
    rate = OVERHEADS.link_share * H100.link_bytes_per_s
    assert four.exposed["network"] == pytest.approx(3 * 16 * 4096 * 2 / rate)
    latency = float(OVERHEADS.links.base_s + OVERHEADS.links.step_s)
    assert four.exposed["launch"] == pytest.approx(one.exposed["launch"] + 3 * latency)
    # every stage has a host of its own that works for each micro-batch
    hosts = 3 * OVERHEADS.iteration_s
    assert four.exposed["host"] == pytest.approx(one.exposed["host"] + hosts)
    assert four.total_s == pytest.approx(one.total_s + hosts + 3 * latency + four.exposed["network"])


def test_stages_use_the_network_only_beyond_the_domain() -> None:
    slow = replace(H100, scaleout_bytes_per_s=1e9)
    step = decode(64, 1000)
    assert seconds(Layout(pp=8.0), step, slow) == seconds(Layout(pp=8.0), step)
    assert seconds(Layout(pp=16.0), step, slow) > seconds(Layout(pp=16.0), step)


def test_links_wired_chip_to_chip_are_slow_in_pairs() -> None:
    mesh = replace(H100, pairwise_bytes_per_s=H100.link_bytes_per_s / 7)
    step = prefill(1, 4096)

    def network(tp: float, device: Device) -> float:
        return float(step_cost(shard(LLAMA, Layout(tp)), step, device, EFFICIENCY, OVERHEADS).exposed["network"])

    assert network(8.0, mesh) == pytest.approx(network(8.0, H100))
    assert network(2.0, mesh) > 5 * network(2.0, H100)


def test_a_group_beyond_the_inner_fabric_runs_on_the_outer_one() -> None:
    bridged = replace(H100, near_domain=2.0, link_bytes_per_s=H100.link_bytes_per_s / 10)
    step = prefill(1, 4096)
    assert seconds(Layout(2.0), step, bridged) == pytest.approx(seconds(Layout(2.0), step))
    assert seconds(Layout(4.0), step, bridged) > seconds(Layout(4.0), step)


@pytest.mark.parametrize("graph", [LLAMA, MIXTURE], ids=["dense", "mixture"])
def test_more_of_anything_takes_longer(graph) -> None:  # type: ignore[no-untyped-def]
    sharded = shard(graph, Layout(2.0))

    def total(step):  # type: ignore[no-untyped-def]
        return np.asarray(step_cost(sharded, step, H100, EFFICIENCY, OVERHEADS).total_s)

    doubling = 2.0 ** np.arange(12)
    for seconds_ in (total(decode(doubling, 1000)), total(decode(8, 16 * doubling)), total(prefill(1, 8 * doubling))):
        assert np.all(np.diff(seconds_) > 0)
    assert total(decode(8, 1000) + prefill(1, 500)) > total(decode(8, 1000))


def test_more_ranks_split_the_work_with_less_and_less_gain() -> None:
    times = [seconds(Layout(tp), decode(64, 4000)) for tp in (1.0, 2.0, 4.0, 8.0)]
    assert all(b < a for a, b in pairwise(times))
    assert all(b > a / 2 for a, b in pairwise(times))


def test_layouts_devices_and_steps_broadcast() -> None:
    devices = [H100, Device.of(get_chip("mi300x")), Device.of(get_chip("a100-sxm4-80gb"))]
    layout = Layout(np.array([[1.0], [4.0]]), np.array([[1.0], [2.0]]), 1.0, 1.0)
    batch = np.array([1.0, 7.0, 64.0])
    together = np.asarray(
        step_cost(shard(MIXTURE, layout), decode(batch, 500), Device.stack(devices), EFFICIENCY, OVERHEADS).total_s
    )
    assert together.shape == (2, 3)
    for i, one in enumerate((Layout(), Layout(4.0, 2.0))):
        for j in range(3):
            alone = seconds(one, decode(float(batch[j]), 500), devices[j], MIXTURE)
            assert together[i, j] == pytest.approx(alone, rel=1e-12)


def kernels(chip: str, energy: float = 1.0) -> SimtParameters:
    """The kernel numbers of one chip, with so much more energy for an fp8 operation in long runs."""
    found = shipped_parameters().cost("simt", "vllm", [get_chip(chip)])
    assert isinstance(found, SimtParameters)
    return replace(found.take(np.zeros((), dtype=np.intp)), sustained={"fp8": energy})


def test_verifying_guesses_reads_the_cache_once() -> None:
    latent = build(load_model(find_config("deepseek-ai/DeepSeek-V3")))
    costs = kernels("h100-sxm5-80gb")
    for graph in (LLAMA, latent):
        one, three = (
            float(step_cost(shard(graph, Layout(tp=8.0, ep=8.0)), step, H100, costs, OVERHEADS).total_s)
            for step in (decode(64.0, 2000.0), verification(64.0, 2000.0, 2))
        )
        # three tokens in one pass: more than one of them, far less than a pass each
        assert one < three < 2.5 * one


def test_products_beside_many_decoding_rows_are_held_to_the_power_of_a_chip() -> None:
    graph = build(load_model(find_config("meta-llama/Llama-3.1-8B")).at_precision(uniform("fp8")))

    def slower(step: Step, chip: str) -> float:
        device = Device.of(get_chip(chip))
        long, short = (
            float(step_cost(shard(graph, Layout()), step, device, kernels(chip, e), OVERHEADS).total_s)
            for e in (1.5, 1.0)
        )
        return long / short

    full, few, prompt = decode(1024.0, 500.0), decode(4.0, 500.0), prefill(1.0, 4000.0)
    assert 1.05 < slower(full, "h100-pcie-80gb") < 1.5
    assert slower(full, "h100-pcie-80gb") > slower(full, "h100-sxm5-80gb") > 1.0
    assert slower(few, "h100-pcie-80gb") == pytest.approx(1.0, abs=0.01)
    assert slower(prompt, "h100-pcie-80gb") == 1.0


def test_halves_of_a_batch_hide_exchanges_over_a_network() -> None:
    """Never slower than a batch in one piece, faster where exchanges and work are both long; inside a domain alike."""
    overlapped = replace(OVERHEADS, two_batches=True)

    def both(layout: Layout, batch: float) -> tuple[float, float]:
        each = (
            step_cost(shard(MIXTURE, layout), decode(batch, 2000), H100, EFFICIENCY, o).total_s
            for o in (OVERHEADS, overlapped)
        )
        one, two = (float(np.asarray(x)) for x in each)
        return one, two

    one, two = both(Layout(dp=8.0, ep=8.0), 256.0)
    assert one == two
    for batch in (1.0, 16.0, 256.0, 1024.0):
        one, two = both(Layout(dp=64.0, ep=64.0), batch)
        assert two <= one
    assert two < 0.95 * one


def test_a_layer_of_latents_waits_between_its_kernels_where_software_does_not_fuse_them() -> None:
    numbers = shipped_parameters()
    chip = get_chip("mi300x")
    old, new = (
        float(numbers.as_installed(numbers.cost("simt", "sglang", [chip], software=when), "sglang", [chip], when)
              .latent_layer_s[0])  # type: ignore[union-attr, index]
        for when in ("2025-12", "")
    )  # fmt: skip
    assert old > new > 0.0
    plain = numbers.as_installed(numbers.cost("simt", "vllm", [chip]), "vllm", [chip])
    assert float(plain.latent_layer_s[0]) == 0.0  # type: ignore[union-attr, index]
