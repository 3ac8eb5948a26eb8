"""Step time and memory of training: laws that hold whatever the fitted numbers are."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.chips import get_chip
from chipwise.catalog.configs import find_config
from chipwise.catalog.system import get_system
from chipwise.cost.device import DTYPES, Device
from chipwise.cost.price import price
from chipwise.cost.roofline import Efficiency
from chipwise.errors import UsageError
from chipwise.numeric import take
from chipwise.predict.training.cluster import cluster, on_system
from chipwise.predict.training.dims import plain, transformer
from chipwise.predict.training.layer import layer_time, traffic_of
from chipwise.predict.training.memory import MemoryRates, activation_bytes, memory_use, state_bytes
from chipwise.predict.training.operators import OperatorTable, TrainKernels, work_of
from chipwise.predict.training.result import goodput, step_flops, young_daly
from chipwise.predict.training.step import StepTime, rank_params, step_time
from chipwise.predict.training.values import Cluster, Recipe, TrainRates, TrainSpread
from chipwise.workload.build import build
from chipwise.workload.formats import FORMATS
from chipwise.workload.load import load_model
from chipwise.workload.op import gemm, pointwise

LLAMA = plain(32, 4096, 32, 14336, 128256, kv_heads=8, gated=True, tied=False)
H100 = Cluster(989e12, 989e12, 80e9, 3.35e12, 450e9, 8.0, 50e9)
IDEAL = Efficiency(dict.fromkeys(DTYPES, 1.0), 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 8.0)
CHIP = Device.of(get_chip("h100-sxm5-80gb"))
KERNELS = TrainKernels(CHIP, shipped_parameters().efficiency("simt", "any"))
ONE = TrainSpread(global_batch=8.0, seq=4096.0, zero=0.0)
PERFECT = TrainRates(linear=1.0, core=1.0, memory=1.0, host_s=0.0, moe_host_s=0.0, step_s=0.0, straggle=0.0)


USUAL = TrainRates()


def step(s: TrainSpread, c: Cluster = H100, r: TrainRates = USUAL, k: TrainKernels = KERNELS) -> StepTime:
    return step_time(LLAMA, s, c, Recipe(), r, work_of(LLAMA, s, Recipe(), k))


def seconds(s: TrainSpread, c: Cluster = H100, r: TrainRates = USUAL, k: TrainKernels = KERNELS) -> float:
    return float(step(s, c, r, k).total_s)


def test_parts_add_up() -> None:
    s = TrainSpread(tp=4.0, pp=4.0, dp=4.0, micro_batch=1.0, global_batch=64.0, seq=4096.0, shard=4.0)
    t = step(s)
    assert t.total_s == pytest.approx(sum(float(getattr(t, f.name)) for f in fields(t)))
    assert all(float(getattr(t, f.name)) >= -1e-12 for f in fields(t))


def test_no_step_is_faster_than_its_flops() -> None:
    flops = float(step_flops(LLAMA, ONE, "causal"))
    assert seconds(ONE, r=PERFECT, k=replace(KERNELS, numbers=IDEAL)) >= flops / 989e12 * 0.999


def test_one_device_communicates_nothing() -> None:
    t = step(ONE)
    for part in ("tp_s", "cp_s", "ep_s", "pp_s", "dp_s", "bubble_s", "straggle_s"):
        assert float(getattr(t, part)) == 0.0


def test_adam_moves_twenty_eight_bytes_a_parameter() -> None:
    """It reads the gradient and reads and writes the weight and both moments in fp32: 4 + 3 x 8."""
    t = step(ONE, r=PERFECT)
    params = float(np.asarray(rank_params(LLAMA, ONE)[0]))
    assert float(t.optimiser_s) == pytest.approx(28.0 * params / H100.memory_bytes_per_s)
    halved = step_time(LLAMA, ONE, H100, Recipe(moments=4.0), PERFECT, work_of(LLAMA, ONE, Recipe(), KERNELS))
    assert float(halved.optimiser_s) == pytest.approx(20.0 * params / H100.memory_bytes_per_s)


@pytest.mark.parametrize("resource", ["compute", "memory"])
def test_faster_devices_are_never_slower(resource: str) -> None:
    assert seconds(ONE, k=KERNELS.faster(**{resource: 2.0})) < seconds(ONE)


@given(st.sampled_from(["memory_bytes_per_s", "link_bytes_per_s", "nic_bytes_per_s"]))
def test_twice_a_bandwidth_is_never_slower(name: str) -> None:
    s = TrainSpread(tp=8.0, pp=2.0, dp=8.0, global_batch=256.0, seq=4096.0, shard=8.0)
    faster = replace(H100, **{name: 2.0 * float(getattr(H100, name))})
    assert seconds(s, faster) <= seconds(s) * (1.0 + 1e-12)


@given(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), st.sampled_from([0.0, 1.0, 3.0]))
def test_arrays_and_numbers_agree(tp: int, pp: int, dp: int, zero: float) -> None:
    n = 5
    s = TrainSpread(
        tp=np.full(n, 2.0**tp),
        pp=np.full(n, 2.0**pp),
        dp=np.full(n, 2.0**dp),
        zero=np.full(n, zero),
        shard=np.full(n, 2.0**dp),
        micro_batch=1.0,
        global_batch=64.0,
        seq=2048.0,
    )
    many = np.asarray(step(s).total_s)
    one = float(step(take(s, 3)).total_s)
    assert many.shape == (n,)
    assert many[3] == pytest.approx(one, rel=1e-12)


def test_recomputation_costs_time_and_saves_memory() -> None:
    full = replace(ONE, full=1.0)
    assert 1.2 < seconds(full) / seconds(ONE) < 1.45
    rates = MemoryRates()
    use, less = (float(memory_use(LLAMA, s, Recipe(), rates).of("activations")) for s in (ONE, full))
    assert less < 0.2 * use


def test_what_is_run_again_stops_before_the_last_product_of_a_layer() -> None:
    """No gradient reads what the down projection writes: 14,336 x 4,096 of a layer's products are not run again."""
    full = replace(ONE, full=1.0)
    work = work_of(LLAMA, full, Recipe(), KERNELS)
    whole, stops = (step_time(LLAMA, full, H100, Recipe(stops=flag), PERFECT, work).compute_s for flag in (0.0, 1.0))
    down = price(gemm(4096.0, 4096.0, 14336.0), CHIP, KERNELS.numbers).total_s
    assert float(whole - stops) == pytest.approx(8 * 32 * float(np.asarray(down)))
    kept = step_time(LLAMA, ONE, H100, Recipe(stops=1.0), PERFECT, work_of(LLAMA, ONE, Recipe(), KERNELS))
    assert float(kept.total_s) == pytest.approx(seconds(ONE, r=PERFECT))


