"""Launch files equal the kept ones; every option that they use is in the table of documented options.

`CHIPWISE_WRITE_GOLDEN=1 python -m pytest tests/report/launch` writes them anew.
"""

from __future__ import annotations

import ast
import json
import math
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from chipwise.catalog.tools import get_tool, load_tools, tools_of
from chipwise.errors import ChipwiseError
from chipwise.report.launch.command import Command
from chipwise.report.launch.frameworks import FRAMEWORKS
from chipwise.report.launch.megatron import stages
from chipwise.report.launch.spec import Guess, LaunchMachine, LoopSpec, Rope, ServeSpec, Spec, TrainSpec
from chipwise.report.launch.targets import TARGETS, launch_files, own_tool
from report.launch.plans import NEURON, PLANS, RUNTIMES, TPU, deep, plan_for, served, trained

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


RAY = {"--head", "--port", "--address"}
"""What joins hosts before a loop: `ray start`, python/ray/scripts/scripts.py."""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", PLANS)
def test_options_are_documented(name: str, target: str) -> None:
    """Read back from the text, whatever the code that wrote it checked."""
    known = {option for tool in load_tools().values() for option in tool.options} | RAY
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
            if script.startswith("#!/usr/bin/env python3\n"):
                compile(script, target, "exec")
                continue
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
        ("mlx", {"kv": ""}, "the plan has tp 4"),
        ("mlx", {"kv": "fp8", "tp": 1}, "no cache in fp8"),
        ("neuronx", {"kv": "", "pp": 2}, "the plan has pp 2"),
        ("neuronx", {"kv": "", "guess": Guess(3, module=False)}, "not configured here to guess"),
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
        ("megatron", {"schedule": "zb-v"}, "no schedule of Megatron-LM"),
        ("megatron", {"sharding": "fsdp"}, "fsdp.* and has stages"),
        ("megatron", {"sharding": "fsdp", "pp": 1, "offload": 1.0}, "fsdp.* and has the optimiser"),
        ("megatron", {"sharding": "fsdp", "pp": 1, "shard_ranks": 2}, "over 2 of 4 replicas"),
        ("megatron", {"machine": TPU}, "does not run on tpu-v5p"),
        ("torchtitan", {"machine": TPU}, "does not run on tpu-v5p"),
        ("torchrun", {"machine": TPU}, "does not run on tpu-v5p"),
        ("megatron", {"machine": NEURON}, "does not run on trainium2"),
        ("torchtitan", {"machine": NEURON}, "does not run on trainium2"),
        ("maxtext", {"machine": NEURON}, "does not run on trainium2"),
        ("megatron", {"tuned": "lora"}, "trains lora adapters"),
        ("torchtitan", {"tuned": "full"}, "trains all weights"),
        ("terraform", {"machine": TPU}, "rented as TPU VMs"),
        ("kubernetes", {"machine": TPU}, "no image of a trainer for tpu-v5p"),
        ("maxtext", {"pp": 3, "vp": 1}, "cut evenly into 3"),
        ("maxtext", {"global_batch": 28}, "a multiple of 2 micro-batches"),
        ("maxtext", {"ep": 8}, "the plan has dp 4"),
        ("maxtext", {"dp": 6, "sharding": "fsdp"}, "over 4 of 6 replicas"),
        ("torchtitan", {"dp": 6, "sharding": "fsdp"}, "over 4 of 6 replicas"),
        ("torchtitan", {"offload": 0.5}, "optimiser in host memory"),
        ("maxtext", {"offload": 0.5}, "optimiser in host memory"),
        ("torchtitan", {"vp": 32}, "cut evenly into 64"),
        ("torchtitan", {"model": "meta-llama/Llama-3.1-405B"}, "train in bf16"),
    ],
)
def test_training_that_a_tool_cannot_be_told_is_refused(target: str, changes: dict[str, object], words: str) -> None:
    with pytest.raises(ChipwiseError, match=words):
        launch_files(trained(**changes), target)


@pytest.mark.parametrize("name", PLANS)
def test_a_refusal_names_the_tools_that_start_the_plan(name: str) -> None:
    """Each tool that is named starts the plan, and each that starts it is named."""
    spec = PLANS[name]
    texts = {target: started(spec, target) for target in TARGETS}
    able = {text: target for target, text in texts.items() if not text.startswith("refused: ")}
    assert able
    for text in texts.values():
        if text.startswith("refused: "):
            said = text.partition("launch it --for ")[2].rstrip(")").removesuffix(" with a program of your own")
            assert said.split(", ") == list(able.values())  # of two names of a tool its own


def started(spec: Spec, target: str) -> str:
    try:
        return launch_files(spec, target)[0].text
    except ChipwiseError as error:
        return f"refused: {error}"


