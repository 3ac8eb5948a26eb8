"""A hundred questions, written before they were asked: each is answered, or refused with what works, and no first plan
is dominated or hangs on one seller without saying so."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from docs.generate.console import on_the_day

from command_line import Run
from whole import some

QUESTIONS = [
    line
    for line in (Path(__file__).parent / "hundred.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
]
NOISE = 0.02
"""Share by which figures of two plans may differ before one is better."""
BETTER_FOUNDED = ("measured", "published", "calibrated", "modelled")


def test_there_are_a_hundred() -> None:
    assert len(set(QUESTIONS)) == 100


def figures(plan: dict[str, Any]) -> list[float] | None:
    """What is better lower: dollars, times, doubt; None without a price."""
    if plan.get("price") is None:
        return None
    job = plan.get("job") or {}
    dollars = job["usd"]["mid"] if job.get("usd") else plan["price"]["mid"]
    hours = job["hours"]["mid"] if job.get("hours") else 0.0
    times = [plan[name]["mid"] for name in ("ttft_s", "tpot_s", "request_s", "e2e_s") if plan.get(name)]
    basis = next((plan[n]["basis"] for n in ("tpot_s", "ttft_s", "request_s", "time") if plan.get(n)), "modelled")
    stale, one = plan["price"]["stale"], plan["price"].get("sellers") == 1
    doubt = BETTER_FOUNDED.index(basis) if basis in BETTER_FOUNDED else len(BETTER_FOUNDED)
    return [dollars, hours, *times, 1.0 - (plan.get("chance") or 1.0), float(doubt), float(stale), float(one)]


def dominates(one: list[float], other: list[float]) -> bool:
    """Whether all figures are as good, and one is better by more than noise."""
    pairs = list(zip(one, other, strict=True))
    return all(a <= b for a, b in pairs) and any(a < (1.0 - NOISE) * b for a, b in pairs)


@pytest.mark.parametrize("question", some(QUESTIONS, 20))
def test_a_question_is_answered_as_one_would_sign(question: str, run: Run) -> None:
    words = shlex.split(question)
    with on_the_day():
        done = run(*words, "--format", "json")
        assert done.code in (0, 4), done.err
        if done.code == 4:
            assert "chipwise" in done.err
            return
        plans = [p for p in done.json.get("plans", []) if words[0] == "plan"]
        if not plans:
            return
        first, *others = (figures(p) for p in plans)
        better = [p["rank"] for p, f in zip(plans[1:], others, strict=True) if first and f and dominates(f, first)]
        assert better == [], better
        alone = (plans[0].get("price") or {}).get("sellers") == 1 and "--provider" not in words
        if alone and done.json.get("decision"):
            assert "one provider" in run(*words).out
