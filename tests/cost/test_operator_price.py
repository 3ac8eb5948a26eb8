"""One cost interface: the type of the parameters picks the formulas; chips stack; a model is not a benchmark."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.chips import get_chip
from chipwise.cost.device import Device
from chipwise.cost.price import narrow, price
from chipwise.cost.roofline import time as roofline_time
from chipwise.cost.simt import SimtParameters, dtype_label
from chipwise.workload.formats import FORMATS
from chipwise.workload.op import Op, attention, gemm, lookup, pointwise, scan

NUMBERS = shipped_parameters()
CHIPS = [get_chip(c) for c in ("h100-sxm5-80gb", "b200-sxm", "a100-sxm4-80gb", "mi300x")]
H100 = CHIPS[0]

OPS = {
    "gemm": gemm(64, 8192, 8192),
    "fp8": gemm(64, 8192, 8192, FORMATS["fp8"], FORMATS["fp8"]),
    "absorb": gemm(64, 512, 128, batch=16),
    "decode": attention(64, 1, 2000, 32, 8, 128),
    "decode-latent": attention(64, 1, 2000, 16, 1, 576, value_dim=512, latent=True),
    "decode-window": attention(64, 1, 20000, 32, 8, 128, window=1024),
    "decode-selected": attention(64, 1, 20000, 16, 1, 576, value_dim=512, latent=True, top_k=2048),
    "prompt": attention(1, 2000, 2000, 32, 8, 128),
    "prompt-expanded": attention(1, 2000, 2000, 16, 16, 192, value_dim=128),
    "pointwise": pointwise(64 * 8192, 3.0),
}


def simt(runtime: str = "vllm", *, alone: bool = False) -> SimtParameters:
    found = NUMBERS.cost("simt", runtime, [H100], alone=alone)
    assert isinstance(found, SimtParameters)
    return found.take(np.array(0))


def seconds(op: Op, p: SimtParameters) -> float:
    return float(np.asarray(price(op, Device.of(H100), p).total_s))


def test_shares_of_peaks_are_a_roofline() -> None:
    e = NUMBERS.efficiency("simt", "vllm")
    for op in OPS.values():
        assert price(op, Device.of(H100), e) == roofline_time(op, Device.of(H100), e)


@pytest.mark.parametrize("op", [lookup(64, 8192), scan(8, 1, 32, 1e6, 1e6, 8192)], ids=lambda op: op.kind)
def test_what_has_no_formula_is_a_roofline(op: Op) -> None:
    p = simt()
    assert seconds(op, p) == float(np.asarray(roofline_time(op, Device.of(H100), p.rest).total_s))


def selected_ms(chip: str, heads: int, queries: int = 8192, runtime: str = "vllm") -> float:
    """Milliseconds of a prompt whose queries select 2048 entries each."""
    found = NUMBERS.cost("simt", runtime, [get_chip(chip)], alone=True)
    assert isinstance(found, SimtParameters)
    op = attention(1, queries, queries, heads, 1, 576, value_dim=512, latent=True, top_k=2048)
    return 1e3 * float(np.asarray(price(op, Device.of(get_chip(chip)), found.take(np.array(0))).total_s))


def test_queries_that_select_entries_fill_tiles_of_heads() -> None:
    # vllm-project/vllm pull request 33451, B200: 3.33 ms of 8192 queries with 128 heads, and no less with 16
    assert selected_ms("b200-sxm", 128) == pytest.approx(3.33, rel=0.05)
    assert selected_ms("b200-sxm", 8) == selected_ms("b200-sxm", 16) == selected_ms("b200-sxm", 128)
    # FlashMLA's README, H800: 640 TFLOPS
    flops = 2.0 * 8192 * 2048 * (576 + 512) * 128
    assert flops / selected_ms("h100-sxm5-80gb", 128) / 1e9 == pytest.approx(640, rel=0.05)
    assert selected_ms("h100-sxm5-80gb", 8) == selected_ms("h100-sxm5-80gb", 64)
    # prompts that see no more than they may select, and kernels nobody described, share tiles of queries
    assert selected_ms("b200-sxm", 16, 2048) < selected_ms("b200-sxm", 128, 2048) / 4
    assert selected_ms("b200-sxm", 16, runtime="trtllm") < selected_ms("b200-sxm", 128, runtime="trtllm") / 4


@pytest.mark.parametrize("name", OPS)
def test_formulas_and_roofline_are_within_a_factor_of_three(name: str) -> None:
    p = simt()
    ratio = seconds(OPS[name], p) / float(roofline_time(OPS[name], Device.of(H100), p.rest).total_s)
    assert 1 / 3 < ratio < 3


@pytest.mark.parametrize("name", OPS)
def test_a_stack_of_chips_is_priced_as_its_members_are(name: str) -> None:
    which = np.array([2, 0, 3, 1, 0])
    devices = Device.stack([Device.of(c) for c in CHIPS]).take(which)
    costs = NUMBERS.cost("simt", "vllm", CHIPS).take(which)
    together = np.asarray(price(OPS[name], devices, costs).total_s)
    for i, at in enumerate(which):
        one = NUMBERS.cost("simt", "vllm", [CHIPS[at]]).take(np.array(0))
        alone = float(np.asarray(price(OPS[name], Device.of(CHIPS[at]), one).total_s))
        assert together[i] == pytest.approx(alone, rel=1e-12)


@pytest.mark.parametrize("name", OPS)
def test_kernels_of_a_model_follow_each_other_faster_than_a_timed_one_starts(name: str) -> None:
    model, alone = simt("trtllm"), simt("trtllm", alone=True)
    launch = price(OPS[name], Device.of(H100), model).exposed["launch"]
    assert float(np.asarray(launch)) == pytest.approx(NUMBERS.value("runtime.trtllm.launch"))
    assert seconds(OPS[name], model) < seconds(OPS[name], alone)


def test_rotary_embedding_is_a_part_of_measured_attention() -> None:
    rope = replace(pointwise(1e6, 2.0), name="rope")
    assert seconds(rope, simt()) == 0.0


def test_narrowing_costs_little_beside_its_product() -> None:
    for op in (gemm(64, 8192, 8192, FORMATS["fp8"], FORMATS["fp8"]), OPS["fp8"]):
        cost = float(np.asarray(narrow(op, Device.of(H100), simt()).total_s))
        assert 0 < cost < 0.3 * seconds(op, simt())


@pytest.mark.parametrize(
    ("weight", "activation", "label"),
    [
        ("bf16", "bf16", "b16"),
        ("fp16", "fp16", "b16"),
        ("fp32", "fp32", "fp32"),
        ("fp8", "fp8", "fp8"),
        ("fp8_row", "fp8", "fp8"),
        ("fp8_block", "fp8", "fp8_block"),
        ("int8", "int8", "int8"),
        ("int4", "bf16", "int4_wo"),
        ("fp8", "bf16", "int8_wo"),
        ("nvfp4", "nvfp4", "nvfp4"),
        ("mxfp4", "mxfp4", "mxfp4"),
    ],
)
def test_products_are_named_as_in_the_table(weight: str, activation: str, label: str) -> None:
    assert dtype_label(gemm(1, 64, 64, FORMATS[weight], FORMATS[activation])) == label


def test_an_empty_selection_is_priced() -> None:
    none = np.zeros((0, 1), dtype=int)
    devices = Device.stack([Device.of(H100)]).take(none)
    costs = NUMBERS.cost("simt", "vllm", [H100]).take(none)
    for op in OPS.values():
        assert np.shape(price(op, devices, costs).total_s) == (0, 1)