def test_a_plan_that_no_tool_starts_says_so() -> None:
    with pytest.raises(ChipwiseError, match=r"plan with --layout schedule=1f1b; launch it --for torchtitan"):
        launch_files(trained(schedule="zb-v"), "megatron")
    slice_ = trained(machine=TPU, offload=0.5)
    with pytest.raises(ChipwiseError, match=r"plan with --layout offload=0; no other tool here starts it"):
        launch_files(slice_, "maxtext")


@pytest.mark.parametrize(
    ("layers", "pp", "vp", "text"),
    [
        (61, 32, 1, "Et|(t*2|)*29t|tL"),
        (126, 16, 8, "E|(t|)*126L"),
        (126, 8, 8, "Et|(t*2|)*62tL"),
        (5, 2, 1, "Et*3|t*2L"),
        (7, 4, 2, "Et|(t|)*6L"),
        (3, 8, 1, "E|(t|)*3(|)*3L"),
    ],
)
def test_uneven_stages(layers: int, pp: int, vp: int, text: str) -> None:
    assert stages(layers, pp, vp) == text


@given(layers=st.integers(1, 130), pp=st.integers(2, 32), vp=st.integers(1, 8))
def test_stages_hold_every_layer_once_and_none_much_more_than_another(layers: int, pp: int, vp: int) -> None:
    """Read back as Megatron-Core's documentation says: products first of groups, then of letters."""
    text = re.sub(r"\(([^)]+)\)\*(\d+)", lambda m: m[1] * int(m[2]), stages(layers, pp, vp))
    parts = re.sub(r"(.)\*(\d+)", lambda m: m[1] * int(m[2]), text).split("|")
    counts = [part.count("t") for part in parts]
    assert len(parts) == pp * vp
    assert (parts[0][0], parts[-1][-1]) == ("E", "L")
    assert sum(counts) == layers
    assert max(counts) - min(counts) <= 1
    assert counts[-1] == min(counts)


@pytest.mark.parametrize(("tp", "ep", "cut"), [(4, 16, "1"), (8, 2, "4"), (1, 16, None), (4, 1, None)])
def test_experts_are_cut_only_where_they_are_fewer_than_devices_of_a_layer(tp: int, ep: int, cut: str | None) -> None:
    """Megatron-LM cuts experts as it cuts layers unless it is told; the plan holds 1 / max(ep, tp) of them."""
    text = launch_files(deep(tp=tp, ep=ep), "megatron")[0].text
    said = re.search(r"--expert-tensor-parallel-size (\d+)", text)
    assert (said and said[1]) == cut


@pytest.mark.parametrize(("sharding", "strategy"), [("fsdp", "optim_grads_params"), ("zero-2", "optim_grads")])
def test_what_megatron_cuts(sharding: str, strategy: str) -> None:
    spec = trained(sharding=sharding, pp=1, vp=1, dp=8, shard_ranks=8, schedule="")
    assert f"--data-parallel-sharding-strategy {strategy} " in launch_files(spec, "megatron")[0].text


def test_megatron_cuts_weights_without_one_queue() -> None:
    spec = trained(sharding="fsdp", pp=1, vp=1, dp=8, shard_ranks=8, schedule="")
    text = launch_files(spec, "megatron")[0].text
    assert "--use-megatron-fsdp \\\n  --data-parallel-sharding-strategy optim_grads_params " in text
    assert "--ckpt-format fsdp_dtensor " in text
    assert "CUDA_DEVICE_MAX_CONNECTIONS" not in text


def test_wrappers_say_what_trains_and_why() -> None:
    text = launch_files(trained(schedule="zb-v"), "skypilot")[0].text
    assert "# trained with torchtitan" in text
    assert "# not by Megatron-LM: zb-v is no schedule" in text
    assert "-m torchtitan.train" in text


def test_what_a_trainer_must_be_told_is_asked_for() -> None:
    for target, words in (("skypilot", 'envs:\n  PROGRAM: ""'), ("kubernetes", '- name: "PROGRAM"')):
        assert words in launch_files(replace(PLANS["adapters"], tp=4, dp=2, sharding="none"), target)[0].text
    main = launch_files(replace(PLANS["adapters"], tp=4, dp=2, sharding="none"), "terraform")[0].text
    assert "PROGRAM" not in main  # nobody could fill it in there: train.sh is started by hand


def test_positions_that_megatron_does_not_stretch_are_named() -> None:
    odd = replace(deep().network, rope=Rope(1e4, "dynamic", 4.0))
    text = launch_files(deep(network=odd), "megatron")[0].text
    assert "# positions are stretched by dynamic in the model's configuration" in text


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


