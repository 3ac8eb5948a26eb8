"""Models that generate no tokens: by name, by counts, or as any pipeline; options that say nothing are refused."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

import chipwise as cw
from chipwise.api.media import answer
from chipwise.api.media_asked import Sampling
from chipwise.api.placing import Terms
from chipwise.api.requests.command import command_line
from chipwise.api.requests.planning import EstimateRequest, FitRequest, PlanRequest
from chipwise.catalog.chips import load_chips
from chipwise.cli import main
from chipwise.errors import ChipwiseError, InfeasibleError, UnknownNameError, UsageError
from chipwise.parallel.layout import Spread
from chipwise.report.media import MediaPlan, MediaReport, media_view
from chipwise.search.deployments import few_of
from chipwise.search.space import FEW, FEW_WORDS
from chipwise.tracing.sources import is_pipeline
from chipwise.workload.op import attention, convolution, gemm, pointwise
from chipwise.workload.program import Program, Stage

H100 = "h100-sxm5-80gb"
FLUX = "FLUX.1-dev"


def by_hand(width: float = 3072.0, steps: float = 20.0) -> Program:
    """A denoiser and a decoder, as a tracer would write them."""
    ops = (
        (40.0, gemm(4096, 7 * width, width)),
        (40.0, attention(1, 4096, 4096, width / 128, width / 128, 128, causal=False)),
        (40.0, gemm(4096, width, 5 * width)),
        (80.0, pointwise(4096 * width, 2.0)),
    )
    count = int(40 * 12 * width**2)
    decoder = ((10.0, convolution(1, 256, 256, 512.0 * 512, 512.0 * 512, 9)),)
    return Program(
        "traced",
        (Stage("denoiser", ops, steps, count, 2.0 * count, 5e8), Stage("vae", decoder, 1, 6_000_000, 12e6, 2e9)),
    )


def test_any_pipeline_is_answered_on_any_chip() -> None:
    report = answer(by_hand(), Terms(), chips=[H100, "mi300x", "tpu-v5e", "trainium1", "xeon-8480plus"])
    times = {p.chip: p.latency_s.mid for p in report.plans}
    assert times["xeon-8480plus"] > times["tpu-v5e"] > times[H100] > 0
    for p in report.plans:
        assert p.latency_s.low <= p.latency_s.mid <= p.latency_s.high
        assert sum(p.shares.values()) == pytest.approx(1.0)
        assert sum(p.stages.values()) == pytest.approx(p.latency_s.mid, rel=1e-6)
        assert sum(p.memory.values()) == pytest.approx(p.memory_bytes)
        assert p.samples_per_s.mid == pytest.approx(1.0 / p.latency_s.mid)


def test_more_work_never_takes_less() -> None:
    def time(**sizes: float) -> float:
        return answer(by_hand(**sizes), chips=[H100]).plans[0].latency_s.mid

    assert time(steps=40.0) > time(steps=20.0)
    assert time(width=4096.0) > time()


def test_a_step_is_a_call_of_the_denoiser() -> None:
    (one,) = answer(by_hand(steps=20), chips=[H100]).plans
    (two,) = answer(by_hand(steps=40), chips=[H100]).plans
    assert one.step_s.mid == pytest.approx(two.step_s.mid)
    assert two.latency_s.mid - one.latency_s.mid == pytest.approx(20 * one.step_s.mid, rel=1e-6)
    assert one.it_per_s.mid * one.step_s.mid == pytest.approx(1.0)


def test_a_guided_step_is_both_passes_also_where_one_follows_the_other() -> None:
    def plan(steps: int, guidance: float) -> MediaPlan:
        return cw.estimate("wan2.1-t2v-1.3b", chip=H100, steps=steps, guidance=guidance, frames=17).plans[0]

    guided, alone, longer = plan(20, 5.0), plan(20, 1.0), plan(30, 5.0)
    assert guided.step_s.mid == pytest.approx(2 * alone.step_s.mid)
    assert longer.latency_s.mid - guided.latency_s.mid == pytest.approx(10 * guided.step_s.mid, rel=1e-6)


def test_devices_that_share_a_request_make_it_sooner() -> None:
    alone = answer(by_hand(), chips=[H100]).plans[0]
    shared = answer(by_hand(), chips=[H100], asked=Sampling(spread=Spread(ulysses=4))).plans[0]
    assert shared.chips == 4
    assert alone.latency_s.mid / 4 < shared.latency_s.mid < alone.latency_s.mid
    with pytest.raises(UsageError, match="joined to no other"):
        answer(by_hand(), chips=["m2-ultra"], asked=Sampling(spread=Spread(ulysses=2)))


def test_names_of_pipelines_and_of_language_models() -> None:
    assert is_pipeline(FLUX)
    assert is_pipeline("macs:params=25.6M,gmacs=4.1")
    assert not is_pipeline("Qwen/Qwen3-8B")


def test_estimate_by_name_and_by_command_line_agree(capsys: pytest.CaptureFixture[str]) -> None:
    question = EstimateRequest(model=FLUX, chip=H100, steps=28, resolution="1024", runtime="compile", evidence="none")
    plan = question.run().plans[0]
    line = command_line("estimate", question).split()[1:]
    with pytest.raises(SystemExit) as done:
        main([*line, "--format", "json"])
    assert not done.value.code
    told = json.loads(capsys.readouterr().out)["plans"][0]
    assert told["latency_s"]["mid"] == pytest.approx(plan.latency_s.mid, rel=1e-12)
    assert told["memory_bytes"] == pytest.approx(plan.memory_bytes)
    # published: 4.2 to 4.3 s compiled, 36 GB
    assert 2.5 < plan.latency_s.mid < 7.0
    assert 30e9 < plan.memory_bytes < 45e9


def test_a_network_known_by_its_counts() -> None:
    report = cw.estimate("macs:params=25.6M,gmacs=4.1,macts=11.1M", chip=H100, batch=64)
    assert isinstance(report, MediaReport)
    assert report.parameters == pytest.approx(25.6e6, rel=0.01)
    assert report.flops == pytest.approx(64 * 2 * 4.1e9, rel=0.05)
    with pytest.raises(UsageError, match="cannot read"):
        cw.estimate("macs:params=25.6M", chip=H100)


def test_training_steps() -> None:
    step = cw.estimate("resnet50", chip="a100-sxm4-80gb", batch=256, precision="amp-fp16", training=True)
    forward = cw.estimate("resnet50", chip="a100-sxm4-80gb", batch=256, precision="amp-fp16")
    ratio = step.plans[0].latency_s.mid / forward.plans[0].latency_s.mid
    assert 2.0 < ratio < 5.0
    assert step.plans[0].memory_bytes > forward.plans[0].memory_bytes


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"speculate": "accept=0.7"}, "--speculate"),
        ({"tp": 2}, "--tp"),
        ({"in_": "500"}, "--in"),
        ({"kv": "fp8"}, "--kv"),
    ],
)
def test_options_of_language_models_are_refused(given: dict[str, object], word: str) -> None:
    with pytest.raises(UsageError, match="generates no tokens") as refused:
        EstimateRequest(model=FLUX, chip=H100, **given).run()  # type: ignore[arg-type]
    assert word in str(refused.value)


@pytest.mark.parametrize("given", [{"steps": 4}, {"resolution": "512"}, {"training": True}])
def test_options_of_pipelines_are_refused_for_language_models(given: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=r"is a language model|of models without tokens"):
        EstimateRequest(model="Qwen/Qwen3-8B", chip=H100, **given).run()  # type: ignore[arg-type]


def test_what_cannot_be_asked_is_said() -> None:
    ask = EstimateRequest(model=FLUX, chip=H100)
    with pytest.raises(UsageError, match="devices do not share by 'wings'"):
        replace(ask, spread="wings=2")
    with pytest.raises(UsageError, match="resolution"):
        replace(ask, resolution="1x2x3")
    with pytest.raises(UsageError, match="does not run on"):
        replace(ask, runtime="coreml").run()
    with pytest.raises(ChipwiseError, match="precision"):
        replace(ask, precision="fp5").run()
    with pytest.raises(UsageError, match="frames"):
        replace(ask, frames=9).run()


def test_plan_keeps_the_latency_at_the_lowest_price() -> None:
    report = PlanRequest(model=FLUX, chips=f"{H100},l4,l40s", e2e="15s").run()
    assert isinstance(report, MediaReport)
    assert all(p.latency_s.high <= 15.0 for p in report.plans)
    prices = [p.usd_per_1000.mid for p in report.plans if p.usd_per_1000]
    assert prices == sorted(prices)
    with pytest.raises(InfeasibleError, match=r"the nearest is \d+x l4"):
        PlanRequest(model=FLUX, chips="l4", e2e="10ms").run()


def test_a_target_that_is_missed_is_told_how_surely_and_what_holds() -> None:
    (alone,) = cw.estimate("sdxl", chip="l4", batch=1, runtime="eager").plans
    asked = PlanRequest(
        model="sdxl", chips="l4", batch=1, max_chips=1, runtime="eager", e2e=f"{0.8 * alone.latency_s.mid:.1f}s"
    )
    with pytest.raises(InfeasibleError, match=r"takes .* \[.*\] s: within .* with \d+% probability, 90% asked") as no:
        asked.run()
    longer, fewer = re.search(r"--e2e ([^,\s]+)", str(no.value)), re.search(r"--steps (\d+)", str(no.value))
    assert longer
    assert fewer
    assert replace(asked, e2e=longer[1]).run().kept
    assert replace(asked, steps=int(fewer[1])).run().kept


def test_a_target_that_holds_in_the_middle_is_answered_by_what_comes_nearest() -> None:
    (alone,) = cw.estimate("sdxl", chip="l4", batch=1, runtime="eager").plans
    target = (alone.latency_s.mid + alone.latency_s.high) / 2
    asked = PlanRequest(model="sdxl", chips="l4,t4", batch=1, max_chips=1, runtime="eager", e2e=f"{target:.1f}s")
    report = asked.run()
    assert not report.kept
    assert report.plans[0].chip == "l4"
    assert 0.499 <= report.plans[0].chance < 0.9
    assert "No plan meets" in str(report)
    assert "with 90% probability; nearest: 1x l4" in " ".join(str(report).split())
    sure = replace(asked, confidence="50%").run()
    assert sure.kept
    assert sure.plans[0].latency_s == report.plans[0].latency_s


def test_plan_carries_a_rate() -> None:
    few, many = (PlanRequest(model=FLUX, chips=H100, rate=rate).run().plans[0] for rate in ("0.1/s", "5/s"))
    assert many.replicas > few.replicas
    assert many.samples_per_s.mid >= 5.0
    assert many.price is not None
    assert many.price.mid > 5 * few.price.mid  # type: ignore[union-attr]


def test_plan_keeps_the_limits_of_chips_and_dollars() -> None:
    asked = {"model": "sdxl", "rate": "1/s", "chips": "rtx-4090,h100"}
    free = PlanRequest(**asked).run().plans  # type: ignore[arg-type]
    few, cheap = min(p.chips for p in free), min(p.price.mid for p in free if p.price)
    assert max(p.chips for p in free) > few
    assert {p.chips for p in PlanRequest(**asked, max_chips=few).run().plans} == {few}  # type: ignore[arg-type]
    within = PlanRequest(**asked, max_usd_per_h=1.01 * cheap).run().plans  # type: ignore[arg-type]
    assert [p.price.mid for p in within if p.price] == [cheap]
    with pytest.raises(
        InfeasibleError, match=r"within the limits: .*; the cheapest plan beyond them is \d+x .*works: .*-chips \d+"
    ):
        PlanRequest(**asked, max_chips=1).run()  # type: ignore[arg-type]
    fed = PlanRequest(**asked, max_watts="6kW").run().plans  # type: ignore[arg-type]
    assert all(p.chips <= few or p.chip == "rtx-4090" for p in fed)
    with pytest.raises(InfeasibleError, match="feed not one of"):
        PlanRequest(**asked, max_watts="100W").run()  # type: ignore[arg-type]


def test_of_cards_made_for_desks_a_plan_takes_few_unless_they_are_named() -> None:
    asked = {"model": "sdxl", "rate": "20/s"}
    market = PlanRequest(**asked).run()  # type: ignore[arg-type]
    (named,) = PlanRequest(**asked, chips="rtx-3090").run().plans  # type: ignore[arg-type]
    assert isinstance(market, MediaReport)
    assert named.chips > FEW
    few = few_of((load_chips()[p.chip] for p in market.plans), lambda _: None)
    assert all(p.chips <= FEW for p in market.plans if p.chip in few)
    assert {r.chip: r.reason for r in market.refused}["rtx-3090"] == "BUDGET"
    assert FEW_WORDS in market.assumptions


def test_a_plan_that_is_dearer_says_what_that_costs_and_why() -> None:
    report = PlanRequest(model="resnet50", task="batch", chips=H100, evidence="none").run()
    assert isinstance(report, MediaReport)
    first, cheapest = report.plans[0], report.cheapest
    assert cheapest is not None
    assert cheapest.usd_per_1000.mid < first.usd_per_1000.mid <= 1.05 * cheapest.usd_per_1000.mid * (1 + 1e-9)  # type: ignore[union-attr]
    said = " ".join(str(report).split())
    assert (first.runtime, first.usual, cheapest.runtime) == ("compile", "eager", "jax")
    assert f"It costs {report.extra:.1%} more than the cheapest, 1x {H100} with JAX (jit)" in said
    assert "with PyTorch (torch.compile) (" in said


def test_refused_chips_are_summed_up_by_reason_those_of_datacentres_first() -> None:
    report = PlanRequest(model=FLUX, e2e="10s", chips=f"rtx-3060,rtx-3090,l4,{H100},b200,graviton4,groq-lpu1").run()
    assert isinstance(report, MediaReport)
    text = " ".join(str(report).split())
    assert "graviton4: graviton4" not in text
    slow = next(line for line in media_view(report)[0].foot if line.startswith("miss the latency targets: "))
    named = slow.partition(": ")[2].split(", ")
    assert named[-2:] == ["rtx-3060-12gb", "rtx-3090"]
    assert "l4" in named[:-2]
    assert "no software is known that runs pipelines (chipwise chips list): graviton4, groq-lpu1" in text


def test_weights_that_are_narrowed_wait_on_the_host_where_parts_do() -> None:
    held = [
        EstimateRequest(model=FLUX, chip="h200", precision="fp8", offload=way).run().plans[0].memory_bytes  # type: ignore[arg-type]
        for way in ("none", "model", "sequential")
    ]
    assert held[0] > 2.0 * held[1] > 2.0 * held[2]


def test_what_does_not_fit_is_told_the_offloading_that_does() -> None:
    for chip, way, fits in (("rtx-4090", "none", "model"), ("rtx-4070", "model", "sequential")):
        with pytest.raises(InfeasibleError, match="short per device") as refused:
            EstimateRequest(model=FLUX, chip=chip, offload=way).run()
        assert f"--offload {fits} fits" in str(refused.value)
        report = EstimateRequest(model=FLUX, chip=chip, offload=fits).run()
        assert isinstance(report, MediaReport)
        assert report.plans[0].verdict != "no"


def test_a_training_step_that_does_not_fit_is_told_a_spread_that_does() -> None:
    with pytest.raises(InfeasibleError, match="short per device") as refused:
        EstimateRequest(model=FLUX, chip="8xh100", training=True, batch=8).run()
    assert "--settings recompute=full --spread ulysses=2,fsdp=1" in str(refused.value)


def test_fit_offloads_before_it_says_no() -> None:
    report = FitRequest(model=FLUX, chips=f"{H100},rtx-4090,rtx-3060").run()
    assert isinstance(report, MediaReport)
    by_chip = {p.chip: p for p in report.plans}
    assert by_chip[H100].offload == "none"
    assert by_chip["rtx-4090"].offload in ("model", "sequential")
    assert by_chip["rtx-4090"].verdict != "no"


def test_the_table_opens_with_a_sentence() -> None:
    text = str(cw.estimate(FLUX, chip=H100))
    assert text.startswith("flux-dev on 1x h100-sxm5-80gb")
    assert "denoiser" in text
    assert "memory of one device" in text


def test_parts_that_the_host_computes_take_no_memory() -> None:
    whole, without = (cw.estimate(FLUX, chip=H100, aside=aside).plans[0] for aside in (None, "text_encoder"))
    assert whole.memory["weights"] - without.memory["weights"] > 9e9  # T5-XXL in 16 bits
    assert without.latency_s.mid < whole.latency_s.mid


def test_a_shared_card_is_slower_and_smaller() -> None:
    asked = {"model": "sdxl", "chip": "rtx-4090"}
    alone = EstimateRequest(**asked).run()
    shared = EstimateRequest(**asked, share="gpu=50%,memory=14GB").run()
    assert shared.plans[0].capacity_bytes <= 14e9 < alone.plans[0].capacity_bytes
    assert 1.2 < shared.plans[0].latency_s.mid / alone.plans[0].latency_s.mid < 2.0
    said = next(line for line in shared.assumptions if "the chip is shared" in line)
    assert "a renderer's frame takes 2 times as long: 60 a second if it takes 8.33 ms alone" in said
    tight = FitRequest(model="sdxl", chips="rtx-4090", share="memory=10GB").run()
    assert tight.plans[0].offload != "none"


def test_a_part_that_a_model_does_not_have_is_not_put_aside() -> None:
    with pytest.raises(UnknownNameError, match="text_encoder:clip-l"):
        EstimateRequest(model="sdxl", chip="rtx-4090", aside="prompt").run()


def test_what_waits_on_the_host_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    for model, said in (("wan2.2", True), ("sdxl", False)):
        with pytest.raises(SystemExit) as end:
            main(["fit", model, "--chips", "l40s"])
        assert not end.value.code
        text = capsys.readouterr().out
        assert bool(re.search(r"offload (model|sequential), ", text)) is said
        assert ("offload" in text) is said


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"batch": 0}, r"--batch 0 is too few .1 to 10,000,000 samples"),
        ({"steps": 10**9}, r"--steps 1000000000 is too many .1 to 100,000 steps"),
    ],
)
def test_counts_that_are_none_are_refused_with_what_is_one(given: dict[str, int], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        EstimateRequest(model="sdxl", chip=H100, **given).run()


def test_round_numbers_stand_in_commands_as_people_write_them() -> None:
    line = command_line("estimate", EstimateRequest(model="sdxl", chip=H100, guidance=7.0))
    assert line.endswith("--guidance 7")
