from __future__ import annotations

from dataclasses import replace

import pytest

from chipwise.catalog.published import find_result
from chipwise.evidence.claim import Condition, judge_claim, rivals_of
from chipwise.evidence.item import Item, item_of, own_item
from chipwise.evidence.match import AXES, anchored, match, nearest
from chipwise.evidence.match_axes import ModelFacts, Target

DENSE_70B = ModelFacts("llama-70b", 70e9, 69e9, 160e3, "llama")
TABLE = {
    "meta-llama/Llama-2-70b-chat-hf": replace(DENSE_70B, name="llama-2-70b"),
    "llama-70b": DENSE_70B,
    "llama-8b": ModelFacts("llama-8b", 8e9, 7.5e9, 64e3, "llama"),
    "experts": ModelFacts("experts", 120e9, 5e9, 40e3, "gpt_oss"),
}
TARGET = Target(
    DENSE_70B, "h200-sxm-141gb", 8, "fp8", "serve", 230.0, 290.0, runtime="trtllm", date="2025-10", power_w=700.0
)


def published(name: str) -> Item:
    found = find_result(name)
    return item_of(found)  # type: ignore[arg-type]


ROW = published("v5.1-05440")  # 8x H200, llama2-70b, Server, TensorRT, 2025-09


def marks(target: Target, item: Item = ROW) -> dict[str, str]:
    return {a.name: a.mark for a in match(target, item, TABLE.get).axes}


def test_every_axis_has_a_mark_and_a_reason() -> None:
    found = match(TARGET, ROW, TABLE.get)
    assert [a.name for a in found.axes] == list(AXES)
    assert all(a.reason for a in found.axes)


def test_the_same_plan_is_a_direct_measurement() -> None:
    assert marks(TARGET) == dict.fromkeys(AXES, "same") | {"environment": "near"}
    assert match(TARGET, ROW, TABLE.get).verdict == "a direct measurement of such a plan"


@pytest.mark.parametrize(
    ("axis", "change", "mark"),
    [
        ("chip", {"chip": "h100-sxm5-80gb"}, "near"),
        ("chip", {"chip": "mi325x"}, "different"),
        ("count", {"chips": 4}, "near"),
        ("count", {"chips": 1}, "different"),
        ("count", {"chips": None}, "unknown"),
        ("model", {"model": TABLE["llama-8b"]}, "different"),
        ("model", {"model": TABLE["experts"]}, "different"),
        ("precision", {"precision": "bf16"}, "different"),
        ("precision", {"precision": "int8"}, "same"),
        ("precision", {"precision": ""}, "unknown"),
        ("load", {"input_tokens": 400.0}, "near"),
        ("load", {"input_tokens": 8000.0}, "different"),
        ("load", {"concurrency": 16.0}, "unknown"),
        ("scenario", {"scenario": "batch"}, "near"),
        ("scenario", {"scenario": "local"}, "different"),
        ("runtime", {"runtime": "vllm"}, "near"),
        ("runtime", {"date": "2028-01"}, "different"),
        ("runtime", {"runtime": ""}, "unknown"),
    ],
)
def test_one_change_moves_one_axis_and_the_distance(axis: str, change: dict[str, object], mark: str) -> None:
    changed = replace(TARGET, **change)  # type: ignore[arg-type]
    found = marks(changed)
    assert found[axis] == mark
    assert {k: v for k, v in found.items() if k != axis} == {k: v for k, v in marks(TARGET).items() if k != axis}
    grew = match(changed, ROW, TABLE.get).distance > match(TARGET, ROW, TABLE.get).distance
    assert grew == (mark != "same")


def test_a_power_bin_is_near_not_same() -> None:
    item = replace(ROW, power_limit_w=1000.0)
    assert marks(TARGET, item)["chip"] == "near"


def test_what_was_measured_virtually_or_throttled_is_another_environment() -> None:
    assert marks(TARGET, replace(ROW, environment="maxq"))["environment"] == "different"


def test_nearest_prefers_the_same_cell_and_names_each_once() -> None:
    rows = [published(n) for n in ("v5.1-05440", "v5.1-05870", "v5.0-03847", "v5.1-05492")]
    found = nearest(TARGET, [*rows, replace(ROW, tokens_per_s=None, id="none")], TABLE.get)
    assert found[0].item.id == "v5.1-05440"  # the better of two submitters of one cell
    assert "v5.1-05870" not in {m.item.id for m in found}
    assert [m.distance for m in found] == sorted(m.distance for m in found)


def test_an_anchor_moves_the_prediction_towards_what_was_measured() -> None:
    near = match(TARGET, ROW, TABLE.get)
    half = (ROW.tokens_per_s or 0.0) / 2
    found = anchored(1000.0, [near], lambda _: half)
    assert 1000.0 < found.value < 2000.0
    assert 0.5 < found.weight < 0.85
    far = match(replace(TARGET, chip="mi325x", model=TABLE["experts"], precision="bf16"), ROW, TABLE.get)
    assert abs(anchored(1000.0, [far], lambda _: half).value - 1000.0) < abs(found.value - 1000.0)