@pytest.mark.parametrize(("share", "again"), [(0.06, 1), (0.13, 1), (0.3, 2)])
def test_megatron_runs_the_nearest_number_of_layers_again_and_at_least_one(share: float, again: int) -> None:
    (train, _) = launch_files(trained(recomputed=share), "megatron")
    assert (
        f"--recompute-granularity full \\\n  --recompute-method block \\\n  --recompute-num-layers {again} "
        in train.text
    )
    assert f"# the plan runs {share:.0%} of the layers again, Megatron-LM {again} of 8 in each part" in train.text


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_share_that_megatron_can_be_told_needs_no_note(share: float) -> None:
    assert "of the layers again" not in launch_files(trained(recomputed=share), "megatron")[0].text


@pytest.mark.parametrize(("share", "said"), [(0.13, True), (1.0, False)])
def test_maxtext_runs_all_layers_again_and_says_so(share: float, said: bool) -> None:
    text = launch_files(replace(PLANS["slice"], recomputed=share), "maxtext")[0].text  # type: ignore[call-arg]
    assert "remat_policy=full" in text
    assert ("# the plan runs 13% of the layers again, MaxText can only do all" in text) == said


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"cp": 2, "dp": 128, "ep": 128, "sharding": "fsdp", "shard_ranks": 256},
        {"dp": 256, "ep": 16, "sharding": "fsdp", "shard_ranks": 64},
        {"dp": 256, "ep": 16, "sharding": "fsdp", "shard_ranks": 4},
        {"tp": 4, "dp": 64, "ep": 8, "sharding": "zero-1", "shard_ranks": 64},
    ],
)
def test_axes_of_maxtext_multiply_to_the_devices(changes: dict[str, object]) -> None:
    """Experts are spread over an axis of their own: replicas that share them are not counted twice."""
    alone = {"tp": 1, "pp": 1, "vp": 1, "dp": 256, "schedule": ""}
    spec = trained(**{**alone, **changes, "machine": LaunchMachine("tpu-v6e", "google", 256, 8, ())})
    text = launch_files(spec, "maxtext")[0].text
    axes = re.findall(r"ici_(\w+?)_parallelism=(\d+)", text)
    assert math.prod(int(n) for _, n in axes) == 256
    assert dict(axes).get("expert", "1") == str(spec.ep)


def test_replicas_without_a_cut_optimiser() -> None:
    assert "shard_optimizer_over_data" not in launch_files(trained(sharding="none"), "maxtext")[0].text


def test_llama_cpp_downloads_what_the_table_of_desks_knows_and_names_a_file_to_be_made_else() -> None:
    one = served(runtime="llama.cpp", tp=1, pp=4, precision="q5_k_m", kv="bf16")
    known = launch_files(replace(one, model="meta-llama/Llama-3.2-3B-Instruct"), "llama.cpp")[0].text
    assert "-hf unsloth/Llama-3.2-3B-Instruct-GGUF:Q5_K_M" in known
    assert "--model" not in known
    assert "--cache-type" not in known
    own = launch_files(replace(one, model="./mine", kv="int8"), "llama.cpp")[0].text
    assert "--model mine-Q5_K_M.gguf" in own
    assert "# mine-Q5_K_M.gguf is a file of your own: make it with" in own
    assert "--cache-type-k q8_0" in own


def test_llama_cpp_gives_each_device_the_layers_of_a_stage() -> None:
    stages = served(runtime="llama.cpp", tp=1, pp=4)
    assert "--split-mode layer " in launch_files(stages, "llama.cpp")[0].text
    with pytest.raises(ChipwiseError, match="the plan has tp 4"):
        launch_files(served(runtime="llama.cpp"), "llama.cpp")


def test_weights_of_a_mac_are_made_narrower_once_and_asked_for_by_their_name() -> None:
    mac = PLANS["mac"]
    assert isinstance(mac, ServeSpec)
    serve, verify = (file.text for file in launch_files(mac, "mlx"))
    assert serve.index("mlx_lm.convert") < serve.index("mlx_lm.server \\\n  --model Qwen3-8B-mlx_4bit")
    assert "--served-model-name Qwen3-8B-mlx_4bit" in verify
    for changes in ({"stored": "mlx_4bit"}, {"precision": "bf16"}):
        as_stored = [file.text for file in launch_files(replace(mac, **changes), "mlx")]
        assert "mlx_lm.convert" not in as_stored[0]
        assert "--served-model-name" not in as_stored[1]
    assert "--q-mode mxfp4" in launch_files(replace(mac, precision="mxfp4"), "mlx")[0].text


def test_pictures_of_a_mac_are_made_by_mflux_however_it_is_called() -> None:
    pictures = PLANS["pictures"]
    (file,) = launch_files(pictures, "mlx")
    assert launch_files(pictures, "mflux") == (file,)
    assert all(words in file.text for words in ("--seed 1 2 ", "--quantize 8 ", "--guidance 3.5 "))
    for changes, words in (
        ({"model": "sdxl"}, "no command in mflux.*flux-dev"),
        ({"runtime": "eager"}, "runs on MLX"),
        ({"precision": "fp8"}, "does not run fp8"),
        ({"cached": 0.3}, "makes all steps"),
    ):
        with pytest.raises(ChipwiseError, match=words):
            launch_files(replace(pictures, **changes), "mflux")


