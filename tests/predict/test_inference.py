"""Steady state: limits that anyone can check, queues that obey Little's law, stages and replicas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tests.predict.tabulated import tabulated

from chipwise.catalog.runtime import load_runtimes
from chipwise.cost.cost import Cost
from chipwise.predict.inference import Prediction, chunk_tokens, in_flight, picked, serve_steady
from chipwise.predict.serving import Service
from chipwise.predict.surface import batch_grid
from chipwise.units import Array, Real
from chipwise.workload.step import Step
from chipwise.workload.workload import Workload

REQUEST_S = 0.02
SERVICE = Service(REQUEST_S, stream_tokens=0.0)
BASE_S, SEQUENCE_S, TOKEN_S = 10e-3, 20e-6, 50e-6
BATCHES = batch_grid(256)

WORKLOAD = Workload(prompt_tokens=1000, output_tokens=200)


def toy(step: Step) -> Cost:
    """10 ms to read the weights, 20 us per sequence, 50 us per prompt token."""
    first, *rest = step.segments
    prompt = rest[0].batch * rest[0].q if rest else 0.0
    return Cost({"memory": BASE_S + SEQUENCE_S * first.batch, "compute": TOKEN_S * prompt})


def steady(
    workload: Workload = WORKLOAD,
    stages: Real = 1.0,
    replicas: Real = 1.0,
    chunk: float | None = None,
    batches: Array = BATCHES,
    cost_of: Callable[[Step], Cost] = toy,
) -> Prediction:
    prompt = workload.prompt_tokens if chunk is None else chunk
    surface = tabulated(cost_of, batches, prompt, workload.mean_context)
    return serve_steady(surface, workload, stages, replicas, SERVICE)


# ------------------------------------------------------------------ by hand


def test_one_point_by_hand() -> None:
    p = steady(batches=np.array([50.0]))
    t, s = 0.010 + 50 * 20e-6, 1000 * 50e-6
    tpot = t + 50 * s / 200
    rate = 50 / (200 * tpot)
    rho = rate * s
    assert p.decode_s[0] == pytest.approx(t)
    assert p.prefill_s[0] == pytest.approx(s)
    assert p.tpot_s[0] == pytest.approx(tpot)
    assert p.requests_per_s[0] == pytest.approx(rate)
    assert p.tokens_per_s[0] == pytest.approx(200 * rate)
    met = tpot + rho * s / (1 - rho**2)
    assert p.ttft_s[0] == pytest.approx(REQUEST_S + (0.5 + rho) * met + t + s)
    assert p.wait_s[0] == pytest.approx((0.5 + rho) * met - tpot / 2)
    assert p.batch[0] == 50


def test_a_prompt_longer_than_the_budget_goes_in_chunks() -> None:
    whole, cut = steady(), steady(chunk=250.0)
    assert cut.prefill_s == pytest.approx(whole.prefill_s), "tokens are worked off all the same"
    assert cut.tpot_s == pytest.approx(whole.tpot_s)
    assert cut.ttft_s - whole.ttft_s == pytest.approx(3 * whole.decode_s), (
        "three more passes until the first token"
    )


# -------------------------------------------------------------------- limits


def test_long_answers_are_all_decoding() -> None:
    p = steady(replace(WORKLOAD, prompt_tokens=1.0, output_tokens=1e6))
    assert p.tpot_s == pytest.approx(BASE_S + SEQUENCE_S * BATCHES, rel=1e-4)
    assert p.tokens_per_s == pytest.approx(BATCHES / (BASE_S + SEQUENCE_S * BATCHES), rel=1e-4)


def test_long_prompts_are_all_prefill() -> None:
    workload = Workload(prompt_tokens=1e6, output_tokens=10)
    p = steady(workload)
    most = 1 / (1e6 * TOKEN_S)
    assert np.all(p.requests_per_s < most)
    assert p.requests_per_s[-1] == pytest.approx(most, rel=1e-3)


def test_the_machine_is_never_oversubscribed() -> None:
    for workload in (WORKLOAD, Workload(prompt_tokens=1e6, output_tokens=1), Workload(prompt_tokens=1)):
        p = steady(workload)
        busy = p.requests_per_s * p.prefill_s
        assert np.all((busy > 0) & (busy < 1))
        assert np.all(np.isfinite(p.ttft_s))


def test_more_at_a_time_is_more_in_all_and_slower_for_each() -> None:
    p = steady()
    for rising in (p.tokens_per_s, p.requests_per_s, p.tpot_s, p.ttft_s, p.concurrency):
        assert np.all(np.diff(rising) > 0)


@pytest.mark.parametrize("stages", [1.0, 4.0])
@pytest.mark.parametrize("replicas", [1.0, 2.0])
def test_littles_law(stages: float, replicas: float) -> None:
    p = steady(stages=stages, replicas=replicas)
    assert p.concurrency == pytest.approx(p.requests_per_s * (p.ttft_s + 200 * p.tpot_s))
    assert p.batch == pytest.approx(p.requests_per_s * 200 * p.tpot_s), "those past their first token"


# -------------------------------------------------------- stages and replicas


def test_stages_work_on_other_batches_meanwhile() -> None:
    one, four = steady(), steady(stages=4.0)
    # the same pass time, four micro-batches in flight, each stage busy with a quarter of a prompt
    assert four.batch == pytest.approx(4 * one.batch)
    assert four.tpot_s == pytest.approx(one.tpot_s)
    assert four.tokens_per_s == pytest.approx(4 * one.tokens_per_s)
    # prompts queue for a quarter of the time: the stages are as busy, the service is four times as short
    rho = one.requests_per_s * one.prefill_s
    wait = (0.5 + rho) * rho * one.prefill_s / (1 - rho**2)
    assert one.ttft_s - four.ttft_s == pytest.approx(0.75 * wait)


def test_replicas_multiply_throughput_alone() -> None:
    one, three = steady(), steady(replicas=3.0)
    for name in ("batch", "concurrency", "requests_per_s", "tokens_per_s"):
        assert getattr(three, name) == pytest.approx(3 * getattr(one, name)), name
    for name in ("ttft_s", "tpot_s", "decode_s", "prefill_s"):
        assert getattr(three, name) == pytest.approx(getattr(one, name)), name


def test_deployments_as_arrays_equal_one_by_one() -> None:
    stages, replicas = np.array([[1.0], [2.0], [4.0]]), np.array([[1.0], [3.0], [2.0]])
    speed = np.array([1.0, 2.0, 3.0])[:, None, None, None]
    surface = tabulated(lambda step: toy(step) * (1 / speed), BATCHES, 1000.0, WORKLOAD.mean_context)
    together = serve_steady(surface, WORKLOAD, stages, replicas, SERVICE)
    for i in range(3):
        factor = 1 / speed.flat[i]

        def slower(step: Step, factor: float = factor) -> Cost:
            return toy(step) * factor

        alone = steady(stages=stages.flat[i], replicas=replicas.flat[i], cost_of=slower)
        for name in ("ttft_s", "tpot_s", "tokens_per_s", "concurrency", "batch"):
            assert np.broadcast_to(getattr(together, name), (3, len(BATCHES)))[i] == pytest.approx(
                getattr(alone, name)
            )


# ------------------------------------------------------------- machine time


@pytest.mark.parametrize("stages", [1.0, 4.0])
def test_the_cost_of_a_token_is_one_over_the_throughput(stages: float) -> None:
    p = steady(stages=stages)
    assert p.cost.total_s == pytest.approx(1 / p.tokens_per_s)
    assert sum(p.cost.share(name) for name in p.cost.exposed) == pytest.approx(np.ones(len(BATCHES)))


def overlapping(step: Step) -> Cost:
    """A pass whose weights are read in the shadow of a prompt's products."""
    first, *rest = step.segments
    prompt = rest[0].batch * rest[0].q if rest else 0.0
    compute = TOKEN_S * prompt + SEQUENCE_S * first.batch
    exposed = np.maximum(BASE_S - compute, 0.0)
    return Cost({"memory": exposed, "compute": compute}, {"memory": BASE_S - exposed})


