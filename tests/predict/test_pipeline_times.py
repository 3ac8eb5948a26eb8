"""Pipelines built by hand: their parts add up, devices share them, hosts and copies cost what they must."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import chipwise as cw
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.chips import get_chip
from chipwise.cost.device import Device
from chipwise.cost.simt.family import SimtParameters
from chipwise.parallel.collective import Kind
from chipwise.parallel.layout import ONE, Spread
from chipwise.predict.pipeline import SHOWN, Hardware, Pace, account, flash_attention, held_by, seconds, stage_times
from chipwise.workload.formats import FORMATS
from chipwise.workload.op import Op, attention, convolution, gemm, pointwise
from chipwise.workload.program import Program, Stage

HOPPER = "h100-sxm5-80gb"


def hardware(name: str = HOPPER, **more: object) -> Hardware:
    chip, numbers = get_chip(name), shipped_parameters()
    costs = numbers.cost(chip.family, "any", [chip]).take(np.zeros((), dtype=np.intp))
    return Hardware(Device.of(chip), costs, numbers.overheads(chip.family, "any"), **more)  # type: ignore[arg-type]


def transformer(tokens: float, width: float, layers: float, batch: float = 1.0) -> tuple[tuple[float, Op], ...]:
    """Layers of a DiT or of BERT: four matrices, attention without a mask, norms."""
    rows = batch * tokens
    return (
        (layers, gemm(rows, 3 * width, width)),
        (layers, attention(batch, tokens, tokens, width / 64, width / 64, 64, causal=False)),
        (layers, gemm(rows, width, width)),
        (layers, gemm(rows, 4 * width, width)),
        (layers, gemm(rows, width, 4 * width)),
        (2 * layers, pointwise(rows * width, 2.0)),
    )


def diffusion(batch: float = 2.0, steps: float = 20.0) -> Program:
    """A text encoder, a denoiser of 4,096 tokens and a decoder of convolutions."""
    side = 128.0 * 128.0
    return Program(
        "by hand",
        (
            Stage("text", transformer(77, 768, 12), 1, 85_000_000, 170e6, 20e6),
            Stage("denoiser", transformer(4096, 1536, 24, batch), steps, 680_000_000, 1.36e9, 300e6),
            Stage("vae", ((8.0, convolution(1, 512, 512, side, side, 9)),), 1, 50_000_000, 100e6, 2e9),
        ),
        unit="image",
    )


def test_parts_and_resources_add_up_to_the_time() -> None:
    stages = stage_times(diffusion(), hardware())
    cost = seconds(stages, Pace(request_s=0.01))
    alone = sum(sum(s.of(part) for part in s.parts) * s.calls for s in stages)
    assert float(cost.total_s) == pytest.approx(alone + 0.01, rel=1e-9)
    assert sum(map(float, cost.exposed.values())) == pytest.approx(float(cost.total_s))


def test_operators_priced_together_cost_what_they_cost_alone() -> None:
    ops = transformer(1000, 1024, 3) + transformer(100, 768, 2)
    together = stage_times(Program("x", (Stage("x", ops),)), hardware())[0]
    single = [stage_times(Program("x", (Stage("x", (one,)),)), hardware())[0] for one in ops]
    for part in ("gemm", "attention", "pointwise"):
        assert together.of(part) == pytest.approx(sum(s.of(part) for s in single), rel=1e-9)


def test_a_host_shows_only_where_it_is_slower_than_the_device() -> None:
    stages = stage_times(diffusion(), hardware())
    device_s = float(seconds(stages, Pace()).total_s)
    fast, slow = (float(seconds(stages, Pace(host_s=s)).total_s) for s in (1e-8, 1e-2))
    launches = sum(s.launches * s.calls for s in stages)
    assert fast == pytest.approx(device_s, rel=1e-3)
    assert slow == pytest.approx(1e-2 * launches, rel=1e-2)
    assert seconds(stages, Pace(host_s=1e-2)).bound == "host"


@pytest.mark.parametrize(
    ("op", "starts", "units"),
    [
        (replace(gemm(64, 64, 64), launches=3.0), {"pointwise": 0.25}, 3.0),
        (convolution(1, 64, 64, 64, 64, 9), {"conv": 1.5}, 1.5),
        (pointwise(64.0, 2.0), {"pointwise": 0.25}, 0.25),
        (pointwise(64.0, 2.0, name="layer_norm"), {"pointwise": 0.25, "layer_norm": 1.0}, 1.0),
        (replace(pointwise(64.0, 2.0, name="rms_norm"), launches=4.0), {"pointwise": 0.25}, 4 * 8 * 0.25),
        (replace(pointwise(64.0, 2.0), launches=9.0, dims={"elements": 64.0, "apart": 1.0}), {"pointwise": 0.25}, 9.0),
    ],
)
def test_a_host_starts_what_modules_of_python_call(op: Op, starts: dict[str, float], units: float) -> None:
    found = stage_times(Program("x", (Stage("x", ((1.0, op),)),)), hardware(starts=starts))
    assert found[0].launches == pytest.approx(units)


def test_a_factor_multiplies_its_part_alone() -> None:
    stages = stage_times(diffusion(), hardware())
    base, more = (float(seconds(stages, Pace(factors)).total_s) for factors in ({}, {"conv": 3.0}))
    conv_s = sum(s.of("conv") * s.calls for s in stages)
    assert conv_s > 0
    assert more - base == pytest.approx(2.0 * conv_s, rel=1e-9)


@pytest.mark.parametrize("spread", [Spread(cfg=2), Spread(ulysses=4), Spread(cp=2), Spread(tp=4), Spread(pp=2)])
def test_devices_share_the_denoiser_and_exchange(spread: Spread) -> None:
    alone, shared = (stage_times(diffusion(), hardware(), s) for s in (ONE, spread))
    work = [sum(s[1].of(part) for part in ("gemm", "attention", "pointwise")) for s in (alone, shared)]
    assert work[0] / (1.05 * spread.devices) < work[1] < 0.75 * work[0]
    # keys and values that go round hide behind attention
    assert ("exchange" in shared[1].parts) == (spread.cp == 1)
    # text encoder and decoder run on every device
    assert shared[0].of("gemm") == alone[0].of("gemm")
    assert shared[2].of("conv") == alone[2].of("conv")


@pytest.mark.parametrize(
    ("spread", "kind", "times"), [(Spread(ulysses=4), "all_to_all", 4), (Spread(tp=4), "all_reduce", 2)]
)
def test_exchanges_around_attention_by_hand(spread: Spread, kind: Kind, times: int) -> None:
    """Queries, keys, values and results are each sent to all; a tensor-parallel layer sums after attention and after
    its feed-forward. 24 layers, 2 samples of 4,096 tokens, 1,536 features, 16 bit."""
    exchanged = stage_times(diffusion(steps=1.0), hardware(), spread)[1].of("exchange")
    size = 2 * 4096 * 1536 * 2.0 / (1 if spread.tp > 1 else 4)
    assert exchanged == pytest.approx(24 * times * float(hardware().exchange_s(kind, size, 4)), rel=1e-6)


def test_samples_are_shared_by_all_stages_and_nothing_is_exchanged() -> None:
    alone, shared = (stage_times(diffusion(batch=8), hardware(), s) for s in (ONE, Spread(dp=8)))
    assert shared[1].of("gemm") < alone[1].of("gemm") / 4
    assert "exchange" not in shared[1].parts


def test_training_sums_gradients_and_updates_all_parameters_everywhere() -> None:
    update = (1.0, pointwise(680e6, 14.0, name="optimizer"))
    step = Stage("step", (*transformer(4096, 1536, 72, 8), update), 1, 680_000_000, 2.72e9)
    trained = Program("by hand", (step,), 8, trained=True)
    alone, shared = (stage_times(trained, hardware(), s)[0] for s in (ONE, Spread(dp=8)))
    (update_s,) = (stage_times(Program("u", (Stage("u", (update,)),)), hardware())[0].of("pointwise"),)
    assert shared.of("pointwise") >= update_s
    assert alone.of("pointwise") > shared.of("pointwise")


def test_weights_that_wait_on_the_host_are_copied() -> None:
    link = hardware(host_bytes_per_s=64e9)
    kept, moved, each = (stage_times(diffusion(), link, offload=way)[1] for way in ("none", "model", "sequential"))
    assert "offload" not in kept.parts
    assert each.of("offload") == pytest.approx(20 * moved.of("offload"))
    sizes = [account(diffusion(), offload=way).total_bytes for way in ("none", "model", "sequential")]  # type: ignore[arg-type]
    assert sizes[0] > sizes[1] > sizes[2] > 0


def test_memory_of_shared_weights() -> None:
    alone, sharded = (account(diffusion(), s) for s in (ONE, Spread(ulysses=4, fsdp=1)))
    assert alone.of("weights") == pytest.approx(1.63e9)
    assert sharded.of("weights") == pytest.approx(1.63e9 / 4)  # encoders too
    assert account(diffusion(), aside=("text",)).of("weights") == pytest.approx(1.46e9)


def test_tools_show_different_sums_of_the_same_memory() -> None:
    held = held_by(4.0, 2.0, 1.0, 0.5)
    assert [sum(map(held.of, SHOWN[kind])) for kind in ("allocated", "reserved", "device")] == [6.0, 7.0, 7.5]
    assert held.total_bytes == 7.5


def test_activations_kept_in_fp32_are_narrowed_and_widened_around_products() -> None:
    def parts(rows: float, *, widens: bool) -> dict[str, float]:
        ops = ((1.0, gemm(rows, 1024, 1024)), (1.0, pointwise(rows * 1024, 2.0)))
        found = stage_times(Program("x", (Stage("x", ops),)), hardware(widens=widens))[0]
        return {"gemm": found.of("gemm"), "pointwise": found.of("pointwise"), "launches": float(found.launches)}

    plain, wide, few = parts(65536.0, widens=False), parts(65536.0, widens=True), parts(1.0, widens=True)
    assert wide["gemm"] == plain["gemm"]
    # twice the bytes of the element-wise work, and (3 + 3 + 4) / 2 times them around the product
    assert wide["pointwise"] == pytest.approx(7.0 * plain["pointwise"], rel=0.1)
    assert few["launches"] == plain["launches"] < wide["launches"] + 1.0


def test_norms_under_autocast_are_wide_unless_casts_are_folded() -> None:
    norm = pointwise(2.0**26, 2.0)
    cast = replace(norm, dims={**norm.dims, "autocast": 3.5})

    def seconds_of(op: Op, **more: object) -> float:
        return stage_times(Program("x", (Stage("x", ((1.0, op),)),)), hardware(**more))[0].of("pointwise")  # type: ignore[arg-type]

    assert seconds_of(cast) == pytest.approx(3.5 * seconds_of(norm), rel=0.05)
    assert seconds_of(cast, folds=True) == pytest.approx(seconds_of(norm))


def test_fp32_convolutions_take_tf32_units_where_the_software_does() -> None:
    conv = convolution(32, 256, 256, 56 * 56, 56 * 56, 9)
    wide = replace(conv, compute="fp32", weight="fp32")
    one = Program("x", (Stage("x", ((1.0, wide),)),))
    plain, faster = (stage_times(one, hardware("a100-sxm4-80gb", tf32_conv=t))[0].of("conv") for t in (False, True))
    assert faster < 0.5 * plain


@pytest.mark.parametrize("name", [HOPPER, "mi300x", "m2-ultra", "gaudi2", "tpu-v5e", "trainium1", "xeon-8480plus"])
def test_convolutions_on_every_family(name: str) -> None:
    """More channels are never faster, nothing beats the peak, and depthwise filters do not pay for empty tiles."""
    link = hardware(name)
    peak = float(np.asarray(link.device.matrix["bf16"]))

    def time(channels: float, groups: float = 1.0) -> float:
        op = convolution(16, channels, channels, 56 * 56, 56 * 56, 9, groups=groups)
        found = stage_times(Program("x", (Stage("x", ((1.0, op),)),)), link)[0].of("conv")
        assert found >= float(op.flops) / peak
        return found

    dense = [time(c) for c in (64.0, 128.0, 256.0, 512.0)]
    assert dense == sorted(dense)
    assert time(512.0, groups=512.0) < dense[-1]


def attended(name: str, head: float, *, overlapped: bool) -> float:
    """The share of its peak that a chip reaches in FlashAttention over 16,384 tokens."""
    place = hardware(name)
    assert isinstance(place.costs, SimtParameters)
    costs = flash_attention(place.costs, place.device, overlapped=overlapped)
    op = attention(1, 16_384, 16_384, 2048 / head, 2048 / head, head, causal=False)
    pipeline = Program("clip", (Stage("denoiser", ((1.0, op),), 1, 0, 0.0, 0.0),))
    (stage,) = stage_times(pipeline, replace(place, costs=costs))
    return float(op.flops) / stage.of("attention") / float(place.device.matrix["bf16"])


@pytest.mark.parametrize(
    ("chip", "head", "overlapped", "published"),
    [
        ("a100-sxm4-80gb", 64.0, False, 0.59),  # Dao 2023
        ("a100-sxm4-80gb", 128.0, False, 0.73),
        (HOPPER, 128.0, False, 0.35),  # Shah et al. 2024
        (HOPPER, 128.0, True, 0.75),
    ],
)
def test_flash_attention_reaches_the_published_share_of_the_peak(
    chip: str, head: float, overlapped: bool, published: float
) -> None:
    assert attended(chip, head, overlapped=overlapped) == pytest.approx(published, rel=0.2)


def test_heads_between_the_widths_of_flash_attention_cost_the_next_one() -> None:
    of_40, of_64 = (attended("a100-sxm4-80gb", head, overlapped=False) for head in (40.0, 64.0))
    assert of_40 == pytest.approx(of_64 * 40.0 / 64.0, rel=0.15)


def test_slow_products_hide_softmax_better_than_fast_ones() -> None:
    """A unit of RTX 4090 multiplies half as fast as one of A100 and does as many exponentials."""
    assert attended("rtx-4090", 128.0, overlapped=False) > attended("a100-sxm4-80gb", 128.0, overlapped=False)


@pytest.mark.parametrize(
    ("kernel", "filters", "dtype", "more"),
    [(9, 1, "bf16", 2.0), (1, 1, "bf16", 0.0), (9, 64, "bf16", 0.0), (9, 1, "fp32", 0.0)],
)
def test_planes_are_turned_round_for_products_of_16_bits(kernel: int, filters: int, dtype: str, more: float) -> None:
    """Tensors are read and written once more, but of filters that are plain products, grouped, or of fp32."""
    kind = FORMATS[dtype]
    op = convolution(16, 64, 64, 56.0 * 56, 56.0 * 56, kernel, kind, kind, groups=filters)
    pipeline = Program("x", (Stage("x", ((1.0, op),)),))
    plain, turned = (stage_times(pipeline, hardware("v100-sxm2-16gb", turns=turns))[0] for turns in (False, True))
    assert turned.of("conv") == pytest.approx(plain.of("conv"))
    assert turned.launches == plain.launches
    least = more * float(op.activation_bytes) / float(hardware("v100-sxm2-16gb").device.memory_bytes_per_s)
    assert least <= turned.of("pointwise") <= 2.0 * least


def test_states_of_an_optimizer_are_cut_with_the_weights() -> None:
    step = replace(diffusion(), trained=True, settings={"state_bytes": 8e9})
    whole, parts = account(step, Spread(dp=8)), account(step, Spread(dp=8, fsdp=1))
    buckets = sum(stage.weight_bytes for stage in step.stages)  # of gradients that are summed
    assert parts.of("weights") == pytest.approx((whole.of("weights") - buckets) / 8)


def test_gradients_of_one_device_take_the_place_of_activations() -> None:
    step = Stage("step", (), 1, 100, 400.0, 1000.0)
    trained = Program("by hand", (step,), 8, trained=True, settings={"state_bytes": 1200.0})
    assert account(trained).total_bytes == 400.0 + 800.0 + 1000.0
    few = replace(trained, stages=(replace(step, activation_bytes=100.0),))
    assert account(few).total_bytes == 400.0 + 800.0 + 400.0
    parts = replace(trained, settings={"state_bytes": 1200.0, "accumulate": 2.0})
    assert account(parts).total_bytes == 400.0 + 1200.0 + 1000.0
    assert account(trained, Spread(dp=2)).total_bytes == 400.0 + 1200.0 + 400.0 + 1000.0 / 2


def test_the_host_keeps_what_is_offloaded_or_set_aside() -> None:
    whole = diffusion()
    assert account(whole).on("host") == 0.0
    for offload in ("model", "sequential"):
        held = account(whole, offload=offload)
        assert held.on("host") == pytest.approx(sum(stage.weight_bytes for stage in whole.stages))
    beside = account(whole, aside=("text",))
    assert beside.on("host") == pytest.approx(170e6)
    assert beside.total_bytes == sum(i.bytes for i in beside.items if i.where == "device")


def test_an_optimizer_updates_what_its_device_keeps() -> None:
    update = pointwise(680e6, 14.0, name="optimizer")
    trained = Program("by hand", (Stage("step", ((1.0, update),), 1, 680_000_000, 2.72e9),), 8, trained=True)

    def seconds(s: Spread) -> float:
        return float(stage_times(trained, hardware(), s)[0].of("pointwise"))

    assert seconds(Spread(dp=2, pp=2)) == pytest.approx(seconds(Spread(pp=2)), rel=0.01)


def test_a_transducer_is_a_loop_that_the_device_repeats() -> None:
    """A file of Parakeet TDT by NeMo on an H100 takes 36 ms (m87-labs/kestrel pull request 193); 83 were said where a
    host starts every step."""
    one = {"model": "parakeet-tdt-0.6b-v3", "settings": "audio_s=8"}
    looped = cw.estimate(**one, chip="h100-sxm5-80gb").plans[0]
    assert looped.latency_s.low < 0.036 < looped.latency_s.high
    apart = cw.estimate(**one, chip="mi300x").plans[0]
    assert apart.stages["decoder"] > 2.0 * looped.stages["decoder"]