def test_clips_are_served_by_sglang_however_it_is_called() -> None:
    served = PLANS["studio"]
    serve, verify = launch_files(served, "sglang")
    assert all(words in serve.text for words in ("--num-gpus 4", "--ulysses-degree 2", "--enable-cfg-parallel"))
    assert all(words in verify.text for words in ("sglang-video", "--num-frames 81", "--num-inference-steps 40"))
    slow = launch_files(replace(served, offload="sequential", spread=()), "sglang")[0].text
    assert "--dit-layerwise-offload true" in slow
    assert "--dit-cpu-offload false" in slow
    for changes, words in (
        ({"model": "stable-audio-open"}, "no weights"),
        ({"runtime": "compile"}, "its own pipelines"),
        ({"precision": "fp8"}, "file of yours"),
        ({"cached": 0.3}, "skips no steps"),
        ({"spread": (("pipefusion", 2),)}, "by pipefusion"),
    ):
        with pytest.raises(ChipwiseError, match=words):
            launch_files(replace(served, **changes), "sglang-diffusion")


def test_a_loop_is_told_to_verl() -> None:
    one, apart = PLANS["loop"], PLANS["rollouts"]
    train, verify = (file.text for file in launch_files(one, "verl"))
    assert ("total_training_steps=500" in train, "total_training_steps=3" in verify) == (True, True)
    said = ("param_offload=True", '"/16.0 GPU"', "adv_estimator=grpo", "ppo_max_token_len_per_gpu=17024")
    assert all(text in train for text in (*said, "recompute_granularity=selective"))
    full = launch_files(replace(one, layout=replace(one.layout, recompute="50% of layers", cp=2)), "verl")[0].text
    assert all(text in full for text in ("recompute_method=uniform", "ppo_max_token_len_per_gpu=8512"))
    other = launch_files(apart, "verl")[0].text
    said = ("strategy=fsdp2", "hybrid_engine=False", "trainer.nnodes=2", "rollout.nnodes=1", "quantization=fp8")
    assert all(text in other for text in (*said, "adv_estimator=gae", "model.lora_rank=16"))
    assert "param_offload" not in other
    assert isinstance(one, LoopSpec)
    for changes, words in (
        ({"runtime": "mlx"}, "does not sample with mlx"),
        ({"machine": TPU}, "does not run on tpu-v5p"),
        ({"precision": "fp8"}, "does not train in fp8"),
        ({"sample_devices": 4}, "whole hosts"),
        ({"layout": replace(one.layout, dp=6)}, "not among 6 ranks"),
    ):
        with pytest.raises(ChipwiseError, match=words):
            launch_files(replace(one, **changes), "verl")
    with pytest.raises(ChipwiseError, match=r"this plan is a loop.*launch it --for verl"):
        launch_files(one, "vllm")
    assert own_tool(one, ()) == "verl"


def test_a_loop_is_told_to_nemo_rl() -> None:
    one, apart = PLANS["loop"], PLANS["rollouts"]
    assert isinstance(one, LoopSpec)
    assert isinstance(apart, LoopSpec)
    train, verify = (file.text for file in launch_files(one, "nemo-rl"))
    assert ("max_num_steps=500" in train, "max_num_steps=3" in verify) == (True, True)
    assert ("checkpointing.enabled=true" in train, "checkpointing.enabled=false" in verify) == (True, True)
    said = ("grpo_math_1B_megatron.yaml", "megatron_cfg.enabled=true", "dtensor_cfg.enabled=false", '"/16.0 GPU"')
    said += ("sequence_packing.enabled=true", "sequence_parallel=true", "megatron_cfg.optimizer.lr=1e-06")
    assert all(text in train for text in said)
    assert "async_grpo" not in train
    other = launch_files(replace(apart, critic=False), "nemo-rl")[0].text
    said = (
        "grpo_math_1B.yaml",
        "dtensor_cfg.lora_cfg.dim=16",
        "async_grpo.enabled=true",
        "colocated.enabled=false",
        "resources.num_nodes=1",
        "vllm_cfg.precision=fp8",
        "cluster.num_nodes=3",
    )
    assert all(text in other for text in said)
    taught = launch_files(replace(one, teacher="Qwen/Qwen3-32B", reference=False), "nemo-rl")[0].text
    said = ("run_distillation.py", "++teacher.model_name=Qwen/Qwen3-32B", "distillation.num_prompts_per_step=")
    assert all(text in taught for text in said)
    assert "grpo" not in taught
    for changes, words in (
        ({"critic": True}, "trains no critic here"),
        ({"runtime": "sglang"}, "does not sample with sglang.*--runtime vllm"),
        ({"method": "lora"}, "adapters under FSDP"),
        ({"layout": replace(one.layout, vp=2)}, "no virtual stages"),
        ({"machine": TPU}, "does not run on tpu-v5p"),
    ):
        with pytest.raises(ChipwiseError, match=words):
            launch_files(replace(one, **changes), "nemo-rl")
    with pytest.raises(ChipwiseError, match=r"learns from no teacher here.*--for nemo-rl"):
        launch_files(replace(one, teacher="Qwen/Qwen3-32B"), "verl")


