"""`explain` of networks without tokens: what the time is spent on, and what would change it."""

from __future__ import annotations

import pytest

import chipwise as cw
from chipwise.errors import UsageError
from chipwise.report.media import MediaExplainReport


def test_every_change_is_the_answer_to_its_own_question() -> None:
    found = cw.explain("flux", chip="h100-sxm5-80gb", evidence="none")
    assert isinstance(found, MediaExplainReport)
    assert found.best == cw.estimate("flux", chip="h100-sxm5-80gb", evidence="none").best
    changes = {c.options: c for c in found.changes}
    asked = {
        "--steps 14": {"steps": 14},
        "--batch 4": {"batch": 4},
        "--runtime compile --precision fp8": {"runtime": "compile", "precision": "fp8"},
    }
    for options, said in asked.items():
        plan = cw.estimate("flux", chip="h100-sxm5-80gb", evidence="none", **said).best
        assert changes[options].latency_s == plan.latency_s
        assert changes[options].memory_bytes == plan.memory_bytes
        ratio = plan.samples_per_s.mid / found.best.samples_per_s.mid
        assert changes[options].more_per_chip == pytest.approx(ratio)
    gains = [c.more_per_chip for c in found.changes]
    assert gains == sorted(gains, reverse=True)


def test_it_says_what_the_time_is_spent_on() -> None:
    found = cw.explain("sdxl", chip="l4", evidence="none")
    heads = " ".join(t.head[0] for t in found.tables() if t.head)
    assert "time by what it waits for" in heads
    assert "what would change it" in heads
    assert "what would change it" not in str(cw.estimate("sdxl", chip="l4", evidence="none"))


def test_what_does_not_fit_is_shown_what_would() -> None:
    found = cw.explain("wan2.2", chip="h100-sxm5-80gb", evidence="none")
    assert found.best.verdict == "no"
    assert "--offload model" in {c.options for c in found.changes}


def test_a_plan_names_the_software_that_makes_clearly_more_of_the_same() -> None:
    found = cw.plan("flux", chips="h100-sxm5-80gb", batch=1, runtime="eager", evidence="none")
    named = {c.options: c.more_per_chip for c in found.changes}
    assert named["--runtime compile"] > 1.1
    assert not any("steps" in options for options in named)
    assert "x1.4 with --runtime compile" in " ".join(str(found).split())
    mine = cw.plan("flux", have="4xh100-sxm5-80gb", batch=1, runtime="eager", evidence="none")
    assert {c.options for c in mine.changes} == set(named)


def test_a_network_has_no_serial_part() -> None:
    with pytest.raises(UsageError, match="serial says nothing about sdxl"):
        cw.explain("sdxl", chip="l4", serial="5%")
