"""Dataflow chips among the plans: as many as hold the model in SRAM, ranked by speed, or refused for a reason."""

from __future__ import annotations

import pytest

from chipwise import api
from chipwise.api.placing import Given, Terms
from chipwise.errors import InfeasibleError
from chipwise.parallel.layout import Layout
from chipwise.report.plans import PlanRecord, PlanReport
from chipwise.workload.workload import Workload

MODEL = "meta-llama/Llama-3.1-8B"
LOAD = Workload(prompt_tokens=1000, output_tokens=300)
CHIPS = (
    "groq-lpu1",
    "wse3-cs3",
    "sn40l",
    "tt-blackhole-p150",
    "qaic100-std",
    "h100-sxm5-80gb",
    "sn30",
    "ipu-mk2-gc200",
)


@pytest.fixture(scope="module")
def report() -> PlanReport:
    return api.plan(MODEL, LOAD, Terms(precision="bf16"), chips=CHIPS)


def plan_on(report: PlanReport, chip: str) -> PlanRecord:
    return next(p for p in report.plans if p.chip == chip)


def test_every_chip_has_a_plan_or_a_reason(report: PlanReport) -> None:
    assert {p.chip for p in report.plans} | {r.chip for r in report.refused} == set(CHIPS)
    reasons = {r.chip: r.detail for r in report.refused}
    assert set(reasons) == {"sn30", "ipu-mk2-gc200"}
    assert "not published" in reasons["sn30"]
    assert "Poplar SDK is not known to run llama models" in reasons["ipu-mk2-gc200"]


def test_sram_alone_takes_many_chips_and_keeps_all_weights_there(report: PlanReport) -> None:
    lpu, wafer = plan_on(report, "groq-lpu1"), plan_on(report, "wse3-cs3")
    assert lpu.chips * 220 * 2**20 > 16.1e9
    assert lpu.chips > 70, "more than a replica of other chips may take"
    assert wafer.chips == 1
    for p in (lpu, wafer):
        assert p.shares.get("memory", 0.0) < 1e-6, "there is no memory but SRAM"


def test_a_token_comes_faster_from_sram_than_from_hbm(report: PlanReport) -> None:
    lone = {c: api.plan(MODEL, Workload("local", prompt_tokens=1000, output_tokens=300), chips=[c]).plans[0]
            for c in ("wse3-cs3", "groq-lpu1", "h100-sxm5-80gb")}  # fmt: skip
    tpot = {c: p.tpot_s.mid for c, p in lone.items()}
    assert tpot["wse3-cs3"] < 1e-3 < tpot["groq-lpu1"] < tpot["h100-sxm5-80gb"]


def test_chips_with_dram_stream_their_weights(report: PlanReport) -> None:
    for chip in ("sn40l", "tt-blackhole-p150", "qaic100-std"):
        assert plan_on(report, chip).bound == "memory"


def test_one_plan_in_full() -> None:
    record = api.estimate(MODEL, LOAD, Given("groq-lpu1", Layout(4.0, 32.0))).plans[0]
    assert record.chips == 128
    assert record.bound == "launch", "a token waits for one dependent operation after the other"
    with pytest.raises(InfeasibleError, match="short per device"):
        api.estimate(MODEL, LOAD, Given("groq-lpu1", Layout(4.0, 8.0)))
