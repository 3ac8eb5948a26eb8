"""Networks without tokens through time: `simulate`, and `plan --log`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chipwise as cw
from chipwise.api.media_asked import Sampling
from chipwise.api.media_record import Speed
from chipwise.api.media_time import job_times
from chipwise.api.media_work import Place, Work
from chipwise.api.placing import Terms
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.chips import load_chips
from chipwise.errors import UsageError
from chipwise.evidence.judge import Estimate
from command_line import Run

VIDEO: dict[str, Any] = {"model": "wan2.2", "resolution": "832x480", "frames": 81}
CHIP = "h100-sxm5-80gb"


def _log(path: Path, gaps: np.ndarray) -> str:
    times = np.cumsum(gaps)
    path.write_text("\n".join(["timestamp", *(f"{t:.3f}" for t in times)]))
    return str(path)


@pytest.fixture(scope="module")
def bursts(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Six hundred clips, 30 an hour in the mean, in bursts."""
    gaps = np.random.default_rng(1).gamma(1 / 9, 9 * 120.0, 600)
    return _log(tmp_path_factory.mktemp("log") / "clips.csv", gaps)


@pytest.mark.parametrize("confidence", [0.3, 0.5, 0.7, 0.9, 0.99])
def test_what_is_kept_with_a_probability_has_that_chance(confidence: float) -> None:
    """On either side of the middle, which half of the outcomes lie below."""
    late = Estimate(1.0, 0.9, 2.0, "modelled")
    assert late.kept(late.within(confidence)) == pytest.approx(confidence)


def test_random_arrivals_wait_as_the_estimate_says() -> None:
    said = cw.estimate(**VIDEO, chip=f"3x{CHIP}", rate="20/h").best
    found = cw.simulate(**VIDEO, chip=f"3x{CHIP}", rate="20/h", requests=8000)
    s = found.simulation
    assert (s.requests, s.lost, s.preemptions, s.ttft_s, s.tpot_s) == (8000, 0, 0, None, None)
    assert s.wait_s.mean.mid == pytest.approx(said.wait_s, rel=0.1)
    assert s.e2e_s.mean.mid == pytest.approx(said.answered_s, rel=0.02)
    assert s.busy == pytest.approx(said.load, rel=0.05)
    assert s.wait_s.p99.low < s.wait_s.p99.mid < s.wait_s.p99.high
    assert (found.model.unit, found.model.settings["frames"]) == ("clip", 81)
    assert "in one queue" in str(found)
    assert "TTFT" not in str(found)


def test_an_overload_is_answered() -> None:
    found = cw.simulate(**VIDEO, chip=CHIP, rate="20/h", requests=300)
    most = re.search(r"overloaded: at most ([\d.]+)/h", str(found))
    assert most
    assert 12.0 < float(most[1]) < 15.0
    assert found.simulation.busy > 0.97
    assert found.simulation.in_flight > 50
    assert "overloaded" not in str(cw.simulate(**VIDEO, chip=CHIP, rate="5/h", requests=100))


def test_a_target_is_told() -> None:
    few, more = (
        cw.simulate(**VIDEO, chip=f"{n}x{CHIP}", rate="20/h", requests=500, e2e="10min").simulation.within[0]
        for n in (2, 4)
    )
    assert few.seconds == 600.0
    assert few.mid < more.mid <= 1.0
    assert few.low <= few.mid <= few.high


def test_batches_take_what_waits() -> None:
    asked = {"model": "resnet50", "chip": "h100", "requests": 640}
    alone, many = (cw.simulate(**asked, batch=b).simulation for b in (1, 32))
    assert many.requests_per_s > 2 * alone.requests_per_s
    assert many.duration_s == pytest.approx(
        640 / float(cw.estimate("resnet50", chip="h100", batch=32).best.samples_per_s), rel=0.01
    )
    light = cw.simulate(model="resnet50", chip="h100", rate="10/s", requests=300, batch=32).simulation
    one = cw.estimate("resnet50", chip="h100").best.latency_s.mid
    assert light.e2e_s.p50.mid == pytest.approx(one, rel=1e-6)


def test_clients_send_their_next_request_when_one_ends() -> None:
    found = cw.simulate("flux.1-dev", chip="h100", concurrency=3, requests=60).simulation
    each = cw.estimate("flux.1-dev", chip="h100").best.latency_s.mid
    assert found.e2e_s.p95.mid == pytest.approx(3 * each, rel=1e-6)
    assert found.duration_s == pytest.approx(60 * each, rel=1e-6)


@pytest.mark.parametrize(("runtime", "padded"), [("eager", False), ("cuda_graphs", True)])
def test_graphs_of_fixed_shapes_are_padded(runtime: str, padded: bool) -> None:
    terms, asked, numbers = Terms(runtime=runtime), Sampling(batch=12), shipped_parameters()
    place = Place.of(load_chips()[CHIP], terms, numbers)
    work = Work.of(place.pipeline("resnet50", terms, asked), place, terms, asked)
    speed = Speed.of(work, numbers)
    times = job_times("resnet50", place, terms, work, speed).seconds
    assert len(times) == 12
    assert times[-1] == pytest.approx(speed.full.mid)
    assert (np.diff(times) >= 0.0).all()
    assert (times[0] == times[-1]) == padded


