"""Networks of the user's own, asked about like those with a name: a module in a file, ONNX, a diffusers folder, weights
alone; and which doors read them."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

import chipwise as cw
from chipwise.api.requests.doors import read_request
from chipwise.api.requests.planning import EstimateRequest, FitRequest, PlanRequest
from chipwise.api.saving import answered, open_saved, replay, save
from chipwise.catalog.chips import get_chip
from chipwise.errors import ChipwiseError, UnknownNameError, UsageError
from chipwise.report.media import MediaReport, media_view
from command_line import Run

CHIPS = ("h100-sxm5-80gb", "tpu-v5e")
SAID = json.dumps({"question": {"verb": "estimate", "request": {"model": "net.py:build", "chip": "h100"}}})

MODULE = """
import torch

def build(rows=512, dtype=torch.bfloat16):
    wide = torch.nn.Sequential(torch.nn.Linear(4096, 16384), torch.nn.GELU(), torch.nn.Linear(16384, 4096))
    return wide.to(dtype), torch.empty(rows, 4096, dtype=dtype)

def single():
    return build(dtype=torch.float32)
"""


@pytest.fixture
def module(tmp_path: Path) -> str:
    pytest.importorskip("torch")
    (tmp_path / "net.py").write_text(MODULE)
    return f"{tmp_path / 'net.py'}:build"


@pytest.mark.parametrize("chip", CHIPS)
def test_a_module_in_a_file_is_estimated(module: str, chip: str) -> None:
    report = cw.estimate(module, chip=chip)
    assert isinstance(report, MediaReport)
    (plan,) = report.plans
    assert report.flops >= 2 * 2 * 512 * 4096 * 16384
    assert plan.batch == 512
    assert plan.precision == "bf16"
    # no faster than the peak, and no slower than a hundredth of it
    assert 0.01 < plan.share_of_peak < 1.0
    assert plan.memory["weights"] == pytest.approx(2 * (2 * 4096 * 16384 + 4096 + 16384))


def test_a_file_keeps_its_sizes_and_formats(module: str) -> None:
    for more in ({"batch": 4}, {"precision": "fp8"}, {"steps": 3}, {"resolution": "64x64"}):
        with pytest.raises(UsageError, match=f"{next(iter(more))} says nothing about it") as found:
            cw.estimate(module, chip="h100", **more)
        assert found.value.field == next(iter(more))
    wide = cw.estimate(module.replace(":build", ":single"), chip="h100").plans[0]
    half = cw.estimate(module, chip="h100").plans[0]
    assert wide.precision == "fp32"
    assert wide.latency_s.mid > half.latency_s.mid
    assert wide.memory["weights"] == pytest.approx(2 * half.memory["weights"])


def test_a_training_step_of_a_file_takes_longer(module: str) -> None:
    step = cw.estimate(module, chip="h100", training=True)
    assert step.trained
    assert step.plans[0].latency_s.mid > 1.5 * cw.estimate(module, chip="h100").plans[0].latency_s.mid


def test_plans_and_explanations_of_a_file(module: str) -> None:
    report = PlanRequest(model=module, chips="h100,l4", rate="100000/s").run()
    assert {p.chip for p in report.plans} == {"h100-sxm5-80gb", "l4"}
    assert all(0.7 * p.samples_per_s.mid >= 100_000 for p in report.plans)
    assert cw.explain(module, chip="h100").plans == cw.estimate(module, chip="h100").plans


def test_a_saved_answer_holds_the_trace_and_runs_no_code(module: str, tmp_path: Path) -> None:
    kept = tmp_path / "answer.json"
    first = save("estimate", EstimateRequest(model=module, chip="h100"), str(kept)).report
    Path(module.removesuffix(":build")).write_text("raise SystemExit('was run')")
    again = replay(str(kept))
    assert again.identical
    assert again.report.plans[0].latency_s == first.plans[0].latency_s
    # a record whose tables lack the trace is refused, and so is one without tables
    tables = {name: data for name, data in open_saved(str(kept)).tables.items() if "#pipeline" not in name}
    from chipwise.catalog.snapshot import Snapshot, use

    with use(Snapshot(tables)), pytest.raises(UsageError, match="does not hold it"):
        EstimateRequest(model=module, chip="h100").run()
    with pytest.raises(UsageError, match="code is not run here"):
        open_saved(_written(tmp_path / "record.json", SAID))


def _written(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("files", [False, True])
@pytest.mark.parametrize("verb", ["plan", "estimate", "fit", "explain"])
def test_doors_for_others_run_no_code(verb: str, files: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text("raise SystemExit('was run')")
    asked: dict[str, Any] = {"model": "net.py:build"}
    if verb in ("estimate", "explain"):
        asked["chip"] = "h100"
    with pytest.raises(ChipwiseError, match="code is not run here" if files else "files are not read here"):
        read_request(verb, asked, files=files)


def test_doors_for_others_read_no_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _diffusers(tmp_path / "FLUX.1-dev")
    weights(tmp_path / "net.safetensors", {"a.weight": [64, 64]})
    for name in (
        "./FLUX.1-dev",
        str(tmp_path / "FLUX.1-dev"),
        "net.safetensors",
        "net.onnx",
        "FLUX.1-dev/model_index.json",
    ):
        with pytest.raises(ChipwiseError):
            read_request("fit", {"model": name})
    # a name stays a name where a folder of that name lies
    assert read_request("fit", {"model": "FLUX.1-dev"}).run().model == "flux-dev"


def test_an_onnx_file_is_estimated(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    held = numpy_helper.from_array(np.zeros((1024, 4096), np.float32), "w")
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "net",
        [info("x", TensorProto.FLOAT, [256, 1024])],
        [info("y", TensorProto.FLOAT, None)],
        [held],
    )
    file = tmp_path / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), str(file))
    for chip in CHIPS:
        (plan,) = cw.estimate(str(file), chip=chip).plans
        assert plan.latency_s.mid >= plan.memory["weights"] / get_chip(chip).memory.bytes_per_s
        assert plan.memory["weights"] == 4 * 1024 * 4096
        assert plan.precision == "fp32"
    with pytest.raises(UsageError, match="nothing of a training step"):
        cw.estimate(str(file), chip="h100", training=True)


def _diffusers(folder: Path) -> str:
    """Configurations of Stable Diffusion 1.5, as diffusers writes them; the table has the same network by name."""
    configs: dict[str, dict[str, Any]] = {
        "unet": {
            "_class_name": "UNet2DConditionModel", "sample_size": 64, "in_channels": 4, "out_channels": 4,
            "block_out_channels": [320, 640, 1280, 1280], "layers_per_block": 2, "attention_head_dim": 8,
            "cross_attention_dim": 768, "norm_num_groups": 32,
            "down_block_types": ["CrossAttnDownBlock2D"] * 3 + ["DownBlock2D"],
            "up_block_types": ["UpBlock2D"] + ["CrossAttnUpBlock2D"] * 3,
        },
        "vae": {
            "_class_name": "AutoencoderKL", "latent_channels": 4, "block_out_channels": [128, 256, 512, 512],
            "layers_per_block": 2, "in_channels": 3, "out_channels": 3, "norm_num_groups": 32,
            "down_block_types": ["DownEncoderBlock2D"] * 4, "up_block_types": ["UpDecoderBlock2D"] * 4,
        },
        "text_encoder": {
            "architectures": ["CLIPTextModel"], "model_type": "clip_text_model", "hidden_size": 768,
            "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072, "vocab_size": 49408,
            "max_position_embeddings": 77,
        },
    }  # fmt: skip
    index = {"_class_name": "StableDiffusionPipeline", "scheduler": ["diffusers", "PNDMScheduler"]}
    for part, config in configs.items():
        (folder / part).mkdir(parents=True)
        (folder / part / "config.json").write_text(json.dumps(config))
        index[part] = ["diffusers", str(config.get("_class_name", "CLIPTextModel"))]  # type: ignore[assignment]
    (folder / "model_index.json").write_text(json.dumps(index))
    return str(folder)


def test_a_diffusers_folder_is_the_network_of_its_name(tmp_path: Path) -> None:
    folder = _diffusers(tmp_path / "mine")
    sizes: dict[str, Any] = {"steps": 20, "resolution": "512x512", "guidance": 7.5}
    mine = cw.estimate(folder, chip="h100", **sizes)
    named = cw.estimate("sd1.5", chip="h100", **sizes)
    assert mine.parameters == pytest.approx(named.parameters, rel=0.05)
    assert mine.flops == pytest.approx(named.flops, rel=0.02)
    assert mine.plans[0].latency_s.mid == pytest.approx(named.plans[0].latency_s.mid, rel=0.05)
    index = cw.estimate(f"{folder}/model_index.json", chip="h100", **sizes)
    assert index.plans[0].latency_s == mine.plans[0].latency_s
    assert cw.estimate(folder, chip="h100", **sizes | {"steps": 40}).flops > 1.9 * mine.flops
    with pytest.raises(UsageError, match="multiples of"):
        cw.estimate(folder, chip="h100", resolution="513x512")
    asked = answered("plan", PlanRequest(model=folder, chips="h100,l4"))
    assert {p.chip for p in asked.report.plans} == {"h100-sxm5-80gb", "l4"}


def weights(path: Path, tensors: dict[str, list[int]]) -> str:
    """The header of a safetensors file in 16 bits, without the weights behind it."""
    table: dict[str, Any] = {}
    place = 0
    for name, shape in tensors.items():
        size = 2
        for n in shape:
            size *= n
        table[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [place, place + size]}
        place += size
    text = json.dumps(table).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text)
    return str(path)


def test_weights_alone_fit_and_are_not_timed(tmp_path: Path, run: Run) -> None:
    file = weights(tmp_path / "odd.safetensors", {"conv.weight": [100_000, 100_000], "out.weight": [8, 8]})
    report = FitRequest(model=file, chips="h100,l4").run()
    found = {p.chip: p.verdict for p in report.plans}
    assert found["h100-sxm5-80gb"] != "no"
    assert report.parameters == 10_000_000_064
    text = "\n".join(line for table in media_view(report) for row in table.rows for line in map(str, row))
    assert "GB" in text
    assert "us" not in text.split()
    for verb in ("estimate", "plan"):
        chips = ("--chip", "h100") if verb == "estimate" else ("--chips", "h100")
        told = run(verb, file, *chips)
        assert (told.code, "only its weights are known" in told.err) == (2, True)


def test_networks_of_the_table_are_listed_searched_and_shown(run: Run) -> None:
    for name in ("sdxl", "flux-dev", "wan2.2-t2v-a14b", "resnet50"):
        (found,) = read_request("models", {"model": name}).run().networks
        assert found.name == name
        assert found.params == sum(found.parts.values()) > 1e7
        assert found.flops > 0
    hits = read_request("models", {"search": "flux"}).run()
    assert {"flux-dev", "flux-schnell"} <= {n.name for n in hits.networks}
    assert hits.found == len(hits.models) + len(hits.networks)
    assert "resnet50" in {
        n.name for n in read_request("models", {"search": "images resnet", "limit": 500}).run().networks
    }
    shown = run("models", "show", "sdxl")
    assert (shown.code, "3.43 B parameters" in shown.out) == (0, True)
    with pytest.raises(UnknownNameError, match="sdxl"):
        read_request("estimate", {"model": "sdxll", "chip": "h100"})


def test_a_network_is_answered_at_every_door(run: Run, tmp_path: Path) -> None:
    from chipwise.mcp.tools import MOST_CHARS, shortened
    from chipwise.web.pages.render import environment
    from chipwise.web.views import VIEWS

    questions: dict[str, dict[str, Any]] = {
        "estimate": {"model": "flux-dev", "chip": "h100", "steps": 20, "resolution": "512x512"},
        "explain": {"model": "bge-small", "chip": "l4", "settings": {"tokens": 128}},
        "plan": {"model": "sdxl", "chips": "h100,l4", "e2e": "60s"},
        "compare": {"model": "sdxl", "chips": "h100,l4"},
        "fit": {"model": "resnet50", "batch": 64, "chips": "h100,l4"},
    }
    for verb, given in questions.items():
        question = read_request(verb, given)
        report = question.run()
        assert isinstance(report, MediaReport)
        short = shortened(verb, report)
        assert len(json.dumps(short)) < MOST_CHARS
        assert short["plans"][0]["latency_s"]["mid"] == pytest.approx(report.plans[0].latency_s.mid, rel=0.01)
        if verb in VIEWS:
            filled = {"request": question, "record": report, "query": "", **VIEWS[verb].filled(question, report)}
            page = environment().get_template("fragment.html").render({"view": VIEWS[verb], "result": filled})
            assert report.plans[0].chip in page
            shown = (VIEWS[verb].tables or type(report).tables)(report)
            assert any(report.model in line for line in shown[0].head)
    kept = str(tmp_path / "a.json")
    assert run("plan", "sdxl", "--chips", "h100,l4", "--save", kept).code == 0
    assert run("replay", kept).code == 0
    told = run("launch", kept, "--for", "vllm")
    assert (told.code, "generates no tokens" in told.err) == (2, True)
    other = str(tmp_path / "b.json")
    assert run("plan", "sdxl", "--chips", "h100,l4", "--steps", "20", "--save", other).code == 0
    differs = run("diff", kept, other)
    assert (differs.code, "steps: not given -> 20" in differs.out, "time" in differs.out) == (0, True, True)


@pytest.mark.parametrize("option", ["tokens=1k", "tpot=40ms", "utilisation=50%"])
def test_an_option_that_a_network_is_not_planned_by_is_refused(option: str, run: Run) -> None:
    name, _, value = option.partition("=")
    ended = run("plan", "resnet50", "--chips", "h100", f"--{name}", value)
    assert ended.code != 0
    assert f"--{name} says nothing about resnet50" in " ".join((ended.out + ended.err).split())
