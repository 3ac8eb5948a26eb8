"""Machines as people name them, and the table of models that people run at desks."""

from __future__ import annotations

import pytest

from chipwise.api.local import BENCHMARKS
from chipwise.catalog.configs import find_config
from chipwise.catalog.machine import candidates, capped, copies, counted, joined, kinds, memory_bytes, parse_machine
from chipwise.errors import UnknownNameError, UsageError

GIB = 2**30


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("rtx-4090", "rtx-4090"),
        ("2xrtx-3090", "2xrtx-3090"),
        ("m4-max:64gb", "m4-max:64gb"),
        ("1xrtx-4090,1xepyc-9654", "rtx-4090+epyc-9654"),
        ("rtx-4090+2x-xeon-6454s", "rtx-4090+2xxeon-6454s"),
        ("rtx-4090+cpu-i9-14900k", "rtx-4090+core-i9-14900k"),
        ("rtx-3090 + rtx-5090", "rtx-5090+rtx-3090"),  # the fastest memory is filled first
        ("xeon-8480+", "xeon-8480plus"),
        ("epyc-9654:768gb", "epyc-9654:768gb"),
        ("strix halo 128gb", "igpu-radeon-8060s:128gb"),
        ("strix-halo:64gb", "igpu-radeon-8060s:64gb"),
        ("Ryzen AI Max+ 395", "igpu-radeon-8060s"),
        ("M3 Ultra 512", "m3-ultra:512gb"),
        ("rtx-4090+cpu", "rtx-4090+ryzen-9-9950x"),
        ("rtx-4090+128gb-ddr5", "rtx-4090+ryzen-9-9950x:128gb"),
        ("rtx-4090+64gb-ddr4", "rtx-4090+ryzen-9-5950x:64gb"),
        ("2xrtx-3090+64gb", "2xrtx-3090+ryzen-9-5950x:64gb"),  # a card of before DDR5
        ("2xrtx-3090+64gb-ddr5", "2xrtx-3090+ryzen-9-9950x:64gb"),
        ("rtx-4090+cpu-ddr5-128GB", "rtx-4090+ryzen-9-9950x:128gb"),
    ],
)
def test_names(text: str, name: str) -> None:
    machine = parse_machine(text)
    assert machine.name == name
    assert parse_machine(machine.name).name == name


def test_parts_are_told_from_chips() -> None:
    assert joined("rtx-4090+epyc-9654")
    assert joined("2xrtx-3090")
    assert not joined("xeon-8480+")
    assert not joined("rtx-4090")
    assert not joined("my+chips.toml")


@pytest.mark.parametrize(
    ("text", "chips"),
    [
        ("8xh100", ("h100-sxm5-80gb", 8)),
        ("2xp5.48xlarge", ("h100-sxm5-80gb", 16)),
        ("p5.48xlarge", ("h100-sxm5-80gb", 8)),
        ("DGX H100", ("h100-sxm5-80gb", 8)),
        ("2x HGX H200", ("h200-sxm-141gb", 16)),
        ("g6.xlarge", ("l4", 1)),
        ("h100", None),
        ("2xrtx-4090", ("rtx-4090", 2)),
        ("rtx-4090+epyc-9654", None),
        ("2xepyc-9654", ("epyc-9654", 2)),
        ("999999xh100", ("h100-sxm5-80gb", 999_999)),
        ("xeon-8480+", None),
        ("chips.toml", None),
        ("no-such-chip", None),
    ],
)
def test_chips_are_counted(text: str, chips: tuple[str, int] | None) -> None:
    assert counted(text) == chips


@pytest.mark.parametrize("text", ["2xrtx-4090", "2xepyc-9654"])
def test_parts_of_one_machine_are_not_counted_where_layers_are_dealt_out(text: str) -> None:
    assert counted(text, dealt=True) is None
    assert counted("8xh100", dealt=True) == ("h100-sxm5-80gb", 8)


@pytest.mark.parametrize("text", ["0xh100", "000xh100", "1000000xh100", "9" * 5000 + "xh100"])
def test_a_count_that_cannot_be_is_refused(text: str) -> None:
    for dealt in (False, True):
        with pytest.raises(UsageError, match="says no count of chips") as refused:
            counted(text, dealt=dealt)
        assert refused.value.field == "chip"


def test_counts_of_a_chip_under_all_its_names() -> None:
    assert kinds(["h100", "2xh100", "4xh100-sxm5-80gb", "l4"]) == {"h100-sxm5-80gb": (None, 2, 4), "l4": (None,)}
    assert kinds(["h100"]) == {"h100": (None,)}  # as written: it may be a chip of the user's own
    assert capped(["2xh100", "2xh100", "l4"]) == (("h100-sxm5-80gb", "l4"), {"h100-sxm5-80gb": 2})
    assert capped(["h100", "2xh100", "4xh100"]) == (("h100-sxm5-80gb",), {})
    with pytest.raises(UsageError, match="to 2 and to 4"):
        capped(["2xh100", "4xh100"])


def test_replicas_fill_all_the_chips() -> None:
    assert copies(8, 2, "8xh100", "--tp") == 4
    with pytest.raises(UsageError, match="a replica takes 3: 2 would be idle"):
        copies(8, 3, "8xh100", "--tp")
    with pytest.raises(UsageError, match="a replica takes 4: 3 are missing"):
        copies(1, 4, "1xh100", "--tp")


def test_memory_of_the_host_needs_a_host_to_be_in() -> None:
    named = parse_machine("rtx-4090+epyc-9654", 256 * GIB)
    assert named.host is not None
    assert named.host.chip.memory.usable_bytes == pytest.approx(256 * GIB)
    assert not named.host.assumed
    usual = parse_machine("rtx-4090", 64 * GIB)
    assert usual.host is not None
    assert usual.host.assumed
    alone = parse_machine("ryzen-9-9950x", 64 * GIB)
    assert alone.host is None
    assert alone.cards[0][0].memory.usable_bytes == pytest.approx(64 * GIB)


def test_memory_is_sold_in_powers_of_two() -> None:
    assert memory_bytes("128GB", "") == memory_bytes("128 GiB", "") == 128 * GIB


@pytest.mark.parametrize(
    ("text", "memory", "says"),
    [
        ("m4-max", 64 * GIB, "shares one memory"),
        ("epyc-9654+xeon-6454s", None, "one kind of processor"),
        ("epyc-9654:9000gb", None, "takes at most"),
        ("0xrtx-4090", None, "cannot count"),
        ("9xp5.48xlarge", None, "1 to 8x, each of 8 h100-sxm5-80gb"),
        ("m4-max:80gb", None, "sold as"),
        ("rtx-9090", None, "rtx-4090"),
    ],
)
def test_what_is_no_machine_is_refused_in_one_line(text: str, memory: float | None, says: str) -> None:
    with pytest.raises((UsageError, UnknownNameError)) as refusal:
        parse_machine(text, memory)
    assert says in f"{refusal.value.what} {refusal.value.hint}"


def test_models_of_desks_are_in_the_catalogue_and_have_files() -> None:
    for c in candidates():
        assert find_config(c.model).name == c.model
        assert c.gguf
        assert set(c.uses) <= {"chat", "code", "reasoning", "vision"}
        assert "2024-01" <= c.published <= "2026-12"
        assert set(c.scores) <= set(BENCHMARKS)
        assert bool(c.scores) == bool(c.scored)
        assert all(0 < score < 100 for score in c.scores.values())
