"""What every SIMT formula must obey: no faster than its roofline, monotone, parts that add up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.cost.cost import Cost
from chipwise.cost.simt import (
    DecodeParameters,
    ExpertParameters,
    GemmParameters,
    Operands,
    PointwiseParameters,
    PromptParameters,
    QuantiseParameters,
    Rates,
    decode_attention,
    experts,
    gemm,
    pointwise,
    prompt_attention,
    quantise,
    uniform,
)
from chipwise.workload.op import causal_pairs

# an H100, rounded
RATES = Rates(989e12, 3.35e12, 52e6, 132.0, 1.83e9, 700.0)
GEMM = GemmParameters(0.8, 0.9, 50.0, 200.0, 3e-6, 0.7e-12, 0.1, 0.5, 0.5, 3.0)
PROMPT = PromptParameters(0.8, 0.8, 1.0, 1e-6, 0.5, 0.9, 1.0, 8e-6, 3.0)
DECODE = DecodeParameters(0.9, 0.5, 40.0, 512.0, 1.0, 1e-6, 0.5, 0.4, 1.5, 1.0, 6e-6, 3.0)
EXPERTS = ExpertParameters(0.6, 0.8, 40.0, 300.0, 0.5, 0.5, 3.0, 1.0, 1e-8, 12e-6, 3.0)
POINTWISE = PointwiseParameters(0.85, 1.0, 30.0, 1.2, 3e-6, 3.0)

Dims = dict[str, float]


def product(d: Dims, rates: Rates) -> Cost:
    return gemm(d["m"], d["n"], d["k"], Operands(), rates, GEMM)


def product_floor(d: Dims, rates: Rates) -> float:
    m, n, k = d["m"], d["n"], d["k"]
    return max(2 * m * n * k / rates.flops_per_s, 2.0 * n * k / rates.memory_bytes_per_s)


def prompt(d: Dims, rates: Rates) -> Cost:
    pairs = causal_pairs(d["q"], d["q"])
    return prompt_attention(d["b"], d["q"], d["q"], d["h"], d["h"] / 4, 128.0, pairs, 2.0, rates, PROMPT)


def prompt_floor(d: Dims, rates: Rates) -> float:
    return float(4 * d["b"] * d["h"] * 128 * causal_pairs(d["q"], d["q"]) / rates.flops_per_s)


def decode(d: Dims, rates: Rates) -> Cost:
    return decode_attention(d["b"], d["kv"], 4 * d["g"], d["g"], 128.0, 2.0, rates, DECODE)


def decode_floor(d: Dims, rates: Rates) -> float:
    return float(d["b"] * d["kv"] * d["g"] * 512 / rates.memory_bytes_per_s)


def routed(d: Dims, rates: Rates) -> Cost:
    where = uniform(d["t"], d["e"], 8.0)
    return experts(where, d["t"], d["d"], d["f"], d["e"], 2.0, 2.0, rates, EXPERTS)


def routed_floor(d: Dims, rates: Rates) -> float:
    where = uniform(d["t"], d["e"], 8.0)
    each = 3 * d["d"] * d["f"]
    return float(max(2 * where.rows * each / rates.flops_per_s, 2 * where.distinct * each / rates.memory_bytes_per_s))


def elementwise(d: Dims, rates: Rates) -> Cost:
    return pointwise(d["bytes"], rates, POINTWISE)


def elementwise_floor(d: Dims, rates: Rates) -> float:
    return d["bytes"] / float(rates.memory_bytes_per_s)


def aligned(step: int, most: int) -> st.SearchStrategy[float]:
    return st.integers(1, most).map(lambda i: float(i * step))


FORMULAS: dict[str, tuple[Callable[[Dims, Rates], Cost], Callable[[Dims, Rates], float], st.SearchStrategy[Dims]]] = {
    "gemm": (
        product,
        product_floor,
        st.fixed_dictionaries({"m": aligned(256, 64), "n": aligned(256, 64), "k": aligned(256, 64)}),
    ),
    "skinny gemm": (
        product,
        product_floor,
        st.fixed_dictionaries({"m": aligned(1, 64), "n": aligned(256, 128), "k": aligned(256, 64)}),
    ),
    "prompt": (
        prompt,
        prompt_floor,
        st.fixed_dictionaries({"b": aligned(1, 64), "q": aligned(128, 64), "h": aligned(4, 16)}),
    ),
    "decode": (
        decode,
        decode_floor,
        st.fixed_dictionaries({"b": aligned(1, 256), "kv": aligned(512, 128), "g": aligned(1, 8)}),
    ),
    "experts": (
        routed,
        routed_floor,
        st.fixed_dictionaries(
            {"t": aligned(1, 8192), "e": aligned(8, 32), "d": aligned(256, 28), "f": aligned(256, 16)}
        ),
    ),
    "pointwise": (elementwise, elementwise_floor, st.fixed_dictionaries({"bytes": aligned(4096, 100000)})),
}


@pytest.mark.parametrize("name", FORMULAS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_never_faster_than_its_cold_roofline(name: str, data: st.DataObject) -> None:
    cost, floor, shapes = FORMULAS[name]
    d = data.draw(shapes)
    assert float(cost(d, RATES).total_s) >= floor(d, RATES) * (1 - 1e-9)


@pytest.mark.parametrize("name", FORMULAS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_more_work_is_never_faster(name: str, data: st.DataObject) -> None:
    cost, _, shapes = FORMULAS[name]
    d = data.draw(shapes)
    grown = data.draw(st.sampled_from(sorted(d)))
    more = d | {grown: d[grown] * 2}
    assert float(cost(more, RATES).total_s) >= float(cost(d, RATES).total_s) * (1 - 1e-9)


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("figure", ["flops_per_s", "memory_bytes_per_s", "cache_bytes"])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_better_chip_is_never_slower(name: str, figure: str, data: st.DataObject) -> None:
    cost, _, shapes = FORMULAS[name]
    d = data.draw(shapes)
    better = replace(RATES, **{figure: 2 * getattr(RATES, figure)})
    assert float(cost(d, better).total_s) <= float(cost(d, RATES).total_s) * (1 + 1e-9)


@pytest.mark.parametrize("name", FORMULAS)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_parts_add_up(name: str, data: st.DataObject) -> None:
    cost, _, shapes = FORMULAS[name]
    c = cost(data.draw(shapes), RATES)
    assert set(c.exposed) <= {"compute", "memory", "on-chip", "launch"}
    assert sum(float(v) for v in c.exposed.values()) == pytest.approx(float(c.total_s), rel=1e-12)
    assert all(float(v) >= 0 for v in c.exposed.values())


def test_arrays_price_like_numbers() -> None:
    m, n, k = (np.array([1.0, 17.0, 4096.0]), np.array([4096.0, 28672.0, 1024.0]), np.array([4096.0, 8192.0, 512.0]))
    together = np.asarray(gemm(m, n, k, Operands(), RATES, GEMM).total_s)
    for i in range(3):
        alone = gemm(float(m[i]), float(n[i]), float(k[i]), Operands(), RATES, GEMM).total_s
        assert together[i] == pytest.approx(float(alone), rel=1e-12)


def test_chips_broadcast_against_shapes() -> None:
    chips = replace(RATES, memory_bytes_per_s=np.array([[3.35e12], [4.8e12]]))
    times = np.asarray(gemm(np.array([1.0, 64.0, 4096.0]), 8192.0, 8192.0, Operands(), chips, GEMM).total_s)
    assert times.shape == (2, 3)
    assert times[1, 0] < times[0, 0]


def test_operands_that_take_turns_come_from_memory() -> None:
    """Weights that the cache holds, tall inputs: a benchmark that rotates inputs and outputs reads and writes all of
    them in memory, the layer of a model whose neighbours hand them on does not."""
    d = {"m": 4096.0, "n": 64.0, "k": 64.0}
    sharp = replace(GEMM, softness=200.0, start_s=0.0, memory_share=1.0)
    slow = replace(RATES, memory_bytes_per_s=1e9)
    hot, turns, half = (
        gemm(d["m"], d["n"], d["k"], Operands(weight_copies=1.0, activations_cached=share), slow, sharp)
        for share in (1.0, 0.0, 0.5)
    )
    passing = 2.0 * d["m"] * (d["n"] + d["k"])
    assert turns.total_s == pytest.approx(passing / 1e9, rel=1e-3)
    assert half.total_s == pytest.approx(0.5 * passing / 1e9, rel=1e-3)
    assert hot.total_s < 0.1 * turns.total_s


def test_quantising_adds_a_launch_and_three_bytes_per_element() -> None:
    p = QuantiseParameters(2e-6, 0.0, 0.5)
    cost = quantise(65536.0, 8192.0, RATES, p)
    assert float(cost.exposed["launch"]) == 2e-6
    assert float(cost.exposed["memory"]) == pytest.approx(3 * 65536 * 8192 / (0.5 * 3.35e12))
    assert float(quantise(65536.0, 8192.0, RATES, p, 0.0).total_s) == 0.0


def test_quantising_what_the_cache_holds_is_cheaper() -> None:
    p = QuantiseParameters(0.0, 0.0, 0.5)
    assert float(quantise(64.0, 8192.0, RATES, p).total_s) < 3 * 64 * 8192 / (0.5 * 3.35e12)


def test_a_host_that_runs_ahead_hides_the_shorter_of_launch_and_work() -> None:
    ahead = replace(DECODE, start_s=60e-6, ahead=1.0)
    for batch in (1.0, 64.0):
        plain = decode_attention(batch, 4096.0, 32.0, 8.0, 128.0, 2.0, RATES, replace(ahead, ahead=0.0))
        cost = decode_attention(batch, 4096.0, 32.0, 8.0, 128.0, 2.0, RATES, ahead)
        work_s = float(np.asarray(plain.total_s)) - 60e-6
        assert float(np.asarray(cost.total_s)) == pytest.approx(max(work_s, 60e-6))
    product_s = gemm(4096.0, 4096.0, 4096.0, Operands(), RATES, replace(GEMM, start_s=60e-6, ahead=1.0)).total_s
    rest_s = gemm(4096.0, 4096.0, 4096.0, Operands(), RATES, replace(GEMM, start_s=0.0)).total_s
    assert float(np.asarray(product_s)) == pytest.approx(max(float(np.asarray(rest_s)), 60e-6))


def test_parts_of_a_prompt_take_what_each_takes_with_the_cache_before_it() -> None:
    """Few heads and short parts make fewer tiles than there are units: each part waits for its own last tile."""
    rates, parts, q, heads = Rates(2e14, 1.8e12, 1e8, 170.0, 2.4e9, 575.0), 32, 2048.0, 8.0
    whole = q * parts
    pairs = whole * (whole + 1.0) / 2.0
    shared = prompt_attention(1.0 / parts, whole, whole, heads, 1.0, 256.0, pairs, 1.0, rates, PROMPT)
    apart = 0.0
    for part in range(1, parts + 1):
        seen = q * (part - 1) * q + q * (q + 1.0) / 2.0
        one = prompt_attention(1.0, q, q * part, heads, 1.0, 256.0, seen, 1.0, rates, PROMPT)
        apart += float(np.asarray(one.total_s))
    assert parts * float(np.asarray(shared.total_s)) == pytest.approx(apart, rel=0.05)