def test_kernels_that_only_narrow_operands_take_time() -> None:
    """Every input, weight and gradient of a layer's products is read in 16 bit and written in 8 along both sides."""
    narrow = replace(KERNELS, narrow="mxfp8")
    fused, apart = (work_of(LLAMA, ONE, Recipe(quantises=flag), narrow) for flag in (0.0, 1.0))
    assert float(apart.forward_s) == float(fused.forward_s)
    inputs = 4096.0 * (3 * 4096 + 14336)
    weights = 4096.0 * (6144 + 4096 + 3 * 14336)
    one = price(pointwise((inputs + weights) * 3.0, 1.0), CHIP, KERNELS.numbers).total_s
    assert float(apart.narrow_in_s) == pytest.approx(float(np.asarray(one)), rel=0.02)
    took = [step_time(LLAMA, ONE, H100, Recipe(), PERFECT, work) for work in (fused, apart)]
    more = 8 * 32 * (apart.narrow_in_s + apart.narrow_back_s - fused.narrow_in_s - fused.narrow_back_s)
    assert float(took[1].passes_s - took[0].passes_s) == pytest.approx(float(np.asarray(more)))
    assert float(work_of(LLAMA, ONE, Recipe(quantises=1.0), KERNELS).narrow_in_s) == 0.0


def test_gradients_summed_in_fp32_take_a_third_more_of_the_wire() -> None:
    s = TrainSpread(dp=64.0, micro_batch=1.0, global_batch=64.0, seq=512.0, zero=3.0, shard=64.0)
    work = work_of(LLAMA, s, Recipe(), KERNELS)
    slow = replace(H100, nic_bytes_per_s=1e9)
    half, wide = (
        float(step_time(LLAMA, s, slow, Recipe(summed=b), replace(PERFECT, fsdp_overlap=1.0), work).dp_s)
        for b in (2.0, 4.0)
    )
    assert wide / half == pytest.approx(8.0 / 6.0, rel=0.01)


def test_adapters_skip_the_gradients_of_weights() -> None:
    assert 0.6 < seconds(replace(ONE, adapter=0.01)) / seconds(ONE) < 0.85


def test_a_stage_gathers_its_weights_once_a_step() -> None:
    def traffic(batch: float, **degrees: float) -> float:
        s = TrainSpread(**degrees, zero=3.0, shard=8.0, global_batch=batch, seq=4096.0)
        return float(step(s, r=replace(USUAL, fsdp_overlap=1.0)).dp_s)

    staged = {"pp": 2.0, "dp": 8.0}
    assert traffic(256.0, **staged) == pytest.approx(traffic(64.0, **staged))
    assert traffic(256.0, dp=8.0) == pytest.approx(4.0 * traffic(64.0, dp=8.0), rel=0.01)


