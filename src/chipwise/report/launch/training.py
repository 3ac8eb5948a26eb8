"""Training: torchrun alone, Megatron-LM, torchtitan, MaxText."""

from __future__ import annotations

from chipwise.catalog.tools import get_tool
from chipwise.errors import UsageError
from chipwise.report.launch.command import Command, script
from chipwise.report.launch.spec import LaunchFile, TrainSpec

__all__ = ["maxtext", "megatron", "torchrun", "torchtitan", "train_command"]

SCHEDULES = {
    "1f1b": "1F1B",
    "interleaved": "Interleaved1F1B",
    "gpipe": "GPipe",
    "zero-bubble": "InterleavedZeroBubble",
    "zb-v": "ZBVZeroBubble",
}
FLOAT8 = ("llama3_405b",)  # configurations of torchtitan whose products are 8-bit
MEASURED = 30  # steps of the run that verifies a prediction


def torchrun(spec: TrainSpec) -> tuple[LaunchFile, ...]:
    """One process per device; the program and its own options are the user's."""
    notes = ("the program is yours: it lays the model out as the title says and stops after STEPS steps",)
    return _pair(spec, "torchrun", *(_own(spec, steps) for steps in (spec.steps, MEASURED)), notes=notes)


def megatron(spec: TrainSpec) -> tuple[LaunchFile, ...]:
    """`pretrain_gpt.py` under torchrun; random tokens where only the step is measured."""
    n = spec.network
    left = [o for o, v in (("rope_theta", n.rope_base), ("rms_norm_eps", n.norm_epsilon)) if v is None]
    known = (
        "--rotary-base and --norm-epsilon are Megatron-LM's own where they are not given: see {} of the model"
    )
    notes = (known.format(" and ".join(left)),) if left else ()
    return _pair(spec, "megatron", *(_megatron(spec, steps) for steps in (spec.steps, MEASURED)), notes=notes)


def torchtitan(spec: TrainSpec) -> tuple[LaunchFile, ...]:
    """`torchtitan.train` under torchrun, for the models of its registries."""
    notes = [
        "the registry's configuration streams tokens from allenai/c4 and reads the tokenizer in ./assets/hf"
    ]
    if 0.0 < spec.recomputed < 1.0:
        notes.append(
            f"the plan runs {spec.recomputed:.0%} of the layers again, torchtitan can only do all: slower"
        )
    runs = (_torchtitan(spec, steps) for steps in (spec.steps, MEASURED))
    return _pair(spec, "torchtitan", *runs, notes=tuple(notes))


def maxtext(spec: TrainSpec) -> tuple[LaunchFile, ...]:
    """MaxText on a slice, or on GPUs under JAX."""
    return _pair(spec, "maxtext", *(_maxtext(spec, steps) for steps in (spec.steps, MEASURED)))


def train_command(spec: TrainSpec, steps: int) -> str:
    """The command of one host for wrappers: Megatron-LM on GPUs, MaxText on TPUs."""
    return _maxtext(spec, steps) if spec.machine.vendor == "google" else _megatron(spec, steps)


def _ranks(spec: TrainSpec) -> Command:
    machine = spec.machine
    several = machine.hosts > 1
    return (
        Command.of("torchrun", "torchrun")
        .option("--nnodes", machine.hosts)
        .option("--nproc-per-node", machine.devices_of_host)
        .option("--node-rank", '"${NODE_RANK:?}"', when=several)
        .option("--rdzv-backend", "c10d", when=several)
        .option("--rdzv-endpoint", '"${HEAD_ADDRESS:?}:29500"', when=several)
        .option("--rdzv-id", "chipwise", when=several)
    )


def _own(spec: TrainSpec, steps: int) -> str:
    return f'export STEPS={steps}\n{_ranks(spec)} \\\n  "${{PROGRAM:?the training program}}"'


