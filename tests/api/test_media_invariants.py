"""Between chips: one with no less of anything on its sheet is never slower in the same plan of a pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import permutations

import numpy as np
import pytest

from chipwise.api.media_asked import Sampling
from chipwise.api.media_work import Place, Work
from chipwise.api.placing import Terms
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import load_chips
from chipwise.errors import ChipwiseError

ASKED: Mapping[str, Sampling] = {
    "hunyuanvideo": Sampling(resolution=(1280, 720), frames=129, steps=50),
    "sdxl": Sampling(steps=30),
}
"""One that attention sets the time of, one of convolutions and products."""

MEASURED = frozenset({("a40", "rtx-a6000"), ("rtx-a5500", "rtx-a6000")})
"""Pairs of which the second is slower by its own rows of kernels: those of the A6000 were timed under a runtime whose
products take twice as long."""

ROUNDING = 1e-3  # of a time: tiles that are cut otherwise


def generations() -> Iterator[list[Chip]]:
    """GPUs that one can have and whose clock is known, by the design of their 16-bit units."""
    found: dict[str, list[Chip]] = {}
    for chip in load_chips().values():
        clock = chip.matrix_unit.peak_clock_hz or chip.matrix_unit.boost_clock_hz
        if chip.family == "simt" and chip.rentable and clock:
            found.setdefault(chip.base_generation, []).append(chip)
    yield from (chips for chips in found.values() if len(chips) > 1)


def sheet(place: Place) -> Mapping[str, float]:
    """Figures of a device by name, more of each being better."""
    d = place.device
    figures = {f"peak {name}": peak for name, peak in d.matrix.items()}
    figures |= {
        "lanes": d.vector_flops_per_s,
        "memory": d.memory_bytes,
        "bandwidth": d.memory_bytes_per_s,
        "cache": place.chip.cache_bytes or 0.0,
        "watts": d.power_w,
    }
    return {name: float(np.asarray(x)) for name, x in figures.items()}


@pytest.mark.parametrize("model", ASKED)
def test_a_chip_with_no_less_of_anything_is_never_slower(model: str) -> None:
    numbers, terms, asked = shipped_parameters(), Terms(), ASKED[model]
    pairs, slower = 0, {}
    for chips in generations():
        times, sheets = {}, {}
        for chip in chips:
            try:
                place = Place.of(chip, terms, numbers)
                work = Work.of(place.pipeline(model, terms, asked), place, terms, asked)
            except ChipwiseError:
                continue
            times[chip.id], sheets[chip.id] = work.request_s(work.pace(numbers)), sheet(place)
        for less, more in permutations(times, 2):
            if all(sheets[more].get(name, 0.0) >= x for name, x in sheets[less].items()):
                pairs += 1
                if times[more] > (1.0 + ROUNDING) * times[less]:
                    slower[less, more] = times[more] / times[less]
    assert pairs > 300
    assert {pair: ratio for pair, ratio in slower.items() if pair not in MEASURED} == {}


@pytest.mark.parametrize("board", ["h200-sxm-141gb", "h100-nvl-94gb", "gh200-96gb", "h100-pcie-80gb"])
def test_boards_with_the_same_units_share_all_numbers(board: str) -> None:
    numbers, terms, asked = shipped_parameters(), Terms(), ASKED["sdxl"]

    def stock(chip: str) -> Mapping[str, float]:
        place = Place.of(load_chips()[chip], terms, numbers)
        return Work.of(place.pipeline("sdxl", terms, asked), place, terms, asked).stock(numbers)

    assert stock(board) == stock("h100-sxm5-80gb")
