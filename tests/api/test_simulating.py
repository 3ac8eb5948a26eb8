"""`simulate`: a deployment request by request, through the product's own door."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chipwise as cw
from chipwise.errors import ChipwiseError, InfeasibleError, UsageError
from command_line import Run

MODEL = "meta-llama/Llama-3.1-8B"
LOAD: dict[str, Any] = {"chip": "h100", "in_": 1000, "out": 200}


def test_formulas_and_events_agree_where_formulas_hold() -> None:
    """Poisson arrivals, equal lengths, up to 80 % of what is carried."""
    full = cw.estimate(MODEL, **LOAD).best.requests_per_s
    for share in (0.3, 0.6, 0.8):
        rate = f"{share * float(full):.4g}/s"
        said = cw.estimate(MODEL, rate=rate, **LOAD).best
        found = cw.simulate(MODEL, rate=rate, requests=4000, **LOAD).simulation
        assert found.ttft_s.mean.mid == pytest.approx(said.ttft_s.mid, rel=0.12)
        assert found.tpot_s.mean.mid == pytest.approx(said.tpot_s.mid, rel=0.12)
        assert found.lost == 0


def test_the_record_is_the_contract(run: Run) -> None:
    asked = ("simulate", MODEL, "--chip", "h100", "--rate", "4/s", "--requests", "300", "--format", "json")
    ran = run(*asked)
    assert ran.code == 0
    found = json.loads(ran.out)["simulation"]
    assert (found["requests"], found["lost"]) == (300, 0)
    for name in ("ttft_s", "tpot_s", "e2e_s"):
        assert set(found[name]) == {"mean", "p50", "p95", "p99"}
        for figure in found[name].values():
            assert 0 < figure["low"] <= figure["mid"] <= figure["high"]
        assert found[name]["p50"]["mid"] <= found[name]["p95"]["mid"] <= found[name]["p99"]["mid"]
    assert found["duration_s"] == pytest.approx(300 / 4, rel=0.3)
    assert found["hit_rate"] == 0.0
    assert (
        run("simulate", MODEL, "--chip", "h100", "--rate", "4/s", "--requests", "300", "--format", "json").out
        == ran.out
    )


def test_bursts_wait_longer_than_random_arrivals() -> None:
    steady, random, bursts = (
        cw.simulate(MODEL, rate=20, requests=1500, burstiness=b, **LOAD).simulation.ttft_s.p99.mid for b in (0, 1, 4)
    )
    assert steady < random < bursts


def test_a_wave_is_all_at_once() -> None:
    wave = cw.simulate(MODEL, requests=500, **LOAD)
    assert wave.arrivals == "all at once"
    times = wave.simulation.ttft_s
    assert times.p99.mid > 5 * times.mean.mid / 3
    few = cw.simulate(MODEL, requests=500, concurrency=16, **LOAD).simulation
    assert few.duration_s > wave.simulation.duration_s
    said = cw.estimate(MODEL, concurrency=16, **LOAD).best
    assert few.tpot_s.mean.mid == pytest.approx(said.tpot_s.mid, rel=0.1)


def test_what_a_prefix_cache_knows_is_not_computed() -> None:
    cold, warm = (cw.simulate(MODEL, rate=10, requests=400, prefix_hit=hit, **LOAD).simulation for hit in (None, "50%"))
    assert warm.hit_rate == pytest.approx(0.5, abs=0.001)
    assert warm.ttft_s.mean.mid < cold.ttft_s.mean.mid


def test_a_saved_plan_is_simulated(run: Run, tmp_path: Path) -> None:
    kept = tmp_path / "plan.json"
    plans = run("plan", MODEL, "--rate", "20/s", "--chips", "h100,l4", "--save", str(kept), "--format", "json")
    second = json.loads(plans.out)["plans"][1]
    ran = run("simulate", str(kept), "--plan", "2", "--format", "json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert second["chip"] in found["deployment"]
    assert found["deployment"].startswith(f"{second['replicas']} x (") or second["replicas"] == 1
    assert found["arrivals"].startswith("20/s, Poisson")
    wave = run("simulate", str(kept), "--requests", "200", "--format", "json")
    assert json.loads(wave.out)["arrivals"] == "all at once"
    missing = run("simulate", str(kept), "--plan", "9", "--requests", "200")
    assert (missing.code, "no such plan" in missing.err) == (2, True)
    assert run("simulate", "nothing.json", "--requests", "5").code == 2


def test_a_log_is_replayed(tmp_path: Path) -> None:
    lines = ["timestamp,prompt_tokens,output_tokens", *(f"{i * 0.2:.1f},{500 + i},{20 + i % 7}" for i in range(120))]
    log = tmp_path / "log.csv"
    log.write_text("\n".join(lines))
    found = cw.simulate(MODEL, chip="h100", log=str(log))
    assert found.simulation.requests == 120
    assert "5.04/s" in found.arrivals or "5/s" in found.arrivals
    faster = cw.simulate(MODEL, chip="h100", log=str(log), rate=50)
    assert faster.simulation.duration_s < found.simulation.duration_s / 5
    some = cw.simulate(MODEL, chip="h100", log=str(log), requests=30, ttft="1s", e2e="1us").simulation
    assert some.requests == 30
    assert [(w.target, w.mid) for w in some.within] == [("TTFT", 1.0), ("whole answer", 0.0)]


def test_requests_that_no_cache_holds_are_lost(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("\n".join(["prompt_tokens,output_tokens", *["100,10"] * 50, "600000,10", *["200,10"] * 50]))
    found = cw.simulate(MODEL, chip="h100", log=str(log))
    assert (found.simulation.requests, found.simulation.lost) == (101, 1)
    assert "1 could not be served" in str(found)
    log.write_text("prompt_tokens,output_tokens\n5000000,10\n")
    with pytest.raises(ChipwiseError):
        cw.simulate(MODEL, chip="h100", log=str(log))


@pytest.mark.parametrize(
    ("asked", "field", "words"),
    [
        ({}, "requests", "nothing says which requests"),
        ({"requests": 0}, "requests", "0"),
        ({"requests": 50, "burstiness": 2}, "burstiness", "random arrivals"),
        ({"rate": 5, "burstiness": -1}, "burstiness", "out of range"),
        ({"rate": 5, "seed": -1}, "seed", "out of range"),
        ({"rate": 5, "plan": 2}, "plan", "changes nothing"),
        ({"rate": 5, "harness": "vllm-bench"}, "harness", "changes nothing"),
        ({"rate": 5, "concurrency": 3}, "rate", "two loads"),
        ({"concurrency": 5, "disaggregate": True}, "concurrency", "not simulated"),
        ({"rate": 5, "speculate": "accept=0.7"}, "speculate", "no fixed number"),
        ({"rate": 5, "prefix_hit": "30%", "common_prefix": 100}, "common_prefix", "not simulated"),
        ({"rate": 5, "route": "best"}, "route", "best"),
    ],
)
def test_what_is_asked_wrongly(asked: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        cw.simulate(MODEL, **{**LOAD, **asked})
    assert caught.value.field == field
    assert words in f"{caught.value} {caught.value.hint}"


def test_what_makes_room_is_recomputed_or_moved_to_the_host() -> None:
    asked = {"chip": "l4", "in_": 500, "out": 1500, "requests": 120}
    again, moved = (
        cw.simulate(MODEL, **asked, policy=f"preemption={how},max_sequences=64") for how in ("recompute", "swap")
    )
    assert again.simulation.preemptions > 10
    assert moved.simulation.preemptions > 10
    assert moved.simulation.duration_s != again.simulation.duration_s
    assert "moved to the host and back" in str(moved)
    assert "moved to the host and back" not in str(again)
    assert "requests were preempted" in str(again)
    with pytest.raises(UsageError, match="changes nothing here"):
        cw.simulate(MODEL, chip="h100", runtime="trtllm", requests=5, policy="preemption=swap")
    with pytest.raises(UsageError, match="no link to the memory of a host"):
        cw.simulate(MODEL, chip="m4-max", requests=5, policy="preemption=swap")


def test_what_cannot_be_simulated_says_what_can() -> None:
    with pytest.raises(UsageError, match="says nothing about"):
        cw.simulate(MODEL, chip="h100", requests=5, frames=3)
    with pytest.raises(InfeasibleError, match="short"):
        cw.simulate("meta-llama/Llama-3.1-70B", chip="h100", requests=5)
    with pytest.raises(UsageError, match="needs a chip"):
        cw.simulate(MODEL, requests=5)


def test_every_kind_of_software_and_layout_is_scheduled() -> None:
    for asked in (
        {"runtime": "sglang"},
        {"runtime": "trtllm"},
        {"chip": "h100", "pp": 2},
        {"chip": "tpu-v6e"},
        {"chip": "trainium2"},
        {"chip": "rtx-4090", "runtime": "llama.cpp"},
        {"chip": "8xh100"},
    ):
        found = cw.simulate(MODEL, **{**LOAD, **asked}, rate=0.5, requests=60).simulation
        assert found.lost == 0
        assert found.ttft_s.mean.mid > 0
    shared = cw.simulate("deepseek-ai/DeepSeek-V3", chip="h200", tp=1, dp=8, ep=8, rate=4, requests=100)
    assert shared.simulation.lost == 0


@pytest.mark.parametrize(("name", "tp", "off"), [("llama-3.1-8b", 1, (0.10, 0.15, 0.10, 0.20))])
def test_a_recorded_engine_is_met(truth: Path, name: str, tp: int, off: tuple[float, ...]) -> None:
    rows = [json.loads(x) for x in (truth / "request_traces" / f"rtxpro6000_{name}.jsonl").read_text().splitlines()]
    found = cw.simulate(
        MODEL,
        chip="rtx-pro-6000-server",
        tp=tp,
        log=str(truth / "traces" / f"llmservingsim_rtxpro6000_{name}.requests.jsonl"),
        policy={"max_sequences": 128, "max_batched_tokens": 2048},
    ).simulation
    e2e, tpot, ttft = (np.array([r[n] for r in rows]) / 1e3 for n in ("e2e_ms", "tpot_ms", "ttft_ms"))
    errors = (
        found.e2e_s.mean.mid / e2e.mean() - 1.0,
        found.e2e_s.p99.mid / np.quantile(e2e, 0.99) - 1.0,
        found.tpot_s.mean.mid / tpot.mean() - 1.0,
        found.ttft_s.mean.mid / ttft.mean() - 1.0,
    )
    assert all(abs(error) < most for error, most in zip(errors, off, strict=True)), errors


def test_prompts_on_workers_of_their_own_do_not_hold_decoding_up() -> None:
    asked: dict[str, Any] = {"chip": "h100", "in_": 4000, "out": 100, "cv": 0.5, "rate": 4, "requests": 600}
    mixed = cw.simulate(MODEL, **asked).simulation
    apart = cw.simulate(MODEL, **asked, prefill={"workers": 2})
    found = apart.simulation
    assert found.lost == 0
    assert found.tpot_s.p99.mid < mixed.tpot_s.p99.mid
    assert any("2 workers for prompts" in words for words in apart.assumptions)
    said = cw.estimate(MODEL, chip="h100", in_=4000, out=100, cv=0.5, rate=4, prefill={"workers": 2}).best
    assert found.ttft_s.mean.mid == pytest.approx(said.ttft_s.mid, rel=0.15)
    assert found.tpot_s.mean.mid == pytest.approx(said.tpot_s.mid, rel=0.1)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"scale": "target=4"}, "1 replica cannot follow the load"),
        ({"scale": "least=2", "replicas": 4}, "names no target"),
        ({"scale": "target=4,lead=3s", "replicas": 4}, "figure of scaling"),
        ({"scale": "target=4,start=30", "replicas": 4}, "30s or 30min"),
        ({"scale": "target=4,least=5", "replicas": 4}, "cannot follow the load from 5 on"),
        ({"scale": "target=4", "replicas": 4, "prefill": "workers=2"}, "separate prompt workers"),
    ],
)
def test_a_policy_that_cannot_be_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ChipwiseError, match=words):
        cw.simulate(MODEL, rate=10, requests=50, **LOAD, **given)


def test_a_start_takes_the_weights_from_the_store() -> None:
    small, large = (
        cw.simulate(m, rate=5, requests=100, replicas=2, scale="target=1", **LOAD).simulation.scaling
        for m in (MODEL, "meta-llama/Llama-3.2-1B")
    )
    assert small is not None
    assert large is not None
    # 2 GB/s of the host: 13.6 GB more
    assert small.start_s - large.start_s == pytest.approx((16.06 - 2.47) / 2.0, rel=0.02)
