"""Networks without tokens in plain PyTorch: the script runs for real on what the user's own file builds, and with a
stand-in of a library on what that loads."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import chipwise as cw
from chipwise.api.launching import launch as launch_saved
from chipwise.catalog.tools import get_tool
from chipwise.errors import UsageError
from chipwise.report.launch.targets import launch_files
from chipwise.workload import media
from report.launch.plans import ENCODER

OWN = """
import torch
from torch import nn

def build():
    return nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 10)), torch.randn(8, 64)

class Named(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(64, 64)
    def forward(self, x, *, mask):
        return self.inner(x) * mask

def named():
    return Named(), torch.empty(4, 64, device="meta"), {"mask": torch.ones(4, 1)}

def other():
    return nn.Linear(8, 8), torch.randn(2, 8)
"""
TRANSFORMERS = """
import torch
class AutoConfig:
    vocab_size = 100
    @classmethod
    def from_pretrained(cls, repository):
        print("config of", repository)
        return cls()
class BertModel(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config, self.words = config, torch.nn.Embedding(100, 8)
    def forward(self, input_ids):
        self.seen = print("ids", tuple(input_ids.shape), self.words.weight.dtype, self.training)
        return self.words(input_ids)
"""
TIMM = """
import torch
def create_model(name, pretrained):
    print("made", name, pretrained)
    return Model()
class Model(torch.nn.Conv2d):
    def __init__(self):
        super().__init__(3, 4, 3)
    def set_input_size(self, img_size):
        print("sized", img_size)
    def forward(self, image):
        print("image", tuple(image.shape), image.is_contiguous(memory_format=torch.channels_last))
        return super().forward(image)
"""
WRITER = """
class T5ForConditionalGeneration(BertModel):
    def generate(self, input_ids, min_new_tokens, max_new_tokens, num_beams, do_sample):
        print("written", tuple(input_ids.shape), min_new_tokens, max_new_tokens, num_beams)
"""
TIMED = (
    r"^request: [\d.]+ ms \[[\d.]+ to [\d.]+\] predicted, [\d.]+ ms measured, ratio [\d.]+, "
    r"(within|outside) the interval of "
)


def saved(tmp_path: Path, model: str, **said: object) -> str:
    path = tmp_path / "plan.json"
    cw.estimate(model, **said).save(str(path))
    return str(path)


def ran(script: Path, *more: str, library: Path | None = None) -> str:
    env = os.environ | ({} if library is None else {"PYTHONPATH": str(library)})
    done = subprocess.run(
        [sys.executable, str(script), "--device", "cpu", "--runs", "2", *more],
        capture_output=True, text=True, env=env, cwd=script.parent, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.search(TIMED, done.stdout, re.M), done.stdout
    return done.stdout


@pytest.mark.parametrize("more", [(), ("--autocast",)])
@pytest.mark.parametrize("function", ["build", "named"])
def test_what_the_user_builds_runs(function: str, more: tuple[str, ...], tmp_path: Path) -> None:
    pytest.importorskip("torch")
    own = tmp_path / "own.py"
    own.write_text(OWN)
    plan = saved(tmp_path, f"{own}:{function}", chip="h100-sxm5-80gb")
    (file,) = launch_saved(plan, "torch")
    script = tmp_path / file.name
    script.write_text(file.text)
    out = ran(script, *more)
    assert "another network" not in out
    assert f"autocast {bool(more)}" in out
    assert "another network" in ran(script, "--code", f"{own}:other")


def test_a_file_that_is_elsewhere_is_asked_for(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (file,) = launch_files(replace(ENCODER, code="gone/net.py:build"), "torch")
    script = tmp_path / file.name
    script.write_text(file.text)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "--code FILE.py:build" in done.stderr


def test_transformers_is_given_the_sizes_of_the_plan(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "transformers.py").write_text(TRANSFORMERS)
    plan = saved(tmp_path, "bert-large", chip="l4", batch=3, settings="tokens=40")
    (file,) = launch_saved(plan, "torch")
    script = tmp_path / file.name
    script.write_text(file.text)
    out = ran(script, library=tmp_path)
    assert "config of google-bert/bert-large-uncased" in out
    assert "ids (3, 40) torch.bfloat16 False" in out
    assert "another network: it has 800 parameters, the plan 335," in out
    assert "ids (3, 40) torch.float32 False" in ran(script, "--autocast", library=tmp_path)


def test_a_translator_writes_as_many_words_as_the_plan(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "transformers.py").write_text(TRANSFORMERS + WRITER)
    plan = saved(tmp_path, "flan-t5-base", chip="l4", batch=2, settings="tokens=40,targets=7,beams=3")
    (file,) = launch_saved(plan, "torch")
    script = tmp_path / file.name
    script.write_text(file.text)
    out = ran(script, library=tmp_path)
    assert "config of google/flan-t5-base" in out
    assert "written (2, 40) 7 7 3" in out


def test_timm_is_given_the_sizes_and_the_layout_of_the_plan(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "timm.py").write_text(TIMM)
    asked = {"chip": "l4", "batch": 2, "resolution": "96x64", "settings": "memory_format=channels_last"}
    (file,) = launch_saved(saved(tmp_path, "vit_base_patch16_224", **asked), "torch")
    script = tmp_path / file.name
    script.write_text(file.text)
    out = ran(script, "--pretrained", library=tmp_path)
    assert "made vit_base_patch16_224 True" in out
    assert "sized (64, 96)" in out
    assert "image (2, 3, 64, 96) True" in out


def test_the_script_compiles_where_the_plan_does() -> None:
    for runtime, compiled in (("eager", ""), ("compile", "inductor"), ("cuda_graphs", "cudagraphs")):
        (file,) = launch_files(replace(ENCODER, runtime=runtime), "torch")
        assert f"'compile': {compiled!r}," in file.text


@pytest.mark.parametrize(("chip", "dtype"), [("t4", "float16"), ("l4", "bfloat16"), ("xeon-8480plus", "bfloat16")])
def test_a_chip_without_bf16_is_given_fp16(chip: str, dtype: str, tmp_path: Path) -> None:
    (file,) = launch_saved(saved(tmp_path, "bert-base", chip=chip, precision="bf16"), "torch")
    assert f"'dtype': '{dtype}'," in file.text


def test_every_loader_is_of_a_network_that_there_is() -> None:
    for name, (library, entry, *more) in get_tool("torch").models.items():
        assert media.entry(name).name == name
        assert library in ("timm", "transformers")
        assert entry
        assert {*more[1:]} <= {"tokens", "targets", "pixels", "sound", "spectrum"}
        assert bool(more) == (library == "transformers")


@pytest.mark.parametrize("precision", ["bf16", "tf32", "fp32", "int8"])
def test_an_engine_is_built_of_the_plans_own_types(precision: str, tmp_path: Path) -> None:
    """TensorRT 11 has no flags of precision: types are those of the file, quantised by ModelOpt; that is the plan's own
    software, whose log is read."""
    asked = {"chip": "l4", "runtime": "tensorrt", "precision": precision}
    program, export, build, verify = launch_saved(saved(tmp_path, "resnet50", **asked), None)
    assert "'dtype': " + ("'bfloat16'" if precision == "bf16" else "'float32'") in program.text
    assert ("--noTF32" in build.text) == (precision == "fp32")
    assert ("--quantize_mode=int8" in build.text) == (precision == "int8")
    assert f"--onnx={'quantized' if precision == 'int8' else 'network'}.onnx " in build.text
    assert not re.search(r"--(fp16|bf16|int8|fp8|best)\b", build.text)
    compile(export.text, export.name, "exec")
    log = "[I] GPU Compute Time: min = 1.1 ms, mean = 1.2 ms, median = 1.25 ms, percentile(99%) = 1.3 ms\n"
    (tmp_path / "verify.log").write_text(log)
    check = re.search(r"<<'CHECK'\n(.*)^CHECK$", verify.text, re.DOTALL | re.M)
    done = subprocess.run(
        [sys.executable, "-c", check[1], "verify.log"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "0.00125 s measured" in done.stdout


def test_a_network_is_exported_in_the_plans_sizes(tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    onnx = pytest.importorskip("onnx")
    own = tmp_path / "own.py"
    own.write_text(OWN)
    plan = saved(tmp_path, f"{own}:named", chip="h100-sxm5-80gb", runtime="tensorrt")
    for file in launch_saved(plan, "tensorrt"):
        (tmp_path / file.name).write_text(file.text)
    subprocess.run([sys.executable, "export.py", "network.onnx"], cwd=tmp_path, check=True, capture_output=True)
    assert len(onnx.load(tmp_path / "network.onnx").graph.input) == 2


@pytest.mark.parametrize(
    ("model", "said", "target", "words"),
    [
        ("sdxl", {"chip": "l4"}, "torch", "launch it --for diffusers"),
        ("resnet50", {"chip": "l4"}, "diffusers", "launch it --for torch"),
        ("bert-large", {"chip": "l4"}, "jax", "Flax.*launch it --for torch"),
        ("dlrm-small", {"chip": "h100-sxm5-80gb"}, "torch", "no library is known"),
        (
            "resnet50",
            {"chip": "l4", "runtime": "tensorrt"},
            "torch",
            "--runtime eager or compile or cuda_graphs.*launch it --for tensorrt",
        ),
        ("resnet50", {"chip": "l4"}, "trtexec", "--runtime tensorrt"),
        ("whisper-large-v3", {"chip": "l4", "runtime": "tensorrt"}, "tensorrt", "word by word"),
        ("resnet50", {"chip": "l4", "precision": "int8-static", "runtime": "compile"}, "torch", "kernels of an"),
        ("bert-large", {"chip": "l4", "offload": "model"}, "torch", "--offload none"),
        ("bert-large", {"chip": "h100-sxm5-80gb", "spread": "dp=2"}, "torch", "leave --spread out"),
        ("bert-large", {"chip": "l4", "settings": "attention=plain"}, "torch", "leave attention="),
        ("sdxl", {"chip": "l4", "aside": "text_encoder"}, "diffusers", "without --aside"),
    ],
)
def test_what_the_script_does_not_start_is_refused(
    model: str, said: dict[str, object], target: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as refused:
        launch_saved(saved(tmp_path, model, **said), target)
    assert re.search(words, f"{refused.value} {refused.value.hint}", re.DOTALL)


NEURONX = """
import torch
def trace(model, values):
    print("traced", [tuple(v.shape) for v in values], next(model.parameters()).dtype)
    return torch.jit.trace(model, values)
"""


@pytest.mark.parametrize("function", ["build", "named"])
def test_a_network_is_traced_for_a_neuron_core(function: str, tmp_path: Path) -> None:
    """With a stand-in of the library, which traces for the processor."""
    pytest.importorskip("torch")
    own = tmp_path / "own.py"
    own.write_text(OWN)
    plan = saved(tmp_path, f"{own}:{function}", chip="inferentia2")
    (file,) = launch_saved(plan)
    assert file.name == "run_torch_neuronx.py"
    script, library, program = tmp_path / file.name, tmp_path / "library", tmp_path / "program.pt"
    script.write_text(file.text)
    library.mkdir()
    (library / "torch_neuronx.py").write_text(NEURONX)
    out = ran(script, "--save", str(program), library=library)
    assert "traced [(" in out
    assert "on a NeuronCore" in out
    assert program.stat().st_size > 1000


def test_chips_without_neuron_cores_are_refused(tmp_path: Path) -> None:
    plan = saved(tmp_path, "resnet50", chip="h100-sxm5-80gb", runtime="eager")
    with pytest.raises(UsageError, match="has no NeuronCores"):
        launch_saved(plan, "torch-neuronx")
