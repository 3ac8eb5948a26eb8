"""Chains of models with one target: their times, what clashes, and what a fleet makes of them."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

import chipwise as cw
from chipwise.api import launching, saving
from chipwise.api.portfolio_chain import Chain, ChainStep, Taken, TimedChain, chosen, likeness, worth
from chipwise.api.portfolio_time import _hardest_together, _StepCalls
from chipwise.api.requests.portfolio import FleetRequest
from chipwise.errors import ChipwiseError, InfeasibleError, UnknownNameError, UsageError
from chipwise.evidence.judge import summed
from chipwise.report.media import MediaPlan
from chipwise.report.plans import PlanRecord
from chipwise.report.portfolio import FIRST, WHOLE, PortfolioReport
from chipwise.report.records import Figure
from chipwise.report.table import to_json

pytest.importorskip("scipy")
HEAR = {"name": "hear", "model": "whisper", "settings": "audio_s=5"}
THINK = {"name": "think", "model": "Qwen/Qwen3-8B", "in": 800, "out": 120, "passes": 20}
SPEAK = {"name": "speak", "model": "kokoro-82m"}
VOICE = {"name": "assistant", "rate": "1/s", "ttft": "1.2s", "step": [HEAR, THINK, SPEAK]}
CARDS = {"name": "cards", "chip": "l40s"}


def asked(
    demands: list[dict[str, Any]], *supply: dict[str, Any], simulate: bool = False, **limits: object
) -> PortfolioReport:
    fleet = json.dumps({"demand": demands, "supply": supply, "limits": limits})
    return FleetRequest(fleet=fleet, gap="0", simulate=simulate).run()


@cache
def voice() -> PortfolioReport:
    """A voice assistant on rented cards."""
    return asked([VOICE], CARDS)


@cache
def plan_of(model: str, **options: Any) -> Any:
    return cw.plan(model, **options).plans[0]


def figure(mid: float, low: float, high: float) -> Figure:
    return Figure(mid, low, high, "modelled", False)


def taken(seed: int, limits: int, supply: int) -> Taken:
    """A candidate with made-up times."""
    rng = np.random.default_rng(seed)
    mids = rng.uniform(0.1, 0.6, limits)
    plan = replace(plan_of("kokoro-82m", rate="2/s", chips="l4"), chip=f"chip{supply}")
    return Taken(plan, tuple(figure(m, 0.7 * m, 1.6 * m) for m in mids), float(rng.uniform(1, 9)), (supply, False))


@pytest.mark.parametrize("seed", range(12))
def test_clashes_are_what_misses_a_target_and_nothing_else(seed: int) -> None:
    rng = np.random.default_rng(seed)
    limits = tuple(zip((FIRST, WHOLE), rng.uniform(0.7, 1.6, 2).tolist(), strict=True))[: 1 + seed % 2]
    sizes = rng.integers(1, 5, 1 + seed % 4)
    steps = tuple(
        tuple(taken(100 * seed + 10 * i + n, len(limits), n % 2) for n in range(size)) for i, size in enumerate(sizes)
    )
    chain = TimedChain(Chain("c", "", limits, 0.9), tuple("abcd"[: len(sizes)]), steps)
    clashes = list(chain.clashes())
    for places in product(*(range(n) for n in sizes)):
        together = [its[i] for its, i in zip(steps, places, strict=True)]
        alike = np.array([[float(a is b or a.plan.chip == b.plan.chip) for b in together] for a in together])
        late = False
        for limit, (_, s) in enumerate(limits):
            ends = [t.times[limit] for t in together]
            centres = np.array([np.sqrt(f.low * f.high) for f in ends])
            wide = np.array([np.log(f.high / f.low) / 2.0 / 1.2815516 for f in ends])
            late |= float(summed(centres, wide, alike, 0.9)) > s
        clash = any(all(places[step] == i for step, i in some) for some in clashes)
        assert clash == late
    for some in clashes:
        smaller = [set(other) for other in clashes if other != some]
        assert not any(other <= set(some) for other in smaller), "no clash contains another"


def test_candidates_that_cost_more_are_faster_and_few_enough_to_be_added_up() -> None:
    some = [taken(n, 1, n % 3) for n in range(60)]
    for supply in range(3):
        mine = [some[i] for i in chosen(some, 60) if some[i].where[0] == supply]
        mine.sort(key=lambda t: t.cost)
        assert mine[0].cost == min(t.cost for t in some if t.where[0] == supply)
        highs = [t.times[0].high for t in mine]
        assert highs == sorted(highs, reverse=True)
    few = worth([some] * 5)
    assert np.prod([len(its) for its in few]) <= 30_000
    assert all(its for its in few)


def test_errors_of_one_chip_add_up_fully_and_others_by_variance() -> None:
    speech = plan_of("whisper", rate="1/s", chips="l40s")
    sound = plan_of("kokoro-82m", rate="1/s", chips="l40s")
    there = plan_of("kokoro-82m", rate="1/s", chips="l4")
    one, other = (plan_of("Qwen/Qwen3-8B", rate="1/s", chips=chip) for chip in ("l40s", "h100"))
    assert isinstance(speech, MediaPlan)
    assert isinstance(one, PlanRecord)
    assert likeness(speech, sound) == 1.0
    assert likeness(speech, there) == 0.0
    assert 0.0 < likeness(one, other) < likeness(one, one) < 1.0


def test_a_step_waits_for_what_it_passes_on() -> None:
    chain = Chain("c", "", ((FIRST, 1.0), (WHOLE, 4.0)), 0.9)
    plan = plan_of("Qwen/Qwen3-8B", rate="1/s", chips="h100", out=100)
    ttft, tpot = plan.ttft_s.mid, plan.tpot_s.mid
    first, whole = ChainStep(chain, "think", passes=20.0, output=100.0).times(plan)
    assert first.mid == pytest.approx(ttft + 19.0 * tpot)
    assert whole.mid == pytest.approx(ttft + 99.0 * tpot)
    first, whole = ChainStep(chain, "answer", passes=100.0, output=100.0, last=True).times(plan)
    assert first.mid == pytest.approx(ttft)
    assert whole.mid == pytest.approx(ttft + 99.0 * tpot)
    assert first.low < first.mid < first.high
    many, _ = ChainStep(chain, "score", calls=20, passes=1.0, output=1.0).times(plan)
    assert many.mid == pytest.approx(ttft + 19.0 * plan.prefill_s)
    sound = plan_of("kokoro-82m", rate="1/s", chips="h100")
    assert [t.mid for t in ChainStep(chain, "speak", last=True).times(sound)] == pytest.approx([sound.answered_s] * 2)


def test_the_steps_of_a_chain_keep_its_target_together() -> None:
    found = voice()
    (demand,) = found.demands
    (times,) = demand.chain
    assert demand.placed
    assert demand.demand == "assistant"
    assert [p.demand for p in found.placements] == ["assistant/hear", "assistant/think", "assistant/speak"]
    assert times.time == "TTFT"
    assert times.mean_s < times.within_s <= times.target_s == 1.2
    assert sum(s.share for s in times.steps) == pytest.approx(1.0)
    assert sum(s.time_s.mid for s in times.steps) == pytest.approx(times.mean_s)
    assert demand.usd_per_day == pytest.approx(found.fleet.usd_per_day)
    rates = {p.demand: p.rate_per_s for p in found.placements}
    assert rates["assistant/speak"] == pytest.approx(6.0), "one call for each 20 of 120 tokens"
    said = " ".join(found.verdict())
    assert "The demand is placed for $" in said
    assert "assistant takes " in said
    assert "the target is 1.20 s" in said
    assert list(found.tables()[1].columns)[:3] == ["chain", "time", "step"]
    fields = json.loads(to_json(found))
    assert fields["demands"][0]["chain"][0]["steps"][1]["step"] == "think"


def test_a_tighter_target_costs_no_less_and_one_out_of_reach_says_what_is_in_reach() -> None:
    tight = asked([VOICE | {"ttft": "800ms"}], CARDS)
    assert tight.fleet.usd_per_day >= voice().fleet.usd_per_day
    (demand,) = tight.demands
    assert demand.chain[0].within_s <= 0.8
    chat = {"name": "chat", "model": "Qwen/Qwen3-8B", "rate": "1/s", "tpot": "60ms"}
    never = asked([VOICE | {"ttft": "100ms"}, chat], CARDS)
    assert [d.placed for d in never.demands] == [False, True]
    why = never.demands[0].why
    assert "TTFT takes " in why
    assert " at the least with 90% probability, the target is 100 ms; " in why
    assert " takes most of it" in why
    assert isinstance(never.failure, InfeasibleError)
    with pytest.raises(InfeasibleError, match="no demand has a candidate: assistant: TTFT takes"):
        asked([VOICE | {"ttft": "100ms"}], CARDS)


def test_a_chain_of_one_step_is_placed_as_the_plan_of_its_model() -> None:
    alone = {"name": "captions", "rate": "1/s", "e2e": "2s", "step": [HEAR]}
    (placed,) = asked([alone], CARDS).placements
    plan = plan_of("whisper", rate="1/s", e2e="2s", chips="l40s", settings="audio_s=5")
    assert placed.chips == plan.chips
    assert placed.usd_per_h == pytest.approx(plan.price.mid)
    assert placed.layout is None


def test_calls_of_a_step_are_a_batch_of_its_network() -> None:
    rank = {"name": "rank", "model": "bge-reranker-v2-m3", "settings": "tokens=512", "calls": 20}
    answer = {"name": "answer", "model": "Qwen/Qwen3-8B", "in": 3000, "out": 100}
    found = asked([{"name": "ask", "rate": "1/s", "ttft": "1s", "e2e": "5s", "step": [rank, answer]}], CARDS)
    first, whole = found.demands[0].chain
    assert (first.time, whole.time) == ("TTFT", "whole answer")
    assert first.within_s <= 1.0
    assert whole.within_s <= 5.0
    assert first.steps[0].time_s == whole.steps[0].time_s
    assert first.steps[1].time_s.mid < whole.steps[1].time_s.mid
    ranked = next(p for p in found.placements if p.demand == "ask/rank")
    assert ranked.rate_per_s == pytest.approx(20.0)


def test_a_chain_follows_a_day_on_what_is_owned_and_rented() -> None:
    day = {k: v for k, v in VOICE.items() if k != "rate"} | {"day": [0.5, 6]}
    found = asked([day], {**CARDS, "name": "own", "count": 3, "price": "own"}, CARDS)
    assert found.demands[0].placed
    assert found.demands[0].chain[0].within_s <= 1.2
    assert all(s.own_chips <= 3.0 for s in found.slices)
    assert found.slices[0].usd_per_h <= found.slices[1].usd_per_h


def test_a_small_step_shares_a_card_with_another_demand() -> None:
    slow = {"name": "slow", "rate": "0.05/s", "e2e": "20s"}
    think = {k: v for k, v in THINK.items() if k != "passes"}
    chat = {"name": "chat", "model": "Qwen/Qwen3-8B", "rate": "0.1/s", "tpot": "100ms"}
    together = asked([slow | {"step": [think]}, chat], CARDS)
    apart = asked([slow | {"step": [think]}, chat], CARDS, mixing=False)
    assert all(p.sharing for p in together.placements)
    assert together.fleet.usd_per_day < apart.fleet.usd_per_day
    assert together.demands[0].chain[0].mean_s > apart.demands[0].chain[0].mean_s


def test_a_chain_is_saved_made_again_simulated_and_launched(tmp_path: Any) -> None:
    kept = tmp_path / "kept.json"
    request = FleetRequest(fleet=json.dumps({"demand": [VOICE], "supply": [CARDS]}), simulate=True)
    saving.save("fleet", request, str(kept))
    assert saving.replay(str(kept)).identical
    report = json.loads(kept.read_text("utf-8"))["report"]
    of, seen = report["demands"][0]["chain"][0], report["simulated"][0]
    assert not report["unsimulated"]
    assert seen["rank"] is None
    assert seen["holds"]
    assert seen["mean"]["mid"] == pytest.approx(of["mean_s"], rel=0.1)  # formulas of queues against the engine
    placed = {p["demand"].partition("/")[2]: p for p in report["fleet"]["placements"]}
    think, hear = placed["think"], placed["hear"]
    assert "Qwen3-8B" in launched(kept, think)
    assert "openai/whisper-large-v3" in launched(kept, hear)


def launched(kept: Any, placed: dict[str, Any]) -> str:
    return "".join(f.text for f in launching.launch(str(kept), "", placed["rank"]))


def test_a_chain_of_one_step_takes_in_time_what_simulate_says_of_its_model() -> None:
    think = {k: v for k, v in THINK.items() if k != "passes"}
    found = asked([VOICE | {"step": [think]}], CARDS, simulate=True)
    p, seen = found.placements[0], found.simulated[0]
    alone = cw.simulate(
        p.model,
        chip=p.chip,
        runtime=p.runtime,
        precision=p.precision if p.converted else None,
        in_=800,
        out=120,
        rate="1/s",
        replicas=int(p.replicas),
    )
    assert seen.mean.mid == pytest.approx(alone.simulation.ttft_s.mean.mid, rel=1e-9)
    assert seen.p99.mid == pytest.approx(alone.simulation.ttft_s.p99.mid, rel=1e-9)


def test_a_share_of_requests_keeps_the_target_of_a_chain_in_time() -> None:
    """Formulas and the engine say the same of the share that is asked about."""
    loose = voice().demands[0].chain[0]
    found = asked([VOICE | {"percentile": "p95", "confidence": "50%"}], CARDS, simulate=True)
    of, seen = found.demands[0].chain[0], found.simulated[0]
    assert of.percentile == 0.95
    assert of.mean_s < of.within_s < 1.2
    assert loose.percentile is None
    assert seen.holds
    assert seen.within_slow >= 0.95 - 1e-9 or seen.within >= 0.95
    assert seen.mean.mid < of.within_s < seen.p99.high


def test_what_a_share_takes_of_a_sum_is_that_of_one_alone_and_less_of_two() -> None:
    chain = Chain("c", "", ((FIRST, 1.0),), 0.5, 0.99)
    one = replace(taken(3, 1, 0), late=(2.0,))
    alone = TimedChain(chain, ("a",), ((one,),))
    mean = TimedChain(replace(chain, percentile=None), ("a",), ((one,),))
    assert alone.within_s[0] == pytest.approx(2.0 * mean.within_s[0])
    both = TimedChain(chain, ("a", "b"), ((one,), (one,))).within_s[0]
    apart = TimedChain(replace(chain, percentile=None), ("a", "b"), ((one,), (one,))).within_s[0]
    assert 1.5 * apart < both < 2.0 * apart  # it is not the same request that is late in both


def test_a_log_of_a_chain_says_when_requests_come(tmp_path: Any) -> None:
    log = tmp_path / "log.csv"
    log.write_text("timestamp\n" + "\n".join(f"{20 * b + 0.01 * n}" for b in range(30) for n in range(10)))
    think = {k: v for k, v in THINK.items() if k != "passes"}
    demand = {key: value for key, value in VOICE.items() if key != "rate"} | {"step": [think]}
    found = asked([demand | {"log": str(log)}], CARDS, simulate=True)
    random = asked([VOICE | {"step": [think], "rate": "0.515/s"}], CARDS, simulate=True)
    assert found.simulated[0].rate_per_s == pytest.approx(299 / 580, rel=1e-3)
    assert found.simulated[0].requests == 300
    assert found.simulated[0].mean.mid > 1.2 * random.simulated[0].mean.mid  # ten come at once


def test_networks_are_demands_by_themselves_and_jobs(tmp_path: Any) -> None:
    served = {"name": "pictures", "model": "sdxl", "rate": "200/h", "e2e": "20s", "steps": 30, "runtime": "compile"}
    job = {"name": "clips", "model": "wan2.2", "samples": 100, "deadline": "24h", "frames": 81}
    job |= {"resolution": "832x480"}
    hall = {"name": "hall", "chip": "h100", "count": 4, "price": "own"}
    found = asked([served, job], hall, simulate=True)
    assert [p.demand for p in found.placements] == ["pictures", "clips"]
    clips = found.placements[1]
    alone = cw.plan("wan2.2", task="batch", chips="h100", frames=81, resolution="832x480").plans[0]
    made = sum(clips.per_slice) * 24.0 / len(clips.per_slice) * 3600.0 * alone.samples_per_s.mid
    assert made >= 100.0
    assert [t.demand for t in found.simulated] == ["pictures"]
    assert found.simulated[0].holds
    assert "not simulated: clips on hall: a job without targets" in found.tables()[2].text(width=200)
    kept = tmp_path / "kept.json"
    asked_ = FleetRequest(fleet=json.dumps({"demand": [served, job], "supply": [hall]}))
    saving.save("fleet", asked_, str(kept))
    report = json.loads(kept.read_text("utf-8"))["report"]
    assert "stable-diffusion-xl" in launched(kept, report["fleet"]["placements"][0])


def test_networks_share_a_card_with_language_models() -> None:
    think = {k: v for k, v in THINK.items() if k != "passes"} | {"tpot": "100ms"}
    slow = {"name": "hearing", "model": "whisper", "settings": "audio_s=5", "rate": "0.3/s", "e2e": "2s"}
    chat = think | {"rate": "0.2/s", "name": "chat"}
    found = asked([slow, chat], CARDS, simulate=True)
    apart = asked([slow, chat], CARDS, mixing=False)
    assert found.fleet.usd_per_day == pytest.approx(0.5 * apart.fleet.usd_per_day)
    hearing = next(p for p in found.placements if p.network)
    assert hearing.sharing
    assert hearing.sharing.memory == 0.125
    share = hearing.sharing.share
    alone = cw.estimate("whisper", chip="l40s", settings="audio_s=5", share=share, runtime=hearing.runtime).plans[0]
    assert hearing.sharing.ttft_s.mid == pytest.approx(alone.latency_s.mid, rel=1e-6)
    assert hearing.sharing.active == pytest.approx(0.3 * alone.latency_s.mid, rel=1e-6)
    assert {t.demand for t in found.simulated} == {"hearing", "chat"}
    assert all(t.holds for t in found.simulated)
    assert "hearing has 12% of the memory, a request" in " ".join(found.verdict())


def test_pieces_are_ready_when_all_calls_have_written_as_much() -> None:
    step = ChainStep(Chain("c", "", ((FIRST, 1.0),), 0.9), "s", calls=2, passes=4, output=10)
    first = np.tile([[[1.0, 1.5]]], (3, 1, 1, 1))
    calls = _StepCalls(first, first + np.array([0.9, 1.1]), np.array([[[10.0, 12.0]]]))
    assert calls.pieces(step)[1, 0] == pytest.approx([1.8, 2.2, 2.6])  # of the second call tokens 4, 8 and 12
    network = ChainStep(step.chain, "n", calls=2)
    assert calls.pieces(network)[1, 0] == pytest.approx([2.6])


@pytest.mark.parametrize(
    ("count", "rates", "left"),
    [
        ([[2, 2, 2]], [[1.0, 3.0, 3.0]], [1]),  # alike: the first
        ([[1, 2, 4], [1, 1, 1]], [[1.0, 2.0, 4.0], [1.0, 2.0, 4.0]], [0, 1, 2]),
        ([[1, 2, 2], [1, 1, 2]], [[1.0, 2.0, 0.0], [1.0, 1.0, 0.0]], [0]),  # idle in the last
    ],
)
def test_a_chain_is_simulated_in_the_slices_that_no_other_is_harder_than(
    count: list[list[int]], rates: list[list[float]], left: list[int]
) -> None:
    placed = [
        [replace(voice().placements[0], per_slice=tuple(n), requests_per_s=tuple(r))]
        for n, r in zip(count, rates, strict=True)
    ]
    assert list(_hardest_together(placed)) == left


@pytest.mark.parametrize(
    ("changed", "kind", "said"),
    [
        ({"step": [HEAR | {"setings": "x"}]}, UnknownNameError, "did you mean settings"),
        ({"step": [HEAR | {"out": 100}]}, UnknownNameError, "step hear of demand assistant"),
        ({"step": [THINK | {"settings": "audio_s=5"}]}, UnknownNameError, "step think"),
        ({"model": "Qwen/Qwen3-8B"}, UnknownNameError, "key of demand assistant, a chain"),
        ({"percentile": "p100"}, UsageError, "50 to 99.9"),
        ({"log": "none.csv"}, UsageError, "none.csv: cannot be read"),
        ({"rate": None, "log": "none.csv"}, UsageError, "none.csv: cannot be read"),
        ({"step": []}, UsageError, "[[demand.step]]"),
        ({"step": "whisper"}, UsageError, "[[demand.step]]"),
        ({"step": [HEAR, HEAR]}, UsageError, "two steps are called hear"),
        ({"step": [HEAR | {"name": str(n)} for n in range(6)]}, UsageError, "at most 5"),
        ({"step": [{"name": "hear"}]}, UsageError, "has no model"),
        ({"step": [{"model": "net.py:make"}, SPEAK]}, UsageError, "code is not run"),
        ({"step": [HEAR | {"calls": 0}]}, UsageError, "a whole number from 1"),
        ({"step": [HEAR | {"calls": 100_000}]}, UsageError, "1 to 10,000"),
        ({"step": [HEAR | {"on": ["halls"]}]}, UnknownNameError, "halls"),
        ({"step": [THINK]}, UsageError, "in a step that another follows"),
        ({"step": [THINK | {"passes": 500}, SPEAK]}, UsageError, "passes = 500 of 120 tokens"),
        ({"step": [THINK | {"tpot": 40}, SPEAK]}, UsageError, "40ms or 40s?"),
        ({"step": [HEAR | {"settings": "audio=5"}]}, ChipwiseError, "audio_s"),
        ({"ttft": 1200}, UsageError, "ms"),
        ({"ttft": None}, UsageError, "has a target for the time of all its steps"),
        ({"rate": None}, UsageError, "it has no load"),
        ({"confidence": "20%"}, UsageError, "50% to 99%"),
    ],
)
def test_what_is_wrong_in_a_chain_is_said(changed: dict[str, Any], kind: type, said: str) -> None:
    table = {key: value for key, value in (VOICE | changed).items() if value is not None}
    with pytest.raises(kind) as error:
        FleetRequest(fleet=json.dumps({"demand": [table], "supply": [CARDS]})).run()
    assert said in f"{error.value} {error.value.hint}"
    assert error.value.field == "fleet"


def test_a_chain_on_apis_alone_has_no_times() -> None:
    with pytest.raises(InfeasibleError, match="APIs: its speed is not known"):
        asked([VOICE | {"step": [{k: v for k, v in THINK.items() if k != "passes"}]}], {"price": "api"})


CALLED = {"price": "api", "name": "novita", "provider": "novita", "ttft": "200ms", "tpot": "3ms"}
BUSY = VOICE | {"rate": "1/s", "step": [HEAR, THINK | {"model": "meta-llama/Llama-3.1-8B"}, SPEAK]}
ONE_CARD = CARDS | {"max": 1}


def test_a_step_calls_an_api_whose_speed_is_said() -> None:
    found = asked([BUSY], ONE_CARD, CALLED, simulate=True)
    think = next(p for p in found.fleet.placements if p.demand == "assistant/think")
    assert think.kind == "api"
    assert think.api is not None
    assert (think.api.provider, think.api.ttft_s, think.api.tpot_s) == ("novita", 0.2, 0.003)
    assert think.api.base_url.startswith("https://")
    (chain,) = found.demands[0].chain
    step = next(s for s in chain.steps if s.step == "think")
    assert step.time_s.mid == pytest.approx(0.2 + 19 * 0.003)
    assert step.chip == "novita"
    assert chain.within_s <= 1.2
    (timed,) = found.simulated
    assert timed.within == 1.0
    assert timed.mean.high <= 1.05 * 1.2, "the end of the mean, by its simulation"
    assert timed.mean.mid == pytest.approx(chain.mean_s, rel=0.1)


def test_an_api_that_is_too_slow_or_of_unknown_speed_is_not_called() -> None:
    slow = asked([BUSY], ONE_CARD, CALLED | {"ttft": "2s"})
    assert all(p.kind == "rent" for p in slow.fleet.placements), "one card may or may not carry all three steps"
    unknown = asked([BUSY], CARDS, {"price": "api", "name": "novita", "provider": "novita"})
    assert all(p.kind == "rent" for p in unknown.fleet.placements)
    said = " ".join(unknown.assumptions)
    assert "assistant/think does not call novita: its speed is not known" in said
    assert "assistant/hear does not call" not in said


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ({"ttft": "1s"}, "says ttft and not tpot"),
        ({"ttft": "1s", "tpot": "3ms", "provider": ""}, "the supply has all of them"),
        ({"ttft": "1s", "tpot": "3ms", "provider": ["groq", "novita"]}, "the supply has 2 of them"),
        ({"ttft": 1, "tpot": "3ms"}, "ttft = 1 has no unit"),
        ({"ttft": "-1s", "tpot": "3ms"}, "ttft"),
        ({"ttft": "soon", "tpot": "3ms"}, "ttft"),
    ],
)
def test_what_is_wrong_with_the_speed_of_an_api_is_said(said: dict[str, Any], what: str) -> None:
    table = {"price": "api", "provider": "novita"} | said
    with pytest.raises(UsageError, match=what):
        asked([BUSY], CARDS, {k: v for k, v in table.items() if v})


def test_a_chain_is_launched_as_one_set(tmp_path: Any) -> None:
    kept = tmp_path / "fleet.json"
    fleet = {"demand": [BUSY], "supply": [ONE_CARD, CALLED]}
    saving.save("fleet", FleetRequest(fleet=json.dumps(fleet), gap="0"), str(kept))
    files = {f.name: f.text for f in launching.launch(str(kept), "chain")}
    assert next(iter(files)) == "client.py"
    assert not any(name.startswith("think/") for name in files), "the language model is called"
    assert "NOVITA_API_KEY" in files["client.py"]
    assert "'passes': 20" in files["client.py"]
    other = tmp_path / "own.json"
    fleet = {"demand": [BUSY], "supply": [CARDS]}
    saving.save("fleet", FleetRequest(fleet=json.dumps(fleet), gap="0"), str(other))
    names = [f.name for f in launching.launch(str(other), "chain", 2)]
    assert names[:2] == ["start.sh", "client.py"]
    assert "think/serve.sh" in names
    with pytest.raises(UsageError, match="no step of a chain"):
        launching.launch(str(other), "chain", 9)
