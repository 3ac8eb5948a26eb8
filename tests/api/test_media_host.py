"""What waits in the memory of the host: counted, shown, and held against what the host has."""

from __future__ import annotations

import json

import pytest

import chipwise as cw
from chipwise.errors import InfeasibleError, UsageError
from command_line import Run

CARD = {"chip": "rtx-4090", "offload": "model"}


def test_offloaded_parts_wait_on_the_host() -> None:
    plan = cw.estimate("flux", **CARD).plans[0]
    weights = cw.estimate("flux", chip="h100-sxm5-80gb").plans[0].memory["weights"]
    assert plan.host_bytes == pytest.approx(weights)
    assert sum(plan.memory.values()) == pytest.approx(plan.memory_bytes)  # of the device alone


def test_parts_that_the_host_computes_wait_there_alone() -> None:
    plan = cw.estimate("flux", chip="h100-sxm5-80gb", aside="text_encoder").plans[0]
    whole = cw.estimate("flux", chip="h100-sxm5-80gb").plans[0]
    assert plan.host_bytes == pytest.approx(whole.memory["weights"] - plan.memory["weights"])
    assert (whole.host_bytes, whole.host_capacity_bytes) == (0.0, None)


def test_every_device_of_a_host_has_its_own_parts_there() -> None:
    one, eight = (cw.estimate("flux", chip=f"{n}xh100-sxm5-80gb", offload="model").plans[0].host_bytes for n in (1, 8))
    sixteen = cw.estimate("flux", chip="16xh100-sxm5-80gb", offload="model").plans[0]
    assert eight == pytest.approx(8 * one)
    assert (sixteen.hosts, sixteen.host_bytes) == (2, pytest.approx(eight))


@pytest.mark.parametrize("verb", ["estimate", "explain"])
def test_a_host_that_is_too_small_is_refused(verb: str) -> None:
    with pytest.raises(InfeasibleError, match=r"33\.7 GB wait on the host, which has 27\.5 GB") as refused:
        getattr(cw, verb)("flux", **CARD, host_memory="32GB")
    enough = refused.value.hint.split()[1]
    assert getattr(cw, verb)("flux", **CARD, host_memory=enough).plans[0].verdict != "no"


def test_fit_says_what_the_host_lacks(run: Run) -> None:
    asked = ("fit", "flux", "--chips", "rtx-4090,h100-sxm5-80gb", "--host-memory", "32GB")
    plans = {p["chip"]: p for p in json.loads(run(*asked, "--format", "json").out)["plans"]}
    assert (plans["rtx-4090"]["verdict"], plans["rtx-4090"]["offload"]) == ("no", "model")
    assert plans["h100-sxm5-80gb"]["verdict"] == "comfortable"
    assert "short on the host" in run(*asked).out


@pytest.mark.parametrize("task", ["local", "batch"])
def test_chips_that_one_has_in_a_host_that_is_too_small(task: str) -> None:
    asked = {"have": "1xrtx-4090", "task": task}
    assert cw.plan("flux", **asked, host_memory="64GB").plans[0].offload == "model"
    with pytest.raises(InfeasibleError, match="wait on the host"):
        cw.plan("flux", **asked, host_memory="32GB")


def test_replicas_that_carry_a_rate_share_the_host() -> None:
    asked = {"have": "4xrtx-4090", "rate": "450/h"}
    plan = cw.plan("flux", **asked, host_memory="256GB").plans[0]
    assert plan.replicas > 1
    assert plan.host_bytes == pytest.approx(plan.replicas * cw.estimate("flux", **CARD).plans[0].host_bytes)
    with pytest.raises(InfeasibleError):
        cw.plan("flux", **asked, host_memory="64GB")


def test_memory_of_a_host_is_of_ones_own() -> None:
    with pytest.raises(UsageError, match="a machine that you have") as refused:
        cw.plan("flux", host_memory="32GB")
    assert refused.value.field == "host_memory"


def test_the_text_says_what_waits(run: Run) -> None:
    found = run("estimate", "flux", "--chip", "rtx-4090", "--offload", "model", "--host-memory", "64GB").out
    assert "on the host: 33.7 GB, of 55.0 GB to spare" in found
    assert "on the host" not in run("estimate", "flux", "--chip", "h100-sxm5-80gb").out.replace("not shown", "")


def test_narrow_encoders_of_text_are_proposed_where_they_are_in_the_way() -> None:
    asked = {"chip": "rtx-4060", "precision": "nf4-weight-only", "steps": 20}
    with pytest.raises(InfeasibleError, match="short") as found:
        cw.estimate("flux-dev", **asked, offload="model")
    assert "settings text_precision=nf4-weight-only fits" in str(found.value)
    few = {"settings": "text_precision=nf4-weight-only"}
    assert cw.estimate("flux-dev", **asked, offload="model", **few).plans[0].verdict == "tight"