def test_longer_pipelines_wait_longer_unless_filled() -> None:
    s = TrainSpread(pp=8.0, global_batch=16.0, seq=4096.0)
    plain_, interleaved = seconds(s), seconds(replace(s, vp=4.0))
    assert interleaved < plain_
    assert seconds(replace(s, bubble=1.0 / 3.0)) < plain_


@pytest.mark.parametrize(
    ("dims", "batch", "stages", "virtual", "none", "selective"),
    [
        ((48, 6144, 64), 4, 1, 1, 63.6192, 10.2677),
        ((105, 20480, 128), 1, 35, 3, 122.432, 24.7779),
        ((128, 25600, 160), 1, 64, 1, 140.929, 28.5213),
    ],
)
def test_activations_of_korthikanti(
    dims: tuple[int, int, int], batch: int, stages: int, virtual: int, none: float, selective: float
) -> None:
    """Reducing activation recomputation in large transformer models, figure 1 (GB, tensor parallel 8)."""
    layers, hidden, heads = dims
    t = plain(layers, hidden, heads, 4 * hidden, 51200)
    s = TrainSpread(
        tp=8.0,
        pp=float(stages),
        vp=float(virtual),
        micro_batch=float(batch),
        seq=2048.0,
        global_batch=float(batch * max(4 * stages, 1)),
        zero=0.0,
        sequence=0.0,
    )
    old = Recipe(flash=0.0)
    assert float(activation_bytes(t, s, old)) / 1e9 == pytest.approx(none, rel=2e-4)
    cut = replace(s, sequence=1.0, selective=1.0)
    assert float(activation_bytes(t, cut, old)) / 1e9 == pytest.approx(selective, rel=2e-4)


def test_zero_cuts_state_in_order() -> None:
    s = TrainSpread(dp=64.0, global_batch=64.0, shard=64.0)
    totals = [sum(float(x) for x in state_bytes(LLAMA, replace(s, zero=z), Recipe())) for z in (0.0, 1.0, 2.0, 3.0)]
    assert totals == sorted(totals, reverse=True)
    assert totals[0] == pytest.approx(18.0 * float(LLAMA.params), rel=0.01)


@pytest.mark.parametrize("name", ["meta-llama/Llama-3.1-8B", "Qwen/Qwen3-30B-A3B", "deepseek-ai/DeepSeek-V3"])
def test_mean_layer_has_the_parameters_of_its_graph(name: str) -> None:
    graph = build(load_model(find_config(name)))
    t = transformer(graph)
    assert float(t.params) == pytest.approx(graph.parameters, rel=2e-3)
    assert float(t.active_params) == pytest.approx(graph.active_params(), rel=5e-3)


def test_conventions_of_flops() -> None:
    full = replace(ONE, full=1.0)
    model, causal, ran = (float(step_flops(LLAMA, full, c)) for c in ("model", "causal", "hardware"))
    tokens = 8.0 * 4096.0
    dense = 6.0 * float(LLAMA.active_params) * tokens
    assert model == pytest.approx(dense + 12.0 * 32 * 4096 * 4096 * tokens)
    assert model - causal == pytest.approx((model - dense) / 2.0)
    assert 1.25 < ran / model < 1.34


def test_goodput_falls_with_chips_and_interval_is_youngs() -> None:
    few, many = (float(goodput(n, 50_000.0, 60.0, 600.0)) for n in (64, 16_384))
    assert 0.99 < few <= 1.0
    assert 0.8 < many < few
    assert float(goodput(1e9, 50_000.0, 60.0, 600.0)) == 0.0
    assert float(young_daly(60.0, 11_000.0)) == pytest.approx((2 * 60 * 11_000) ** 0.5 - 60)


def test_goodput_by_hand() -> None:
    """100 chips of 1,000 h: a failure every 36,000 s loses half of 1,000 + 200 s and a restart of 600 s; a sixth of the
    rest goes into saving."""
    lost = (600.0 + 600.0) / 36_000.0
    assert float(goodput(100.0, 1000.0, 200.0, 600.0, 1000.0)) == pytest.approx((1.0 - lost) * 1000.0 / 1200.0)


