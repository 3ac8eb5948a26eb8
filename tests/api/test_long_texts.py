"""Texts that are no names are not compared with names: a question of 64 KB never takes long. Nothing is timed here:
what is slow is a comparison for each word or letter, and those are counted."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from difflib import SequenceMatcher
from typing import Any

import pytest

import chipwise as cw
from chipwise.catalog import names
from chipwise.catalog.configs import bundled_configs
from chipwise.errors import LONGEST_NAME, ChipwiseError, UnknownNameError, is_name

LONG = (
    "x" + " 2" * 31_500,
    "a-" * 30_000,
    "llama-3.1-70b " * 4_000,
    "4x" + "h100 " * 12_000,
    "h100+" * 12_000,
    "-" * 60_000,
    "q4_k_m " * 8_000,
    "{" + ' "a":' * 10_000,
)


@pytest.mark.parametrize("text", LONG, ids=lambda t: t[:6])
def test_a_long_text_is_no_name_of_a_model_or_chip(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def short(of: Callable[..., Any]) -> Callable[..., Any]:
        def checked(*said: Any) -> Any:
            assert all(len(word) <= LONGEST_NAME for word in said if isinstance(word, str))
            return of(*said)

        return checked

    for place in ("errors.difflib.SequenceMatcher", "catalog.networks._spelled", "catalog.chips.words_of"):
        module, _, name = place.rpartition(".")
        of = (
            getattr(importlib.import_module(f"chipwise.{module}"), name) if "difflib" not in module else SequenceMatcher
        )
        monkeypatch.setattr(f"chipwise.{place}", short(of))
    asks: tuple[Callable[[], object], ...] = (
        lambda: cw.fit(text, chips="h100-sxm5-80gb"),
        lambda: cw.estimate(text, chip="h100-sxm5-80gb"),
        lambda: cw.fit("Qwen/Qwen3-0.6B", chips=text),
        lambda: cw.estimate("Qwen/Qwen3-0.6B", chip=text),
    )
    for ask in asks:
        with pytest.raises(ChipwiseError) as error:
            ask()
        assert len(str(error.value)) < 1_000


def test_what_may_be_a_name() -> None:
    longest = max((name for name in bundled_configs()), key=len)
    assert is_name(longest)
    assert len(longest) * 2 < LONGEST_NAME
    assert not is_name("x" * 201)
    assert not is_name('  {"a": 1}')
    assert names.near("x " * 200, [longest]) == ()


def test_nearest_names_are_looked_for_when_somebody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    found = UnknownNameError("chip", "h10", ["h100", "l4"])
    assert found.nearest == ("h100",)
    assert "did you mean h100?" in str(found)
    said = UnknownNameError("chip", "h10", ["h100"])
    said.hint = "another"
    assert said.hint == "another"
    assert said.nearest == ("h100",)
    monkeypatch.setattr("chipwise.errors.nearest", None)  # nobody asks
    UnknownNameError("chip", "h10", ["h100"])


@pytest.mark.parametrize("value", [[0] * 100_000, {str(i): i for i in range(100_000)}], ids=["list", "keys"])
@pytest.mark.parametrize("key", ["text_config", "layer_types", "architectures", "something"])
def test_a_configuration_with_a_hundred_thousand_entries(key: str, value: object) -> None:
    data = {**bundled_configs()["google/gemma-3-27b-it"].data, key: value}
    try:
        said = cw.fit(json.dumps(data), chips="h100-sxm5-80gb").assumptions
    except ChipwiseError:
        return
    assert len(said) < 500


def test_a_list_of_a_thousand_names_and_more() -> None:
    with pytest.raises(ChipwiseError, match="2,000 names in one list"):
        cw.fit("Qwen/Qwen3-0.6B", chips=",".join(f"chip{i}" for i in range(2000)))