def test_without_a_name_a_plan_is_started_by_its_own_software() -> None:
    chosen = {name: own_tool(PLANS[name], tools_of(getattr(PLANS[name], "runtime", ""))) for name in PLANS}
    asked = ("dense", "neuron", "local", "mac", "clips", "pictures", "studio")
    own = ["vllm", "neuronx", "llama.cpp", "mlx", "diffusers", "mflux", "sglang-diffusion"]
    assert [chosen[name] for name in asked] == own
    assert own_tool(PLANS["adapters"], ("axolotl",)) == "axolotl"


def test_nodes_are_chosen_by_a_label_where_it_is_known() -> None:
    spec = served()
    other = replace(spec, machine=replace(spec.machine, chip="rtx-4090"))
    known, unknown = (launch_files(s, "kubernetes")[0].text for s in (spec, other))
    assert 'nvidia.com/gpu.product: "NVIDIA-H100-80GB-HBM3"' in known
    assert "nodeSelector:" not in unknown
    assert "# add a nodeSelector" in unknown


FORMATS = {".json": json.loads, ".yml": yaml.safe_load, ".yaml": yaml.safe_load, ".py": ast.parse}


def written(script: str) -> dict[str, object]:
    """The files that a script writes, by name, as parsers of their own languages read them."""
    found = re.findall(r"^cat > (\S+) <<'(\w+)'\n(.*?)^\2$", script, re.DOTALL | re.MULTILINE)
    return {name: FORMATS[Path(name).suffix](text) for name, _, text in found}


def leaf(node: object, name: str) -> object:
    """The value of a key anywhere in a document; None: it is not there."""
    if not isinstance(node, dict):
        return None
    return node.get(name, next((v for part in node.values() if (v := leaf(part, name)) is not None), None))


def plan_of(tree: ast.Module) -> dict[str, object]:
    """The dictionary that a program of Python begins with."""
    assigned = next(n for n in tree.body if isinstance(n, ast.Assign) and getattr(n.targets[0], "id", "") == "PLAN")
    return ast.literal_eval(assigned.value)  # type: ignore[no-any-return]


MICRO = ("train_micro_batch_size_per_gpu", "device_train_microbatch_size", "per_device_parallelism", "micro_batch_size")
STEP = ("train_batch_size", "global_train_batch_size", "global_batch_size", "global_batch")


@pytest.mark.parametrize("target", FRAMEWORKS)
def test_frameworks_are_told_the_plan(target: str) -> None:
    """What they write is read by parsers of its own, and holds the plan's batch, sequence, steps and recomputation;
    what a short run logs is held against the prediction."""
    started = 0
    for name in PLANS:
        spec = plan_for(name, target)
        try:
            train, verify = launch_files(spec, target)
        except ChipwiseError:
            continue
        assert isinstance(spec, TrainSpec)
        started += 1
        files = {n: plan_of(f) if isinstance(f, ast.Module) else f for n, f in written(train.text).items()}
        words = shlex.split(train.text, comments=True)
        told = dict(w.split("=", 1) for w in words if re.match(r"--\w+=", w))
        told |= {a: b for a, b in pairwise(words) if a.startswith("--") and not b.startswith("--")}
        micro = [v for f in files.values() for n in MICRO if (v := leaf(f, n)) is not None]
        assert set(micro) <= {spec.micro_batch}
        batches = [v for f in files.values() for n in STEP if (v := leaf(f, n)) is not None]
        assert set(batches) <= {spec.global_batch}
        per_rank = told.get("--per_device_train_batch_size") or told.get("--batch_size")
        if per_rank is not None:
            passes = int(told.get("--gradient_accumulation_steps", 1))
            assert int(per_rank) * passes * spec.dp == spec.global_batch
        else:
            assert batches
        texts = " ".join([*map(repr, files.values()), train.text])
        assert str(spec.steps) in texts
        assert str(spec.seq) in texts or spec.tuned or target == "axlearn"  # whose named configurations say it
        assert "predicted" in train.text.split("set -euo")[0]
        checked = get_tool(target).logged
        assert ("tee verify.log" in verify.text) == bool(checked)
    assert started


