"""The verbs as Python functions: flat, lazy, and the same answers as the command line."""

from __future__ import annotations

import subprocess
import sys

import pytest

import chipwise as cw
from chipwise.api.requests.planning import EstimateRequest
from chipwise.api.requests.verbs import VERBS
from chipwise.errors import ChipwiseError

MODEL = "meta-llama/Llama-3.1-8B"


def test_every_name_is_a_verb() -> None:
    assert sorted(dir(cw)) == sorted(cw.__all__)
    verbs = set(cw.__all__) - {"__version__"}
    assert verbs - {"train"} <= set(VERBS)
    assert all(callable(getattr(cw, name)) for name in verbs)
    with pytest.raises(AttributeError, match="no attribute 'plann'"):
        cw.plann  # noqa: B018


def test_importing_it_loads_no_verb() -> None:
    code = "import sys, chipwise; print(any(m.startswith('chipwise.api') for m in sys.modules))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"


def test_numbers_lists_and_dictionaries_are_taken_for_text() -> None:
    typed = EstimateRequest(
        model=MODEL, chip="h100", concurrency=8, in_="1000", out="200", policy="max_sequences=64"
    ).run()
    said = cw.estimate(MODEL, chip="h100", concurrency=8, in_=1000, out=200, policy={"max_sequences": 64})
    assert said == typed
    assert (
        cw.estimate(model=MODEL, chip="h100", concurrency=8.0, in_=1e3, out="200").plans[0].chip
        == "h100-sxm5-80gb"
    )


def test_training_takes_lists_and_layouts() -> None:
    (plan, *_) = cw.train(
        MODEL, chips=("h100",), counts=(8,), task="train", tokens=1e9, global_batch=64, layout={"tp": 2}
    ).plans
    assert (plan.chips, plan.layout.tp) == (8, 2)


@pytest.mark.parametrize(
    ("asked", "match"),
    [
        ({"chpi": "h100"}, "unknown field of estimate 'chpi'.*did you mean chip"),
        ({}, "estimate needs 'chip'"),
        ({"chip": "h100", "concurrency": 4, "rate": "1/s"}, "two loads"),
    ],
)
def test_what_is_asked_wrongly(asked: dict[str, object], match: str) -> None:
    with pytest.raises(ChipwiseError, match=match):
        cw.estimate(MODEL, **asked)
