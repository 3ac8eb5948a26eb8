from __future__ import annotations

import json
from fnmatch import fnmatchcase

import pytest

import chipwise as cw
from chipwise.catalog import networks
from chipwise.catalog.media_runtime import MediaRuntime, get_media_runtime
from chipwise.catalog.software import all_software
from chipwise.errors import InfeasibleError, UsageError


def plan(**said: object):  # type: ignore[no-untyped-def]
    return cw.plan("resnet50", precision="int8-static", runtime="tensorrt", **said).plans[0]


def test_chips_that_one_has_are_all_used() -> None:
    one, eight = (plan(have=f"{n}xh100-sxm5-80gb", task="batch", level="tuned") for n in (1, 8))
    assert eight.replicas == 8 * one.replicas
    assert eight.samples_per_s.mid == pytest.approx(8 * one.samples_per_s.mid)
    assert eight.energy.joules_per_token.mid == pytest.approx(one.energy.joules_per_token.mid)


def test_chips_that_one_has_cost_nothing() -> None:
    found = plan(have="8xh100-sxm5-80gb", task="batch")
    assert (found.price, found.usd_per_1000) == (None, None)
    assert plan(chips="h100-sxm5-80gb", task="batch").usd_per_1000 is not None


@pytest.mark.parametrize("verb", ["plan", "train"])
@pytest.mark.parametrize("model", ["meta-llama/Llama-3.1-8B", "resnet50"])
@pytest.mark.parametrize(
    "money",
    [
        {"max_usd_per_h": 5.0},
        {"max_usd": 5.0},
        {"price": "own"},
        {"provider": "aws"},
        {"region": "us-east-1"},
        {"price_of": "h100=2"},
        {"price": "own", "owning": "years=3"},
    ],
)
def test_money_beside_chips_that_one_has_is_refused(verb: str, model: str, money: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=rf"^{next(iter(money))} (is about money|says nothing about resnet50)"):
        getattr(cw, verb)(model, have="8xh100", **money)


def test_a_limit_costs_throughput_and_one_at_a_time_is_soonest() -> None:
    have = "1xl4"
    free = plan(have=have, task="batch", level="tuned")
    tight, loose = (plan(have=have, e2e=e, percentile="p99", level="tuned") for e in ("5ms", "50ms"))
    assert tight.samples_per_s.mid < loose.samples_per_s.mid < free.samples_per_s.mid
    assert 2.0 * tight.latency_s.mid < 6e-3
    alone = plan(have=have, task="local", level="tuned")
    assert alone.batch == 1
    assert alone.latency_s.mid < tight.latency_s.mid


def test_tuned_software_is_faster_and_of_inference() -> None:
    stock, tuned = (plan(have="1xl4", task="batch", batch=64, level=level) for level in ("stock", "tuned"))
    assert tuned.samples_per_s.mid > stock.samples_per_s.mid
    with pytest.raises(UsageError, match="inference"):
        cw.estimate("resnet50", chip="l4", training=True, batch=8, level="tuned")


def test_a_rate_takes_the_fewest_of_the_chips_that_one_has() -> None:
    found = cw.plan("sdxl", have="8xh100-sxm5-80gb", rate="1500/h")
    one, most = found.plans[0], cw.plan("sdxl", have="8xh100-sxm5-80gb", task="batch").plans[0]
    assert 1 < one.chips < 8
    assert one.load <= 0.7
    assert found.owned
    assert one.price is None
    assert most.chips == 8
    with pytest.raises(
        InfeasibleError, match=r"20 images/s are out of reach within the limits: at most 0\.\d+ on h100-sxm5-80gb"
    ):
        cw.plan("sdxl", have="1xh100-sxm5-80gb", rate="20/s")


@pytest.mark.parametrize("runtime", [None, "eager"])
def test_chips_that_one_has_are_counted_as_chips_for_rent(runtime: str | None) -> None:
    said = {"rate": "1/s", "runtime": runtime, "evidence": "none"}
    rented = cw.plan("flux", chips="h100-sxm5-80gb", **said).plans[0]
    for have in ("8xh100-sxm5-80gb", "12xh100-sxm5-80gb", "4xh100-sxm5-80gb,6xh100-sxm5-80gb"):
        mine = cw.plan("flux", have=have, **said).plans[0]
        assert (mine.chips, mine.batch, mine.runtime) == (rented.chips, rented.batch, rented.runtime)


