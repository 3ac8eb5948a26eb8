"""Moving from chips that one has to others, at the same load."""

from __future__ import annotations

import pytest

import chipwise
from chipwise.errors import UsageError

ASKED = {"model": "Qwen/Qwen3-8B", "rate": 2, "tpot": "40ms"}


def test_what_one_has_stands_beside_what_would_replace_it() -> None:
    report = chipwise.compare(have="4xl40s", chips="2xh100", provider="lambda", **ASKED)
    assert report.before is not None
    assert (report.before.chip, report.plans[0].chip) == ("l40s", "h100-sxm5-80gb")
    moved = {m.what: m for m in report.moved}
    per_token = moved["time per token"]
    assert per_token.ratio == pytest.approx(report.plans[0].tpot_s.mid / report.before.tpot_s.mid)
    carried, first = moved["all of them sustain"], report.plans[0]
    assert carried.instead == pytest.approx(first.largest_requests_per_s * (2 // first.chips))
    assert "Replace your" in report.verdict()[0]
    assert any(f"{first.runtime} in place of" in need for need in report.needs) == (
        first.runtime != report.before.runtime
    )


def test_chips_that_do_not_carry_the_load_are_told_with_why() -> None:
    report = chipwise.compare(have="l4", chips="h100", **ASKED | {"rate": 50})
    assert report.before is None
    assert report.moved == ()
    assert "does not do it: Qwen/Qwen3-8B: 50 requests/s are out of reach" in report.verdict()[0]


@pytest.mark.parametrize("more", [{"model": "FLUX.1-dev"}, {"model": "Qwen/Qwen3-8B", "task": "local"}])
def test_other_tasks_are_two_questions(more: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="have is of language models"):
        chipwise.compare(have="8xh100", chips="b200", **more)
