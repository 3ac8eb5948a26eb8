"""One choice for networks: chips for rent as chips one has, an option left out as its best value, and never dearer when
less is asked but by what `preferences` allow."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import chipwise as cw
from chipwise.api.requests.planning import PlanRequest
from chipwise.catalog.media_runtime import get_media_runtime
from chipwise.catalog.preferences import preferences
from chipwise.errors import ChipwiseError, InfeasibleError
from chipwise.report.media import MediaPlan, MediaReport
from chipwise.search.space import By

H100 = "h100-sxm5-80gb"
NETWORKS = ("resnet50", "mobilenet_v2", "efficientnet_b0", "whisper-large-v3", "yolov8n", "unet3d", "dlrm-v2")
ALIKE = 1e-9  # of a cost
SATURATED = 0.02  # of a cost: what batches beyond those that are tried may still save


def figures(plan: MediaPlan) -> tuple[object, ...]:
    """What a plan does, without its bill."""
    says = (plan.chips, plan.replicas, plan.batch, plan.runtime, plan.spread, plan.offload, plan.verdict)
    return (*says, *(f"{x:.9g}" for x in (plan.samples_per_s.mid, plan.latency_s.mid, plan.memory_bytes)))


@pytest.mark.parametrize(
    "more", [{"task": "batch"}, {}, {"e2e": "2s"}, {"task": "batch", "samples": "100k"}, {"task": "local"}]
)
@pytest.mark.parametrize("model", NETWORKS)
def test_a_chip_for_rent_does_what_ones_own_does(model: str, more: dict[str, Any]) -> None:
    rented = cw.plan(model, chips=f"1x{H100}", evidence="none", **more)
    mine = cw.plan(model, have=f"1x{H100}", evidence="none", **more)
    assert figures(rented.plans[0]) == figures(mine.plans[0])
    assert rented.plans[0].chance == mine.plans[0].chance


@pytest.mark.parametrize("model", NETWORKS)
def test_a_batch_and_a_rate_too(model: str) -> None:
    said = {"evidence": "none", "task": "batch"}
    rented, mine = cw.plan(model, chips=H100, **said), cw.plan(model, have=f"1x{H100}", **said)
    assert figures(rented.plans[0]) == figures(mine.plans[0])
    rated = {"rate": "10/s", "evidence": "none"}
    fleet, own = cw.plan(model, chips=H100, **rated), cw.plan(model, have=f"64x{H100}", **rated)
    assert fleet.plans[0].chips == own.plans[0].chips


def test_tables_that_are_too_large_wait_on_the_host_in_part() -> None:
    report = cw.plan("dlrm-v2", have=f"1x{H100}", task="batch", evidence="none")
    best = report.plans[0]
    assert report.kept
    assert (best.verdict, best.offload) == ("tight", "none")
    assert 0.0 < best.host_bytes < best.memory["weights"]
    assert "does not fit" not in str(report)
    assert "on the host" in str(report)


def test_no_batch_that_is_asked_for_is_cheaper_than_none() -> None:
    said = {"rate": "100000/s", "e2e": "1s", "chips": H100, "evidence": "none"}
    free = cw.plan("resnet50", **said).plans[0]
    for batch in (64, 256, 512, 1024):
        assert free.price.mid <= cw.plan("resnet50", batch=batch, **said).plans[0].price.mid


def test_software_that_is_half_as_dear_is_taken() -> None:
    said = {"rate": "100/h", "e2e": "5min", "resolution": "832x480", "frames": 81, "evidence": "none"}
    asked = cw.plan("wan2.2", chips=H100, runtime="sglang-diffusion", **said).plans[0]
    free = cw.plan("wan2.2", chips=H100, **said)
    market = cw.plan("wan2.2", **said)
    assert free.plans[0].price.mid <= asked.price.mid
    assert market.plans[0].price.mid <= asked.price.mid
    first = market.plans[0]
    assert (first.runtime, first.usual) == ("compile", "eager")
    assert "with PyTorch (torch.compile) (" in " ".join(str(market).split())


DRAWN: tuple[tuple[str, dict[str, Any]], ...] = (
    ("resnet50", {}),
    ("bert-large", {"precision": "fp16"}),
    ("sdxl", {"steps": 20}),
    ("whisper-large-v3", {}),
    ("flux", {"steps": 4}),
    ("wan2.1-t2v-1.3b", {"resolution": "832x480", "frames": 33, "steps": 20}),
)
CHIPS = (H100, "l4", "rtx-4090", "mi300x", "a100-sxm4-40gb", "b200-sxm", "tpu-v5e")
RATES = {"resnet50": 20_000, "bert-large": 500, "sdxl": 2, "whisper-large-v3": 10, "flux": 2, "wan2.1-t2v-1.3b": 0.1}
LIMITS = {"resnet50": 0.1, "bert-large": 0.2, "sdxl": 15, "whisper-large-v3": 10, "flux": 15, "wan2.1-t2v-1.3b": 120}


def drawn(count: int, seed: int) -> Iterator[PlanRequest]:
    """Questions of all tasks on one chip or two."""
    dice = random.Random(seed)
    for _ in range(count):
        model, sizes = dice.choice(DRAWN)
        said: dict[str, Any] = {"model": model, "chips": ",".join(dice.sample(CHIPS, dice.choice((1, 2)))), **sizes}
        kind = dice.choice(("batch", "rate", "limit", "both", "job"))
        rate, limit = RATES[model] * dice.uniform(0.2, 3.0), LIMITS[model] * dice.uniform(0.7, 4.0)
        if kind in ("rate", "both"):
            said["rate"] = f"{rate:.4g}/s"
        if kind in ("limit", "both"):
            said["e2e"] = f"{limit:.4g}s"
        if kind in ("batch", "job"):
            said["task"] = "batch"
        if kind == "job":
            said |= {"samples": f"{3600 * rate:.0f}", "deadline": f"{dice.uniform(0.5, 3):.3g}h"}
        yield PlanRequest(evidence="none", **said)


def answered(question: PlanRequest) -> MediaReport | None:
    """Its answer, None where nothing keeps what it asks."""
    try:
        report = question.run()
    except InfeasibleError:
        return None
    assert isinstance(report, MediaReport)
    return report if report.kept else None


def paid(report: MediaReport, plan: MediaPlan) -> float:
    """What is paid by a plan."""
    assert plan.price is not None
    if report.job is not None:
        assert plan.job is not None
        return plan.price.mid * plan.job.hours.mid
    return plan.price.mid if report.rate_per_s is not None else plan.usd_per_1000.mid  # type: ignore[union-attr]


def cheapest(report: MediaReport) -> float:
    """The least that is paid for what is kept."""
    return paid(report, report.cheapest or report.plans[0])


@pytest.mark.parametrize("question", list(drawn(40, 29)), ids=lambda q: f"{q.model}-{q.chips}")
def test_an_option_left_out_is_as_good_as_any_value_of_it(question: PlanRequest) -> None:
    free, dice = answered(question), random.Random(repr(question))
    values = (
        {"batch": dice.choice((1, 2, 4, 16, 64))},
        {"runtime": dice.choice(("eager", "compile", "cuda_graphs", "jax", "tensorrt", "onnxruntime"))},
        {"offload": dice.choice(("model", "sequential"))},
        {"spread": dice.choice(("ulysses=2", "ulysses=4", "cfg=2"))},
    )
    for value in values:
        try:
            given = answered(replace(question, **value))
        except ChipwiseError:  # what a chip cannot do
            continue
        if given is None:
            continue
        assert free is not None, value
        # of requests that come at a rate a server is worth three things that speak against another
        served = bool(question.rate) and get_media_runtime(free.plans[0].runtime).server
        if served and "runtime" in value:
            continue
        room = SATURATED if "batch" in value else ALIKE
        worth = preferences().evidence * (3.0 if served else 1.0)
        assert cheapest(free) <= cheapest(given) * (1.0 + room + (worth if served else 0.0)), value
        assert paid(free, free.plans[0]) <= cheapest(given) * (1.0 + worth + room), value


@pytest.mark.parametrize("question", list(drawn(25, 7)), ids=lambda q: f"{q.model}-{q.chips}")
def test_less_that_is_asked_never_costs_more(question: PlanRequest) -> None:
    tight = answered(question)
    if tight is None:
        return
    looser: list[dict[str, Any]] = [{"max_usd_per_h": 1e6}]
    if question.e2e is not None:
        looser.append({"e2e": f"{1.5 * float(question.e2e.removesuffix('s')):.4g}s"})
    if question.e2e is not None or question.deadline is not None:
        looser.append({"confidence": "70%"})
    for less in looser:
        loose = answered(replace(question, **less))
        assert loose is not None, less
        assert cheapest(loose) <= cheapest(tight) * (1.0 + SATURATED), less
        # the cheapest may have a doubt more for its software and one for its basis
        room = 1.0 + 2.0 * preferences().evidence + SATURATED
        assert paid(loose, loose.plans[0]) <= cheapest(tight) * room, less


def test_a_missed_limit_names_the_network_distilled_to_fewer_steps() -> None:
    with pytest.raises(InfeasibleError, match="sdxl-lightning, which takes 4 steps") as missed:
        cw.plan("sdxl", chips="rtx-4070", e2e="2s", evidence="none")
    assert "sdxl-turbo" not in str(missed.value), "of another size"
    assert cw.plan("sdxl-lightning", chips="rtx-4070", e2e="2s", evidence="none").kept


def test_a_plan_names_the_format_in_which_its_chip_multiplies() -> None:
    for chip, precision in (("t4", "fp16"), ("v100-sxm2-32gb", "fp16"), ("l4", "bf16")):
        assert cw.plan("sdxl", have=chip, task="local", evidence="none").plans[0].precision == precision


def test_the_best_of_each_software_can_be_listed() -> None:
    question = PlanRequest(model="sdxl", chips=f"{H100},l4", rate="5/s", evidence="none")
    for by, least in (("chip", 2), ("runtime", 5), ("format", 1), ("provider", 1)):
        keys: dict[str, str] = {"format": "precision"}
        report = answered(replace(question, by=_by(by)))
        assert report is not None
        assert len(report.plans) >= least
        if by != "provider":
            labels = [getattr(p, keys.get(by, by)) for p in report.plans]
            assert len(labels) == len(set(labels))
        assert [p.rank for p in report.plans] == list(range(1, len(report.plans) + 1))
        default = answered(question)
        assert default is not None
        assert paid(report, report.plans[0]) == paid(default, default.plans[0])


def _by(name: str) -> By:
    return name  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("model", "chip", "spreads"), [("sdxl", "2xrtx-4070", {"dp=1"}), ("flux-dev", "m4-max", {"dp=1"})]
)
def test_software_shares_a_request_only_as_it_can(model: str, chip: str, spreads: set[str]) -> None:
    """PyTorch's pipelines deal no guided passes out, no convolution looks over the edge of a part, Metal joins none."""
    plans = cw.plan(model=model, chips=chip, task="local").plans
    assert {p.spread for p in plans} <= spreads | {""}


def test_the_best_plan_with_measurements_may_be_of_other_software_on_the_same_chip() -> None:
    said = " ".join(
        cw.plan("wan2.2", rate="100/h", e2e="5min", runtime="best", evidence="none", chips="h100,h200").verdict()
    )
    assert re.search(r"Best plan with measurements behind it: \d+x h\d00-\S+ with SGLang Diffusion ", said)
