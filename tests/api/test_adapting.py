"""The step as other simulators ask for it: what their contracts say, as their sources state them, and no more."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import chipwise as cw
from chipwise.api.stepping import PassTimes
from chipwise.errors import ChipwiseError, UnknownNameError, UsageError


@dataclass
class ScheduleRequest:
    extend_length: int = 0
    past_kv_length: int = 0


@dataclass
class ScheduleBatch:
    reqs: list[Any] = field(default_factory=list)
    forward_mode: str | None = None


def batch(*requests: tuple[int, int], mode: str | None = None) -> ScheduleBatch:
    return ScheduleBatch([ScheduleRequest(*r) for r in requests], mode)


@pytest.fixture(scope="module")
def step() -> PassTimes:
    return cw.step("meta-llama/Llama-3.1-8B", chip="h100")


@pytest.mark.parametrize(
    ("asked", "work"),
    [
        (batch(mode="IDLE"), (0,)),
        (batch(), (0,)),
        (batch((1, 99), (1, 200), mode="DECODE"), (2, 149.5)),
        (batch((1, 99), (1, 200)), (2, 149.5)),
        (batch((512, 0), mode="EXTEND"), (0, 0, 512)),
        (batch((512, 1024), (256, 0)), (0, 0, 768, 512 * (1024 + 256) + 256 * 128)),
        (batch((1, 100), (8, 0), mode="MIXED"), (1, 100, 8)),
        # a prompt of one token, and the last one of a prompt whose start was cached
        (batch((1, 0)), (0, 0, 1)),
        (batch((1, 700), mode="EXTEND"), (0, 0, 1, 700.5)),
        (SimpleNamespace(reqs=[], forward_mode=SimpleNamespace(name="IDLE")), (0,)),
    ],
)
def test_a_batch_is_the_pass_that_its_requests_make(step: PassTimes, asked: Any, work: Any) -> None:
    said = step.predict_infer_time(asked)
    assert type(said) is float
    assert said == pytest.approx(step.seconds(*work), rel=1e-12)


def test_many_batches_are_those_one_by_one(step: PassTimes) -> None:
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 9, 300)
    extend = np.where(rng.random(counts.sum()) < 0.7, 1, rng.integers(0, 3000, counts.sum()))
    past = rng.integers(0, 5000, counts.sum()) * (rng.random(counts.sum()) < 0.8)
    rows = np.split(np.stack([extend, past], axis=1), np.cumsum(counts)[:-1])
    alone = [step.predict_infer_time(batch(*map(tuple, requests.tolist()))) for requests in rows]
    assert step.predict_infer_times(counts, extend, past) == pytest.approx(alone, rel=1e-9)
    assert len(step.predict_infer_times(np.array([], int), np.array([]), np.array([]))) == 0


PROMPTS = {"num_prefill_requests": 4, "sum_prefill_tokens": 2048, "sum_prefill_kv_tokens": 1000}
DECODES = {"num_decode_requests": 10, "sum_decode_kv_tokens": 15_000}


def fpm(*parts: dict[str, Any], **top: Any) -> dict[str, Any]:
    return {"version": 1, "scheduled_requests": {k: v for part in parts for k, v in part.items()}} | top


@pytest.mark.parametrize(
    ("asked", "work"),
    [
        ({}, (0,)),
        ([fpm()], (0,)),
        # a scheduled prompt of which nothing is computed
        (fpm({"num_prefill_requests": 1}), (0,)),
        (fpm(DECODES), (10, 1500)),
        (fpm(PROMPTS), (0, 0, 2048, 2048 * (1000 + 1024) / 4)),
        (fpm(PROMPTS, DECODES), (10, 1500, 2048, 2048 * (1000 + 1024) / 4)),
        # what moves no estimate
        (fpm(DECODES, {"var_decode_kv_tokens": 9.0}, wall_time=3.0, queued_requests={"any": 1}), (10, 1500)),
        (fpm(DECODES, {"sum_decode_kv_tokens": 15_000.0}), (10, 1500)),
        # requests one by one, where they are said
        (
            fpm(
                {"num_prefill_requests": 2, "sum_prefill_tokens": 108, "num_decode_requests": 1},
                {"sum_decode_kv_tokens": 50, "extend_lengths": [8, 1, 100], "past_kv_lengths": [0, 50, 7]},
            ),
            (1, 50, 108, 32 + 100 * 57),
        ),
        # of ranks the slowest counts
        ([fpm(DECODES, dp_rank=0), fpm(PROMPTS, dp_rank=1)], (0, 0, 2048, 2048 * (1000 + 1024) / 4)),
    ],
)
def test_metrics_are_the_pass_that_they_count(step: PassTimes, asked: Any, work: Any) -> None:
    assert step.estimate_forward_pass_time_ms(asked) == pytest.approx(1e3 * step.seconds(*work), rel=1e-12)


def test_counts_may_be_arrays(step: PassTimes) -> None:
    rng = np.random.default_rng(2)
    n = rng.integers(0, 4, (2, 100))
    columns = {
        "num_prefill_requests": n[0],
        "sum_prefill_tokens": n[0] * 300,
        "sum_prefill_kv_tokens": n[0] * 70,
        "num_decode_requests": n[1],
        "sum_decode_kv_tokens": n[1] * 900,
    }
    alone = [step.estimate_forward_pass_time_ms(fpm({k: int(v[i]) for k, v in columns.items()})) for i in range(100)]
    assert step.estimate_forward_pass_time_ms(fpm(columns)) == pytest.approx(alone, rel=1e-9)


OLDER = make_dataclass("OLDER", [("input_length", int, 1), ("past_kv_length", int, 5)])
WIDER = make_dataclass("WIDER", [("extend_length", int, 1), ("past_kv_length", int, 5), ("lora_id", int, 3)])


@pytest.mark.parametrize(
    ("ask", "names"),
    [
        (lambda s: s.predict_infer_time(batch((1, 5), mode="TARGET_VERIFY")), "forward_mode 'TARGET_VERIFY'"),
        (lambda s: s.predict_infer_time(ScheduleBatch([OLDER()])), "extend_length"),
        (lambda s: s.predict_infer_time(ScheduleBatch([WIDER()])), "field of a request 'lora_id'"),
        (lambda s: s.predict_infer_time(SimpleNamespace(reqs=[], mode=3)), "field of a batch 'mode'"),
        (lambda s: s.predict_infer_time([[1, 5]]), "reqs"),
        (lambda s: s.predict_infer_time(batch((1, 5), (-4, 5))), "not below 0"),
        (lambda s: s.predict_infer_time(batch((1, 5), (1, None))), "not all numbers"),
        (lambda s: s.predict_infer_times([2], [1], [5]), "2 requests"),
        (lambda s: s.predict_infer_times([1], [1], [-5]), "not below 0"),
        (lambda s: s.estimate_forward_pass_time_ms(fpm(speed=3)), "field of forward-pass metrics 'speed'"),
        (
            lambda s: s.estimate_forward_pass_time_ms(fpm({"num_decodes": 3})),
            "field of scheduled_requests 'num_decodes'",
        ),
        (lambda s: s.estimate_forward_pass_time_ms(fpm(version=2)), "version 2"),
        (lambda s: s.estimate_forward_pass_time_ms(fpm({"sum_prefill_tokens": 3})), "tokens of no request"),
        (lambda s: s.estimate_forward_pass_time_ms(fpm({"sum_decode_kv_tokens": 3.0})), "tokens of no"),
        (lambda s: s.estimate_forward_pass_time_ms(fpm({"num_decode_requests": -3})), "not below 0"),
        (lambda s: s.estimate_forward_pass_time_ms(fpm({"num_decode_requests": "x"})), "num_decode_requests"),
        (
            lambda s: s.estimate_forward_pass_time_ms(fpm(DECODES, {"extend_lengths": [1]})),
            "1 extend_lengths and 0 past",
        ),
        (lambda s: s.estimate_forward_pass_time_ms({"scheduled_requests": None}), "scheduled_requests: NoneType"),
        (lambda s: s.estimate_forward_pass_time_ms([]), "no metrics"),
        (lambda s: s.estimate_forward_pass_time_ms(["{}"]), "not a dictionary"),
    ],
)
def test_what_no_contract_says_is_refused_by_name(step: PassTimes, ask: Callable[[PassTimes], Any], names: str) -> None:
    with pytest.raises(ChipwiseError, match=names) as caught:
        ask(step)
    assert isinstance(caught.value, UnknownNameError | UsageError)
    assert caught.value.hint


class KernelLookup:
    """BLIS's `kernel-lookup` model with its factors of attention, products and experts at 1 and all else at 0."""

    def __init__(self, profile: dict[str, Any]) -> None:
        self.profile = profile
        assert profile["tp"] > 0
        assert profile["num_layers"] > 0
        for name in ("gemm", "allreduce"):
            assert len(profile[name]["tokens"]) == len(profile[name]["latency_us"]) > 0
        axes = {"context_attention": ("batch_size", "isl"), "generation_attention": ("tokens", "context")}
        for name, (first, second) in axes.items():
            table = profile[name]
            assert {len(row) for row in table["latency_us"]} == {len(table[first])}
            assert len(table["latency_us"]) == len(table[second]) > 0
            assert table[first] == sorted(table[first])
            assert table[second] == sorted(table[second])

    def step_time_us(self, decode: int, context: float, prompts: int, length: float) -> float:
        p = self.profile
        total = self._one(p["gemm"]["tokens"], p["gemm"]["latency_us"], decode + prompts * length)
        if prompts:
            total += self._two(p["context_attention"], "batch_size", "isl", prompts, length)
        if decode:
            total += self._two(p["generation_attention"], "tokens", "context", decode, context)
        return p["num_layers"] * total

    def _two(self, table: dict[str, Any], first: str, second: str, x: float, y: float) -> float:
        return self._one(table[second], [self._one(table[first], r, x) for r in table["latency_us"]], y)

    @staticmethod
    def _one(knots: list[float], values: list[float], x: float) -> float:
        if x <= knots[0] or x >= knots[-1]:
            return values[0] if x <= knots[0] else values[-1]
        i = bisect_left(knots, x)
        share = (x - knots[i - 1]) / (knots[i] - knots[i - 1])
        return max(values[i - 1] + share * (values[i] - values[i - 1]), 0.0)


def test_a_saved_step_gives_the_same_passes_to_those_who_load_it(step: PassTimes, tmp_path: Path) -> None:
    file = tmp_path / "step.yaml"
    step.save(file)
    profile = json.loads(file.read_text("utf-8"))
    assert profile["gpu"] == "h100-sxm5-80gb"
    assert profile["backend"] == "vllm"
    model = KernelLookup(profile)
    rng = np.random.default_rng(3)

    def off(decoding: bool, prompts: int) -> tuple[float, float]:
        errors = []
        for _ in range(60):
            b = int(rng.integers(1, 512)) if decoding else 0
            context, length = np.exp(rng.uniform(4, 10)), int(np.exp(rng.uniform(2.5, 8.5)))
            q = prompts * length
            exact = 1e6 * step.seconds(b, context, q, q * length / 2)
            errors.append(abs(model.step_time_us(b, context, prompts, length) / exact - 1))
        return float(np.median(errors)), max(errors)

    assert off(True, 0) < (1e-4, 1e-3)
    assert off(False, 1) < (1e-4, 1e-3)
    assert off(False, 5) < (2e-3, 0.02)
    assert off(True, 1) < (0.01, 0.05)
