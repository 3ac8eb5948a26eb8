"""Rates between two loads of a grid: an engine with more memory never needs more replicas."""

from __future__ import annotations

import pytest

import chipwise as cw

MODEL = "Qwen/Qwen3-30B-A3B"


def test_more_memory_never_costs_more_where_answers_are_short() -> None:
    """Of answers in two tokens the grid of batches has three loads up to the most that an engine takes: with room for
    them the rate was that of a lighter load than where memory was short, $7.63 in place of $5.45 an hour."""
    asked = {"rate": "11.878/s", "in_": 7049, "out": 2, "tpot": "65.13ms", "ttft": "2580ms", "e2e": "2710ms"}
    found = [
        cw.plan(MODEL, chips="l40s", runtime="trtllm", precision="fp8", set=more, **asked).plans[0]
        for more in ("memory=48GB", "memory=60GB", "memory=96.6116GB")
    ]
    dollars = [p.price.mid for p in found]
    assert dollars == sorted(dollars, reverse=True)
    assert all(p.load <= 0.7 + 1e-9 for p in found)


def test_a_chip_that_nothing_runs_on_is_refused_in_words() -> None:
    """Nothing is offered: no model of error is asked for."""
    with pytest.raises(cw.ChipwiseError, match="no plan"):
        cw.plan("Qwen/Qwen3-8B", chips="mlu590", precision="fp8", rate="1/s")
