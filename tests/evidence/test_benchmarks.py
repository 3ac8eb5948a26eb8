"""Any name of a network of MLPerf leads to what was measured of it, whether or not its speed is predicted."""

import pytest

from chipwise.api.requests.doors import read_request
from chipwise.api.requests.evidence import CheckClaimRequest, EvidenceMatchRequest
from chipwise.api.requests.planning import PlanRequest
from chipwise.catalog.benchmarks import benchmark_of, load_benchmarks
from chipwise.catalog.published import load_inference_results
from chipwise.errors import UnknownNameError, UsageError
from command_line import Run

WITH_ROWS = sorted({r.benchmark for r in load_inference_results().values()})
SAMPLED = [b for b in WITH_ROWS if not load_benchmarks()[b].generates]


@pytest.mark.parametrize("name", sorted(load_benchmarks()))
def test_every_benchmark_is_matched_by_its_name(name: str) -> None:
    report = EvidenceMatchRequest(model=name).run()
    rows = [r for r in load_inference_results().values() if r.benchmark == name]
    assert report.benchmark == name or not rows
    assert bool(report.measured) == bool(rows) or load_benchmarks()[name].generates
    assert {i.benchmark for i in report.measured} <= {report.benchmark}


@pytest.mark.parametrize("name", SAMPLED)
def test_its_own_rows_come_first_on_every_chip_that_was_measured(name: str) -> None:
    chips = {r.chip for r in load_inference_results().values() if r.benchmark == name and r.chip}
    for chip in sorted(chips)[:3]:
        first = EvidenceMatchRequest(model=name, chip=chip).run().matches[0]
        assert (first.item.benchmark, first.item.chip) == (name, chip)
        assert first.verdict.startswith("measured, not predicted: this network on this chip")


def test_what_a_result_on_another_chip_is_good_for_is_one_sentence() -> None:
    asked = EvidenceMatchRequest(model="resnet-50", chip="rtx-5090", precision="fp32")
    said = asked.run().matches[0].verdict
    what = "measured, not predicted: this network on another chip, with an unknown sample and an unknown count"
    assert said == what


@pytest.mark.parametrize(
    ("name", "benchmark", "own"),
    [
        ("openai/whisper-large-v3", "whisper", True),
        ("stabilityai/stable-diffusion-xl-base-1.0", "stable-diffusion-xl", True),
        ("SDXL", "stable-diffusion-xl", True),
        ("ResNet-50", "resnet", True),
        ("Wan-AI/Wan2.2-T2V-A14B", "wan-2.2-t2v-a14b", True),
        ("bert-99.9", "bert", True),
        ("dlrm-v2-99", "dlrm-v2", True),
        ("R-GAT", "rgat", True),
        ("RNN-T", "rnnt", True),
        ("llama-3.1-8b", "llama3.1-8b", True),
        ("Llama-2-70b", "llama2-70b", True),
        ("3D UNet", "3d-unet", True),
        ("DLRM-DCNv2", "dlrm-v2", True),
        ("black-forest-labs/FLUX.1-dev", "stable-diffusion-xl", False),
        ("openai/whisper-small", "whisper", False),
        ("resnet101", "resnet", False),
    ],
)
def test_names_of_networks_lead_to_their_benchmark(name: str, benchmark: str, own: bool) -> None:
    found = benchmark_of(name)
    assert found is not None
    assert (found.benchmark.name, found.own) == (benchmark, own)


@pytest.mark.parametrize("name", ["Qwen/Qwen3-32B", "bertram", "wander", "", "ragdoll"])
def test_other_names_lead_to_none(name: str) -> None:
    assert benchmark_of(name) is None


def test_a_sample_of_another_size_is_another_axis() -> None:
    def mark(**given: str) -> str:
        found = EvidenceMatchRequest(model="sdxl", chip="h100", **given).run().matches[0]  # type: ignore[arg-type]
        return found.mark("sample")

    assert mark() == "unknown"
    assert mark(sample="resolution=1024x1024,steps=20") == mark(sample="resolution=1024,steps=20") == "same"
    assert mark(sample="resolution=1024,steps=30") == "near"
    assert mark(sample="resolution=512,steps=20") == "different"


def test_accuracy_is_an_axis_where_rows_were_held_to_several() -> None:
    found = EvidenceMatchRequest(model="bert", chip="h100", accuracy="99.9", task="batch").run().matches
    assert {m.item.accuracy: m.mark("accuracy") for m in found}.get("99.9") == "same"
    assert found[0].item.accuracy == "99.9"


def test_a_lead_of_samples_is_held_against_other_measured_rows() -> None:
    rows = EvidenceMatchRequest(model="resnet50", chip="h100", task="batch").run().matches
    report = CheckClaimRequest(result=rows[0].item.id, model="resnet50", task="batch").run()
    assert report.claim.rivals
    assert report.claim.supported
    for rival in report.claim.rivals:
        assert rival.measured == pytest.approx(rows[0].item.speed / rival.item.speed)  # type: ignore[operator]
        assert rival.predicted is None
    other = CheckClaimRequest(result=rows[0].item.id, model="Qwen/Qwen3-32B").run()
    assert not other.claim.supported
    assert "measured" in other.claim.verdict


def test_doors_take_the_names_of_networks() -> None:
    assert read_request("match", {"model": "resnet50"}).run().measured
    with pytest.raises(UsageError, match="no benchmark runs"):
        EvidenceMatchRequest(model="Qwen/Qwen3-32B").run()


def test_what_was_not_measured_itself_is_said_first(run: Run) -> None:
    out = run("evidence", "match", "mobilenet").out
    assert out.startswith("mobilenet was not measured; resnet is the nearest network that was")


def test_a_name_that_is_too_short_finds_its_benchmarks() -> None:
    with pytest.raises(UsageError, match=r"did you mean qwen3-vl-235b-a22b\?"):
        EvidenceMatchRequest(model="qwen3-vl").run()


@pytest.mark.parametrize("name", ["rgat", "pointpainting", "dlrm-v3"])
def test_a_network_without_a_prediction_leads_to_what_was_measured(name: str) -> None:
    with pytest.raises(UnknownNameError, match=f"chipwise evidence match {name}"):
        PlanRequest(model=name).run()