def test_plans_choose_among_all_software_that_runs_a_network() -> None:
    chips, said = "h100-sxm5-80gb,l4", {"rate": "20000/s", "e2e": "20ms", "evidence": "none"}
    best = cw.plan("resnet50", chips=chips, **said).plans[0]
    by = {r: cw.plan("resnet50", chips=chips, runtime=r, **said).plans[0] for r in ("compile", "cuda_graphs")}
    assert best.price.mid <= 1.1 * min(p.price.mid for p in by.values())
    served = cw.plan("bert-large", chips=chips, rate="1000/s", e2e="20ms", evidence="none").plans[0]
    assert get_media_runtime(served.runtime).server
    assert served.usual == served.runtime, "a server of requests that come at a rate is no surprise"
    # usual software takes the network as it is, and jax wants it written again
    assert cw.plan("wan2.1-t2v-14b", chips="l40s", evidence="none").plans[0].runtime != "jax"
    assert cw.plan("flux", chips="tpu-v5p", evidence="none").plans[0].runtime == "jax"
    with pytest.raises(UsageError, match="runs networks of diffusion"):
        cw.plan("bert-large", chips="l4", runtime="sglang-diffusion")


def test_software_with_pipelines_of_its_own_runs_those_alone() -> None:
    """LightX2V and SGLang Diffusion list their models: Stable Diffusion 1.5 is in neither list."""
    for runtime in ("lightx2v", "sglang-diffusion"):
        with pytest.raises(UsageError, match=r"has no pipeline of sd1.5; it has .*wan2.2"):
            cw.plan("sd1.5", chips="rtx-4090", runtime=runtime)
    found = cw.plan("sd1.5", chips="rtx-4090", evidence="none").plans
    assert not {p.runtime for p in found} & {"lightx2v", "sglang-diffusion"}
    assert cw.plan("wan2.1-t2v-14b", chips="h100-sxm5-80gb", runtime="lightx2v", evidence="none").plans


def test_pipelines_that_software_lists_are_in_the_table() -> None:
    listed = {one for r in all_software(MediaRuntime).values() for one in r.models}
    names = networks.entries()
    assert listed
    assert all(any(fnmatchcase(name, one) for name in names) for one in listed)


@pytest.mark.parametrize(
    ("said", "words", "not_said"),
    [
        ({"have": "2xrtx-4090", "rate": "100000/h"}, ["on rtx-4090", "at most", "rate "], ["e2e", "price"]),
        ({"have": "2xrtx-4090", "day": "10,20,30"}, ["works: have "], ["rate", "e2e"]),
        ({"have": "2xrtx-4090", "rate": "9/s", "e2e": "2min"}, ["rate 0.", "have "], ["day"]),
        ({"chips": "2xh100", "rate": "50/s"}, ["rate 0.", "chips "], ["max_usd_per_h", "e2e"]),
        ({"max_usd_per_h": 1.0, "rate": "50/s", "chips": "h100,l4"}, ["max_usd_per_h"], ["max_chips", "e2e"]),
        ({"chips": "h100", "resolution": "100000"}, ["has the memory", "a smaller resolution"], ["target"]),
    ],
)
def test_advice_is_of_what_was_said(said: dict[str, object], words: list[str], not_said: list[str]) -> None:
    with pytest.raises(InfeasibleError) as refused:
        cw.plan("sdxl", evidence="none", **said)
    text = f"{refused.value} {refused.value.hint}"
    assert [w for w in words if w not in text] == []
    assert [w for w in not_said if w in text] == []


def test_a_network_without_steps_is_not_told_to_take_fewer() -> None:
    with pytest.raises(InfeasibleError) as refused:
        cw.plan("bert-large", chips="l4", e2e="2ms", evidence="none")
    assert "steps" not in refused.value.hint


def test_a_fleet_that_nobody_rents_out_is_called_so() -> None:
    huge, usual = (cw.plan("sdxl", chips="h100", rate=r, evidence="none") for r in ("1000000/s", "10/s"))
    assert any(f"{huge.plans[0].chips:,} chips" in words for words in huge.assumptions)
    assert not any("largest clusters" in words for words in usual.assumptions)


def test_ties_are_of_about_as_many_chips() -> None:
    plans = cw.plan("sdxl", chips="h100,l4,mi300x,mi100,t4", rate="20/s", evidence="none").plans
    tied = [(p.chips, plans[rank - 1].chips) for p in plans for rank in p.ties]
    assert all(others <= 4 * chips for chips, others in tied)


