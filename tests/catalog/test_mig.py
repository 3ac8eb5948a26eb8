"""Instances that a chip is cut into, and what a share of one leaves."""

from __future__ import annotations

import pytest

from chipwise.catalog.chips import load_chips
from chipwise.catalog.override import Instance, Share, fit_together, instances_of
from chipwise.errors import UsageError
from chipwise.units import GIB


def test_instances_are_cut_as_the_card_allows() -> None:
    cuts = {cut.name: cut for cut in instances_of("a100-sxm4-80gb")}
    assert fit_together([cuts["3g.40gb"], cuts["4g.40gb"]])
    assert fit_together([cuts["3g.40gb"], cuts["2g.20gb"], cuts["2g.20gb"]])
    assert not fit_together([cuts["3g.40gb"], cuts["3g.40gb"], cuts["1g.10gb"]])
    assert fit_together([cuts["1g.10gb"]] * 7)
    assert not fit_together([cuts["1g.20gb"]] * 5)
    assert cuts["1g.10gb"].compute == pytest.approx(14.0 / 108.0, rel=1e-3)
    assert instances_of("l40s") == ()


def test_every_chip_that_is_cut_is_in_the_catalogue_and_its_names_say_the_memory() -> None:
    chips = load_chips()
    known = [c for c in chips if instances_of(c)]
    assert len(known) == 13
    for chip in known:
        memory = chips[chip].memory
        capacity = memory.usable_bytes or memory.label_bytes
        assert capacity
        for cut in instances_of(chip):
            said = float(cut.name.partition(".")[2].removesuffix("gb"))
            assert cut.memory * capacity / GIB == pytest.approx(said, rel=0.1)


def test_an_instance_is_a_smaller_chip() -> None:
    h100 = load_chips()["h100-sxm5-80gb"]
    cut = Share(instance="3g.40gb").of(h100)
    whole, part_ = h100.memory, cut.memory
    assert whole.bytes_per_s
    assert part_.bytes_per_s == pytest.approx(whole.bytes_per_s / 2.0)
    assert part_.usable_bytes == pytest.approx((whole.usable_bytes or whole.label_bytes or 0.0) / 2.0)
    assert cut.matrix["bf16"] == pytest.approx(h100.matrix["bf16"] * 3.0 / 7.0)
    assert Share(memory=0.5).of(h100).memory.usable_bytes == part_.usable_bytes
    assert isinstance(instances_of("h100-sxm5-80gb")[0], Instance)
    with pytest.raises(UsageError, match=r"one of 1g.10gb, 1g.20gb, 2g.20gb, 3g.40gb, 4g.40gb"):
        Share(instance="3g.71gb").of(h100)
    with pytest.raises(UsageError, match="shares its time"):
        Share(instance="3g.40gb").of(load_chips()["l40s"])
