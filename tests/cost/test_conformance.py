"""What every cost family must obey, whatever its mechanics.

A family is plugged in by a line in `FAMILIES`: its name, the chips that it prices, and its time of one operator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.chips import get_chip
from chipwise.cost.cost import RESOURCES, Cost
from chipwise.cost.dataflow import DataflowModel
from chipwise.cost.device import Device
from chipwise.cost.price import price as dispatch
from chipwise.cost.roofline import roofline, time
from chipwise.units import Array, Real
from chipwise.workload.axes import Axis, Sizes, Tensor
from chipwise.workload.formats import FORMATS
from chipwise.workload.nodes import Experts
from chipwise.workload.op import Op, attention, gemm, lookup, pointwise, scan
from chipwise.workload.step import decode

Price = Callable[[Op, Device], Cost]


@dataclass(frozen=True)
class Case:
    """A family on one chip."""

    name: str
    device: Device
    price: Price
    floor: Callable[[Op, Device], Real] = roofline


def roofline_case(chip: str, family: str, runtime: str) -> Case:
    efficiency = shipped_parameters().efficiency(family, runtime)
    return Case(f"roofline-{chip}", Device.of(get_chip(chip)), lambda op, device: time(op, device, efficiency))


def simt_case(chip: str, runtime: str, *, alone: bool = False) -> Case:
    numbers = shipped_parameters().cost("simt", runtime, [get_chip(chip)], alone=alone).take(np.array(0))
    name = f"simt-{chip}-{runtime}" + ("-alone" if alone else "")

    def floor(op: Op, device: Device) -> Real:
        # activations stay in the cache as far as they fit: the roofline of that residency
        return roofline(replace(op, activation_bytes=0.0), device)

    return Case(name, Device.of(get_chip(chip)), lambda op, device: dispatch(op, device, numbers), floor)


def family_case(chip: str, *, alone: bool = False) -> Case:
    """A chip other than a GPU by the mechanics of its family, in a model or `alone`."""
    found = get_chip(chip)
    numbers = shipped_parameters().cost(found.family, "any", [found], alone=alone).take(np.array(0))

    alike = 1e2 if found.memory.kind == "sram" else 1e6

    def price(op: Op, device: Device) -> Cost:
        if isinstance(numbers, DataflowModel) and not alone:
            # one of a hundred operators alike, or of as many as leave no room for weights in SRAM
            return dispatch(op, device, numbers.holding(alike * np.asarray(op.weight_bytes)))
        return dispatch(op, device, numbers)

    def floor(op: Op, device: Device) -> Real:
        # in a compiled program, and always on dataflow chips, activations stay on the chip as far as they fit
        return roofline(replace(op, activation_bytes=0.0), device)

    stays = found.family == "dataflow" or (found.family == "systolic" and not alone)
    name = f"{found.family}-{chip}" + ("-alone" if alone else "")
    return Case(name, Device.of(found), price, floor if stays else roofline)


FAMILIES = [
    simt_case("h100-sxm5-80gb", "vllm"),
    simt_case("h100-sxm5-80gb", "trtllm", alone=True),
    simt_case("b200-sxm", "trtllm"),
    simt_case("a100-sxm4-80gb", "sglang"),
    simt_case("rtx-4090", "llama.cpp"),
    simt_case("m2-ultra", "llama.cpp"),
    simt_case("mi300x", "vllm"),
    simt_case("rubin-sxm", "vllm"),
    roofline_case("h100-sxm5-80gb", "simt", "vllm"),
    roofline_case("b200-sxm", "simt", "trtllm"),
    roofline_case("a100-sxm4-80gb", "simt", "sglang"),
    roofline_case("rtx-4090", "simt", "llama.cpp"),
    roofline_case("tpu-v5e", "systolic", "vllm-tpu"),
    roofline_case("trainium2", "systolic", "neuronx"),
    roofline_case("epyc-9654", "cpu", "vllm-cpu"),
    *(family_case(c) for c in ("tpu-v4", "tpu-v6e", "tpu-v7x", "trainium2", "gaudi2")),
    *(family_case(c, alone=True) for c in ("tpu-v6e", "gaudi3")),
    *(family_case(c) for c in ("epyc-9654", "xeon-8480plus")),
    *(family_case(c) for c in ("groq-lpu1", "wse3-cs3", "sn40l", "tt-wormhole-n300", "qaic100-ultra")),
    *(family_case(c, alone=True) for c in ("groq-lpu1", "ipu-mk2-gc200")),
]

PAIRS = [
    ("bf16", "bf16"),
    ("fp16", "fp16"),
    ("fp32", "fp32"),
    ("fp8", "fp8"),
    ("fp8_block", "fp8"),
    ("int8", "int8"),
    ("int4", "bf16"),
    ("mxfp4", "bf16"),
    ("nvfp4", "nvfp4"),
]

DOUBLINGS = 128.0 * 2.0 ** np.arange(8)
"""Aligned dimensions, each twice the one before."""


@pytest.fixture(params=FAMILIES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    return found


def experts(tokens: Array) -> Op:
    m, e, x = Axis("M"), Axis("E"), Axis("X")

    def tensor(name: str, rows: object, cols: object) -> Tensor:
        return Tensor(name, "expert", rows, cols, FORMATS["fp8"], copies=e)  # type: ignore[arg-type]

    node = Experts((tensor("gate", x, m), tensor("up", x, m)), tensor("down", m, x), 8, FORMATS["fp8"])
    return node.ops(Sizes({"M": 4096, "E": 128, "X": 1536}), decode(tokens, 0.0))[0]


def operators(size: Array) -> dict[str, Op]:
    """Every kind of operator, growing with `size` in one direction."""
    found = {f"gemm-{w}-{a}-m": gemm(size, 4096, 4096, FORMATS[w], FORMATS[a]) for w, a in PAIRS}
    found |= {
        "gemm-n": gemm(64, size, 4096),
        "gemm-k": gemm(64, 4096, size),
        "gemm-batch": gemm(64, 128, 512, batch=size),
        "decode-batch": attention(size, 1, 4096, 32, 8, 128),
        "decode-context": attention(8, 1, size, 32, 8, 128),
        "decode-8-bit": attention(8, 1, size, 32, 8, 128, FORMATS["fp8"]),
        "decode-window": attention(8, 1, size, 32, 8, 128, window=1024),
        "prompt": attention(1, size, size, 32, 8, 128),
        "prompt-latent": attention(1, size, size, 16, 1, 576, value_dim=512, latent=True),
        "experts": experts(size),
        "pointwise": pointwise(size * 4096, 3.0),
        "lookup": lookup(size, 4096),
        "scan": scan(size, 1, 32, 1e6, 1e6, 8192),
    }
    return found


KINDS = list(operators(DOUBLINGS))


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_beats_the_roofline(case: Case, kind: str) -> None:
    op = operators(DOUBLINGS)[kind]
    assert np.all(np.asarray(case.price(op, case.device).total_s) >= case.floor(op, case.device))


@pytest.mark.parametrize("kind", KINDS)
def test_more_work_never_takes_less_time(case: Case, kind: str) -> None:
    seconds = np.asarray(case.price(operators(DOUBLINGS)[kind], case.device).total_s)
    assert seconds.shape == DOUBLINGS.shape
    assert np.all(np.isfinite(seconds))
    assert np.all(np.diff(seconds) >= 0)


@pytest.mark.parametrize("kind", KINDS)
def test_twice_the_bandwidth_or_peak_is_never_slower(case: Case, kind: str) -> None:
    op, d = operators(DOUBLINGS)[kind], case.device
    base = np.asarray(case.price(op, d).total_s)
    richer = (
        replace(d, memory_bytes_per_s=2 * d.memory_bytes_per_s),
        replace(d, matrix={k: 2 * v for k, v in d.matrix.items()}),
        replace(d, vector_flops_per_s=2 * d.vector_flops_per_s),
    )
    for better in richer:
        assert np.all(np.asarray(case.price(op, better).total_s) <= base * (1 + 1e-12))


@pytest.mark.parametrize("kind", KINDS)
def test_parts_are_known_never_negative_and_add_up(case: Case, kind: str) -> None:
    cost = case.price(operators(DOUBLINGS)[kind], case.device)
    assert set(cost.exposed) | set(cost.hidden) <= set(RESOURCES)
    for part in (*cost.exposed.values(), *cost.hidden.values()):
        assert np.all(np.asarray(part) >= -1e-18)
    assert np.allclose(sum(np.asarray(v) for v in cost.exposed.values()), cost.total_s, rtol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_an_array_is_priced_as_its_members_are(case: Case, kind: str) -> None:
    together = np.asarray(case.price(operators(DOUBLINGS)[kind], case.device).total_s)
    for i in (0, 3, 7):
        alone = case.price(operators(DOUBLINGS[i : i + 1])[kind], case.device).total_s
        assert together[i] == pytest.approx(float(np.asarray(alone).item()), rel=1e-12)


@pytest.mark.parametrize("narrow", ["fp8", "int8", "int4"])
def test_fewer_bits_of_weights_are_never_slower_to_read(case: Case, narrow: str) -> None:
    # one row: reading the weights is all there is
    wide, thin = gemm(1, 8192, 8192), gemm(1, 8192, 8192, FORMATS[narrow])
    assert case.price(thin, case.device).total_s <= case.price(wide, case.device).total_s
