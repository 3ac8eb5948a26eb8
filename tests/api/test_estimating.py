"""One deployment as people describe it: replicas by another name, lengths beyond the model's."""

from __future__ import annotations

import pytest

import chipwise
from chipwise.catalog.snapshot import Snapshot, use
from chipwise.errors import InfeasibleError, UsageError
from chipwise.web.views.plan import badges


def test_attention_replicas_of_a_dense_model_are_replicas() -> None:
    asked = {"model": "meta-llama/Llama-3.1-8B", "chip": "h100-sxm5-80gb", "in_": 128, "out": 128}
    two = chipwise.estimate(dp=2, concurrency=16, **asked).plans[0]
    one = chipwise.estimate(concurrency=8, **asked).plans[0]
    assert two.chips == 2 * one.chips
    assert two.tokens_per_s.mid == pytest.approx(2 * one.tokens_per_s.mid, rel=0.01)


def test_a_text_longer_than_the_model_is_answered_with_a_note_where_positions_are_computed() -> None:
    report = chipwise.estimate("meta-llama/Llama-2-7b-hf", chip="h100-sxm5-80gb", in_=6000, out=1000, concurrency=1)
    assert any("positions have to be scaled" in note for note in report.assumptions)
    with pytest.raises(UsageError, match=r"more than .* can read"):
        chipwise.estimate("facebook/opt-1.3b", chip="h100-sxm5-80gb", in_=6000, out=1000, concurrency=1)


def test_a_text_too_long_for_a_model_names_one_of_its_dimensions_that_reads_it() -> None:
    longer = "Qwen/Qwen3-235B-A22B-Instruct-2507"
    with pytest.raises(UsageError, match=r"more than .* can read: 40,960") as refused:
        chipwise.plan("Qwen/Qwen3-235B-A22B", in_=50_000, chips="b200")
    assert longer in refused.value.instead
    assert chipwise.plan(longer, in_=50_000, chips="b200").plans
    with pytest.raises(UsageError, match="prompt and output together: a smaller"):
        chipwise.plan("Qwen/Qwen3-8B", in_=50_000, chips="b200")


def test_a_slower_host_starts_prompts_later_and_bounds_what_decodes() -> None:
    """Kernels of prompts and the loop of the server are the host's work; reading weights is not."""
    asked = {"model": "Qwen/Qwen3-8B", "chip": "h100", "runtime": "sglang", "software": "2025-12"}
    load = {"concurrency": 4, "in_": 200, "out": 200}
    slow, usual = (chipwise.estimate(**asked, **load, **host).plans[0] for host in ({"host": "1.9GHz"}, {}))
    assert slow.ttft_s.mid > 1.5 * usual.ttft_s.mid
    assert usual.tpot_s.mid < slow.tpot_s.mid < 1.5 * usual.tpot_s.mid


def test_requests_of_one_length_that_start_together_are_inside_the_interval() -> None:
    """Benchmarks send them so; the engine of events, which counts every one, has its mean between both."""
    asked = {"model": "Qwen/Qwen3-8B", "chip": "mi300x", "runtime": "vllm", "in_": 1024, "out": 256}
    alike, differ, alone = (
        chipwise.estimate(**asked, **load)
        for load in ({"concurrency": 32}, {"concurrency": 32, "cv": 0.5}, {"concurrency": 1})
    )
    seen = chipwise.simulate(**asked, concurrency=32, requests=96)
    first = alike.plans[0].ttft_s
    assert first.mid < seen.times[0].mean.mid < first.high
    assert first.high > 5 * differ.plans[0].ttft_s.high
    told = [any("stay together" in a for a in r.assumptions) for r in (alike, differ, alone)]
    assert told == [True, False, False]


@pytest.mark.parametrize(
    ("runtime", "clients", "length", "off"),
    [("vllm", 16, 1000, 0.1), ("vllm", 64, 1000, 0.22), ("sglang", 64, 500, 0.1)],
)
def test_a_benchmark_client_sees_first_tokens_as_the_engine_of_events_counts_them(
    runtime: str, clients: int, length: int, off: float
) -> None:
    """Equal requests that start at once come back at once, in every round of a run; of 32 to 64 clients of software
    that mixes prompts the groups that come back in turn are counted too small."""
    asked = {"model": "meta-llama/Llama-3.1-8B", "chip": "h100-sxm5-80gb", "in_": length, "out": 200}
    asked |= {"runtime": runtime, "concurrency": clients}
    seen = chipwise.estimate(**asked, harness="vllm-bench", evidence="none").plans[0].ttft_s
    counted = chipwise.simulate(**asked, requests=20 * clients).times[0].mean.mid
    assert seen.mid == pytest.approx(counted, rel=off)
    # other clients drift apart
    for other in ({}, {"harness": "vllm-bench", "cv": 0.5}):
        assert chipwise.estimate(**asked, **other, evidence="none").plans[0].ttft_s.mid < 0.7 * counted


