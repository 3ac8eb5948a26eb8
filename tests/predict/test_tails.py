"""Quantiles against brute force: a queue, an engine iteration by iteration, and limits that anyone can check."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.predict.arrivals import Engine, waits
from tests.predict.tabulated import engines, requests, table, toy

from chipwise.predict.passes import BATCHES
from chipwise.predict.service import Prediction, Service
from chipwise.predict.tails import _normal_beyond, tails, ttft_quantile
from chipwise.workload.lengths import Lengths

BASE_S, SEQUENCE_S, PROMPT_S = 8e-3, 60e-6, 40e-3
LENGTHS = Lengths(1000.0, 200.0, prompt_cv=0.6, output_cv=0.8)


def prediction(lengths: Lengths = LENGTHS, at_once: int = 8) -> Prediction:
    asked = requests(1000.0, lengths.output_tokens, 1000.0 * at_once, 1.0 + lengths.prompt_cv**2)
    passes = table(asked, parts_of=toy(BASE_S, SEQUENCE_S, PROMPT_S / 1000))
    p = engines(passes).under(Service(0.0)).over_batches()
    return p.each(lambda values: values[0, : int(np.searchsorted(BATCHES, 64.0)) + 1])


def drawn(lengths: Lengths, side: str, size: int, rng: np.random.Generator) -> np.ndarray:
    mean, cv = getattr(lengths, f"{side}_tokens"), getattr(lengths, f"{side}_cv")
    sigma = np.sqrt(np.log1p(cv * cv))
    return np.asarray(mean * rng.lognormal(-0.5 * sigma**2, sigma, size) if cv else np.full(size, mean))


@pytest.mark.parametrize("cv", [0.0, 0.6])
@pytest.mark.parametrize("rho", [0.3, 0.6, 0.85])
def test_waits_of_one_server(rho: float, cv: float) -> None:
    rng = np.random.default_rng(1)
    size = 100_000
    lengths = Lengths(1000.0, 1.0, prompt_cv=cv)
    service = PROMPT_S * drawn(lengths, "prompt", size, rng) / 1000.0
    found = waits(np.cumsum(rng.exponential(PROMPT_S / rho, size)), service) + service
    wait = rho * PROMPT_S * (1 + cv * cv) / (2 * (1 - rho))
    own = PROMPT_S * lengths.points("prompt") / 1000.0
    for share in (0.5, 0.95, 0.99):
        said = ttft_quantile(share, np.array(0.0), own, np.array(rho), np.array(wait))
        assert float(said) == pytest.approx(np.quantile(found, share), rel=0.2), share


@pytest.mark.parametrize(("point", "at_once"), [(8, 8), (15, 8), (14, 1)])
def test_an_engine_under_poisson_arrivals(point: int, at_once: int) -> None:
    p = prediction(at_once=at_once)
    rate = float(p.requests_per_s[point])
    rng = np.random.default_rng(7)
    size = 12_000
    outputs = np.maximum(np.round(drawn(LENGTHS, "output", size, rng)), 1)
    prompt_s = PROMPT_S * drawn(LENGTHS, "prompt", size, rng) / 1000.0
    engine = Engine(BASE_S, SEQUENCE_S, at_once)
    ttft, tpot = engine.open(np.cumsum(rng.exponential(1 / rate, size)), outputs, prompt_s)
    kept = slice(size // 10, -size // 10)
    ttft, tpot = ttft[kept], tpot[kept]
    # the mean over tokens: each request counts as often as it has tokens
    mean = float(np.average(tpot, weights=outputs[kept]))
    assert float(p.tpot_s[point]) == pytest.approx(mean, rel=0.03)
    assert float(p.ttft_s[point]) == pytest.approx(float(np.mean(ttft)), rel=0.04 if at_once > 1 else 0.1)
    said = tails(p, LENGTHS)
    within = 0.12 if at_once > 1 else 0.25
    for share in (0.5, 0.95, 0.99):
        assert float(said.ttft_s[share][point]) == pytest.approx(np.quantile(ttft, share), rel=within), share
        assert float(said.tpot_s[share][point]) == pytest.approx(np.quantile(tpot, share), rel=0.1), share


@pytest.mark.parametrize("rho", [0.3, 0.6, 0.84])
@pytest.mark.parametrize(("outputs", "at_once"), [(2, 1), (2, 8), (3, 8), (5, 8), (9, 1), (9, 8), (33, 8)])
def test_few_tokens_beside_long_prompts(outputs: int, at_once: int, rho: float) -> None:
    """A pass with a prompt takes twenty times as long as one without: how many ride in a request's few passes."""
    prompt_s, base_s = 57e-3, 2.5e-3
    lengths = Lengths(1000.0, float(outputs))
    passes = table(
        requests(1000.0, lengths.output_tokens, 1000.0 * at_once), parts_of=toy(base_s, SEQUENCE_S, prompt_s / 1000)
    )
    rates = rho / prompt_s * np.array([[0.95, 1.0, 1.05]])
    said = tails(engines(passes).under(Service(0.0)).open(rates).each(lambda v: v[0]), lengths, at=1)
    rng = np.random.default_rng(1)
    size = 20_000
    arrivals = np.cumsum(rng.exponential(prompt_s / rho, size))
    _, tpot = Engine(base_s, SEQUENCE_S, at_once).open(arrivals, np.full(size, outputs), np.full(size, prompt_s))
    found = [float(said.tpot_s[q][0]) for q in (0.5, 0.95, 0.99)]
    assert 0.0 < found[0] <= found[1] <= found[2]
    # counts of prompts step: a quantile lies between those of a little more and of a little fewer requests
    for q, value in zip((0.5, 0.95, 0.99), found, strict=True):
        low, high = np.quantile(tpot[size // 10 :], (1.0 - 1.4 * (1.0 - q), 1.0 - (1.0 - q) / 1.4))
        assert 0.75 * low <= value <= 1.2 * high, q


@given(
    prompt=st.floats(16, 1e5),
    output=st.floats(2, 3000),
    cv=st.sampled_from([0.0, 1.0]),
    at_once=st.floats(0.05, 50),
    share=st.floats(0.001, 0.99),
)
@settings(max_examples=200, deadline=None)
def test_quantiles_are_in_order(prompt: float, output: float, cv: float, at_once: float, share: float) -> None:
    lengths = Lengths(prompt, output, prompt_cv=cv, output_cv=cv)
    passes = table(
        requests(prompt, output, prompt * at_once, 1.0 + cv * cv), parts_of=toy(BASE_S, SEQUENCE_S, PROMPT_S / 1000)
    )
    rates = share / (PROMPT_S / 1000 * prompt) * np.array([[0.9, 1.0, 1.1]])
    p = engines(passes).under(Service(0.02)).open(rates).each(lambda v: v[0])
    said = tails(p, lengths, at=1)
    for times, mean in ((said.ttft_s, p.ttft_s[1]), (said.tpot_s, p.tpot_s[1])):
        found = np.array([times[q][0] for q in (0.5, 0.95, 0.99)])
        if np.isnan(found).any():
            continue
        assert found[0] >= 0.0
        assert np.all(np.diff(found) >= 0.0)
        assert found[2] >= mean


@pytest.mark.parametrize("share", [0.5, 0.95, 0.99])
def test_equal_requests_by_hand(share: float) -> None:
    fixed, own, rho, wait = 0.01, 0.04, 0.6, 0.06
    said = ttft_quantile(share, np.array(fixed), np.array([own]), np.array(rho), np.array(wait))
    waited = max(wait / rho * math.log(rho / (1.0 - share)), 0.0)
    assert float(said) == pytest.approx(fixed + own + waited, rel=1e-12)


@pytest.mark.parametrize("share", [0.3, 0.9, 0.999])
def test_two_kinds_of_requests_by_hand(share: float) -> None:
    fixed, own, rho, wait = 0.01, np.array([0.02, 0.5]), 0.6, 0.06
    said = float(ttft_quantile(share, np.array(fixed), own, np.array(rho), np.array(wait)))
    rest = said - fixed - own
    beyond = np.where(rest >= 0.0, rho * np.exp(-np.maximum(rest, 0.0) * rho / wait), 1.0).mean()
    assert beyond == pytest.approx(1.0 - share, rel=1e-9)


def test_quantiles_rise_and_hold_the_middle() -> None:
    p = prediction()
    found = tails(p, LENGTHS, (0.1, 0.5, 0.9, 0.99))
    for times in (found.ttft_s, found.tpot_s):
        columns = np.array([times[s] for s in (0.1, 0.5, 0.9, 0.99)])
        known = np.isfinite(columns[0])
        assert np.all(np.diff(columns[:, known], axis=0) >= 0)
    middle = found.tpot_s[0.5][:10] / p.tpot_s[:10]
    assert middle == pytest.approx(np.ones(10), rel=0.1)


def test_beyond_its_reach_it_says_nothing() -> None:
    passes = table(requests(1000.0, 10.0, 1e6), parts_of=toy(1e-3, 0.0, 1e-3))
    busy = engines(passes).under(Service()).over_batches().each(lambda values: values[0, [0, 40]])
    said = tails(busy, Lengths(1000.0, 10.0))
    assert busy.utilisation[1] > 0.99
    assert np.isnan(said.ttft_s[0.99][1])
    assert np.isnan(said.tpot_s[0.99][1])


def test_a_single_token_has_no_time_per_further_one() -> None:
    passes = table(requests(1000.0, 1.0), parts_of=toy(BASE_S, SEQUENCE_S, PROMPT_S / 1000))
    p = engines(passes).under(Service(0.0)).open(np.array([[2.0, 4.0, 6.0]])).each(lambda values: values[0])
    said = tails(p, Lengths(1000.0, 1.0))
    assert np.isnan(said.tpot_s[0.5]).all()
    assert p.utilisation[0] < 0.01 < p.utilisation[1]  # of the first, fewer than one in a hundred wait at all
    # but one in a hundred waits for what is left of a pass
    assert said.ttft_s[0.5][0] < said.ttft_s[0.99][0] < said.ttft_s[0.5][0] + PROMPT_S + BASE_S
    assert np.all(said.ttft_s[0.99][1:] > said.ttft_s[0.5][1:])


def test_the_normal_tail() -> None:
    z = np.linspace(-6.0, 6.0, 241)
    exact = np.array([0.5 * math.erfc(x / math.sqrt(2.0)) for x in z])
    assert _normal_beyond(z) == pytest.approx(exact, abs=1e-7)


def test_without_spread_or_neighbours_a_lone_request_has_no_tail() -> None:
    lone = prediction(Lengths(1000.0, 1e6))
    said = tails(lone, Lengths(1000.0, 1e6))
    assert float(said.tpot_s[0.99][0]) == pytest.approx(float(lone.tpot_s[0]), rel=0.1)