def test_sizes_and_names_that_cannot_be_read_are_answered_with_some_that_can() -> None:
    with pytest.raises(UsageError) as refused:
        cw.plan("flux", resolution="abc")
    assert refused.value.hint.endswith("1024 or 832x480")
    with pytest.raises(UsageError, match="2 models, and a question is about one"):
        cw.compare("flux,sdxl", chips="h100,l4")


def test_the_fleet_of_a_plan_can_be_asked_about() -> None:
    from chipwise.api.requests.planning import PlanRequest

    question = PlanRequest(model="sdxl", chips="h100-sxm5-80gb", rate="2/s", e2e="1min", evidence="none")
    best = question.answer().plans[0]
    next_ = question.explained(best)
    assert (next_.chip, next_.rate) == (f"{best.chips}x{best.chip}", "2/s")
    found = next_.answer().plans[0]
    for name in ("chips", "replicas", "load", "wait_s", "price", "usd_per_1000", "latency_s"):
        assert getattr(found, name) == getattr(best, name), name
    free = cw.estimate("sdxl", chip="h100-sxm5-80gb", rate="2/s", runtime=best.runtime, evidence="none")
    assert free.plans[0].replicas > 1
    assert "It delivers 2 images/s" in str(free)
    with pytest.raises(InfeasibleError, match=r"sustain .* images/s, less than") as refused:
        cw.estimate("sdxl", chip="2xh100-sxm5-80gb", rate="20/s", evidence="none")
    assert "is enough" in refused.value.hint
    with pytest.raises(UsageError, match="rate is of many users"):
        cw.estimate("sdxl", chip="l4", rate="1/s", task="local")


def test_a_limit_holds_on_ones_own_chips_as_surely_as_asked() -> None:
    sure, even = (
        cw.plan("sdxl", have="8xh100-sxm5-80gb", e2e="20s", confidence=confidence).plans[0]
        for confidence in (None, "50%")
    )
    assert sure.chance >= 0.9 - 1e-6
    assert even.chance >= 0.499
    assert even.samples_per_s.mid >= sure.samples_per_s.mid


def test_chips_of_several_kinds_work_side_by_side() -> None:
    both = cw.plan("sdxl", have="2xh100-sxm5-80gb,4xl4", task="batch", samples="10k", deadline="24h")
    # the last round of one kind may be done a little before that of the other
    assert both.together.mid == pytest.approx(sum(p.samples_per_s.mid for p in both.plans), rel=0.01)
    assert "2 kinds side by side are done in" in str(both)
    assert cw.plan("sdxl", have="2xh100-sxm5-80gb", task="batch").together is None


def test_a_match_carries_its_question(capsys: pytest.CaptureFixture[str]) -> None:
    from chipwise.cli import main

    with pytest.raises(SystemExit):
        main(["evidence", "match", "resnet50", "--chip", "l4", "--format", "json"])
    assert json.loads(capsys.readouterr().out)["question"]["verb"] == "match"


@pytest.mark.parametrize("chip", ["mi250x", "tpu-v7x"])
def test_all_devices_of_a_chip_make_samples_whoever_has_it(chip: str) -> None:
    network = {"batch": 4, "evidence": "none"}
    rented = cw.estimate("resnet50", chip=chip, **network).plans[0]
    mine = cw.plan("resnet50", have=f"1x{chip}", task="batch", runtime=rented.runtime, **network).plans[0]
    alone = cw.estimate("resnet50", chip=chip, task="local", **network).plans[0]
    assert rented.samples_per_s.mid == pytest.approx(mine.samples_per_s.mid)
    assert rented.samples_per_s.mid == pytest.approx(2.0 * 4 / rented.latency_s.mid)
    assert alone.samples_per_s.mid == pytest.approx(4 / alone.latency_s.mid)
    if rented.energy is not None:
        assert rented.energy.joules_per_token.mid == pytest.approx(mine.energy.joules_per_token.mid)


def test_a_bill_counts_all_replicas_and_is_no_range_of_providers() -> None:
    found = cw.plan("sdxl", chips="h100-sxm5-80gb", rate="5/s")
    best = found.best
    assert best.chips == best.replicas > 1
    assert best.usd_per_1000.low == best.usd_per_1000.mid == pytest.approx(best.price.mid / 18.0)
    full = cw.estimate("sdxl", chip="8xh100-sxm5-80gb").best
    speed = full.samples_per_s
    assert full.usd_per_1000.high / full.usd_per_1000.mid == pytest.approx(speed.mid / speed.low)
    assert full.price.high > full.price.mid