def _megatron(spec: TrainSpec, steps: int) -> str:
    n = spec.network
    if spec.sharding in ("zero-2", "fsdp"):
        what = "weights (fsdp)" if spec.sharding == "fsdp" else "gradients (zero-2)"
        raise UsageError(f"the plan cuts {what}", "launch it --for torchtitan, or plan with --layout zero=1")
    if spec.schedule not in ("", "1f1b", "interleaved"):
        raise UsageError(
            f"{spec.schedule} is no schedule of Megatron-LM",
            "launch it --for torchtitan, or keep schedule=1f1b",
        )
    if n.layers % (spec.pp * spec.vp):
        raise _uneven(spec, spec.pp * spec.vp)
    if not n.plain:
        raise UsageError(
            f"{spec.model} is more than these options describe: layers differ, or attention is latent",
            "launch it --for torchtitan or torchrun",
        )
    chunk = n.layers // (spec.pp * spec.vp)
    again = round(chunk * spec.recomputed)
    measuring = steps <= MEASURED
    _precision(spec, "megatron", ("bf16", "fp8", "mxfp8"))
    command = (
        Command.of("megatron", "pretrain_gpt.py")
        .option("--tensor-model-parallel-size", spec.tp)
        .option("--sequence-parallel", when=spec.tp > 1)
        .option("--pipeline-model-parallel-size", spec.pp)
        .option("--num-layers-per-virtual-pipeline-stage", chunk, when=spec.vp > 1)
        .option("--context-parallel-size", spec.cp, when=spec.cp > 1)
        .option("--expert-model-parallel-size", spec.ep, when=spec.ep > 1)
        .option("--use-distributed-optimizer", when=spec.sharding != "none" or spec.offload > 0)
        .option("--overlap-grad-reduce")
        .option("--overlap-param-gather", when=spec.sharding != "none")
        .option("--micro-batch-size", spec.micro_batch)
        .option("--global-batch-size", spec.global_batch)
        .option("--seq-length", spec.seq)
        .option("--max-position-embeddings", spec.seq)
        .option("--train-iters", steps)
        .option("--recompute-granularity", "full" if again else "selective", when=again > 0 or spec.selective)
        .option("--recompute-method", "uniform" if again == chunk else "block", when=again > 0)
        .option("--recompute-num-layers", 1 if again == chunk else again, when=again > 0)
        .option("--use-precision-aware-optimizer", when=spec.offload > 0)
        .option("--optimizer-cpu-offload", when=spec.offload > 0)
        .option("--optimizer-offload-fraction", f"{spec.offload:g}", when=spec.offload > 0)
        .option("--num-layers", n.layers)
        .option("--hidden-size", n.hidden)
        .option("--ffn-hidden-size", n.ffn)
        .option("--num-attention-heads", n.heads)
        .option("--group-query-attention", when=n.kv_heads < n.heads)
        .option("--num-query-groups", n.kv_heads, when=n.kv_heads < n.heads)
        .option("--kv-channels", n.head_dim)
        .option("--swiglu")
        .option("--normalization", "RMSNorm")
        .option("--norm-epsilon", f"{n.norm_epsilon or 0.0:g}", when=n.norm_epsilon is not None)
        .option("--position-embedding-type", "rope")
        .option("--rotary-base", round(n.rope_base or 0.0), when=n.rope_base is not None)
        # its own are 0.1
        .option("--attention-dropout", 0)
        .option("--hidden-dropout", 0)
        .option("--disable-bias-linear")
        .option("--untie-embeddings-and-output-weights", when=not n.tied)
        .option("--num-experts", n.experts, when=n.experts > 0)
        .option("--moe-router-topk", n.top_k, when=n.experts > 0)
        .option("--moe-ffn-hidden-size", n.expert_ffn, when=n.experts > 0)
        .option("--moe-grouped-gemm", when=n.experts > 0)
        .option("--moe-token-dispatcher-type", "alltoall", when=n.experts > 0)
        .option("--bf16")
        .option("--fp8-format", "hybrid", when=spec.precision in ("fp8", "mxfp8"))
        .option(
            "--fp8-recipe", "mxfp8" if spec.precision == "mxfp8" else "delayed", when="fp8" in spec.precision
        )
        .option("--tokenizer-type", "NullTokenizer" if measuring else "HuggingFaceTokenizer")
        .option("--vocab-size", n.vocabulary, when=measuring)
        .option("--tokenizer-model", spec.model, when=not measuring)
        .option("--mock-data", when=measuring)
        .option("--data-path", '"${DATA_PATH:?}"', when=not measuring)
        .option("--save", '"${CHECKPOINTS:?}"', when=not measuring)
        .option("--load", '"${CHECKPOINTS:?}"', when=not measuring)
        .option("--save-interval", spec.save_steps, when=not measuring)
        .option("--lr", "3e-4")
        .option("--log-interval", 1 if measuring else 10)
        .option("--log-throughput")
    )
    ordered = spec.one_queue and (spec.tp > 1 or spec.cp > 1)
    export = "export CUDA_DEVICE_MAX_CONNECTIONS=1\n" if ordered else ""
    return f"{export}{_ranks(spec)} \\\n  {command}"