def test_clusters_come_from_the_catalogue() -> None:
    chip = get_chip("h100-sxm5-80gb")
    made = on_system(chip, get_system("dgx-h100"), "8")
    assert made.domain == 8.0
    assert made.nic_bytes_per_s == 50e9
    assert made.narrow == pytest.approx(2.0 * float(made.wide), rel=1e-3)
    assert cluster(get_chip("tpu-v5p")).axes == 3.0
    assert cluster(get_chip("mi300x")).mesh == 1.0
    with pytest.raises(UsageError, match="not published"):
        cluster(replace(chip, matrix={}, vector={}))


def test_products_of_a_step_cost_what_the_same_products_cost_anywhere() -> None:
    """Four products forward, eight backward, and the head's three: each as `cost.price` has it."""
    work, bf16 = work_of(LLAMA, ONE, Recipe(), KERNELS), FORMATS["bf16"]

    def alone(m: float, n: float, k: float) -> float:
        return float(np.asarray(price(gemm(m, n, k, bf16, bf16), CHIP, KERNELS.numbers).total_s))

    shapes = [(6144.0, 4096.0), (4096.0, 4096.0), (2 * 14336.0, 4096.0), (4096.0, 14336.0)]
    assert float(work.forward_s) == pytest.approx(sum(alone(4096.0, n, k) for n, k in shapes))
    assert float(work.input_s) == pytest.approx(sum(alone(4096.0, k, n) for n, k in shapes))
    assert float(work.weight_s) == pytest.approx(sum(alone(k, n, 4096.0) for n, k in shapes))
    head = alone(4096.0, 128256.0, 4096.0) + alone(4096.0, 4096.0, 128256.0) + alone(4096.0, 128256.0, 4096.0)
    assert float(work.head_s) == pytest.approx(head, rel=0.02)


@pytest.mark.parametrize("name", ["meta-llama/Llama-3.1-8B", "Qwen/Qwen3-30B-A3B"])
def test_a_table_of_operators_says_what_each_layout_costs(name: str) -> None:
    t = transformer(build(load_model(find_config(name))))
    rng = np.random.default_rng(3)
    columns = {n: 2.0 ** rng.integers(0, 4, 40) for n in ("tp", "cp", "micro_batch", "ep")}
    s = TrainSpread(**columns, seq=4096.0, global_batch=64.0)
    (many,) = OperatorTable.of(s, lambda grid: (work_of(t, grid, Recipe(), KERNELS),)).at(s)
    for i in (0, 17, 39):
        one = work_of(t, take(s, i), Recipe(), KERNELS)
        for f in fields(many):
            assert float(getattr(many, f.name)[i]) == pytest.approx(float(np.asarray(getattr(one, f.name))))


def test_activations_leave_behind_the_forward_pass_alone() -> None:
    """A third of the work hides the way to the host: a link that needs longer than that, but less than half of all, is
    waited for."""
    s = replace(ONE, stash=1.0)

    def waits(bytes_per_s: float) -> float:
        return float(step(s, c=replace(H100, host_bytes_per_s=bytes_per_s)).stash_s)

    layer = step(ONE)
    device = float(layer.compute_s + layer.passes_s)
    hidden = waits(1e12)  # costs a share of its traffic alone
    moved = hidden * 1e12 / 0.2  # bytes, one way
    assert waits(moved / (0.25 * device)) == pytest.approx(0.2 * 0.25 * device, rel=0.05)
    assert waits(moved / (0.45 * device)) > 0.2 * 0.45 * device + 0.05 * device


def test_each_copy_of_a_token_crosses_where_nothing_joins_them() -> None:
    moe = replace(LLAMA, experts=64.0, top_k=8.0, expert_ffn=1536.0, moe_share=1.0, dense_share=0.0)
    rates = TrainRates()
    s = replace(ONE, ep=32.0, dp=32.0)
    joined, apart = (traffic_of(moe, s, H100, rates, copies).experts_s for copies in (0.0, 1.0))
    assert apart > joined  # 6 copies of 8 leave the host; a token that is sent once goes to 2.7 hosts
    one = replace(ONE, ep=8.0, dp=8.0)  # one host: nothing crosses
    assert traffic_of(moe, one, H100, rates, 1.0) == traffic_of(moe, one, H100, rates, 0.0)


def test_a_grouped_product_is_started_once_for_all_experts() -> None:
    moe = replace(LLAMA, experts=64.0, top_k=8.0, expert_ffn=1536.0, moe_share=1.0, dense_share=0.0)
    loop, grouped = (
        layer_time(moe, ONE, H100, recipe, TrainRates(), work_of(moe, ONE, recipe, KERNELS)).host_s
        for recipe in (Recipe(), Recipe(grouped=1.0))
    )
    assert loop - grouped == pytest.approx(64.0 * TrainRates().expert_host_s)
