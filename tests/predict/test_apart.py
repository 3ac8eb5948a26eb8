"""Pools for plans: waits against brute force, and limits that anyone can check."""

from __future__ import annotations

import numpy as np
import pytest
from tests.predict.arrivals import waits

from chipwise.catalog.runtime import load_runtimes
from chipwise.cost.cost import Cost
from chipwise.predict.apart import prompt_alone, serve_apart
from chipwise.predict.inference import Prediction, serve_steady, served_surface
from chipwise.predict.queues import shared_wait_s
from chipwise.predict.serving import Service
from chipwise.predict.surface import batch_grid
from chipwise.workload.step import Step
from chipwise.workload.workload import Workload

WORKLOAD = Workload(prompt_tokens=1000, output_tokens=200)
POLICIES = load_runtimes()["vllm"].policies
GRID = batch_grid(128)


def toy(step: Step) -> Cost:
    """10 ms a pass, 20 us a sequence, 50 us a prompt token."""
    prompt = sum(
        (s.batch * s.q for s in step.segments if np.ndim(s.q) or s.q > 1), 0.0 * GRID[:1, None, None]
    )
    b = sum((s.batch for s in step.segments if not np.ndim(s.q) and s.q == 1), 0.0)
    return Cost({"memory": 10e-3 + 20e-6 * b, "compute": 50e-6 * prompt})


def pools(prefill: float = 2.0, decode: float = 4.0, transfer_s: float = 0.0) -> Prediction:
    surface = served_surface(toy, GRID, WORKLOAD, POLICIES)
    prompt = prompt_alone(toy, WORKLOAD, POLICIES)
    return serve_apart(surface, prompt, transfer_s, WORKLOAD, prefill, decode, Service(0.0, 0.0))


@pytest.mark.parametrize(("servers", "u"), [(1, 0.5), (1, 0.8), (4, 0.7), (8, 0.9)])
def test_waits_for_several_servers(servers: int, u: float) -> None:
    rng = np.random.default_rng(3)
    size = 60_000
    service = rng.exponential(1.0, size)
    found = float(np.mean(waits(np.cumsum(rng.exponential(1.0 / (u * servers), size)), service, servers)))
    assert float(shared_wait_s(1.0, servers, u, 2.0)) == pytest.approx(found, rel=0.15)


def test_a_prompt_alone() -> None:
    assert float(np.squeeze(prompt_alone(toy, WORKLOAD, POLICIES).total_s)) == pytest.approx(10e-3 + 50e-3)


def test_decoding_is_not_disturbed_and_figures_add_up() -> None:
    p = pools()
    assert p.tpot_s == pytest.approx(10e-3 + 20e-6 * GRID)
    assert p.requests_per_s == pytest.approx(4 * GRID / (200 * p.tpot_s))
    light = p.utilisation < 0.95
    assert p.utilisation == pytest.approx(p.requests_per_s * 60e-3 / 2)
    assert p.ttft_s[light] == pytest.approx((60e-3 + p.wait_s + 0.5 * p.tpot_s)[light])
    assert p.concurrency[light] == pytest.approx((p.requests_per_s * (p.ttft_s + 200 * p.tpot_s))[light])


def test_prompts_that_do_not_keep_up_have_no_first_token() -> None:
    p = pools(prefill=1.0)
    over = p.utilisation >= 1
    assert over.any()
    assert np.all(np.isinf(p.ttft_s[over]))
    assert np.all(p.budget_share[over] >= 1)


def test_a_transfer_is_waited_for() -> None:
    light = pools().utilisation < 0.9
    assert pools(transfer_s=0.3).ttft_s[light] - pools().ttft_s[light] == pytest.approx(0.3)


def test_one_pool_does_the_same_work_in_less_room() -> None:
    """The same passes mixed in one pool: decoding is disturbed, so that TPOT is longer at the same batch."""
    surface = served_surface(toy, GRID, WORKLOAD, POLICIES)
    together = serve_steady(surface, WORKLOAD, 1.0, 4.0, Service(0.0, 0.0), POLICIES)
    assert np.all(together.tpot_s > pools().tpot_s)
