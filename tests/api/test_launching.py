"""A saved plan becomes files that hold its layout, lengths and memory share."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from chipwise.api.launch_network import network_of
from chipwise.api.launching import launch, spec_of
from chipwise.api.loaded import find_chip, load
from chipwise.api.requests.desk import LocalRequest
from chipwise.api.requests.planning import EstimateRequest, PlanRequest
from chipwise.api.requests.reinforce import RlRequest
from chipwise.api.requests.training import TrainRequest
from chipwise.api.saving import answered, open_saved, save
from chipwise.catalog.runtime import get_runtime
from chipwise.catalog.snapshot import use
from chipwise.catalog.software import all_software
from chipwise.catalog.tools import get_tool
from chipwise.catalog.trainer import Trainer, get_trainer
from chipwise.errors import UsageError
from chipwise.parallel.layout import Layout
from chipwise.parallel.memory import account
from chipwise.parallel.shard import shard
from chipwise.report.launch.spec import Guess, LoopSpec, Rope, ServeSpec, TrainSpec
from chipwise.report.launch.targets import launch_files
from chipwise.report.launch.tuning import TUNERS
from chipwise.report.saved import Saved
from chipwise.units import format_seconds
from command_line import Run
from report.launch.plans import deep
from report.launch.plans import trained as trained_spec

MODEL = "meta-llama/Llama-3.1-70B"
CHIP = "h100-sxm5-80gb"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = str(tmp_path_factory.mktemp("served") / "a.json")
    asked = EstimateRequest(
        model=MODEL, chip="h100-sxm5-80gb", tp=4, precision="fp8", in_="5000", out="900", policy="memory_share=0.85"
    )
    save("estimate", asked, file)
    return file


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = str(tmp_path_factory.mktemp("trained") / "a.json")
    save("train", TrainRequest(model="meta-llama/Llama-3.1-8B", chips=CHIP, counts="64", tokens="10B"), file)
    return file


def test_a_served_plan(served: str) -> None:
    spec = spec_of(open_saved(served))
    assert isinstance(spec, ServeSpec)
    assert (spec.tp, spec.convert, spec.memory_share, spec.length) == (4, "fp8", 0.85, 6144)
    assert (spec.machine.devices, spec.machine.hosts) == (4, 1)
    (serve, verify) = launch(served, "vllm")
    assert "--tensor-parallel-size 4" in serve.text
    assert "--gpu-memory-utilization 0.85" in serve.text
    assert "--random-input-len 5000" in verify.text
    assert f"--max-concurrency {spec.concurrency}" in verify.text


@pytest.mark.parametrize(
    ("model", "runtime", "precision", "loaded", "convert"),
    [
        ("Qwen/Qwen3-32B", "trtllm", "fp8", "Qwen/Qwen3-32B-FP8", ""),
        ("Qwen/Qwen3-32B", "vllm", "fp8", "Qwen/Qwen3-32B-FP8", ""),
        ("Qwen/Qwen3-32B", "trtllm", "bf16", "Qwen/Qwen3-32B", ""),
        ("meta-llama/Llama-3.1-70B", "vllm", "fp8", "meta-llama/Llama-3.1-70B", "fp8"),
        # Instruct models alone are published so
        ("meta-llama/Llama-3.1-70B", "trtllm", "fp8", "./Llama-3.1-70B-fp8", ""),
    ],
)
def test_the_weights_of_the_plan_are_served(
    tmp_path: Path, model: str, runtime: str, precision: str, loaded: str, convert: str
) -> None:
    """Those that are published in its format, or what the software turns into it; never others in their place."""
    file = str(tmp_path / "a.json")
    asked = EstimateRequest(model=model, chip="h200-sxm-141gb", tp=2, runtime=runtime, precision=precision)
    save("estimate", asked, file)
    spec = spec_of(open_saved(file))
    assert isinstance(spec, ServeSpec)
    assert (spec.model, spec.convert) == (loaded, convert)
    said = " ".join(spec.expected)
    assert ("a checkpoint in fp8 is needed" in said) == loaded.startswith("./")
    assert f" {loaded} " in launch(file, runtime)[0].text


def test_the_check_says_what_its_client_should_measure(tmp_path: Path) -> None:
    """At a number of requests in flight vLLM's client starts them all at once: the first tokens wait for each other."""
    file = str(tmp_path / "a.json")
    asked = EstimateRequest(model="meta-llama/Llama-3.1-8B", chip=CHIP, concurrency=64.0, in_="4000", out="200")
    plain = save("estimate", asked, file).report.plans[0].ttft_s.mid
    burst = replace(asked, harness="vllm-bench").run().plans[0].ttft_s.mid
    assert burst > 1.2 * plain
    (_, verify) = launch(file, "vllm")
    (line,) = [line for line in verify.text.splitlines() if "should measure" in line]
    assert line.startswith("# this client (vllm-bench) ")
    assert f"TTFT {format_seconds(burst)} [" in line