def test_only_such_a_model_on_this_chip_and_under_such_limits_is_an_anchor() -> None:
    tight = replace(ROW, scenario="Interactive")
    for target, item in ((replace(TARGET, chip="h100-sxm5-80gb"), ROW), (TARGET, tight)):
        found = anchored(1000.0, [match(target, item, TABLE.get)], lambda _: 1.0)
        assert (found.value, found.used) == (1000.0, ())
    other = match(replace(TARGET, model=TABLE["llama-8b"]), ROW, TABLE.get)
    assert anchored(1000.0, [other], lambda _: 1.0).used == ()
    assert "not your model's speed" in other.verdict


def test_a_right_model_is_not_moved_and_no_match_changes_nothing() -> None:
    near = match(TARGET, ROW, TABLE.get)
    assert anchored(1000.0, [near], lambda i: i.tokens_per_s).value == pytest.approx(1000.0)
    none = anchored(1000.0, [near], lambda _: None)
    assert (none.value, none.weight, none.used) == (1000.0, 0.0, ())


def test_rows_of_one_cell_count_once() -> None:
    near = match(TARGET, ROW, TABLE.get)
    twin = match(TARGET, replace(ROW, id="twin"), TABLE.get)
    one = anchored(1000.0, [near], lambda _: 1.0)
    assert anchored(1000.0, [near, twin], lambda _: 1.0).value == pytest.approx(one.value)


GOAL = Condition("h200-sxm-141gb", 8, "llama-70b", "fp8", 230.0, 290.0)


def start(item: Item) -> Condition:
    return Condition(item.chip, item.chips or 1, "llama-2-70b", "fp8", 221.3, 287.5)


def slow_at_bf16(c: Condition) -> float:
    """A chip whose lead rests on fp8."""
    return 100.0 / (3.0 if c.chip == "h200-sxm-141gb" and c.precision == "bf16" else 1.0)


def test_a_lead_near_the_plan_is_supported_and_carries_over() -> None:
    rival = published("v5.1-05492")
    found = judge_claim(match(TARGET, ROW, TABLE.get), [rival], start, GOAL, lambda _: 100.0)
    assert found.supported
    assert found.rivals[0].carried == pytest.approx(found.rivals[0].measured)


def test_a_lead_that_rests_on_precision_is_reversed_by_it_and_never_advice() -> None:
    target = replace(TARGET, precision="bf16")
    goal = replace(GOAL, precision="bf16")
    found = judge_claim(match(target, ROW, TABLE.get), [published("v5.1-05492")], start, goal, slow_at_bf16)
    assert not found.supported
    assert found.verdict.startswith("not advice")
    turned = [s.axis for s in found.rivals[0].steps if s.reverses]
    assert turned == ["precision"]
    assert "reversed by precision" in found.rivals[0].verdict


def test_a_lead_that_another_format_would_turn_says_so() -> None:
    ahead = replace(ROW, tokens_per_s=2.0 * (ROW.tokens_per_s or 0.0))
    found = judge_claim(match(TARGET, ahead, TABLE.get), [published("v5.1-05492")], start, GOAL, slow_at_bf16)
    rival = found.rivals[0]
    assert rival.carried is not None
    assert rival.carried > 1.2
    assert [t.change for t in rival.turners] == ["bf16"]
    assert rival.turners[0].ratio == pytest.approx(rival.carried / 3.0)


def test_a_chip_that_misses_the_limits_is_named() -> None:
    target, goal = replace(TARGET, input_tokens=2000.0), replace(GOAL, input_tokens=2000.0)

    def speed(c: Condition) -> float | None:
        return None if c.chip != "h200-sxm-141gb" and c.input_tokens > 1000 else 100.0

    found = judge_claim(match(target, ROW, TABLE.get), [published("v5.1-05492")], start, goal, speed)
    assert found.rivals[0].steps[-1].change.endswith(f"{found.rivals[0].item.chip} cannot")
    assert found.rivals[0].steps[-1].ratio is None


def test_what_cannot_be_predicted_makes_no_statement() -> None:
    found = judge_claim(match(TARGET, ROW, TABLE.get), [published("v5.1-05492")], start, GOAL, lambda _: None)
    assert "no statement" in found.rivals[0].verdict
    alone = judge_claim(match(TARGET, ROW, TABLE.get), [], start, GOAL, lambda _: 1.0)
    assert not alone.supported
    assert "no lead" in alone.verdict


def test_rivals_are_other_chips_under_the_same_benchmark() -> None:
    rows = [published(n) for n in ("v5.1-05440", "v5.1-05492", "v5.1-05855", "v5.1-05868")]
    assert {r.chip for r in rivals_of(ROW, rows)} == {"h100-sxm5-80gb", "b200-sxm"}
    assert [r.chip for r in rivals_of(ROW, rows, ("b200-sxm",))] == ["b200-sxm"]


def test_the_users_own_measurement_is_the_same_environment() -> None:
    values = {"model": "llama-70b", "result": 1.0, "unit": "Tokens/s", "chip": "h200-sxm-141gb", "chips": 8}
    assert marks(TARGET, own_item("vllm bench serve", values))["environment"] == "same"
