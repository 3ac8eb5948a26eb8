"""The inside of a plan adds up to the plan, and its load curve ends where the plan is full."""

from __future__ import annotations

import pytest

import chipwise as cw
from chipwise.api.requests.detail import LoadRequest, OperatorsRequest
from chipwise.api.requests.planning import EstimateRequest
from chipwise.predict.step import WAITS

DENSE = {"model": "meta-llama/Llama-3.1-8B", "chip": "h100-sxm5-80gb", "tp": 2, "concurrency": 32}
EXPERTS = {"model": "Qwen/Qwen3-30B-A3B", "chip": "mi300x", "tp": 2, "concurrency": 8}
ARRAY = {"model": "meta-llama/Llama-3.1-8B", "chip": "tpu-v6e", "tp": 4, "concurrency": 16}
CASES = pytest.mark.parametrize("given", [DENSE, EXPERTS, ARRAY])


@CASES
def test_operators_add_up_to_the_step(given: dict[str, object]) -> None:
    report = OperatorsRequest(**given).run()
    decode = [o for o in report.operators if o.phase == "decode"]
    # the plan's is interpolated between batches
    assert report.decode_s == pytest.approx(report.plan.decode_s, rel=0.02)
    assert sum(o.share for o in decode) == pytest.approx(1.0)
    for o in report.operators:
        assert sum(o.exposed_s.values()) == pytest.approx(o.seconds, rel=1e-6)
        assert o.exposed_s[o.bound] == max(o.exposed_s.values())


@CASES
def test_a_decode_pass_does_the_work_of_the_model(given: dict[str, object]) -> None:
    report = OperatorsRequest(**given).run()
    products = sum(o.flops for o in report.operators if o.phase == "decode" and o.kind in ("gemm", "experts"))
    # two FLOPs per active parameter and token, the lookup table aside, spread over the devices
    expected = 2.0 * report.model.active_params * report.decode_sequences / report.plan.layout.tp
    assert products == pytest.approx(expected, rel=0.2)


def test_more_load_gives_more_throughput_and_slower_answers() -> None:
    report = LoadRequest(**DENSE | {"concurrency": None}).run()
    first, last = report.points[0], report.points[-1]
    full = EstimateRequest(**DENSE | {"concurrency": None}).run().plans[0]
    assert first.concurrency == pytest.approx(1.0)
    assert 0.9 < first.batch < 1, "some of the time goes to its prompt"
    assert last.tpot_s == full.tpot_s
    assert last.tokens_per_s == full.tokens_per_s
    assert [p.concurrency for p in report.points] == sorted(p.concurrency for p in report.points)
    assert first.tpot_s.mid < last.tpot_s.mid
    assert first.tokens_per_s.mid < last.tokens_per_s.mid
    assert first.tokens_per_s_per_user == pytest.approx(1 / first.tpot_s.mid)


def test_targets_end_where_a_mean_exceeds_them() -> None:
    free = LoadRequest(**DENSE).run()
    middle = free.points[8]
    held = LoadRequest(**DENSE, tpot=f"{middle.tpot_s.mid * 1.0001}s").run()
    assert free.within is None
    assert held.within == middle.concurrency
    assert LoadRequest(**DENSE, tpot="1ns").run().within is None


def test_a_load_that_is_asked_for_ends_the_curve() -> None:
    report = LoadRequest(**DENSE).run()
    assert report.points[-1].concurrency == pytest.approx(32.0, rel=0.02)
    assert "as asked" in report.limit


def test_a_prompt_waits_for_kernels_that_its_host_starts() -> None:
    """SGLang starts kernels of short prompts for longer than a fast chip takes; the wait is a line of its own."""
    asked = {"runtime": "sglang", "in_": 200, "out": 100, "concurrency": 2}
    found = cw.operators("Qwen/Qwen3-8B", chip="mi300x", **asked)
    (wait,) = (o for o in found.operators if o.name == WAITS)
    assert wait.phase == "prefill"
    assert 0.3 * found.prefill_s < wait.seconds < found.prefill_s
