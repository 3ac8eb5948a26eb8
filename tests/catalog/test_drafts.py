"""Published acceptances of guessed tokens: as many come out as were published, and questions need not know them."""

from __future__ import annotations

import pytest

import chipwise as cw
from chipwise.catalog.drafts import guessing, load_accepted
from chipwise.errors import UsageError
from chipwise.predict.speculative import expected_tokens


def test_acceptances_yield_the_tokens_that_were_published() -> None:
    for row in load_accepted():
        assert 0.0 < row.acceptance < 1.0
        assert expected_tokens(row.acceptance, row.draft) == pytest.approx(row.tokens, rel=1e-6)


def test_the_nearest_number_of_guesses_is_told_of_a_model_and_a_median_of_others() -> None:
    one, seven = guessing("deepseek-ai/DeepSeek-V3", 1), guessing("deepseek-ai/DeepSeek-V3", 8)
    assert 0.87 < one.acceptance < 0.91
    assert seven.acceptance < one.acceptance - 0.1, "later tokens are guessed less well"
    assert "published for 7" in seven.words
    other = guessing("a/model-of-tomorrow", 1)
    assert "other models" in other.words
    rows = [row.acceptance for row in load_accepted() if row.draft == 1]
    assert min(rows) <= other.acceptance <= max(rows)


def test_an_acceptance_may_be_left_out_where_the_model_guesses_itself() -> None:
    asked = {"chip": "h200", "tp": 8, "concurrency": 4, "in_": 1000, "out": 500, "evidence": "none"}
    found = cw.estimate("deepseek-ai/DeepSeek-V3", speculate="draft=1", **asked)
    given = cw.estimate("deepseek-ai/DeepSeek-V3", speculate="accept=0.8875,draft=1", **asked)
    plain = cw.estimate("deepseek-ai/DeepSeek-V3", **asked)
    first, told, without = (r.plans[0].tpot_s for r in (found, given, plain))
    assert first is not None
    assert told is not None
    assert without is not None
    assert first.mid == pytest.approx(told.mid, rel=1e-3)
    assert first.high / first.low > without.high / without.low, "steps that verify guesses are less sure"
    assert any("published" in line for line in found.assumptions)
    with pytest.raises(UsageError, match="cannot guess"):
        cw.estimate("meta-llama/Llama-3.1-8B", chip="h100", concurrency=4, speculate="draft=3")
    with pytest.raises(UsageError, match="lookup"):
        cw.estimate("meta-llama/Llama-3.1-8B", chip="h100", concurrency=4, speculate="with=lookup")