@pytest.mark.parametrize(
    ("tool", "log", "measured"),
    [
        ("megatron", "iteration {}/ 30 | elapsed time per iteration (ms): 2400.0 |", 2.4),
        ("maxtext", "completed step: {}, seconds: 2.400, TFLOP/s/device: 135.1", 2.4),
        ("deepspeed", "{{'train_runtime': 72.0, 'step': {}}}", 2.4),
        ("trl", "{{'train_runtime': '72.0', 'epoch': {}}}", 2.4),
        ("fms-fsdp", "current step time: 2.4  # {}", 2.4),
        ("olmo-core", "    throughput/device/BPS=0.41666 {}", 2.4),
        ("llm-foundry", "Train throughput/batches_per_sec: 0.41666 {}", 2.4),
        ("megatron", "nothing {}", None),
    ],
)
def test_a_short_run_is_held_against_the_prediction(
    tool: str, log: str, measured: float | None, tmp_path: Path
) -> None:
    """The program behind the run reads what the trainer logs, and says whether it lies within the interval."""
    target = tool if tool != "trl" else "deepspeed"
    text = launch_files(plan_for("sharded", target), target)[1].text
    program = text.split("<<'CHECK'\n")[1].split("CHECK\n")[0]
    (tmp_path / "verify.log").write_text("\n".join(log.format(i) for i in range(30)))
    done = subprocess.run(
        [sys.executable, "-", "verify.log"], input=program, text=True, capture_output=True, cwd=tmp_path, check=True
    )
    said = "2.5 s [2.125 to 3.5] predicted"
    assert said in done.stdout
    assert ("2.4 s measured, ratio 0.96, within" in done.stdout) == (measured is not None)


@pytest.mark.parametrize(
    ("name", "target"),
    [("NeMo AutoModel", "automodel"), ("nemo-automodel", "automodel"), ("LLaMA_Factory", "llama-factory")],
)
def test_tools_are_known_as_people_call_them(name: str, target: str) -> None:
    assert launch_files(plan_for("adapters", name), name) == launch_files(plan_for("adapters", target), target)


def test_an_optimiser_that_a_tool_is_not_told_is_refused() -> None:
    """One that a user chose; what Transformers knows is written by its name."""
    chosen = replace(plan_for("adapters", "trl"), optimizer="adafactor")  # type: ignore[arg-type]
    assert "--optim adafactor" in launch_files(chosen, "trl")[0].text
    with pytest.raises(ChipwiseError, match=r"optimizer=adafactor.*--memory optimizer=adamw"):
        launch_files(replace(plan_for("sharded", "x"), optimizer="adafactor"), "deepspeed")  # type: ignore[arg-type]


def test_files_keep_gradients_and_losses_as_the_plan_counts_them() -> None:
    def text(target: str, **changes: object) -> str:
        return launch_files(trained(**changes), target)[0].text

    lean = text("megatron", gradients="bf16", loss="fused")
    assert "--grad-reduce-in-bf16" in lean
    assert "--cross-entropy-loss-fusion" in lean
    plain = text("megatron", gradients="fp32", loss="whole")
    assert "--grad-reduce-in-bf16" not in plain
    assert "--cross-entropy-loss-fusion" not in plain


def test_four_bits_that_are_cut_are_stored_as_what_is_cut_with_them() -> None:
    card = plan_for("card", "trl")
    assert isinstance(card, TrainSpec)
    assert "--bnb_4bit_quant_storage" not in launch_files(card, "trl")[0].text
    two = replace(card, machine=replace(card.machine, devices=2, per_host=2), dp=2, sharding="fsdp", shard_ranks=2)
    assert "--bnb_4bit_quant_storage bfloat16" in launch_files(two, "trl")[0].text
    waiting = launch_files(replace(two, offload=1.0), "trl")[0].text
    assert "--bnb_4bit_quant_storage bfloat16" in waiting
    assert '"lr": "auto"' in waiting  # of DeepSpeed's own Adam, else 1e-3


