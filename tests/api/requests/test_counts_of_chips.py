"""What `8xh100` means in every question that takes chips: a cap in a search, as many in a memory account, replicas in
an estimate."""

from __future__ import annotations

from typing import Any

import pytest

import chipwise as cw
from chipwise.api.requests.doors import problem_of, read_request
from chipwise.errors import ChipwiseError

LLAMA = "meta-llama/Llama-3.1-8B"
H100 = "h100-sxm5-80gb"


def refused(verb: str, **given: Any) -> ChipwiseError:
    """The error of a question as it comes over HTTP."""
    with pytest.raises(ChipwiseError) as error:
        read_request(verb, given).answer()
    return error.value


@pytest.mark.parametrize("model", ["qwen3-8b", "resnet50"])
@pytest.mark.parametrize("verb", ["fit", "plan", "train", "estimate"])
@pytest.mark.parametrize("text", ["0xh100", "1234567xh100", "0xrtx-4090"])
def test_a_count_that_cannot_be_has_one_answer(verb: str, model: str, text: str) -> None:
    field = "chip" if verb == "estimate" else "chips"
    with pytest.raises(ChipwiseError, match=f"'{text}' says no count of chips") as error:
        getattr(cw, verb)(model, **{field: text})
    over_http = refused(verb, model=model, **{field: text})
    assert str(over_http) == str(error.value)
    assert (over_http.field, over_http.exit_code) == (field, 2)
    assert "8x" in problem_of(over_http).hint


def test_a_cap_is_lifted_by_the_chip_without_a_count() -> None:
    def chips(text: str) -> int:
        (best,) = cw.plan("qwen3-8b", chips=text, rate="60/s", evidence="none").plans
        return int(best.chips)

    free = chips("h100")
    assert free > 2
    assert chips("h100,2xh100") == chips(f"2xh100,{H100}") == free
    error = refused("plan", model="qwen3-8b", chips="4xh100,2xh100")
    assert error.field == "chips"
    assert "to 4 and to 2" in str(error)


def test_each_count_of_a_chip_is_answered_where_it_is_not_a_cap() -> None:
    fits = cw.fit("qwen3-8b", chips="2xh100,4xh100,h100").fits
    assert [f.chips for f in fits] == [1, 2, 4]
    run = cw.train("qwen3-8b", chips="64xh100,128xh100", tokens="1B")
    assert {p.chips for p in run.plans} == {64, 128}
    error = refused("train", model="qwen3-8b", chips="64xh100,128xh200")
    assert "the same counts on every chip" in str(error)


def test_a_count_caps_cards_at_a_desk_too() -> None:
    for model in (LLAMA, "resnet50"):
        plans = cw.plan(model, chips="4xrtx-4090", evidence="none").plans
        assert plans
        assert all(p.chip == "rtx-4090" and p.chips <= 4 for p in plans)


@pytest.mark.parametrize(("model", "chip", "replicas"), [("resnet50", "8xrtx-pro-6000", 8), ("sdxl", "2xrtx-4090", 2)])
def test_networks_fill_cards_at_a_desk_with_replicas(model: str, chip: str, replicas: int) -> None:
    (plan,) = cw.estimate(model, chip=chip, evidence="none").plans
    assert (plan.replicas, plan.chips) == (replicas, replicas)


def test_cards_at_a_desk_share_the_layers_of_a_language_model() -> None:
    (plan,) = cw.estimate(LLAMA, chip="2xrtx-4090", evidence="none").plans
    assert plan.chip == "2xrtx-4090"
    (fit,) = cw.fit(LLAMA, chips="2xrtx-4090").fits
    assert fit.chip == "2xrtx-4090"
    assert refused("estimate", model=LLAMA, chip="65xrtx-4090").field == "chip"
    assert refused("fit", model=LLAMA, chips="65xrtx-4090").field == "chips"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"model": "qwen3-8b", "chip": "8xh100", "tp": 3}, "a replica takes 3: 2 would be idle"),
        ({"model": "sdxl", "chip": "8xh100", "spread": "ulysses=3"}, "a replica takes 3: 2 would be idle"),
        ({"model": "qwen3-8b", "chip": "2xh100", "tp": 4}, "a replica takes 4: 2 are missing"),
    ],
)
def test_chips_that_are_no_whole_replicas(given: dict[str, Any], says: str) -> None:
    error = refused("estimate", **given)
    assert error.field == "chip"
    assert says in str(error)


def test_a_network_is_copied_to_counted_chips_and_shared_as_spread_says() -> None:
    def counts(**given: Any) -> list[tuple[str, int, int]]:
        return [(p.chip, p.chips, p.replicas) for p in cw.fit("wan2.2", **given).plans]

    assert counts(chips="4xh100,2xh100,l40s") == [(H100, 2, 2), (H100, 4, 4), ("l40s", 1, 1)]
    assert counts(chips="p5.48xlarge", spread="ulysses=2") == [(H100, 8, 4)]
    error = refused("fit", model="wan2.2", chips="2xh100", spread="ulysses=4")
    assert error.field == "chips"
    assert "2 are missing" in str(error)
    assert "spread" in problem_of(error).hint
