"""How many are away for repair, by hand."""

from __future__ import annotations

import math

import pytest

import chipwise as cw
from chipwise.predict.fleet import at_most_away


def test_away_by_hand() -> None:
    assert at_most_away(2.0, 1.0, 1).tolist() == pytest.approx([math.exp(-2.0), 3.0 * math.exp(-2.0)])
    # of size 1: geometric
    assert at_most_away(2.0, 3.0, 2).tolist() == pytest.approx([1 / 3, 5 / 9, 19 / 27])
    assert at_most_away(0.0, 5.0, 1).tolist() == [1.0, 1.0]
    assert at_most_away(9.0, 5.0, 200)[-1] == pytest.approx(1.0)


def test_a_spare_replica_keeps_the_load_carried_for_longer() -> None:
    up = cw.plan("meta-llama/Llama-3.1-8B", chips="h100", rate="60/s", spare=1).best.up
    assert up is not None
    assert up.without < up.share < 1.0
