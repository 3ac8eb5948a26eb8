"""Launch files equal the kept ones; every option that they use is in the table of documented options.

`CHIPWISE_WRITE_GOLDEN=1 python -m pytest tests/report/launch` writes them anew.
"""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from chipwise.catalog.tools import load_tools
from chipwise.errors import ChipwiseError
from chipwise.report.launch.command import Command
from chipwise.report.launch.spec import Guess, ServeSpec
from chipwise.report.launch.targets import TARGETS, launch_files
from report.launch.plans import PLANS, RUNTIMES, plan_for, served, trained

KEPT = Path(__file__).parent / "files"


def text_of(name: str, target: str) -> str:
    try:
        files = launch_files(plan_for(name, target), target)
    except ChipwiseError as error:
        return f"refused: {error}\n"
    return "".join(f"==== {f.name}{' (executable)' if f.script else ''}\n{f.text}" for f in files)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", PLANS)
def test_files_equal_the_kept_ones(name: str, target: str) -> None:
    file = KEPT / name / f"{target}.txt"
    text = text_of(name, target)
    if os.environ.get("CHIPWISE_WRITE_GOLDEN"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert text == file.read_text()


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_starts_some_plan(target: str) -> None:
    texts = [text_of(name, target) for name in PLANS]
    assert any(not text.startswith("refused: ") for text in texts)
    assert all("verify" in text for text in texts if not text.startswith("refused: "))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", PLANS)
def test_options_are_documented(name: str, target: str) -> None:
    """Read back from the text, whatever the code that wrote it checked."""
    known = {option for tool in load_tools().values() for option in tool.options}
    text = text_of(name, target)
    commands = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    if not text.startswith("refused: "):
        used = set(re.findall(r"(?<![\w-])--[a-zA-Z][\w.-]*", commands))
        assert used <= known


@pytest.mark.parametrize("tool", load_tools().values(), ids=lambda t: t.id)
def test_a_tool_has_version_and_source(tool: object) -> None:
    assert re.search(r"\d", tool.version)  # type: ignore[attr-defined]
    assert re.search(r"20\d\d-\d\d-\d\d", tool.source)  # type: ignore[attr-defined]
    assert all(tool.options.values())  # type: ignore[attr-defined]


def test_an_undocumented_option_is_a_bug() -> None:
    with pytest.raises(KeyError, match="no documented option"):
        Command.of("vllm", "vllm serve").option("--tensor-parallel")


@pytest.mark.parametrize("name", PLANS)
def test_shell_is_well_formed(name: str) -> None:
    for target in TARGETS:
        text = text_of(name, target)
        for script in re.findall(r"==== \S+ \(executable\)\n(.*?)(?===== |\Z)", text, re.DOTALL):
            assert script.startswith("#!/usr/bin/env bash\n")
            shlex.split(script, comments=True)


def test_names_are_quoted() -> None:
    spec = plan_for("dense", "sglang")
    assert isinstance(spec, ServeSpec)
    evil = replace(spec, model="a; rm -rf ~ #")
    for target in ("vllm", "sglang", "trtllm", "dynamo"):
        files = launch_files(replace(evil, runtime=plan_for("dense", target).runtime), target)  # type: ignore[union-attr]
        named = [f for f in files if "rm -rf" in f.text]
        assert len(named) >= 2
        assert all("'a; rm -rf ~ #'" in f.text for f in named)


@pytest.mark.parametrize("target", ["skypilot", "kubernetes", "terraform"])
def test_the_settings_file_travels_with_the_command(target: str) -> None:
    spec = plan_for("dense", "trtllm")
    text = launch_files(spec, target)[0].text
    assert 0 < text.index("cat > trtllm.yaml") < text.index("--config trtllm.yaml")
    assert text.index("dtype: fp8") < text.index("--config trtllm.yaml")
    with pytest.raises(ChipwiseError, match="takes 2 hosts"):
        launch_files(replace(spec, machine=replace(spec.machine, devices=16)), target)


@pytest.mark.parametrize(
    ("target", "changes", "words"),
    [
        ("vllm", {"kv": "mxfp4"}, "no cache in mxfp4"),
        ("sglang", {"kv": "int8"}, "no cache in int8"),
        ("llama.cpp", {"tp": 1, "dp": 2}, "the plan has dp 2"),
        ("neuronx", {"kv": "", "pp": 2}, "the plan has pp 2"),
        ("neuronx", {"kv": "", "guess": Guess(3, module=False)}, "not told here to guess"),
        ("vllm", {"prompt_workers": 1}, "launch it --for dynamo"),
    ],
)
def test_what_a_tool_cannot_be_told_is_refused(target: str, changes: dict[str, object], words: str) -> None:
    with pytest.raises(ChipwiseError, match=words):
        launch_files(served(runtime=RUNTIMES[target], **changes), target)


@pytest.mark.parametrize(
    ("target", "changes", "words"),
    [
        ("megatron", {"precision": "nvfp4"}, "train in nvfp4"),
        ("torchtitan", {"precision": "fp8"}, "train in fp8"),
        ("megatron", {"pp": 3, "vp": 1}, "cut evenly into 3"),
        ("maxtext", {"pp": 3, "vp": 1}, "cut evenly into 3"),
        ("maxtext", {"global_batch": 28}, "a multiple of 2 micro-batches"),
        ("torchtitan", {"offload": 0.5}, "optimiser in host memory"),
        ("maxtext", {"offload": 0.5}, "optimiser in host memory"),
        ("torchtitan", {"vp": 32}, "cut evenly into 64"),
        ("torchtitan", {"model": "meta-llama/Llama-3.1-405B"}, "train in bf16"),
    ],
)
def test_training_that_a_tool_cannot_be_told_is_refused(
    target: str, changes: dict[str, object], words: str
) -> None:
    with pytest.raises(ChipwiseError, match=words):
        launch_files(trained(**changes), target)


def test_half_the_layers_again_are_half_of_every_chunk() -> None:
    """Megatron-LM counts them in each chunk of an interleaved stage: 80 layers in 2 stages of 5 chunks are 8."""
    (train, _) = launch_files(trained(recomputed=0.5), "megatron")
    assert "--recompute-method block \\\n  --recompute-num-layers 4 " in train.text


def test_without_stages_a_pass_is_a_micro_batch() -> None:
    (train, _) = launch_files(trained(pp=1, vp=1, dp=8, schedule="", micro_batch=2), "torchtitan")
    assert "--training.local_batch_size 2 " in train.text


def test_kernels_are_launched_through_one_queue_only_before_blackwell() -> None:
    older, newer = (launch_files(trained(one_queue=o), "megatron")[0].text for o in (True, False))
    assert "export CUDA_DEVICE_MAX_CONNECTIONS=1\ntorchrun" in older
    assert "CUDA_DEVICE_MAX_CONNECTIONS" not in newer


def test_only_the_run_itself_writes_checkpoints() -> None:
    (train, check) = launch_files(trained(save_steps=12), "megatron")
    assert "--save-interval 12 " in train.text
    assert "--save" not in check.text


def test_half_the_layers_again_are_all_of_them_where_there_is_nothing_between() -> None:
    (train, _) = launch_files(trained(recomputed=0.5), "torchtitan")
    assert "# the plan runs 50% of the layers again" in train.text
    assert train.text.endswith("activation-checkpoint:full\n")


def test_replicas_without_a_cut_optimiser() -> None:
    assert "shard_optimizer_over_data" not in launch_files(trained(sharding="none"), "maxtext")[0].text


def test_llama_cpp_gives_each_device_the_layers_of_a_stage() -> None:
    stages = served(runtime="llama.cpp", tp=1, pp=4)
    assert "--split-mode layer " in launch_files(stages, "llama.cpp")[0].text
    with pytest.raises(ChipwiseError, match="the plan has tp 4"):
        launch_files(served(runtime="llama.cpp"), "llama.cpp")


def test_nodes_are_chosen_by_a_label_where_it_is_known() -> None:
    spec = served()
    other = replace(spec, machine=replace(spec.machine, chip="rtx-4090"))
    known, unknown = (launch_files(s, "kubernetes")[0].text for s in (spec, other))
    assert 'nvidia.com/gpu.product: "NVIDIA-H100-80GB-HBM3"' in known
    assert "nodeSelector:" not in unknown
    assert "# add a nodeSelector" in unknown