def test_a_training_plan(trained: str) -> None:
    spec = spec_of(open_saved(trained))
    assert isinstance(spec, TrainSpec)
    n = spec.network
    assert (n.layers, n.hidden, n.ffn, n.heads, n.kv_heads, n.head_dim) == (32, 4096, 14336, 32, 8, 128)
    assert spec.tp * spec.pp * spec.cp * spec.dp == 64
    (train, verify) = launch(trained, "torchtitan")
    assert f"--parallelism.tensor_parallel_degree {spec.tp}" in train.text
    assert "--training.steps 30" in verify.text
    plan = open_saved(trained).report["plans"][0]
    assert spec.save_steps * plan["step_s"]["mid"] == pytest.approx(plan["checkpoint_s"], abs=plan["step_s"]["mid"])


def test_prompts_apart_lengths_that_differ_and_guesses(tmp_path: Path) -> None:
    file = str(tmp_path / "a.json")
    asked = PlanRequest(
        model=MODEL,
        chips="h100-sxm5-80gb",
        rate="20/s",
        runtime="vllm",
        precision="fp8",
        kv="fp8",
        cv="0.5",
        prefix_hit="30%",
        speculate="accept=0.6,draft=2",
        disaggregate=True,
    )
    plan = save("plan", asked, file).report.plans[0]
    spec = spec_of(open_saved(file))
    assert isinstance(spec, ServeSpec)
    assert spec.prompt_workers == plan.prompt_workers > 0
    assert spec.length >= (2000 + 300) * 3
    assert (spec.cached_tokens, spec.spread, spec.kv) == (600, (0.5, 0.5), "fp8")
    assert spec.guess == Guess(2, module=False)  # the model has no module of its own for it
    files = {f.name: f.text for f in launch(file, "dynamo")}
    assert '"kv_role": "kv_producer"' in files["prefill.sh"]
    assert '"kv_role": "kv_consumer"' in files["decode.sh"]
    assert "--request-rate 20 " in files["verify.sh"]
    assert "--random-prefix-len 600" in files["verify.sh"]


@pytest.mark.parametrize(
    ("chip", "runtime", "out", "admitted"),
    [
        ("h100-sxm5-80gb", "vllm", "100", 4096),
        ("h100-sxm5-80gb", "trtllm", "100", 4096),
        ("h100-sxm5-80gb", "vllm", "5000", 6144),
        ("rtx-4090", "llama.cpp", "100", 1024),  # a longer one would take memory that is reserved
    ],
)
def test_servers_admit_longer_requests_than_the_plan_has_where_that_costs_nothing(
    chip: str, runtime: str, out: str, admitted: int, tmp_path: Path
) -> None:
    file = str(tmp_path / "a.json")
    precision = "q4_k_m" if runtime == "llama.cpp" else None
    asked = EstimateRequest(
        model="meta-llama/Llama-3.1-8B", chip=chip, runtime=runtime, in_="500", out=out, precision=precision
    )
    save("estimate", asked, file)
    spec = spec_of(open_saved(file))
    assert isinstance(spec, ServeSpec)
    assert spec.length == admitted