def test_a_log_says_when_requests_come(tmp_path: Path) -> None:
    log = _log(tmp_path / "log.csv", np.full(50, 600.0))
    found = cw.simulate(**VIDEO, chip=CHIP, log=log)
    assert found.simulation.requests == 50
    assert found.simulation.wait_s.p99.mid == 0.0
    assert found.arrivals.startswith("50 requests in 8.17 hours, 6/h")
    assert "tokens" not in found.arrivals
    assert cw.simulate(**VIDEO, chip=CHIP, log=log, rate="60/h", requests=20).simulation.wait_s.mean.mid > 1000.0


def test_a_plan_for_a_log_holds_in_its_simulation(bursts: str, run: Run, tmp_path: Path) -> None:
    kept = tmp_path / "plan.json"
    asked = ("plan", "wan2.2", "--resolution", "832x480", "--frames", "81", "--e2e", "10min", "--percentile", "p95")
    some = ("--chips", "h100-sxm5-80gb,gh200-96gb,b200-sxm", "--format", "json")
    ran = run(*asked, *some, "--log", bursts, "--save", str(kept))
    assert ran.code == 0, ran.err
    plans = json.loads(ran.out)["plans"]
    random = {p["chip"]: p for p in json.loads(run(*asked, *some, "--rate", "30/h").out)["plans"]}
    for p in plans:
        assert p["note"].startswith("simulated: p99 wait ")
        assert p["chance"] >= 0.89
        assert p["replicas"] * p["latency_s"]["mid"] ** -1 >= 30 / 3600
        # formulas for random arrivals plan with fewer
        assert p["usd_per_1000"]["mid"] > 1.2 * random[p["chip"]]["usd_per_1000"]["mid"]
    told = json.loads(run("simulate", str(kept), "--format", "json").out)
    s = told["simulation"]
    assert s["requests"] == 600
    assert s["wait_s"]["p99"]["mid"] == pytest.approx(plans[0]["wait_p99_s"], rel=1e-6)
    assert s["e2e_s"]["p95"]["mid"] <= 600.0
    assert s["within"][0]["low"] >= 0.9
    second = json.loads(run("simulate", str(kept), "--plan", "2", "--rate", "10/h", "--format", "json").out)
    assert plans[1]["chip"] in second["deployment"]


def test_a_log_without_a_target_is_planned_by_load(bursts: str) -> None:
    found = cw.plan(**VIDEO, log=bursts, chips=CHIP)
    random = cw.plan(**VIDEO, rate="30/h", chips=CHIP)
    assert found.best.replicas == pytest.approx(random.best.replicas, abs=1)
    assert found.best.wait_p99_s > 2 * random.best.wait_p99_s


@pytest.mark.parametrize(
    ("asked", "field", "words"),
    [
        ({"rate": "2/h", "ttft": "3s"}, "ttft", "whole answer is e2e"),
        ({"rate": "2/h", "in_": 30}, "in_", "says nothing about"),
        ({"rate": "2/h", "training": True}, "training", "says nothing about"),
        ({"rate": "2/h", "replicas": 2}, "replicas", "8xh100"),
        ({"rate": "2/h", "route": "prefix"}, "route", "no prefixes"),
        ({"rate": "2/h", "disaggregate": True}, "disaggregate", "says nothing about"),
        ({}, "requests", "nothing says which requests"),
        ({"requests": 5, "burstiness": 2}, "burstiness", "random arrivals"),
    ],
)
def test_what_is_asked_wrongly(asked: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        cw.simulate(**VIDEO, chip=CHIP, **asked)
    assert caught.value.field in (field, field.rstrip("_"))
    assert words in f"{caught.value} {caught.value.hint}"


def test_a_queue_in_common_is_of_networks() -> None:
    with pytest.raises(UsageError, match="keeps a queue at each replica"):
        cw.simulate("llama-3.1-8b", chip="h100", rate="2/s", route="queue")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("prompt_tokens\n5\n", "no column of timestamp"),
        ("timestamp\n", "holds no requests"),
        ("timestamp\n0\nlater\n", "no time"),
        ("timestamp\n3\n3\n", "come at once"),
    ],
)
def test_logs_that_are_no_load(text: str, words: str, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text(text)
    with pytest.raises(UsageError, match=words):
        cw.plan(**VIDEO, log=str(log))


def test_loads_exclude_each_other(bursts: str) -> None:
    for more in ({"day": "1,2"}, {"have": "8xh100"}, {"task": "batch"}):
        with pytest.raises(UsageError):
            cw.plan(**VIDEO, log=bursts, **more)


def test_a_saved_estimate_is_simulated(run: Run, tmp_path: Path) -> None:
    kept = tmp_path / "estimate.json"
    assert run("estimate", "resnet50", "--chip", "2xh100", "--rate", "50/s", "--save", str(kept)).code == 0
    told = json.loads(run("simulate", str(kept), "--format", "json").out)
    assert told["deployment"].startswith("2x h100")
    assert told["arrivals"].startswith("50/s, Poisson")
