"""What lengths, prefix caches, speculation and policies do to passes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chipwise.catalog.runtime import Policies, load_runtimes
from chipwise.cost.cost import Cost
from chipwise.predict.inference import Prediction, serve_steady, served_surface
from chipwise.predict.serving import Service
from chipwise.predict.speculative import Speculation
from chipwise.units import Array
from chipwise.workload.lengths import Lengths, PrefixCache
from chipwise.workload.step import Step
from chipwise.workload.workload import Workload

WORKLOAD = Workload(prompt_tokens=1000, output_tokens=200)
POLICIES = replace(load_runtimes()["vllm"].policies, max_batched_tokens=4000, prefill="mixed")
GRID = np.array([1.0, 8.0, 64.0])


def pairs(step: Step) -> Cost:
    """10 ms a pass, 10 us a token, 1 ns a pair of query and key."""
    tokens = step.tokens + 0.0 * GRID[:, None, None]
    seen = sum((s.batch * (s.q * s.kv - s.q * (s.q - 1.0) / 2.0) for s in step.segments), 0.0)
    return Cost({"memory": 10e-3, "compute": 10e-6 * tokens, "on-chip": 1e-9 * seen})


def column(which: int, policies: Policies = POLICIES, **kind: object) -> Array:
    surface = served_surface(pairs, GRID, WORKLOAD, policies, **kind)  # type: ignore[arg-type]
    return surface.total_s()[:, which, 0]


def added(policies: Policies = POLICIES, **kind: object) -> Array:
    return column(1, policies, **kind) - column(0, policies, **kind)


def steady(policies: Policies = POLICIES, workload: Workload = WORKLOAD, **kind: object) -> Prediction:
    surface = served_surface(pairs, GRID, workload, policies, **kind)  # type: ignore[arg-type]
    lengths = {k: v for k, v in kind.items() if k in ("lengths", "prefix")}
    return serve_steady(surface, workload, 1.0, 1.0, Service(0.0, 0.0), policies, **lengths)  # type: ignore[arg-type]


def test_a_prompt_attends_to_half_of_its_square() -> None:
    assert added() == pytest.approx(10e-6 * 1000 + 1e-9 * 1000 * 1001 / 2)


def test_spread_prompts_attend_as_their_second_moment_says() -> None:
    lengths = Lengths(1000.0, 200.0, prompt_cv=1.0)
    assert added(lengths=lengths) == pytest.approx(10e-6 * 1000 + 1e-9 * 2 * 1000**2 / 2, rel=1e-3)


def test_spread_outputs_hold_more_while_they_decode() -> None:
    lengths = Lengths(1000.0, 200.0, output_cv=1.0)
    assert column(0, lengths=lengths) - column(0) == pytest.approx(1e-9 * GRID * 100)


def test_cached_tokens_are_attended_to_but_not_worked_off() -> None:
    hit = added(prefix=PrefixCache(0.75))
    assert hit == pytest.approx(10e-6 * 250 + 1e-9 * (250 * 750 + 250 * 251 / 2))
    assert column(0, prefix=PrefixCache(0.75)) == pytest.approx(column(0))
    p, plain = steady(prefix=PrefixCache(0.75)), steady()
    assert np.all(p.ttft_s < plain.ttft_s)
    assert np.all(p.requests_per_s > plain.requests_per_s)
    assert p.prefill_s == pytest.approx(hit)


def test_speculation_shares_a_pass_between_its_tokens() -> None:
    certain = Speculation(draft_tokens=3, acceptance=1.0)
    b = GRID
    verify = 10e-3 + 10e-6 * 4 * b + 1e-9 * b * (4 * 1104 - 6)
    assert column(0, speculation=certain) == pytest.approx(verify / 4)
    # the prompt costs what it does without
    assert added(speculation=certain) == pytest.approx(added())
    drafted = column(0, speculation=certain, draft_of=lambda step: pairs(step) * 0.1)
    assert drafted - verify / 4 == pytest.approx(0.75 * 0.1 * column(0))
    hopeless = column(0, speculation=Speculation(3, 0.0))
    assert np.all(hopeless > column(0))


def test_prompts_in_passes_of_their_own() -> None:
    alone = replace(POLICIES, prefill="alone")
    assert added(alone) == pytest.approx(10e-3 + added())
    p, mixed = steady(alone), steady()
    assert np.all(p.tpot_s > mixed.tpot_s)
    assert p.own_s == pytest.approx(p.prefill_s)


def test_the_budget_of_a_mean_pass() -> None:
    # 64 sequences make 64 tokens and, at five prompt tokens for one of output, 320 of prompts
    assert steady().budget_share == pytest.approx(GRID * 6 / 4000)
    assert steady(prefix=PrefixCache(0.8)).budget_share == pytest.approx(GRID * 2 / 4000)
    assert steady(replace(POLICIES, prefill="alone")).budget_share == pytest.approx(GRID / 4000)
    long = replace(WORKLOAD, prompt_tokens=40_000.0, output_tokens=10.0)
    assert np.all(steady(workload=long).budget_share == pytest.approx(GRID * 4001 / 4000))


def test_prompts_longer_than_the_budget_queue_for_it() -> None:
    short = replace(POLICIES, max_batched_tokens=500)
    waits = steady(short).wait_s - steady(replace(POLICIES, max_batched_tokens=10**9)).wait_s
    assert np.all(np.diff(waits) > 0)


def test_deployments_side_by_side() -> None:
    speed = np.array([1.0, 2.0])[:, None, None, None]
    both = served_surface(lambda s: pairs(s) * (1 / speed), GRID, WORKLOAD, POLICIES).total_s()
    assert both.shape == (2, 3, 2, 1)
    assert both[1, :, 0, 0] == pytest.approx(column(0) / 2)
    assert both[0, :, 1, 0] == pytest.approx(column(1))
