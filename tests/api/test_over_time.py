"""`plan --log`: a log that knows its times is a load, and is simulated."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from pathlib import Path

import numpy as np
import pytest

import chipwise as cw
from chipwise.api.estimating import AskedLoad, asked
from chipwise.api.launching import launch
from chipwise.api.over_time import MOST, SIZED, WaryReplica, _throughout, busiest, fewest
from chipwise.api.placing import Given, Terms
from chipwise.api.scaling import cheapest_policy, longest_start, policy
from chipwise.api.simulating import fleet_of
from chipwise.api.stepping import pass_times
from chipwise.errors import UsageError
from chipwise.parallel.layout import Layout
from chipwise.predict.events import engine
from chipwise.predict.events.engine import Outcome
from chipwise.predict.events.engine import run as serve
from chipwise.predict.events.scaling import Scaler, Scaling, ScalingGiven
from chipwise.workload.arrivals import Arrivals, read_log
from chipwise.workload.lengths import Lengths
from chipwise.workload.workload import Workload

MODEL = "meta-llama/Llama-3.1-8B"
TARGETS = {"ttft": "500ms", "tpot": "40ms", "percentile": "p99"}


def _written(path: Path, drawn: Arrivals) -> str:
    assert drawn.time_s is not None
    rows = zip(drawn.time_s, drawn.prompt, drawn.output, strict=True)
    path.write_text(
        "timestamp,prompt_tokens,output_tokens\n" + "\n".join(f"{t:.4f},{p:.0f},{o:.0f}" for t, p, o in rows)
    )
    return str(path)


@pytest.fixture(scope="module")
def bursts(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Six bursts of 150 requests in 5 s, a minute apart."""
    lengths = Lengths(1500.0, 60.0, 0.5, 0.5)
    drawn = Arrivals.drawn(lengths, 900, 30.0, seed=2)
    assert drawn.time_s is not None
    times = drawn.time_s + 55.0 * (np.arange(900) // 150)
    made = Arrivals(drawn.prompt, drawn.output, times)
    return _written(tmp_path_factory.mktemp("logs") / "bursts.csv", made)


def test_bursts_need_more_replicas_than_random_arrivals(bursts: str, tmp_path: Path) -> None:
    log = read_log(bursts)
    assert log.rate_per_s is not None
    assert not log.random
    random = Arrivals.drawn(log.lengths, 900, log.rate_per_s, seed=4)
    calm = cw.plan(MODEL, chips="h100", log=_written(tmp_path / "calm.csv", random), **TARGETS)
    wild = cw.plan(MODEL, chips="h100", log=bursts, **TARGETS)
    for plans in (calm, wild):
        best = plans.best
        assert best.note.startswith("simulated: p99 TTFT")
        assert "formulas for random arrivals say" in best.note
        assert best.requests_per_s == pytest.approx(log.rate_per_s, rel=0.05)
        assert best.chance >= 0.9 - 0.002
        assert best.tails["p99"].ttft_s <= 0.5
        assert best.chips == best.replicas * best.layout.tp
    assert wild.best.chips > calm.best.chips
    said = " ".join(wild.assumptions)
    assert "arrivals are not random (index of dispersion" in said
    assert "busiest 10 s" in said
    assert "not random" not in " ".join(calm.assumptions)
    assert not wild.levers, "what formulas say of changes is not held against what was simulated"


def test_what_is_printed_is_what_simulate_says(bursts: str, tmp_path: Path) -> None:
    kept = tmp_path / "plan.json"
    plans = cw.plan(MODEL, chips="h100", log=bursts, **TARGETS)
    plans.save(str(kept))
    again = cw.simulate(str(kept)).simulation
    tail = plans.best.tails["p99"]
    assert again.ttft_s.p99.mid == pytest.approx(tail.ttft_s, rel=1e-9)
    assert again.tpot_s.p99.mid == pytest.approx(tail.tpot_s, rel=1e-9)
    assert again.ttft_s.mean.mid == pytest.approx(plans.best.ttft_s.mid, rel=1e-9)


def test_formulas_are_not_called_sure_where_arrivals_are_not_random(bursts: str) -> None:
    report = cw.plan(MODEL, chips="h100,h200,l40s,a100,mi300x", log=bursts, **TARGETS)
    plans, said = report.plans, " ".join(report.assumptions)
    simulated = [p for p in plans if p.note.startswith("simulated")]
    others = [p for p in plans if p not in simulated]
    assert len(simulated) >= 3
    assert plans[0] in simulated
    assert all(p.chance is None and SIZED in p.note for p in others), "all that are printed are sized alike"
    assert all(p.scaling or p.replicas == 1 or f"#{p.rank} needs" in said for p in simulated[:3])


def test_a_rate_scales_the_times_of_a_log(bursts: str) -> None:
    slow, fast = (cw.plan(MODEL, chips="h100", log=bursts, rate=rate, **TARGETS).best for rate in (0.3, 12))
    assert fast.chips > slow.chips
    assert (slow.requests_per_s, fast.requests_per_s) == (pytest.approx(0.3), pytest.approx(12))


def test_a_log_without_times_says_lengths_alone(tmp_path: Path) -> None:
    log = tmp_path / "lengths.csv"
    log.write_text("prompt_tokens,output_tokens\n" + "\n".join(f"{900 + i},{100 + i}" for i in range(50)))
    plan = cw.plan(MODEL, chips="h100", log=str(log), rate=5, **TARGETS).best
    assert "simulated" not in plan.note


def test_replicas_are_counted_where_it_is_busiest() -> None:
    drawn = Arrivals.drawn(Lengths(100.0, 10.0), 30_000, 10.0, seed=1)
    assert drawn.time_s is not None
    packed = np.where(drawn.time_s > 2000.0, 2000.0 + (drawn.time_s - 2000.0) / 3.0, drawn.time_s)
    made = Arrivals(drawn.prompt, drawn.output, packed)
    some = busiest(made, MOST)
    assert len(some) == MOST
    assert some.time_s is not None
    assert some.time_s[0] == 0.0
    assert some.rate_per_s == pytest.approx(30.0, rel=0.1)
    assert busiest(made.first(100), MOST) is not made
    assert len(busiest(made.first(100), MOST)) == 100


@pytest.mark.parametrize("guess", [1, 3, 7, 40, 900])
def test_the_fewest_replicas_are_found_from_any_guess(guess: int) -> None:
    for wanted in (2, 3, 5, 16, 40, 64):
        assert fewest(lambda n, wanted=wanted: n >= wanted, 2, 64, guess) == wanted  # type: ignore[misc]
    assert fewest(lambda n: False, 2, 64, guess) == 65


def test_replicas_may_follow_a_log_where_targets_hold_with_fewer(tmp_path: Path) -> None:
    """Five minutes of little, then much: fewer run at first, for less, and the file that scales them says the same."""
    lengths = Lengths(1500.0, 60.0)
    slow, fast = (Arrivals.drawn(lengths, n, r, seed=3) for n, r in ((300, 1.0), (3000, 20.0)))
    assert slow.time_s is not None
    assert fast.time_s is not None
    made = Arrivals(
        np.concatenate([slow.prompt, fast.prompt]),
        np.concatenate([slow.output, fast.output]),
        np.concatenate([slow.time_s, slow.time_s[-1] + 1.0 + fast.time_s]),
    )
    log = _written(tmp_path / "rise.csv", made)
    asked = {"chips": "l40s", "runtime": "vllm", "log": log, "precision": "fp8", "scale": "start=20s"}
    plans = cw.plan(MODEL, **asked, ttft="1s", tpot="100ms")
    best, found = plans.best, plans.best.scaling
    assert found is not None
    assert 1 <= found.least < found.most == best.replicas
    assert found.start_s == 20.0
    assert found.replica_h < 0.97 * found.fixed_h
    assert found.usd_per_day is not None
    assert found.fixed_usd_per_day is not None
    assert found.usd_per_day / found.fixed_usd_per_day == pytest.approx(found.replica_h / found.fixed_h)
    assert found.times is not None
    assert found.closed is not None
    assert found.times.ttft_s is not None
    assert found.times.ttft_s <= 1.0
    assert not found.closed.holds or found.replica_h <= found.closed.replica_h
    assert found.requests == 3300
    plans.save(str(tmp_path / "plan.json"))
    files = {f.name: f.text for f in launch(str(tmp_path / "plan.json"), "keda")}
    assert f'threshold: "{found.target:g}"' in files["scaledobject.yaml"]
    assert f"minReplicaCount: {found.least}\n  maxReplicaCount: {found.most}\n" in files["scaledobject.yaml"]
    planner = {f.name: f.text for f in launch(str(tmp_path / "plan.json"), "dynamo-planner")}["planner.yaml"]
    assert f"min_endpoint: {found.least}\nmax_gpu_budget: {found.most}\n" in planner
    tokens = best.memory.cache_tokens
    assert tokens is not None
    assert f"decode_scale_up_kv_rate: {100.0 * found.target * 1530.0 / tokens:.4g}\n" in planner


def test_where_all_replicas_are_needed_the_start_that_would_do_is_named() -> None:
    policy = Scaling(1.0, 4, 600.0, 3)
    assert longest_start(600.0, lambda s: s <= 60.0) == 60.0
    assert longest_start(60.0, lambda s: True) == 30.0
    assert longest_start(600.0, lambda s: False) is None
    assert "from a start of 60.0 s on (--scale start=60s)" in _throughout(1, policy, lambda s: s.start_s <= 60.0)
    assert "even if one starts in 5.00 s" in _throughout(1, policy, lambda s: False)
    assert "3 do (--scale least=3)" in _throughout(1, replace(policy, least=1), lambda s: s.least >= 3)


@pytest.mark.parametrize(
    ("given", "words"),
    [({"rate": "10/s"}, "needs arrivals to follow"), ({"day": "1,2", "scale": "target=2"}, "not a day")],
)
def test_a_policy_that_nothing_follows_is_refused(given: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        cw.plan(MODEL, chips="h100", **{"scale": "start=30s", **given})


PROTOTYPE = {(30.0, 1): 2.2, (120.0, 1): 2.2, (600.0, 1): 9.4, (120.0, 2): 0.41}
"""Seconds: p99 of the time to the first token of Azure's code service, on 1 to 4 replicas of 70B on eight B200 that
each hold four requests, by start and floor, as another engine found them that gives replicas back to the last wish."""


class _LastWish(Scaler):
    """Replicas go to the last wish where fewer were wanted throughout the hold; ours go to the highest in it, as
    Kubernetes says."""

    _below = np.inf

    def wake(self, in_flight: int) -> None:
        now, policy = self.next_s, self.policy
        if now >= self._looks_s:
            self._looks_s = now + policy.every_s
            want = min(max(ceil(in_flight / policy.target), policy.least), policy.most)
            for _ in range(want - self.count):
                self._start(now)
            self._below = min(self._below, now) if want < self.count else np.inf
            if now - self._below >= policy.hold_s:
                for _ in range(self.count - want):
                    self._stop(now)
                self._below = np.inf
        self._settle(now)


def _served_code(truth: Path) -> tuple[Arrivals, Workload, AskedLoad]:
    """Azure's code service on 70B on eight B200."""
    log = read_log(str(truth / "traces" / "azure_llm_2023_code.csv"))
    mean = (float(log.prompt.mean()), float(log.output.mean()))
    w = Workload("serve", *mean, log.rate_per_s, confidence=0.5, percentile=0.99, lengths=log.lengths, log=log)
    given = Given("b200-sxm", Layout(tp=8.0))
    return log, w, asked("meta-llama/Llama-3.1-70B", w, given, Terms(runtime="vllm", precision="bf16"))


def _cheapest(one: AskedLoad, w: Workload, log: Arrivals, start_s: float) -> Outcome:
    """What became of the requests under the cheapest policy of four replicas with which the targets hold."""
    wary, said = WaryReplica.of(one, w), ScalingGiven(start_s=start_s)

    def whole(scaling: Scaling) -> tuple[bool, Outcome]:
        return wary.holds(wary.times(4, scaling), log, len(log))

    found, _ = cheapest_policy(
        lambda target, least: policy(said, start_s, target, least, 4), said, 4, 4.0, lambda s: whole(s)[0], whole
    )
    assert found is not None
    return found.outcome


def _p99_s(found: Outcome) -> float:
    return float(np.quantile(found.ttft_s, 0.99))


@pytest.mark.parametrize(("start_s", "least"), PROTOTYPE)
def test_a_trace_of_bursts_scales_as_another_engine_found(
    truth: Path, monkeypatch: pytest.MonkeyPatch, start_s: float, least: int
) -> None:
    log, w, one = _served_code(truth)
    fleet = replace(fleet_of(one, pass_times(one)), engines=4, scaling=Scaling(4.0, 4, start_s, least))
    ours = serve(log, fleet)
    with monkeypatch.context() as patched:
        patched.setattr(engine, "Scaler", _LastWish)
        theirs = serve(log, fleet)
    assert _p99_s(theirs) == pytest.approx(PROTOTYPE[start_s, least], rel=0.2)
    assert _p99_s(ours) <= 1.05 * _p99_s(theirs), "what is held longer answers no later"
    cheapest = _cheapest(one, replace(w, ttft_s=_p99_s(theirs)), log, start_s)
    assert _p99_s(cheapest) <= _p99_s(theirs)
    assert cheapest.paid_s <= theirs.paid_s