def test_a_spare_replica_is_paid_and_carries_nothing() -> None:
    plain, spare = (
        cw.plan("sdxl", chips="h100-sxm5-80gb", rate="2/s", spare=n, batch=1, runtime="compile").plans[0]
        for n in (0, 1)
    )
    assert (spare.replicas, spare.spare, spare.chips) == (plain.replicas + 1, 1, plain.chips + 1)
    assert (spare.load, spare.wait_s) == (plain.load, plain.wait_s)
    assert spare.samples_per_s.mid == pytest.approx(plain.samples_per_s.mid)
    assert spare.price.mid >= plain.price.mid


def test_a_day_is_carried_at_its_peak_and_costs_less_where_replicas_follow_it() -> None:
    found = cw.plan("sdxl", chips="h100-sxm5-80gb", day="0.5,0.5,1,4")
    best, peak = found.plans[0], cw.plan("sdxl", chips="h100-sxm5-80gb", rate="4/s").plans[0]
    assert best.replicas == peak.replicas
    assert best.day.requests_per_day == pytest.approx(1.5 * 86_400)
    assert best.day.saturated_hours == 0.0
    assert best.day.scaled_usd_per_day < best.day.usd_per_day
    assert best.day.usd_per_day == pytest.approx(24.0 * best.price.mid)
    assert "day of #1" in str(found)
    for said, words in (({"rate": "1/s"}, "already a load"), ({"task": "batch"}, "already a load")):
        with pytest.raises(UsageError, match=words):
            cw.plan("sdxl", day="1,2", **said)


def test_replicas_are_loaded_as_much_as_asked() -> None:
    half = cw.plan("sdxl", chips="h100-sxm5-80gb", rate="5/s", utilisation="40%").plans[0]
    assert half.load <= 0.4 + 1e-9
    assert half.replicas > cw.plan("sdxl", chips="h100-sxm5-80gb", rate="5/s").plans[0].replicas


def clips(**said: object):  # type: ignore[no-untyped-def]
    return cw.plan("wan2.1-t2v-1.3b", resolution="832x480", frames=33, steps=20, **said)


def test_a_rate_with_a_limit_gets_the_replicas_that_keep_it_with_the_wait() -> None:
    free, tight = (clips(rate="200/h", chips="l40s", **more).plans[0] for more in ({}, {"e2e": "3min"}))
    assert tight.replicas >= free.replicas
    assert tight.wait_s <= free.wait_s < free.wait_p99_s
    assert tight.chance >= 0.9
    assert free.chance is None
    assert free.load <= 0.7
    late = clips(rate="200/h", chips="l40s", e2e="3min", percentile="p99").plans[0]
    assert late.replicas >= tight.replicas
    assert free.usd_per_1000.mid == pytest.approx(1000.0 * free.price.mid / 200.0)


def test_a_job_is_done_by_its_deadline_and_within_its_budget() -> None:
    job = {"task": "batch", "samples": 5000, "chips": "l40s"}
    slow, soon = (clips(**job, **more).plans[0] for more in ({}, {"deadline": "6h"}))
    assert slow.replicas == 1
    assert slow.chance is None
    assert soon.job.hours.mid < 6.0
    assert soon.chance >= 0.9
    assert (soon.replicas - 1) * 6.0 < soon.replicas * soon.job.hours.high
    assert soon.chips == soon.replicas
    assert soon.job.usd.mid == pytest.approx(soon.price.mid * soon.job.hours.mid)
    with pytest.raises(InfeasibleError, match="in total"):
        clips(**job, deadline="6h", max_usd=soon.job.usd.mid / 10.0)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"samples": 10}, "needs task batch"),
        ({"samples": 10, "task": "batch", "rate": "1/s"}, "rate is of single requests"),
        ({"deadline": "2h", "task": "batch"}, "samples=10k"),
        ({"tokens": 10, "task": "batch"}, "is samples"),
    ],
)
def test_what_is_no_job_is_refused(said: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError) as refused:
        clips(**said)
    assert words in f"{refused.value} {refused.value.hint}"


def test_chips_that_one_has_keep_parts_on_the_host_where_nothing_else_fits() -> None:
    one = cw.plan("flux", have="1xrtx-4090").plans[0]
    assert one.offload == "model"
    assert one.verdict != "no"
    with pytest.raises(InfeasibleError, match="a request takes"):
        cw.plan("flux", have="1xrtx-4090", e2e="5s")


