"""Chips of the user's own in machines with memory beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.api.test_like import MINE, copy_of

import chipwise as cw
from chipwise.errors import UnknownNameError

MODEL = "Qwen/Qwen3-32B"


@pytest.fixture
def table(tmp_path: Any) -> str:
    with open(copy_of("rtx-4090", tmp_path), encoding="utf-8") as file:
        return file.read()


@pytest.mark.parametrize(
    "ask",
    [
        lambda **k: cw.plan(MODEL, task="local", have=f"1x{MINE}", **k).plans[0],
        lambda **k: cw.estimate(MODEL, chip=MINE, **k).plans[0],
        lambda **k: cw.explain(MODEL, chip=MINE, **k).plans[0],
        lambda **k: cw.fit(MODEL, chips=MINE, **k).fits[0],
    ],
    ids=["plan", "estimate", "explain", "fit"],
)
def test_with_memory_of_the_host(ask: Callable[..., Any], table: str) -> None:
    assert MINE in ask(own_chips=table, host_memory="64GB").chip


def test_with_a_processor_that_is_named(table: str) -> None:
    assert MINE in cw.estimate(MODEL, chip=f"{MINE}+epyc-9654", own_chips=table).plans[0].chip
    with pytest.raises(UnknownNameError):
        cw.estimate(MODEL, chip=f"{MINE}+epyc-9654")