def test_sglang_is_told_what_its_reserve_leaves(tmp_path: Path) -> None:
    """The share of the free memory that the account of the plan gives to weights and cache."""
    file = str(tmp_path / "a.json")
    asked = EstimateRequest(model="meta-llama/Llama-3.1-8B", chip="h100-sxm5-80gb", tp=1, runtime="sglang")
    save("estimate", asked, file)
    spec = spec_of(open_saved(file))
    assert isinstance(spec, ServeSpec)
    with use(open_saved(file).snapshot):
        chip = find_chip("h100-sxm5-80gb")
        policies = get_runtime("sglang").policies_on(chip)
        model = account(
            shard(load("meta-llama/Llama-3.1-8B").graph, Layout()), policies, chip.memory.usable_bytes or 0.0, 1.0
        )
    weights = float(model.of("weights"))
    free = (chip.memory.usable_bytes or 0.0) - policies.context_bytes
    assert spec.memory_share < 1.0
    assert spec.memory_share * free == pytest.approx(weights + float(model.cache_bytes), rel=1e-3)
    assert f"--mem-fraction-static {spec.memory_share:g} " in launch(file, "sglang")[0].text


def test_positions_and_norms_of_ones_own_configuration(tmp_path: Path) -> None:
    keys = dict(load("meta-llama/Llama-3.1-8B").config.data) | {"rope_theta": 7e5, "rms_norm_eps": 2e-5}
    (tmp_path / "config.json").write_text(json.dumps(keys))
    file = str(tmp_path / "a.json")
    asked = TrainRequest(model=str(tmp_path), counts="64", tokens="10B", layout="tp=2,pp=1", chips="b200-sxm")
    save("train", asked, file)
    spec = spec_of(open_saved(file))
    assert isinstance(spec, TrainSpec)
    assert (spec.network.rope, spec.network.norm_epsilon) == (Rope(7e5, "llama3", 8.0), 2e-5)
    assert not spec.one_queue  # Blackwell
    text = launch_files(replace(spec, sharding="zero-1"), "megatron")[0].text
    assert "--rotary-base 700000 " in text
    assert "--use-rope-scaling " in text
    assert "--rope-scaling-factor" not in text  # 8 is Megatron-LM's own
    assert "--norm-epsilon 2e-05 " in text
    without = replace(spec.network, rope=None)
    assert "rope_theta" in launch_files(replace(spec, sharding="zero-1", network=without), "megatron")[0].text


def test_neuron_counts_cores(tmp_path: Path) -> None:
    file = str(tmp_path / "a.json")
    save("estimate", EstimateRequest(model="meta-llama/Llama-3.1-8B", chip="trainium2", tp=2), file)
    assert "--tensor-parallel-size 8 " in launch(file, "neuronx")[0].text


