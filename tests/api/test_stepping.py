"""The step as a value: it says what the product prices, at once, one by one or as arrays."""

from __future__ import annotations

import time

import numpy as np
import pytest

import chipwise as cw
from chipwise.api.estimating import asked
from chipwise.api.placing import Given, Terms
from chipwise.api.stepping import PassTimes, pass_times
from chipwise.errors import UsageError
from chipwise.parallel.layout import Layout
from chipwise.parallel.shard import shard
from chipwise.predict.passes import BATCHES
from chipwise.predict.step import step_cost
from chipwise.search.space import Group
from chipwise.workload.step import decode, prefill
from chipwise.workload.workload import Workload

MODEL = "meta-llama/Llama-3.1-8B"


@pytest.fixture(scope="module", params=["vllm", "sglang"])
def priced(request: pytest.FixtureRequest) -> tuple[PassTimes, object]:
    one = asked(MODEL, Workload(), Given("h100", Layout(tp=2.0)), Terms(runtime=request.param))
    d, context = one.deployment, one.context
    costs, overheads = context.rates([d])
    group = Group.single(d, one.layout)
    device, at = group.device(trailing=1), group.which.reshape(-1, 1)
    sharded = shard(context.found.graph, group.layouts(trailing=1))

    def exact(step: object) -> np.ndarray:
        return np.asarray(step_cost(sharded, step, device, costs.take(at), overheads.take(at)).total_s)[0]  # type: ignore[arg-type]

    return pass_times(one), exact


def test_passes_are_those_that_plans_are_priced_with(priced: tuple[PassTimes, object]) -> None:
    step, exact = priced
    rng = np.random.default_rng(1)
    batch = rng.choice(BATCHES[BATCHES <= 512], 300)
    context = np.exp(rng.uniform(np.log(50.0), np.log(30_000.0), 300))
    tokens = rng.integers(16, 8192, 300).astype(float)
    known = np.where(rng.random(300) < 0.5, 0.0, rng.integers(0, 30_000, 300))
    pairs = tokens * (known + tokens / 2.0)

    def off(said: object, step_: object) -> tuple[float, float]:
        error = np.abs(np.asarray(said) / exact(step_) - 1.0)  # type: ignore[operator]
        return float(np.median(error)), float(np.max(error))

    plain = decode(batch[None], context[None])
    prompt = prefill(np.ones((1, 1)), tokens[None], known[None])
    # an engine may split a batch, so that the largest difference is where splitting is priced below the pass
    assert off(step.seconds(batch, context), plain) < (0.01, 0.16)
    assert off(step.seconds(0.0 * batch, 0.0, tokens, pairs), prompt) < (0.01, 0.08)
    if not step.mid.alone:
        assert off(step.seconds(batch, context, tokens, pairs), plain + prompt) < (0.01, 0.12)
    several = np.full((1, 300), 7.0)
    short = step.seconds(0.0 * batch, 0.0, tokens, tokens * tokens / 14.0)
    assert off(short, prefill(several, tokens[None] / 7.0)) < (0.01, 0.08)


def test_one_by_one_and_as_arrays_it_says_the_same(priced: tuple[PassTimes, object]) -> None:
    step, _ = priced
    rng = np.random.default_rng(2)
    rows = [
        (int(b), float(c), int(q), float(q * (h + q / 2)))
        for b, c, q, h in zip(*(rng.integers(0, most, 200) for most in (600, 9000, 5000, 9000)), strict=True)
    ]
    alone = [float(step.seconds(*row)) for row in rows]
    together = step.seconds(*(np.array(column, dtype=float) for column in zip(*rows, strict=True)))
    assert alone == pytest.approx(list(np.asarray(together)), rel=1e-12)


def test_more_work_takes_no_less(priced: tuple[PassTimes, object]) -> None:
    step, _ = priced
    grid = np.arange(1.0, 700.0)
    for seconds in (
        step.seconds(grid, 500.0),
        step.seconds(64.0, 10.0 * grid),
        step.seconds(64.0, 500.0, 10.0 * grid),
        step.seconds(8.0, 500.0, 512.0, 512.0 * (256.0 + 20.0 * grid)),
    ):
        assert (np.diff(seconds) >= -1e-12 * np.asarray(seconds)[1:]).all(), "but for rounding"


def test_no_work_takes_no_time_and_less_than_none_is_refused(priced: tuple[PassTimes, object]) -> None:
    step, _ = priced
    assert step.seconds(0) == 0.0
    assert list(np.asarray(step.seconds(np.array([0.0, 1.0]), 100.0)) > 0) == [False, True]
    for bad in ((-1, 0.0), (1, -5.0), (1, 5.0, -1.0), (1, 5.0, 10.0, -3.0)):
        with pytest.raises(ValueError, match="not below 0"):
            step.seconds(*bad)
        with pytest.raises(ValueError, match="not below 0"):
            step.seconds(*(np.array([float(x)]) for x in bad))


def test_prompts_have_passes_of_their_own_where_the_runtime_says_so() -> None:
    own = cw.step(MODEL, chip="h100", runtime="sglang")
    both = own.seconds(32, 1000.0, 512)
    assert both == pytest.approx(own.seconds(32, 1000.0) + own.seconds(0, 0.0, 512))
    mixed = cw.step(MODEL, chip="h100", runtime="vllm")
    assert mixed.seconds(32, 1000.0, 512) < mixed.seconds(32, 1000.0) + mixed.seconds(0, 0.0, 512)


def test_it_has_the_interval_of_the_time_per_token() -> None:
    step = cw.step(MODEL, chip="h100")
    plan = cw.estimate(MODEL, chip="h100", concurrency=8, in_=1, out=400).best
    middle = step.seconds(8, 200.0)
    assert middle == pytest.approx(plan.tpot_s.mid, rel=0.01)
    assert step.low.seconds(8, 200.0) / middle == pytest.approx(plan.tpot_s.low / plan.tpot_s.mid, rel=1e-6)
    assert step.high.seconds(8, 200.0) / middle == pytest.approx(plan.tpot_s.high / plan.tpot_s.mid, rel=1e-6)


def test_a_million_passes_take_less_than_some_seconds() -> None:
    step = cw.step(MODEL, chip="h100")
    batch = np.random.default_rng(3).integers(1, 512, 1_000_000).astype(float)
    start = time.process_time()
    step.seconds(batch, 7.0 * batch)
    assert time.process_time() - start < 3.0


@pytest.mark.parametrize("name", ["rate", "concurrency", "replicas", "harness", "disaggregate", "speculate"])
def test_what_changes_no_pass_is_refused(name: str) -> None:
    given = {"replicas": 2, "harness": "vllm-bench", "disaggregate": True, "speculate": "accept=0.7"}
    with pytest.raises(UsageError) as caught:
        cw.step(MODEL, chip="h100", **{name: given.get(name, 3)})
    assert caught.value.field == name


def test_a_network_without_tokens_has_no_such_pass() -> None:
    with pytest.raises(UsageError, match="generates no tokens"):
        cw.step("resnet50", chip="h100")
