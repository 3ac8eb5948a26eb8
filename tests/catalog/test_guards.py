"""Each guard catches a deliberately broken chip, and every exception in the catalogue is still needed."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from chipwise.catalog.chip import Chip, Link, MemoryTier
from chipwise.catalog.chips import get_chip, load_chips
from chipwise.catalog.guards import GUARDS, check, violations
from chipwise.errors import UsageError

H100 = get_chip("h100-sxm5-80gb")
GH200 = get_chip("gh200-96gb")
RTX = get_chip("rtx-4090")


def memory(chip: Chip, **changes: Any) -> Chip:
    return dataclasses.replace(chip, tiers=(dataclasses.replace(chip.memory, **changes), *chip.tiers[1:]))


def matrix(chip: Chip, **changes: float) -> Chip:
    return dataclasses.replace(chip, matrix={**chip.matrix, **changes})


def sparse(chip: Chip, *dtypes: str) -> Chip:
    return matrix(chip, **{dtype: 2 * chip.matrix[dtype] for dtype in dtypes})


def unit(chip: Chip, **changes: Any) -> Chip:
    return dataclasses.replace(chip, matrix_unit=dataclasses.replace(chip.matrix_unit, **changes))


def link(chip: Chip, total: float, pair: float) -> Chip:
    return dataclasses.replace(chip, scaleup=Link("X", total, pair, "", 8))


BROKEN: dict[str, list[Chip]] = {
    "peak_clock": [sparse(H100, "bf16", "fp16"), unit(H100, peak_clock_hz=1.98e9), unit(H100, units=264)],
    "boost_clock": [unit(H100, boost_clock_hz=1.5e9)],
    "accumulate": [matrix(RTX, **{"fp16/fp16": 4 * RTX.matrix["fp16"]})],
    "bf16_ratio": [sparse(H100, "bf16")],
    "tf32_ratio": [matrix(H100, tf32=H100.matrix["tf32"] / 2), sparse(sparse(H100, "tf32"), "tf32")],
    "fp8_ratio": [sparse(H100, "fp8")],
    "int8_ratio": [sparse(H100, "int8")],
    "fp6_ratio": [matrix(get_chip("b200-sxm"), fp6=18e15)],
    "fp4_ratio": [sparse(get_chip("b200-sxm"), "fp4")],
    "int4_ratio": [sparse(get_chip("a30"), "int4")],
    "fp64_ratio": [matrix(H100, fp64=4 * H100.vector["fp64"])],
    "usable_memory": [memory(H100, usable_bytes=86e9)],
    "usable_share": [memory(H100, label_bytes=100e9)],
    "bandwidth": [memory(H100, bytes_per_s=3350.0), memory(H100, kind="ddr", bytes_per_s=8e12)],
    "second_tier": [dataclasses.replace(GH200, tiers=(GH200.memory, MemoryTier("t", "ddr", 1e12, 1e12, 5e12)))],
    "pairwise": [link(H100, 450e9, 900e9)],
    "link_and_memory": [link(H100, 3.6e12, 450e9)],
    "power": [dataclasses.replace(H100, tdp_w=700e3), dataclasses.replace(H100, tdp_w=0.7)],
}


def test_every_guard_is_tried() -> None:
    assert set(BROKEN) == set(GUARDS)


@pytest.mark.parametrize(
    ("guard", "chip"), [(guard, chip) for guard, chips in BROKEN.items() for chip in chips], ids=lambda x: str(x)[:16]
)
def test_a_broken_chip_is_caught(guard: str, chip: Chip) -> None:
    assert guard in violations(chip)
    excused = dict.fromkeys(set(violations(chip)) - {guard}, "not the one under test")
    with pytest.raises(UsageError, match=f"broken fails guard {guard}: .*exceptions = ") as caught:
        check(dataclasses.replace(chip, exceptions=excused), "broken")
    assert "\n" not in str(caught.value)
    check(dataclasses.replace(chip, exceptions=dict.fromkeys(violations(chip), "true")), "broken")


def test_the_message_shows_the_numbers() -> None:
    with pytest.raises(UsageError, match=r"132 units x 2048 MACs x 2 x 1830 MHz = 989.4, but .* 1978.8 TFLOPS"):
        check(sparse(H100, "bf16", "fp16"), "x")
    with pytest.raises(UsageError, match=r"fp8 3957.8 is 4 times 16-bit 989.4 TFLOPS"):
        check(sparse(H100, "fp8"), "x")


@pytest.mark.parametrize("chip", list(load_chips().values()), ids=lambda c: c.id)
def test_exceptions_are_exactly_those_needed(chip: Chip) -> None:
    assert set(chip.exceptions) == set(violations(chip))


def test_silence_where_figures_are_missing() -> None:
    bare = dataclasses.replace(
        H100, matrix={}, vector={}, scaleup=None, tdp_w=None, tiers=(MemoryTier("", "hbm", None, None, None),)
    )
    assert violations(bare) == {}