def alone(**changes: object) -> TrainSpec:
    """A full fine-tune on one card."""
    card = plan_for("card", "trl")
    assert isinstance(card, TrainSpec)
    return replace(card, **({"tuned": "full", "optimizer": "adamw-bf16", "master": False} | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("target", "changes", "said"),
    [
        ("trl", {}, ("--dtype bfloat16", "--optim adamw_torch")),
        ("trl", {"optimizer": "adamw-8bit"}, ("--dtype bfloat16", "--optim adamw_8bit")),
        ("trl", {"optimizer": "adamw", "master": True}, ("--dtype float32", "--optim adamw_torch")),
        ("llama-factory", {}, ("--pure_bf16 true", "--optim adamw_torch")),
        ("llama-factory", {"optimizer": "", "master": True}, ("--bf16 true",)),
        ("axolotl", {}, ('bf16: "full"', 'optimizer: "adamw_torch"')),
        ("axolotl", {"optimizer": "adamw-8bit"}, ('bf16: "full"', 'optimizer: "adamw_8bit"')),
        ("torchtune", {}, ("_component_=torch.optim.AdamW", "optimizer_in_bwd=False")),
        (
            "torchtune",
            {"optimizer": "adamw-8bit", "gradients": "released"},
            ("=bitsandbytes.optim.PagedAdamW8bit", "optimizer_in_bwd=True"),
        ),
        ("megatron", {"master": True}, ("--use-precision-aware-optimizer", "--exp-avg-sq-dtype bf16")),
    ],
)
def test_states_are_kept_as_the_plan_keeps_them(target: str, changes: dict[str, object], said: tuple[str, ...]) -> None:
    text = launch_files(alone(**changes), target)[0].text
    assert all(part in text for part in said)


@pytest.mark.parametrize(
    ("target", "changes", "words"),
    [
        ("automodel", {}, "not configured here for optimizer=adamw-bf16, only for adamw"),
        ("deepspeed", {"optimizer": "adamw-8bit"}, "not configured here for optimizer=adamw-8bit"),
        ("megatron", {}, "keeps a copy of the weights in fp32"),
        ("torchtune", {"optimizer": "adafactor"}, "only for adamw-bf16, adamw-8bit"),
        ("torchtune", {"optimizer": "adamw-8bit", "tuned": "lora"}, "8-bit states of all weights on one"),
    ],
)
def test_states_that_a_tool_does_not_keep_are_refused(target: str, changes: dict[str, object], words: str) -> None:
    with pytest.raises(ChipwiseError, match=words):
        launch_files(alone(**changes), target)


def test_weights_that_are_cut_have_states_in_fp32() -> None:
    two = {"dp": 2, "sharding": "fsdp", "shard_ranks": 2, "machine": LaunchMachine("rtx-4090", "nvidia", 2, 2)}
    for target, changes in (
        ("llama-factory", {}),
        ("trl", {"optimizer": "adamw-8bit"}),
        ("axolotl", {"optimizer": "adamw-8bit"}),
    ):
        with pytest.raises(ChipwiseError, match=r"16 bits.*optimizer=adamw,master=yes"):
            launch_files(alone(**two, **changes), target)
    for target in ("trl", "axolotl", "deepspeed"):  # DeepSpeed cuts what FSDP would keep in fp32
        text = launch_files(alone(**two), target)[0].text
        assert '"bf16_master_weights_and_grads": true' in text, target
        assert '"stage": 3' in text, target
    eight = launch_files(alone(**two, optimizer="adamw-8bit", master=True), "axolotl")[0].text
    assert 'optimizer: "adamw_torch_8bit"' in eight


def test_torchtitan_keeps_states_of_16_bits_beside_weights_or_alike() -> None:
    sharded = plan_for("sharded", "torchtitan")
    assert isinstance(sharded, TrainSpec)
    lean = replace(sharded, optimizer="adamw-bf16")
    text = launch_files(lean, "torchtitan")[0].text
    assert "--optimizer.implementation fused_opt_states_bf16" in text
    assert "--training.dtype bfloat16" in launch_files(replace(lean, master=False), "torchtitan")[0].text


@pytest.mark.parametrize(
    ("target", "name", "changes", "said"),
    [
        ("megatron", "deep", {"dispatch_by": "deepep"}, ("dispatcher-type flex", "backend deepep")),
        ("megatron", "deep", {"dispatch_by": "overlapped", "vp": 2}, ("--overlap-moe-expert-parallel-comm",)),
        ("megatron", "train", {"attention_by": "cudnn"}, ("--attention-backend fused",)),
        ("trl", "card", {"attention_by": "flash2"}, ("--attn_implementation flash_attention_2",)),
        ("llama-factory", "card", {"attention_by": "flash3"}, ("--flash_attn fa3",)),
        ("axolotl", "card", {"attention_by": "eager"}, ('attn_implementation: "eager"',)),
        ("olmo-core", "sharded", {"attention_by": "flash3"}, ("'attention': 'flash_3'",)),
        (
            "torchtitan",
            "sharded",
            {"attention_by": "cudnn"},
            ("has attention=cudnn: set it yourself, no option of torchtitan",),
        ),
        ("trl", "card", {"dispatch_by": "deepep"}, ("has dispatch=deepep: set it yourself, no option of TRL",)),
    ],
)
def test_kernels_that_are_fixed_by_name_are_told_or_noted(
    target: str, name: str, changes: dict[str, object], said: tuple[str, ...]
) -> None:
    plan = plan_for(name, target)
    assert isinstance(plan, TrainSpec)
    text = launch_files(replace(plan, **({"recomputed": 0.0} | changes)), target)[0].text  # type: ignore[arg-type]
    assert all(part in text for part in said)
    assert ": set it yourself, no option" not in launch_files(plan, target)[0].text


def test_overlapped_dispatch_asks_for_what_megatron_overlaps() -> None:
    plan = plan_for("deep", "megatron")
    assert isinstance(plan, TrainSpec)
    with pytest.raises(ChipwiseError, match=r"recompute=none, and pp=1 or a vp"):
        launch_files(replace(plan, dispatch_by="overlapped", recomputed=1.0), "megatron")


def test_tools_are_given_the_objectives_that_they_are_told() -> None:
    sharded = plan_for("sharded", "deepspeed")
    assert isinstance(sharded, TrainSpec)
    masked = replace(sharded, objective="masked", network=replace(sharded.network, causal=False))
    for target in ("megatron", "llm-foundry"):
        with pytest.raises(ChipwiseError, match=r"not for masked \(.*launch it --for deepspeed, torchrun"):
            launch_files(masked, target)
    text = launch_files(masked, "deepspeed")[0].text
    assert "run_mlm.py" in text
    assert "--max_seq_length" in text
    assert "--block_size" not in text
    assert "PROGRAM" in launch_files(masked, "torchrun")[0].text


def test_pairs_are_counted_as_trainers_count_them() -> None:
    adapters = plan_for("adapters", "trl")
    assert isinstance(adapters, TrainSpec)
    pairs = replace(adapters, objective="dpo", together=2, micro_batch=4, global_batch=64 * adapters.dp)
    text = launch_files(pairs, "trl")[0].text
    assert "trl.scripts.dpo" in text
    assert "--per_device_train_batch_size 2 " in text
    assert "--packing" not in text
    whole = replace(
        pairs, objective="contrastive-cached", tuned="full", optimizer="", gradients="bf16", sharding="zero-1"
    )
    text = launch_files(whole, "sentence-transformers")[0].text
    assert "'pairs': 32" in text
    assert "'mini_batch': 2" in text
    compile(text.partition("<<'END'\n")[2].partition("\nEND")[0], "embed.py", "exec")


def test_conversations_are_given_a_template() -> None:
    text = launch_files(plan_for("adapters", "axolotl"), "axolotl")[0].text
    assert 'chat_template: "tokenizer_default_fallback_chatml"' in text
    sharded = plan_for("sharded", "megatron")
    assert isinstance(sharded, TrainSpec)
    tuned = replace(sharded, tuned="full", recomputed=1.0, steps=382)
    train, verify = (f.text for f in launch_files(tuned, "megatron"))
    assert "--sft \\" in train
    assert "--tokenizer-type SFTTokenizer" in train
    assert "--sft" not in verify.split("set -euo")[1]
    with pytest.raises(ChipwiseError, match=r"torchtitan starts from random weights here: it reads published"):
        launch_files(tuned, "torchtitan")


def test_automodel_spreads_experts_and_stages() -> None:
    sharded = plan_for("sharded", "automodel")
    assert isinstance(sharded, TrainSpec)
    tuned = replace(sharded, tuned="full", recomputed=1.0)
    assert "ep_size: 8" in launch_files(replace(tuned, ep=8), "automodel")[0].text
    staged = replace(tuned, pp=2, dp=8, shard_ranks=8, schedule="1f1b")
    text = launch_files(staged, "automodel")[0].text
    assert all(s in text for s in ("pp_size: 2", 'pp_schedule: "1F1B"', "local_batch_size: 4"))
    with pytest.raises(ChipwiseError, match=r"cuts tp, pp, cp, ep here, the plan has vp2"):
        launch_files(replace(staged, vp=2), "automodel")


def test_neuron_is_started_by_a_program_of_its_classes() -> None:
    text = launch_files(plan_for("cores", "optimum-neuron"), "optimum-neuron")[0].text
    program = text.split("<<'END'\n")[1].split("\nEND\n")[0]
    compile(program, "neuron_plan.py", "exec")
    assert "run_clm" not in text
    assert "NeuronSFTTrainer" in program
    cores = plan_for("cores", "optimum-neuron")
    assert isinstance(cores, TrainSpec)
    staged = replace(cores, pp=2, dp=4, shard_ranks=4, schedule="1f1b")
    assert "--per_device_train_batch_size 256" in launch_files(staged, "optimum-neuron")[0].text


def test_a_full_fine_tune_learns_slowly_and_no_prompts() -> None:
    sharded = plan_for("sharded", "llm-foundry")
    assert isinstance(sharded, TrainSpec)
    tuned = replace(sharded, tuned="full", recomputed=1.0, steps=382)
    text = launch_files(tuned, "llm-foundry")[0].text
    assert all(said in text for said in ("lr: 1.0e-05", 't_warmup: "38ba"', 'name: "finetuning"'))
    for target in ("megatron", "deepspeed", "trl", "llama-factory", "axolotl", "automodel", "torchtune"):
        spec = replace(tuned, machine=replace(tuned.machine, devices=8), dp=8, shard_ranks=8)
        assert re.search(r"1(\.0)?e-05", launch_files(spec, target)[0].text), target
