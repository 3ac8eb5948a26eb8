"""Verdicts follow from the numbers: the same functions, given other numbers, say otherwise."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from docs.generate.claims.claim import close, times
from docs.generate.claims.page import CLAIMS, checked, claims_page
from docs.generate.claims.sheets import judge_dates, judge_fit, judge_share, judge_variants
from docs.generate.claims.speeds import judge_gain, judge_order, judge_range
from docs.generate.console import on_the_day


@pytest.fixture(scope="module", autouse=True)
def _the_day() -> Iterator[None]:
    with on_the_day():
        yield


def test_rounded_figures_are_the_same() -> None:
    assert close(989.4, 989.0)
    assert not close(756.0, 989.0)
    assert times(1.4333) == "1.43 times"


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        ({"a": (3.35, 989.4)}, "true"),
        ({"a": (3.35, 989.4), "b": (2.0, 756.0)}, "true with a condition"),
        ({"a": (3.35, 1979.0)}, "false"),
    ],
)
def test_all_variants_some_or_none(found: dict[str, tuple[float, float]], verdict: str) -> None:
    assert judge_variants(found, (3.35, 989.0)) == verdict


@pytest.mark.parametrize(("fitting", "verdict"), [(9, "true"), (4, "true with a condition"), (0, "false")])
def test_all_models_some_or_none(fitting: int, verdict: str) -> None:
    assert judge_share(fitting, 9) == verdict


@pytest.mark.parametrize(
    ("verdicts", "verdict"),
    [
        (["comfortable"], "true"),
        (["comfortable", "no"], "true with a condition"),
        (["tight"], "true with a condition"),
        (["no", "no"], "false"),
    ],
)
def test_what_fits_and_what_is_tight(verdicts: list[str], verdict: str) -> None:
    assert judge_fit(verdicts) == verdict


@pytest.mark.parametrize(("year", "verdict"), [(2016, "true"), (2015, "misleading"), (2017, "false")])
def test_years(year: int, verdict: str) -> None:
    assert judge_dates(year, 2016) == verdict


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [([2.0, 1.85], "true"), ([3.0, 1.3], "true with a condition"), ([1.3, 1.5], "misleading")],
)
def test_a_factor_everywhere_somewhere_or_nowhere(ratios: list[float], verdict: str) -> None:
    assert judge_range(ratios, 2.0) == verdict


@pytest.mark.parametrize(("gain", "verdict"), [(0.95, "true"), (0.5, "misleading"), (0.02, "false")])
def test_what_twice_of_it_gives(gain: float, verdict: str) -> None:
    assert judge_gain(gain, 1.0) == verdict


@pytest.mark.parametrize(
    ("won", "verdict"), [(40, "true"), (36, "true"), (25, "true with a condition"), (6, "false")]
)
def test_disputed_pairs(won: int, verdict: str) -> None:
    assert judge_order(won, 40) == verdict


def test_at_least_a_dozen_with_numbers_and_sources() -> None:
    claims = checked()
    assert len(claims) == len(CLAIMS) >= 12
    for claim in claims:
        assert claim.numbers
        assert all(n.value and n.source for n in claim.numbers), claim.quote
        assert claim.quote in claims_page()


def test_verdicts_that_facts_decide() -> None:
    """Those that no change of a cost model can turn."""
    verdicts = {claim.quote: claim.verdict for claim in checked()}
    assert verdicts["TPUs are joined in a 4D torus."] == "false"
    assert verdicts["A GPU core does one operation per cycle."] == "false"
    assert verdicts["TPUs came in 2016."] == "misleading"
    assert verdicts["Groq is faster because of its clock."] == "false"
    assert verdicts["NVLink moves 900 GB/s from one H100 to another."] == "misleading"
    assert verdicts["An H100 has 3.35 TB/s and 989 TFLOPS."] == "true with a condition"
    assert verdicts["One wafer holds the entire model."] == "true with a condition"
    assert verdicts["A 70B model needs 140 GB, so two A100 suffice."] == "true with a condition"
