"""Processors of hosts: what is named, and what a chip stands in by default."""

from __future__ import annotations

import pytest

from chipwise.catalog.chips import get_chip
from chipwise.catalog.processors import REFERENCE, get_processor, host_speed, load_processors
from chipwise.errors import UnknownNameError, UsageError


def test_a_processor_is_found_by_its_name_or_its_clock() -> None:
    assert get_processor("EPYC-9654") is get_processor("2x AMD EPYC 9654 96-Core Processor")
    assert get_processor(REFERENCE).speed == 1.0
    assert get_processor("1.9GHz").speed == pytest.approx(0.5)
    assert all(0.3 < p.speed < 3.0 for p in load_processors().values())


@pytest.mark.parametrize("text", ["epyc-99", "", "fast"])
def test_nobody_knows_others(text: str) -> None:
    with pytest.raises(UnknownNameError, match="processor"):
        get_processor(text)


def test_no_clock_is_that_high() -> None:
    with pytest.raises(UsageError, match="host"):
        get_processor("40GHz")


def test_by_default_the_host_is_that_of_the_system_of_a_chip() -> None:
    chips = [get_chip(name) for name in ("a100-sxm4-80gb", "h100-sxm5-80gb", "rtx-4090")]
    old, usual, unknown = host_speed("", chips)
    assert old < usual == unknown == 1.0
    assert host_speed("epyc-9575f", chips).tolist() == [get_processor("epyc-9575f").speed] * 3
