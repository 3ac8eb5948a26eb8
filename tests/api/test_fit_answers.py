"""`api.fit`: an itemised account that adds up, a smallest count that is the smallest, and overrides."""

from __future__ import annotations

import pytest

from chipwise import api
from chipwise.api.placing import Terms
from chipwise.catalog.chips import load_chips
from chipwise.errors import UnknownNameError, UsageError
from chipwise.report.fit import FitRecord, FitReport

MODEL = "meta-llama/Llama-3.1-70B"
SMALL = "meta-llama/Llama-3.1-8B"


@pytest.fixture(scope="module")
def everywhere() -> FitReport:
    return api.fit(MODEL)


OF_TERMS = {"precision", "kv", "runtime", "policy", "changes"}


def one(model: str, chip: str, **asked: object) -> FitRecord:
    terms = Terms(**{name: asked.pop(name) for name in OF_TERMS & asked.keys()})  # type: ignore[arg-type]
    (record,) = api.fit(model, terms, chips=[chip], **asked).fits  # type: ignore[arg-type]
    return record


def test_every_chip_on_the_market_is_sized_or_refused_with_a_reason(everywhere: FitReport) -> None:
    answered = {f.chip for f in everywhere.fits} | {r.chip for r in everywhere.refused}
    assert answered == set(load_chips().market())
    assert all(r.detail for r in everywhere.refused)


def test_items_cache_and_what_is_kept_free_are_the_capacity(everywhere: FitReport) -> None:
    for f in everywhere.fits:
        m = f.memory
        assert m is not None
        if f.verdict != "no":
            total = sum(m.items.values()) + m.cache_bytes + m.withheld_bytes
            assert total == pytest.approx(m.capacity_bytes, rel=1e-9), f.chip
        assert all(size > 0 for size in m.items.values())


def test_verdicts_say_what_is_missing_and_what_would_mend_it(everywhere: FitReport) -> None:
    for f in everywhere.fits:
        assert (f.verdict == "no") == (f.missing_bytes > 0), f.chip
        assert (f.verdict == "no") == (f.largest_batch < 1), f.chip
        if f.verdict != "no":
            assert f.mend == ()
            assert f.largest_context >= 2300


def test_fewest_chips_first_within_a_verdict(everywhere: FitReport) -> None:
    order = ["comfortable", "tight", "no"]
    keys = [(order.index(f.verdict), f.chips) for f in everywhere.fits]
    assert keys == sorted(keys)


@pytest.mark.parametrize("chip", ["h100-sxm5-80gb", "l4", "mi300x", "rtx-4090", "tpu-v6e", "groq-lpu1"])
def test_one_chip_less_than_the_smallest_count_is_not_enough(chip: str) -> None:
    smallest = one(MODEL, chip).chips
    fewer = api.fit(MODEL, chips=[chip], count=smallest - 1).fits if smallest > 1 else ()
    assert all(f.verdict == "no" for f in fewer)


def test_a_larger_batch_or_context_never_takes_fewer_chips() -> None:
    counts = [one(MODEL, "h100-sxm5-80gb", sequences=n).chips for n in (1, 10, 100, 400)]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]
    counts = [one(MODEL, "h100-sxm5-80gb", context=n).chips for n in (1_000, 32_000, 131_072)]
    assert counts == sorted(counts)


def test_the_largest_batch_fits_and_one_more_does_not() -> None:
    record = one(SMALL, "h100-sxm5-80gb", count=1)
    most = record.largest_batch
    assert one(SMALL, "h100-sxm5-80gb", count=1, sequences=most).verdict != "no"
    assert one(SMALL, "h100-sxm5-80gb", count=1, sequences=most + 1).verdict == "no"


def test_the_largest_context_fits_and_a_page_more_does_not() -> None:
    longest = one(MODEL, "a100-sxm4-80gb", count=2).largest_context
    assert one(MODEL, "a100-sxm4-80gb", count=2, context=longest).verdict != "no"
    assert one(MODEL, "a100-sxm4-80gb", count=2, context=longest + 16).verdict == "no"


def test_the_policy_of_the_runtime_can_be_replaced() -> None:
    usual = one(MODEL, "a100-sxm4-80gb", count=2)
    more = one(MODEL, "a100-sxm4-80gb", count=2, policy={"memory_share": "0.97"})
    assert usual.memory is not None
    assert more.memory is not None
    assert more.memory.cache_tokens > 1.3 * usual.memory.cache_tokens
    less = one(MODEL, "a100-sxm4-80gb", count=2, policy={"memory_share": "0.80"})
    assert less.verdict == "no"


def test_the_capacity_of_the_chip_can_be_replaced() -> None:
    assert one(MODEL, "h100-sxm5-80gb", count=1).verdict == "no"
    wider = one(MODEL, "h100-sxm5-80gb", count=1, changes={"memory": "200GB"})
    assert wider.verdict == "comfortable"
    assert wider.memory is not None
    assert wider.memory.capacity_bytes == 200e9


def test_a_smaller_format_takes_less_and_says_what_it_changes() -> None:
    report = api.fit(MODEL, Terms(precision="fp8"), chips=["h100-sxm5-80gb"])
    assert report.model.weight_bytes < 0.6 * api.describe(MODEL).weight_bytes
    assert any("changes the model's numerics; " in text for text in report.assumptions)


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"chips": ["h100x"]}, UnknownNameError),
        ({"precision": "fp3"}, UnknownNameError),
        ({"runtime": "vlm"}, UnknownNameError),
        ({"changes": {"memory": "much"}, "chips": ["l4"]}, UsageError),
        ({"changes": {"wings": "2"}, "chips": ["l4"]}, UnknownNameError),
        ({"policy": {"memory_share": "much"}, "chips": ["l4"]}, UsageError),
        ({"policy": {"memory_share": "7"}, "chips": ["l4"]}, UsageError),
        ({"policy": {"wings": "2"}, "chips": ["l4"]}, UnknownNameError),
    ],
)
def test_bad_input(asked: dict[str, object], error: type[Exception]) -> None:
    terms = Terms(**{name: asked[name] for name in OF_TERMS & asked.keys()})  # type: ignore[arg-type]
    with pytest.raises(error):
        api.fit(SMALL, terms, chips=asked.get("chips", ()))  # type: ignore[arg-type]


def test_the_same_question_has_the_same_answer(everywhere: FitReport) -> None:
    assert api.fit(MODEL) == everywhere
