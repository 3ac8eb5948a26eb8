"""Scripts in plain PyTorch and JAX: they run for real, on a tiny model, and print the prediction beside the time."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from chipwise.errors import UsageError
from chipwise.report.launch.spec import LaunchNetwork, LaunchPasses
from chipwise.report.launch.targets import launch_files
from command_line import Run
from report.launch.plans import experts, served, trained

TINY = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 256,
    "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
    "tie_word_embeddings": True, "torch_dtype": "bfloat16",
}  # fmt: skip

NETWORK = LaunchNetwork(2, 64, 128, 4, 2, 16, 256, 0, 0, 0, tied=True, plain=True)
PLAN = served(
    tp=1, precision="bf16", convert="", network=NETWORK, prompt_tokens=32, machine=replace(served().machine, devices=1),
    passes=LaunchPasses(0.01, 0.002, 3.0, interval=(0.5, 2.0)),
)  # fmt: skip


@pytest.fixture
def saved(tmp_path: Path, run: Run) -> dict[str, str]:
    """Tiny plans: served, and trained."""
    (tmp_path / "config.json").write_text(json.dumps(TINY))
    files = {name: str(tmp_path / f"{name}.saved.json") for name in ("serve", "train")}
    asked = ("--chip", "h100-sxm5-80gb", "--concurrency", "3", "--in", "32", "--out", "8")
    assert run("estimate", str(tmp_path / "config.json"), *asked, "--save", files["serve"]).code == 0
    job = ("--chips", "h100-sxm5-80gb", "--counts", "1", "--tokens", "1M", "--global-batch", "4", "--seq", "32")
    ran = run("train", str(tmp_path / "config.json"), *job, "--save", files["train"])
    assert ran.code == 0, ran.err
    return files


@pytest.mark.parametrize(
    ("tool", "what", "passes", "more"),
    [
        ("torch", "serve", ("prefill", "decode"), ()),
        ("torch", "train", ("step",), ()),
        ("torch", "train", ("step",), ("--no-autocast",)),
        ("jax", "serve", ("prefill", "decode"), ()),
        ("jax", "train", ("step",), ()),
    ],
)
def test_a_script_runs(
    tool: str,
    what: str,
    passes: tuple[str, ...],
    more: tuple[str, ...],
    saved: dict[str, str],
    run: Run,
    tmp_path: Path,
) -> None:
    if find_spec(tool) is None:
        pytest.skip(f"needs the extra {tool}")
    out = tmp_path / "files"
    ran = run("launch", saved[what], "--for", tool, "--out", str(out))
    assert ran.code == 0, ran.err
    (script,) = out.iterdir()
    assert os.access(script, os.X_OK)
    assert "predicted" in script.read_text().partition("import")[0]
    env = os.environ | {"JAX_PLATFORMS": "cpu"}
    device = ("--device", "cpu") if tool == "torch" else ()
    done = subprocess.run(
        [sys.executable, str(script), "--runs", "2", *device, *more],
        capture_output=True,
        text=True,
        env=env,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for name in passes:
        assert re.search(rf"^{name}: [\d.]+ ms predicted, [\d.]+ ms measured, ratio [\d.]+, ", done.stdout, re.M)


def test_a_mesh_of_several_devices_runs(tmp_path: Path) -> None:
    if find_spec("jax") is None:
        pytest.skip("needs the extra jax")
    (file,) = launch_files(replace(PLAN, tp=2, dp=2), "jax")
    script = tmp_path / file.name
    script.write_text(file.text)
    env = os.environ | {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    done = subprocess.run(
        [sys.executable, str(script), "--runs", "1"], capture_output=True, text=True, env=env, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "'data': 2, 'model': 2" in done.stdout
    few = os.environ | {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=few, check=False)
    assert done.returncode == 1
    assert "the plan takes 2 x 2 devices, 2 are here" in done.stderr


def test_neuron_traces_saves_and_loads() -> None:
    plan = replace(PLAN, machine=replace(PLAN.machine, chip="trainium2", vendor="aws"))
    (file,) = launch_files(plan, "torch-neuronx")
    compile(file.text, file.name, "exec")
    order = [
        file.text.index(w) for w in ("torch_neuronx.trace(", "torch.jit.save(", "torch.jit.load(", 'told("prefill"')
    ]
    assert order == sorted(order)


NEURONX = """
import torch

def trace(func, example_inputs, *, compiler_args=None):
    assert compiler_args == ["--model-type", "transformer"]
    return torch.jit.trace(func, example_inputs)
"""


def test_the_neuron_script_runs_where_its_compiler_is_that_of_the_cpu(tmp_path: Path) -> None:
    """The documented call, answered by PyTorch's own tracing: what is saved is loaded and timed."""
    if find_spec("torch") is None:
        pytest.skip("needs the extra torch")
    plan = replace(PLAN, machine=replace(PLAN.machine, chip="trainium2", vendor="aws"))
    (file,) = launch_files(plan, "torch-neuronx")
    (tmp_path / file.name).write_text(file.text)
    (tmp_path / "torch_neuronx.py").write_text(NEURONX)
    saved = tmp_path / "model.neuron.pt"
    done = subprocess.run(
        [sys.executable, str(tmp_path / file.name), "--save", str(saved), "--runs", "2"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert saved.stat().st_size > 0
    assert re.search(r"^prefill: [\d.]+ ms predicted, [\d.]+ ms measured, ratio [\d.]+, ", done.stdout, re.M)


def test_the_plan_is_data_whatever_it_says() -> None:
    title = "it's \"''' a\\ name} @PLAN@"
    (file,) = launch_files(replace(PLAN, title=title), "torch")
    found: dict[str, object] = {}
    text = file.text[file.text.index("PLAN = {") :]
    exec(text[: text.index("\n}\n") + 3], found)
    assert found["PLAN"]["title"] == title  # type: ignore[index]


@pytest.mark.parametrize(
    ("plan", "tool", "says"),
    [
        (replace(PLAN, tp=2), "torch", "one process drives one device"),
        (replace(PLAN, pp=2), "jax", "stages or experts"),
        (replace(PLAN, precision="fp8"), "torch", "kernels of an engine"),
        (replace(PLAN, network=None), "jax", "no plain decoder"),
        (experts(network=NETWORK, ep=1, dp=1, tp=1, pp=1), "torch-neuronx", "no NeuronCores"),
        (trained(), "torch", "one process drives one device"),
        (trained(), "torch-neuronx", "serves, this plan trains"),
    ],
)
def test_what_a_script_cannot_start(plan: object, tool: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        launch_files(plan, tool)  # type: ignore[arg-type]