def test_latent_attention_in_stages_that_no_number_divides(tmp_path: Path) -> None:
    file = str(tmp_path / "a.json")
    layout = "tp=4,pp=32,ep=16"
    asked = TrainRequest(model="deepseek-ai/DeepSeek-V3", chips=CHIP, counts="512", tokens="10B", layout=layout)
    save("train", asked, file)
    spec = spec_of(open_saved(file))
    assert isinstance(spec, TrainSpec)
    assert spec.network == deep().network
    text = launch_files(replace(spec, sharding="zero-1"), "megatron")[0].text
    assert "--pipeline-model-parallel-layout 'Et|(t*2|)*29t|tL' " in text
    assert "--moe-layer-freq '[0]*3+[1]*58' " in text


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("Qwen/Qwen3-30B-A3B", ("--qk-layernorm ", "--rotary-base 1000000 ", "--norm-epsilon 1e-06 ")),
        ("Qwen/Qwen3-0.6B", ("--qk-layernorm ", "--rotary-base 1000000 ")),
        ("Qwen/Qwen2.5-7B", ("--add-qkv-bias ",)),
        ("meta-llama/Llama-3.1-405B", ("--rotary-base 500000 ", "--use-rope-scaling ")),
        ("mistralai/Mixtral-8x7B-v0.1", ("--rotary-base 1000000 ", "--moe-router-topk 2 ")),
    ],
)
def test_a_network_in_the_options_of_megatron(model: str, options: tuple[str, ...]) -> None:
    network = network_of(model)
    text = launch_files(trained_spec(network=network, pp=1, vp=1, schedule=""), "megatron")[0].text
    assert all(option in text for option in options)
    assert ("--qk-layernorm" in text) == ("Qwen3" in model)


@pytest.mark.parametrize("model", ["openai/gpt-oss-20b", "deepseek-ai/DeepSeek-V3.2", "google/gemma-2-9b"])
def test_a_network_that_megatron_is_not_told(model: str) -> None:
    assert not network_of(model).plain
    with pytest.raises(UsageError, match="more than Megatron-LM's options describe"):
        launch_files(trained_spec(network=network_of(model)), "megatron")


@pytest.mark.parametrize("target", ["skypilot", "kubernetes", "terraform", "torchrun"])
@pytest.mark.parametrize("method", [None, "qlora", "full"])
def test_published_weights_are_trained_on(target: str, method: str | None, tmp_path: Path) -> None:
    """Wrappers never start a run from random weights for a plan that tunes."""
    file = str(tmp_path / "a.json")
    asked = TrainRequest(
        model="meta-llama/Llama-3.1-8B",
        task="finetune",
        chips=CHIP,
        counts="8",
        tokens="100M",
        method=method,
        trainer="usual",
    )
    save("train", asked, file)
    texts = [f.text for f in launch(file, target)]
    scripts = [t for t in texts if "torchrun" in t]
    assert scripts
    megatron = [t for t in scripts if "pretrain_gpt" in t]
    assert all("--pretrained-checkpoint" in t or "--mock-data" in t for t in megatron)
    what = "all weights of" if method == "full" else f"{method or 'lora'} adapters on the weights of"
    own = [t for t in scripts if f"trains {what} meta-llama/Llama-3.1-8B" in t]
    trl = [t for t in scripts if "-m trl.scripts.sft" in t and ("--use_peft" in t) == (method != "full")]
    assert len(own) + len(trl) + len(megatron) == len(scripts)
    assert bool(own) == (target == "torchrun" or not (trl or megatron))
    assert all(("--load_in_4bit" in t) == (method == "qlora") for t in trl)
    if method == "full":
        assert "--pretrained-checkpoint" in launch(file, "megatron")[0].text
        return
    others = r"launch it --for trl, llama-factory, axolotl, torchrun, skypilot, kubernetes, terraform"
    with pytest.raises(UsageError, match=others):
        launch(file, "megatron")