def test_a_network_that_a_benchmark_measures_is_shown_with_its_nearest_result() -> None:
    own = cw.estimate("sdxl", chip="h200-sxm-141gb")
    assert "stable-diffusion-xl" in own.nearest
    assert "this network on this chip" in own.nearest
    assert cw.estimate("sdxl", chip="h200-sxm-141gb", evidence="none").nearest == ""
    assert cw.estimate("flux", chip="h200-sxm-141gb").nearest == ""
    assert own.best.latency_s == cw.estimate("sdxl", chip="h200-sxm-141gb", evidence="none").best.latency_s


def test_every_built_in_network_is_of_a_family() -> None:
    from chipwise.api.media_asked import networks

    assert set(networks("generator of shapes")) >= {"triposr", "trellis-image-large"}
    assert len(networks("")) == len(networks())


def test_a_clip_is_not_cut_in_pieces() -> None:
    job = {"task": "batch", "chips": "l40s"}
    one = clips(samples=1, **job).plans[0]
    took_s = 3600.0 * one.job.hours.mid
    assert took_s == pytest.approx(one.latency_s.mid)
    soon = clips(samples=1, deadline="24h", **job).plans[0]
    assert soon.replicas == 1
    with pytest.raises(InfeasibleError, match=r"no chip keeps the deadline of .* is done in") as error:
        clips(samples=1, deadline="2s", **job)
    assert "deadline" in error.value.hint


def test_a_job_takes_whole_rounds_of_what_its_replicas_make() -> None:
    plan = clips(task="batch", samples=10, chips="l40s", spread="ulysses=1", batch=1, deadline="20min").plans[0]
    rounds = -(-10 // plan.replicas)
    assert 3600.0 * plan.job.hours.mid == pytest.approx(rounds * plan.latency_s.mid)
    assert plan.chance >= 0.9
    assert plan.samples_per_s.mid == pytest.approx(10 / (rounds * plan.latency_s.mid))
    assert 3600.0 * plan.job.hours.mid * plan.replicas >= 10 * plan.latency_s.mid * (1 - 1e-9)


def test_no_batch_holds_more_samples_than_a_job_has() -> None:
    for batch in (None, 64):
        plan = cw.plan("sdxl", task="batch", samples=3, chips="h100-sxm5-80gb", batch=batch).plans[0]
        assert plan.batch <= 3
    mine = cw.plan("sdxl", task="batch", samples=3, have="8xh100-sxm5-80gb").plans[0]
    assert mine.batch * mine.replicas <= 3 + mine.batch


def test_more_samples_never_take_less_time() -> None:
    took = [clips(task="batch", samples=n, chips="l40s").plans[0].job.hours.mid for n in (1, 2, 5, 50)]
    assert took == sorted(took)


def test_one_clip_of_two_kinds_is_done_when_the_sooner_one_is() -> None:
    report = clips(task="batch", samples=1, have="1xl40s,1xa100-sxm4-80gb")
    soonest = min(p.latency_s.mid for p in report.plans)
    assert 1.0 / report.together.mid == pytest.approx(soonest)
    assert "1 clip in" in str(report)


def test_a_request_is_told_with_its_wait() -> None:
    report = clips(rate="200/h", chips="l40s")
    p = report.plans[0]
    assert p.answered_s == pytest.approx(p.latency_s.mid + p.wait_s)
    assert p.answered_p99_s == pytest.approx(p.latency_s.mid + p.wait_p99_s)
    said = " ".join(str(report).split())
    assert "with the mean wait" in said
    assert "99 of 100 take at most" in said
    assert "time, no wait" in said or "batch takes, no wait" in said


def test_a_wait_that_nobody_notices_is_no_number() -> None:
    rare = clips(rate="0.001/h", chips="l40s")
    p = rare.plans[0]
    assert p.wait_p99_s >= p.wait_s
    assert "with hardly any wait" in " ".join(str(rare).split())


def test_an_engine_of_8_bits_computes_convolutions_in_8_bits_and_eager_does_not() -> None:
    """TensorRT finds scales beforehand for all layers; operator by operator only products of matrices are narrow."""

    def latency(runtime: str, precision: str) -> float:
        one = cw.estimate("yolo11m", chip="jetson-orin-nano-super", runtime=runtime, precision=precision)
        return float(one.plans[0].latency_s.mid)

    assert latency("tensorrt", "int8") == latency("tensorrt", "int8-static") < 0.7 * latency("tensorrt", "fp16")
    assert latency("eager", "int8") > 0.9 * latency("eager", "fp16")