@pytest.mark.parametrize(
    ("runtime", "chip", "clients", "length", "output"),
    [("vllm", "h100-sxm5-80gb", 128, 1000, 200), ("vllm", "tpu-v6e", 16, 1000, 1000), ("sglang", "h100", 64, 500, 200)],
)
def test_the_median_of_a_benchmark_client_is_that_of_the_engine_of_events(
    runtime: str, chip: str, clients: int, length: int, output: int
) -> None:
    """The first round, in which all prompts wait for each other, moves means and no medians."""
    asked = {"model": "meta-llama/Llama-3.1-8B", "chip": chip, "in_": length, "out": output}
    asked |= {"runtime": runtime, "concurrency": clients}
    median, mean = (
        chipwise.estimate(**asked, harness=client, evidence="none").plans[0].ttft_s.mid
        for client in ("vllm-bench-median", "vllm-bench")
    )
    assert median == pytest.approx(chipwise.simulate(**asked, requests=20 * clients).times[0].p50.mid, rel=0.06)
    assert median <= mean


def test_a_chip_of_several_devices_is_taken_whole() -> None:
    asked = {"model": "Qwen/Qwen3-8B", "chip": "inferentia2", "concurrency": 4}
    plain, named = chipwise.estimate(**asked), chipwise.estimate(tp=2, **asked)
    assert plain.plans == named.plans
    assert any("software sees 2 devices in one inferentia2" in a for a in plain.assumptions)
    assert chipwise.estimate(**{**asked, "chip": "2xinferentia2"}).plans[0].replicas == 2


@pytest.mark.parametrize("chip", ["h100", "m4-max", "tpu-v6e"])
def test_an_answer_does_not_depend_on_what_was_asked_before_it(chip: str) -> None:
    """Engines are kept for questions that differ in their load alone."""
    asked = {"chip": chip, "precision": "q4_k_m" if chip == "m4-max" else None, "in_": 500, "out": 100}
    with use(Snapshot()):
        fresh = chipwise.estimate("llama-3.1-8b", concurrency=4, **asked)
    with use(Snapshot()):
        for load in (
            {"concurrency": 1},
            {"rate": "0.1/s"},
            {"concurrency": 4, "replicas": 2},
            {"concurrency": 4, "out": 50},
        ):
            chipwise.estimate("llama-3.1-8b", **{**asked, **load})
        again = chipwise.estimate("llama-3.1-8b", concurrency=4, **asked)
    assert again == fresh


def test_a_load_that_was_asked_has_no_interval_and_is_not_the_largest() -> None:
    """One rule for the record, for what is printed and for the page: only what could be carried is a result."""
    asked = {"model": "Qwen/Qwen3-32B", "chip": "h100-sxm5-80gb", "tp": 2}
    report = chipwise.explain(**asked, rate=2)
    one = report.plans[0]
    assert one.tokens_per_s.low == one.tokens_per_s.mid == one.tokens_per_s.high == pytest.approx(600)
    assert str(one.tokens_per_s) == "600 tokens/s"
    assert str(one).count("as asked") == str(report).count("as asked") == 2
    assert one.capacity.low < one.capacity.mid == one.largest_requests_per_s < one.capacity.high
    assert not any("loaded" in words for words, _ in badges(report))
    with pytest.raises(InfeasibleError, match=f"at most {one.largest_requests_per_s:.3g} requests/s"):
        chipwise.explain(**asked, rate=50)
    assert chipwise.estimate(**asked, replicas=2, rate=2).best.largest_requests_per_s == pytest.approx(
        2 * one.largest_requests_per_s, rel=0.01
    )
    full = chipwise.explain(**asked, concurrency=8).plans[0]
    assert full.tokens_per_s.low < full.tokens_per_s.high
    assert full.capacity is None


def test_a_plan_for_a_rate_says_as_asked_too_and_keeps_what_it_could_carry() -> None:
    report = chipwise.plan("Qwen/Qwen3-32B", rate=2, chips="h100-sxm5-80gb")
    first = report.best
    assert first.tokens_per_s.low == first.tokens_per_s.high
    assert str(first).count("as asked") == 2
    assert f"{first.load:.0%} loaded" in [words for words, _ in badges(report)]
    assert first.capacity.low < first.largest_requests_per_s < first.capacity.high
    assert first.usd_per_million_out.low < first.usd_per_million_out.high


def test_a_network_that_is_a_little_short_says_so_in_two_sentences() -> None:
    said = " ".join(chipwise.estimate("flux-dev", chip="rtx-5090").verdict())
    assert "GB short; --offload model fits. The estimate of its memory may be off" in said