@pytest.mark.parametrize("method", ["lora", "qlora", "full"])
@pytest.mark.parametrize("target", [name for name in TUNERS if "next-token" in get_tool(name).objectives])
def test_tools_that_tune_are_told_the_plan(target: str, method: str, tmp_path: Path) -> None:
    """Micro-batches, passes and ranks make the plan's batch; adapters, 4 bits and steps are the plan's."""
    file = str(tmp_path / "a.json")
    model = "meta-llama/Llama-3.1-8B"
    if (target, method) == ("unsloth", "full"):
        pytest.skip("it is configured to train adapters")
    fixed = {"automodel": "zero=3", "torchtune": "zero=3", "unsloth": "recompute=full,zero=0"}.get(target, "")
    asked = TrainRequest(
        model=model, task="finetune", chips=CHIP, counts="8", tokens="100M", method=method, layout=fixed or None
    )
    save("train", asked, file)
    spec = spec_of(open_saved(file))
    assert isinstance(spec, TrainSpec)
    text = next(f.text for f in launch(file, target) if f.name == "train.sh")
    if target in ("axolotl", "automodel"):
        told = yaml.safe_load(text.split("<<'END'\n")[1].split("END\n")[0])
        told |= {name: value for part in told.values() if isinstance(part, dict) for name, value in part.items()}
    else:
        words = [w for w in shlex.split(text, comments=True) if w != "\n"]
        pairs = [w.split("=", 1) for w in words if re.match(r"\w[\w.]*=", w)]
        told = {a.lstrip("-"): b for a, b in pairwise(words) if a.startswith("--")} | dict(pairs)
    if target == "automodel":
        told["gradient_accumulation_steps"] = told["global_batch_size"] // (told["local_batch_size"] * spec.dp)
    micro = ("local_batch_size", "micro_batch_size", "per_device_train_batch_size", "batch_size")
    passes, steps = "gradient_accumulation_steps", ("max_steps", "max_steps_per_epoch")
    per_rank = int(next(told[name] for name in micro if name in told)) * int(told[passes])
    assert per_rank * spec.dp == spec.global_batch
    assert int(next(told[name] for name in steps if name in told)) == spec.steps
    narrow = ("load_in_4bit", "quantization_bit", "model.quantize_base")
    assert any(name in told for name in narrow) == (method == "qlora")
    ranked = [told[name] for name in ("lora_r", "lora_rank", "model.lora_rank", "r", "dim") if name in told]
    assert [int(r) for r in ranked] == ([] if method == "full" else [spec.rank])


def test_an_optimiser_that_is_cut_alone_is_cut_by_deepspeed() -> None:
    """FSDP has no word for it; whole on every rank it would not fit."""
    full = trained_spec(tuned="full", sharding="zero-1", pp=1, vp=1, tp=1, cp=1, ep=1, schedule="")
    text = launch_files(full, "trl")[0].text
    assert '"stage": 1' in text
    assert "--deepspeed ds.json" in text
    assert "--fsdp" not in text


def test_files_are_written_whole_or_not_at_all(served: str, tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "out"
    assert run("launch", served, "--for", "vllm", "--out", str(folder)).code == 0
    assert sorted(p.name for p in folder.iterdir()) == ["serve.sh", "verify.sh"]
    assert (folder / "serve.sh").stat().st_mode & 0o100
    assert "is there already" in run("launch", served, "--for", "vllm", "--out", str(folder)).refused(2)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--for", "vlm"), 3, "did you mean vllm"),
        (("--for", "megatron"), 2, "Megatron-LM trains, this plan serves"),
        (("--for", "sglang"), 2, "plan with --runtime sglang"),
        (("--for", "vllm", "--plan", "7"), 2, "no plan 7"),
    ],
)
def test_what_cannot_be_launched(served: str, run: Run, arguments: tuple[str, ...], code: int, words: str) -> None:
    assert words in run("launch", served, *arguments).refused(code)


def test_a_loop_is_launched_and_its_own_tool_is_taken(tmp_path: Path, run: Run) -> None:
    file = str(tmp_path / "loop.json")
    asked = RlRequest(model="Qwen/Qwen3-8B", chips="h100", counts="16", placement="together")
    save("rl", asked, file)
    spec = spec_of(open_saved(file))
    assert isinstance(spec, LoopSpec)
    assert (spec.train_devices, spec.sample_devices, spec.machine.per_host) == (16, 0, 8)
    assert spec.layout.tp * spec.layout.pp * spec.layout.dp * spec.layout.cp == 16
    assert launch(file) == launch(file, "verl")
    found = run("launch", file)
    assert (found.code, "verl.trainer.main_ppo" in found.out) == (0, True)


