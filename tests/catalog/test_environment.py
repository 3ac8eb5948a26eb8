"""Environments leave less of a chip, never more, and every one changes what is said."""

from __future__ import annotations

import pytest

import chipwise as cw
from chipwise.catalog.chips import get_chip
from chipwise.catalog.environment import Environment, environment, environments
from chipwise.errors import UnknownNameError, UsageError
from command_line import Run

CHIPS = ("rtx-4070", "m4-max", "snapdragon-8-elite", "raspberry-pi-5", "igpu-radeon-8060s", "h100-sxm5-80gb")


@pytest.mark.parametrize("name", sorted(environments()))
@pytest.mark.parametrize("chip", CHIPS)
def test_nothing_grows(name: str, chip: str) -> None:
    whole, left = get_chip(chip), environment(name).of(get_chip(chip))
    for rates in ("matrix", "vector"):
        before, after = getattr(whole, rates), getattr(left, rates)
        assert before.keys() == after.keys()
        assert all(after[key] <= before[key] for key in before)
    assert left.memory.bytes_per_s == whole.memory.bytes_per_s
    assert (left.memory.label_bytes or 0.0) <= (whole.memory.label_bytes or 0.0)
    assert left.id == whole.id


def test_what_each_takes() -> None:
    card, shared = get_chip("rtx-4070"), get_chip("m4-max")
    assert environment("headless").of(card).system_bytes == 0.0
    assert environment("headless").of(shared).system_bytes == shared.system_bytes
    assert environment("laptop").of(card).matrix["fp16"] == pytest.approx(0.85 * card.matrix["fp16"])
    browser = environment("browser").of(card)
    assert max(browser.matrix.values()) <= max(card.vector.values())
    assert (card.dispatch_s, browser.dispatch_s) == (0.0, 24e-6)
    assert environment("") == Environment()
    assert Environment().of(card) is card


@pytest.mark.parametrize(
    ("name", "there", "elsewhere"),
    [
        ("phone", "a18-pro", "rtx-4090"),
        ("phone", "snapdragon-8-elite", "jetson-thor-t5000"),
        ("laptop", "m4-max", "rtx-4090"),
        ("edge", "jetson-agx-orin-64", "rtx-5090"),
        ("edge", "l4", "h100-sxm5-80gb"),
        ("browser", "rtx-4090", "h100-sxm5-80gb"),
        ("headless", "h100-sxm5-80gb", None),
    ],
)
def test_chips_are_where_their_machines_are(name: str, there: str, elsewhere: str | None) -> None:
    environment(name).check(get_chip(there))
    if elsewhere is not None:
        with pytest.raises(UsageError, match=f"--environment {name}: {elsewhere}"):
            environment(name).check(get_chip(elsewhere))


def test_a_card_that_no_phone_holds_is_refused_and_not_bought(run: Run) -> None:
    refused = run("local", "--have", "rtx-4090", "--environment", "phone").refused(2)
    assert "not in a phone" in refused
    assert "a19" in refused
    bought = run("local", "--max-usd", "4000", "--environment", "edge", "--format", "json").json["models"]
    assert bought
    assert not any("4090" in record["item"] or "5090" in record["item"] for record in bought)


def test_an_environment_that_there_is_not(run: Run) -> None:
    with pytest.raises(UnknownNameError, match="did you mean browser"):
        environment("brwoser")
    assert "browser" in run("local", "--have", "rtx-4070", "--environment", "brwoser").refused(3)


def test_what_fits_and_what_it_reaches_follow(run: Run) -> None:
    def asked(name: str, *more: str) -> dict[str, object]:
        found: dict[str, object] = run(
            "local", "--have", "rtx-4080-laptop", "--environment", name, *more, "--format", "json"
        ).json
        return found

    one = ("--models", "Qwen3-4B", "--precision", "q8_0")
    first = {
        name: asked(name, *one)["models"][0]["ttft_s"]["mid"]  # type: ignore[index]
        for name in ("workstation", "laptop", "browser")
    }
    assert first["workstation"] < first["laptop"] < first["browser"]
    room = {
        name: asked(name, "--models", "Qwen3-8B", "--precision", "q8_0")["models"][0]["largest_context"]  # type: ignore[index]
        for name in ("workstation", "headless")
    }
    assert room["workstation"] < room["headless"]
    wide = ("local", "--have", "m3-ultra", "--models", "gemma-3-27b-it", "--precision", "bf16", "--min-tps", "1")
    assert run(*wide, "--environment", "workstation").code == 0  # a table of 262,208 x 5,376 tokens takes 2.8 GB
    assert "tensor of 2.82 GB" in run(*wide, "--environment", "browser").refused(4)
    assert any("no matrix units" in line for line in asked("browser", *one)["assumptions"])  # type: ignore[attr-defined]


def test_a_page_decodes_at_part_of_what_a_program_does() -> None:
    """Published of WebLLM: 71 and 80 % of the same engine outside of a page, on an M3 Max (arXiv 2412.15803)."""
    seconds = {}
    for name in ("", "browser"):
        (row,) = cw.local(have="m3-max", models="meta-llama/Llama-3.1-8B-Instruct", environment=name).models
        seconds[name] = 1.0 / row.tokens_per_s.mid
    assert 0.6 < seconds[""] / seconds["browser"] < 0.85