def _torchtitan(spec: TrainSpec, steps: int) -> str:
    tool = get_tool("torchtitan")
    if spec.model not in tool.models:
        raise UsageError(
            f"{tool.name} {tool.version} has no configuration of {spec.model}",
            f"it has {', '.join(tool.models)}",
        )
    module, config = tool.models[spec.model]
    _in_memory(spec, "torchtitan")
    _precision(spec, "torchtitan", ("fp8",) if config in FLOAT8 else ("bf16",))
    parts = spec.pp * spec.vp
    chunk = -(-spec.network.layers // parts)
    if spec.vp > 1 and -(-spec.network.layers // chunk) != parts:
        raise _uneven(spec, parts)
    again = "full" if spec.recomputed else "selective" if spec.selective else "none"
    # without its optimiser cut up zero-1 would not fit: weights are cut as well, and kept whole once gathered
    cut = 1 if spec.sharding == "none" else spec.shard_ranks
    command = (
        Command(tool, "-m torchtitan.train")
        .option("--module", module)
        .option("--config", config)
        # stages cut it into passes, otherwise gradients of as many passes as it takes are summed
        .option(
            "--training.local_batch_size", spec.global_batch // spec.dp if spec.pp > 1 else spec.micro_batch
        )
        .option("--training.global_batch_size", spec.global_batch)
        .option("--training.seq_len", spec.seq)
        .option("--training.steps", steps)
        .option("--parallelism.data_parallel_replicate_degree", max(spec.dp // cut, 1))
        .option("--parallelism.data_parallel_shard_degree", min(cut, spec.dp))
        .option(
            "--parallelism.fsdp_reshard_after_forward", "never", when=spec.sharding in ("zero-1", "zero-2")
        )
        .option("--parallelism.tensor_parallel_degree", spec.tp)
        .option("--parallelism.context_parallel_degree", spec.cp, when=spec.cp > 1)
        .option("--parallelism.expert_parallel_degree", spec.ep, when=spec.ep > 1)
        .option("--parallelism.pipeline_parallel_degree", spec.pp, when=spec.pp > 1)
        .option("--parallelism.pipeline_parallel_schedule", SCHEDULES.get(spec.schedule), when=spec.pp > 1)
        .option("--parallelism.pipeline_parallel_microbatch_size", spec.micro_batch, when=spec.pp > 1)
        .option("--parallelism.pipeline_parallel_layers_per_stage", chunk, when=spec.vp > 1)
        # tables count for no layer, or the number of parts would be another
        .option("--parallelism.pipeline_parallel_first_stage_less_layers", 0, when=spec.vp > 1)
        .option("--parallelism.pipeline_parallel_last_stage_less_layers", 0, when=spec.vp > 1)
        .option(f"activation-checkpoint:{again}")  # a subcommand: last
    )
    return f"{_ranks(spec)} \\\n  {command}"


def _maxtext(spec: TrainSpec, steps: int) -> str:
    tool = get_tool("maxtext")
    if spec.model not in tool.models:
        raise UsageError(
            f"{tool.name} has no configuration of {spec.model} in the table of options",
            f"it has {', '.join(tool.models)}",
        )
    _in_memory(spec, "maxtext")
    _precision(spec, "maxtext", ("bf16", "fp8"))
    (name,) = tool.models[spec.model]
    devices, micro = spec.machine.devices, spec.micro_batch * spec.dp
    passes, chunks = max(spec.global_batch // micro, 1), spec.pp * spec.vp
    if spec.network.layers % chunks:
        raise _uneven(spec, chunks)
    if spec.pp > 1 and passes % spec.pp:
        raise UsageError(
            f"{tool.name} runs a multiple of {spec.pp} micro-batches through {spec.pp} stages, the plan has {passes}",
            "keep another pp of --layout",
        )
    at_once = (
        passes if spec.pp > 1 else 1
    )  # stages work off all micro-batches of a step, without them one runs
    cut = spec.shard_ranks if spec.sharding == "fsdp" else 1
    command = (
        Command(tool, "python -m MaxText.train MaxText/configs/base.yml")
        .setting("model_name", name)
        .setting("run_name", "chipwise")
        .setting("base_output_directory", '"${OUTPUT:?where logs go}"')
        .setting("hardware", "tpu" if spec.machine.vendor == "google" else "gpu")
        .setting("per_device_batch_size", f"{micro * at_once / devices:g}")
        .setting("gradient_accumulation_steps", passes // at_once)
        .setting("max_target_length", spec.seq)
        .setting("ici_fsdp_parallelism", min(cut, spec.dp))
        .setting("ici_data_parallelism", max(spec.dp // cut, 1))
        .setting("ici_tensor_parallelism", spec.tp)
        .setting("ici_context_parallelism", spec.cp, when=spec.cp > 1)
        .setting("ici_expert_parallelism", spec.ep, when=spec.ep > 1)
        .setting("ici_pipeline_parallelism", spec.pp, when=spec.pp > 1)
        .setting("num_layers_per_pipeline_stage", spec.network.layers // chunks, when=spec.pp > 1)
        .setting("num_pipeline_microbatches", passes, when=spec.pp > 1)
        .setting(
            "shard_optimizer_over_data", "true", when=spec.sharding in ("zero-1", "zero-2") and spec.dp > 1
        )
        .setting("remat_policy", "full" if spec.recomputed else "minimal" if spec.selective else "none")
        .setting("dtype", "bfloat16")
        .setting("quantization", spec.precision, when=spec.precision == "fp8")
        .setting("dataset_type", "synthetic", when=steps <= MEASURED)
        .setting("enable_checkpointing", "false", when=steps <= MEASURED)
        .setting("steps", steps)
    )
    return str(command)


def _uneven(spec: TrainSpec, parts: int) -> UsageError:
    return UsageError(
        f"{spec.network.layers} layers cannot be cut evenly into {parts} parts",
        "keep a pp of --layout that divides them",
    )


def _in_memory(spec: TrainSpec, target: str) -> None:
    """Raises `UsageError` for an optimiser in host memory, which the tool is not told here."""
    if spec.offload > 0:
        raise UsageError(
            f"{get_tool(target).name} is not told here to keep the optimiser in host memory",
            "launch it --for megatron, or plan with --layout offload=0",
        )


def _precision(spec: TrainSpec, target: str, known: tuple[str, ...]) -> None:
    """Raises `UsageError` for products that the tool is not told here."""
    if spec.precision not in known:
        tool = get_tool(target)
        raise UsageError(
            f"{tool.name} is not told here to train in {spec.precision}", f"plan with --precision {known[0]}"
        )


def _pair(
    spec: TrainSpec, target: str, run: str, check: str, *, notes: tuple[str, ...] = ()
) -> tuple[LaunchFile, ...]:
    """The script of every host; a short run whose logged step time is the prediction's check."""
    tool = get_tool(target)
    if spec.finetune and target != "torchrun":
        raise UsageError("adapters are trained by a program of your own", "launch it --for torchrun")
    return (
        LaunchFile("train.sh", script(spec, tool, run, notes=notes), script=True),
        LaunchFile("verify.sh", script(spec, tool, check, notes=notes), script=True),
    )