def test_an_answer_without_plans(tmp_path: Path, run: Run) -> None:
    file = str(tmp_path / "fit.json")
    assert run("fit", MODEL, "--chip", "b200-sxm", "--save", file).code == 0
    assert "holds no plan to launch" in run("launch", file, "--for", "vllm").refused(2)


@pytest.mark.parametrize("report", [{"plans": [{}]}, {"plans": [{"rank": 1}]}, {"plans": 3}, {"plans": [3]}])
def test_a_plan_that_was_cut_down_by_hand_is_refused(served: str, report: dict[str, object]) -> None:
    saved = replace(open_saved(served), report=report)
    with pytest.raises(UsageError, match="save it again"):
        spec_of(saved)


SETTINGS: tuple[dict[str, object], ...] = (
    {"tp": 2, "dp": 32},
    {"pp": 2, "dp": 32, "schedule": "1f1b"},
    {"pp": 2, "vp": 2, "dp": 32, "schedule": "interleaved"},
    {"pp": 2, "dp": 32, "schedule": "gpipe"},
    {"pp": 2, "dp": 32, "schedule": "zero-bubble"},
    {"pp": 2, "vp": 2, "dp": 32, "schedule": "v-half"},
    {"cp": 2, "dp": 32},
    {"sharding": "none"},
    {"sharding": "zero-1"},
    {"sharding": "zero-2"},
    {"sharding": "fsdp"},
    {"sharding": "fsdp", "shard_ranks": 8},
    {"selective": True, "recomputed": 0.0},
    {"recomputed": 0.5},
    {"recomputed": 1.0},
    {"offload": 1.0},
    {"stash": 1.0},
    {"stash": 1.0, "recomputed": 1.0},
    {"micro_batch": 2},
    {"global_batch": 1024},
    {"seq": 8192},
    {"precision": "fp8"},
)
STARTED = [t.id for t in all_software(Trainer).values() if t.tool]


def planned(trainer: str, **changes: str) -> Saved:
    row = get_trainer(trainer)
    tuning = row.tool in TUNERS
    chips = {"primus": "mi300x", "neuronx": "trainium2", "optimum-habana": "gaudi3", "gaudi-megatron": "gaudi3"}
    chip = "tpu-v5p" if row.runs_on == ("tpu",) else chips.get(trainer.removesuffix("-tuned"), CHIP)
    asked = {"seq": "8192"} if trainer == "axlearn" else {}
    request = TrainRequest(
        model="meta-llama/Llama-3.1-8B",
        task="finetune" if tuning else "train",
        method="lora" if tuning else "full",
        chips=chip,
        counts="64",
        trainer=trainer,
        global_batch=512,
        **(asked | changes),
    )
    return answered("train", request).saved


@pytest.mark.parametrize("trainer", STARTED)
def test_a_plan_can_be_launched_as_it_is_planned(trainer: str) -> None:
    """The best plan of every trainer, with nothing fixed, is one that its own launch file says in full."""
    assert launch_files(spec_of(planned(trainer)), get_trainer(trainer).tool)


@pytest.mark.parametrize(
    ("model", "method", "objective"),
    [
        ("Qwen/Qwen3-8B", "lora", "dpo"),
        ("Qwen/Qwen3-Embedding-0.6B", "full", "contrastive"),
        ("BAAI/bge-large-en-v1.5", "full", "contrastive-cached"),
    ],
)
def test_what_is_planned_for_an_objective_can_be_started(model: str, method: str, objective: str) -> None:
    """No trainer comes first that no launch file tells the objective."""
    request = TrainRequest(
        model=model, task="finetune", method=method, objective=objective, chips=CHIP, counts="8", tokens="100M"
    )
    saved = answered("train", request).saved
    target = "trl" if objective == "dpo" else "sentence-transformers"
    assert launch_files(spec_of(saved), target)


