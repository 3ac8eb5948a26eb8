"""A module that a program has traced is a model for the verbs, and a saved answer holds it."""

from __future__ import annotations

from pathlib import Path

import pytest

import chipwise as cw
from chipwise.errors import UsageError

torch = pytest.importorskip("torch")

MODULE = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64))


def test_a_traced_module_is_asked_about_saved_and_asked_again(tmp_path: Path) -> None:
    pipeline = cw.trace(MODULE, torch.empty(32, 64))
    report = cw.estimate(pipeline, chip="l40s")
    report.save(str(tmp_path / "answer.json"))
    assert cw.replay(str(tmp_path / "answer.json")).changes == ()
    trained = cw.trace(MODULE, torch.empty(32, 64), training=True)
    step = cw.estimate(trained, chip="l40s", training=True)
    assert step.best.latency_s.mid > report.best.latency_s.mid
    # another size of the same module is another model
    larger = cw.estimate(cw.trace(MODULE, torch.empty(65536, 64)), chip="l40s")
    assert larger.best.latency_s.mid > report.best.latency_s.mid


def test_what_a_trace_does_not_hold_is_refused() -> None:
    pipeline = cw.trace(MODULE, torch.empty(32, 64))
    with pytest.raises(UsageError, match="was traced without its backward pass"):
        cw.estimate(pipeline, chip="l40s", training=True)
    with pytest.raises(UsageError, match="was traced with its backward pass"):
        cw.plan(cw.trace(MODULE, torch.empty(32, 64), training=True), chips="l40s")
    with pytest.raises(UsageError, match="Sequential is a module"):
        cw.estimate(MODULE, chip="l40s")
    with pytest.raises(UsageError, match="a module of the Python that traced it"):
        cw.estimate("traced:Sequential-0", chip="l40s")
