"""Speculation at high load: what prompts and verified tokens need is done in the time that they take."""

from __future__ import annotations

import pytest
from tests.api.drawn import peak_flops

import chipwise as cw
from chipwise.catalog.chips import get_chip
from chipwise.predict.speculative import expected_tokens

WIDE = ("Qwen/Qwen3-235B-A22B", "deepseek-ai/DeepSeek-V3")
PROMPT, OUTPUT = 1000, 500


@pytest.mark.parametrize("draft", [1, 3, 7])
@pytest.mark.parametrize("clients", [1600, 5600])
@pytest.mark.parametrize("chip", ["mi300x", "h200", "b200-sxm"])
@pytest.mark.parametrize("model", WIDE)
def test_no_token_is_free(model: str, chip: str, clients: int, draft: int) -> None:
    report = cw.estimate(
        model,
        chip=chip,
        dp=16,
        ep=16,
        concurrency=clients,
        in_=PROMPT,
        out=OUTPUT,
        task="batch",
        policy="max_sequences=2000",
        speculate=f"accept=0.7,draft={draft}",
        evidence="none",
    )
    plan = report.plans[0]
    peak = 16 * peak_flops(get_chip(chip))
    each = 2.0 * float(report.model.active_params) * plan.requests_per_s / peak
    verified = OUTPUT * (draft + 1) / float(expected_tokens(0.7, draft))
    assert each * (PROMPT + verified) < 1.0
    # beside hundreds of sequences products are bound by arithmetic: a prompt hides behind nothing
    assert plan.batch / 16 > 90
    assert 0.9 * each * PROMPT < plan.prompt_share


@pytest.mark.parametrize("draft", [1, 3, 7])
def test_guesses_take_their_part_of_the_budget(draft: int) -> None:
    """The tokens of a pass, prompts' and guessed ones, are no more than the budget."""
    budget = 2048
    plan = cw.estimate(
        "Qwen/Qwen3-8B",
        chip="h100",
        concurrency=500,
        in_=64,
        out=400,
        policy=f"max_batched_tokens={budget},max_sequences=2000",
        speculate=f"accept=0.7,draft={draft}",
        evidence="none",
    ).plans[0]
    yields = float(expected_tokens(0.7, draft))
    assert plan.tpot_s is not None
    pass_s = plan.tpot_s.mid * yields
    tokens = plan.batch * (draft + 1) + plan.requests_per_s * 64 * pass_s
    assert tokens <= budget * 1.01