@pytest.mark.parametrize("trainer", STARTED)
def test_every_setting_of_a_plan_is_told_or_refused(trainer: str) -> None:
    """A setting that left the launch file as it was would be dropped without a word."""
    tool = get_trainer(trainer).tool
    spec = spec_of(planned(trainer))
    assert isinstance(spec, TrainSpec)
    copies = trainer == "unsloth"
    plain = replace(spec, tp=1, pp=1, vp=1, cp=1, schedule="", selective=False, recomputed=0.0, micro_batch=1)
    sharding = "none" if copies else "fsdp" if 3 in (get_trainer(trainer).zero or (3,)) else "zero-1"
    ranks = 64
    batch = ranks if trainer == "fms-fsdp" else 512  # one micro-batch a step
    plain = replace(plain, recomputed=float(copies))  # Unsloth's file knows nothing else
    plain = replace(plain, dp=ranks, sharding=sharding, shard_ranks=ranks, global_batch=batch)
    before = [file.text for file in launch_files(plain, tool)]
    for setting in SETTINGS:
        changed = replace(plain, **setting)  # type: ignore[arg-type]
        if changed == plain or (copies and "sharding" in setting):
            continue
        try:
            after = [file.text for file in launch_files(changed, tool)]
        except UsageError:
            continue
        assert after != before, f"{trainer}: {setting} is not said"


def test_a_network_of_dimensions_is_a_folder_of_ones_own(tmp_path: Path) -> None:
    file = str(tmp_path / "a.json")
    asked = TrainRequest(
        model="transformer:layers=24,hidden=2048,heads=16,ffn=5504,vocab=32000",
        chips=CHIP, counts="8", tokens="1B",
    )  # fmt: skip
    save("train", asked, file)
    (train, _) = launch(file, "megatron")
    assert "--tokenizer-model ./model" in train.text
    assert "# ./model: a folder of your own with config.json and tokenizer" in train.text
    assert "--grad-reduce-in-bf16" in train.text  # as the plan's memory counts them


def test_a_row_of_local_is_launched_under_the_load_that_it_answered_for(tmp_path: Path) -> None:
    asked = LocalRequest(have="rtx-4060", models="Llama-3.2-3B-Instruct")
    save("local", asked, str(tmp_path / "local.json"))
    saved = open_saved(str(tmp_path / "local.json"))
    row = saved.report["models"][0]
    spec = spec_of(saved)
    assert isinstance(spec, ServeSpec)
    assert (spec.prompt_tokens, spec.output_tokens, spec.length) == (1000, 200, row["context"])
    assert spec.passes.decode_s == pytest.approx(1.0 / row["tokens_per_s"]["mid"])
    serve, verify = (file.text for file in launch_files(spec, "llama.cpp"))
    assert f"-hf unsloth/Llama-3.2-3B-Instruct-GGUF:{row['precision'].upper()}" in serve
    assert f"--ctx-size {row['context']}" in serve
    requests = int(re.findall(r"--num-prompts (\d+)", verify)[0])
    each = spec.passes.prefill_s + 200 * spec.passes.decode_s
    assert requests * each == pytest.approx(120.0, rel=0.1)


@pytest.mark.parametrize(
    ("chip", "vendor", "model"),
    [
        ("wse3-cs3", "cerebras", "meta-llama/Llama-3.1-8B-Instruct"),
        ("sn40l", "sambanova", "meta-llama/Llama-3.3-70B-Instruct"),
    ],
)
def test_a_chip_that_nobody_rents_out_is_called_at_its_maker(
    chip: str, vendor: str, model: str, tmp_path: Path
) -> None:
    """A script for PyTorch stood there, or the client of whoever sells the tokens for least."""
    file = str(tmp_path / "a.json")
    save("plan", PlanRequest(model=model, chips=chip, rate="1/s"), file)
    client, *_ = launch(file)
    assert client.name == "client.py"
    assert f" at {vendor}" in client.text
