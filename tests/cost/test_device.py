"""What software sees as one device."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

import chipwise as cw
from chipwise.catalog.chips import get_chip, load_chips
from chipwise.catalog.override import with_figures
from chipwise.cost.device import DTYPES, Device


def device(chip: str) -> Device:
    return Device.of(get_chip(chip))


def test_a_chip_that_is_one_device() -> None:
    d, chip = device("h100-sxm5-80gb"), get_chip("h100-sxm5-80gb")
    assert d.matrix["bf16"] == chip.matrix["bf16"]
    assert d.matrix["fp8"] == pytest.approx(2 * d.matrix["bf16"], rel=1e-3)
    assert d.memory_bytes_per_s == chip.memory.bytes_per_s
    assert d.link_bytes_per_s == 450e9, "one direction"
    assert d.domain == 8


def test_usable_memory_counts_not_the_label() -> None:
    chip = get_chip("h100-sxm5-80gb")
    assert device(chip.id).memory_bytes == min(chip.memory.usable_bytes or np.inf, chip.memory.label_bytes or np.inf)


def test_a_package_of_several_devices_is_divided() -> None:
    several = [c for c in load_chips().values() if c.devices_per_package > 1 and c.memory.bytes_per_s]
    assert several
    for chip in several:
        d, n = Device.of(chip), chip.devices_per_package
        assert d.memory_bytes_per_s * n == pytest.approx(chip.memory.bytes_per_s)
        if "bf16" in chip.matrix:
            assert d.matrix["bf16"] * n == pytest.approx(chip.matrix["bf16"])
        if chip.scaleup and chip.scaleup.bytes_per_s:
            assert d.domain == chip.scaleup.domain * n


def test_types_without_a_unit_are_widened() -> None:
    a100 = device("a100-sxm4-80gb")
    assert a100.matrix["fp8"] == a100.matrix["fp4"] == a100.matrix["bf16"]
    assert a100.matrix["int8"] == 2 * a100.matrix["bf16"], "it has one for this"
    for d in map(Device.of, load_chips().values()):
        assert set(d.matrix) == set(DTYPES)


def test_cards_without_a_fabric_meet_over_the_host() -> None:
    chip = get_chip("rtx-6000-ada")
    assert chip.scaleup is None
    assert chip.host is not None
    assert device("rtx-6000-ada").link_bytes_per_s == chip.host.bytes_per_s
    assert device("rtx-6000-ada").domain == 8


def test_cards_that_may_not_reach_a_peer_exchange_through_the_host() -> None:
    chip = get_chip("rtx-4090")
    assert chip.host is not None
    assert chip.staged_bytes_per_s is not None
    assert device("rtx-4090").link_bytes_per_s == chip.staged_bytes_per_s < (chip.host.bytes_per_s or 0.0)
    slow = with_figures(get_chip("rtx-pro-6000-server"), {"staged": "12GB/s"})
    assert Device.of(slow).link_bytes_per_s == 12e9
    assert Device.of(with_figures(slow, {"staged": "90GB/s"})).link_bytes_per_s == 63e9
    # a bridge of its own is no matter of the host
    bridged = with_figures(get_chip("h100-sxm5-80gb"), {"staged": "12GB/s"})
    assert Device.of(bridged).link_bytes_per_s == device("h100-sxm5-80gb").link_bytes_per_s
    pair = with_figures(get_chip("rtx-3090"), {"staged": "3GB/s"})
    assert pair.scaleup is None, "no bridge between two"
    assert Device.of(pair).link_bytes_per_s == 3e9


def test_four_cards_without_peer_access_sum_as_measured() -> None:
    """nccl-tests of four RTX 4090: seconds of an all-reduce by its bytes."""
    for num_bytes, seconds in ((32768, 18.8e-6), (1 << 20, 153e-6), (1 << 24, 1993e-6)):
        found = cw.kernel(
            "collective", kind="all_reduce", bytes=f"{num_bytes}B", ranks=4, chip="rtx-4090", runtime="vllm"
        )
        assert found.seconds == pytest.approx(seconds, rel=0.3)


def test_a_socket_without_a_link_stands_alone() -> None:
    d = device("epyc-9654")
    assert np.isnan(d.link_bytes_per_s)
    assert d.domain == 1


def test_unpublished_figures_are_unknown_not_zero() -> None:
    for chip in load_chips().values():
        d = Device.of(chip)
        for name in ("memory_bytes", "memory_bytes_per_s", "link_bytes_per_s", "scaleout_bytes_per_s"):
            assert np.isnan(getattr(d, name)) or getattr(d, name) > 0, (chip.id, name)
        assert all(np.isnan(rate) or rate > 0 for rate in d.matrix.values()), chip.id


def test_a_stack_gives_its_devices_back() -> None:
    chips = ("h100-sxm5-80gb", "mi300x", "rtx-4090")
    alone = [device(c) for c in chips]
    picked = Device.stack(alone).take(np.array([[2], [0], [2]]))
    assert picked.family == "simt"
    for f in fields(Device):
        if f.name in ("family", "matrix"):
            continue
        expected = [getattr(alone[i], f.name) for i in (2, 0, 2)]
        assert np.array_equal(getattr(picked, f.name)[:, 0], expected, equal_nan=True), f.name
    for dtype in DTYPES:
        assert picked.matrix[dtype][:, 0].tolist() == [alone[i].matrix[dtype] for i in (2, 0, 2)]