@pytest.mark.parametrize("output", [1, 10, 200])
def test_no_part_of_the_cost_is_negative(output: int) -> None:
    p = steady(replace(WORKLOAD, output_tokens=output), cost_of=overlapping)
    for part in p.cost.exposed.values():
        assert np.all(part >= 0)
    assert p.cost.total_s == pytest.approx(1 / p.tokens_per_s)


# ---------------------------------------------------------------- local user


def test_a_lone_user_waits_for_nobody() -> None:
    p = steady(replace(WORKLOAD, task="local"))
    t, s = BASE_S + SEQUENCE_S, 1000 * TOKEN_S
    assert p.tpot_s[0] == pytest.approx(t)
    assert p.ttft_s[0] == pytest.approx(REQUEST_S + t + s)
    assert p.concurrency[0] == pytest.approx(1)
    assert p.tokens_per_s[0] == pytest.approx(200 / (REQUEST_S + t + s + 200 * t))


def test_a_lone_user_cannot_fill_a_pipeline() -> None:
    workload = replace(WORKLOAD, task="local")
    one, four = steady(workload), steady(workload, stages=4.0)
    assert four.tokens_per_s == pytest.approx(one.tokens_per_s)
    assert four.batch[0] == 1
    assert in_flight(workload, 4.0) == 1
    assert in_flight(WORKLOAD, 4.0) == 4
    assert np.asarray(in_flight(workload, np.array([1.0, 4.0]))).tolist() == [1, 1]


# --------------------------------------------------------------------- small


def test_a_point_of_the_grid() -> None:
    both, two = steady(stages=np.array([[1.0], [2.0]])), steady(stages=2.0)
    at = both.at(1, 3)
    assert (float(at.batch), float(at.tpot_s)) == (two.batch[3], two.tpot_s[3])
    assert float(at.cost.total_s) == pytest.approx(float(np.asarray(two.cost.total_s)[3]))
    some = picked(both, np.array([[0, 3], [3, 5]]))
    assert some.batch.tolist() == [[both.batch[0, 0], both.batch[0, 3]], [both.batch[1, 3], both.batch[1, 5]]]


def test_a_chunk_is_the_prompt_or_the_budget() -> None:
    policies = replace(load_runtimes()["vllm"].policies, max_batched_tokens=2048)
    assert chunk_tokens(Workload(prompt_tokens=1000), policies) == 1000
    assert chunk_tokens(Workload(prompt_tokens=5000), policies) == 2048
